"""Trials with AUCs of the libraries on JAX: ours, metrax and Keras; rax has no curves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from benchmarks.rivals.packages import installed

Trials = dict[str, Callable[[], Any]]


def ours(given: Any) -> Trials:
    first, labels = given.scores[0], given.labels
    bins = jm.streaming.float16_bins()

    def state() -> jm.streaming.State:
        return jm.streaming.update(jm.streaming.init(bins), first, labels, bins=bins)

    def grows() -> bool:
        before = [leaf.shape for leaf in jax.tree.leaves(state())]
        after = jm.streaming.update(state(), first, labels, bins=bins)
        return before == [leaf.shape for leaf in jax.tree.leaves(after)]

    def bounds() -> bool:
        low, high = jm.streaming.bounds(jm.roc_auc, state(), bins=bins)
        return bool(low <= jm.roc_auc(first, labels) <= high)

    def interval() -> bool:
        found = jm.confidence_interval(jm.roc_auc, first, labels)
        return bool(found.low < found.estimate < found.high)

    def loss(scores: jax.Array) -> jax.Array:
        return jm.losses.partial_auc_loss(scores, labels, max_fpr=0.1)

    return {
        "models in one call": lambda: jm.roc_auc(given.scores, labels),
        "exact, with ties": lambda: jm.roc_auc(first, labels),
        "weights": lambda: jm.roc_auc(first, labels, weights=given.weights),
        "mask": lambda: jm.roc_auc(first, labels, where=given.mask),
        "partial AUC": lambda: jm.partial_auc(first, labels, max_fpr=0.1, scale="mcclish"),
        "recall at an FPR": lambda: jm.recall_at_fpr(first, labels, max_fpr=0.1),
        "interval of an AUC": interval,
        "two models compared": lambda: np.isfinite(
            jm.compare(jm.roc_auc, given.scores, labels).p_value[0, 1]
        ),
        "in jax.jit": lambda: jax.jit(jm.roc_auc)(first, labels),
        "loss with a gradient": lambda: jnp.any(jax.grad(loss)(jnp.asarray(first)) != 0),
        "state of fixed size": grows,
        "its certain bounds": bounds,
    }


def metrax(given: Any) -> Trials | None:
    if not installed("metrax"):
        return None
    from metrax import AUCROC

    first, labels = jnp.asarray(given.scores[0]), jnp.asarray(given.labels, jnp.int32)

    def auc(scores: jax.Array, *more: jax.Array) -> jax.Array:
        return AUCROC.from_model_output(scores, labels, *more).compute()

    def grows() -> bool:
        state = AUCROC.from_model_output(first, labels)
        sizes = [jnp.shape(leaf) for leaf in jax.tree.leaves(state)]
        return sizes == [jnp.shape(leaf) for leaf in jax.tree.leaves(state.merge(state))]

    return {
        "models in one call": lambda: auc(jnp.asarray(given.scores)),
        "exact, with ties": lambda: auc(first),
        "weights": lambda: auc(first, jnp.asarray(given.weights)),
        "in jax.jit": lambda: jax.jit(auc)(first),
        "loss with a gradient": lambda: jnp.any(jax.grad(auc)(first) != 0),
        "state of fixed size": grows,
    }


def keras(given: Any) -> Trials | None:
    if not installed("keras"):
        return None
    import keras

    first, labels = given.scores[0], given.labels

    def auc(*more: Any) -> float:
        metric = keras.metrics.AUC()
        metric.update_state(labels, first, *more)
        return float(metric.result())

    def models() -> Any:
        metric = keras.metrics.AUC(multi_label=True, num_labels=2)
        metric.update_state(np.stack([labels] * 2, axis=1), given.scores.T)
        return np.asarray(metric.result())

    def recall() -> float:
        metric = keras.metrics.SensitivityAtSpecificity(0.9)
        metric.update_state(labels, first)
        return float(metric.result())

    def in_jit() -> Any:
        metric = keras.metrics.AUC()

        def stateless(scores: jax.Array) -> jax.Array:
            variables = [jnp.zeros(variable.shape) for variable in metric.variables]
            state = metric.stateless_update_state(variables, labels, scores)
            return metric.stateless_result(state)

        return jax.jit(stateless)(first)

    def grows() -> bool:
        metric = keras.metrics.AUC()
        metric.update_state(labels, first)
        sizes = [variable.shape for variable in metric.variables]
        metric.update_state(labels, first)
        return sizes == [variable.shape for variable in metric.variables]

    return {
        "models in one call": models,
        "exact, with ties": auc,
        "weights": lambda: auc(given.weights),
        "recall at an FPR": recall,
        "in jax.jit": in_jit,
        "state of fixed size": grows,
    }


LIBRARIES: dict[str, Callable[[Any], Trials | None]] = {
    "ours": ours,
    "metrax": metrax,
    "Keras": keras,
}


def looked_at() -> dict[str, Callable[..., Any]]:
    """The functions whose signatures are printed."""
    found: dict[str, Callable[..., Any]] = {
        "jm.roc_auc": jm.roc_auc,
        "jm.partial_auc": jm.partial_auc,
        "jm.recall_at_fpr": jm.recall_at_fpr,
        "jm.ndcg": jm.ndcg,
    }
    if installed("metrax"):
        import metrax

        found["metrax.AUCROC.from_model_output"] = metrax.AUCROC.from_model_output
        found["metrax.NDCGAtK.from_model_output"] = metrax.NDCGAtK.from_model_output
    if installed("keras"):
        from keras import metrics

        found["keras.metrics.AUC"] = metrics.AUC
        found["keras.metrics.AUC.update_state"] = metrics.AUC.update_state
        found["keras.metrics.SensitivityAtSpecificity"] = metrics.SensitivityAtSpecificity
    if installed("rax"):
        import rax

        found["rax.ndcg_metric"] = rax.ndcg_metric
    return found
