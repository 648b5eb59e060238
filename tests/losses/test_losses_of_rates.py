"""Losses of average precision and of the recall at an FPR."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_loss import sample
from jax.sharding import AxisType, PartitionSpec
from numpy.testing import assert_allclose

import jaxmetrics as jm


def _spread(scores, labels, weights):
    mean = np.average(scores[~labels], weights=weights[~labels])
    return np.sqrt(np.average((scores[~labels] - mean) ** 2, weights=weights[~labels]))


def test_average_precision_against_all_pairs(rng, x64):
    scores, labels, weights = sample(rng)
    above = (scores - scores[:, None]) / (0.3 * _spread(scores, labels, weights))
    above = 1 / (1 + np.exp(-above))
    np.fill_diagonal(above, 1)
    precision = (above @ (weights * labels)) / (above @ weights)
    expected = 1 - np.average(precision[labels], weights=weights[labels])
    found = jm.losses.average_precision_loss(scores, labels, weights=weights, temperature=0.3)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("weight", [1e-20, 1e-30, 0.0])
def test_a_tiny_weight_has_the_slopes_of_none(weight):
    """Though the square of the weight above the item is too small for a float."""

    def loss(scores, weights):
        return jm.losses.average_precision_loss(scores, [1, 0, 1], weights=weights)

    slopes = jax.grad(loss, argnums=(0, 1))(jnp.array([200.0, 100, 0]), jnp.array([weight, 1, 1]))
    assert_allclose(slopes[0], 0)
    assert_allclose(slopes[1], [-0.75, 0.25, -0.25], rtol=1e-6)


def test_devices_do_not_lose_slopes_to_the_pair_of_an_item_with_itself():
    """Where one negative has nearly all weight, a slope in places is multiplied by 6e7."""
    scores = np.float32([-1.05, -0.36, 0.81, -1.25, -1.28, 1.07])
    weights = np.float32([2e9, 7e9, 7e-3, 2e-4, 4e3, 1e-3])
    labels = np.array([1, 0, 1, 0, 1, 0])
    mesh = jax.make_mesh((2,), ("items",), axis_types=(AxisType.Auto,))

    def slopes(scores, labels, weights, **axis):
        loss = partial(jm.losses.average_precision_loss, labels=labels, weights=weights, **axis)
        return jax.grad(loss)(scores)

    parts = PartitionSpec("items")
    of_parts = jax.shard_map(
        partial(slopes, axis_name="items"), mesh=mesh, in_specs=parts, out_specs=parts
    )
    assert_allclose(slopes(scores, labels, weights), 0)
    assert_allclose(jax.jit(of_parts)(scores, labels, weights), 0)


def test_all_positives_are_found_where_every_negative_may_pass():
    def loss(scores):
        return jm.losses.recall_at_fpr_loss(
            scores, [1, 0, 1, 0], max_fpr=1.0, temperature=0.001, band=0
        )

    value, gradient = jax.value_and_grad(loss)(jnp.array([0.9, 0.8, 0.3, 0.1]))
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)
    value, gradient = jax.value_and_grad(loss)(jnp.array([0.9, 0.8, jnp.inf, 0.1]))
    assert np.isnan(value)
    assert np.isnan(gradient).all()
    cvar = jm.losses.cvar_partial_auc
    # The first threshold of a positive is its loss with the lowest negative, of all that count.
    scores, labels, where = [-5.0, 0.9, 0.4, 0.3, -9.0], [1, 1, 0, 0, 0], [True] * 4 + [False]
    _, state = cvar.apply(
        cvar.init(5), scores, labels, range(5), max_fpr=1.0, step_size=1e-9, where=where
    )
    np.testing.assert_allclose(state.thresholds[:2], [(1 + 5.3) ** 2, (1 - 0.6) ** 2], rtol=1e-5)


def test_recall_against_a_sum_over_ranks(rng, x64):
    scores, labels, weights = sample(rng)
    negatives, shares = scores[~labels], weights[~labels] / weights[~labels].sum()
    order = np.argsort(-negatives)
    width = 0.5 * 0.2 * 0.8
    upto = np.cumsum(shares[order])
    density = 1 / (1 + np.exp(-(0.2 - np.append(0, upto)) / width))
    parts = density[:-1] - density[1:]
    threshold = parts @ negatives[order] / parts.sum()
    missed = (threshold - scores[labels]) / (0.4 * _spread(scores, labels, weights))
    expected = np.average(1 / (1 + np.exp(-missed)), weights=weights[labels])
    found = jm.losses.recall_at_fpr_loss(
        scores, labels, weights=weights, max_fpr=0.2, temperature=0.4
    )
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("max_fpr", [0.04, 0.25])
def test_rates_tend_to_the_metrics(max_fpr, rng, x64):
    scores, labels, weights = sample(rng)
    for w in (np.ones(len(labels)), weights):
        cold = {"weights": w, "temperature": 1e-9}
        found = jm.losses.recall_at_fpr_loss(scores, labels, max_fpr=max_fpr, band=0.0, **cold)
        recall = jm.recall_at_fpr(scores, labels, weights=w, max_fpr=max_fpr)
        assert_allclose(found, 1 - recall, atol=1e-12)
        found = jm.losses.average_precision_loss(scores, labels, **cold)
        assert_allclose(found, 1 - jm.average_precision(scores, labels, weights=w), atol=1e-9)


def test_a_limit_that_weights_reach_is_reached(rng):
    """Though their sums round: the threshold is the metric's, at each step of the FPR."""
    scores, labels = rng.permutation(80).astype(np.float32), np.arange(80) % 2 == 0
    given = {"weights": np.full(80, 0.7, np.float32), "max_fpr": np.arange(1, 40) / 40}
    of_limits = jax.vmap(
        lambda x: jm.losses.recall_at_fpr_loss(
            scores, labels, weights=given["weights"], max_fpr=x, band=0.0, temperature=1e-6
        )
    )
    recall = jm.recall_at_fpr(scores, labels, **given)
    assert_allclose(of_limits(given["max_fpr"]), 1 - recall, atol=1e-6)


def test_slope_in_the_weight_of_a_positive_of_weight_0_far_above_the_others(x64):
    """It counts as an item of little weight, which is above all others: its precision is 1."""
    scores, labels = np.array([1e4, 0.9, 0.2, 0.5, 0.3]), np.array([1, 1, 0, 0, 1])
    loss = jax.jit(lambda x: jm.losses.average_precision_loss(scores, labels, weights=x))
    weights = jnp.array([0.0, 1, 1, 1, 2])
    rise = (loss(weights.at[0].set(1e-6)) - loss(weights)) / 1e-6
    np.testing.assert_allclose(jax.grad(loss)(weights)[0], rise, rtol=1e-5)


def test_nothing_is_missed_at_an_fpr_of_1(rng):
    scores, labels, _ = sample(rng)
    loss = partial(jm.losses.recall_at_fpr_loss, scores, labels)
    assert loss(max_fpr=1.0) == 0 < loss(max_fpr=0.999)
