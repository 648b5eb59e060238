"""Slices in a report: their metrics, differences and findings."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reports import NAMES, evaluation_of, printed_of

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _cells, _findings, _slices
from jaxmetrics._report._evaluation import Measure, Slices


def test_slices_are_the_metrics_of_their_items(data, output):
    """With Bonferroni's level, and nothing where a class is absent."""
    slices = json.loads((output / "metrics.json").read_text())["slices"]["country"]
    assert list(slices) == ["none positive", "north", "south", "missing"]
    for value, found in slices.items():
        items = data["country"] == ("" if value == "missing" else value)
        assert found["n_items"] == items.sum()
        assert found["n_positive"] == data["y"][items].sum()
    assert slices["none positive"]["models"]["a"]["roc_auc"]["value"] is None
    items = data["country"] == "north"
    for name in NAMES:
        for key, metric in (
            ("roc_auc", jm.roc_auc),
            ("partial_auc", partial(jm.partial_auc, max_fpr=0.1, scale="mcclish")),
        ):
            exact = jm.confidence_interval(
                metric,
                data[name].to_numpy(),
                data["y"].to_numpy(),
                where=items.to_numpy(),
                confidence_level=1 - 0.05 / 4,
            )
            found = slices["north"]["models"][name][key]
            assert found["value"] == pytest.approx(float(exact.estimate), rel=1e-5)
            assert found["simultaneous_low"] == pytest.approx(float(exact.low), rel=1e-4)
            assert found["simultaneous_high"] == pytest.approx(float(exact.high), rel=1e-4)


def test_models_are_compared_within_slices(data, output):
    """As by `compare` of the items of the slice, adjusted by Sidak for the two that are tested."""
    report = json.loads((output / "metrics.json").read_text())
    frame = pd.read_csv(output / "metrics.csv").query("slice == slice and minus == minus")
    assert len(frame) == 4 * 2
    for key, metric in (
        ("roc_auc", jm.roc_auc),
        ("partial_auc", partial(jm.partial_auc, max_fpr=0.1, scale="mcclish")),
    ):
        (found,) = report["slices"]["country"]["north"]["differences"][key]
        items = (data["country"] == "north").to_numpy()
        exact = jm.compare(metric, data[list(NAMES)].to_numpy().T, data["y"], where=items)
        assert (found["model"], found["minus"]) == NAMES
        for field in ("value", "low", "high", "p_value"):
            alone = getattr(exact, "difference" if field == "value" else field)[0, 1]
            assert found[field] == pytest.approx(float(alone), rel=1e-3, abs=1e-9), field
        adjusted = 1 - (1 - found["p_value"]) ** 2
        assert found["simultaneous_p_value"] == pytest.approx(adjusted, rel=1e-6)
        assert found["simultaneous_low"] < found["low"] < found["high"] < found["simultaneous_high"]
        (row,) = frame[(frame.metric == key) & (frame.slice == "country = north")].to_dict(
            "records"
        )
        assert (row["model"], row["minus"]) == ("a", "'=b <i>")
        for field in ("value", "simultaneous_low", "simultaneous_p_value"):
            assert row[field] == pytest.approx(found[field])
        (small,) = report["slices"]["country"]["missing"]["differences"][key]
        assert small["simultaneous_low"] is None
        assert small["simultaneous_p_value"] is None


def test_the_page_has_the_differences_within_slices(page, output):
    """Of the second model from the first, the reverse of the pair in JSON."""
    report = json.loads((output / "metrics.json").read_text())
    part = page[page.index("<h3>=b &lt;i&gt; minus a, by country</h3>") :]
    rows = dict(re.findall(r"<th scope=.row.>(.*?)</th>(.*?)</tr>", part, re.DOTALL)[:4][::-1])
    found = report["slices"]["country"]
    for value, row in rows.items():
        cells = re.findall(r"<td>(?:<strong>)?(-?[.\d]+|-)", row)
        (pair,) = found[value]["differences"]["roc_auc"]
        assert cells[:2] == [str(found[value][x]) for x in ("n_items", "n_positive")]
        if pair["value"] is None:
            assert cells[2] == "-"
        else:
            assert float(cells[2]) == pytest.approx(-pair["value"], abs=6e-4)
        assert ("<small>" in row) == (value in ("north", "south"))
    said = page.index(
        "<b>AUC, by country:</b> =b &lt;i&gt; is significantly worse than a in no slice"
    )
    assert page.index("<b>Largest Youden") < said  # what is open comes after what was asked for


def _slices_of(low, high, tested, names="xyz"):
    """Slices whose models differ from the first by these limits `[slices, later models]`."""
    low, high = (np.asarray(x, float) for x in (low, high))
    n, k = low.shape[0], low.shape[1] + 1
    lows, highs = np.zeros((n, k, k)), np.zeros((n, k, k))
    lows[:, 1:, 0], highs[:, 1:, 0] = low, high
    middle = (lows + highs) / 2
    differences = jm.SliceDifferences(
        *(middle, middle, lows, highs, middle * 0 + 0.01, lows, highs, middle * 0 + 0.02)
    )
    flat = np.zeros((n, k))
    tested = np.array(tested)
    counts = np.full(n, 50)
    found = jm.Slices(
        *(tuple("stuv"[:n]), counts, counts, tested, flat, flat, flat, flat),
        *(differences, differences, 0.95),
    )
    interval = jm.Interval(flat, flat, flat, flat, "closed form", 0.95)
    measure = Measure("roc_auc", "Area\nunder", interval)
    many = (50,) * n
    part = Slices("country", ("DK", "FI", "NO", "SE")[:n], many, many, (measure,), (found,))
    return evaluation_of(names, -1, 1)._replace(slices=(part,))


def test_findings_say_in_which_slices_the_new_model_is_worse():
    nan = np.nan
    evaluation = _slices_of(
        [[-0.3], [nan], [0.1], [-0.1]], [[-0.1], [nan], [0.3], [0.1]], [1, 0, 1, 1], "xy"
    )
    found = _findings.findings_of(evaluation)[-1]
    assert found.metric == "Area under, by country"
    assert found.answer == (
        "y is significantly worse than x in DK, and significantly better in 1 of 3 tested slices; "
        "in 1 of 3 tested slices it cannot be said which is better"
    )
    assert found.detail == (
        "DK: lower by 0.200 [0.100, 0.300], p = 0.020; 95 % intervals are simultaneous for all "
        "slices; fewer than 20 positives or negatives, or 3 within the limit, so not tested: FI"
    )
    text = printed_of(evaluation)
    assert "y minus x, by country" in text
    lines = {line.split()[0]: line.split()[3:] for line in text.splitlines() if line.strip()}
    assert lines["DK"] == ["-0.200,", "p", "=", "0.020", "worse"]
    assert lines["NO"] == ["0.200,", "p", "=", "0.020", "better"]
    assert lines["SE"] == ["0.000,", "p", "=", "0.020"]
    assert lines["FI"] == ["-"]
    assert "difference without brackets is not tested" in " ".join(text.split())
    cells = _cells.slice_cells(evaluation.slices[0].compared[0].models, 1)
    assert [(x.worse, x.best) for x in cells] == [(1, 0), (0, 0), (0, 1), (0, 0)]


def test_findings_of_several_models_in_slices():
    """Those that are worse nowhere share a sentence."""
    low, high = [[-0.3, 0.1], [-0.4, -0.1]], [[-0.1, 0.2], [-0.2, 0.1]]
    evaluation = _slices_of(low, high, [1, 1])
    found = _findings.findings_of(evaluation)[-1]
    assert found.answer == (
        "y is significantly worse than x in DK and FI; z is significantly worse than x in no "
        "slice, and significantly better in 1 of 2 slices; in 1 of 2 slices it cannot be said "
        "which is better"
    )
    assert found.detail.startswith("DK: y lower by 0.200")
    found = _findings.findings_of(_slices_of([[-1], [np.nan]], [[1], [np.nan]], [1, 0], "xy"))[-1]
    words = "in no slice; in the only tested slice it cannot be said which is better"
    assert found.answer.endswith(words)
    found = _findings.findings_of(_slices_of([[-1, -1]], [[1, 1]], [1]))[-1]
    assert found.answer == (
        "y and z are significantly worse than x in no slice; in all 2 slices of models it cannot "
        "be said which is better"
    )
    assert printed_of(evaluation).count("simultaneous for all slices and pairs of models") == 2


def test_columns_of_many_numbers_are_cut_in_fifths():
    column = _slices.column_of("age", pd.Series(np.arange(100) / 2))
    assert len(column.values) == 5
    assert (np.bincount(column.codes) == 20).all()
    assert column.values[:2] == ("0 to 9.5", "10 to 19.5")
    assert not column.note
    ids = _slices.column_of("store", pd.Series([*range(100, 125), None]))
    assert ids.values == ("100 to 104", *ids.values[1:5], "missing")
    assert "slice 'store' has 25 distinct whole numbers, so slices are ranges of them" in ids.note
    days = _slices.column_of("day", pd.Series(range(100))).note
    assert days.endswith("count days, write dates, as 2026-03-15, which become weeks or months")
    none = _slices.column_of("c", pd.Series(["missing", "a", None]))
    assert none.values == ("a", "missing", "(missing)")
    few = _slices.column_of("age", pd.Series([3, 1, None, 3]))
    assert few.values == ("1.0", "3.0", "missing")
    assert few.codes.tolist() == [1, 0, 2, 1]
    with pytest.raises(_report.InputError, match="'id' has 30 distinct values, more than 20"):
        _slices.column_of("id", pd.Series([f"x{i}" for i in range(30)]))


@pytest.mark.parametrize(
    ("clock", "factor"),
    [("seconds", 1), ("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9)],
)
def test_numbers_of_a_clock_are_dates(clock, factor):
    """A trend would be one per second, and called one per day."""
    seconds = 1_735_689_600 + 86_400 * np.array([0, 3, 1, 1])
    found = _slices.column_of("day", pd.Series([*(factor * seconds).tolist(), None], dtype="Int64"))
    assert found.values == ("2025-01-01", "2025-01-02", "2025-01-04", "missing")
    np.testing.assert_array_equal(found.times, [0, 1, 3, np.nan])
    assert found.unit == "day"
    words = f"taken as {clock} since 1970, in UTC, such as {seconds[0] * factor} for 2025-01-01"
    assert words in found.note
    weeks = factor * (1_735_689_600 + 86_400 * np.arange(60))
    words = "too many days, so slices are by week: for months, write them as 2026-03"
    assert words in _slices.column_of("day", pd.Series(weeks)).note
    assert _slices.column_of("store", pd.Series(factor * seconds)).times is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time", 1_700_000_000 + np.arange(100)),  # of one day
        ("time", [1_700_000_000, 1_700_000_001]),
        ("day", [15032026, 16032026]),
        ("hour and day", [2026031512, 2026031513]),
    ],
)
def test_numbers_too_large_to_count_days_are_no_times(name, values):
    found = _slices.column_of(name, pd.Series(values))
    assert found.times is None
    words = f"not taken as time, because {values[0]} is no date: write it as 2026-03-15, or drop it"
    assert words in found.note
    assert ("slices are ranges of them" in found.note) == (len(values) > 20)


def test_the_level_of_all_slices_is_what_readers_see(output, page):
    """That of each of four slices by itself is in one sentence of the page."""
    texts = re.sub("<svg.*?</svg>", "", page, flags=re.S)
    assert texts.count("each by itself has the level 98.75 %") == texts.count("98.75 %") == 1
    assert "hold for all slices at once, with 95 % confidence" in texts
    figure = (output / "slices.svg").read_text()
    assert "95 % interval, all slices at once" in figure
    assert "98.75" not in figure
