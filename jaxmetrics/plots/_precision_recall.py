"""Precision-recall curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike
from jaxmetrics.plots._inputs import each, models_or_table
from jaxmetrics.plots._style import GREY, axes_of, finish_axes, height_for, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@double_precision()  # whose thresholds are exact
def precision_recall(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
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
      names: one name a model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names` does not have one name a model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.precision_recall([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AP 0.833', 'chance']
    """
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    areas = np.asarray(jm.average_precision(scores, **items))
    curves = jm.precision_recall_curve(scores, **items)
    by_model = each(curves, names)
    ax = axes_of(ax, height_for(names))
    styles = lines(names, [f"AP {area:.3f}" for area in areas])
    for curve, style in zip(by_model, styles, strict=True):
        ax.plot(curve.recall, curve.precision, drawstyle="steps-post", **style)
    # The lowest threshold flags everything: precision there is the share of positives, which
    # differs between models only if their labels do.
    shares = np.unique(np.asarray(curves.precision)[..., 0])
    for i, share in enumerate(shares):
        ax.axhline(share, color=GREY, linewidth=1, label="_again" if i else "chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="Recall", ylabel="Precision")
    return finish_axes(ax, within="lower left")
