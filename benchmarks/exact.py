"""Exact metrics from one sort: time, first call, memory and error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics

import jaxmetrics as jm
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.rivals import MAX_FPR, RIVALS, sklearn_calls
from benchmarks.tables import Row
from benchmarks.timing import milliseconds, time_in_turn

METRICS = {
    "roc_auc": jm.roc_auc,
    "partial_auc": partial(jm.partial_auc, max_fpr=MAX_FPR, scale="mcclish"),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=MAX_FPR),
}


def data(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities in float32, and labels, a tenth of them positive."""
    rng = np.random.default_rng(seed)
    labels = rng.random(shape[-1]) < 0.1
    logits = rng.standard_normal(shape, np.float32) + labels - 2
    return 1 / (1 + np.exp(-logits)), labels


def one_model(n: int, runs: int) -> Iterator[Row]:
    """Each metric of one model on the device, against a sort alone and the rivals.

    An eager call sorts by NumPy on the CPU; in the caller's `jit` XLA sorts.
    """
    scores, labels = data((n,))
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    floor_name, floor = _floor(scores)
    theirs = {name: calls(scores, labels) for name, calls in RIVALS.items()}
    for name, metric in METRICS.items():
        compiled = jax.jit(metric)
        calls = {
            "ours": partial(metric, *on_device),
            "in jit": partial(compiled, *on_device),
            "floor": floor,
        }
        calls |= {rival: known[name] for rival, known in theirs.items() if name in known}
        times = time_in_turn(calls, runs)
        row = {"work": f"{name}, n = {n:,}", "ours, ms": milliseconds(times["ours"])}
        row["in jit, ms"] = milliseconds(times["in jit"])
        row[f"in jit over {floor_name}"] = times["floor"].ratio(times["in jit"])
        for rival in theirs:
            row[rival] = times["ours"].ratio(times[rival]) if rival in times else ""
        yield row


def _floor(scores: np.ndarray):
    """The sort that every exact metric needs, which bounds its time from below."""
    if jax.default_backend() == "cpu":
        with jax.enable_x64(True):
            bits = jnp.asarray(scores.view(np.uint32)).astype(jnp.uint64) << 32
            words = jax.block_until_ready(bits | jnp.arange(scores.size, dtype=jnp.uint64))
            sort = jax.jit(jnp.sort).lower(words).compile()
        return "uint64 sort", lambda: sort(words)
    array = jnp.asarray(scores)
    return "jnp.sort", lambda: jnp.sort(array)


def many_models(models: int, n: int, runs: int) -> Iterator[Row]:
    """A batch of models in one call, against a loop over them."""
    scores, labels = data((models, n))
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    loops = [sklearn_calls(row, labels) for row in scores]
    for name, metric in METRICS.items():
        compiled = jax.jit(metric)
        calls = {
            "ours": partial(metric, *on_device),
            "in jit": partial(compiled, *on_device),
            "loop": lambda name=name: [calls[name]() for calls in loops],
        }
        times = time_in_turn(calls, runs)
        yield {
            "work": f"{name}, {models} models x {n:,}",
            "ours, ms": milliseconds(times["ours"]),
            "in jit, ms": milliseconds(times["in jit"]),
            "scikit-learn": times["ours"].ratio(times["loop"]),
        }


def small_and_eager(runs: int) -> Iterator[Row]:
    """A thousand NumPy items, where the overhead of a call is most of the time."""
    scores, labels = data((1000,))
    calls = {
        "ours": lambda: jm.roc_auc(scores, labels),
        "scikit-learn": sklearn_calls(scores, labels)["roc_auc"],
    }
    times = time_in_turn(calls, 20 * runs)
    yield {
        "work": "roc_auc, eager from NumPy, n = 1,000",
        "ours, ms": milliseconds(times["ours"]),
        "scikit-learn": times["ours"].ratio(times["scikit-learn"]),
    }


def first_call(name: str, n: int) -> float:
    """Seconds of a call, with compilation."""
    scores, labels = map(jnp.asarray, data((n,)))
    jax.block_until_ready(jnp.sort(scores[:10]))
    start = time.perf_counter()
    jax.block_until_ready(METRICS[name](scores, labels))
    return time.perf_counter() - start


def bytes_an_item(name: str, n: int) -> float:
    """Peak bytes of a call per item, without what is compiled or loaded once."""
    scores, labels = (jax.block_until_ready(jnp.asarray(x)) for x in data((n,)))
    jax.block_until_ready(METRICS[name](scores[:1000], labels[:1000]))
    return bytes_at_peak(lambda: METRICS[name](scores, labels)) / n


def first_calls(n: int, runs: int) -> Iterator[Row]:
    """Seconds of the first call in a process, with compilation."""
    for name in METRICS:
        seconds = sorted(fresh(first_call, name, n) for _ in range(runs))
        yield {
            "work": f"{name}, first call, n = {n:,}",
            "ours": f"{seconds[runs // 2]:.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f})",
        }


def peak_memory(n: int) -> Iterator[Row]:
    """Peak bytes per item beyond the input; on the host, on Linux."""
    for name in METRICS:
        yield {
            "work": f"{name}, peak memory, n = {n:,}",
            "ours": f"{fresh(bytes_an_item, name, n):.0f} bytes an item",
        }


def error(n: int) -> Iterator[Row]:
    """The error in float32 mode, with ties and weights; scikit-learn in float64 is the truth."""
    rng = np.random.default_rng(1)
    scores, labels = data((n,))
    scores = np.round(scores, 4)
    weights = rng.random(n, np.float32) + np.float32(0.1)
    given = {"sample_weight": weights.astype(np.float64)}
    reference = {
        "roc_auc": sklearn.metrics.roc_auc_score(labels, scores, **given),
        "partial_auc": sklearn.metrics.roc_auc_score(labels, scores, max_fpr=MAX_FPR, **given),
        "average_precision": sklearn.metrics.average_precision_score(labels, scores, **given),
    }
    metrics = {**METRICS, "average_precision": jm.average_precision}
    for name, truth in reference.items():
        value = float(metrics[name](scores, labels, weights=weights))
        yield {
            "work": f"{name}, ties and weights, n = {n:,}",
            "ours": f"error {abs(value - truth):.1e}",
        }
