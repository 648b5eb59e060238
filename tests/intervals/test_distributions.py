"""The tails and quantiles that intervals use."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interval_rules import doubled
from scipy import special, stats

from jaxmetrics._base.double import double_precision
from jaxmetrics.inference._intervals import beta, distributions
from jaxmetrics.inference._maxima import Maximum, _ascending

PROBABILITIES = np.concatenate([10.0 ** -np.arange(1, 6.1, 0.5), [0.2, 0.3, 0.45, 0.499]])
PROBABILITIES = np.unique(np.concatenate([PROBABILITIES, 1 - PROBABILITIES]))
DFS = np.concatenate([[0.5, 0.8], np.logspace(0, 9, 37), [2, 999.9, 1000, 1000.1, np.inf]])


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
    p, df = np.array([[0.0], [1.0]]), np.array([0.5, 7.0, 1e4, np.inf])
    got = doubled(distributions.t_quantile, p, df)
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


def test_normal_quantile():
    got = doubled(distributions.normal_quantile, PROBABILITIES)
    np.testing.assert_allclose(got, special.ndtri(PROBABILITIES), rtol=1e-13)


def test_t_survival():
    t, df = np.meshgrid([0, 1e-3, 0.3, 2.0, 9.0, 60.0], [0.7, 1, 3.6, 40, 999.5, 1e5, 1e8, np.inf])
    expected = 2 * stats.t.sf(t, df)
    of_numpy, found = ways(distributions.t_survival, t, df)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(of_numpy, expected, atol=1e-8)  # the normal one beyond 1e7
    np.testing.assert_allclose(of_numpy[df < 1e7], expected[df < 1e7], rtol=1e-10)


def test_t_survival_far_out():
    t, df = np.meshgrid([1e4, 1e6, 1e8, np.inf], [0.7, 1.0, 3.0])
    for found in ways(distributions.t_survival, t, df):
        np.testing.assert_allclose(found, 2 * stats.t.sf(t, df), rtol=1e-9)


def test_hotelling_survival():
    statistic, df, p = np.meshgrid([0.02, 3.0, 20.0, 150.0], [4.0, 5.5, 30.0, 700.0], [1, 2, 4])
    rest = df - p + 1
    expected = stats.f.sf(rest / (df * p) * statistic, p, rest)
    found = doubled(distributions.hotelling_survival, statistic, p, df)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    found = doubled(distributions.hotelling_survival, statistic, p, np.inf)
    np.testing.assert_allclose(found, stats.chi2.sf(statistic, p), rtol=1e-10)
    # Of one dimension it is Student's.
    found = doubled(distributions.hotelling_survival, 2.3**2, 1, 6.4)
    np.testing.assert_allclose(found, 2 * stats.t.sf(2.3, 6.4), rtol=1e-11)
    assert np.isnan(doubled(distributions.hotelling_survival, 5.0, 4, 3.0))
    assert np.isnan(doubled(distributions.hotelling_survival, 5.0, 2, 1.2))
    assert doubled(distributions.hotelling_survival, 0.0, 0, 3.0) == 1  # all models are equal
    assert doubled(distributions.hotelling_survival, -1e-18, 3, np.inf) == 1  # rounding below 0


SHAPES = (0.5, 0.7, 1.0, 2.5, 10.5, 17.0, 400.0, 1e4, 1e6)


def ways(function, *args):
    """By NumPy and SciPy, and by JAX."""
    with np.errstate(all="ignore"):
        return function(*map(np.float64, args)), doubled(function, *args)


def test_gamma_survival():
    """Of a few shapes by sums; 1 at 0, and nothing far out."""
    x = np.concatenate([[0, 1e-300], np.geomspace(1e-6, 600, 97), [1e4]])
    for halves in (1, 2, 3, 8, 41, 129):
        of_shape = partial(distributions.gamma_survival, halves=halves)
        found, expected = doubled(of_shape, x), special.gammaincc(halves / 2, x)
        np.testing.assert_allclose(found, expected, rtol=3e-13, atol=1e-290)
        np.testing.assert_array_equal(of_shape(x), expected)
        if halves in (1, 8, 129):
            single = jax.jit(of_shape)(jnp.asarray(x, jnp.float32))
            np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-35)


def test_beta_quantile():
    """Its cumulative share is the probability, which SciPy's own inverse has to eight digits."""
    p, a, b = np.meshgrid(PROBABILITIES, SHAPES, SHAPES)
    for found in ways(beta.beta_quantile, p, a, b):
        near = stats.beta.ppf(p, a, b)
        np.testing.assert_allclose(found, near, rtol=1e-6)
        # The error of the quantile: that of the share of the smaller tail, over the density.
        tail = np.where(p < 0.5, special.betainc(a, b, found) - p, 0)
        tail = np.where(p < 0.5, tail, 1 - p - special.betaincc(a, b, found))
        error = tail / stats.beta.pdf(found, a, b) / found
        np.testing.assert_allclose(error, 0, atol=1e-10)


def test_beta_cdf():
    a, b = np.meshgrid(SHAPES, SHAPES)
    for p in (1e-6, 0.01, 0.3, 0.5, 0.8, 1 - 1e-5):
        x = stats.beta.ppf(p, a, b)
        for found in ways(beta.beta_cdf, x, a, b):
            np.testing.assert_allclose(found, special.betainc(a, b, x), rtol=1e-9)
    for found in ways(beta.beta_cdf, np.array([0.0, 1.0]), np.full(2, 2.0), np.full(2, 3.0)):
        np.testing.assert_array_equal(found, [0, 1])


def test_a_quantile_is_left_out_only_where_it_is_within_the_limit(rng):
    a, b = 10 ** rng.uniform(-0.3, 3, (2, 10_000))
    p = 1 - 10 ** rng.uniform(-10, -0.3, 10_000)
    quantile = beta.beta_quantile(p, a, b)
    limit = quantile + (1 - quantile) * rng.uniform(-0.1, 0.5, 10_000)
    may = beta.may_exceed(np.clip(limit, 0, 1), p, a, b)
    assert may[quantile > limit].all()
    assert not beta.may_exceed(np.float64(0.4), np.float64(0.975), np.float64(5), np.float64(50))
    assert np.mean(~may[quantile < limit]) > 0.25


@pytest.mark.slow
def test_derivatives_of_the_beta_quantile():
    """In the probability 1 / density, and in the shapes differences of quantiles."""
    p, a, b = map(
        np.ravel, np.meshgrid([0.005, 0.1, 0.8, 0.975], [0.5, 3.0, 60.0], [0.6, 9.0, 500.0])
    )
    with double_precision():
        slopes = jax.jit(jax.vmap(jax.grad(beta.beta_quantile, (0, 1, 2))))(p, a, b)

    def quantile(a, b):
        return beta.beta_quantile(p, a, b)

    x = quantile(a, b)
    np.testing.assert_allclose(slopes[0], 1 / stats.beta.pdf(x, a, b), rtol=1e-8)

    def difference(of):
        far, near = (of(k) - of(-k) for k in (2, 1))
        return (8 * near - far) / 12

    by_a = difference(lambda k: quantile(a * (1 + k * 1e-3), b)) / (1e-3 * a)
    by_b = difference(lambda k: quantile(a, b * (1 + k * 1e-3))) / (1e-3 * b)
    np.testing.assert_allclose(slopes[1], by_a, rtol=1e-6)
    np.testing.assert_allclose(slopes[2], by_b, rtol=1e-6)


@pytest.fixture
def on_tpus(monkeypatch):
    """Programs are traced as those of TPUs are."""
    jax.clear_caches()
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *x, tpu, default: tpu(*x))
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("on_tpus")
def test_tails_and_quantiles_of_tpus():
    """In float32: five digits of what is large, and of a tail so many as its logarithm leaves."""
    p, a, b = np.meshgrid(PROBABILITIES, SHAPES, SHAPES)
    quantile = stats.beta.ppf(p, a, b)
    found = doubled(beta.beta_quantile, p, a, b)
    np.testing.assert_allclose(found, quantile, rtol=1e-5)
    assert np.max(abs(found / quantile - 1)) > 1e-8  # it is not in float64
    tail = special.betainc(a, b, quantile)
    np.testing.assert_allclose(doubled(beta.beta_cdf, quantile, a, b), tail, rtol=1e-3)
    few = np.maximum(a, b) <= 1000
    np.testing.assert_allclose(doubled(beta.beta_cdf, quantile, a, b)[few], tail[few], rtol=1e-4)
    p, df = np.meshgrid(PROBABILITIES, DFS)
    t = np.where(np.isinf(df), special.ndtri(p), stats.t.ppf(p, df))
    np.testing.assert_allclose(doubled(distributions.t_quantile, p, df), t, rtol=1e-5)
    t, df = np.meshgrid([0.01, 1.0, 4.0, 30.0], [2.0, 30.0, 1e3, np.inf])
    outside = doubled(distributions.t_survival, t, df)
    np.testing.assert_allclose(outside, 2 * stats.t.sf(t, df), rtol=1e-4, atol=1e-30)


@pytest.mark.usefixtures("on_tpus")
@pytest.mark.parametrize("dimensions", [7, 60])
def test_the_largest_of_several_on_tpus(rng, dimensions):
    lengths = np.sort(np.sqrt(rng.beta(1, 3, (4, 128))), axis=1)
    lengths[2] = 1.0
    lengths[3, :127] = 0  # seldom above 0
    level, t = np.float64(0.95), np.array([0.0, 0.5, 2.0, 4.0])

    def of(lengths):
        return Maximum(lengths, dimensions, np.full(128, 1 / 128))

    expected = of(lengths)
    with double_precision():
        quantile, tail = jax.jit(lambda x: (of(x).quantile(level), of(x).survival(t)))(lengths)
    np.testing.assert_allclose(quantile, expected.quantile(level), rtol=1e-5)
    np.testing.assert_allclose(tail, expected.survival(t), rtol=1e-5)
    assert np.any(np.asarray(tail) != expected.survival(t))


def test_the_largest_of_hundreds():
    lengths = np.ones((1, 128))
    of_one = Maximum(lengths, 400, np.full(128, 1 / 128)).quantile(np.float64(0.95))
    np.testing.assert_allclose(of_one, stats.chi.ppf(0.95, 400), rtol=1e-8)


def test_quantiles_where_few_lengths_are_far_larger():
    """Of which the logarithm of the tail is not concave in that of t."""
    shares, chances = np.full(128, 1 / 128), np.array([0.5, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-5])
    lengths = np.sort(1 / np.sqrt(stats.chi2.ppf((np.arange(128) + 0.5) / 128, 1.4)))
    lengths[-3:] = 800, 9_000, 15_000
    found = Maximum(lengths, 2, shares)
    for chance in chances:
        quantile = found.quantile(np.float64(1 - chance))
        np.testing.assert_allclose(found.survival(quantile), chance, rtol=1e-6)


def test_lengths_are_sorted_as_integers_with_the_slopes_of_a_sort(rng):
    lengths = rng.exponential(size=(2, 9)).astype("float32")
    weights = rng.normal(size=lengths.shape)
    np.testing.assert_array_equal(_ascending(jnp.asarray(lengths)), np.sort(lengths))
    found, expected = (
        jax.grad(lambda x, order=order: jnp.sum(order(x) * weights))(lengths)
        for order in (_ascending, jnp.sort)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("on_tpus")
def test_tails_far_out_on_tpus():
    t, df = np.meshgrid([2e4, 5e4, 1e5, 1e6, np.inf], [1e9, 1e12, np.inf])
    np.testing.assert_array_equal(doubled(distributions.t_survival, t, df), 0)
    assert doubled(distributions.hotelling_survival, 1e9, 3, np.inf) == 0


def test_binomial_quantile():
    n, share, p = np.meshgrid(
        [1.0, 2.0, 7.0, 50.0, 333.0, 20_000.0],
        [0.001, 0.01, 0.1, 0.5, 0.97, 1.0],
        [0.02, 0.1, 0.45, 0.55, 0.9, 0.98],
    )
    for found in ways(distributions.binomial_quantile, p, n, share):
        np.testing.assert_array_equal(found, stats.binom.ppf(p, n, share))
    for found in ways(
        distributions.binomial_quantile, np.array(0.9), np.array(41.5), np.array(0.1)
    ):
        assert stats.binom.ppf(0.9, 41, 0.1) <= found <= stats.binom.ppf(0.9, 42, 0.1)
