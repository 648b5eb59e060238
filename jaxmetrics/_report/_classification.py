"""Every metric of the ROC family of every model with intervals, and the models compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

import jaxmetrics as jm
from jaxmetrics._report import _figures
from jaxmetrics._report._evaluation import (
    Drawing,
    Evaluation,
    Measure,
    carry_out,
    has_bands,
    note_of_bands,
    percent,
)
from jaxmetrics._report._metrics import ABOUT, Metric, classification_metrics, least_cost
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics._report._slices import intervals_of, slices_of
from jaxmetrics._types import FloatArray

BY_AMOUNT = "amount_recall_at_fpr"
BAND_RESAMPLES = 400  # of precision


def evaluate(
    problem: Problem, settings: Settings, tell: Tell, *, with_figures: bool = False
) -> Evaluation:
    """Every metric of every model with intervals, and the models compared."""
    names = problem.names
    metrics = classification_metrics(settings.max_fpr)
    recalls = [x for x in metrics if x.name == "recall_at_fpr"]
    common: dict[str, Any] = {
        "key": jax.random.key(settings.seed),
        "n_resamples": settings.n_resamples,
        "clusters": problem.clusters,
        "weights": problem.weights,
    }

    given = (problem.scores, problem.labels)
    by_metric = {"confidence_level": settings.confidence_level, **common}
    # Recalls share their resamples.
    at_all = partial(jm.recall_at_fpr, max_fpr=[x.max_fpr for x in recalls])
    work: dict[str, Callable[..., Any]] = {
        x.name: partial(
            jm.confidence_interval, at_all if x in recalls else x.function, *given, **by_metric
        )
        for x in metrics
    }
    if problem.amounts is not None:
        work[BY_AMOUNT] = partial(
            jm.confidence_interval, at_all, *given, amounts=problem.amounts, **by_metric
        )
    if len(names) > 1:
        for x in metrics:
            if x.compared:
                work[f"comparison by {x.name}"] = partial(
                    jm.compare, x.function, *given, **by_metric
                )
    banded = with_figures and has_bands(names)
    if banded:
        grid = _figures.fpr_grid(settings.max_fpr)
        work["band of ROC curves"] = partial(jm.roc_band, *given, fpr=grid, **by_metric)
        work["band of precision"] = partial(
            _precision_band, given, common, settings.confidence_level
        )
    found, notes = carry_out(work, settings, tell)
    by_slice = {
        f"slices by {x.name}": partial(intervals_of, x, *given, settings, **common)
        for x in problem.slices
    }
    for name, call in by_slice.items():  # one after the other, so that a note says which it is of
        part, more = carry_out({name: call}, settings, tell)
        found, notes = {**found, **part}, [*notes, *more]
    found = jax.tree.map(np.asarray, found)
    # Resamples lack a class only where clusters are drawn, which are of either class or both, so
    # that the library's advice to draw each class by itself is of no use here.
    notes = [note.partition(": stratify=")[0] for note in notes]
    if with_figures and not banded:
        notes.append(note_of_bands("roc.png"))

    def measure(x: Metric, what: str) -> Measure:
        interval = found[what]
        if x in recalls:
            interval = jax.tree.map(lambda y: y[:, recalls.index(x)], interval)
        versus = found.get(f"comparison by {what}") if x.compared else None
        return Measure(what, x.heading, interval, versus, x.max_fpr)

    measures = [measure(x, x.name) for x in metrics]
    if problem.amounts is not None:
        measures += [measure(x, BY_AMOUNT) for x in recalls]
    slices = tuple(
        slices_of(x, problem.labels, settings, found[f"slices by {x.name}"]) for x in problem.slices
    )
    facts = _facts(problem, settings)
    drawings: tuple[Drawing, ...] = ()
    if with_figures:
        with jax.enable_x64(True):
            table = jm.score_table(*given, weights=problem.weights)
            facts["least_cost"] = least_cost(table, names, settings)
        drawings = _figures.drawings_of(
            table,
            names,
            settings,
            measures,
            band=found.get("band of ROC curves"),
            precision_band=found.get("band of precision"),
            slices=slices,
        )
    return Evaluation(
        names,
        facts,
        ("max_fpr",),
        _title(problem),
        _about(problem),
        tuple(measures),
        tuple(dict.fromkeys(notes)),
        drawings,
        slices,
    )


def _precision_band(
    given: tuple[Any, Any],
    options: dict[str, Any],
    level: float,
    progress: Callable[[int], None],
) -> jm.Interval:
    """By percentiles of few resamples, as every item of each counts, not just its runs."""
    n_resamples = min(options["n_resamples"], BAND_RESAMPLES)
    options = {**options, "n_resamples": n_resamples, "progress": progress}
    replicates = jm.bootstrap(_figures.precision_on_curve, *given, **options)
    return replicates.interval(confidence_level=level)


def _facts(problem: Problem, settings: Settings) -> dict[str, Any]:
    labels, scores = problem.labels, problem.scores
    return {
        "file": problem.source,
        "label": problem.label,
        "n_items": len(labels),
        "n_positive": int(labels.sum()),
        "n_tied": {name: _n_tied(row) for name, row in zip(problem.names, scores, strict=True)},
        "n_duplicates": _n_duplicates([labels, *scores]),
        "n_infinite": int(np.isinf(scores).sum()),
        "cluster": problem.cluster,
        "n_clusters": _n_clusters(problem),
        "max_fpr": settings.max_fpr,
        "fp_cost": settings.fp_cost,
        "fn_cost": settings.fn_cost,
    }


def _n_duplicates(columns: Sequence[Any]) -> int:
    """Rows that were there before."""
    return int(pandas.DataFrame(dict(enumerate(columns))).duplicated().sum())


def _n_tied(scores: FloatArray) -> int:
    """Items that share their score with another."""
    counts = np.unique(scores, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _n_clusters(problem: Problem) -> int | None:
    return None if problem.clusters is None else len(np.unique(problem.clusters))


def _title(problem: Problem) -> str:
    n, positives = len(problem.labels), int(problem.labels.sum())
    return (
        f"{Path(problem.source).name}, {problem.label}: "
        f"{n:,} items, {positives:,} positive ({percent(positives / n)})"
    )


def _about(problem: Problem) -> str:
    if problem.clusters is None:
        return ABOUT
    return f" for {_n_clusters(problem):,} clusters ({problem.cluster}){ABOUT}"
