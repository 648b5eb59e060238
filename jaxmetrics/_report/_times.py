"""Columns of time, whose values are in order: dates, months, weeks and years."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._settings import InputError
from jaxmetrics._report._texts import quoted
from jaxmetrics.inference._trend import digits_of, mondays_of, with_dashes

# The most slices of each unit, from fine to coarse; a column with more has slices by the next unit.
_MOST = {"day": 20, "week": 60, "month": 60, "quarter": 60, "year": 60}
_FREQUENCY = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_COARSER = {"day": "week", "week": "month", "month": "quarter", "quarter": "year"}
_MOST_WEEKS_OF_DAYS = 13  # a quarter; if days cover a longer time, months are easier to read

_TEXTS = {
    "month": re.compile(r"\d{4}-\d{2}"),
    "quarter": re.compile(r"\d{4}-?[Qq][1-4]"),
    "week": re.compile(r"\d{4}-?W\d{2}"),
    "day": re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?"),
}
# Dates in other forms, whose order is not that of their texts.
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_OTHER = re.compile(
    r"(\d{1,2}[./-](\d{1,2}[./-])?(\d{2}|\d{4})|\d{4}[./-]\d{1,2}([./-]\d{1,2})?"
    rf"|(\d{{1,2}}\W+)?{_MONTH}\W+(\d{{1,2}}\W+)?\d{{4}}|\d{{4}}\W+{_MONTH}"
    r"|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?"
    r"|oct(ober)?|nov(ember)?|dec(ember)?|q[1-4]\W*\d{4}|\d{4}\W*w\d{1,2})([t ]\d{1,2}:\d{2}.*)?",
    re.IGNORECASE,
)
# Whole numbers that are months or days.
_NUMBER = re.compile(r"(19|20)\d{4}(\d{2})?")

# No count of days, or of longer units, has as many digits; dates in other forms have.
_NO_COUNT = 10**7
# Seconds since 1970, from 2001 to 2033, and finer units. Numbers such as 2026031512 are above them.
_EPOCH = range(10**9, 2 * 10**9)
_CLOCKS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Words of a column's name that say that its whole numbers are in order of time.
_NAMES = ("year", "quarter", "month", "week", "day", "date", "period", "time", "epoch")


class Times(NamedTuple):
    """A column of time.

    Attributes:
      values: the text of each value, in order.
      codes: `[n]`, the value of each item; -1 where it is missing.
      times: `[values]`, in units from the first value.
      unit: such as "month".
      given: the unit of the column itself, if it had too many values.
      note: how its numbers were taken, if they are of a clock.
    """

    values: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    times: FloatArray
    unit: str
    given: str | None = None
    note: str = ""


def times_of(name: str, column: Any) -> Times | None:
    """The column as times, if that is what its values are."""
    try:
        codes, distinct = pandas.factorize(column)
    except TypeError:
        odd = next((x for x in column if not isinstance(x, Hashable)), column.iloc[0])
        raise InputError(
            f"slice {quoted(name)} has {type(odd).__name__} in a row: pass a column of texts or "
            "numbers"
        ) from None
    if not len(distinct):
        return None
    if isinstance(distinct, pandas.CategoricalIndex):
        distinct = distinct.astype(distinct.categories.dtype)
    if pandas.api.types.is_integer_dtype(distinct) or _are_whole(distinct):
        distinct = distinct.astype(np.int64)
        unit = unit_of_name(name)
        found = _dates_of_numbers(distinct.tolist(), unit)
        if found is not None:
            return _periods(*found, codes)
        if unit is not None and (since := _since_epoch(name, distinct, codes)) is not None:
            return since
        if unit is None or no_date_among(name, distinct.tolist()) is not None:
            return None
        return _numbers(distinct, codes, unit)
    if pandas.api.types.is_float_dtype(distinct) and unit_of_name(name) is not None:
        distinct = with_dashes(distinct.tolist())  # months such as 2026.03
    dated = _dates(distinct)
    return None if dated is None else _periods(*dated, codes)


def seem_dated(values: Sequence[str]) -> bool:
    """Whether the values seem to be dates, in other forms than those that are read."""
    return len(values) > 1 and all(_OTHER.fullmatch(x.strip()) for x in values)


def no_date_among(name: str, values: Sequence[Any]) -> str | None:
    """The first value that is no date, if some are not, and half or more are; else None.

    Dates are texts in a form that is read, or whole numbers in a column whose name says that it is
    of time. Other whole numbers are no times in any case. Also the first value if none is a date,
    and whole numbers are too large to count days.
    """
    if not values:
        return None
    written = [str(x).strip() for x in values]
    if not all(map(str.isdigit, written)) and (found := _stamps(written)) is not None:
        return _odd_one(np.asarray(found[0].notna()), written)
    unit = unit_of_name(name)
    if unit is None:
        return None
    texts = [digits_of(x) for x in values]
    dated = np.zeros(len(texts), bool)
    for length, form in ((6, "%Y%m"), (8, "%Y%m%d")):
        given = [x if len(x) == length and _NUMBER.fullmatch(x) else None for x in texts]
        dated |= pandas.to_datetime(given, format=form, errors="coerce").notna()
    if unit == "week":
        dated |= [mondays_of([x]) is not None for x in texts]
    if not dated.any() and all(map(str.isdigit, texts)) and max(map(int, texts)) >= _NO_COUNT:
        return texts[0]
    return _odd_one(dated, texts)


def _odd_one(dated: npt.NDArray[np.bool_], texts: list[str]) -> str | None:
    """The first text that is not dated, if some are not, and half or more are."""
    few = dated.any() and not dated.all() and 2 * dated.sum() >= len(dated)
    return texts[int(dated.argmin())] if few else None


def _are_whole(distinct: Any) -> bool:
    return pandas.api.types.is_float_dtype(distinct) and bool((distinct % 1 == 0).all())


def unit_of_name(name: str) -> str | None:
    words = [word.removesuffix("s") for word in re.split(r"[^a-z]+", name.lower())]
    return next((x for x in _NAMES if x in words), None)


def _numbers(distinct: Any, codes: Any, unit: str) -> Times | None:
    if len(distinct) > _MOST["month"]:
        return None
    found, place = np.unique(distinct, return_inverse=True)
    values = tuple(map(str, found.tolist()))
    return Times(values, _placed(place, codes), found - float(found[0]), unit)


def _since_epoch(name: str, distinct: Any, codes: Any) -> Times | None:
    """Seconds since 1970, or finer units, as dates in UTC, if there are several."""
    for power, (short, clock) in enumerate(_CLOCKS.items()):
        if all(x // 1000**power in _EPOCH for x in distinct.tolist()):
            stamps = pandas.DatetimeIndex(pandas.to_datetime(distinct, unit=short))
            found = _periods(stamps, "day", codes)
            if found is None or len(found.values) < 2:
                return None
            return found._replace(
                note=f"whole numbers of slice {quoted(name)} are taken as {clock} since 1970, in "
                f"UTC, such as {distinct[0]} for {stamps[0]:%Y-%m-%d}"
            )
    return None


def _dates_of_numbers(names: list[int], unit: str | None) -> tuple[Any, str] | None:
    """Time stamps and the unit of whole numbers such as 202603 or 20260315, or of weeks as 202607.

    Such numbers are weeks if `unit` is, or if some is of no month and `unit` is not another.
    """
    if len(names) < 2:
        return None
    dated = with_dashes(names)
    weeks = unit == "week" or (dated is names and unit not in ("day", "month", "quarter", "year"))
    if weeks and (mondays := mondays_of(names)) is not None:
        return pandas.DatetimeIndex(mondays), "week"
    return None if dated is names else _dates(dated)


def _dates(distinct: Any) -> tuple[Any, str] | None:
    """Dates, and texts in the forms of ISO 8601, as time stamps."""
    if pandas.api.types.is_datetime64_any_dtype(distinct):
        stamps = pandas.DatetimeIndex(distinct)
        return stamps.tz_localize(None), "day"
    kind = pandas.api.types.infer_dtype(distinct, skipna=True)
    if kind in ("date", "datetime"):
        # Local times: zones are dropped, as for texts.
        plain = [x.replace(tzinfo=None) if hasattr(x, "tzinfo") else x for x in distinct]
        return pandas.DatetimeIndex(pandas.to_datetime(plain)), "day"
    if kind != "string":
        return None
    found = _stamps([str(x).strip() for x in distinct])
    return None if found is None or found[0].isna().any() else found


def _stamps(given: list[str]) -> tuple[Any, str] | None:
    """Time stamps of texts of one form, NaT where there is no such date, and the form's unit."""
    texts = [*with_dashes(given)]
    unit = next((x for x, form in _TEXTS.items() if all(map(form.fullmatch, texts))), None)
    if unit is None:
        return None
    if unit == "week":
        texts, form = [f"{x[:4]}-W{x[-2:]}-1" for x in texts], "%G-W%V-%u"
    elif unit == "quarter":
        texts, form = [f"{x[:4]}-{3 * int(x[-1]) - 2:02d}" for x in texts], "%Y-%m"
    elif unit == "month":
        form = "%Y-%m"
    else:
        texts, form = [x[:10] for x in texts], "%Y-%m-%d"
    return pandas.to_datetime(texts, format=form, errors="coerce"), unit


def _periods(stamps: Any, given: str, codes: Any) -> Times | None:
    """The times in the finest unit, from the given one on, that has few enough values."""
    unit: str | None = given
    while unit is not None:
        ordinals = stamps.to_period(_FREQUENCY[unit])
        found, place = np.unique(ordinals.asi8, return_inverse=True)
        most = _MOST_WEEKS_OF_DAYS if unit == "week" != given else _MOST[unit]
        if len(found) <= most:
            firsts = pandas.PeriodIndex.from_ordinals(found, freq=_FREQUENCY[unit])
            week = unit == "week"  # pandas would write its first and last day
            values = tuple(f"{x.start_time:%G-W%V}" if week else str(x) for x in firsts)
            times = found - float(found[0])
            return Times(
                values, _placed(place, codes), times, unit, None if unit == given else given
            )
        unit = _COARSER.get(unit)
    return None


def _placed(place: Any, codes: Any) -> npt.NDArray[np.intp]:
    return np.where(codes < 0, -1, place[codes]).astype(np.intp)
