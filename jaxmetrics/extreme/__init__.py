"""Metrics of ranked label predictions against sets of relevant labels, for thousands of labels.

Predictions are label ids `[..., n, K]` in rank order, relevant labels are ids `[..., n, L]`. No
array has an entry for each pair of instance and label. A metric is over all labels, or by group of
labels, such as the deciles of label frequency.
"""

from jaxmetrics.extreme._cutoffs import ndcg_at_k, normalized_recall_at_k, precision_at_k
from jaxmetrics.extreme._labels import label_deciles, propensities
from jaxmetrics.extreme._propensity import (
    RatioOfSums,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
)
from jaxmetrics.extreme._reach import k_for_recall
from jaxmetrics.extreme._totals import positive_coverage_at_k, prediction_proportions_at_k

__all__ = [
    "RatioOfSums",
    "k_for_recall",
    "label_deciles",
    "ndcg_at_k",
    "normalized_recall_at_k",
    "positive_coverage_at_k",
    "precision_at_k",
    "prediction_proportions_at_k",
    "propensities",
    "propensity_scored_ndcg_at_k",
    "propensity_scored_precision_at_k",
]
