"""Intervals of means of values: by hand, at the edges, under weights and transformations."""

import warnings
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from benchmarks import means as study
from jaxmetrics.inference._intervals.effective import kept_and_df
from jaxmetrics.inference._intervals.means import (
    Within,
    limits_of_mean,
    moments_of_sample,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*add queries until", "ignore:a mean rests on")

KEY = jax.random.key(3)
FEW = {"key": KEY, "n_resamples": 20}


def interval(values, level=0.95, **options):
    """Which resampled means have, too, after a program that most tests need not wait for."""
    return jm.mean_interval(values, confidence_level=level, **options)


def limits(values, level=0.95, **options):
    found = interval(values, level, **options)
    return np.stack([found.low, found.high])


def hall(values, level=0.95):
    """With SciPy, from the formula of the paper."""
    n, t = len(values), stats.t.ppf((1 + level) / 2, len(values) - 1)
    a = stats.skew(values, bias=False) / np.sqrt(n)
    error = np.std(values, ddof=1) / np.sqrt(n)
    sides = [3 / a * (np.cbrt(1 + a * (x - a / 6)) - 1) for x in (t, -t)]
    return np.mean(values) - error * np.array(sides)


def wilson(share, n, level=0.95):
    found = stats.binomtest(round(share * n), n).proportion_ci(level, "wilson")
    return np.array([found.low, found.high])


def close(a, b, atol=2e-6):
    np.testing.assert_allclose(a, b, rtol=2e-6, atol=atol)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_values_of_any_range_have_the_hull_of_hall_and_t(level, rng):
    for values in (rng.lognormal(size=30), -rng.gamma(1, size=30), rng.normal(size=40)):
        error = stats.sem(values)
        student = stats.t.interval(level, len(values) - 1, np.mean(values), error)
        both = np.stack([hall(values, level), student])
        close(limits(values, level), [both[:, 0].min(), both[:, 1].max()])
        close(interval(values, level).standard_error, error)


def test_shares_have_halls_limits(rng):
    values = rng.beta(5, 1, 40)
    close(limits(values), hall(values))


@pytest.mark.parametrize("hits", [10, 21, 30])
def test_yes_and_no_have_wilsons_limits_or_narrower_ones(hits):
    values = (np.arange(40) < hits).astype(float)
    low, high = np.stack([hall(values), wilson(hits / 40, 40)]).T
    close(limits(values), [low.max(), high.min()])


@pytest.mark.parametrize("hits", [0, 1, 2])
def test_few_hits_have_wilsons_upper_limit_and_many_the_mirrored_one(hits):
    values = (np.arange(30) < hits).astype(float)
    found = limits(values)
    close(found[1], wilson(hits / 30, 30)[1])
    assert found[0] <= wilson(hits / 30, 30)[0] + 1e-9
    assert hits == 0 or found[0] == pytest.approx(max(hall(values)[0], 0), abs=1e-6)
    close(limits(1 - values), 1 - found[::-1])


def test_between_few_and_enough_the_upper_limit_is_between():
    values = np.r_[np.full(5, 0.6), np.zeros(25)]  # which add up to 3
    close(limits(values)[1], (min(hall(values)[1], 1) + wilson(3 / 30, 30)[1]) / 2)


def test_weights_count_by_their_shares(rng):
    """All alike change nothing, 0 leaves out, and the size is that of Kish."""
    values = rng.beta(2, 3, (2, 24))
    once = limits(values)
    close(limits(values, weights=np.full(24, 3.0)), once)
    kept = np.arange(24) % 3 > 0
    close(limits(values, weights=kept.astype(float)), limits(values[:, kept]))
    masked = np.where(kept, values, np.nan)
    close(limits(masked, where=kept), limits(values[:, kept]))
    weights = rng.lognormal(0, 1, 24)
    p = weights / weights.sum()
    n, d = 1 / np.sum(p**2), values[0] - p @ values[0]
    for given in ({"weights": weights}, {"where": kept}):
        resampled = jm.bootstrap_mean(values, **given, **FEW).interval()
        close([resampled.low, resampled.high], limits(values, **given))
    found = jm.bootstrap_mean(values, weights=weights, **FEW).sample
    close(found.n, [n, n])
    # The sum is the quadratic form of a matrix, of values that vary alike.
    from_mean = p[:, None] * (np.eye(24) - p)
    form = from_mean.T @ from_mean
    close(found.standard_error[0], np.sqrt(np.sum((p * d) ** 2) / (n * np.trace(form))))
    close(found.df, np.trace(form) ** 2 / np.trace(form @ form))
    assert (found.df < n - 1).all()
    assert (np.diff(limits(values, weights=weights), axis=0) > np.diff(once, axis=0)).all()


def test_a_row_of_a_batch_is_that_of_a_loop(rng):
    values = np.stack([rng.beta(5, 1, 20), rng.normal(size=20), np.zeros(20)]).reshape(3, 1, 20)
    weights = rng.random((2, 20)) + 0.1
    found = limits(values, weights=weights)
    assert found.shape == (2, 3, 2)
    for i in range(3):
        for j in range(2):
            close(found[:, i, j], limits(values[i, 0], weights=weights[j]))


def test_undefined_means():
    assert np.isnan(limits([0.5])).all()
    assert np.isnan(limits([3.0])).all()
    assert np.isnan(limits([0.5, np.nan, 0.2])).all()
    assert np.isnan(limits(np.zeros((2, 0)))).all()
    assert np.isnan(limits(np.ones(3), where=np.zeros(3, bool))).all()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_values(value):
    """Shares have Wilson's limits; of others nothing is known but the value."""
    share = np.full(12, value)
    n, z2 = 12, stats.norm.ppf(0.975) ** 2
    half = np.sqrt(z2 * (n * value * (1 - value) + z2 / 4))
    close(limits(share), [(n * value + z2 / 2 + sign * half) / (n + z2) for sign in (-1, 1)])
    close(limits(share + 1), [value + 1, value + 1])
    assert interval(np.append(share, 5), where=np.arange(13) < 12).standard_error == 0


def test_clusters_of_ones_mirror_those_of_zeros():
    """In any order: their means are 1 up to rounding."""
    clusters = np.array([1, 3, 5, 5, 0, 4, 2, 2, 2, 5, 1, 3, 4, 2, 3, 0, 4, 1])
    expected = 1 - jm.mean_interval(np.zeros(18), clusters=clusters).high
    for ids in (clusters, 5 - clusters):
        found = jm.mean_interval(np.ones(18), clusters=ids).low
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_means_of_clusters_in_0_1_are_no_shares_of_values_beyond():
    values, clusters = np.array([-5, 6, -4, 4.6, 3, -2]), [0, 0, 1, 1, 2, 2]
    near, far = (jm.mean_interval(x, clusters=clusters) for x in (values, values + 10))
    np.testing.assert_allclose([near.low, near.high], [far.low - 10, far.high - 10], atol=1e-5)
    of_models = jm.compare_means([values, np.arange(6.0)], clusters=clusters)
    apart = jm.compare_means([values + 10, np.arange(6.0) + 10], clusters=clusters)
    np.testing.assert_allclose(of_models.low, apart.low, atol=1e-5)


def test_scale_does_not_matter(x64, rng):
    values = rng.normal(size=30)
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(limits(scale * values) / scale, limits(values), rtol=1e-12)


def test_the_default_is_that_of_what_was_resampled(rng):
    result = jm.bootstrap_mean(rng.random(30), **FEW)
    assert result.interval().method == "mean"
    close(result.interval(method="mean").low, result.interval().low)
    assert result.interval(method="percentile").method == "percentile"
    scores, labels = rng.normal(size=30), np.arange(30) % 2
    result = jm.bootstrap(jm.roc_auc, scores, labels, **FEW)
    assert result.sample is None
    assert result.interval().method == "percentile"
    with pytest.raises(ValueError, match="method must be one of 'percentile'"):
        result.interval(method="mean")


def test_transformations(rng):
    values = rng.beta(2, 1, (3, 20)).astype("float32")
    expected = limits(values)
    traced = jax.jit(lambda x: (lambda i: jnp.stack([i.low, i.high]))(interval(x)))
    close(traced(values), expected)
    close(jax.vmap(traced, out_axes=1)(jnp.asarray(values)), expected)
    with jax.enable_x64(True):
        close(limits(values), expected)


def test_warnings(rng):
    with pytest.warns(UserWarning, match=r"values add up to 1 over 30 queries: below 2.* is 4"):
        interval((np.arange(30) < 1).astype(float))
    with pytest.warns(UserWarning, match=r"1 - value adds up to 1\.5 over 30 queries"):
        interval(np.r_[np.ones(25), np.full(5, 0.7)])
    with pytest.warns(UserWarning, match="a mean rests on 12 values: .* fewer than 20"):
        interval(rng.normal(size=(2, 12)))
    with pytest.warns(UserWarning, match="a mean rests on 12 values"):
        interval([rng.normal(size=12), rng.random(12)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interval(rng.random(10))
        interval(rng.normal(size=20))


# ---- the study


@pytest.mark.parametrize(
    "family", [*study.TUNED.values(), *study.HELD_OUT.values()], ids=[*study.TUNED, *study.HELD_OUT]
)
def test_true_means_of_the_study(family):
    values = family.draw(np.random.default_rng(0), (1, 1_000_000))
    assert abs(values.mean() - family.mean) < 6 * values.std() / 1000


CELLS = [
    *((name, 20, 0.93) for name in ("Beta(8, 0.5)", "0 with 0.9, else Beta(2, 2)", "hits, 0.1")),
    ("reciprocal ranks, uniform to 100", 50, 0.93),
    ("hits, 0.05", 50, 0.93),
    ("exponential", 20, 0.93),
    ("0 with 0.7, else normal", 20, 0.93),
]


@pytest.mark.parametrize(("name", "n", "lowest"), CELLS)
def test_coverage(name, n, lowest, x64):
    """Where percentiles, Student's t, and Hall's t by itself do not hold; of 2,000 simulations."""
    family = study.TUNED[name]
    values = family.draw(np.random.default_rng(n), (2000, n))
    low, high = limits_of_mean(moments_of_sample(values, None, None, np.dtype(np.float64)), 0.95)
    assert np.mean((low <= family.mean) & (high >= family.mean)) > lowest


def test_the_study_finds_the_interval_that_users_get(rng, x64):
    values = rng.random((4, 30))
    sample = moments_of_sample(values, None, None, np.dtype(np.float64))
    found = study.limits_of_moments(values, 0.95, sample)
    close(found["mean"], limits(values))
    result = jm.bootstrap_mean(values, key=KEY, n_resamples=4000)
    low, high = study.resampled_limits(values, (0.95,), 4000, rng)[0.95]["percentile"]
    percentile = result.interval(method="percentile")
    np.testing.assert_allclose([low, high], [percentile.low, percentile.high], atol=0.012)


def test_shares_that_add_up_to_more_than_one_are_shares(x64):
    """The parts of a tie did, in the recall of a list."""
    labels = [1.0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    for scores in ([0.0, 0, 1, 3, 3, 3, 3, 0, 2, 0, 2, 0], np.zeros(12)):
        assert jm.recall_at_k(scores, labels, k=12) <= 1
    for last in (1.0, 0.5):
        values = np.append(np.ones(29), last)
        expected = jm.mean_interval(values)
        found = jm.mean_interval(np.where(values == 1, 1 + 2e-16, values))
        np.testing.assert_allclose((found.low, found.high), (expected.low, expected.high), 1e-12)


@pytest.mark.parametrize("weights", [[3e5, 1, 1], [1, 1e-9], [1e12, 1, 2, 1], [1, 1, 1], [5, 5, 1]])
def test_degrees_of_freedom_where_one_share_is_nearly_all(weights):
    """Against rational arithmetic: the sums of powers of the shares cancel."""
    total = sum(map(Fraction, weights))
    shares = [Fraction(x) / total for x in weights]
    p2, p3, p4, p5 = (sum(x**k for x in shares) for k in (2, 3, 4, 5))
    kept = 1 - 2 * p3 / p2 + p2
    half_variance = (1 + 4 * p2) * p4 - 4 * p5 + 2 * p3 * (p3 - 2 * p2**2) + p2**4
    expected = float(kept), float((p2 * kept) ** 2 / half_variance)
    found = kept_and_df(np.array(weights) / sum(weights))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_few_clusters_that_decide_hardly_show_their_variance():
    """Four of 40 clusters have all ones: t has 2 (n - 1) / (kurtosis - 1) degrees of freedom."""
    means = (np.arange(40) < 4) * 1.0
    within = Within(np.float64(0), np.float64(400), np.True_)
    df = 2 * 39 / (stats.kurtosis(means, fisher=False) - 1)
    assert 10 < df < 12
    sample = moments_of_sample(means, None, None, np.dtype(np.float64), within)
    np.testing.assert_allclose(sample.df, df)
    ids = np.arange(400) // 10
    found = jm.mean_interval(ids < 4, clusters=ids)
    low, high = stats.t(df).ppf([0.025, 0.975]) * found.standard_error + 0.1
    assert low < 0
    assert found.high > high > 0.1 + stats.t(39).ppf(0.975) * found.standard_error
