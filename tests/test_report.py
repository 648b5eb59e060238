"""The report that --output writes: one page, its figures and numbers, also by slice."""

import html
import io
import json
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from itertools import pairwise
from xml.etree import ElementTree

import jax
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

import jaxmetrics as jm
from jaxmetrics import _report, cli
from jaxmetrics._report import (
    InputError,
    _cells,
    _figures,
    _findings,
    _fonts,
    _metrics,
    _output,
    _slices,
)
from jaxmetrics._report import _page as pages
from jaxmetrics._report._columns import numbers_of
from jaxmetrics._report._evaluation import Evaluation, Measure, Slices

N = 300
NAMES = ("a", "=b <i>")
COMMAND = "jaxmetrics evaluate data.csv --score '=b <i>'"
FIGURES = ("intervals", "roc", "precision_recall", "scores", "cost", "slices")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    y = rng.random(N) < 0.3
    scores = {
        name: np.round(rng.normal(size=N) + k * y, 1) for name, k in zip(NAMES, (1, 3), strict=True)
    }
    country = rng.choice(["north", "south"], N).astype(object)
    country[:20] = np.where(y[:20], "south", "none positive")
    country[20:25] = ""
    return pd.DataFrame({"y": y.astype(int), "country": country, **scores})


@pytest.fixture(scope="module")
def output(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data.to_csv(folder / "data.csv", index=False)
    scores = [x for name in NAMES for x in ("--score", name)]
    arguments = [
        *("evaluate", folder / "data.csv", "--label", "y", *scores, "--slice", "country"),
        *("--fn-cost", 7, "--max-fpr", 0.1, "--n-resamples", 40, "--criterion", "youden"),
        *("--output", folder / "out"),
    ]
    result = CliRunner().invoke(
        cli.commands(), [str(x) for x in arguments], obj=COMMAND, catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture(scope="module")
def page(output):
    return (output / "report.html").read_text(encoding="utf-8")


def test_every_figure_is_a_file_in_two_formats(output):
    expected = {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}
    expected |= {"report.html", "metrics.json", "metrics.csv"}
    assert {path.name for path in output.iterdir()} == expected
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (output / f"{name}.svg").read_text()


def test_the_page_needs_nothing_else(page):
    """Nothing is loaded, not even from beside it."""
    assert page.count("<svg") == len(FIGURES)
    assert not re.search(r"<(script|link|img|iframe|object)\b", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert not re.search(r"url\((?!#)|@import", page)


def test_the_page_begins_with_the_answer(page):
    assert 0 < page.index("=b &lt;i&gt; has the highest value, ") < page.index("<table")


def test_details_are_folded(page):
    """Before them: the answer, one table, and two figures. In them: all else, each at an anchor."""
    first, *details = re.split("<details>", page)
    assert "<details" not in first
    assert (first.count("<table"), first.count("<svg")) == (1, 2)
    assert re.findall('figure id="(.*?)"', first) == ["figure-intervals", "figure-roc"]
    anchors = [re.search('<div id="(.*?)"', x)[1] for x in details]
    assert anchors == ["more", "pairs", "points", "slices", "figures", "data", "made"]
    assert re.findall('<a href="#(.*?)"', first) == ["values", *anchors]
    of_figures = re.findall('figure id="figure-(.*?)"', details[4])
    assert ["intervals", "roc", *of_figures] == [*FIGURES]


def test_of_many_models_the_page_begins_with_the_best(drawings):
    """And has all of them below, as it has the findings and notes that are too many."""
    page = _page_of_many(drawings)
    first, more = page.split("<details>", 1)
    assert first.count('<th scope="row">') == 8
    assert "Of 20 models, these have the highest AUC" in first
    assert more.index('id="more"') < more.index('id="all"') < more.index('id="pairs"')
    table = more[more.index("<h3>All models</h3>") : more.index('id="pairs"')]
    assert table.count('<th scope="row">') == 20
    assert re.findall('figure id="figure-(.*?)"', first) == ["roc"]
    assert (first.count("Note: "), more.count("Note: ")) == (3, 5)


def test_names_are_taken_literally(page):
    assert "b <i>" not in page
    assert page.count("b &lt;i&gt;") > 10


def test_figures_have_names_and_ids_of_their_own(page, output):
    figures = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert len(figures) == len(FIGURES)
    assert figures[1].startswith("ROC curves. The right panel")
    assert re.findall(r"<title>(.*?)</title>", page)[1:3] == [
        "Values with their intervals",
        "ROC curves",
    ]
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 50
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', page)) <= {*ids}
    assert "<title>ROC curves</title>" in (output / "roc.svg").read_text(encoding="utf-8")


def test_spreadsheets_see_no_formula_in_a_name(output):
    models = pd.read_csv(output / "metrics.csv")["model"]
    assert {*models} == {"a", "'=b <i>"}
    assert list(json.loads((output / "metrics.json").read_text())["models"]) == [*NAMES]


def test_the_page_has_every_number_of_the_tables(page, output):
    """In the row of its model and the column of its metric."""
    report = json.loads((output / "metrics.json").read_text())
    table = page[page.index('id="values"') : page.index('id="pairs"')]
    rows = re.findall(r"<tr><th scope=.row.>(.*?)</th>(.*?)</tr>", table, re.DOTALL)
    for (name, model), (heading, row) in zip(report["models"].items(), rows, strict=True):
        assert heading == html.escape(name)
        cells = re.findall(r"<td>(?:<strong>)?([.\d]+)\*?(?:</strong>)?<small>", row)
        recalls = [model["recall_at_fpr"][limit] for limit in ("0.01", "0.05", "0.1")]
        found = [model["roc_auc"], model["partial_auc"], *recalls, model["average_precision"]]
        for cell, estimate in zip(cells, found, strict=True):
            digits = len(cell.partition(".")[2])
            assert float(cell) == pytest.approx(estimate["value"], abs=0.51 * 10**-digits)
    assert "A false positive costs 1, a false negative 7 (" in page
    assert page.count("jaxmetrics evaluate data.csv --score") == 1
    assert f"jax {report['versions']['jax']}" in page


def test_the_thresholds_of_least_cost(data, output, page):
    report = json.loads((output / "metrics.json").read_text())
    for name in NAMES:
        found = report["least_cost"][name]
        scores, labels = data[name].to_numpy(), data["y"].to_numpy()
        exact = jm.min_cost_threshold(scores, labels, fn_cost=7)
        assert found["threshold"] == pytest.approx(float(exact), rel=1e-6)
        flagged = scores >= found["threshold"]
        assert found["cost"] == np.sum(flagged & (labels == 0)) + 7 * np.sum(~flagged & labels)
    assert page.count("Threshold of least cost") == 2


def test_what_thresholds_do(data, output, page):
    """At the FPR asked for, at the least cost and at Youden's index, with the threshold in use."""
    found = json.loads((output / "metrics.json").read_text())["operating_points"]
    assert list(found) == ["max_fpr", "least_cost", "youden"]
    labels = data["y"].to_numpy() == 1
    for rule, models in found.items():
        for name in NAMES:
            point, flagged = (
                models[name],
                data[name].to_numpy() >= models[name]["threshold"]["value"],
            )
            values = {
                "recall": flagged[labels].mean(),
                "fpr": flagged[~labels].mean(),
                "precision": labels[flagged].mean(),
                "npv": (~labels)[~flagged].mean(),
                "cost": (flagged & ~labels).mean() + 7 * (~flagged & labels).mean(),
            }
            for field, value in values.items():
                assert point[field]["value"] == pytest.approx(value), (rule, field)
                assert point[field]["low"] <= value <= point[field]["high"]
        assert all(
            x["cost"]["value"] >= found["least_cost"][k]["cost"]["value"] for k, x in models.items()
        )
    for name in NAMES:
        curve = jm.roc_curve(data[name].to_numpy(), labels)
        at_best = found["youden"][name]
        best = at_best["recall"]["value"] - at_best["fpr"]["value"]
        assert best == pytest.approx(float(np.max(curve.tpr - curve.fpr)), abs=1e-6)
    assert found["max_fpr"]["a"]["fpr"]["value"] <= 0.1
    part = page[page.index('id="points"') : page.index('id="slices"')]
    assert re.findall("<h3>(.*?)</h3>", part) == [
        "FPR of at most 10 %",
        "Least cost",
        "Largest Youden&#39;s index",
    ]
    assert "prevalence" not in page
    assert "best" not in re.sub(r'<p class="about">.*?</p>', "", part)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.00045, 0.00045, 0.00045), ("0.00045", "0.00045", "0.00045")),
        ((0.0375, 0.03, np.inf), ("0.0375", "0.03", "inf")),
        ((1.234567e-6, 1.234512e-6, 1.3e-6), ("1.2346e-06", "1.2345e-06", "1.3e-06")),
        ((2e300, 1e300, 3e300), ("2e+300", "1e+300", "3e+300")),
        ((67_901.4, 67_901.2, 67_902.0), ("67,901.4", "67,901.2", "67,902")),
    ],
)
def test_thresholds_have_the_digits_of_scores(values, texts):
    cell = _cells._threshold_cell(*values)
    assert (cell.value, *cell.interval) == texts


def test_json_has_infinite_numbers_as_texts():
    found = json.loads(_output.json_of({"a": [{"low": -np.inf}, np.float64(np.inf), 1.5, None]}))
    assert found == {"a": [{"low": "-inf"}, "inf", 1.5, None]}


def test_what_thresholds_do_is_in_the_csv(output):
    report = json.loads((output / "metrics.json").read_text())
    frame = pd.read_csv(output / "metrics.csv").query("rule == rule")
    n = {len(x) for models in report["operating_points"].values() for x in models.values()}
    assert n == {7}
    assert len(frame) == 3 * len(NAMES) * 7
    for _, row in frame.iterrows():
        models = report["operating_points"][row["rule"]]
        found = models[row["model"].lstrip("'")][row["metric"]]
        assert row["value"] == pytest.approx(found["value"])
        assert row["max_fpr"] == 0.1 or row["rule"] != "max_fpr"


@pytest.fixture(scope="module")
def elsewhere(data):
    """Thresholds for a use where fewer are positive; nothing is written."""
    settings = _report.Settings(0.1, 40, fn_cost=7, criterion="youden", prevalence=0.02)
    labels, scores = data["y"].to_numpy() == 1, data[list(NAMES)].to_numpy().T
    problem = _report.Problem("f", "y", NAMES, scores, labels, None, None, None, None, ())
    return settings, _report.evaluate_problem(problem, settings, lambda *x: None)


def test_thresholds_at_another_prevalence(data, elsewhere):
    """Precision, NPV, share flagged and cost are there, and the least cost is chosen there."""
    settings, evaluation = elsewhere
    report, p = _report.report(settings, evaluation), 0.02
    assert report["prevalence"] == p
    labels = data["y"].to_numpy() == 1
    for name in NAMES:
        scores = data[name].to_numpy()
        models = {rule: x[name] for rule, x in report["operating_points"].items()}
        assert list(models) == ["max_fpr", "least_cost", "youden"]
        for rule, point in models.items():
            flagged = scores >= point["threshold"]["value"]
            recall, fpr = flagged[labels].mean(), flagged[~labels].mean()
            share = p * recall + (1 - p) * fpr
            values = {
                "recall": recall,
                "fpr": fpr,
                "precision": p * recall / share,
                "npv": (1 - p) * (1 - fpr) / (1 - share),
                "flagged": share,
                "cost": (1 - p) * fpr + 7 * p * (1 - recall),
            }
            for field, value in values.items():
                assert point[field]["value"] == pytest.approx(value), (rule, field)
        costs = [x["cost"]["value"] for x in models.values()]
        assert min(costs) == models["least_cost"]["cost"]["value"]
        table = jm.score_table(scores[None], labels)
        best = _metrics.least_cost(table, (name,), settings)[name]
        assert best["threshold"] == pytest.approx(models["least_cost"]["threshold"]["value"])
        assert best["cost"] / N == pytest.approx(models["least_cost"]["cost"]["value"])


def test_the_prevalence_is_named(elsewhere):
    """Where the numbers are: under the tables, on the page and in the CSV."""
    settings, evaluation = elsewhere
    console = Console(width=200, file=io.StringIO())
    for table in _report.tables_of(evaluation, console):
        console.print(table)
    printed = " ".join(console.file.getvalue().split())
    headings = [f"Threshold: {x}" for x in ("FPR of", "Least cost", "Largest Youden's index")]
    assert all(printed.count(x) == 1 for x in headings)
    page = pages.page_of(settings, evaluation, [], {})
    for text in (printed, page):
        assert "precision, NPV, share flagged and cost are those at a prevalence of 2 %" in text
    frame = _output.frame_of(evaluation)
    at = frame["metric"].isin(["precision", "npv", "flagged", "cost"])
    assert at.sum() == 4 * 3 * len(NAMES)
    assert (frame["prevalence"][at] == 0.02).all()
    assert frame["prevalence"][~at].isna().all()


def test_the_figure_of_costs_is_at_the_prevalence(data):
    scores, labels = data["a"].to_numpy(), data["y"].to_numpy()
    table = jm.score_table(scores[None], labels)
    found = []
    for prevalence in (None, labels.mean(), 0.02):
        settings = _report.Settings(fn_cost=7, prevalence=prevalence)
        (ax,) = _figures._draw_cost(table, ("a",), settings).axes
        best = _metrics.least_cost(table, ("a",), settings)["a"]
        assert ax.get_lines()[1].get_ydata()[0] == pytest.approx(best["cost"])
        found.append(best)
    assert found[0]["cost"] == pytest.approx(found[1]["cost"])
    assert found[2]["threshold"] > found[0]["threshold"]


def test_the_numbers_of_slices_are_in_the_csv(output):
    report = json.loads((output / "metrics.json").read_text())
    frame = pd.read_csv(output / "metrics.csv")
    rows = frame[(frame["slice"] == "country = north") & frame["minus"].isna()]
    assert len(rows) == 4
    for _, row in rows.iterrows():
        found = report["slices"]["country"]["north"]["models"][row["model"].lstrip("'")][
            row["metric"]
        ]
        assert row["value"] == pytest.approx(found["value"])
        assert row["simultaneous_low"] == pytest.approx(found["simultaneous_low"])


def test_every_row_of_the_csv_has_its_counts(data, output):
    frame = pd.read_csv(output / "metrics.csv")
    country = data["country"].replace("", "missing")
    of_slice = {f"country = {x}": country == x for x in country.unique()}
    assert len(frame) == len(frame.dropna(subset=["n_items", "n_positive"])) > 30
    assert len(of_slice) == frame["slice"].nunique()
    for _, row in frame.iterrows():
        labels = data["y"][of_slice.get(row["slice"], slice(None))]
        assert (row["n_items"], row["n_positive"]) == (len(labels), labels.sum())


def test_the_scale_of_a_partial_auc_is_named(output):
    """It is not the default of jm.partial_auc."""
    report = json.loads((output / "metrics.json").read_text())
    of_slice = report["slices"]["country"]["north"]["models"]["a"]
    for found in (report["models"]["a"], report["comparison"], of_slice):
        assert found["partial_auc"]["scale"] == "mcclish"
        assert "scale" not in found["roc_auc"]
    frame = pd.read_csv(output / "metrics.csv")
    partial_areas = frame["metric"] == "partial_auc"
    assert (frame["scale"][partial_areas] == "mcclish").all()
    assert frame["scale"][~partial_areas].isna().all()


def test_facts_of_the_data(data, output, page):
    report = json.loads((output / "metrics.json").read_text())
    for name in NAMES:
        counts = data[name].value_counts()
        assert report["n_tied"][name] == counts[counts > 1].sum()
    assert report["n_duplicates"] == data[["y", *NAMES]].duplicated().sum() > 0
    assert f"<dt>Rows</dt><dd>{N}</dd>" in page


# Slices.


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
    assert 0 < page.index("<b>AUC, by country:</b> =b &lt;i&gt; is ") < page.index("<table")


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
    return _evaluation_of(names, -1, 1)._replace(slices=(part,))


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
    text = _printed(evaluation)
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
    found = _findings.findings_of(_slices_of([[-1, -1]], [[1, 1]], [1]))[-1]
    assert found.answer == (
        "y and z are significantly worse than x in no slice; in 2 of 2 slices of models it cannot "
        "be said which is better"
    )
    assert _printed(evaluation).count("simultaneous for all slices and pairs of models") == 2


def test_columns_of_many_numbers_are_cut_in_fifths():
    column = _slices.column_of("age", pd.Series(np.arange(100) / 2))
    assert len(column.values) == 5
    assert (np.bincount(column.codes) == 20).all()
    assert column.values[:2] == ("0 to 9.5", "10 to 19.5")
    times = _slices.column_of("time", pd.Series(1_700_000_000 + np.arange(100)))
    assert times.values[0] == "1700000000 to 1700000019"
    none = _slices.column_of("c", pd.Series(["missing", "a", None]))
    assert none.values == ("a", "missing", "(missing)")
    few = _slices.column_of("age", pd.Series([3, 1, None, 3]))
    assert few.values == ("1.0", "3.0", "missing")
    assert few.codes.tolist() == [1, 0, 2, 1]
    with pytest.raises(_report.InputError, match="'id' has 30 distinct values, more than 20"):
        _slices.column_of("id", pd.Series([f"x{i}" for i in range(30)]))


# Sentences.


def _findings_of(estimates, best_set, difference, **more):
    estimates = np.array(estimates)
    difference = np.array(difference)
    interval = jm.Interval(estimates, estimates - 0.1, estimates + 0.1, 0 * estimates, "wald", 0.9)
    n = len(estimates)
    pairs = (difference, *[np.zeros((n, n))] * 4, difference - 0.05, difference + 0.05)
    comparison = jm.Comparison(
        estimates, *pairs, np.full((n, n), 0.02), np.array(best_set), 0.0, 1, 0.5, 0.9
    )
    measure = Measure("roc_auc", "Area\nunder", interval, comparison, **more)
    names = tuple("xyz"[:n])
    return _findings.findings_of(Evaluation(names, {}, (), "", "", (measure,), (), ()))[0]


def test_findings_say_who_is_best_and_who_is_not_significantly_worse():
    difference = [[0, -0.2, -0.3], [0.2, 0, -0.1], [0.3, 0.1, 0]]
    found = _findings_of([0.5, 0.7, 0.8], [False, False, True], difference)
    assert found.metric == "Area under"
    assert found.answer == (
        "z has the highest value, 0.800 [0.700, 0.900], and is significantly better than all others"
    )
    assert found.detail.startswith("By simultaneous 90 % intervals of all pairs, x is lower")
    assert ", x is lower by 0.300 [0.250, 0.350], p = 0.020; y is lower by 0.100" in found.detail
    found = _findings_of([0.5, 0.7, 0.8], [True, True, True], difference)
    assert found.answer.endswith("; not significantly worse: x and y")
    assert found.detail == "All pairs of models are compared, with simultaneous 90 % intervals"
    found = _findings_of([0.5, 0.7, 0.8], [True, True, True], difference, enough=1234.0)
    assert found.detail.endswith(
        "; if the first two differ by as much as here, 1,234 positives, and negatives in "
        "proportion, would show it with a power of 80 %"
    )
    found = _findings_of([0.8, 0.7], [True, False], [[0, 0.1], [-0.1, 0]])
    best = "x has the highest value, 0.800 [0.700, 0.900], and is significantly better"
    assert found.answer == best
    assert "y is lower by 0.100 [0.050, 0.150]" in found.detail
    # Outside of the best set, which is one-sided, but its two-sided interval includes 0.
    found = _findings_of([0.8, 0.77], [True, False], [[0, 0.03], [-0.03, 0]])
    assert found.answer.endswith(
        "; by one-sided tests the other model is significantly worse, by two-sided ones not all"
    )
    found = _findings_of([0.8, np.nan], [True, True], [[0, np.nan], [np.nan, 0]])
    assert found.answer == "undefined"


def _evaluation_of(names, low, high, estimate=0.0, p=np.nan, chi2=np.nan):
    """Models that have the same value, with these limits of their differences."""
    n = len(names)
    pair = np.zeros((n, n))
    value = np.full(n, estimate)
    interval = jm.Interval(value, value - 0.1, value + 0.1, value, "wald", 0.95)
    comparison = jm.Comparison(
        *(value, pair, pair, pair, pair, pair + p, pair + low, pair + high, pair + p),
        *(np.full(n, True), chi2, 1, chi2, 0.95),
    )
    measure = Measure("roc_auc", "AUC", interval, comparison)
    return Evaluation(
        tuple(names), {"n_items": 9, "file": "f", "label": "y"}, (), "t", "", (measure,), (), ()
    )


def _printed(evaluation):
    console = Console(file=io.StringIO(), width=100)
    for table in _report.tables_of(evaluation, console):
        console.print(table)
    return console.file.getvalue()


def _page(evaluation):
    return pages.page_of(_report.Settings(), evaluation, [], {})


@pytest.mark.parametrize(("low", "high", "p"), [(np.nan, np.nan, np.nan), (0, 0, 1)])
def test_what_cannot_be_said_is_not_said(low, high, p):
    """As with one positive, where no resample tells models apart."""
    evaluation = _evaluation_of("xyz", low, high, p=p, chi2=p)
    found = _findings.findings_of(evaluation)[0]
    assert found.answer == "all models have the value 0.000"
    assert "nothing can be said of which is better" in found.detail
    (measure,) = evaluation.measures
    assert [cell[:4] for cell in _cells.value_cells(measure)] == [
        ("0.000", ("-0.100", "0.100"), False, " ")
    ] * 3
    assert _cells.difference_cells(measure) == [_cells.Cell("0.000", mark="  ")] * 3
    for text in (_printed(evaluation), _page(evaluation)):
        assert "-, -" not in text
        assert "p = " not in text
        assert "without brackets has no interval" in " ".join(text.split())
        assert not re.search(r"\+($|<)", text)
    found = _report.report(_report.Settings(), evaluation)["comparison"]["roc_auc"]
    assert found["best_set"] is None
    assert found["equality"] == {"chi2": None, "df": 1.0, "p_value": None}
    unknown = ("low", "high", "standard_error", "p_value", "simultaneous_low", "simultaneous_high")
    frame = _output.frame_of(evaluation).query("minus == minus")
    for difference in found["differences"]:
        assert difference["value"] == 0
        assert {difference[key] for key in (*unknown, "simultaneous_p_value")} == {None}
    assert (frame["value"] == 0).all()
    assert frame[[*unknown, "simultaneous_p_value"]].isna().all(axis=None)


def test_of_some_differences_nothing_can_be_said():
    """The others are reported, and models without any are in no best set."""
    known = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    evaluation = _evaluation_of("xyz", -known / 10, known / 10, p=0.5 * known, chi2=0.5)
    found = _report.report(_report.Settings(), evaluation)["comparison"]["roc_auc"]
    assert found["best_set"] == ["x", "y"]
    assert [x["simultaneous_high"] for x in found["differences"]] == [0.1, None, None]
    assert found["equality"]["p_value"] == 0.5


def test_models_of_the_same_value_are_all_the_best():
    found = _findings_of([0.8, 0.8, 0.5], [True, True, False], [[0, 0, 0.3]] * 3)
    assert found.answer == (
        "x and y have the highest value, 0.800, and are significantly better than all others"
    )
    found = _findings_of([0.8, 0.7], [True, True], [[0, np.nan], [np.nan, 0]])
    assert found.answer == (
        "x has the highest value, 0.800 [0.700, 0.900]; nothing can be said of the difference "
        "from y"
    )


def test_a_value_may_have_no_interval():
    evaluation = _evaluation_of("xy", -1, 1)
    (measure,) = evaluation.measures
    nan = np.full(2, np.nan)
    measure = measure._replace(interval=replace(measure.interval, low=nan, high=nan))
    text = " ".join(_printed(evaluation._replace(measures=(measure,))).split())
    assert "-, -" not in text
    assert "a value without brackets has too few items" in text


# Names.

ODD = ("esc\x1b[31m\x07", "L" * 150 + "R" * 150, "中文模型", "🚀 rocket", "$x_1$", "_a <b>", "c&d")


def test_control_characters_reach_no_terminal_and_no_page():
    evaluation = _evaluation_of(ODD, -1, 1)
    for text in (_printed(evaluation), _page(evaluation)):
        assert r"esc\x1b[31m\x07" in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)


def test_findings_and_headings_shorten_names():
    evaluation = _evaluation_of(ODD, -1, 1, estimate=np.arange(7.0))
    assert len(_findings.findings_of(evaluation)[0].answer) < 300
    page = _page(evaluation)
    assert page.count("L" * 150 + "R" * 150) == 1
    assert "L" * 30 + "…" + "R" * 29 in page


@pytest.fixture(scope="module")
def drawings():
    """Those of twenty models with all kinds of names, and of slices with such values."""
    names = [*ODD, *(f"model {i}" for i in range(13))]
    labels = np.arange(N) % 3 == 0
    scores = np.round(np.random.default_rng(3).normal(size=(20, N)) + labels, 1)
    value = np.linspace(0.5, 0.9, 20)
    interval = jm.Interval(value, value - 0.1, value + 0.1, value, "wald", 0.95)
    measures = [
        Measure(name, name, interval) for name in ("roc_auc", "partial_auc", "average_precision")
    ]
    of_slices = [
        Measure(x.name, x.name, jax.tree.map(lambda x: np.stack([x] * 7), interval))
        for x in measures[:2]
    ]
    slices = Slices("country\x1b", ODD, (N,) * 7, (N,) * 7, tuple(of_slices))
    return _figures.drawings_of(
        jm.score_table(scores, labels), names, _report.Settings(), measures, slices=[slices]
    )


def _page_of_many(drawings):
    """The page of twenty models with long names, all else being as much as it can be."""
    names = [f"{i} " + "long name " * 15 for i in range(20)]
    value = np.linspace(0.5, 0.9, 20)
    evaluation = _evaluation_of(names, 0.1, 0.2, estimate=value, p=0.01)
    (measure,) = evaluation.measures
    worse = replace(measure.comparison, best_set=np.arange(20) == 19)
    measures = [measure._replace(heading=x, comparison=worse) for x in ("AUC", *"bcdefg")]
    notes = tuple(f"{i}: " + "many words " * 20 for i in range(8))
    chosen = tuple(x for x in drawings if x.name in ("intervals", "roc"))
    evaluation = evaluation._replace(measures=tuple(measures), warnings=notes, drawings=chosen)
    return _output.page_with_figures(_report.Settings(), evaluation, lambda *x: None)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_odd_names(drawings, name, tmp_path):
    """Nothing is outside of the figure, no text over another, and Matplotlib has no warning."""
    drawing = next(x for x in drawings if x.name == name)
    with pages.page_colours(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = drawing.draw()
        figure.savefig(tmp_path / "x.svg", metadata={"Title": drawing.title})
        figure.draw_without_rendering()
        texts = figure.findobj(Text)
    ElementTree.parse(tmp_path / "x.svg")
    drawn, whole = figure.get_tightbbox(), figure.bbox_inches
    assert min(drawn.x0, drawn.y0) > -0.02
    assert drawn.x1 < whole.x1 + 0.02
    assert drawn.y1 < whole.y1 + 0.02
    for ax in figure.axes:
        labels = [x.get_window_extent() for x in ax.get_yticklabels()]
        assert all(b.y1 <= a.y0 or a.y1 <= b.y0 for a, b in pairwise(labels))
    assert not any(text.get_parse_math() for text in texts)
    shown = " ".join(text.get_text() for text in texts)
    assert ("13 other models" if name in ("roc", "precision_recall") else "") in shown
    assert ("Not shown: 13 models" if name in ("scores", "cost", "slices") else "") in shown
    if name != "intervals":
        assert "Of 20 models, the 7 with the highest AUC are" in drawing.about


def test_names_that_no_font_has_are_numbered(drawings):
    texts = [text.get_text() for text in drawings[0].draw().findobj(Text)]
    assert {"model no. 3", "model no. 4: rocket", "$x_1$", "_a <b>", r"esc\x1b[31m\x07"} <= {*texts}
    assert "model no. 3 is 中文模型; model no. 4: rocket is 🚀 rocket." in drawings[0].about
    assert "value no. 3 is 中文模型" in drawings[-1].about
    assert drawings[-1].title == r"By country\x1b"


def test_fonts_that_systems_have_serve_what_matplotlibs_own_lacks(monkeypatch):
    monkeypatch.setattr(_fonts, "FALLBACKS", ("No such font", "STIXGeneral"))
    with pages.page_colours(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _fonts.families()[-1] == "STIXGeneral"
        names, about = _fonts.drawn_names("model no.", ["a ᶊ", "中"])
        figure = Figure()
        figure.text(0, 0, names[0])
        figure.draw_without_rendering()
    assert names == ["a ᶊ", "model no. 2"]
    assert about.endswith(": model no. 2 is 中.")


# Figures.


def test_limits_of_precision_by_hand():
    """From the FPR at which a limit of the TPR crosses the recall, or the point beyond."""
    fpr, low, high = np.array([[0.1, 0.5, 1.0], [0.2, 0.5, 1.0], [0.6, 0.9, 1.0]])
    band = jm.RocBand(fpr, low[None], low[None], high[None], low[None], high[None], 0.95)
    found = [x[0] for x in _figures.precision_limits(band, np.array([0.5]))]
    at = [list(np.round(_figures.RECALLS, 9)).index(x) for x in (0.3, 0.5, 0.7)]
    np.testing.assert_allclose(found[0][at], [0.3 / 0.8, 0.5 / 1.5, 0.7 / 1.7])
    np.testing.assert_allclose(found[1][at], [1, 1, 0.7 / 0.8])


def test_limits_of_precision_are_around_scikit_learns(data):
    from sklearn.metrics import precision_recall_curve

    scores, labels = data["a"].to_numpy(), data["y"].to_numpy()
    precision, recall, _ = precision_recall_curve(labels, scores)
    band = jm.roc_band(scores[None], labels, fpr=_figures.fpr_grid(0.1))
    low, high = (x[0] for x in _figures.precision_limits(band, labels.mean(keepdims=True)))
    at = [np.flatnonzero(recall >= limit - 1e-9)[-1] for limit in _figures.RECALLS]
    assert (low <= precision[at] + 1e-6).all()
    assert (precision[at] <= high + 1e-6).all()
    assert np.mean(high - low) < 0.4


def test_limits_of_precision_of_rare_positives_are_near_on_both_sides_of_the_window(rng):
    """Where the next FPR of a band is twice as high, so was the ratio of the limits."""
    labels = rng.random(20_000) < 0.02
    scores = rng.normal(size=20_000) + 2 * labels
    band = jm.roc_band(scores[None], labels, fpr=_figures.fpr_grid(0.01))
    low, high = (x[0] for x in _figures.precision_limits(band, labels.mean(keepdims=True)))
    assert (high / low)[_figures.RECALLS > 0.3].max() < 2.2


def test_figures_write_the_numbers_of_the_tables(in_memory):
    """With the same digits, zeros and minus signs."""
    evaluation = in_memory._evaluation
    by_name = {x.name: x for x in evaluation.measures}
    drawn = {x.name: x for x in evaluation.drawings}
    with pages.page_colours():
        whole, window = drawn["roc"].draw().axes
        (recall,) = drawn["precision_recall"].draw().axes
        figure = drawn["intervals"].draw()
        figure.axes[0].set_xlim(-1, 1)
        assert "-0.5" in {x.get_text() for x in figure.axes[0].get_xticklabels()}
    pairs = ((whole, "roc_auc"), (window, "partial_auc"), (recall, "average_precision"))
    for ax, name in pairs:
        cells = _cells.value_cells(by_name[name])
        legend = [x.get_text() for x in ax.get_legend().get_texts()]
        for text, cell in zip(legend, cells, strict=False):
            assert text.endswith(f" {cell.value} [{', '.join(cell.interval)}]")


def test_figures_in_print(data, drawings, tmp_path):
    """Grey, with files in PDF that have their fonts within, which a later report removes."""
    settings = _report.Settings(style="print")
    evaluation = _evaluation_of("xy", -1, 1)._replace(drawings=drawings[:0])
    labels = data["y"].to_numpy()
    table = jm.score_table(data[list(NAMES)].to_numpy().T, labels)
    one = np.full(2, 0.5)
    interval = jm.Interval(one, one - 0.1, one + 0.1, one, "wald", 0.95)
    measures = [Measure(x, x, interval) for x in ("roc_auc", "partial_auc", "average_precision")]
    found = _figures.drawings_of(table, NAMES, settings, measures)
    evaluation = evaluation._replace(drawings=found)
    _report.save(settings, evaluation, tmp_path, lambda *x: None)
    names = [x.name for x in found]
    assert names == [x for x in FIGURES if x != "slices"]
    for name in names:
        pdf = (tmp_path / f"{name}.pdf").read_bytes()
        assert b"/FontFile2" in pdf
        assert b"/Type3" not in pdf
        colours = set(re.findall("#([0-9a-f]{6})", (tmp_path / f"{name}.svg").read_text()))
        assert {x for x in colours if not x[:2] == x[2:4] == x[4:]} == set(), name
    page = (tmp_path / "report.html").read_text()
    assert "prefers-color-scheme" not in page
    assert "PNG, SVG and PDF files" in page
    fewer = evaluation._replace(drawings=found[:1])
    _report.save(settings._replace(style="colour"), fewer, tmp_path, lambda *x: None)
    assert not list(tmp_path.glob("*.pdf"))


# In a browser.

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
MEASURE = """<script>addEventListener("load", () => setTimeout(() => {
  const wide = [...document.querySelectorAll("body *")].filter(
    x => !x.closest(".scroll, svg") && x.getBoundingClientRect().right > innerWidth + 1);
  const figures = [...document.querySelectorAll("figure > svg")].map(x => x.clientWidth);
  document.title = JSON.stringify({wide: wide.length, figures,
    open: [...document.querySelectorAll("details")].map(x => x.open),
    details: document.querySelector("details").getBoundingClientRect().top + scrollY,
    scroll: document.documentElement.scrollWidth - innerWidth,
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.body).backgroundColor});
}, 100))</script>"""


needs_browser = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")


def _browsed(page, folder, *flags, anchor=""):
    """What the browser says of a page, and the page."""
    copy = folder / "report.html"
    copy.write_text(page, encoding="utf-8")
    common = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}")
    arguments = [BROWSER, *common, *flags, copy.as_uri() + anchor]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def _measured(page, folder, *flags, anchor=""):
    page = page.replace("</body>", MEASURE + "</body>")
    flags = ("--dump-dom", "--virtual-time-budget=1000", *flags)
    text = _browsed(page, folder, *flags, anchor=anchor)
    return json.loads(re.search(r"<title>(.*?)</title>", text)[1])


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_in_a_browser_nothing_is_wider_than_the_screen(page, tmp_path, width, scheme):
    """On a wide and on a narrow one; in the dark, ink is lighter than paper."""
    flags = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    page = page.replace("<details>", "<details open>")
    found = _measured(page, tmp_path, flags, f"--window-size={width},900")
    assert found["wide"] == 0
    assert found["scroll"] <= 0
    assert len(found["figures"]) == len(FIGURES)
    assert min(found["figures"]) > min(width, 500) * 0.6
    ink, paper = (sum(map(int, re.findall(r"\d+", found[x])[:3])) for x in ("ink", "paper"))
    assert (ink > paper) == (scheme == "dark")


@needs_browser
@pytest.mark.parametrize("kind", ["two models", "many models"])
def test_the_details_begin_within_three_screens(page, drawings, tmp_path, kind):
    if kind == "many models":
        page = _page_of_many(drawings)
    found = _measured(page, tmp_path, "--window-size=1280,800")
    assert not any(found["open"])
    assert 800 < found["details"] <= 3 * 800


@needs_browser
@pytest.mark.parametrize(("anchor", "place"), [("#points", 2), ("#figure-cost", 4)])
def test_a_link_opens_the_details_around_its_anchor(page, tmp_path, anchor, place):
    found = _measured(page, tmp_path, "--window-size=1280,800", anchor=anchor)
    assert [i for i, is_open in enumerate(found["open"]) if is_open] == [place]


@needs_browser
def test_details_are_open_on_paper(page, tmp_path):
    def n_pages(page):
        _browsed(page, tmp_path, f"--print-to-pdf={tmp_path / 'report.pdf'}")
        return len(re.findall(rb"/Type /Page\b", (tmp_path / "report.pdf").read_bytes()))

    closed = re.sub("::details-content {.*?}", "", page)
    opened = page.replace("<details>", "<details open>")
    assert n_pages(closed) < n_pages(page) == n_pages(opened)


@pytest.fixture(scope="module")
def in_memory(data, output, tmp_path_factory):
    """The report of the same data from a frame, after that of the file, whose programs it uses."""
    return jm.report(
        data[list(NAMES)],
        data.y,
        slices={"country": data.country.replace("", None)},
        max_fpr=0.1,
        criterion="youden",
        fn_cost=7,
        n_resamples=40,
        output=tmp_path_factory.mktemp("arrays"),
    )


def test_report_of_a_frame_has_the_numbers_of_the_command(in_memory, output):
    frame = in_memory.to_frame()
    pd.testing.assert_frame_equal(
        frame.reset_index(drop=True),
        pd.read_csv(output / "metrics.csv", keep_default_na=True),
        check_dtype=False,
        rtol=1e-12,
    )


def test_report_in_a_notebook_is_the_page(in_memory):
    assert html.escape(in_memory.page) in in_memory._repr_html_()
    assert in_memory.page.count("<svg") == len(FIGURES)
    assert "The folder of this page" in in_memory.page
    assert "300 items" in repr(in_memory)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_fpr": 2}, "^max_fpr must be above 0"),
        ({"confidence_level": 95}, "^confidence_level must be .* write 0.95"),
        ({"n_resamples": 0}, "^n_resamples must be at least 1"),
        ({"fn_cost": -1}, "^fn_cost must be from 0"),
        ({"criterion": "Youden"}, "^criterion must be youden, got Youden: leave it out"),
        ({"prevalence": 1.0}, "^prevalence must be above 0 and below 1, got 1: write fractions"),
        ({"style": "grey"}, "^style must be colour or print, got grey"),
        ({"names": ["a"]}, "each of 2 models"),
        ({"names": ["a", "a"]}, "each of 2 models"),
        ({"labels": np.ones(N)}, "only one class"),
        ({"scores": np.full((2, N), np.nan)}, "scores of 'model 0' are NaN in 300 of 300 items"),
        ({"slices": "country"}, "slices must hold a value for each item, got 'country'"),
        ({"max_fpr": "1%"}, "^max_fpr must be a number, got '1%'"),
        ({"prevalence": "1%"}, "^prevalence must be a number, got '1%': write 0.01"),
        ({"threshold": "x"}, "^threshold must be a number, got 'x': write 0.5"),
        ({"scores": np.zeros((2, 2, N))}, r"\[models, n\]"),
        ({"clusters": np.zeros(N)}, "is 0 in all rows|is 0.0 in all rows"),
        ({"slices": np.arange(N).astype(str)}, "300 distinct values"),
        ({"slices": {"a": [1, 2]}}, "a must be .n. with 300 items"),
        ({"weights": -np.ones(N)}, "weights"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_report_refuses_what_it_cannot_evaluate(data, changed, message):
    given = {"scores": data[list(NAMES)], "labels": data.y, **changed}
    with pytest.raises((TypeError, ValueError), match=message):
        jm.report(**given)


def test_report_without_the_extra(data, monkeypatch):
    for name in [x for x in sys.modules if x.startswith("jaxmetrics._report.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "jaxmetrics._report")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'jaxmetrics-exact\[report"):
        jm.report(data[list(NAMES)], data.y)


def test_whole_numbers_that_double_precision_rounds_are_refused():
    scores = 2**53 + np.arange(8)
    with pytest.raises(
        ValueError, match="has 9007199254740993, which double precision rounds: write"
    ):
        jm.report(scores, np.arange(8) % 2)
    for kind, large in (("uint64", 2**64 - 2**11), ("int64", -(2**63)), ("uint64", 2**63)):
        exact = np.array([large], kind)
        assert numbers_of("score", "x", pd.Series(exact)) == float(large)
        with pytest.raises(InputError, match=f"has {large + 1}, which"):
            numbers_of("score", "x", pd.Series(exact + exact.dtype.type(1)))
    column = pd.Series(scores)
    with pytest.raises(InputError, match="score 'x' has 9007199254740993, which"):
        numbers_of("score", "x", column)
    assert numbers_of("weight", "x", column).dtype == np.float64
    even = 2**53 + 2 * np.arange(8)
    assert numbers_of("score", "x", pd.Series(even)).tolist() == even.astype(float).tolist()
