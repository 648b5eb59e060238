"""Every metric of the ROC family of every model with intervals, and the models compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._report import _evaluation
from jaxmetrics._report._evaluation import Evaluation, Measure, carry_out, note_of_bands, percent
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics._types import FloatArray

FPR_LIMITS = (0.01, 0.05)


def evaluate(
    problem: Problem, settings: Settings, tell: Tell, *, with_band: bool = False
) -> Evaluation:
    """Every metric of every model with intervals, and the models compared."""
    max_fpr, names = settings.max_fpr, problem.names
    limits = sorted({*FPR_LIMITS, max_fpr})
    common: dict[str, Any] = {
        "confidence_level": settings.confidence_level,
        "key": jax.random.key(settings.seed),
        "n_resamples": settings.n_resamples,
        "clusters": problem.clusters,
        "weights": problem.weights,
    }

    def of(call: Callable[..., Any], metric: Any, **options: Any) -> Callable[..., Any]:
        return partial(call, metric, problem.scores, problem.labels, **common, **options)

    recalls = partial(jm.recall_at_fpr, max_fpr=limits)
    compared: dict[str, Callable[..., Any]] = {
        "AUC": jm.roc_auc,
        "partial AUC": partial(jm.partial_auc, max_fpr=max_fpr, scale="mcclish"),
        "recall": partial(jm.recall_at_fpr, max_fpr=max_fpr),
    }
    work = {
        "AUC": of(jm.confidence_interval, compared["AUC"]),
        "partial AUC": of(jm.confidence_interval, compared["partial AUC"]),
        "recall": of(jm.confidence_interval, recalls),
        "average precision": of(jm.confidence_interval, jm.average_precision),
    }
    if problem.amounts is not None:
        work["recall by amount"] = of(jm.confidence_interval, recalls, amounts=problem.amounts)
    if len(names) > 1:
        for name, metric in compared.items():
            work[f"comparison by {name}"] = of(jm.compare, metric)
    if with_band and len(names) <= _evaluation.MOST_BANDS:
        curve = partial(jm.roc_band, problem.scores, problem.labels, **common)
        work["bands"] = partial(curve, fpr=_grid(max_fpr))

    found, notes = carry_out(work, settings, tell)
    found = jax.tree.map(np.asarray, found)
    # Resamples lack a class only where clusters are drawn, which are of either class or both, so
    # that the library's advice to draw each class by itself is of no use here.
    notes = [note.partition(": stratify=")[0] for note in notes]
    if with_band and "bands" not in work:
        notes.append(note_of_bands("roc.png"))

    def measure(name: str, heading: str, what: str, limit: float | None = None) -> Measure:
        versus = found.get(f"comparison by {what}")
        return Measure(name, heading, found[what], versus, limit)

    def of_limits(name: str, what: str) -> list[Measure]:
        measures = []
        for j, limit in enumerate(limits):
            interval = jax.tree.map(lambda x, j=j: x[:, j], found[what])
            versus = found.get(f"comparison by {what}") if limit == max_fpr else None
            heading = f"Recall\nat\n{percent(limit)} FPR"
            measures.append(Measure(name, heading, interval, versus, limit))
        return measures

    heading = f"Partial\nAUC to\n{percent(max_fpr)} FPR"
    measures = [
        measure("roc_auc", "AUC", "AUC"),
        measure("partial_auc", heading, "partial AUC", max_fpr),
        *of_limits("recall_at_fpr", "recall"),
        measure("average_precision", "Average\nprecision", "average precision"),
    ]
    if problem.amounts is not None:
        measures += of_limits("amount_recall_at_fpr", "recall by amount")
    whole, window = measures[:2]
    return Evaluation(
        names,
        _facts(problem, max_fpr),
        ("max_fpr",),
        _title(problem),
        _about(problem),
        tuple(measures),
        tuple(dict.fromkeys(notes)),
        "roc.png",
        partial(
            plots.roc_with_window,
            problem.scores,
            problem.labels,
            names=names,
            max_fpr=max_fpr,
            weights=problem.weights,
            band=found.get("bands"),
            intervals=(whole.interval, window.interval),
        ),
    )


def _grid(max_fpr: float) -> FloatArray:
    """False positive rates of a plot: of the whole curve, and closer within the window."""
    grid = np.concatenate([np.linspace(0, end, 101) for end in (1, max_fpr)])
    return np.unique([max_fpr / 1000, *grid[grid > 0]])


def _facts(problem: Problem, max_fpr: float) -> dict[str, Any]:
    return {
        "file": problem.source,
        "label": problem.label,
        "n_items": len(problem.labels),
        "n_positive": int(problem.labels.sum()),
        "cluster": problem.cluster,
        "n_clusters": _n_clusters(problem),
        "max_fpr": max_fpr,
    }


def _n_clusters(problem: Problem) -> int | None:
    return None if problem.clusters is None else len(np.unique(problem.clusters))


def _title(problem: Problem) -> str:
    n, positives = len(problem.labels), int(problem.labels.sum())
    return (
        f"{Path(problem.source).name}, {problem.label}: "
        f"{n:,} items, {positives:,} positive ({percent(positives / n)})"
    )


def _about(problem: Problem) -> str:
    scale = "; partial AUC on McClish's scale, .5 for chance"
    if problem.clusters is None:
        return scale
    return f" for {_n_clusters(problem):,} clusters ({problem.cluster}){scale}"
