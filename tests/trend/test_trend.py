"""The trend of a metric over slices in the order of time."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
from months import MONTHS, N
from scipy import stats

import jaxmetrics as jm


def by_hand(found, values, at, n0, n1, t):
    """Of a model or a pair, the index `at`."""
    values, errors, low, high = (
        np.asarray(getattr(found, name))[(slice(None), *at)]
        for name in (values, "standard_error", "low", "high")
    )
    least = (high - low) / 2 / stats.t.ppf(0.975, np.minimum(n0, n1) - 1)
    errors = np.maximum(errors, least - errors)
    h = n0 * n1 / (n0 + n1)
    c = h * (t - np.average(t, weights=h))
    c = c / np.sum(c * t)
    parts = (c * errors) ** 2
    df = parts.sum() ** 2 / np.sum(parts**2 / (np.minimum(n0, n1) - 1))
    slope, error = np.sum(c * values), np.sqrt(parts.sum())
    share = h / h.sum()
    inner = h * (1 - share) * errors**2
    f = np.sum(h * (values - np.sum(share * values)) ** 2) / inner.sum()
    df_inner = inner.sum() ** 2 / np.sum(inner**2 / (np.minimum(n0, n1) - 1))
    margin = stats.t.ppf(0.975, df) * error
    return {
        "slope": slope,
        "standard_error": error,
        "df": df,
        "low": slope - margin,
        "high": slope + margin,
        "p_value": 2 * stats.t.sf(abs(slope / error), df),
        "f": f,
        "f_p_value": stats.f.sf(f, len(values) - 1, df_inner),
    }


def test_of_models_and_their_differences_by_hand(found):
    slices, trend = found
    n1, t = np.asarray(slices.n_positives), np.arange(6.0)
    n0 = np.asarray(slices.n_items) - n1
    for i in (0, 1):
        expected = by_hand(slices, "estimate", (i,), n0, n1, t)
        for name, x in expected.items():
            np.testing.assert_allclose(getattr(trend, name)[i], x, rtol=1e-9, err_msg=name)
    expected = by_hand(slices.models, "difference", (1, 0), n0, n1, t)
    for name, x in expected.items():
        np.testing.assert_allclose(getattr(trend.models, name)[1, 0], x, rtol=1e-9, err_msg=name)
    same, falls = np.asarray(trend.p_value)
    assert same > 0.05 > 1e-6 > falls
    assert np.asarray(trend.models.high)[1, 0] < 0
    assert "slope" in str(trend)
    assert len(trend.to_frame()) == 2


def test_units_shifts_and_order_of_time(found, data):
    slices, trend = found
    for times, unit in ((np.arange(6) * 30 + 7, 30), (-np.arange(6), -1)):
        moved = jm.trend(slices, times=times)
        np.testing.assert_allclose(moved.slope * unit, trend.slope, rtol=1e-5)
        np.testing.assert_allclose(moved.p_value, trend.p_value, rtol=1e-4)
        np.testing.assert_allclose(moved.fitted, trend.fitted, rtol=1e-5)
    without = jm.trend(slices, times=[0, 1, 2, 3, 4, np.nan])
    kept = data[2] != MONTHS[-1]
    alone = jm.trend(jm.slices(jm.roc_auc, data[0][:, kept], data[1][kept], data[2][kept]))
    np.testing.assert_allclose(without.slope, alone.slope, rtol=1e-5)
    assert list(np.asarray(without.used)) == 5 * [True] + [False]


def test_small_slices_are_left_out_and_named(data, found):
    assert "left out" not in str(found[1])
    scores, labels, month = data
    few = (month == MONTHS[0]) & labels & (np.cumsum(labels & (month == MONTHS[0])) > 5)
    slices = jm.slices(jm.roc_auc, scores, labels, month, where=~few)
    trend = jm.trend(slices)
    assert not trend.used[0]
    assert trend.used[1:].all()
    assert "left out: 2026-01" in str(trend)
    text = str(jm.trend(jm.slices(jm.roc_auc, scores[:, :20], labels[:20], np.arange(20))))
    assert "left out: 0, 1, 2, 3, 4 and 15 more" in text
    later = jm.trend(slices, times=[np.nan, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(trend.slope, later.slope)


def test_in_jit(found):
    slices, trend = found
    compiled = jax.jit(lambda x, t: jm.trend(x, times=t))(slices, np.arange(6.0))
    for name in ("slope", "low", "p_value", "f_p_value", "fitted"):
        expected = np.asarray(getattr(trend, name), np.float64)
        np.testing.assert_allclose(getattr(compiled, name), expected, rtol=1e-4, atol=1e-6)


def test_undefined_trends(data):
    scores, labels, month = data
    one = jm.trend(
        jm.slices(jm.roc_auc, scores[0], labels, np.where(month > "", "2026-01", "2026-02"))
    )
    assert np.isnan([one.slope, one.p_value, one.low, one.f_p_value]).all()
    perfect = jm.trend(jm.slices(jm.roc_auc, labels * 1.0, labels, month))
    assert (perfect.slope, perfect.p_value) == (0, 1)
    area = partial(jm.partial_auc, max_fpr=0.1)  # each is 0.1, whose mean is rounded
    perfect = jm.trend(jm.slices(area, labels * 1.0, labels, month))
    assert (perfect.slope, perfect.p_value, perfect.f_p_value) == (0, 1, 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s: jm.trend([1, 2]), TypeError, "slices must be a Slices"),
        (lambda s: jm.trend(s, times=[1, 2]), ValueError, "a number for each of the 6 names"),
    ],
)
def test_refused(found, make, error, message):
    with pytest.raises(error, match=message):
        make(found[0])


@pytest.mark.parametrize("names", [("2026-01", "2026-02", "2026"), ("2026-01-31", "2026-02")])
def test_a_year_among_months_is_refused(data, names):
    """NumPy would take it for its January."""
    scores, labels, _ = data
    slices = jm.slices(jm.roc_auc, scores, labels, np.resize(names, N))
    with pytest.raises(ValueError, match="must be all years, all months or all days, got '2026"):
        jm.trend(slices)


def test_crossed_slices_are_refused(data):
    scores, labels, month = data
    crossed = jm.slices(jm.roc_auc, scores, labels, (month, np.arange(N) % 2))
    with pytest.raises(ValueError, match="two that are crossed"):
        jm.trend(crossed)


def test_slices_without_a_failure_are_not_certain(rng):
    """Of 25 positives 1 in 500 fails, and then 1 in 50: half of the limits were a point."""
    labels, month = np.tile(np.arange(80) < 25, 2), np.arange(2).repeat(80)
    held = 0
    for _ in range(40):
        fails = rng.random(160) < np.array([0.002, 0.02])[month]
        scores = rng.normal(size=160) + np.where(fails, -60, 60) * labels
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, month))
        held += found.low <= -0.018 <= found.high
    assert held == 40


@pytest.mark.slow
def test_size_and_coverage():
    """Of 8 slices of 15 positives with an AUC of .9: inverse variances err in .15 and more."""
    rng, errors, misses, n = np.random.default_rng(0), 0, 0, 150
    labels, month = np.tile(np.arange(75) < 15, 8), np.arange(8).repeat(75)
    for _ in range(n):
        scores = rng.normal(size=600) + 1.8 * labels
        found = jm.trend(jm.slices(jm.roc_auc, scores, labels, month, min_items=10))
        errors += found.p_value < 0.05
        misses += not found.low <= 0 <= found.high
    assert errors == misses <= stats.binom.ppf(0.999, n, 0.07)


def test_sizes_of_weighted_slices_are_effective(rng):
    """From which degrees of freedom and weights of slices follow; equal weights change nothing."""
    labels, months = np.tile(np.arange(60) < 20, 4), np.arange(240) // 60
    scores, weights = rng.normal(size=240) + labels, rng.lognormal(size=240)
    plain, equal, found = (
        jm.slices(jm.roc_auc, scores, labels, months, weights=x)
        for x in (None, np.full(240, 3.0), weights)
    )
    sizes = [
        [np.sum(x) ** 2 / np.sum(x**2) for x in (w[20:], w[:20])] for w in weights.reshape(4, 60)
    ]
    np.testing.assert_allclose(found.effective, sizes, rtol=1e-5)
    np.testing.assert_allclose(plain.effective, [[40, 20]] * 4)
    a, b = map(jm.trend, (plain, equal))
    np.testing.assert_allclose(a.f_p_value, b.f_p_value, rtol=1e-4)
    of_counts = jm.trend(dataclasses.replace(found, effective=None))
    assert jm.trend(found).df < 0.8 * of_counts.df
