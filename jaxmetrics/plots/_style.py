"""The style of all plots: colours, line styles, legends and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.checks import brief, check_choice
from jaxmetrics._base.words import percent_text
from jaxmetrics.plots._names import width_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from jaxmetrics.plots._lines import ModelLine

# Seven colours and four line styles have no common divisor, so 28 lines differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "xxxx")
GREY = "#767676"
GREYS = ("#000000", "#5c5c5c", "#8a8a8a")  # of lines in print
_HOLLOW = {"markersize": 5, "markerfacecolor": "white", "markeredgewidth": 1}
FILLS = ("#ffffff", "#d2d2d2", "#a6a6a6")  # of bars in print, under black hatches

# Readers cannot distinguish the lines of more models: then only the first ones, as many as there
# are colours, have a colour.
MOST_MODELS = 8
_NARROW = 24  # columns of a name; in a legend, a wider one has its value below, not beside it

T = TypeVar("T")
StyleName = Literal["colour", "print"]
STYLE_NAMES = get_args(StyleName)


class Style(NamedTuple):
    """How a figure tells models apart: in print by greys, dashes and marks instead of colours.

    Models of an earlier call that drew into the same Axes are `drawn`, and come first.
    """

    in_print: bool
    drawn: int = 0

    def colour(self, i: int) -> str:
        """The colour of model i."""
        return self._of(GREYS if self.in_print else COLOURS, i)

    def look(self, i: int) -> dict[str, Any]:
        """The line style of model i."""
        style: Any = self._of(STYLES, i)
        return {"color": self.colour(i), "linestyle": style, "linewidth": 1.8}

    def edge(self, i: int) -> Any:
        """The line style of the edges of the band of model i."""
        return self._of(STYLES, i) if self.in_print else "-"

    def bar(self, i: int) -> dict[str, Any]:
        """The look of the bars of model i."""
        fills, edge = (FILLS, "black") if self.in_print else (COLOURS, "white")
        look = {"color": self._of(fills, i), "hatch": self._of(HATCHES, i)}
        return look | {"edgecolor": edge, "linewidth": 0.5}

    def marker(self, i: int) -> str:
        """The mark of the points of model i."""
        return self._of(MARKERS, i)

    def marks(self, i: int) -> dict[str, Any]:
        """The marks on the line of model i in print, at places where other models have none."""
        if not self.in_print:
            return {}
        first = 0.02 + 0.02 * self._of(range(len(MARKERS)), i)
        apart = (first, 0.14)  # shares of the diagonal of the axes
        return {"marker": self.marker(i), "markevery": apart, **_HOLLOW}

    def _of(self, looks: Sequence[T], i: int) -> T:
        return looks[(self.drawn + i) % len(looks)]


def style_of(name: StyleName, ax: Axes | None = None) -> Style:
    """The style of this name, for models that are drawn into these Axes."""
    check_choice("style", name, STYLE_NAMES)
    return Style(name == "print", 0 if ax is None else len(_models_in(ax)))


def axes_of(ax: Axes | None, height: float = 4.8) -> Axes:
    """The Axes that are given, or those of a new pyplot figure of this height in inches."""
    from matplotlib import axes, pyplot

    if ax is not None:
        if not isinstance(ax, axes.Axes):
            raise TypeError(
                f"ax must be matplotlib's Axes, got {brief(ax)}: write ax=pyplot.subplots()[1]"
            )
        return ax
    return pyplot.subplots(figsize=(6.4, height), layout="constrained")[1]


def _models_in(ax: Axes) -> list[Artist]:
    """The lines of models that have a place in the legend of these Axes."""
    from jaxmetrics.plots._lines import ModelLine

    return [x for x in axes_of(ax).get_legend_handles_labels()[0] if isinstance(x, ModelLine)]


def n_distinct(n: int) -> int:
    """How many of n models, the first ones, have a look of their own."""
    return n if n <= MOST_MODELS else len(COLOURS)


def labelled(names: Sequence[str], kind: str = "models") -> list[str]:
    """The label of each model; of many models, all but the first ones share a label."""
    n, most = len(names), n_distinct(len(names))
    others = [f"{n - most} other {kind}", *["_other"] * (n - most - 1)]
    return [*map(shown, names[:most]), *others[: n - most]]


def lines(names: Sequence[str], values: Sequence[str], style: Style) -> list[dict[str, Any]]:
    """The line style and label of each model; of many models, all but the first ones are grey."""
    most = n_distinct(len(names))
    first = [
        style.look(i) | style.marks(i) | {"label": legend_text(name, value)}
        for i, (name, value) in enumerate(zip(names[:most], values, strict=False))
    ]
    grey = {"color": GREY, "linewidth": 0.8, "alpha": 0.5, "zorder": 1.5}  # below lines, at 2
    return [*first, *(grey | {"label": label} for label in labelled(names)[most:])]


def draw_line(ax: Axes, x: Any, y: Any, **style: Any) -> ModelLine:
    """Draw a line that other artists can be tied to; `finish_axes` fits the axes to it."""
    from jaxmetrics.plots._lines import ModelLine

    x, y = np.asarray(x), np.asarray(y)
    if not np.isfinite(x + y).any():
        style.pop("markevery", None)  # Matplotlib measures distances along the line
    line = ModelLine(x, y, **style)
    ax.add_line(line)
    return line


def height_for(names: Sequence[str], height: float = 4.8) -> float:
    """The height of a figure of this height, in inches, with room for a legend of these names."""
    rows = [1 + (width_of(name) > _NARROW) for name in names[: n_distinct(len(names))]]
    return height + 0.17 * max(0, sum(rows) - 4)


def legend_text(name: str, value: str) -> str:
    """A name and the value after it, or below it if the name is long."""
    if not name:
        return value
    return f"{shown(name)}, {value}" if width_of(name) <= _NARROW else f"{shown(name)},\n{value}"


def shown(name: str) -> str:
    """A name as legends can show it: Matplotlib hides those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def level_text(limits: jm.RocBand | jm.Interval | jm.Comparison | jm.Slices) -> str:
    return percent_text(limits.confidence_level)


def band_label(limits: jm.RocBand | jm.Interval) -> str:
    return f"{level_text(limits)} pointwise band"


def shade(
    ax: Axes, x: Any, low: Any, high: Any, colour: str, *, edge: Any = "-", label: str | None = None
) -> Any:
    """Draw a light area with thin edges, which stay visible where areas overlap."""
    from matplotlib.colors import to_rgba

    x, low, high = (np.asarray(values) for values in (x, low, high))  # JAX's iterate slowly
    colours: Any = {"facecolor": to_rgba(colour, 0.13), "edgecolor": to_rgba(colour, 0.5)}
    return ax.fill_between(x, low, high, **colours, linestyle=edge, linewidth=0.7, label=label)


def tie(*artists: Artist) -> None:
    """From now on, setting the colour of one of these lines sets that of all the artists."""
    from jaxmetrics.plots._lines import ModelLine

    for artist in artists:
        if isinstance(artist, ModelLine):
            artist.tied = tuple(x for x in artists if x is not artist)


def bars(ax: Axes, x: Any, y: Any, colour: str) -> list[ModelLine]:
    """Draw error bars from `x[0], y[0]` to `x[1], y[1]`, which are `[2, bars]`."""
    look: dict[str, Any] = {"color": colour, "linewidth": 1.2, "solid_capstyle": "butt"}
    ends = zip(np.transpose(x), np.transpose(y), strict=True)
    return [draw_line(ax, *end, **look) for end in ends]


def mark_missing(ax: Axes, at: Any, axis: Literal["x", "y"], *, label: str) -> None:
    """Draw crosses for undefined values, at these positions of an axis and at its edge."""
    if not len(at):
        return
    edge = np.full(len(at), 0.025)
    across = ax.get_xaxis_transform() if axis == "x" else ax.get_yaxis_transform()
    x, y = (at, edge) if axis == "x" else (edge, at)
    cross: dict[str, Any] = {"marker": "x", "color": GREY, "markersize": 5, "linestyle": "none"}
    ax.plot(x, y, transform=across, label=label, **cross)


def finish_axes(ax: Axes, *, within: Literal["best", "lower left", "upper right"] = "best") -> Axes:
    """Draw the grid, and the legend below the axes, where it covers nothing.

    A figure without a layout engine makes no room there: the legend is then within the axes.
    """
    from matplotlib.transforms import ScaledTranslation

    ax.autoscale_view()
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
    handles, labels = _legend_of(ax)
    if not handles:
        return ax
    if ax.figure.get_layout_engine() is None:
        ax.legend(handles, labels, loc=within, framealpha=0.9, fontsize="small")
        return ax
    points = 34 + 14 * ax.get_xlabel().count("\n")
    below = ax.transAxes + ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below,
        ncols=_legend_columns(ax, labels),
        frameon=False,
        fontsize="small",
        borderaxespad=0,
    )
    return ax


def _legend_of(ax: Axes) -> tuple[list[Artist], list[str]]:
    """The entries of the legend: those of models, then once each those that all of them share.

    Matplotlib puts bars last, and calls that draw into the same Axes repeat what is shared.
    """
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

    handles: list[Artist] = []
    labels: list[str] = []
    shared: dict[str, Artist] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        if type(handle) is Line2D or isinstance(handle, Collection):
            shared[label] = handle
        else:
            handles.append(handle)
            labels.append(label)
    return [*handles, *shared.values()], [*labels, *shared]


def _legend_columns(ax: Axes, labels: list[str]) -> int:
    """How many columns of a legend fit the width of the axes, at 0.07 inches a letter."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    widest = 0.6 + 0.07 * max(width_of(line) for label in labels for line in label.split("\n"))
    return min(len(labels), max(1, int(inches / widest)))
