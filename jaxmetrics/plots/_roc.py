"""ROC curves, whole and with a window of false positive rates enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.checks.values import number
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike
from jaxmetrics._base.words import percent_text
from jaxmetrics.plots._inputs import areas_in_words, each, models_or_table, rows
from jaxmetrics.plots._style import (
    GREY,
    Style,
    StyleName,
    axes_of,
    band_label,
    draw_line,
    finish_axes,
    height_for,
    lines,
    n_distinct,
    shade,
    style_of,
    tie,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_one_rate = number(0, 1, open_low=True, several=False)


@double_precision()  # thresholds are then exact
def roc(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    max_fpr: float | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    band: jm.RocBand | None = None,
    interval: jm.Interval | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """ROC curves, with the area under each in the legend.

    Draws true against false positive rates, a line for each model, and the diagonal of chance.
    With `max_fpr`, the plot ends there, and the legend has the partial area on McClish's scale. A
    band is shaded; it is pointwise.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name for each model, for the legend.
      max_fpr: where the horizontal axis ends, in (0, 1]; None for the whole curve.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      band: what `roc_band` returns for these models. Straight lines join its points, so they should
        be dense where the curve bends, and within the window.
      interval: what `confidence_interval` returns for the area in the legend, which then shows it.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names`, `band` or `interval` is not of these models;
        the band is around another curve, or the interval of another area.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.roc([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AUC 0.750', 'chance']
    """
    looks = style_of(style, ax)
    if max_fpr is not None:
        _one_rate("max_fpr", max_fpr)
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    values = _areas(scores, items, names, max_fpr, interval)
    curves = each(jm.roc_curve(scores, **items), names)
    ax = axes_of(ax, height_for(names))
    return _draw(ax, curves, names, values, max_fpr, band, looks)


def _areas(
    scores: Any,
    items: dict[str, Any],
    names: Sequence[str],
    max_fpr: float | None,
    interval: jm.Interval | None,
) -> list[str]:
    """The area of each model, as text for the legend."""
    what = "AUC" if max_fpr is None else "partial AUC"
    if max_fpr is None:
        areas = jm.roc_auc(scores, **items)
    else:
        areas = jm.partial_auc(scores, max_fpr=max_fpr, scale="mcclish", **items)
    of_items = items["labels"] is not None
    values = areas_in_words(what, areas, interval, names, of_items=of_items)
    return [f"{what} {area}" for area in values]


def _draw(
    ax: Axes,
    curves: Sequence[jm.RocCurve],
    names: Sequence[str],
    values: Sequence[str],
    max_fpr: float | None,
    band: jm.RocBand | None,
    looks: Style,
) -> Axes:
    """Draw the curves with their bands, and the values in the legend."""
    end = 1.0 if max_fpr is None else max_fpr
    limits = [] if band is None else _limits_of(band, curves, names)
    drawn = [
        draw_line(ax, curve.fpr, curve.tpr, **line)
        for curve, line in zip(curves, lines(names, values, looks), strict=True)
    ]
    if band is not None:
        for i, (low, high) in enumerate(limits[: n_distinct(len(names))]):
            area = shade(ax, band.fpr, low, high, looks.colour(i), edge=looks.edge(i))
            tie(drawn[i], area)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="chance")
    if band is not None:
        shade(ax, [], [], [], GREY, label=band_label(band))
    # A margin makes lines along the edges visible.
    ax.set(xlim=(-0.01 * end, end if end < 1 else 1.01), ylim=(-0.01, 1.01))
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    return finish_axes(ax)


def _limits_of(
    band: jm.RocBand, curves: Sequence[jm.RocCurve], names: Sequence[str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The limits of each model.

    A band around another curve, as that of the same items without their weights, is refused.
    """
    slack = 1e-5  # rates of a band are rounded, and the curve may rise at one
    of_models = rows("band", band, ("tpr", "low", "high"), names, 1)
    fpr = np.asarray(band.fpr)
    for curve, (tpr, *_) in zip(curves, of_models, strict=True):
        low, high = (np.interp(fpr * k, curve.fpr, curve.tpr) for k in (1 - slack, 1 + slack))
        away = (tpr < low - slack) | (tpr > high + slack)
        if away.any():
            i = away.argmax()
            raise ValueError(
                f"band must be of the curve that is drawn: at an FPR of {fpr[i]:.3g} its TPR is "
                f"{tpr[i]:.3g}, and that of the curve {high[i]:.3g}: pass the same labels, weights "
                "and where to roc_band and to the plot"
            )
    return [(low, high) for _, low, high in of_models]


@double_precision()
def roc_with_window(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    max_fpr: float,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    band: jm.RocBand | None = None,
    intervals: tuple[jm.Interval | None, jm.Interval | None] = (None, None),
    style: StyleName = "colour",
) -> Figure:
    """ROC curves in two panels: whole, and the window up to `max_fpr` enlarged.

    The left panel has the whole curves, with the window shaded; the right panel has the window.
    pyplot does not hold the figure: it needs no display and need not be closed.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name for each model, for the legends.
      max_fpr: where the window ends, in (0, 1].
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      band: what `roc_band` returns for these models, at points that are dense from 0 to 1 and
        denser from 0 to `max_fpr`.
      intervals: those of the area and of the partial area on McClish's scale, for the legends.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.

    Returns:
      The Figure; `figure.savefig("roc.png", dpi=150)` writes it.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names`, `band` or `intervals` are not of these models;
        the band is around another curve, or an interval of another area.

    Example:
      >>> from jaxmetrics import plots
      >>> figure = plots.roc_with_window([.1, .4, .35, .8], [0, 0, 1, 1], max_fpr=0.5)
      >>> print([ax.get_title() for ax in figure.axes])
      ['Whole curve', 'False positive rates up to 50 %']
    """
    from matplotlib.figure import Figure

    looks = style_of(style)
    _one_rate("max_fpr", max_fpr)
    items: dict[str, Any] = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    ends = None, max_fpr
    values = [_areas(scores, items, names, *x) for x in zip(ends, intervals, strict=True)]
    curves = each(jm.roc_curve(scores, **items), names)
    figure = Figure(figsize=(10, height_for(names, 5.6)), layout="constrained")
    whole, window = figure.subplots(1, 2)
    for ax, end, areas in zip((whole, window), ends, values, strict=True):
        _draw(ax, curves, names, areas, end, band, looks)
    whole.axvspan(0, max_fpr, color=GREY, alpha=0.2, linewidth=0)
    whole.set_title("Whole curve")
    window.locator_params(axis="x", nbins=6)  # small rates have long tick labels
    window.set_title(f"False positive rates up to {percent_text(max_fpr)}")
    return figure
