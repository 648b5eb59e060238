"""ROC curves, whole and with a window of false positive rates enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike
from jaxmetrics.plots._inputs import each, models_or_table, rows
from jaxmetrics.plots._style import (
    GREY,
    axes_of,
    band_label,
    finish_axes,
    height_for,
    lines,
    n_distinct,
    shade,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@double_precision()  # whose thresholds are exact
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
      names: one name a model, for the legend.
      max_fpr: where the horizontal axis ends, in (0, 1]; None for the whole curve.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      band: what `roc_band` returns for these models. Straight lines join its points, so they should
        be dense where the curve bends, and within the window.
      interval: what `confidence_interval` returns for the area in the legend, which then shows it.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names`, `band` or `interval` is not of these models.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.roc([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AUC 0.750', 'chance']
    """
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    what, end = ("AUC", 1.0) if max_fpr is None else ("partial AUC", max_fpr)
    if interval is not None:
        limits = rows("interval", (interval.estimate, interval.low, interval.high), names, 0)
        areas = [f"{area:.3f} [{low:.3f}, {high:.3f}]" for area, low, high in limits]
    else:
        if max_fpr is None:
            found = jm.roc_auc(scores, **items)
        else:
            found = jm.partial_auc(scores, max_fpr=max_fpr, scale="mcclish", **items)
        areas = [f"{area:.3f}" for area in np.asarray(found)]
    curves = each(jm.roc_curve(scores, **items), names)
    ax = axes_of(ax, height_for(names))
    styles = lines(names, [f"{what} {area}" for area in areas])
    for curve, style in zip(curves, styles, strict=True):
        ax.plot(curve.fpr, curve.tpr, **style)
    if band is not None:
        limits = rows("band", (band.low, band.high), names, 1)[: n_distinct(len(names))]
        for (low, high), style in zip(limits, styles, strict=False):
            shade(ax, band.fpr, low, high, style["color"])
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="chance")
    if band is not None:
        shade(ax, [], [], [], GREY, label=band_label(band))
    # A margin makes lines along the edges visible.
    ax.set(xlim=(-0.01 * end, end if end < 1 else 1.01), ylim=(-0.01, 1.01))
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    return finish_axes(ax)


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
) -> Figure:
    """ROC curves in two panels: whole, and the window up to `max_fpr` enlarged.

    The left panel has the whole curves, with the window shaded; the right panel has the window.
    pyplot does not hold the figure: it needs no display and need not be closed.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name a model, for the legends.
      max_fpr: where the window ends, in (0, 1].
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      band: what `roc_band` returns for these models, at points that are dense from 0 to 1 and
        denser from 0 to `max_fpr`.
      intervals: those of the area and of the partial area on McClish's scale, for the legends.

    Returns:
      The Figure; `figure.savefig("roc.png", dpi=150)` writes it.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names`, `band` or `intervals` are not of these models.

    Example:
      >>> from jaxmetrics import plots
      >>> figure = plots.roc_with_window([.1, .4, .35, .8], [0, 0, 1, 1], max_fpr=0.5)
      >>> print([ax.get_title() for ax in figure.axes])
      ['Whole curve', 'False positive rates up to 50 %']
    """
    from matplotlib.figure import Figure

    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    figure = Figure(figsize=(10, height_for(names, 5.6)), layout="constrained")
    whole, window = figure.subplots(1, 2)
    for ax, end, interval in ((whole, None, intervals[0]), (window, max_fpr, intervals[1])):
        roc(scores, **items, names=names, max_fpr=end, band=band, interval=interval, ax=ax)
    whole.axvspan(0, max_fpr, color=GREY, alpha=0.2, linewidth=0)
    whole.set_title("Whole curve")
    window.locator_params(axis="x", nbins=6)  # small rates have long tick labels
    window.set_title(f"False positive rates up to {100 * max_fpr:g} %")
    return figure
