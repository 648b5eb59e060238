"""A metric over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics._base.words import p_value
from jaxmetrics.plots._inputs import names_of
from jaxmetrics.plots._style import (
    GREY,
    StyleName,
    axes_of,
    draw_line,
    finish_axes,
    height_for,
    level_text,
    lines,
    mark_missing,
    n_distinct,
    shade,
    style_of,
    tie,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER = 0.075  # inches


def trend(
    slices: jm.Slices,
    *,
    times: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    metric: str | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """A metric over slices in order of time, with pointwise intervals, and its linear trend.

    Draws the values of each model, a band of their intervals, each for its slice alone, and the
    line of `jm.trend`, whose p-value is in the legend. Slices that are too small have a cross; if
    all are too small, only crosses are drawn. Of more than 8 models, the first 7 are in colour and
    the others grey, without bands.

    Args:
      slices: what `slices` returns.
      times: `[slices]`, as for `jm.trend`; slices without a time are not drawn.
      names: one name for each model, for the legend.
      metric: the name of the metric, for the axis.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as `jm.trend`; `names` does not have one name for each model.

    Example:
      >>> import jaxmetrics as jm
      >>> from jaxmetrics import plots
      >>> scores, labels = [.1, .4, .35, .8, .7, .2, .9, .3], [0, 0, 1, 1, 1, 0, 1, 0]
      >>> months = ["2026-01"] * 4 + ["2026-02"] * 4
      >>> ax = plots.trend(jm.slices(jm.roc_auc, scores, labels, months, min_items=2))
      >>> print([label.get_text() for label in ax.get_xticklabels()])
      ['2026-01', '2026-02']
    """
    return draw_trend(slices, times, names, metric, style, ax, "pointwise interval", slices)


def draw_trend(
    slices: jm.Slices,
    times: ArrayLike | None,
    names: Sequence[str] | None,
    metric: str | None,
    style: StyleName,
    ax: Axes | None,
    area: str,
    limits: jm.Slices | jm.Interval,
) -> Axes:
    """`trend`, where `area` is what the legend calls the band between the `limits`."""
    looks = style_of(style, ax)
    found = jm.trend(slices, times=times)
    at, used = np.asarray(found.times, np.float64), np.asarray(found.used)
    value, low, high, fitted = (
        _by_model(x) for x in (slices.estimate, limits.low, limits.high, found.fitted)
    )
    p_values = np.atleast_1d(np.asarray(found.p_value))
    names = slices._caption.names.get("model") if names is None else names
    names = names_of("model", names, len(value))
    ax = axes_of(ax, height_for(names))
    order = np.flatnonzero(used)[np.argsort(at[used], kind="stable")]
    trends = ["trend unknown" if np.isnan(p) else f"trend {p_value(p)}" for p in p_values]
    for i, line in enumerate(lines(names, trends, looks) if len(order) else []):
        x, y = at[order], value[i][order]
        if i >= n_distinct(len(names)):
            draw_line(ax, x, y, **line)
            continue
        straight = draw_line(ax, x, fitted[i][order], color=looks.colour(i), linewidth=1, alpha=0.7)
        band = shade(ax, x, low[i][order], high[i][order], looks.colour(i), edge=looks.edge(i))
        mark = {"marker": looks.marker(i), "markersize": 5, "markevery": None}
        tie(draw_line(ax, x, y, **(line | mark)), straight, band)
    if len(order):
        ax.plot([], [], color=GREY, linewidth=1, label="linear trend")
        shade(ax, [], [], [], GREY, label=f"{level_text(slices)} {area}")
    else:  # there are no values to read
        ax.set_yticks([])
    mark_missing(ax, at[~used & np.isfinite(at)], "x", label="too few items")
    _name_times(ax, at, slices.names)
    ax.set_ylabel(metric or slices._caption.metric)
    return finish_axes(ax)


def _by_model(values: Any) -> FloatArray:
    """`[models, slices]`, of values `[slices]` or `[slices, models]`."""
    return np.atleast_2d(np.asarray(values, np.float64).T)


def _name_times(ax: Axes, at: HostArray, names: Sequence[Any]) -> None:
    """Label the first slice, and each one that is far enough from the last one that has a label."""
    there = np.flatnonzero(np.isfinite(at))
    order = there[np.argsort(at[there], kind="stable")].tolist()
    inches = ax.get_window_extent().width / ax.figure.dpi
    widest = max((len(str(names[i])) for i in order), default=1) * _LETTER + 0.15
    whole = np.ptp(at[there]) or 1.0 if order else 1.0
    shown: list[int] = []
    for i in order:
        if not shown or (at[i] - at[shown[-1]]) / whole * inches >= widest:
            shown.append(i)
    ax.set_xticks(at[shown], [str(names[i]) for i in shown])
