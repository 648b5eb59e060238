"""`compare_samples` and `compare_to_value`."""

from __future__ import annotations

import warnings
from functools import partial

import jax
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm

N = 240
GROUPS = np.array(["east", "north", "west"])[np.arange(N) % 3]


@pytest.fixture
def data(rng):
    labels = rng.random(N) < 0.4
    scores = np.round(rng.normal(size=(2, N)) + labels, 1)
    return scores, labels


def placements(scores, labels):
    """DeLong's variance of the area, by all pairs."""
    wins = (scores[labels][:, None] > scores[~labels]) + 0.5 * (
        scores[labels][:, None] == scores[~labels]
    )
    by_class = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), [np.var(x, ddof=1) / len(x) for x in by_class], [len(x) for x in by_class]


def test_unpaired_test_of_delong(data, x64):
    """As pROC has it: Welch's t with the numbers of all items of the two samples."""
    scores, labels = data[0][0], data[1]
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, method="delong")
    own = [placements(scores[g == GROUPS], labels[g == GROUPS]) for g in np.unique(GROUPS)]
    for i, j in ((0, 1), (0, 2), (2, 1)):
        (a, va, na), (b, vb, nb) = own[i], own[j]
        va, vb, na, nb = sum(va), sum(vb), sum(na), sum(nb)
        t = (a - b) / np.sqrt(va + vb)
        df = (va + vb) ** 2 / (va**2 / (na - 1) + vb**2 / (nb - 1))
        np.testing.assert_allclose(found.z[i, j], t, rtol=1e-9)
        np.testing.assert_allclose(found.df[i, j], df, rtol=1e-9)
        np.testing.assert_allclose(found.p_value[i, j], 2 * stats.t.sf(abs(t), df), rtol=1e-8)


METRICS = {
    "auc": jm.roc_auc,
    "partial": partial(jm.partial_auc, max_fpr=0.3),
    "partial of a band": partial(jm.partial_auc, max_fpr=0.5, min_fpr=0.1),
    "precision": jm.average_precision,
    "recall": partial(jm.recall_at_fpr, max_fpr=0.1),
    "specificity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
}


def limits_of(metric, scores, labels, level, clusters=None):
    """Of the east less the north: Zou and Donner's, from the interval of each."""
    own = {} if clusters is None else {"clusters": clusters}
    a, b = (
        jm.confidence_interval(
            metric, scores, labels, confidence_level=level, where=g == GROUPS, **own
        )
        for g in ("east", "north")
    )
    d = a.estimate - b.estimate
    low = d - np.hypot(a.estimate - a.low, b.high - b.estimate)
    return d, low, d + np.hypot(a.high - a.estimate, b.estimate - b.low)


@pytest.mark.parametrize("name", METRICS)
def test_limits_are_those_of_the_intervals_of_both(name, data, x64):
    scores, labels, metric = data[0][0], data[1], METRICS[name]
    found = jm.compare_samples(metric, scores, labels, GROUPS, reference=1, margin=0.1)
    for level, names in ((0.95, ("low", "high")), (0.9, ("one_sided_low", "one_sided_high"))):
        d, *limits = limits_of(metric, scores, labels, level)
        np.testing.assert_allclose(found.difference[0], d, rtol=1e-9)
        at = [getattr(found, name)[0] for name in names]
        np.testing.assert_allclose(at, limits, rtol=1e-9)

    def crosses(p_value, towards, of_level):
        """The limit at the level of the p-value is there, but for the interpolation.

        Those of a recall jump, as the negatives above its threshold are counts.
        """
        near = 0.02 if name in ("recall", "specificity") else 0.004
        _, low, high = limits_of(metric, scores, labels, float(of_level(p_value)))
        width = float(found.high[0] - found.low[0])
        assert abs((low if d > towards else high) - towards) < near * width

    crosses(found.p_value[0], 0.0, lambda p: 1 - p)
    below = float(found.noninferiority_p_value[0])  # of d > -0.1
    crosses(min(below, 1 - below), -0.1, lambda p: 1 - 2 * p)
    assert np.isinf(found.df[0])
    np.testing.assert_allclose(found.p_value[0], 2 * stats.norm.sf(abs(found.z[0])), rtol=1e-9)


def test_simultaneous_limits_agree_with_their_p_values(data, x64):
    scores, labels = data[0][0] + (GROUPS == "east") * data[1], data[1]
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, confidence_level=0.9)
    i, j = np.triu_indices(3, 1)
    outside = (found.simultaneous_low[i, j] > 0) | (found.simultaneous_high[i, j] < 0)
    np.testing.assert_array_equal(outside, found.simultaneous_p_value[i, j] < 0.1)
    assert 0 < outside.sum() < 3
    # The studentized range of three groups of one error.
    z = (found.difference - found.simultaneous_low)[i, j] / (found.difference - found.low)[i, j]
    known = stats.studentized_range.ppf(0.9, 3, 1e6) / np.sqrt(2) / stats.norm.ppf(0.95)
    np.testing.assert_allclose(z, known, rtol=0.05)


def test_perfect_groups_have_limits(x64):
    labels = np.arange(80) % 2 == 0
    noisy = labels + 1.2 * np.sin(np.arange(80))
    scores, groups = np.concatenate([labels, labels, noisy]), np.arange(240) // 80
    found = jm.compare_samples(jm.roc_auc, scores, np.tile(labels, 3), groups)
    assert found.p_value[0, 1] == 1
    assert found.standard_error[0, 1] == 0
    lowest = jm.confidence_interval(jm.roc_auc, labels * 1.0, labels).low
    np.testing.assert_allclose([found.low[0, 1], found.high[0, 1]], [lowest - 1, 1 - lowest])
    assert found.low[0, 2] > 0.05
    np.testing.assert_array_equal(found.best_set, [True, True, False])
    assert 1e-9 < found.chi2_p_value < 0.05


def test_clusters_have_their_own_intervals(data, x64):
    scores, labels = data[0][0], data[1]
    clusters = 3 * (np.arange(N) // 12) + np.arange(N) % 3
    found = jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, clusters=clusters)
    _, *limits = limits_of(jm.roc_auc, scores, labels, 0.95, clusters)
    np.testing.assert_allclose([found.low[0, 1], found.high[0, 1]], limits, rtol=1e-9)


@pytest.mark.parametrize("n_groups", [2, marked(3, fast=False)])
def test_models_and_programs(data, n_groups):
    """A model of several is as one alone; a program of one suffices, as models are a loop."""
    scores, labels = data
    groups = np.where(GROUPS == "west", "east", GROUPS) if n_groups == 2 else GROUPS
    found = jm.compare_samples(jm.roc_auc, scores, labels, groups)
    alone = jm.compare_samples(jm.roc_auc, scores[1], labels, groups)
    traced = jax.jit(lambda s, y: jm.compare_samples(jm.roc_auc, s, y, groups))(scores[1], labels)
    for name in ("estimate", "low", "simultaneous_high", "p_value", "chi2", "best_set"):
        x = np.asarray(getattr(alone, name))
        np.testing.assert_allclose(getattr(found, name)[1], x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(getattr(traced, name), x, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("metric", "method"),
    [
        (jm.roc_auc, "delong"),
        marked(METRICS["partial"], "auto", fast=False),
        marked(jm.roc_auc, "auto", fast=False),
    ],
)
def test_a_group_without_a_class_leaves_the_others_theirs(data, metric, method):
    """Eagerly and in a program: a value is 0 from itself, and nothing is known of that group."""
    (scores, _), labels = data
    groups = np.where(np.arange(N) % 4 == 3, "none", GROUPS)
    labels = labels & (groups != "none")
    call = partial(jm.compare_samples, metric, groups=groups, method=method)
    some = call(scores[groups != "none"], labels[groups != "none"], groups=GROUPS[groups != "none"])
    lost = np.unique(groups) == "none"
    for found in (call(scores, labels), jax.jit(lambda *x: call(*x))(scores, labels)):
        for name in ("difference", "p_value", "simultaneous_p_value", "simultaneous_low"):
            values = np.asarray(getattr(found, name))
            assert np.isnan(values[lost | lost[:, None]]).all()
            kept = values[~lost][:, ~lost]
            if name == "simultaneous_p_value":
                assert np.isfinite(kept).all()
            elif name != "simultaneous_low":
                np.testing.assert_allclose(kept, getattr(some, name), rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(np.diag(kept), float("p_value" in name))
        np.testing.assert_allclose(found.chi2_p_value, some.chi2_p_value, rtol=1e-3)


def test_metrics_that_are_resampled(data):
    metric = partial(jm.threshold_at_fpr, max_fpr=0.2)
    options = {"key": jax.random.key(1), "n_resamples": 200}
    found = jm.compare_samples(metric, data[0][0], data[1], GROUPS, **options)
    assert np.isinf(found.df[0, 1])
    own = [
        jm.bootstrap(
            metric,
            data[0][0],
            data[1],
            where=group == GROUPS,
            key=jax.random.fold_in(options["key"], i),
            n_resamples=200,
        ).standard_error
        for i, group in enumerate(["east", "north"])
    ]
    np.testing.assert_allclose(found.standard_error[0, 1], np.hypot(*own), rtol=1e-6)
    half = stats.norm.isf(0.025) * np.hypot(*own)
    np.testing.assert_allclose(found.high[0, 1] - found.difference[0, 1], half, rtol=1e-5)
    with pytest.raises(TypeError, match="key is missing"):
        jm.compare_samples(metric, data[0][0], data[1], GROUPS)


def _area(table):
    above = table.negatives.cumsum(-1)
    pairs = table.positives * (above[..., -1:] - above + table.negatives / 2)
    return pairs.sum(-1) / (above[..., -1] * table.positives.sum(-1))


def test_a_metric_of_a_user_has_welchs_degrees_of_freedom(data, x64):
    """Of the classes of both groups; or of one model, against a value."""
    metric, (scores, labels) = jm.table_metric(_area, smooth=True), (data[0][0], data[1])
    halves = np.arange(N) // (N // 2)

    def welch(parts, sizes):
        parts, sizes = np.array(parts), np.array(sizes)
        return parts.sum() ** 0.5, parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum()

    own = [placements(scores[halves == g], labels[halves == g]) for g in (0, 1)]
    both = jm.compare_samples(metric, scores, labels, halves)
    of_two = welch(own[0][1] + own[1][1], own[0][2] + own[1][2])
    one = jm.compare_to_value(metric, scores, labels, value=0.5)
    of_one = welch(*placements(scores, labels)[1:])
    found = (both.standard_error[0, 1], both.df[0, 1]), (one.standard_error, one.df)
    np.testing.assert_allclose(found, (of_two, of_one), rtol=1e-9)
    half = stats.t.isf(0.025, of_two[1]) * of_two[0]
    np.testing.assert_allclose(both.high[0, 1] - both.difference[0, 1], half, rtol=1e-9)


def test_a_value_is_a_model_without_error(data, x64):
    found = jm.compare_to_value(jm.roc_auc, *data, value=0.7)
    error = jm.standard_error(jm.roc_auc, *data)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9)
    np.testing.assert_allclose(found.difference, jm.roc_auc(*data) - 0.7, rtol=1e-9)
    one = jm.compare_to_value(jm.roc_auc, data[0][0], data[1], value=0.7)
    assert one.p_value.shape == ()
    np.testing.assert_allclose(one.p_value, found.p_value[0], rtol=1e-9)
    np.testing.assert_array_equal(one.simultaneous_p_value, one.p_value)
    assert (found.simultaneous_p_value >= found.p_value).all()
    np.testing.assert_allclose(found.p_value, 2 * stats.t.sf(np.abs(found.z), found.df), rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, {}) for name in METRICS),
        *((name, {"clusters": np.arange(N) // 4}) for name in ("auc", "recall")),
        ("recall", {"amounts": 1 + np.arange(N) % 5}),
    ],
)
def test_limits_against_a_value_are_those_of_the_interval(data, name, given, x64):
    metric = METRICS[name]
    for level in (0.95, 0.8):
        found = jm.compare_to_value(metric, *data, value=0.2, confidence_level=level, **given)
        alone = jm.confidence_interval(metric, *data, confidence_level=level, **given)
        np.testing.assert_allclose(found.low + 0.2, alone.low, atol=1e-9)
        np.testing.assert_allclose(found.high + 0.2, alone.high, atol=1e-9)
        both = jm.confidence_interval(metric, *data, confidence_level=2 * level - 1, **given)
        np.testing.assert_allclose(found.one_sided_low + 0.2, both.low, atol=1e-9)


def test_a_value_at_a_limit_has_the_p_value_of_the_level(data):
    for level in (0.5, 0.9, 0.99):
        alone = jm.confidence_interval(jm.roc_auc, data[0][0], data[1], confidence_level=level)
        for limit in (alone.low, alone.high):
            found = jm.compare_to_value(jm.roc_auc, data[0][0], data[1], value=float(limit))
            np.testing.assert_allclose(found.p_value, 1 - level, rtol=0.02)


@pytest.mark.slow
def test_size_where_few_positives_are_below_all(rng):
    """Symmetric limits refuse the true area of such models in a fifth of the samples."""
    labels, truth = np.arange(220) < 20, 0.95 * stats.norm.cdf(2.5 / 2**0.5)
    scores = rng.normal(size=(300, 220)) + 2.5 * labels
    scores -= 20 * labels * (rng.random((300, 220)) < 0.05)
    found = [jm.compare_to_value(jm.roc_auc, x, labels, value=truth) for x in scores]
    error = np.asarray(jm.standard_error(jm.roc_auc, scores, labels))
    z = (np.asarray(jm.roc_auc(scores, labels)) - truth) / error
    assert np.mean(np.abs(z) > 2.1) > 0.12
    for name in ("p_value", "chi2_p_value"):
        assert np.mean(np.array([getattr(x, name) for x in found]) < 0.05) < 0.06


def test_values_at_the_ends_of_the_range():
    """Where limits are clipped, they hold the value at every level."""
    labels = np.arange(40) % 2 == 0
    for sign, value in ((1.0, 1.0), (-1.0, 0.0)):
        found = jm.compare_to_value(jm.roc_auc, sign * labels, labels, value=value)
        assert found.p_value == 1
        assert found.best_set
        for limit in (0.47, 0.55, 0.59):  # areas which differ from these in their last digit
            area = partial(jm.partial_auc, max_fpr=limit)
            found = jm.compare_to_value(area, sign * labels, labels, value=value * limit)
            assert found.p_value == 1
    labels = np.arange(8) < 2
    recall = partial(jm.recall_at_fpr, max_fpr=0.3)
    with pytest.warns(UserWarning, match="fewer than"):
        found = jm.compare_to_value(recall, 1.0 * labels, labels, value=0.0)
    assert found.low + found.estimate <= 1  # the interval holds 0
    assert found.p_value >= 0.049


def test_a_value_of_a_metric_without_limits_of_its_own(data):
    """Of replicates: symmetric, and normal."""
    metric = partial(jm.threshold_at_fpr, max_fpr=0.2)
    options = {"key": jax.random.key(1), "n_resamples": 200}
    found = jm.compare_to_value(metric, *data, value=0.5, **options)
    half = stats.norm.isf(0.025) * np.asarray(found.standard_error)
    np.testing.assert_allclose(found.high - found.difference, half, rtol=1e-5)
    np.testing.assert_allclose(found.difference - found.low, half, rtol=1e-5)


def test_maxima_of_many_models_are_those_of_draws(rng):
    """Ten biomarkers against 0.5: the adjusted p-value by 400,000 normal draws."""
    labels = np.arange(4000) % 2 == 0
    common = rng.normal(size=4000)
    scores = 0.8 * common + 0.6 * rng.normal(size=(10, 4000)) + 0.06 * labels
    found = jm.compare_to_value(jm.roc_auc, scores, labels, value=0.5)
    covariance = np.asarray(jm.covariance(jm.roc_auc, scores, labels), float)
    deviations = np.sqrt(np.diag(covariance))
    draws = rng.multivariate_normal(np.zeros(10), covariance, 400_000) / deviations
    largest = np.sort(np.abs(draws).max(axis=1))
    known = 1 - np.searchsorted(largest, np.abs(found.z)) / len(largest)
    np.testing.assert_allclose(found.simultaneous_p_value, known, atol=6e-3)


def test_errors(data):
    scores, labels = data
    with pytest.raises(ValueError, match="two or more, got 1"):
        jm.compare_samples(jm.roc_auc, scores, labels, np.zeros(N, int))
    with pytest.raises(ValueError, match=r"groups must be \[n\]"):
        jm.compare_samples(jm.roc_auc, scores, labels, GROUPS[:5])
    with pytest.raises(ValueError, match="within one of the groups"):
        jm.compare_samples(jm.roc_auc, scores, labels, GROUPS, clusters=np.arange(N) // 2)
    with pytest.raises(ValueError, match="value must be between"):
        jm.compare_to_value(jm.roc_auc, scores, labels, value=float("nan"))
    with pytest.raises(TypeError, match="amounts are for metrics that take them"):
        jm.compare_to_value(jm.roc_auc, scores, labels, value=0.5, amounts=np.ones(N))
    few = np.where(np.arange(N) < 6, "a", "b")
    with pytest.warns(UserWarning, match="group a has"):
        jm.compare_samples(jm.roc_auc, scores[0], labels, few)


def test_warns_of_a_metric_that_rises_with_the_share_of_positives(rng):
    labels = np.concatenate([rng.random(300) < 0.2, rng.random(300) < 0.5])
    scores, groups = rng.normal(size=600) + labels, ["north"] * 300 + ["south"] * 300
    with pytest.warns(UserWarning, match=r"0\.21 in group north and 0\.55 in south"):
        jm.compare_samples(jm.average_precision, scores, labels, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.compare_samples(jm.roc_auc, scores, labels, groups)


def _pass_rate(table):
    positives, negatives = table.positives.sum(-1), table.negatives.sum(-1)
    return positives / (positives + negatives)


@pytest.mark.filterwarnings("ignore")
def test_the_rounding_of_no_error_is_none(rng):
    """Groups that differ without one have no p-value; where weights are equal, and where not."""
    groups, labels = np.repeat([0, 1], 30), np.tile(np.arange(30) < 12, 2)
    scores = np.where(groups == 0, 1.0 * labels, 0.5)
    for weights in (None, rng.random(60)):
        given = {"weights": weights, "method": "delong"}
        found = jm.compare_samples(jm.roc_auc, scores, labels, groups, **given)
        assert found.standard_error[0, 1] == 0
        assert np.isnan(found.p_value[0, 1])

    metric = jm.table_metric(_pass_rate, smooth=True)
    labels, scores = rng.random(100) < 0.5, rng.normal(size=100)
    found = jm.compare_samples(metric, scores, labels, np.arange(100) // 20)
    assert not np.any(found.standard_error)
    apart = ~np.eye(5, dtype=bool) & (np.asarray(found.difference) != 0)
    assert np.isnan(np.asarray(found.p_value)[apart]).all()
    assert np.isnan(jm.compare_to_value(metric, scores, labels, value=0.9).p_value)
    assert jm.standard_error(metric, scores, labels) == 0
    weights, pairs = rng.random(100), np.arange(100) // 2
    tied = np.full(100, 0.3), labels
    assert jm.standard_error(jm.roc_auc, *tied, clusters=pairs, weights=weights) == 0


@pytest.mark.filterwarnings("ignore")
def test_two_groups_have_one_p_value(rng):
    """Of the pair, and of the hypothesis that all are equal."""
    groups, labels = np.repeat([0, 1], [60, 400]), rng.random(460) < 0.3
    for _ in range(5):
        found = jm.compare_samples(jm.roc_auc, rng.normal(size=460) + labels, labels, groups)
        assert found.chi2_p_value == found.p_value[0, 1]
    one = jm.compare_to_value(jm.roc_auc, rng.normal(size=460) + labels, labels, value=0.75)
    assert one.chi2_p_value == one.p_value
