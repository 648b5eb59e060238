"""Warnings that an average precision rests on few positives.

A positive counts itself in the precision at its score, so the average precision of few positives is
too high. An interval allows for this bias. A mean over folds or slices does not average it out, as
all of them have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.types import HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.areas import average_precision
from jaxmetrics._roc.record import MetricLike, record_of

_LEAST = 2  # n AP that an interval needs
_ENOUGH = 15  # n AP that each fold or slice needs
_UNEQUAL = 2  # ratio of the numbers of positives of two slices


def warn_of_few_successes(metric: MetricLike, values: HostArray, n_positives: HostArray) -> None:
    """Warn of intervals of these values, if their upper limits rest on positives not drawn."""
    least = _fewest(metric, values, n_positives)
    if least < _LEAST:
        warn(
            f"n AP = {least:.2g} for n positives and average precision AP: in simulations with "
            f"less than {_LEAST}, 95 % intervals cover 91 to 100 %, and are wide, as "
            "the sample may lack the few positives with the highest scores: add positives",
        )


def warn_of_folds(metric: MetricLike, values: HostArray, n_positives: HostArray) -> None:
    """Warn of folds with few positives, whose values `[folds, ...]` and mean are too high."""
    least = _fewest(metric, values, _along(n_positives, values))
    if least < _ENOUGH:
        warn(
            f"n AP = {least:.2g} for the n positives of a fold and their average precision AP, "
            f"which is too high for few: in simulations with less than {_ENOUGH}, 95 % intervals "
            "of the mean cover 75 to 93 %: report `pooled`, or take fewer folds",
        )


def warn_of_unequal_slices(metric: MetricLike, slices: Any) -> None:
    """Warn that slices may differ only because their numbers of positives do."""
    values, n, tested = (
        np.asarray(x) for x in (slices.estimate, slices.n_positives, slices.tested)
    )
    least = _fewest(metric, values[tested], _along(n[tested], values))
    if least < _ENOUGH and (high := n[tested].max()) > _UNEQUAL * (low := n[tested].min()):
        warn(
            f"slices have {low} to {high} positives n, and n AP = {least:.2g} with their average "
            "precision AP, which is too high for few: in simulations up to 32 % of equal slices "
            "differed at 5 %, and 58 % of trends: compare by roc_auc or partial_auc",
        )


def _fewest(metric: MetricLike, values: HostArray, n_positives: HostArray) -> float:
    """The smallest n AP above 0; infinite for other metrics."""
    if record_of(metric) != average_precision.record:
        return np.inf
    found = values * n_positives
    return float(np.min(np.where(found > 0, found, np.inf), initial=np.inf))


def _along(of_parts: HostArray, values: HostArray) -> HostArray:
    """Numbers `[parts]`, shaped to broadcast with values `[parts, ...]`."""
    return of_parts.reshape(-1, *(1,) * (values.ndim - 1))
