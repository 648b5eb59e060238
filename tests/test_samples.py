"""`compare_samples` and `compare_to_value`."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm

N = 240
GROUPS = np.array(["east", "north", "west"])[np.arange(N) % 3]


@pytest.fixture
def data(rng):
    labels = rng.random(N) < 0.4
    scores = np.round(rng.normal(size=(2, N)) + labels, 1)
    return scores, labels


def placements(scores, labels):
    """DeLong's variance of the area, by all pairs."""
    wins = (scores[labels][:, None] > scores[~labels]) + 0.5 * (
        scores[labels][:, None] == scores[~labels]
    )
    by_class = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), [np.var(x, ddof=1) / len(x) for x in by_class], [len(x) for x in by_class]


def test_unpaired_test_of_delong(data, x64):
    """As pROC has it: Welch's t with the numbers of all items of the two samples."""
    scores, labels = data[0][0], data[1]
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, method="delong")
    own = [placements(scores[g == GROUPS], labels[g == GROUPS]) for g in np.unique(GROUPS)]
    for i, j in ((0, 1), (0, 2), (2, 1)):
        (a, va, na), (b, vb, nb) = own[i], own[j]
        va, vb, na, nb = sum(va), sum(vb), sum(na), sum(nb)
        t = (a - b) / np.sqrt(va + vb)
        df = (va + vb) ** 2 / (va**2 / (na - 1) + vb**2 / (nb - 1))
        np.testing.assert_allclose(found.z[i, j], t, rtol=1e-9)
        np.testing.assert_allclose(found.df[i, j], df, rtol=1e-9)
        np.testing.assert_allclose(found.p_value[i, j], 2 * stats.t.sf(abs(t), df), rtol=1e-8)


def test_errors_and_degrees_of_freedom_by_class(data, x64):
    scores, labels = data[0][0], data[1]
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS)
    own = [placements(scores[g == GROUPS], labels[g == GROUPS]) for g in ("east", "north")]
    total, spread = 0.0, 0.0
    for area, variances, sizes in own:
        v = []
        for s2, n in zip(variances, sizes, strict=True):
            p = (n * area + 0.5) / (n + 1)
            v.append(s2 + max(p * (1 - p) - n * s2, 0) / n**2)
        total += sum(v)
        spread += sum(x**2 / (n - 1) for x, n in zip(v, sizes, strict=True))
    np.testing.assert_allclose(found.df[0, 1], total**2 / spread, rtol=1e-9)
    margin = float(found.high[0, 1] - found.difference[0, 1])
    known = stats.t.ppf(0.975, total**2 / spread) * np.sqrt(total)
    np.testing.assert_allclose(margin, known, rtol=1e-9)


def test_models_clusters_and_programs(data):
    scores, labels = data
    # Each of one item: the clusters change nothing but the path.
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS)
    alone = jm.compare_samples(jm.roc_auc, scores[1], labels, GROUPS)
    own = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, clusters=np.arange(N))
    traced = jax.jit(lambda s, y: jm.compare_samples(jm.roc_auc, s, y, GROUPS))(*data)
    for name in ("estimate", "low", "simultaneous_high", "p_value", "chi2", "best_set"):
        x = np.asarray(getattr(found, name))
        np.testing.assert_allclose(x[1], getattr(alone, name), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(getattr(own, name), x, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(getattr(traced, name), x, rtol=1e-4, atol=1e-5)


def test_metrics_that_are_resampled(data):
    metric = partial(jm.threshold_at_fpr, max_fpr=0.2)
    options = {"key": jax.random.key(1), "n_resamples": 200}
    found = jm.compare_samples(metric, data[0][0], data[1], GROUPS, **options)
    assert np.isinf(found.df[0, 1])
    assert 0 < found.standard_error[0, 1] < 1
    with pytest.raises(TypeError, match="key is missing"):
        jm.compare_samples(metric, data[0][0], data[1], GROUPS)


def test_a_value_is_a_model_without_error(data, x64):
    found = jm.compare_to_value(jm.roc_auc, *data, value=0.7)
    error = jm.standard_error(jm.roc_auc, *data)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9)
    np.testing.assert_allclose(found.difference, jm.roc_auc(*data) - 0.7, rtol=1e-9)
    one = jm.compare_to_value(jm.roc_auc, data[0][0], data[1], value=0.7)
    assert one.p_value.shape == ()
    np.testing.assert_allclose(one.p_value, found.p_value[0], rtol=1e-9)
    np.testing.assert_array_equal(one.simultaneous_p_value, one.p_value)
    assert (found.simultaneous_p_value >= found.p_value).all()
    np.testing.assert_allclose(found.p_value, 2 * stats.t.sf(np.abs(found.z), found.df), rtol=1e-8)


def test_maxima_of_many_models_are_those_of_draws(rng):
    """Ten biomarkers against 0.5: the adjusted p-value by 400,000 normal draws."""
    labels = np.arange(4000) % 2 == 0
    common = rng.normal(size=4000)
    scores = 0.8 * common + 0.6 * rng.normal(size=(10, 4000)) + 0.06 * labels
    found = jm.compare_to_value(jm.roc_auc, scores, labels, value=0.5)
    covariance = np.asarray(jm.covariance(jm.roc_auc, scores, labels), float)
    deviations = np.sqrt(np.diag(covariance))
    draws = rng.multivariate_normal(np.zeros(10), covariance, 400_000) / deviations
    largest = np.sort(np.abs(draws).max(axis=1))
    known = 1 - np.searchsorted(largest, np.abs(found.z)) / len(largest)
    np.testing.assert_allclose(found.simultaneous_p_value, known, atol=6e-3)


def test_errors(data):
    scores, labels = data
    with pytest.raises(ValueError, match="two or more, got 1"):
        jm.compare_samples(jm.roc_auc, scores, labels, np.zeros(N, int))
    with pytest.raises(ValueError, match=r"groups must be \[n\]"):
        jm.compare_samples(jm.roc_auc, scores, labels, GROUPS[:5])
    with pytest.raises(ValueError, match="within one of the groups"):
        jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, clusters=np.arange(N) // 2)
    with pytest.raises(ValueError, match="value must be between"):
        jm.compare_to_value(jm.roc_auc, scores, labels, value=float("nan"))
    few = np.where(np.arange(N) < 6, "a", "b")
    with pytest.warns(UserWarning, match="group 0 has"):
        jm.compare_samples(jm.roc_auc, scores[0], labels, few)
