"""Comparison of models: paired tests, simultaneous limits and permutations."""

import dataclasses
import functools
import itertools
from functools import partial

import interval_formulas as formulas
import jax
import numpy as np
import pytest
from fast import marked
from scipy import integrate, optimize, stats

import jaxmetrics as jm
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Items
from jaxmetrics.inference import _compared, _comparison, _permutation
from jaxmetrics.inference._influence.covariance import Covariance

KEY = jax.random.key(31)
N = 200
RECALL = partial(jm.recall_at_fpr, max_fpr=0.1)
PROGRAM = jax.jit(partial(jm.compare, jm.roc_auc, margin=0.02))  # of four models of 200 items


@pytest.fixture(scope="module")
def data():
    """Four models, of which the last says the same as the first in another unit, and labels."""
    rng = np.random.default_rng(2)
    labels = np.arange(N) % 10 < 3
    common = rng.normal(size=N) + 1.2 * labels
    scores = common + np.array([0.2, 0.6, 4.0])[:, None] * rng.normal(size=(3, N))
    scores = scores.round(1)
    return np.stack([*scores, np.exp(scores[0])]), labels


@pytest.fixture(scope="module")
def compared(data):
    return jm.compare(jm.roc_auc, *data)


def close(a, b, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


def delong(scores, labels):
    """The areas and their covariance."""
    positive, negative = scores[:, labels], scores[:, ~labels]
    difference = positive[:, :, None] - negative[:, None]
    wins = (difference > 0) + (difference == 0) / 2
    v10, v01 = wins.mean(axis=2), wins.mean(axis=1)
    return wins.mean(axis=(1, 2)), np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]


def errors_of_differences(covariance):
    variances = np.diag(covariance)
    return np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))


# ---- pairs


def test_pairs_are_those_of_delong(data, compared):
    areas, covariance = delong(*data)
    difference = areas[:, None] - areas
    error = errors_of_differences(covariance)
    close(compared.estimate, areas)
    close(compared.difference, difference)
    close(compared.standard_error, error)


def values_of_influence(scores, labels):
    """Of the AUC, `[models, n]`: placement values less their means."""
    positive = labels[:, None] > labels
    found = []
    for row in scores:
        wins = (1 + np.sign(row[:, None] - row)) / 2
        phi = np.where(
            labels,
            np.sum(wins * positive, axis=1) / (~labels).sum(),
            np.sum(wins * positive, axis=0) / labels.sum(),
        )
        for kind in (False, True):
            phi[labels == kind] -= phi[labels == kind].mean()
        found.append(phi)
    return np.array(found)


def t_of_pairs(data, level=0.95):
    """The raised error, the degrees of freedom and the quantile of t, `[models, models]`."""
    labels = data[1]
    phi, (areas, _) = values_of_influence(*data), delong(*data)
    sizes = (~labels).sum(), labels.sum()
    error, df, share = np.zeros((3, len(areas), len(areas)))
    for i, j in itertools.product(range(len(areas)), repeat=2):
        pair = [i, j]
        if np.allclose(phi[i], phi[j]):
            continue
        parts = formulas.raised_variances(areas[pair], phi[pair], labels)
        error[i, j], df[i, j] = np.sqrt(parts.sum()), formulas.welch(parts, sizes)
        share[i, j] = parts[0] / parts.sum()
    return error, df, stats.t.ppf((1 + level) / 2, np.where(df > 0, df, 1)), share


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_limits_are_those_of_welch(data, level):
    """Of the error with one more observation of the largest variance in each class."""
    found = jm.compare(jm.roc_auc, *data, confidence_level=level)
    difference = np.subtract.outer(*[delong(*data)[0]] * 2)
    error, df, t, _ = t_of_pairs(data, level)
    assert (error >= np.asarray(found.standard_error) - 1e-6).all()
    assert np.max(error / np.where(error > 0, found.standard_error, 1)) > 1.005
    close(found.low, difference - t * error)
    close(found.high, difference + t * error)
    pairs = error > 0
    p_value = 2 * stats.t.sf(np.abs(difference[pairs] / error[pairs]), df[pairs])
    close(found.p_value[pairs], p_value)


def test_simultaneous_limits_are_those_of_the_maxima(data, compared):
    """Of normal differences with the covariance of the models, each over the root of a chi2 of its
    classes over its degrees of freedom: one chi2 a draw and class for all comparisons."""
    rng, labels, n = np.random.default_rng(8), data[1], 200_000
    error, _, t, share = t_of_pairs(data)
    covariance = delong(*data)[1]
    models = rng.multivariate_normal(np.zeros(4), covariance, n, method="eigh")
    k0, k1 = (~labels).sum() - 1, labels.sum() - 1
    negatives, positives = (rng.chisquare(k, n)[:, None, None] / k for k in (k0, k1))
    spread = np.where(error > 0, errors_of_differences(covariance), np.inf)
    z = (models[:, :, None] - models[:, None, :]) / spread
    z /= np.sqrt(share * negatives + (1 - share) * positives)
    largest = np.max(np.abs(z), axis=(1, 2))
    critical = np.quantile(largest, 0.95)
    # Two quantiles of 200,000 and of 100,096 draws differ by their own errors.
    density = np.mean(np.abs(largest - critical) < 0.05) / 0.1
    tolerance = 4 * np.sqrt(0.95 * 0.05 * (1 / n + 1 / 100_096)) / density
    assert tolerance < 0.06
    pairs = error > 0
    wide = np.asarray(compared.simultaneous_high - compared.difference, float)
    found = wide[pairs] / error[pairs]
    np.testing.assert_allclose(found, found[0], rtol=1e-4)
    np.testing.assert_allclose(found[0], critical, atol=tolerance)
    assert (found > t[pairs] + 0.1).all()
    # The share of the draws that are at least as extreme.
    difference = np.asarray(compared.difference, float)
    for i, j in zip(*np.nonzero(pairs), strict=True):
        p = np.mean(largest >= abs(difference[i, j]) / error[i, j])
        limit = 4 * np.sqrt((p * (1 - p) + 1e-5) * (1 / n + 1 / 100_096))
        assert abs(compared.simultaneous_p_value[i, j] - p) <= limit + 1e-5


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_limits_of_average_precision(level, data):
    """With the kurtosis of the negatives, and further than t E by the cube of it."""
    labels = data[1]
    found = jm.compare(jm.average_precision, *data, confidence_level=level)
    phi = np.asarray(jm.influence(jm.average_precision, *data), float)[:3:2]
    estimate = np.asarray(found.estimate, float)[:3:2]
    parts = formulas.raised_variances(estimate, phi, labels)
    sizes = 1 + ((~labels).sum() - 1) / 10, labels.sum()
    error, df = np.sqrt(parts.sum()), formulas.welch(parts, sizes)
    y = stats.t.ppf((1 + level) / 2, df) * error
    difference = estimate[0] - estimate[1]
    close(found.df[0, 2], df)
    close(found.low[0, 2], difference - y - y**3)
    close(found.high[2, 0], -difference + y + y**3)
    y = optimize.brentq(lambda y: y + y**3 - difference, -1, 1)
    close(found.z[0, 2], y / error)
    close(found.p_value[2, 0], 2 * stats.t.sf(abs(y) / error, df))


def test_row_minus_column(compared):
    close(compared.difference, -compared.difference.T)
    close(compared.low, -compared.high.T)
    close(compared.simultaneous_low, -compared.simultaneous_high.T)
    for p in (compared.p_value, compared.simultaneous_p_value):
        np.testing.assert_array_equal(p, p.T)


def test_models_that_are_equal(compared):
    """A model and itself, and the same in another unit: no difference, without doubt."""
    for i, j in (*zip(range(4), range(4), strict=True), (0, 3), (3, 0)):
        for name in ("difference", "low", "high", "simultaneous_low", "simultaneous_high"):
            assert getattr(compared, name)[i, j] == 0
        assert compared.p_value[i, j] == 1
        assert compared.simultaneous_p_value[i, j] == 1


def test_all_at_once_is_more_careful(compared):
    pairs = ~np.eye(4, dtype=bool)
    assert (compared.simultaneous_low <= compared.low)[pairs].all()
    assert (compared.simultaneous_high >= compared.high)[pairs].all()
    assert (compared.simultaneous_p_value >= compared.p_value - 1e-3).all()
    # Fewer than six comparisons, of which some are one, cost less than Bonferroni's.
    wide, single = (
        (x - compared.difference)[0, 1] for x in (compared.simultaneous_high, compared.high)
    )
    assert wide < single * stats.norm.isf(0.025 / 6) / stats.norm.isf(0.025)


def test_the_best_is_among_the_best(compared):
    assert compared.best_set[np.argmax(compared.estimate)]
    np.testing.assert_array_equal(compared.best_set[0], compared.best_set[3])
    worst = np.argmin(compared.estimate)
    assert compared.simultaneous_high[worst, 0] < 0
    assert not compared.best_set[worst]


def test_chi2(data, compared):
    """Of the three models that differ."""
    areas, covariance = delong(data[0][:3], data[1])
    contrast = np.array([[1.0, -1, 0], [0, 1, -1]])
    d = contrast @ areas
    expected = d @ np.linalg.solve(contrast @ covariance @ contrast.T, d)
    close(compared.chi2, expected, rtol=1e-4)
    assert compared.chi2_df == 2
    # Hotelling's, with the fewest degrees of freedom of a pair.
    error, df, *_ = t_of_pairs(data)
    fewest = df[error > 0].min()
    expected = stats.f.sf(expected * (fewest - 1) / (2 * fewest), 2, fewest - 1)
    close(compared.chi2_p_value, expected, rtol=1e-3)


def test_a_reference(data, compared):
    found = jm.compare(jm.roc_auc, *data, reference=1, confidence_level=0.9)
    assert found.confidence_level == 0.9
    close(found.difference, compared.difference[:, 1])
    close(found.standard_error, compared.standard_error[:, 1])
    close(found.p_value, compared.p_value[:, 1])
    error, _, t, _ = t_of_pairs(data, 0.9)
    close(found.high, found.difference + (t * error)[:, 1])
    assert found.simultaneous_high.shape == found.simultaneous_p_value.shape == (4,)
    others = np.array([0, 2, 3])
    assert (found.simultaneous_low < found.low)[others].all()
    close(found.chi2, compared.chi2)


# ---- simultaneous limits


@pytest.fixture
def from_moments(data, monkeypatch):
    """The comparison of models whose metrics have these values and are equally correlated."""
    covariance = 0.3 * np.eye(4) + 0.7

    def compare(estimate, **options):
        # Of so many items that t is normal.
        sizes = (np.float64(1e12),) * 3
        parts = np.stack([covariance, covariance * 0])
        known = Covariance(covariance, parts, sizes, np.float64(0))
        found = np.asarray(estimate, float), known
        monkeypatch.setattr(_comparison, "covariance_of", lambda *_: found)
        return jm.compare(jm.roc_auc, *data, **options)

    return compare


def test_critical_value_of_all_pairs(from_moments):
    """Tukey's studentized range, over sqrt(2)."""
    law = stats.studentized_range(4, np.inf)
    found = from_moments([0.0, 1.0, 2.0, 2.3])
    close(found.standard_error[0, 1], np.sqrt(0.6))
    critical = (found.simultaneous_high - found.difference) / np.sqrt(0.6)
    np.testing.assert_allclose(critical[0, 1:], law.ppf(0.95) / np.sqrt(2), atol=2e-3)
    z = np.abs(np.asarray(found.difference, float) / np.sqrt(0.6))
    np.testing.assert_allclose(found.simultaneous_p_value, law.sf(z * np.sqrt(2)), atol=1e-3)


@functools.cache
def dunnett(sides, n_others=3, level=0.95):
    """The critical value of several models against one, all of variance 1 and independent."""

    def chance(c):
        def given(z):
            low = stats.norm.cdf(z - np.sqrt(2) * c) if sides == 2 else 0
            return stats.norm.pdf(z) * (stats.norm.cdf(z + np.sqrt(2) * c) - low) ** n_others

        return integrate.quad(given, -9, 9)[0]

    return optimize.brentq(lambda c: chance(c) - level, 0.5, 4)


def test_critical_value_of_a_reference(from_moments):
    np.testing.assert_allclose(dunnett(2), 2.349, atol=1e-3)  # as in Dunnett's table
    found = from_moments(np.zeros(4), reference=1)
    np.testing.assert_allclose(
        found.simultaneous_high[0] / found.standard_error[0], dunnett(2), atol=2e-3
    )


def test_best_set_is_that_of_hsu(from_moments):
    """A model is left out as soon as one other is better by Dunnett's one-sided value."""
    critical = dunnett(1) * np.sqrt(0.6)
    for excess, kept in ((0.998, True), (1.002, False)):
        found = from_moments([0, 0.1, 0.1, critical * excess])
        np.testing.assert_array_equal(found.best_set, [kept, True, True, True])


def test_the_maxima_need_no_key(data, compared):
    again = jm.compare(jm.roc_auc, *data, key=KEY)
    np.testing.assert_array_equal(again.simultaneous_low, compared.simultaneous_low)


def test_simultaneous_limits_of_one_pair_are_its_own(data):
    found = jm.compare(jm.roc_auc, data[0][:2], data[1])
    np.testing.assert_array_equal(found.simultaneous_low, found.low)
    np.testing.assert_array_equal(found.simultaneous_p_value, found.p_value)


def test_numpy_compares_as_a_program_does(data, compared):
    """What is compiled is the same code over JAX's arrays."""
    traced = PROGRAM(*data)
    concrete = jm.compare(jm.roc_auc, *data, margin=0.02)
    for name in (x.name for x in dataclasses.fields(concrete)):
        x = getattr(concrete, name)
        np.testing.assert_allclose(getattr(traced, name), x, rtol=2e-5, atol=2e-6, err_msg=name)


def test_margin(data, compared):
    """The p-value of a margin is where a one-sided limit reaches it."""
    limit = float(compared.one_sided_low[0, 1])
    found = jm.compare(jm.roc_auc, *data, margin=abs(limit))
    error = t_of_pairs(data, 0.95)[0]
    close(compared.z[2], (compared.difference / np.where(error > 0, error, 1))[2], rtol=1e-4)
    if limit < 0:
        close(found.noninferiority_p_value[0, 1], 0.05, rtol=1e-4)
    else:
        assert found.noninferiority_p_value[0, 1] < 0.05
    t, df = np.asarray(found.z, float), np.asarray(found.df, float)
    error = np.asarray(found.difference, float)[0, 1] / t[0, 1]
    above = stats.t.sf((abs(limit) - found.difference[0, 1]) / error, df[0, 1])
    below = float(found.noninferiority_p_value[0, 1])
    close(found.equivalence_p_value[0, 1], max(above, below), rtol=1e-4)
    assert compared.equivalence_p_value is None
    for margin, error in ((0, ValueError), (float("nan"), ValueError), ("1 %", TypeError)):
        with pytest.raises(error, match="margin must be"):
            jm.compare(jm.roc_auc, *data, margin=margin)


# ---- other ways to a covariance


QUANTILE = partial(jm.threshold_at_fpr, max_fpr=0.1)


def test_a_threshold_by_paired_resamples(data):
    """Of so many resamples that its error is known: t is normal."""
    found = jm.compare(QUANTILE, *data, key=KEY)
    values = np.asarray(jm.bootstrap(QUANTILE, *data, key=KEY).replicates, float)
    error = errors_of_differences(np.cov(values.T))
    close(found.standard_error, error, rtol=1e-4)
    z = stats.norm.ppf(0.975)
    close(found.high, found.difference + z * found.standard_error, rtol=1e-4)
    with pytest.raises(TypeError, match="key is missing"):
        jm.compare(QUANTILE, *data)


def test_recall_by_its_influence(data):
    """No key is needed, and the errors are near those of paired resamples."""
    found = jm.compare(RECALL, *data)
    with_key = jm.compare(RECALL, *data, key=KEY)
    np.testing.assert_array_equal(found.low, with_key.low)
    covariance = np.asarray(jm.covariance(RECALL, *data), float)
    close(found.standard_error, errors_of_differences(covariance), rtol=1e-4)
    labels, n1, m = data[1], data[1].sum(), 0.1 * (~data[1]).sum()
    of_chord = min(m, 2 * np.sqrt(0.9 * m))
    phi = np.asarray(jm.influence(RECALL, *data), float)
    for i, j in ((0, 1), (1, 2)):
        estimates = np.asarray(found.estimate, float)[[i, j]]
        window = 0.1, [formulas.height_variance(x, 0.1) for x in estimates]
        parts = formulas.raised_variances(estimates, phi[[i, j]], labels, window=window)
        t = stats.t.ppf(0.975, formulas.welch(parts, (of_chord + 5, n1)))
        close(found.high[i, j] - found.difference[i, j], t * np.sqrt(parts.sum()), rtol=1e-4)
    values = np.asarray(jm.bootstrap(RECALL, *data, key=KEY).replicates, float)
    error = errors_of_differences(np.cov(values.T))[0, 1]
    np.testing.assert_allclose(found.standard_error[0, 1], error, rtol=0.35)


def test_clusters_of_one_item_each_are_no_clusters(data, rng):
    alone = jm.compare(jm.roc_auc, *data)
    for clusters in (rng.permutation(N), [f"user {i}" for i in range(N)]):
        found = jm.compare(jm.roc_auc, *data, clusters=clusters)
        for name in ("standard_error", "low", "high", "p_value"):
            close(getattr(found, name), getattr(alone, name))


@pytest.mark.parametrize("kind", ["one class", "some mixed", "mixed"])
def test_limits_with_clusters(kind, data):
    """With the sums of clusters as the observations of each class."""
    labels = data[1]
    rng = np.random.default_rng(6)
    clusters = rng.integers(0, 12, N)
    if kind == "one class":
        clusters = np.where(labels, clusters % 7, 7 + clusters)
    elif kind == "some mixed":
        clusters = np.where(labels, clusters % 7, clusters)
    found = jm.compare(jm.roc_auc, *data, clusters=clusters)
    phi, areas = values_of_influence(*data), delong(*data)[0]
    sums = np.array([formulas.sums_of_clusters(x, labels, clusters) for x in phi])
    weights, mixed = formulas.weights_of_clusters(labels, clusters)
    sizes = [1 + formulas.kept_and_df(x)[1] for x in weights]
    for i, j in ((0, 1), (0, 2), (2, 1)):
        total, parts = np.sum(np.sum(sums[i] - sums[j], axis=0) ** 2), []
        for c in (0, 1):
            a, b = sums[i, c], sums[j, c]
            v = (a - b) @ (a - b)
            parts.append(v)
            of_items = [(~labels).sum(), labels.sum()]
            for share, counts in ((1 - mixed, sizes), (mixed, of_items)):
                k, m = counts[c], formulas.weight_of_the_unseen(areas[[i, j]], min(counts))
                most = formulas.largest_variance(
                    areas[[i, j]], k * np.array([[a @ a, a @ b], [a @ b, b @ b]]), k
                )
                parts[-1] += share * m * max(most - k * v, 0) / k**2
            total += parts[-1] - v
        df = formulas.degrees_of_clusters(*parts, total, labels, clusters)
        error = np.sqrt(np.sum(np.sum(sums[i] - sums[j], axis=0) ** 2))
        close(found.standard_error[i, j], error)
        close(found.high[i, j] - found.difference[i, j], stats.t.ppf(0.975, df) * np.sqrt(total))


def test_chi2_of_differences_without_a_variance_is_unknown():
    """Where nothing is known of a pair, models are not equal with a p-value of 1."""
    rising = np.arange(6.0)
    found = jm.compare(jm.roc_auc, [rising, -rising], rising > 2)
    assert np.isnan(found.chi2_p_value)
    found = jm.compare_means([rising, rising + 2, [0.1, 0.3, 0.2, 0.5, 0.1, 0.4]])
    assert np.isnan(found.chi2)
    assert np.isnan(found.chi2_p_value)
    with pytest.warns(UserWarning, match="undefined"):
        none = jm.compare(jm.roc_auc, [rising, -rising], rising < 9)
    assert np.isnan(none.chi2_p_value)
    equal = jm.compare(jm.roc_auc, [rising, rising], rising % 2)
    assert equal.chi2_p_value == 1
    rng = np.random.default_rng(0)
    labels = rng.random(20_000) < 0.5
    one = rng.normal(size=20_000) + labels
    near = np.where(np.arange(20_000) == np.argsort(one)[10_000], one + 1e-3, one)
    found = jm.compare(jm.roc_auc, [one, near, rng.normal(size=20_000)], labels)
    assert found.chi2_p_value < 1e-6


def test_perfect_models_of_pairs_of_items_may_be_different(rng):
    """One positive and one negative item of each patient: as without clusters."""
    labels, patient = np.arange(40) % 2 == 0, np.arange(40) // 2
    first, second = 4 * labels + rng.random((2, 40))
    pair, given = {"clusters": patient, "margin": 0.05}, np.stack([first, second])
    found, alone = (jm.compare(jm.roc_auc, given, labels, **x) for x in (pair, {"margin": 0.05}))
    close(found.high[0, 1], alone.high[0, 1], rtol=0.04)  # by fewer degrees of freedom
    assert found.noninferiority_p_value[0, 1] > 0.05
    found = jm.compare_to_value(jm.roc_auc, first, labels, value=0.9, clusters=patient)
    assert 0.1 < found.difference - found.low < 0.2
    assert found.p_value > 0.1  # 20 patients without a failure: each has one with a chance of 0.1
    found = jm.compare(jm.roc_auc, np.stack([first, -first]), labels, clusters=patient)
    assert found.best_set.tolist() == [True, False]
    assert found.p_value[0, 1] < 0.001


def test_a_class_in_one_cluster_has_no_error(data):
    clusters = np.where(data[1], 0, 1 + np.arange(N) % 9)
    found = jm.compare(jm.roc_auc, *data, clusters=clusters)
    assert np.isnan(found.standard_error[0, 1])
    assert np.isnan(found.low[0, 1])


@pytest.mark.slow
def test_size_with_six_clusters():
    """Two equal models: z rejects far more often than it says, and t does not."""
    rng, n, n_clusters = np.random.default_rng(12), 120, 6
    labels, clusters = np.arange(n) % 2 == 0, np.arange(n) // 20
    compare = jax.jit(partial(jm.compare, jm.roc_auc, clusters=clusters, reference=0))
    rejected = []
    for _ in range(400):
        common = rng.normal(size=n) + labels
        of_cluster = rng.normal(size=(2, n_clusters))[:, clusters] * np.where(labels, 1, -1)
        scores = common + 0.7 * of_cluster + 0.3 * rng.normal(size=(2, n))
        found = compare(scores.astype("float32"), labels)
        z = abs(float(found.difference[1] / found.standard_error[1]))
        rejected.append((float(found.p_value[1]) < 0.05, z > stats.norm.ppf(0.975)))
    by_t, by_z = np.mean(rejected, axis=0)
    # 0.05 and three standard errors of 400 simulations.
    assert by_t < 0.083
    assert by_z > 0.083


def test_a_model_that_is_undefined(data):
    scores = data[0].copy()
    scores[2, 5] = np.nan
    with pytest.warns(UserWarning, match="of model 2 is undefined.*without"):
        found = jm.compare(jm.roc_auc, scores, data[1])
    for name in ("difference", "standard_error", "low", "p_value"):
        value = np.asarray(getattr(found, name))
        others = np.array([0, 1, 3])
        assert np.isnan(value[2, others]).all()
        assert np.isnan(value[others, 2]).all()
        assert np.isfinite(value[np.ix_(others, others)]).all()


@pytest.mark.filterwarnings("ignore:.*undefined")
@pytest.mark.parametrize("metric", [jm.roc_auc, RECALL])
@pytest.mark.parametrize("lost", [0, 2])
def test_models_are_compared_without_one_that_is_undefined(metric, lost, data):
    """As if it were left out, but for the draws of max |Z|."""
    scores = data[0][[1, 0, 2, 1]]
    scores[lost, 5] = np.nan
    left = np.flatnonzero(np.arange(4) != lost)
    found = jm.compare(metric, scores, data[1], key=KEY)
    alone = jm.compare(metric, scores[left], data[1], key=KEY)
    for name in ("standard_error", "p_value"):
        close(getattr(found, name)[np.ix_(left, left)], getattr(alone, name), rtol=1e-4)
    for name in ("simultaneous_low", "simultaneous_p_value"):
        value = np.asarray(getattr(found, name))[np.ix_(left, left)]
        np.testing.assert_allclose(value, getattr(alone, name), atol=5e-3)
    np.testing.assert_array_equal(found.best_set[left], alone.best_set)
    if metric is jm.roc_auc and lost == 0:
        assert not found.best_set[2]  # before, all stayed
    assert found.best_set[lost]
    close(found.chi2, alone.chi2, rtol=1e-4)
    assert found.chi2_df == alone.chi2_df


@pytest.mark.filterwarnings("ignore:.*undefined")
def test_one_model_that_is_defined(data):
    found = jm.compare(jm.roc_auc, np.stack([data[0][0], np.full(N, np.nan)]), data[1])
    assert np.isnan(found.chi2)
    assert found.best_set.all()


def test_simultaneous_p_values_beyond_the_draws(from_moments):
    """Bonferroni's, which no number of draws bounds from below."""
    found = from_moments([0.0, 0.0, 1.0, 9.0])
    np.testing.assert_array_equal(np.diagonal(found.simultaneous_p_value), 1)
    close(found.simultaneous_p_value[0, 3], 6 * found.p_value[0, 3])
    assert 0 < found.simultaneous_p_value[0, 3] < 1e-20


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reference": 4}, ValueError, "reference must be from 0 to 3, got 4"),
        ({"reference": "a"}, TypeError, "reference must be an index"),
        ({"confidence_level": 95}, ValueError, r"write 0\.95 for 95 %"),
        ({"clusters": [1, 2]}, ValueError, r"clusters must be \[n\]"),
        ({"weights": np.ones((4, N))}, ValueError, r"weights must be \[n\], the same for all"),
    ],
)
def test_errors(options, error, message, data):
    with pytest.raises(error, match=message):
        jm.compare(jm.roc_auc, *data, **options)


def test_one_model_cannot_be_compared(data):
    for scores in (data[0][0], data[0][:1], data[0][None]):
        for function in (jm.compare, partial(jm.permutation_test, key=KEY)):
            with pytest.raises(ValueError, match="two models or more"):
                function(jm.roc_auc, scores, data[1])


# ---- permutations


def area(ranks, labels):
    difference = ranks[labels][:, None] - ranks[~labels]
    return np.mean((difference > 0) + (difference == 0) / 2)


def test_permutations_against_all_there_are():
    """Of ten items every way to swap ranks is tried."""
    labels = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], bool)
    first = np.array([0.1, 0.9, 0.7, 0.2, 0.8, 0.3, 0.3, 0.8, 0.6, 0.4])
    second = 100 * np.array([0.5, 0.4, 0.9, 0.1, 0.3, 0.3, 0.6, 0.8, 0.2, 0.7])
    ranks = [stats.rankdata(first), stats.rankdata(second)]
    differences = []
    for swap in itertools.product([False, True], repeat=10):
        a, b = np.where(swap, ranks[::-1], ranks)
        differences.append(area(a, labels) - area(b, labels))
    exact = np.mean(np.abs(differences) >= abs(differences[0]) - 1e-12)
    assert 0.01 < exact < 0.5

    # Two items more that are masked, the first model again in another unit, and one undefined.
    scores = np.stack([first, second, np.log(first), first])
    scores[3, 7] = np.nan
    scores = np.concatenate([scores[:, :4], np.full((4, 2), np.nan), scores[:, 4:]], axis=1)
    kinds, where = np.insert(labels, [4, 4], [False, True]), np.arange(12) // 2 != 2
    found = jm.permutation_test(jm.roc_auc, scores, kinds, where=where, key=KEY, n_resamples=20_000)
    for value in (found.p_value, found.difference):
        assert np.isnan(value[3]).all()
        assert np.isnan(value[:, 3]).all()
    assert np.isnan(found.estimate[3])
    found = jax.tree.map(lambda x: x[:3] if x.ndim == 1 else x[:3, :3], found)
    error = np.sqrt(exact * (1 - exact) / 20_000)
    np.testing.assert_allclose(found.p_value[0, 1], exact, atol=4 * error)
    np.testing.assert_array_equal(found.p_value, found.p_value.T)
    close(found.p_value[1, 2], found.p_value[0, 1])
    np.testing.assert_array_equal(np.diagonal(found.p_value), 1)
    assert found.p_value[0, 2] == 1
    close(found.estimate, [area(first, labels), area(second, labels), area(first, labels)])
    close(found.difference, np.subtract.outer(*[np.asarray(found.estimate)] * 2))


def test_ranks_of_many_items_stay_apart():
    """float32 holds the integers up to 2^24, which are the ranks of half as many items."""
    for n, dtype in ((2**23, "float32"), (2**23 + 2, "float64")):
        items = Items(jax.ShapeDtypeStruct((2, n), "float32"), jax.ShapeDtypeStruct((n,), bool))
        assert jax.eval_shape(_permutation._ranks, items).dtype == dtype


def test_permutations_are_of_ranks(data):
    scores, labels = data[0][:2], data[1]
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    with pytest.raises(ValueError, match=r"for the scores of model 0 .* jm\.bootstrap"):
        jm.permutation_test(threshold, scores, labels, key=KEY, n_resamples=10)
    found = jm.permutation_test(jm.roc_auc, 2**scores, labels, key=KEY, n_resamples=10)
    close(found.estimate, jm.roc_auc(scores, labels))


@pytest.mark.parametrize(("models", "undefined"), [(2, 1), (3, 0)])
def test_permutations_beside_a_model_without_a_value(models, undefined, data):
    scores, others = np.array(data[0][:models]), np.arange(models) != undefined
    expected = jm.permutation_test(jm.roc_auc, scores, data[1], key=KEY, n_resamples=10)
    scores[undefined, 7] = np.nan
    with pytest.warns(UserWarning, match=f"model {undefined}"):
        found = jm.permutation_test(jm.roc_auc, scores, data[1], key=KEY, n_resamples=10)
    for name in ("estimate", "difference", "p_value"):
        value = np.asarray(getattr(found, name))
        assert np.isnan(value[undefined]).all()
        of_others = np.ix_(*[others] * value.ndim)
        np.testing.assert_allclose(value[of_others], getattr(expected, name)[of_others])


def test_permutations_of_ranks_in_double_precision(data, monkeypatch):
    expected = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    whole = _permutation._ranks
    monkeypatch.setattr(_permutation, "_ranks", lambda items: in_double_precision(whole(items)))
    found = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@double_program()
def in_double_precision(ranks):
    """Ranks that float32 does not tell apart."""
    return ranks.astype("float64") - 2.0**30


def test_a_margin_has_both_directions_and_a_reference_has_a_name(rng):
    labels = rng.random(400) < 0.3
    old = rng.normal(size=400) + 2 * labels
    scores = {"old": old, "new": rng.normal(size=400) + labels}
    found = jm.compare(jm.roc_auc, scores, labels, margin=0.01)
    frame = found.to_frame().set_index(["model", "minus"]).noninferiority_p_value
    assert frame["old", "new"] < 0.01 < 0.9 < frame["new", "old"]
    assert "p, not worse" in str(found)
    assert "p, not worse" not in str(jm.compare(jm.roc_auc, scores, labels))
    by_name, by_index = (jm.compare(jm.roc_auc, scores, labels, reference=x) for x in ("new", 1))
    np.testing.assert_array_equal(by_name.difference, by_index.difference)
    with pytest.raises(ValueError, match="one of 'old', 'new', got 'odl'"):
        jm.compare(jm.roc_auc, scores, labels, reference="odl")
    with pytest.raises(TypeError, match="a dict or a frame"):
        jm.compare(jm.roc_auc, np.stack([*scores.values()]), labels, reference="old")
    alone = jm.compare_to_value(jm.roc_auc, old, labels, value=0.7)
    assert str(alone).startswith("difference 0.")
    assert len(alone.to_frame()) == 1


def test_the_unit_of_weights_says_nothing_of_perfect_models(rng):
    """Their variance is the rounding of 0, and correlates with nothing."""
    labels = np.arange(24) < 10
    scores = np.stack([labels * 1.0, labels * 2.0, rng.normal(size=24) + labels])
    weights = rng.choice([0.5, 1.0, 2.5, 3.0], 24)
    found = [
        jm.compare_to_value(jm.roc_auc, scores, labels, value=0.4, weights=weights * unit)
        for unit in (1, 7, 0.1)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.chi2, found[0].chi2, rtol=1e-5)
    assert [x.chi2_df for x in found] == [3, 3, 3]


def test_small_variances_are_variances():
    """Of one inverted pair of 3,000 items: two models that are equal have one degree of freedom."""
    n = 1500
    scores = np.arange(2.0 * n)
    scores[[n - 1, n]] = scores[[n, n - 1]]
    given = np.stack([scores, scores]), np.arange(2 * n) >= n
    assert jm.compare_to_value(jm.roc_auc, *given, value=0.9).chi2_df == 1


def test_the_rounding_of_no_variance_is_none():
    """Of a perfect model and a constant one, with weights or clusters."""
    rounded = np.diag([1e-33, 3e-34])
    chi2, df = _compared._equality(np.array([1.0, 0.5]), rounded, np.zeros(2, bool))
    assert df == 0
    assert np.isnan(chi2)


@pytest.mark.parametrize("n_models", [marked(x, fast=x == 4) for x in (2, 4, 12, 70)])
def test_opposite_models_differ_without_variance(n_models, rng):
    """Within a program, too, whose sums are rounded."""
    labels = np.arange(N) < 80
    scores = rng.normal(size=(n_models, N)) + labels
    scores[0], scores[1] = labels, ~labels
    for found in (jm.compare(jm.roc_auc, scores, labels), PROGRAM(scores, labels)):
        assert found.p_value[0, 1] == 0
        assert found.best_set[:2].tolist() == [True, False]
        assert found.estimate[:2].tolist() == [1, 0]


def test_small_differences_of_large_means_have_a_statistic(rng):
    """Such as those of times."""
    values = np.round(rng.gamma(2, 2000, size=(3, 500)))
    values[2] += 1500
    near, far = (jm.compare_means(values + start) for start in (0, 2.0**50))
    np.testing.assert_allclose(far.chi2, near.chi2, rtol=1e-4)
    assert far.chi2_df == near.chi2_df == 2


@pytest.mark.parametrize(
    ("method", "levels", "warns"),
    [("step", 2, True), ("quantile", 2, True), ("linear", 2, False), ("step", 50, False)],
)
def test_a_limit_within_a_tie_of_many_negatives(method, levels, warns, rng, recwarn):
    """Errors do not know of the jump there."""
    labels = np.arange(400) < 200
    scores = np.round((rng.normal(size=(2, 400)) + labels) * levels) / levels
    jm.compare(partial(jm.recall_at_fpr, max_fpr=0.1, method=method), scores, labels)
    assert any("within a tie of" in str(x.message) for x in recwarn) == warns


def test_a_tie_at_the_limit_counts_weights(rng, recwarn):
    labels = np.arange(400) < 200
    scores, some = rng.normal(size=(2, 400)) + labels, np.flatnonzero(~labels)[:60]
    metric = partial(jm.recall_at_fpr, max_fpr=0.1)
    for value, weight, warns in ((2, 1, True), (2, 0, False), (-3, 1, False), (-3, 99, True)):
        weights = np.ones(400)
        scores[:, some], weights[some] = value, weight
        jm.compare(metric, scores, labels, weights=weights)
        assert any("within a tie of" in str(x.message) for x in recwarn.list) == warns
        recwarn.clear()


@pytest.mark.parametrize(("limit", "warns"), [(0.29, True), (0.28, False)])
def test_a_tie_just_beyond_the_limit(limit, warns, recwarn):
    """Of 100 negatives 29 are within .29, though .29 times 100 is less."""
    scores = np.concatenate([np.arange(100.0, 128), [50], np.full(71, -1.0), np.arange(200.0, 250)])
    labels = np.arange(150) >= 100
    jm.compare(partial(jm.recall_at_fpr, max_fpr=limit), np.stack([scores] * 2), labels)
    assert any("within a tie of 71" in str(x.message) for x in recwarn) == warns


def test_a_tie_at_the_limit_of_every_other_of_many_negatives(rng):
    """Not every second one is looked at."""
    n = 1 << 17
    negatives = rng.normal(size=n)
    negatives[1::2] = 1.0
    scores, labels = np.append(negatives, rng.normal(size=500)), np.arange(n + 500) >= n
    with pytest.warns(UserWarning, match="within a tie of 6.... negatives"):
        jm.compare(partial(jm.recall_at_fpr, max_fpr=0.3), np.stack([scores] * 2), labels)


def test_a_tie_at_the_limit_of_another_rate(rng):
    labels = np.arange(200) < 100
    scores = np.stack([rng.normal(size=200).round(), rng.normal(size=200).round()]) + labels
    with pytest.warns(UserWarning, match="the sensitivity, 0.9, is within a tie of .* positives"):
        jm.compare(partial(jm.specificity_at_sensitivity, min_sensitivity=0.9), scores, labels)
