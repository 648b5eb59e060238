"""Metrics that integrate over a curve: areas under ROC and precision-recall."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._base import cumulative
from jaxmetrics._base.numerics import as_constant, at_each, divide, namespace, within
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.host_placements import SortedPart
from jaxmetrics._roc.limits import MANY
from jaxmetrics._roc.metric import placement_metric
from jaxmetrics._roc.placements import (
    Groups,
    OfTable,
    Part,
    Placements,
    order_of_head,
    order_of_positives,
)


@partial(placement_metric, smooth=True, of_roc_curve=True, on_mesh=True, orders=order_of_positives)
def roc_auc(placed: Placements) -> Array:
    """The area under the ROC curve: the probability that a positive outranks a negative.

    AUC = sum_ij w_i w_j ([s_i > s_j] + [s_i = s_j] / 2) / (W1 W0), where i runs over positives
    and j over negatives, and W1 and W0 are the total weights of the two classes.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.

    Returns:
      `[...]`, from 0 to 1; 0.5 is chance.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or scores are `[n, 2]` with one column per class.

    NaN where a class is absent or a valid score is NaN. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.roc_auc([.1, .4, .35, .8], [0, 0, 1, 1]))
      0.75

    Reference: J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver
    operating characteristic (ROC) curve", Radiology 143, 1982.
    """
    placed = placed.near_one()

    def outranked(part: Groups) -> Any:
        return part.total(2 * part.total_negatives - part.above - part.not_below)

    most = 2 * placed.total_negatives * placed.total_positives
    return within(divide(placed.summed(outranked), most, np.nan), 0, 1)


def _orders(*, max_fpr: ArrayLike, **_: ArrayLike) -> Part:
    return order_of_head(max_fpr)


@partial(placement_metric, smooth=True, of_roc_curve=True, on_mesh=True, orders=_orders)
def partial_auc(
    placed: Placements,
    *,
    max_fpr: ArrayLike = 1.0,
    min_fpr: ArrayLike = 0.0,
    min_tpr: ArrayLike = 0.0,
    scale: str = "raw",
) -> Array:
    """The area under the ROC curve between two FPRs and above a TPR.

    raw = integral from `min_fpr` to `max_fpr` of max(ROC(u) - min_tpr, 0) du, where ROC is linear
    between its points. With `min_tpr` it is the two-way partial AUC: left of `max_fpr` and above
    `min_tpr`.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: upper limit of the FPR, in (0, 1]; several limits `[k]` add a last axis.
      min_fpr: lower limit of the FPR, in [0, max_fpr).
      min_tpr: lower limit of the TPR, in [0, 1); the area below it does not count.
      scale: "raw", the area itself; "range", the area divided by the largest possible area, 0 to 1;
        "mcclish", (1 + (raw - chance) / (largest - chance)) / 2, which is 0.5 for chance and 1 for
        a perfect ranking, as scikit-learn's `roc_auc_score(max_fpr=)`.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.

    Returns:
      `[...]` or `[..., k]`, in the unit of `scale`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `max_fpr` is 5
        for 5 %, or `min_fpr` is not below `max_fpr`.

    NaN where a class is absent or a valid score is NaN. Time O(n log n), memory O(n). Where a
    limit meets a vertical step of the curve, the gradient uses the middle of the step.

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
      >>> few = [1, 0, 0, 0, 1, 1, 1, 1, 1, 0]
      >>> print(f"{jm.partial_auc(few, labels, max_fpr=0.3, scale='mcclish'):.4f}")
      0.5882

    References: D. K. McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9,
    1989; H. Yang et al., "Two-way partial AUC and its properties", Statistical Methods in Medical
    Research 28, 2019.
    """
    library, placed = placed.library, placed.near_one()
    n_negative, n_positive = placed.total_negatives, placed.total_positives
    from_left, from_floor = not _is_constant_zero(min_fpr), not _is_constant_zero(min_tpr)
    max_fpr, min_fpr, min_tpr = map(library.asarray, (max_fpr, min_fpr, min_tpr))
    limits = {"high": in_counts(max_fpr, n_negative)}
    if from_left:
        limits["low"] = in_counts(min_fpr, n_negative)
    if from_floor:
        limits["floor"] = in_counts(min_tpr, n_positive)

    def in_pairs(part: Groups) -> Any:
        above, not_below = part.above, part.not_below
        many = max_fpr.size > MANY and not (from_left or from_floor)
        if many and isinstance(part, SortedPart) and len(above):
            return _by_running_sums(limits["high"], above, not_below, part.weights)
        if many and isinstance(part, OfTable) and part.constant:
            rises = (x[::-1] for x in (above, not_below, part.table.positives))
            return _by_running_sums(limits["high"], *rises)
        first: Any = part.positives_above if from_floor else None
        top: Any = part.positives_not_below if from_floor else None

        def area_left_of(limit: Any, begin: Any) -> Any:
            return _area_left_of(_at_edge(limit, begin, not_below, part.slack), begin, not_below)

        def of_window(limits: dict[str, Any]) -> Any:
            limits = {name: x[..., None] for name, x in limits.items()}
            share: Any = 1.0
            begin = above
            if from_floor:  # of a tie, only the part above the floor counts
                rise, over = top - first, top - _at_edge(limits["floor"], first, top, part.slack)
                share = divide(library.clip(over, 0, rise), rise, over > 0)
                begin = not_below - (not_below - above) * share
            widths = area_left_of(limits["high"], begin)
            if from_left:
                widths = widths - area_left_of(limits["low"], begin)
            return part.total(share * widths)

        return at_each(of_window, limits)

    raw = divide(placed.summed(in_pairs, max_fpr), n_negative * n_positive, np.nan)
    return scaled(raw, max_fpr, min_fpr, min_tpr, scale)


def _is_constant_zero(limit: ArrayLike) -> bool:
    """Whether a limit is the constant 0, which needs no computation."""
    return isinstance(limit, float) and limit == 0


def _at_edge(limit: Array, low: Array, high: Array, slack: float) -> Array:
    """The limit, moved to an edge that it equals up to the rounding of sums of weights.

    Without this, the rounding would choose the derivative, which at an edge is that of the middle.
    """
    if slack:
        library = namespace(limit, low)
        for edge in (low, high):
            near = library.abs(edge - limit) <= slack * limit
            limit = limit + as_constant(library.where(near, edge - limit, 0))
    return limit


def _area_left_of(limit: Array, above: Array, not_below: Array) -> Array:
    """The area that a rise of the ROC curve by 1 adds, left of a limit of false positives.

    The curve rises along a straight line from `above` to `not_below`. Where that line is vertical
    and at the limit, the derivative is that of the middle of the step.
    """
    library = namespace(limit, above)
    whole = library.maximum(limit - (above + not_below) / 2, 0)
    cut = divide(library.maximum(limit - above, 0) ** 2, 2 * (not_below - above), 0.0)
    return library.where(not_below <= limit, whole, cut)


def _by_running_sums(limits: Any, above: Any, not_below: Any, weights: Any) -> Any:
    """The weighted sum of `_area_left_of` over all rises, for many limits at once, by running sums.

    The rises descend in `above` and `not_below`. A limit lies within one oblique line at most,
    and all rises on that line have the same ends.
    """
    library = namespace(limits, above)
    weights = library.ones(len(above)) if weights is None else weights
    middle = (above + not_below) / 2
    sums = (cumulative.running_sum(x) for x in (weights, weights * middle))
    upto, areas = (library.append(np.zeros(1), x) for x in sums)
    whole, begun = (
        len(above) - library.searchsorted(x[::-1], limits, side)
        for x, side in ((not_below, "right"), (above, "left"))
    )
    # A vertical rise at the limit has no area left of it.
    begun = library.minimum(begun, whole)
    at = library.minimum(begun, len(above) - 1)
    cut = divide((limits - above[at]) ** 2, 2 * (not_below[at] - above[at]), 0.0)
    of_whole = limits * (upto[-1] - upto[whole]) - (areas[-1] - areas[whole])
    return of_whole + (upto[whole] - upto[begun]) * cut


def scaled(raw: Array, max_fpr: Array, min_fpr: Array, min_tpr: Array, scale: str) -> Array:
    """The raw partial area `raw`, on the scale `scale`."""
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    raw = within(raw, 0, largest)
    if scale == "range":
        raw = raw / largest
    if scale == "mcclish":
        chance = (_above(max_fpr, min_tpr) ** 2 - _above(min_fpr, min_tpr) ** 2) / 2
        raw = (1 + (raw - chance) / (largest - chance)) / 2
    return raw


def _above(fpr: Array, min_tpr: Array) -> Array:
    """The height of the diagonal of chance above `min_tpr`."""
    return namespace(fpr, min_tpr).maximum(fpr - min_tpr, 0)


def in_counts(limit: Array, total: Array) -> Array:
    """A limit of a rate as a count: whole if a whole number over the total equals the limit."""
    counts, library = limit * total, namespace(limit, total)
    whole = library.round(counts)
    equal = (whole / total).astype(limit.dtype) == limit
    return counts + as_constant(library.where(equal, whole - counts, 0))


@partial(placement_metric, smooth=True, on_mesh=True, orders=order_of_positives)
def average_precision(placed: Placements) -> Array:
    """Average precision: the mean over the positives of the precision at each positive.

    AP = sum_k (R_k - R_(k-1)) P_k, with recall R_k and precision P_k at the k-th highest distinct
    threshold, without interpolation.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.

    Returns:
      `[...]`, from 0 to 1; chance is the share of positives.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or scores are `[n, 2]` with one column per class.

    It is 0 without positives, as in scikit-learn, and NaN where a valid score is NaN or no item is
    valid. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.average_precision([.1, .4, .35, .8], [0, 0, 1, 1]):.4f}")
      0.8333

    Reference: J. Davis and M. Goadrich, "The relationship between precision-recall and ROC
    curves", ICML 2006.
    """

    def precisions(part: Groups) -> Any:
        tps = part.positives_not_below
        return part.total(divide(tps, tps + part.not_below, 1.0))

    placed = placed.near_one(together=True)
    return within(divide(placed.summed(precisions), placed.total_positives, 0.0), 0, 1)
