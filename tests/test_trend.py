"""The trend of a metric over slices in order of time, and the columns that are times."""

import dataclasses
import datetime
import json
from functools import partial

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import jaxmetrics as jm
from jaxmetrics import _report, plots
from jaxmetrics._report import InputError, _page
from jaxmetrics._report._slices import column_of
from jaxmetrics._report._times import times_of
from tests.command import run

N, MONTHS = 1200, tuple(f"2026-{m:02d}" for m in range(1, 7))


@pytest.fixture(scope="module")
def data():
    """Model 1 gets worse, and model 0 does not."""
    rng = np.random.default_rng(1)
    labels, month = rng.random(N) < 0.3, np.arange(N) % 6
    scores = rng.normal(size=(2, N)) + np.stack([1.5 + 0 * month, 2.5 - 0.5 * month]) * labels
    return scores, labels, np.array(MONTHS)[month]


@pytest.fixture(scope="module")
def found(data):
    with jax.enable_x64(True):
        slices = jm.slices(jm.roc_auc, *data)
        return slices, jm.trend(slices)


def by_hand(values, errors, n0, n1, t):
    h = n0 * n1 / (n0 + n1)
    c = h * (t - np.average(t, weights=h))
    c = c / np.sum(c * t)
    parts = (c * errors) ** 2
    df = parts.sum() ** 2 / np.sum(parts**2 / (np.minimum(n0, n1) - 1))
    slope, error = np.sum(c * values), np.sqrt(parts.sum())
    share = h / h.sum()
    inner = h * (1 - share) * errors**2
    f = np.sum(h * (values - np.sum(share * values)) ** 2) / inner.sum()
    df_inner = inner.sum() ** 2 / np.sum(inner**2 / (np.minimum(n0, n1) - 1))
    margin = stats.t.ppf(0.975, df) * error
    return {
        "slope": slope,
        "standard_error": error,
        "df": df,
        "low": slope - margin,
        "high": slope + margin,
        "p_value": 2 * stats.t.sf(abs(slope / error), df),
        "f": f,
        "f_p_value": stats.f.sf(f, len(values) - 1, df_inner),
    }


def test_of_models_and_their_differences_by_hand(found):
    slices, trend = found
    n1, t = np.asarray(slices.n_positives), np.arange(6.0)
    n0 = np.asarray(slices.n_items) - n1
    for i in (0, 1):
        expected = by_hand(
            np.asarray(slices.estimate)[:, i], np.asarray(slices.standard_error)[:, i], n0, n1, t
        )
        for name, x in expected.items():
            np.testing.assert_allclose(getattr(trend, name)[i], x, rtol=1e-9, err_msg=name)
    pair = slices.models
    expected = by_hand(
        np.asarray(pair.difference)[:, 1, 0], np.asarray(pair.standard_error)[:, 1, 0], n0, n1, t
    )
    for name, x in expected.items():
        np.testing.assert_allclose(getattr(trend.models, name)[1, 0], x, rtol=1e-9, err_msg=name)
    same, falls = np.asarray(trend.p_value)
    assert same > 0.05 > 1e-6 > falls
    assert np.asarray(trend.models.high)[1, 0] < 0
    assert "slope" in str(trend)
    assert len(trend.to_frame()) == 2


def test_units_shifts_and_order_of_time(found, data):
    slices, trend = found
    for times, unit in ((np.arange(6) * 30 + 7, 30), (-np.arange(6), -1)):
        moved = jm.trend(slices, times=times)
        np.testing.assert_allclose(moved.slope * unit, trend.slope, rtol=1e-5)
        np.testing.assert_allclose(moved.p_value, trend.p_value, rtol=1e-4)
        np.testing.assert_allclose(moved.fitted, trend.fitted, rtol=1e-5)
    without = jm.trend(slices, times=[0, 1, 2, 3, 4, np.nan])
    kept = data[2] != MONTHS[-1]
    alone = jm.trend(jm.slices(jm.roc_auc, data[0][:, kept], data[1][kept], data[2][kept]))
    np.testing.assert_allclose(without.slope, alone.slope, rtol=1e-5)
    assert list(np.asarray(without.used)) == 5 * [True] + [False]


def test_small_slices_are_left_out_and_named(data):
    scores, labels, month = data
    few = (month == MONTHS[0]) & labels & (np.cumsum(labels & (month == MONTHS[0])) > 5)
    slices = jm.slices(jm.roc_auc, scores, labels, month, where=~few)
    trend = jm.trend(slices)
    assert not trend.used[0]
    assert trend.used[1:].all()
    assert "left out: 2026-01" in str(trend)
    later = jm.trend(slices, times=[np.nan, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(trend.slope, later.slope)


def test_in_jit(found):
    slices, trend = found
    compiled = jax.jit(lambda x, t: jm.trend(x, times=t))(slices, np.arange(6.0))
    for name in ("slope", "low", "p_value", "f_p_value", "fitted"):
        expected = np.asarray(getattr(trend, name), np.float64)
        np.testing.assert_allclose(getattr(compiled, name), expected, rtol=1e-4, atol=1e-6)


def test_undefined_trends(data):
    scores, labels, month = data
    one = jm.trend(
        jm.slices(jm.roc_auc, scores[0], labels, np.where(month > "", "2026-01", "2026-02"))
    )
    assert np.isnan([one.slope, one.p_value, one.low, one.f_p_value]).all()
    perfect = jm.trend(jm.slices(jm.roc_auc, labels * 1.0, labels, month))
    assert (perfect.slope, perfect.p_value) == (0, 1)
    area = partial(jm.partial_auc, max_fpr=0.1)  # each is 0.1, whose mean is rounded
    perfect = jm.trend(jm.slices(area, labels * 1.0, labels, month))
    found = perfect.slope, perfect.low, perfect.high, perfect.p_value, perfect.f_p_value
    assert found == (0, 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s: jm.trend([1, 2]), TypeError, "slices must be a Slices"),
        (lambda s: jm.trend(s, times=[1, 2]), ValueError, "a number for each of the 6 names"),
    ],
)
def test_refused(found, make, error, message):
    with pytest.raises(error, match=message):
        make(found[0])


def test_crossed_slices_are_refused(data):
    scores, labels, month = data
    crossed = jm.slices(jm.roc_auc, scores, labels, (month, np.arange(N) % 2))
    with pytest.raises(ValueError, match="two that are crossed"):
        jm.trend(crossed)


@pytest.mark.slow
def test_size_and_coverage():
    """Of 8 slices of 15 positives with an AUC of .9: inverse variances err in .15 and more."""
    rng, errors, misses, n = np.random.default_rng(0), 0, 0, 150
    labels, month = np.tile(np.arange(75) < 15, 8), np.arange(8).repeat(75)
    for _ in range(n):
        scores = rng.normal(size=600) + 1.8 * labels
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, month, min_items=10))
        errors += found.p_value < 0.05
        misses += not found.low <= 0 <= found.high
    assert errors == misses <= stats.binom.ppf(0.999, n, 0.07)


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


def test_months_of_the_command(data, tmp_path):
    """The sentence, the tables, the records and the figure."""
    scores, labels, month = data
    table = pd.DataFrame({"y": labels * 1, "old": scores[0], "new": scores[1], "month": month})
    table.to_csv(tmp_path / "d.csv", index=False)
    result = run(
        *("evaluate", tmp_path / "d.csv", "--label", "y", "--score", "old", "--score", "new"),
        *("--slice", "month", "--n-resamples", 20, "--output", tmp_path / "out"),
    )
    assert result.exit_code == 0, result.output
    assert "Trend over month" in result.output
    left_out = "of AUC none; of Partial AUC to 1 % FPR 2026-01, 2026-02,"
    assert left_out in " ".join(result.output.split())
    record = json.loads((tmp_path / "out/metrics.json").read_text())["trends"]["month"]["roc_auc"]
    assert record["unit"] == "month"
    assert record["models"]["new"]["p_value"] < 1e-6 < record["models"]["old"]["p_value"]
    rows = pd.read_csv(tmp_path / "out/metrics.csv")
    slopes = rows[rows.metric == "roc_auc_slope"]
    assert list(slopes.model) == ["old", "new", "old"]
    np.testing.assert_allclose(slopes.value.iloc[1], record["models"]["new"]["value"])
    counted = [("n_items", len(table)), ("n_positive", labels.sum())]
    assert all((slopes[name] == n).all() and record[name] == n for name, n in counted)
    page = (tmp_path / "out/report.html").read_text()
    assert "trend over month" in page
    assert "new falls by" in page
    assert "no slice has enough items to be tested" in page  # by partial AUC
    assert "in no slice" not in page
    assert (tmp_path / "out/slices.png").stat().st_size > 10_000


def test_the_page_begins_with_what_is_worse(data, tmp_path):
    """Whichever slices are asked for first; and one month has no trend to be significant."""
    scores, labels, month = data
    early = month == MONTHS[0]
    device = np.arange(N) // 6 % 2
    random = np.random.default_rng(5).normal(size=N)
    worse = np.where(device == 1, random, scores[0] + 2 * labels)
    table = pd.DataFrame({"y": labels * 1, "old": scores[0], "new": worse, "month": month})
    table[early].assign(device=device[early]).to_csv(tmp_path / "d.csv", index=False)
    problem = _report.problem_of_file(
        tmp_path / "d.csv", label="y", scores=["old", "new"], slices=["month", "device"]
    )
    settings = _report.Settings(n_resamples=20)
    evaluation = _report.evaluate_problem(problem, settings, lambda *x: None)
    page = _page.page_of(settings, evaluation, [], {})  # without figures, which take longest
    assert "too few months for a trend of old, new and new minus old" in page
    assert "no significant trend" not in page
    assert 0 < page.index("AUC, by device") < page.index("AUC, by month")


def test_figure(found):
    ax = plots.trend(found[0], names=["old", "new"], metric="AUC")
    assert ax.get_xticklabels()[0].get_text() == MONTHS[0]
    assert ax.get_ylabel() == "AUC"
    legend = [x.get_text() for x in ax.get_legend().get_texts()]
    assert any(x.startswith("new, trend p < 0.001") for x in legend)


def test_a_figure_of_slices_that_are_all_too_small_has_crosses_alone(found):
    slices = dataclasses.replace(found[0], tested=np.zeros(6, bool))
    ax = plots.trend(slices, names=["old", "new"])
    assert [x.get_text() for x in ax.get_legend().get_texts()] == ["too few items"]
    assert len(ax.get_xticks())
    assert not len(ax.get_yticks())


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
    labels, names = np.arange(300) % 2 == 0, np.array(["2026-11", "2026-12", "2026-13"])
    found = jm.slices(jm.roc_auc, rng.normal(size=300), labels, names[np.arange(300) % 3])
    with pytest.raises(ValueError, match="got '2026-13'"):
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


def test_sizes_of_weighted_slices_are_effective(rng):
    """From which degrees of freedom and weights of slices follow; equal weights change nothing."""
    labels, months = np.tile(np.arange(60) < 20, 4), np.arange(240) // 60
    scores, weights = rng.normal(size=240) + labels, rng.lognormal(size=240)
    plain, equal, found = (
        jm.slices(jm.roc_auc, scores, labels, months, weights=x)
        for x in (None, np.full(240, 3.0), weights)
    )
    sizes = [
        [np.sum(x) ** 2 / np.sum(x**2) for x in (w[20:], w[:20])] for w in weights.reshape(4, 60)
    ]
    np.testing.assert_allclose(found.effective, sizes, rtol=1e-5)
    np.testing.assert_allclose(plain.effective, [[40, 20]] * 4)
    a, b = map(jm.trend, (plain, equal))
    np.testing.assert_allclose(a.f_p_value, b.f_p_value, rtol=1e-4)
    of_counts = jm.trend(dataclasses.replace(found, effective=None))
    assert jm.trend(found).df < 0.8 * of_counts.df
