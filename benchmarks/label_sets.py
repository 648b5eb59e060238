"""Label sets by decile: thousands of labels, hundreds of predictions per instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import log2
from statistics import median
from typing import Any

import numpy as np

import jaxmetrics as jm
from benchmarks.exact import Row
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.timing import milliseconds, time_in_turn

N_LABELS = 30_000
METRICS: dict[str, Callable[..., Any]] = {
    "precision_at_k": partial(jm.extreme.precision_at_k, k=10),
    "ndcg_at_k": partial(jm.extreme.ndcg_at_k, k=10),
    "k_for_recall": partial(jm.extreme.k_for_recall, min_recall=0.8, n_labels=N_LABELS),
}


def data(n: int, listed: int = 500, relevant: int = 20) -> tuple[np.ndarray, ...]:
    """Predicted and relevant ids, where low ids are frequent as in Zipf's law, and deciles."""
    rng = np.random.default_rng(0)
    predicted = _distinct(rng, n, listed)
    start = 1 << 13  # instances per block, to save memory
    for rows in np.split(predicted, range(start, n, start)):
        noise = rng.standard_normal(rows.shape, np.float32) + np.log1p(rows) / 4
        rows[:] = np.take_along_axis(rows, np.argsort(noise, axis=-1), axis=-1)
    truth = _distinct(rng, n, 2 * relevant)
    truth[rng.random(truth.shape, np.float32) < 0.5] = -1
    counts = np.bincount(truth[truth >= 0], minlength=N_LABELS)
    return predicted, truth, np.asarray(jm.extreme.label_deciles(counts))


def _distinct(rng: np.random.Generator, n: int, columns: int) -> np.ndarray:
    """Ids `[n, columns]`, one from each band of labels; bands of rarer labels are wider."""
    steps = np.arange(columns + 1)
    growth = np.expm1(np.log(1000) * steps / columns) / 999
    edges = steps + np.floor((N_LABELS - columns) * growth).astype(np.int64)
    uniform = rng.random((n, columns), np.float32)
    return (edges[:-1] + (uniform * np.diff(edges)).astype(np.int32)).astype(np.int32)


def by_decile(instances: int, runs: int) -> Iterator[Row]:
    """Each metric by decile, against a loop over instances with Python's lists and sets.

    The loop is timed on at most 300 instances, and its time multiplied.
    """
    predicted, relevant, groups = data(instances)
    few = min(instances, 300)
    lists = predicted[:few].tolist(), relevant[:few].tolist(), groups.tolist()
    for name, metric in METRICS.items():
        call = partial(metric, predicted, relevant, groups=groups, num_groups=10)
        times = time_in_turn({"ours": call, "loop": partial(LOOPS[name], *lists)}, runs)
        ratio = instances / few * times["loop"].median / times["ours"].median
        yield {
            "work": f"{name} by decile, {instances:,} x {predicted.shape[1]}",
            "ours, ms": milliseconds(times["ours"]),
            "Python loop": f"{ratio:.0f}x",
        }


def _filtered(predicted: list, relevant: list, groups: list) -> Iterator[tuple[int, list, set]]:
    """The predictions and the relevant labels of each instance and decile that has such labels."""
    for listed, truth in zip(predicted, relevant, strict=True):
        for group in range(10):
            wanted = {label for label in truth if label >= 0 and groups[label] == group}
            if wanted:
                yield group, [label for label in listed if groups[label] == group], wanted


def _loop(score: Callable[[list, set], float], reduce: Callable[[list], float]) -> Callable:
    def loop(predicted: list, relevant: list, groups: list) -> list[float]:
        values: list[list[float]] = [[] for _ in range(10)]
        for group, listed, wanted in _filtered(predicted, relevant, groups):
            values[group].append(score(listed, wanted))
        return [reduce(column) if column else float("nan") for column in values]

    return loop


def _precision(listed: list, wanted: set) -> float:
    first = listed[:10]
    return sum(label in wanted for label in first) / len(first) if first else 0.0


def _ndcg(listed: list, wanted: set) -> float:
    gain = sum(1 / log2(i + 2) for i, label in enumerate(listed[:10]) if label in wanted)
    return gain / sum(1 / log2(i + 2) for i in range(len(wanted)))


def _k_for_recall(listed: list, wanted: set) -> float:
    hits = 0
    for k, label in enumerate(listed, 1):
        hits += label in wanted
        if hits / len(wanted) >= 0.8:
            return k
    return N_LABELS / 2


def _mean(values: list) -> float:
    return sum(values) / len(values)


LOOPS = {
    "precision_at_k": _loop(_precision, _mean),
    "ndcg_at_k": _loop(_ndcg, _mean),
    "k_for_recall": _loop(_k_for_recall, median),
}


def peak_bytes(name: str, instances: int) -> float:
    predicted, relevant, groups = data(instances)
    call = partial(METRICS[name], predicted, relevant, groups=groups, num_groups=10)
    return bytes_at_peak(call)


def peak_memory(instances: int) -> Iterator[Row]:
    """Peak memory in MB beyond the input, with compilation; on the host, on Linux."""
    for name in METRICS:
        megabytes = fresh(peak_bytes, name, instances) / 2**20
        yield {
            "work": f"{name} by decile, peak memory, {instances:,} instances",
            "ours": f"{megabytes:.0f} MB beyond the input",
        }
