"""Trends in the report of the command, and their figure."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from months import MONTHS, N

import jaxmetrics as jm
from jaxmetrics import _report, plots
from jaxmetrics._report import _figures, _page
from tests.command import run


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
    printed = " ".join(result.output.split())
    why = "there is no trend of Partial AUC to 1 % FPR over month: fewer than two months can be"
    trend = printed[printed.index("Trend over month") : printed.index("Note: ")]
    assert "AUC" in trend
    assert "Partial" not in trend  # a column of dashes
    assert why in printed
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
    assert why in page
    assert "models are not compared by Partial AUC to 1 % FPR within slices by month" in page
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
    assert "there is no trend of AUC and Partial AUC to 1 % FPR over month" in page
    assert "no significant trend" not in page
    assert "Trend over month" not in page
    assert 0 < page.index("AUC, by device") < page.index("AUC, by month")


@pytest.mark.parametrize("order", [[0], [2, 0, 1]])
def test_the_figure_of_a_report_has_any_number_of_models(order, data, tmp_path):
    scores, labels, month = data
    columns = {f"model {i}": row for i, row in enumerate([*scores, scores.sum(axis=0)])}
    chosen = list(columns)[: len(order)]
    pd.DataFrame({"y": labels * 1, **columns, "month": month}).to_csv(tmp_path / "d.csv")
    problem = _report.problem_of_file(
        tmp_path / "d.csv", label="y", scores=chosen, slices=["month"]
    )
    (part,) = _report.evaluate_problem(
        problem, _report.Settings(n_resamples=20), lambda *x: None
    ).slices
    names = [chosen[i] for i in order]
    ax, *_ = _figures._draw_trends(part, names, order, "colour").axes
    lines = {x.get_label(): x.get_ydata() for x in ax.lines}
    for name in names:
        (drawn,) = (y for label, y in lines.items() if label.startswith(f"{name}, trend"))
        np.testing.assert_allclose(drawn, part.compared[0].estimate[:, chosen.index(name)])


def test_figure(found):
    ax = plots.trend(found[0], names=["old", "new"], metric="AUC")
    assert ax.get_xticklabels()[0].get_text() == MONTHS[0]
    assert ax.get_ylabel() == "AUC"
    legend = [x.get_text() for x in ax.get_legend().get_texts()]
    assert any(x.startswith("new, trend p < 0.001") for x in legend)


def test_a_figure_of_many_models_has_trends_and_bands_of_the_first_ones(data):
    """Of seven of nine. The others are lines that share a label."""
    scores, labels, month = data
    many = np.concatenate([scores, *(scores + [[i]] * labels for i in range(1, 4)), scores[:1]])
    ax = plots.trend(jm.slices(jm.roc_auc, many, labels, month))
    assert [x.get_text() for x in ax.get_legend().get_texts()][7] == "2 other models"
    assert len(ax.lines) == 7 * 2 + 2 + 1  # and that of the legend


def test_labels_of_times_that_are_close_do_not_overlap(found):
    names = (*(f"2024-0{i}" for i in range(1, 6)), "2029-12")
    slices = dataclasses.replace(found[0], names=names)
    ax = plots.trend(slices, names=["old", "new"])
    assert [x.get_text() for x in ax.get_xticklabels()] == ["2024-01", "2029-12"]


def test_a_figure_of_slices_that_are_all_too_small_has_crosses_alone(found):
    slices = dataclasses.replace(found[0], tested=np.zeros(6, bool))
    ax = plots.trend(slices, names=["old", "new"])
    assert [x.get_text() for x in ax.get_legend().get_texts()] == ["too few items"]
    assert len(ax.get_xticks())
    assert not len(ax.get_yticks())
