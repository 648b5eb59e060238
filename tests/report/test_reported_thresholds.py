"""What a report says of thresholds: the cheapest, what they do, and at another prevalence."""

import html
import io
import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reports import NAMES, N
from rich.console import Console

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _cells, _decisions, _figures, _metrics, _output
from jaxmetrics._report import _page as pages
from jaxmetrics._report._evaluation import Measure, Points


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
        ((0.00045, 0.00045, 0.00045), ("0.00045",)),  # as it was given
        ((0.0375, 0.03, np.inf), ("0.0375", "0.03", "inf")),
        ((1.234567e-6, 1.234512e-6, 1.3e-6), ("1.23456e-06", "1.23451e-06", "1.3e-06")),
        ((2e300, 1e300, 3e300), ("2e+300", "1e+300", "3e+300")),
        ((67_901.4, 67_901.2, 67_902.0), ("67,901.4", "67,901.2", "67,902")),
    ],
)
def test_thresholds_have_the_digits_of_scores(values, texts):
    cell = _cells._threshold_cell(*values)
    assert (cell.value, *(cell.interval or ())) == texts


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
        draw = partial(_figures._draw_cost, settings=settings)
        (ax,) = _figures._panels(table, ("a",), draw).axes
        best = _metrics.least_cost(table, ("a",), settings)["a"]
        assert ax.get_lines()[1].get_ydata()[0] == pytest.approx(best["cost"])
        found.append(best)
    assert found[0]["cost"] == pytest.approx(found[1]["cost"])
    assert found[2]["threshold"] > found[0]["threshold"]


def test_a_note_on_infinite_scores_names_the_models(data):
    labels, scores = data["y"].to_numpy() == 1, data[list(NAMES)].to_numpy().T.copy()
    scores[1, np.flatnonzero(~labels)[:30]] = np.inf
    settings = _report.Settings(0.1, 40, fn_cost=7, threshold=2.0)
    problem = _report.Problem("f", "y", NAMES, scores, labels)
    notes = _report.evaluate_problem(problem, settings, lambda *x: None).warnings
    found = [x for x in notes if "best to flag nothing" in x]
    assert [x.partition(", but")[0] for x in found] == [
        "it would be best to flag nothing by the scores =b <i>"
    ]


def test_without_costs_nothing_is_said_of_them(data):
    """A least cost at equal costs would flag next to nothing where positives are rare."""
    labels, scores = data["y"].to_numpy() == 1, data[list(NAMES)].to_numpy().T
    problem = _report.Problem("f", "y", NAMES, scores, labels)
    settings = _report.Settings(0.1, 40, criterion="youden", prevalence=0.02)
    evaluation = _report.evaluate_problem(problem, settings, lambda *x: None, with_figures=True)
    assert [x.rule for x in evaluation.points] == ["max_fpr", "youden"]
    assert "cost" not in {x.name for points in evaluation.points for x in points.measures}
    assert "cost" not in {x.name for x in evaluation.drawings}
    found = _report.report(settings, evaluation)
    assert "least_cost" not in found
    assert found["fp_cost"] is found["fn_cost"] is None
    page = _output.page_with_figures(settings, evaluation, lambda *x: None)
    words = re.sub("<(svg|style).*?</(svg|style)>", "", page, flags=re.S)
    assert "cost" not in words.lower()
    assert "precision, NPV and share flagged are those at a prevalence of 2 %" in words
    for one in ("fp_cost", "fn_cost"):  # of 1, too
        assert _report.Settings(**{one: 1.0}).costs == (1, 1)


def test_the_page_begins_with_the_thresholds_asked_for(data, page):
    """What `score >= threshold` costs, of the cheaper model first, as the page writes both."""
    begin = page[: page.index("<details>")]
    (said,) = re.findall(r"<b>Least cost:</b> (.*?)<small>", begin)
    labels = data["y"].to_numpy() == 1
    costs = []
    for part in html.unescape(said).split("; "):
        name, cost, threshold = re.match(r"(.*) costs (.*) \[.* score ≥ (.*?)\.?$", part).groups()
        flagged = data[name].to_numpy() >= float(threshold)
        costs.append((flagged & ~labels).mean() + 7 * (~flagged & labels).mean())
        assert f"{costs[-1]:.{len(cost) - 2}f}" == cost
    assert len(costs) == 2
    assert costs == sorted(costs)
    assert "<b>Largest Youden&#39;s index:</b>" in page


def test_what_a_rule_leaves_open_comes_with_the_best_model_first():
    nan, inf = np.nan, np.inf

    def measure(name, *values, **more):
        value = np.array(values)
        interval = jm.Interval(value, value - 0.1, value + 0.1, np.zeros(3), "closed form", 0.9)
        return Measure(name, name, interval, **more)

    measures = (
        measure("threshold", 0.5, 2.0, inf),
        measure("recall", 0.7, 0.9, 0.0),
        measure("fpr", 0.3, 0.2, nan, prevalence=0.02),
    )
    rules = ("max_fpr", "min_recall", "min_precision")
    points = [Points(rule, rule, measures) for rule in rules]
    by_fpr, by_recall = _decisions.decisions_of(points, "xyz")
    assert by_fpr[0] == "min_recall"
    assert by_fpr[1] == [
        "y has an FPR of 0.200 [0.100, 0.300], flagging score ≥ 2",
        "x has an FPR of 0.300 [0.200, 0.400], flagging score ≥ 0.5",
        "z has an FPR of -, flagging nothing",
    ]
    assert by_fpr[2].startswith("In brackets, 90 % confidence intervals, at a prevalence of 2 %; ")
    assert [x[:21] for x in by_recall[1]] == [
        f"{x} has a recall of 0.{y}" for x, y in (("y", 9), ("x", 7), ("z", 0))
    ]
