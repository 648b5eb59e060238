"""The figures of classifiers, drawn from score tables of items or of bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._evaluation import Drawing, Measure, Slices
from jaxmetrics._report._settings import Settings
from jaxmetrics.plots._style import look, percent_text, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The recalls at which precision has a band.
RECALLS = np.linspace(0.01, 1, 100)
_COLUMNS = 3  # of panels


@jm.table_metric
def precision_on_curve(table: jm.ScoreTable, *, recalls: Any = RECALLS) -> Any:
    """Precision at the highest threshold that reaches each recall, `[recalls]`."""
    tps, fps = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
    slack = 2.0**-40  # for recalls that are equal up to rounding
    at = jnp.searchsorted(tps, jnp.asarray(recalls) * tps[-1] * (1 - slack))
    return tps[at] / (tps[at] + fps[at])


def fpr_grid(max_fpr: float) -> FloatArray:
    """False positive rates of a band: over the whole curve, and denser within the window."""
    grid = np.concatenate([np.linspace(0, end, 101) for end in (1, max_fpr)])
    return np.unique([max_fpr / 1000, *grid[grid > 0]])


def drawings_of(
    table: jm.ScoreTable,
    names: Sequence[str],
    settings: Settings,
    measures: Sequence[Measure],
    *,
    band: jm.RocBand | None = None,
    precision_band: jm.Interval | None = None,
    slices: Sequence[Slices] = (),
) -> tuple[Drawing, ...]:
    """The drawings of models with tables `[models, rows]`."""
    by_name = {measure.name: measure for measure in measures}
    level = percent_text(settings.confidence_level)
    # Matplotlib reads text between two dollars as a formula.
    names = [name.replace("$", r"\$") for name in names]
    pointwise = f" Shaded: pointwise {level} bands." if band is not None else ""
    costs = f"false positive costs {settings.fp_cost:g}, a false negative {settings.fn_cost:g}"
    compared = any(x.comparison is not None for x in measures)
    in_set = "; filled marks: models not significantly worse than the best" if compared else ""
    found = [
        Drawing(
            "intervals",
            "Values with their intervals",
            f"{level} confidence intervals{in_set}.",
            partial(_draw_intervals, names, measures),
        ),
        Drawing(
            "roc",
            "ROC curves",
            "The right panel enlarges the window of false positive rates. Its partial AUC is on "
            f"McClish's scale, where chance is 0.5.{pointwise}",
            partial(
                plots.roc_with_window,
                table,
                names=names,
                max_fpr=settings.max_fpr,
                band=band,
                intervals=(by_name["roc_auc"].interval, by_name["partial_auc"].interval),
            ),
        ),
        Drawing(
            "precision_recall",
            "Precision and recall",
            f"The line of chance is at the share of positives.{pointwise}",
            partial(_draw_precision, table, names, precision_band),
        ),
        Drawing(
            "scores",
            "Scores by class",
            "The scores of each class. The less the classes overlap, the better the model.",
            partial(_draw_scores, table, names),
        ),
        Drawing(
            "cost",
            "Cost of each threshold",
            f"A {costs} (--fp-cost, --fn-cost). A dot marks the threshold of least cost.",
            partial(_draw_cost, table, names, settings),
        ),
    ]
    found += [
        Drawing(
            f"slices_{i}" if len(slices) > 1 else "slices",
            f"By {part.column}",
            f"The intervals of a model hold for all slices at once, with {level} confidence.",
            partial(_draw_slices, part, names),
        )
        for i, part in enumerate(slices)
    ]
    return tuple(found)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _draw_intervals(names: Sequence[str], measures: Sequence[Measure]) -> Figure:
    """A panel for each metric that compares models; with one model, for each metric."""
    chosen = [x for x in measures if x.comparison is not None]
    if not chosen:
        chosen = [x for x in measures if not x.by_amount]
    columns = min(len(chosen), _COLUMNS)
    rows = -(-len(chosen) // columns)
    figure = _figure(10, rows * (1.4 + 0.3 * len(names)))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, measure in zip(panels, chosen, strict=False):
        best = None if measure.comparison is None else measure.comparison.best_set
        plots.forest(measure.interval, names=names, metrics=[measure.title], best_set=best, ax=ax)
    for ax in panels[len(chosen) :]:
        ax.set_axis_off()
    return figure


def _draw_precision(table: jm.ScoreTable, names: Sequence[str], band: jm.Interval | None) -> Figure:
    figure = _figure(6.4, 4.8)
    ax = plots.precision_recall(table, names=names, ax=figure.subplots())
    if band is not None:
        for i in range(len(names)):
            shade(ax, RECALLS, band.low[i], band.high[i], look(i)["color"])
    return figure


def _panels(n: int, draw: Callable[[int, Axes], Any]) -> Figure:
    columns = min(n, _COLUMNS)
    rows = -(-n // columns)
    figure = _figure(3.4 * columns, 3 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for i in range(n):
        draw(i, panels[i])
    for ax in panels[n:]:
        ax.set_axis_off()
    return figure


def _draw_scores(table: jm.ScoreTable, names: Sequence[str]) -> Figure:
    def draw(i: int, ax: Axes) -> None:
        plots.score_distributions(jax.tree.map(lambda x: x[i], table), ax=ax)
        ax.set_title(names[i], fontsize="medium")

    return _panels(len(names), draw)


def _draw_cost(table: jm.ScoreTable, names: Sequence[str], settings: Settings) -> Figure:
    """A panel for each model, because scales of scores differ."""

    def draw(i: int, ax: Axes) -> None:
        one = jax.tree.map(lambda x: x[i], table)
        plots.cost(one, fp_cost=settings.fp_cost, fn_cost=settings.fn_cost, ax=ax)
        ax.set_title(names[i], fontsize="medium")

    return _panels(len(names), draw)


def _draw_slices(slices: Slices, names: Sequence[str]) -> Figure:
    """A panel for each metric, with a row for each slice and a mark for each model."""
    values = [value.replace("$", r"\$") for value in slices.values]
    figure = _figure(10, 1.8 + 0.22 * len(slices.values) * (1 + len(names)) / 2)
    for ax, measure in zip(figure.subplots(1, len(slices.measures)), slices.measures, strict=True):
        by_model = [
            jax.tree.map(lambda x, i=i: x[:, i], measure.interval) for i in range(len(names))
        ]
        plots.forest(by_model, names=values, metrics=names, ax=ax)
        ax.set_xlabel(measure.title)
    return figure
