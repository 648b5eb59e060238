"""What the plots draw, read back from the axes."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
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


@pytest.fixture(scope="module")
def band():
    grid = np.array([0.001, 0.05, 0.1, 0.5, 1.0])
    tpr = np.array([[0.1, 0.4, 0.5, 0.8, 1.0], [0.3, 0.6, 0.7, 0.9, 1.0]])
    low, high = tpr - 0.1, np.minimum(tpr + 0.1, 1)
    return jm.RocBand(grid, tpr, low, high, low, high, 0.9)


def test_roc_shades_a_band_for_each_model(problem, band, ax):
    plots.roc(*problem, names=NAMES, band=band, ax=ax)
    *areas, proxy = ax.collections
    assert len(areas) == 2
    for i, area in enumerate(areas):
        (path,) = area.get_paths()
        corners = {tuple(np.round(point, 9)) for point in path.vertices}
        for y in (band.low[i], band.high[i]):
            assert set(zip(band.fpr, np.round(y, 9), strict=True)) <= corners
        assert to_hex(area.get_facecolor()[0]) == ax.get_lines()[i].get_color().lower()
    assert legend(ax)[-2:] == ["chance", "90 % pointwise band"]
    assert proxy.get_label() == legend(ax)[-1]


def test_roc_takes_the_band_of_one_model_without_an_axis_of_models(problem, band, ax):
    scores, labels = problem
    row = jm.RocBand(band.fpr, band.tpr[0], *[band.low[0], band.high[0]] * 2, 0.9)
    plots.roc(scores[0], labels, band=row, ax=ax)
    assert len(ax.collections) == 2


def test_roc_shows_the_interval_of_the_area(problem, ax):
    scores, labels = problem
    interval = jm.confidence_interval(jm.roc_auc, scores, labels)
    plots.roc(scores, labels, names=NAMES, interval=interval, ax=ax)
    limits = zip(interval.estimate, interval.low, interval.high, strict=True)
    expected = [f"AUC {area:.3f} [{low:.3f}, {high:.3f}]" for area, low, high in limits]
    assert legend(ax)[:2] == [f"{n}, {x}" for n, x in zip(NAMES, expected, strict=True)]


def test_bands_and_intervals_must_be_of_the_same_models(problem, band, ax):
    scores, labels = problem
    with pytest.raises(ValueError, match=r"band must be of 1 models.* got \[2, 5\]"):
        plots.roc(scores[0], labels, band=band, ax=ax)
    interval = jm.Interval(*np.zeros((4, 3)), "auto", 0.95)
    with pytest.raises(ValueError, match=r"interval must be of 2 models.* got \[3\]"):
        plots.roc(scores, labels, interval=interval, ax=ax)


def test_roc_with_window_passes_bands_and_intervals_on(problem, band):
    scores, labels = problem
    intervals = [jm.Interval(*np.full((4, 2), value), "auto", 0.9) for value in (0.25, 0.75)]
    figure = plots.roc_with_window(
        scores, labels, names=NAMES, max_fpr=0.1, band=band, intervals=tuple(intervals)
    )
    whole, window = figure.axes
    assert len(window.collections) == 3
    assert legend(whole)[0] == "one, AUC 0.250 [0.250, 0.250]"
    assert legend(window)[0] == "one, partial AUC 0.750 [0.750, 0.750]"
    figure.draw_without_rendering()
    assert whole.get_legend().get_window_extent().y0 >= 0


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


@pytest.fixture
def rankings(rng):
    """Scores of two models, grades and queries, of which the last has nothing relevant."""
    query = rng.permutation(np.repeat(np.arange(6), 7))
    grades = rng.integers(0, 4, 42) * (query < 5)
    return rng.normal(size=(2, 42)) + grades * [[0.5], [2.0]], grades, query


def test_ndcg_at_k_draws_the_mean_of_scikit_learns(rankings, ax):
    scores, grades, query = rankings
    plots.ndcg_at_k(scores, grades, segments=query, names=NAMES, max_k=4, ax=ax)
    members = [query == q for q in range(5)]
    for line, row, name in zip(ax.get_lines(), scores, NAMES, strict=True):
        means = [
            np.mean([sk.ndcg_score([grades[m]], [row[m]], k=k) for m in members])
            for k in range(1, 5)
        ]
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
        np.testing.assert_allclose(line.get_ydata(), means, atol=1e-6)
        assert f"{name}, nDCG@4 {means[-1]:.3f}" in legend(ax)


def test_ndcg_at_k_of_rows_and_with_a_band(rankings, ax):
    scores, grades, query = rankings
    order = np.argsort(query, kind="stable")
    scores, grades = scores[0][order].reshape(6, 7), grades[order].reshape(6, 7)
    low, high = np.full(4, 0.25), np.full(4, 0.75)
    interval = jm.Interval(low, low, high, low, "percentile", 0.9)
    plots.ndcg_at_k(scores, grades, max_k=4, interval=interval, ax=ax)
    assert legend(ax)[0].endswith(" [0.250, 0.750]")
    assert legend(ax)[1] == "90 % pointwise band"
    vertices = ax.collections[0].get_paths()[0].vertices
    assert {*vertices[:, 1]} == {0.25, 0.75}
    with pytest.raises(ValueError, match="for each k from 1 to 3, got 4"):
        plots.ndcg_at_k(scores, grades, max_k=3, interval=interval, ax=ax)
    with pytest.raises(ValueError, match="max_k must be at least 1"):
        plots.ndcg_at_k(scores, grades, max_k=0)
    with pytest.raises(ValueError, match=r"\[queries, docs\] or \[models, queries, docs\]"):
        plots.ndcg_at_k(scores[0], grades[0])
