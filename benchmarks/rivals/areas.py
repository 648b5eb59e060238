"""Metrics of one model: areas under curves, and recall at a false positive rate.

Each library has a function of scores and labels `[n]`, which it converts to its own arrays. The
function returns the library's calls by metric; a call returns a number. Scores are probabilities,
as some libraries require.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
import sklearn.metrics

from benchmarks.rivals.packages import installed

Call = Callable[[], Any]
MAX_FPR = 0.01


def sklearn_calls(
    scores: np.ndarray,
    labels: np.ndarray,
    max_fpr: float = MAX_FPR,
    weights: np.ndarray | None = None,
) -> dict[str, Call]:
    """scikit-learn on one model `[n]`."""
    areas, weighted = sklearn.metrics.roc_auc_score, {"sample_weight": weights}

    def recall() -> float:
        fpr, tpr, _ = sklearn.metrics.roc_curve(labels, scores, drop_intermediate=False, **weighted)
        return tpr[np.searchsorted(fpr, max_fpr, side="right") - 1]

    return {
        "roc_auc": lambda: areas(labels, scores, **weighted),
        "partial_auc": lambda: areas(labels, scores, max_fpr=max_fpr, **weighted),
        "recall_at_fpr": recall,
        "average_precision": lambda: sklearn.metrics.average_precision_score(
            labels, scores, **weighted
        ),
    }


def scipy_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """The AUC from the U statistic; the call also computes a p-value."""

    def roc_auc() -> float:
        positives, negatives = scores[labels], scores[~labels]
        u = scipy.stats.mannwhitneyu(positives, negatives).statistic
        return u / (len(positives) * len(negatives))

    return {"roc_auc": roc_auc}


def torchmetrics_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """torchmetrics' exact metrics."""
    if not installed("torch", "torchmetrics"):
        return {}
    import torch
    from torchmetrics.functional.classification import (
        binary_auroc,
        binary_average_precision,
        binary_sensitivity_at_specificity,
    )

    predictions, target = torch.from_numpy(scores), torch.from_numpy(labels.astype(np.int64))
    return {
        "roc_auc": lambda: binary_auroc(predictions, target).item(),
        "partial_auc": lambda: binary_auroc(predictions, target, max_fpr=MAX_FPR).item(),
        "recall_at_fpr": lambda: binary_sensitivity_at_specificity(
            predictions, target, min_specificity=1 - MAX_FPR
        )[0].item(),
        "average_precision": lambda: binary_average_precision(predictions, target).item(),
    }


def torcheval_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """torcheval's exact metrics."""
    if not installed("torch", "torcheval"):
        return {}
    import torch
    from torcheval.metrics.functional import binary_auprc, binary_auroc

    predictions, target = torch.from_numpy(scores), torch.from_numpy(labels.astype(np.int64))
    return {
        "roc_auc": lambda: binary_auroc(predictions, target).item(),
        "average_precision": lambda: binary_auprc(predictions, target).item(),
    }


def metrax_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """metrax's estimates from 200 thresholds, in `jit`."""
    if not installed("metrax"):
        return {}
    import jax
    import jax.numpy as jnp
    import metrax

    on_device = jnp.asarray(scores), jnp.asarray(labels, jnp.int32)

    def call(metric: Any) -> Call:
        compiled = jax.jit(lambda *given: metric.from_model_output(*given).compute())
        return lambda: compiled(*on_device)

    return {"roc_auc": call(metrax.AUCROC), "average_precision": call(metrax.AUCPR)}


def keras_calls(scores: np.ndarray, labels: np.ndarray) -> dict[str, Call]:
    """Keras' estimates from 200 thresholds."""
    if not installed("keras"):
        return {}
    import keras

    given = keras.ops.convert_to_tensor(labels), keras.ops.convert_to_tensor(scores)

    def call(metric: Any) -> Call:
        def run() -> float:
            metric.reset_state()
            metric.update_state(*given)
            return float(metric.result())

        return run

    return {
        "roc_auc": call(keras.metrics.AUC()),
        "recall_at_fpr": call(keras.metrics.SensitivityAtSpecificity(1 - MAX_FPR)),
        "average_precision": call(keras.metrics.AUC(curve="PR")),
    }


RIVALS = {
    "scikit-learn": sklearn_calls,
    "SciPy": scipy_calls,
    "torchmetrics": torchmetrics_calls,
    "torcheval": torcheval_calls,
    "metrax": metrax_calls,
    "Keras": keras_calls,
}
ESTIMATES = ("metrax", "Keras")  # from 200 thresholds, the default of both
LARGEST = {"metrax": 1_000_000}  # items: it holds all items for each threshold, also in jit
