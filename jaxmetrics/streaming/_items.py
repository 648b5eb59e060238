"""The items of a state that holds few of them: they are resampled as items in memory are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxmetrics._base.types import Items
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference._bootstrap.finish import finish_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._bootstrap.run import resample_items
from jaxmetrics.streaming._ends import Counted

# Resampling a bin takes as long as resampling this many runs of items of one class.
_TIMES = 10
_MOST = 1 << 22  # items; sorting them takes less than 1 GB

# The scores of the positives and of the negatives of each bin.
Scores: TypeAlias = tuple[Any, Any]
ScoresOf: TypeAlias = Callable[[Counted], tuple[Scores, ...]]


def scores_that_tie(bins: Counted) -> tuple[Scores, ...]:
    """All items of a bin have the score of its lower end."""
    return ((bins.lowest, bins.lowest),)


def scores_by_order(bins: Counted) -> tuple[Scores, ...]:
    """Scores with, in each bin, negatives above positives, ties, and positives above negatives.

    The two scores of a bin are neighbours in double precision. No end of another bin lies between
    them, as those are numbers in single precision.
    """
    lowest = np.asarray(bins.lowest, np.float64)
    above = np.nextafter(lowest, np.inf)
    return (lowest, above), (lowest, lowest), (above, lowest)


def scores_by_score(bins: Counted) -> tuple[Scores, ...]:
    """Scores for the low end of a threshold, for ties, and for the high end.

    The threshold is lowest with positives first at the lower ends of bins, and highest with
    negatives first at the upper ends.
    """
    highest = np.asarray(bins.highest, np.float64)
    _, even, best = scores_by_order(bins)
    return best, even, (np.nextafter(highest, -np.inf), highest)


def are_few(metric: MetricLike, bins: Counted) -> bool:
    """Whether resampling the items is faster than resampling the bins, and fits in memory."""
    sizes = bins.positives.sum(), bins.negatives.sum()
    rarer, n = min(sizes), sum(sizes)
    runs = n if finish_of(metric)[0].of_tables else 2 * rarer
    occupied = np.count_nonzero(bins.positives + bins.negatives)
    return bool(rarer > 0 and n <= _MOST and runs <= _TIMES * occupied)


def resample_counted(
    metric: MetricLike, bins: Counted, scores_of: ScoresOf, request: Request
) -> Any:
    """The metric of the items and of resamples of them, `[1 + n_resamples, ..., orders]`.

    The last axis is left out if `scores_of` returns one order.
    """
    counts = bins.positives.astype(np.int64), bins.negatives.astype(np.int64)
    labels = np.arange(2).repeat([x.sum() for x in counts]) == 0

    def of_order(scores: Scores) -> Any:
        of_items = [x.repeat(count) for x, count in zip(scores, counts, strict=True)]
        items = Items(np.concatenate(of_items)[None], labels)
        return jax.tree.map(lambda x: x[:, 0], resample_items(metric, items, request).values)

    found = list(map(of_order, scores_of(bins)))
    if scores_of is scores_by_score:  # back from the float64 next to an end to the end itself
        with np.errstate(over="ignore"):
            found = [np.asarray(x, np.float32).astype(np.float64) + 0.0 for x in found]
    whole = found[0] if len(found) == 1 else jax.tree.map(lambda *x: np.stack(x, axis=-1), *found)
    return jax.tree.map(lambda x: np.where(bins.undefined, np.nan, x), whole)


def request_of(request: Request, number: int) -> Request:
    """The request for one state of a batch."""
    return request if number == 0 else request._replace(key=jax.random.fold_in(request.key, number))
