"""Columns as arrays, or one sentence that says what is wrong with them."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import pyarrow
import pyarrow.compute
from pandas.api.types import (
    is_bool_dtype,
    is_datetime64_any_dtype,
    is_float_dtype,
    is_integer_dtype,
    is_numeric_dtype,
    is_object_dtype,
    is_string_dtype,
    is_timedelta64_dtype,
)

from jaxmetrics._base.numerics import largest_weight
from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._csv import without_missing
from jaxmetrics._report._settings import InputError
from jaxmetrics._report._texts import listed, quoted, shortened
from jaxmetrics._report._times import unit_of_name

MOST_VALUES = 20  # of a column of slices
AMOUNT = "positives' amount"  # the role of a column, which only positives have
ROWS = ""  # the key of the number of dropped rows; no column has this name
# Nullable types for whole numbers with missing cells: as floats they could not serve as ids.
WHOLE = {
    pyarrow.type_for_alias(kind.lower()): pandas.api.types.pandas_dtype(kind)
    for kind in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}
_EXACT = 2.0**53  # from here on, some whole numbers are no float64
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(?:\.0*)?")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
_FLAGS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def refuse_twice(names: Sequence[str]) -> None:
    """Refuse a column that is given in two roles."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(
                f"column {quoted(name)} is given twice: pass each column once, as --score, "
                "--label, --group or another role"
            )


def joined(columns: Sequence[Any], *, ids: bool = False) -> Any:
    """The columns of all batches as one, with the type that fits all of their texts.

    In ids, and in columns of few values, different texts of one number stay apart.
    """
    if all(isinstance(column.dtype, pandas.CategoricalDtype) for column in columns):
        categories = pandas.api.types.union_categoricals(columns, ignore_order=True)
        return pandas.Series(categories)
    if any(map(is_text, columns)):  # one file has texts, and another may have numbers
        columns = [x if is_text(x) else x.astype(str).where(x.notna()) for x in columns]
    column = pandas.concat(columns, ignore_index=True)
    found = typed(column)
    if found is column or not _merges(column, found):
        return found
    texts = without_missing(column).str.strip()
    return texts if ids or texts.nunique() <= MOST_VALUES else found


def _merges(texts: Any, numbers: Any) -> bool:
    """Whether numbers would not do as ids: they merge 1.10 and 1.1, or lose the last digits."""
    if texts is numbers or not is_numeric_dtype(numbers) or is_bool_dtype(numbers):
        return False
    if is_integer_dtype(numbers) and unit_of_name(str(texts.name)) is not None:
        return False  # 03 and 3 are one month
    if is_float_dtype(numbers) and numbers.abs().between(_EXACT, np.finfo(np.float64).max).any():
        return True
    distinct, n = pandas.Series(texts.unique()), numbers.nunique()
    if len(distinct) == n:
        return False
    # 1.0 may be the 1 of a file whose column had missing cells.
    bare = without_missing(distinct.str.strip()).str.replace(r"\.0+$", "", regex=True)
    return bool(bare.nunique() > n)


def typed(column: Any) -> Any:
    """A column of texts as numbers, or as true and false, if all of its texts are such.

    "NA" and its like are missing among numbers. Alone or among other texts, they are texts.
    """
    if not is_text(column):
        return column
    known = without_missing(column)
    if known.isna().all():
        return column
    texts = pyarrow.array(known, pyarrow.string(), from_pandas=True)
    numbers = _cast(texts, pyarrow.float64())
    if numbers is not None:
        numbers = numbers.to_pandas()
        # A cast that fails is slow, because Arrow words an error for each text.
        known = numbers.dropna()
        whole = _cast(texts, pyarrow.int64()) if (known == np.round(known)).all() else None
        if whole is not None:
            return whole.to_pandas(types_mapper=WHOLE.get if whole.null_count else None)
        return numbers
    flags = known.map(_FLAGS)
    return column if flags[known.notna()].isna().any() else flags.infer_objects()


def is_text(column: Any) -> bool:
    # infer_dtype looks at each object, so it comes last.
    return bool(is_string_dtype(column)) and (
        not is_object_dtype(column) or pandas.api.types.infer_dtype(column) in ("string", "empty")
    )


def is_boolean(column: Any) -> bool:
    """Whether a column without missing cells holds true and false, by its first cell."""
    return bool(pandas.api.types.infer_dtype(typed(column.head(1))) == "boolean")


def _cast(texts: Any, kind: Any) -> Any:
    """Texts as numbers of a type; None if some text is not such a number."""
    for trimmed in (False, True):
        try:
            if trimmed:
                texts = pyarrow.compute.ascii_trim_whitespace(texts)
            return pyarrow.compute.cast(texts, kind)
        except pyarrow.ArrowInvalid:
            pass
    return None


def labels_of(
    name: str, column: Any, positive: str | None, seen: dict[Any, None]
) -> npt.NDArray[np.bool_]:
    """The labels of a batch; `seen` collects the distinct values of all batches."""
    known = column.dropna()
    if not is_numeric_dtype(known):
        known = as_texts(known)
    codes, distinct = pandas.factorize(known)
    distinct = distinct.tolist()
    seen.update(dict.fromkeys(distinct))
    chosen = set(positives_among(name, seen, positive, complete=False))
    _refuse_missing("label", name, column)
    return np.asarray([value in chosen for value in distinct], bool)[codes]


def positives_among(
    name: str,
    seen: Iterable[Any],
    positive: str | None,
    *,
    complete: bool,
    dropped: Sequence[str] = (),
) -> list[Any]:
    """The positive ones among the distinct values of a label.

    Whether a value is positive does not depend on the others, so batches can be read in turn. The
    values must also make sense together. Unless they are `complete`, more may follow. An error says
    what was `dropped` before.
    """
    raw = list(seen)
    texts = any(isinstance(x, str) for x in raw)  # another file may have numbers
    values = typed(pandas.Series([str(x) for x in raw] if texts else raw)).tolist()
    distinct = sorted(dict.fromkeys(values))
    if len(distinct) > 2 and {str(x) for x in distinct} <= {"0", "1", *_FLAGS}:
        raise InputError(
            f"label {quoted(name)} is written in several ways, {listed(distinct, 5)}: write it as "
            "0 and 1 in all rows and files"
        )
    if len(distinct) > 2:
        if name in distinct:
            raise _repeated_header("label", name)
        otherwise = ", such as 1 in the rows of one class and 0 in all others"
        if not any(isinstance(x, str) for x in distinct):
            otherwise = ", or also write --group and the column of query ids if these are grades"
        raise InputError(
            f"label {quoted(name)} must be binary but has more than 2 distinct values, "
            f"{listed([_quoted(x) for x in distinct], 5)}: pass a column that has two{otherwise}"
        )
    if complete and len(distinct) == 1:
        where, fill = "", ""
        if dropped:
            where = f", in the rows that --drop-missing keeps ({dropped[0]})"
            fill = "fill these cells, or "
        raise InputError(
            f"label {quoted(name)} has only one class, {_quoted(distinct[0])}{where}: {fill}pass a "
            "file with positives and negatives"
        )
    chosen = [value for value in distinct if _is_positive(value, positive)]
    if len(distinct) == 2 and positive is None and set(distinct) != {0, 1}:
        raise InputError(
            f"label {quoted(name)} has the values {_quoted(distinct[0])} and "
            f"{_quoted(distinct[1])}: say which is positive, --positive "
            + " or --positive ".join(shlex.quote(shortened(x)) for x in distinct)
        )
    if len(distinct) == 2 and not chosen:
        elsewhere = ""
        if positive in _FLAGS and set(distinct) == {0, 1}:
            elsewhere = f", and write 0 and 1 also in files that have {positive}"
        raise InputError(
            f"label {quoted(name)} has no value {quoted(positive)}: pass one of its two "
            f"as --positive, {_quoted(distinct[0])} or {_quoted(distinct[1])}{elsewhere}"
        )
    return [text for text, value in zip(raw, values, strict=True) if value in chosen]


def _repeated_header(role: str, name: str) -> InputError:
    return InputError(
        f"{role} {quoted(name)} has its own name among its values, so the header occurs again "
        "below, as where files were joined: delete its other copies"
    )


def _is_positive(value: Any, positive: str | None) -> bool:
    """Whether a value equals `positive`, as text or as a number; without it, whether it is 1."""
    if positive is None:
        return bool(value == 1)
    if isinstance(value, bool) and positive in _FLAGS:
        return value == _FLAGS[positive]
    if str(value) == positive:
        return True
    # "1" is also 1.0 and True.
    return not isinstance(value, str) and bool(
        value == pandas.to_numeric(positive, errors="coerce")
    )


def complete_rows(frame: Any, names: Iterable[str], dropped: Counter[str]) -> npt.NDArray[np.bool_]:
    """Whether each row has no missing cell in `names`; `dropped` counts the others.

    It counts missing cells by column, and incomplete rows in all.
    """
    missing = {name: frame[name].isna().to_numpy() for name in dict.fromkeys(names)}
    found: npt.NDArray[np.bool_] = np.logical_or.reduce(list(missing.values()))
    dropped.update({name: int(x.sum()) for name, x in missing.items() if x.any()})
    dropped[ROWS] += int(found.sum())
    return ~found


def notes_of_dropped(dropped: Counter[str], n_left: int) -> tuple[str, ...]:
    """What was dropped, for the notes of a report."""
    if not dropped[ROWS]:
        return ()
    columns = ", ".join(f"{quoted(x)} {n:,}" for x, n in dropped.items() if x != ROWS)
    n, total = dropped[ROWS], dropped[ROWS] + n_left
    return (f"{n:,} of {total:,} rows have missing cells and are left out: {columns}",)


def numbers_of(role: str, name: str, column: Any) -> FloatArray:
    """A column of numbers as float64."""
    if is_datetime64_any_dtype(column) or is_timedelta64_dtype(column):
        raise InputError(
            f"{role} {quoted(name)} must hold numbers but has dates or durations: pass "
            "another column"
        )
    # Texts that are not numbers become NaN here, and are refused below.
    numbers = pandas.to_numeric(typed(column), errors="coerce")
    odd = column[np.asarray(numbers.isna() | np.iscomplexobj(numbers)) & column.notna()]
    if len(odd) and odd.iloc[0] == name:
        raise _repeated_header(role, name)
    if len(odd) and _THOUSANDS.fullmatch(str(odd.iloc[0])):
        raise InputError(
            f"{role} {quoted(name)} has a comma in {_quoted(odd.iloc[0])}: write numbers without "
            "separators of thousands, and with points for decimals"
        )
    if len(odd) and _DECIMAL_COMMA.fullmatch(str(odd.iloc[0])):
        raise InputError(
            f"{role} {quoted(name)} has a decimal comma in {_quoted(odd.iloc[0])}: write points in "
            'numbers, as by pandas.read_csv(file, sep=";", decimal=",").to_csv("new.csv", '
            "index=False)"
        )
    if len(odd):
        share = ", such as 12% as 0.12," if str(odd.iloc[0]).endswith("%") else ""
        advice = f"convert{share} or drop {_counted(len(odd), column)}"
        if len(odd) == column.notna().sum() and not share:
            advice = "pass a column of numbers"
        raise InputError(
            f"{role} {quoted(name)} must hold numbers but has {_quoted(odd.iloc[0])}: {advice}"
        )
    _refuse_missing(role, name, column)  # last: to drop these rows would not remove the odd texts
    found = np.asarray(numbers, np.float64)
    if role == "score":
        refuse_rounded(f"score {quoted(name)}", np.asarray(numbers), found)
        if not is_numeric_dtype(column):
            _refuse_rounded_texts(f"score {quoted(name)}", column, found)
    return found


def refuse_rounded(what: str, given: npt.NDArray[Any], found: FloatArray) -> None:
    """Refuse whole numbers that double precision rounds, which may tie there."""
    if given.dtype.kind not in "iu" or not given.size or np.abs(found).max() < _EXACT:
        return
    large = np.abs(found) >= _EXACT
    unit = np.spacing(np.abs(found[large])).astype(given.dtype)
    rounded = given[large][given[large] % unit != 0]
    if len(rounded):
        raise _rounded(what, rounded[0])


def _refuse_rounded_texts(what: str, column: Any, found: FloatArray) -> None:
    """The same of texts and decimals, of which others have fractions or are beyond 64 bits."""
    large = (np.abs(found) >= _EXACT) & (np.abs(found) < np.inf)
    for text, number in zip(column[large], found[large], strict=True):
        whole = _WHOLE_NUMBER.fullmatch(str(text).strip())
        if whole is not None and int(whole[1]) != int(number):
            raise _rounded(what, whole[1])


def _rounded(what: str, number: Any) -> InputError:
    return InputError(
        f"{what} has {number}, which double precision rounds: write ranks, or numbers of at most "
        "15 digits"
    )


def nonnegative_of(role: str, name: str, column: Any) -> FloatArray:
    numbers = numbers_of(role, name, column)
    most = largest_weight(np.float64)
    odd = numbers[~((numbers >= 0) & (numbers <= most))]
    if len(odd):
        wanted = f"at most {most:g}" if most < odd[0] < np.inf else "finite and not negative"
        raise InputError(
            f"{role} {quoted(name)} must be {wanted} but has {odd[0]:g}: "
            f"correct or drop {_counted(len(odd), column)}"
        )
    return numbers


def ids_of(role: str, name: str, column: Any, otherwise: str) -> npt.NDArray[np.int64]:
    """Ids of any type as whole numbers from 0; `otherwise` says what to do if all are the same."""
    _refuse_missing(role, name, column, " where cells are empty")
    if not is_numeric_dtype(column):
        column = as_texts(column)
    ids, distinct = pandas.factorize(column)
    if len(distinct) < 2:
        raise InputError(
            f"{role} {quoted(name)} is {_quoted(distinct[0])} in all rows: {otherwise}"
        )
    return np.asarray(ids, np.int64)


def as_texts(column: Any) -> Any:
    """The values as texts; bytes that are no text, such as raw identifiers, in hexadecimal."""
    try:
        return column.astype(str)
    except UnicodeDecodeError:
        return column.map(lambda x: x.hex() if isinstance(x, bytes) else str(x))


def _refuse_missing(role: str, name: str, column: Any, which: str = "") -> None:
    missing = int(column.isna().sum())
    if missing:
        drop = f"drop these rows, as --drop-missing does{which}"
        if role == AMOUNT:
            drop = "leave these out of recall by amount, as --drop-missing does"
        class_name = ", or write it otherwise if it is the name of a class" * (role == "label")
        raise InputError(
            f"{role} {quoted(name)} is missing (empty, NA, None, NaN or the like) in "
            f"{_counted(missing, column)}: {drop}, or fill them{class_name}"
        )


def _counted(some: int, column: Any) -> str:
    """How many of which rows: of the first that were read, or of a later batch."""
    index = column.index
    if isinstance(index, pandas.RangeIndex) and index.start:
        return f"{some:,} of rows {index.start + 1:,} to {index.stop:,}"
    return f"{some:,} of {len(index):,} rows read"


def _quoted(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else shortened(value)
