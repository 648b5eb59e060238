"""Only the ratios of weights count, and gains are relative: values do not depend on the unit."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics import losses

RNG = np.random.default_rng(0)
LABELS = np.arange(40) % 3 == 0
MODELS = RNG.normal(size=(2, 40)).round(1) + LABELS
SCORES = MODELS[0]
WEIGHTS = RNG.random(40) + 0.1
PARTIAL = partial(jm.partial_auc, max_fpr=0.3)
FEW = {"key": jax.random.key(0), "n_resamples": 20}
ERRORS = {
    "auc": partial(jm.standard_error, jm.roc_auc, SCORES, LABELS),
    "partial": partial(jm.confidence_interval, PARTIAL, SCORES, LABELS),
    "average precision": partial(jm.standard_error, jm.average_precision, SCORES, LABELS),
    "compare": partial(jm.compare, jm.roc_auc, MODELS, LABELS),
    "bootstrap": partial(jm.bootstrap, jm.roc_auc, SCORES, LABELS, **FEW),
    "partial bootstrap": partial(jm.bootstrap, PARTIAL, SCORES, LABELS, **FEW),
}


def numbers(found):
    leaves = jax.tree.leaves(vars(found) if dataclasses.is_dataclass(found) else found)
    return [np.asarray(x) for x in leaves if not isinstance(x, str)]


@pytest.mark.parametrize("name", [marked(x, fast=x != "partial bootstrap") for x in ERRORS])
def test_errors_do_not_depend_on_the_scale_of_weights(name):
    compute = ERRORS[name]
    expected = numbers(compute(weights=WEIGHTS))
    for scale in (2.0**-900, 2.0**900):
        for x, y in zip(numbers(compute(weights=scale * WEIGHTS)), expected, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("scale", [1e-310, 1e300])
def test_weights_that_cannot_be_added_or_multiplied_are_refused(scale):
    calls = {
        "metric": partial(jm.roc_auc, SCORES, LABELS),
        "predictions": partial(jm.accuracy, LABELS, LABELS),
        "mean": partial(jm.bootstrap_mean, SCORES, **FEW),
        "loss": partial(losses.pairwise_auc_loss, SCORES, LABELS),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=r"highest of weights must be from.*only their ratios"):
            call(weights=scale * WEIGHTS)
    with pytest.raises(ValueError, match="the highest of amounts must be from"):
        jm.recall_at_fpr(SCORES, LABELS, max_fpr=0.2, amounts=scale * WEIGHTS)
    masked = np.arange(40) < 9  # does not count
    calls["metric"](weights=np.where(masked, scale, WEIGHTS), where=~masked)


def test_traced_weights_that_cannot_be_added_or_multiplied_give_nan(x64):
    for function in (
        partial(jm.roc_auc, SCORES, LABELS),
        partial(jm.accuracy, LABELS, ~LABELS),
        partial(losses.pairwise_auc_loss, SCORES, LABELS),
    ):
        traced = jax.jit(lambda weights, function=function: function(weights=weights))
        assert np.isnan(traced(1e300 * WEIGHTS))
        np.testing.assert_allclose(traced(1e200 * WEIGHTS), function(weights=WEIGHTS), rtol=1e-12)


def test_weights_that_single_precision_cannot_hold_are_refused():
    """Processors take subnormal numbers for 0."""
    tiny = (1e-36 * WEIGHTS).astype("float32")
    with pytest.raises(ValueError, match="must be from 1e-28 to 1e"):
        jm.roc_auc(SCORES, LABELS, weights=tiny)
    assert np.isnan(jax.jit(jm.roc_auc)(SCORES, LABELS, weights=tiny))
    for function in (jm.score_table, losses.pairwise_auc_loss):
        with pytest.raises(ValueError, match="must be from 1e-28 to 1e"):
            function(SCORES, LABELS, weights=1e-60 * WEIGHTS)


def test_segments_may_differ_in_the_scale_of_weights():
    segments = np.arange(40) // 20
    compute = partial(jm.segment_partial_auc, SCORES, LABELS, segments=segments, max_fpr=0.4)
    scaled = np.where(segments == 0, 2.0**-900, 2.0**500) * WEIGHTS
    np.testing.assert_array_equal(compute(weights=scaled), compute(weights=WEIGHTS))


@pytest.mark.parametrize(
    "loss",
    [losses.pairwise_auc_loss, marked(losses.average_precision_loss, fast=False)],
)
def test_losses_do_not_depend_on_the_scale_of_weights(loss):
    compute, weights = partial(loss, SCORES, LABELS), WEIGHTS.astype("float32")
    for scale in (2.0**-80, 2.0**80):
        assert compute(weights=scale * weights) == compute(weights=weights) > 0


@pytest.mark.slow
def test_a_loss_of_high_grades():
    """2^128 is beyond single precision."""
    scores = np.arange(16.0).reshape(2, 8) * 7 % 16
    grades = np.array([[0, 1, 4, 2, 0, 0, 3, 1], [0, 4, 1, 1, 2, 3, 0, 0]])
    loss = partial(losses.approx_ndcg_loss, gain="exponential", temperature=1e-3)
    for more in (20, 200, 1000):
        expected = 1 - jm.ndcg(scores, grades + more, gain="exponential")
        np.testing.assert_allclose(loss(scores, grades + more), expected, atol=1e-6)
    apart = grades + np.array([[0], [300]])
    both = loss(scores.ravel(), apart.ravel(), segments=np.arange(16) // 8)
    np.testing.assert_array_equal(both, loss(scores, apart))
    slope = jax.grad(lambda s: jnp.sum(losses.approx_ndcg_loss(s, apart, gain="exponential")))
    assert np.all(np.isfinite(slope(scores.astype("float32"))))
    for scale in (1e300, 1e-300):
        with pytest.raises(ValueError, match="the highest of labels must be from"):
            losses.approx_ndcg_loss(scores, scale * grades)


def test_linear_gains_that_cannot_be_added_are_refused():
    labels = np.array([1.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="the highest of labels must be from"):
        jm.ndcg([0.1, 0.3, 0.2], 1.7e308 * labels)
    with jax.enable_x64(True):
        assert np.isnan(jax.jit(jm.ndcg)(np.array([0.1, 0.3, 0.2]), 1.7e308 * labels))
    assert jm.ndcg([0.1, 0.3, 0.2], 1e280 * labels) == jm.ndcg([0.1, 0.3, 0.2], labels)


@pytest.mark.parametrize("value", [1e-60, 1e60])
def test_options_of_losses_that_single_precision_cannot_hold_are_refused(value):
    for name, surrogate in (("margin", "hinge"), ("temperature", "logistic")):
        with pytest.raises(ValueError, match=f"{name} is beyond the range of float32, got 1e"):
            losses.pairwise_auc_loss(SCORES, LABELS, surrogate=surrogate, **{name: value})
    if value < 1:
        with pytest.raises(ValueError, match="max_fpr is beyond"):
            losses.partial_auc_loss(SCORES, LABELS, max_fpr=value)


def test_values_that_the_result_cannot_hold_are_refused():
    values = np.array([1e300, 2e300, 1.0])
    with pytest.raises(ValueError, match=r"the largest of values must be .* got 2e\+300: divide"):
        jm.bootstrap_mean(values, key=jax.random.key(0))
    rows = np.array([[1e-50, -2e-50, 0], [1, 2, 3]])
    with pytest.raises(ValueError, match="got 2e-50: multiply them, or turn x64 mode on"):
        jm.mean_interval(rows)
    assert jm.compare_means(rows).difference[1, 0] == 2
    with pytest.raises(ValueError, match="got 3e-50: multiply"):
        jm.compare_means(rows * 1e-50 ** np.array([[0], [1]]))
    small = jm.bootstrap_mean(values, where=values < 2, key=jax.random.key(0), n_resamples=5)
    assert small.estimate == 1
    with jax.enable_x64(True):
        large = jm.bootstrap_mean(values, key=jax.random.key(0), n_resamples=5)
    np.testing.assert_allclose(large.estimate, 1e300)
    for metric in (jm.cost_curve, jm.min_cost_threshold):
        with pytest.raises(ValueError, match="fp_cost must be in"):
            metric([0.1, 0.2], [0, 1], fp_cost=1e30, fn_cost=1.0)
