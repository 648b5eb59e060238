"""Comparisons by partial areas and recalls of which few negatives decide."""

from functools import partial

import difference_formulas as differences
import interval_formulas as formulas
import jax
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm

AREA = partial(jm.partial_auc, max_fpr=0.01)
METRICS = {
    "partial area": AREA,
    "between": partial(AREA, min_fpr=0.001),
    "above": partial(AREA, min_tpr=0.1),
    "mcclish": partial(jm.partial_auc, max_fpr=0.01, scale="mcclish"),
    "recall": partial(jm.recall_at_fpr, max_fpr=0.01),
    "sensitivity": partial(jm.sensitivity_at_specificity, min_specificity=0.99),
}
EVERY_METRIC = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
TWO_METRICS = pytest.mark.parametrize(
    "metric", [marked(x, fast=name in ("partial area", "recall")) for name, x in METRICS.items()]
)


def equal_models(rng, n_positives, n_negatives, times=()):
    labels = np.arange(n_positives + n_negatives) < n_positives
    common = rng.normal(size=(*times, 1, len(labels))) + 1.3 * labels
    return common + 0.7 * rng.normal(size=(*times, 2, len(labels))), labels


@TWO_METRICS
@pytest.mark.filterwarnings("ignore:only 0.9 negatives")
def test_equal_models_seldom_differ(metric, rng):
    """By their standard errors up to four fifths do: no negative in the window has influence."""
    scores, labels = equal_models(rng, 1000, 90, (60,))
    found = [jm.compare(metric, x, labels, reference=0) for x in scores]
    p, d, error = (
        np.array([getattr(x, name)[1] for x in found])
        for name in ("p_value", "difference", "standard_error")
    )
    assert np.mean(p < 0.05) <= 0.05
    assert np.mean(np.abs(d) > 1.96 * error) > 0.3


def test_the_error_has_two_negatives_of_a_power_law(rng):
    scores, labels = equal_models(rng, 300, 400)
    metric = partial(jm.partial_auc, max_fpr=0.01, scale="range")
    found = jm.compare(metric, scores, labels)
    areas = np.asarray(found.estimate, np.float64)
    influence = np.asarray(jm.influence(metric, scores, labels), np.float64)
    window = 0.01, [formulas.area_variance(x, 0.01) for x in areas]
    parts = differences.raised_variances(areas, influence, labels, window=window)
    np.testing.assert_allclose(found.df[0, 1], formulas.welch(parts, (4 + 5, 300)), rtol=1e-5)
    z = (areas[0] - areas[1]) / np.sqrt(sum(parts))
    np.testing.assert_allclose(found.z[0, 1], z, rtol=1e-4)


AT_THE_ENDS = [
    partial(jm.recall_at_fpr, max_fpr=1),
    partial(jm.specificity_at_sensitivity, min_sensitivity=1),
    partial(jm.sensitivity_at_specificity, min_specificity=0),
    partial(jm.recall_at_fpr, max_fpr=1e-4),
]


@pytest.mark.parametrize(
    ("metric", "traced"),
    [
        marked(metric, traced, fast=i == 1 or (i == 0 and not traced))
        for i, metric in enumerate(AT_THE_ENDS)
        for traced in (False, True)
    ],
)
@pytest.mark.filterwarnings("ignore:only ")
def test_limits_at_the_ends(metric, traced, rng):
    """All are flagged, or those above all negatives: differences are defined, and have limits."""
    scores, labels = equal_models(rng, 60, 300)
    eager = jm.compare(metric, scores, labels)
    found = jax.jit(partial(jm.compare, metric))(scores, labels) if traced else eager
    assert np.isfinite(found.p_value).all()
    assert 0 < found.high[0, 1] - found.low[0, 1] < 1.2
    np.testing.assert_allclose(found.high, eager.high, rtol=1e-4, atol=1e-6)
    assert np.isfinite(jm.power(metric, scores, labels, difference=0.05))


def test_items_decide_in_clusters_too(rng):
    """Each of 40 has 20 positives and 100 negatives, of which 200 are in the window."""
    scores, labels = equal_models(rng, 800, 4000)
    metric = partial(jm.recall_at_fpr, max_fpr=0.05)
    found = jm.compare(metric, scores, labels, clusters=np.arange(4800) % 40)
    width = found.high[0, 1] - found.low[0, 1]
    assert width < 2.2 * stats.t.ppf(0.975, 39) * found.standard_error[0, 1]
    one_class = np.where(labels, np.arange(4800) % 40, 40 + np.arange(4800) % 40)
    apart = jm.compare(metric, scores, labels, clusters=one_class)
    assert apart.high[0, 1] - apart.low[0, 1] < 1.5 * width


@TWO_METRICS
def test_a_program_has_the_same_errors(metric, rng):
    scores, labels = equal_models(rng, 40, 350)
    eager = jm.compare(metric, scores, labels)
    traced = jax.jit(partial(jm.compare, metric))(scores, labels)
    np.testing.assert_allclose(traced.low, eager.low, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(traced.df, eager.df, rtol=1e-4)


@EVERY_METRIC
def test_few_negatives_are_warned_of(metric, rng, recwarn):
    scores, labels = equal_models(rng, 40, 300)
    jm.compare(metric, scores, labels)
    assert not recwarn.list
    kept = np.arange(340) < 339
    jm.compare(metric, scores, labels, where=kept)
    jm.compare(metric, scores, labels, where=kept, clusters=np.arange(340))
    jm.compare_to_value(
        metric, scores, labels, where=kept, value=0.6 if metric is METRICS["mcclish"] else 0.004
    )
    said = [str(x.message) for x in recwarn.list]
    assert all(x.startswith("only 2.99 negatives are") for x in said[::2])
    assert "count as only 2.99 clusters of one size" in said[1]
    assert ["equal models" in x for x in said] == [True, True, False]


def test_three_in_32_bits_are_three(rng, recwarn):
    scores, labels = equal_models(rng, 40, 300)
    metric = partial(jm.recall_at_fpr, max_fpr=np.float32(0.01))
    jm.compare(metric, scores, labels)
    assert jm.slices(metric, scores, labels, np.zeros(340, int)).tested[0]
    assert not recwarn.list


def test_slices_with_few_negatives_in_the_window_are_not_tested(rng):
    scores, labels = equal_models(rng, 400, 4 * 299 + 1)
    slices = np.where(labels, np.arange(len(labels)) % 4, (np.arange(len(labels)) - 400) % 4)
    found = jm.slices(METRICS["recall"], scores, labels, slices)
    assert found.tested.tolist() == [True, False, False, False]
    assert np.isfinite(found.estimate).all()
    assert np.isfinite(found.models.simultaneous_p_value[0, 0, 1])
    assert not np.isfinite(found.models.simultaneous_p_value[1:]).any()
    assert np.isnan(jm.trend(found).slope).all()
    whole = jm.slices(METRICS["recall"], scores, labels, slices, threshold="global")
    assert whole.tested.all()
