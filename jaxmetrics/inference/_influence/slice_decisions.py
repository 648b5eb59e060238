"""Recalls at a threshold in many slices, the threshold of each slice or that of all items."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.host_placements import OneClass
from jaxmetrics._roc.host_sorted import InOrder
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics.inference._influence.slice_slopes import InSlices
from jaxmetrics.inference._influence.slices import Sliced
from jaxmetrics.inference._intervals.metrics import error_bars_of


class OfThreshold(NamedTuple):
    """What a threshold that all slices share adds.

    Attributes:
      flagged: `[negatives]`, which of all negatives are above it.
      slopes: `[slices]`, those of the slice's positives' ROC curve at the limit.
    """

    flagged: HostArray
    slopes: HostArray


def decided_in_slices(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> InSlices:
    """Of scores `[n]`, each slice with the threshold of its own negatives."""
    order = sliced.order(scores)
    found = []
    influence = np.zeros(len(scores))
    for i, (begin, end) in enumerate(zip(sliced.begins[:-1], sliced.begins[1:], strict=True)):
        item, positive = order.item[begin:end], order.positive[begin:end]
        classes = (_of_class(sliced, scores, item[x]) for x in (positive, ~positive))
        of_positives, of_negatives = classes
        decision, numbers = _decided(
            chosen, arrays, of_positives, of_negatives, sliced.sizes[i], levels
        )
        found.append((decision.estimate, numbers))
        flagged = (scores[item] > decision.beyond) | ~decision.some
        influence[item] = flagged * np.where(positive, 1.0, -decision.slope)
    estimates, numbers = _stacked(found)
    return InSlices(estimates, influence, numbers)


def decided_by_all(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> tuple[InSlices, OfThreshold]:
    """Each slice with the threshold of the negatives of all slices.

    That is the recall of a slice's positives and the negatives of all slices. Its weights must be
    in one unit.
    """
    order = sliced.order(scores)
    negatives = order.item[~order.positive]
    # A stable sort of runs that are in order.
    negatives = negatives[scores[negatives].argsort(kind="stable")]
    of_negatives = _of_class(sliced, scores, negatives)
    size = of_negatives.effective_size
    found = []
    influence = np.zeros(len(scores))
    slopes = np.zeros(len(sliced.counts))
    beyond, some = -np.inf, False
    for i, (begin, end) in enumerate(zip(sliced.begins[:-1], sliced.begins[1:], strict=True)):
        item = order.item[begin:end][order.positive[begin:end]]
        of_slice = _of_class(sliced, scores, item)
        sizes = np.array([size, sliced.sizes[i, 1]])
        decision, numbers = _decided(chosen, arrays, of_slice, of_negatives, sizes, levels)
        found.append((decision.estimate, numbers))
        beyond, some, slopes[i] = decision.beyond, decision.some, decision.slope
        influence[item] = (scores[item] > beyond) | ~some
    estimates, numbers = _stacked(found)
    flagged = np.zeros(len(scores), bool)
    flagged[negatives] = (scores[negatives] > beyond) | ~np.asarray(some)
    return InSlices(estimates, influence, numbers), OfThreshold(flagged, slopes)


def _of_class(sliced: Sliced, scores: HostArray, item: HostArray) -> OneClass:
    return OneClass(scores[item], None if sliced.weights is None else sliced.weights[item])


def _decided(
    chosen: Chosen,
    arrays: Options,
    positive: OneClass,
    negative: OneClass,
    sizes: HostArray,
    levels: HostArray,
) -> tuple[Any, Any]:
    known, options = error_bars_of(chosen.metric), chosen.options(arrays)
    assert known.decision is not None
    placed = InOrder(positive, negative, positive.weight, negative.weight)
    both: Any = np.float64(sizes[0]), np.float64(sizes[1])
    with np.errstate(all="ignore"):
        numbers: Any = known.numbers(placed, both, levels, options)
        return known.decision(placed, both, options, numbers), numbers


def _stacked(found: list[Any]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *found)
