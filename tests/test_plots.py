"""What the plots draw, read back from the axes."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn import metrics as sk

import jaxmetrics as jm
from jaxmetrics import plots

NAMES = ["one", "two"]


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def problem(rng):
    labels = rng.random(300) < 0.3
    return np.round(rng.normal(size=(2, 300)) + labels * [[1.0], [2.0]], 1), labels


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_roc_draws_scikit_learns_curve(problem, ax):
    scores, labels = problem
    assert plots.roc(scores, labels, names=NAMES, ax=ax) is ax
    *lines, chance = ax.get_lines()
    for line, row in zip(lines, scores, strict=True):
        fpr, tpr, _ = sk.roc_curve(labels, row)
        np.testing.assert_allclose(line.get_xdata(), fpr, atol=1e-6)
        np.testing.assert_allclose(line.get_ydata(), tpr, atol=1e-6)
    np.testing.assert_array_equal(chance.get_xydata(), [[0, 0], [1, 1]])
    aucs = [sk.roc_auc_score(labels, row) for row in scores]
    expected = [f"{n}, AUC {a:.3f}" for n, a in zip(NAMES, aucs, strict=True)]
    assert legend(ax) == [*expected, "chance"]
    assert ax.get_xlabel() == "False positive rate"
    assert ax.get_ylabel() == "True positive rate"


def test_roc_of_a_window(problem, ax):
    scores, labels = problem
    plots.roc(scores, labels, max_fpr=0.1, ax=ax)
    assert ax.get_xlim()[1] == pytest.approx(0.1)
    partial = sk.roc_auc_score(labels, scores[0], max_fpr=0.1)
    assert legend(ax)[0] == f"model 0, partial AUC {partial:.3f}"


def test_weights_and_where_reach_the_curves(problem, ax):
    scores, labels = problem
    weights, where = np.arange(300.0), np.arange(300) % 2 == 0
    plots.roc(scores[0], labels, weights=weights, where=where, ax=ax)
    auc = sk.roc_auc_score(labels[where], scores[0][where], sample_weight=weights[where])
    assert legend(ax)[0] == f"AUC {auc:.3f}"


def test_precision_recall_has_the_area_that_it_says(problem, ax):
    scores, labels = problem
    plots.precision_recall(scores, labels, names=NAMES, ax=ax)
    *lines, chance = ax.get_lines()
    for line, row, text in zip(lines, scores, legend(ax)[:-1], strict=True):
        recall, precision = line.get_data()
        assert line.get_drawstyle() == "steps-post"
        area = -np.sum(np.diff(recall) * precision[:-1])
        assert area == pytest.approx(sk.average_precision_score(labels, row), abs=1e-5)
        assert text.endswith(f"AP {area:.3f}")
    np.testing.assert_allclose(chance.get_ydata(), labels.mean(), atol=1e-6)


def test_precision_recall_has_a_line_of_chance_for_each_share(ax):
    plots.precision_recall([[0.1, 0.4], [0.1, 0.4]], [[0, 1], [1, 1]], ax=ax)
    assert [line.get_ydata()[0] for line in ax.get_lines()[2:]] == [0.5, 1]
    assert legend(ax).count("chance") == 1


def test_cost_marks_the_cheapest_threshold(problem, ax):
    scores, labels = problem
    plots.cost(scores, labels, fp_cost=1, fn_cost=3, names=NAMES, ax=ax)
    thresholds = jm.min_cost_threshold(scores, labels, fp_cost=1, fn_cost=3)
    for i, (row, threshold) in enumerate(zip(scores, thresholds, strict=True)):
        line, mark = ax.get_lines()[2 * i : 2 * i + 2]
        flagged = row >= np.round(threshold, 1)
        cheapest = np.sum(flagged & ~labels) + 3 * np.sum(~flagged & labels)
        assert mark.get_xdata()[0] == pytest.approx(threshold)
        assert mark.get_ydata()[0] == cheapest == np.min(line.get_ydata())
        assert legend(ax)[i] == f"{NAMES[i]}, cheapest: {cheapest} at {threshold:.4g}"


def test_cost_may_be_least_for_flagging_nothing(ax):
    plots.cost([3.0, 2.0, 1.0], [0, 0, 1], fp_cost=10, fn_cost=1, ax=ax)
    assert legend(ax) == ["cheapest: 1 by flagging nothing"]
    assert np.isfinite(ax.get_lines()[0].get_xydata()).all()


def test_roc_with_window_has_both_and_no_text_outside(problem):
    scores, labels = problem
    figure = plots.roc_with_window(scores, labels, names=NAMES, max_fpr=0.05)
    whole, window = figure.axes
    assert whole.get_xlim()[1] >= 1
    assert window.get_xlim()[1] == pytest.approx(0.05)
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.get_legend().get_window_extent()
        assert box.y0 >= 0
        assert box.y1 < ax.get_window_extent().y0


@pytest.mark.parametrize("draw", [plots.roc, plots.precision_recall, plots.cost])
def test_what_is_undefined_is_drawn_as_nothing(draw, ax):
    draw([0.1, float("nan")], [0, 1], ax=ax)
    assert "nan" in legend(ax)[0]


def test_lines_differ_in_colour_and_style(ax):
    plots.roc(np.zeros((28, 2)), [0, 1], ax=ax)
    looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()[:-1]}
    assert len({colour for colour, _ in looks}) == 7
    assert len({(plots.COLOURS[i % 7], plots.STYLES[i % 4]) for i in range(28)}) == 28


@pytest.mark.parametrize("names", [["one"], "ab"])
def test_names_must_be_one_a_model(problem, names):
    with pytest.raises(ValueError, match="names must be 2, one a model"):
        plots.roc(*problem, names=names)


def test_scores_have_at_most_two_axes():
    with pytest.raises(ValueError, match=r"\[models, n\], got \[1, 1, 2\]"):
        plots.roc(np.zeros((1, 1, 2)), [0, 1])
