"""Closed-form intervals at the ends, and what does not change them."""

import itertools
from functools import partial

import interval_formulas as formulas
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from interval_rules import (
    LEVELS,
    MAX_FPR,
    RULES,
    average_precision,
    by_numpy,
    doubled,
    moments,
    partial_auc,
    recall_of,
)
from scipy import special, stats

import jaxmetrics as jm
from jaxmetrics._base import numerics
from jaxmetrics._base.double import in_double
from jaxmetrics.inference._intervals import areas, rules

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def many_samples(rng, size=400, smallest=1):
    """Of all shapes: sizes from 1, estimates at the ends, no variance and the largest."""
    n0, n1 = np.floor(10 ** rng.uniform(np.log10(smallest), 4, (2, size)))
    estimate = rng.beta(2, 0.5, size)
    margin = 1 / (2 * n0 * n1)
    estimate = np.clip(estimate, margin, 1 - margin)
    estimate[::10], estimate[1::10], estimate[2::10] = 1, 0, 0.5
    shares = rng.beta(0.3, 0.6, (2, size))
    shares[:, 3::10], shares[:, 4::10] = 0, 1
    shares[:, 2::20] = 0
    s2 = shares * estimate * (1 - estimate)
    undefined = [np.where(n > 1, s, np.nan) for n, s in zip((n0, n1), s2, strict=True)]
    return moments(estimate, tuple(undefined), (n0, n1))


# ---- ends


@pytest.mark.parametrize("rule", [rules.logit_t, areas.auc, partial_auc])
@pytest.mark.parametrize("sizes", [(20, 180), (180, 20), (5, 5)])
def test_ends(rule, sizes):
    low, high = doubled(rule, moments(1.0, (0.0, 0.0), sizes), 0.95)
    assert high == 1
    # Two of 20 negatives, in a window that ends at a tenth, may leave nothing of it.
    assert low == 0 if rule is partial_auc and sizes[0] <= 20 else 0 < low < 1
    assert low <= 0.025 ** (1 / min(sizes)) + 1e-12
    other_low, other_high = doubled(rule, moments(0.0, (0.0, 0.0), sizes), 0.95)
    assert other_low == 0
    if rule is partial_auc:
        assert 0 < other_high < 1
    else:
        np.testing.assert_allclose(1 - other_high, low, rtol=1e-9)


def test_end_of_logit_t_is_that_of_clopper_and_pearson():
    low, _ = doubled(rules.logit_t, moments(1.0, (0.0, 0.0), (300, 25)), 0.9)
    exact = stats.binomtest(25, 25).proportion_ci(0.9).low
    np.testing.assert_allclose(low, exact, rtol=1e-12)
    _, high = doubled(rules.logit_t, moments(0.0, (0.0, 0.0), (300, 25)), 0.9)
    np.testing.assert_allclose(high, 1 - exact, rtol=1e-12)


def test_end_of_an_auc_is_that_of_a_sample_half_a_pair_away_if_further():
    sizes = (21, 158)
    expected = formulas.auc(1 - 1 / (2 * 21 * 158), (0.0, 0.0), sizes, 0.95)[0]
    assert expected < 0.025 ** (1 / 21) - 0.01
    low, _ = doubled(areas.auc, moments(1.0, (0.0, 0.0), sizes), 0.95)
    _, high = doubled(areas.auc, moments(0.0, (0.0, 0.0), sizes), 0.95)
    np.testing.assert_allclose([low, 1 - high], expected, rtol=1e-9)


def test_estimates_that_do_not_vary():
    def limits(rule, estimate):
        return doubled(rule, moments(estimate, (0.0, 0.0), (30, 30)), 0.95)

    lowest = 0.025 ** (1 / 30)
    for a in (0.5, 0.95):
        np.testing.assert_allclose(limits(rules.logit_t, a), [lowest * a, 1 - lowest * (1 - a)])
    np.testing.assert_allclose(limits(rules.logit_t, 1.0), [lowest, 1])
    low, high = limits(areas.auc, 0.5)
    assert low < 0.5 < high


@each_rule
def test_a_class_of_one_has_no_variance_to_trust(rule):
    if rule is average_precision:  # with few negatives it would not be as low
        rule = partial(rule, odds=np.float64(4.0))
    wide = by_numpy(rule, moments(0.8, (np.nan, 0.05), (1, 50)), 0.95)
    np.testing.assert_array_equal(by_numpy(rule, moments(0.8, (0.0, 0.05), (1, 50)), 0.95), wide)
    narrow = by_numpy(rule, moments(0.8, (0.05, 0.05), (200, 50)), 0.95)
    assert wide[0] < narrow[0]
    assert wide[1] > narrow[1]


@each_rule
def test_finite_and_around_the_estimate(rule, rng):
    sample = many_samples(rng)
    for level in (0.1, 0.5, 0.95, 0.999):
        low, high = doubled(rule, sample, level)
        assert np.all(np.isfinite(low) & np.isfinite(high))
        assert np.all((low <= sample.estimate) & (sample.estimate <= high))
        assert np.all((low >= 0) & (high <= 1))


def test_every_window(rng):
    sample = many_samples(rng)
    for max_fpr in (1e-4, 0.01, 0.5, 1.0):
        for tpr in (sample.estimate, np.ones_like(sample.estimate)):
            low, high = by_numpy(partial_auc, sample, 0.95, max_fpr, tpr)
            assert np.all((low >= 0) & (low <= sample.estimate))
            assert np.all((high <= 1) & (high >= sample.estimate))


@each_rule
def test_smallest_classes(rule):
    cases = list(itertools.product((1, 2), (1, 2), (0, 0.25, 0.5, 1), (0, 1)))
    n0, n1, estimate, share = np.array(cases, float).T
    s2 = share * estimate * (1 - estimate)
    low, high = doubled(rule, moments(estimate, (s2, s2), (n0, n1)), 0.95)
    assert np.all((low > -2) & (low <= estimate) & (estimate <= high) & (high < 3))


@each_rule
def test_no_estimate_no_limits(rule):
    low, high = doubled(rule, moments(np.array([np.nan, 0.7]), (0.1, 0.1), (9, 9)), 0.95)
    np.testing.assert_array_equal(np.isnan(low), [True, False])
    np.testing.assert_array_equal(np.isnan(high), [True, False])


def test_no_limits_where_the_height_of_the_curve_is_not_known():
    sample = moments(np.array([0.9, 1.0]), (0.1, 0.1), (9, 9))
    assert np.all(np.isnan(by_numpy(partial_auc, sample, 0.95, 0.1, np.nan)))


# ---- invariances


@pytest.mark.parametrize("rule", [rules.logit_t, areas.auc])
def test_reversed_scores_mirror_the_limits(rule, rng):
    sample = many_samples(rng)
    mirrored = moments(1 - sample.estimate, sample.variances[::-1], sample.sizes[::-1])
    low, high = doubled(rule, sample, 0.9)
    other_low, other_high = doubled(rule, mirrored, 0.9)
    np.testing.assert_allclose(1 - other_high, low, atol=1e-11)
    np.testing.assert_allclose(1 - other_low, high, atol=1e-11)


@pytest.mark.parametrize("rule", [areas.auc, partial_auc])
def test_a_class_of_twice_the_largest_variance_has_half_the_size(rule):
    """As where weights depend on the scores: the variance of n Bernoulli draws is the largest."""
    largest = 0.8 * 0.2 * 50 / 49
    found = by_numpy(rule, moments(0.8, (0.1, 2 * largest), (400, 50)), 0.95)
    expected = by_numpy(rule, moments(0.8, (0.1, largest), (400, 25)), 0.95)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@each_rule
def test_limits_are_nested(rule, rng):
    sample = jax.tree.map(lambda x: x[:, None], many_samples(rng, size=40))
    low, high = doubled(rule, sample, np.linspace(0.05, 0.999, 30))
    assert np.all(np.diff(low) <= 1e-12)
    assert np.all(np.diff(high) >= -1e-12)


@each_rule
def test_more_items_narrow_the_limits(rule):
    sizes = np.array([5, 20, 100, 1000, 10**5, 10**8])
    low, high = doubled(rule, moments(0.8, (0.05, 0.07), (sizes, sizes)), 0.95)
    from_20 = 1 if rule is recall_of else 0  # half of a negative in the window says nothing
    assert np.all(np.diff(high - low)[from_20:] < 0)
    # And all rules are that of the normal law in the end.
    variance = 0.05 + 0.07
    if rule is recall_of:
        slope = 0.3 * 0.8 / MAX_FPR
        variance = 0.8 * 0.2 + slope**2 * MAX_FPR * (1 - MAX_FPR)
    np.testing.assert_allclose((high - low)[-1], 2 * 1.96 * np.sqrt(variance * 1e-8), rtol=0.01)


@each_rule
@pytest.mark.parametrize("level", LEVELS)
def test_numpy_and_jax_say_the_same(rule, level, rng):
    sample = many_samples(rng)
    with np.errstate(all="ignore"):
        found = rule(sample, np.float64(level))
    assert all(isinstance(x, np.ndarray) for x in found)
    np.testing.assert_allclose(found, doubled(rule, sample, level), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("rule", "mode", "batched"),
    [(rules.logit_t, False, False), (rules.logit_t, True, False)]
    + [marked(rule, False, True, fast=name == "logit_t") for name, rule in RULES.items()],
)
def test_jit_vmap_and_modes(rule, mode, batched, rng):
    # Inputs that are exact in float32.
    level = np.float32(0.9375)
    leaves, tree = jax.tree.flatten(many_samples(rng, size=24))
    leaves = [leaf.astype(np.float32) for leaf in leaves]
    in_float64 = jax.tree.unflatten(tree, [leaf.astype(np.float64) for leaf in leaves])
    expected = doubled(rule, in_float64, np.float64(level))

    @in_double
    def flat(*inputs):
        *inputs, level = (x.astype(np.float64) for x in inputs)
        return rule(jax.tree.unflatten(tree, inputs), level)

    function = jax.vmap(flat, in_axes=(0,) * len(leaves) + (None,)) if batched else flat
    with jax.enable_x64(mode):
        inputs = [jnp.asarray(value, numerics.default_float()) for value in (*leaves, level)]
        for got, wanted in zip(jax.jit(function)(*inputs), expected, strict=True):
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-15)


# ---- coverage


def placements(scores, others):
    """The share of `others` below each score, `[..., n]`, without ties."""
    everything = np.concatenate([scores, others], axis=-1)
    ranks = np.argsort(np.argsort(everything, axis=-1), axis=-1)[..., : scores.shape[-1]]
    own = np.argsort(np.argsort(scores, axis=-1), axis=-1)
    return (ranks - own) / others.shape[-1]


def test_coverage(rng):
    n1, n0, area, data_sets = 20, 180, 0.9, 2000
    positives = rng.normal(special.ndtri(area) * np.sqrt(2), 1, (data_sets, n1))
    negatives = rng.normal(0, 1, (data_sets, n0))
    of_positives = placements(positives, negatives)
    of_negatives = 1 - placements(negatives, positives)
    sample = moments(
        of_positives.mean(-1),
        (of_negatives.var(-1, ddof=1), of_positives.var(-1, ddof=1)),
        (n0, n1),
    )
    low, high = doubled(areas.auc, sample, 0.95)
    assert 0.95 < np.mean((low <= area) & (area <= high)) < 0.985
    below, above = np.mean(area > high), np.mean(area < low)
    assert 0.01 < below < 0.03
    assert above < 0.02  # rare low positives that were not drawn are allowed for
    by_wald = np.abs(sample.estimate - area) <= 1.96 * doubled(rules.standard_error, sample)
    assert np.mean(by_wald) < 0.93  # what the rule is for


@pytest.mark.parametrize("weight", [1.0, 0.1, 3.7])
def test_equal_weights_leave_no_variance_by_rounding(weight):
    """Of precisions of reversed scores, in rows and in a program, as of one row."""
    labels = np.random.default_rng(0).random((64, 101)) < 0.3
    scores = np.where(labels, 0.0, 1.0)

    def interval(weights=None):
        return jm.confidence_interval(jm.average_precision, scores, labels, weights=weights)

    expected, weights = interval(), np.full(101, weight)
    for found in (interval(weights), jax.jit(interval)(weights)):
        np.testing.assert_array_equal(found.standard_error, 0)
        np.testing.assert_allclose(found.low, expected.low, rtol=1e-5)
        np.testing.assert_allclose(found.high, expected.high, rtol=1e-5)
