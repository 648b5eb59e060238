"""Precision-recall curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike
from jaxmetrics.plots._inputs import areas_in_words, each, models_or_table
from jaxmetrics.plots._style import (
    GREY,
    StyleName,
    axes_of,
    draw_line,
    finish_axes,
    height_for,
    lines,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@double_precision()  # thresholds are then exact
def precision_recall(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    interval: jm.Interval | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Precision-recall curves, with the average precision of each in the legend.

    Draws a step line for each model, whose area is the average precision. A grey line is the share
    of positives, which is the precision of chance.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name for each model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      interval: what `confidence_interval` returns for average precision, which the legend then
        shows.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names` or `interval` is not of these models, or the
        interval is of another metric.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.precision_recall([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AP 0.833', 'chance']
    """
    looks = style_of(style, ax)
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    found = jm.average_precision(scores, **items)
    of_items = labels is not None
    areas = areas_in_words("average precision", found, interval, names, of_items=of_items)
    curves = jm.precision_recall_curve(scores, **items)
    by_model = each(curves, names)
    ax = axes_of(ax, height_for(names))
    shown = lines(names, [f"AP {area}" for area in areas], looks)
    for curve, line in zip(by_model, shown, strict=True):
        draw_line(ax, curve.recall, curve.precision, drawstyle="steps-post", **line)
    # The lowest threshold flags everything: precision there is the share of positives, which
    # differs between models only if their labels do.
    shares = np.unique(np.asarray(curves.precision)[..., 0])
    for i, share in enumerate(shares):
        ax.axhline(share, color=GREY, linewidth=1, label="_again" if i else "chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="Recall", ylabel="Precision")
    return finish_axes(ax, within="lower left")
