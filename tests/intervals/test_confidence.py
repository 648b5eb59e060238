"""Confidence intervals: ends, warnings, what counts as an observation, names of one number."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from of_intervals import BY_WILSON, KEY, LIMIT, PARTIAL, RECALL, Z, close, limits

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics.inference._forms import form_of, limits_of_form
from jaxmetrics.inference._influence.variance import moments_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are only"),
]


# ---- the ends


@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_a_perfect_auc_has_an_interval(sign, data):
    labels = data[1]
    scores = sign * labels.astype("float32")
    for metric, method in (
        (jm.roc_auc, "auto"),
        (jm.roc_auc, "logit"),
        (PARTIAL, "auto"),
        (PARTIAL, "logit"),
    ):
        interval = jm.confidence_interval(metric, scores, labels, method=method)
        low, high = limits(interval) / (LIMIT if metric is PARTIAL else 1)
        end = 0.025 ** (1 / 60)  # Clopper and Pearson's limit for 60 of 60
        if sign > 0:
            close(high, 1)
            assert 0.8 < low <= end + 1e-6
        else:
            assert low == 0
            assert 1 - end - 1e-6 <= high < 0.2


METRICS_OF_TIES = {
    "auc": jm.roc_auc,
    "window": partial(jm.partial_auc, max_fpr=0.5, min_tpr=0.2, scale="range"),
    "precision": jm.average_precision,
}


@pytest.mark.parametrize("name", METRICS_OF_TIES)
@pytest.mark.parametrize("n", [12, 23, 29, 30, 98, 100])
def test_a_constant_model_has_limits_on_both_sides(name, n):
    """All scores tie, whatever the rounding of sums of clusters: n draws that do not differ."""
    labels = np.arange(n) % 3 == 0
    found = jm.confidence_interval(
        METRICS_OF_TIES[name], np.full(n, 0.3), labels, clusters=np.arange(n), method="logit"
    )
    lowest, a = 0.025 ** (1 / labels.sum()), np.asarray(found.estimate)
    close(found.low, lowest * a, rtol=1e-4)
    close(found.high, 1 - lowest * (1 - a), rtol=1e-4)


def test_the_rounding_of_a_variance_moves_no_limit():
    """Sums over devices leave 1e-34 of scores that all tie."""
    form = form_of(jm.average_precision, "closed form")
    scores, labels = np.full(192, 0.5), np.arange(192) % 3 == 0
    moments, numbers = moments_of(form.metric, checks.check_items(scores, labels, None, None), 0.95)
    exact = limits_of_form(form, moments, numbers, 0.95)
    rounded = moments._replace(variances=(np.float64(1e-34), np.float64(3e-34)))
    np.testing.assert_array_equal(limits_of_form(form, rounded, numbers, 0.95), exact)


@pytest.mark.parametrize("clusters", [None, np.arange(400) // 2])
def test_a_perfect_recall_has_as_many_draws_as_its_threshold_leaves(clusters):
    """Its error is that of the threshold alone, and the logit of 1 is infinite."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) < 100
    scores = rng.normal(size=400) + 6 * labels
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    found = jm.confidence_interval(recall, scores, labels, clusters=clusters, method="logit")
    n = 100 if clusters is None else 50
    assert found.estimate == 1
    assert found.high == 1
    assert found.standard_error > 0
    p = (n + 0.5) / (n + 1)
    left = p * (1 - p) / (p * (1 - p) / n + float(found.standard_error) ** 2)
    close(found.low, 0.025 ** (1 / left), rtol=1e-3)


@pytest.mark.parametrize("lost", [0, 1, "nan"])
def test_undefined(lost, data):
    scores, labels = data[0].copy(), data[1]
    if lost == "nan":
        scores[3] = np.nan
    else:
        labels = np.full(200, lost)
    for metric, method in ((jm.roc_auc, "auto"), (PARTIAL, "auto"), (jm.roc_auc, "wald")):
        interval = jm.confidence_interval(metric, scores, labels, method=method)
        assert np.isnan(limits(interval)).all()
        assert np.isnan(interval.standard_error)


# ---- warnings and errors


@pytest.mark.filterwarnings("default:there are only")
def test_few_positives_are_named(data):
    scores, labels = data[0], np.arange(200) % 28 == 0
    assert labels.sum() == 8
    for method, share in (("auto", "90 to 100 %"), ("wald", "50 to 95 %")):
        with pytest.warns(UserWarning, match=f"only 8 positives.*cover {share}"):
            jm.confidence_interval(jm.roc_auc, scores, labels, method=method)
    with pytest.warns(UserWarning, match="only 8 negatives"):
        jm.confidence_interval(jm.roc_auc, scores, ~labels)
    where = ~data[1] | (np.cumsum(data[1]) <= 8)
    with pytest.warns(UserWarning, match="only 8 positives"):
        jm.confidence_interval(jm.roc_auc, *data, where=where)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.confidence_interval(jm.roc_auc, *data)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence_level": 95}, ValueError, r"\(0, 1\), got 95: write 0\.95 for 95 %"),
        ({"confidence_level": 1.0}, ValueError, r"confidence_level must be in \(0, 1\)"),
        ({"confidence_level": "95 %"}, TypeError, "confidence_level must be a number"),
        ({"method": "percentile"}, TypeError, r"key is missing.*jax\.random\.key\(0\)"),
        ({"method": "bca"}, TypeError, "key is missing"),
        ({"method": "percentile", "key": KEY, "n_resamples": -5}, ValueError, "at least 1, got -5"),
        (
            {"method": "exact"},
            ValueError,
            "method must be one of 'auto', 'closed form'.*'exact'",
        ),
        ({"clusters": [1, 2, 3]}, ValueError, r"clusters must be \[n\].*got \[3\]"),
        ({"amounts": np.ones(200)}, TypeError, "amounts are for metrics that take them"),
    ],
)
def test_errors(options, error, message, data):
    with pytest.raises(error, match=message):
        jm.confidence_interval(jm.roc_auc, *data, **options)


def test_a_metric_without_gradient_needs_a_key(data):
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    for method in ("auto", "wald", "percentile"):
        with pytest.raises(TypeError, match="key is missing"):
            jm.confidence_interval(threshold, *data, method=method)
    with pytest.raises(ValueError, match="method must be one of 'percentile'"):
        jm.BootstrapResult(0.0, jnp.zeros(3), 0.0, 0).interval(method="logit")


# ---- what counts as an observation


@pytest.mark.parametrize("how", ["weights", "amounts", "where"])
@pytest.mark.parametrize("find", [BY_WILSON, partial(jm.confidence_interval, RECALL)])
def test_items_of_weight_zero_are_not_observations(find, how, data):
    """An interval with weights, a mask or amounts of 0 is that of the items that are left."""
    scores, labels = data
    kept = ~labels | (np.cumsum(labels) <= 12)
    scores = np.where(labels, scores + 9, scores).astype("float32")  # all are found
    alone = find(scores[kept], labels[kept])
    assert alone.low[0] < 0.8
    # Weights of two sizes, as in the next test, whose program they share.
    given = kept if how == "where" else kept * np.where(labels, 5.0, 1.0)
    close(limits(find(scores, labels, **{how: given})), limits(alone))
    if how == "weights" and find is BY_WILSON:
        with pytest.warns(UserWarning, match="only 12 positives"):
            find(scores, labels, weights=given * 0.1)


def test_unequal_weights_count_as_their_effective_size(data):
    """(sum w)^2 / sum w^2, whatever the unit of the weights."""
    scores, labels = np.where(data[1], data[0] + 9, data[0]), data[1]
    weights = np.where(np.cumsum(labels) % 2, 5.0, 1.0)
    of_positives = weights[labels]
    n = of_positives.sum() ** 2 / np.sum(of_positives**2)
    for unit in (1.0, 1e-200):
        found = BY_WILSON(scores, labels, weights=weights * unit)
        close(found.low, [n / (n + Z**2)] * 2)
    with pytest.warns(UserWarning, match=r"only 41\.5 positives, of the effective size \(sum w\)"):
        jm.confidence_interval(jm.roc_auc, *data, method="logit", weights=weights)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (partial(jm.recall_at_fpr, max_fpr=0.005), "of the negatives is within max_fpr=0.005"),
        (
            partial(jm.specificity_at_sensitivity, min_sensitivity=0.95),
            r"1 of the positives is beyond min_sensitivity=0\.95: .* add positives",
        ),
        (
            partial(jm.sensitivity_at_specificity, min_specificity=[0.8, 0.99]),
            r"2 negatives are beyond min_specificity=0\.99: .* add negatives",
        ),
    ],
)
def test_what_few_items_are_beyond_is_what_was_asked_for(metric, message, rng):
    labels = np.arange(220) < 20
    with pytest.warns(UserWarning, match=message):
        jm.confidence_interval(metric, rng.normal(size=220) + 1.5 * labels, labels)


def test_clusters_of_amounts_are_told_apart(rng):
    labels, amounts = np.arange(400) % 2 == 0, np.where(np.arange(400) == 0, 1e4, 1.0)
    metric = partial(jm.recall_at_fpr, max_fpr=0.1)
    with pytest.warns(UserWarning, match="clusters with positives by amount that count as only 2"):
        jm.confidence_interval(
            metric,
            rng.normal(size=400) + labels,
            labels,
            amounts=amounts,
            clusters=np.arange(400) // 4,
        )


def test_clusters_that_hold_no_valid_item_do_not_count(data, rng):
    clusters = rng.integers(0, 40, 200)
    where = clusters < 12
    one_limit = partial(jm.recall_at_fpr, max_fpr=LIMIT)
    for metric, options in ((jm.roc_auc, {}), (one_limit, {"key": KEY})):
        compute = partial(jm.confidence_interval, metric, **options)
        alone = compute(data[0][where], data[1][where], clusters=clusters[where])
        for how in ({"where": where}, {"weights": where * 1.0}):
            found = compute(*data, clusters=clusters, **how)
            close(limits(found), limits(alone), rtol=2e-5 if metric is jm.roc_auc else 0.2)
    few = where & (clusters < 9)
    with pytest.warns(UserWarning, match="clusters with positives that count as only 6.95"):
        jm.confidence_interval(jm.roc_auc, *data, clusters=clusters, where=few)
    alone = np.where(data[1], 0, clusters + 1)
    with pytest.warns(UserWarning, match="only 1 of the clusters with positives.* NaN"):
        found = jm.confidence_interval(jm.roc_auc, *data, clusters=alone)
    assert np.isnan(limits(found)).all()


# ---- one number, one interval


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            partial(jm.sensitivity_at_specificity, min_specificity=[0.9, 1 - LIMIT]),
            RECALL,
        ),
        (partial(jm.partial_auc, max_fpr=1.0, scale="mcclish"), jm.roc_auc),
    ],
)
def test_two_names_of_one_number_have_one_interval(one, other, data):
    for options in ({}, {"weights": np.ones(200)}, {"clusters": np.arange(200) % 60}):
        found, expected = (
            jm.confidence_interval(metric, *data, key=KEY, **options) for metric in (one, other)
        )
        assert found.method == expected.method
        close(found.estimate, one(*data))
        close(limits(found), limits(expected))
        close(found.standard_error, expected.standard_error)


@pytest.mark.filterwarnings("ignore:only 1")
@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (jm.sensitivity_at_specificity, "min_specificity"),
        marked(jm.specificity_at_sensitivity, "min_sensitivity", fast=False),
    ],
)
def test_limits_that_a_rate_equals(metric, name):
    """1 - k / n rounds either way: the interval is around the value of the metric all the same."""
    scores, labels, k = np.arange(98.0), np.arange(98) % 2 == 0, np.arange(1, 49)

    def values(limits):
        some = partial(metric, **{name: limits})
        return some(scores, labels), jm.confidence_interval(some, scores, labels).estimate

    for found in (
        *values(k / 49),
        *values((k / 49).astype("float32")),
        *jax.jit(values)((k / 49).astype("float32")),
    ):
        np.testing.assert_allclose(found, (49 - k) / 49, rtol=1e-6)


@pytest.mark.slow
def test_specificity_is_the_sensitivity_of_the_other_class(data):
    """With the signs of the scores reversed; the resamples differ, as draws go by class."""
    scores, labels = data
    specificity = partial(jm.specificity_at_sensitivity, min_sensitivity=0.8)
    mirrored = partial(jm.sensitivity_at_specificity, min_specificity=0.8)
    found = jm.confidence_interval(specificity, scores, labels, key=KEY)
    expected = jm.confidence_interval(mirrored, -scores, ~labels, key=KEY)
    assert found.method == "closed form"
    close(found.estimate, specificity(scores, labels))
    close(limits(found), limits(expected))
    one, other = (
        jm.confidence_interval(metric, s, y, method="logit")
        for metric, s, y in ((specificity, scores, labels), (mirrored, -scores, ~labels))
    )
    close(limits(one), limits(other))
    one, other = (
        jm.confidence_interval(metric, s, y, key=KEY, method="wilson")
        for metric, s, y in ((specificity, scores, labels), (mirrored, -scores, ~labels))
    )
    close(limits(one), limits(other), rtol=0.03)
    perfect = np.where(labels, 9.0, scores)
    found = jm.confidence_interval(specificity, perfect, labels, key=KEY, method="wilson")
    close(limits(found), [140 / (140 + Z**2), 1])  # as many as there are negatives


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8", "bool"])
def test_specificity_of_integer_scores(dtype, data):
    """Integers are reversed without an overflow, the lowest and the highest too."""
    scores, labels = data
    if dtype == "bool":
        whole = scores > 0.5
    else:
        info = np.iinfo(dtype)
        middle = info.max // 2 + info.min // 2
        whole = (middle + np.clip(np.round(10 * scores), -60, 60).astype(int)).astype(dtype)
        whole[:3], whole[3:6] = info.min, info.max
    specificity = partial(jm.specificity_at_sensitivity, min_sensitivity=0.8)
    found = jm.confidence_interval(specificity, whole, labels)
    expected = jm.confidence_interval(specificity, whole.astype("float64"), labels)
    close(found.estimate, specificity(whole, labels))
    close(found.estimate, expected.estimate)
    close(limits(found), limits(expected))


@pytest.mark.slow
def test_one_interval_from_a_stream_too(data):
    scores, labels = data
    bins = jm.streaming.uniform_bins(128, low=-4.0, high=4.0)
    state = jm.streaming.update(jm.streaming.init(bins), scores, labels, bins=bins)
    find = partial(jm.streaming.interval, state=state, bins=bins, key=KEY, n_resamples=500)
    sensitivity = partial(jm.sensitivity_at_specificity, min_specificity=0.8)
    specificity = partial(jm.specificity_at_sensitivity, min_sensitivity=0.8)
    for metric, other in (
        (sensitivity, partial(jm.recall_at_fpr, max_fpr=0.2)),
        (specificity,) * 2,
    ):
        found = find(metric)
        close(limits(found), limits(find(other)))
        exact = jm.confidence_interval(metric, scores, labels, method="wilson", key=KEY)
        assert found.low <= exact.low + 0.02
        assert exact.high - 0.02 <= found.high
        np.testing.assert_allclose(found.standard_error, exact.standard_error, rtol=0.3)
