"""Metrics of hard predictions, which count items: time, and error of the counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics

import jaxmetrics as jm
from benchmarks.timing import milliseconds, time_in_turn

AVERAGED = {"average": "macro"}
METRICS = {
    "recall, macro": (
        partial(jm.recall, **AVERAGED),
        partial(sklearn.metrics.recall_score, **AVERAGED),
    ),
    "confusion_matrix": (jm.confusion_matrix, sklearn.metrics.confusion_matrix),
}
Row = dict[str, str]


def data(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Predictions, about 7 in 10 of them correct, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n, dtype=np.int32)
    wrong = rng.integers(0, n_classes, n, dtype=np.int32)
    return np.where(rng.random(n) < 0.7, labels, wrong), labels


def many_classes(n: int, n_classes: int, runs: int) -> Iterator[Row]:
    """Each metric on the device, in jit and from NumPy, against scikit-learn."""
    predictions, labels = data(n, n_classes)
    on_device = jnp.asarray(predictions), jnp.asarray(labels)
    for name, (ours, theirs) in METRICS.items():
        metric = partial(ours, n_classes=n_classes)
        calls = {
            "ours": partial(metric, *on_device),
            "in jit": partial(jax.jit(metric), *on_device),
            "from NumPy": partial(ours, predictions, labels),
            "scikit-learn": partial(theirs, labels, predictions),
        }
        np.testing.assert_allclose(calls["ours"](), calls["scikit-learn"](), rtol=1e-6)
        times = time_in_turn(calls, runs)
        yield {
            "work": f"{name}, n = {n:,}, {n_classes:,} classes",
            "ours, ms": milliseconds(times["ours"]),
            "in jit, ms": milliseconds(times["in jit"]),
            "from NumPy, ms": milliseconds(times["from NumPy"]),
            "scikit-learn": times["ours"].ratio(times["scikit-learn"]),
            "scikit-learn over jit": times["in jit"].ratio(times["scikit-learn"]),
        }
