"""The cross-entropy of masked and of narrow scores."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm


def test_cross_entropy_by_hand_and_without_what_is_masked(x64):
    scores, labels = jnp.array([0.5, 0.2, jnp.nan]), jnp.array([1, 0, 1])
    where = jnp.array([True, True, False])
    cross_entropy = partial(jm.training.cross_entropy, labels=labels, where=where)
    value, gradient = jax.value_and_grad(cross_entropy)(scores)
    assert_allclose(value, (np.log1p(np.exp(-0.5)) + np.log1p(np.exp(0.2))) / 2, rtol=1e-14)
    share = 1 / (1 + np.exp([-0.5, -0.2]))
    assert_allclose(gradient, [*((share - [1, 0]) / 2), 0], rtol=1e-14)
    assert np.isfinite(jax.grad(lambda shift: cross_entropy(scores + shift))(0.0))
    assert_allclose(
        cross_entropy(scores.astype(jnp.float32), weights=np.full(3, 1e60)), value, 1e-6
    )
    of_limits = jax.value_and_grad(jm.training.cross_entropy)
    value, gradient = of_limits(jnp.array([np.inf, -np.inf, 0.0]), labels)
    assert_allclose(value, np.log(2) / 3, rtol=1e-14)
    assert_allclose(gradient, [0, 0, -1 / 6], rtol=1e-14)
    weighted = cross_entropy(scores, weights=jnp.array([3.0, 1.0, 1e300]))
    assert_allclose(weighted, (3 * np.log1p(np.exp(-0.5)) + np.log1p(np.exp(0.2))) / 4, rtol=1e-14)
    assert np.isnan(cross_entropy(scores, weights=jnp.array([0.0, 0.0, 1.0])))
    of_weights = jax.grad(lambda weights: cross_entropy(scores, weights=weights))
    near, exact = (of_weights(jnp.array([1.0, x, 1.0])) for x in (1e-12, 0.0))
    assert_allclose(exact, near, atol=1e-11)
    assert np.isfinite(cross_entropy(scores.at[1].set(np.inf), weights=jnp.array([1.0, 0, 1])))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_cross_entropy_of_narrow_scores_is_that_of_the_same_in_float32(dtype, rng):
    scores, labels = jnp.asarray(rng.normal(size=100_000), dtype), rng.random(100_000) < 0.1
    expected = jm.training.cross_entropy(scores.astype(jnp.float32), labels)
    assert expected.dtype == jnp.float32
    for weights in (None, np.full(100_000, 3.0), np.full(100_000, 1e28)):
        found = jm.training.cross_entropy(scores, labels, weights=weights)
        assert_allclose(found, expected, rtol=1e-5)


def test_whole_weights_of_64_bits_are_not_cut(rng):
    scores, labels = np.float32(rng.normal(size=50)), rng.random(50) < 0.4
    weights = 2**31 * rng.integers(1, 64, 50)
    expected = jm.training.cross_entropy(scores, labels, weights=np.float32(weights))
    for kind in (np.int64, np.uint64):
        found = jm.training.cross_entropy(scores, labels, weights=weights.astype(kind))
        assert found == expected


def test_cross_entropy_refuses_what_losses_refuse():
    with pytest.raises(ValueError, match="must agree"):
        jm.training.cross_entropy(np.ones((4, 1)), [1, 0, 1, 0])
    with pytest.raises(ValueError, match="labels must be bool or 0 and 1"):
        jm.training.cross_entropy(np.ones(2), [1, -1])
    assert jm.training.cross_entropy([1, 2], [1, 0]) > 0  # whole numbers are scores
