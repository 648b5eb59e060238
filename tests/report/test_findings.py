"""The sentences that a report begins with."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from reports import evaluation_of, page_of, printed_of

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _cells, _findings, _output
from jaxmetrics._report._evaluation import Evaluation, Measure


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
    enough = jm.SampleSize(*map(np.float64, (1234.0, 5000.0, 0.01)))
    found = _findings_of([0.5, 0.7, 0.8], [True, True, True], difference, enough=enough)
    assert found.detail.endswith(
        "; if the first two differ by as much as here, 1,234 positives, and negatives in "
        "proportion, would show it with a power of 80 %"
    )
    enough = replace(enough, n_clusters=np.float64(340.0))
    found = _findings_of([0.5, 0.7, 0.8], [True, True, True], difference, enough=enough)
    assert ", 340 clusters such as these would show it with a power of 80 %" in found.detail
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


@pytest.mark.parametrize(("low", "high", "p"), [(np.nan, np.nan, np.nan), (0, 0, 1)])
def test_what_cannot_be_said_is_not_said(low, high, p):
    """As with one positive, where no resample tells models apart."""
    evaluation = evaluation_of("xyz", low, high, p=p, chi2=p)
    found = _findings.findings_of(evaluation)[0]
    assert found.answer == "all models have the value 0.000"
    assert "nothing can be said of which is better" in found.detail
    (measure,) = evaluation.measures
    assert [cell[:4] for cell in _cells.value_cells(measure)] == [
        ("0.000", ("-0.100", "0.100"), False, " ")
    ] * 3
    assert _cells.difference_cells(measure) == [_cells.Cell("0.000", mark="  ")] * 3
    for text in (printed_of(evaluation), page_of(evaluation)):
        assert "-, -" not in text
        assert "p = " not in text
        assert "has an interval, because there are too few items" in " ".join(text.split())
        assert "Difference from" not in text
        assert "compared in pairs" not in text
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
    evaluation = evaluation_of("xyz", -known / 10, known / 10, p=0.5 * known, chi2=0.5)
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
    evaluation = evaluation_of("xy", -1, 1)
    (measure,) = evaluation.measures
    nan = np.full(2, np.nan)
    measure = measure._replace(interval=replace(measure.interval, low=nan, high=nan))
    text = " ".join(printed_of(evaluation._replace(measures=(measure,))).split())
    assert "-, -" not in text
    assert "a value without brackets has too few items" in text


def test_what_holds_of_all_values_is_said_once():
    """With one model, the level of the intervals is that of all metrics."""
    (measure,) = evaluation_of("x", -1, 1).measures
    measures = tuple(measure._replace(heading=x, comparison=None) for x in "abc")
    evaluation = evaluation_of("x", -1, 1)._replace(measures=measures)
    found = _findings.findings_of(evaluation)
    assert [x.detail for x in found] == ["In brackets, 95 % confidence intervals", "", ""]
    assert page_of(evaluation).count("In brackets, 95 % confidence intervals.<") == 2  # and a table


def test_a_report_says_how_many_clusters_would_show_a_difference(tmp_path):
    """As many as `sample_size` asks for, of clusters that move both classes."""
    rng = np.random.default_rng(3)
    patient = np.arange(400) // 4
    labels = np.arange(400) % 3 == 0
    effects = rng.normal(size=(2, 100))[:, patient]
    scores = effects + labels * np.array([[1.0], [1.15]]) + rng.normal(size=(2, 400))
    jm.report(scores, labels, clusters=patient, n_resamples=50, output=tmp_path)
    found = json.loads((tmp_path / "metrics.json").read_text())["comparison"]["roc_auc"]
    first, second = jm.roc_auc(scores, labels)
    assert second > first
    needed = jm.sample_size(
        jm.roc_auc, scores[::-1], labels, difference=float(second - first), clusters=patient
    )
    assert needed.n_clusters > 200
    np.testing.assert_allclose(found["n_clusters_enough"], needed.n_clusters, rtol=0.01)
    np.testing.assert_allclose(found["n_positives_enough"], needed.n_positives, rtol=0.01)
