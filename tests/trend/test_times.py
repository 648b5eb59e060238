"""Columns and names that are times, and those that are none."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics._report import InputError
from jaxmetrics._report._slices import column_of
from jaxmetrics._report._times import times_of


@pytest.mark.parametrize(
    ("name", "values", "unit", "expected"),
    [
        ("x", ["2026-03", "2026-01", "2026-02", None], "month", ("2026-01", "2026-02", "2026-03")),
        ("x", ["2026-W02", "2025-W52"], "week", ("2025-W52", "2026-W02")),
        ("x", ["2026-Q2", "2025-Q4"], "quarter", ("2025Q4", "2026Q2")),
        ("x", [202602, 202511], "month", ("2025-11", "2026-02")),
        ("week", [202602, 202511], "week", ("2025-W11", "2026-W02")),
        ("x", [202602, 202552], "week", ("2025-W52", "2026-W02")),
        ("month", [3, 1, 2], "month", ("1", "2", "3")),
        ("month", [2026.01, 2025.1, None], "month", ("2025-10", "2026-01")),
        ("x", ["2026/03/15", "2026/03/14"], "day", None),
        ("x", ["2026.01", "2025.10"], "month", ("2025-10", "2026-01")),
        ("x", pd.date_range("2026-01-30", periods=3), "day", None),
        ("x", pd.date_range("2026-03-01", periods=31), "week", None),
        ("x", pd.date_range("2026-01-01", periods=400), "month", None),
    ],
)
def test_columns_of_time(name, values, unit, expected):
    found = times_of(name, pd.Series(values))
    assert found.unit == unit
    assert expected is None or found.values == expected
    assert (np.diff(found.times) > 0).all()
    assert found.times[0] == 0
    given = pd.Series(values)
    assert ((found.codes < 0) == given.isna()).all()


def test_dates_in_other_forms_are_told():
    for values in (
        *(["01/2026", "02/2026"], ["3 Apr 2026", "4 Apr 2026"], ["2026 Apr", "2026 May"]),
        *(["2026/3", "2026/11"], ["15.03.26", "16.03.26"], ["April 3, 2026", "May 1, 2026"]),
        *(["12/01/2025 10:00", "01/02/2026 11:00"], ["Q4 2025", "Q1 2026"], ["Jan", "Feb", "June"]),
        *(["2026-W5", "2026-W12"], ["2026/03/15 10:00", "2026/01/02 11:00"]),
    ):
        assert "write dates as 2026-03 or" in column_of("x", pd.Series(values)).note
    for values in (
        *(["a/2026", "b/2026"], ["phone 2020", "phone 2021"], ["1/2", "1/3"]),
        *(["Mark", "Jane", "May"], ["Q1", "Q2"]),
    ):
        assert not column_of("x", pd.Series(values)).note
    assert times_of("x", pd.Series([1999.05, 2000.1])) is None  # no word of time
    days = pd.Series([f"{x % 28 + 1:02d}.{x // 28 + 1:02d}.2026" for x in range(99)])
    with pytest.raises(InputError, match=r"99 distinct values.*: write dates as 2026-03-15"):
        column_of("x", days)


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ([20260131, 20260201, 20260230], "20260230"),
        ([20260131, 20260201, 99991231], "99991231"),
        ([202601, 202602, 202600], "202600"),
        ([*range(20260101, 20260132), 20260230], "20260230"),
        ([20260131.0, 20260201.0, 20260230.0], "20260230"),
        ([20260131, 20260230], "20260230"),
    ],
)
def test_dates_with_one_that_is_none_are_no_numbers_of_days(values, odd):
    """From 31 January to 1 February it would be 70 days."""
    found = column_of("day", pd.Series(values))
    assert found.times is None
    assert f"not taken as time, because {odd} is no date" in found.note
    rest = [x for x in values if int(x) != int(odd)]
    assert len(rest) < 2 or column_of("day", pd.Series(rest)).times is not None


def test_a_month_or_a_week_that_is_none_does_not_change_the_unit():
    for name, odd in (("month", 202613), ("week", 202699)):
        found = column_of(name, pd.Series([202601, 202602, 202603, odd]))
        assert found.times is None
        assert f"{odd} is no date" in found.note


def test_a_trend_of_nothing_is_refused():
    with pytest.raises(ValueError, match="as there were no items"):
        jm.trend(jm.slices(jm.roc_auc, [], [], []))


@pytest.mark.parametrize("values", [["de", "fr"], [1, 2, 3], [0.5, 1.5], ["2026-13", "2026-01"]])
def test_other_columns_are_no_times(values):
    assert times_of("group", pd.Series(values)) is None


def test_names_are_times(rng):
    """Numbers as they are, dates in their unit; anything else is refused, as its order is not."""
    month, labels = rng.integers(0, 12, 2400), rng.random(2400) < 0.5
    scores = rng.normal(size=2400) + labels * (2 - month / 8)

    def slope(names, some=slice(None)):
        given = (x[some] for x in (scores, labels, np.asarray(names)))
        return jm.trend(jm.slices(jm.roc_auc, *given)).slope

    dates = np.array([f"2026-{x:02d}" for x in range(1, 13)])[month]
    for names in (month + 5, month.astype(str), dates):
        np.testing.assert_array_equal(slope(names), slope(month))
    winter = (month < 2) | (month > 9)
    times = jm.trend(jm.slices(jm.roc_auc, scores[winter], labels[winter], month[winter])).times
    np.testing.assert_array_equal(times, [0, 1, 10, 11])
    days = np.array(["2026-01-31", "2026-02-28", "2026-03-02"])[month % 3]
    stamps = pd.Series(pd.to_datetime(days))
    forms = [days, days.astype("datetime64[D]"), stamps, stamps.dt.tz_localize("UTC")]
    for form in (*forms, stamps.dt.to_period("D"), pl.Series(stamps), stamps.dt.date.tolist()):
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, form))
        np.testing.assert_array_equal(found.times, [0, 28, 30])
        assert "per day" in str(found)
    half = stamps + pd.to_timedelta(12 * (month % 3), unit="h")
    np.testing.assert_array_equal(
        jm.trend(jm.slices(jm.roc_auc, scores, labels, half)).times, [0, 28.5, 31]
    )
    written = np.array([202511, 202512, 202601])[month % 3]
    for names in (written, written.astype(str)):
        assert slope(names) == slope(month % 3)
    written = np.array([202551, 202552, 202602])[month % 3]
    weeks = [np.array([f"{x[:4]}-W{x[4:]}" for x in written.astype(str)]), written]
    periods = pd.PeriodIndex(["2025-12-15", "2025-12-22", "2026-01-05"], freq="W")
    for form in (*weeks, periods[month % 3]):
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, form))
        np.testing.assert_array_equal(found.times, [0, 1, 3])
        assert "per week" in str(found)
    whole = np.array([20260131, 20260228, 20260302])[month % 3]
    assert slope(whole) == slope(days)
    with pytest.raises(ValueError, match=r"got 'Apr': write times=\[...\]"):
        slope(np.array(["Jan", "Feb", "Apr"])[month % 3])
    quarters = pd.PeriodIndex(["2025Q4", "2026Q1", "2026Q3"], freq="Q")[month % 3]
    for form in (quarters, quarters.astype(str), quarters.strftime("%Y-Q%q")):
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, form))
        np.testing.assert_array_equal(found.times, [0, 1, 3])
        assert "per quarter" in str(found)
    with_points = np.array(["2025.11", "2025.12", "2026.01"])[month % 3]
    for form in (with_points, with_points.astype(float), np.char.replace(with_points, ".", "/")):
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, form))
        np.testing.assert_array_equal(found.times, [0, 1, 2])
        assert "per month" in str(found)
    for form in (
        *(["9", "10", "12"], ["2025.25", "2025.50", "2026.01"], ["-1", "0", "2"]),
        *(["2025.0417", "2025.1231", "2026.0101"], ["202503.15", "202504.15", "202505.15"]),
    ):
        numbers = np.array(form)[month % 3]
        assert slope(numbers) == slope(numbers.astype(float))
        assert " per " not in str(jm.trend(jm.slices(jm.roc_auc, scores, labels, numbers)))


@pytest.mark.parametrize("unit", ["ns", "us", "s", "D"])
def test_dates_of_numpy_are_dates_in_every_unit(unit, rng):
    labels = np.arange(300) % 2 == 0
    days = np.array(["2025-12-31", "2026-01-01", "2026-03-01"], f"datetime64[{unit}]")
    found = jm.trend(jm.slices(jm.roc_auc, rng.normal(size=300), labels, days[np.arange(300) % 3]))
    assert found.times.tolist() == [0, 1, 60]
    assert "per day" in str(found)


def test_months_of_numpy_are_months_and_nanoseconds_are_kept(rng):
    labels, scores, part = np.arange(300) % 2 == 0, rng.normal(size=300), np.arange(300) % 3
    months = np.array(["2025-12", "2026-01", "2026-03"], "datetime64[M]")
    found = jm.slices(jm.roc_auc, scores, labels, months[part])
    assert found.names == ("2025-12", "2026-01", "2026-03")
    assert jm.trend(found).times.tolist() == [0, 1, 3]
    near = np.datetime64("2026-01-01", "ns") + np.arange(3)
    assert len(jm.slices(jm.roc_auc, scores, labels, near[part]).names) == 3


def test_times_with_zones_are_in_the_order_of_time(rng):
    labels, scores, part = np.arange(300) % 2 == 0, rng.normal(size=300), np.arange(300) % 3
    west = datetime.timezone(datetime.timedelta(hours=-5))
    times = [
        datetime.datetime(2026, 1, 1, 0, 30, tzinfo=datetime.UTC),
        datetime.datetime(2025, 12, 31, 23, tzinfo=west),  # in Greenwich at 4 of 1 January
        datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC),
    ]
    found = jm.slices(jm.roc_auc, scores, labels, np.array(times, object)[part])
    assert list(found.names) == times
    np.testing.assert_allclose(jm.trend(found).times, [0, 3.5 / 24, 47.5 / 24], rtol=1e-6)
    days = column_of("time", pd.Series(times, dtype=object))
    assert days.values == ("2025-12-31", "2026-01-01", "2026-01-03")


def test_the_name_that_is_no_time_is_named(rng):
    labels, names = np.arange(300) % 2 == 0, ["2026-11", "2026-12", "2026-13"]
    found = jm.slices(jm.roc_auc, rng.normal(size=300), labels, np.tile(names, 100))
    with pytest.raises(ValueError, match="got '2026-13'"):
        jm.trend(found)
    for mixed, odd in ((["2026-01", "5", "7"], "2026-01"), (["2025Q4", "2026Q1", "on"], "on")):
        found = jm.slices(jm.roc_auc, rng.normal(size=300), labels, np.tile(mixed, 100))
        with pytest.raises(ValueError, match=f"quarters or years such as .* got '{odd}'"):
            jm.trend(found)
    assert "2026-13 is no date" in column_of("x", pd.Series(names)).note


def test_whole_numbers_that_are_taken_for_time_without_a_word_in_the_name_are_noted():
    codes = pd.Series([201907, 201923, 202040])
    assert "taken as weeks, such as 201907" in column_of("store", codes).note
    assert not column_of("week", codes).note
    many = column_of("store", pd.Series(range(20190701, 20190731))).note
    assert "taken as days, such as 20190701" in many
    assert "too many days, so slices are by week" in many


def test_values_that_are_written_alike_are_refused():
    with pytest.raises(InputError, match="several values that are written 1"):
        column_of("x", pd.Series([1, "1", 2], dtype=object))
    with pytest.raises(InputError, match="has list in a row"):
        column_of("x", pd.Series([["a"], ["b"]]))
