"""What closed-form intervals need of the data beside the moments of a metric.

Each is a function of the placements of one sample, its class sizes (negatives first), the
confidence level and the options of the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._base.numerics import divide, namespace, rates
from jaxmetrics._base.types import Array
from jaxmetrics._roc.areas import partial_auc
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics._roc.placements import Groups, Placements
from jaxmetrics._roc.record import Options
from jaxmetrics._roc.thresholds import caught_on_line, recall_at_fpr
from jaxmetrics.inference._intervals.precision import Precisions
from jaxmetrics.inference._intervals.recall import (
    Box,
    Heights,
    around_limit,
    box_of,
    squared_slope,
)

Sizes: TypeAlias = tuple[Array, Array]
Numbers: TypeAlias = Callable[[Placements, Sizes, Any, Options], Any]

# A limit times this excludes the step of the curve that the limit falls on, and no other step.
_JUST_BELOW = 1 - 2.0**-22


def no_numbers(placed: Placements, sizes: Sizes, level: Any, options: Options) -> tuple[()]:
    """For intervals that need the moments alone."""
    return ()


def height_at_limit(placed: Placements, sizes: Sizes, level: Any, options: Options) -> Array:
    """The height of the ROC curve at `max_fpr`; the middle of the step if it falls on one."""
    before, at = _recalls(placed, options["max_fpr"], [_JUST_BELOW, 1.0], {"method": "linear"})
    return (before + at) / 2


def precisions(placed: Placements, sizes: Sizes, level: Any, options: Options) -> Precisions:
    """The average precision where a positive counts half in its own, and negatives per positive.

    With weights, a half is half of the total weight over the effective number of positives. Where a
    negative is heavier, so is what may be missing above each positive: half of the excess is added.
    """
    placed = placed.near_one(together=True)
    half = placed.total_positives / sizes[1] / 2
    missing = placed.library.maximum(placed.total_negatives / sizes[0] / 2 - half, 0.0)

    odds = divide(placed.total_negatives, placed.total_positives, np.nan)

    def of_both(part: Groups) -> Any:
        caught = part.library.maximum(part.positives_not_below - half[..., None], 0.0)
        without_itself = divide(caught, caught + part.not_below + missing[..., None], 1.0)
        return part.total(part.library.stack([without_itself, odds[..., None] + 0 * caught]))

    # Even the odds are written as a mean over positives: for slices, only sums over the groups of a
    # slice give one number for each slice.
    without_itself, of_odds = placed.summed(of_both) / placed.total_positives
    return Precisions(without_itself, of_odds)


class Decision(NamedTuple):
    """A recall, and the threshold that it is at; `[]` or `[limits]`.

    A flagged positive adds to the recall. A flagged negative moves the threshold up, along the
    curve, and so takes away `slope` times its share of the negatives.

    Attributes:
      estimate: the recall.
      beyond: the highest score of the negatives beyond the limit; items above it are flagged.
      some: whether there is such a negative.
      slope: the slope of the ROC curve at the limit.
      tied: the share of the items at `beyond` that is flagged where the curve is linear between its
        points; None where it has steps.
    """

    estimate: Array
    beyond: Array
    some: Array
    slope: Array
    tied: Array | None

    def flags(self, scores: Any) -> Any:
        """The share of an item that is flagged at each of the scores `[n]`; `[..., n]`."""
        library, beyond = namespace(scores, self.beyond), self.beyond[..., None]
        flagged = scores > beyond
        if self.tied is not None:
            flagged = library.where(scores == beyond, self.tied[..., None], flagged)
        return library.where(self.some[..., None], flagged, library.ones((), flagged.dtype))


def decision_of_recall(
    placed: Placements, sizes: Sizes, options: Options, numbers: tuple[Heights, Box] | None = None
) -> Decision:
    """The recall at `max_fpr` and its threshold; from `heights_and_box` if that is known."""
    library = placed.library
    limit = library.asarray(options["max_fpr"])
    heights = heights_of(placed, sizes, options) if numbers is None else numbers[0]
    points = placed.beside(limit_of_fpr(limit))
    slope = library.sqrt(squared_slope(heights, limit.astype(np.float64), sizes))
    total, fps, beyond = placed.total_negatives, points.fps_within, points.fps_beyond
    tied = None
    if options["method"] == "linear":
        tied = library.clip(divide(limit * total - fps, beyond - fps, 0.0), 0, 1)
    return Decision(heights.at, points.beyond, fps < total, slope, tied)


def heights_and_box(
    placed: Placements, sizes: Sizes, level: Any, options: Options
) -> tuple[Heights, Box]:
    """The heights of the ROC curve at and around the limit, and at likely thresholds."""
    limit = placed.library.asarray(options["max_fpr"]).astype(np.float64)

    line = options["method"] == "linear"  # the line also rises within the tie of the highest scores

    def height(*limits: Array) -> list[Array]:
        if line and placed.library is not np:  # one search, in place of a sum for each limit
            at = placed.library.stack(limits)
            caught = caught_on_line(placed, at.ravel()).reshape(at.shape)
            return list(rates(caught, placed.total_positives))
        how = {"method": "linear" if line else "step"}
        return _recalls(placed, np.float64(1), list(limits), how)

    return heights_of(placed, sizes, options), box_of(height, limit, sizes[0], level)


def heights_of(placed: Placements, sizes: Sizes, options: Options) -> Heights:
    """The heights of the ROC curve at and around the limit."""
    how = {name: options[name] for name in ("method", "quantile_method")}
    at, before = _recalls(placed, options["max_fpr"], [1.0, _JUST_BELOW], how)
    limit = placed.library.asarray(options["max_fpr"]).astype(np.float64)
    lower, upper = _recalls(placed, np.float64(1), [*around_limit(limit, sizes[0])], how)
    window = {"max_fpr": limit, "min_fpr": 0.0, "min_tpr": 0.0, "scale": "range"}
    return Heights(at, before, lower, upper, _value(partial_auc, placed, window))


def _recalls(placed: Placements, max_fpr: Any, factors: list[Any], how: Options) -> list[Array]:
    """The recall at `max_fpr` times each factor, rounded to the dtype of `max_fpr`."""
    library = placed.library
    limit = library.asarray(max_fpr)
    limits = library.stack([(limit * x).astype(limit.dtype) for x in factors])
    if library is np:  # limits may have any shape; for many slices the result has another one
        return list(_value(recall_at_fpr, placed, {"max_fpr": limits, **how}))
    found = _value(recall_at_fpr, placed, {"max_fpr": limits.ravel(), **how})
    return list(found.reshape(limits.shape))


def _value(metric: Any, placed: Placements, options: Options) -> Any:
    return metric.record.of_placements(placed, **options)
