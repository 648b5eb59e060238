"""Training for a metric: go on from cross-entropy, and keep the result only if it is better."""

from jaxmetrics.training._finetune import Finetuned, finetune
from jaxmetrics.training._fit import Fitted, cross_entropy, fit
from jaxmetrics.training._stopping import Stopping, early_stopping

__all__ = [
    "Finetuned",
    "Fitted",
    "Stopping",
    "cross_entropy",
    "early_stopping",
    "finetune",
    "fit",
]
