"""Metrics that follow from one operating point: the cost that it minimises, and the metric.

The bootstrap finds the point of each resample by one scan along the items, in place of a score
table for each resample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.numerics import divide, rates
from jaxmetrics._base.types import Array
from jaxmetrics._roc.limits import reaches, slackened_share
from jaxmetrics._roc.operating import Point, objective
from jaxmetrics._roc.record import Metric, Options
from jaxmetrics._roc.thresholds import threshold_at_fpr
from jaxmetrics._roc.tradeoffs import (
    min_cost_threshold,
    precision_at_recall,
    recall_at_precision,
    specificity_at_sensitivity,
)


class BestPoint(NamedTuple):
    """How a metric follows from an operating point.

    Attributes:
      objective: of (fps, tps, positives, negatives, tolerance, options), the cost that the point
        minimises. It must be finite and not negative, also at points that the limit forbids: costs
        tie if their relative difference is small.
      number: the metric as a function of the Point.
      limit: the name of the option that is a limit, which must be one number; None without one.
    """

    objective: Callable[..., Array]
    number: Callable[[Point], Array]
    limit: str | None = None

    def serves(self, options: Options) -> bool:
        """Whether the metric follows from one operating point with these options."""
        several = self.limit is not None and np.ndim(options[self.limit])
        by_step = options.get("method", "step") == "step"
        return by_step and not several and not options.get("return_threshold", False)

    def value(self, point: Point, options: Options) -> Array:
        """The metric; NaN if the limit is NaN, which no point meets."""
        number = self.number(point)
        if self.limit is None:
            return number
        return jnp.where(jnp.isnan(options[self.limit]), jnp.nan, number)


def by_rule(*counts: Any, options: Options) -> Array:
    """The cost that a rule of `chosen_point` minimises; the rule is that of the given options."""
    names = ("min_precision", "fp_cost", "fn_cost", "criterion", "prevalence")
    return objective(*counts, *(options.get(name) for name in names))


def _false_discoveries(
    fps: Array, tps: Array, positives: Array, negatives: Array, tolerance: float, options: Options
) -> Array:
    allowed = reaches(rates(tps, positives), jnp.asarray(options["min_recall"]), tolerance)
    return jnp.where(allowed, 1 - divide(tps, tps + fps, 1.0), 2.0)


def _false_alarms(
    fps: Array, tps: Array, positives: Array, negatives: Array, tolerance: float, options: Options
) -> Array:
    allowed = reaches(rates(tps, positives), jnp.asarray(options["min_sensitivity"]), tolerance)
    return jnp.where(allowed, fps, 2 * negatives)


def _missed_within(
    fps: Array, tps: Array, positives: Array, negatives: Array, tolerance: float, options: Options
) -> Array:
    limit = jnp.asarray(options["max_fpr"])
    within = rates(fps, negatives).astype(limit.dtype) <= slackened_share(limit, tolerance)
    return jnp.where(within, positives - tps, 2 * positives)


def _precision(point: Point) -> Array:
    return divide(point.tp, point.tp + point.fp, 1.0)


def _recall(point: Point) -> Array:
    return rates(point.tp, point.positives)


def _specificity(point: Point) -> Array:
    return rates(point.negatives - point.fp, point.negatives)


def _threshold(point: Point) -> Array:
    return point.threshold


BEST_POINTS: dict[Metric, BestPoint] = {
    precision_at_recall.record: BestPoint(_false_discoveries, _precision, "min_recall"),
    recall_at_precision.record: BestPoint(by_rule, _recall, "min_precision"),
    specificity_at_sensitivity.record: BestPoint(_false_alarms, _specificity, "min_sensitivity"),
    threshold_at_fpr.record: BestPoint(_missed_within, _threshold, "max_fpr"),
    min_cost_threshold.record: BestPoint(by_rule, _threshold),
}
