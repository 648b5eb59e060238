"""Metrics by the frequency of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.types import ArrayLike, FloatArray
from jaxmetrics.plots._inputs import names_of
from jaxmetrics.plots._style import (
    GREY,
    StyleName,
    axes_of,
    bars,
    finish_axes,
    labelled,
    level_text,
    mark_missing,
    n_distinct,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM = 0.8  # share of a decile's width that its bars take


def deciles(
    values: ArrayLike | jm.Interval,
    *,
    names: Sequence[str] | None = None,
    metric: str = "Value",
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Bars of a metric by decile of label frequency, the most frequent labels on the left.

    Draws a bar for each model and decile, and its interval if there is one. Of more than 8 models,
    all but the first 7 are grey. A cross stands for a decile without a value. Groups 0 to 9 are
    shown as deciles 1 to 10.

    Args:
      values: `[10]` or `[models, 10]`, what a metric of `jm.extreme` returns for the groups of
        `jm.extreme.label_deciles`; or an Interval of such values.
      names: one name for each model, for the legend.
      metric: the label of the vertical axis.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a model does not have
        ten values, or `names` does not have one name for each model.

    Example:
      >>> import jaxmetrics as jm
      >>> from jaxmetrics import plots
      >>> groups = jm.extreme.label_deciles([1, 6, 2, 0, 1])
      >>> of_groups = {"groups": groups, "num_groups": 10}
      >>> values = jm.extreme.ndcg_at_k([[1, 2, 4]], [[1, 4]], k=3, **of_groups)
      >>> ax = plots.deciles(values, metric="nDCG at 3")
      >>> print([float(bar.get_x() + bar.get_width() / 2) for bar in ax.patches])
      [1.0, 10.0]
    """
    looks = style_of(style)
    if isinstance(values, jm.Interval):
        height, low, high = (_by_model(x) for x in (values.estimate, values.low, values.high))
    else:
        height = _by_model(values)
        low = high = height
    names = names_of("model", names, len(height))
    ax = axes_of(ax)
    width = ROOM / len(height)
    # The axis is inverted: decile 10 is on the left, and so is the first model of each decile.
    at = np.arange(1, 11) + (ROOM - width) / 2 - width * np.arange(len(height))[:, None]
    there = np.isfinite(height)
    for i, name in enumerate(labelled(names)):
        defined = there[i]
        look = looks.bar(i)
        if i >= n_distinct(len(names)):
            look |= {"color": GREY, "hatch": ""}
        ax.bar(at[i, defined], height[i, defined], width, label=name or "_unnamed", **look)
        if isinstance(values, jm.Interval):
            x = np.stack([at[i, defined]] * 2)
            bars(ax, x, np.stack([low[i, defined], high[i, defined]]), "black")
    if isinstance(values, jm.Interval):
        ax.plot([], [], color="black", linewidth=1.2, label=f"{level_text(values)} interval")
    mark_missing(ax, at[~there], "x", label="no value")
    ax.set_ylim(bottom=0)
    ax.set(xticks=range(1, 11), xlim=(10.6, 0.4))
    ax.set(xlabel="Decile of labels, 10 is the most frequent", ylabel=metric)
    finish_axes(ax)
    ax.grid(visible=False, axis="x")
    return ax


def _by_model(values: ArrayLike) -> FloatArray:
    array = np.asarray(checks.as_array("values", values)).astype(np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != 10:
        raise ValueError(
            f"values must be [10] or [models, 10], one a decile, got {list(array.shape)}: "
            "compute them with groups=label_deciles(counts), num_groups=10"
        )
    return np.atleast_2d(array)
