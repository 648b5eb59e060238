"""Simultaneous limits of differences, and the best set."""

import dataclasses
import functools

import numpy as np
import pytest
from comparing import KEY, PROGRAM, close, t_of_pairs
from scipy import integrate, optimize, stats

import jaxmetrics as jm


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


def test_the_order_of_the_models_does_not_matter(rng):
    labels = rng.random(300) < 0.3
    noise = rng.uniform(0.2, 2, (7, 1)) * rng.normal(size=(7, 300))
    scores = rng.normal(size=300) + labels + noise
    order = rng.permutation(7)
    of_pairs = np.ix_(order, order)
    found, other = (jm.compare(jm.roc_auc, x, labels) for x in (scores, scores[order]))
    for name in ("simultaneous_low", "simultaneous_high", "simultaneous_p_value"):
        close(getattr(other, name), getattr(found, name)[of_pairs], rtol=1e-6)


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
    for equal in (found.noninferiority_p_value, found.equivalence_p_value):
        assert equal[0, 3] == equal[1, 1] == 0
    assert compared.equivalence_p_value is None
    for margin, error in ((0, ValueError), (float("nan"), ValueError), ("1 %", TypeError)):
        with pytest.raises(error, match="margin must be"):
            jm.compare(jm.roc_auc, *data, margin=margin)
