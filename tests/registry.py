"""Every metric of a score table, with what holds of it, for the tests that run over all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import pytest

import jaxmetrics as jm


@jm.table_metric
def youden(table):
    """A user's own metric."""
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
    return jnp.max(tpr - fpr)


@dataclass(frozen=True)
class Entry:
    name: str
    metric: Callable[..., Any]
    threshold: bool = False  # the value is in the unit of the scores
    rank_only: bool = True  # a strictly increasing transform of the scores does not change it
    needs_both: bool = True  # NaN where a class is absent


METRICS = [
    Entry("roc_auc", jm.roc_auc),
    Entry("partial_auc", partial(jm.partial_auc, max_fpr=0.3)),
    Entry("partial_auc-many", partial(jm.partial_auc, max_fpr=[0.1, 0.5, 1.0])),
    Entry("partial_auc-band", partial(jm.partial_auc, min_fpr=0.1, max_fpr=0.4, scale="range")),
    Entry(
        "partial_auc-two-way",
        partial(jm.partial_auc, max_fpr=0.5, min_tpr=0.4, scale="mcclish"),
    ),
    Entry("recall-step", partial(jm.recall_at_fpr, max_fpr=[0.05, 0.2, 1.0])),
    Entry("recall-linear", partial(jm.recall_at_fpr, max_fpr=[0.05, 0.2], method="linear")),
    Entry(
        "recall-quantile",
        partial(jm.recall_at_fpr, max_fpr=0.2, method="quantile"),
        rank_only=False,
    ),
    Entry(
        "recall-order-statistic",
        partial(jm.recall_at_fpr, max_fpr=0.2, method="quantile", quantile_method="inverted_cdf"),
    ),
    Entry("threshold-step", partial(jm.threshold_at_fpr, max_fpr=0.2), threshold=True),
    Entry(
        "threshold-linear",
        partial(jm.threshold_at_fpr, max_fpr=0.2, method="linear"),
        threshold=True,
        rank_only=False,
    ),
    Entry(
        "threshold-quantile",
        partial(jm.threshold_at_fpr, max_fpr=0.2, method="quantile"),
        threshold=True,
        rank_only=False,
        needs_both=False,
    ),
    Entry("average_precision", jm.average_precision, needs_both=False),
    Entry(
        "precision_at_recall",
        partial(jm.precision_at_recall, min_recall=[0.3, 0.8]),
        needs_both=False,
    ),
    Entry(
        "recall_at_precision",
        partial(jm.recall_at_precision, min_precision=0.5),
        needs_both=False,
    ),
    Entry("sensitivity", partial(jm.sensitivity_at_specificity, min_specificity=0.8)),
    Entry("specificity", partial(jm.specificity_at_sensitivity, min_sensitivity=0.7)),
    Entry(
        "min_cost_threshold",
        partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=3.0),
        threshold=True,
        needs_both=False,
    ),
    Entry("youden", youden),
]
# One of each kind; what is common to all metrics is tested of these, and with -m slow of the rest.
FIRST = (
    "roc_auc",
    "partial_auc-two-way",
    "recall-quantile",
    "threshold-step",
    "average_precision",
)


def _marks(name):
    return () if name in FIRST else pytest.mark.slow


EVERY_METRIC = pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, marks=_marks(entry.name)) for entry in METRICS],
    ids=lambda entry: entry.name,
)
BY_NAME = {entry.name: entry for entry in METRICS}
CURVES = {
    "roc_curve": jm.roc_curve,
    "precision_recall_curve": jm.precision_recall_curve,
    "det_curve": jm.det_curve,
    "cost_curve": partial(jm.cost_curve, fp_cost=1.0, fn_cost=3.0),
}


def sample(rng, n=60, *, batch=(), ties=True, positive=0.4):
    """Scores, labels with both classes, and weights, in float32."""
    labels = rng.random((*batch, n)) < positive
    labels[..., 0], labels[..., 1] = True, False
    scores = rng.normal(size=(*batch, n)) + labels
    scores = (scores.round(1) if ties else scores).astype("float32")
    return scores, labels, rng.random((*batch, n)).astype("float32") + 0.1
