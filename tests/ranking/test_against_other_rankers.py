"""Metrics of ranked lists against trec_eval and rax."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm


def test_against_trec_eval(rng, x64):
    """On random runs; trec_eval breaks ties by falling document id, so ids fall with the index."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    lists, n = 12, 15
    scores = rng.integers(0, 8, (lists, n)).astype(float)
    labels = rng.integers(0, 4, (lists, n))
    labels[:, 0] = 1  # it leaves out queries without relevant documents
    ids = [f"d{n - i:03d}" for i in range(n)]
    cuts = "5,10"
    evaluator = pytrec_eval.RelevanceEvaluator(
        {str(q): dict(zip(ids, map(int, row), strict=True)) for q, row in enumerate(labels)},
        {f"ndcg_cut.{cuts}", f"P.{cuts}", f"recall.{cuts}", f"map_cut.{cuts}", f"success.{cuts}"}
        | {"ndcg", "map", "recip_rank"},
    )
    run = {str(q): dict(zip(ids, map(float, row), strict=True)) for q, row in enumerate(scores)}
    theirs = evaluator.evaluate(run)
    index = {"ties": "index"}
    ours = {
        "ndcg": jm.ndcg(scores, labels, **index),
        "map": jm.average_precision_at_k(scores, labels),
        "recip_rank": jm.reciprocal_rank(scores, labels),
    }
    for k in (5, 10):
        ours |= {
            f"ndcg_cut_{k}": jm.ndcg(scores, labels, k=k, **index),
            f"P_{k}": jm.precision_at_k(scores, labels, k=k, **index),
            f"recall_{k}": jm.recall_at_k(scores, labels, k=k, **index),
            f"map_cut_{k}": jm.average_precision_at_k(scores, labels, k=k, denominator="relevant"),
            f"success_{k}": jm.hit_rate_at_k(scores, labels, k=k),
        }
    for name, values in ours.items():
        assert_allclose(values, [theirs[str(q)][name] for q in range(lists)], rtol=1e-6)


def test_against_rax(rng):
    """On lists without ties, of which rax breaks ties at random, and with relevant documents."""
    rax = pytest.importorskip("rax")
    scores = rng.permuted(np.tile(np.arange(15, dtype="float32"), (12, 1)), axis=1)
    labels = rng.integers(0, 4, (12, 15)).astype("float32")
    labels[:, 0] = 1
    few = np.minimum(labels, 1)

    @jax.jit
    def by_rax(scores, labels, few):
        graded = [
            f(scores, labels, topn=5, reduce_fn=None) for f in (rax.ndcg_metric, rax.dcg_metric)
        ]
        plain = (rax.precision_metric, rax.recall_metric, rax.mrr_metric)
        pairs = rax.opa_metric(scores, labels, reduce_fn=None)
        return [*graded, *(f(scores, few, topn=5, reduce_fn=None) for f in plain)], pairs

    theirs, pairs = by_rax(scores, labels, few)
    ours = (
        jm.ndcg(scores, labels, k=5, gain="exponential"),
        jm.dcg(scores, labels, k=5, gain="exponential"),
        jm.precision_at_k(scores, labels, k=5),
        jm.recall_at_k(scores, labels, k=5),
        jm.reciprocal_rank(scores, labels, k=5),
    )
    for found, expected in zip(ours, theirs, strict=True):
        assert_allclose(found, expected, rtol=2e-6)
    assert_allclose(jm.ordered_pair_accuracy(scores, labels), pairs, rtol=2e-6)
