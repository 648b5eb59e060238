"""Training for a metric: go on from cross-entropy, and keep the result only if it is better."""

from jaxmetrics.training._cross_entropy import cross_entropy
from jaxmetrics.training._finetune import Finetuned, finetune
from jaxmetrics.training._fit import Fitted, fit
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
