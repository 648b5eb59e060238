"""Losses of nothing, masks, infinite scores, and what is refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_loss import EVERY_LOSS, LOSSES, compiled, sample
from fast import in_turn, marked
from numpy.testing import assert_allclose

import jaxmetrics as jm


@EVERY_LOSS
def test_without_pairs_it_is_zero(name, rng):
    scores, labels, _ = map(jnp.asarray, sample(rng))
    ones, all_of = jnp.ones(len(labels)), jnp.ones(len(labels), bool)
    for case in (
        (jnp.zeros_like(labels), ones, all_of),
        (jnp.ones_like(labels), ones, all_of),
        (labels, ones, ~all_of),
        (labels, 0 * ones, all_of),
    ):
        value, gradient = compiled(name)(scores, *case)
        assert value.dtype == gradient.dtype == np.float32
        assert value == 0
        assert not gradient.any()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *in_turn(("squared_hinge", "approx_ndcg"), ((0,), (2, 0))),
        *(marked("average precision", x, fast=False) for x in ((0,), (2, 0))),
    ],
)
def test_no_items(name, shape):
    loss = LOSSES.get(name, jm.losses.approx_ndcg_loss)
    assert not loss(jnp.zeros(shape), jnp.zeros(0, int)).any()


@pytest.mark.parametrize("name", ["squared_hinge", marked("sigmoid", fast=False), "approx_ndcg"])
def test_no_rows(name):
    loss = LOSSES.get(name, jm.losses.approx_ndcg_loss)
    empty, labels = jnp.zeros((2, 0, 4)), jnp.zeros((2, 0, 4), int)
    value, pull_back = jax.vjp(partial(loss, labels=labels), empty)
    assert value.shape == (2, 0)
    assert pull_back(value)[0].shape == empty.shape
    assert jax.vmap(loss)(empty[0], labels[0]).shape == (0,)


@EVERY_LOSS
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_weights_of_64_bits_are_not_cut(name, kind, rng):
    """JAX would cut them to 32 bits, where those that are not negative then have a wrong value."""
    scores, labels, _ = sample(rng)
    weights = (2**31 * rng.integers(1, 64, len(labels))).astype(kind)
    loss = partial(LOSSES[name], scores, labels)
    expected = loss(weights=weights.astype(np.float32))
    assert loss(weights=weights) == expected
    assert_allclose(jax.jit(lambda: loss(weights=weights))(), expected, rtol=1e-6)


def test_what_is_refused_is_nan_if_traced(rng):
    scores, labels, weights = sample(rng, batch=(4,))
    everything = np.ones(len(labels[0]), bool)
    expected = compiled("squared_hinge")(scores[0], labels[0], weights[0], everything)
    labels = labels.astype(int)
    labels[1, 3], weights[2, 4], scores[3, 5], labels[3] = -1, -0.5, np.nan, 0

    def of(scores, labels, weights):
        values = jm.losses.pairwise_auc_loss(scores, labels, weights=weights)
        return jnp.nansum(values), values

    slopes_of = jax.jit(jax.value_and_grad(of, has_aux=True))
    (_, values), gradient = slopes_of(scores, labels, weights)
    assert_allclose(values[0], expected[0], rtol=1e-6)
    assert_allclose(gradient[0], expected[1], atol=1e-6)
    assert np.isnan(values[1:]).all()
    assert not gradient[1:].any()


@EVERY_LOSS
def test_masked_items_do_not_leak(name, rng):
    scores, labels, weights = sample(rng)
    where = rng.random(len(labels)) < 0.7
    where[:2] = True
    bad = np.where(where, scores, rng.choice([np.nan, np.inf, -np.inf, 1e30], len(labels)))
    expected = compiled(name)(scores, labels, weights, where)
    with_bad = compiled(name)(bad, labels, weights, where)
    assert_allclose(with_bad[0], expected[0], rtol=1e-6)
    assert_allclose(with_bad[1], expected[1], rtol=1e-5, atol=1e-7)
    assert not np.asarray(with_bad[1])[~where].any()
    assert np.isnan(compiled(name)(np.where(where, np.nan, scores), labels, weights, where)[0])


@EVERY_LOSS
def test_an_infinite_score_makes_loss_and_gradient_nan(name, rng):
    """Also with weight 0, and without a class, where the loss would be 0."""
    scores, labels, weights = sample(rng)
    where = np.arange(len(labels)) > 2
    infinite = np.where(np.arange(len(labels)) == 5, np.inf, scores)
    for given in (
        (infinite, labels, weights),
        (infinite, labels, np.where(infinite == np.inf, 0, weights)),
        (-infinite, labels & False, weights),
    ):
        value, gradient = compiled(name)(*given, where)
        assert np.isnan(value)
        np.testing.assert_array_equal(np.isnan(gradient), where)
        assert not np.asarray(gradient)[~where].any()


# Bad input.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_fpr": 0.0}, "max_fpr must be in"),
        ({"max_fpr": 5}, "write fractions"),
        ({"max_fpr": 0.1, "min_tpr": 1.0}, "min_tpr must be in"),
        ({"max_fpr": 0.1, "temperature": 0.0}, "temperature must be in"),
        ({"max_fpr": 0.1, "surrogate": "hinge", "margin": -1.0}, "margin must be in"),
        ({"max_fpr": 0.1, "surrogate": "hinge", "temperature": 1.0}, "write margin="),
        ({"max_fpr": 0.1, "margin": 1.0}, "write temperature="),
        ({"max_fpr": 0.1, "surrogate": "huber"}, "must be one of 'hinge'"),
        ({"max_fpr": 0.1, "band": -0.5}, "band must be in"),
        ({"max_fpr": [0.1, 0.2]}, "max_fpr must be a number"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jm.losses.partial_auc_loss([0.1, 0.2], [0, 1], **options)


@EVERY_LOSS
def test_bad_labels(name):
    loss = LOSSES[name]
    with pytest.raises(ValueError, match="labels must be bool or 0 and 1, got -1"):
        loss([0.1, 0.2], [-1, 1])
    with pytest.raises(ValueError, match="last axis is the items and must agree"):
        loss([0.1, 0.2], [0, 1, 1])
