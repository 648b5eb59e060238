"""Running sums of weights: their rounding, and where they must not move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._base.cumulative import running_total


@pytest.mark.parametrize("shape", [(4097,), (3, 10_000)])
def test_numpy_and_a_program_add_alike_and_an_entry_of_0_changes_no_sum(shape, x64, rng):
    weights = rng.choice([0, 1], shape) * rng.random(shape) * 10.0 ** rng.integers(-8, 8, shape)
    sums = running_total(weights)
    np.testing.assert_array_equal(jax.jit(running_total)(jnp.asarray(weights)), sums)
    np.testing.assert_allclose(sums, weights.cumsum(axis=-1), rtol=1e-12)
    rises = np.diff(sums, axis=-1)
    assert (rises >= 0).all()
    assert (rises[weights[..., 1:] == 0] == 0).all()


def test_many_equal_weights_are_no_weights(rng):
    """In turn, a million of 0.1 add up to 1e-11 too much: negatives of a limit would be beyond."""
    sums = running_total(np.full(4_000_000, 0.1))
    assert abs(sums[-1] / 400_000 - 1) < 1e-13
    scores, labels = rng.permutation(2_000_000).astype(np.float32), np.arange(2_000_000) % 2 == 0
    limits = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.9])
    recall = jm.recall_at_fpr(scores, labels, max_fpr=limits)
    weighted = jm.recall_at_fpr(scores, labels, max_fpr=limits, weights=np.full(2_000_000, 0.1))
    np.testing.assert_array_equal(weighted, recall)
