"""Recall, precision and F-beta, of a class and averaged, under scikit-learn's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.quoting import cut
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics._predictions.counting import Outcomes
from jaxmetrics.sklearn._inputs import UndefinedMetricWarning, check_options
from jaxmetrics.sklearn._targets import Targets, checked_targets, class_indices, outcomes_of_targets

_AVERAGES = (None, "micro", "macro", "weighted", "samples")


def recall_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: ArrayLike | None = None,
    zero_division: Any = "warn",
    as_dict: bool = False,
) -> Any:
    """Recall, as `sklearn.metrics.recall_score` returns it.

    tp / (tp + fn) of each class, as in `jaxmetrics.recall`.

    Args:
      y_true: `[n]`, numbers or strings; or `[n, labels]` of 0 and 1, also sparse.
      y_pred: the predictions, in the form of `y_true`.
      labels: the classes that count, in this order; None for all that occur, sorted. For
        `[n, labels]`, the columns that count.
      pos_label: the positive one of two classes, for average="binary".
      average: "binary" for the value of `pos_label`; "macro" for the mean over classes; "weighted"
        for that mean weighted by the weight of the items of each class; "micro" for the value of
        the counts summed over classes; "samples" for the mean over the rows of `[n, labels]`; None
        for one value a class.
      sample_weight: `[n]`.
      zero_division: the value of 0 / 0: 0, 1, or NaN, which averages leave out; "warn" is 0 with a
        warning.
      as_dict: True, with average=None, to return {class: value} instead of an array.

    Returns:
      A float; with average=None an array `[classes]`, float64, or a dict.

    Raises:
      ValueError: average="binary" with more than two classes, `pos_label` does not occur, targets
        are of different kinds, or lengths differ.

    A class without items is 0 / 0. An average is NaN only if all its values are NaN.
    Time O(n log n), memory O(n); both O(n labels) for `[n, labels]`.

    Example:
      >>> from jaxmetrics.sklearn import recall_score
      >>> pets, said = ["cat", "dog", "cat", "dog"], ["cat", "dog", "dog", "dog"]
      >>> recall_score(pets, said, average=None, as_dict=True)
      {'cat': 0.5, 'dog': 1.0}
      >>> recall_score(pets, said, pos_label="cat")
      0.5

    Reference: scikit-learn's `sklearn.metrics.recall_score`.
    """
    how = _Averaging(labels, pos_label, average, sample_weight, zero_division, as_dict)
    return _averaged_over_classes(_recall_quotient, y_true, y_pred, how)


def precision_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: ArrayLike | None = None,
    zero_division: Any = "warn",
    as_dict: bool = False,
) -> Any:
    """Precision, as `sklearn.metrics.precision_score` returns it.

    tp / (tp + fp) of each class, as in `jaxmetrics.precision`.

    Args:
      y_true: `[n]`, numbers or strings; or `[n, labels]` of 0 and 1, also sparse.
      y_pred: the predictions, in the form of `y_true`.
      labels: the classes that count, in this order; None for all that occur, sorted. For
        `[n, labels]`, the columns that count.
      pos_label: the positive one of two classes, for average="binary".
      average: "binary" for the value of `pos_label`; "macro" for the mean over classes; "weighted"
        for that mean weighted by the weight of the items of each class; "micro" for the value of
        the counts summed over classes; "samples" for the mean over the rows of `[n, labels]`; None
        for one value a class.
      sample_weight: `[n]`.
      zero_division: the value of 0 / 0: 0, 1, or NaN, which averages leave out; "warn" is 0 with a
        warning.
      as_dict: True, with average=None, to return {class: value} instead of an array.

    Returns:
      A float; with average=None an array `[classes]`, float64, or a dict.

    Raises:
      ValueError: average="binary" with more than two classes, `pos_label` does not occur, targets
        are of different kinds, or lengths differ.

    A class that is never predicted is 0 / 0. An average is NaN only if all its values are NaN.
    Time O(n log n), memory O(n); both O(n labels) for `[n, labels]`.

    Example:
      >>> from jaxmetrics.sklearn import precision_score
      >>> precision_score([0, 1, 2, 2], [0, 2, 2, 2], average="macro", zero_division=0)
      0.5555555555555555

    Reference: scikit-learn's `sklearn.metrics.precision_score`.
    """
    how = _Averaging(labels, pos_label, average, sample_weight, zero_division, as_dict)
    return _averaged_over_classes(_precision_quotient, y_true, y_pred, how)


def f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: ArrayLike | None = None,
    zero_division: Any = "warn",
    as_dict: bool = False,
) -> Any:
    """F1, as `sklearn.metrics.f1_score` returns it.

    2 tp / (2 tp + fn + fp) of each class, as in `jaxmetrics.f_beta`.

    Args:
      y_true: `[n]`, numbers or strings; or `[n, labels]` of 0 and 1, also sparse.
      y_pred: the predictions, in the form of `y_true`.
      labels: the classes that count, in this order; None for all that occur, sorted. For
        `[n, labels]`, the columns that count.
      pos_label: the positive one of two classes, for average="binary".
      average: "binary" for the value of `pos_label`; "macro" for the mean over classes; "weighted"
        for that mean weighted by the weight of the items of each class; "micro" for the value of
        the counts summed over classes; "samples" for the mean over the rows of `[n, labels]`; None
        for one value a class.
      sample_weight: `[n]`.
      zero_division: the value of 0 / 0: 0, 1, or NaN, which averages leave out; "warn" is 0 with a
        warning.
      as_dict: True, with average=None, to return {class: value} instead of an array.

    Returns:
      A float; with average=None an array `[classes]`, float64, or a dict.

    Raises:
      ValueError: average="binary" with more than two classes, `pos_label` does not occur, targets
        are of different kinds, or lengths differ.

    A class without items that is never predicted is 0 / 0. An average is NaN only if all its values
    are NaN. Time O(n log n), memory O(n); both O(n labels) for `[n, labels]`.

    Example:
      >>> from jaxmetrics.sklearn import f1_score
      >>> f1_score([0, 1, 1, 1], [0, 1, 1, 0])
      0.8

    Reference: scikit-learn's `sklearn.metrics.f1_score`.
    """
    how = _Averaging(labels, pos_label, average, sample_weight, zero_division, as_dict)
    return _averaged_over_classes(partial(_f_beta_quotient, beta=1.0), y_true, y_pred, how)


def fbeta_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    beta: float,
    labels: ArrayLike | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: ArrayLike | None = None,
    zero_division: Any = "warn",
    as_dict: bool = False,
) -> Any:
    """F-beta, as `sklearn.metrics.fbeta_score` returns it.

    (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp) of each class, as in `jaxmetrics.f_beta`.

    Args:
      y_true: `[n]`, numbers or strings; or `[n, labels]` of 0 and 1, also sparse.
      y_pred: the predictions, in the form of `y_true`.
      beta: how much recall counts against precision, at least 0: 0 is precision, infinity is
        recall.
      labels: the classes that count, in this order; None for all that occur, sorted. For
        `[n, labels]`, the columns that count.
      pos_label: the positive one of two classes, for average="binary".
      average: "binary" for the value of `pos_label`; "macro" for the mean over classes; "weighted"
        for that mean weighted by the weight of the items of each class; "micro" for the value of
        the counts summed over classes; "samples" for the mean over the rows of `[n, labels]`; None
        for one value a class.
      sample_weight: `[n]`.
      zero_division: the value of 0 / 0: 0, 1, or NaN, which averages leave out; "warn" is 0 with a
        warning.
      as_dict: True, with average=None, to return {class: value} instead of an array.

    Returns:
      A float; with average=None an array `[classes]`, float64, or a dict.

    Raises:
      ValueError: average="binary" with more than two classes, `pos_label` does not occur, targets
        are of different kinds, or lengths differ.

    A class without items that is never predicted is 0 / 0. An average is NaN only if all its values
    are NaN. Time O(n log n), memory O(n); both O(n labels) for `[n, labels]`.

    Example:
      >>> from jaxmetrics.sklearn import fbeta_score
      >>> print(round(fbeta_score([0, 1, 1, 1], [0, 1, 1, 0], beta=2), 4))
      0.7143

    Reference: scikit-learn's `sklearn.metrics.fbeta_score`.
    """
    how = _Averaging(labels, pos_label, average, sample_weight, zero_division, as_dict)
    return _averaged_over_classes(partial(_f_beta_quotient, beta=beta), y_true, y_pred, how)


class _Averaging(NamedTuple):
    """The arguments that all averages share, under scikit-learn's names."""

    labels: ArrayLike | None
    pos_label: Any
    average: str | None
    sample_weight: ArrayLike | None
    zero_division: Any
    as_dict: bool


class _Quotient(NamedTuple):
    """The parts of a metric, and the words of the warning where the denominator is 0."""

    numerator: HostArray
    denominator: HostArray
    name: str  # empty: no warning
    lacking: str = ""


def _recall_quotient(outcomes: Outcomes) -> _Quotient:
    hits, actual = np.asarray(outcomes.hits), np.asarray(outcomes.actual)
    return _Quotient(hits, actual, "Recall", "true")


def _precision_quotient(outcomes: Outcomes) -> _Quotient:
    hits, predicted = np.asarray(outcomes.hits), np.asarray(outcomes.predicted)
    return _Quotient(hits, predicted, "Precision", "predicted")


def _f_beta_quotient(outcomes: Outcomes, *, beta: float) -> _Quotient:
    if beta == 0 or math.isinf(beta):
        limit = _precision_quotient(outcomes) if beta == 0 else _recall_quotient(outcomes)
        return limit._replace(name="")
    hits, actual, predicted = outcomes.hits, outcomes.actual, outcomes.predicted
    below = np.asarray(beta**2 * actual + predicted)
    return _Quotient(np.asarray((1 + beta**2) * hits), below, "F-score", "true nor predicted")


def _averaged_over_classes(
    metric: Callable[[Outcomes], _Quotient],
    y_true: ArrayLike,
    y_pred: ArrayLike,
    how: _Averaging,
) -> Any:
    labels, pos_label, average, sample_weight, zero_division, as_dict = how
    check_options(labels=labels, pos_label=pos_label, sample_weight=sample_weight)
    _check_options(metric, average, zero_division, as_dict)
    targets = checked_targets(y_true, y_pred, sample_weight)
    names = _names(targets, labels, pos_label, average)
    if targets.multilabel and labels is not None:
        targets = targets._replace(
            truth=targets.truth[:, names], said=targets.said[:, names], classes=names
        )
    outcomes = outcomes_of_targets(targets, samples=average == "samples")
    if not targets.multilabel:
        index = class_indices(names, targets.classes)
        outcomes = Outcomes(*(x[index] for x in outcomes))
    if average == "micro":
        outcomes = Outcomes(*(x.sum(keepdims=True) for x in outcomes))
    values = _divided(metric(outcomes), average, zero_division)
    if average is None:
        return dict(zip(names.tolist(), values.tolist(), strict=True)) if as_dict else values
    shares = {"weighted": outcomes.actual, "samples": targets.weights}.get(average)
    return _mean_of_defined(values, shares)


def _check_options(metric: Any, average: str | None, zero_division: Any, as_dict: bool) -> None:
    if average not in (*_AVERAGES, "binary"):
        raise ValueError(f"average has to be one of {_AVERAGES}")
    is_nan = isinstance(zero_division, Real) and zero_division != zero_division
    is_known = isinstance(zero_division, (Real, str)) and zero_division in ("warn", 0, 1)
    if not (is_nan or is_known):
        raise ValueError(f"zero_division must be 'warn', 0, 1 or nan, got {zero_division!r}")
    if as_dict and average is not None:
        raise ValueError(f"as_dict needs one value a class: write average=None, not {average!r}")
    beta = metric.keywords["beta"] if isinstance(metric, partial) else 1
    if not (isinstance(beta, Real) and float(beta) >= 0):
        raise ValueError(f"beta must be a number of at least 0, got {beta!r}")


def _names(
    targets: Targets, labels: ArrayLike | None, pos_label: Any, average: str | None
) -> HostArray:
    """The classes that count, in order."""
    if average == "binary":
        if targets.kind != "binary":
            others = [a for a in _AVERAGES if targets.multilabel or a != "samples"]
            raise ValueError(
                f"Target is {targets.kind} but average='binary'. Please choose another average "
                f"setting, one of {others!r}."
            )
        if pos_label not in targets.classes.tolist() and len(targets.classes) > 1:
            raise ValueError(
                f"pos_label={cut(str(pos_label))} is not a valid label. It should be one of "
                f"{targets.classes}"
            )
        return np.array([pos_label])
    if pos_label not in (None, 1):
        warn(
            f"Note that pos_label (set to {pos_label!r}) is ignored when average != 'binary' (got "
            f"{average!r}). You may use labels=[pos_label] to specify a single positive class.",
            UserWarning,
        )
    if average == "samples" and not targets.multilabel:
        raise ValueError(
            "Samplewise metrics are not available outside of multilabel classification."
        )
    names = targets.classes if labels is None else np.ravel(labels)
    if targets.multilabel:
        names = names if names.size else targets.classes[:0]  # [] holds floats: they index nothing
        last = targets.truth.shape[1] - 1
        for outside, sign in ((names.max(initial=0), f"> {last}"), (names.min(initial=0), "< 0")):
            if not 0 <= outside <= last:
                raise ValueError(
                    "All labels must be in [0, n labels) for multilabel targets. Got "
                    f"{outside} {sign}"
                )
    return names


def _divided(quotient: _Quotient, average: str | None, zero_division: Any) -> FloatArray:
    defined = quotient.denominator != 0
    otherwise = 0.0 if zero_division == "warn" else float(zero_division)
    values = np.full(defined.shape, otherwise)
    np.divide(quotient.numerator, quotient.denominator, out=values, where=defined)
    if zero_division == "warn" and quotient.name and not defined.all():
        item, group = ("label", "sample") if average == "samples" else ("sample", "label")
        where = "due to" if len(values) == 1 else f"in {group}s with"
        warn(
            f"{quotient.name} is ill-defined and being set to 0.0 {where} no {quotient.lacking} "
            f"{item}s. Use `zero_division` parameter to control this behavior.",
            UndefinedMetricWarning,
        )
    return values


def _mean_of_defined(values: FloatArray, shares: Any) -> float:
    """The mean of the values that are not NaN, weighted by `shares` unless these sum to 0."""
    valid = ~np.isnan(values)
    if not valid.any():
        return float("nan")
    if shares is None or np.sum(shares[valid]) == 0:
        return float(np.mean(values[valid]))
    return float(np.average(values[valid], weights=shares[valid]))
