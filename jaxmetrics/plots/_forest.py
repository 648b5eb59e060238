"""Forest plots: intervals of a metric, and of the differences between models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics.plots._inputs import metric_carried, names_carried, names_of, origin_carried
from jaxmetrics.plots._style import (
    COLOURS,
    GREY,
    MARKERS,
    StyleName,
    axes_of,
    bars,
    draw_line,
    finish_axes,
    labelled,
    level_text,
    mark_missing,
    n_distinct,
    style_of,
    tie,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM = 0.7  # share of a model's row that its metrics take
IN_SET, NOT_IN_SET = "not significantly worse than the best", "significantly worse"


def forest(
    intervals: jm.Interval | Sequence[jm.Interval],
    *,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    best_set: ArrayLike | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Forest plot: the estimate and the interval of each model, in a row each.

    Each of several metrics has its own marker and colour; of more than 8, all but the first 7 are
    grey. With `best_set`, models that are not significantly worse than the best have filled
    markers, others empty ones. A cross at the left stands for an undefined estimate.

    Args:
      intervals: what `confidence_interval` returns, `[models]`, or a list, one for each metric.
      names: one name for each model, for the rows; by default those that the intervals carry.
      metrics: one name for each metric, as `names`.
      best_set: `[models]` bool, as `compare` returns it; `[metrics, models]` for several metrics.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure, as high as the rows need.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; intervals are not
        `[models]` or differ in shape or level, or `names` does not have one name for each model.

    Example:
      >>> import jaxmetrics as jm
      >>> from jaxmetrics import plots
      >>> labels = [0, 0, 0, 1, 1, 1] * 20
      >>> scores = [[.1, .2, .4, .3, .5, .6] * 20, [.2, .1, .5, .4, .3, .6] * 20]
      >>> interval = jm.confidence_interval(jm.roc_auc, scores, labels)
      >>> ax = plots.forest(interval, names=["new", "old"], metrics=["AUC"])
      >>> print([label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel())
      ['new', 'old'] AUC

    Reference: S. Lewis and M. Clarke, "Forest plots: trying to see the wood and the trees",
    BMJ 322, 2001.
    """
    return draw_forest(intervals, names, metrics, best_set, style, ax)


def draw_forest(
    intervals: jm.Interval | Sequence[jm.Interval],
    names: Sequence[str] | None,
    metrics: Sequence[str] | None,
    best_set: ArrayLike | None,
    style: StyleName,
    ax: Axes | None,
    label_of_all: str | None = None,
) -> Axes:
    """`forest`, where `label_of_all` is what the legend calls the intervals."""
    looks = style_of(style)
    several = [intervals] if isinstance(intervals, jm.Interval) else list(intervals)
    values = _estimates_and_limits(several)  # [3, metrics, models]
    n_metrics, n_models = values.shape[1:]
    names = names_carried(several[0], n_models) if names is None else names
    names = names_of("model", names, n_models)
    carried = [x for x in map(metric_carried, several) if x]
    metrics = carried if metrics is None and len(carried) == n_metrics else metrics
    called = names_of("metric", metrics, n_metrics)
    members = None if best_set is None else _members(best_set, values.shape[1:])
    ax = axes_of(ax, 1.2 + 0.24 * n_models * (1 + n_metrics) / 2)
    steps = ROOM * ((np.arange(n_metrics) + 0.5) / n_metrics - 0.5)
    for j, label in enumerate(labelled(called, "metrics")):
        look = {"color": looks.colour(j), "marker": MARKERS[(j + j // len(COLOURS)) % len(MARKERS)]}
        if j >= n_distinct(n_metrics):
            look = {"color": GREY, "marker": "o"}
        member = None if members is None else members[j]
        _draw_models(
            ax,
            values[:, j],
            np.arange(n_models) + steps[j],
            member,
            look,
            label if n_metrics > 1 else None,
        )
    at = np.arange(n_models) + steps[:, None]
    _finish_rows(ax, names, at[np.isnan(values[0])], marked=best_set is not None)
    limits = label_of_all or f"{level_text(several[0])} interval"
    ax.plot([], [], color=GREY, linewidth=1.2, label=limits)
    ax.set_xlabel(called[0] if n_metrics == 1 and called[0] else "Estimate")
    return finish_axes(ax)


def differences(
    comparison: jm.Comparison,
    *,
    names: Sequence[str] | None = None,
    metric: str | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """The difference of each model from the best, with its simultaneous interval.

    Draws a row for each model, the best one at 0. The intervals hold for all pairs of models at
    once: if one excludes 0, the model is significantly different from the best. Models that are not
    significantly worse than the best have filled markers, others empty ones. If the comparison has
    a reference, differences are from the reference.

    Args:
      comparison: what `compare` returns.
      names: one name for each model, for the rows; by default those that the comparison carries.
      metric: the name of the metric, for the axis, as `names`.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure, as high as the rows need.

    Returns:
      The Axes.

    Raises:
      TypeError: `comparison` is not a Comparison.
      ValueError: `names` does not have one name for each model.

    Example:
      >>> import jaxmetrics as jm
      >>> from jaxmetrics import plots
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> result = jm.compare(jm.roc_auc, scores, labels)
      >>> ax = plots.differences(result, names=["new", "old"], metric="AUC")
      >>> print(ax.get_xlabel())
      Difference in AUC
      from new

    Reference: J. C. Hsu, "Multiple Comparisons: Theory and Methods", 1996, chapter 4.
    """
    looks = style_of(style)
    if not isinstance(comparison, jm.Comparison):
        raise TypeError(
            f"comparison must be a Comparison, got {type(comparison).__name__}: pass what "
            "compare(metric, scores, labels) returns"
        )
    estimate = np.asarray(comparison.estimate)
    names = names_carried(comparison, len(estimate)) if names is None else names
    names = names_of("model", names, len(estimate))
    metric = metric or metric_carried(comparison)
    limits = (
        comparison.difference,
        comparison.simultaneous_low,
        comparison.simultaneous_high,
    )
    values = np.stack([np.asarray(x, np.float64) for x in limits])
    origin, pairs = origin_carried(comparison, names), "comparisons"
    if values.ndim == 3:
        best = int(np.argmax(np.where(np.isnan(estimate), -np.inf, estimate)))
        values, origin, pairs = values[:, :, best], names[best], "pairs"
    ax = axes_of(ax, 1.4 + 0.24 * len(names))
    ax.axvline(0, color=GREY, linewidth=1)
    members = _members(comparison.best_set, (1, len(names)))
    look = {"color": looks.colour(0), "marker": MARKERS[0]}
    _draw_models(ax, values, np.arange(len(names)), members[0], look, None)
    _finish_rows(ax, names, np.flatnonzero(np.isnan(values[0])), marked=True)
    interval = f"{level_text(comparison)} interval, for all {pairs} at once"
    ax.plot([], [], color=GREY, linewidth=1.2, label=interval)
    ax.set_xlabel(f"Difference{f' in {metric}' if metric else ''}\nfrom {origin or 'the best'}")
    return finish_axes(ax)


def _estimates_and_limits(intervals: list[jm.Interval]) -> FloatArray:
    """Estimates and limits, `[3, metrics, models]`."""
    odd = [type(x).__name__ for x in intervals if not isinstance(x, jm.Interval)]
    if odd or not intervals:
        raise TypeError(
            f"intervals must be an Interval or several, got {odd[0] if odd else 'none'}: pass "
            "what confidence_interval(metric, scores, labels) returns"
        )
    shapes = [list(shape) for shape in sorted({np.shape(x.estimate) for x in intervals})]
    if len(shapes) > 1 or len(shapes[0]) > 1:
        raise ValueError(
            f"intervals must be [models], the same for all metrics, got {shapes}: for a metric "
            "with several limits write jax.tree.map(lambda x: x[:, i], interval)"
        )
    if len({x.confidence_level for x in intervals}) > 1:
        raise ValueError("intervals must have one confidence_level: compute all with the same")
    values = [[x.estimate, x.low, x.high] for x in intervals]
    array = np.array([[np.atleast_1d(x) for x in value] for value in values], np.float64)
    return np.moveaxis(array, 1, 0)


def _members(best_set: ArrayLike, shape: tuple[int, ...]) -> HostArray:
    """The best sets, `[metrics, models]`."""
    members = np.atleast_2d(np.asarray(best_set))
    if members.dtype != bool or members.shape != shape:
        wanted = list(shape) if shape[0] > 1 else [shape[1]]
        raise ValueError(
            f"best_set must be bool {wanted}, as compare(...).best_set is, got {members.dtype} "
            f"{list(np.shape(best_set))}"
        )
    return members


def _draw_models(
    ax: Axes,
    values: FloatArray,
    at: HostArray,
    members: HostArray | None,
    look: dict[str, Any],
    label: str | None,
) -> None:
    """Draw estimates and limits `[3, models]` at heights `at`; `members` have filled markers."""
    there = ~np.isnan(values[0])
    centre, low, high = values[:, there]
    at = at[there]
    full = np.ones(len(at), bool) if members is None else members[there]
    drawn = bars(ax, np.stack([low, high]), np.stack([at, at]), look["color"])
    mark = look | {"linestyle": "none", "markersize": 6}
    drawn += [draw_line(ax, centre[full], at[full], **mark)]
    if not full.all():
        empty = mark | {"markerfacecolor": "white", "markeredgewidth": 1.3}
        drawn += [draw_line(ax, centre[~full], at[~full], **empty)]
    if label:
        drawn += [draw_line(ax, [], [], linewidth=1.2, markersize=6, label=label, **look)]
    tie(*drawn)


def _finish_rows(ax: Axes, names: Sequence[str], missing: HostArray, *, marked: bool) -> None:
    """The names of the rows, the first model on top, and the legend of the marks."""
    if marked:
        mark: dict[str, Any] = {"color": GREY, "marker": "o", "linestyle": "none", "markersize": 6}
        ax.plot([], [], label=IN_SET, **mark)
        ax.plot([], [], label=NOT_IN_SET, markerfacecolor="white", **mark)
    mark_missing(ax, missing, "y", label="no value")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
