"""Every ranking metric of every model, as the mean over queries, and the models compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._base import checks, sorting
from jaxmetrics._base.warned import warn
from jaxmetrics._base.words import percent_text, some_of, visible
from jaxmetrics._ranking.host_lists import HostLists
from jaxmetrics._report._duplicates import n_duplicates_of, notes_of_duplicates
from jaxmetrics._report._evaluation import (
    Drawing,
    Evaluation,
    Measure,
    carry_out,
    has_bands,
    note_of_bands,
)
from jaxmetrics._report._figures import about_best, best_first
from jaxmetrics._report._fonts import drawn_names
from jaxmetrics._report._queries import HIGHEST_GRADE, Queries
from jaxmetrics._report._settings import InputError, Settings, Tell
from jaxmetrics._report._texts import name_of
from jaxmetrics.inference._intervals.means import (
    FEW,
    interval_of_mean,
    sums_of_rare,
)
from jaxmetrics.inference._means import sample_of_values
from jaxmetrics.plots._style import height_for

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

# With fewer queries, intervals of means may be as wide as those of shares of yes and no.
FEW_QUERIES = 20


def evaluate_queries(
    queries: Queries, settings: Settings, tell: Tell, *, with_figures: bool = False
) -> Evaluation:
    """Every metric of every model with intervals over queries, and the models compared."""
    ks, highest = tuple(sorted(set(settings.k))), float(queries.grades.max())
    _check_scale(queries.label, highest, settings.max_grade)
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
    }
    if settings.max_grade is not None:
        metrics["expected_reciprocal_rank"] = (
            partial(jm.expected_reciprocal_rank, max_grade=settings.max_grade),
            (None,),
        )
    metrics["ordered_pair_accuracy"] = (jm.ordered_pair_accuracy, (None,))
    work = {
        name: partial(_measures, name, metric, queries, settings, columns, (*ks, None))
        for name, (metric, columns) in metrics.items()
    }
    found, notes = carry_out(work, settings, tell)
    band = None
    if drawn:
        intervals = [x.interval for x in found["ndcg_at_k"] if x.k in PLACES]
        band = jax.tree.map(lambda *columns: np.stack(columns, axis=1), *intervals)
    notes = [re.sub(r"(rests on \S+|add) items\b", r"\1 queries", note) for note in notes]
    facts = _facts_of_queries(queries, settings, ks, highest)
    repeated = notes_of_duplicates(queries, facts["n_duplicates"])
    notes = [*queries.notes, *notes, *repeated, *_notes(queries)]
    if with_figures and not drawn:
        notes.append(note_of_bands("ranking.png", queries.names))
    names, unknown = drawn_names("model no.", queries.names)
    deep = next(x.interval.estimate for x in found["ndcg_at_k"] if x.k == ks[-1])
    order = best_first(deep)
    return Evaluation(
        queries.names,
        facts,
        ("k", "n_queries"),
        _title_of_queries(queries),
        f" of means over queries{_units(queries)}; nDCG with {settings.gain} gain",
        tuple(x for part in found.values() for x in part if x.k in (*ks, None)),
        tuple(notes),
        (
            Drawing(
                "ranking",
                f"nDCG at each k from 1 to {len(PLACES)}",
                "Means over queries."
                + about_best(len(order), f"nDCG at {ks[-1]}", "in colour, the others grey")
                + unknown,
                partial(_ndcg_figure, queries, settings, band, [names[i] for i in order], order),
            ),
        ),
    )


def _check_scale(label: str, highest: float, max_grade: float | None) -> None:
    """Refuse a `max_grade` that is out of range, or below a grade that occurs."""
    if max_grade is None:
        return
    if not 1 <= max_grade <= HIGHEST_GRADE:
        raise InputError(
            f"--max-grade must be from 1 to {HIGHEST_GRADE}, got {max_grade:g}: write the highest "
            "grade of the scale, as in 4, or leave it out"
        )
    if highest > max_grade:
        raise InputError(
            f"label {label!r} has the grade {highest:g}, above --max-grade {max_grade:g}: write "
            "the highest grade of the scale, whether or not it occurs"
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
    level, clusters = settings.confidence_level, queries.clusters
    measures, rarest = [], np.inf
    for j, k in enumerate(columns):
        # One k at a time has the shape of the other metrics, so nothing is compiled again.
        items = checks.check_values(values[..., j], None, defined, along={"clusters": clusters})
        sample = sample_of_values(items, checks.check_clusters(clusters, items))
        rarest = min(rarest, float(sums_of_rare(sample).min()))
        interval, comparison = interval_of_mean(sample, level), None
        if len(queries.names) > 1 and k in compared:
            comparison = jm.compare_means(
                values[..., j], confidence_level=level, clusters=clusters, where=defined
            )
        interval, comparison = jax.tree.map(np.asarray, (interval, comparison))
        heading = HEADINGS[name] if k is None else f"{HEADINGS[name]}\nat {k}"
        count = int(defined.sum())
        measures.append(Measure(name, heading, interval, comparison, k=k, n_queries=count))
    if rarest < FEW and queries.n_queries >= FEW_QUERIES:
        warn(
            f"{name}: of a model, the values of all queries, or what they lack of 1, add up to "
            f"{rarest:.2g}; below {FEW:g} its interval is as wide as that of a share of yes and no"
        )
    return measures


def _notes(queries: Queries) -> list[str]:
    notes = []
    few, what = queries.n_queries, "queries"
    if queries.n_clusters is not None:
        few, what = queries.n_clusters, f"clusters ({visible(str(queries.cluster))})"
    if few < FEW_QUERIES:
        notes.append(
            f"only {few} {what}: with fewer than {FEW_QUERIES}, intervals may be as "
            "wide as those of shares of yes and no"
        )
    tied = _n_tied(queries)
    if most := max(tied):
        names = [visible(name) for name, n in zip(queries.names, tied, strict=True) if n]
        have, up_to = ("has", "") if len(names) == 1 else ("have", "up to ")
        notes.append(
            f"{some_of(names)} {have} equal scores for items of different grades in {up_to}{most} "
            f"of {queries.n_queries} queries: average precision and reciprocal ranks take them in "
            "the order of the file, which may favour a model; the other metrics average over the "
            "orders"
        )
    empty = int((np.bincount(queries.segments, queries.grades) == 0).sum())
    if empty:
        notes.append(
            f"no relevant items in {empty} of {queries.n_queries} queries: they count as 0 in "
            "precision and reciprocal ranks, and the other metrics leave them out"
        )
    return notes


def _n_tied(queries: Queries) -> list[int]:
    """For each model, the number of queries where items of different grades have equal scores."""
    by_query = sorting.order_of_ids(queries.segments, queries.n_queries)
    query, grades = queries.segments[by_query], queries.grades[by_query]
    begins = np.append(0, np.bincount(query).cumsum())

    def of_model(scores: Any) -> int:
        item, tied = HostLists(scores[by_query], grades, begins).order
        grade = grades[item]
        # Equal scores lie side by side, so that two neighbours differ where any two do.
        apart = tied[1:] & (grade[1:] != grade[:-1])
        return len(np.unique(query[1:][apart]))

    return [of_model(scores) for scores in queries.scores]


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
        "cluster": queries.cluster,
        "n_clusters": queries.n_clusters,
        "n_duplicates": n_duplicates_of(queries),
        "highest_grade": highest,
        "max_grade": settings.max_grade,
        "k": list(ks),
        "gain": settings.gain,
    }


def _units(queries: Queries) -> str:
    if queries.n_clusters is None:
        return ""
    return f", which take {queries.n_clusters:,} clusters ({queries.cluster}) as units"


def _title_of_queries(queries: Queries) -> str:
    n, relevant = len(queries.grades), int((queries.grades > 0).sum())
    return (
        f"{name_of(queries.source)}, {queries.label}: {queries.n_queries:,} queries "
        f"({queries.group}) of {n:,} items, {relevant:,} relevant ({percent_text(relevant / n)})"
    )


def _ndcg_figure(
    queries: Queries,
    settings: Settings,
    band: jm.Interval | None,
    names: Sequence[str],
    order: Sequence[int],
) -> Figure:
    """nDCG at each k, with the models in the order `order`, which `names` already have."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height_for(names)), layout="constrained")
    with jax.enable_x64(True):  # as evaluated, so that nothing is compiled again
        plots.ndcg_at_k(
            queries.scores[np.array(order)],
            queries.grades,
            segments=queries.segments,
            names=names,
            max_k=len(PLACES),
            gain=settings.gain,
            interval=band,
            style=settings.style,
            ax=figure.subplots(),
        )
    return figure
