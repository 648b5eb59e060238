"""Areas under curves, under scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from jaxmetrics._base.quoting import cut
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc
from jaxmetrics._roc.averaging import multilabel, one_vs_one
from jaxmetrics.sklearn._inputs import (
    check_array,
    check_consistent_length,
    check_options,
    checked_scores,
    checked_weights,
    classes_of_columns,
    column_or_1d,
    in_float64,
    refuse_scores,
    type_of_target,
    warn_no_positives,
    warn_one_class,
    warn_undefined_rates,
)


def auc(x: ArrayLike, y: ArrayLike) -> float:
    """The area under any curve, by the trapezoidal rule.

    sum_i (x_(i+1) - x_i) (y_i + y_(i+1)) / 2, with the opposite sign if x falls.

    Args:
      x: `[points]`, rising or falling.
      y: `[points]`.

    Returns:
      The area, a Python float.

    Raises:
      ValueError: there are fewer than two points, lengths differ, or x both rises and falls.

    NaN if a coordinate is NaN. Time and memory O(points).

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
      y_score: `[n]` for two classes, else `[n, classes]`; higher is more positive.
      average: "macro" for the mean over classes, "weighted" for that mean weighted by the weight of
        the positives of each class, "micro" for all entries as one problem, "samples" for the mean
        over items, or None. Without effect for two classes.
      pos_label: the positive one of two classes.
      sample_weight: `[n]`, not negative.

    Returns:
      A float; with average=None an array `[classes]`.

    Raises:
      ValueError: `y_score` has no column for a class, `pos_label` does not occur or is given for
        several classes, lengths differ, or a value is not finite.

    0 without positives, with a warning. Time O(classes n log n), memory O(classes n).

    Example:
      >>> from jaxmetrics.sklearn import average_precision_score
      >>> print(round(average_precision_score([0, 0, 1, 1], [.1, .4, .35, .8]), 4))
      0.8333

    Reference: scikit-learn's `sklearn.metrics.average_precision_score`.
    """
    check_options(y_true=y_true, y_score=y_score, average=average, pos_label=pos_label)
    kind = type_of_target(y_true, input_name="y_true")
    truth = np.asarray(y_true)
    if kind == "binary":
        present = np.unique(truth)
        if (len(present) == 2 or pos_label is None) and pos_label not in present:
            raise ValueError(
                f"pos_label={cut(str(pos_label))} is not a valid label. It should be one of "
                f"{present}"
            )
        scores, weights = checked_scores(truth, y_score, sample_weight)
        truth = column_or_1d(truth) == pos_label
        _warn_of_absent_classes(truth, weights, needs_both=False)
        return float(in_float64(average_precision, scores, truth, weights))
    if kind in ("multilabel-indicator", "multiclass") and pos_label != 1:
        raise ValueError(
            f"Parameter pos_label is fixed to 1 for {kind} y_true. Do not set pos_label or set "
            "pos_label to 1."
        )
    if kind == "multiclass":
        truth = column_or_1d(truth)[:, None] == np.unique(truth)
        if np.shape(y_score) != truth.shape:
            refuse_scores(np.asarray(y_score))
    elif kind != "multilabel-indicator":
        raise ValueError(f"{kind} format is not supported")
    return _averaged_over_labels(average_precision, truth, y_score, average, sample_weight)


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
      y_score: `[n]` for two classes, higher is more positive; `[n, classes]` for more, where a row
        holds probabilities that sum to 1; or `[n, labels]`.
      average: "macro" for the mean over classes, "weighted" for that mean weighted by the weight of
        the positives of each class, "micro" for all entries as one problem, "samples" for the mean
        over items, or None. Without effect for two classes.
      sample_weight: `[n]`, not negative.
      max_fpr: in (0, 1], gives the partial area; for two classes or `[n, labels]` only.
      multi_class: with several classes, "ovr" for one against the rest or "ovo" for pairs.
      labels: the sorted classes, one for each column, if not all occur in `y_true`.

    Returns:
      A float; with average=None an array `[classes]`.

    Raises:
      ValueError: several classes without `multi_class`, with `max_fpr`, or with scores that do not
        sum to 1 for each item; lengths differ; a value is not finite.
      NotImplementedError: average=None with multi_class="ovo".

    NaN, with an UndefinedMetricWarning, if only one class occurs. Time O(classes n log n);
    memory O(classes n).

    Example:
      >>> from jaxmetrics.sklearn import roc_auc_score
      >>> roc_auc_score([0, 0, 1, 1], [.1, .4, .35, .8])
      0.75

    Reference: scikit-learn's `sklearn.metrics.roc_auc_score`.
    """
    check_options(y_true=y_true, y_score=y_score, average=average)
    check_options(multi_class=multi_class, labels=labels)
    kind = type_of_target(y_true, input_name="y_true")
    truth = check_array(y_true, ensure_2d=False, dtype=None)
    scores = check_array(y_score, ensure_2d=False)
    if max_fpr is not None and not (isinstance(max_fpr, Real) and 0 < max_fpr <= 1):
        raise ValueError(f"Expected max_fpr in range (0, 1], got: {max_fpr!r}")
    if kind == "multiclass" or (kind == "binary" and scores.ndim == 2 and scores.shape[1] > 2):
        if max_fpr not in (None, 1.0):
            raise ValueError(
                "Partial AUC computation not available in multiclass setting, 'max_fpr' must be "
                f"set to `None`, received `max_fpr={max_fpr}` instead"
            )
        truth = column_or_1d(truth)
        return _multiclass_auc(truth, scores, average, sample_weight, multi_class, labels)
    whole = max_fpr in (None, 1.0)
    metric = roc_auc if whole else partial(partial_auc, max_fpr=max_fpr, scale="mcclish")
    if kind not in ("binary", "multilabel-indicator"):
        raise ValueError(f"{kind} format is not supported")
    if kind == "multilabel-indicator":
        return _averaged_over_labels(metric, truth, scores, average, sample_weight, needs_both=True)
    classes = np.unique(truth)
    if len(classes) == 1 and scores.ndim == 2:
        scores = scores[:, 0]  # any column, as the value is NaN
    scores, weights = checked_scores(truth, scores, sample_weight)
    truth = column_or_1d(truth) == classes[-1]
    _warn_of_absent_classes(truth, weights, needs_both=True)
    return float(in_float64(metric, scores, truth, weights))


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
        refuse_scores(scores)
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
    unequal = (
        "Number of classes in y_true not equal to the number of columns in 'y_score'",
        "Number of given labels, {}, not equal to the number of columns in 'y_score', {}",
    )
    classes = classes_of_columns(truth, scores.shape[1], labels, unequal)
    if not pairs:
        truth = truth[:, None] == classes
        return _averaged_over_labels(
            roc_auc, truth, scores, average, sample_weight, needs_both=True
        )
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is not supported for multiclass one-vs-one ROC AUC, 'sample_weight' "
            "must be None in this case."
        )
    present, index = np.unique(truth, return_inverse=True)  # only classes that occur form pairs
    scores = scores[:, np.isin(classes, present)]
    return float(in_float64(one_vs_one(roc_auc, average), scores, index, None))


def _averaged_over_labels(
    metric: Callable[..., Any],
    truth: Any,
    scores: ArrayLike,
    average: str | None,
    sample_weight: ArrayLike | None,
    *,
    needs_both: bool = False,
) -> Any:
    """The average of the metric over the columns `[n, labels]`; warns if one lacks a class."""
    check_consistent_length(truth, scores, sample_weight)
    weights = None if sample_weight is None else column_or_1d(sample_weight)
    weights = checked_weights(weights, len(truth))
    scores, truth = check_array(scores), np.asarray(truth) == 1
    weighty = truth if weights is None else truth[weights != 0]
    if average == "weighted" and not weighty.any():
        return 0.0
    over = {"micro": None, "samples": 1}.get(str(average), 0)
    of_items = None if average == "samples" else weights
    _warn_of_absent_classes(truth, of_items, needs_both=needs_both, over=over)
    value = in_float64(multilabel(metric, average), scores, truth, weights)
    return np.asarray(value) if average is None else float(value)


def _warn_of_absent_classes(
    truth: HostArray, weights: HostArray | None, *, needs_both: bool, over: int | None = 0
) -> None:
    """scikit-learn's warnings of problems in which a class does not occur, or has no weight."""
    counted = truth if weights is None else truth[weights != 0]
    positives, negatives = (np.any(x, axis=over) for x in (counted, ~counted))
    if not needs_both:
        if not np.all(positives):
            warn_no_positives()
        return
    one_class = np.all(truth, axis=over) | ~np.any(truth, axis=over)
    if np.any(one_class):
        warn_one_class()
    warn_undefined_rates(one_class | negatives, one_class | positives)
