"""Confidence intervals from replicates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from of_intervals import BY_WILSON, KEY, RECALL, Z, close, limits, placements
from scipy import stats

import jaxmetrics as jm

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are only"),
]


@pytest.fixture(scope="module")
def replicates(data):
    """Of the AUC, with the key and the number that the intervals are given."""
    return np.asarray(jm.bootstrap(jm.roc_auc, *data, key=KEY).replicates, float)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_percentile_and_basic(level, data, replicates):
    estimate = float(jm.roc_auc(*data))
    options = {"key": KEY, "confidence_level": level}
    expected = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    interval = jm.confidence_interval(jm.roc_auc, *data, method="percentile", **options)
    close(limits(interval), expected)
    close(interval.standard_error, replicates.std(ddof=1))
    assert interval.method == "percentile"
    basic = jm.confidence_interval(jm.roc_auc, *data, method="basic", **options)
    close(limits(basic), 2 * estimate - expected[::-1])


def test_bca(data, replicates):
    """B. Efron and R. Tibshirani, equations 14.10 to 14.14, with ties by half, and the
    acceleration of two samples."""
    parts = placements(*data)
    estimate = parts[0].mean()
    below = np.mean(replicates < estimate - 1e-6)
    equal = np.mean(np.abs(replicates - estimate) <= 1e-6)
    bias = stats.norm.ppf(below + equal / 2)
    centred = [(x - x.mean()) / len(x) for x in parts]
    third, second = (sum(np.sum(x**k) for x in centred) for k in (3, 2))
    acceleration = third / second**1.5 / 6
    assert abs(acceleration) > 1e-3
    z = bias + np.array([-Z, Z])
    shares = stats.norm.cdf(bias + z / (1 - acceleration * z))
    interval = jm.confidence_interval(jm.roc_auc, *data, method="bca", key=KEY)
    close(limits(interval), np.quantile(replicates, shares))
    result = jm.bootstrap(jm.roc_auc, *data, key=KEY)
    again = result.interval(method="bca", acceleration=acceleration)
    close(limits(again), limits(interval))
    close(result.interval(method="wald").high, estimate + Z * replicates.std(ddof=1))


def test_bca_of_one_sample_is_that_of_scipy():
    """Given SciPy's replicates, and the acceleration of its jackknife."""
    rng = np.random.default_rng(4)
    values = rng.gamma(2, size=30)
    expected = stats.bootstrap((values,), np.mean, method="BCa", rng=rng, n_resamples=1999)
    leave_out = (values.sum() - values) / 29
    deviations = leave_out.mean() - leave_out
    acceleration = np.sum(deviations**3) / np.sum(deviations**2) ** 1.5 / 6
    with jax.enable_x64(True):
        result = jm.BootstrapResult(
            jnp.asarray(values.mean()),
            jnp.asarray(expected.bootstrap_distribution),
            jnp.ones(()),
            jnp.zeros((), int),
        )
        interval = result.interval(method="bca", acceleration=acceleration)
    close(limits(interval), expected.confidence_interval, rtol=1e-9)


def test_limits_leave_out_what_is_undefined():
    values = np.random.default_rng(5).normal(size=(400, 2))
    values[:100, 1] = np.nan
    result = jm.BootstrapResult(jnp.zeros(2), jnp.asarray(values), jnp.ones(2), jnp.array([0, 100]))
    interval = result.interval(confidence_level=0.9)
    close(limits(interval)[:, 1], np.quantile(values[100:, 1], [0.05, 0.95]))
    for method in ("percentile", "basic", "bca"):
        every = jnp.where(jnp.arange(2) == 0, result.replicates, jnp.nan)
        nothing = jm.BootstrapResult(jnp.array([0, jnp.nan]), every, jnp.ones(2), jnp.zeros(2))
        found = limits(nothing.interval(method=method))
        np.testing.assert_array_equal(np.isnan(found), [[False, True]] * 2)


def test_bca_where_all_replicates_are_on_one_side():
    result = jm.BootstrapResult(
        jnp.ones(()), jnp.linspace(0.5, 0.9, 2000), jnp.ones(()), jnp.zeros(())
    )
    interval = result.interval(method="bca")
    assert 0.5 <= interval.low <= interval.high <= 0.9


def test_wilson(data):
    """Of as many draws as give the bootstrap's error, p (1 - p) / V, and no more than positives."""
    interval = BY_WILSON(*data)
    assert interval.method == "wilson"
    result = jm.bootstrap(RECALL, *data, key=KEY)
    close(interval.standard_error, result.standard_error)
    p = np.asarray(interval.estimate, float)
    n = np.minimum(p * (1 - p) / np.asarray(result.standard_error, float) ** 2, 60)
    assert n.min() < 60
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    margin = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    close(limits(interval), [middle - margin, middle + margin])


def test_methods_of_other_metrics(data):
    with pytest.raises(TypeError, match="key is missing"):
        jm.confidence_interval(RECALL, *data, method="wilson")
    with pytest.raises(ValueError, match="method='wilson' is for recall_at_fpr"):
        jm.confidence_interval(jm.roc_auc, *data, method="wilson", key=KEY)
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    with pytest.raises(TypeError, match="method='bca' needs influence values"):
        jm.confidence_interval(threshold, *data, method="bca", key=KEY)
    with pytest.raises(TypeError, match="is not known to be smooth"):
        jm.confidence_interval(threshold, *data, method="logit")
    with pytest.raises(ValueError, match="method='closed form' is for roc_auc"):
        jm.confidence_interval(threshold, *data, method="closed form")
