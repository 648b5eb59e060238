"""Columns as arrays, or one sentence that says what is wrong with them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._files import listed
from jaxmetrics._report._settings import InputError


def refuse_twice(names: Sequence[str]) -> None:
    """Refuse a column that is given in two roles."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(
                f"column {name!r} is given twice: pass each column once, as --score, --label or "
                "--group"
            )


def labels_of(name: str, column: Any, positive: str | None) -> npt.NDArray[np.bool_]:
    _refuse_missing("label", name, column)
    if not pandas.api.types.is_numeric_dtype(column):
        column = column.astype(str)
    values = sorted(column.unique().tolist())
    if len(values) > 2:
        raise InputError(
            f"label {name!r} must be binary but has {len(values)} distinct values, "
            f"{listed(values, 5)}: pass a column that has two"
        )
    if len(values) == 1:
        raise InputError(
            f"label {name!r} has only one class, {values[0]}: pass a file with positives and "
            "negatives"
        )
    if positive is None:
        if set(values) == {0, 1}:
            return np.asarray(column == 1, bool)
        raise InputError(
            f"label {name!r} has the values {values[0]} and {values[1]}: say which is positive, "
            f"as in --positive {shlex.quote(str(values[1]))}"
        )
    chosen = positives_of(values, positive)
    if not chosen:
        raise InputError(
            f"label {name!r} has no value {positive!r}: pass one of its two as --positive, "
            f"{values[0]} or {values[1]}"
        )
    return np.asarray(column == chosen[0], bool)


def positives_of(values: Iterable[Any], positive: str | None) -> list[Any]:
    """The values that equal `positive`, as text or as a number; without it those that are 1."""
    if positive is None:
        return [value for value in values if value == 1]
    number = pandas.to_numeric(positive, errors="coerce")  # "1" is also 1.0 and True
    return [value for value in values if str(value) == positive or value == number]


def numbers_of(role: str, name: str, column: Any) -> FloatArray:
    """A column of numbers as float64."""
    _refuse_missing(role, name, column)
    if pandas.api.types.is_datetime64_any_dtype(column):
        raise InputError(f"{role} {name!r} must hold numbers but has dates: pass another column")
    numbers = pandas.to_numeric(column, errors="coerce")
    odd = column[numbers.isna() | np.iscomplexobj(numbers)]
    if len(odd):
        raise InputError(
            f"{role} {name!r} must hold numbers but has {odd.iloc[0]!r}: convert or drop "
            f"{len(odd)} of {len(column)} rows"
        )
    return np.asarray(numbers, np.float64)


def nonnegative_of(role: str, name: str, column: Any) -> FloatArray:
    numbers = numbers_of(role, name, column)
    odd = numbers[~((numbers >= 0) & (numbers < np.inf))]
    if len(odd):
        raise InputError(
            f"{role} {name!r} must be finite and not negative but has {odd[0]:g}: correct or drop "
            f"{len(odd)} of {len(numbers)} rows"
        )
    return numbers


def ids_of(role: str, name: str, column: Any, otherwise: str) -> npt.NDArray[np.int64]:
    """Ids of any type as whole numbers from 0; `otherwise` says what to do if all are the same."""
    _refuse_missing(role, name, column)
    if not pandas.api.types.is_numeric_dtype(column):
        column = column.astype(str)
    ids, distinct = pandas.factorize(column)
    if len(distinct) < 2:
        raise InputError(f"{role} {name!r} is {distinct[0]!s} in all rows: {otherwise}")
    return np.asarray(ids, np.int64)


def _refuse_missing(role: str, name: str, column: Any) -> None:
    missing = int(column.isna().sum())
    if missing:
        raise InputError(
            f"{role} {name!r} is missing (NaN) in {missing} of {len(column)} rows: "
            "drop these rows or fill them"
        )
