"""Next to the limit: eager calls beside a few lines of NumPy, programs beside the bare sort.

A rival that is beaten says little of what is possible. These lines do what a metric needs, without
checks, weights, masks or NaN, and the bare sort is XLA's of 64-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.tables import Row, Table
from benchmarks.timing import milliseconds, time_in_turn

MAX_FPR = 0.05
SHARES = (0.05, 0.5)
METRICS: dict[str, Callable[..., Any]] = {
    "roc_auc": jm.roc_auc,
    "average_precision": jm.average_precision,
    "partial_auc": partial(jm.partial_auc, max_fpr=MAX_FPR),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=MAX_FPR),
    "threshold_at_fpr": partial(jm.threshold_at_fpr, max_fpr=MAX_FPR),
    "standard_error": partial(jm.standard_error, jm.roc_auc),
}


def roc_auc(scores: Any, labels: Any) -> Any:
    negatives, positives = np.sort(scores[~labels]), np.sort(scores[labels])
    below, not_above = (negatives.searchsorted(positives, side) for side in ("left", "right"))
    return (below + not_above).sum() / 2 / len(positives) / len(negatives)


def average_precision(scores: Any, labels: Any) -> Any:
    negatives, positives = np.sort(scores[~labels]), np.sort(scores[labels])
    tps = len(positives) - positives.searchsorted(positives, "left")
    fps = len(negatives) - negatives.searchsorted(positives, "left")
    return (tps / (tps + fps)).mean()


def partial_auc(scores: Any, labels: Any) -> Any:
    negatives, positives = scores[~labels], scores[labels]
    n_negative, n_positive = len(negatives), len(positives)
    end = n_negative - int(np.ceil(MAX_FPR * n_negative))
    limit = np.partition(negatives, end)[end]
    negatives = np.sort(negatives[negatives >= limit])
    positives = np.sort(positives[positives >= limit])
    above, not_below = (
        (len(negatives) - negatives.searchsorted(positives, side)) / n_negative
        for side in ("right", "left")
    )
    left, width = np.maximum(MAX_FPR - above, 0), not_below - above
    cut = np.maximum(MAX_FPR - not_below, 0)
    slanted = (left**2 - cut**2) / np.where(width > 0, 2 * width, 1)
    return np.where(width > 0, slanted, left).sum() / n_positive


def recall_at_fpr(scores: Any, labels: Any) -> Any:
    negatives, positives = scores[~labels], scores[labels]
    end = len(negatives) - int(MAX_FPR * len(negatives)) - 1
    return (positives > np.partition(negatives, end)[end]).mean()


def threshold_at_fpr(scores: Any, labels: Any) -> Any:
    negatives, positives = scores[~labels], scores[labels]
    end = len(negatives) - int(MAX_FPR * len(negatives)) - 1
    return positives[positives > np.partition(negatives, end)[end]].min()


def standard_error(scores: Any, labels: Any) -> Any:
    """DeLong's, of the area under the ROC curve."""
    negatives, positives = np.sort(scores[~labels]), np.sort(scores[labels])
    variance = 0.0
    for own, other in ((negatives, positives), (positives, negatives)):
        below, not_above = (other.searchsorted(own, side) for side in ("left", "right"))
        variance += ((below + not_above) / 2 / len(other)).var(ddof=1) / len(own)
    return np.sqrt(variance)


_LINES = (roc_auc, average_precision, partial_auc, recall_at_fpr, threshold_at_fpr, standard_error)
LINES = {f.__name__: f for f in _LINES}
_LARGE = 1_000_000  # items, from which on memory is told


def tables(sizes: list[int], batches: list[tuple[int, int]], runs: int) -> Iterator[Table]:
    """A table of eager calls, one of batches of models, and one of calls within `jax.jit`."""
    yield Table(
        "Eager calls, ms, the ratio of the time of NumPy's lines to ours within a round, and the "
        "peak of memory above the input.",
        _eager(sizes, runs),
    )
    yield Table(
        "Eager calls of models x items, 5 % positive, beside NumPy's lines in a loop, ms.",
        _batches(batches, runs),
    )
    yield Table(
        "Within jax.jit, ms, and the ratio to the bare sort of as many 64-bit words.",
        _compiled(sizes, runs),
    )


def _data(shape: tuple[int, ...], share: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = rng.random(shape[-1]) < share
    return (rng.normal(size=shape) + labels).astype(np.float32), labels


def _eager(sizes: list[int], runs: int) -> Iterator[Row]:
    for n in sizes:
        for share in SHARES:
            data = _data((n,), share)
            for name, metric in METRICS.items():
                calls = {"lines": partial(LINES[name], *data), "ours": partial(metric, *data)}
                timed = time_in_turn(calls, runs)
                yield {
                    "metric": name,
                    "n": f"{n:,}",
                    "positive": f"{share:.0%}",
                    "NumPy's lines": milliseconds(timed["lines"]),
                    "ours": milliseconds(timed["ours"]),
                    "ratio": timed["ours"].ratio(timed["lines"]),
                    "apart by": f"{abs(calls['lines']() - float(calls['ours']())):.0e}",
                    "bytes an item": _bytes(name, n, share),
                }


def _batches(batches: list[tuple[int, int]], runs: int) -> Iterator[Row]:
    for shape in batches:
        scores, labels = _data(shape, SHARES[0])
        for name, metric in METRICS.items():
            calls: dict[str, Callable[[], Any]] = {
                "lines": partial(_row_by_row, LINES[name], scores, labels),
                "ours": partial(metric, scores, labels),
            }
            timed = time_in_turn(calls, runs)
            yield {
                "metric": name,
                "models x items": " x ".join(f"{n:,}" for n in shape),
                "NumPy's lines": milliseconds(timed["lines"]),
                "ours": milliseconds(timed["ours"]),
                "ratio": timed["ours"].ratio(timed["lines"]),
            }


def _bytes(name: str, n: int, share: float) -> str:
    return f"{fresh(bytes_an_item, name, n, share):.0f}" if n >= _LARGE else ""


def bytes_an_item(name: str, n: int, share: float) -> float:
    """Peak bytes above the input of an eager call after a small one."""
    METRICS[name](*_data((1000,), share))
    return bytes_at_peak(partial(METRICS[name], *_data((n,), share))) / n


def _row_by_row(lines: Callable[..., Any], scores: Any, labels: Any) -> list[Any]:
    return [lines(row, labels) for row in scores]


def _compiled(sizes: list[int], runs: int) -> Iterator[Row]:
    for n in sizes:
        with jax.enable_x64(True):
            words = jnp.asarray(np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64))
        sort = jax.jit(jnp.sort)

        def bare(words: Any = words, sort: Any = sort) -> Any:
            with jax.enable_x64(True):
                return sort(words)

        for share in SHARES:
            data = [jnp.asarray(x) for x in _data((n,), share)]
            for name, metric in METRICS.items():
                timed = time_in_turn({"sort": bare, "ours": partial(jax.jit(metric), *data)}, runs)
                yield {
                    "metric": name,
                    "n": f"{n:,}",
                    "positive": f"{share:.0%}",
                    "bare sort": milliseconds(timed["sort"]),
                    "ours": milliseconds(timed["ours"]),
                    "ours over the sort": timed["sort"].ratio(timed["ours"]),
                }
