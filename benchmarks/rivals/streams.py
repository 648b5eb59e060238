"""Binned states with 200 thresholds, to which batches are added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.packages import installed


class Stream(NamedTuple):
    """A state: a call that adds the batch to it, and one that returns its AUC."""

    update: Callable[[], Any]
    roc_auc: Callable[[], float]


def torchmetrics_stream(scores: np.ndarray, labels: np.ndarray) -> Stream | None:
    if not installed("torch", "torchmetrics"):
        return None
    import torch
    from torchmetrics.classification import BinaryAUROC

    metric = BinaryAUROC(thresholds=200)
    given = torch.from_numpy(scores), torch.from_numpy(labels).long()
    return Stream(lambda: metric.update(*given), lambda: metric.compute().item())


def torcheval_stream(scores: np.ndarray, labels: np.ndarray) -> Stream | None:
    """Its binned AUROC keeps all items: this uses its binned curve, and computes the area."""
    if not installed("torch", "torcheval"):
        return None
    import torch
    from torcheval.metrics import BinaryBinnedPrecisionRecallCurve

    metric = BinaryBinnedPrecisionRecallCurve(threshold=200)
    given = torch.from_numpy(scores), torch.from_numpy(labels).long()

    def roc_auc() -> float:
        positives, negatives = (x.double() / x[0] for x in (metric.num_tp, metric.num_fp))
        ends = torch.zeros(1)
        return -torch.trapezoid(torch.cat([positives, ends]), torch.cat([negatives, ends])).item()

    return Stream(lambda: metric.update(*given), roc_auc)


def metrax_stream(scores: np.ndarray, labels: np.ndarray) -> Stream | None:
    if not installed("metrax"):
        return None
    import jax
    import jax.numpy as jnp
    import metrax

    on_device = jnp.asarray(scores), jnp.asarray(labels, jnp.int32)
    of_batch = jax.jit(metrax.AUCROC.from_model_output)
    merge = jax.jit(lambda a, b: a.merge(b))
    total = [of_batch(*on_device)]

    def update() -> Any:
        total[0] = merge(total[0], of_batch(*on_device))
        return total[0]

    return Stream(update, lambda: float(total[0].compute()))


def keras_stream(scores: np.ndarray, labels: np.ndarray) -> Stream | None:
    if not installed("keras"):
        return None
    import keras

    metric = keras.metrics.AUC()
    given = keras.ops.convert_to_tensor(labels), keras.ops.convert_to_tensor(scores)

    def update() -> Any:
        metric.update_state(*given)
        return [variable.value for variable in metric.variables]

    return Stream(update, lambda: float(metric.result()))


RIVALS = {
    "torchmetrics": torchmetrics_stream,
    "torcheval": torcheval_stream,
    "metrax": metrax_stream,
    "Keras": keras_stream,
}


def streams(scores: np.ndarray, labels: np.ndarray) -> dict[str, Stream]:
    """The states of the rivals that are installed."""
    found = {name: make(scores, labels) for name, make in RIVALS.items()}
    return {name: stream for name, stream in found.items() if stream is not None}
