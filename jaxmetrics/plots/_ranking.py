"""nDCG of ranked lists at each cutoff k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.types import ArrayLike
from jaxmetrics.plots._inputs import models, rows
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
      names: one name a model, for the legend.
      max_k: the last k, at least 1.
      gain: the gain of a grade, as in `ndcg`.
      where: as labels, bool, False for documents to leave out.
      segments: `[n]`, the query id of each document, from 0, in any order.
      interval: the interval that `bootstrap_mean` returns for these means, `[models, max_k]`, or
        `[max_k]` for one model.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; `interval` lacks a k
        or a model, or `names` does not have one name a model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.ndcg_at_k([.1, .4, .35, .8], [0, 3, 1, 0], segments=[0, 0, 1, 1], max_k=2)
      >>> print(ax.get_legend_handles_labels()[1])
      ['nDCG@2 0.815']
    """
    checks.check_count("max_k", max_k)
    shape = "[queries, docs]" if segments is None else "[n]"
    items = {"labels": labels, "where": where, "segments": segments}
    scores, names = models(scores, names, items, shape)
    ks = np.arange(1, max_k + 1)
    options: dict[str, Any] = {**items, "gain": gain}
    values = jm.ndcg(scores, k=tuple(ks.tolist()), empty=np.nan, **options)
    means = np.nanmean(np.asarray(values), axis=1)
    texts = [f"{line[-1]:.3f}" for line in means]
    if interval is not None:
        limits = rows("interval", (interval.low, interval.high), names, 1)
        if len(limits[0][0]) != max_k:
            raise ValueError(
                f"interval must have a value for each k from 1 to {max_k}, got "
                f"{len(limits[0][0])}: compute it of ndcg(..., k=tuple(range(1, {max_k + 1})))"
            )
        texts = [
            f"{text} [{low[-1]:.3f}, {high[-1]:.3f}]"
            for text, (low, high) in zip(texts, limits, strict=True)
        ]
    ax = axes_of(ax, height_for(names))
    styles = lines(names, [f"nDCG@{max_k} {text}" for text in texts])
    for line, style in zip(means, styles, strict=True):
        ax.plot(ks, line, **style)
    if interval is not None:
        for (low, high), style in zip(limits[: n_distinct(len(names))], styles, strict=False):
            shade(ax, ks, low, high, style["color"])
        shade(ax, [], [], [], GREY, label=band_label(interval))
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="First k documents", ylabel="Mean nDCG of queries")
    return finish_axes(ax)
