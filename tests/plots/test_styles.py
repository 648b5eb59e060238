"""The styles of plots, in colour and for print."""

import inspect
import pickle

import numpy as np
import pytest
from axes import NAMES, interval_of, legend
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure

import jaxmetrics as jm
from jaxmetrics import plots


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


@pytest.mark.parametrize("style", ["colour", "print"])
def test_models_of_two_calls_look_as_those_of_one(problem, style):
    """In the same Axes; the legend has what they share once, after the models."""
    scores, labels = problem
    for draw in (plots.roc, plots.precision_recall, plots.det, plots.cost, plots.calibration):
        given = scores if draw is not plots.calibration else 1 / (1 + np.exp(-scores))
        together, apart = Figure().subplots(1, 2)
        draw(given, labels, names=["one", "two"], ax=together, style=style)
        for one, name in zip(given, ["one", "two"], strict=True):
            draw(one, labels, names=[name], ax=apart, style=style)
        assert legend(apart) == legend(together), draw
        assert _colours(apart) == _colours(together), draw
        assert len(apart.child_axes) == len(together.child_axes)
        looks = [
            {(x.get_color(), x.get_linestyle(), x.get_marker()) for x in ax.lines}
            for ax in (apart, together)
        ]
        assert looks[0] == looks[1], draw
    low = Figure().subplots()
    for end in (0.7, 0.3):
        plots.calibration(labels * end, labels, ax=low, style=style)
        assert low.get_xlim()[1] > 0.7


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
    value = np.asarray(jm.average_precision(*problem), float)
    width = np.array([0.004, 0.2])
    narrow = jm.Interval(value, value - width / 2, value + width / 2, width, "wald", 0.95)
    plots.precision_recall(*problem, names=NAMES, interval=narrow, ax=ax)
    for text, name, at, w in zip(legend(ax), NAMES, value, width, strict=False):
        assert text == f"{name}, AP {at:.4f} [{at - w / 2:.4f}, {at + w / 2:.4f}]"
    assert f"{value[0]:.4f}" in str(narrow)
    other = jm.Interval(value - 0.1, value, value, width, "wald", 0.95)
    with pytest.raises(ValueError, match="interval must be of the average precision that is drawn"):
        plots.precision_recall(*problem, names=NAMES, interval=other, ax=ax)
    with pytest.raises(ValueError, match=r"interval must be of 2 models"):
        plots.precision_recall(*problem, interval=interval_of([0.5] * 3), ax=ax)
