"""Names of models in plots: long, odd, missing or too few."""

import numpy as np
import pytest
from axes import CURVES, interval_of, legend
from matplotlib import rc_context
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

from jaxmetrics import plots
from jaxmetrics._base.words import percent_text
from jaxmetrics.plots._names import short_names, visible, width_of


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


@pytest.mark.parametrize("names", [["up to $5_a_b$", "$$"], ["cost_$5", "cost_$9"]])
def test_dollars_that_are_no_formula_are_drawn(ax, names, problem):
    plots.roc(*problem, names=names, ax=ax)
    plots.forest(interval_of([0.5, 0.6]), names=names, ax=ax)
    ax.figure.draw_without_rendering()
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert [text.replace("\\$", "$") for text in ticks] == names
    assert not any(is_math_text(text) for text in [*ticks, "".join(ticks), *legend(ax)])


def test_dollars_where_there_are_no_formulas(ax, problem):
    with rc_context({"text.parse_math": False}):
        plots.roc(*problem, names=["$1$", "$2"], ax=ax)
    assert [text.split(",")[0] for text in legend(ax)][:2] == ["$1$", "$2"]


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


def test_names_may_begin_with_an_underscore():  # which Matplotlib leaves out of legends
    ax = plots.roc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], names=["_new"])
    assert ax.get_legend_handles_labels()[1][0] == " _new, AUC 0.750"


def test_names_and_axes_that_are_none():
    with pytest.raises(ValueError, match="names must have one name a model, 1 in all, got 3"):
        plots.roc([0.1, 0.9], [0, 1], names=3)
    with pytest.raises(TypeError, match=r"ax must be matplotlib's Axes, got 'z': write ax=pyplot"):
        plots.roc([0.1, 0.9], [0, 1], ax="z")
