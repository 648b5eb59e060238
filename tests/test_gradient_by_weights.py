"""The gradient with respect to weights is the influence function: variances and derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from registry import sample
from slopes_by_weights import slopes, variance

import jaxmetrics as jm

pytestmark = [pytest.mark.usefixtures("x64")]


def delong(scores, labels):
    """DeLong's variance from all pairs."""
    positive, negative = scores[labels], scores[~labels]
    wins = (positive[:, None] > negative) + (positive[:, None] == negative) / 2
    v10, v01 = wins.mean(1), wins.mean(0)
    return v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("trial", range(3))
def test_auc_equals_delong(ties, trial):
    scores, labels, _ = sample(np.random.default_rng(trial), 60, ties=ties)
    np.testing.assert_allclose(
        variance(jm.roc_auc, scores, labels), delong(scores, labels), rtol=1e-12
    )


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("trial", range(3))
def test_partial_auc_equals_its_closed_form(limit, trial):
    """Without a density: with c the quantile of the negatives at 1 - limit and S, F the shares of
    positives and of negatives above, the influence is (limit - F(s))+ of a positive and
    (S(s) - S(c)) of a negative above c, 0 of one below."""
    scores, labels, _ = sample(np.random.default_rng(trial), 60, ties=False)
    positive, negative = scores[labels], scores[~labels]

    metric = partial(jm.partial_auc, max_fpr=limit)
    above = (negative > positive[:, None]).mean(1)
    phi1 = np.maximum(limit - above, 0)
    # S(c) is the middle of the step if the limit falls on one.
    fpr, tpr, _ = jm.roc_curve(scores, labels)
    sides = np.array([limit - 1e-9, limit + 1e-9])
    at_limit = np.interp(sides, np.asarray(fpr) + 1e-13 * np.arange(len(fpr)), tpr).mean()
    caught = (positive > negative[:, None]).mean(1)
    edge = np.sort(negative)[::-1][int(np.ceil(limit * len(negative) - 1e-9)) - 1]
    phi0 = np.where(negative >= edge, caught, at_limit)
    expected = phi1.var(ddof=1) / len(phi1) + phi0.var(ddof=1) / len(phi0)
    np.testing.assert_allclose(variance(metric, scores, labels), expected, rtol=1e-9)


def test_a_row_of_one_class_adds_nothing(rng):
    """To the slopes in weights that all rows share, if its NaN is left out of the sum."""
    scores, labels, weights = sample(rng, 20)
    rows = np.stack([labels, np.zeros(20, bool), np.ones(20, bool)])
    for metric in (
        jm.roc_auc,
        partial(jm.partial_auc, max_fpr=0.4, min_tpr=0.2),
        partial(jm.recall_at_fpr, max_fpr=0.4, method="linear"),
        jm.average_precision,
    ):
        alone = jax.grad(lambda w, metric=metric: metric(scores, labels, weights=w))
        shared = jax.grad(lambda w, metric=metric: jnp.nansum(metric(scores, rows, weights=w)))
        at = jnp.asarray(weights, float)
        np.testing.assert_allclose(shared(at), alone(at), rtol=1e-12)


def test_weights_and_ties_against_finite_differences(rng):
    scores, labels, weights = sample(rng, 60)
    weights = weights.astype(float)
    for metric in (
        jm.roc_auc,
        partial(jm.partial_auc, max_fpr=0.23, min_tpr=0.1),
        partial(jm.recall_at_fpr, max_fpr=0.23, method="linear"),
        jm.average_precision,
    ):

        def value(w, metric=metric):
            return metric(scores, labels, weights=w)

        gradient = slopes(metric, scores, labels, weights)
        for i in range(0, 60, 7):
            step = 1e-6 * np.eye(60)[i]
            difference = (value(weights + step) - value(weights - step)) / 2e-6
            np.testing.assert_allclose(gradient[i], difference, rtol=1e-5, atol=1e-9)


def test_gradient_of_a_weight_that_is_zero(rng):
    """An item of weight 0 has the influence that it would have if it were added."""
    scores, labels, weights = sample(rng, 60)
    weights = weights.astype(float)
    weights[7] = 0

    def value(w):
        return jm.roc_auc(scores, labels, weights=w)

    step = 1e-7 * np.eye(60)[7]
    np.testing.assert_allclose(
        slopes(jm.roc_auc, scores, labels, weights)[7],
        (value(weights + step) - value(weights)) / 1e-7,
        rtol=1e-5,
    )


def test_gradient_of_a_first_positive_of_weight_zero():
    """By hand: of positives of weight w, 1 after a negative, the mean precision is, in the limit,
    (w + (1 + w) / (2 + w)) / (1 + w): its derivative at 0 is 1 + 1 / 4 - 1 / 2."""
    scores, labels = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 1, 0])
    found = jax.grad(lambda w: jm.average_precision(scores, labels, weights=w))(
        jnp.array([0.0, 1, 1, 1])
    )
    np.testing.assert_allclose(found, [0.75, -0.25, 0.25, 0], rtol=1e-12)


def test_second_derivatives(rng):
    scores, labels, weights = sample(rng, 12)
    direction = jnp.asarray(rng.random(12))

    @jax.jit
    @jax.value_and_grad
    def along(w):
        return jax.grad(lambda w: jm.roc_auc(scores, labels, weights=w))(w) @ direction

    at = jnp.asarray(weights, float)
    _, second = along(at)
    for i in (0, 5, 11):
        step = 1e-5 * np.eye(12)[i]
        difference = (along(at + step)[0] - along(at - step)[0]) / 2e-5
        np.testing.assert_allclose(second[i], difference, rtol=1e-5, atol=1e-9)
