"""Models that are nearly equal: errors of differences are far below those of the models."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm

pytestmark = pytest.mark.usefixtures("x64")
N = 90_000
LABELS = np.arange(N) % 3 == 0
SCORES = np.argsort(np.argsort(np.random.default_rng(8).permutation(N) + N / 2 * LABELS)) * 1.0


def _with_a_pair_swapped(i=1000):
    """The scores in which a positive and the next negative above it change places."""
    order, swapped = np.argsort(SCORES, kind="stable"), SCORES.copy()
    below = np.flatnonzero(LABELS[order[:-1]] & ~LABELS[order[1:]])[i]
    swapped[order[[below, below + 1]]] = SCORES[order[[below + 1, below]]]
    return swapped


MODELS = np.stack([_with_a_pair_swapped(), SCORES])
compared = partial(jm.compare, jm.roc_auc)


def in_a_slice(models, labels):
    found = jm.slices(jm.roc_auc, models, labels, np.zeros(N, int)).models
    return jax.tree.map(lambda x: x[0] if np.ndim(x) == 3 else x, found)


WAYS = {
    "numpy": compared,
    "weights": partial(compared, weights=np.full(N, 2.0)),
    "clusters": partial(compared, clusters=np.arange(N)),
    "jit": jax.jit(compared),
    "slice": in_a_slice,
}


@pytest.mark.parametrize("way", [marked(x, fast=x in ("numpy", "slice")) for x in WAYS])
def test_two_models_that_differ_in_a_pair(way):
    """The difference is 1 / (n0 n1), as is its error of each class. The error was 0."""
    found = WAYS[way](MODELS, LABELS)
    step = 1 / (np.sum(LABELS) * np.sum(~LABELS))
    np.testing.assert_allclose(found.difference[0, 1], step, rtol=1e-5)
    np.testing.assert_allclose(found.standard_error[0, 1], np.sqrt(2) * step, rtol=1e-5)
    assert found.low[0, 1] < 0 < found.high[0, 1]
    assert 0.9 < found.p_value[0, 1] < 1
    if way != "slice":
        np.testing.assert_allclose(found.chi2, 0.5, rtol=1e-3)


def test_copies_of_a_model_have_no_error():
    found = compared(np.stack([SCORES, SCORES**3, SCORES / 7]), LABELS)
    assert not np.any(found.standard_error)
    assert (found.p_value == 1).all()


@pytest.mark.parametrize("clusters", [None, np.arange(1000)], ids=["items", "clusters"])
def test_means_that_differ_by_little_in_each_item(clusters):
    """As log losses of two precisions do. The error was 0, with a warning of equal differences."""
    rng = np.random.default_rng(3)
    values, change = 5 * rng.normal(size=1000) ** 2, 1e-7 * rng.normal(size=1000)
    found = jm.compare_means(np.stack([values + change, values]), clusters=clusters)
    expected = np.std(change, ddof=1) / np.sqrt(1000)
    np.testing.assert_allclose(found.standard_error[0, 1], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:models 0 and 1 differ by the same amount:UserWarning")
def test_means_that_differ_by_the_same_amount():
    """Their difference has no variance but that of rounding, wherever the values lie."""
    values = 1000 * np.random.default_rng(3).normal(size=1000)
    for shift in (0, 1e6):
        found = jm.compare_means(np.stack([values - values.mean() + shift + 1, values + shift]))
        assert not np.any(found.standard_error)


@pytest.mark.parametrize("way", ["numpy", "clusters", "slice"])
def test_a_pair_beside_another_model_that_is_far(way):
    """The errors of the pair are those of two models, by NumPy."""
    other = SCORES + N * np.random.default_rng(4).random(N)
    found = WAYS[way](np.stack([other, *MODELS]), LABELS)
    alone = WAYS[way](MODELS, LABELS)
    for name in ("difference", "standard_error", "p_value"):
        np.testing.assert_allclose(
            getattr(found, name)[1, 2], getattr(alone, name)[0, 1], rtol=1e-6, err_msg=name
        )
    assert (found.simultaneous_low <= found.low).all()
    assert found.simultaneous_p_value[1, 2] >= found.p_value[1, 2]


def _are_compared_together(found):
    """Simultaneous limits are wider than those of a pair."""
    apart = found.simultaneous_high - found.high
    assert (apart > 0.1 * found.standard_error)[~np.eye(3, dtype=bool)].all()


def test_three_models_that_differ_in_pairs():
    """No pair counted in the largest of the statistics: the first was significantly worse."""
    found = compared(np.stack([SCORES, MODELS[0], _with_a_pair_swapped(2000)]), LABELS)
    _are_compared_together(found)
    assert found.best_set.all()
    np.testing.assert_allclose(found.chi2, 1, rtol=1e-3)
    assert found.chi2_df == 2


def test_three_means_that_are_nearly_equal():
    rng = np.random.default_rng(0)
    values, changes = 5 * rng.normal(size=1000) ** 2, rng.normal(size=(2, 1000))
    found = jm.compare_means(np.stack([values, *(values + 1e-7 * changes)]))
    _are_compared_together(found)
    assert found.best_set.all()
    expected = jm.compare_means(np.stack([0 * values, *changes]))
    for name in ("simultaneous_p_value", "chi2", "chi2_df"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-5, err_msg=name
        )


def test_a_pair_that_is_too_near_beside_another_model():
    """Its direction has no digits beside that of the other model: limits are Bonferroni's."""
    other = SCORES + N * np.random.default_rng(4).random(N)
    found = compared(np.stack([other, *MODELS]), LABELS)
    _are_compared_together(found)
    np.testing.assert_array_equal(found.best_set, [False, True, True])


@pytest.mark.filterwarnings("ignore:the metric of model 1 is undefined:UserWarning")
def test_a_pair_beside_a_model_without_a_value():
    found = compared(np.stack([MODELS[0], np.full(N, np.nan), SCORES]), LABELS)
    assert found.best_set.all()
    np.testing.assert_allclose(found.chi2, 0.5, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:a comparison rests on:UserWarning")
def test_a_constant_model_beside_perfect_ones_may_be_the_best():
    """Few items: its p-value is 0.6. Models without variance have a raised error."""
    labels = np.array([0, 0, 0, 1, 1])
    found = compared(np.stack([labels, 0 * labels, 2 * labels]), labels)
    assert found.p_value[0, 1] > 0.5
    assert found.best_set.all()


def test_nearly_equal_means_in_a_program_have_no_error():
    """Within a program of three: the rounding of a variance was an error, and decided."""
    rng = np.random.default_rng(0)
    values, changes = 5 * rng.normal(size=200) ** 2, rng.normal(size=(2, 200))
    found = jax.jit(jm.compare_means)(np.stack([values, *(values + 1e-7 * changes)]))
    assert found.best_set.all()
    assert np.isnan(found.p_value[~np.eye(3, dtype=bool)]).all()
