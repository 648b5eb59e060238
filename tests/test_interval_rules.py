"""Closed-form intervals, and the tails and quantiles that they use."""

import itertools
import math
from functools import partial

import interval_formulas as formulas
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from scipy import special, stats

import jaxmetrics as jm
from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics.inference._intervals import areas, beta, distributions, precision, recall, rules
from jaxmetrics.inference._maxima import Maximum, _ascending

PROBABILITIES = np.concatenate([10.0 ** -np.arange(1, 6.1, 0.5), [0.2, 0.3, 0.45, 0.499]])
PROBABILITIES = np.unique(np.concatenate([PROBABILITIES, 1 - PROBABILITIES]))
LEVELS = (0.5, 0.9, 0.95, 0.99)
MAX_FPR = np.float64(0.1)
DFS = np.concatenate([[0.5, 0.8], np.logspace(0, 9, 37), [2, 999.9, 1000, 1000.1, np.inf]])


WIDTH = 100


def doubled(function, *args):
    """The result of `function`, compiled, on the host.

    Element by element, in rows of one width, so that each function is compiled once.
    """
    leaves, tree = jax.tree.flatten(args)
    shape = np.broadcast_shapes(*map(np.shape, leaves))
    flat = [np.broadcast_to(np.asarray(x, np.float64), shape).ravel() for x in leaves]
    padded = [np.pad(x, (0, -x.size % WIDTH), mode="edge").reshape(-1, WIDTH) for x in flat]
    with double_precision():
        compiled = jax.jit(function)
        rows = [compiled(*tree.unflatten(row)) for row in zip(*padded, strict=True)]
    size = math.prod(shape)
    return jax.tree.map(lambda *x: np.concatenate(x)[:size].reshape(shape), *rows)


def by_numpy(function, *args):
    """The result by NumPy, which is that of JAX: see test_numpy_and_jax_say_the_same."""
    with np.errstate(all="ignore"):
        return function(*jax.tree.map(np.float64, args))


def moments(estimate, variances, sizes):
    return rules.Moments(estimate, variances, sizes)


def partial_auc(sample, level, max_fpr=MAX_FPR, tpr=None):
    if tpr is None:
        library = numerics.namespace(sample.estimate)
        tpr = library.minimum(library.asarray(1.0), library.asarray(sample.estimate) * 1.2)
    return areas.partial_auc(sample, level, max_fpr, tpr)


def average_precision(sample, level, odds=None):
    n0, n1 = sample.sizes
    odds = n0 / n1 if odds is None else odds
    numbers = precision.Precisions(sample.estimate * (1 - 0.5 / (n1 + 1)), odds)
    return precision.average_precision(sample, level, numbers)


def recall_of(sample, level, max_fpr=MAX_FPR):
    """Of the curve A (u / max_fpr)^0.3, with A the estimate."""
    a, sizes = sample.estimate, sample.sizes
    library = numerics.namespace(a, *sizes)

    def height(fpr):
        return library.minimum(a * (library.clip(fpr, 0.0, 1.0) / max_fpr) ** 0.3, 1.0)

    lower, upper = map(height, recall.around_limit(max_fpr, sizes[0]))
    heights = recall.Heights(a, a, lower, upper, a / 1.3)
    box = recall.box_of(lambda *fpr: [*map(height, fpr)], max_fpr, sizes[0], level)
    unweighted = moments(a, (0 * a, 0 * a), sizes)  # which no variance is too large for
    return recall.recall(unweighted, heights, box, max_fpr, level)


RULES = {
    "logit_t": rules.logit_t,
    "auc": areas.auc,
    "partial_auc": partial_auc,
    "average_precision": average_precision,
    "recall": recall_of,
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


SHAPES = (0.5, 0.7, 1.0, 2.5, 17.0, 400.0, 1e4, 1e6)


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


# ---- values


def test_values():
    first = moments(0.9, (0.03, 0.02), (180, 20))
    second = moments(0.95, (0.012, 0.0096), (3000, 30))
    limits = [by_numpy(areas.auc, x, 0.95) for x in (first, second)]
    expected = [(0.78322811, 0.95167539), (0.87197641, 0.97479073)]
    np.testing.assert_allclose(limits, expected, rtol=0, atol=1e-8)


# Estimates, variances and sizes: many and few soft failures and successes, and in between.
SAMPLES = [
    (0.9, (0.03, 0.02), (180, 20)),
    (0.62, (0.08, 0.11), (40, 40)),
    (0.993, (0.002, 0.0013), (900, 46)),
    (0.9985, (0.0004, 0.0001), (500, 30)),
    (0.011, (0.0002, 0.003), (300, 25)),
    (0.21, (0.01, 0.05), (5000, 26)),
    (0.97, (0.0, 0.02), (30, 60)),
    (0.975, (0.004, 0.006), (200, 50)),
    (0.99, (0.002, 0.003), (500, 30)),
    (0.325, (1e-4, 2e-4), (20, 20)),  # hardly a positive above a negative
    (0.35, (0.001, 0.002), (30, 30)),
    (0.5, (1e-7, 1e-7), (40, 40)),  # nearly all tie
    (0.5, (3e-4, 4e-4), (40, 20)),
    (0.8, (1e-4, 1e-4), (5, 60)),
    (0.9991, (2e-5, 3e-5), (80, 90)),
    # Between the counts where a limit begins to move and where it has moved.
    (0.99, (0.002, 0.001), (300, 200)),
    (0.8, (1e-6, 0.14), (5000, 300)),
    (0.975, (0.001, 0.0025), (300, 30)),
]


def written(name, sample, level):
    estimate, _, (_, n1) = sample
    if name == "partial_auc":
        return formulas.partial_auc(*sample, level, MAX_FPR, min(1, 1.2 * estimate))
    if name == "average_precision":
        return formulas.average_precision(*sample, level, estimate * (1 - 0.5 / (n1 + 1)))
    if name == "of_few_failures":  # with Jeffreys' counts
        return formulas.of_few_failures((0.3, 0.7), estimate, n1, (1, 1.5), level)
    if name == "of_whole_failures":
        return formulas.of_whole_failures((estimate, estimate), *sample, level)
    return getattr(formulas, name)(*sample, level)


def of_whole_failures(sample, level):
    """Of an interval without width, which they widen whatever the number."""
    classes = list(zip(sample.variances, sample.sizes, strict=True))
    return rules.of_whole_failures((sample.estimate,) * 2, sample.estimate, classes, level)


def of_few_failures(sample, level):
    return rules.of_few_failures((0.3, 0.7), sample.estimate, sample.sizes[1], (1.0, 1.5), level)


NAMES = ["logit_t", "auc", "partial_auc", "average_precision"]


@pytest.mark.parametrize("name", [*NAMES, "of_few_failures", "of_whole_failures"])
def test_written_formulas(name):
    """Each rule is what its text says, by SciPy."""
    samples = jax.tree.map(lambda *x: np.array(x), *(moments(*x) for x in SAMPLES))
    parts = {"of_few_failures": of_few_failures, "of_whole_failures": of_whole_failures}
    rule = {**RULES, **parts}[name]
    for level in LEVELS:
        limits = np.transpose([written(name, sample, level) for sample in SAMPLES])
        np.testing.assert_allclose(doubled(rule, samples, level), limits, rtol=1e-9)


@pytest.mark.parametrize(
    ("module", "name"),
    [(areas, x) for x in ("_PSEUDO_AUC", "_PSEUDO_PARTIAL", "PRIOR")]
    + [(areas, x) for x in ("_FEWEST", "_FEWEST_POSITIVES")]
    + [(precision, x) for x in ("_FEW", "_FEW_ABOVE", "_FEWEST", "KURTOSIS")]
    + [(rules, x) for x in ("_UNSEEN", "MANY_FAILURES")],
)
def test_no_constant_may_change(module, name, monkeypatch):
    """Each one by 3 % makes a rule differ from its text for one of the samples."""
    samples = jax.tree.map(lambda *x: np.array(x, float), *(moments(*x) for x in SAMPLES))
    of_rules = {name: RULES[name] for name in NAMES} | {"of_whole_failures": of_whole_failures}

    def limits():
        with np.errstate(all="ignore"):
            return [np.array(rule(samples, np.float64(0.95))) for rule in of_rules.values()]

    expected, value = limits(), np.array(getattr(module, name))
    for place in range(value.size):
        changed = value * np.where(np.arange(value.size) == place, 1.03, 1)
        changed = tuple(changed) if value.ndim else float(changed[0])
        monkeypatch.setattr(module, name, changed)
        worst = max(np.max(abs(x - y)) for x, y in zip(limits(), expected, strict=True))
        assert worst > 1e-8, place


def test_samples_reach_every_branch():
    """Of the widening to Beta limits: not at all, in part and all of it, on both sides."""
    for fewest, size in ((1 / 4, min), (1.0, lambda sizes: sizes[1])):
        failures = np.array([(1 - a) * size(n) for a, _, n in SAMPLES]) / fewest
        assert (failures > 1.5).any()
        assert (failures < 1).any()
        assert ((failures > 1) & (failures < 1.5)).any()
    successes = np.array([a * n[1] for a, _, n in SAMPLES])
    assert (successes < 1).any()
    assert ((successes > 4) & (successes < 6)).any()
    above = np.array([n[1] * formulas.share_above(a, n[0] / n[1]) for a, _, n in SAMPLES])
    assert (above < 1).any()
    assert ((above > 1) & (above < 2)).any()
    # The Beta limits are wider than those of the rule that they replace.
    estimate, variances, sizes = SAMPLES[3]
    narrow = formulas.logit_t(estimate, variances, sizes, 0.95)
    assert doubled(areas.auc, moments(*SAMPLES[3]), 0.95)[0] < narrow[0] - 0.02


# A curve that is steep, one that is flat and then steep, few positives, and limits on steps.
CURVES = [(0, 60, 300, 0.1), (1, 25, 200, 0.05), (2, 200, 45, 0.2), (3, 40, 1000, 0.0125)]


def sample_of_curve(seed, n1, n0):
    rng = np.random.default_rng(seed)
    positives, negatives = rng.normal(size=n1) + 1.3, rng.normal(size=n0)
    if seed == 1:  # half of the positives are where the slope is not looked for, but the box is
        low, high = np.sort(negatives)[[-15, -14]]
        positives[: n1 // 2] = rng.uniform(low, high, n1 // 2)
    return positives, negatives


@pytest.mark.parametrize(("curve", "level"), in_turn(CURVES, LEVELS))
def test_written_formula_of_recall(curve, level):
    seed, n1, n0, max_fpr = curve
    positives, negatives = sample_of_curve(seed, n1, n0)

    def height(fpr):
        return formulas.height(positives, negatives, fpr)

    low, high = formulas.around_limit(max_fpr, n0)
    heights = recall.Heights(
        height(max_fpr),
        height(max_fpr - 1e-6),
        height(low),
        height(high),
        formulas.divided_area(positives, negatives, max_fpr),
    )
    counts = by_numpy(recall.likely_counts, max_fpr, n0, level)
    box = recall.Box(*(height(x) if x >= 0 else 0.0 for x in counts))
    unweighted = moments(heights.at, (0.0, 0.0), (n0, n1))
    found = by_numpy(recall.recall, unweighted, heights, box, max_fpr, level)
    expected = formulas.recall(positives, negatives, max_fpr, level)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    slope = by_numpy(recall.squared_slope, heights, max_fpr, (n0, n1))
    np.testing.assert_allclose(
        slope, formulas.squared_slope(positives, negatives, max_fpr), rtol=1e-9
    )


@pytest.mark.parametrize("n_tied", [95, 101, 106, 109])
def test_ties_just_beyond_the_limit(n_tied):
    """1 % of 10,000 negatives tie with 94 of 2,000 positives, at the top: the recall is 0 or 4.7 %,
    and Wilson's limit is that of half a draw."""
    positives = np.concatenate([np.ones(94), np.linspace(0, 0.9, 1906)])
    negatives = np.concatenate([np.ones(n_tied), np.linspace(0, 0.9, 10_000 - n_tied)])
    scores = np.concatenate([negatives, positives])
    labels = np.arange(12_000) >= 10_000
    found = jm.confidence_interval(partial(jm.recall_at_fpr, max_fpr=0.01), scores, labels)
    assert found.low == 0
    assert 94 / 2000 < found.high < 94 / 2000 + 4.5 * np.sqrt(94) / 2000


def test_the_box_widens_where_the_slope_is_wrong():
    positives, negatives = sample_of_curve(1, 25, 200)
    slope, box = (
        f(positives, negatives, 0.05, 0.95) for f in (formulas.recall_of_slope, formulas.recall_box)
    )
    assert box[1] > slope[1] + 0.02


def test_counts_of_the_box():
    level, n0, max_fpr = 0.95, np.array([40.0, 300.0, 5000.0]), np.float64(0.05)
    fewest, last, most, *ends = by_numpy(recall.likely_counts, max_fpr, n0, level)
    np.testing.assert_allclose(fewest * n0, stats.binom.ppf(0.1, n0, max_fpr) - 1, atol=1e-9)
    np.testing.assert_allclose(last * n0, stats.binom.ppf(0.9, n0, max_fpr) - 1, atol=1e-9)
    np.testing.assert_allclose(most * n0, stats.binom.ppf(0.9, n0, max_fpr), atol=1e-9)
    for x, q in zip([ends[0] + 1 / n0, ends[1]], [0.00125, 0.99875], strict=True):
        np.testing.assert_allclose(x * n0, stats.binom.ppf(q, n0, max_fpr), atol=1e-9)
    fewest, *_ = by_numpy(recall.likely_counts, 0.01, 30.0, level)
    assert fewest < 0  # none may be above, so the recall may be 0
    assert by_numpy(recall.likely_counts, 1.0, 30.0, level)[-1] == 1
    counts = by_numpy(recall.likely_counts, 0.95, 10.0, level)
    assert counts[1:3] == (1, 1)  # the limit may be 1


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


def test_shape_of_the_beta():
    for mean, rho in [(0.9, 0.05), (0.5, 0.3), (0.2, 0.9)]:
        law = stats.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1))
        np.testing.assert_allclose(law.var(), rho * mean * (1 - mean))
        skewness, kurtosis = law.stats("sk")
        expected = skewness, kurtosis + 3 - 1 - skewness**2
        np.testing.assert_allclose(doubled(areas.beta_shape, mean, rho), expected, atol=1e-12)


def test_variance_of_a_power_law():
    # A negative at u takes from the area what the curve r (u / t)^h falls below its end there.
    t, area = 0.2, 0.6
    h = (0.55 + 0.65 * np.sqrt(t)) * (1 - area)
    u = (np.arange(10**6) + 0.5) / 10**6
    height = area * (1 + h)
    influence = np.where(u < t, height * (1 - (u / t) ** h) / t, 0)
    got = doubled(areas.power_law_variance, area, t)
    np.testing.assert_allclose(got, np.var(influence), rtol=1e-4)


def test_bias_of_few_negatives():
    def bias(area, m, max_fpr, height):
        sizes = m / max_fpr, 1e9
        return area - doubled(areas.centre_of_window, area, sizes, max_fpr, height)

    assert bias(0.6, 10.0, 1.0, 1.0) == 0  # the whole curve has none
    assert bias(0.02, 1.0, 0.1, 1.0) == 0.01  # half of the area
    # Of many negatives: what the end of the curve is above its mean, over twice their number.
    np.testing.assert_allclose(bias(0.6, 1e4, 0.1, 0.75) * 1e4, 0.75 * 0.25 * 0.9 / 2, rtol=1e-3)


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
