"""Plots of curves. They need matplotlib, which is imported when something is drawn.

Colours are those of Okabe and Ito, told apart by colour-blind readers; line styles differ too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

import jaxmetrics as jm
from jaxmetrics import _checks
from jaxmetrics._types import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["cost", "ndcg_at_k", "precision_recall", "roc", "roc_with_window"]

Curve = TypeVar("Curve", jm.RocCurve, jm.PrecisionRecallCurve, jm.CostCurve)

# Seven and four have no common divisor, so 28 lines differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", (0, (1, 1)))
GREY = "#767676"


def roc(
    scores: ArrayLike,
    labels: ArrayLike,
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
    With `max_fpr`, only the window from 0 to it, and the legend has the partial area on McClish's
    scale instead. A band shades what lies between the limits of each point by itself.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one a model, for the legend.
      max_fpr: where the horizontal axis ends, in (0, 1].
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      band: what `roc_band` returns for these models; its points are joined by straight lines, so
        they should lie close together where the curve bends, and within the window.
      interval: what `confidence_interval` returns for the area in the legend, to be shown there.
      ax: where to draw; a new figure of pyplot's by default.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.roc([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AUC 0.750', 'chance']
    """
    scores, names = _models(scores, names)
    items = {"labels": labels, "weights": weights, "where": where}
    what, end = ("AUC", 1.0) if max_fpr is None else ("partial AUC", max_fpr)
    if interval is not None:
        rows = _rows("interval", (interval.estimate, interval.low, interval.high), names, 0)
        areas = [f"{area:.3f} [{low:.3f}, {high:.3f}]" for area, low, high in rows]
    elif max_fpr is None:
        areas = [f"{area:.3f}" for area in jm.roc_auc(scores, **items)]
    else:
        partial = jm.partial_auc(scores, max_fpr=max_fpr, scale="mcclish", **items)
        areas = [f"{area:.3f}" for area in partial]
    ax = _new_axes() if ax is None else ax
    curves = _each(jm.roc_curve(scores, **items))
    for i, (curve, name, area) in enumerate(zip(curves, names, areas, strict=True)):
        ax.plot(curve.fpr, curve.tpr, label=_legend(name, f"{what} {area}"), **_look(i))
    if band is not None:
        for i, (low, high) in enumerate(_rows("band", (band.low, band.high), names, 1)):
            _shade(ax, band.fpr, low, high, _look(i)["color"])
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="chance")
    if band is not None:
        _shade(ax, [], [], [], GREY, label=_band_label(band))
    # A little room, so that lines along the edges are seen.
    ax.set(xlim=(-0.01 * end, end if end < 1 else 1.01), ylim=(-0.01, 1.01))
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    return _finish(ax)


def precision_recall(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Precision-recall curves, with the average precision of each in the legend.

    Draws a step line for each model, whose area is the average precision, and the share of
    positives, which is the precision of chance.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one a model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      ax: where to draw; a new figure of pyplot's by default.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.precision_recall([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, AP 0.833', 'chance']
    """
    scores, names = _models(scores, names)
    items = {"labels": labels, "weights": weights, "where": where}
    areas = jm.average_precision(scores, **items)
    curves = jm.precision_recall_curve(scores, **items)
    ax = _new_axes() if ax is None else ax
    for i, (curve, name, area) in enumerate(zip(_each(curves), names, areas, strict=True)):
        label = _legend(name, f"AP {area:.3f}")
        ax.plot(curve.recall, curve.precision, drawstyle="steps-post", label=label, **_look(i))
    # The lowest threshold flags everything; models differ there if their labels do.
    shares = np.unique(np.asarray(curves.precision)[..., 0])
    for i, share in enumerate(shares):
        ax.axhline(share, color=GREY, linewidth=1, label="_again" if i else "chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="Recall", ylabel="Precision")
    return _finish(ax, legend="lower left")


def cost(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    fp_cost: float = 1.0,
    fn_cost: float = 1.0,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The cost of deciding at each threshold, with the cheapest threshold marked.

    Draws a step line for each model. Its right end, past the highest score, is the cost of
    flagging nothing.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      fp_cost: what a false positive costs; not negative.
      fn_cost: what a false negative costs.
      names: one a model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      ax: where to draw; a new figure of pyplot's by default.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.cost([.1, .4, .35, .8], [0, 0, 1, 1], fp_cost=100, fn_cost=1000)
      >>> print(ax.get_legend_handles_labels()[1])
      ['cheapest: 100 at 0.35']
    """
    scores, names = _models(scores, names)
    items = {"labels": labels, "weights": weights, "where": where}
    curves = _each(jm.cost_curve(scores, fp_cost=fp_cost, fn_cost=fn_cost, **items))
    ax = _new_axes() if ax is None else ax
    for i, (curve, name) in enumerate(zip(curves, names, strict=True)):
        thresholds = np.array(curve.thresholds)
        # +inf has no place on an axis, so flagging nothing is drawn a little past the top score.
        thresholds[0] = thresholds[1] + 0.05 * (thresholds[1] - thresholds[-1])
        best = int(np.argmin(curve.cost))
        decision = f"at {thresholds[best]:.4g}" if best else "by flagging nothing"
        label = _legend(name, f"cheapest: {curve.cost[best]:.6g} {decision}")
        look = _look(i)
        # A threshold's cost holds down to the next lower score.
        x, y = thresholds[::-1], curve.cost[::-1]
        ax.plot(x, y, drawstyle="steps-pre", label=label, **look)
        ax.plot(thresholds[best], curve.cost[best], "o", color=look["color"], markersize=8)
    ax.set_ylim(bottom=0)
    ax.set(xlabel="Threshold", ylabel="Total cost")
    return _finish(ax)


def roc_with_window(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    max_fpr: float,
    weights: ArrayLike | None = None,
    band: jm.RocBand | None = None,
    intervals: tuple[jm.Interval | None, jm.Interval | None] = (None, None),
) -> Figure:
    """ROC curves twice: whole, and with the false positive rates that matter enlarged.

    The left panel draws the whole curves and shades the window; the right panel is the window.
    The figure is not one of pyplot's: it needs no display, and nothing has to be closed.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one a model, for the legends.
      max_fpr: where the window ends, in (0, 1].
      weights: as labels, not negative.
      band: what `roc_band` returns for these models, at points that lie close together from 0 to 1
        and closer from 0 to `max_fpr`.
      intervals: of the area and of the partial area on McClish's scale, for the legends.

    Returns:
      The Figure; `figure.savefig("roc.png", dpi=150)` writes it.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    Example:
      >>> from jaxmetrics import plots
      >>> figure = plots.roc_with_window([.1, .4, .35, .8], [0, 0, 1, 1], max_fpr=0.5)
      >>> print([ax.get_title() for ax in figure.axes])
      ['Whole curve', 'False positive rates up to 50 %']
    """
    from matplotlib.figure import Figure

    scores, names = _models(scores, names)
    figure = Figure(figsize=(10, 4.9 + 0.24 * len(names)), layout="constrained")
    whole, window = figure.subplots(1, 2)
    for ax, end, interval in ((whole, None, intervals[0]), (window, max_fpr, intervals[1])):
        roc(
            scores,
            labels,
            names=names,
            max_fpr=end,
            weights=weights,
            band=band,
            interval=interval,
            ax=ax,
        )
    whole.axvspan(0, max_fpr, color=GREY, alpha=0.2, linewidth=0)
    whole.set_title("Whole curve")
    window.locator_params(axis="x", nbins=6)  # small rates have long tick labels
    window.set_title(f"False positive rates up to {100 * max_fpr:g} %")
    for ax in figure.axes:
        # Outside, as the lines may pass anywhere within.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
    return figure


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
    """nDCG of the first k documents, mean over queries, with the last value in the legend.

    Draws a line for each model, from k = 1 to `max_k`. An interval shades what lies between the
    limits of each k by itself. Queries without relevant documents are left out.

    Args:
      scores: `[queries, docs]`, or `[models, queries, docs]` for a line each, higher is better;
        with segments `[n]` or `[models, n]`.
      labels: `[queries, docs]` or `[n]`, grades of relevance, not negative.
      names: one a model, for the legend.
      max_k: the last k, at least 1.
      gain: as that of `ndcg`.
      where: as labels, bool, False for documents to leave out.
      segments: `[n]`, the query of each document, from 0, in any order.
      interval: what `bootstrap_mean` gives for these means, `[models, max_k]`; one model may have
        no such axis.
      ax: where to draw; a new figure of pyplot's by default.

    Returns:
      The Axes.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.ndcg_at_k([.1, .4, .35, .8], [0, 3, 1, 0], segments=[0, 0, 1, 1], max_k=2)
      >>> print(ax.get_legend_handles_labels()[1])
      ['nDCG@2 0.815']
    """
    _checks.check_count("max_k", max_k)
    shape = "[queries, docs]" if segments is None else "[n]"
    scores, names = _models(scores, names, shape)
    ks = np.arange(1, max_k + 1)
    options: dict[str, Any] = {"where": where, "segments": segments, "gain": gain}
    values = jm.ndcg(scores, labels, k=tuple(ks.tolist()), empty=np.nan, **options)
    means = np.nanmean(np.asarray(values), axis=1)
    texts = [f"{line[-1]:.3f}" for line in means]
    if interval is not None:
        limits = _rows("interval", (interval.low, interval.high), names, 1)
        if len(limits[0][0]) != max_k:
            raise ValueError(
                f"interval must have a value for each k from 1 to {max_k}, got "
                f"{len(limits[0][0])}: compute it of ndcg(..., k=tuple(range(1, {max_k + 1})))"
            )
        texts = [
            f"{text} [{low[-1]:.3f}, {high[-1]:.3f}]"
            for text, (low, high) in zip(texts, limits, strict=True)
        ]
    ax = _new_axes() if ax is None else ax
    for i, (line, name, text) in enumerate(zip(means, names, texts, strict=True)):
        ax.plot(ks, line, label=_legend(name, f"nDCG@{max_k} {text}"), **_look(i))
    if interval is not None:
        for i, (low, high) in enumerate(limits):
            _shade(ax, ks, low, high, _look(i)["color"])
        _shade(ax, [], [], [], GREY, label=_band_label(interval))
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="First k documents", ylabel="Mean nDCG of queries")
    return _finish(ax)


def _models(
    scores: ArrayLike, names: Sequence[str] | None, shape: str = "[n]"
) -> tuple[Any, Sequence[str]]:
    """Scores `[models, *shape]`, and what to call the models; a name may be empty."""
    array = _checks.as_array("scores", scores)
    axes = shape.count(",") + 1
    if array.ndim not in (axes, axes + 1):
        raise ValueError(
            f"scores must be {shape} or [models, {shape[1:]}, got {list(array.shape)}: "
            f"write scores.reshape(-1, *scores.shape[-{axes}:])"
        )
    array = array[None] if array.ndim == axes else array
    if names is None:
        names = [""] if len(array) == 1 else [f"model {i}" for i in range(len(array))]
    if isinstance(names, str) or len(names) != len(array):
        raise ValueError(f"names must be {len(array)}, one a model, got {names!r}")
    return array, names


def _rows(
    name: str, arrays: Sequence[ArrayLike], names: Sequence[str], ndim: int
) -> list[tuple[Any, ...]]:
    """For each model its part of the arrays `[models, ...]`; one model may have no such axis.

    `ndim` is how many axes follow it.
    """
    rows = [np.asarray(array) for array in arrays]
    rows = [row[None] if row.ndim == ndim else row for row in rows]
    for row in rows:
        if row.ndim != ndim + 1 or len(row) != len(names):
            raise ValueError(
                f"{name} must be of {len(names)} models, as scores are, got {list(row.shape)}: "
                "compute it from the same scores"
            )
    return list(zip(*rows, strict=True))


def _shade(ax: Axes, x: Any, low: Any, high: Any, colour: str, label: str | None = None) -> None:
    """A light area with thin edges, which stay apart where areas overlap."""
    from matplotlib.colors import to_rgba

    faint, edge = to_rgba(colour, 0.13), to_rgba(colour, 0.5)
    ax.fill_between(x, low, high, facecolor=faint, edgecolor=edge, linewidth=0.7, label=label)


def _band_label(limits: jm.RocBand | jm.Interval) -> str:
    return f"{100 * limits.confidence_level:g} % pointwise band"


def _each(curves: Curve) -> list[Curve]:
    """The curves `[models, points]` one by one, without the points that a plot does not need."""
    rows = zip(*(np.asarray(x) for x in curves), strict=True)
    return [jm.drop_intermediate(type(curves)(*row)) for row in rows]


def _new_axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _look(i: int) -> dict[str, Any]:
    style, colour = STYLES[i % len(STYLES)], COLOURS[i % len(COLOURS)]
    return {"color": colour, "linestyle": style, "linewidth": 1.8}


def _legend(name: str, value: str) -> str:
    return f"{name}, {value}" if name else value


def _finish(ax: Axes, legend: Literal["best", "lower left"] = "best") -> Axes:
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc=legend, framealpha=0.9)
    return ax
