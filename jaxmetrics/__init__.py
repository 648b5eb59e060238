"""Exact, batched ranking and classification metrics for JAX."""

from jaxmetrics import extreme as extreme
from jaxmetrics import losses as losses
from jaxmetrics import streaming as streaming
from jaxmetrics._predictions.confusion import (
    accuracy,
    balanced_accuracy,
    confusion_matrix,
    matthews_corrcoef,
)
from jaxmetrics._predictions.rates import f_beta, precision, recall, specificity
from jaxmetrics._ranking.gain import dcg, expected_reciprocal_rank, ndcg, rank_biased_precision
from jaxmetrics._ranking.pairs import ordered_pair_accuracy
from jaxmetrics._ranking.retrieval import (
    average_precision_at_k,
    hit_rate_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from jaxmetrics._ranking.segments import segment_partial_auc, segment_roc_auc
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc, roc_auc_sampled
from jaxmetrics._roc.averaging import multilabel, one_vs_one, one_vs_rest
from jaxmetrics._roc.curves import (
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
from jaxmetrics._roc.metric import table_metric
from jaxmetrics._roc.table import ScoreTable, score_table
from jaxmetrics._roc.thresholds import recall_at_fpr, threshold_at_fpr
from jaxmetrics._roc.tradeoffs import (
    AtThreshold,
    min_cost_threshold,
    precision_at_recall,
    recall_at_precision,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
)
from jaxmetrics.inference import (
    BootstrapResult,
    Comparison,
    Interval,
    OperatingPoint,
    PermutationTest,
    RocBand,
    SampleSize,
    bootstrap,
    bootstrap_mean,
    compare,
    confidence_interval,
    covariance,
    influence,
    operating_point,
    permutation_test,
    power,
    roc_band,
    sample_size,
    standard_error,
)

__version__ = "0.1.0"

__all__ = [
    "AtThreshold",
    "BootstrapResult",
    "Comparison",
    "CostCurve",
    "DetCurve",
    "Interval",
    "OperatingPoint",
    "PermutationTest",
    "PrecisionRecallCurve",
    "RocBand",
    "RocCurve",
    "SampleSize",
    "ScoreTable",
    "accuracy",
    "average_precision",
    "average_precision_at_k",
    "balanced_accuracy",
    "bootstrap",
    "bootstrap_mean",
    "compare",
    "confidence_interval",
    "confusion_matrix",
    "cost_curve",
    "covariance",
    "dcg",
    "det_curve",
    "drop_intermediate",
    "expected_reciprocal_rank",
    "f_beta",
    "hit_rate_at_k",
    "influence",
    "matthews_corrcoef",
    "min_cost_threshold",
    "multilabel",
    "ndcg",
    "one_vs_one",
    "one_vs_rest",
    "operating_point",
    "ordered_pair_accuracy",
    "partial_auc",
    "permutation_test",
    "power",
    "precision",
    "precision_at_k",
    "precision_at_recall",
    "precision_recall_curve",
    "rank_biased_precision",
    "recall",
    "recall_at_fpr",
    "recall_at_k",
    "recall_at_precision",
    "reciprocal_rank",
    "roc_auc",
    "roc_auc_sampled",
    "roc_band",
    "roc_curve",
    "sample_size",
    "score_table",
    "segment_partial_auc",
    "segment_roc_auc",
    "sensitivity_at_specificity",
    "specificity",
    "specificity_at_sensitivity",
    "standard_error",
    "table_metric",
    "threshold_at_fpr",
]
