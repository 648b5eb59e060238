"""Closed-form intervals of items in clusters: those of as many items as vary as much."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm

METRICS = {
    "auc": jm.roc_auc,
    "precision": jm.average_precision,
    "area": partial(jm.partial_auc, max_fpr=0.2),
    "recall": partial(jm.recall_at_fpr, max_fpr=0.2),
    "line": partial(jm.recall_at_fpr, max_fpr=0.2, method="linear"),
}
EACH = pytest.mark.parametrize("name", [marked(x, fast=x in ("auc", "recall")) for x in METRICS])
pytestmark = pytest.mark.filterwarnings("ignore:.*cluster")


def _limits(*given, **options):
    found = jm.confidence_interval(*given, **options)
    return np.stack([found.low, found.high], dtype=float)


def _hull(a, b):
    return np.stack([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])


def _items(rng, n=240):
    labels = rng.random(n) < 0.4
    return rng.normal(size=n) + labels, labels


@EACH
@pytest.mark.parametrize("weighted", [False, marked(True, fast=False)])
def test_clusters_of_one_item_are_items(name, weighted, rng, x64):
    scores, labels = _items(rng)
    weights = rng.random(len(labels)) + 0.1 if weighted else None
    given = METRICS[name], scores, labels
    alone = np.arange(len(labels))
    found = _limits(*given, clusters=alone, weights=weights)
    by_logit = _limits(*given, clusters=alone, weights=weights, method="logit")
    whole = _limits(*given, weights=weights)
    # With weights a variance by clusters counts what its squares do not keep.
    tolerance = 5e-3 if weighted else 1e-9
    np.testing.assert_allclose(found, _hull(whole, by_logit), rtol=tolerance)


@EACH
def test_copies_in_clusters_are_as_one_item(name, rng, x64):
    scores, labels = _items(rng)
    found = _limits(
        METRICS[name],
        scores.repeat(5),
        labels.repeat(5),
        clusters=np.arange(len(labels)).repeat(5),
        method="closed form",
    )
    alone = _limits(METRICS[name], scores, labels, clusters=np.arange(len(labels)))
    # A recall and a partial area have influence by the number of negatives near the limit.
    np.testing.assert_allclose(found, alone, rtol=1e-9 if name in ("auc", "precision") else 0.05)


@EACH
def test_clusters_that_fail_may_not_have_been_drawn(name):
    """One positive of 500 is below one negative: 100 clusters of five tell less than 500 items."""
    ids = np.arange(1000) // 5
    labels = ids < 100
    scores = labels + np.arange(1000) * 1e-5
    scores[0] = scores[~labels].max() - 1e-6
    given = METRICS[name], scores, labels
    # The share of clusters that may fail, none of which was seen, is below 3.6 %.
    most = float(METRICS[name](scores, labels)) * (1 - 0.01)
    assert _limits(*given, clusters=ids)[0] < most
    assert _limits(*given, clusters=ids)[0] < _limits(*given)[0]


@EACH
def test_batches_and_programs(name, rng, x64):
    labels, ids = rng.random(200) < 0.4, rng.integers(0, 30, 200)
    scores = rng.normal(size=(2, 3, 200)) + labels
    interval = partial(_limits, METRICS[name], clusters=ids)
    whole = interval(scores, labels)
    each = np.stack([[interval(x, labels) for x in row] for row in scores])
    np.testing.assert_allclose(whole, np.moveaxis(each, -1, 0), rtol=1e-12)

    def traced(scores):
        found = jm.confidence_interval(METRICS[name], scores, labels, clusters=ids)
        return found.low, found.high

    np.testing.assert_allclose(jax.jit(traced)(scores), whole, rtol=1e-9)


def test_several_limits(rng, x64):
    scores, labels = _items(rng)
    several = partial(jm.recall_at_fpr, max_fpr=np.array([0.1, 0.3]))
    found = _limits(several, scores, labels, clusters=np.arange(240) // 6)
    for i, limit in enumerate((0.1, 0.3)):
        one = partial(jm.recall_at_fpr, max_fpr=limit)
        alone = _limits(one, scores, labels, clusters=np.arange(240) // 6)
        np.testing.assert_allclose(found[:, i], alone, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "true"), [("auc", 0.9876), ("precision", 0.9915)])
def test_covers_where_a_few_clusters_are_missed(name, true):
    """2 % of 100 positive clusters score as negatives; the true values are of 2e6 items."""
    rng = np.random.default_rng(5)
    ids = np.arange(2000) // 10
    positive = ids < 100
    missed = 0
    for _ in range(400):
        effect = rng.normal(size=200)[ids] + rng.normal(size=2000)
        scores = effect / 2**0.5 + 4 * (positive & (rng.random(200) > 0.02)[ids])
        low, high = _limits(METRICS[name], scores, positive, clusters=ids)
        missed += not low <= true <= high
    assert missed < 400 * 0.08


def test_the_order_of_tied_items_does_not_count(rng):
    """The variance of items that tie is 0 but for rounding, which depends on their order."""
    ids = rng.integers(0, 20, 231)
    labels = ids < 7
    scores = np.where(labels, rng.integers(0, 3, 231), 0)
    orders = [rng.permutation(231) for _ in range(8)]
    found = [_limits(jm.average_precision, scores[x], labels[x], clusters=ids[x]) for x in orders]
    np.testing.assert_allclose(found, np.broadcast_to(found[0], (8, 2)), rtol=1e-6)


@pytest.mark.parametrize("method", ["auto", "logit", marked("wald", fast=False)])
@pytest.mark.filterwarnings("ignore:there is only 1", "ignore:the metric is undefined")
def test_a_class_that_is_absent_or_in_one_cluster(method, rng):
    scores, ids = rng.normal(size=200), np.arange(200) % 20
    positive = ids == 3
    recall = METRICS["recall"]
    for shift in (10, -10):  # recalls of 1 and 0
        given = scores + shift * positive, positive
        assert np.isnan(_limits(recall, *given, clusters=ids, method=method)).all()
    found = jm.confidence_interval(
        jm.average_precision, scores, np.zeros(200), clusters=ids, method=method
    )
    assert np.isnan([found.low, found.high, found.standard_error]).all()
