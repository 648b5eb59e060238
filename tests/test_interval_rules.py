"""Closed-form intervals, and the tails and quantiles that they use."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics.inference._intervals import distributions, rules

PROBABILITIES = np.concatenate([10.0 ** -np.arange(1, 6.1, 0.5), [0.2, 0.3, 0.45, 0.499]])
PROBABILITIES = np.unique(np.concatenate([PROBABILITIES, 1 - PROBABILITIES]))
DFS = np.concatenate([[0.5, 0.8], np.logspace(0, 9, 37), [2, 999.9, 1000, 1000.1, np.inf]])


def doubled(function, *args):
    """The result of `function`, compiled, on the host."""
    with double_precision():
        return jax.tree.map(np.asarray, jax.jit(function)(*args))


def moments(estimate, variances, sizes):
    return rules.Moments(estimate, variances, sizes)


def partial_auc(sample, level, max_fpr=0.1, tpr=None):
    if tpr is None:
        tpr = jnp.minimum(1, jnp.asarray(sample.estimate, jnp.float64) * 1.2)
    return rules.partial_auc(sample, level, max_fpr, tpr)


RULES = {
    "logit_t": rules.logit_t,
    "auc": rules.auc,
    "partial_auc": partial_auc,
}
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


# ---- distributions


def test_t_quantile():
    p, df = np.meshgrid(PROBABILITIES, DFS)
    expected = np.where(np.isinf(df), special.ndtri(p), stats.t.ppf(p, df))
    np.testing.assert_allclose(doubled(distributions.t_quantile, p, df), expected, rtol=1e-10)


def test_t_quantile_near_the_median():
    # By the density there: SciPy has four digits.
    near, df = 1e-6, np.array([1.0, 4.0, 30.0, 1e5])
    density = np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / np.sqrt(df * np.pi)
    got = doubled(distributions.t_quantile, 0.5 + near, df)
    np.testing.assert_allclose(got, near / density, rtol=1e-9)
    assert doubled(distributions.t_quantile, 0.5, 7.5) == 0


def test_t_quantile_at_the_ends():
    got = doubled(distributions.t_quantile, [[0.0], [1.0]], [0.5, 7.0, 1e4, np.inf])
    np.testing.assert_array_equal(got, [[-np.inf] * 4, [np.inf] * 4])


def test_derivatives_of_the_t_quantile():
    """In the probability 1 / density, and in df a difference of SciPy's quantiles."""
    p, df = map(np.ravel, np.meshgrid([0.1, 0.9, 0.975, 0.999], [1.0, 4.2, 30.0, 400.0, 3000.0]))
    step = 1e-3 * df
    with double_precision():
        slopes = jax.jit(jax.vmap(jax.grad(distributions.t_quantile, (0, 1))))(p, df)
    np.testing.assert_allclose(slopes[0], 1 / stats.t.pdf(stats.t.ppf(p, df), df), rtol=1e-8)
    far, near = (stats.t.ppf(p, df + k * step) - stats.t.ppf(p, df - k * step) for k in (2, 1))
    np.testing.assert_allclose(slopes[1], (8 * near - far) / (12 * step), rtol=1e-5)


def test_other_tails():
    x, df = np.meshgrid([0, 0.1, 3, 40, 300], [1, 2, 7, 100])
    got = doubled(distributions.chi2_survival, x, df)
    np.testing.assert_allclose(got, stats.chi2.sf(x, df), rtol=1e-10)
    assert doubled(distributions.chi2_survival, -1e-18, 3) == 1  # rounding below 0
    got = doubled(distributions.normal_quantile, PROBABILITIES)
    np.testing.assert_allclose(got, special.ndtri(PROBABILITIES), rtol=1e-13)


# ---- values


def test_values():
    first = moments(0.9, (0.03, 0.02), (180, 20))
    second = moments(0.95, (0.012, 0.0096), (3000, 30))
    third = moments(0.55, (0.6, 0.15), (20, 20))
    limits = [
        doubled(rules.auc, first, 0.95),
        doubled(rules.auc, second, 0.95),
        doubled(partial_auc, third, 0.95, 0.1, 0.7),
    ]
    expected = [(0.79999628, 0.95504976), (0.87762552, 0.97789672), (0.15551941, 0.84482996)]
    np.testing.assert_allclose(limits, expected, rtol=0, atol=1e-8)


def test_logit_t_is_welchs_on_the_logit_scale():
    low, high = doubled(rules.logit_t, moments(0.8, (0.06, 0.04), (15, 9)), 0.95)
    # Welch's degrees of freedom are those of a difference of two means.
    parts = np.array([0.06 / 15, 0.04 / 9])
    df = parts.sum() ** 2 / np.sum(parts**2 / [14, 8])
    margin = stats.t.ppf(0.975, df) * np.sqrt(parts.sum()) / 0.16
    expected = special.expit(special.logit(0.8) + np.array([-margin, margin]))
    np.testing.assert_allclose([low, high], expected, rtol=1e-10)


def test_wilson():
    for k, n in [(0, 5), (3, 10), (10, 10), (499, 500)]:
        expected = stats.binomtest(k, n).proportion_ci(0.9, method="wilson")
        np.testing.assert_allclose(doubled(rules.wilson, k / n, n, 0.9), expected, atol=1e-14)
    low, high = doubled(rules.wilson, 0.3, 7.25, 0.95)
    z = special.ndtri(0.975)
    for p in (low, high):  # the definition
        np.testing.assert_allclose(abs(0.3 - p), z * np.sqrt(p * (1 - p) / 7.25), rtol=1e-12)
    np.testing.assert_array_equal(doubled(rules.wilson, 0.3, 0, 0.95), [0, 1])
    single = np.float32(0.3)
    expected = doubled(rules.wilson, float(single), 9, 0.95)
    got = doubled(rules.wilson, single, np.float32(9), 0.95)
    np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_shape_of_the_beta():
    for mean, rho in [(0.9, 0.05), (0.5, 0.3), (0.2, 0.9)]:
        law = stats.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1))
        np.testing.assert_allclose(law.var(), rho * mean * (1 - mean))
        skewness, kurtosis = law.stats("sk")
        expected = skewness, kurtosis + 3 - 1 - skewness**2
        np.testing.assert_allclose(doubled(rules._beta_shape, mean, rho), expected, atol=1e-12)


def test_variance_of_a_power_law():
    # A negative at u takes from the area what the curve r (u / t)^h falls below its end there.
    t, area = 0.2, 0.6
    h = (0.55 + 0.65 * np.sqrt(t)) * (1 - area)
    u = (np.arange(10**6) + 0.5) / 10**6
    height = area * (1 + h)
    influence = np.where(u < t, height * (1 - (u / t) ** h) / t, 0)
    got = doubled(rules._power_law_variance, area, t)
    np.testing.assert_allclose(got, np.var(influence), rtol=1e-4)


def test_bias_of_few_negatives():
    def bias(*args):
        return doubled(rules._window_bias, *args)

    assert bias(0.6, 10.0, 1.0, 1.0) == 0  # the whole curve has none
    assert bias(0.02, 1.0, 0.1, 1.0) == 0.01  # half of the area
    # Of many negatives: what the end of the curve is above its mean, over twice their number.
    np.testing.assert_allclose(bias(0.6, 1e9, 0.1, 0.75) * 1e9, 0.75 * 0.25 * 0.9 / 2, rtol=1e-6)


# ---- ends


@pytest.mark.parametrize("rule", [rules.logit_t, rules.auc, partial_auc])
@pytest.mark.parametrize("sizes", [(20, 180), (180, 20), (5, 5)])
def test_ends(rule, sizes):
    low, high = doubled(rule, moments(1.0, (0.0, 0.0), sizes), 0.95)
    assert high == 1
    assert 0 < low < 1
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


def test_estimates_that_do_not_vary():
    def limits(rule, estimate):
        return doubled(rule, moments(estimate, (0.0, 0.0), (30, 30)), 0.95)

    np.testing.assert_array_equal(limits(rules.logit_t, 0.5), [0, 1])
    low, high = limits(rules.logit_t, 0.95)
    assert high == 1
    np.testing.assert_allclose(low, 0.025 ** (1 / 30))
    low, high = limits(rules.auc, 0.5)
    assert low < 0.5 < high


@each_rule
def test_a_class_of_one_has_no_variance_to_trust(rule):
    wide = doubled(rule, moments(0.8, (np.nan, 0.05), (1, 50)), 0.95)
    np.testing.assert_array_equal(doubled(rule, moments(0.8, (0.0, 0.05), (1, 50)), 0.95), wide)
    narrow = doubled(rule, moments(0.8, (0.05, 0.05), (20, 50)), 0.95)
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
            low, high = doubled(partial_auc, sample, 0.95, max_fpr, tpr)
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
    assert np.all(np.isnan(doubled(partial_auc, sample, 0.95, 0.1, np.nan)))


# ---- invariances


@pytest.mark.parametrize("rule", [rules.logit_t, rules.auc])
def test_reversed_scores_mirror_the_limits(rule, rng):
    sample = many_samples(rng)
    mirrored = moments(1 - sample.estimate, sample.variances[::-1], sample.sizes[::-1])
    low, high = doubled(rule, sample, 0.9)
    other_low, other_high = doubled(rule, mirrored, 0.9)
    np.testing.assert_allclose(1 - other_high, low, atol=1e-11)
    np.testing.assert_allclose(1 - other_low, high, atol=1e-11)


@each_rule
def test_limits_are_nested(rule, rng):
    sample = jax.tree.map(lambda x: x[:, None], many_samples(rng))
    low, high = doubled(rule, sample, np.linspace(0.05, 0.999, 30))
    assert np.all(np.diff(low) <= 1e-12)
    assert np.all(np.diff(high) >= -1e-12)


@each_rule
def test_more_items_narrow_the_limits(rule):
    sizes = np.array([5, 20, 100, 1000, 10**5, 10**8])
    low, high = doubled(rule, moments(0.8, (0.05, 0.07), (sizes, sizes)), 0.95)
    assert np.all(np.diff(high - low) < 0)
    # And all rules are that of the normal law in the end.
    np.testing.assert_allclose((high - low)[-1], 2 * 1.96 * np.sqrt(0.12e-8), rtol=0.01)


@each_rule
@pytest.mark.parametrize(("mode", "batched"), [(False, False), (False, True), (True, False)])
def test_jit_vmap_and_modes(rule, mode, batched, rng):
    # Inputs that are exact in float32.
    level = np.float32(0.9375)
    leaves, tree = jax.tree.flatten(many_samples(rng, size=24))
    leaves = [leaf.astype(np.float32) for leaf in leaves]
    in_float64 = jax.tree.unflatten(tree, [leaf.astype(np.float64) for leaf in leaves])
    expected = doubled(rule, in_float64, level)

    @in_double
    def flat(*inputs):
        return rule(jax.tree.unflatten(tree, inputs[:-1]), inputs[-1])

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
    low, high = doubled(rules.auc, sample, 0.95)
    assert 0.93 < np.mean((low <= area) & (area <= high)) < 0.96
    below, above = np.mean(area < low), np.mean(area > high)
    assert min(below, above) > 0.01
    assert max(below, above) < 0.045
    by_wald = np.abs(sample.estimate - area) <= 1.96 * doubled(rules.standard_error, sample)
    assert np.mean(by_wald) < 0.93  # what the rule is for
