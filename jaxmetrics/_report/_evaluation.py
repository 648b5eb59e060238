"""Every metric of every model with intervals, and the models compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics._types import FloatArray

FPR_LIMITS = (0.01, 0.05)

# With more models the bands of a plot hide each other.
MOST_BANDS = 7


class Measure(NamedTuple):
    """A metric of every model, and the models compared by it where they are."""

    name: str
    max_fpr: float | None
    interval: jm.Interval  # [models]
    comparison: jm.Comparison | None = None  # [models, models]


class Evaluation(NamedTuple):
    """All that is reported of a problem."""

    measures: tuple[Measure, ...]
    band: jm.RocBand | None  # [models, points]
    warnings: tuple[str, ...]


def evaluate(
    problem: Problem, settings: Settings, tell: Tell, *, with_band: bool = False
) -> Evaluation:
    """Every metric of every model with intervals, and the models compared."""
    max_fpr, n_resamples, level, seed = settings
    limits = sorted({*FPR_LIMITS, max_fpr})
    recalls = partial(jm.recall_at_fpr, max_fpr=limits)
    compared: dict[str, Callable[..., Any]] = {
        "roc_auc": jm.roc_auc,
        "partial_auc": partial(jm.partial_auc, max_fpr=max_fpr, scale="mcclish"),
        "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=max_fpr),
    }
    interval = jm.confidence_interval
    work: dict[str, Callable[..., Any]] = {
        "AUC": partial(interval, compared["roc_auc"]),
        "partial AUC": partial(interval, compared["partial_auc"]),
        "recall": partial(interval, recalls),
        "average precision": partial(interval, jm.average_precision),
    }
    if problem.amounts is not None:
        work["recall by amount"] = partial(interval, recalls, amounts=problem.amounts)
    if len(problem.names) > 1:
        for name, metric in compared.items():
            work[f"comparison by {name}"] = partial(jm.compare, metric)
    if with_band and len(problem.names) <= MOST_BANDS:
        work["bands"] = partial(jm.roc_band, fpr=_grid(max_fpr))

    found = {}
    with jax.enable_x64(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, (name, call) in enumerate(work.items()):
            what, done = f"Evaluating: {name.replace('_', ' ')}", i / len(work)
            tell(what, done)
            found[name] = call(
                problem.scores,
                problem.labels,
                confidence_level=level,
                key=jax.random.key(seed),
                n_resamples=n_resamples,
                clusters=problem.clusters,
                weights=problem.weights,
                progress=lambda n, what=what, done=done: tell(
                    what, done + n / n_resamples / len(work)
                ),
            )
    notes = [_note(str(warning.message)) for warning in caught if warning.category is UserWarning]
    if with_band and "bands" not in work:
        notes.append(f"roc.png has no bands, as those of more than {MOST_BANDS} hide each other")

    def of_limits(name: str, interval: jm.Interval) -> list[Measure]:
        columns = [jax.tree.map(lambda x, j=j: x[:, j], interval) for j in range(len(limits))]
        pairs = zip(limits, columns, strict=True)
        return [Measure(name, x, column, comparison(name, x)) for x, column in pairs]

    def comparison(name: str, limit: float | None) -> jm.Comparison | None:
        return found.get(f"comparison by {name}") if limit in (None, max_fpr) else None

    found = jax.tree.map(np.asarray, found)
    measures = [
        Measure("roc_auc", None, found["AUC"], comparison("roc_auc", None)),
        Measure("partial_auc", max_fpr, found["partial AUC"], comparison("partial_auc", max_fpr)),
        *of_limits("recall_at_fpr", found["recall"]),
        Measure("average_precision", None, found["average precision"]),
    ]
    if problem.amounts is not None:
        measures += of_limits("amount_recall_at_fpr", found["recall by amount"])
    return Evaluation(tuple(measures), found.get("bands"), tuple(dict.fromkeys(notes)))


def _grid(max_fpr: float) -> FloatArray:
    """False positive rates of a plot: of the whole curve, and closer within the window."""
    grid = np.concatenate([np.linspace(0, end, 101) for end in (1, max_fpr)])
    return np.unique([max_fpr / 1000, *grid[grid > 0]])


def _note(message: str) -> str:
    # Resamples lack a class only where clusters are drawn, which are of either class or both, so
    # that the library's advice to draw each class by itself is of no use here.
    return message.partition(": stratify=")[0]
