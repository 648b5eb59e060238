"""Metrics of ranked lists by hand, against plain references, and under transformations."""

import logging
import math
import sys
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
from ranked import flattened, sample

import jaxmetrics as jm


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


@EVERY_METRIC
def test_against_a_plain_reference(entry, rng, x64):
    scores, labels, where = sample(rng)
    found = _by_index(entry)(scores, labels, where=where, k=KS)
    rows = [_ranked(s[w], y[w]) for s, y, w in zip(scores, labels, where, strict=True)]
    assert_allclose(found, [[entry.reference(y, k) for k in KS] for y in rows], rtol=1e-12)


@EVERY_FUNCTION
def test_segments_are_lists(entry, rng, x64):
    scores, labels, where = sample(rng)
    flat_scores, flat_labels, flat_where, segments = flattened(rng, scores, labels, where)
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
    scores, labels, where = sample(rng)
    given = scores.astype("float32"), labels.astype("float32"), where
    metric = partial(BY_NAME[name].metric, k=3)
    expected = metric(*given[:2], where=where)
    assert_allclose(WAYS[way](metric, *given), expected, rtol=1e-6)


@EVERY_KIND
def test_invariances(name, rng, x64):
    entry = BY_NAME[name]
    scores, labels, where = sample(rng)
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
    scores, labels, _ = sample(rng)
    assert_allclose(
        entry.metric(scores, labels, k=1000)[2:],
        [entry.reference(_ranked(s, y), 1000) for s, y in zip(scores[2:], labels[2:], strict=True)],
        rtol=0.2 if entry.ties else 1e-6,  # ties are averaged
    )
    assert entry.metric(np.zeros((4, 0)), np.zeros((4, 0)), k=2).shape == (4,)


@EVERY_FUNCTION
def test_places_of_more_bits_than_ranks_have(entry):
    """A k such as `sys.maxsize` means all places: programs cut it to its lowest 32 bits."""
    lists = np.float32([3, 2, 1, 4]), np.array([1, 0, 2, 1])
    for k in (2**32 + 1, sys.maxsize):
        metric = partial(entry.metric, k=k)
        expected = metric(*lists)
        assert_array_equal(jax.jit(metric)(*lists), expected)
        traced = jax.jit(partial(metric, num_segments=1))
        assert_array_equal(traced(*lists, segments=np.zeros(4, int)), [expected])


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
    scores, labels, where = sample(rng)
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
    constant = jm.dcg([3.0, 2.0], [2, 1], gain=lambda label: 1.0)
    assert_allclose(constant, jm.dcg([3.0, 2.0], [1, 1]), rtol=1e-15)
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
