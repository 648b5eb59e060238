"""Derivatives of metrics of ranked lists in the grades."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm

N = 12
RNG = np.random.default_rng(3)
SCORES, GRADES, ALONG = RNG.normal(size=N), 3 * RNG.random(N), RNG.normal(size=N)
WHERE = np.arange(N) % 5 != 1
METRICS = {
    "dcg": partial(jm.dcg, gain="exponential"),
    "ndcg": partial(jm.ndcg, gain="exponential"),
    "ndcg at 4": partial(jm.ndcg, k=4),
    "of segments": partial(jm.ndcg, segments=np.arange(N) // 4, num_segments=3),
    "of a falling gain": partial(jm.ndcg, gain=lambda grade: 1 / (1 + grade)),
    "err": partial(jm.expected_reciprocal_rank, max_grade=3),
}


@pytest.mark.parametrize("name", [marked(name, fast=name == "ndcg") for name in METRICS])
def test_slopes_are_finite_differences(name, x64):
    """In both modes; also of the ideal order, and 0 for what masked documents hold."""

    def of(grades):
        return METRICS[name](SCORES, grades, where=WHERE).sum()

    value, backward, forward = jax.jit(of), jax.jit(jax.jacrev(of)), jax.jit(jax.jacfwd(of))
    for hidden in (1.0, np.nan, 1e5):
        at, step = np.where(WHERE, GRADES, hidden), np.where(WHERE, 1e-6 * ALONG, 0)
        slopes = np.asarray(backward(at))
        np.testing.assert_array_equal(slopes[~WHERE], 0)
        np.testing.assert_allclose(forward(at), slopes, rtol=1e-9, atol=1e-12)
        expected = (value(at + step) - value(at - step)) / 2e-6
        np.testing.assert_allclose(slopes @ np.where(WHERE, ALONG, 0), expected, rtol=1e-6)
