"""The metrics of classifiers in the report, and their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.words import percent_text
from jaxmetrics._report._settings import Settings
from jaxmetrics._roc.curves import cheapest
from jaxmetrics._roc.operating import costs_in_sample

FPR_LIMITS = (0.01, 0.05)


class Metric(NamedTuple):
    """A metric with one value a model.

    Attributes:
      name: its name in JSON and CSV.
      heading: the heading of its column.
      function: the metric of scores and labels, or of a table.
      max_fpr: its highest false positive rate, if it has one.
      compared: whether it compares models.
      scale: of a partial area, as `jaxmetrics.partial_auc` calls it.
    """

    name: str
    heading: str
    function: Callable[..., Any]
    max_fpr: float | None = None
    compared: bool = False
    scale: str | None = None


def classification_metrics(max_fpr: float) -> tuple[Metric, ...]:
    """The metrics in the order of columns, with recall also at `FPR_LIMITS`."""
    at = percent_text(max_fpr)
    scale = "mcclish"
    area = partial(jm.partial_auc, max_fpr=max_fpr, scale=scale)
    return (
        Metric("roc_auc", "AUC", jm.roc_auc, compared=True),
        Metric("partial_auc", f"Partial\nAUC to\n{at} FPR", area, max_fpr, True, scale),
        *(
            Metric(
                "recall_at_fpr",
                f"Recall\nat\n{percent_text(limit)} FPR",
                partial(jm.recall_at_fpr, max_fpr=limit),
                limit,
                limit == max_fpr,
            )
            for limit in sorted({*FPR_LIMITS, max_fpr})
        ),
        Metric("average_precision", "Average\nprecision", jm.average_precision),
    )


ABOUT = "; partial AUC on McClish's scale, where chance is 0.5"


def costs_in_facts(settings: Settings) -> dict[str, float | None]:
    """The costs of errors, for JSON; None if none are given."""
    return dict(zip(("fp_cost", "fn_cost"), settings.costs or (None, None), strict=True))


def costs_of(table: jm.ScoreTable, settings: Settings) -> dict[str, Any]:
    """The costs of errors in the data, scaled so that the total is that at the prevalence, if set.

    All models of a table have the same items, so its share of positives is that of each.
    """
    found: dict[str, Any] = costs_in_facts(settings)
    if settings.prevalence is not None:
        positives, negatives = (float(np.asarray(x, float).sum()) for x in table[1:])
        given = positives, negatives, *found.values(), None, settings.prevalence
        in_sample = costs_in_sample(*given)
        costs = (x * (1 / positives + 1 / negatives) for x in in_sample)
        found = dict(zip(found, costs, strict=True))
    return found


def least_cost(
    table: jm.ScoreTable, names: Sequence[str], settings: Settings
) -> dict[str, dict[str, float]]:
    """The threshold of least cost of each model, infinite if it flags nothing, and its cost."""
    curve = jm.cost_curve(table, **costs_of(table, settings))
    costs, thresholds = np.asarray(curve.cost), np.asarray(curve.thresholds)
    found = {}
    for name, cost, threshold in zip(names, costs, thresholds, strict=True):
        best = int(cheapest(cost))
        found[name] = {"threshold": float(threshold[best]), "cost": float(cost[best])}
    return found
