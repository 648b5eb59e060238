"""The linear trend of a metric over ordered slices, such as months."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import as_default
from jaxmetrics._base.host import as_jax, near_tree
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.pair_rows import each_pair_once
from jaxmetrics._base.quoting import brief
from jaxmetrics._base.results import STATIC, Column, Result, Table
from jaxmetrics._base.types import Array, ArrayLike, HostArray
from jaxmetrics._base.words import percent_text, some_of
from jaxmetrics.inference._slice_tests import SliceDifferences
from jaxmetrics.inference._slices import Slices
from jaxmetrics.inference._trend_line import fit_line

# A month, or a day with the same separator between all its parts.
_DIGITS = re.compile(r"((?:19|20)\d\d)(?:[-/.]?(0[1-9]|1[0-2])|([-/.]?)(0[1-9]|1[0-2])\3([0-3]\d))")
_QUARTER = re.compile(r"(\d{4})-?[Qq]([1-4])")
_ISO = re.compile(r"\d{4}(-.*)?")
_WEEK = re.compile(r"((?:19|20)\d\d)(?:-?W)?(\d\d)")
_UNITS = {f"datetime64[{x[0].upper()}]": x for x in ("year", "month", "day")}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trend(Result):
    """The line that fits a metric over time.

    Arrays `[models]` are `[]` if scores are `[n]`, and `[models, models]` in `models`.

    Attributes:
      names: the value of each slice, in order.
      times: `[slices]`, the time of each.
      used: `[slices]` bool, False for slices that are too small or have no time.
      slope: `[models]`, the change of the metric per unit of time.
      standard_error: `[models]`, of the slope.
      df: `[models]`, the degrees of freedom of the standard error.
      low: `[models]`, the lower limit of the slope, for this model alone.
      high: `[models]`, the upper limit of the slope.
      p_value: `[models]`, two-sided, of the hypothesis that the slope is 0.
      f: `[models]`, Brown and Forsythe's statistic of any differences between the slices.
      f_p_value: `[models]`, of the hypothesis that the metric is the same in all slices.
      fitted: `[slices, models]`, the line at each time.
      models: the same for the differences of models, row minus column: whether their gap changes;
        None for scores `[n]`.
      confidence_level: the nominal coverage of the limits.
    """

    names: tuple[Any, ...] = field(metadata=STATIC)
    times: Array
    used: Array
    slope: Array
    standard_error: Array
    df: Array
    low: Array
    high: Array
    p_value: Array
    f: Array
    f_p_value: Array
    fitted: Array
    models: Trend | None
    confidence_level: float = field(metadata=STATIC)

    def _is_readable(self) -> bool:
        return np.shape(self.times) == (len(self.names),) and super()._is_readable()

    def _table(self) -> Table:
        shape, metric = np.shape(self.slope), self._caption.metric
        per = "".join(f" per {x}" for x in self._caption.names.get("unit", ()))
        width = np.asarray(self.high, np.float64) - np.asarray(self.low, np.float64)
        columns = [
            Column(f"slope of {metric}{per}", {"slope": self.slope}, width),
            Column(
                f"{percent_text(self.confidence_level)} interval",
                {"low": self.low, "high": self.high},
                width,
            ),
            Column("p", {"p_value": self.p_value}, form="p"),
            Column("p, any change", {"f_p_value": self.f_p_value}, form="p"),
            *(Column("", {x: getattr(self, x)}) for x in ("standard_error", "df", "f")),
        ]
        out = [
            str(x) for x, used in zip(self.names, np.asarray(self.used), strict=True) if not used
        ]
        notes = (f"left out: {some_of(out)}",) if out else ()
        index = self._rows(shape, *("model", "minus")[: len(shape)])
        table = Table(f"Trend of {metric}", index, columns, notes)
        return each_pair_once(table, shape)


@on_any_mesh
def trend(slices: Slices, *, times: ArrayLike | None = None) -> Trend:
    """The linear trend of a metric over slices in order of time, and a test of any change.

    With A_s the metric of slice s, SE_s its error, t_s its time and the weight
    h_s = n1_s n0_s / (n1_s + n0_s) of the effective sizes of its classes, the slope is
    b = sum_s c_s A_s with c_s = h_s (t_s - T) / sum_r h_r (t_r - T)^2, T the weighted mean of the
    times. Its variance is V = sum_s c_s^2 SE_s^2, with Satterthwaite's V^2 / sum_s (c_s^4 SE_s^4 /
    (m_s - 1)) degrees of freedom, m_s = min(n1_s, n0_s); limits are b -+ t sqrt(V). Brown and
    Forsythe's statistic of any change is
    F = sum_s h_s (A_s - A)^2 / sum_s h_s (1 - h_s / H) SE_s^2, A the weighted mean and H the sum of
    the weights. Where slices share clusters and have the covariances C_sr = SE_s SE_r R_sr, V is
    sum_sr c_s c_r C_sr, and F = sum_s h_s (A_s - A)^2 / tr(Q C), with Q = diag(h) - h h' / H and
    tr(Q C)^2 / tr(Q C Q C) degrees of freedom in place of the number of slices less 1 (G. E. P.
    Box, "Some theorems on quadratic forms", Annals of Mathematical Statistics 25, 1954). No other
    degrees of freedom are then above those of the clusters of all slices.

    SE_s is the standard error s, or w / (2 t) - s if that is more, with w the width of the interval
    of the slice and t the quantile of m_s - 1 degrees of freedom: a slice without a failure has no
    standard error, but limits. The weights depend on the sizes alone. Inverse estimated variances
    would favour slices that happen to have a high value, as their variances are low, and find
    trends where there are none.

    Args:
      slices: what `slices` returns for slices such as months, which may share clusters but do not
        depend on each other otherwise.
      times: `[slices]`, the time of each slice in the order of its `names`, in any unit; NaN to
        leave a slice out. None takes the names themselves: days, weeks, months, quarters or
        years, such as "2026-03", 202603, 2026.03, 20260315, "2026-W07" or "2026Q1", count in this
        unit from the first one, and other numbers are times as they are. Whole numbers such as
        202552 are weeks if some of the names cannot be months.

    Returns:
      A Trend, whose `models` is the same for the differences of models. Slices that were too small
      to be tested are left out. P-values and limits are each for one model, or pair, alone.

    Raises:
      TypeError, ValueError: `slices` is not what `slices` returns, has none, or has two columns
        crossed, or times are not a number for each slice, or are not given and names are no times.

    NaN where fewer than two slices with different times are left, and where the metric of one of
    them is NaN. The limits hold for the line through these slices. A small `f_p_value` without a
    trend says that the metric changes, but not along a line. Average precision also changes with
    the share of positives, and is too high with few of them or unequal weights: with 20 positives
    of lognormal weights F was significant at 5 % in 20 % of simulated data sets without a change,
    and with 24 slices of 30 positives without weights in 7 %.
    Of five laws without a change, of clusters that recur in up to 12 slices, 4 to 7 % of slopes and
    4 to 6 % of F of AUCs were significant at 5 % (300 simulations each).
    Slices that share a threshold share its error too, which makes the tests conservative. Time and
    memory O(slices models^2), and O(slices^2 models^2) where they share clusters. Works in `jit`.

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [.1, .4, .35, .8, .7, .2, .9, .3, .6, .5, .2, .7]
      >>> labels = [0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1]
      >>> month = ["2026-01"] * 4 + ["2026-02"] * 4 + ["2026-03"] * 4
      >>> found = jm.trend(jm.slices(jm.roc_auc, scores, labels, month, min_items=2))
      >>> print(f"{found.slope:.3f} -+ {found.standard_error:.3f}")
      0.125 -+ 0.178

    References: M. B. Brown and A. B. Forsythe, "The small sample behavior of some statistics which
    test the equality of several means", Technometrics 16, 1974; F. E. Satterthwaite, "An
    approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946;
    P. van Elteren, "On the combination of independent two sample tests of Wilcoxon", Bulletin of
    the International Statistical Institute 37, 1960.
    """
    if not isinstance(slices, Slices):
        raise TypeError(
            f"slices must be a Slices, got {brief(slices)}: pass what slices(metric, scores, "
            "labels, months) returns"
        )
    if not slices.names:
        raise ValueError("slices has none, as there were no items: a trend needs two or more")
    if any(isinstance(x, tuple) for x in slices.names):
        raise ValueError("slices must be of one column, in order of time, got two that are crossed")
    at, unit = _times(times, slices.names)
    found, at = near_tree((slices, at))
    level = np.float64(slices.confidence_level)
    used = (found.tested > 0) & numerics.namespace(at).isfinite(at)

    def of(given: Slices | SliceDifferences, estimate: Array, models: Trend | None) -> Trend:
        sizes = found.n_items - found.n_positives, found.n_positives
        if found.effective is not None:
            sizes = found.effective[:, 0], found.effective[:, 1]
        errors = given.standard_error, given.high - given.low
        shared = None if given.correlation is None else (given.correlation, found.n_clusters)
        fit = fit_line(estimate, *errors, sizes, at, used, level, shared)
        return Trend(
            names=slices.names,
            times=as_default(at),
            used=as_jax(used),
            **jax.tree.map(as_default, fit),
            models=models,
            confidence_level=slices.confidence_level,
        )

    pairs = found.models
    models = None if pairs is None else of(pairs, pairs.difference, None)
    return of(found, found.estimate, models)._captioned_as(unit=unit)


def _times(times: ArrayLike | None, names: Sequence[Any]) -> tuple[Any, tuple[str, ...]]:
    """The time of each slice, and their unit if it is known."""
    n = len(names)
    if times is None:
        return _times_in(names)
    found = checks.as_array("times", times)
    if found.shape != (n,):
        raise ValueError(
            f"times must be [slices], a number for each of the {n} names, got {list(found.shape)}"
        )
    return found, ()


def _times_in(names: Sequence[Any]) -> tuple[HostArray, tuple[str, ...]]:
    """The times that names state, numbers or dates counted from the first, and their unit."""
    texts = [_as_text(x) for x in names]
    dated = with_dashes(texts)
    if dated is texts and (mondays := mondays_of(texts)) is not None:
        since = np.array(mondays, "datetime64[D]")
        return (since - since.min()) / np.timedelta64(7, "D"), ("week",)
    quarters = [_QUARTER.fullmatch(str(x)) for x in texts]
    if all(quarters):
        numbers = np.array([4.0 * int(x[1]) + int(x[2]) for x in quarters if x])
        return numbers - numbers.min(), ("quarter",)
    are_dates = all(isinstance(x, str) and _ISO.fullmatch(x) for x in dated)
    if are_dates:
        _refuse_parts_of_others(dated)
    try:
        if are_dates:
            dates = np.array(dated, "datetime64")
            since = dates - dates.min()
            unit = _UNITS.get(dates.dtype.name)
            if unit is None:  # times of day
                return since / np.timedelta64(1, "D"), ("day",)
            return since.astype(np.float64), (unit,)
    except ValueError:
        pass
    try:
        return np.array(names, np.float64), ()
    except (TypeError, ValueError):
        odd = next((x for x in names if len(names) > 1 and not _is_time(x)), names[0])
        raise ValueError(
            f"names of slices must be numbers, or days, weeks, months, quarters or years such as "
            f"2026-03, 2026-W07 and 2026Q1, got {brief(odd)}: "
            f"write times=[...], the time of each of {brief(list(names))}"
        ) from None


def _refuse_parts_of_others(dates: Sequence[str]) -> None:
    """A year among months, or a month among days, would be read as the first of these."""
    shortest = min(dates, key=len)
    other = next((x for x in dates if len(x) != len(shortest)), None)
    if len(shortest) < len("2026-03-01") and other is not None:
        raise ValueError(
            f"names of slices must be all years, all months or all days, got {shortest!r} and "
            f"{other!r}: leave one kind out, or write times=[...], the time of each slice"
        )


def _is_time(name: Any) -> bool:
    try:
        return bool(_times_in([name]))
    except ValueError:
        return False


def _as_text(name: Any) -> Any:
    """A date, a time (UTC if it has a zone) or a Period of pandas as text; others as given."""
    if isinstance(name, datetime.datetime):
        if name.tzinfo is not None:  # as NumPy converts texts of such times
            name = name.astimezone(datetime.UTC)
        name = name.replace(tzinfo=None)
    if isinstance(name, datetime.date):
        return name.isoformat()
    if type(name).__name__ not in ("Period", "datetime64"):
        return name
    first, *last = str(name).split("/")  # a week of pandas has two ends
    return f"{datetime.date.fromisoformat(first):%G-W%V}" if last else first


def mondays_of(names: Sequence[Any]) -> list[datetime.date] | None:
    """The first days of the weeks 2026-W07 or 202607; None if some name is of no week."""
    mondays = []
    for name in names:
        found = _WEEK.fullmatch(digits_of(name))
        try:
            year, week = map(int, found.groups() if found else ())
            mondays.append(datetime.date.fromisocalendar(year, week, 1))
        except ValueError:  # no week, or one that the year does not have
            return None
    return mondays


def with_dashes(names: Sequence[Any]) -> Sequence[Any]:
    """202603, 2026/03 or 2026.03 as 2026-03, and 20260315 as 2026-03-15; others as they are.

    Numbers such as 2026.03 are months if all names may be months, and else years with a fraction.
    """
    parts = []
    texts = [digits_of(x) for x in names]
    for text in texts:
        found = _DIGITS.fullmatch(text)
        if found is None or len(text) != len(texts[0]):
            return names
        year, month, _, *day = found.groups()
        parts.append("-".join(filter(None, (year, month, *day))))
    return parts


def digits_of(name: Any) -> str:
    """A number with no decimals, or two, as text: 2026.1 is 2026.10; others as they are."""
    if not isinstance(name, (float, np.floating)):
        return str(name)
    text = f"{name:.2f}"
    return text.removesuffix(".00") if float(text) == name else str(name)
