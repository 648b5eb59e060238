"""nDCG of ranked lists at each cutoff k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.types import ArrayLike
from jaxmetrics._base.words import decimals_of_metric, fixed, with_limits
from jaxmetrics.plots._inputs import models, rows
from jaxmetrics.plots._style import (
    GREY,
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

_EMPTY = -1.0  # stands for a query without relevant documents


def ndcg_at_k(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    max_k: int = 20,
    gain: str | Callable[[Any], Any] = "linear",
    where: ArrayLike | None = None,
    segments: ArrayLike | None = None,
    interval: jm.Interval | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Mean nDCG over queries at each cutoff k, with the value at `max_k` in the legend.

    Draws a line for each model, from k = 1 to `max_k`. An interval is shaded as a pointwise band.
    Queries without relevant documents are left out.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[queries, docs]`, or `[models, queries, docs]` for a line each, higher is better;
        with segments, `[n]` or `[models, n]`.
      labels: `[queries, docs]` or `[n]`, grades of relevance, not negative.
      names: one name for each model, for the legend.
      max_k: the last k, at least 1.
      gain: the gain of a grade, as in `ndcg`.
      where: as labels, bool, False for documents to leave out.
      segments: `[n]`, the query id of each document, from 0, in any order.
      interval: the interval that `bootstrap_mean` returns for these means, `[models, max_k]`, or
        `[max_k]` for one model.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; `interval` lacks a k
        or a model, or `names` does not have one name for each model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.ndcg_at_k([.1, .4, .35, .8], [0, 3, 1, 0], segments=[0, 0, 1, 1], max_k=2)
      >>> print(ax.get_legend_handles_labels()[1])
      ['nDCG@2 0.815']
    """
    looks = style_of(style, ax)
    checks.check_count("max_k", max_k)
    shape = "[queries, docs]" if segments is None else "[n]"
    items = {"labels": labels, "where": where, "segments": segments}
    scores, names = models(scores, names, items, shape)
    ks = np.arange(1, max_k + 1)
    options: dict[str, Any] = {**items, "gain": gain}
    values = np.asarray(jm.ndcg(scores, k=tuple(ks.tolist()), empty=_EMPTY, **options))
    judged = ~(values == _EMPTY).any(axis=(0, 2))  # where a score is NaN the mean is
    means = values[:, judged].mean(axis=1) if judged.any() else np.full(values[:, 0].shape, np.nan)
    texts = [fixed(line[-1]) for line in means]
    if interval is not None:
        limits = rows("interval", interval, ("low", "high"), names, 1)
        if len(limits[0][0]) != max_k:
            raise ValueError(
                f"interval must have a value for each k from 1 to {max_k}, got "
                f"{len(limits[0][0])}: compute it of ndcg(..., k=tuple(range(1, {max_k + 1})))"
            )
        digits = decimals_of_metric(np.array([high[-1] - low[-1] for low, high in limits]))
        texts = [
            with_limits(mean[-1], low[-1], high[-1], digits=digits)
            for mean, (low, high) in zip(means, limits, strict=True)
        ]
    ax = axes_of(ax, height_for(names))
    shown = lines(names, [f"nDCG@{max_k} {text}" for text in texts], looks)
    drawn = [draw_line(ax, ks, mean, **line) for mean, line in zip(means, shown, strict=True)]
    if interval is not None:
        for i, (low, high) in enumerate(limits[: n_distinct(len(names))]):
            tie(drawn[i], shade(ax, ks, low, high, looks.colour(i), edge=looks.edge(i)))
        shade(ax, [], [], [], GREY, label=band_label(interval))
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="First k documents", ylabel="Mean nDCG of queries")
    return finish_axes(ax)
