"""Inputs of every function here: scikit-learn's checks, padding to a few sizes, and float64."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any, NoReturn

import jax
import numpy as np

from jaxmetrics._base.quoting import brief
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics._base.warned import warn

try:
    from sklearn.exceptions import UndefinedMetricWarning as UndefinedMetricWarning
    from sklearn.utils import assert_all_finite
    from sklearn.utils import check_array as check_array
    from sklearn.utils import check_consistent_length as check_consistent_length
    from sklearn.utils import column_or_1d as column_or_1d
    from sklearn.utils.multiclass import type_of_target as type_of_target
except ImportError as error:
    raise ImportError(
        "jaxmetrics.sklearn needs scikit-learn, which checks its inputs: "
        "pip install 'jaxmetrics-exact[report]'"
    ) from error

_NUMBERS = Real, Decimal, np.bool_
_AVERAGES = "macro", "weighted", "micro", "samples", None
_MULTI_CLASS = "raise", "ovr", "ovo"

# What a value is to be, in words, and whether it is that.
_Check = tuple[str, Callable[[Any], bool]]


def _of(*types: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _one_of(*words: str | None) -> _Check:
    return f"one of {words}", lambda value: _of(str, type(None))(value) and value in words


def _is_list(value: Any) -> bool:
    return value is None or len(np.shape(value)) == 1 or np.shape(value)[1:] == (1,)


def _holds_numbers(value: Any) -> bool:
    given = np.asarray(value)
    return value is None or given.dtype.kind not in "USO" or all(map(_of(*_NUMBERS), given.flat))


_FLAG: _Check = "True or False", _of(bool, np.bool_)
_DENSE: _Check = "a dense array: write .toarray()", lambda value: not hasattr(value, "toarray")
_OPTIONS: dict[str, _Check] = {
    "y_true": _DENSE,
    "y_pred": _DENSE,
    "y_score": _DENSE,
    "average": _one_of(*_AVERAGES),
    "multi_class": _one_of(*_MULTI_CLASS),
    "labels": ("a list [classes] of labels, or None", _is_list),
    "pos_label": ("a number, a text or None", _of(Real, str, np.bool_, type(None))),
    # The functions that do not name it take texts of numbers, as scikit-learn's do.
    "sample_weight": ("numbers: write numpy.asarray(sample_weight, float)", _holds_numbers),
    "normalize": _FLAG,
    "adjusted": _FLAG,
    "drop_intermediate": _FLAG,
    "ignore_ties": _FLAG,
}


def check_options(**given: Any) -> None:
    """Refuse what scikit-learn does not take, whose InvalidParameterError is a ValueError."""
    for name, value in given.items():
        wanted, is_valid = _OPTIONS[name]
        if not is_valid(value):
            raise ValueError(f"{name} must be {wanted}, got {brief(value)}")


def checked_scores(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray | None]:
    check_consistent_length(y_true, y_score, sample_weight)
    scores = column_or_1d(y_score)
    if scores.dtype == object and all(isinstance(score, _NUMBERS) for score in scores):
        scores = scores.astype(np.float64)
    assert_all_finite(scores)
    weights = None if sample_weight is None else column_or_1d(sample_weight)
    return scores, checked_weights(weights, len(scores))


def checked_weights(sample_weight: ArrayLike | None, n: int) -> HostArray | None:
    """The weights `[n]`, from one number or one for each item; raises scikit-learn's errors."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim:
        weights = check_array(
            sample_weight, dtype=None, ensure_2d=False, allow_nd=True, input_name="sample_weight"
        )
    if weights.ndim > 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if not np.any(weights):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    weights = weights if weights.dtype.kind in "iub" else weights.astype(np.float64)
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight must not be negative, got {weights.min():g}: write 0, or leave these "
            "samples out"
        )
    return np.broadcast_to(weights, n)


def in_float64(
    function: Callable[..., Any], scores: Any, truth: Any, weights: FloatArray | None
) -> Any:
    """`function` of scores and labels `[n, ...]`, in NumPy float64, compiled for few sizes of n."""
    n = len(scores)
    extra = padding(n)

    def padded(x: Any) -> Any:
        return np.pad(x, [(0, extra)] + [(0, 0)] * (x.ndim - 1))

    weights = None if weights is None else padded(weights)
    with jax.enable_x64(True):
        result = function(
            padded(scores), padded(truth), weights=weights, where=np.arange(n + extra) < n
        )
    return jax.tree.map(np.asarray, result)


def classes_of_columns(
    truth: HostArray, n_columns: int, labels: ArrayLike | None, unequal: tuple[str, str]
) -> HostArray:
    """The classes in order, one for each column of scores.

    `unequal` has scikit-learn's two messages, which differ by function: the number of classes, or
    the number of given labels, is not the number of columns.
    """
    classes = np.unique(truth) if labels is None else _distinct_in_order(labels)
    if len(classes) != n_columns:
        raise ValueError(unequal[labels is not None].format(len(classes), n_columns))
    if labels is not None and not np.isin(truth, classes).all():
        raise ValueError("'y_true' contains labels not in parameter 'labels'.")
    return classes


def _distinct_in_order(labels: ArrayLike) -> HostArray:
    given = column_or_1d(labels)
    classes: HostArray = np.unique(given)
    if len(classes) != len(given):
        raise ValueError("Parameter 'labels' must be unique.")
    if not np.array_equal(classes, given):
        raise ValueError("Parameter 'labels' must be ordered.")
    return classes


def refuse_scores(scores: HostArray) -> NoReturn:
    """Refuse scores of several classes that lack a column for each."""
    raise ValueError(
        "`y_score` needs to be of shape `(n_samples, n_classes)`, since `y_true` contains "
        f"multiple classes. Got `y_score.shape={scores.shape}`."
    )


def padding(n: int) -> int:
    """How many items to add to n to reach one of a few sizes: at most n / 4, or 15."""
    return -n % (1 << max(4, n.bit_length() - 3))


def warn_undefined_rates(negatives: Any, positives: Any) -> None:
    """Warns where not all problems have negatives, or positives."""
    for have, kind, rate in ((negatives, "negative", "false"), (positives, "positive", "true")):
        if not np.all(have):
            warn(
                f"No {kind} samples in y_true, {rate} positive value should be meaningless",
                UndefinedMetricWarning,
            )


def warn_one_class() -> None:
    warn(
        "Only one class is present in y_true. ROC AUC score is not defined in that case.",
        UndefinedMetricWarning,
    )


def warn_no_positives() -> None:
    warn(
        "No positive class found in y_true, recall is set to one for all thresholds.",
    )
