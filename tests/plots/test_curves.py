"""ROC, precision-recall, DET and cost curves, read back from the axes."""

import re
from itertools import pairwise

import numpy as np
import pytest
from axes import CURVES, NAMES, legend
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn import metrics as sk

import jaxmetrics as jm
from jaxmetrics import plots


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


@pytest.mark.filterwarnings("ignore:a band with weights")
def test_a_band_around_another_curve_is_refused(rng, ax):
    labels = rng.random(80) < 0.4
    scores = np.round(rng.normal(size=(2, 80)) + labels, 1)
    weights = np.where(labels, 1.0, rng.random(80))
    band = jm.roc_band(scores, labels, weights=weights, fpr=np.arange(1001) / 1000)
    plots.roc(scores, labels, weights=weights, band=band, ax=ax)
    with pytest.raises(ValueError, match=r"its TPR is .*, and that of the curve .*weights"):
        plots.roc(scores, labels, band=band, ax=ax)


def test_roc_with_window_passes_bands_and_intervals_on(problem, band):
    scores, labels = problem
    areas = [
        np.asarray(area)
        for area in (
            jm.roc_auc(scores, labels),
            jm.partial_auc(scores, labels, max_fpr=0.1, scale="mcclish"),
        )
    ]
    intervals = [jm.Interval(x, x - 0.1, x + 0.1, x, "auto", 0.9) for x in areas]
    figure = plots.roc_with_window(
        scores, labels, names=NAMES, max_fpr=0.1, band=band, intervals=tuple(intervals)
    )
    whole, window = figure.axes
    assert len(window.collections) == 3
    of_first = [f"{x[0]:.3f} [{x[0] - 0.1:.3f}, {x[0] + 0.1:.3f}]" for x in areas]
    assert legend(whole)[0] == f"one, AUC {of_first[0]}"
    assert legend(window)[0] == f"one, partial AUC {of_first[1]}"
    with pytest.raises(ValueError, match=r"of the partial AUC that is drawn, .* scale=\"mcclish\""):
        plots.roc_with_window(
            scores, labels, names=NAMES, max_fpr=0.1, intervals=(None, intervals[0])
        )
    figure.draw_without_rendering()
    assert whole.get_legend().get_window_extent().y0 >= 0


@pytest.mark.parametrize("max_fpr", [[0.1, 0.2], "0.1", 5])
def test_a_window_ends_at_one_rate(max_fpr, problem):
    for draw in (plots.roc, plots.roc_with_window):
        with pytest.raises(
            (TypeError, ValueError), match=r"max_fpr must be (a number )?in \(0, 1\]"
        ):
            draw(*problem, max_fpr=max_fpr)


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
