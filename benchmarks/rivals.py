"""What a user would call instead, as each library's own documentation says.

A rival that is not installed, or that cannot do a thing, is left out of the table's row.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import sklearn.metrics

Call = Callable[[], Any]
MAX_FPR = 0.01


def sklearn_calls(
    scores: np.ndarray, labels: np.ndarray, max_fpr: float = MAX_FPR
) -> dict[str, Call]:
    """scikit-learn on one model `[n]`."""

    def recall() -> float:
        fpr, tpr, _ = sklearn.metrics.roc_curve(labels, scores, drop_intermediate=False)
        return tpr[np.searchsorted(fpr, max_fpr, side="right") - 1]

    return {
        "roc_auc": lambda: sklearn.metrics.roc_auc_score(labels, scores),
        "partial_auc": lambda: sklearn.metrics.roc_auc_score(labels, scores, max_fpr=max_fpr),
        "recall_at_fpr": recall,
    }


def torchmetrics_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """torchmetrics' exact forms. It expects probabilities, which these scores are."""
    if not (find_spec("torch") and find_spec("torchmetrics")):
        return {}
    import torch
    from torchmetrics.functional.classification import (
        binary_auroc,
        binary_sensitivity_at_specificity,
    )

    predictions, target = torch.from_numpy(scores), torch.from_numpy(labels.astype(np.int64))
    return {
        "roc_auc": lambda: binary_auroc(predictions, target).item(),
        "partial_auc": lambda: binary_auroc(predictions, target, max_fpr=MAX_FPR).item(),
        "recall_at_fpr": lambda: binary_sensitivity_at_specificity(
            predictions, target, min_specificity=1 - MAX_FPR
        )[0].item(),
    }


def metrax_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """metrax's AUC, an estimate from 200 bins. It has no partial AUC and no recall at an FPR."""
    if not find_spec("metrax"):
        return {}
    import jax.numpy as jnp
    import metrax

    predictions, target = jnp.asarray(scores), jnp.asarray(labels.astype(np.int32))
    return {
        "roc_auc": lambda: metrax.AUCROC.from_model_output(
            predictions=predictions, labels=target
        ).compute()
    }


RIVALS = {
    "scikit-learn": sklearn_calls,
    "torchmetrics": torchmetrics_calls,
    "metrax": metrax_calls,
}
