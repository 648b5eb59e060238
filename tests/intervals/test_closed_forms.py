"""Confidence intervals in closed form against their formulas, with clusters and amounts."""

import logging
from functools import partial

import interval_formulas as formulas
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from of_intervals import LIMIT, PARTIAL, RECALL, Z, close, limits, moments, placements
from scipy import stats

import jaxmetrics as jm

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are only"),
]


def test_auto_of_the_auc(data):
    parts = placements(*data)
    interval = jm.confidence_interval(jm.roc_auc, *data)
    assert interval.method == "closed form"
    assert interval.confidence_level == 0.95
    estimate, variances, sizes = moments(parts)
    close(limits(interval), formulas.auc(estimate, variances, sizes, 0.95))
    close(interval.standard_error, np.sqrt(np.sum(np.array(variances) / sizes)))
    close(interval.estimate, estimate)


def test_auto_of_a_partial_area(data):
    """Of influence values that are gradients; the height is that of the curve at the limit."""
    scores, labels = data
    metric = partial(PARTIAL, scale="range")
    interval = jm.confidence_interval(metric, scores, labels, confidence_level=0.9)
    phi = np.asarray(jm.influence(metric, scores, labels), float)
    _, variances, sizes = moments((phi[~labels], phi[labels]))
    thresholds = np.unique(scores)[::-1][:, None]
    fpr, tpr = (np.mean(scores[labels == c] >= thresholds, axis=1) for c in (False, True))
    found = float(interval.estimate), variances, sizes
    expected = formulas.partial_auc(*found, 0.9, LIMIT, np.interp(LIMIT, fpr, tpr))
    assert interval.method == "closed form"
    close(limits(interval), expected)


def test_logit(data):
    estimate, variances, sizes = moments(placements(*data))
    for level in (0.8, 0.95):
        interval = jm.confidence_interval(jm.roc_auc, *data, method="logit", confidence_level=level)
        close(limits(interval), formulas.logit_t(estimate, variances, sizes, level))
    assert interval.method == "logit"


def test_wald(data):
    interval = jm.confidence_interval(jm.roc_auc, *data, method="wald")
    estimate, variances, sizes = moments(placements(*data))
    margin = Z * np.sqrt(np.sum(np.array(variances) / sizes))
    close(limits(interval), [estimate - margin, estimate + margin])


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_auto_of_average_precision(level, data):
    """Logit limits, moved for the positive that counts itself and for few successes."""
    scores, labels = data
    for kept in (labels >= 0, ~labels | (np.cumsum(labels) <= 12)):  # many, and few successes
        items = scores[kept], labels[kept]
        interval = jm.confidence_interval(jm.average_precision, *items, confidence_level=level)
        phi = np.asarray(jm.influence(jm.average_precision, *items), float)
        _, variances, sizes = moments((phi[~items[1]], phi[items[1]]))
        positives, negatives = (items[0][items[1] == c] for c in (True, False))
        caught = (positives >= positives[:, None]).sum(1)
        estimate = np.mean(caught / (caught + (negatives >= positives[:, None]).sum(1)))
        without = formulas.precision_without_itself(positives, negatives)
        expected = formulas.average_precision(estimate, variances, sizes, level, without)
        assert interval.method == "closed form"
        close(interval.estimate, estimate)
        close(limits(interval), expected)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_auto_of_recall(level, data):
    """Of several limits at once, without a key: the hull of a slope's limits and of a box."""
    scores, labels = data
    positives, negatives = (scores[labels == c].astype(float) for c in (True, False))
    interval = jm.confidence_interval(RECALL, scores, labels, confidence_level=level)
    assert interval.method == "closed form"
    expected = [formulas.recall(positives, negatives, t, level) for t in (0.1, LIMIT)]
    close(limits(interval), np.transpose(expected))
    close(interval.estimate, RECALL(scores, labels))
    for i, t in enumerate((0.1, LIMIT)):
        alone = partial(jm.recall_at_fpr, max_fpr=t)
        close(interval.standard_error[i], jm.standard_error(alone, scores, labels))
        one = jm.confidence_interval(alone, scores, labels, confidence_level=level)
        close(limits(one), limits(interval)[:, i])


@pytest.mark.slow
def test_several_limits_of_several_models_in_jit(data):
    """As many as models, of which each has classes of its own."""
    scores, labels = data
    given = np.stack([scores, -scores]), np.stack([labels, np.roll(labels, 1) | labels])
    found = jax.jit(partial(jm.confidence_interval, RECALL))(*given)
    for i in range(2):
        alone = jm.confidence_interval(RECALL, *(x[i] for x in given))
        close(limits(found)[:, i], limits(alone))
        close(found.standard_error[i], alone.standard_error)


def test_recall_by_amounts(data, rng):
    """Equal amounts are none, and unequal ones count as their effective size."""
    scores, labels = data
    metric = partial(jm.recall_at_fpr, max_fpr=LIMIT)
    alone = jm.confidence_interval(metric, scores, labels)
    equal = jm.confidence_interval(metric, scores, labels, amounts=np.full(200, 7.0))
    close(limits(equal), limits(alone))
    doubled = np.where(np.cumsum(labels) <= 12, 100.0, 1e-9)  # as if 12 positives were there
    few = jm.confidence_interval(metric, scores, labels, amounts=doubled)
    kept = ~labels | (np.cumsum(labels) <= 12)
    expected = jm.confidence_interval(metric, scores[kept], labels[kept])
    close(limits(few), limits(expected), rtol=1e-4)
    assert np.diff(limits(few), axis=0) > 1.5 * np.diff(limits(alone), axis=0)


def clusters_of(kind, labels):
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 14, len(labels))
    if kind == "one class":
        return np.where(labels, ids % 6, 6 + ids)
    if kind == "some mixed":
        return np.where(labels, ids % 6, ids)
    return ids


@pytest.fixture(scope="module")
def influences(data):
    """Of each metric, with its influence values."""
    scores, labels = data
    found = {
        metric: np.asarray(jm.influence(metric, scores, labels), float)
        for metric in (jm.roc_auc, partial(jm.recall_at_fpr, max_fpr=LIMIT))
    }
    # Clusters of other sizes change the shares of the classes, and this depends on them.
    slopes = jax.grad(lambda w: jm.average_precision(scores, labels, weights=w))
    with jax.enable_x64(True):
        phi = np.asarray(slopes(jnp.ones(200))) * np.where(labels, 60, 140)
    return {**found, jm.average_precision: phi}


@pytest.mark.parametrize("kind", ["one class", "some mixed", "mixed"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clusters(kind, level, data, influences):
    """The variance of the class sums of clusters, with degrees of freedom between Welch's and those
    of all clusters."""
    scores, labels = data
    clusters = clusters_of(kind, labels)
    for metric, phi in influences.items():
        found = jm.confidence_interval(
            metric, scores, labels, clusters=clusters, confidence_level=level, method="logit"
        )
        estimate = float(metric(scores, labels))
        expected, error = formulas.logit_t_of_clusters(estimate, phi, labels, clusters, level)
        close(limits(found), expected)
        close(found.standard_error, error)


def test_clusters_of_other_numbers_compile_nothing(caplog):
    """Of numbers of items and of clusters that no program had: they share those of positives."""
    rng = np.random.default_rng(8)
    recall = partial(jm.recall_at_fpr, max_fpr=LIMIT)

    def every(n, n_clusters):
        labels, clusters = np.arange(n) % 3 == 0, rng.integers(0, n_clusters, n)
        scores = rng.normal(size=(2, n)) + labels
        for metric in (jm.roc_auc, jm.average_precision, recall):
            jm.confidence_interval(metric, scores[0], labels, clusters=clusters)
        jm.compare(jm.roc_auc, scores, labels, clusters=clusters)

    every(300, 80)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        jax.jit(lambda x: x + 1)(1.0)
        assert any("Compiling" in r.getMessage() for r in caplog.records)
        caplog.clear()
        every(311, 83)
    assert [r.getMessage() for r in caplog.records if "Compiling" in r.getMessage()] == []


def test_mixed_clusters_are_draws_of_one_class(data):
    """All with both classes: t has the degrees of all, and the variance is that of sums."""
    scores, labels = data
    clusters = clusters_of("mixed", labels)
    assert all(len(set(labels[clusters == k])) == 2 for k in range(14))
    phi = np.asarray(jm.influence(jm.roc_auc, scores, labels), float)
    sums = np.bincount(clusters, phi / np.where(labels, labels.sum(), (~labels).sum()))
    kept, df = formulas.kept_and_df(np.bincount(clusters) * 1.0)
    assert 10 < df < 13
    error, estimate = np.sqrt(np.sum(sums**2) / kept), float(jm.roc_auc(scores, labels))
    found = jm.confidence_interval(jm.roc_auc, scores, labels, clusters=clusters)
    close(found.standard_error, error)
    close(limits(found), formulas.on_logit(estimate, error**2, df, 0.95))


@pytest.mark.filterwarnings("ignore:.*cluster")
def test_a_class_in_one_cluster_has_no_interval(data):
    scores, labels = data
    for positives in (labels, ~labels):
        clusters = np.where(positives, 0, 1 + np.arange(200) % 9)
        found = jm.confidence_interval(jm.roc_auc, scores, labels, clusters=clusters)
        assert np.isnan(limits(found)).all()
        assert np.isnan(found.standard_error)
        close(found.estimate, jm.roc_auc(scores, labels))


def test_scales_of_a_partial_area(data):
    """An interval says the same on each scale."""
    found = {
        scale: jm.confidence_interval(partial(PARTIAL, scale=scale), *data)
        for scale in ("range", "raw", "mcclish")
    }
    shares = limits(found["range"])
    assert (shares > 0).all()
    assert (shares < 1).all()
    chance = LIMIT**2 / 2
    maps = {
        "raw": (lambda share: share * LIMIT, LIMIT),
        "mcclish": (
            lambda share: (1 + (share * LIMIT - chance) / (LIMIT - chance)) / 2,
            LIMIT / (LIMIT - chance) / 2,
        ),
    }
    for scale, (of_share, unit) in maps.items():
        close(limits(found[scale]), of_share(shares))
        close(found[scale].estimate, of_share(found["range"].estimate))
        close(found[scale].standard_error, unit * found["range"].standard_error)
    metric = partial(PARTIAL, scale="mcclish")
    close(found["mcclish"].estimate, metric(*data))
    close(found["mcclish"].standard_error, jm.standard_error(metric, *data))


def test_windows_that_are_not_from_zero(data):
    band = partial(jm.partial_auc, min_fpr=0.1, max_fpr=0.4)
    interval = jm.confidence_interval(band, *data)
    assert interval.method == "logit"
    assert 0 <= interval.low < interval.estimate < interval.high <= 0.3
    two_way = partial(jm.partial_auc, max_fpr=0.4, min_tpr=0.3)
    interval = jm.confidence_interval(two_way, *data)
    assert interval.method == "logit"
    assert 0 <= interval.low < interval.estimate < interval.high <= 0.4 * 0.7
    # All the curve is the area, whichever way it is asked for.
    whole = jm.confidence_interval(partial(jm.partial_auc, max_fpr=1.0), *data, method="logit")
    close(limits(whole), limits(jm.confidence_interval(jm.roc_auc, *data, method="logit")))


def test_several_limits(data):
    """Closed forms take one limit at a time."""
    several = partial(jm.partial_auc, max_fpr=[0.1, 0.3])
    with pytest.raises(ValueError, match="one limit at a time"):
        jm.confidence_interval(several, *data)


def test_batch_and_masks(data, rng):
    scores, labels = data
    models = np.stack([scores, rng.permutation(scores)])
    where = rng.random(200) < 0.8
    spoiled = np.where(where, models, np.nan)
    found = jm.confidence_interval(jm.roc_auc, spoiled, labels, where=where)
    assert found.low.shape == found.standard_error.shape == (2,)
    for i in range(2):
        estimate, variances, sizes = moments(placements(models[i][where], labels[where]))
        close(limits(found)[:, i], formulas.auc(estimate, variances, sizes, 0.95))


def test_closed_forms_in_jit(data):
    compute = partial(jm.confidence_interval, PARTIAL)
    compiled = jax.jit(compute)
    found = compiled(*data)
    assert found.method == "closed form"
    close(limits(found), limits(compute(*data)))
    undefined = compiled(data[0], np.ones(200, bool))
    assert np.isnan(limits(undefined)).all()


@pytest.mark.parametrize(("positives", "negatives"), [(100, 400), (200, 1000)])
def test_average_precision_of_thinned_negatives(positives, negatives, rng):
    """Each negative stands for many, of which the sample has none just above some positives."""
    weight = 20.0
    n = positives + negatives
    labels, shift = np.arange(n) < positives, 1.8
    scores = rng.normal(size=(400, n)) + shift * labels
    at = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000) + shift  # of positives
    caught, false = positives * stats.norm.sf(at - shift), negatives * weight * stats.norm.sf(at)
    truth = np.mean(caught / (caught + false))
    weights = np.where(labels, 1.0, weight)
    interval = jm.confidence_interval(jm.average_precision, scores, labels, weights=weights)
    assert np.mean((interval.low <= truth) & (truth <= interval.high)) > 0.93
