"""Recall at a limit of the false positive rate, and the threshold of that limit."""

from __future__ import annotations

from functools import partial

import numpy as np

from jaxmetrics._base.numerics import at_each, divide, rates, within
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.host_placements import OnHost
from jaxmetrics._roc.limits import MANY, Limit, limit_of_fpr, slackened_share
from jaxmetrics._roc.metric import placement_metric
from jaxmetrics._roc.placements import (
    Beside,
    Groups,
    OfTable,
    Part,
    Placements,
    order_of_few,
    order_of_head,
)
from jaxmetrics._roc.reported import ABOVE, AT_LEAST


def _orders(*, max_fpr: ArrayLike, method: str, **_: ArrayLike) -> Part:
    return order_of_head(max_fpr) if method == "linear" else order_of_few(max_fpr)


def _orders_of_threshold(*, max_fpr: ArrayLike, method: str, **_: ArrayLike) -> Part:
    return Part.ALL if method == "linear" else order_of_few(max_fpr)


@partial(placement_metric, amounts=True, on_mesh=True, orders=_orders)
def recall_at_fpr(
    placed: Placements,
    *,
    max_fpr: ArrayLike,
    method: str = "step",
    quantile_method: str = "linear",
) -> Array:
    """Recall (TPR) where the false positive rate is at most `max_fpr`.

    step: the largest TPR among thresholds with FPR <= max_fpr. linear: the TPR at max_fpr of the
    ROC curve with straight lines between its points. quantile: the share of positives with a score
    strictly above the (1 - max_fpr)-quantile of the negatives' scores.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, not negative. Each positive counts by its amount, which gives the share
        of the value that is caught. The threshold does not depend on them. To get the recall by
        count and by amount from one sort, pass `jnp.stack([jnp.ones(n), amounts])`.
      max_fpr: largest FPR, in (0, 1]; several limits `[k]` add a last axis.
      method: "step", "linear" or "quantile", as above.
      quantile_method: one of the 13 methods of `numpy.quantile`, for method="quantile".
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `max_fpr` is 5
        for 5 %, or the amount of a positive is negative.

    NaN where a class is absent, the amounts sum to 0 or a valid score is NaN. Time O(n log n),
    memory O(n). FPRs are compared with the limit in the limit's precision: 1 in 100 is at most 0.01
    in float32, too. With weights, an FPR may exceed the limit by rounding. With "quantile", weights
    are numbers of copies.

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7], [0, 0, 1, 1, 1]
      >>> print(f"{jm.recall_at_fpr(scores, labels, max_fpr=0.1):.4f}")
      0.6667

    References: M. S. Pepe, "The Statistical Evaluation of Medical Tests for Classification and
    Prediction", 2003, section 4.2; R. J. Hyndman and Y. Fan, "Sample quantiles in statistical
    packages", The American Statistician 50, 1996.
    """
    library, max_fpr = placed.library, placed.library.asarray(max_fpr)
    if method == "quantile":
        threshold = placed.quantile(_level(max_fpr), quantile_method)
        caught = library.where(
            library.isnan(threshold), library.nan, placed.caught_above(threshold)
        )
    elif method == "linear":
        # Without derivatives, a search takes hardly longer for more limits.
        plain = isinstance(placed, OnHost) or (isinstance(placed, OfTable) and placed.constant)
        if plain and max_fpr.size > MANY:
            caught = caught_on_line(placed, max_fpr)
        else:
            caught = placed.summed(partial(_caught_between, max_fpr=max_fpr), max_fpr)
    else:
        caught = placed.caught(limit_of_fpr(max_fpr))
    defined = (placed.total_negatives > 0) & ~library.isnan(max_fpr)
    recall = within(rates(caught, placed.total_positives), 0, 1)
    return library.where(defined, recall, library.nan)


def caught_on_line(placed: Placements, max_fpr: Array) -> Array:
    """The weight of the positives at each limit, linear between the ROC points beside it."""
    fps, beyond, tps, tps_beyond = placed.corners(limit_of_fpr(max_fpr))
    return tps + (tps_beyond - tps) * _way(placed, max_fpr, fps, beyond)


def _way(placed: Placements, at: Array, fps: Array, fps_beyond: Array) -> Array:
    """Where the rate `at` lies between those of two numbers of false positives: from 0 to 1."""
    here, after = (rates(x, placed.total_negatives) for x in (fps, fps_beyond))
    return placed.library.clip(divide(at - here, after - here, 0.0), 0, 1)


def _caught_between(part: Groups, max_fpr: Array) -> Array:
    """The weight of the positives left of `max_fpr`, on the ROC curve with straight lines."""
    some = part.total_negatives > 0  # a NaN would enter the slopes in weights that rows share
    n_negative = part.library.where(some, part.total_negatives, 1)
    fpr, before = (rates(x, n_negative) for x in (part.not_below, part.above))

    def at(max_fpr: Array) -> Array:
        limit = max_fpr[..., None]
        left = fpr.astype(limit.dtype) <= slackened_share(limit, part.slack)
        share = part.library.clip(divide(limit - before, fpr - before, 0.0), 0, 1)
        return part.total(part.library.where(left, 1, share))

    return at_each(at, max_fpr)


def _decision(*, method: str, **_: ArrayLike) -> str | None:
    return {"step": AT_LEAST, "quantile": ABOVE}.get(method)


@partial(placement_metric, decision=_decision, orders=_orders_of_threshold)
def threshold_at_fpr(
    placed: Placements,
    *,
    max_fpr: ArrayLike,
    method: str = "step",
    quantile_method: str = "linear",
) -> Array:
    """The score threshold of `recall_at_fpr` with the same limit and method.

    step: the highest threshold that has the largest TPR with FPR <= max_fpr, for the decision
    `score >= threshold`. linear: the linear interpolation at max_fpr between the thresholds of the
    two nearest points of the ROC curve. quantile: the (1 - max_fpr)-quantile of the negatives'
    scores, for the decision `score > threshold`.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: largest FPR, in (0, 1]; several limits `[k]` add a last axis.
      method: "step", "linear" or "quantile", as above.
      quantile_method: one of the 13 methods of `numpy.quantile`, for method="quantile".

    Returns:
      `[...]` or `[..., k]`, in the unit of the scores; +inf if every finite threshold exceeds the
      limit.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `max_fpr` is 5
        for 5 %, or `method` is a misspelt word.

    The decision flags what `recall_at_fpr` counts, also where the result's dtype does not have
    the score: "step" rounds down, "quantile" to a number between the same two scores. A warning
    says where there is no such number. With "linear" the recall is in general a fraction that no
    threshold attains.

    NaN where a class is absent ("quantile" needs only negatives) or a valid score is NaN. With
    "quantile", weights are numbers of copies. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.threshold_at_fpr([.1, .4, .35, .8, .7], [0, 0, 1, 1, 1], max_fpr=0.1))
      0.7

    Reference: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
    Statistician 50, 1996.
    """
    library, max_fpr = placed.library, placed.library.asarray(max_fpr)
    if method == "quantile":
        return placed.quantile(_level(max_fpr), quantile_method)
    limit = limit_of_fpr(max_fpr)
    if method == "linear":
        threshold = _between(placed.beside(limit), placed, limit)
    else:
        threshold = placed.lowest_caught(limit)
    both = (placed.total_negatives > 0) & (placed.total_positives > 0)
    return library.where(both & ~library.isnan(max_fpr), threshold, library.nan)


def _between(points: Beside, placed: Placements, limit: Limit) -> Array:
    """The threshold at the limit, on the straight line between the thresholds of two points."""
    library = placed.library
    weight = _way(placed, limit.bound, points.fps_within, points.fps_beyond)
    # The first threshold is +inf, and the last may be -inf: their interpolation would be NaN.
    on_the_way = (weight > 0) & (points.within < library.inf)
    inner = points.within + weight * (points.beyond - points.within)
    return library.where(on_the_way, inner, points.within)


def _level(max_fpr: Array) -> Array:
    """The level of the quantile of the negatives that the share `max_fpr` of them exceeds."""
    return 1 - max_fpr.astype(np.float64)
