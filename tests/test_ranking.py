"""Metrics of ranked lists: by hand, against plain references, and what holds of all of them."""

import logging
import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics
from fast import in_turn, marked
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm
from jaxmetrics._ranking import segments as segment_metrics


def _ranked(scores, labels):
    """Labels in order of score; of ties the lower index first."""
    return labels[np.argsort(-scores, kind="stable")]


def _dcg(gains):
    return sum(gain / np.log2(rank + 2) for rank, gain in enumerate(gains))


def _average_precision(y, k, below=None):
    relevant = y > 0
    at = [relevant[: r + 1].mean() for r in range(min(k, len(y))) if relevant[r]]
    below = min(k, relevant.sum()) if below is None else below(relevant, k)
    return sum(at) / below if below else 0.0


def _reciprocal_rank(y, k):
    first = np.flatnonzero(y[:k] > 0)
    return 1 / (first[0] + 1) if len(first) else 0.0


def _expected_reciprocal_rank(y, k):
    value, goes_on = 0.0, 1.0
    for rank, grade in enumerate(y[:k]):
        stops = (2.0**grade - 1) / 2**4
        value, goes_on = value + goes_on * stops / (rank + 1), goes_on * (1 - stops)
    return value


@dataclass(frozen=True)
class Entry:
    name: str
    metric: Any
    reference: Any  # of the labels in order of score, and k
    at_k: bool = True
    ties: bool = True  # averages over ties, or is asked to


METRICS = [
    Entry("dcg", jm.dcg, lambda y, k: _dcg(y[:k])),
    Entry("ndcg", jm.ndcg, lambda y, k: _dcg(y[:k]) / (_dcg(np.sort(y)[::-1][:k]) or 1)),
    Entry(
        "ndcg-exponential",
        partial(jm.ndcg, gain="exponential"),
        lambda y, k: _dcg(2.0 ** y[:k] - 1) / (_dcg(2.0 ** np.sort(y)[::-1][:k] - 1) or 1),
    ),
    Entry("precision", jm.precision_at_k, lambda y, k: (y[:k] > 0).sum() / k),
    Entry(
        "precision-retrieved",
        partial(jm.precision_at_k, denominator="retrieved"),
        lambda y, k: (y[:k] > 0).sum() / min(k, len(y)) if len(y) else np.nan,
    ),
    Entry(
        "recall",
        jm.recall_at_k,
        lambda y, k: (y[:k] > 0).sum() / (y > 0).sum() if (y > 0).any() else np.nan,
    ),
    Entry(
        "recall-capped",
        partial(jm.recall_at_k, denominator="capped", empty=0.5),
        lambda y, k: (y[:k] > 0).sum() / min(k, (y > 0).sum()) if (y > 0).any() else 0.5,
    ),
    Entry("average_precision", jm.average_precision_at_k, _average_precision, ties=False),
    Entry(
        "average_precision-relevant",
        partial(jm.average_precision_at_k, denominator="relevant"),
        partial(_average_precision, below=lambda relevant, k: relevant.sum()),
        ties=False,
    ),
    Entry(
        "average_precision-hits",
        partial(jm.average_precision_at_k, denominator="hits"),
        partial(_average_precision, below=lambda relevant, k: relevant[:k].sum()),
        ties=False,
    ),
    Entry("reciprocal_rank", jm.reciprocal_rank, _reciprocal_rank, ties=False),
    Entry("hit_rate", jm.hit_rate_at_k, lambda y, k: float((y[:k] > 0).any()), ties=False),
    Entry(
        "expected_reciprocal_rank",
        partial(jm.expected_reciprocal_rank, max_grade=4),
        _expected_reciprocal_rank,
        ties=False,
    ),
    Entry(
        "rank_biased_precision",
        partial(jm.rank_biased_precision, persistence=0.7),
        lambda y, k: 0.3 * sum(0.7**rank for rank in np.flatnonzero(y[:k] > 0)),
    ),
]
EVERY_METRIC = pytest.mark.parametrize(
    "entry",
    METRICS,
    ids=lambda entry: entry.name,
)
# What holds of a function holds of its options, which share all but a line.
EVERY_FUNCTION = pytest.mark.parametrize(
    "entry", [entry for entry in METRICS if "-" not in entry.name], ids=lambda entry: entry.name
)
# What is done around all formulas, with one of each file, and with -m slow with the rest.
FIRST = ("ndcg", "recall", "average_precision", "expected_reciprocal_rank")
REST = [entry.name for entry in METRICS if "-" not in entry.name and entry.name not in FIRST]
EVERY_KIND = pytest.mark.parametrize(
    "name", [marked(name, fast=name in FIRST) for name in (*FIRST, *REST)]
)
BY_NAME = {entry.name: entry for entry in METRICS}
KS = (1, 3, 20)


def _by_index(entry):
    return partial(entry.metric, ties="index") if entry.ties else entry.metric


def _sample(rng, shape=(12, 9), *, grades=5):
    """Lists with ties, masked documents, one without relevant documents, one without any."""
    scores = rng.normal(size=shape).round(1)
    labels = rng.integers(0, grades, shape)
    where = rng.random(shape) < 0.8
    labels[0], where[1] = 0, False
    return scores, labels, where


def _flat(rng, *arrays):
    """Lists as flat items in any order that keeps the items of a list in theirs, and segments."""
    lists, n = arrays[0].shape
    segments = rng.permutation(np.repeat(np.arange(lists), n))
    flat = [np.empty(lists * n, x.dtype) for x in arrays]
    for x, y in zip(arrays, flat, strict=True):
        for i in range(lists):
            y[segments == i] = x[i]
    return *flat, segments


@EVERY_METRIC
def test_against_a_plain_reference(entry, rng, x64):
    scores, labels, where = _sample(rng)
    found = _by_index(entry)(scores, labels, where=where, k=KS)
    rows = [_ranked(s[w], y[w]) for s, y, w in zip(scores, labels, where, strict=True)]
    assert_allclose(found, [[entry.reference(y, k) for k in KS] for y in rows], rtol=1e-12)


@EVERY_FUNCTION
def test_segments_are_lists(entry, rng, x64):
    scores, labels, where = _sample(rng)
    flat_scores, flat_labels, flat_where, segments = _flat(rng, scores, labels, where)
    masked = np.where(flat_where, flat_scores, np.nan)  # which must not matter
    found = entry.metric(
        masked, flat_labels, where=flat_where, segments=segments, num_segments=13, k=KS
    )
    expected = entry.metric(scores, labels, where=where, k=KS)
    assert_allclose(found[:12], expected, rtol=1e-12)
    no_items = entry.metric(np.zeros(3), np.zeros(3), where=np.zeros(3, bool), k=KS)
    assert_array_equal(found[12], no_items)


def _by_jit(metric, scores, labels, where):
    traces = []

    @jax.jit
    def compiled(scores, labels, where):
        traces.append(1)
        return metric(scores, labels, where=where)

    reversed_scores = metric(-scores, labels, where=where)
    assert_allclose(compiled(-scores, labels, where), reversed_scores, rtol=1e-6)
    found = compiled(scores, labels, where)
    assert len(traces) == 1
    return found


def _by_vmap(metric, *lists):
    return jax.vmap(lambda s, y, w: metric(s, y, where=w))(*lists)


def _by_traced_segments(metric, *lists):
    segments = np.repeat(np.arange(12), 9)
    traced = jax.jit(lambda s, y, w, g: metric(s, y, where=w, segments=g, num_segments=12))
    return traced(*(x.ravel() for x in lists), segments)


def _by_gradient(metric, scores, labels, where):
    def total(scores):
        values = metric(scores, labels, where=where)
        return jnp.nansum(values), values

    slope, values = jax.jit(jax.grad(total, has_aux=True))(scores)
    assert_array_equal(slope, 0)
    return values


WAYS = {"jit": _by_jit, "vmap": _by_vmap, "segments": _by_traced_segments, "slope": _by_gradient}


@pytest.mark.parametrize(
    ("name", "way"),
    [*in_turn(FIRST, WAYS), *(marked(name, way, fast=False) for name in REST for way in WAYS)],
)
def test_transforms(name, way, rng):
    scores, labels, where = _sample(rng)
    given = scores.astype("float32"), labels.astype("float32"), where
    metric = partial(BY_NAME[name].metric, k=3)
    expected = metric(*given[:2], where=where)
    assert_allclose(WAYS[way](metric, *given), expected, rtol=1e-6)


@EVERY_KIND
def test_invariances(name, rng, x64):
    entry = BY_NAME[name]
    scores, labels, where = _sample(rng)
    models = np.stack([scores, scores[:, ::-1]])
    expected = entry.metric(models, labels, where=where, k=KS)
    assert expected.shape == (2, 12, 3)
    assert_array_equal(expected[0], entry.metric(scores, labels, where=where, k=KS))
    assert_allclose(entry.metric(np.exp(models), labels, where=where, k=KS), expected, rtol=1e-12)
    if entry.ties:
        order = rng.permutation(9)
        shuffled = entry.metric(models[..., order], labels[:, order], where=where[:, order], k=KS)
        assert_allclose(shuffled, expected, rtol=1e-12)
    wild = np.where(where, models, np.nan)
    wild_labels = np.where(where, labels, np.nan)
    assert_array_equal(entry.metric(wild, wild_labels, where=where, k=KS), expected)
    bad = scores.copy()
    bad[3, np.flatnonzero(where[3])[0]] = np.nan
    found = entry.metric(bad, labels, where=where, k=KS)
    assert np.isnan(found[3]).all()
    others = np.arange(12) != 3
    assert_array_equal(found[others], expected[0, others])


@EVERY_FUNCTION
def test_more_places_than_documents_and_no_documents(entry, rng):
    scores, labels, _ = _sample(rng)
    assert_allclose(
        entry.metric(scores, labels, k=1000)[2:],
        [entry.reference(_ranked(s, y), 1000) for s, y in zip(scores[2:], labels[2:], strict=True)],
        rtol=0.2 if entry.ties else 1e-6,  # ties are averaged
    )
    assert entry.metric(np.zeros((4, 0)), np.zeros((4, 0)), k=2).shape == (4,)


@pytest.mark.parametrize(
    ("k", "dtype"),
    [
        (None, "float64"),
        (1, "float64"),
        (4, "float64"),
        (30, "float64"),
        (4, "float32"),
        (4, "int32"),
    ],
)
def test_dcg_and_ndcg_equal_scikit_learn(rng, x64, k, dtype):
    scores = (10 * rng.normal(size=(20, 30))).round().astype(dtype)
    labels = rng.integers(0, 5, (20, 30)).astype(dtype)
    each = range(20)
    for ours, theirs in (
        (jm.dcg, sklearn.metrics.dcg_score),
        (jm.ndcg, sklearn.metrics.ndcg_score),
    ):
        expected = [theirs(labels[i : i + 1], scores[i : i + 1], k=k) for i in each]
        assert_allclose(ours(scores, labels, k=k), expected, rtol=1e-12)
        apart = scores + 1e-3 * np.arange(30, 0, -1)  # the lower index first
        expected = [
            theirs(labels[i : i + 1], apart[i : i + 1], k=k, ignore_ties=True) for i in each
        ]
        assert_allclose(ours(scores, labels, k=k, ties="index"), expected, rtol=1e-12)


def test_float64_scores_are_not_collapsed():
    scores = np.array([1 + 1e-12, 1.0, 1 - 1e-12])
    assert jm.reciprocal_rank(scores, [1, 0, 0]) == 1
    assert jm.ndcg(scores[::-1], [1, 0, 0]) == np.float32(0.5)


def test_gain_and_discount_of_the_user(rng, x64):
    scores, labels, where = _sample(rng)
    worth = jm.dcg(scores, labels, where=where, k=3, gain=jnp.sqrt, discount=lambda rank: 1 / rank)
    rows = [_ranked(s[w], y[w]) for s, y, w in zip(scores, labels, where, strict=True)]
    plain = jm.dcg(
        scores,
        labels,
        where=where,
        k=3,
        gain=jnp.sqrt,
        discount=lambda rank: 1 / rank,
        ties="index",
    )
    assert_allclose(plain, [sum(np.sqrt(y[:3]) / np.arange(1, 1 + len(y[:3]))) for y in rows])
    assert not np.array_equal(worth, plain)
    # Of a gain that falls with the label the best order is that of the gain.
    middling = jm.ndcg([3.0, 2.0, 1.0], [2, 1, 0], gain=lambda label: 2.0 * (label == 1))
    assert_allclose(middling, 1 / np.log2(3))
    flat = jm.ndcg(
        [3.0, 2.0, 1.0], [2, 1, 0], segments=[0, 0, 0], gain=lambda label: 2.0 * (label == 1)
    )
    assert_allclose(flat, [middling])


def test_a_list_without_relevant_documents():
    none = ([0.2, 0.1], [0, 0])
    assert jm.ndcg(*none) == 0
    assert jm.ndcg(*none, empty=1.0) == 1
    assert np.isnan(jm.ndcg(*none, empty=np.nan))
    assert jm.average_precision_at_k(*none) == 0
    assert np.isnan(jm.average_precision_at_k(*none, empty=np.nan))
    assert np.isnan(jm.recall_at_k(*none, k=1))
    assert jm.reciprocal_rank(*none) == jm.hit_rate_at_k(*none, k=1) == 0
    assert np.isnan(jm.ordered_pair_accuracy(*none))


# Pairs.


def _ordered_pairs(scores, labels):
    better = labels[:, None] > labels
    right = (1 + np.sign(scores[:, None] - scores)) / 2
    return (better * right).sum() / better.sum() if better.any() else np.nan


_ordered_in_segments = jax.jit(partial(jm.ordered_pair_accuracy, num_segments=7))


@pytest.mark.parametrize(("n", "grades"), [(1, 3), (2, 2), (30, 5), (33, 1000)])
def test_ordered_pairs(rng, x64, n, grades):
    scores, labels, where = _sample(rng, (7, n), grades=grades)
    found = jm.ordered_pair_accuracy(scores, labels, where=where)
    rows = zip(scores, labels, where, strict=True)
    assert_allclose(found, [_ordered_pairs(s[w], y[w]) for s, y, w in rows], rtol=1e-12)
    *flat, segments = _flat(rng, scores, labels, where)
    # Filled up with masked items, so that all cases have one program.
    *flat, segments = (np.append(x, np.zeros(7 * 33 - 7 * n, x.dtype)) for x in (*flat, segments))
    again = _ordered_in_segments(*flat[:2], where=flat[2], segments=segments)
    assert_array_equal(again, found)


def test_ordered_pairs_of_many_items(rng, x64):
    n = 200_000  # of which there is no matrix of pairs
    scores, labels = rng.normal(size=n), rng.random(n) < 0.3
    assert_allclose(
        jm.ordered_pair_accuracy(scores, labels), jm.roc_auc(scores, labels), rtol=1e-12
    )


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_areas_of_segments(rng, x64, weighted):
    n, count = 400, 8
    scores, labels = rng.normal(size=(2, n)).round(1), rng.random(n) < 0.4
    segments, where = rng.integers(0, count - 1, n), rng.random(n) < 0.9
    items = {"where": where} | ({"weights": rng.random(n).round(1)} if weighted else {})
    window = {"max_fpr": [0.1, 0.3, 1.0], "min_fpr": 0.05, "min_tpr": 0.2, "scale": "mcclish"}
    areas = jm.segment_roc_auc(scores, labels, segments=segments, num_segments=count, **items)
    parts = jm.segment_partial_auc(
        scores, labels, segments=segments, num_segments=count, **items, **window
    )
    assert areas.shape == (2, count)
    assert parts.shape == (2, count, 3)
    assert np.isnan(areas[:, -1]).all()
    inside = segments == np.arange(count - 1)[:, None]
    for ours, metric in ((areas, jm.roc_auc), (parts, partial(jm.partial_auc, **window))):
        weights = items.get("weights")
        expected = metric(scores[:, None], labels, weights=weights, where=inside & where)
        assert_allclose(ours[:, :-1], expected, rtol=1e-11)


def test_areas_of_segments_in_jit(rng):
    scores, labels = rng.normal(size=50).astype("float32"), rng.random(50) < 0.4
    segments = rng.integers(0, 3, 50)
    found = jax.jit(partial(jm.segment_roc_auc, num_segments=3))(scores, labels, segments=segments)
    assert_allclose(found, jm.segment_roc_auc(scores, labels, segments=segments), rtol=1e-6)
    scores[segments == 1] = np.nan
    broken = jm.segment_roc_auc(scores, labels, segments=segments)
    assert_array_equal(np.isnan(broken), [False, True, False])


# Other libraries.


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


# Bootstrap and bad input.


def test_bootstrap_over_queries(rng):
    scores = rng.normal(size=(2, 40, 9)).astype("float32")
    labels = rng.integers(0, 3, (40, 9))
    scores[1] += labels
    values = jm.recall_at_k(scores, labels, k=3)
    result = jm.bootstrap_mean(
        values, key=jax.random.key(0), n_resamples=200, where=~jnp.isnan(values)
    )
    assert_allclose(result.estimate, jnp.nanmean(values, axis=1), rtol=1e-6)
    difference = result.replicates[:, 1] - result.replicates[:, 0]
    assert jnp.quantile(difference, 0.025) > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (partial(jm.ndcg, [1.0, 2], [0, -1]), "labels must not be negative"),
        (partial(jm.dcg, [1.0, 2], [0, -1], gain="exponential"), "must not be negative"),
        (partial(jm.ndcg, [1.0, 2], [0, np.nan]), "labels must be finite"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], k=0), "k must be at least 1, got 0"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], k=1.5), "k must be an int or several"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], k=()), "k must be an int or several"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], k=(1, -2)), "k must be at least 1, got -2"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], gain="quadratic"), "gain must be one of 'linear'"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], discount=2), "discount must be a function"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], ties="random"), "ties must be one of"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], cutoff=3), "ndcg has no option cutoff"),
        (partial(jm.precision_at_k, [1.0, 2], [0, 1]), "precision_at_k needs k"),
        (
            partial(jm.precision_at_k, [1.0, 2], [0, 1], k=1, denominator="relevant"),
            "denominator must be one of 'k', 'retrieved'",
        ),
        (
            partial(jm.expected_reciprocal_rank, [1.0, 2], [0, 3], max_grade=2),
            "at most max_grade = 2",
        ),
        (partial(jm.dcg, [1.0, 2], [0, 1024], gain="exponential"), "at most 1023 .* got 1024"),
        (partial(jm.ndcg, [1.0, 2], [0, 2e3], gain="exponential"), "at most 1023 .* got 2000"),
        (
            partial(jm.expected_reciprocal_rank, [1.0, 2], [0, 3], max_grade=2000),
            "max_grade must be between 0 and 1023, got 2000",
        ),
        (partial(jm.rank_biased_precision, [1.0, 2], [0, 1], persistence=1.0), "between 0 and 1"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], segments=[0.0, 1]), "segments must be whole numbers"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], segments=[0, -1]), "got -1"),
        (
            partial(jm.ndcg, [1.0, 2], [0, 1], segments=[0, 2], num_segments=2),
            "got 2: write num_segments=3, or number the lists",
        ),
        (partial(jm.ndcg, [1.0, 2], [0, 1], num_segments=2), "num_segments goes with segments"),
        (partial(jm.ndcg, [1.0, 2], [0, 1, 1]), "last axis is the items"),
        (partial(jm.ndcg, [1.0, 2], [0, 1], where=[1, 0]), "where must be bool"),
        (partial(jm.segment_roc_auc, [1.0, 2], [0, 1], segments=[0, 5], num_segments=2), "got 5"),
        (
            partial(jax.jit(lambda g: jm.ndcg([1.0, 2], [0, 1], segments=g)), jnp.array([0, 1])),
            "num_segments must be given",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_what_is_refused_is_undefined_under_jit():
    scores = jnp.array([3.0, 2.0, 1.0, 0.0])
    labels, segments = jnp.array([1.0, -1.0, 2.0, 0.0]), jnp.array([0, 0, 1, 1])
    of_two = jax.jit(lambda y, g, m: jm.ndcg(scores, y, segments=g, num_segments=2, where=m))
    assert_array_equal(of_two(labels, segments, segments >= 0), [np.nan, 1])
    for astray in (2, 7, -1):  # the list that it belongs to is not known: none has a value
        segments = segments.at[3].set(astray)
        assert np.isnan(of_two(abs(labels), segments, segments >= -1)).all()
        assert_array_equal(of_two(abs(labels), segments, jnp.arange(4) < 3) > 0, [True, True])
    found = jax.jit(lambda y: jm.dcg(scores, y, gain="exponential"))(labels)
    assert np.isnan(found)
    assert np.isnan(jax.jit(lambda y: jm.dcg(scores, y, gain="exponential"))(labels + 2000))
    found = jax.jit(lambda y: jm.expected_reciprocal_rank(scores, y, max_grade=1))(abs(labels))
    assert np.isnan(found)


def test_ids_of_users_are_segments(rng):
    """Ids of 64 bits ended the process, or gave a list for each id that there could be."""
    ids = np.array([2**62, 7, 10**11, 7, 2**62, 10**11, 0, 7, 2**31, 2**32])
    distinct, index = np.unique(ids, return_inverse=True)
    scores, labels = rng.random(10), rng.integers(0, 2, 10)
    numbered = {"segments": index, "num_segments": len(distinct)}
    for metric in (jm.ndcg, jm.reciprocal_rank, jm.ordered_pair_accuracy, jm.segment_roc_auc):
        assert_array_equal(metric(scores, labels, segments=ids), metric(scores, labels, **numbered))
        with pytest.raises(ValueError, match=r"num_segments - 1 = 5, got 4611686018427387904: num"):
            metric(scores, labels, segments=ids, num_segments=6)
        with pytest.raises(ValueError, match=r"below 2\^31, got 100000000001: number the lists"):
            metric(scores, labels, segments=ids, num_segments=10**11 + 1)
    where = ids != 7  # what is masked is no list
    found = jm.ndcg(scores, labels, segments=np.where(where, ids, -1), where=where)
    assert_array_equal(found, jm.ndcg(scores[where], labels[where], segments=ids[where]))
    two_rows = jm.ndcg(scores, labels, segments=np.stack([ids, ids[::-1]]).astype(np.uint64))
    assert_array_equal(two_rows[0], jm.ndcg(scores, labels, **numbered))
    assert (
        len(jm.ndcg(scores, labels, segments=np.arange(10) // 4 * 4)) == 9
    )  # below n: as they are


def test_more_lists_than_memory_holds(monkeypatch):
    monkeypatch.setattr("jaxmetrics._base.checks.values.memory_size", lambda: 4e9)
    with pytest.raises(ValueError, match=r"num_segments = 1,000,000,000 needs 8 GB .* has 4 GB"):
        jm.ndcg([0.1, 0.2], [0, 1], segments=[0, 1], num_segments=10**9)


def test_highest_grades(x64):
    """Gains of 2^1024 overflow, and so may the sums of lower ones."""
    scores, labels = [0.3, 0.4, 0.5, 0.6], np.array([1023, 1022, 1023, 0])
    low = np.array([64.0, 63.0, 64.0, 0.0])  # as 2^64 - 1 is 2^64
    found = jm.ndcg(scores, labels, gain="exponential")
    assert_allclose(found, jm.ndcg(scores, low, gain="exponential"), rtol=1e-12)
    err = jm.expected_reciprocal_rank
    found = err(scores, np.maximum(labels - 1, 0), max_grade=1022)
    assert_allclose(found, err(scores, low, max_grade=64), rtol=1e-12)


@pytest.mark.parametrize(
    "metric", [jm.ndcg, partial(jm.recall_at_k, k=2), partial(jm.average_precision_at_k, k=(1, 2))]
)
def test_every_nan_is_the_same_option(metric, caplog):
    """NaN is not equal to itself, so that a program of another NaN would be compiled again."""
    call = partial(metric, [0.3, 0.1, 0.2], [0, 0, 0])
    first = call(empty=float("nan"))
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        others = [call(empty=nan) for nan in (float("nan"), -math.nan, np.float32("nan"))]
    assert [r.getMessage() for r in caplog.records if "Compiling" in r.getMessage()] == []
    assert np.isnan([first, *others]).all()


@pytest.mark.parametrize("unit", [1e-25, 1e-20, 1e-15, 1e-12, 1e-3])
def test_exponential_gain_of_low_grades(unit):
    """It tends to the linear gain times log 2, and loses no digits."""
    grades = np.array([1.0, 0.0, 2.5]) * unit
    gains = np.expm1(grades * np.log(2))
    expected = (gains[2] + gains[0] / 2) / (gains[2] + gains[0] / np.log2(3))
    with jax.enable_x64(True):
        found = jm.ndcg([0.1, 0.2, 0.3], grades, gain="exponential")
        assert_allclose(found, expected, 1e-14)
    loss = partial(jm.losses.approx_ndcg_loss, gain="exponential")
    near = loss([0.1, 0.2, 0.3], grades, temperature=1e-3)
    assert_allclose(near, 1 - expected, 1e-4)


def test_exponential_gain_of_grades_that_would_vanish_is_refused():
    with pytest.raises(ValueError, match="the highest of labels must be from 1e-28"):
        jm.ndcg([0.1, 0.2], [1e-300, 0], gain="exponential")


def test_areas_of_segments_in_memory_compile_nothing(rng):
    """And equal the compiled ones: ties, weights, a mask, ids in any order, NaN, several limits."""
    scores, labels = rng.normal(size=(2, 60)).round(1), rng.random(60) < 0.4
    segments, where = rng.integers(0, 5, 60), rng.random(60) < 0.9
    scores[1, 0], where[0] = np.nan, True
    weights = rng.integers(0, 3, 60).astype(float)
    weights[0] = 1
    items = {"where": where, "weights": weights}
    metric = partial(
        jm.segment_partial_auc, segments=segments, num_segments=6, max_fpr=[0.2, 0.8], **items
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_metrics, "_areas_of_batch", None)
        found = metric(scores, labels)
    assert np.isnan(found[1, segments[0]]).all()
    assert not np.isnan(found[0, segments[0]]).any()
    assert_allclose(found, jax.jit(metric)(scores, labels), rtol=1e-6)


def test_ids_that_a_filter_left_are_doubted():
    """One market's queries: the mean over all ids would count those of the others as 0."""
    ids = np.repeat(np.arange(20), 6)
    scores, grades = np.sin(np.arange(120)), np.arange(120) % 3
    some = ids % 4 == 0
    given = scores[some], grades[some]
    with pytest.warns(UserWarning, match=r"segments has 5 of the ids 0 to 16.*num_segments=17"):
        raw = jm.ndcg(*given, segments=ids[some])
    numbered = jm.ndcg(*given, segments=np.unique(ids[some], return_inverse=True)[1])
    assert len(raw) == 17
    assert len(numbered) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.ndcg(*given, segments=ids[some], num_segments=20)
        jm.ndcg(scores, grades, segments=ids)
