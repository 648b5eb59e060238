"""Slices and trends of items in clusters, which may have items in several slices."""

from functools import partial

import jax
import numpy as np
import pytest

import jaxmetrics as jm

pytestmark = [pytest.mark.filterwarnings("ignore")]

N, K, S = 900, 120, 4
RNG = np.random.default_rng(5)
CLUSTERS = RNG.integers(0, K, N)
LABELS, WEIGHTS = RNG.random(N) < 0.4, RNG.lognormal(size=N)
_EFFECT = RNG.normal(size=(2, K))[:, CLUSTERS]
SCORES = RNG.normal(size=(2, N)) + LABELS + _EFFECT * (1 + LABELS)
NESTED, CROSSED = CLUSTERS % S, RNG.integers(0, S, N)
METRICS = {
    "roc_auc": jm.roc_auc,
    "average_precision": jm.average_precision,
    "partial_auc": partial(jm.partial_auc, max_fpr=0.3),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=0.2),
    "specificity_at_sensitivity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["counts", "weights"])
@pytest.mark.parametrize("name", METRICS)
def test_each_slice_has_the_interval_and_the_comparison_of_its_clusters(name, weights):
    metric, given = METRICS[name], {"clusters": CLUSTERS, "weights": weights}
    for ids in (NESTED, CROSSED):
        found = jm.slices(metric, SCORES, LABELS, ids, **given)
        for i in range(S):
            pair = jm.compare(metric, SCORES, LABELS, where=ids == i, **given)
            for field in ("difference", "standard_error", "low", "high", "p_value"):
                got, wanted = getattr(found.models, field)[i], getattr(pair, field)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6, err_msg=field)
            for a, scores in enumerate(SCORES):
                alone = jm.confidence_interval(metric, scores, LABELS, where=ids == i, **given)
                for field in ("estimate", "standard_error", "low", "high"):
                    got, wanted = getattr(found, field)[i, a], getattr(alone, field)
                    np.testing.assert_allclose(got, wanted, rtol=2e-5, err_msg=field)


def _with_all_negatives(name, ids, i):
    """The items of which the recall is that of a slice at the threshold of all slices."""
    decided = ~LABELS if name == "specificity_at_sensitivity" else LABELS
    return ~decided | (ids == i)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["counts", "weights"])
@pytest.mark.parametrize("name", ["recall_at_fpr", "specificity_at_sensitivity"])
def test_a_threshold_of_all_slices_is_that_of_the_negatives_of_all(name, weights):
    metric, given = METRICS[name], {"clusters": CLUSTERS, "weights": weights}
    for ids in (NESTED, CROSSED):
        found = jm.slices(metric, SCORES, LABELS, ids, threshold="global", **given)
        items = jm.slices(metric, SCORES, LABELS, ids, threshold="global", weights=weights)
        np.testing.assert_allclose(found.estimate, items.estimate, rtol=1e-6)
        for i in range(S):
            where = _with_all_negatives(name, ids, i)
            pair = jm.compare(metric, SCORES, LABELS, where=where, **given)
            for field in ("difference", "standard_error", "low", "high", "p_value"):
                got, wanted = getattr(found.models, field)[i], getattr(pair, field)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6, err_msg=field)
            alone = jm.confidence_interval(metric, SCORES[0], LABELS, where=where, **given)
            for field in ("estimate", "standard_error", "low", "high"):
                got, wanted = getattr(found, field)[i, 0], getattr(alone, field)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, err_msg=field)


@pytest.mark.parametrize("name", ["recall_at_fpr", "specificity_at_sensitivity"])
def test_errors_at_a_threshold_of_all_slices_are_those_of_resampled_clusters(name):
    """The slices share the negatives, and with them the error of the threshold.

    Up to the slope of a ROC curve, which is estimated from the 200 items of a slice.
    """
    options = {"clusters": CLUSTERS, "threshold": "global"}
    found = jm.slices(METRICS[name], SCORES[1], LABELS, CROSSED, **options)
    copies = np.random.default_rng(0).multinomial(K, np.ones(K) / K, size=2000)[:, CLUSTERS]
    drawn = [
        METRICS[name](
            SCORES[1],
            LABELS,
            weights=copies.astype(np.float32),
            where=_with_all_negatives(name, CROSSED, i),
        )
        for i in range(S)
    ]
    np.testing.assert_allclose(found.standard_error, np.std(drawn, axis=1), rtol=0.2)
    np.testing.assert_allclose(found.correlation, np.corrcoef(drawn), atol=0.16)
    weights = np.bincount(CROSSED[(name == "recall_at_fpr") == LABELS], minlength=S)[1:]
    rest = drawn[0] - np.average(drawn[1:], axis=0, weights=weights)
    np.testing.assert_allclose(found.rest.standard_error[0], np.std(rest), rtol=0.15)


def test_clusters_of_one_item_change_nothing():
    for metric in METRICS.values():
        found = jm.slices(metric, SCORES, LABELS, CROSSED, clusters=np.arange(N))
        items = jm.slices(metric, SCORES, LABELS, CROSSED)
        assert found.correlation is None
        np.testing.assert_allclose(found.models.low, items.models.low, rtol=1e-4, atol=1e-6)
        for a, b in ((found, items), (found.rest, items.rest)):
            np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=1e-4)
            for field in ("low", "high"):  # those of "logit" may be further away
                np.testing.assert_allclose(getattr(a, field), getattr(b, field), atol=0.02)


def _covariance(metric, scores, ids):
    of_slice = ids == np.arange(S)[:, None]
    rows = np.broadcast_to(scores, of_slice.shape), np.broadcast_to(LABELS, of_slice.shape)
    return np.asarray(jm.covariance(metric, *rows, where=of_slice, clusters=CLUSTERS), float)


def test_errors_allow_for_clusters_in_several_slices():
    """The errors of contrasts are those of one covariance matrix of all slices."""
    found = jm.slices(jm.roc_auc, SCORES, LABELS, CROSSED, clusters=CLUSTERS)
    positives = np.bincount(CROSSED[LABELS], minlength=S)
    for a, scores in enumerate(SCORES):
        shared = _covariance(jm.roc_auc, scores, CROSSED)
        error = np.sqrt(np.diag(shared))
        wanted = shared / np.outer(error, error)
        np.testing.assert_allclose(found.correlation[..., a], wanted, atol=1e-5)
        assert abs(wanted[0, 1]) > 0.05
        for i in range(S):
            contrast = -positives / (positives.sum() - positives[i])
            contrast[i] = 1
            got = found.rest.standard_error[i, a]
            np.testing.assert_allclose(got, np.sqrt(contrast @ shared @ contrast), rtol=1e-4)
    line = jm.trend(found)
    h = np.prod(found.effective, axis=1) / np.sum(found.effective, axis=1)
    at = np.arange(S) - np.average(np.arange(S), weights=h)
    slope = h * at / (h * at**2).sum()
    np.testing.assert_allclose(line.standard_error[1], np.sqrt(slope @ shared @ slope), rtol=0.02)
    of_both = found.models.correlation[:, :, 0, 1]
    np.testing.assert_allclose(np.diag(of_both), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(found.models.correlation[:, :, 0, 0]), 0)


def test_slices_of_the_same_clusters_do_not_differ_by_what_these_share():
    """Each item is once in each of three slices: all slices are alike, and without an error."""
    scores, labels, clusters = np.tile(SCORES, 3), np.tile(LABELS, 3), np.tile(CLUSTERS, 3)
    found = jm.slices(jm.roc_auc, scores, labels, np.repeat(np.arange(3), N), clusters=clusters)
    np.testing.assert_allclose(found.correlation, 1, rtol=1e-5)
    np.testing.assert_allclose(found.rest.standard_error, 0, atol=1e-4)
    line = jm.trend(found)
    np.testing.assert_allclose([line.slope, line.standard_error], 0, atol=1e-4)
    np.testing.assert_array_equal([line.p_value, line.f_p_value], 1)
    apart = jm.slices(jm.roc_auc, scores, labels, np.repeat(np.arange(3), N))
    assert np.all(np.asarray(apart.rest.standard_error) > 0.01)


def test_the_test_of_any_change_allows_for_shared_clusters():
    """Two halves of four months with the same items: there are two values, and one difference."""
    rng = np.random.default_rng(1)
    ids, clusters = np.arange(N) % S, np.arange(N) // S  # an item in each month
    scores = rng.normal(size=N // S) + (labels := rng.random(N // S) < 0.4)
    halves = np.array([0, 0, 1, 1])[ids]
    other = rng.normal(size=N // S) + labels
    both = np.where(halves, other.repeat(S), scores.repeat(S))
    clusters = clusters + 1000 * halves
    found = jm.trend(jm.slices(jm.roc_auc, both, labels.repeat(S), ids, clusters=clusters))
    pair = jm.slices(jm.roc_auc, both, labels.repeat(S), halves, clusters=clusters)
    two = jm.trend(pair)
    # One difference has one degree of freedom, whose F is the square of t.
    np.testing.assert_allclose(found.f, two.f, rtol=1e-4)
    np.testing.assert_allclose(found.f_p_value, two.f_p_value, rtol=0.02)
    np.testing.assert_allclose(found.slope, two.slope * 2 / 5, rtol=1e-4)


def test_perfect_slices_have_no_correlation_of_rounding():
    for seed in range(3):
        scores = LABELS + 0.1 * np.random.default_rng(seed).random(N)
        found = jm.slices(jm.roc_auc, scores, LABELS, CROSSED, clusters=CLUSTERS)
        np.testing.assert_array_equal(np.asarray(found.correlation), 0)
        assert jm.trend(found).p_value == 1


def test_trends_of_clusters_work_in_jit(recwarn):
    found = jm.slices(jm.roc_auc, SCORES, LABELS, CROSSED, clusters=CLUSTERS)
    recwarn.clear()
    eager, traced = jm.trend(found), jax.jit(jm.trend)(found)
    assert not recwarn.list
    for field in ("slope", "standard_error", "df", "p_value", "f", "f_p_value"):
        got, wanted = getattr(traced, field), getattr(eager, field)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, err_msg=field)


def test_one_model_and_masked_items():
    alone = jm.slices(jm.roc_auc, SCORES[1], LABELS, CROSSED, clusters=CLUSTERS)
    both = jm.slices(jm.roc_auc, SCORES, LABELS, CROSSED, clusters=CLUSTERS)
    np.testing.assert_array_equal(alone.rest.low, both.rest.low[:, 1])
    np.testing.assert_array_equal(alone.correlation, both.correlation[..., 1])
    of_all = jm.slices(jm.roc_auc, SCORES, LABELS, np.zeros(N, int), clusters=CLUSTERS)
    np.testing.assert_array_equal(both.n_clusters, of_all.effective[0])
    assert jm.trend(alone).slope == jm.trend(both).slope[1]
    some = np.random.default_rng(0).random(N) < 0.7
    masked = jm.slices(jm.roc_auc, SCORES, LABELS, CROSSED, clusters=CLUSTERS, where=some)
    given = (x[..., some] for x in (SCORES, LABELS, CROSSED))
    left = jm.slices(jm.roc_auc, *given, clusters=CLUSTERS[some])
    for field in ("low", "n_items", "effective", "correlation"):
        np.testing.assert_array_equal(getattr(masked, field), getattr(left, field))


def test_slices_with_few_clusters_are_not_tested():
    ids = np.where(CLUSTERS < 15, 0, 1)
    found = jm.slices(jm.roc_auc, SCORES, LABELS, ids, clusters=CLUSTERS)
    assert np.asarray(found.tested).tolist() == [False, True]
    assert np.asarray(found.n_items)[0] > 40
    assert np.isfinite(found.low).all()
    one = jm.slices(jm.roc_auc, SCORES, LABELS, np.where(CLUSTERS == 0, 0, 1), clusters=CLUSTERS)
    assert np.isnan(one.low[0]).all()
    assert np.isfinite(one.low[1]).all()


def test_clusters_within_a_limit_count_by_the_items_that_they_amount_to():
    """Of 26 clusters in a slice, 2.6 are within the limit; their 130 items may be independent."""
    patient = np.arange(4 * 26 * 5) // 5
    rng, labels = np.random.default_rng(2), np.arange(len(patient)) % 3 == 0
    items, effects = rng.normal(size=len(patient)), rng.normal(size=4 * 26)[patient]
    partial_area = partial(jm.partial_auc, max_fpr=0.1)
    for scores, tested in ((items, True), (effects + 0.1 * items, False)):
        found = jm.slices(partial_area, scores + labels, labels, patient % 4, clusters=patient)
        assert (np.asarray(found.tested) == tested).all()


def test_more_slices_than_memory_holds_are_refused():
    """At one threshold for all of them, as each has the negatives of all."""
    n = 60_000
    labels, ids = np.arange(n) % 10 == 0, np.arange(n)
    given = {"threshold": "global", "clusters": ids // 3}
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    with pytest.raises(
        ValueError, match=r"slices = 60,000 needs .* GB .*: write threshold='slice'"
    ):
        jm.slices(recall, np.zeros(n), labels, ids, **given)


def test_none_without_items():
    none = np.zeros(0)
    assert jm.slices(jm.roc_auc, none, none > 0, none, clusters=none).names == ()


def test_errors():
    with pytest.raises(ValueError, match=r"clusters must be \[n\]"):
        jm.slices(jm.roc_auc, SCORES, LABELS, NESTED, clusters=CLUSTERS[:5])
    precision = partial(jm.precision_at_recall, min_recall=0.5)
    with pytest.raises(TypeError, match="slices and folds take roc_auc"):
        jm.slices(precision, SCORES, LABELS, NESTED, clusters=CLUSTERS)
