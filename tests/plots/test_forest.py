"""Intervals and differences as rows, read back from the axes."""

from itertools import pairwise

import numpy as np
import pytest
from axes import NAMES, interval_of, legend, segments
from matplotlib.figure import Figure

import jaxmetrics as jm
from jaxmetrics import plots


def test_forest_has_a_row_for_each_model(ax):
    values = np.array([0.5, np.nan, 0.7])
    member = np.array([True, True, False])
    names = ["a", "b", "c"]
    plots.forest(interval_of(values), names=names, metrics=["AUC"], best_set=member, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    assert ax.get_ylim() == (2.5, -0.5)  # the first on top
    np.testing.assert_allclose(segments(ax), [(0, 0.3, 0.6), (2, 0.5, 0.8)])
    marks = {tuple(line.get_xydata()[0]): line for line in ax.get_lines() if line.get_xdata().size}
    assert marks[0.5, 0].get_markerfacecolor() == plots.COLOURS[0]
    assert marks[0.7, 2].get_markerfacecolor() == "white"
    (cross,) = (line for line in ax.get_lines() if line.get_marker() == "x")
    np.testing.assert_array_equal(cross.get_ydata(), [1])
    assert legend(ax) == [
        "not significantly worse than the best",
        "significantly worse",
        "no value",
        "95 % interval",
    ]
    assert ax.get_xlabel() == "AUC"


def test_results_with_names_draw_them(ax):
    labels = np.arange(40) % 2
    scores = {"new": labels + np.sin(np.arange(40)), "old": labels + np.cos(np.arange(40))}
    plots.forest(jm.confidence_interval(jm.roc_auc, scores, labels), ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["new", "old"]
    assert ax.get_xlabel() == "AUC"
    compared = jm.compare(jm.roc_auc, scores, labels)
    axes = plots.differences(compared)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["new", "old"]
    assert axes.get_xlabel().startswith("Difference in AUC\nfrom ")
    assert plots.differences(compared, names=["a", "b"]).get_yticklabels()[0].get_text() == "a"


def test_forest_of_several_metrics_has_a_marker_for_each(ax):
    several = [interval_of([0.5, 0.6]), interval_of([0.3, 0.2])]
    plots.forest(several, metrics=["AUC", "recall"], ax=ax)
    heights = sorted(y for y, *_ in segments(ax))
    np.testing.assert_allclose(heights, [-0.175, 0.175, 0.825, 1.175])
    shapes = {line.get_marker() for line in ax.get_lines() if line.get_label() in legend(ax)}
    assert shapes == {"o", "s", "None"}
    assert legend(ax) == ["AUC", "recall", "95 % interval"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["model 0", "model 1"]


def test_rows_of_twenty_models_are_told_apart():
    figure = Figure(figsize=(3.5, 4), layout="constrained")
    names = [f"a model of number {i}" for i in range(20)]
    ax = plots.forest(interval_of(np.linspace(0.5, 0.7, 20)), names=names, ax=figure.subplots())
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert all(b.y1 <= a.y0 for a, b in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


def test_what_forest_refuses():
    two = interval_of([0.5, 0.6])
    with pytest.raises(TypeError, match="an Interval or several, got float: pass what"):
        plots.forest([0.5, 0.6])
    with pytest.raises(ValueError, match="names must have one name a metric, 1 in all"):
        plots.forest(two, metrics=["AUC", "recall"])
    with pytest.raises(ValueError, match=r"same for all metrics, got \[\[2\], \[3\]\]"):
        plots.forest([two, interval_of([0.1, 0.2, 0.3])])
    with pytest.raises(ValueError, match="one confidence_level"):
        plots.forest([two, interval_of([0.5, 0.6], 0.9)])
    with pytest.raises(ValueError, match=r"best_set must be bool \[2\].* got bool \[3\]"):
        plots.forest(two, best_set=np.ones(3, bool))


def test_differences_are_those_from_the_best(problem, ax):
    result = jm.compare(jm.roc_auc, *problem)
    plots.differences(result, names=NAMES, metric="AUC", ax=ax)
    zero, *rest = segments(ax)
    assert zero == (0, 0, 0)
    low, high = (np.asarray(x)[0, 1] for x in (result.simultaneous_low, result.simultaneous_high))
    assert -0.3 < low < high < 0
    np.testing.assert_allclose(rest, [(0, low, high), (1, 0, 0)], atol=1e-6)
    assert ax.get_xlabel() == "Difference in AUC\nfrom two"
    assert legend(ax)[-1] == "95 % interval, for all pairs at once"
    assert [text.get_text() for text in ax.get_yticklabels()] == NAMES


def test_differences_from_a_reference(ax):
    difference = np.array([0.0, 0.1, np.nan])
    rest = dict.fromkeys(["standard_error", "low", "high", "p_value", "simultaneous_p_value"], 0)
    rest |= dict.fromkeys(["chi2", "chi2_df", "chi2_p_value"], 0)
    result = jm.Comparison(
        estimate=difference,
        difference=difference,
        simultaneous_low=difference - 0.1,
        simultaneous_high=difference + 0.1,
        best_set=np.array([False, True, True]),
        confidence_level=0.9,
        **rest,
    )
    plots.differences(result, ax=ax)
    np.testing.assert_allclose(segments(ax)[1:], [(0, -0.1, 0.1), (1, 0, 0.2)])
    assert ax.get_xlabel() == "Difference\nfrom the reference"
    assert "no value" in legend(ax)
    with pytest.raises(TypeError, match="comparison must be a Comparison, got ndarray"):
        plots.differences(difference)


@pytest.mark.filterwarnings("ignore:a comparison rests on", "ignore:group ")
def test_differences_say_what_they_are_from(rng):
    labels, group = np.arange(60) % 2 == 0, np.repeat(["a", "b", "c"], 20)
    scores = {"new": rng.normal(size=60), "old": rng.normal(size=60)}
    compared = {
        "old": jm.compare(jm.roc_auc, scores, labels, reference="old"),
        "b": jm.compare_samples(jm.roc_auc, scores["new"], labels, group, reference="b"),
        "0.6": jm.compare_to_value(jm.roc_auc, scores, labels, value=0.6),
    }
    for origin, result in compared.items():
        drawn = plots.differences(result)
        assert drawn.get_xlabel() == f"Difference in AUC\nfrom {origin}"
    names = [x.get_text() for x in plots.differences(compared["b"]).get_yticklabels()]
    assert names == ["a", "b", "c"]


def test_scores_that_are_one_but_for_rounding_are_drawn():
    for scores in ([0.3, 0.1 + 0.2], [1e17, 1e17], [5.0, 5.0]):
        ax = plots.score_distributions(scores, [0, 1])
        low, high = ax.get_xlim()
        assert low < scores[0] < high
