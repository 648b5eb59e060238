"""Metrics of all classes at once, under scikit-learn's names."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._base.types import ArrayLike, HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics._predictions.confusion import matrix_of
from jaxmetrics._predictions.confusion import matthews_corrcoef as _matthews_corrcoef
from jaxmetrics._predictions.counting import Decisions
from jaxmetrics.sklearn._inputs import check_options, in_float64
from jaxmetrics.sklearn._targets import (
    Targets,
    checked_targets,
    class_indices,
    counted_rows,
    outcomes_of_targets,
    padded_classes,
)


def confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalize: str | None = None,
) -> HostArray:
    """The confusion matrix, as `sklearn.metrics.confusion_matrix` returns it.

    C[t, p] = sum_i w_i [y_true_i = t] [y_pred_i = p], as in `jaxmetrics.confusion_matrix`.

    Args:
      y_true: `[n]`, numbers or strings.
      y_pred: `[n]`, the predictions, as `y_true`.
      labels: the classes of the matrix, in this order; None for all that occur, sorted. Items of
        other classes are left out. Items of a class that is listed twice count in its last place.
      sample_weight: `[n]`.
      normalize: "true" divides each row by its sum, "pred" each column, "all" the whole matrix;
        None divides nothing.

    Returns:
      `[classes, classes]`, a row for each true class: counts in int64; with `normalize` or weights
      that are floats, float64.

    Raises:
      ValueError: targets are `[n, labels]`, lengths differ, or no item of `y_true` is in `labels`.

    Normalised rows and columns without items are 0. Warns if only one class occurs. Time
    O(n log n + classes^2), memory O(n + classes^2).

    Example:
      >>> from jaxmetrics.sklearn import confusion_matrix
      >>> print(confusion_matrix(["cat", "ant", "cat"], ["ant", "ant", "cat"]))
      [[1 0]
       [1 1]]

    Reference: scikit-learn's `sklearn.metrics.confusion_matrix`.
    """
    check_options(y_true=y_true, y_pred=y_pred, labels=labels)
    if normalize not in ("true", "pred", "all", None):
        raise ValueError(
            f"normalize must be one of {{'true', 'pred', 'all', None}}, got {normalize}"
        )
    targets = _without_indicators(checked_targets(y_true, y_pred, sample_weight))
    n_classes = len(targets.classes)
    order = list(range(n_classes))
    if labels is not None:
        order = class_indices(labels, targets.classes)
        if not order:
            raise ValueError("'labels' should contain at least one label.")
        if not np.isin(targets.truth, order).any():
            raise ValueError("At least one label specified must be in y_true")
        last = {index: place for place, index in enumerate(order)}
        order = [i if last[i] == place else n_classes for place, i in enumerate(order)]
    size = padded_classes(n_classes)

    def count(said: Any, truth: Any, *, weights: Any, where: Any) -> Any:
        return matrix_of(Decisions(said, truth, weights, where), size)

    matrix = in_float64(count, targets.said, targets.truth, targets.weights)[np.ix_(order, order)]
    whole = targets.weights is None or targets.weights.dtype.kind in "iub"
    matrix = matrix.astype(np.int64 if whole else np.float64)
    if normalize is not None:
        total = matrix.sum(axis={"true": 1, "pred": 0, "all": None}[normalize], keepdims=True)
        matrix = np.divide(matrix, total, out=np.zeros(matrix.shape), where=total != 0)
    _warn_of_one_class(len(order))
    return matrix


def accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Accuracy, as `sklearn.metrics.accuracy_score` returns it.

    sum_i w_i [y_true_i = y_pred_i] / sum_i w_i; for `[n, labels]` whole rows must agree.

    Args:
      y_true: `[n]`, numbers or strings; or `[n, labels]` of 0 and 1, also sparse.
      y_pred: the predictions, in the form of `y_true`.
      normalize: False returns the weight of the items that are right instead of their share.
      sample_weight: `[n]`.

    Returns:
      A float.

    Raises:
      ValueError: targets are of different kinds or do not hold classes, lengths differ, or a weight
        is negative.

    Never NaN. Time O(n log n), memory O(n); both O(n labels) for `[n, labels]`.

    Example:
      >>> from jaxmetrics.sklearn import accuracy_score
      >>> accuracy_score(["a", "b", "c", "c"], ["a", "c", "b", "c"])
      0.5

    Reference: scikit-learn's `sklearn.metrics.accuracy_score`.
    """
    check_options(normalize=normalize, sample_weight=sample_weight)
    targets = checked_targets(y_true, y_pred, sample_weight, as_indices=False)
    alike = targets.truth == targets.said
    rows = alike.all(axis=1) if targets.multilabel else alike
    right, wrong = counted_rows(rows, targets.summable)
    if not normalize:
        return float(right)
    return float(right / (right + wrong))


def balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    adjusted: bool = False,
) -> float:
    """Balanced accuracy, as `sklearn.metrics.balanced_accuracy_score` returns it.

    The mean of tp / (tp + fn) over the classes in y_true, as in `jaxmetrics.balanced_accuracy`.

    Args:
      y_true: `[n]`, numbers or strings.
      y_pred: `[n]`, the predictions, as `y_true`.
      sample_weight: `[n]`.
      adjusted: True rescales the value so that chance is 0; 1 stays 1.

    Returns:
      A float.

    Raises:
      ValueError: targets are `[n, labels]`, or lengths differ.

    NaN if no class has weight, or with `adjusted` if only one has: scikit-learn divides by 0 there,
    with a warning, and is -inf unless all are predicted as this class. Warns if y_pred has a class
    that is not in y_true, or if only one class occurs. Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import balanced_accuracy_score
      >>> balanced_accuracy_score([0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1])
      0.625

    Reference: scikit-learn's `sklearn.metrics.balanced_accuracy_score`.
    """
    check_options(y_true=y_true, y_pred=y_pred, adjusted=adjusted)
    targets = _without_indicators(checked_targets(y_true, y_pred, sample_weight))
    _warn_of_one_class(len(targets.classes))
    outcomes = outcomes_of_targets(targets)
    hits, actual = (x[: len(targets.classes)] for x in (outcomes.hits, outcomes.actual))
    occurs = actual != 0
    if not occurs.all():
        warn("y_pred contains classes not in y_true")
    if not occurs.any():
        return float("nan")
    score = np.mean(hits[occurs] / actual[occurs])
    if adjusted:
        chance = 1 / np.sum(occurs)
        return float((score - chance) / (1 - chance)) if chance < 1 else float("nan")
    return float(score)


def matthews_corrcoef(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Matthews' correlation coefficient, as `sklearn.metrics.matthews_corrcoef` returns it.

    `jaxmetrics.matthews_corrcoef` has the formula.

    Args:
      y_true: `[n]`, numbers or strings.
      y_pred: `[n]`, the predictions, as `y_true`.
      sample_weight: `[n]`, not negative.

    Returns:
      A float from -1 to 1.

    Raises:
      ValueError: targets are `[n, labels]`, lengths differ, or a weight is negative.

    0 if all items are of one class or are predicted as one class. Warns if only one class occurs.
    Time O(n log n), memory O(n).

    Example:
      >>> from jaxmetrics.sklearn import matthews_corrcoef
      >>> print(round(matthews_corrcoef([1, 1, 1, -1], [1, -1, 1, 1]), 4))
      -0.3333

    Reference: scikit-learn's `sklearn.metrics.matthews_corrcoef`.
    """
    check_options(y_true=y_true, y_pred=y_pred)
    targets = _without_indicators(checked_targets(y_true, y_pred, sample_weight))
    _warn_of_one_class(len(targets.classes))
    size = padded_classes(len(targets.classes))
    metric = partial(_matthews_corrcoef, n_classes=size, zero_division=0.0)
    return float(in_float64(metric, targets.said, targets.truth, targets.summable))


def _warn_of_one_class(n_classes: int) -> None:
    if n_classes == 1:
        warn(
            "A single label was found in 'y_true' and 'y_pred'. For the confusion matrix to have "
            "the correct shape, use the 'labels' parameter to pass all known labels."
        )


def _without_indicators(targets: Targets) -> Targets:
    if targets.multilabel:
        raise ValueError(f"{targets.kind} is not supported")
    return targets
