"""scikit-learn's metrics under its names, argument order, warnings and errors.

`from jaxmetrics.sklearn import roc_auc_score` replaces `from sklearn.metrics import roc_auc_score`.
Inputs and results are NumPy arrays; all computation is in float64. scikit-learn must be installed,
because its own functions validate the inputs. Weights that are all 0 are a ValueError. Items are
padded to a few sizes, so data of another length rarely need a new compilation.
"""

from jaxmetrics.sklearn._areas import auc, average_precision_score, roc_auc_score
from jaxmetrics.sklearn._averages import f1_score, fbeta_score, precision_score, recall_score
from jaxmetrics.sklearn._classification import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    matthews_corrcoef,
)
from jaxmetrics.sklearn._curves import det_curve, precision_recall_curve, roc_curve
from jaxmetrics.sklearn._ranking import (
    coverage_error,
    dcg_score,
    label_ranking_average_precision_score,
    label_ranking_loss,
    ndcg_score,
    top_k_accuracy_score,
)

__all__ = [
    "accuracy_score",
    "auc",
    "average_precision_score",
    "balanced_accuracy_score",
    "confusion_matrix",
    "coverage_error",
    "dcg_score",
    "det_curve",
    "f1_score",
    "fbeta_score",
    "label_ranking_average_precision_score",
    "label_ranking_loss",
    "matthews_corrcoef",
    "ndcg_score",
    "precision_recall_curve",
    "precision_score",
    "recall_score",
    "roc_auc_score",
    "roc_curve",
    "top_k_accuracy_score",
]
