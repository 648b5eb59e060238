"""Means over ranked lists: nDCG at 10 of grades, and the reciprocal rank.

Each library has a function of scores and grades that returns its calls by metric: `ROWS` takes
`[lists, n_docs]`, `SEGMENTS` takes `[n]` with the list id of each item. The data of "mrr" have one
relevant document per list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn.metrics

from benchmarks.rivals.areas import Call
from benchmarks.rivals.packages import installed

K = 10
Calls = dict[str, Call]


def sklearn_rows(scores: np.ndarray, grades: np.ndarray, ignore_ties: bool = False) -> Calls:
    """With one relevant label, its label ranking average precision is the reciprocal rank."""
    ndcg = partial(sklearn.metrics.ndcg_score, grades, scores, k=K, ignore_ties=ignore_ties)
    if ignore_ties:
        return {"ndcg": ndcg}
    precision = sklearn.metrics.label_ranking_average_precision_score
    return {"ndcg": ndcg, "mrr": lambda: precision(grades, scores)}


def rax_rows(scores: np.ndarray, grades: np.ndarray) -> Calls:
    """In `jit`, with a linear gain; its default is exponential."""
    return _rax(scores, grades)


def rax_segments(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> Calls:
    return _rax(scores, grades, segments=ids)


def _rax(*arrays: np.ndarray, **keywords: np.ndarray) -> Calls:
    if not installed("rax"):
        return {}
    import jax
    import jax.numpy as jnp
    import rax

    given = tuple(jnp.asarray(array) for array in arrays)
    more = {name: jnp.asarray(array) for name, array in keywords.items()}
    ndcg = jax.jit(partial(rax.ndcg_metric, topn=K, gain_fn=lambda grade: grade))
    mrr = jax.jit(rax.mrr_metric)
    return {"ndcg": lambda: ndcg(*given, **more), "mrr": lambda: mrr(*given, **more)}


def metrax_rows(scores: np.ndarray, grades: np.ndarray) -> Calls:
    """In `jit`; its gain is 2^grade - 1, and log2(1 + grade) as the grade makes it linear."""
    if not installed("metrax"):
        return {}
    import jax
    import jax.numpy as jnp
    import metrax

    def call(metric: Any, labels: np.ndarray, k: int) -> Call:
        given = jnp.asarray(scores), jnp.asarray(labels), jnp.asarray([k])
        compiled = jax.jit(lambda *given: metric.from_model_output(*given).compute()[0])
        return lambda: compiled(*given)

    return {
        "ndcg": call(metrax.NDCGAtK, np.log2(1 + grades), K),
        "mrr": call(metrax.MRR, grades, scores.shape[-1]),
    }


def torcheval_rows(scores: np.ndarray, grades: np.ndarray) -> Calls:
    """It has no nDCG; its reciprocal rank takes the index of one relevant document per list."""
    if not installed("torch", "torcheval"):
        return {}
    import torch
    from torcheval.metrics.functional import reciprocal_rank

    given = torch.from_numpy(scores), torch.from_numpy(grades.argmax(axis=-1))
    return {"mrr": lambda: reciprocal_rank(*given).mean().item()}


def torchmetrics_segments(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> Calls:
    if not installed("torch", "torchmetrics"):
        return {}
    import torch
    from torchmetrics.retrieval import RetrievalMRR, RetrievalNormalizedDCG

    given = torch.from_numpy(scores), torch.from_numpy(grades).long()
    indexes = torch.from_numpy(ids)
    return {
        "ndcg": lambda: RetrievalNormalizedDCG(top_k=K)(*given, indexes=indexes).item(),
        "mrr": lambda: RetrievalMRR()(*given, indexes=indexes).item(),
    }


def ranx_segments(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> Calls:
    """Qrels and Run are built before the timing, as its users do."""
    if not installed("ranx"):
        return {}
    import ranx

    documents, run = dicts(scores, grades, ids)
    given = ranx.Qrels(documents), ranx.Run(run)
    return {
        "ndcg": lambda: ranx.evaluate(*given, f"ndcg@{K}"),
        "mrr": lambda: ranx.evaluate(*given, "mrr"),
    }


def pytrec_eval_segments(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> Calls:
    """Dicts and evaluator are built before the timing; it returns a dict of values per list."""
    if not installed("pytrec_eval"):
        return {}
    import pytrec_eval

    documents, run = dicts(scores, grades, ids)

    def call(measure: str, key: str) -> Call:
        evaluator = pytrec_eval.RelevanceEvaluator(documents, {measure})

        def mean() -> float:
            values = evaluator.evaluate(run).values()
            return sum(value[key] for value in values) / len(values)

        return mean

    return {
        "ndcg": call(f"ndcg_cut.{K}", f"ndcg_cut_{K}"),
        "mrr": call("recip_rank", "recip_rank"),
    }


def dicts(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> tuple[dict, dict]:
    """Grades and scores as dicts by list and document, which trec_eval's bindings take."""
    names = [str(q) for q in range(int(ids.max()) + 1)]
    documents: dict[str, dict[str, int]] = {name: {} for name in names}
    run: dict[str, dict[str, float]] = {name: {} for name in names}
    for i, (q, score, grade) in enumerate(zip(ids, scores.tolist(), grades, strict=True)):
        documents[names[q]][str(i)] = int(grade)
        run[names[q]][str(i)] = score
    return documents, run


def of_rows(make: Callable[..., Calls]) -> Callable[[np.ndarray, np.ndarray], Calls]:
    """The calls of a library of segments, on rows."""

    def calls(scores: np.ndarray, grades: np.ndarray) -> Calls:
        ids = np.repeat(np.arange(len(scores)), scores.shape[-1])
        return make(scores.ravel(), grades.ravel(), ids)

    return calls


ROWS: dict[str, Callable[..., Calls]] = {
    "scikit-learn": sklearn_rows,
    "scikit-learn, ignore_ties": partial(sklearn_rows, ignore_ties=True),
    "rax": rax_rows,
    "metrax": metrax_rows,
    "torcheval": torcheval_rows,
    "ranx": of_rows(ranx_segments),
    "pytrec_eval": of_rows(pytrec_eval_segments),
}
SEGMENTS: dict[str, Callable[..., Calls]] = {
    "torchmetrics": torchmetrics_segments,
    "rax": rax_segments,
    "ranx": ranx_segments,
    "pytrec_eval": pytrec_eval_segments,
}
# In items: ranx and pytrec_eval build Python dicts, rax masks of n x n.
LARGEST_ROWS = {"ranx": 1_000_000, "pytrec_eval": 1_000_000}
LARGEST_SEGMENTS = {**LARGEST_ROWS, "rax": 10_000}
