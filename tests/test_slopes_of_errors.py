"""Derivatives of standard errors and intervals in the weights, at their kinks and edges."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics.inference._influence.covariance import covariance_of
from jaxmetrics.inference._influence.heavy_negatives import in_steps
from jaxmetrics.inference._intervals.ranges import range_of

pytestmark = [
    pytest.mark.usefixtures("x64"),
    pytest.mark.filterwarnings("ignore:there :UserWarning", "ignore:only :UserWarning"),
]
N = 24
RNG = np.random.default_rng(5)
LABELS, WEIGHTS = np.arange(N) % 3 == 0, RNG.random(N) + 0.4
SCORES = RNG.normal(size=N) + LABELS
ONE = np.arange(N) == np.argsort(SCORES)[N // 2]
DATA = {
    "ordinary": (SCORES, LABELS),
    "perfect": (SCORES + 10 * LABELS, LABELS),
    "constant": (np.zeros(N), LABELS),
    "one positive": (SCORES, ONE),
    "one negative": (SCORES, ~ONE),
}
CLUSTERS = {"clusters": np.arange(N) // 2}


def of_values(function, **options):
    """In place of a metric: of the scores, whose labels do not count."""
    return lambda scores, labels, weights: function(scores, weights=weights, **options)


def powered(scores, labels, weights):
    """Of the proxy, in place of weights; few labels of a class leave the error unknown."""
    labelled = np.arange(N) % 4 != 1
    return jm.prediction_powered_interval(
        jm.roc_auc, scores, labels, weights / 2, labelled=labelled
    )


interval = partial(jm.confidence_interval, jm.roc_auc)
FUNCTIONS = {
    "error": partial(jm.standard_error, jm.roc_auc),
    "error of clusters": partial(jm.standard_error, jm.roc_auc, **CLUSTERS),
    "wald": partial(interval, method="wald"),
    "logit": partial(interval, method="logit"),
    "closed form": interval,
    "of average precision": partial(jm.confidence_interval, jm.average_precision),
    "of recall": partial(jm.confidence_interval, partial(jm.recall_at_fpr, max_fpr=0.3)),
    "of clusters": partial(interval, **CLUSTERS),
    "of precision by clusters": partial(jm.confidence_interval, jm.average_precision, **CLUSTERS),
    "operating point": partial(jm.operating_point, threshold=0.3),
    "operating point at a recall": partial(jm.operating_point, min_recall=0.5),
    "operating point elsewhere": partial(jm.operating_point, threshold=0.3, prevalence=0.1),
    "operating point at an FPR": partial(jm.operating_point, max_fpr=0.2),
    "with a proxy": powered,
    "mean": of_values(jm.mean_interval),
    "mean of clusters": of_values(jm.mean_interval, **CLUSTERS),
}
FAST = ("error of clusters", "wald", "mean")


@pytest.mark.parametrize("name", [marked(name, fast=name in FAST) for name in FUNCTIONS])
def test_slopes_are_finite_where_values_are(name):
    """Also those of an estimate whose error is NaN or 0, in reverse mode."""

    def of(weights, scores, labels):
        return jax.tree.leaves(FUNCTIONS[name](scores, labels, weights=weights))

    @jax.jit
    def derivatives(*arrays):
        return of(*arrays), jax.jacfwd(of)(*arrays), jax.jacrev(of)(*arrays)

    for kind, data in DATA.items():
        for value, forward, backward in zip(*derivatives(WEIGHTS, *data), strict=True):
            if np.isfinite(value):
                assert np.isfinite(backward).all(), kind
                np.testing.assert_allclose(forward, backward, rtol=1e-6, atol=1e-9, err_msg=kind)


@pytest.mark.parametrize("name", ["error of clusters", "mean"])
def test_slopes_at_equal_weights_are_finite_differences(name):
    """Where the largest share, which is treated apart, is that of all items or clusters."""

    @jax.jit
    def of(weights):
        return jax.tree.leaves(FUNCTIONS[name](SCORES, LABELS, weights=weights))[-1]

    slopes = jax.jit(jax.grad(of))(np.ones(N))
    along = np.random.default_rng(1).normal(size=N)
    expected = (of(1 + 1e-5 * along) - of(1 - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(slopes @ along, expected, rtol=1e-6)


OF_MEANS = {
    "mean": FUNCTIONS["mean"],
    "mean of clusters": FUNCTIONS["mean of clusters"],
    "compared": lambda scores, labels, weights: jm.compare_means(
        jnp.stack([scores, scores**2]), weights=weights
    ),
}


@pytest.mark.parametrize("name", OF_MEANS)
def test_slopes_of_means_in_a_weight_of_0_are_those_in_a_small_one(name):
    """They depend on the value, which is none where it is NaN."""
    undefined = np.arange(N) == 8
    values = np.where(undefined, np.nan, SCORES)

    @jax.jit
    @jax.jacrev
    def slopes(weights):
        found = OF_MEANS[name](values, LABELS, weights=weights)
        if name == "compared":
            return jnp.stack([found.difference[0, 1], found.low[0, 1], found.high[0, 1]])
        return jnp.stack([found.estimate, found.low, found.high])

    without = np.isin(np.arange(N), [3, 7, 12])
    of_none, of_small = (
        slopes(np.where(undefined, 0, np.where(without, x, WEIGHTS))) for x in (0, 1e-9)
    )
    assert np.isfinite(of_none).all()
    np.testing.assert_allclose(of_none, of_small, rtol=1e-6, atol=1e-8)


OF_ROWS = (
    "wald",
    "of average precision",
    "of recall",
    "of clusters",
    "of precision by clusters",
)


@pytest.mark.parametrize("name", [marked(name, fast=name in OF_ROWS[:2]) for name in OF_ROWS])
def test_slopes_beside_a_row_without_a_class(name):
    """In reverse mode 0 times NaN of that row would be NaN, as the rows share their weights."""
    labels, along = np.stack([LABELS, LABELS & False]), np.random.default_rng(1).normal(size=N)

    def low(weights):
        return FUNCTIONS[name](SCORES, labels, weights=weights).low[0]

    slopes = jax.jit(jax.grad(low))(WEIGHTS)
    expected = (low(WEIGHTS + 1e-5 * along) - low(WEIGHTS - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(slopes @ along, expected, rtol=1e-6)


def test_slopes_of_the_errors_of_compared_average_precisions():
    """They hold a slope over a step, which the derivative is not to take for a constant."""
    scores, along = np.stack([SCORES, -(SCORES**2)]), np.random.default_rng(1).normal(size=N)

    @jax.jit
    def found(weights):
        items = Items(scores, LABELS, weights=weights)
        metric, _ = in_steps(jm.average_precision, items, range_of(jm.average_precision))
        estimate, covariance = covariance_of(metric, items, None)
        return jnp.append(estimate, covariance.total)

    slopes = jax.jit(jax.jacrev(found))(WEIGHTS)
    expected = (found(WEIGHTS + 1e-5 * along) - found(WEIGHTS - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(slopes @ along, expected, rtol=1e-6, atol=1e-9)
