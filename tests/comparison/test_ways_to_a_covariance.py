"""Comparison by influences, paired resamples and clusters."""

from functools import partial

import difference_formulas as differences
import interval_formulas as formulas
import jax
import numpy as np
import pytest
from comparing import KEY, RECALL, N, close, delong, errors_of_differences, values_of_influence
from scipy import stats

import jaxmetrics as jm

PARTIAL = partial(jm.partial_auc, max_fpr=0.05)

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
        window = 0.1, [differences.height_variance(x, 0.1) for x in estimates]
        parts = differences.raised_variances(estimates, phi[[i, j]], labels, window=window)
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
    """What was not drawn is that of as many independent items as vary as much."""
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
    drawn = [
        min(
            formulas.draws_of_clusters(a, x, labels, clusters)[c]
            for a, x in zip(areas, phi, strict=True)
        )
        for c in (0, 1)
    ]
    for i, j in ((0, 1), (0, 2), (2, 1)):
        total, parts = np.sum(np.sum(sums[i] - sums[j], axis=0) ** 2), []
        for c in (0, 1):
            a, b = sums[i, c], sums[j, c]
            v = (a - b) @ (a - b)
            parts.append(v)
            k, m = drawn[c], differences.weight_of_the_unseen(areas[[i, j]], min(drawn))
            most = differences.largest_variance(
                areas[[i, j]], k * np.array([[a @ a, a @ b], [a @ b, b @ b]]), k
            )
            parts[-1] += m * max(most - k * v, 0) / k**2
            total += parts[-1] - v
        df = formulas.degrees_of_clusters(*parts, total, labels, clusters)
        error = np.sqrt(np.sum(np.sum(sums[i] - sums[j], axis=0) ** 2))
        close(found.standard_error[i, j], error)
        close(found.high[i, j] - found.difference[i, j], stats.t.ppf(0.975, df) * np.sqrt(total))


def test_few_negatives_decide_also_in_clusters_of_both_classes(rng):
    """They vary more than so many clusters do of which all negatives decide."""
    labels, clusters = np.arange(240) < 120, np.arange(240) % 120
    scores = rng.normal(size=(2, 240)) + 2 * labels
    degrees = {
        metric: float(jm.compare(metric, scores, labels, clusters=clusters).df[0, 1])
        for metric in (jm.roc_auc, PARTIAL, jm.average_precision)
    }
    assert degrees[jm.roc_auc] > 110
    assert 5 < degrees[PARTIAL] < 40
    assert 12 < degrees[jm.average_precision] < 100


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
