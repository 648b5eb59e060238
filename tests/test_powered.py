"""Few labels, many scores: by hand, against what it becomes in simple cases, and its coverage."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm

N = 4000
RECALL = partial(jm.recall_at_fpr, max_fpr=0.2)
SPECIFICITY = partial(jm.specificity_at_sensitivity, min_sensitivity=0.7)
METRICS = (jm.roc_auc, partial(jm.partial_auc, max_fpr=0.3), RECALL, jm.average_precision)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    labels = rng.random(N) < 0.4
    scores = (rng.normal(size=N) + 1.2 * labels).round(1)
    proxy = np.where(rng.random(N) < 0.97, labels, ~labels).astype(float)
    return scores, labels, proxy, np.arange(N) % 4 == 0


@pytest.mark.parametrize(
    "metric", [marked(x, fast=x is jm.roc_auc) for x in [*METRICS, SPECIFICITY]]
)
def test_with_all_labels_it_is_the_metric_with_its_error(metric, data):
    scores, labels, proxy, _ = data
    found = jm.prediction_powered_interval(metric, scores, labels, proxy, labelled=np.ones(N, bool))
    np.testing.assert_allclose(found.estimate, metric(scores, labels), rtol=1e-6)
    assert found.proxy_weight == 0
    assert found.low == found.labelled.low < found.estimate < found.high == found.labelled.high
    if metric is not jm.average_precision:  # whose labels are drawn with their items here
        error = jm.standard_error(metric, scores, labels)
        np.testing.assert_allclose(found.standard_error, error, rtol=1e-5)


def test_auc_by_hand(x64):
    # Most are not labelled, and the proxy is good enough to have a weight.
    item = np.arange(60)
    scores, labels = item + 1.0, 1 * (item + 40 * (item % 3 == 0) > 45)
    proxy = np.where(labels, 0.9, 0.04) + item % 5 / 100
    labelled = item * 7 % 10 < 3
    with pytest.warns(UserWarning, match="label more") as caught:
        found = jm.prediction_powered_interval(jm.roc_auc, scores, labels, proxy, labelled=labelled)
    assert len(caught) == 2
    share, weight = labelled / labelled.mean(), float(found.proxy_weight)
    assert weight > 0.2
    positives = share * (labels - weight * proxy) + weight * proxy
    negatives = share * (1 - labels - weight * (1 - proxy)) + weight * (1 - proxy)
    np.testing.assert_allclose(weight, _best_weight(share, labels, proxy), rtol=1e-6)
    positives, negatives = map(_monotone, (positives, negatives))
    below = np.cumsum(negatives) - negatives / 2
    expected = positives @ below / positives.sum() / negatives.sum()
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-6)
    alone = jm.roc_auc(scores[labelled], labels[labelled])
    np.testing.assert_allclose(found.labelled.estimate, alone, rtol=1e-6)
    error = _error_of_auc(positives, negatives, share, labels, proxy, weight)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-5)


def _influence_by_label(positives, negatives):
    below = np.cumsum(negatives) - negatives / 2
    not_below = np.cumsum(positives[::-1])[::-1] - positives / 2
    w0, w1 = negatives.sum(), positives.sum()
    auc = positives @ below / w0 / w1
    return (not_below / w1 - auc) / w0, (below / w0 - auc) / w1


def _squares_of_errors(share, labels, of_negatives, of_positives):
    errors = (share * (of_positives - of_negatives)) ** 2
    return sum(np.average(errors, weights=share * (labels == x)) for x in (0, 1))


def _best_weight(share, labels, proxy):
    """By the least of the variance on a parabola, with two errors of the proxy in each class."""
    phi = _influence_by_label(share * labels, share * (1 - labels))
    expected = proxy * phi[1] + (1 - proxy) * phi[0]
    own, correction = share * np.where(labels, *phi[::-1]), expected - expected.mean()
    missed = 2 * _squares_of_errors(share, labels, *phi)

    def variance(weight):
        return np.sum((own + weight * (1 - share) * correction) ** 2) + weight**2 * missed

    at_0, at_1, at_2 = map(variance, (0, 1, 2))
    curvature = at_2 - 2 * at_1 + at_0
    return (at_0 - at_1) / curvature + 1 / 2


def _error_of_auc(positives, negatives, share, labels, proxy, weight):
    """With half an error of the proxy in each class beside those that were drawn."""
    of_negatives, of_positives = _influence_by_label(positives, negatives)
    expected = proxy * of_positives + (1 - proxy) * of_negatives
    units = share * np.where(labels, of_positives, of_negatives)
    units = units + weight * (1 - share) * (expected - expected.mean())
    variance = np.sum(units[share == 0] ** 2)
    for label in (0, 1):
        mine = (share > 0) & (labels == label)
        w = share[mine]
        n = w.sum() ** 2 / np.sum(w**2)
        variance += n / (n - 1) * np.sum(units[mine] ** 2)
    missed = _squares_of_errors(share, labels, of_negatives, of_positives)
    return np.sqrt(variance + weight**2 * missed / 2)


def _monotone(parts):
    sums = np.cumsum(parts)
    highest, lowest = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
    return np.diff(np.clip((highest + lowest) / 2, 0, sums[-1]), prepend=0)


@pytest.mark.parametrize("metric", [marked(x, fast=x in METRICS[:2]) for x in METRICS])
def test_a_good_proxy_narrows_and_a_useless_one_does_not_widen(metric, rng):
    labels = rng.random(N) < 0.3
    scores, noise = rng.normal(size=N) + 1.5 * labels, rng.random(N)
    good, useless = (
        jm.prediction_powered_interval(metric, scores, labels, x, labelled=np.arange(N) < 400)
        for x in (np.where(noise < 0.97, labels, ~labels), rng.random(N))
    )
    width = good.labelled.high - good.labelled.low
    assert good.high - good.low < 0.7 * width
    assert useless.high - useless.low < 1.02 * width


def test_a_model_of_equal_scores_may_have_others_that_were_not_drawn(data):
    _, labels, proxy, known = data
    equal = np.zeros(N)
    found = jm.prediction_powered_interval(jm.roc_auc, equal, labels, proxy, labelled=known)
    assert found.proxy_weight == found.standard_error == 0
    alike = 0.025 ** (1 / labels[known].sum())  # of the smaller class: Clopper and Pearson
    expected = [alike / 2, 0.5, 1 - alike / 2]
    np.testing.assert_allclose([found.low, found.estimate, found.high], expected, rtol=1e-6)


def test_the_unit_of_a_partial_area_says_nothing(data):
    scores, labels, proxy, labelled = data
    raw, share = (
        jm.prediction_powered_interval(
            partial(jm.partial_auc, max_fpr=0.3, scale=scale),
            scores,
            labels,
            proxy,
            labelled=labelled,
        )
        for scale in ("raw", "range")
    )
    for name in ("estimate", "low", "high", "standard_error"):
        np.testing.assert_allclose(getattr(raw, name), 0.3 * getattr(share, name), rtol=1e-5)


def test_a_metric_without_a_range_has_symmetric_limits(data):
    """By Student's quantile; all degrees of freedom are above 60."""
    scores, labels, proxy, labelled = data

    @jm.table_metric(smooth=True)
    def gini(table):
        return 2 * jm.roc_auc(table) - 1

    found, of_area = (
        jm.prediction_powered_interval(metric, scores, labels, proxy, labelled=labelled)
        for metric in (gini, jm.roc_auc)
    )
    np.testing.assert_allclose(found.estimate, 2 * of_area.estimate - 1, rtol=1e-5)
    np.testing.assert_allclose(found.standard_error, 2 * of_area.standard_error, rtol=1e-4)
    below, above = found.estimate - found.low, found.high - found.estimate
    np.testing.assert_allclose(below, above, rtol=1e-4)
    assert 1.959 < above / found.standard_error < 2.001


@pytest.mark.filterwarnings("ignore:the labelled sample has")
def test_one_labelled_positive_has_no_limits_and_two_have(data):
    scores, labels, proxy, _ = data
    for n_positives in (1, 2):
        labelled = ~labels | (labels.cumsum() <= n_positives)
        found = jm.prediction_powered_interval(jm.roc_auc, scores, labels, proxy, labelled=labelled)
        limits = np.array([found.low, found.high, found.standard_error])
        assert np.isfinite(found.estimate)
        assert (np.isfinite(limits) if n_positives == 2 else np.isnan(limits)).all()


def test_chances_are_inverse_weights(data):
    scores, labels, proxy, labelled = data
    chances = np.where(labels, 0.5, 0.2)
    found = jm.prediction_powered_interval(
        jm.roc_auc,
        scores,
        labels,
        proxy,
        labelled=labelled,
        sampling_probability=chances,
    )
    alone = jm.average_precision(scores[labelled], labels[labelled], weights=1 / chances[labelled])
    precision = jm.prediction_powered_interval(
        jm.average_precision,
        scores,
        labels,
        proxy,
        labelled=labelled,
        sampling_probability=chances,
    )
    np.testing.assert_allclose(precision.labelled.estimate, alone, rtol=1e-5)
    assert found.standard_error < found.labelled.standard_error


def test_other_labels_and_the_order_of_items_do_not_count(data, rng):
    scores, labels, proxy, labelled = data
    call = partial(jm.prediction_powered_interval, RECALL)
    expected = call(scores, labels, proxy, labelled=labelled)
    for other in (np.nan, -1.0, None, "unknown"):
        given = np.where(labelled, labels.astype(object), other)
        found = call(scores, given, proxy, labelled=labelled)
        assert found == expected
    at = rng.permutation(N)
    found = call(scores[at], labels[at], proxy[at], labelled=labelled[at])
    np.testing.assert_allclose(found.high, expected.high, rtol=1e-5)


def test_batches_programs_and_nan(data):
    scores, labels, proxy, labelled = data
    call = partial(jm.prediction_powered_interval, jm.roc_auc)
    both = np.stack([scores, -scores, ~labels])  # the last has an area of 0
    found = call(both, labels, proxy, labelled=labelled)
    traced = jax.jit(lambda *x: call(*x[:3], labelled=x[3]))(both, labels, proxy, labelled)
    for i in range(3):
        one = call(both[i], labels, proxy, labelled=labelled)
        for name in ("estimate", "low", "high", "standard_error", "proxy_weight"):
            np.testing.assert_allclose(getattr(found, name)[i], getattr(one, name), rtol=1e-5)
            np.testing.assert_allclose(getattr(traced, name)[i], getattr(one, name), rtol=1e-5)
    broken = np.where(np.arange(N) == 1, np.nan, scores)  # an item without a label
    assert np.isnan(call(broken, labels, proxy, labelled=labelled).estimate)


@pytest.mark.parametrize(
    "metric", [marked(x, fast=x is METRICS[1]) for x in [*METRICS, SPECIFICITY]]
)
def test_numpy_and_a_program_find_the_same(metric, data, x64, rng):
    few = [x[:300] for x in data]
    scores, labels, proxy, labelled = few
    both = np.stack([scores, scores + rng.normal(size=300)])  # the first has ties
    chances = np.where(labels, 0.5, 0.2)

    def call(*given):
        return jm.prediction_powered_interval(
            metric, *given[:3], labelled=given[3], sampling_probability=given[4]
        )

    given = both, labels, np.stack([proxy, rng.random(300)]), labelled, chances
    found, traced = call(*given), jax.jit(call)(*given)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-9), found, traced)


@pytest.mark.slow
def test_coverage():
    rng = np.random.default_rng(4)
    n, rows = 1000, 200
    labels, labelled = np.arange(n) % 3 == 0, rng.permutation(n) < 150
    scores = rng.normal(size=(rows, n)) + 2**0.5 * labels  # an AUC of Phi(1)
    proxy = np.where(rng.random((rows, n)) < 0.97, labels, ~labels).astype(float)
    found = jm.prediction_powered_interval(jm.roc_auc, scores, labels, proxy, labelled=labelled)
    inside = (found.low <= 0.841345) & (found.high >= 0.841345)
    assert 0.9 <= inside.mean() <= 0.99
    spread = np.std(found.estimate)
    assert 0.85 < np.mean(found.standard_error) / spread < 1.2
    assert spread < 0.85 * np.std(found.labelled.estimate)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"labelled": np.arange(N) % 4}, TypeError, "labelled must be bool"),
        ({"labelled": np.zeros(N, bool)}, ValueError, "True for some items"),
        ({"labelled": np.ones(N - 1, bool)}, ValueError, r"labels and labelled must be \[n\]"),
        ({"proxy": np.full(N, 1.5)}, ValueError, r"proxy must be in \[0, 1\], got 1.5"),
        ({"proxy": np.full(N, np.nan)}, ValueError, r"proxy must be in \[0, 1\], got nan"),
        (
            {"proxy": np.ones(3)},
            ValueError,
            r"\[\.\.\., n\], one entry for each of the 4,?000 items",
        ),
        ({"sampling_probability": np.zeros(N)}, ValueError, r"must be in \(0, 1\], got 0"),
        ({"sampling_probability": np.ones((2, N))}, ValueError, r"must be \[n\], one entry"),
        ({"metric": partial(jm.precision_at_recall, min_recall=0.5)}, TypeError, "not known"),
    ],
)
def test_refusals(change, error, match, data):
    names = ("scores", "labels", "proxy", "labelled")
    given = {"metric": jm.roc_auc, **dict(zip(names, data, strict=True)), **change}
    with pytest.raises(error, match=match):
        jm.prediction_powered_interval(**given)
