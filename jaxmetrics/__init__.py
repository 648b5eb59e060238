"""Exact, batched ranking and classification metrics for JAX."""

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

__version__ = "0.1.0"
