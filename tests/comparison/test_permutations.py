"""Permutation tests of models."""

import itertools
from functools import partial

import jax
import numpy as np
import pytest
from comparing import KEY, close
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Items
from jaxmetrics.inference import _permutation


def area(ranks, labels):
    difference = ranks[labels][:, None] - ranks[~labels]
    return np.mean((difference > 0) + (difference == 0) / 2)


def of_all_swaps(ranks, labels, clusters):
    """The p-value of all ways in which two models swap the ranks of whole clusters."""
    differences = []
    for coins in itertools.product([False, True], repeat=clusters.max() + 1):
        a, b = np.where(np.array(coins)[clusters], ranks[::-1], ranks)
        differences.append(area(a, labels) - area(b, labels))
    return np.mean(np.abs(differences) >= abs(differences[0]) - 1e-12)


def test_permutations_of_whole_clusters_against_all_there_are():
    rng = np.random.default_rng(5)
    clusters = rng.permutation(np.repeat(np.arange(7), [3, 1, 4, 2, 2, 5, 3]))
    labels = rng.random(20) < 0.5
    scores = np.round(rng.normal(size=(2, 20)) + np.array([labels, 2 * labels]), 1)
    test = partial(jm.permutation_test, jm.roc_auc, key=KEY, n_resamples=50_000)
    exact = of_all_swaps([stats.rankdata(x) for x in scores], labels, clusters)
    found = test(scores, labels, clusters=clusters)
    np.testing.assert_allclose(found.p_value[0, 1], exact, atol=0.01)
    alone = test(scores, labels)
    assert abs(alone.p_value[0, 1] - exact) > 0.05
    # Items of their own are clusters of one; masked items, in whatever cluster, change nothing.
    close(test(scores, labels, clusters=np.arange(20)).p_value, alone.p_value)
    more, kinds = (np.concatenate([x, x[..., :3]], axis=-1) for x in (scores, labels))
    ids, where = np.concatenate([clusters, clusters[2:5]]), np.arange(23) < 20
    masked = test(more, kinds, clusters=ids, where=where)
    np.testing.assert_allclose(masked.p_value[0, 1], exact, atol=0.01)


def test_permutations_against_all_there_are():
    """Of ten items every way to swap ranks is tried."""
    labels = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], bool)
    first = np.array([0.1, 0.9, 0.7, 0.2, 0.8, 0.3, 0.3, 0.8, 0.6, 0.4])
    second = 100 * np.array([0.5, 0.4, 0.9, 0.1, 0.3, 0.3, 0.6, 0.8, 0.2, 0.7])
    ranks = [stats.rankdata(first), stats.rankdata(second)]
    exact = of_all_swaps(ranks, labels, np.arange(10))
    assert 0.01 < exact < 0.5

    # Two items more that are masked, the first model again in another unit, and one undefined.
    scores = np.stack([first, second, np.log(first), first])
    scores[3, 7] = np.nan
    scores = np.concatenate([scores[:, :4], np.full((4, 2), np.nan), scores[:, 4:]], axis=1)
    kinds, where = np.insert(labels, [4, 4], [False, True]), np.arange(12) // 2 != 2
    found = jm.permutation_test(jm.roc_auc, scores, kinds, where=where, key=KEY, n_resamples=20_000)
    for value in (found.p_value, found.difference):
        assert np.isnan(value[3]).all()
        assert np.isnan(value[:, 3]).all()
    assert np.isnan(found.estimate[3])
    found = jax.tree.map(lambda x: x[:3] if x.ndim == 1 else x[:3, :3], found)
    error = np.sqrt(exact * (1 - exact) / 20_000)
    np.testing.assert_allclose(found.p_value[0, 1], exact, atol=4 * error)
    np.testing.assert_array_equal(found.p_value, found.p_value.T)
    close(found.p_value[1, 2], found.p_value[0, 1])
    np.testing.assert_array_equal(np.diagonal(found.p_value), 1)
    assert found.p_value[0, 2] == 1
    close(found.estimate, [area(first, labels), area(second, labels), area(first, labels)])
    close(found.difference, np.subtract.outer(*[np.asarray(found.estimate)] * 2))


def test_equal_values_that_are_rounded_apart_do_not_differ(x64):
    """Both average precisions are 11 / 42, of sums in another order."""
    first, second = [2, 5, 4, 1, 7, 3, 8, 9, 6, 10], [6, 1, 4, 5, 7, 2, 8, 9, 3, 10]
    scores, labels = np.array([first, second], float), np.arange(10) < 3
    found = jm.permutation_test(jm.average_precision, scores, labels, key=KEY, n_resamples=99)
    assert found.difference[0, 1] == 0
    assert found.p_value[0, 1] == 1


def test_no_items():
    scores, none = np.zeros((2, 0)), np.zeros(0, int)
    with pytest.warns(UserWarning, match="undefined"):
        found = jm.permutation_test(jm.roc_auc, scores, none, key=KEY, n_resamples=9)
    assert np.isnan(found.p_value[0, 1])
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    assert jm.slices(recall, scores, none, none, threshold="global").names == ()
    empty = jm.permutation_test(jm.roc_auc, np.zeros((2, 0)), none, clusters=none, key=KEY)
    assert np.isnan(empty.p_value).all()
    with pytest.raises(ValueError, match="folds must be one or more"):
        jm.fold_interval(jm.roc_auc, scores, none, none)


def test_ranks_of_many_items_stay_apart():
    """float32 holds the integers up to 2^24, which are the ranks of half as many items."""
    for n, dtype in ((2**23, "float32"), (2**23 + 2, "float64")):
        items = Items(jax.ShapeDtypeStruct((2, n), "float32"), jax.ShapeDtypeStruct((n,), bool))
        assert jax.eval_shape(_permutation._ranks, items).dtype == dtype


def test_permutations_are_of_ranks(data):
    scores, labels = data[0][:2], data[1]
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    with pytest.raises(ValueError, match=r"for the scores of model 0 .* jm\.bootstrap"):
        jm.permutation_test(threshold, scores, labels, key=KEY, n_resamples=10)
    found = jm.permutation_test(jm.roc_auc, 2**scores, labels, key=KEY, n_resamples=10)
    close(found.estimate, jm.roc_auc(scores, labels))


@pytest.mark.parametrize(("models", "undefined"), [(2, 1), (3, 0)])
def test_permutations_beside_a_model_without_a_value(models, undefined, data):
    scores, others = np.array(data[0][:models]), np.arange(models) != undefined
    expected = jm.permutation_test(jm.roc_auc, scores, data[1], key=KEY, n_resamples=10)
    scores[undefined, 7] = np.nan
    with pytest.warns(UserWarning, match=f"model {undefined}"):
        found = jm.permutation_test(jm.roc_auc, scores, data[1], key=KEY, n_resamples=10)
    for name in ("estimate", "difference", "p_value"):
        value = np.asarray(getattr(found, name))
        assert np.isnan(value[undefined]).all()
        of_others = np.ix_(*[others] * value.ndim)
        np.testing.assert_allclose(value[of_others], getattr(expected, name)[of_others])


def test_permutations_of_ranks_in_double_precision(data, monkeypatch):
    expected = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    whole = _permutation._ranks
    monkeypatch.setattr(_permutation, "_ranks", lambda items: in_double_precision(whole(items)))
    found = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@double_program()
def in_double_precision(ranks):
    """Ranks that float32 does not tell apart."""
    return ranks.astype("float64") - 2.0**30
