"""Legends, colours and lines of few and of many models."""

import numpy as np
import pytest
from axes import CURVES, legend
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import jaxmetrics as jm
from jaxmetrics import plots


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
