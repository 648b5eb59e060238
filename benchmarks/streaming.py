"""Streams: items per second against binned rivals, width of bounds, and a billion rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from benchmarks.exact import Row, data
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.rivals.streams import streams
from benchmarks.timing import milliseconds, time_in_turn
from jaxmetrics._report._demonstration import digits_problem

BATCH = 100_000


def updates(runs: int) -> Iterator[Row]:
    """A batch added to a state: ours with 65,536 bins, rivals with 200 thresholds."""
    scores, labels = data((BATCH,))
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    rivals = _rivals(scores, labels)
    for weighted in (False, True):
        for name, bins in (
            ("float16", jm.streaming.float16_bins()),
            ("uniform", jm.streaming.uniform_bins(65_536)),
        ):
            state = [jm.streaming.init(bins, weighted=weighted)]
            weights = jnp.ones(BATCH) if weighted else None

            def update(state: list = state, bins: Any = bins, weights: Any = weights) -> Any:
                state[0] = jm.streaming.update(state[0], *on_device, bins=bins, weights=weights)
                return state[0].digits

            times = time_in_turn({"ours": update, **({} if weighted else rivals)}, runs)
            row = {
                "work": f"update, 65,536 {name} bins{', weights' if weighted else ''}, {BATCH:,}",
                "ours, ms": milliseconds(times["ours"]),
                "items a second": f"{BATCH / times['ours'].median:.2g}",
            }
            if not weighted:
                row |= {f"over {rival}": times["ours"].ratio(times[rival]) for rival in rivals}
            yield row


def _rivals(scores: np.ndarray, labels: np.ndarray) -> dict[str, Callable[[], Any]]:
    return {name: stream.update for name, stream in streams(scores, labels).items()}


def stream(n: int) -> Iterator[Row]:
    """Rows drawn and counted in one program, whose memory does not grow with their number."""
    bins = jm.streaming.float16_bins()
    seconds = fresh(seconds_of_stream, n)
    small, large = (fresh(bytes_of_stream, n // part) for part in (10, 1))
    state = counted(n // 10)
    low, high = jm.streaming.bounds(jm.roc_auc, state, bins=bins)
    yield {
        "work": f"a stream of {n:,} rows, made on the fly",
        "ours, ms": f"{seconds:.0f} s",
        "items a second": f"{n / seconds:.2g}",
        "memory": f"{large / 2**20:.0f} MB, of a tenth {small / 2**20:.0f} MB",
        "bounds": f"AUC {low:.6f} to {high:.6f}",
    }


def counted(n: int) -> jm.streaming.State:
    """The state of n rows, a tenth of them positive, from one `scan`."""
    bins = jm.streaming.float16_bins()

    @jax.jit
    def run(keys: jax.Array) -> jm.streaming.State:
        def step(state: jm.streaming.State, key: jax.Array) -> Any:
            chance, noise = jax.random.split(key)
            labels = jax.random.bernoulli(chance, 0.1, (BATCH,))
            scores = jax.nn.sigmoid(jax.random.normal(noise, (BATCH,)) + labels - 2)
            return jm.streaming.update(state, scores, labels, bins=bins), None

        return jax.lax.scan(step, jm.streaming.init(bins), keys)[0]

    return run(jax.random.split(jax.random.key(0), max(n // BATCH, 1)))


def seconds_of_stream(n: int) -> float:
    start = time.perf_counter()
    jax.block_until_ready(counted(n))
    return time.perf_counter() - start


def bytes_of_stream(n: int) -> float:
    return bytes_at_peak(lambda: counted(n))


def widths() -> Iterator[Row]:
    """The width of the AUC's bounds on the scores of the demonstration."""
    problem = digits_problem(0, lambda _: None)
    bins = jm.streaming.float16_bins()
    for name, scores in zip(problem.names, problem.scores, strict=True):
        state = jm.streaming.update(jm.streaming.init(bins), scores, problem.labels, bins=bins)
        low, high = jm.streaming.bounds(jm.roc_auc, state, bins=bins)
        exact = float(jm.roc_auc(scores, problem.labels))
        yield {
            "work": f"bounds of the AUC of the demonstration, {name}",
            "bounds": f"{low:.6f} to {high:.6f}, {high - low:.1e} wide; exact {exact:.6f}",
        }
