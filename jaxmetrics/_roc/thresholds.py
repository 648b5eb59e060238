"""Recall at a limit of the false positive rate, and the threshold of that limit."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.numerics import rates, slack
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.curves import OperatingPoints, operating_points
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.quantile import weighted_quantile
from jaxmetrics._roc.reported import ABOVE, AT_LEAST
from jaxmetrics._roc.table import ScoreTable


@partial(library_metric, amounts=True)
def recall_at_fpr(
    table: ScoreTable,
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
    points = operating_points(table)
    tpr = rates(points.tps, points.tps[-1])
    defined = (points.fps[-1] > 0) & ~jnp.isnan(max_fpr)
    if method == "quantile":
        flagged = jnp.searchsorted(
            -points.thresholds[1:], -_quantile(table, max_fpr, quantile_method), side="left"
        )
        return jnp.where(defined, tpr[flagged], jnp.nan)
    if method == "linear":
        last, weight = _bracket(points, max_fpr, slack(table.negatives))
        beyond = tpr[jnp.minimum(last + 1, len(tpr) - 1)]
        return jnp.where(defined, tpr[last] + weight * (beyond - tpr[last]), jnp.nan)
    last = _last_within(points, max_fpr, slack(table.negatives))
    return jnp.where(defined, tpr[last], jnp.nan)


def _decision(*, method: str, **_: ArrayLike) -> str | None:
    return {"step": AT_LEAST, "quantile": ABOVE}.get(method)


@partial(library_metric, decision=_decision)
def threshold_at_fpr(
    table: ScoreTable,
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
    if method == "quantile":
        return _quantile(table, max_fpr, quantile_method)
    points = operating_points(table)
    defined = (points.fps[-1] > 0) & (points.tps[-1] > 0) & ~jnp.isnan(max_fpr)
    if method == "linear":
        last, weight = _bracket(points, max_fpr, slack(table.negatives))
        here = points.thresholds[last]
        after = points.thresholds[jnp.minimum(last + 1, len(points.thresholds) - 1)]
        # The first threshold is +inf, and the last may be -inf: their interpolation would be NaN.
        on_the_way = (weight > 0) & (here < jnp.inf)
        between = jnp.where(on_the_way, here + weight * (after - here), here)
        return jnp.where(defined, between, jnp.nan)
    caught = points.tps[_last_within(points, max_fpr, slack(table.negatives))]
    first = jnp.searchsorted(points.tps, caught, side="left")
    return jnp.where(defined, points.thresholds[first], jnp.nan)


def _last_within(points: OperatingPoints, max_fpr: ArrayLike, slack: float) -> Array:
    """The index of the last point whose FPR is at most the limit, for each limit."""
    limit = jnp.asarray(max_fpr) * (1 + slack)
    fpr = rates(points.fps, points.fps[-1]).astype(limit.dtype)
    return jnp.searchsorted(fpr, limit, side="right") - 1


def most_within(limit: Array, total: Array, slack: float) -> Array:
    """The largest count whose rate is at most the limit, compared as in `_last_within`."""
    if slack:
        return limit * (1 + slack) * total
    nearest = jnp.round(limit * total)
    most = nearest - 1
    for count in (nearest, nearest + 1):
        most = jnp.where(rates(count, total).astype(limit.dtype) <= limit, count, most)
    return jnp.where(jnp.isnan(limit), jnp.nan, most)


def _bracket(points: OperatingPoints, max_fpr: ArrayLike, slack: float) -> tuple[Array, Array]:
    """The last point within the limit, and where the limit is from it, 0, to the next, 1."""
    last = _last_within(points, max_fpr, slack)
    fpr = rates(points.fps, points.fps[-1])
    step = fpr[jnp.minimum(last + 1, len(fpr) - 1)] - fpr[last]
    return last, jnp.clip(numerics.divide(max_fpr - fpr[last], step, 0.0), 0, 1)


def _quantile(table: ScoreTable, max_fpr: ArrayLike, method: str) -> Array:
    return weighted_quantile(
        table.thresholds, table.negatives, 1 - jnp.asarray(max_fpr, jnp.float64), method
    )
