"""The cost of errors at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike, HostArray
from jaxmetrics._base.words import number, threshold_in_words
from jaxmetrics._roc.curves import cheapest
from jaxmetrics.plots._inputs import FURTHEST, each, models_or_table
from jaxmetrics.plots._style import (
    StyleName,
    axes_of,
    draw_line,
    finish_axes,
    height_for,
    lines,
    n_distinct,
    style_of,
    tie,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@double_precision()  # thresholds are then exact
def cost(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    fp_cost: float = 1.0,
    fn_cost: float = 1.0,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """The total cost of errors at each threshold, with the cheapest threshold marked.

    cost(t) = fp_cost * FP(t) + fn_cost * FN(t), as in `jaxmetrics.cost_curve`.

    Draws a step line for each model. Its right end, past the highest score, is the cost of
    flagging nothing.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      fp_cost: the cost of one false positive, not negative.
      fn_cost: the cost of one false negative, not negative.
      names: one name for each model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names` does not have one name for each model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.cost([.1, .4, .35, .8], [0, 0, 1, 1], fp_cost=100, fn_cost=1000)
      >>> print(ax.get_legend_handles_labels()[1])
      ['cheapest: 100 at 0.35']
    """
    looks = style_of(style, ax)
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    curves = each(jm.cost_curve(scores, fp_cost=fp_cost, fn_cost=fn_cost, **items), names)
    ax = axes_of(ax, height_for(names))
    shown = lines(names, _cheapest(curves), looks)
    for i, (curve, line) in enumerate(zip(curves, shown, strict=True)):
        thresholds = _on_axis(np.asarray(curve.thresholds))
        # A threshold's cost holds down to the next lower score.
        steps = draw_line(ax, thresholds[::-1], curve.cost[::-1], drawstyle="steps-pre", **line)
        if i < n_distinct(len(names)):
            best = int(cheapest(curve.cost))
            dot: dict[str, Any] = {"color": looks.colour(i), "marker": "o", "markersize": 8}
            tie(steps, draw_line(ax, thresholds[[best]], curve.cost[[best]], **dot))
    ax.autoscale_view()  # before its lower end is fixed
    ax.set_ylim(bottom=0)
    ax.set(xlabel="Threshold", ylabel="Total cost")
    return finish_axes(ax)


def _cheapest(curves: Sequence[jm.CostCurve]) -> list[str]:
    """The least cost of each model, and its threshold, as text."""
    found = []
    for curve in curves:
        best = int(cheapest(curve.cost))
        threshold = float(curve.thresholds[best])
        decision = f" at {threshold_in_words(threshold)}" if best else " by flagging nothing"
        cost = float(curve.cost[best])
        found.append(f"cheapest: {number(cost)}{'' if np.isnan(cost) else decision}")
    return found


def _on_axis(thresholds: HostArray) -> HostArray:
    """Thresholds, with infinite ones, as for flagging nothing, moved just past the others."""
    finite = thresholds[np.abs(thresholds) <= FURTHEST]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    room = 0.05 * (high - low or 1.0)
    return np.clip(thresholds, low - room, high + room)
