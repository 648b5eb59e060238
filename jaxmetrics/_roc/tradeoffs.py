"""The largest rate while another meets a limit, and the threshold of the lowest cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Literal, NamedTuple, Protocol, overload

import numpy as np
from jax import lax

from jaxmetrics._base import numerics
from jaxmetrics._base.double import as_default, double_precision, library_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.items import at_least_one, class_weights, exchanged, items_at_hand
from jaxmetrics._base.numerics import namespace, rates, slack
from jaxmetrics._base.types import Array, ArrayLike, Items, P
from jaxmetrics._roc.curves import cheapest, operating_points
from jaxmetrics._roc.limits import limit_of_specificity, reaches
from jaxmetrics._roc.metric import library_metric, placement_metric
from jaxmetrics._roc.placements import Part, Placements, order_of_few
from jaxmetrics._roc.record import Metric
from jaxmetrics._roc.reported import AT_LEAST, finished, holds, warn_if
from jaxmetrics._roc.table import ScoreTable


class AtThreshold(NamedTuple):
    """A value and the threshold that attains it, for the decision `score >= threshold`.

    The threshold is rounded down to the dtype of the result. A warning says if it then flags other
    items.
    """

    value: Array
    threshold: Array


class _WithThreshold(Protocol[P]):
    """A metric that also returns its threshold if `return_threshold` is True."""

    @property
    def record(self) -> Metric:
        """What the metric is."""

    @overload
    def __call__(
        self, *items: ArrayLike, return_threshold: Literal[True], **options: Any
    ) -> AtThreshold: ...

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> Array: ...

    @overload
    def __call__(self, scores: ArrayLike, labels: ArrayLike, **options: Any) -> Array: ...


def _with_threshold(
    kind: Callable[..., Any], **fields: Any
) -> Callable[[Callable[Concatenate[Any, P], Array | AtThreshold]], _WithThreshold[P]]:
    """`library_metric` or `placement_metric`, as a type checker sees it."""
    return partial(kind, **fields)


def _orders(*, min_specificity: ArrayLike, **_: ArrayLike) -> Part:
    return order_of_few(min_specificity)


@_with_threshold(library_metric)
def precision_at_recall(
    table: ScoreTable, *, min_recall: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest precision at a recall of at least `min_recall`.

    max of TP / (TP + FP), which is 1 at +inf, over thresholds with TP / P >= min_recall.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      min_recall: smallest recall, in [0, 1]; several limits `[k]` add a last axis.
      return_threshold: also return the threshold, as AtThreshold(value, threshold). It is the
        lowest that attains the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; an AtThreshold of two such arrays with `return_threshold`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `min_recall`
        is above 1, or `return_threshold` is not a bool.

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


@_with_threshold(library_metric)
def recall_at_precision(
    table: ScoreTable, *, min_precision: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest recall at a precision of at least `min_precision`.

    max of TP / P over thresholds with TP / (TP + FP) >= min_precision; 0, at +inf, if no finite
    threshold qualifies.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      min_precision: smallest precision, in [0, 1]; several limits `[k]` add a last axis.
      return_threshold: also return the threshold, as AtThreshold(value, threshold). It is the
        highest that attains the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; an AtThreshold of two such arrays with `return_threshold`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `min_precision`
        is above 1, or `return_threshold` is not a bool.

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


@_with_threshold(placement_metric, orders=_orders)
def sensitivity_at_specificity(
    placed: Placements, *, min_specificity: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest sensitivity (TPR) at a specificity of at least `min_specificity`.

    max of TP / P over thresholds with TN / N >= min_specificity.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      min_specificity: smallest specificity, in [0, 1]; several limits `[k]` add a last axis.
      return_threshold: also return the threshold, as AtThreshold(value, threshold). It is the
        highest that attains the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; an AtThreshold of two such arrays with `return_threshold`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example
        `min_specificity` is above 1, or `return_threshold` is not a bool.

    NaN where a class is absent or a valid score is NaN. Time O(n log n + n k), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.sensitivity_at_specificity([.1, .4, .35, .8], [0, 0, 1, 1], min_specificity=0.9))
      0.5

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    library, min_specificity = placed.library, placed.library.asarray(min_specificity)
    limit = limit_of_specificity(min_specificity)
    both = (placed.total_negatives > 0) & (placed.total_positives > 0)
    defined = both & ~library.isnan(min_specificity)
    recall = rates(placed.caught(limit), placed.total_positives)
    value: Array = library.where(defined, recall, library.nan)
    if not return_threshold:
        return value
    return AtThreshold(value, library.where(defined, placed.lowest_caught(limit), library.nan))


def _of_exchanged(
    items: Items, *, min_sensitivity: ArrayLike, return_threshold: bool
) -> Array | AtThreshold | None:
    """`specificity_at_sensitivity` of items, as a sensitivity of the `exchanged` ones.

    The threshold is then the lowest score of a positive above all negatives that are not flagged.
    """
    if order_of_few(min_sensitivity) is not Part.NONE:
        return None
    items = items_at_hand(at_least_one(items))
    options = {"min_specificity": min_sensitivity, "return_threshold": return_threshold}
    of_items = sensitivity_at_specificity.record.evaluated
    if not return_threshold:
        return of_items(exchanged(items), options)
    given, dtype = items.scores.dtype, numerics.default_float()
    exact = holds(dtype, given)
    alone = isinstance(items.scores, np.ndarray) and items.scores.ndim == 1
    selected = numerics.is_inexact(items.scores) and not np.ndim(min_sensitivity)
    if not (selected and (alone or exact)):
        return None
    with double_precision():
        specificity, lowest = near_tree((*of_items(exchanged(items), options),))
        found = AtThreshold(specificity, _lowest_above(items, specificity, lowest))
    if not exact:
        scores = np.where(True if items.where is None else items.where, items.scores, np.nan)
        found, unlike = finished(found, np.isnan(specificity), lambda: scores, None, given, dtype)
        warn_if(unlike, dtype)
    return AtThreshold(*map(as_default, found))


@library_program()
def _lowest_above(items: Items, specificity: Array, lowest: Array) -> Array:
    """The lowest score of a positive above the negatives that are not flagged.

    The highest of these is minus the `lowest` exchanged score.
    """
    positives, _ = class_weights(items)
    scores, below = items.scores.astype(np.float64), -lowest.astype(np.float64)
    library = numerics.namespace(scores, below)
    # All are above where no negative is below them, a score of -inf, too.
    above = (scores > below[..., None]) | (specificity == 0)[..., None]
    of_above = library.where((positives > 0) & above, scores, np.inf)
    found = library.min(of_above, axis=-1)
    return library.where(library.isnan(specificity), np.nan, found)


@_with_threshold(library_metric, of_items=_of_exchanged)
def specificity_at_sensitivity(
    table: ScoreTable, *, min_sensitivity: ArrayLike, return_threshold: bool = False
) -> Array | AtThreshold:
    """The largest specificity (TNR) at a sensitivity of at least `min_sensitivity`.

    max of TN / N over thresholds with TP / P >= min_sensitivity.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      min_sensitivity: smallest sensitivity, in [0, 1]; several limits `[k]` add a last axis.
      return_threshold: also return the threshold, as AtThreshold(value, threshold). It is the
        lowest that attains the value.

    Returns:
      `[...]` or `[..., k]`, from 0 to 1; an AtThreshold of two such arrays with `return_threshold`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example
        `min_sensitivity` is above 1, or `return_threshold` is not a bool.

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
    """Operating points: a rate to maximise, and a rate that must be at least a limit."""

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
    """The largest objective where `constrained` is at least the limit, at the highest threshold.

    With `lowest`, at the lowest threshold of those that attain it.
    """
    library = namespace(*points)
    limit = library.asarray(limit)
    if lowest:
        points = _Tradeoff(*(x[::-1] for x in points))

    def index(limit: Array) -> Array:
        allowed = reaches(points.constrained, limit, slack)
        return library.argmax(library.where(allowed, points.objective, -np.inf))

    # One limit at a time: memory does not grow with their number.
    best: Any
    if not limit.ndim:
        best = index(limit)
    elif library is np:
        best = np.array([index(x) for x in limit], int)
    else:
        best = lax.map(index, limit.ravel()).reshape(limit.shape)
    # Rates of an absent class are NaN, and the comparisons above are False, not NaN.
    defined = ~library.isnan(points.objective[0] + points.constrained[0] + limit)
    value: Array = library.where(defined, points.objective[best], np.nan)
    if not return_threshold:
        return value
    return AtThreshold(value, library.where(defined, points.thresholds[best], np.nan))


@partial(library_metric, decision=lambda **_: AT_LEAST)
def min_cost_threshold(table: ScoreTable, *, fp_cost: float = 1.0, fn_cost: float = 1.0) -> Array:
    """The threshold with the lowest total cost of errors.

    argmin over t of fp_cost * FP(t) + fn_cost * FN(t), for the decision `score >= t`. Of several t
    whose costs are equal up to rounding, it is the highest. `cost_curve` returns the costs.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      fp_cost: cost of one false positive, not negative; a higher one raises the threshold.
      fn_cost: cost of one false negative, not negative; a higher one lowers the threshold.

    Returns:
      `[...]`, in the unit of the scores; +inf where flagging nothing is cheapest. It is rounded
      down to its dtype; a warning says where it then flags other items.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example a cost is negative,
        or an array.

    NaN where a valid score is NaN or no item is valid. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.min_cost_threshold([.1, .4, .35, .8], [0, 0, 1, 1], fp_cost=100, fn_cost=1000))
      0.35

    Reference: C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.
    """
    fps, tps, thresholds = operating_points(table)
    cost = fp_cost * fps + fn_cost * (tps[-1] - tps)
    library = namespace(cost)
    least = cheapest(cost, slack(table.positives))
    return library.where(library.isnan(cost[0]), np.nan, thresholds[least])
