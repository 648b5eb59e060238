"""Trials of nDCG of ranked lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics

import jaxmetrics as jm
from benchmarks.rivals import lists as calls
from benchmarks.rivals.packages import installed

Trials = dict[str, Callable[[], Any]]
COLUMNS = (
    "models in one call",
    "a value a list",
    "ties averaged",
    "mask",
    "lists of any length",
    "several k in one call",
    "weights of documents",
    "in jax.jit",
    "loss with a gradient",
)


class Lists(NamedTuple):
    """Scores `[2, lists, docs]` of two models, grades, and the mask of valid documents."""

    scores: np.ndarray
    grades: np.ndarray
    mask: np.ndarray
    tied: np.ndarray


def lists() -> Lists:
    rng = np.random.default_rng(0)
    shape = 20, 12
    scores = rng.permuted(np.tile(np.arange(12, dtype=np.float32) / 12, (2, 20, 1)), axis=-1)
    grades = rng.integers(0, 5, shape).astype(np.float32)
    grades[:, 0] = 1  # each list has a relevant document
    mask = rng.random(shape) < 0.8
    mask[:, 0] = True
    return Lists(scores, grades, mask, scores[0].round(1))


def expected(given: Lists) -> dict[str, Any]:
    """The references from scikit-learn, one list at a time."""

    def ndcg(scores: np.ndarray, grades: np.ndarray, k: int = 10) -> float:
        return sklearn.metrics.ndcg_score(grades[None], scores[None].astype(np.float64), k=k)

    rows = list(zip(given.grades, given.mask, strict=True))
    values = np.array(
        [[ndcg(s, g) for s, (g, _) in zip(model, rows, strict=True)] for model in given.scores]
    )
    masked = [ndcg(s[m], g[m]) for s, (g, m) in zip(given.scores[0], rows, strict=True)]
    tied = [ndcg(s, g) for s, (g, _) in zip(given.tied, rows, strict=True)]
    at = [
        np.mean([ndcg(s, g, k) for s, (g, _) in zip(given.scores[0], rows, strict=True)])
        for k in (5, 10)
    ]
    return {
        "models in one call": values.mean(axis=1),
        "a value a list": values[0],
        "ties averaged": np.mean(tied),
        "mask": np.mean(masked),
        "lists of any length": np.mean(masked),
        "several k in one call": np.array(at),
        "in jax.jit": values[0].mean(),
    }


def flat(given: Lists) -> tuple[np.ndarray, ...]:
    """Scores, grades and list ids `[n]` of the valid documents."""
    ids = np.broadcast_to(np.arange(20)[:, None], given.mask.shape)
    return tuple(x[given.mask] for x in (given.scores[0], given.grades, ids))


def ours(given: Lists) -> Trials:
    ndcg, first = partial(jm.ndcg, k=10), given.scores[0]

    def loss(scores: jax.Array) -> jax.Array:
        return jnp.mean(jm.losses.approx_ndcg_loss(scores, given.grades))

    def segments() -> Any:
        scores, grades, ids = flat(given)
        return ndcg(scores, grades, segments=ids).mean()

    return {
        "models in one call": lambda: ndcg(given.scores, given.grades).mean(axis=1),
        "a value a list": lambda: ndcg(first, given.grades),
        "ties averaged": lambda: ndcg(given.tied, given.grades).mean(),
        "mask": lambda: ndcg(first, given.grades, where=given.mask).mean(),
        "lists of any length": segments,
        "several k in one call": lambda: jm.ndcg(first, given.grades, k=(5, 10)).mean(axis=0),
        "in jax.jit": lambda: jax.jit(ndcg)(first, given.grades).mean(),
        "loss with a gradient": lambda: jnp.any(jax.grad(loss)(jnp.asarray(first)) != 0),
    }


def scikit_learn(given: Lists) -> Trials:
    ndcg = partial(sklearn.metrics.ndcg_score, k=10)
    return {
        "models in one call": lambda: ndcg(np.stack([given.grades] * 2), given.scores),
        "ties averaged": lambda: ndcg(given.grades, given.tied),
        "in jax.jit": lambda: jax.jit(ndcg)(given.grades, given.scores[0]),
    }


def rax(given: Lists) -> Trials | None:
    if not installed("rax"):
        return None
    import rax

    ndcg = partial(rax.ndcg_metric, topn=10, gain_fn=lambda grade: grade)
    scores, grades = jnp.asarray(given.scores), jnp.asarray(given.grades)
    each = partial(ndcg, reduce_fn=None)

    def segments() -> Any:
        items = map(jnp.asarray, flat(given))
        return ndcg(next(items), next(items), segments=next(items))

    def weighted() -> Any:
        weights = 1 + jnp.arange(12.0) * jnp.ones_like(grades)
        return jnp.any(each(scores[0], grades, weights=weights) != each(scores[0], grades))

    def models() -> Any:
        return each(scores, jnp.stack([grades] * 2)).mean(axis=1)

    def loss(scores: jax.Array) -> jax.Array:
        weights = rax.dcg2_lambdaweight
        return rax.pairwise_logistic_loss(scores, grades, lambdaweight_fn=weights)

    return {
        "models in one call": models,
        "a value a list": lambda: each(scores[0], grades),
        "ties averaged": lambda: ndcg(jnp.asarray(given.tied), grades),
        "mask": lambda: ndcg(scores[0], grades, where=jnp.asarray(given.mask)),
        "lists of any length": segments,
        "weights of documents": weighted,
        "in jax.jit": lambda: jax.jit(ndcg)(scores[0], grades),
        "loss with a gradient": lambda: jnp.any(jax.grad(loss)(scores[0]) != 0),
    }


def metrax(given: Lists) -> Trials | None:
    """Its gain is 2^grade - 1: log2(1 + grade) as the grade makes the gain linear."""
    if not installed("metrax"):
        return None
    from metrax import NDCGAtK

    grades = jnp.log2(1 + jnp.asarray(given.grades))

    def ndcg(scores: Any, *k: int) -> jax.Array:
        return NDCGAtK.from_model_output(jnp.asarray(scores), grades, jnp.array(k)).compute()

    return {
        "models in one call": lambda: ndcg(given.scores, 10),
        "ties averaged": lambda: ndcg(given.tied, 10)[0],
        "several k in one call": lambda: ndcg(given.scores[0], 5, 10),
        "in jax.jit": lambda: jax.jit(lambda scores: ndcg(scores, 10))(given.scores[0])[0],
    }


def torchmetrics(given: Lists) -> Trials | None:
    if not installed("torch", "torchmetrics"):
        return None
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    def ndcg(scores: np.ndarray, grades: np.ndarray, ids: np.ndarray, **options: Any) -> float:
        arrays = (torch.tensor(x.ravel()) for x in (scores, grades.astype(int), ids))
        values, target, indexes = arrays
        metric = RetrievalNormalizedDCG(top_k=10, **options)
        return metric(values, target, indexes=indexes).item()

    ids = np.broadcast_to(np.arange(20)[:, None], given.mask.shape)
    hidden = np.where(given.mask, given.grades, -1)
    return {
        "ties averaged": lambda: ndcg(given.tied, given.grades, ids),
        "mask": lambda: ndcg(given.scores[0], hidden, ids, ignore_index=-1),
        "lists of any length": lambda: ndcg(*flat(given)),
    }


def ranx(given: Lists) -> Trials | None:
    if not installed("ranx"):
        return None
    import ranx

    def evaluate(items: tuple[np.ndarray, ...], *metrics: str, **options: Any) -> Any:
        documents, run = calls.dicts(*items)
        return ranx.evaluate(ranx.Qrels(documents), ranx.Run(run), list(metrics), **options)

    whole = flat(given._replace(mask=np.ones_like(given.mask)))
    tied = flat(given._replace(mask=np.ones_like(given.mask), scores=given.tied[None]))
    names = np.argsort(np.argsort([str(i) for i in range(20)]))  # ranx sorts lists by name
    return {
        "a value a list": lambda: evaluate(whole, "ndcg@10", return_mean=False)[names],
        "ties averaged": lambda: evaluate(tied, "ndcg@10"),
        "lists of any length": lambda: evaluate(flat(given), "ndcg@10"),
        "several k in one call": lambda: list(evaluate(whole, "ndcg@5", "ndcg@10").values()),
    }


def pytrec_eval(given: Lists) -> Trials | None:
    if not installed("pytrec_eval"):
        return None
    from pytrec_eval import RelevanceEvaluator

    def evaluate(items: tuple[np.ndarray, ...]) -> list[list[float]]:
        documents, run = calls.dicts(*items)
        found = RelevanceEvaluator(documents, {"ndcg_cut.5,10"}).evaluate(run)
        each = [found[name] for name in documents]
        return [[value[f"ndcg_cut_{k}"] for value in each] for k in (5, 10)]

    whole = flat(given._replace(mask=np.ones_like(given.mask)))
    tied = flat(given._replace(mask=np.ones_like(given.mask), scores=given.tied[None]))
    return {
        "a value a list": lambda: evaluate(whole)[1],
        "ties averaged": lambda: np.mean(evaluate(tied)[1]),
        "lists of any length": lambda: np.mean(evaluate(flat(given))[1]),
        "several k in one call": lambda: np.mean(evaluate(whole), axis=1),
    }


LIBRARIES: dict[str, Callable[[Lists], Trials | None]] = {
    "ours": ours,
    "scikit-learn": scikit_learn,
    "rax": rax,
    "metrax": metrax,
    "torchmetrics": torchmetrics,
    "ranx": ranx,
    "pytrec_eval": pytrec_eval,
}
