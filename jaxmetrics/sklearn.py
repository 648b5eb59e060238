"""scikit-learn's ranking metrics under its names, argument order, warnings and errors.

`from jaxmetrics.sklearn import roc_auc_score` replaces `from sklearn.metrics import roc_auc_score`.
Inputs and results are NumPy arrays; everything is computed in float64. Validation is
scikit-learn's own, which must be installed. Items are padded to a few sizes, so that data of
another length compile nothing new.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxmetrics._area import average_precision, partial_auc, roc_auc
from jaxmetrics._averaging import multilabel, one_vs_one
from jaxmetrics._curves import bends, changes
from jaxmetrics._table import score_table
from jaxmetrics._types import ArrayLike, FloatArray

try:
    from sklearn.exceptions import UndefinedMetricWarning
    from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
    from sklearn.utils.multiclass import type_of_target
except ImportError as error:
    raise ImportError(
        "jaxmetrics.sklearn checks its inputs with scikit-learn: pip install 'jaxmetrics[report]'"
    ) from error

__all__ = [
    "auc",
    "average_precision_score",
    "det_curve",
    "precision_recall_curve",
    "roc_auc_score",
    "roc_curve",
]

Curve = tuple[FloatArray, FloatArray, FloatArray]


def auc(x: ArrayLike, y: ArrayLike) -> float:
    """The area under any curve, by the trapezoidal rule.

    sum_i (x_(i+1) - x_i) (y_i + y_(i+1)) / 2, with its sign turned where x falls.

    Args:
      x: `[points]`, rising or falling.
      y: `[points]`.

    Returns:
      The area, a Python float.

    Raises:
      ValueError: fewer than two points, lengths that differ, or x neither rises nor falls.

    NaN where a coordinate is. Time and memory O(points).

    Example:
      >>> from jaxmetrics.sklearn import auc
      >>> auc([0, 0.5, 1], [0, 1, 1])
      0.75

    Reference: scikit-learn's `sklearn.metrics.auc`.
    """
    check_consistent_length(x, y)
    x, y = column_or_1d(x), column_or_1d(y)
    if len(x) < 2:
        raise ValueError(
            f"At least 2 points are needed to compute area under curve, but x.shape = {x.shape}"
        )
    steps = np.diff(x)
    if np.any(steps < 0) and np.any(steps > 0):
        raise ValueError(f"x is neither increasing nor decreasing : {x}.")
    return float(np.trapezoid(y, x) * (-1 if np.any(steps < 0) else 1))


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
      y_true: `[n]`, of two classes.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; needed unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: drop points midway between their neighbours.

    Returns:
      fpr, tpr, thresholds: `[points]`, float64.

    Raises:
      ValueError: more than two classes, lengths that differ, values that are not finite.

    A rate of an absent class is NaN, with an UndefinedMetricWarning. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import roc_curve
      >>> fpr, tpr, thresholds = roc_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(fpr, tpr)
      [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]

    Reference: scikit-learn's `sklearn.metrics.roc_curve`.
    """
    fps, tps, thresholds = _points(y_true, y_score, pos_label, sample_weight)
    if drop_intermediate:
        fps, tps, thresholds = _select(bends(fps, tps), fps, tps, thresholds)
    fps, tps, thresholds = _with_origin(fps, tps, thresholds)
    for counts, kind, rate in ((fps, "negative", "false"), (tps, "positive", "true")):
        if counts[-1] <= 0:
            _warn_undefined(
                f"No {kind} samples in y_true, {rate} positive value should be meaningless"
            )
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
      y_true: `[n]`, of two classes.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; needed unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: drop points whose true positives are those of both neighbours.

    Returns:
      precision, recall: `[points + 1]`, ending in (1, 0); thresholds: `[points]`, rising.

    Raises:
      ValueError: more than two classes, lengths that differ, values that are not finite.

    Without positives recall is 1, with a warning. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import precision_recall_curve
      >>> precision, recall, thresholds = precision_recall_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(recall)
      [1.  1.  0.5 0.5 0. ]

    Reference: scikit-learn's `sklearn.metrics.precision_recall_curve`.
    """
    fps, tps, thresholds = _points(y_true, y_score, pos_label, sample_weight)
    if drop_intermediate:
        fps, tps, thresholds = _select(changes(tps), fps, tps, thresholds)
    recall = _rates(tps) if tps[-1] > 0 else np.ones_like(tps)
    if tps[-1] <= 0:
        _warn_no_positives()
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

    Formula and conventions are those of `jaxmetrics.det_curve`, less all but one of the points at
    each end where a rate is 0.

    Args:
      y_true: `[n]`, of two classes.
      y_score: `[n]`, higher is more positive.
      pos_label: the positive class; needed unless the classes are {0, 1} or {-1, 1}.
      sample_weight: `[n]`, not negative.
      drop_intermediate: drop points whose true positives are those of both neighbours.

    Returns:
      fpr, fnr, thresholds: `[points]`, thresholds rising.

    Raises:
      ValueError: not two classes, lengths that differ, values that are not finite.

    Nothing is NaN. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import det_curve
      >>> fpr, fnr, thresholds = det_curve([0, 0, 1, 1], [.1, .4, .35, .8])
      >>> print(fpr, fnr)
      [0.5 0.5 0. ] [0.  0.5 0.5]

    Reference: scikit-learn's `sklearn.metrics.det_curve`.
    """
    points = _with_origin(*_points(y_true, y_score, pos_label, sample_weight))
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


def average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: str | None = "macro",
    pos_label: Any = 1,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Average precision, as `sklearn.metrics.average_precision_score` returns it.

    Formula and conventions are those of `jaxmetrics.average_precision`.

    Args:
      y_true: `[n]` of two or more classes, or `[n, labels]` of 0 and 1.
      y_score: `[n]`, or `[n, classes]` for several.
      average: "macro", "micro", "weighted", "samples" or None; of no effect for two classes.
      pos_label: the positive class, of two.
      sample_weight: `[n]`, not negative.

    Returns:
      A float, or for average=None an array `[classes]`.

    Raises:
      ValueError: shapes or options that do not go with the kind of problem.

    0 without positives, with a warning. Time O(classes n log n), memory O(classes n).

    Example:
      >>> from jaxmetrics.sklearn import average_precision_score
      >>> print(round(average_precision_score([0, 0, 1, 1], [.1, .4, .35, .8]), 4))
      0.8333

    Reference: scikit-learn's `sklearn.metrics.average_precision_score`.
    """
    kind = type_of_target(y_true, input_name="y_true")
    truth = np.asarray(y_true)
    if kind == "binary":
        present = np.unique(truth)
        if len(present) == 2 and pos_label not in present:
            raise ValueError(
                f"pos_label={pos_label} is not a valid label. It should be one of {present}"
            )
        scores, weights = _scores(truth, y_score, sample_weight)
        truth = column_or_1d(truth) == pos_label
        if not truth.any():
            _warn_no_positives()
        return float(_in_double(average_precision, scores, truth, weights))
    if kind in ("multilabel-indicator", "multiclass") and pos_label != 1:
        raise ValueError(
            f"Parameter pos_label is fixed to 1 for {kind} y_true. Do not set pos_label or set "
            "pos_label to 1."
        )
    if kind == "multiclass":
        truth = truth[:, None] == np.unique(truth)
        _check_one_column_a_class(np.asarray(y_score), truth.shape)
    elif kind != "multilabel-indicator":
        raise ValueError(f"{kind} format is not supported")
    return _averaged(average_precision, truth, y_score, average, sample_weight)


def roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: str | None = "macro",
    sample_weight: ArrayLike | None = None,
    max_fpr: float | None = None,
    multi_class: str = "raise",
    labels: ArrayLike | None = None,
) -> Any:
    """The area under the ROC curve, as `sklearn.metrics.roc_auc_score` returns it.

    Formula and conventions are those of `jaxmetrics.roc_auc`, and with `max_fpr` of
    `jaxmetrics.partial_auc` with scale="mcclish".

    Args:
      y_true: `[n]` of two or more classes, or `[n, labels]` of 0 and 1.
      y_score: `[n]`, or `[n, classes]`, which for several classes are probabilities.
      average: "macro", "micro", "weighted", "samples" or None; of no effect for two classes.
      sample_weight: `[n]`, not negative.
      max_fpr: in (0, 1], for the partial area; of two classes or of labels.
      multi_class: "ovr" or "ovo", which must be chosen where there are several classes.
      labels: the classes in order, where not all occur in y_true.

    Returns:
      A float, or for average=None an array `[classes]`.

    Raises:
      ValueError: shapes or options that do not go with the kind of problem.

    NaN with an UndefinedMetricWarning where only one class is present. Time O(classes n log n);
    memory O(classes n).

    Example:
      >>> from jaxmetrics.sklearn import roc_auc_score
      >>> roc_auc_score([0, 0, 1, 1], [.1, .4, .35, .8])
      0.75

    Reference: scikit-learn's `sklearn.metrics.roc_auc_score`.
    """
    kind = type_of_target(y_true, input_name="y_true")
    truth = check_array(y_true, ensure_2d=False, dtype=None)
    scores = check_array(y_score, ensure_2d=False)
    if max_fpr is not None and not 0 < max_fpr <= 1:
        raise ValueError(f"Expected max_fpr in range (0, 1], got: {max_fpr!r}")
    if kind == "multiclass" or (kind == "binary" and scores.ndim == 2 and scores.shape[1] > 2):
        if max_fpr not in (None, 1.0):
            raise ValueError(
                "Partial AUC computation not available in multiclass setting, 'max_fpr' must be "
                f"set to `None`, received `max_fpr={max_fpr}` instead"
            )
        return _multiclass_auc(truth, scores, average, sample_weight, multi_class, labels)
    whole = max_fpr in (None, 1.0)
    metric = roc_auc if whole else partial(partial_auc, max_fpr=max_fpr, scale="mcclish")
    if kind != "binary":
        return _averaged(metric, truth, scores, average, sample_weight, needs_both=True)
    scores, weights = _scores(truth, scores, sample_weight)
    classes = np.unique(truth)
    if len(classes) != 2:
        _warn_one_class()
        return float("nan")
    return float(_in_double(metric, scores, column_or_1d(truth) == classes[1], weights))


def _multiclass_auc(
    truth: Any,
    scores: FloatArray,
    average: str | None,
    sample_weight: ArrayLike | None,
    multi_class: str,
    labels: ArrayLike | None,
) -> Any:
    if multi_class not in ("ovo", "ovr"):
        raise ValueError("multi_class must be in ('ovo', 'ovr')")
    if scores.ndim != 2:
        _check_one_column_a_class(scores, (len(truth), 0))
    if not np.allclose(1, scores.sum(axis=1)):
        raise ValueError(
            "Target scores need to be probabilities for multiclass roc_auc, i.e. they should sum "
            "up to 1.0 over classes"
        )
    pairs = multi_class == "ovo"
    allowed = (() if pairs else ("micro",)) + ("macro", "weighted", None)
    if average not in allowed:
        raise ValueError(f"average must be one of {allowed} for multiclass problems")
    if pairs and average is None:
        raise NotImplementedError("average=None is not implemented for multi_class='ovo'.")
    classes = _classes(truth, scores, labels)
    if not pairs:
        truth = truth[:, None] == classes
        return _averaged(roc_auc, truth, scores, average, sample_weight, needs_both=True)
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is not supported for multiclass one-vs-one ROC AUC, 'sample_weight' "
            "must be None in this case."
        )
    present, index = np.unique(truth, return_inverse=True)  # pairs are of classes that occur
    scores = scores[:, np.isin(classes, present)]
    return float(_in_double(one_vs_one(roc_auc, average), scores, index, None))


def _classes(truth: Any, scores: FloatArray, labels: ArrayLike | None) -> Any:
    """The classes, one for each column of scores."""
    if labels is None:
        classes = np.unique(truth)
        if len(classes) != scores.shape[1]:
            raise ValueError(
                "Number of classes in y_true not equal to the number of columns in 'y_score'"
            )
        return classes
    given = column_or_1d(labels)
    classes = np.unique(given)
    if len(classes) != len(given):
        raise ValueError("Parameter 'labels' must be unique")
    if not np.array_equal(classes, given):
        raise ValueError("Parameter 'labels' must be ordered")
    if len(classes) != scores.shape[1]:
        raise ValueError(
            f"Number of given labels, {len(classes)}, not equal to the number of columns in "
            f"'y_score', {scores.shape[1]}"
        )
    if not np.isin(truth, classes).all():
        raise ValueError("'y_true' contains labels not in parameter 'labels'")
    return classes


def _check_one_column_a_class(scores: Any, shape: tuple[int, ...]) -> None:
    if scores.shape != shape:
        raise ValueError(
            "`y_score` needs to be of shape `(n_samples, n_classes)`, since `y_true` contains "
            f"multiple classes. Got `y_score.shape={scores.shape}`."
        )


def _averaged(
    metric: Callable[..., Any],
    truth: Any,
    scores: ArrayLike,
    average: str | None,
    sample_weight: ArrayLike | None,
    *,
    needs_both: bool = False,
) -> Any:
    """The metric of columns `[n, labels]`, averaged, with a warning for those without a class."""
    if average not in (None, "micro", "macro", "weighted", "samples"):
        raise ValueError(f"average has to be one of {(None, 'micro', 'macro', 'weighted')}")
    check_consistent_length(truth, scores, sample_weight)
    scores, truth = check_array(scores), np.asarray(truth) == 1
    if average == "weighted" and not truth.any():
        return 0.0
    over = {"micro": None, "samples": 1}.get(str(average), 0)
    if not np.all(np.any(truth, axis=over)):
        (_warn_one_class if needs_both else _warn_no_positives)()
    elif needs_both and np.any(np.all(truth, axis=over)):
        _warn_one_class()
    weights = None if sample_weight is None else column_or_1d(sample_weight)
    value = _in_double(multilabel(metric, average), scores, truth, weights)
    return np.asarray(value) if average is None else float(value)


def _points(
    y_true: ArrayLike, y_score: ArrayLike, pos_label: Any, sample_weight: ArrayLike | None
) -> Curve:
    """False and true positives at the distinct thresholds, which fall."""
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
    scores, weights = _scores(y_true, y_score, sample_weight)
    truth = column_or_1d(np.asarray(y_true)) == pos_label
    table = _in_double(score_table, scores, truth, weights)
    weighty = table.positives + table.negatives > 0
    thresholds, positives, negatives = (np.asarray(x, np.float64)[weighty] for x in table)
    return np.cumsum(negatives), np.cumsum(positives), thresholds


def _scores(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray | None]:
    check_consistent_length(y_true, y_score, sample_weight)
    scores = column_or_1d(y_score)
    assert_all_finite(scores)
    return scores, None if sample_weight is None else column_or_1d(sample_weight)


def _in_double(
    function: Callable[..., Any], scores: Any, truth: Any, weights: FloatArray | None
) -> Any:
    """`function` of scores and labels `[n, ...]` in NumPy float64, compiled for few sizes of n."""
    n = len(scores)
    step = 2 ** max(4, n.bit_length() - 3)  # at most an eighth more than a power of 2, or 16
    extra = -n % step

    def padded(x: Any) -> Any:
        return np.pad(x, [(0, extra)] + [(0, 0)] * (x.ndim - 1))

    weights = None if weights is None else padded(weights)
    with jax.enable_x64(True):
        result = function(
            padded(scores), padded(truth), weights=weights, where=np.arange(n + extra) < n
        )
    return jax.tree.map(np.asarray, result)


def _select(keep: Any, *points: FloatArray) -> Curve:
    fps, tps, thresholds = (x[keep] for x in points)
    return fps, tps, thresholds


def _with_origin(fps: FloatArray, tps: FloatArray, thresholds: FloatArray) -> Curve:
    return np.r_[0.0, fps], np.r_[0.0, tps], np.r_[np.inf, thresholds]


def _rates(counts: FloatArray) -> FloatArray:
    if counts[-1] <= 0:
        return np.full_like(counts, np.nan)
    rates: FloatArray = counts / counts[-1]
    return rates


def _warn_undefined(message: str) -> None:
    warnings.warn(message, UndefinedMetricWarning, stacklevel=3)


def _warn_one_class() -> None:
    _warn_undefined(
        "Only one class is present in y_true. ROC AUC score is not defined in that case."
    )


def _warn_no_positives() -> None:
    warnings.warn(
        "No positive class found in y_true, recall is set to one for all thresholds.", stacklevel=3
    )
