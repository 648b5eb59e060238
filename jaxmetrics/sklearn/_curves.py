"""Curves under scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.types import ArrayLike, FloatArray
from jaxmetrics._roc.curves import bends, changes
from jaxmetrics._roc.table import score_table
from jaxmetrics.sklearn._inputs import (
    check_options,
    checked_scores,
    column_or_1d,
    in_float64,
    type_of_target,
    warn_no_positives,
    warn_undefined_rates,
)

Curve = tuple[FloatArray, FloatArray, FloatArray]


def roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    drop_intermediate: bool = True,
) -> Curve:
    """The ROC curve, as `sklearn.metrics.roc_curve` returns it.

    Formula and conventions are those of `jaxmetrics.roc_curve`.

    Args:
      y_true: `[n]`, of two classes; of more only with `pos_label`, the class against the rest.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; required unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: True drops points midway between their neighbours.

    Returns:
      fpr, tpr, thresholds: `[points]`, float64.

    Raises:
      ValueError: `pos_label` is required and missing, lengths differ, or a value is not finite.

    The rate of an absent class is NaN, with an UndefinedMetricWarning. Time O(n log n), memory
    O(n).

    Example:
      >>> from jaxmetrics.sklearn import roc_curve
      >>> fpr, tpr, thresholds = roc_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(fpr, tpr)
      [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]

    Reference: scikit-learn's `sklearn.metrics.roc_curve`.
    """
    fps, tps, thresholds = _points(y_true, y_score, pos_label, sample_weight, drop_intermediate)
    if drop_intermediate:
        rates = (x / (x[-1] or 1) for x in (fps, tps))  # whose rounding is known
        fps, tps, thresholds = _select(bends(*rates), fps, tps, thresholds)
    fps, tps, thresholds = _with_origin(fps, tps, thresholds)
    warn_undefined_rates(fps[-1] > 0, tps[-1] > 0)
    return _rates(fps), _rates(tps), thresholds


def precision_recall_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    drop_intermediate: bool = False,
) -> Curve:
    """The precision-recall curve, as `sklearn.metrics.precision_recall_curve` returns it.

    Formula and conventions are those of `jaxmetrics.precision_recall_curve`.

    Args:
      y_true: `[n]`, of two classes; of more only with `pos_label`, the class against the rest.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; required unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: True drops points with the true positives of both their neighbours.

    Returns:
      precision, recall: `[points + 1]`, ending in (1, 0); thresholds: `[points]`, rising.

    Raises:
      ValueError: `pos_label` is required and missing, lengths differ, or a value is not finite.

    Without positives recall is 1, with a warning. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import precision_recall_curve
      >>> precision, recall, thresholds = precision_recall_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(recall)
      [1.  1.  0.5 0.5 0. ]

    Reference: scikit-learn's `sklearn.metrics.precision_recall_curve`.
    """
    fps, tps, thresholds = _points(y_true, y_score, pos_label, sample_weight, drop_intermediate)
    if drop_intermediate:
        fps, tps, thresholds = _select(changes(tps), fps, tps, thresholds)
    recall = _rates(tps) if tps[-1] > 0 else np.ones_like(tps)
    if tps[-1] <= 0:
        warn_no_positives()
    precision = tps / (tps + fps)
    return np.append(precision[::-1], 1.0), np.append(recall[::-1], 0.0), thresholds[::-1]


def det_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    drop_intermediate: bool = False,
) -> Curve:
    """The detection error trade-off, as `sklearn.metrics.det_curve` returns it.

    Formula and conventions are those of `jaxmetrics.det_curve`. At each end of the curve a rate is
    0; only one of the points there is kept.

    Args:
      y_true: `[n]`, of two classes.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; required unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: True drops points with the true positives of both their neighbours.

    Returns:
      fpr, fnr, thresholds: `[points]`, thresholds rising.

    Raises:
      ValueError: there are not two classes, lengths differ, or a value is not finite.

    The rate of a class without weight is NaN. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import det_curve
      >>> fpr, fnr, thresholds = det_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(fpr, fnr)
      [0.5 0.5 0. ] [0.  0.5 0.5]

    Reference: scikit-learn's `sklearn.metrics.det_curve`.
    """
    points = _with_origin(*_points(y_true, y_score, pos_label, sample_weight, drop_intermediate))
    if drop_intermediate:
        points = _select(changes(points[1]), *points)
    fps, tps, thresholds = points
    if len(np.unique(np.asarray(y_true))) != 2:
        raise ValueError(
            "Only one class is present in y_true. Detection error tradeoff curve is not defined "
            "in that case."
        )
    ends = slice(np.searchsorted(fps, 0, "right") - 1, np.searchsorted(tps, tps[-1]) + 1)
    fpr, fnr = _rates(fps), (tps[-1] - tps) / tps[-1]
    return fpr[ends][::-1], fnr[ends][::-1], thresholds[ends][::-1]


def _points(
    y_true: ArrayLike,
    y_score: ArrayLike,
    pos_label: Any,
    sample_weight: ArrayLike | None,
    drop_intermediate: bool,
) -> Curve:
    """False and true positives at all distinct thresholds, highest first."""
    check_options(y_true=y_true, y_score=y_score, pos_label=pos_label)
    check_options(drop_intermediate=drop_intermediate)
    kind = type_of_target(y_true, input_name="y_true")
    if not (kind == "binary" or (kind == "multiclass" and pos_label is not None)):
        raise ValueError(f"{kind} format is not supported")
    classes = np.unique(np.asarray(y_true))
    if pos_label is None:
        numeric = classes.dtype.kind not in "OUS"
        if not (numeric and (set(classes) <= {0, 1} or set(classes) <= {-1, 1})):
            listed = ", ".join(repr(c) for c in classes.tolist())
            raise ValueError(
                f"y_true takes value in {{{listed}}} and pos_label is not specified: either make "
                "y_true take value in {0, 1} or {-1, 1} or pass pos_label explicitly."
            )
        pos_label = 1
    scores, weights = checked_scores(y_true, y_score, sample_weight)
    truth = column_or_1d(np.asarray(y_true)) == pos_label
    table = in_float64(score_table, scores, truth, weights)
    weighty = table.positives + table.negatives > 0
    thresholds, positives, negatives = (np.asarray(x, np.float64)[weighty] for x in table)
    return np.cumsum(negatives), np.cumsum(positives), thresholds


def _select(keep: Any, *points: FloatArray) -> Curve:
    fps, tps, thresholds = (x[keep] for x in points)
    return fps, tps, thresholds


def _with_origin(fps: FloatArray, tps: FloatArray, thresholds: FloatArray) -> Curve:
    return np.r_[0.0, fps], np.r_[0.0, tps], np.r_[np.inf, thresholds]


def _rates(counts: FloatArray) -> FloatArray:
    if counts[-1] <= 0:
        return np.full_like(counts, np.nan)
    return counts / counts[-1]
