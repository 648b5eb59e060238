"""What the threshold of each model does that an FPR, the least cost or another rule chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.words import percent_text, some_of, visible
from jaxmetrics._report._evaluation import Measure, Points
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import CHOSEN, Settings

_HEADINGS = {
    "threshold": "Threshold",
    "recall": "Recall",
    "fpr": "FPR",
    "precision": "Precision",
    "npv": "NPV",
    "flagged": "Share\nflagged",
    "cost": "Cost\nan item",
    "recall_by_amount": "Recall by\namount",
}
_CRITERIA = {"youden": "Youden's index"}
# The beginning of operating_point's warning, which does not know the names of models.
_NOTHING = "it would be best to flag nothing"
# The numbers that depend on the share of positives.
_OF_PREVALENCE = ("precision", "npv", "flagged", "cost")
# Intervals rest on the mean and the variance of resamples, for which few are enough; and the most
# items times resamples.
_RESAMPLES, _DRAWN = 400, 10**8


def points_of(
    problem: Problem, settings: Settings, *, progress: Callable[[int], None], **options: Any
) -> tuple[Points, ...]:
    """Points of an FPR of at most `max_fpr`, and of other rules that are set."""
    most = max(min(_RESAMPLES, _DRAWN // max(len(problem.labels), 1)), 50)
    given: dict[str, Any] = {
        **options,
        "n_resamples": min(settings.n_resamples, most),
        "confidence_level": settings.confidence_level,
        "amounts": problem.amounts,
        "prevalence": settings.prevalence,
    }
    limit = f"FPR of at most {percent_text(settings.max_fpr)}"
    rules: list[Any] = [("max_fpr", limit, {"max_fpr": settings.max_fpr})]
    if settings.costs is not None:
        given["fp_cost"], given["fn_cost"] = settings.costs
        rules.append(("least_cost", "Least cost", {}))
    if settings.criterion is not None:
        by_criterion = {"criterion": settings.criterion}
        rules.append((settings.criterion, f"Largest {_CRITERIA[settings.criterion]}", by_criterion))
    for name, title in CHOSEN.items():
        if (value := getattr(settings, name)) is not None:
            number = f"{value:g}" if name == "threshold" else percent_text(value)
            rules.append((name, title.format(number), {name: value}))
    found: list[Points] = []
    for rule, title, chosen in rules:
        point = jm.operating_point(problem.scores, problem.labels, **given, **chosen)
        intervals = {x: jax.tree.map(np.asarray, getattr(point, x)) for x in _HEADINGS}
        measures = (
            Measure(
                name,
                _HEADINGS[name],
                interval,
                max_fpr=chosen.get("max_fpr"),
                ranked=False,
                rule=rule,
                prevalence=settings.prevalence if name in _OF_PREVALENCE else None,
            )
            for name, interval in intervals.items()
            if interval is not None
        )
        found.append(Points(rule, title, tuple(measures)))
        progress(settings.n_resamples * len(found) // len(rules))
    return tuple(found)


def note_with_names(note: str, points: Sequence[Points], names: Sequence[str]) -> str:
    """A note of the library on thresholds, with the models of which it is true."""
    if not note.startswith(_NOTHING):
        return note
    found = np.zeros(len(names), bool)
    for x in points:
        value = {y.name: np.asarray(y.interval.estimate) for y in x.measures}
        found |= (value["threshold"] == np.inf) & (value["flagged"] > 0)
    of = some_of([visible(name) for name, one in zip(names, found, strict=True) if one])
    return note.replace(_NOTHING, f"{_NOTHING} by the scores {of}", 1)
