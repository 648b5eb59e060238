"""Trials of the libraries on NumPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.stats
import sklearn.metrics

from benchmarks.rivals.intervals import auc_of_samples
from benchmarks.rivals.packages import installed

Trials = dict[str, Callable[[], Any]]


def scikit_learn(given: Any) -> Trials:
    first, labels = given.scores[0], given.labels
    auc = sklearn.metrics.roc_auc_score

    def recall() -> float:
        fpr, tpr, _ = sklearn.metrics.roc_curve(labels, first, drop_intermediate=False)
        return tpr[np.searchsorted(fpr, 0.1, side="right") - 1]

    return {
        # One column of labels per model.
        "models in one call": lambda: auc(
            np.stack([labels] * 2, axis=1), given.scores.T, average=None
        ),
        "exact, with ties": lambda: auc(labels, first),
        "weights": lambda: auc(labels, first, sample_weight=given.weights),
        "partial AUC": lambda: auc(labels, first, max_fpr=0.1),
        "recall at an FPR": recall,
        "in jax.jit": lambda: jax.jit(auc)(labels, first),
    }


def scipy_(given: Any) -> Trials:
    labels = given.labels

    def auc(scores: np.ndarray, **options: Any) -> Any:
        samples = scores[..., labels], scores[..., ~labels]
        sizes = (np.sum(np.isfinite(sample[..., :]), axis=-1) for sample in samples)
        u = scipy.stats.mannwhitneyu(*samples, axis=-1, **options).statistic
        return u / np.prod(list(sizes), axis=0)

    def interval() -> bool:
        samples = given.scores[0][labels], given.scores[0][~labels]
        found = scipy.stats.bootstrap(samples, auc_of_samples, n_resamples=200, rng=0)
        return bool(found.confidence_interval.low < found.confidence_interval.high)

    hidden = np.where(given.mask, given.scores[0], np.nan)
    return {
        "models in one call": lambda: auc(given.scores),
        "exact, with ties": lambda: auc(given.scores[0]),
        "mask": lambda: auc(hidden, nan_policy="omit"),
        "interval of an AUC": interval,
        "in jax.jit": lambda: jax.jit(auc)(given.scores[0]),
    }


def torchmetrics(given: Any) -> Trials | None:
    if not installed("torch", "torchmetrics"):
        return None
    import torch
    from torchmetrics.classification import BinaryAUROC
    from torchmetrics.functional import classification
    from torchmetrics.wrappers import BootStrapper

    scores, labels = torch.from_numpy(given.scores), torch.from_numpy(given.labels).long()
    auc = classification.binary_auroc
    masked = torch.where(torch.from_numpy(given.mask), labels, -1)

    def gradient() -> Any:
        leaf = scores[0].clone().requires_grad_()
        auc(leaf, labels).backward()
        return torch.any(leaf.grad != 0)

    def interval() -> bool:
        both = BootStrapper(BinaryAUROC(), 20, quantile=torch.tensor([0.025, 0.975]))
        both.update(scores[0], labels)
        low, high = both.compute()["quantile"]
        return bool(low < high)

    def fixed() -> bool:
        metric = BinaryAUROC(thresholds=200)
        metric.update(scores[0], labels)
        size = metric.confmat.shape
        metric.update(scores[0], labels)
        return metric.confmat.shape == size

    return {
        # One column of labels per model.
        "models in one call": lambda: classification.multilabel_auroc(
            scores.T, torch.stack([labels] * 2, 1), num_labels=2, average=None
        ).numpy(),
        "exact, with ties": lambda: auc(scores[0], labels).item(),
        "mask": lambda: auc(scores[0], masked, ignore_index=-1).item(),
        "partial AUC": lambda: auc(scores[0], labels, max_fpr=0.1).item(),
        "recall at an FPR": lambda: classification.binary_sensitivity_at_specificity(
            scores[0], labels, min_specificity=0.9
        )[0].item(),
        "interval of an AUC": interval,
        "in jax.jit": lambda: jax.jit(lambda x: auc(torch.tensor(x), labels))(given.scores[0]),
        "loss with a gradient": gradient,
        "state of fixed size": fixed,
    }


def torcheval(given: Any) -> Trials | None:
    if not installed("torch", "torcheval"):
        return None
    import torch
    from torcheval.metrics import BinaryBinnedPrecisionRecallCurve
    from torcheval.metrics.functional import binary_auroc as auc

    scores, labels = torch.from_numpy(given.scores), torch.from_numpy(given.labels).long()
    weights = torch.from_numpy(given.weights)

    def gradient() -> Any:
        leaf = scores[0].clone().requires_grad_()
        auc(leaf, labels).backward()
        return torch.any(leaf.grad != 0)

    def fixed() -> bool:
        metric = BinaryBinnedPrecisionRecallCurve(threshold=200)
        metric.update(scores[0], labels)
        size = metric.num_tp.shape
        metric.update(scores[0], labels)
        return metric.num_tp.shape == size

    return {
        "models in one call": lambda: auc(scores, torch.stack([labels] * 2), num_tasks=2).numpy(),
        "exact, with ties": lambda: auc(scores[0], labels).item(),
        "weights": lambda: auc(scores[0], labels, weight=weights).item(),
        "in jax.jit": lambda: jax.jit(lambda x: auc(torch.tensor(x), labels))(given.scores[0]),
        "loss with a gradient": gradient,
        "state of fixed size": fixed,
    }


def confidenceinterval(given: Any) -> Trials | None:
    if not installed("confidenceinterval"):
        return None
    from confidenceinterval import roc_auc_score

    first, labels = given.scores[0], given.labels.astype(int)

    def call(scores: Any = first) -> Any:
        return roc_auc_score(labels, scores)

    return {
        "models in one call": lambda: call(given.scores)[0],
        "in jax.jit": lambda: jax.jit(call)(first)[0],
        "exact, with ties": lambda: call()[0],
        "interval of an AUC": lambda: call()[1][0] < call()[1][1],
    }


def mlstatkit(given: Any) -> Trials | None:
    if not installed("MLstatkit"):
        return None
    from MLstatkit import Delong_test

    def call(scores: Any = given.scores) -> Any:
        return Delong_test(given.labels.astype(int), *scores)

    return {
        "models in one call": lambda: call()[4:6],
        "exact, with ties": lambda: call()[4],
        "interval of an AUC": lambda: call()[2][0] < call()[2][1],
        "two models compared": lambda: np.isfinite(call()[1]),
        "in jax.jit": lambda: jax.jit(call)(given.scores)[4],
    }


LIBRARIES: dict[str, Callable[[Any], Trials | None]] = {
    "scikit-learn": scikit_learn,
    "SciPy": scipy_,
    "torchmetrics": torchmetrics,
    "torcheval": torcheval,
    "confidenceinterval": confidenceinterval,
    "MLstatkit": mlstatkit,
}


def looked_at() -> dict[str, Callable[..., Any]]:
    """The functions whose signatures are printed."""
    found: dict[str, Callable[..., Any]] = {
        "sklearn.metrics.roc_auc_score": sklearn.metrics.roc_auc_score,
        "sklearn.metrics.ndcg_score": sklearn.metrics.ndcg_score,
        "scipy.stats.mannwhitneyu": scipy.stats.mannwhitneyu,
        "scipy.stats.bootstrap": scipy.stats.bootstrap,
    }
    if installed("torch", "torchmetrics"):
        from torchmetrics.functional import classification
        from torchmetrics.retrieval import RetrievalNormalizedDCG

        for name in ("binary_auroc", "binary_sensitivity_at_specificity"):
            found[f"torchmetrics {name}"] = getattr(classification, name)
        found["torchmetrics RetrievalNormalizedDCG"] = RetrievalNormalizedDCG
        found["torchmetrics RetrievalNormalizedDCG.update"] = RetrievalNormalizedDCG.update
    if installed("torch", "torcheval"):
        from torcheval.metrics import functional

        found["torcheval binary_auroc"] = functional.binary_auroc
        found["torcheval binary_binned_auroc"] = functional.binary_binned_auroc
    if installed("ranx"):
        import ranx

        found["ranx.evaluate"] = ranx.evaluate
    if installed("pytrec_eval"):
        import pytrec_eval

        found["pytrec_eval.RelevanceEvaluator"] = pytrec_eval.RelevanceEvaluator.__init__
    if installed("confidenceinterval"):
        import confidenceinterval

        found["confidenceinterval.roc_auc_score"] = confidenceinterval.roc_auc_score
    if installed("MLstatkit"):
        import MLstatkit

        found["MLstatkit.Delong_test"] = MLstatkit.Delong_test
        found["MLstatkit.Bootstrapping"] = MLstatkit.Bootstrapping
    return found
