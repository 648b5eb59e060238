"""Every ranking metric of every model, as the mean over queries, and the models compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._report._evaluation import (
    Drawing,
    Evaluation,
    Measure,
    carry_out,
    has_bands,
    note_of_bands,
    percent,
)
from jaxmetrics._report._queries import HIGHEST_GRADE, Queries
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics.inference._comparison import comparison_of_replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = {
    "ndcg_at_k": "nDCG",
    "precision_at_k": "Precision",
    "recall_at_k": "Recall",
    "average_precision_at_k": "Average\nprecision",
    "reciprocal_rank": "Reciprocal\nrank",
    "expected_reciprocal_rank": "Expected\nreciprocal\nrank",
    "ordered_pair_accuracy": "Ordered\npairs",
}

PLACES = range(1, 21)  # of the plot

# With fewer queries, percentile intervals of a mean are too narrow.
FEW_QUERIES = 20


def evaluate_queries(
    queries: Queries, settings: Settings, tell: Tell, *, with_figures: bool = False
) -> Evaluation:
    """Every metric of every model with intervals over queries, and the models compared."""
    ks, highest = tuple(sorted(set(settings.k))), float(queries.grades.max())
    drawn = with_figures and has_bands(queries.names)
    depths = tuple(sorted({*ks, *(PLACES if drawn else ())}))
    deepest = ks[-1:]
    # Each metric and the k of its values; those of nDCG are also drawn.
    metrics: dict[str, tuple[Callable[..., Any], tuple[int | None, ...]]] = {
        "ndcg_at_k": (partial(jm.ndcg, k=depths, gain=settings.gain, empty=np.nan), depths),
        "precision_at_k": (partial(jm.precision_at_k, k=deepest), deepest),
        "recall_at_k": (partial(jm.recall_at_k, k=deepest), deepest),
        "average_precision_at_k": (
            partial(jm.average_precision_at_k, k=deepest, empty=np.nan),
            deepest,
        ),
        "reciprocal_rank": (jm.reciprocal_rank, (None,)),
        "expected_reciprocal_rank": (
            partial(jm.expected_reciprocal_rank, max_grade=max(highest, 1.0)),
            (None,),
        ),
        "ordered_pair_accuracy": (jm.ordered_pair_accuracy, (None,)),
    }
    if highest > HIGHEST_GRADE:
        del metrics["expected_reciprocal_rank"]
    work = {
        name: partial(_measures, name, metric, queries, settings, columns, (*ks, None))
        for name, (metric, columns) in metrics.items()
    }
    found, notes = carry_out(work, settings, tell)
    band = None
    if drawn:
        intervals = [x.interval for x in found["ndcg_at_k"] if x.k in PLACES]
        band = jax.tree.map(lambda *columns: np.stack(columns, axis=1), *intervals)
    notes += _notes(queries, highest)
    if with_figures and not drawn:
        notes.append(note_of_bands("ranking.png"))
    return Evaluation(
        queries.names,
        _facts_of_queries(queries, settings, ks, highest),
        ("k", "n_queries"),
        _title_of_queries(queries),
        f" of means over queries; nDCG with {settings.gain} gain",
        tuple(x for part in found.values() for x in part if x.k in (*ks, None)),
        tuple(notes),
        (
            Drawing(
                "ranking",
                f"nDCG at each k from 1 to {len(PLACES)}",
                "Means over queries.",
                partial(_ndcg_figure, queries, settings, band),
            ),
        ),
    )


def _measures(
    name: str,
    metric: Callable[..., Any],
    queries: Queries,
    settings: Settings,
    columns: tuple[int | None, ...],
    compared: tuple[int | None, ...],
    progress: object,
) -> list[Measure]:
    """A metric at several k; some of them, `compared`, also compare the models."""
    found = metric(
        queries.scores, queries.grades, segments=queries.segments, num_segments=queries.n_queries
    )
    values = np.asarray(found).reshape(len(queries.names), queries.n_queries, -1)
    # Grades alone decide which queries are defined, so models have the same.
    defined = ~np.isnan(values).any(axis=(0, 2))
    level, key = settings.confidence_level, jax.random.key(settings.seed)
    measures = []
    for j, k in enumerate(columns):
        # One k at a time has the shape of the other metrics, so nothing is compiled again.
        result = jm.bootstrap_mean(
            values[..., j], key=key, n_resamples=settings.n_resamples, where=defined
        )
        interval, comparison = result.interval(confidence_level=level), None
        if len(queries.names) > 1 and k in compared:
            comparison = comparison_of_replicates(result, confidence_level=level, key=key)
        interval, comparison = jax.tree.map(np.asarray, (interval, comparison))
        heading = HEADINGS[name] if k is None else f"{HEADINGS[name]}\nat {k}"
        count = int(defined.sum())
        measures.append(Measure(name, heading, interval, comparison, k=k, n_queries=count))
    return measures


def _notes(queries: Queries, highest: float) -> list[str]:
    notes = []
    if queries.n_queries < FEW_QUERIES:
        notes.append(
            f"only {queries.n_queries} queries: with fewer than {FEW_QUERIES}, intervals may be "
            "too narrow"
        )
    empty = int((np.bincount(queries.segments, queries.grades) == 0).sum())
    if empty:
        notes.append(
            f"no relevant items in {empty} of {queries.n_queries} queries: they count as 0 in "
            "precision and reciprocal ranks, and the other metrics leave them out"
        )
    if highest > HIGHEST_GRADE:
        notes.append(
            f"the expected reciprocal rank is left out, because it needs 2^grade and grades reach "
            f"{highest:g}"
        )
    return notes


def _facts_of_queries(
    queries: Queries, settings: Settings, ks: tuple[int, ...], highest: float
) -> dict[str, Any]:
    return {
        "file": queries.source,
        "label": queries.label,
        "group": queries.group,
        "n_items": len(queries.grades),
        "n_relevant": int((queries.grades > 0).sum()),
        "n_queries": queries.n_queries,
        "max_grade": highest,
        "k": list(ks),
        "gain": settings.gain,
    }


def _title_of_queries(queries: Queries) -> str:
    n, relevant = len(queries.grades), int((queries.grades > 0).sum())
    return (
        f"{Path(queries.source).name}, {queries.label}: {queries.n_queries:,} queries "
        f"({queries.group}) of {n:,} items, {relevant:,} relevant ({percent(relevant / n)})"
    )


def _ndcg_figure(queries: Queries, settings: Settings, band: jm.Interval | None) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    with jax.enable_x64(True):  # as evaluated, so that nothing is compiled again
        plots.ndcg_at_k(
            queries.scores,
            queries.grades,
            segments=queries.segments,
            names=queries.names,
            max_k=len(PLACES),
            gain=settings.gain,
            interval=band,
            ax=figure.subplots(),
        )
    return figure
