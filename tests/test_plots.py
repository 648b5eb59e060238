"""What the plots draw, read back from the axes."""

import inspect
import pickle
import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba, to_rgba_array
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import binomtest, norm
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._base.words import percent_text
from jaxmetrics.plots._names import short_names, visible, width_of

NAMES = ["one", "two"]
CURVES = [plots.roc, plots.precision_recall, plots.det, plots.cost]


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
    with pytest.raises(TypeError, match=r"got True: pass band=jm.roc_band\(scores, labels\)"):
        plots.roc(scores, labels, band=True, ax=ax)


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
    plots.precision_recall(scores, labels, names=np.array(NAMES), ax=ax)
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


def test_det_draws_scikit_learns_curve_in_deviates(problem, ax):
    scores, labels = problem
    assert plots.det(scores, labels, names=NAMES, ax=ax) is ax
    *lines, chance = ax.get_lines()
    for line, row, name, text in zip(lines, scores, NAMES, legend(ax), strict=False):
        drawn = line.get_xydata()
        fpr, fnr, _ = sk.det_curve(labels, row, drop_intermediate=True)
        for point in np.column_stack([fpr, fnr]):
            assert np.abs(drawn - point).max(axis=1).min() < 1e-6
        # What lies between is of the ROC curve, which is straight in rates.
        fpr, tpr, _ = sk.roc_curve(labels, row, drop_intermediate=False)
        sloped = np.flatnonzero((np.diff(drawn, axis=0) != 0).all(axis=1))
        between = drawn[sloped]
        below = np.interp(between[:, 0] - 1e-6, fpr, 1 - tpr)
        above = np.interp(between[:, 0] + 1e-6, fpr, 1 - tpr)
        assert len(drawn) > len(fpr)
        assert (between[:, 1] <= below + 1e-5).all()
        assert (between[:, 1] >= above - 1e-5).all()
        error = brentq(lambda x, fpr=fpr, tpr=tpr: np.interp(x, fpr, tpr) - 1 + x, 0, 1)
        assert text == f"{name}, EER {error:.3f}"
    rates = np.array([0.01, 0.5, 0.9])
    for axis in (ax.xaxis, ax.yaxis):
        np.testing.assert_allclose(axis.get_transform().transform(rates), norm.ppf(rates))
    assert legend(ax)[2] == "chance"
    np.testing.assert_allclose(chance.get_xdata() + chance.get_ydata(), 1)


def test_det_has_rates_at_ticks_that_do_not_overlap(problem):
    figure = Figure(figsize=(3.5, 3), layout="constrained")
    ax = plots.det(*problem, ax=figure.subplots())
    figure.draw_without_rendering()
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        ticks = axis.get_majorticklocs()
        assert len(ticks) > 4
        assert limits[0] < ticks[0] < ticks[-1] < limits[1]
        assert [tick.get_text() for tick in axis.get_ticklabels()] == [f"{x:g}" for x in ticks]
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_det_without_an_error_has_limits(ax):
    plots.det([0.1, 0.9], [0, 1], ax=ax)
    assert legend(ax)[0] == "EER 0.000"
    assert 0 < ax.get_xlim()[0] < ax.get_xlim()[1] < 1


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


@pytest.mark.parametrize(
    "draw", [*CURVES, plots.calibration, plots.score_distributions], ids=lambda f: f.__name__
)
def test_what_is_undefined_is_drawn_as_nothing(draw, ax):
    draw([0.1, float("nan")], [0, 1], ax=ax)
    assert re.search(r" -($|,| by)", legend(ax)[0])
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize("draw", CURVES, ids=lambda f: f.__name__)
def test_a_table_is_drawn_as_its_scores_are(draw, problem):
    of_scores, of_table = Figure().subplots(1, 2)
    draw(*problem, names=NAMES, ax=of_scores)
    table = jm.score_table(*problem)
    draw(table, names=NAMES, ax=of_table)
    assert legend(of_table) == legend(of_scores)
    for a, b in zip(of_table.get_lines(), of_scores.get_lines(), strict=True):
        np.testing.assert_allclose(a.get_xydata(), b.get_xydata(), atol=1e-6)
    with pytest.raises(TypeError, match="ScoreTable already holds labels"):
        draw(table, problem[1])
    with pytest.raises(ValueError, match=r"\[rows\] or \[models, rows\], got \[1, 2, 300\]"):
        draw(jm.ScoreTable(*(x[None] for x in table)))


def test_the_table_of_a_stream_is_drawn(problem, ax):
    scores, labels = problem
    bins = jm.streaming.edges([-1.0, 0.0, 1.0, 2.0])
    state = jm.streaming.update(jm.streaming.init(bins), scores[0], labels, bins=bins)
    table = jm.streaming.table(state, bins=bins)
    plots.cost(table, ax=ax)
    x, y = ax.get_lines()[0].get_data()
    np.testing.assert_allclose(x, [-1.15, -1, 0, 1, 2, 2.15])  # the ends are infinite
    assert y[0] == (~labels).sum()
    assert y[-1] == labels.sum()


def test_the_legend_is_below_where_there_is_room_for_it(problem):
    for layout in (None, "constrained"):
        figure = Figure(figsize=(3.5, 3), layout=layout)
        names = ["logistic regression", "nearest neighbours"]
        ax = plots.roc(*problem, names=names, ax=figure.subplots())
        figure.draw_without_rendering()
        box, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert box.y0 >= 0
        assert (box.y1 < ax.xaxis.label.get_window_extent().y0) == (layout is not None)
        assert (axes.y0 <= box.y0) == (layout is None)
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert axes.height > 0.4 * figure.bbox.height


def test_bars_and_marks_of_many_are_grey_past_the_first(ax):
    """No colour stands for two models of bars, or for two metrics."""
    rng = np.random.default_rng(0)
    plots.deciles(rng.random((10, 10)), names=list("abcdefghij"), ax=ax)
    bars = [bar[0].get_facecolor() for bar in ax.containers]
    assert len(set(bars[:7])) == 7
    assert set(bars[7:]) == {to_rgba(plots._style.GREY)}
    assert [x.get_text() for x in ax.get_legend().get_texts()] == [*"abcdefg", "3 other models"]
    value = np.full(2, 0.5)
    intervals = [jm.Interval(value, value, value, value, "wald", 0.95)] * 9
    ax = plots.forest(intervals, metrics=list("abcdefghi"))
    labels = [x.get_text() for x in ax.get_legend().get_texts()]
    assert labels == [*"abcdefg", "2 other metrics", "95 % interval"]
    greys = [x for x in ax.lines if x.get_marker() == "o" and x.get_color() == plots._style.GREY]
    assert sum(len(x.get_xdata()) > 0 for x in greys) == 2


def test_lines_differ_in_colour_or_style(ax):
    plots.roc(np.zeros((8, 2)), [0, 1], ax=ax)
    looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()[:-1]}
    assert len({colour for colour, _ in looks}) == 7
    assert len(looks) == 8


@pytest.mark.parametrize("draw", [*CURVES, plots.calibration], ids=lambda f: f.__name__)
def test_of_many_models_the_first_have_colours(draw, ax):
    draw(np.full((20, 2), 0.5), [0, 1], ax=ax)
    assert [text for text in legend(ax) if "other" in text] == ["13 other models"]
    assert [text.split(",")[0] for text in legend(ax)[:7]] == [f"model {i}" for i in range(7)]
    thin = [line for line in ax.get_lines() if line.get_linewidth() < 1]
    assert len(thin) == 13
    assert {line.get_color() for line in thin} == {plots._style.GREY}
    bright = {line.get_color() for line in ax.get_lines() if line.get_linewidth() > 1.5}
    assert bright >= {*plots.COLOURS}


# Names.


def test_long_names_lose_their_middle():
    assert short_names(["a" * 36, "模" * 18], 36) == ["a" * 36, "模" * 18]
    assert short_names(["begin" + "-" * 300 + "end!"], 11) == ["begin…-end!"]
    assert width_of(short_names(["模型" * 60])[0]) <= 36
    twins = [f"{'a' * 40} {i} {'b' * 40}" for i in range(2)]
    assert [name[:4] for name in short_names([*twins, "c"])] == ["1: a", "2: a", "c"]
    assert short_names(["same", "same"]) == ["same", "same"]


def test_control_characters_are_escaped():
    assert visible("red\x1b[31m\n") == r"red\x1b[31m\n"
    assert visible("a\n\u202eb", keep="\n") == "a\n" + r"\u202eb"
    assert visible("中文 🚀 é") == "中文 🚀 é"


def test_names_of_300_characters_stay_within_the_figure(problem):
    names = ["L" * 150 + "R" * 150, "a name of fifty-one characters, as experiments have"]
    figure = plots.roc_with_window(*problem, names=names, max_fpr=0.1)
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.get_legend().get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert box.y0 >= 0
        assert ax.get_window_extent().height > 0.5 * figure.bbox.height
    left, right = (ax.get_legend().get_window_extent() for ax in figure.axes)
    assert left.x1 < right.x0
    figure = Figure(figsize=(6.4, 2), layout="constrained")
    ax = plots.forest(interval_of([0.5, 0.6]), names=names, ax=figure.subplots())
    figure.draw_without_rendering()
    assert min(text.get_window_extent().x0 for text in ax.get_yticklabels()) >= 0


def test_formulas_stay_whole(ax):
    name = r"$\frac{1}{2}$ of the training data and a name of many characters"
    plots.forest(interval_of([0.5]), names=[name], ax=ax)
    assert ax.get_yticklabels()[0].get_text() == name


@pytest.mark.parametrize(
    ("level", "text"),
    [
        *((0.95, "95 %"), (1 - 0.05 / 3, "98.33 %"), (1 - 0.05 / 2000, "99.9975 %")),
        *((0.999, "99.9 %"), (0.99996, "99.996 %"), (0.4567, "45.7 %"), (0.0968, "9.68 %")),
        *((0.0000123, "0.00123 %"), (0.0, "0 %"), (1.0, "100 %")),
    ],
)
def test_levels_in_per_cent(level, text):
    assert percent_text(level) == text


@pytest.mark.parametrize("names", [["one"], "ab"])
def test_names_must_be_one_a_model(problem, names):
    with pytest.raises(ValueError, match="names must have one name a model, 2 in all"):
        plots.roc(*problem, names=names)


@pytest.mark.parametrize(
    "draw", [*CURVES, plots.calibration, plots.score_distributions], ids=lambda f: f.__name__
)
def test_scores_must_have_the_models_of_labels(draw):
    with pytest.raises(ValueError, match=r"a row for each model .* got 1 for 2: write jnp"):
        draw([0.5, 0.25], [[0, 1], [1, 0]])


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


@pytest.fixture
def probabilities(rng):
    labels = rng.random(300) < 0.4
    return rng.beta(2, 3, size=(2, 300)) * 0.7 + 0.3 * labels * rng.random(300), labels


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_calibration_draws_scikit_learns_curve_and_wilsons_limits(probabilities, strategy, ax):
    scores, labels = probabilities
    plots.calibration(scores, labels, names=NAMES, n_bins=5, strategy=strategy, ax=ax)
    lines = ax.get_lines()
    drawn, bars = [line for line in lines if line.get_label()[0] != "_"], lines
    for line, row, text in zip(drawn, scores, legend(ax), strict=False):
        share, mean = calibration_curve(labels, row, n_bins=5, strategy=strategy)
        np.testing.assert_allclose(line.get_xdata(), mean, rtol=1e-6)
        np.testing.assert_allclose(line.get_ydata(), share, rtol=1e-6)
        observed = labels.mean()
        assert text.endswith(f", mean {row.mean():.3f}, observed {observed:.3f}")
        if strategy == "quantile":
            for x, p in zip(mean, share, strict=True):
                limits = binomtest(round(60 * p), 60).proportion_ci(method="wilson")
                (bar,) = (b for b in bars if len(b.get_xdata()) == 2 and b.get_xdata()[0] == x)
                np.testing.assert_allclose(bar.get_ydata(), limits, rtol=1e-6)
    assert legend(ax)[2:] == ["calibrated", "95 % interval"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Mean score", "Share of positives")


def test_calibration_has_the_scores_above(probabilities, ax):
    scores, labels = probabilities
    plots.calibration(scores, labels, n_bins=5, ax=ax)
    (above,) = ax.child_axes
    assert above.get_xlim() == ax.get_xlim()
    for patch, row in zip(above.patches, scores, strict=True):
        values, edges, _ = patch.get_data()
        np.testing.assert_allclose(values, np.histogram(row, edges)[0] / 300)


def test_calibration_with_weights_and_where(probabilities, ax):
    scores, labels = probabilities
    weights, where = np.arange(300) % 3, np.arange(300) % 5 > 0
    odd = np.where(where, scores, [[np.nan], [7.0]])
    plots.calibration(odd, labels, weights=weights, where=where, n_bins=5, ax=ax)
    copies = np.repeat(np.arange(300), weights * where)
    share, mean = calibration_curve(
        labels[copies], scores[1][copies], n_bins=5, strategy="quantile"
    )
    line = next(line for line in ax.get_lines() if line.get_label().startswith("model 1"))
    np.testing.assert_allclose(line.get_xdata(), mean, atol=2e-3)  # one item may be in two bins
    np.testing.assert_allclose(line.get_ydata(), share, atol=3e-2)
    total = np.sum(weights[where])
    observed = np.sum(weights[where] * labels[where]) / total
    assert legend(ax)[1].endswith(f"observed {observed:.3f}")


def test_weights_make_calibration_less_sure(ax):
    """As (sum w)^2 / sum w^2 items would; here of 2 * 16 / 10 = 3.2 of 4, with one bin."""
    weights = np.array([1.0, 1.0, 3.0, 3.0])
    plots.calibration([0.5] * 4, [0, 1, 0, 1], weights=weights, n_bins=1, ax=ax)
    n, z = 64 / 20, norm.ppf(0.975)
    margin = z * np.sqrt(n * 0.25 + z**2 / 4) / (n + z**2)
    bar = ax.get_lines()[1]
    np.testing.assert_allclose(bar.get_ydata(), [0.5 - margin, 0.5 + margin], rtol=1e-6)


def test_ties_are_in_one_bin(ax):
    plots.calibration([0.1] * 6 + [0.7] * 2, [0, 1] * 4, n_bins=4, ax=ax)
    np.testing.assert_allclose(ax.get_lines()[0].get_xydata(), [[0.1, 0.5], [0.7, 0.5]])


def test_what_calibration_refuses(probabilities):
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\], got 1.5: write"):
        plots.calibration([0.5, 1.5], [0, 1])
    with pytest.raises(ValueError, match="strategy must be one of"):
        plots.calibration([0.5, 0.5], [0, 1], strategy="even")
    with pytest.raises(ValueError, match="n_bins must be at least 1"):
        plots.calibration([0.5, 0.5], [0, 1], n_bins=0)
    for draw in (plots.calibration, plots.score_distributions):
        with pytest.raises(ValueError, match="n_bins = 100,000,000,000,000 needs 3,200,000 GB"):
            draw([0.5, 0.5], [0, 1], n_bins=10**14)


def test_score_distributions_are_densities_of_each_class(problem, ax):
    scores, labels = problem
    scores = scores.astype(np.float32)
    weights, where = np.arange(300.0), np.arange(300) % 2 == 0
    of = {"weights": weights, "where": where}
    plots.score_distributions(scores[0], labels, names=["no", "yes"], n_bins=7, ax=ax, **of)
    for i, name in enumerate(["no", "yes"]):
        area, outline = ax.patches[2 * i : 2 * i + 2]
        values, edges, _ = outline.get_data()
        members = where & (labels == i)
        whole = scores[0][where]
        np.testing.assert_allclose(edges, np.linspace(whole.min(), whole.max(), 8), atol=1e-6)
        expected, _ = np.histogram(
            scores[0][members], edges, weights=weights[members], density=True
        )
        np.testing.assert_allclose(values, expected, rtol=1e-5)
        np.testing.assert_array_equal(values, area.get_data().values)
        mean = np.average(scores[0][members], weights=weights[members])
        assert legend(ax)[i] == f"{name}, mean {mean:.3f}"
    assert ax.patches[1].get_linestyle() != ax.patches[3].get_linestyle()
    assert ax.patches[2].get_hatch()


def test_infinite_scores_count_in_the_area(ax):
    table = jm.ScoreTable(np.array([np.inf, 2.0, 1.0]), np.array([1, 1, 0]), np.array([0, 1, 1]))
    plots.score_distributions(table, n_bins=2, ax=ax)
    np.testing.assert_allclose(ax.patches[3].get_data().values, [0, 1])
    np.testing.assert_allclose(ax.patches[1].get_data().values, [1, 1])


def test_infinite_scores_of_both_signs_have_no_mean(ax):
    with warnings.catch_warnings(action="error"):
        plots.score_distributions([-np.inf, 1.0, 2.0, np.inf], [0, 0, 1, 0], ax=ax)
    assert ax.get_legend_handles_labels()[1] == ["negative, mean -", "positive, mean 2.000"]


def test_what_score_distributions_refuse(problem):
    with pytest.raises(ValueError, match="scores must be of one model, got 2"):
        plots.score_distributions(*problem)
    with pytest.raises(ValueError, match="names must have one name a class, 2 in all"):
        plots.score_distributions(problem[0][0], problem[1], names=["positive"])


@pytest.fixture
def by_decile():
    values = np.arange(20.0).reshape(2, 10) / 20
    values[0, 3] = values[1, 9] = np.nan
    return values


def centres(ax):
    return np.array([bar.get_x() + bar.get_width() / 2 for bar in ax.patches])


def test_deciles_are_bars_from_ten_to_one(by_decile, ax):
    assert plots.deciles(by_decile, names=NAMES, metric="nDCG at 5", ax=ax) is ax
    groups = np.round(centres(ax)).astype(int) - 1
    heights = [bar.get_height() for bar in ax.patches]
    there = ~np.isnan(by_decile)
    np.testing.assert_array_equal(groups, np.concatenate([np.flatnonzero(x) for x in there]))
    np.testing.assert_array_equal(heights, by_decile[there])
    (crosses,) = ax.get_lines()
    np.testing.assert_allclose(crosses.get_xdata(), [4.2, 9.8])  # the first model on the left
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    assert legend(ax) == ["one", "two", "no value"]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    assert ax.get_ylabel() == "nDCG at 5"


def test_deciles_of_an_interval_have_its_limits(by_decile, ax):
    interval = jm.Interval(by_decile, by_decile - 0.1, by_decile + 0.2, by_decile, "auto", 0.9)
    plots.deciles(interval, ax=ax)
    bars = [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) == 2][:18]
    np.testing.assert_allclose([bar[0, 0] for bar in bars], centres(ax))
    expected = by_decile[~np.isnan(by_decile)]
    np.testing.assert_allclose(
        [bar[:, 1] for bar in bars], np.array([expected - 0.1, expected + 0.2]).T
    )
    assert legend(ax) == ["model 0", "model 1", "90 % interval", "no value"]


def test_what_deciles_refuse(by_decile):
    with pytest.raises(ValueError, match=r"\[10\] or \[models, 10\], one a decile, got \[2, 9\]"):
        plots.deciles(by_decile[:, 1:])
    with pytest.raises(ValueError, match="names must have one name a model, 2 in all"):
        plots.deciles(by_decile, names=["one"])


def interval_of(estimate, level=0.95):
    estimate = np.asarray(estimate)
    return jm.Interval(estimate, estimate - 0.2, estimate + 0.1, estimate, "auto", level)


def segments(ax):
    """The error bars, as y and both ends."""
    lines = [line.get_xydata() for line in ax.get_lines() if line.get_marker() == "None"]
    return [(*line[0, ::-1], line[1, 0]) for line in lines if len(line) == 2]


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


def test_names_may_begin_with_an_underscore():  # which Matplotlib leaves out of legends
    ax = plots.roc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], names=["_new"])
    assert ax.get_legend_handles_labels()[1][0] == " _new, AUC 0.750"


def test_names_and_axes_that_are_none():
    with pytest.raises(ValueError, match="names must have one name a model, 1 in all, got 3"):
        plots.roc([0.1, 0.9], [0, 1], names=3)
    with pytest.raises(TypeError, match=r"ax must be matplotlib's Axes, got 'z': write ax=pyplot"):
        plots.roc([0.1, 0.9], [0, 1], ax="z")


# Styles, and colours that are changed.


def _slices_of_months():
    months = np.repeat(["2026-01", "2026-02", "2026-03"], 100)
    rng = np.random.default_rng(5)
    labels = rng.random(300) < 0.3
    return jm.slices(jm.roc_auc, rng.normal(size=(2, 300)) + labels, labels, months, min_items=2)


def _drawn_all(problem, band, rankings, **options):
    """Each function, with all that it draws for two models."""
    scores, labels = problem
    shares = 1 / (1 + np.exp(-scores))
    interval = interval_of([0.3, 0.6])
    ranked, grades, segments = rankings
    ks = np.stack([np.linspace(0.3, 0.6, 5)] * 2)
    of_ks = jm.Interval(ks, ks - 0.1, ks + 0.1, ks, "wald", 0.95)
    named = {"names": NAMES, **options}
    calls = {
        "roc": lambda ax: plots.roc(scores, labels, band=band, ax=ax, **named),
        "precision_recall": lambda ax: plots.precision_recall(scores, labels, ax=ax, **named),
        "det": lambda ax: plots.det(scores, labels, ax=ax, **named),
        "cost": lambda ax: plots.cost(scores, labels, ax=ax, **named),
        "calibration": lambda ax: plots.calibration(shares, labels, ax=ax, **named),
        "ndcg_at_k": lambda ax: plots.ndcg_at_k(
            ranked, grades, segments=segments, max_k=5, interval=of_ks, ax=ax, **named
        ),
        "trend": lambda ax: plots.trend(_slices_of_months(), ax=ax, **named),
        "forest": lambda ax: plots.forest(
            [interval, interval],
            metrics=["AUC", "AP"],
            best_set=[[True, False]] * 2,
            ax=ax,
            **named,
        ),
        "differences": lambda ax: plots.differences(
            jm.compare(jm.roc_auc, scores, labels), ax=ax, **named
        ),
        "deciles": lambda ax: plots.deciles(interval_of(np.full((2, 10), 0.5)), ax=ax, **named),
        "score_distributions": lambda ax: plots.score_distributions(
            scores[0], labels, ax=ax, **named
        ),
    }
    return {name: draw(Figure().subplots()) for name, draw in calls.items()}


def _colours(ax):
    """All colours that the axes and their children show, without opacity."""
    found = set()
    for artist in ax.findobj():
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            if hasattr(artist, f"get_{name}"):
                colours = np.reshape(to_rgba_array(getattr(artist, f"get_{name}")()), (-1, 4))
                found |= {to_hex(x) for x in colours if x[3] > 0}
    return found


def test_print_has_only_greys_and_tells_models_apart(problem, band, rankings):
    for name, ax in _drawn_all(problem, band, rankings, style="print").items():
        odd = {x for x in _colours(ax) if not x[1:3] == x[3:5] == x[5:7]}
        assert odd == set(), name
        ax.figure.draw_without_rendering()
    looks = set()
    ax = plots.roc(np.random.default_rng(0).random((8, 20)), np.arange(20) % 2, style="print")
    for line in ax.lines[:8]:
        looks.add((line.get_marker(), str(line.get_linestyle())))
    assert len({marker for marker, _ in looks}) == 7
    assert len(looks) == 8


def test_the_default_style_is_in_colour(problem, band, rankings):
    for name, ax in _drawn_all(problem, band, rankings).items():
        assert _colours(ax) & {x.lower() for x in plots.COLOURS}, name
        marks = {x.get_marker() for x in ax.lines if len(x.get_xdata()) > 20}
        assert marks <= {"None", ""}, name


def test_bad_styles_are_refused_before_any_work():
    for name in plots.__all__:
        draw = getattr(plots, name)
        given = dict.fromkeys(_positional(draw), object())
        more = {"max_fpr": 0.1} if name == "roc_with_window" else {}
        with pytest.raises(ValueError, match=r"style must be .*'colour'.*'print'.* got 'gray'"):
            draw(**given, **more, style="gray")


def _positional(function):
    parameters = inspect.signature(function).parameters.values()
    return [x.name for x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD]


RECOLOURED = ["roc", "precision_recall", "det", "cost", "calibration", "ndcg_at_k", "trend"]


@pytest.mark.parametrize("style", ["colour", "print"])
def test_a_line_hands_its_colour_to_band_and_legend(problem, band, rankings, style):
    """At once, by each of Matplotlib's ways, and for the other models not at all."""
    drawn = _drawn_all(problem, band, rankings, style=style)
    for name in (*RECOLOURED, "forest", "differences"):
        ax = drawn[name]
        old, second = (to_hex(plots._style.style_of(style).colour(i)) for i in (0, 1))
        assert old in _colours(ax)
        n_other = sum(to_hex(x.get_color()) == second for x in ax.lines)
        line = next(x for x in ax.lines if to_hex(x.get_color()) == old)
        line.set_color("red")
        assert "#ff0000" in _colours(ax), name
        assert old not in _colours(ax) - {"#000000"}, name
        left = [x for x in ax.lines if to_hex(x.get_color()) == old]
        assert not left, name
        assert sum(to_hex(x.get_color()) == second for x in ax.lines) == n_other, name
        if name not in ("differences",):
            assert "#ff0000" in {to_hex(x) for x in _legend_colours(ax)}, name
        line.set(color=(0, 0, 1, 0.5))
        assert "#ff0000" not in _colours(ax), name
        assert "#0000ff" in _colours(ax), name


def _legend_colours(ax):
    return [x.get_color() for x in ax.get_legend().legend_handles if hasattr(x, "get_color")]


def test_bands_keep_their_opacity_and_later_legends_the_colour(problem, band, ax):
    plots.roc(*problem, names=NAMES, band=band, ax=ax)
    before = [x.get_facecolor()[0, 3] for x in ax.collections]
    ax.get_legend().get_texts()[0].set_text("renamed")
    ax.lines[0].set_color("red")
    area = ax.collections[0]
    assert to_hex(area.get_facecolor()[0]) == to_hex(area.get_edgecolor()[0]) == "#ff0000"
    assert [x.get_facecolor()[0, 3] for x in ax.collections] == before
    assert ax.get_legend().legend_handles[0].get_color() == "red"
    copy = pickle.loads(pickle.dumps(ax.figure)).axes[0]
    ax.legend(loc="lower right")
    ax.lines[1].set_color("green")
    assert [x.get_color() for x in ax.get_legend().legend_handles[:2]] == ["red", "green"]
    copy.lines[0].set_color("blue")
    assert to_hex(copy.collections[0].get_facecolor()[0]) == "#0000ff"
    assert to_hex(ax.collections[0].get_facecolor()[0]) == "#ff0000"


def test_legends_have_the_digits_of_the_interval(problem, ax):
    """As in results and reports: two of the narrowest width, and three decimals at least."""
    value = np.array([0.98765, 0.81234])
    width = np.array([0.004, 0.2])
    narrow = jm.Interval(value, value - width / 2, value + width / 2, width, "wald", 0.95)
    plots.precision_recall(*problem, names=NAMES, interval=narrow, ax=ax)
    assert legend(ax)[0] == "one, AP 0.9877 [0.9857, 0.9897]"
    assert legend(ax)[1] == "two, AP 0.8123 [0.7123, 0.9123]"
    assert "0.9877" in str(narrow)
    with pytest.raises(ValueError, match=r"interval must be of 2 models"):
        plots.precision_recall(*problem, interval=interval_of([0.5] * 3), ax=ax)


def test_the_lowest_number_is_drawn_as_an_infinite_score_is(ax):
    """It stands for items that are left out in some files; the length of such an axis overflows."""
    scores, labels = [np.finfo(float).min, 0.2, 0.4, 0.9], [0, 0, 1, 1]
    plots.score_distributions(scores, labels, ax=ax)
    assert 0 < ax.get_xlim()[1] < 2
    plots.cost(scores, labels, fp_cost=1, fn_cost=1).figure.canvas.draw()


def test_calibration_of_rare_positives_has_digits(ax):
    plots.calibration(np.full(10_000, 4e-4), np.arange(10_000) < 4, ax=ax)
    assert "mean 0.00040, observed 0.00040" in ax.get_legend_handles_labels()[1][0]
