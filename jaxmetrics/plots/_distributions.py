"""The distribution of scores in each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike, HostArray
from jaxmetrics._base.words import decimals_of, fixed, number
from jaxmetrics.plots._inputs import FURTHEST, check_rows, models_or_table, names_of
from jaxmetrics.plots._style import (
    HATCHES,
    StyleName,
    axes_of,
    finish_axes,
    legend_text,
    style_of,
)

_MOST_FINITE = 0.99
_LONG = 1e9  # a longer number has an exponent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_distributions(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] = ("negative", "positive"),
    n_bins: int = 40,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Histograms of a model's scores in each class, with the means in the legend.

    Both classes have the same bins. Each histogram has an area of 1, however rare its class is.
    `ax.set_yscale("log")` makes low bars beside a peak visible.

    Args:
      scores: `[n]`, of one model; or a ScoreTable `[rows]`, which replaces labels, weights and
        where.
      labels: `[n]`, bool or 0 and 1.
      names: the names of the negative and of the positive class, for the legend.
      n_bins: how many bins of equal width divide the range of the scores.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes. Infinite scores are outside of them, but count in the areas, not in the means,
      of which there is none if they are more than 1 %. The scores of a stream's table are the lower
      ends of its bins. A class without items is not drawn; nothing is if a valid score is NaN.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores are of several
        models, `names` does not have two names, or `n_bins` is below 1.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.score_distributions([.1, .4, .35, .8], [0, 0, 1, 1], n_bins=5)
      >>> print(ax.get_legend_handles_labels()[1])
      ['negative, mean 0.250', 'positive, mean 0.575']
    """
    from matplotlib.colors import to_rgba

    looks = style_of(style)
    checks.check_count("n_bins", n_bins)
    checks.check_fits("n_bins", n_bins, 4 * n_bins, "write n_bins=40")  # ends and two counts
    names = names_of("class", names, 2)
    items = {"labels": labels, "weights": weights, "where": where}
    source, models = models_or_table(scores, None, items)
    if len(models) > 1:
        raise ValueError(
            f"scores must be of one model, got {len(models)}: draw each into an Axes of its own"
        )
    with double_precision():  # thresholds are then exactly the scores
        curve = jm.roc_curve(source, **items)
    check_rows(max(map(len, curve)), models)
    thresholds, *rates = (
        np.asarray(x, np.float64)[0] for x in (curve.thresholds, curve.fpr, curve.tpr)
    )
    shares = np.diff(rates)  # of each class at each score
    there = thresholds[1:][(shares > 0).any(axis=0)]
    edges = _edges(there[np.isfinite(there)], n_bins)
    above = _first_above(thresholds, edges)
    ax = axes_of(ax)
    for i, (name, rate, share) in enumerate(zip(names, rates, shares, strict=True)):
        density = -np.diff(rate[above]) / np.diff(edges)
        colour = looks.colour(i)
        text = legend_text(name, _mean_in_words(thresholds[1:], share, np.diff(edges)))
        area = ax.stairs(density, edges, fill=True, hatch=HATCHES[i])
        area.set(facecolor=to_rgba(colour, 0.25), edgecolor=to_rgba(colour, 0.6))
        ax.stairs(density, edges, baseline=None, label=text, **looks.look(i))
    ax.set(xlabel="Score", ylabel="Density in each class")
    return finish_axes(ax)


def _mean_in_words(scores: HostArray, shares: HostArray, widths: HostArray) -> str:
    """The mean of a class, with decimals for bins of these widths, or with significant digits.

    It is of finite scores, and there is none where more than a few are not. The lowest bin of a
    stream may begin at -inf, and has no place in a mean either.
    """
    held = shares > 0
    finite = held & np.isfinite(scores)
    kind = "mean" if finite.sum() == held.sum() else "mean of finite scores"
    if not shares[finite].sum() >= _MOST_FINITE * shares.sum() > 0:
        return "mean -"
    mean = float(np.average(scores[finite], weights=shares[finite]))
    digits = decimals_of(widths)
    plain = 10.0**-digits <= widths.min() and abs(mean) < _LONG
    return f"{kind} {fixed(mean, digits) if plain else number(mean)}"


def _first_above(thresholds: HostArray, edges: HostArray) -> HostArray:
    """The index of the lowest threshold at or above each edge, or strictly above the last edge.

    Thresholds are in falling order.
    """
    rising = thresholds[::-1]
    inner = np.searchsorted(rising, edges[:-1])
    last = np.searchsorted(rising, edges[-1:], side="right")
    return len(rising) - 1 - np.append(inner, last)


def _edges(scores: HostArray, n_bins: int) -> HostArray:
    """Edges from the lowest score to the highest, or wider where rounding would make them equal."""
    scores = scores[np.abs(scores) <= FURTHEST]
    low, high = (scores.min(), scores.max()) if scores.size else (0.0, 1.0)
    finest = 4 * n_bins * np.spacing(max(abs(low), abs(high)))
    room = max(finest, 0.5) if low == high else max(finest - (high - low), 0.0)
    return np.linspace(low - room, high + room, n_bins + 1)
