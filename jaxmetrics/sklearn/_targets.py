"""True and predicted classes, with scikit-learn's checks, as indices that can be counted."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.types import ArrayLike, HostArray
from jaxmetrics._predictions.counting import Choice, Decisions, Outcomes, outcomes_of
from jaxmetrics.sklearn._inputs import (
    check_consistent_length,
    checked_weights,
    column_or_1d,
    in_float64,
    type_of_target,
)

_MULTILABEL = "multilabel-indicator"
_MANY = 2**16  # items from which on it pays to avoid a second sort


class Targets(NamedTuple):
    """Checked targets, predictions and weights.

    Attributes:
      kind: "binary", "multiclass" or "multilabel-indicator".
      classes: the sorted classes of truth and predictions; or the indices of the labels.
      truth: `[n]`, the true classes, or their indices in `classes`; or `[n, labels]` bool.
      said: the predictions, in the form of `truth`.
      weights: `[n]`, or None.
    """

    kind: str
    classes: HostArray
    truth: HostArray
    said: HostArray
    weights: HostArray | None

    @property
    def multilabel(self) -> bool:
        return self.kind == _MULTILABEL

    @property
    def summable(self) -> HostArray | None:
        """The weights, as floats where their sum exceeds 64 bits."""
        weights = self.weights
        if weights is None or weights.dtype.kind not in "iub":
            return weights
        fits = np.abs(weights, dtype=np.float64).sum() < 2**62
        return weights if fits else weights.astype(np.float64)


def checked_targets(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    as_indices: bool = True,
) -> Targets:
    """The targets of scikit-learn's classification metrics, refused with its errors."""
    check_consistent_length(y_true, y_pred, sample_weight)
    if _few_integers(y_true) and _few_integers(y_pred):
        return _indexed(y_true, y_pred, sample_weight)
    true_kind, said_kind = _kind(y_true, "y_true"), _kind(y_pred, "y_pred")
    if 0 in (_length(y_true), _length(y_pred)):
        raise ValueError(
            "Found empty input array (e.g., `y_true` or `y_pred`) while a minimum of 1 sample is "
            "required."
        )
    weights = checked_weights(sample_weight, _length(y_true))
    kinds = {true_kind, said_kind}
    kind = "multiclass" if kinds == {"binary", "multiclass"} else true_kind
    if len(kinds) > 1 and kinds != {"binary", "multiclass"}:
        raise ValueError(
            f"Classification metrics can't handle a mix of {true_kind} and {said_kind} targets"
        )
    if kind == _MULTILABEL:
        truth, said = _indicators(y_true), _indicators(y_pred)
        if truth.shape != said.shape:
            raise ValueError("Multi-label binary indicator input with different numbers of labels")
        return Targets(kind, np.arange(truth.shape[1]), truth, said, weights)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"{kind} is not supported")
    if hasattr(y_true, "toarray") or hasattr(y_pred, "toarray"):
        raise TypeError("Sparse input is only supported when targets are of multilabel type")
    truth, said = _in_one_type(column_or_1d(y_true), column_or_1d(y_pred))
    present = np.unique(truth), np.unique(said)
    if _are_strings(present[0]) != _are_strings(present[1]):
        raise ValueError(
            "Mix of label input types (string and number); Got "
            f"{present[0]!s:.80} and {present[1]!s:.80}."
        )
    classes = np.union1d(*present)
    kind = "binary" if len(classes) <= 2 else "multiclass"
    if as_indices:
        truth, said = (np.searchsorted(classes, y).astype(np.int32) for y in (truth, said))
    return Targets(kind, classes, truth, said, weights)


def _kind(y: Any, name: str) -> str:
    """scikit-learn's kind of target, but "multiclass" for many strings, which saves a sort.

    `checked_targets` sorts them anyway, and then knows whether they are binary.
    """
    strings = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind == "U"
    if strings and len(y) >= _MANY:
        return "multiclass"
    return type_of_target(y, input_name=name)


def _few_integers(y: Any) -> bool:
    """Whether a table can find the classes without a sort: many integers in a narrow range."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "iu" or len(y) < _MANY:
        return False
    return int(y.max()) - int(y.min()) < _MANY and abs(int(y.min())) < 2**62


def _indexed(truth: HostArray, said: HostArray, sample_weight: ArrayLike | None) -> Targets:
    """As `checked_targets`, but without a sort, for targets of `_few_integers`."""
    truth, said = _in_one_type(truth, said)
    own = [_distinct(y) for y in (truth, said)]
    classes = np.union1d(*own)
    kind = "binary" if len(classes) <= 2 else "multiclass"
    weights = checked_weights(sample_weight, len(truth))
    truth_index, said_index = _looked_up(truth, own[0], classes), _looked_up(said, own[1], classes)
    return Targets(kind, classes, truth_index, said_index, weights)


def _in_one_type(*targets: HostArray) -> list[HostArray]:
    """Numbers in a type that has all of them: NumPy joins 64-bit integers as float64."""
    given = list(targets)
    types = {x.dtype for x in given}
    if len(types) == 1 or np.result_type(*types).kind != "f":
        return given
    floats = [np.float64] if any(x.kind == "f" for x in types) else []
    for kind in (*floats, np.int64, np.uint64, object):
        with np.errstate(invalid="ignore"):
            found = [x.astype(kind) for x in given]
        if all((x.astype(y.dtype) == y).all() for x, y in zip(found, given, strict=True)):
            return found
    return given


def _distinct(y: HostArray) -> HostArray:
    lowest = y.min()
    seen = np.zeros(int(y.max()) - int(lowest) + 1, bool)
    seen[_steps_above(y, lowest)] = True
    return np.flatnonzero(seen) + int(lowest)


def _looked_up(y: HostArray, own: HostArray, classes: HostArray) -> HostArray:
    """The index of each y in `classes`; `own` are the distinct values of y."""
    table = np.zeros(own[-1] - own[0] + 1, np.int32)
    table[own - own[0]] = np.searchsorted(classes, own)
    return table[_steps_above(y, y.dtype.type(own[0]))]


def _steps_above(y: HostArray, lowest: Any) -> HostArray:
    """y - lowest, as unsigned: it may overflow a narrow signed type, but not the unsigned one."""
    difference: HostArray = y - lowest
    return difference.view(difference.dtype.str.replace("i", "u"))


def outcomes_of_targets(targets: Targets, *, samples: bool = False) -> Outcomes:
    """Counts of each class, then of an empty one; of each label; or with `samples` of each row."""
    weights = None if samples else targets.summable
    n_classes = len(targets.classes)
    if targets.multilabel:
        choice = Choice(None, "binary")
        count = partial(_count_rows if samples else _count_columns, choice=choice)
    else:
        count = partial(_count, choice=Choice(padded_classes(n_classes), None))
    outcomes = in_float64(count, targets.said, targets.truth, weights)
    if not targets.multilabel:
        return Outcomes(*(x[: n_classes + 1] for x in outcomes))
    if not samples:
        return Outcomes(*outcomes)
    by_row = 1 if targets.weights is None else targets.summable
    return Outcomes(*(x[: len(targets.said)] * by_row for x in outcomes))


def padded_classes(n_classes: int) -> int:
    """A power of 2 above `n_classes`, so that few numbers of classes are compiled."""
    return int(2 ** max(4, n_classes.bit_length()))


def counted_rows(right: HostArray, weights: HostArray | None) -> tuple[Any, Any]:
    """The weight of the rows that are right, and of the others."""
    count = partial(_count, choice=Choice(None, "binary"))
    outcomes = in_float64(count, right, np.ones_like(right), weights)
    return outcomes.hits, outcomes.false_negatives


def class_indices(names: Any, classes: HostArray) -> list[int]:
    """The index of each name in `classes`; `len(classes)` for a name that is not there."""
    known = {name: index for index, name in enumerate(classes.tolist())}
    return [known.get(name, len(classes)) for name in np.ravel(names).tolist()]


def _count(said: Any, truth: Any, *, weights: Any, where: Any, choice: Choice) -> Outcomes:
    return outcomes_of(Decisions(said, truth, weights, where), choice)


def _count_columns(said: Any, truth: Any, *, weights: Any, where: Any, choice: Choice) -> Outcomes:
    return outcomes_of(Decisions(said.T, truth.T, weights, where), choice)


def _count_rows(said: Any, truth: Any, *, weights: Any, where: Any, choice: Choice) -> Outcomes:
    return outcomes_of(Decisions(said, truth, None, None), choice)


def _indicators(y: Any) -> HostArray:
    dense = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    return np.asarray(dense != 0)


def _length(y: Any) -> int:
    return int(y.shape[0]) if hasattr(y, "shape") else len(y)


def _are_strings(classes: HostArray) -> bool:
    return classes.dtype.kind in "US" or any(isinstance(name, str) for name in classes.tolist())
