"""Plans of studies with clusters: against those of items and of other formulas."""

from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm

PARTIAL = partial(jm.partial_auc, max_fpr=0.3)
METRICS = [jm.roc_auc, PARTIAL, jm.average_precision]


@pytest.fixture(scope="module")
def patients():
    """Scores `[2, n]`, labels and patients of unequal numbers of scans, who move both models."""
    rng = np.random.default_rng(7)
    patient = np.repeat(np.arange(150), 1 + rng.poisson(3, 150))
    labels = rng.random(len(patient)) < 0.4
    common, own = rng.normal(size=150)[patient], 0.5 * rng.normal(size=(2, 150))[:, patient]
    scores = common + own + np.array([[1.4], [1.1]]) * labels + rng.normal(size=(2, len(patient)))
    return scores, labels, patient


def z_of(power):
    return stats.norm.isf(0.025) + stats.norm.isf(1 - power)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", [{}, {"paired": False}, {"margin": 0.01}], ids=str)
def test_clusters_of_one_item_are_items(metric, options, patients):
    scores, labels, patient = patients
    plan = partial(jm.power, metric, scores, labels, difference=0.02, **options)
    alone = np.arange(len(patient))
    for times in (1, 3):
        sizes = {"n_positives": times * labels.sum(), "n_negatives": times * (~labels).sum()}
        found = plan(clusters=alone, n_clusters=times * len(patient))
        # The skewness of clusters is that of all, of items by class: n / (n - 1) is another one.
        np.testing.assert_allclose(found, plan(**sizes), rtol=1e-3)
    needed = jm.sample_size(metric, scores, labels, difference=0.05, clusters=alone, **options)
    of_items = jm.sample_size(metric, scores, labels, difference=0.05, **options)
    np.testing.assert_allclose(needed.n_positives, of_items.n_positives, atol=1)
    np.testing.assert_allclose(needed.n_clusters, needed.n_positives / labels.mean(), rtol=0.02)


@pytest.mark.parametrize("metric", METRICS)
def test_many_clusters_have_the_errors_of_the_pilot(metric, patients):
    """Their number follows from the standard errors of `compare` and of `standard_error`."""
    scores, labels, patient = patients
    of_pair = float(jm.compare(metric, scores, labels, clusters=patient).standard_error[0, 1])
    first, second = np.asarray(jm.standard_error(metric, scores, labels, clusters=patient))
    d = 0.002
    plan = partial(jm.sample_size, metric, difference=d, power=0.9)
    for given, options, error in (
        (scores, {}, of_pair),
        (scores, {"paired": False}, np.hypot(first, second)),
        (scores[0], {"paired": False}, np.sqrt(2) * first),
        (scores[0], {}, first),
    ):
        needed = plan(scores=given, labels=labels, clusters=patient, **options)
        np.testing.assert_allclose(needed.n_clusters, 150 * (error * z_of(0.9) / d) ** 2, rtol=0.02)
        np.testing.assert_allclose(needed.standard_error, d / z_of(0.9), rtol=0.02)
        each = needed.n_clusters / 150
        np.testing.assert_allclose(needed.n_positives, labels.sum() * each, atol=1)
        np.testing.assert_allclose(needed.n_negatives, (~labels).sum() * each, atol=1)
    wide = jm.sample_size(metric, scores, labels, width=0.005, clusters=patient)
    expected = 150 * (2 * stats.norm.isf(0.025) * np.array([first, second]) / 0.005) ** 2
    np.testing.assert_allclose(wide.n_clusters, expected, rtol=0.02)


@pytest.mark.parametrize("metric", METRICS[:2])
def test_the_pilot_has_its_own_error(metric, patients):
    """A difference as large as the margin of its limits is found in one of two studies."""
    scores, labels, patient = patients
    compared = jm.compare(metric, scores, labels, clusters=patient)
    margin = (compared.high - compared.difference)[0, 1]
    half = jm.power(metric, scores, labels, difference=margin, clusters=patient)
    np.testing.assert_allclose(half, 0.5, atol=0.02)
    found = jm.confidence_interval(metric, scores[0], labels, method="logit", clusters=patient)
    below = found.estimate - found.low
    half = jm.power(metric, scores[0], labels, difference=below, clusters=patient)
    np.testing.assert_allclose(half, 0.5, atol=0.02)


def test_sizes_have_the_power(patients):
    """One cluster less does not."""
    scores, labels, patient = patients
    given = jm.roc_auc, scores, labels
    needed = jm.sample_size(*given, difference=[0.03, 0.06], power=0.85, clusters=patient)
    k = np.asarray(needed.n_clusters)
    assert (k == np.round(k)).all()
    at = partial(jm.power, *given, difference=[0.03, 0.06], clusters=patient)
    assert (at(n_clusters=k) >= 0.85).all()
    assert (at(n_clusters=k - 1) < 0.85).all()
    assert "clusters" in str(needed)


def test_clusters_of_very_unequal_sizes_have_a_plan(rng):
    """Two of them count as less than one of one size, whose errors are undefined."""
    patient = np.repeat(np.arange(2000), np.minimum(rng.zipf(1.8, 2000), 40))
    labels = patient % 2 == 0
    effects = rng.normal(size=(2, 2000))[:, patient]
    scores = effects + np.array([[2.0], [1.0]]) * labels + rng.normal(size=labels.shape)
    recall = partial(jm.recall_at_fpr, max_fpr=0.2)
    needed = jm.sample_size(recall, scores, labels, difference=0.2, clusters=patient)
    assert 20 < needed.n_clusters < 2000
    given = {"difference": 0.2, "clusters": patient, "n_clusters": needed.n_clusters}
    assert 0.8 <= jm.power(recall, scores, labels, **given) < 0.82


def test_masked_clusters_do_not_count(patients):
    scores, labels, patient = patients
    where = patient < 120
    plan = partial(jm.sample_size, jm.roc_auc, difference=0.05)
    masked = plan(np.where(where, scores, np.nan), labels, clusters=patient, where=where)
    kept = plan(scores[:, where], labels[where], clusters=patient[where])
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), masked, kept)


@pytest.mark.slow
def test_works_in_jit(patients):
    scores, labels, patient = patients
    plan = partial(jm.sample_size, PARTIAL, labels=labels, difference=0.05, clusters=patient)
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-4), jax.jit(plan)(scores), plan(scores)
    )


def test_refuses_other_units(patients):
    scores, labels, patient = patients
    with pytest.raises(TypeError, match="ratio is for items without clusters"):
        jm.sample_size(jm.roc_auc, scores, labels, width=0.1, ratio=2, clusters=patient)
    for name in ("n_positives", "n_negatives"):
        with pytest.raises(TypeError, match="write n_clusters=200"):
            jm.power(jm.roc_auc, scores, labels, difference=0.1, clusters=patient, **{name: 50})
    with pytest.raises(TypeError, match="write clusters=ids, too"):
        jm.power(jm.roc_auc, scores, labels, difference=0.1, n_clusters=50)
