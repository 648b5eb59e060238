"""Metrics at one operating point of a curve, and the threshold that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Literal, NamedTuple, Protocol, overload

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics
from jaxmetrics._base.numerics import rates, slack
from jaxmetrics._base.types import Array, ArrayLike, P
from jaxmetrics._roc.curves import OperatingPoints, operating_points
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.quantile import weighted_quantile
from jaxmetrics._roc.table import ScoreTable


class AtThreshold(NamedTuple):
    """A value and the threshold that attains it: decide "positive" at `score >= threshold`."""

    value: Array
    threshold: Array


class _WithThreshold(Protocol[P]):
    """A metric whose value comes with its threshold where that is asked for."""

    @property
    def table_function(self) -> Callable[..., Array]:
        """As that of TableMetric."""

    @overload
    def __call__(
        self, *items: ArrayLike, return_threshold: Literal[True], **options: Any
    ) -> AtThreshold: ...

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> Array: ...

    @overload
    def __call__(self, scores: ArrayLike, labels: ArrayLike, **options: Any) -> Array: ...


def _metric_with_threshold(
    function: Callable[Concatenate[ScoreTable, P], Array | AtThreshold],
) -> _WithThreshold[P]:
    metric: Any = library_metric(function)
    found: _WithThreshold[P] = metric
    return found


@partial(library_metric, amounts=True)
def recall_at_fpr(
    table: ScoreTable,
    *,
    max_fpr: ArrayLike,
    method: str = "step",
    quantile_method: str = "linear",
) -> Array:
    """Recall (TPR) where the false positive rate is at most `max_fpr`.

    step: the largest TPR among thresholds whose FPR is at most the limit. linear: the ROC curve,
    linear between its points, at the limit. quantile: the share of positives strictly above the
    quantile at 1 - max_fpr of the negatives' scores.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, not negative; each positive counts by its amount, for the share of value
        caught. The threshold does not depend on them. `jnp.stack([jnp.ones(n), amounts])` gives
        the recall by count and by amount from one sort.
      max_fpr: in (0, 1], one or several; a last axis is added for several.
      method: "step", "linear" or "quantile".
      quantile_method: one of the 13 methods of `numpy.quantile`, for method="quantile".

    Returns:
      `[...]` or `[..., k]`, from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent, the amounts sum to 0 or a valid score is NaN. Time O(n log n),
    memory O(n). An FPR is compared with a limit of lower precision in the limit's precision, so
    that 1 in 100 is at most 0.01 in any; a weighted one within rounding. With "quantile", weights
    are counts of copies.

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


@library_metric
def threshold_at_fpr(
    table: ScoreTable,
    *,
    max_fpr: ArrayLike,
    method: str = "step",
    quantile_method: str = "linear",
) -> Array:
    """The threshold at which `recall_at_fpr` is reached.

    step: the highest threshold with the largest TPR at an FPR of at most the limit, for
    `score >= threshold`. linear: between the thresholds of the two points of the ROC curve around
    the limit, in proportion. quantile: the quantile at 1 - max_fpr of the negatives' scores, for
    `score > threshold`.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], one or several; a last axis is added for several.
      method: "step", "linear" or "quantile".
      quantile_method: one of the 13 methods of `numpy.quantile`, for method="quantile".

    Returns:
      `[...]` or `[..., k]`, in the unit of the scores; +inf where nothing may be flagged.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent, but for "quantile" only the negatives, or a valid score is NaN.
    With "quantile", weights are counts of copies. Of float64 scores without x64 mode the threshold
    is rounded to float32; switch that on to compare it with such scores. Time O(n log n), memory
    O(n).

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
        # Infinite, and NaN in the product, before the first point and where the limit is met.
        on_the_way = (weight > 0) & (here < jnp.inf)
        between = jnp.where(on_the_way, here + weight * (after - here), here)
        return jnp.where(defined, between, jnp.nan)
    caught = points.tps[_last_within(points, max_fpr, slack(table.negatives))]
    first = jnp.searchsorted(points.tps, caught, side="left")
    return jnp.where(defined, points.thresholds[first], jnp.nan)


def _last_within(points: OperatingPoints, max_fpr: ArrayLike, slack: float) -> Array:
    """The last point whose FPR is at most the limit, which may be several."""
    limit = jnp.asarray(max_fpr) * (1 + slack)
    fpr = rates(points.fps, points.fps[-1]).astype(limit.dtype)
    return jnp.searchsorted(fpr, limit, side="right") - 1


def most_within(limit: Array, total: Array, slack: float) -> Array:
    """The largest count whose rate of the total is at most the limit, as `_last_within` has it."""
    if slack:
        return limit * (1 + slack) * total
    nearest = jnp.round(limit * total)
    most = nearest - 1
    for count in (nearest, nearest + 1):
        most = jnp.where(rates(count, total).astype(limit.dtype) <= limit, count, most)
    return jnp.where(jnp.isnan(limit), jnp.nan, most)


def _bracket(points: OperatingPoints, max_fpr: ArrayLike, slack: float) -> tuple[Array, Array]:
    """The last point within the limit, and how far on the way to the next the limit lies."""
    last = _last_within(points, max_fpr, slack)
    fpr = rates(points.fps, points.fps[-1])
    step = fpr[jnp.minimum(last + 1, len(fpr) - 1)] - fpr[last]
    return last, jnp.clip(numerics.divide(max_fpr - fpr[last], step, 0.0), 0, 1)


def _quantile(table: ScoreTable, max_fpr: ArrayLike, method: str) -> Array:
    return weighted_quantile(
        table.thresholds, table.negatives, 1 - jnp.asarray(max_fpr, jnp.float64), method
    )


@_metric_with_threshold
def precision_at_recall(
    table: ScoreTable, *, min_recall: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest precision at a recall of at least `min_recall`.

    max of TP / (TP + FP) over thresholds with TP / P >= min_recall.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      min_recall: in [0, 1], one or several; a last axis is added for several.
      return_threshold: also return the threshold, as AtThreshold(value, threshold); it is the
        lowest of those that attain the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; with `return_threshold`, two of them.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN without positives or where a valid score is NaN. Time O(n log n + n k), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.precision_at_recall([.1, .4, .35, .8], [0, 0, 1, 1], min_recall=1.0))
      0.6666667

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    fps, tps, thresholds = operating_points(table)
    precision = numerics.divide(tps, tps + fps, 1.0)
    points = _Tradeoff(precision, rates(tps, tps[-1]), thresholds)
    return _best(points, min_recall, slack(table.positives), return_threshold, lowest=True)


@_metric_with_threshold
def recall_at_precision(
    table: ScoreTable, *, min_precision: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest recall at a precision of at least `min_precision`.

    max of TP / P over thresholds with TP / (TP + FP) >= min_precision; 0 at +inf if there is none.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      min_precision: in [0, 1], one or several; a last axis is added for several.
      return_threshold: also return the threshold, as AtThreshold(value, threshold); it is the
        highest of those that attain the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; with `return_threshold`, two of them.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN without positives or where a valid score is NaN. Time O(n log n + n k), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.recall_at_precision([.1, .4, .35, .8], [0, 0, 1, 1], min_precision=0.6))
      1.0

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    fps, tps, thresholds = operating_points(table)
    precision = numerics.divide(tps, tps + fps, 1.0)
    points = _Tradeoff(rates(tps, tps[-1]), precision, thresholds)
    return _best(points, min_precision, slack(table.positives), return_threshold)


@_metric_with_threshold
def sensitivity_at_specificity(
    table: ScoreTable, *, min_specificity: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest sensitivity (TPR) at a specificity of at least `min_specificity`.

    max of TP / P over thresholds with TN / N >= min_specificity.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      min_specificity: in [0, 1], one or several; a last axis is added for several.
      return_threshold: also return the threshold, as AtThreshold(value, threshold); it is the
        highest of those that attain the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; with `return_threshold`, two of them.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time O(n log n + n k), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.sensitivity_at_specificity([.1, .4, .35, .8], [0, 0, 1, 1], min_specificity=0.9))
      0.5

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    fps, tps, thresholds = operating_points(table)
    specificity = rates(fps[-1] - fps, fps[-1])
    points = _Tradeoff(rates(tps, tps[-1]), specificity, thresholds)
    return _best(points, min_specificity, slack(table.negatives), return_threshold)


@_metric_with_threshold
def specificity_at_sensitivity(
    table: ScoreTable, *, min_sensitivity: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest specificity (TNR) at a sensitivity of at least `min_sensitivity`.

    max of TN / N over thresholds with TP / P >= min_sensitivity.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      min_sensitivity: in [0, 1], one or several; a last axis is added for several.
      return_threshold: also return the threshold, as AtThreshold(value, threshold); it is the
        lowest of those that attain the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; with `return_threshold`, two of them.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time O(n log n + n k), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.specificity_at_sensitivity([.1, .4, .35, .8], [0, 0, 1, 1], min_sensitivity=0.9))
      0.5

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    fps, tps, thresholds = operating_points(table)
    specificity = rates(fps[-1] - fps, fps[-1])
    points = _Tradeoff(specificity, rates(tps, tps[-1]), thresholds)
    tolerance = slack(table.positives)
    return _best(points, min_sensitivity, tolerance, return_threshold, lowest=True)


class _Tradeoff(NamedTuple):
    """Points with something to maximise and something to keep above a limit."""

    objective: Array
    constrained: Array
    thresholds: Array


def _best(
    points: _Tradeoff,
    limit: ArrayLike,
    slack: float,
    return_threshold: bool,
    *,
    lowest: bool = False,
) -> Array | AtThreshold:
    """The largest objective where `constrained` is at least the limit; `lowest` breaks ties."""
    limit = jnp.asarray(limit)
    if lowest:
        points = _Tradeoff(*(x[::-1] for x in points))

    def index(limit: Array) -> Array:
        allowed = (points.constrained * (1 + slack)).astype(limit.dtype) >= limit
        return jnp.argmax(jnp.where(allowed, points.objective, -jnp.inf))

    # One limit at a time, so that memory does not grow with their number.
    best = lax.map(index, limit.ravel()).reshape(limit.shape) if limit.ndim else index(limit)
    # With a class absent the quotients are NaN, which the comparisons above pass over.
    defined = ~jnp.isnan(points.objective[0] + points.constrained[0] + limit)
    value = jnp.where(defined, points.objective[best], jnp.nan)
    if not return_threshold:
        return value
    return AtThreshold(value, jnp.where(defined, points.thresholds[best], jnp.nan))


@library_metric
def min_cost_threshold(table: ScoreTable, *, fp_cost: float = 1.0, fn_cost: float = 1.0) -> Array:
    """The threshold with the lowest total cost of errors.

    argmin over t of fp_cost * FP(t) + fn_cost * FN(t), for the decision `score >= t`; the highest
    such t. `cost_curve` has the costs.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      fp_cost: what a false positive costs; not negative.
      fn_cost: what a false negative costs.

    Returns:
      `[...]`, in the unit of the scores; +inf where flagging nothing is cheapest.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a valid score is NaN or no item is valid. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.min_cost_threshold([.1, .4, .35, .8], [0, 0, 1, 1], fp_cost=100, fn_cost=1000))
      0.35

    Reference: C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.
    """
    fps, tps, thresholds = operating_points(table)
    cost = fp_cost * fps + fn_cost * (tps[-1] - tps)
    return jnp.where(jnp.isnan(cost[0]), jnp.nan, thresholds[jnp.argmin(cost)])
