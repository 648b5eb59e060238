"""What the command prints and writes: tables, files and the demonstration."""

import copy
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from evaluations import ALL, FEW, NAMES, N, estimates, values_of
from rich.console import Console

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._base.words import decimals_of_metric, fixed
from jaxmetrics._report import _evaluation


def rows_of(table):
    """The lines of each model of a printed table: of values, and of intervals."""
    lines = table.splitlines()
    return {
        name: (lines[i].split()[1:], re.findall(r"\[(\S+), (\S+)\]", lines[i + 1]))
        for name in NAMES
        for i, line in enumerate(lines)
        if line.split()[:1] == [name]
    }


def test_the_tables_show_every_value_with_its_interval(folder, report):
    result = run("evaluate", folder / "data.csv", *ALL, "--seed", 3)
    assert result.exit_code == 0
    assert f"{N} items, {report['n_positive']} positive" in result.stdout
    assert "95 % confidence intervals" in result.stdout
    values, rest = result.stdout.split("By amount")
    amounts, differences = rest.split("Difference from the best")
    best = max(NAMES, key=lambda name: report["models"][name]["roc_auc"]["value"])
    for name, metrics in copy.deepcopy(report["models"]).items():
        by_amount = estimates(metrics.pop("amount_recall_at_fpr"))
        for table, expected in ((values, estimates(metrics)), (amounts, by_amount)):
            cells, limits = rows_of(table)[name]
            found = [float(cell.rstrip("*")) for cell in cells]
            assert found == pytest.approx([x["value"] for x in expected], abs=5e-4)
            for pair, x in zip(limits, expected, strict=True):
                assert [*map(float, pair)] == pytest.approx([x["low"], x["high"]], abs=5e-4)
    assert rows_of(values)[best][0][0].endswith("*")
    assert not rows_of(values)["a"][0][0].endswith("*")
    (difference,) = [
        x
        for x in report["comparison"]["roc_auc"]["differences"]
        if (x["model"], x["minus"]) == ("a", best)
    ]
    cells, limits = rows_of(differences)["a"]
    assert float(cells[0].rstrip(",")) == pytest.approx(difference["value"], abs=5e-4)
    assert cells[1:4] == ["p", "<", "0.001"]
    simultaneous = [difference["simultaneous_low"], difference["simultaneous_high"]]
    assert [*map(float, limits[0])] == pytest.approx(simultaneous, abs=5e-4)
    assert rows_of(differences)[best][0][:2] == ["best", "+"]


def test_one_model_is_not_marked_or_compared_and_its_name_is_taken_literally(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,[bold]a[/x]\n1,3\n0,2\n1,1\n")
    arguments = (file, "--label", "y", "--score", "[bold]a[/x]", "--max-fpr", 0.02, *FEW)
    result = run("evaluate", *arguments)
    assert result.exit_code == 0
    assert "[bold]a[/x]" in result.stdout
    assert "*" not in result.stdout
    assert "Difference" not in result.stdout
    assert evaluated(*arguments)["comparison"] is None


def test_perfect_models_have_intervals_and_cannot_be_told_apart(perfect):
    report = evaluated(*perfect)
    for estimate in estimates(report["models"]["a"]):
        assert estimate["value"] == pytest.approx(1, abs=1e-12)
        assert estimate["high"] == pytest.approx(1, abs=1e-12)
        assert 0.3 < estimate["low"] < 1
    comparison = report["comparison"]["roc_auc"]
    assert comparison["best_set"] == list(report["models"])
    difference = comparison["differences"][0]
    assert difference["simultaneous_p_value"] == 1
    assert difference["simultaneous_low"] < 0 < difference["simultaneous_high"]
    values = run("evaluate", *perfect).stdout.split("Difference")[0]
    assert rows_of(values)["a"][0][0] == "1.000*"  # as none is significantly better


def check_csv(frame, report):
    """That the table holds what the report does, a row an estimate or a difference."""
    where = {"roc_auc": None, "recall_at_fpr": "0.05"}
    for metric, limit in where.items():
        rows = frame[(frame["metric"] == metric) & frame["minus"].isna()]
        rows = rows if limit is None else rows[rows["max_fpr"] == float(limit)]
        assert list(rows["model"]) == list(report["models"])
        for _, row in rows.iterrows():
            expected = report["models"][row["model"]][metric]
            expected = expected if limit is None else expected[limit]
            for key, value in expected.items():
                assert row[key] == (value if key == "method" else pytest.approx(value))
    differences = frame[(frame["metric"] == "roc_auc") & frame["minus"].notna()]
    expected = report["comparison"]["roc_auc"]["differences"]
    for (_, row), difference in zip(differences.iterrows(), expected, strict=True):
        for key, value in difference.items():
            assert row[key] == (value if isinstance(value, str) else pytest.approx(value))


def test_demo_compares_three_classifiers(demo):
    result, output = demo
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert str(output) in result.stderr
    assert result.stderr.count("\n") == 1
    assert len(report["models"]) == 3
    assert report["n_items"] == 899
    assert report["n_positive"] == 87
    (warning,) = report["warnings"]  # neighbours are few, so that their shares tie
    tie = "limit of the FPR, 0.02, is within a tie of 7 negatives in the scores nearest neighbours:"
    assert tie in warning
    assert warning.endswith(": compare the models by partial AUC")
    for values in map(values_of, report["models"].values()):
        assert 0.9 < values["roc_auc"] <= 1
        assert 0.7 < values["partial_auc"] < values["roc_auc"]
        assert 0.5 < values["recall_at_fpr"]["0.01"] <= values["recall_at_fpr"]["0.05"] <= 1
        assert 0.7 < values["average_precision"] < 1
    comparison = report["comparison"]["roc_auc"]
    assert len(comparison["differences"]) == 3
    assert comparison["best_set"] == ["random forest", "nearest neighbours"]


def test_output_writes_the_files(demo):
    result, output = demo
    report = json.loads(result.stdout)
    names = {path.name for path in output.iterdir()}
    assert {"report.html", "roc.png", "roc.svg", "metrics.json", "metrics.csv"} < names
    assert (output / "roc.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((output / "metrics.json").read_text()) == report
    check_csv(pd.read_csv(output / "metrics.csv"), report)


@pytest.mark.slow
def test_many_models_are_drawn_without_bands(folder, monkeypatch):
    problem = _report.problem_of_file(folder / "data.csv", label="y", scores=NAMES)
    monkeypatch.setattr(_evaluation, "MOST_BANDS", 2)
    settings = _report.Settings(0.02, n_resamples=40)
    evaluation = _report.evaluate_problem(problem, settings, lambda *_: None, with_figures=True)
    (roc,) = (x.draw() for x in evaluation.drawings if x.name == "roc")
    assert [len(ax.collections) for ax in roc.axes] == [0, 0]
    assert any("no bands" in note for note in evaluation.warnings)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.97722, 4, "0.9772"), (1.0, 3, "1.000"), (-0.0211, 3, "-0.021"), (-1e-9, 3, "0.000")],
)
def test_numbers_are_printed_with_the_zero_before_the_point(value, digits, text):
    assert fixed(value, digits) == text


def test_narrow_intervals_have_more_digits():
    for width, digits in ((0.3, 3), (0.004, 4), (0.0002, 5), (1e-12, 3), (np.nan, 3)):
        assert decimals_of_metric(np.array([width, 0.5])) == digits


def test_what_is_too_wide_for_a_terminal_is_several_tables():
    values = np.array([0.25, 0.5])
    interval = jm.Interval(values, values - 0.125, values + 0.125, values, "wald", 0.95)
    measures = [_evaluation.Measure("m", f"metric {i}", interval) for i in range(8)]
    evaluation = _evaluation.Evaluation(
        ("a", "b" * 60), {}, (), "the title", "", tuple(measures), (), ()
    )
    for width, n_tables in ((200, 1), (80, 3)):
        console = Console(width=width, file=io.StringIO())
        found = _report.tables_of(evaluation, console)
        tables = found[:n_tables]
        assert [table.title is not None for table in tables] == [True] + [False] * (n_tables - 1)
        for table in found:
            console.print(table)
        about = "In brackets, 95 % confidence intervals; * marks the best of a column"
        assert about in console.file.getvalue()  # in one line
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        printed = " ".join(lines)
        assert [printed.count(f"metric {i}") for i in range(8)] == [1] * 8
        assert printed.count("[0.375, 0.625]") == 8
