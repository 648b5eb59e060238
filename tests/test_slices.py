"""Slices equal a loop over them, and their tests hold for all of them at once."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import in_turn, marked
from scipy.special import expit, logit, ndtri

import jaxmetrics as jm
from jaxmetrics._roc import sliced
from jaxmetrics.inference import _slice_values
from jaxmetrics.inference._influence import slice_decisions

pytestmark = [pytest.mark.filterwarnings("ignore")]

N = 120


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = rng.random(N) < 0.5
    ids = rng.integers(0, 3, N)
    ids[:4], ids[4:7], ids[7] = 9, 11, 13
    labels[:4], labels[4:7] = [0, 1, 1, 0], True
    scores = np.round(rng.normal(size=(2, N)) + labels, 1)  # with ties
    return scores, labels, ids, rng.random(N) + 0.1


# With weights and without.
METRICS = {
    "roc_auc": (jm.roc_auc, True),
    "partial_auc": (partial(jm.partial_auc, max_fpr=0.3), False),
    "two-way": (
        partial(jm.partial_auc, max_fpr=0.6, min_fpr=0.1, min_tpr=0.2, scale="mcclish"),
        False,
    ),
    "average_precision": (jm.average_precision, True),
    "recall": (partial(jm.recall_at_fpr, max_fpr=0.2), True),
    "linear": (partial(jm.recall_at_fpr, max_fpr=0.2, method="linear"), False),
    "quantile": (partial(jm.recall_at_fpr, max_fpr=0.2, method="quantile"), True),
    "specificity": (partial(jm.specificity_at_sensitivity, min_sensitivity=0.8), False),
}


@pytest.mark.parametrize(
    ("metric", "weighted"),
    [marked(*x, fast=name != "partial_auc") for name, x in METRICS.items()],  # as "two-way"
    ids=METRICS,
)
def test_slices_equal_a_loop(data, metric, weighted):
    scores, labels, ids, weights = data
    weights = weights if weighted else None
    found = jm.slices(metric, scores, labels, ids, weights=weights)
    assert found.names == (0, 1, 2, 9, 11, 13)
    for i, name in enumerate(found.names):
        given = {"where": ids == name, "weights": weights}
        interval = jm.confidence_interval(metric, scores, labels, **given)
        for key in ("estimate", "standard_error", "low", "high"):
            got, wanted = getattr(found, key)[i], getattr(interval, key)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=f"{name} {key}")
        if found.tested[i]:
            compared = jm.compare(metric, scores, labels, **given)
            for key in ("difference", "standard_error", "low", "high", "p_value"):
                got, wanted = getattr(found.models, key)[i], getattr(compared, key)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=key)


def test_heavy_negatives_are_compared_by_steps(data):
    scores, labels, ids, _ = data
    weights = np.where(labels, 1.0, 20.0)
    found = jm.slices(jm.average_precision, scores, labels, ids, weights=weights).models
    for i in range(3):
        given = {"where": ids == i, "weights": weights}
        alone = jm.compare(jm.average_precision, scores, labels, **given)
        for key in ("standard_error", "low", "p_value"):
            got, wanted = getattr(found, key)[i], getattr(alone, key)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize(
    ("metric", "weighted"), in_turn((METRICS["roc_auc"][0], METRICS["linear"][0]), (False, True))
)
def test_parts_of_the_slices_change_nothing(data, monkeypatch, metric, weighted):
    scores, labels, _, weights = data
    given = (metric, scores, labels, np.arange(N) // 9)
    whole = jm.slices(*given, weights=weights if weighted else None)
    for module, name in ((sliced, "_PART"), (slice_decisions, "_FEW"), (_slice_values, "_FEW")):
        monkeypatch.setattr(module, name, 2)
    parts = jm.slices(*given, weights=weights if weighted else None)
    jax.tree.map(np.testing.assert_array_equal, parts, whole)


def test_perfect_slices_have_the_limits_of_each_alone():
    """Some positives weigh less than half of the mean, and sums of shares are not quite 1."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        labels, ids = rng.random(60) < 0.5, rng.integers(0, 3, 60)
        scores, weights = rng.random(60) + 2 * labels, rng.random(60) * (rng.random(60) < 0.5)
        given = {"weights": weights}
        found = jm.slices(jm.average_precision, scores, labels, ids, min_items=1, **given)
        for i in range(3):
            alone = jm.confidence_interval(
                jm.average_precision, scores, labels, where=ids == i, **given
            )
            np.testing.assert_allclose(found.low[i], alone.low, rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_global_threshold_is_that_of_all_negatives(data, weighted):
    scores, labels, ids, weights = data
    weights = weights if weighted else None
    metric = partial(jm.recall_at_fpr, max_fpr=0.2)
    found = jm.slices(metric, scores, labels, ids, weights=weights, threshold="global")
    for i, name in enumerate(found.names[:3]):
        given = {"where": (ids == name) | ~labels, "weights": weights}
        interval = jm.confidence_interval(metric, scores, labels, **given)
        for key in ("estimate", "standard_error", "low", "high"):
            got, wanted = getattr(found, key)[i], getattr(interval, key)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=key)
        compared = jm.compare(metric, scores, labels, **given)
        np.testing.assert_allclose(found.models.p_value[i], compared.p_value, rtol=2e-5, atol=1e-6)


def test_equal_scores_have_no_error_at_a_global_threshold():
    """A linear limit flags the same part of all tied negatives: their flags do not vary."""
    rng = np.random.default_rng(0)
    metric = partial(jm.recall_at_fpr, max_fpr=0.05, method="linear")
    for _ in range(10):  # not every rounding gives a variance above 0
        labels, ids, weights = rng.random(N) < 0.3, np.arange(N) % 3, rng.exponential(size=N)
        given = {"weights": weights, "threshold": "global"}
        found = jm.slices(metric, np.full(N, 0.5), labels, ids, **given)
        np.testing.assert_allclose(found.standard_error, 0, atol=1e-15)


def test_by_hand():
    scores = [0.1, 0.4, 0.35, 0.8, 0.7, 0.2, 0.9, 0.3]
    labels = [0, 0, 1, 1, 1, 0, 1, 0]
    months = ["b"] * 4 + ["a"] * 4
    found = jm.slices(jm.roc_auc, scores, labels, months, min_items=2)
    assert found.names == ("a", "b")
    assert found.models is None
    assert found.n_items.tolist() == [4, 4]
    assert found.n_positives.tolist() == [2, 2]
    np.testing.assert_allclose(found.estimate, [1, 0.75])
    np.testing.assert_allclose(found.rest.difference, [0.25, -0.25])
    # DeLong's variance of b: both classes have influence -+0.25, with variance 1/8 and two items.
    np.testing.assert_allclose(found.standard_error, [0, 0.125**0.5], rtol=1e-6)
    np.testing.assert_allclose(found.rest.standard_error, [0.125**0.5] * 2, rtol=1e-6)


def test_the_rest_is_the_mean_of_the_others_by_positives(data):
    scores, labels, ids, _ = data
    found = jm.slices(jm.roc_auc, scores[0], labels, ids)
    known = np.isfinite(found.estimate) & np.isfinite(found.standard_error)
    weight = np.where(known, found.n_positives, 0)
    for i in np.flatnonzero(known):
        others = np.arange(len(weight)) != i
        mean = np.sum(weight[others] * np.where(known, found.estimate, 0)[others])
        wanted = found.estimate[i] - mean / weight[others].sum()
        np.testing.assert_allclose(found.rest.difference[i], wanted, atol=1e-6)
    assert np.isnan(np.asarray(found.rest.difference)[~known]).all()


def test_limits_from_the_rest_have_a_variance_of_all_slices(data):
    """DeLong's, pooled by class; positives of other slices are highest or lowest."""
    scores, labels, ids, _ = data
    scores = np.where((ids > 0) & labels, np.where(np.arange(N) % 2, 9, -9), scores[0])
    found = jm.slices(jm.roc_auc, scores, labels, ids, where=ids < 9)
    auc, low, high = (np.asarray(getattr(found, x)) for x in ("estimate", "low", "high"))
    auc, low, high = auc[:3], low[:3], high[:3]  # others are masked
    n = np.asarray([found.n_items - found.n_positives, found.n_positives]).T[:3]
    variances = []
    for i in range(3):
        positive, negative = (scores[(ids == i) & (labels == x)] for x in (True, False))
        wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
        variances.append([wins.mean(axis=0).var(ddof=1), wins.mean(axis=1).var(ddof=1)])
    pooled = np.sqrt((np.average(variances, axis=0, weights=n) / n).sum(axis=1))
    share = n[1:, 1] / n[1:, 1].sum()
    rest = share @ auc[1:]
    spread = pooled[0] / ((rest * (1 - rest)) ** 0.75 * (auc[0] * (1 - auc[0])) ** 0.25)
    least = auc[0] - expit(logit(auc[0]) - ndtri(0.975) * spread)
    assert least > auc[0] - low[0]
    below = np.hypot(least, np.sqrt(((share * (high - auc)[1:]) ** 2).sum()))
    np.testing.assert_allclose(found.rest.low[0], auc[0] - rest - below, atol=1e-5)


def test_adjustment_is_sidaks_and_agrees_with_the_limits(data):
    scores, labels, ids, _ = data
    found = jm.slices(jm.roc_auc, scores, labels, ids, min_items=10)
    m = int(np.sum(found.tested))
    assert found.tested.tolist() == [True] * 3 + [False] * 3
    p = np.asarray(found.models.p_value)[:3, 0, 1]
    adjusted = found.models.simultaneous_p_value
    np.testing.assert_allclose(adjusted[:3, 0, 1], 1 - (1 - p) ** m, rtol=1e-4, atol=1e-7)
    assert np.isnan(adjusted[3:]).all()
    assert np.isnan(found.rest.simultaneous_low[3:]).all()
    for part, n in (("rest", 2 * m), ("models", m)):
        level = {"confidence_level": 0.95 ** (1 / n), "min_items": 10}
        alone = getattr(jm.slices(jm.roc_auc, scores, labels, ids, **level), part)
        for name in ("low", "high"):
            together = getattr(getattr(found, part), f"simultaneous_{name}")
            np.testing.assert_allclose(together[:3], getattr(alone, name)[:3], rtol=1e-5)
    shifted = np.where((ids == 0) & labels, scores - 2, scores)
    for level in (0.5, 0.9, 0.99):
        found = jm.slices(jm.roc_auc, shifted, labels, ids, min_items=10, confidence_level=level)
        for kind in ("", "simultaneous_"):
            low, high, p = (
                np.asarray(getattr(found.rest, kind + x))[:3] for x in ("low", "high", "p_value")
            )
            outside = (low > 0) | (high < 0)
            np.testing.assert_array_equal(outside, p < 1 - level)
            assert kind or outside.any()


def test_one_model_is_adjusted_for_its_slices_alone(data):
    scores, labels, ids, _ = data
    alone = jm.slices(jm.roc_auc, scores[1], labels, ids)
    row = jm.slices(jm.roc_auc, scores[1:], labels, ids)
    for name in ("simultaneous_low", "simultaneous_high", "simultaneous_p_value"):
        np.testing.assert_array_equal(getattr(alone.rest, name), getattr(row.rest, name)[:, 0])


def test_crossed_and_strings(data):
    scores, labels, ids, _ = data
    country = np.where(ids == 0, "fr", "de")
    half = np.arange(N) % 2
    crossed = jm.slices(jm.roc_auc, scores, labels, (country, half))
    assert crossed.names == (("de", 0), ("de", 1), ("fr", 0), ("fr", 1))
    joined = jm.slices(jm.roc_auc, scores, labels, np.char.add(country, half.astype(str)))
    np.testing.assert_array_equal(crossed.estimate, joined.estimate)
    assert crossed.n_items.sum() == N


def test_a_nan_score_is_of_its_slice_and_masked_items_are_of_none(data):
    scores, labels, ids, _ = data
    broken = scores.copy()
    broken[1, np.flatnonzero(ids == 1)[0]] = np.nan
    found = jm.slices(jm.roc_auc, broken, labels, ids)
    plain = jm.slices(jm.roc_auc, scores, labels, ids)
    assert np.isnan(found.estimate[1, 1])
    np.testing.assert_array_equal(found.estimate[0], plain.estimate[0])
    np.testing.assert_array_equal(found.estimate[1, 0], plain.estimate[1, 0])
    masked = jm.slices(jm.roc_auc, broken, labels, ids, where=ids != 1)
    assert masked.n_items[1] == 0
    assert np.isnan(masked.estimate[1]).all()
    np.testing.assert_array_equal(masked.estimate[2], plain.estimate[2])


def test_refuses(data):
    scores, labels, ids, _ = data
    with pytest.raises(ValueError, match="None or NaN"):
        jm.slices(jm.roc_auc, scores, labels, np.where(ids == 0, np.nan, ids))
    with pytest.raises(ValueError, match=r"slices must be \[n\]"):
        jm.slices(jm.roc_auc, scores, labels, ids[:5])
    with pytest.raises(TypeError, match="slices and folds take roc_auc"):
        jm.slices(partial(jm.precision_at_recall, min_recall=0.5), scores, labels, ids)
    with pytest.raises(ValueError, match="threshold must be one of 'slice', 'global'"):
        jm.slices(METRICS["recall"][0], scores, labels, ids, threshold="all")
    with pytest.raises(ValueError, match="has none"):
        jm.slices(jm.roc_auc, scores, labels, ids, threshold="global")
    for change, of in ((jax.jit, jm.slices), (jax.grad, jm.slices), (jax.grad, jm.fold_interval)):
        with pytest.raises(TypeError, match="outside of jit, and of grad"):
            change(lambda x, of=of: of(jm.roc_auc, x, labels, ids).estimate)(scores)


def _distance_of_mean(side, apart, centre, error, unit=1.0):
    """Of a limit from the centre: that of the folds' distances, or between it and Wilson's."""
    n, own, p = len(apart), np.sqrt(np.sum(np.square(apart), axis=0)) / len(apart), centre / unit
    draws, z = p * (1 - p) / (error / unit) ** 2, ndtri(0.975)
    root = np.sqrt(z**2 * (draws * p * (1 - p) + z**2 / 4))
    wilson = side * ((draws * p + z**2 / 2 + side * root) / (draws + z**2) - p) * unit
    return own + (1 - 1 / np.sqrt(n)) * np.maximum(wilson - own, 0)


def test_folds_by_hand(data):
    scores, labels, _, weights = data
    folds = np.arange(N) % 3
    found = jm.fold_interval(jm.roc_auc, scores, labels, folds, weights=weights)
    each = jm.slices(jm.roc_auc, scores, labels, folds, weights=weights)
    np.testing.assert_allclose(found.mean.estimate, np.mean(each.estimate, axis=0), rtol=1e-6)
    error = np.sqrt(np.sum(np.square(each.standard_error), axis=0)) / 3
    np.testing.assert_allclose(found.mean.standard_error, error, rtol=1e-6)
    mean = np.mean(each.estimate, axis=0)
    below = _distance_of_mean(-1, each.estimate - each.low, mean, error)
    np.testing.assert_allclose(found.mean.low, mean - below, rtol=1e-5)
    above = _distance_of_mean(1, each.high - each.estimate, mean, error)
    np.testing.assert_allclose(found.mean.high, mean + above, rtol=1e-5)
    pooled = jm.confidence_interval(jm.roc_auc, scores, labels, weights=weights)
    np.testing.assert_array_equal(found.pooled.low, pooled.low)
    with pytest.raises(ValueError, match=r"folds must be \[n\]"):
        jm.fold_interval(jm.roc_auc, scores, labels, folds[:5])


def test_text_says_where_a_model_is_worse_and_what_was_not_tested():
    rng = np.random.default_rng(0)
    labels, slices = rng.random(900) < 0.3, np.repeat(["a", "b", "c"], [440, 440, 20])
    good = rng.normal(size=900) + 2 * labels
    scores = {"old": good, "new": np.where(slices == "b", rng.normal(size=900), good)}
    *_, notes = str(jm.slices(jm.roc_auc, scores, labels, slices)).splitlines()
    assert notes == (
        "new significantly worse than old in b; too few items for tests in 1 of 3 slices"
    )
    assert "new significantly worse than old in b, b" in str(
        jm.slices(jm.roc_auc, scores, labels, (slices, slices))
    )


def test_a_slice_whose_scores_are_nan_is_named(rng):
    labels, sites = np.arange(90) % 2 == 0, np.arange(90) // 30
    scores = rng.normal(size=90)
    scores[3] = np.nan
    with pytest.warns(UserWarning, match="undefined in 1 of 3 values"):
        found = jm.slices(jm.roc_auc, scores, labels, sites, min_items=5)
    np.testing.assert_array_equal(np.isnan(found.estimate), [True, False, False])


@pytest.mark.parametrize("metric", [jm.average_precision, partial(jm.partial_auc, max_fpr=0.1)])
def test_folds_allow_for_what_is_too_high_in_each(metric, rng, recwarn):
    """The middle of each fold's interval is that of its limits as their level falls to 0."""
    labels, folds = np.tile(np.arange(100) < 10, 6), np.arange(600) // 100
    scores = rng.normal(size=600) + labels
    found = jm.fold_interval(metric, scores, labels, folds).mean
    warned = [str(x.message) for x in recwarn.list if "positives of a fold" in str(x.message)]
    assert len(warned) == (metric is jm.average_precision)
    each, near = (
        jm.slices(metric, scores, labels, folds, confidence_level=x) for x in (0.95, 0.02)
    )
    a, low, high, least, most = (
        np.asarray(x, float) for x in (each.estimate, each.low, each.high, near.low, near.high)
    )
    centres = least + most - a
    assert centres.mean() < 0.98 * a.mean()
    unit = 1.0 if metric is jm.average_precision else 0.1
    given = centres.mean(), np.sqrt(np.sum(np.square(each.standard_error))) / 6, unit
    expected = centres.mean() - _distance_of_mean(-1, centres - low, *given)
    np.testing.assert_allclose(found.low, expected, rtol=1e-5)
    expected = max(centres.mean() + _distance_of_mean(1, high - centres, *given), a.mean())
    np.testing.assert_allclose(found.high, expected, rtol=1e-5)


@pytest.mark.parametrize("positives", [1, 2])
def test_the_mean_of_folds_at_an_end_of_the_range_has_room_towards_it(positives, rng):
    labels, folds = np.tile(np.arange(12) < positives, 50), np.arange(600) // 12
    scores = rng.normal(size=600) + 2.3 * labels
    each = jm.slices(jm.roc_auc, scores, labels, folds, min_items=1)
    found, mirrored = (
        jm.fold_interval(jm.roc_auc, x, labels, folds).mean for x in (scores, -scores)
    )
    values, mean = np.asarray(each.estimate, float), np.mean(each.estimate)
    assert np.mean(values == 1) > 0.4
    error = np.std(values, ddof=1) / np.sqrt(50) if positives == 1 else found.standard_error
    above = _distance_of_mean(1, each.high - values, mean, float(error))
    assert above > 1.3 * np.sqrt(np.sum(np.square(each.high - values))) / 50
    np.testing.assert_allclose(found.high, mean + above, rtol=1e-5)
    np.testing.assert_allclose(
        [mirrored.low, mirrored.high], [1 - found.high, 1 - found.low], atol=1e-6
    )
    perfect = jm.fold_interval(jm.roc_auc, labels * 1.0, labels, folds).mean
    assert perfect.low < perfect.high == 1


def test_one_fold_has_the_interval_of_its_items(data):
    scores, labels, *_ = data
    for metric in (jm.roc_auc, partial(jm.partial_auc, max_fpr=0.3)):
        found = jm.fold_interval(metric, scores, labels, np.zeros(N, int)).mean
        expected = jm.confidence_interval(metric, scores, labels)
        for key in ("estimate", "standard_error", "low", "high"):
            np.testing.assert_allclose(getattr(found, key), getattr(expected, key), rtol=1e-6)


@pytest.mark.parametrize("labels", [np.arange(90) % 2 == 0, np.arange(90) < 45])
def test_limits_within_ties_of_slices_are_warned_of(labels, rng, recwarn):
    """Each slice has its own limit, and one that is not tested is not named."""
    sites = np.where(labels, np.cumsum(labels), np.cumsum(~labels)) % 3
    scores = rng.normal(size=(2, 90)) + labels
    metric = partial(jm.recall_at_fpr, max_fpr=0.3)
    given = {"min_items": 5}
    jm.slices(metric, scores, labels, sites, **given)
    scores[1, (sites == 2) | (sites == 0) & labels] = 1
    jm.slices(partial(metric, method="linear"), scores, labels, sites, **given)
    jm.slices(metric, scores, labels, sites, min_items=20)
    assert not [x for x in recwarn.list if "within a tie" in str(x.message)]
    with pytest.warns(UserWarning, match="0.3, is within a tie of 15 negatives in slice 2:"):
        jm.slices(metric, scores, labels, sites, **given)
    with pytest.warns(UserWarning, match="within a tie of 15 negatives in slice 2:"):
        jm.slices(metric, scores[1], labels, sites, **given)


def test_average_precisions_of_unequal_slices_are_warned_of(rng, recwarn):
    slices = np.repeat([0, 1, 2], [1000, 200, 200])
    labels = np.arange(1400) % 10 == 0
    scores = rng.normal(size=1400) + labels
    jm.slices(jm.average_precision, scores[1000:], labels[1000:], slices[1000:], min_items=5)
    jm.slices(jm.roc_auc, scores, labels, slices)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="slices have 20 to 100 positives n, and n AP = "):
        jm.slices(jm.average_precision, scores, labels, slices)
