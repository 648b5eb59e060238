"""The figures of classifiers, drawn from score tables of items or of bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._base.types import FloatArray
from jaxmetrics._base.words import number, percent_text, visible
from jaxmetrics._report._evaluation import Drawing, Measure, Slices
from jaxmetrics._report._fonts import drawn_names
from jaxmetrics._report._metrics import costs_of
from jaxmetrics._report._settings import Settings
from jaxmetrics.plots._forest import draw_forest
from jaxmetrics.plots._style import (
    GREY,
    StyleName,
    band_label,
    finish_axes,
    height_for,
    n_distinct,
    shade,
    style_of,
)
from jaxmetrics.plots._trend import draw_trend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The recalls at which precision has a band.
RECALLS = np.linspace(0.01, 1, 100)
_COLUMNS = 3  # of panels
_AT_ONCE = "all slices at once"  # what the legend says of intervals


def precision_limits(band: jm.RocBand, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The limits of precision at each recall, `[models, recalls]`, from those of the ROC curve.

    With a share p of positives, precision at a recall r and an FPR u is p r / (p r + (1 - p) u). A
    limit of u is where a limit of the TPR crosses r, rounded outwards to a point of the band.
    """
    fpr = np.concatenate([[0.0], np.asarray(band.fpr, float), [1.0]])

    def precision(limit: FloatArray, side: Literal["left", "right"], share: float) -> FloatArray:
        beyond = limit.searchsorted(RECALLS, side)  # the points that are short of the recall
        u = fpr[beyond + (side == "right")]
        return share * RECALLS / (share * RECALLS + (1 - share) * u)

    low, high = (np.asarray(x, float) for x in (band.low, band.high))
    lows = [precision(x, "right", share) for x, share in zip(low, shares, strict=True)]
    highs = [precision(x, "left", share) for x, share in zip(high, shares, strict=True)]
    return np.stack(lows), np.stack(highs)


def fpr_grid(max_fpr: float) -> FloatArray:
    """False positive rates of a band: over the whole curve, and denser within the window.

    Steps of a few per cent are added, also beyond the window: where positives are rare, precision
    changes in proportion to the FPR.
    """
    grid = np.concatenate([np.linspace(0, end, 51) for end in (1, max_fpr)])
    return np.unique([*np.geomspace(max_fpr / 10_000, 1, 181), *grid[grid > 0]])


def best_first(values: Any) -> list[int]:
    """The indices of the models, by falling value if there are too many to colour them all."""
    order = range(len(values))
    if n_distinct(len(values)) == len(values):
        return list(order)
    return sorted(order, key=lambda i: -np.nan_to_num(values[i], nan=-np.inf))


def about_best(n: int, metric: str, are: str) -> str:
    """A sentence on the models that a figure shows, if it cannot show all of them alike."""
    most = n_distinct(n)
    return f" Of {n} models, the {most} with the highest {metric} are {are}." if most < n else ""


def drawings_of(
    table: jm.ScoreTable,
    names: Sequence[str],
    settings: Settings,
    measures: Sequence[Measure],
    *,
    band: jm.RocBand | None = None,
    slices: Sequence[Slices] = (),
) -> tuple[Drawing, ...]:
    """The drawings of models with tables `[models, rows]`."""
    table = jax.tree.map(np.asarray, table)  # NumPy takes parts of it without compilation
    by_name = {measure.name: measure for measure in measures}
    areas: Any = tuple(by_name[x].interval for x in ("roc_auc", "partial_auc", "average_precision"))
    names, unknown = drawn_names("model no.", names)
    order = best_first(areas[0].estimate)
    called = [names[i] for i in order]
    if order != sorted(order):  # there is no band to reorder: with so many models none is drawn
        table, areas = jax.tree.map(lambda x: x[np.array(order)], (table, areas))
    level = percent_text(settings.confidence_level)
    pointwise = f" Shaded: pointwise {level} bands." if band is not None else ""
    compared = any(x.has_intervals.any() for x in measures)
    filled = "; filled marks: models not significantly worse than the best, by one-sided tests"
    in_set = filled if compared else ""
    coloured = about_best(len(order), "AUC", "in colour, the others grey") + unknown
    chosen = about_best(len(order), "AUC", "shown") + unknown
    found = [
        Drawing(
            "intervals",
            "Values with their intervals",
            f"{level} confidence intervals{in_set}.{unknown}",
            partial(_draw_intervals, names, measures, settings.style),
        ),
        Drawing(
            "roc",
            "ROC curves",
            "The right panel enlarges the window of false positive rates. Its partial AUC is on "
            f"McClish's scale, where chance is 0.5.{pointwise}{coloured}",
            partial(
                plots.roc_with_window,
                table,
                names=called,
                max_fpr=settings.max_fpr,
                band=band,
                intervals=areas[:2],
                style=settings.style,
            ),
        ),
        Drawing(
            "precision_recall",
            "Precision and recall",
            f"The line of chance is at the share of positives.{pointwise}{coloured}",
            partial(_draw_precision, table, called, areas[2], band, settings.style),
        ),
        Drawing(
            "scores",
            "Scores by class",
            "The scores of each class. The less the classes overlap, the better the model."
            f"{chosen}",
            partial(
                _panels, table, called, partial(plots.score_distributions, style=settings.style)
            ),
        ),
    ]
    if settings.costs is not None:
        fp_cost, fn_cost = map(number, settings.costs)
        costs = f"false positive costs {fp_cost}, a false negative {fn_cost} (--fp-cost, --fn-cost)"
        if settings.prevalence is not None:
            costs += f", at a prevalence of {percent_text(settings.prevalence)}"
        about = f"A {costs}. A dot marks the threshold of least cost.{chosen}"
        draw = partial(_panels, table, called, partial(_draw_cost, settings=settings))
        found.append(Drawing("cost", "Cost of each threshold", about, draw))
    for i, part in enumerate(slices):
        file = f"slices_{i}" if len(slices) > 1 else "slices"
        if not part.defined:
            continue
        if part.trending:
            about = (
                f"Bands: intervals that hold for all slices at once, with {level} confidence. "
                f"Straight lines: linear trends.{chosen}"
            )
            draw = partial(_draw_trends, part, called, order, settings.style)
            found.append(Drawing(file, f"Over {visible(part.column)}", about, draw))
            continue
        values, odd = drawn_names("value no.", part.values)
        each = percent_text(part.measures[0].interval.confidence_level)
        found.append(
            Drawing(
                file,
                f"By {visible(part.column)}",
                f"The intervals of a model hold for all slices at once, with {level} confidence; "
                f"each by itself has the level {each}.{chosen}{odd}",
                partial(_draw_slices, part, values, called, order, settings.style),
            )
        )
    return tuple(found)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _grid(n: int) -> tuple[int, int]:
    """Rows and columns of n panels, with few empty places."""
    columns = 2 if n == 4 else min(n, _COLUMNS)
    return -(-n // columns), columns


def _draw_intervals(names: Sequence[str], measures: Sequence[Measure], style: StyleName) -> Figure:
    """A panel for each metric that compares models; with one model, for each metric."""
    chosen = [x for x in measures if x.comparison is not None]
    if not chosen:
        chosen = [x for x in measures if not x.by_amount]
    rows, columns = _grid(len(chosen))
    figure = _figure(10, rows * (1.4 + 0.3 * len(names)))
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.1)  # between the numbers at the ends of axes
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, (ax, measure) in enumerate(zip(panels, chosen, strict=False)):
        plots.forest(
            measure.interval,
            names=names,
            metrics=[measure.called],
            best_set=measure.best_set,
            style=style,
            ax=ax,
        )
        ax.tick_params(labelleft=i % columns == 0)
    for ax in panels[len(chosen) :]:
        ax.set_axis_off()
    return figure


def _draw_precision(
    table: jm.ScoreTable,
    names: Sequence[str],
    interval: jm.Interval,
    band: jm.RocBand | None,
    style: StyleName,
) -> Figure:
    figure, looks = _figure(6.4, height_for(names)), style_of(style)
    shown: dict[str, Any] = {"names": names, "style": style, "ax": figure.subplots()}
    ax = plots.precision_recall(table, interval=interval, **shown)
    if band is not None:
        positives, negatives = (np.sum(np.asarray(x, float), axis=-1) for x in table[1:])
        low, high = precision_limits(band, positives / (positives + negatives))
        for i in range(len(names)):
            shade(ax, RECALLS, low[i], high[i], looks.colour(i), edge=looks.edge(i))
        shade(ax, [], [], [], GREY, label=band_label(band))
        finish_axes(ax)
    return figure


def _panels(table: jm.ScoreTable, names: Sequence[str], draw: Callable[..., Any]) -> Figure:
    """A panel for each model that has a colour, as scales of scores differ."""
    n = n_distinct(len(names))
    rows, columns = _grid(n)
    figure = _figure(3.4 * columns, 3 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for i in range(n):
        draw(jax.tree.map(lambda x, i=i: x[i], table), ax=panels[i])
        panels[i].set_title(names[i], fontsize="small")
    for ax in panels[n:]:
        ax.set_axis_off()
    _name_others(figure, names)
    return figure


def _name_others(figure: Figure, names: Sequence[str]) -> None:
    others = len(names) - n_distinct(len(names))
    if others:
        figure.supxlabel(f"Not shown: {others} models of lower AUC", fontsize="medium")


def _draw_cost(one: jm.ScoreTable, settings: Settings, *, ax: Axes) -> None:
    plots.cost(one, **costs_of(one, settings), style=settings.style, ax=ax)


def _draw_slices(
    slices: Slices,
    values: Sequence[str],
    names: Sequence[str],
    order: Sequence[int],
    style: StyleName,
) -> Figure:
    """A panel for each metric, with a row for each slice and a mark for each model."""
    shown = names[: n_distinct(len(names))]
    figure = _figure(10, 1.8 + 0.22 * len(values) * (1 + len(shown)) / 2)
    panels = figure.subplots(1, len(slices.defined), squeeze=False)[0]
    for ax, measure in zip(panels, slices.defined, strict=True):
        by_model = [
            jax.tree.map(lambda x, i=i: x[:, i], measure.interval) for i in order[: len(shown)]
        ]
        label = f"{slices.level} interval, {_AT_ONCE}"
        draw_forest(by_model, values, shown, None, style, ax, label)
        ax.set_xlabel(measure.title)
        ax.tick_params(labelleft=ax is panels[0])
    _name_others(figure, names)
    return figure


def _draw_trends(
    slices: Slices, names: Sequence[str], order: Sequence[int], style: StyleName
) -> Figure:
    """A panel for each metric that has a trend, with a line for each model."""
    n = len(slices.trending)
    figure = _figure(10 if n > 1 else 6.4, height_for(names))
    panels = figure.subplots(1, n, squeeze=False)[0]
    for ax, (measure, found, trend) in zip(panels, slices.trending, strict=True):
        arranged: Any
        arranged, limits = jax.tree.map(
            lambda x: x[..., np.array(order)] if x.ndim > 1 else x,
            (replace(found, models=None, effective=None), measure.interval),
        )
        # The sizes are of classes, not of models.
        arranged = replace(arranged, names=slices.values, effective=found.effective)
        shown: dict[str, Any] = {"names": names, "metric": measure.title, "style": style, "ax": ax}
        shown |= {"area": f"interval, {_AT_ONCE}", "limits": limits}
        draw_trend(arranged, times=trend.times, **shown)
    return figure
