"""Exact, batched ranking and classification metrics for JAX."""

from jaxmetrics._area import average_precision, partial_auc, roc_auc, roc_auc_sampled
from jaxmetrics._averaging import multilabel, one_vs_one, one_vs_rest
from jaxmetrics._curves import (
    CostCurve,
    DetCurve,
    PrecisionRecallCurve,
    RocCurve,
    cost_curve,
    det_curve,
    drop_intermediate,
    precision_recall_curve,
    roc_curve,
)
from jaxmetrics._table import ScoreTable, score_table, table_metric
from jaxmetrics._threshold import (
    AtThreshold,
    min_cost_threshold,
    precision_at_recall,
    recall_at_fpr,
    recall_at_precision,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
    threshold_at_fpr,
)

__version__ = "0.1.0"

__all__ = [
    "AtThreshold",
    "CostCurve",
    "DetCurve",
    "PrecisionRecallCurve",
    "RocCurve",
    "ScoreTable",
    "average_precision",
    "cost_curve",
    "det_curve",
    "drop_intermediate",
    "min_cost_threshold",
    "multilabel",
    "one_vs_one",
    "one_vs_rest",
    "partial_auc",
    "precision_at_recall",
    "precision_recall_curve",
    "recall_at_fpr",
    "recall_at_precision",
    "roc_auc",
    "roc_auc_sampled",
    "roc_curve",
    "score_table",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
    "table_metric",
    "threshold_at_fpr",
]
