"""The curves of a score table: all its operating points, as rates or costs."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.host import all_concrete
from jaxmetrics._base.quoting import brief
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.table import ScoreTable, falling, preceded


class RocCurve(NamedTuple):
    """False and true positive rates `[..., n + 1]` at decreasing thresholds, from +inf."""

    fpr: Array
    tpr: Array
    thresholds: Array


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall `[..., n + 1]` at increasing thresholds, to +inf."""

    precision: Array
    recall: Array
    thresholds: Array


class DetCurve(NamedTuple):
    """False positive and false negative rates `[..., n + 1]` at increasing thresholds, to +inf."""

    fpr: Array
    fnr: Array
    thresholds: Array


class CostCurve(NamedTuple):
    """The cost `[..., n + 1]` of the errors at decreasing thresholds, from +inf."""

    cost: Array
    thresholds: Array


class OperatingPoints(NamedTuple):
    """The total weights of false and true positives at `score >= threshold`, `[rows + 1]`."""

    fps: Array
    tps: Array
    thresholds: Array


def cheapest(costs: Array, tolerance: float = numerics.SLACK) -> Array:
    """The place of the least of the costs `[rows + 1]` of operating points; of ties, the first.

    Costs tie if they differ by less than `tolerance` times that of flagging nothing, the first one.
    """
    return numerics.first_least(costs, tolerance * costs[0])


def operating_points(table: ScoreTable) -> OperatingPoints:
    """The operating points of a table `[rows]`, from (0, 0) at +inf.

    A row without weight repeats the point before it and its threshold.
    """
    weighty = table.positives + table.negatives > 0
    thresholds = falling(table.thresholds, weighty, np.inf)
    return OperatingPoints(
        cumulative.running_sum(preceded(0, table.negatives)),
        cumulative.running_sum(preceded(0, table.positives)),
        preceded(np.inf, thresholds),
    )


@library_metric
def roc_curve(table: ScoreTable) -> RocCurve:
    """The ROC curve: TPR against FPR at every threshold.

    FPR(t) = (sum of w_j over negatives j with s_j >= t) / (sum of w_j over all negatives j), and
    TPR(t) is the same for positives.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      RocCurve `[..., n + 1]`, or `[..., 2]` without items, with thresholds that decrease from +inf,
      rounded down to their dtype (see Thresholds in the conventions). Points repeat
      for ties and masked items; `drop_intermediate` removes the repeated ones.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or scores are `[n, 2]` with one column per class.

    FPR is NaN without negatives, TPR without positives; all is NaN where a valid score is NaN.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> curve = jm.roc_curve([.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(curve.fpr, curve.tpr)
      [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    fps, tps, thresholds = operating_points(table)
    return RocCurve(numerics.rates(fps, fps[-1]), numerics.rates(tps, tps[-1]), thresholds)


@library_metric
def precision_recall_curve(table: ScoreTable) -> PrecisionRecallCurve:
    """The precision-recall curve, in scikit-learn's order.

    Precision(t) = TP / (TP + FP) and recall(t) = TP / P, where TP and FP are the weights of the
    positives and negatives with s >= t, and P is that of all positives.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      PrecisionRecallCurve `[..., n + 1]`, or `[..., 2]` without items, with thresholds that
      increase to +inf, rounded down to their dtype (see Thresholds in the conventions). At +inf
      precision is 1 and recall is 0; scikit-learn has this point, but not its threshold.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or scores are `[n, 2]` with one column per class.

    Recall is NaN without positives; all is NaN where a valid score is NaN. Time O(n log n), memory
    O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> curve = jm.precision_recall_curve([.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(curve.recall)
      [1.  1.  0.5 0.5 0. ]

    Reference: J. Davis and M. Goadrich, "The relationship between precision-recall and ROC
    curves", ICML 2006.
    """
    fps, tps, thresholds = operating_points(table)
    precision = numerics.divide(tps, tps + fps, 1.0)
    recall = numerics.rates(tps, tps[-1])
    return PrecisionRecallCurve(precision[::-1], recall[::-1], thresholds[::-1])


@library_metric
def det_curve(table: ScoreTable) -> DetCurve:
    """The detection error trade-off (DET) curve: FNR against FPR at every threshold.

    FPR(t) = FP / N and FNR(t) = 1 - TP / P, where TP and FP are the weights of the positives and
    negatives with s >= t, and P and N are those of all positives and negatives.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      DetCurve `[..., n + 1]`, or `[..., 2]` without items, with thresholds that increase to +inf,
      rounded down to their dtype (see Thresholds in the conventions). scikit-learn and
      `jaxmetrics.sklearn.det_curve` keep only one of the leading points with FNR 0 and one of the
      trailing points with FPR 0.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or scores are `[n, 2]` with one column per class.

    FPR is NaN without negatives, FNR without positives; all is NaN where a valid score is NaN.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> curve = jm.det_curve([.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(curve.fnr)
      [0.  0.  0.5 0.5 1. ]

    Reference: A. Martin et al., "The DET curve in assessment of detection task performance",
    Eurospeech 1997.
    """
    fps, tps, thresholds = operating_points(table)
    fpr, fnr = numerics.rates(fps, fps[-1]), numerics.rates(tps[-1] - tps, tps[-1])
    return DetCurve(fpr[::-1], fnr[::-1], thresholds[::-1])


@library_metric
def cost_curve(table: ScoreTable, *, fp_cost: float = 1.0, fn_cost: float = 1.0) -> CostCurve:
    """The total cost of errors at every threshold.

    cost(t) = fp_cost * FP(t) + fn_cost * FN(t), where FP and FN are total weights, not rates.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.
      fp_cost: cost of one false positive, in the unit of the result; not negative.
      fn_cost: cost of one false negative, likewise.

    Returns:
      CostCurve `[..., n + 1]`, or `[..., 2]` without items, with thresholds that decrease from
      +inf, rounded down to their dtype (see Thresholds in the conventions).

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example a cost is negative,
        or an array.

    The curve is NaN where a valid score is NaN or no item is valid. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> curve = jm.cost_curve([.1, .4, .35, .8], [0, 0, 1, 1], fp_cost=100, fn_cost=1000)
      >>> print(curve.cost)
      [2000. 1000. 1100.  100.  200.]

    Reference: C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.
    """
    fps, tps, thresholds = operating_points(table)
    return CostCurve(fp_cost * fps + fn_cost * (tps[-1] - tps), thresholds)


Curve = TypeVar("Curve", RocCurve, PrecisionRecallCurve, DetCurve, CostCurve)


def drop_intermediate(curve: Curve) -> Curve:
    """A curve without its repeated points and points on straight lines, for plots and storage.

    It drops repeated points, and what scikit-learn's `drop_intermediate` drops. ROC: points midway
    between their neighbours. Precision-recall and DET: points with the same true positives as both
    neighbours. Cost: repeated points only.

    Args:
      curve: one curve, `[points]`. For one of a batch, `jax.tree.map(lambda x: x[i], curve)`.

    Returns:
      The same kind of curve, in NumPy arrays of its dtype. It keeps both ends. Dropped points lie
      on the lines between the remaining ones, up to a few units of rounding.

    Raises:
      TypeError, ValueError: it is no curve, is traced, or has a batch axis.

    A curve that holds NaN keeps all its points. Time and memory O(points), on the host.

    Example:
      >>> import jaxmetrics as jm
      >>> curve = jm.drop_intermediate(jm.roc_curve([.1, .2, .3, .4, .5], [0, 0, 0, 1, 1]))
      >>> print(curve.fpr, curve.tpr)
      [0. 0. 0. 1.] [0.  0.5 1.  1. ]

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    if not isinstance(curve, RocCurve | PrecisionRecallCurve | DetCurve | CostCurve):
        raise TypeError(
            "curve must be what roc_curve, precision_recall_curve, det_curve or cost_curve "
            f"returns, got {brief(curve)}"
        )
    if not all_concrete(*curve):
        raise TypeError(
            "drop_intermediate keeps as many points as are needed, and cannot be traced: call it "
            "outside of jit"
        )
    arrays: list[Any] = [np.asarray(x) for x in curve]
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(
            f"drop_intermediate takes one curve, got a batch {list(arrays[0].shape[:-1])} of them: "
            "write drop_intermediate(jax.tree.map(lambda x: x[i], curve)) for each i"
        )
    if any(np.isnan(x).any() for x in arrays):
        return curve._replace(**dict(zip(curve._fields, arrays, strict=True)))
    # Thresholds of two kinds of curves decrease from +inf: work in that order, then turn back.
    turn = slice(None, None, -1 if arrays[-1][-1] == np.inf else 1)
    points = [x[turn] for x in arrays]
    fresh = np.ones(len(points[0]), bool)
    fresh[1:] = np.any([x[1:] != x[:-1] for x in points], axis=0)
    points = [x[fresh] for x in points]
    keep = np.ones(len(points[0]), bool)  # the point at +inf stays; it is a neighbour in DET only
    if isinstance(curve, RocCurve):
        keep[1:] = bends(points[0][1:], points[1][1:])
    elif isinstance(curve, PrecisionRecallCurve):
        keep[1:] = changes(points[1][1:])
    elif isinstance(curve, DetCurve):
        keep = changes(points[1])
    kept: list[Any] = [x[keep][turn] for x in points]
    return curve._replace(**dict(zip(curve._fields, kept, strict=True)))


def changes(values: HostArray) -> HostArray:
    """Where a value differs from one of its neighbours; True at both ends."""
    step = values[1:] != values[:-1]
    keep = np.ones(len(values), bool)
    keep[1:-1] = step[:-1] | step[1:]
    return keep


def bends(*values: HostArray) -> HostArray:
    """Where points are not midway between their neighbours, up to rounding; True at both ends."""
    keep = np.ones(len(values[0]), bool)
    doubles = [x.astype(np.float64) for x in values]
    slack = [4 * np.finfo(x.dtype).eps for x in values]  # of rates, which are at most 1
    bends = [np.abs(np.diff(x, 2)) > e for x, e in zip(doubles, slack, strict=True)]
    keep[1:-1] = np.any(bends, axis=0)
    # Bends within rounding can add up: also keep points off the lines between the kept ones.
    index = np.arange(len(keep))
    lines = [np.interp(index, index[keep], x[keep]) for x in doubles]
    missed = [np.abs(x - y) > e for x, y, e in zip(doubles, lines, slack, strict=True)]
    keep |= np.any(missed, axis=0)
    return keep
