"""What two thresholds of each model do: that of the FPR asked for, and that of the least cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.words import percent_text
from jaxmetrics._report._evaluation import Measure, Points
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings

_HEADINGS = {
    "threshold": "Threshold",
    "recall": "Recall",
    "fpr": "FPR",
    "precision": "Precision",
    "flagged": "Share\nflagged",
    "cost": "Cost\nan item",
    "recall_by_amount": "Recall by\namount",
}
# Intervals rest on the mean and the variance of resamples, for which few are enough.
_RESAMPLES, _DRAWN = 400, 10**8


def points_of(
    problem: Problem, settings: Settings, *, progress: Callable[[int], None], **options: Any
) -> tuple[Points, Points]:
    """At most `max_fpr`, and the least cost, side by side."""
    most = max(min(_RESAMPLES, _DRAWN // max(len(problem.labels), 1)), 50)
    given = {
        **options,
        "n_resamples": min(settings.n_resamples, most),
        "confidence_level": settings.confidence_level,
        "amounts": problem.amounts,
        "fp_cost": settings.fp_cost,
        "fn_cost": settings.fn_cost,
    }
    limit = f"FPR of at most {percent_text(settings.max_fpr)}"
    rules: Any = (
        ("max_fpr", limit, {"max_fpr": settings.max_fpr}),
        ("least_cost", "Least cost", {}),
    )
    found = []
    for rule, title, chosen in rules:
        point = jm.operating_point(problem.scores, problem.labels, **given, **chosen)
        intervals = {x: jax.tree.map(np.asarray, getattr(point, x)) for x in _HEADINGS}
        measures = (
            Measure(name, _HEADINGS[name], interval, ranked=False)
            for name, interval in intervals.items()
            if interval is not None
        )
        found.append(Points(rule, title, tuple(measures)))
        progress(settings.n_resamples // 2 * len(found))
    return found[0], found[1]
