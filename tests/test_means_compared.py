"""`mean_interval` and `compare_means`: values of items, rankers over queries."""

from __future__ import annotations

import dataclasses
import warnings

import difference_formulas as differences
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm


@pytest.fixture
def values(rng):
    return rng.normal(size=(3, 60)).cumsum(axis=0) + 5  # beyond [0, 1]: the plain t


@pytest.mark.parametrize("library", [np, jnp], ids=["NumPy", "JAX"])
def test_values_that_a_program_closes_over_are_checked(library, values):
    given = library.asarray(values)
    found = jax.jit(lambda x: x + jm.compare_means(given).difference[0, 1])(0.0)
    np.testing.assert_allclose(found, jm.compare_means(given).difference[0, 1], rtol=1e-6)
    lost = library.where(np.arange(60) == 7, np.nan, given)
    with pytest.raises(ValueError, match="got nan for item 7 of model 0"):
        jax.jit(lambda x: x + jm.compare_means(lost).difference[0, 1])(0.0)


def test_models_without_items_have_no_difference():
    assert np.isnan(jm.compare_means(np.zeros((3, 0))).difference).all()


def test_pairs_are_those_of_the_paired_t_test(values, x64):
    found = jm.compare_means(values)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        known = stats.ttest_rel(values[i], values[j])
        np.testing.assert_allclose(found.z[i, j], known.statistic, rtol=1e-12)
        np.testing.assert_allclose(found.p_value[i, j], known.pvalue, rtol=1e-9)
        np.testing.assert_allclose(found.low[i, j], known.confidence_interval().low, rtol=1e-9)
    np.testing.assert_allclose(found.df[0, 1], 59, rtol=1e-12)
    assert (np.asarray(found.simultaneous_low) <= np.asarray(found.low)).all()


@pytest.mark.filterwarnings("ignore:a comparison rests on 4 items")
@pytest.mark.parametrize(
    ("level", "tolerance"), [(0.8, 0.01), (0.9, 0.01), (0.95, 0.01), (0.99, 0.03)]
)
def test_simultaneous_limits_of_four_items_are_those_of_draws(level, tolerance):
    """Three models, whose variances have 3 degrees of freedom: t's of a heavy tail."""
    values = np.array([[0.9, 0.8, 0.7, 0.95], [0.6, 0.75, 0.5, 0.7], [0.5, 0.7, 0.65, 0.6]])
    found = jm.compare_means(values, confidence_level=level)
    rng, pairs = np.random.default_rng(3), ([0, 0, 1], [1, 2, 2])
    draws = rng.multivariate_normal(np.zeros(3), np.cov(values), 400_000)
    error = np.sqrt([np.var(values[i] - values[j], ddof=1) for i, j in zip(*pairs, strict=True)])
    size = np.abs(draws[:, pairs[0]] - draws[:, pairs[1]]) / error
    largest = size.max(axis=1) / np.sqrt(rng.chisquare(3, len(size)) / 3)
    half = np.asarray(found.simultaneous_high - found.difference)[pairs]
    of_pair = np.asarray(found.high - found.difference)[pairs] / stats.t.ppf((1 + level) / 2, 3)
    np.testing.assert_allclose(half / of_pair, np.quantile(largest, level), rtol=tolerance)
    beyond = [np.mean(largest > abs(x)) for x in np.asarray(found.z)[pairs]]
    np.testing.assert_allclose(found.simultaneous_p_value[pairs], beyond, atol=0.004)


def test_shares_have_disagreements_that_were_not_drawn(rng):
    """Wider than the paired t by one observation more, and not by much."""
    values = rng.beta(2, 1, size=(2, 50))
    found, plain = jm.compare_means(values), stats.ttest_rel(*values)
    error = float(found.high[0, 1] - found.difference[0, 1])
    width = plain.confidence_interval()
    assert 1 < error / ((width.high - width.low) / 2) < 1.1
    close = float(found.standard_error[0, 1])
    np.testing.assert_allclose(close, stats.sem(values[0] - values[1]), rtol=1e-5)


@pytest.mark.parametrize("size", [1.0, 0.3, 0.0])
def test_sparse_differences_have_one_more_of_either_sign(size, x64):
    """Of hits, the adjusted variance of Bonett and Price, but for the ties."""
    n, wins = 20, 2 if size else 0
    values = np.full((2, n), 0.4)
    values[0, :wins] += size - 0.4 * (size == 1)
    values[1, :wins] -= 0.4 * (size == 1)
    d = np.array([size] * wins + [0] * (n - wins))
    found = jm.compare_means(values)
    more = np.sqrt((wins * size**2 + 1) / (wins + 1))  # one of 1 among them
    weights = np.array([1] * n + [(n - wins) / n] * 2)
    moments = [np.average(np.append(d, [more, -more]) ** k, weights=weights) for k in (1, 2)]
    error = np.sqrt((moments[1] - moments[0] ** 2) / weights.sum())
    margin = stats.t.ppf(0.975, n - 1) * error
    np.testing.assert_allclose(found.high[0, 1], d.mean() + margin, rtol=1e-9)
    np.testing.assert_allclose(found.low[0, 1], d.mean() - margin, rtol=1e-9)


@pytest.mark.parametrize("centre", [1e11, -1e10])
def test_values_far_from_0_have_the_errors_of_others(values, centre):
    """Of which 1e-12 are not their rounding."""
    near, far = (jm.compare_means(x, reference=0) for x in (values, values + centre))
    for name in ("difference", "standard_error", "low", "simultaneous_high", "p_value", "chi2"):
        got, wanted = (getattr(x, name) for x in (far, near))
        np.testing.assert_allclose(got, wanted, rtol=2e-3)
    np.testing.assert_allclose(far.estimate, near.estimate + centre, rtol=1e-7)


def test_a_model_far_from_the_others_leaves_them_their_digits(rng):
    values = rng.random((3, 200)) + np.array([[0], [0.3], [0]])
    values[2, 7] = 1e20
    found, alone = (jm.compare_means(x) for x in (values, values[:2]))
    np.testing.assert_array_equal(found.estimate[:2], alone.estimate)
    for name in ("difference", "standard_error", "low", "p_value"):
        got, wanted = (getattr(x, name)[0, 1] for x in (found, alone))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=name)


def test_a_difference_without_variance_is_warned_of(values):
    with pytest.warns(UserWarning, match="models 0 and 1 differ by the same amount in all items"):
        found = jm.compare_means([values[0].round(1) * 8, values[0].round(1) * 8 + 1])
    assert np.isnan(found.p_value[0, 1])


def test_equal_values_of_any_range_have_no_error():
    assert jm.compare_means(np.stack([5 + np.arange(20)] * 2)).high[0, 1] == 0


def test_clusters_are_their_means(values):
    """Clusters of like size: the means of the clusters are the values."""
    ids = np.repeat(np.arange(20), 3)
    found = jm.compare_means(values, clusters=ids)
    known = jm.compare_means(values.reshape(3, 20, 3).mean(axis=-1))
    for name in ("difference", "standard_error", "df", "p_value", "simultaneous_high"):
        np.testing.assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-5)
    interval = jm.mean_interval(values, clusters=ids)
    known = jm.mean_interval(values.reshape(3, 20, 3).mean(axis=-1))
    np.testing.assert_allclose(interval.high, known.high, rtol=1e-6)


def test_clusters_of_shares_amount_to_more_draws(rng):
    """Clusters of one item are items; of many, Wilson's limits of their number are too wide."""
    shares = np.stack([rng.beta(4, 2, 120), rng.beta(4, 2, 120)])
    for function in (jm.mean_interval, jm.compare_means):
        apart, plain = function(shares, clusters=np.arange(120)), function(shares)
        for name in ("low", "high", "standard_error"):
            np.testing.assert_allclose(getattr(apart, name), getattr(plain, name), rtol=1e-6)

    ids = np.repeat(np.arange(12), 10)
    of_means = shares.reshape(2, 12, 10).mean(axis=-1)
    found, narrow = jm.compare_means(shares, clusters=ids), stats.ttest_rel(*of_means)
    wide = jm.compare_means(of_means)
    t = narrow.confidence_interval()
    widths = [float(x.high[0, 1] - x.low[0, 1]) for x in (found, wide)]
    assert t.high - t.low < widths[0] < 0.5 * widths[1]


def test_clusters_of_one_item_are_items(rng, x64):
    values, weights = rng.beta(1, 5, size=(3, 40)).round(1), rng.integers(1, 6, 40)
    where = rng.random(40) < 0.8
    plain = jm.compare_means(values, weights=weights, where=where)
    found = jm.compare_means(values, weights=weights, where=where, clusters=rng.permutation(40))
    for name in ("low", "high", "p_value", "df", "chi2"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-9)


def draws_of_clusters(values):
    """Of values `[clusters, items]` of one model, by two clusters more with what W leaves."""
    n, means, mean = len(values), values.mean(axis=1), values.mean()
    of_draw = mean * (1 - mean)
    most = 1 - (values.var() - means.var()) / of_draw
    return n * (n + 1) / ((n - 1) * means.var(ddof=1) / of_draw + 2 * most)


def test_differences_of_clusters_count_as_independent_items_that_vary_as_much(rng, x64):
    """N V_0 / V of them, with the variance V_0 of independent items; not below those of a model."""
    effect, moves = rng.normal(size=(6, 1)), rng.normal(size=(6, 1))
    common = rng.normal(size=(6, 50))
    logits = [effect + common, effect + common + 0.3 * rng.normal(size=(6, 50)), moves + common]
    values = 1 / (1 + np.exp(-np.array(logits)))
    found = jm.compare_means(values.reshape(3, 300), clusters=np.arange(300) // 50)
    drawn = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        pair = values[[i, j]]
        shares, covariance = pair.mean(axis=(1, 2)), np.cov(pair.mean(axis=2)) / 6
        variance = np.var((pair[0] - pair[1]).mean(axis=1), ddof=1) / 6
        n = max(np.var(pair[0] - pair[1], ddof=1) / variance, min(map(draws_of_clusters, pair)))
        drawn.append(n)
        most = differences.largest_variance(shares, n * covariance, n)
        error = np.sqrt(variance + max(most - n * variance, 0) / n**2)
        margin = found.high[i, j] - found.difference[i, j]
        np.testing.assert_allclose(margin, stats.t.ppf(0.975, 5) * error, rtol=1e-9)
    assert 150 < drawn[0] < 300  # the clusters have no effect on this difference
    assert max(drawn[1:]) < 20


@pytest.mark.parametrize("rare", [False, True])
def test_few_large_clusters_are_no_wider_than_their_differences(rng, rare):
    """They move both models alike, or models differ in one item of 100."""
    effect = rng.normal(size=(8, 1, 1))
    logits = effect + rng.normal(size=(8, 500, 1)) + 0.5 * rng.normal(size=(8, 500, 2))
    values = 1 / (1 + np.exp(-logits.reshape(4000, 2).T))
    if rare:
        hits = values[0] > 0.5
        values = np.stack([hits, hits ^ (rng.random(4000) < 0.01)]) * 1.0
    ids = np.repeat(np.arange(8), 500)
    found = jm.compare_means(values, reference=0, clusters=ids)
    of_means = (values[1] - values[0]).reshape(8, 500).mean(axis=1)
    width = stats.t.ppf(0.975, 7) * stats.sem(of_means)
    assert 0.999 < (found.high[1] - found.difference[1]) / width < 1.05


def test_draws_of_clusters_by_hand(x64):
    """Two clusters more, with what the variance within leaves; equal values are no more draws."""
    hits = np.array([1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0.0])
    ids, n, z = np.repeat(np.arange(4), 4), 4, stats.norm.ppf(0.975)
    means, mean = hits.reshape(4, 4).mean(axis=1), hits.mean()
    draws = draws_of_clusters(hits.reshape(4, 4))
    assert n < draws < 16
    assert draws * mean < 4  # so that the upper limit is, in part, Wilson's
    share = (4 - max(draws * mean, 2)) / 2

    def wilson(k):
        root = np.sqrt(mean * (1 - mean) / k + (z / (2 * k)) ** 2)
        return (mean + z**2 / (2 * k) + z * root) / (1 + z**2 / k)

    outer = wilson(max(draws * (z / stats.t.ppf(0.975, 3)) ** 2, n))
    error, skewness = stats.sem(means), stats.skew(means, bias=False)
    bend, x = skewness / np.sqrt(n), -stats.t.ppf(0.975, 3)
    hall = mean - error * 3 / bend * (np.cbrt(1 + bend * (x - bend / 6)) - 1)
    own = min(hall, outer)
    found = jm.mean_interval(hits, clusters=ids)
    np.testing.assert_allclose(found.high, own + share * (outer - own), rtol=1e-6)

    same = jm.compare_means(np.stack([hits, hits]), clusters=ids)
    most = stats.t.ppf(0.975, 3) * np.sqrt(2) / (draws + 2)  # by one of either sign
    np.testing.assert_allclose(same.high[0, 1], most, rtol=1e-6)

    none = jm.mean_interval(np.zeros(16), clusters=ids)
    np.testing.assert_allclose(none.high, z**2 / (4 + z**2), rtol=1e-6)  # of 4, not of 16


def test_masked_items_are_deleted_and_weights_keep_their_scale(values):
    where = np.arange(60) % 4 > 0
    hidden = np.where(where, values, np.nan)
    found, known = jm.compare_means(hidden, where=where), jm.compare_means(values[:, where])
    scaled = jm.compare_means(values, weights=where * 3.0)
    for name in ("estimate", "standard_error", "df", "high", "chi2"):
        np.testing.assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-6)
        np.testing.assert_allclose(getattr(scaled, name), getattr(known, name), rtol=1e-6)
    interval = jm.mean_interval(hidden, where=where)
    np.testing.assert_allclose(interval.low, jm.mean_interval(values[:, where]).low, rtol=1e-6)


def test_a_program_compares_as_numpy_does(rng):
    """Also of models that are equal, whose means a program may round in different ways."""
    program = jax.jit(jm.compare_means)
    for values in (rng.beta(2, 1, size=(3, 40)), np.stack([rng.normal(size=40)] * 3)):
        traced, concrete = program(jnp.asarray(values)), jm.compare_means(jnp.asarray(values))
        for name in (x.name for x in dataclasses.fields(concrete)):
            x = getattr(concrete, name)
            if x is not None:
                np.testing.assert_allclose(getattr(traced, name), x, rtol=2e-5, atol=2e-6)


def test_interval_of_means_is_that_of_the_bootstraps_closed_form(rng):
    values = rng.beta(2, 1, size=(2, 30))
    found = jm.mean_interval(values)
    known = jm.bootstrap_mean(values, key=jax.random.key(0), n_resamples=2).interval()
    np.testing.assert_array_equal(found.low, known.low)
    np.testing.assert_array_equal(found.high, known.high)


def test_errors(values):
    for value in (np.nan, -np.inf):
        values[1, 7] = value
        with pytest.raises(ValueError, match=rf"{value} for item 7 of model 1: write where=isfini"):
            jm.compare_means(values)
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"1e-144 to 1e\+144 in size, got"):
        jm.compare_means(values[:, :7] * 1e150)
    with pytest.raises(ValueError, match="two models or more"):
        jm.compare_means(values[0])
    with pytest.warns(UserWarning, match="rests on 5 items"):
        jm.compare_means(values[:, 10:15])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.compare_means(values[[0, 2], :20])


def test_one_model_of_shares_is_compared_as_values_of_any_range(x64):
    """None of the differences that were not drawn is known to be 1 at most."""
    values = np.full((2, 20), 0.4)
    values[1, :2] += 3
    found, d = jm.compare_means(values), values[0] - values[1]
    weights = np.array([1] * 20 + [18 / 20] * 2)
    of_both_signs = np.append(d, [3, -3])
    mean = np.average(of_both_signs, weights=weights)
    variance = np.average((of_both_signs - mean) ** 2, weights=weights) / weights.sum()
    half = stats.t.isf(0.025, 19) * variance**0.5
    np.testing.assert_allclose(found.high[0, 1] - found.difference[0, 1], half, rtol=1e-9)


def test_rows_of_items_are_doubted_and_long_lists_are_cut(rng):
    with pytest.warns(UserWarning, match=r"has 30 models of 3 items.*write values\.T"):
        found = jm.compare_means(rng.normal(size=(30, 3)))
    assert "and 10 more" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.compare_means(rng.normal(size=(30, 40)))
