"""Recalls in many slices, each at a threshold of its own or all at one that they share."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import sorting
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.host_class import OneClass
from jaxmetrics._roc.host_segments import InSegments, Segments
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics._roc.sliced import RunOfSlices, Sliced
from jaxmetrics.inference._influence.slice_slopes import InSlices
from jaxmetrics.inference._intervals.metrics import error_bars_of

_MOST = 1 << 14  # positives, with padding, whose arrays stay in the cache
_FEW = 128  # slices whose arrays stay in the cache


class OfThreshold(NamedTuple):
    """What a threshold that all slices share adds.

    Attributes:
      flagged: `[n]`, the share of each item that the threshold flags.
      slopes: `[slices]`, of the ROC curve of each slice's positives, at the limit.
    """

    flagged: HostArray
    slopes: HostArray


def decided_in_slices(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> InSlices:
    """The recall in each slice at the threshold of its own negatives, from scores `[n]`."""
    ascending = sliced.ascending(scores)
    negative, positive = (_segments(sliced, ascending, i) for i in (0, 1))
    decision, numbers = _decided(chosen, arrays, (negative, positive), sliced.sizes.T, levels)
    by_class = np.concatenate([-decision.slope, np.ones_like(decision.slope)], axis=1)
    influence = np.empty(len(scores))

    def flag(part: RunOfSlices) -> None:
        """Fills in the influence: whether an item is flagged, times the slope of its class."""
        begins = np.diff(part.sliced.begins)
        of_part = jax.tree.map(lambda x: x[part.slices, 0].repeat(begins), decision)
        flagged = of_part.flags(scores[part.span, None])[:, 0]
        np.multiply(flagged, part.sliced.spread(by_class[part.slices]), out=influence[part.span])

    in_threads(flag, sliced.parts())
    return InSlices(decision.estimate[:, 0], influence, numbers)


def decided_by_all(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> tuple[InSlices, OfThreshold]:
    """The recall in each slice at the threshold of the negatives of all slices.

    That is the recall of a slice's positives and the negatives of all slices. The weights of
    `sliced` must be in one unit.
    """
    of_negatives = scores.compress(~sliced.positive)
    weights = None if sliced.weights is None else sliced.weights.compress(~sliced.positive)
    size = OneClass(of_negatives, weights).effective_size
    if weights is None:
        sorting.sort_row(of_negatives)
    else:
        keys = ~sorting.descending_keys(of_negatives)
        order = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))[1]
        of_negatives, weights = of_negatives.take(order), weights.take(order)
    ends = np.array([len(of_negatives)])
    positives = sliced.positives()
    ascending = positives.ascending(scores.compress(sliced.positive))
    classes = Segments(of_negatives, weights, 0 * ends, ends), _segments(positives, ascending, 1)
    sizes = np.full(1, size), sliced.sizes[:, 1]
    decision, numbers = _decided(chosen, arrays, classes, sizes, levels)
    flagged = jax.tree.map(lambda x: x[:1, 0], decision).flags(scores)[0]
    influence = np.where(sliced.positive, flagged, 0.0)
    found = InSlices(decision.estimate[:, 0], influence, numbers)
    return found, OfThreshold(flagged, decision.slope[:, 0])


def _segments(sliced: Sliced, ascending: tuple[HostArray, Any], of_class: int) -> Segments:
    bounds = sliced.bounds
    return Segments(*ascending, bounds[:-1][of_class::2], bounds[1:][of_class::2])


def _decided(
    chosen: Chosen,
    arrays: Options,
    classes: tuple[Segments, Segments],
    sizes: Any,
    levels: HostArray,
) -> tuple[Any, Any]:
    """The Decision and the numbers of each slice, `[slices, 1]` and `[slices, levels]`."""
    known, options = error_bars_of(chosen.metric), chosen.options(arrays)
    options["max_fpr"] = np.reshape(options["max_fpr"], (1, 1))
    decide = known.decision
    assert decide is not None
    n_positives = classes[1].counts[:, 0]
    order = n_positives.argsort(kind="stable")

    def of_run(span: slice) -> Any:
        which = order[span]
        negative, positive = (x.some(which) for x in classes)
        placed: Any = InSegments(positive, negative)
        both: Any = tuple((x if len(x) == 1 else x[which])[:, None] for x in sizes)
        with np.errstate(all="ignore"):
            numbers: Any = known.numbers(placed, both, levels, options)
            found = decide(placed, both, options, numbers), numbers
        return jax.tree.map(lambda x: np.broadcast_to(x, (len(which), *x.shape[1:])), found)

    def in_order(*runs: HostArray) -> HostArray:
        joined = np.concatenate(runs)
        found = np.empty_like(joined)
        found[order] = joined
        return found

    return jax.tree.map(in_order, *in_threads(of_run, _runs(n_positives.take(order))))


def _runs(widths: HostArray) -> list[slice]:
    """Runs of `widths`, which ascend: the numbers of positives, padded to the highest of a run."""
    found, begin = [], 0
    while begin < max(len(widths), 1):
        most = 2 * int(widths[begin : begin + 1].sum()) + 16
        end = min(int(widths.searchsorted(most, "right")), begin + min(_FEW, _MOST // most))
        found.append(slice(begin, max(end, begin + 1)))
        begin = found[-1].stop
    return found
