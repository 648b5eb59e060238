"""A threshold, used on the scores that were given, flags exactly what the metric counted."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics._base.checks import QUANTILE_METHODS
from jaxmetrics._roc.quantile import weighted_quantile
from jaxmetrics._roc.reported import _above, _next_alike, rounded_down

N = 400
SCORES = {
    "float64": lambda rng: rng.random(N),
    "negative": lambda rng: -rng.random(N) * 1e3,
    "ties": lambda rng: rng.integers(0, 40, N) / 40,
    "beyond float32": lambda rng: rng.choice([1e300, -1e300, 0.5, -0.25], N),
    "float32": lambda rng: rng.random(N).astype("float32"),
    "float16": lambda rng: rng.random(N).astype("float16"),
    "bfloat16": lambda rng: rng.random(N).astype(jnp.bfloat16),
    "int32 above 2^24": lambda rng: rng.integers(2**24, 2**30, N).astype("int32"),
    "int64 above 2^53": lambda rng: 2**53 + 2**14 * rng.integers(0, 2**30, N),
}
QUICK = {"float64", "negative", "ties", "beyond float32", "float16", "int64 above 2^53-x64"}


def cases():
    for kind in SCORES:
        # Whole numbers above 2^53 that are this close are warned of in single precision.
        for x64 in (True,) if "2^53" in kind else (False, True):
            quick = (f"{kind}-x64" if x64 else kind) in QUICK
            yield marked(kind, x64, fast=quick)


def flagged_by(scores, threshold, *, above=False):
    """By the number, in double precision, and by the array itself, which JAX compares."""
    double = np.asarray(scores).astype(np.float64)
    threshold = np.asarray(threshold)
    yield double > threshold if above else double >= threshold
    with np.errstate(over="ignore"):
        single = double.astype(threshold.dtype)
    if np.isfinite(single).all():
        yield single > threshold if above else single >= threshold


def counts(flagged, labels):
    return (flagged & labels).sum(), (flagged & ~labels).sum()


def check_curves(scores, labels):
    positives, negatives = counts(True, labels)
    roc, det = jm.roc_curve(scores, labels), jm.det_curve(scores, labels)
    curves = [
        (roc.thresholds, roc.tpr * positives, roc.fpr * negatives),
        (det.thresholds, (1 - det.fnr) * positives, det.fpr * negatives),
    ]
    pr, cost = jm.precision_recall_curve(scores, labels), jm.cost_curve(scores, labels, fp_cost=0)
    curves += [
        (pr.thresholds, pr.recall * positives, None),
        (cost.thresholds, positives - cost.cost, None),
    ]
    for curve in curves:
        thresholds, tps, fps = (x if x is None else np.asarray(x) for x in curve)
        for i in range(0, N, N // 20):
            same = thresholds == thresholds[i]  # of ties, the point that flags them all counts
            for flagged in flagged_by(scores, thresholds[i]):
                tp, fp = counts(flagged, labels)
                assert round(float(tps[same].max())) == tp
                assert fps is None or round(float(fps[same].max())) == fp


def check_points(scores, labels):
    positives, negatives = counts(True, labels)
    for limit in (0.05, 0.3, 0.8):
        for method in ("step", "quantile"):
            options = {"max_fpr": limit, "method": method}
            found = jm.recall_at_fpr(scores, labels, **options)
            threshold = jm.threshold_at_fpr(scores, labels, **options)
            for flagged in flagged_by(scores, threshold, above=method == "quantile"):
                assert counts(flagged, labels)[0] == round(float(found) * positives)
    for metric, limit, of, total in (
        (jm.recall_at_precision, "min_precision", 0, positives),
        (jm.sensitivity_at_specificity, "min_specificity", 0, positives),
        (jm.specificity_at_sensitivity, "min_sensitivity", 1, negatives),
    ):
        value, threshold = metric(scores, labels, **{limit: 0.4}, return_threshold=True)
        for flagged in flagged_by(scores, threshold):
            right = counts(flagged, labels)[of]
            assert round(float(value) * total) == (right if of == 0 else total - right)
    least = jm.cost_curve(scores, labels).cost.min()
    for flagged in flagged_by(scores, jm.min_cost_threshold(scores, labels)):
        tp, fp = counts(flagged, labels)
        assert fp + positives - tp == least


@pytest.mark.parametrize(("kind", "x64"), list(cases()))
def test_a_threshold_flags_what_was_counted(kind, x64, rng):
    labels = rng.random(N) < 0.4
    scores = SCORES[kind](rng)
    with jax.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("error")
        check_curves(scores, labels)
        check_points(scores, labels)
        table = jm.score_table(scores, labels)
        from_table = jm.threshold_at_fpr(table, max_fpr=0.3)
        assert from_table == jm.threshold_at_fpr(scores, labels, max_fpr=0.3)


CLOSE = 0.5 + 1e-15 * np.arange(8)
ODD = np.arange(8) % 2


@pytest.mark.parametrize(
    "threshold",
    [
        lambda s, y: jm.threshold_at_fpr(s, y, max_fpr=0.5),
        lambda s, y: jm.threshold_at_fpr(s, y, max_fpr=0.5, method="quantile"),
        jm.min_cost_threshold,
        jm.roc_curve,
        lambda s, y: jm.recall_at_precision(s, y, min_precision=0.1, return_threshold=True),
        lambda s, y: jm.specificity_at_sensitivity(
            s, y, min_sensitivity=0.5, return_threshold=True
        ),
        lambda s, y: jm.threshold_at_fpr(jm.score_table(s, y), max_fpr=0.5),
    ],
    ids=["step", "quantile", "cost", "curve", "pair", "selected", "table"],
)
def test_scores_that_the_result_cannot_tell_apart_are_warned_of(threshold):
    with pytest.warns(UserWarning, match="float32 cannot tell.*turn x64 mode on") as seen:
        threshold(CLOSE, ODD)
    assert "test_thresholds" in seen[-1].filename
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        threshold(CLOSE, ODD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threshold(CLOSE.astype("float32") + np.arange(8, dtype="float32"), ODD)
        jm.roc_auc(CLOSE, ODD)


@pytest.mark.parametrize("n", [8, 128], ids=["row by row", "rows together"])
def test_one_row_alone_is_warned_of_if_it_has_a_value(n):
    close, labels = 0.5 + 1e-15 * np.arange(n), np.arange(n) % 2
    rows = np.stack([np.arange(n), close])
    with pytest.warns(UserWarning, match="float32 cannot tell"):
        jm.threshold_at_fpr(rows, labels, max_fpr=0.5)
    rows[1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.threshold_at_fpr(rows, labels, max_fpr=0.5)


LIMITS = np.array([0.1, 0.3, 0.8])


def test_rows_together_have_the_thresholds_of_each(rng):
    scores, labels = rng.random((3, 128)), np.arange(128) % 2
    for metric in (
        partial(jm.sensitivity_at_specificity, min_specificity=LIMITS, return_threshold=True),
        partial(jm.threshold_at_fpr, max_fpr=LIMITS),
        partial(jm.threshold_at_fpr, max_fpr=LIMITS, method="quantile"),
    ):
        found, rows = metric(scores, labels), [metric(x, labels) for x in scores]
        jax.tree.map(lambda x, *y: np.testing.assert_array_equal(x, y), found, *rows)


def test_whole_numbers_that_double_precision_cannot_tell_apart(x64):
    scores = 2**53 + np.arange(8)
    with pytest.warns(UserWarning, match="float64 cannot tell.*rank the scores first"):
        jm.threshold_at_fpr(scores, ODD, max_fpr=0.5)


def test_a_quantile_between_neighbouring_floats():
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    scores, labels = np.array([low, low, low, high, high]), np.array([0, 0, 1, 0, 1])
    options = {"max_fpr": 0.3, "method": "quantile"}  # the quantile is nearer to the higher one
    threshold = np.asarray(jm.threshold_at_fpr(scores, labels, **options))
    assert jm.recall_at_fpr(scores, labels, **options) == 0.5
    assert (scores > threshold).tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("low", [-1, 1, 2**23 - 1])
def test_a_quantile_between_subnormal_scores(low):
    """The number below it that is not subnormal is below both, and flags the lower one, too."""
    scores = np.float32([low, low, low + 1]) * np.float32(2**-149)
    options = {"max_fpr": 0.4, "method": "quantile"}
    threshold = np.asarray(jm.threshold_at_fpr(scores, [0, 1, 0], **options))
    assert jm.recall_at_fpr(scores, [0, 1, 0], **options) == 0
    assert (scores > threshold).tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["float32", "float64", "integers", "with NaN", "weights"])
def test_a_specificity_of_items_is_that_of_their_table(kind, rng):
    """Items are selected from, a table is not."""
    for n in (0, 1, 5, 40):
        scores = rng.normal(size=(3, n)).round(rng.integers(3)).astype("float32")
        scores[..., : n // 8], scores[..., n // 8 : n // 4] = -np.inf, np.inf
        if kind == "integers":
            scores = rng.integers(-5, 5, (3, n))
        elif kind == "float64":
            scores = scores[0].astype(float) / 3
        elif kind == "with NaN" and n:
            scores[1, rng.integers(n)] = np.nan
        labels, valid = rng.integers(0, 2, n), rng.random(n) < 0.9
        weights = rng.integers(0, 4, n) / 10 if kind == "weights" else None
        given = {"where": valid, "weights": weights}
        for limit in (0.0, 0.5, 1 / 3, 1.0, np.array([0.2, 1.0])):
            for with_threshold in (False, True):
                how = {"min_sensitivity": limit, "return_threshold": with_threshold}
                found = jm.specificity_at_sensitivity(scores, labels, **given, **how)
                table = jm.score_table(scores, labels, **given)
                expected = jm.specificity_at_sensitivity(table, **how)
                jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_the_lowest_score_may_have_to_be_flagged():
    scores = np.array([-np.inf, 0.1, 0.4, 0.35, 0.8, 0.9], "float32")
    labels = [1, 1, 0, 0, 1, 1]
    how = {"min_sensitivity": 1.0, "return_threshold": True}
    assert jm.specificity_at_sensitivity(scores, labels, **how) == (0, -np.inf)
    point = jm.operating_point(scores, labels, min_recall=1.0)
    assert (point.threshold.estimate, point.recall.estimate) == (-np.inf, 1)


def test_a_positive_whose_weight_a_sum_absorbs_is_flagged():
    """Of the weights above it, which are 10^20 times as large."""
    scores, labels = np.float32([3, 2, 1, 0]), np.array([1, 1, 0, 0])
    weights = np.float32([1, 1e-20, 1, 1])

    def threshold(weights):
        return jm.threshold_at_fpr(scores, labels, weights=weights, max_fpr=[0.1, 0.5])

    for found in (threshold(weights), jax.jit(threshold)(weights)):
        np.testing.assert_array_equal(found, [2, 2])


def test_many_sensitivities_are_those_of_each():
    """More limits than are selected one by one."""
    scores, labels = np.arange(12.0) % 7, np.arange(12) % 3 == 0
    limits = np.linspace(0.1, 1, 6)
    metric = partial(jm.specificity_at_sensitivity, scores, labels, return_threshold=True)
    each = [metric(min_sensitivity=x) for x in limits]
    np.testing.assert_array_equal(metric(min_sensitivity=limits), np.transpose(each))


@pytest.mark.parametrize("method", QUANTILE_METHODS)
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_quantiles_are_those_of_numpy(method, n):
    values = np.arange(n) ** 2.0
    q = np.linspace(0, 1, 23)
    found = weighted_quantile(values[::-1], np.ones(n), q, method)
    np.testing.assert_allclose(found, np.quantile(values, q, method=method), atol=1e-9)


def test_the_two_highest_scores_that_float32_does_not_tell_apart():
    """Without NaN, and below scores that are NaN, which are left out."""
    scores = np.array([1 + 1e-9, 1, 0.5])
    assert _next_alike(scores, np.float32).tolist() == [True, False]
    assert _next_alike(np.append(np.nan, scores), np.float32).tolist() == [False, True, False]


def test_rounding_down_beside_0():
    """To numbers that are no subnormal ones, which devices may take for 0."""
    tiny = np.finfo(np.float32).tiny.astype(np.float64)
    found = rounded_down(np.array([1, 0.5, 0, -0.5, -1]) * tiny, np.float32)
    assert found.tolist() == [tiny, 0, 0, -tiny, -tiny]


def test_a_quantile_between_scores_that_float32_does_not_tell_apart():
    """No number of float32 is below the higher score and not below the lower one, once rounded."""
    scores = np.array([1, 1 + 1e-9, 3])
    number, differs = _above(np.float64(1 + 5e-10), scores, np.float32)
    assert (number, differs) == (1, True)
    number, differs = _above(np.float64(2.0), scores, np.float32)
    assert (number, differs) == (2, False)
