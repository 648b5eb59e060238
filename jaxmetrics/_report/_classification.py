"""Every metric of the ROC family of every model with intervals, and the models compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.types import FloatArray, Items
from jaxmetrics._base.words import percent_text, some_of, visible
from jaxmetrics._report import _figures
from jaxmetrics._report._drawn import drawn
from jaxmetrics._report._duplicates import n_duplicates_of, notes_of_duplicates
from jaxmetrics._report._evaluation import (
    Drawing,
    Drawn,
    Evaluation,
    Measure,
    Slices,
    carry_out,
    has_bands,
    note_of_bands,
    notes_of_direction,
)
from jaxmetrics._report._metrics import (
    ABOUT,
    Metric,
    classification_metrics,
    costs_in_facts,
    least_cost,
)
from jaxmetrics._report._points import note_with_names, points_of
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import CHOSEN, Settings, Tell
from jaxmetrics._report._slices import measured_in, notes_of, ranks_of, slices_of
from jaxmetrics._report._texts import name_of
from jaxmetrics.inference._tied_limits import tied_limits

_BAND, _POINTS, _FIGURES = "band of ROC curves", "operating points", "figures"
_FACTS = "ties and duplicates"
BY_AMOUNT = "amount_recall_at_fpr"


def evaluate_problem(
    problem: Problem,
    settings: Settings,
    tell: Tell,
    *,
    with_figures: bool = False,
    with_files: bool = True,
) -> Evaluation:
    """Every metric of every model with intervals, and the models compared."""
    names = problem.names
    metrics = classification_metrics(settings.max_fpr)
    common: dict[str, Any] = {
        "key": jax.random.key(settings.seed),
        "n_resamples": settings.n_resamples,
        "clusters": problem.clusters,
        "weights": problem.weights,
    }
    given = (problem.scores, problem.labels)
    by_metric = {"confidence_level": settings.confidence_level, **common}
    measured = partial(_measured, given, by_metric, len(names) > 1)
    work: dict[str, Callable[..., Any]] = {
        name: partial(measured, [x for x in metrics if x.name == name])
        for name in dict.fromkeys(x.name for x in metrics)
    }
    if problem.amounts is not None:
        recalls = [x for x in metrics if x.name == "recall_at_fpr"]
        by_amount = [x._replace(name=BY_AMOUNT) for x in recalls]
        work[BY_AMOUNT] = partial(measured, by_amount, amounts=problem.amounts)
    banded = with_figures and has_bands(names, len(problem.labels))
    if banded:
        grid = _figures.fpr_grid(settings.max_fpr)
        work[_BAND] = partial(jm.roc_band, *given, fpr=grid, **by_metric)
    work[_FACTS] = partial(_facts_of_problem, problem, settings)
    found, notes = carry_out(work, settings, tell)
    facts = found.pop(_FACTS)
    notes = [
        *problem.notes,
        *notes_of_duplicates(problem, facts["n_duplicates"]),
        *(x.note for x in problem.slices if x.note),
        *(_as_of_a_command(x, problem, settings) for x in notes),
    ]
    ranks = ranks_of(problem.scores) if problem.slices else None
    in_slices: list[Any] = []
    for x in problem.slices:  # in turn: each warning names its slice
        of_items: Any = {"weights": problem.weights, "clusters": problem.clusters}
        of_items["tests"] = len(names) > 1 or x.times is not None
        areas = partial(measured_in, x, ranks, problem.labels, settings, **of_items)
        part, more = carry_out({f"slices by {x.name}": areas}, settings, tell)
        in_slices, notes = [*in_slices, *part.values()], [*notes, *more]
    measures = [measure for name in work if name not in {_BAND, _FACTS} for measure in found[name]]
    notes += notes_of_direction(measures, names)
    if with_figures and not banded:
        notes.append(note_of_bands("roc.png", names))
    slices = tuple(
        slices_of(x, problem.labels, settings, *measured, clustered=problem.clusters is not None)
        for x, measured in zip(problem.slices, in_slices, strict=True)
    )
    notes += [x for part in slices for x in notes_of(part, len(names))]
    last_work: dict[str, Callable[..., Any]] = {}  # figures are drawn while points are resampled
    asked = any(getattr(settings, x) is not None for x in ("criterion", "prevalence", *CHOSEN))
    if with_figures or asked or settings.costs is not None:
        of_points = {k: v for k, v in common.items() if k != "n_resamples"}
        last_work[_POINTS] = partial(points_of, problem, settings, **of_points)
    if with_figures:
        draw = partial(_drawn, problem, settings, measures, found.get(_BAND), slices, with_files)
        last_work[_FIGURES] = draw
    last, more = carry_out(last_work, settings, tell)
    points = last.get(_POINTS, ())
    notes += [note_with_names(x, points, names) for x in more]
    least, drawings, figures = last.get(_FIGURES, ({}, (), {}))
    facts |= {"least_cost": least} if least else {}
    return Evaluation(
        names,
        facts,
        ("max_fpr", "scale", "rule", "prevalence"),
        _title_of_problem(problem),
        _about(problem),
        tuple(measures),
        tuple(dict.fromkeys(notes)),
        drawings,
        slices,
        points,
        figures,
    )


def _drawn(
    problem: Problem,
    settings: Settings,
    measures: Sequence[Measure],
    band: jm.RocBand | None,
    slices: Sequence[Slices],
    with_files: bool,
    progress: Callable[[int], None],
) -> tuple[dict[str, Any], tuple[Drawing, ...], dict[str, Drawn]]:
    """The thresholds of least cost, if there are costs, and the figures."""
    table = jm.score_table(problem.scores, problem.labels, weights=problem.weights)
    best = {} if settings.costs is None else least_cost(table, problem.names, settings)
    shown: Any = {"band": band, "slices": slices}
    drawings = _figures.drawings_of(table, problem.names, settings, measures, **shown)
    found = {x.name: drawn(x, settings.style, with_files=with_files) for x in drawings}
    return best, drawings, found


def _as_of_a_command(note: str, problem: Problem, settings: Settings) -> str:
    """A note of the library in the command's words, with the names of columns."""
    if " is within a tie of " not in note:
        return note
    recall = partial(jm.recall_at_fpr, max_fpr=settings.max_fpr)
    with jax.enable_x64(True):
        tied = [
            visible(name)
            for name, row in zip(problem.names, problem.scores, strict=True)
            if tied_limits(recall, Items(row, problem.labels, problem.weights)) is not None
        ]
    found, _, _ = note.partition(": compare")
    of_models = found.replace(" negatives:", f" negatives in the scores {some_of(tied)}:")
    return f"{of_models}: compare the models by partial AUC"


def _measured(
    given: tuple[Any, Any],
    options: dict[str, Any],
    several: bool,
    metrics: Sequence[Metric],
    progress: Callable[[int], None],
    amounts: Any = None,
) -> list[Measure]:
    """The measures of metrics of one name, in turn, because they share compiled programs."""
    options = {**options, "progress": progress}
    measures = []
    for x in metrics:
        interval = jm.confidence_interval(x.function, *given, amounts=amounts, **options)
        versus = None
        if several and x.compared:
            versus = jm.compare(x.function, *given, amounts=amounts, **options)
        interval, versus = jax.tree.map(np.asarray, (interval, versus))
        found = Measure(x.name, x.heading, interval, versus, x.max_fpr, scale=x.scale)
        if versus is not None and amounts is None and options["weights"] is None:
            found = found._replace(enough=_enough(x, given, options["clusters"], found))
        measures.append(found)
    return measures


def _enough(
    metric: Metric, given: tuple[Any, Any], clusters: Any, measure: Measure
) -> jm.SampleSize | None:
    """The size of a study that would show the difference of the best two models, at 80 % power.

    None if the data show it already, or nothing can be said of it, as of a limit within a tie.
    """
    best_set, versus = measure.best_set, measure.comparison
    if best_set is None or versus is None or np.isnan(versus.estimate).any():
        return None
    first, second = np.argsort(-np.asarray(versus.estimate), kind="stable")[:2]
    difference = float(versus.difference[first, second])
    if not best_set[second] or not difference > 0 or not measure.has_intervals[first, second]:
        return None
    scores, labels = given
    scores = scores[np.array([first, second])]
    if tied_limits(metric.function, Items(scores, labels)) is not None:
        return None
    needed = jm.sample_size(
        metric.function,
        scores,
        labels,
        difference=difference,
        confidence_level=versus.confidence_level,
        clusters=clusters,
    )
    return needed if np.isfinite(needed.n_positives) else None


def _facts_of_problem(
    problem: Problem, settings: Settings, progress: Callable[[int], None]
) -> dict[str, Any]:
    labels, scores = problem.labels, problem.scores
    return {
        "file": problem.source,
        "label": problem.label,
        "n_items": len(labels),
        "n_positive": int(labels.sum()),
        "positive_by_weight": _positive_by_weight(problem),
        "n_tied": {name: _n_tied(row) for name, row in zip(problem.names, scores, strict=True)},
        "n_duplicates": n_duplicates_of(problem),
        "n_infinite": int(np.isinf(scores).sum()),
        "cluster": problem.cluster,
        "n_clusters": _n_clusters(problem),
        "max_fpr": settings.max_fpr,
        **costs_in_facts(settings),
        "prevalence": settings.prevalence,
    }


def _positive_by_weight(problem: Problem) -> float | None:
    """The share of the positives in all weight; None without weights."""
    weights, labels = problem.weights, problem.labels
    return None if weights is None else float(weights[labels].sum() / weights.sum())


def _n_tied(scores: FloatArray) -> int:
    """The number of items that share their score with another item."""
    counts = np.unique(scores, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _n_clusters(problem: Problem) -> int | None:
    return None if problem.clusters is None else len(np.unique(problem.clusters))


def _title_of_problem(problem: Problem) -> str:
    n, positives = len(problem.labels), int(problem.labels.sum())
    share, by_weight = percent_text(positives / n), _positive_by_weight(problem)
    if by_weight is not None:
        share += f"; {percent_text(by_weight)} by weight"
    return (
        f"{name_of(problem.source)}, {problem.label}: {n:,} items, {positives:,} positive ({share})"
    )


def _about(problem: Problem) -> str:
    if problem.clusters is None:
        return ABOUT
    return f", which take {_n_clusters(problem):,} clusters ({problem.cluster}) as units{ABOUT}"
