"""Lists as users have them: queries, ids, and what is refused."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm


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


@pytest.mark.parametrize("metric", [jm.ordered_pair_accuracy, partial(jm.ndcg, k=(1, 5)), jm.ndcg])
def test_the_number_of_lists_may_be_given_or_found(metric):
    """Where a program is compiled, it has room for more lists than there are."""
    rng = np.random.default_rng(0)
    scores, grades, ids = rng.random((40, 90)), rng.integers(0, 3, 90), np.sort(np.arange(90) % 11)
    given = metric(scores, grades, segments=ids, num_segments=11)
    np.testing.assert_array_equal(metric(scores, grades, segments=ids), given)


def test_empty_lists_are_no_items(recwarn):
    """NumPy makes float64 of them."""
    assert jm.ndcg([], [], segments=[]).tolist() == [0]
    assert not recwarn.list
