"""Metrics of ranked lists, as rows and as ragged segments: time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics

import jaxmetrics as jm
from benchmarks.tables import Row
from benchmarks.timing import milliseconds, time_in_turn

KS = (1, 5, 10)
TEN = (
    *(partial(metric, k=KS) for metric in (jm.dcg, jm.ndcg, jm.precision_at_k, jm.recall_at_k)),
    *(partial(metric, k=KS) for metric in (jm.average_precision_at_k, jm.reciprocal_rank)),
    *(partial(metric, k=KS) for metric in (jm.hit_rate_at_k, jm.rank_biased_precision)),
    partial(jm.expected_reciprocal_rank, k=KS, max_grade=4),
    jm.ordered_pair_accuracy,
)


def data(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores and grades from 0 to 4, in float32."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape, np.float32), rng.integers(0, 5, shape).astype(np.float32)


def rows(lists: int, n_docs: int, runs: int) -> Iterator[Row]:
    """nDCG at 10, with ties averaged and by index, and ten metrics in one program."""
    scores, labels = data((lists, n_docs))
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    ndcg_score = partial(sklearn.metrics.ndcg_score, labels, scores, k=10)
    rivals: dict[str, dict[str, Callable[[], Any]]] = {
        "average": {"scikit-learn": ndcg_score},
        "index": {"scikit-learn": partial(ndcg_score, ignore_ties=True)},
    }
    if find_spec("rax"):
        import rax

        rivals["index"]["rax"] = partial(rax.ndcg_metric, *on_device, topn=10, reduce_fn=None)
    for ties, theirs in rivals.items():
        metric = partial(jm.ndcg, k=10, ties=ties)
        calls = {"ours": partial(metric, *on_device), "jit": partial(jax.jit(metric), *on_device)}
        times = time_in_turn(calls | theirs, runs)
        yield {
            "work": f"ndcg(k=10), ties={ties}, {lists:,} x {n_docs}",
            "ours, ms": milliseconds(times["ours"]),
            "in jit, ms": milliseconds(times["jit"]),
            **{f"over {name}": times["ours"].ratio(times[name]) for name in theirs},
        }
    one = jax.jit(partial(jm.ndcg, k=10))
    ten = jax.jit(lambda scores, labels: [metric(scores, labels) for metric in TEN])
    times = time_in_turn({"one": partial(one, *on_device), "ten": partial(ten, *on_device)}, runs)
    yield {
        "work": f"ten metrics at k = 1, 5, 10, {lists:,} x {n_docs}",
        "in jit, ms": milliseconds(times["ten"]),
        "the time of ndcg in jit": times["one"].ratio(times["ten"]),
    }


def segments(n: int, lists: int, runs: int) -> Iterator[Row]:
    """nDCG of ragged lists, whose items are in any order."""
    scores, labels = data((n,))
    ids = np.random.default_rng(1).integers(0, lists, n)
    on_device = [jnp.asarray(x) for x in (scores, labels, ids)]

    def ndcg(scores: jax.Array, labels: jax.Array, ids: jax.Array) -> jax.Array:
        return jm.ndcg(scores, labels, segments=ids, num_segments=lists)

    calls: dict[str, Callable[[], Any]] = {
        "ours": partial(ndcg, *on_device),
        "jit": partial(jax.jit(ndcg), *on_device),
    }
    if find_spec("torchmetrics"):
        import torch
        from torchmetrics.retrieval import RetrievalNormalizedDCG

        tensors = torch.from_numpy(scores), torch.from_numpy(labels).long(), torch.from_numpy(ids)
        calls["torchmetrics"] = lambda: RetrievalNormalizedDCG()(*tensors[:2], indexes=tensors[2])
    if find_spec("ranx"):
        import ranx

        # Built before the timing, as its users do; ranx identifies documents by name.
        documents = {str(q): {} for q in range(lists)}
        run: dict[str, dict[str, float]] = {str(q): {} for q in range(lists)}
        for i, (q, score, label) in enumerate(zip(ids, scores, labels, strict=True)):
            documents[str(q)][str(i)] = int(label)
            run[str(q)][str(i)] = float(score)
        qrels, found = ranx.Qrels(documents), ranx.Run(run)
        calls["ranx"] = partial(ranx.evaluate, qrels, found, "ndcg")
    times = time_in_turn(calls, runs)
    rivals = [name for name in calls if name not in ("ours", "jit")]
    yield {
        "work": f"ndcg, {n:,} items in {lists:,} segments",
        "ours, ms": milliseconds(times["ours"]),
        "in jit, ms": milliseconds(times["jit"]),
        **{f"over {name}": times["ours"].ratio(times[name]) for name in rivals},
    }
