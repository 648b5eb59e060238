"""Losses to train for a metric: areas under the ROC curve, rates, and metrics of ranked lists."""

from jaxmetrics.losses import cvar_partial_auc, kl_partial_auc
from jaxmetrics.losses._areas import pairwise_auc_loss, partial_auc_loss
from jaxmetrics.losses._ranking import approx_ndcg_loss
from jaxmetrics.losses._rates import average_precision_loss, recall_at_fpr_loss

__all__ = [
    "approx_ndcg_loss",
    "average_precision_loss",
    "cvar_partial_auc",
    "kl_partial_auc",
    "pairwise_auc_loss",
    "partial_auc_loss",
    "recall_at_fpr_loss",
]
