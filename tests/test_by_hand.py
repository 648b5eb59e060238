"""Values worked out by hand, and the jobs that the library grew from."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm

LABELS = [0, 0, 1, 1]
SCORES = [0.1, 0.4, 0.35, 0.8]


def test_counts_at_each_distinct_threshold():
    table = jm.score_table([0.45, 0.4, 0.35, 0.35, 0.8], [1, 0, 1, 0, 1])
    assert np.cumsum(table.positives)[:4].tolist() == [1, 2, 2, 3]
    assert np.cumsum(table.negatives)[:4].tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(table.thresholds, [0.8, 0.45, 0.4, 0.35, 0.35])
    assert table.positives.dtype == jnp.int32


@pytest.mark.parametrize(
    ("positive", "corrected"),
    [
        ([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], 0.5588),
        ([1, 0, 0, 0, 1, 1, 1, 1, 1, 0], 0.5882),
        ([0, 0, 0, 0, 0, 0, 0, 0, 1, 1], 0.7),
    ],
)
def test_partial_auc_tells_equal_aucs_apart(positive, corrected):
    labels = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(jm.roc_auc(positive, labels), 0.7, rtol=1e-6)
    value = jm.partial_auc(positive, labels, max_fpr=0.3, scale="mcclish")
    np.testing.assert_allclose(value, corrected, atol=5e-5)


def test_areas():
    # ROC: (0, 0), (0, .5), (.5, .5), (.5, 1), (1, 1)
    assert jm.roc_auc(SCORES, LABELS) == 0.75
    assert jm.partial_auc(SCORES, LABELS, max_fpr=0.5) == 0.25
    assert jm.partial_auc(SCORES, LABELS, min_fpr=0.5) == 0.5
    np.testing.assert_allclose(
        jm.partial_auc(SCORES, LABELS, max_fpr=0.7, min_tpr=0.75), 0.2 * 0.25, rtol=1e-6
    )
    np.testing.assert_allclose(
        jm.partial_auc(SCORES, LABELS, max_fpr=0.7, min_tpr=0.75, scale="range"), 2 / 7, rtol=1e-6
    )
    # The chance line is above 0.75 nowhere left of 0.7.
    np.testing.assert_allclose(
        jm.partial_auc(SCORES, LABELS, max_fpr=0.7, min_tpr=0.75, scale="mcclish"),
        (1 + 2 / 7) / 2,
        rtol=1e-6,
    )


def test_areas_of_many_limits():
    # From 0.5 on the ROC curve is 1.
    limits = np.linspace(0.55, 1, 10)
    right = jm.partial_auc(SCORES, LABELS, max_fpr=limits, min_fpr=0.5)
    np.testing.assert_allclose(right, limits - 0.5, rtol=1e-5)
    upper = jm.partial_auc(SCORES, LABELS, max_fpr=limits, min_tpr=0.75)
    np.testing.assert_allclose(upper, (limits - 0.5) / 4, rtol=1e-5)


def test_a_linear_threshold_beside_an_infinite_score():
    # The points at 1 and -inf have FPRs of 0.5 and 1.
    scores, labels = np.array([1, -np.inf, 2]), np.array([0, 0, 1])
    assert jm.threshold_at_fpr(scores, labels, max_fpr=0.5, method="linear") == 1
    assert jm.threshold_at_fpr(scores, labels, max_fpr=0.75, method="linear") == -np.inf


def test_two_way_area_along_a_slope():
    # One tie: the ROC curve is the diagonal. Above 0.5, left of 0.8: a triangle of side 0.3.
    area = jm.partial_auc([1, 1], [0, 1], max_fpr=0.8, min_tpr=0.5)
    np.testing.assert_allclose(area, 0.3**2 / 2, rtol=1e-6)
    chance = jm.partial_auc([1, 1], [0, 1], max_fpr=0.8, min_tpr=0.5, scale="mcclish")
    np.testing.assert_allclose(chance, 0.5, rtol=1e-6)


def test_average_precision():
    np.testing.assert_allclose(jm.average_precision(SCORES, LABELS), 5 / 6, rtol=1e-6)
    assert jm.average_precision(SCORES, [0, 0, 0, 0]) == 0
    assert jm.average_precision(SCORES, [1, 1, 1, 1]) == 1


def test_recall_at_fpr_by_each_method():
    scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    labels = [1, 0, 1, 1, 0, 0, 0, 1]
    at = {"max_fpr": [0.1, 0.25, 0.5]}
    np.testing.assert_allclose(jm.recall_at_fpr(scores, labels, **at), [0.25, 0.75, 0.75])
    np.testing.assert_allclose(
        jm.recall_at_fpr(scores, labels, method="linear", **at), [0.25, 0.75, 0.75]
    )
    # The negatives' quantiles at .9, .75 and .5: .71, .575 and .45.
    np.testing.assert_allclose(
        jm.recall_at_fpr(scores, labels, method="quantile", **at), [0.25, 0.75, 0.75]
    )
    np.testing.assert_allclose(
        jm.threshold_at_fpr(scores, labels, method="quantile", **at), [0.71, 0.575, 0.45]
    )
    np.testing.assert_allclose(jm.threshold_at_fpr(scores, labels, **at), [0.9, 0.6, 0.6])


def test_recall_at_fpr_along_a_tie():
    # One tie of both classes: the curve runs straight from (0, 0) to (1, 1).
    scores, labels = [0.5, 0.5], [0, 1]
    assert jm.recall_at_fpr(scores, labels, max_fpr=0.3) == 0
    np.testing.assert_allclose(
        jm.recall_at_fpr(scores, labels, max_fpr=0.3, method="linear"), 0.3, rtol=1e-6
    )
    assert jm.recall_at_fpr(scores, labels, max_fpr=0.3, method="quantile") == 0
    assert jm.threshold_at_fpr(scores, labels, max_fpr=0.3) == np.inf


@pytest.mark.parametrize("n", [12, 32, 52])
def test_a_place_that_weights_reach_up_to_rounding(n, x64):
    """The lowest quantile of n / 10 copies is one above the last, where the tenth score begins."""
    scores, labels = np.r_[np.arange(n), np.arange(n) + 0.5], np.arange(2 * n) >= n
    recall = partial(jm.recall_at_fpr, scores, labels, max_fpr=1.0, method="quantile")
    weights = np.full(2 * n, 0.1)
    for found in (recall(weights=weights), jax.jit(recall)(weights=weights)):
        np.testing.assert_allclose(found, (n - 9) / n, rtol=1e-9)


def test_recall_by_amount():
    scores, labels = [0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0]
    amounts = np.array([30.0, np.nan, 10.0, np.nan])  # negatives' amounts do not matter
    for method in ("step", "linear", "quantile"):
        options = {"max_fpr": 0.1, "method": method}
        assert jm.recall_at_fpr(scores, labels, **options) == 0.5
        assert jm.recall_at_fpr(scores, labels, amounts=amounts, **options) == 0.75
    both = jm.recall_at_fpr(
        scores, labels, max_fpr=[0.1, 0.5], amounts=np.stack([np.ones(4), amounts])
    )
    np.testing.assert_allclose(both, [[0.5, 1], [0.75, 1]])
    weighted = jm.recall_at_fpr(scores, labels, max_fpr=0.1, amounts=amounts, weights=[1, 1, 3, 1])
    assert weighted == 0.5
    assert np.isnan(jm.recall_at_fpr(scores, labels, max_fpr=0.1, amounts=np.zeros(4)))


def test_operating_points():
    # Falling thresholds .8, .4, .35, .1: precision 1, 1/2, 2/3, 1/2; recall 1/2, 1/2, 1, 1.
    value, threshold = jm.precision_at_recall(
        SCORES, LABELS, min_recall=[0.5, 1.0], return_threshold=True
    )
    np.testing.assert_allclose(value, [1, 2 / 3], rtol=1e-6)
    np.testing.assert_allclose(threshold, [0.8, 0.35], rtol=1e-6)
    value, threshold = jm.recall_at_precision(
        SCORES, LABELS, min_precision=[0.6, 0.9, 1.0], return_threshold=True
    )
    np.testing.assert_allclose(value, [1, 0.5, 0.5])
    np.testing.assert_allclose(threshold, [0.35, 0.8, 0.8], rtol=1e-6)
    value, threshold = jm.recall_at_precision(
        [0.2, 0.1], [0, 1], min_precision=0.9, return_threshold=True
    )
    assert (value, threshold) == (0, np.inf)
    value, threshold = jm.sensitivity_at_specificity(
        SCORES, LABELS, min_specificity=[0.5, 0.6], return_threshold=True
    )
    np.testing.assert_allclose(value, [1, 0.5])
    np.testing.assert_allclose(threshold, [0.35, 0.8], rtol=1e-6)
    value, threshold = jm.specificity_at_sensitivity(
        SCORES, LABELS, min_sensitivity=[0.5, 0.6], return_threshold=True
    )
    np.testing.assert_allclose(value, [1, 0.5])
    np.testing.assert_allclose(threshold, [0.8, 0.35], rtol=1e-6)


def test_costs():
    curve = jm.cost_curve(SCORES, LABELS, fp_cost=100, fn_cost=1000)
    assert curve.cost.tolist() == [2000, 1000, 1100, 100, 200]
    np.testing.assert_allclose(
        jm.min_cost_threshold(SCORES, LABELS, fp_cost=100, fn_cost=1000), 0.35, rtol=1e-6
    )
    highest = jm.min_cost_threshold(SCORES, LABELS, fp_cost=1000, fn_cost=1)
    assert highest == np.nextafter(np.float32(0.8), np.float32(0))  # float32(0.8) is above 0.8
    assert jm.min_cost_threshold([0.9, 0.1], [0, 1], fp_cost=9, fn_cost=1) == np.inf
    # One false positive costs what three false negatives do, though 3 * 0.1 is not 0.3.
    tied = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [1, 0, 1, 1, 1, 0]
    for fp_cost, fn_cost in ((3, 1), (0.3, 0.1)):
        costs = {"fp_cost": fp_cost, "fn_cost": fn_cost}
        assert jm.min_cost_threshold(*tied, **costs) == np.float32(0.9)
        point = jm.operating_point(*tied, key=jax.random.key(0), n_resamples=2, **costs)
        assert point.threshold.estimate == np.float32(0.9)


@pytest.mark.parametrize("n", [1, 3, 7, 49, 98, 100, 107, 1000])
def test_a_limit_that_equals_a_rate_admits_it(n):
    """fp / n <= k / n must hold for fp = k at every k, in each precision of the limit."""
    for k in sorted({1, n // 3 or 1, n // 2 or 1, n}):
        scores = np.r_[np.arange(n, 0, -1.0), n - k + 0.5]  # the positive ranks after k negatives
        labels = np.r_[np.zeros(n), 1]
        limits = np.array([k / n, np.nextafter(k / n, 0)])
        assert jm.recall_at_fpr(scores, labels, max_fpr=limits).tolist() == [1, 0]
        for single in (jnp.float32(k / n), np.float32(k / n)):
            assert jm.recall_at_fpr(scores, labels, max_fpr=single) == 1
        value = jm.sensitivity_at_specificity(scores, labels, min_specificity=(n - k) / n)
        assert value == 1


def test_a_users_own_metric():
    @jm.table_metric
    def f_measure(table, *, beta=1.0):
        tp, fp = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
        return jnp.max((1 + beta**2) * tp / (beta**2 * tp[-1] + tp + fp))

    np.testing.assert_allclose(f_measure(SCORES, LABELS), 0.8, rtol=1e-6)
    np.testing.assert_allclose(
        f_measure(jm.score_table([SCORES, SCORES], LABELS), beta=2.0), [10 / 11] * 2, rtol=1e-6
    )
    with pytest.raises(TypeError, match="gamma"):
        f_measure(SCORES, LABELS, gamma=1)
    with pytest.raises(TypeError, match="one ScoreTable, and options that are keyword-only"):
        jm.table_metric(lambda table, beta: beta)
