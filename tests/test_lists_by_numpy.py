"""Metrics of ranked lists by NumPy are those of the programs: rows, segments, ties, masks, NaN."""

import warnings
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked

import jaxmetrics as jm
from jaxmetrics._base import segment_sorts, sorting
from jaxmetrics._ranking import host_lists

METRICS = {
    "dcg": jm.dcg,
    "dcg of the first, exponential": partial(jm.dcg, k=3, gain="exponential"),
    "ndcg": jm.ndcg,
    "ndcg of the first": partial(jm.ndcg, k=(1, 4, 50), empty=1.0),
    "ndcg by index": partial(jm.ndcg, k=2, ties="index", gain="exponential"),
    "err": partial(jm.expected_reciprocal_rank, max_grade=4),
    "err of the first": partial(jm.expected_reciprocal_rank, max_grade=4, k=(2, 5)),
    "rbp": jm.rank_biased_precision,
    "precision": partial(jm.precision_at_k, k=3),
    "precision of those there are": partial(jm.precision_at_k, k=(1, 6), denominator="retrieved"),
    "recall": partial(jm.recall_at_k, k=(1, 3)),
    "recall, capped": partial(jm.recall_at_k, k=4, denominator="capped", empty=0.5),
    "average precision": jm.average_precision_at_k,
    "average precision of hits": partial(jm.average_precision_at_k, k=(2, 5), denominator="hits"),
    "reciprocal rank": jm.reciprocal_rank,
    "reciprocal rank of the first": partial(jm.reciprocal_rank, k=(1, 3)),
    "hit rate": partial(jm.hit_rate_at_k, k=2),
    "ordered pairs": jm.ordered_pair_accuracy,
}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """So that lists lie in several parts, and are sorted in every way."""
    monkeypatch.setattr(host_lists, "_PART", 16)
    monkeypatch.setattr(segment_sorts, "_ITEMS_APART", 5)


def drawn(rng, shape, dtype="float32"):
    """Scores with ties, of any dtype, and grades."""
    scores = rng.integers(0, 6, shape).astype(dtype)
    return scores, rng.integers(-1, 5, shape).clip(0)


def agree(metric, scores, labels, **others):
    given = {name: x for name, x in others.items() if x is not None}
    arrays = {name: x for name, x in given.items() if name != "num_segments"}
    static = {name: x for name, x in given.items() if name == "num_segments"}
    with jax.enable_x64(True):
        compiled = jax.jit(partial(metric, **static))(scores, labels, **arrays)
        found = metric(scores, labels, **given)
        assert found.dtype == compiled.dtype
        np.testing.assert_allclose(found, compiled, rtol=1e-13, atol=1e-300)
    return found


def in_turns(of, step=2):
    """The metrics, of which those with an even number are fast, or with an odd one."""
    return [marked(x, fast=i % step in of) for i, x in enumerate(METRICS)]


@pytest.mark.parametrize("name", in_turns([1]))
def test_rows(name, monkeypatch):
    """Arrays that broadcast; a NaN counts where it is not masked."""
    rng = np.random.default_rng(0)
    scores, labels = drawn(rng, (2, 6, 7))[0], drawn(rng, (6, 7))[1]
    where = rng.random((6, 7)) < 0.6
    where[3], where[5] = [False] + [True] * 6, False
    scores[0, 1, where[1]] = scores[:, 3, 0] = np.nan
    found = agree(METRICS[name], scores, labels, where=where)
    assert np.isnan(np.asarray(found)[0, 1]).all()
    assert not np.isnan(np.asarray(found)[:, 3]).any()
    monkeypatch.setattr(host_lists, "_PART", 1 << 16)
    np.testing.assert_allclose(METRICS[name](scores, labels, where=where), found, rtol=1e-6)
    ids = np.arange(6).repeat(7)
    flat = (x.ravel() for x in (scores[1], labels))
    of_segments = METRICS[name](*flat, where=where.ravel(), segments=ids, num_segments=6)
    np.testing.assert_allclose(of_segments, found[1], rtol=1e-6)


def _segments(rng):
    scores, labels = drawn(rng, (2, 60), "float64")
    return scores, labels, rng.integers(0, 8, (2, 60)), rng.random(60) < 0.7


@pytest.mark.parametrize("name", in_turns([0]))
def test_segments(name):
    """Of any length and in any order, some without items."""
    scores, labels, ids, where = _segments(np.random.default_rng(1))
    agree(METRICS[name], scores, labels[0] / 3, segments=ids, where=where, num_segments=9)


@pytest.mark.parametrize("name", in_turns([2], 4))
def test_segments_of_integers(name):
    scores, labels, ids, _ = _segments(np.random.default_rng(1))
    found = agree(METRICS[name], scores.astype("int8"), labels[0], segments=ids[0], num_segments=40)
    alone = METRICS[name](scores[1], labels[0], segments=ids[0], num_segments=40)
    np.testing.assert_allclose(alone, found[1], rtol=1e-6)


NOTHING = [(0,), (3, 0), (0, 4), "segments", "rows of segments"]


@pytest.mark.parametrize(
    ("shape", "name"), in_turn(NOTHING, ["ndcg", "precision of those there are", "hit rate"])
)
def test_nothing(shape, name):
    ids = np.zeros(0, int) if shape == "segments" else np.arange(5)
    segments = {} if isinstance(shape, tuple) else {"segments": ids, "num_segments": len(ids) or 2}
    items, of_scores = shape, shape
    if segments:
        items, of_scores = ids.shape, ids.shape if shape == "segments" else (0, 5)
    agree(METRICS[name], np.zeros(of_scores, "float32"), np.zeros(items, int), **segments)


def test_nothing_is_compiled(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("jaxmetrics._ranking.metric._values_of_lists", refuse)
    scores, labels = drawn(np.random.default_rng(3), (4, 9))
    for metric in METRICS.values():
        metric(scores, labels)
        metric(jnp.asarray(scores.ravel()), labels.ravel(), segments=np.arange(36) // 9)
    with pytest.raises(AssertionError):
        jm.ndcg(scores, labels, gain=lambda label: label)


@pytest.mark.parametrize(
    "metric", [jm.ndcg, *(marked(x, fast=False) for x in (jm.dcg, partial(jm.precision_at_k, k=2)))]
)
def test_many_lists_without_items(metric):
    """More than 16 bits can number."""
    ids = np.array([5, 5, 5, 65541, 65541, 70000, 3])
    scores = np.array([0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7], "float32")
    labels = np.array([1, 0, 2, 1, 0, 1, 1])
    found = agree(metric, scores, labels, segments=ids, num_segments=100_000)
    few = metric(scores[:3], labels[:3], segments=ids[:3] - 5, num_segments=1)
    np.testing.assert_allclose(found[5], few[0], rtol=1e-6)


def test_a_mask_for_each_of_several_rows():
    scores, labels = drawn(np.random.default_rng(6), 9)
    where = np.random.default_rng(7).random((2, 9)) < 0.7
    agree(jm.ndcg, scores, labels, where=where, segments=np.arange(9) // 4, num_segments=3)


def test_values_beyond_single_precision():
    with warnings.catch_warnings(action="error"):
        assert jm.dcg(np.array([1.0, 0.5], "f4"), np.array([3e38, 3e38], "f4")) == np.inf
        assert jm.precision_at_k(np.array([1.0, 0.5]), np.array([1e300, 0.0]), k=1) == 1


def test_committed_data_keep_their_device():
    scores, labels = drawn(np.random.default_rng(5), (3, 8))
    device = jax.devices()[1]
    found = jm.ndcg(*(jax.device_put(x, device) for x in (scores, labels)))
    assert found.devices() == {device}
    assert found.committed


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_sorts_of_segments(dtype):
    rng = np.random.default_rng(4)
    for sizes in (
        [3] * 6,
        [0, 2, 0, 9, 1],
        [30],
        [2, 40],
        [0] * 70_000 + [3, 0, 2],
        [3] * 60_000 + [70_000, 0, 4],
    ):
        begins = np.append(0, np.cumsum(sizes))
        keys = rng.integers(0, 5, begins[-1]).astype(dtype)
        found, index = segment_sorts.sort_segments(keys, begins, stable=True)
        alone = segment_sorts.sort_in_segments(keys, begins)
        order = np.lexsort((keys, np.repeat(np.arange(len(sizes)), sizes)))  # is stable
        np.testing.assert_array_equal(index, order)
        np.testing.assert_array_equal(found, keys[order])
        np.testing.assert_array_equal(alone, found)


def test_numbers_in_32_bits():
    for values in ([1, 2], [2**40], [0.5, 3.0], [0.1], [np.nan]):
        given = np.array(values)
        found = sorting.in_32_bits(given)
        np.testing.assert_array_equal(found, given)
        exact = values not in ([2**40], [0.1]) and not np.isnan(values[0])
        assert found.dtype.itemsize == (4 if exact else 8)


@pytest.mark.parametrize("n_lists", [5, 3000])
@pytest.mark.parametrize(
    ("labels", "counted"),
    [
        (np.arange(30) % 4, True),
        (np.arange(30) % 32 + 2.0, True),
        (np.arange(30) % 2 == 0, True),
        (jnp.asarray(np.arange(30) % 5, jnp.bfloat16), True),
        (np.uint8(np.arange(30) % 3), True),
        (np.arange(30) % 4 + 29, False),  # too many grades
        (np.arange(30) % 4 - 1.0, False),
        (np.arange(30) / 4, False),
        (np.append(np.arange(29) % 3.0, np.nan), False),
    ],
)
def test_few_grades_are_counted_and_others_sorted(labels, counted, n_lists):
    rng = np.random.default_rng(3)
    labels = np.asarray(labels)
    sizes = np.bincount(rng.integers(0, n_lists, 30), minlength=n_lists)
    begins = np.append(0, sizes.cumsum())
    lists = host_lists.HostLists(rng.normal(size=30), labels, begins)
    assert (lists._falling_grades() is not None) == (counted and n_lists == 5)
    ends = pairwise(begins.tolist())
    expected = np.concatenate([np.sort(labels[a:b].astype(float))[::-1] for a, b in ends])
    some = lists.ranking(2)
    for ranking, at in ((lists.ranking(), slice(None)), (some, some.at)):
        found = lists.falling_labels(ranking)
        if not np.isnan(expected).any():
            np.testing.assert_array_equal(found.astype(float), expected[at])
