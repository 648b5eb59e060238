"""scikit-learn's metrics under its names, argument order, warnings and errors.

`from jaxmetrics.sklearn import roc_auc_score` replaces `from sklearn.metrics import roc_auc_score`.
Inputs and results are NumPy arrays; everything is computed in float64. Validation is
scikit-learn's own, which must be installed. Items are padded to a few sizes, so that data of
another length compile nothing new.
"""

from jaxmetrics.sklearn._areas import auc, average_precision_score, roc_auc_score
from jaxmetrics.sklearn._curves import det_curve, precision_recall_curve, roc_curve

__all__ = [
    "auc",
    "average_precision_score",
    "det_curve",
    "precision_recall_curve",
    "roc_auc_score",
    "roc_curve",
]
