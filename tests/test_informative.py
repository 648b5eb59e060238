"""Intervals where weights go with the scores, as where what is sampled less often weighs more.

Of each class a share is missed and weighs K, and the others are hit and weigh 1. The values are
known by hand.
"""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm

N, SETS, SHARE, K = 300, 400, 0.06, 5.0
HIT = (1 - SHARE) / (1 - SHARE + SHARE * K)
LABELS = np.arange(2 * N) < N


@pytest.fixture(scope="module")
def missed():
    return np.random.default_rng(0).random((SETS, 2 * N)) < SHARE


def share_covered(interval, value):
    return np.mean((interval.low <= value) & (value <= interval.high))


def assert_covers(interval, value):
    assert 0.925 <= share_covered(interval, value) <= 0.985
    assert np.mean(interval.high - interval.low) < 5.5 * np.std(interval.estimate)


RECALL = partial(jm.recall_at_fpr, max_fpr=0.2)
AREA = partial(jm.partial_auc, max_fpr=0.2)


@pytest.mark.parametrize(
    ("metric", "scale", "given"),
    [
        marked(jm.roc_auc, 1, "weights", fast=False),
        (AREA, 0.2, "weights"),
        marked(RECALL, 1, "weights", fast=False),
        (RECALL, 1, "amounts"),
    ],
)
def test_closed_forms(missed, metric, scale, given):
    """Positives are above all negatives, or, those that are missed, below all."""
    missed = missed[:250]
    scores = np.where(LABELS, np.where(missed, -1.0, 1.0), np.linspace(-0.5, 0.5, 2 * N))
    scores += np.linspace(0, 1e-3, 2 * N)  # no ties
    weights = np.where(LABELS & missed, K, 1.0)
    # Row by row, as NumPy finds them: a program of all rows takes longer to compile.
    found = [
        jm.confidence_interval(metric, x, LABELS, **{given: w})
        for x, w in zip(scores, weights, strict=True)
    ]
    assert_covers(jax.tree.map(lambda *x: np.stack(x), *found), HIT * scale)


def test_rates_at_a_threshold(missed):
    scores = np.where(missed == LABELS, -1.0, 1.0)
    weights = np.where(missed, K, 1.0)
    found = jm.operating_point(scores, LABELS, threshold=0, weights=weights, fp_cost=1, fn_cost=3)
    for name, value in {
        "recall": HIT,
        "fpr": 1 - HIT,
        "precision": HIT,
        "npv": HIT,
        "cost": 2 * (1 - HIT),
    }.items():
        assert_covers(getattr(found, name), value)


def test_equal_rates_need_no_more_draws():
    """Weights that are not equal, but do not go with the decision either: those of Kish."""
    weights = np.tile([1.0, 3.0], N)
    flagged = np.tile([1.0, 1.0, -1.0, -1.0], N // 2)
    found = jm.operating_point(flagged, LABELS, threshold=0, weights=weights)
    kish = weights[:N].sum() ** 2 / (weights[:N] ** 2).sum()
    assert found.recall.standard_error == pytest.approx(np.sqrt(0.25 / kish), rel=1e-6)


def test_shares_of_1_have_limits():
    """Those of Jeffreys for Kish's size, though weights in shares may add up to more than 1."""
    rng = np.random.default_rng(0)
    labels, weights = np.arange(40) < 16, rng.random((100, 40))
    found = jm.operating_point(np.ones(40), labels, threshold=0, weights=weights)
    for name, counted in {"recall": labels, "fpr": ~labels, "flagged": labels | ~labels}.items():
        of_class = weights[:, counted]
        n = of_class.sum(axis=1) ** 2 / (of_class**2).sum(axis=1)
        interval = getattr(found, name)
        np.testing.assert_allclose(interval.low, stats.beta.ppf(0.025, n + 0.5, 0.5), rtol=1e-5)
        assert (interval.high == 1).all()


def test_means_with_weights(missed):
    values = 1.0 - missed[:, :N]
    assert_covers(jm.mean_interval(values, weights=np.where(missed[:, :N], K, 1.0)), HIT)


def test_means_of_clusters_whose_sizes_tell_of_their_values(missed):
    covered = []
    for of_clusters in missed[:200, :N]:
        size = np.where(of_clusters, int(K), 1)
        values, clusters = np.repeat(~of_clusters, size), np.repeat(np.arange(N), size)
        found = jm.mean_interval(values.astype(float), clusters=clusters)
        covered.append(float(found.low) <= HIT <= float(found.high))
    assert np.mean(covered) >= 0.925


@pytest.mark.parametrize("weight", [1.0, 0.3, 1 / 3])
@pytest.mark.parametrize("method", ["auto", "logit"])
def test_equal_weights_of_tied_scores_are_none(weight, method):
    """The average precision has no variance, of which sums of weights leave the rounding."""
    labels, scores = np.arange(60) < 50, np.zeros(60, np.float32)
    found, expected = (
        jm.confidence_interval(jm.average_precision, scores, labels, method=method, weights=x)
        for x in (np.full(60, weight), None)
    )
    np.testing.assert_allclose([found.low, found.high], [expected.low, expected.high], rtol=1e-6)
