"""What a metric is said to be, and what inference and streams make of it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._roc.record import record_of
from jaxmetrics._roc.table_values import _evaluate
from jaxmetrics.inference._intervals.metrics import error_bars_of

KEY, FEW = jax.random.key(5), 200


def recall(table):
    """Recall at 5 % FPR: it has a gradient in the weights, which is not its influence."""
    fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    return jnp.interp(0.05, fpr, tpr)


def mean_rank(table):
    """The area under the ROC curve in a user's words, which is smooth."""
    tps = jnp.cumsum(table.positives) - table.positives / 2
    return jnp.sum(tps * table.negatives) / jnp.sum(table.positives) / jnp.sum(table.negatives)


def several(table):
    return jnp.stack([recall(table), mean_rank(table)])


USERS = {"function": recall, "metric": jm.table_metric(recall)}
users = pytest.mark.parametrize("metric", USERS.values(), ids=USERS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    labels = rng.random(200) < 0.4
    return rng.normal(size=(2, 200)).astype("float32") + labels, labels


def refuse_work(*_):
    raise AssertionError("resampled before the input was refused")


# ---- smoothness is the author's claim


@users
def test_errors_of_a_users_metric_are_resampled(metric, data):
    scores, labels = data
    resample = functools.partial(jm.bootstrap, metric, scores, labels, key=KEY, n_resamples=FEW)
    expected = resample().standard_error
    got = jm.standard_error(metric, scores, labels, key=KEY, n_resamples=FEW)
    np.testing.assert_array_equal(got, expected)
    comparison = jm.compare(metric, scores, labels, key=KEY, n_resamples=FEW)
    differences = np.diff(resample().replicates, axis=1)[:, 0]
    np.testing.assert_allclose(comparison.standard_error[0, 1], differences.std(ddof=1), rtol=1e-5)
    assert jm.confidence_interval(metric, scores, labels, key=KEY).method == "percentile"


@users
@pytest.mark.parametrize("function", [jm.standard_error, jm.compare, jm.confidence_interval])
def test_resampling_asks_for_a_key(metric, function, data):
    with pytest.raises(TypeError, match="key is missing"):
        function(metric, *data)


@users
@pytest.mark.parametrize("function", [jm.influence, jm.covariance])
def test_no_influence_without_the_claim(metric, function, data):
    with pytest.raises(TypeError, match=r"recall is not known to be smooth.*smooth=True"):
        function(metric, *data)


def test_a_metric_that_claims_to_be_smooth_has_closed_forms(data):
    scores, labels = data
    metric = jm.table_metric(mean_rank, smooth=True)
    for function in (jm.standard_error, jm.influence, jm.covariance):
        got = function(metric, scores, labels)
        np.testing.assert_allclose(got, function(jm.roc_auc, scores, labels), rtol=1e-5, atol=1e-7)
    interval = jm.confidence_interval(metric, scores, labels, method="logit")
    assert interval.method == "logit"


def test_standard_error_of_amounts(data):
    scores, labels = data
    amounts = np.arange(200.0)
    metric = functools.partial(jm.recall_at_fpr, max_fpr=0.1)
    options = {"amounts": amounts, "key": KEY, "n_resamples": FEW}
    # By influence values: a key that is given changes nothing.
    error = jm.standard_error(metric, scores, labels, amounts=amounts)
    np.testing.assert_array_equal(jm.standard_error(metric, scores, labels, **options), error)
    resampled = jm.bootstrap(metric, scores, labels, **options).standard_error
    np.testing.assert_allclose(error, resampled, rtol=0.4)
    with pytest.raises(TypeError, match="amounts are for metrics that take them"):
        jm.standard_error(jm.roc_auc, scores, labels, amounts=amounts)


@pytest.mark.slow  # as of a user's metric
def test_standard_error_of_a_threshold_is_resampled(data):
    metric = functools.partial(jm.threshold_at_fpr, max_fpr=0.1)
    options = {"key": KEY, "n_resamples": FEW}
    expected = jm.bootstrap(metric, *data, **options).standard_error
    np.testing.assert_array_equal(jm.standard_error(metric, *data, **options), expected)


# ---- what is known of a metric is known of the metric, not of its name


def test_a_name_of_the_librarys_is_no_claim(data):
    @jm.table_metric(smooth=True)
    def average_precision(table):
        return mean_rank(table)

    interval = jm.confidence_interval(average_precision, *data, key=KEY, n_resamples=FEW)
    assert interval.method == "percentile"
    state = jm.streaming.init(jm.streaming.uniform_bins(4))
    with pytest.raises(ValueError, match="bounds are known for roc_auc"):
        jm.streaming.bounds(average_precision, state, bins=jm.streaming.uniform_bins(4))


def test_records_of_one_function_are_equal():
    assert record_of(recall) == record_of(functools.partial(recall))
    assert hash(record_of(recall)) == hash(record_of(recall))
    assert record_of(recall) != record_of(mean_rank)
    assert record_of(functools.partial(jm.roc_auc)) is jm.roc_auc.record
    assert error_bars_of(record_of(recall)).auto == "percentile"


# ---- refused before any work


def test_refused_before_resampling(data, monkeypatch):
    monkeypatch.setattr("jaxmetrics.inference._bootstrap.bootstrap.replicates_of", refuse_work)
    monkeypatch.setattr("jaxmetrics.inference._permutation.resample_swaps", refuse_work)
    both = functools.partial(jm.recall_at_fpr, max_fpr=np.array([0.1, 0.2]))
    with pytest.raises(TypeError, match="method='bca' needs influence values"):
        jm.confidence_interval(recall, *data, method="bca", key=KEY)
    windows = functools.partial(jm.partial_auc, max_fpr=np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="must have one value per table"):
        jm.confidence_interval(windows, *data, method="bca", key=KEY)
    for function in (jm.confidence_interval, jm.influence, jm.standard_error):
        with pytest.raises(ValueError, match="must have one value per table"):
            function(functools.partial(windows, min_fpr=np.array(0.05)), *data)
    pair = functools.partial(jm.precision_at_recall, min_recall=0.5, return_threshold=True)
    for function in (jm.confidence_interval, jm.compare, jm.standard_error):
        with pytest.raises(TypeError, match=r"has several results.*leave return_threshold out"):
            function(pair, *data, key=KEY)
    for options in ({"key": 7}, {"n_resamples": -1}, {"stratify": "x"}):
        for function in (jm.confidence_interval, jm.compare, jm.standard_error):
            with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
                function(jm.roc_auc, *data, **options)
    for metric in (several, both):
        with pytest.raises(ValueError, match="must have one value per table"):
            jm.compare(metric, *data, key=KEY)
        with pytest.raises(ValueError, match="must have one value per table"):
            jm.permutation_test(metric, *data, key=KEY)
        with pytest.raises(ValueError, match="must have one value per table"):
            jm.compare_to_value(metric, *data, value=0.5, key=KEY)
        groups = np.arange(len(data[1])) % 2
        with pytest.raises(ValueError, match="must have one value per table"):
            jm.compare_samples(metric, *data, groups=groups, key=KEY)
    with pytest.raises(TypeError, match="slices and folds take roc_auc"):
        jm.fold_interval(recall, *data, np.arange(len(data[1])) % 4)


def test_methods_that_do_not_serve_a_metric(data, monkeypatch):
    monkeypatch.setattr("jaxmetrics.inference._bootstrap.bootstrap.replicates_of", refuse_work)
    with pytest.raises(TypeError, match=r"method='logit' needs influence values.*'percentile'"):
        jm.confidence_interval(recall, *data, method="logit", key=KEY)
    smooth = jm.table_metric(mean_rank, smooth=True)
    with pytest.raises(
        TypeError, match=r"key is missing.*method='wald', as .* of mean_rank are known"
    ):
        jm.confidence_interval(smooth, *data)
    with pytest.raises(TypeError, match="roc_curve has several results"):
        jm.confidence_interval(jm.roc_curve, *data, key=KEY)


def test_several_values_of_a_stream_are_refused_before_resampling(data, monkeypatch):
    monkeypatch.setattr("jaxmetrics.streaming._intervals.resample_bins", refuse_work)
    bins = jm.streaming.uniform_bins(8, -4, 4)
    state = jm.streaming.update(jm.streaming.init(bins), data[0][0], data[1], bins=bins)
    for metric in (
        functools.partial(jm.precision_at_recall, min_recall=np.array([0.1, 0.2])),
        functools.partial(jm.recall_at_fpr, max_fpr=np.array([0.1, 0.2])),
    ):
        with pytest.raises(ValueError, match="must have one value per table"):
            jm.streaming.interval(metric, state, bins=bins, key=KEY)
    pair = functools.partial(jm.precision_at_recall, min_recall=0.1, return_threshold=True)
    with pytest.raises(TypeError, match="has several results"):
        jm.streaming.interval(pair, state, bins=bins, key=KEY)
    with pytest.raises(TypeError, match="has several results"):
        jm.streaming.bounds(pair, state, bins=bins)
    with pytest.raises(TypeError, match="has several results"):
        jm.streaming.exact(pair, lambda: [(data[0][0], data[1])])


# ---- under transformations, and called again


def test_options_that_are_nan_are_compiled_for_once(data):
    @jm.table_metric
    def filled(table, *, empty=0.0):
        return jnp.where(jnp.sum(table.positives) > 0, mean_rank(table), empty)

    start = _evaluate._cache_size()
    for nan in (float("nan"), np.float64("nan"), np.float32("nan"), -float("nan")):
        filled(*data, empty=nan)
    assert _evaluate._cache_size() == start + 1


def test_a_traced_limit_of_concrete_labels(data):
    def low(limit):
        metric = functools.partial(jm.partial_auc, max_fpr=limit)
        return jm.confidence_interval(metric, *data).low

    np.testing.assert_allclose(jax.jit(low)(0.3), low(0.3), rtol=1e-5)


def test_a_permutation_test_is_traced(data):
    def p_value(scores):
        return jm.permutation_test(jm.roc_auc, scores, data[1], key=KEY, n_resamples=99).p_value

    scores = jnp.asarray(data[0])
    np.testing.assert_allclose(jax.jit(p_value)(scores), p_value(scores), rtol=1e-6)

    def of_others(key, max_fpr):
        metric = functools.partial(jm.partial_auc, max_fpr=max_fpr)
        return jm.permutation_test(metric, scores, data[1], key=key, n_resamples=99).p_value

    expected = of_others(KEY, 0.3)
    np.testing.assert_allclose(jax.jit(of_others)(KEY, 0.3), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "metric",
    [
        jm.roc_auc,
        functools.partial(jm.partial_auc, max_fpr=0.3),
        functools.partial(jm.partial_auc, min_fpr=0.1, max_fpr=0.3),
        jm.average_precision,
        functools.partial(jm.recall_at_fpr, max_fpr=0.3),
        recall,
    ],
)
def test_the_method_of_an_interval_is_accepted_back(metric, data):
    options = {"key": KEY, "n_resamples": FEW}
    found = jm.confidence_interval(metric, *data, **options)
    again = jm.confidence_interval(metric, *data, method=found.method, **options)
    np.testing.assert_array_equal([again.low, again.high], [found.low, found.high])


def test_a_closed_form_that_there_is_not(data):
    for metric in (
        functools.partial(jm.threshold_at_fpr, max_fpr=0.1),
        functools.partial(jm.partial_auc, min_tpr=0.3),
    ):
        with pytest.raises(ValueError, match="method='closed form' is for roc_auc"):
            jm.confidence_interval(metric, *data, method="closed form")


@pytest.mark.parametrize(
    "call",
    [
        jm.compare,
        jm.influence,
        jm.standard_error,
        jm.covariance,
        jm.confidence_interval,
        functools.partial(jm.bootstrap, key=KEY),
        functools.partial(jm.permutation_test, key=KEY),
        functools.partial(jm.slices, slices=["a", "b"]),
        functools.partial(jm.fold_interval, folds=[0, 1]),
        functools.partial(jm.compare_samples, groups=[0, 1]),
        functools.partial(jm.compare_to_value, value=0.5),
        functools.partial(jm.sample_size, difference=0.1),
        functools.partial(jm.prediction_powered_interval, proxy=[0.1, 0.2], labelled=[1, 1]),
    ],
)
@pytest.mark.parametrize(
    "metric", [jm.ndcg, functools.partial(jm.precision_at_k, k=2), jm.accuracy, jm.segment_roc_auc]
)
def test_a_metric_of_lists_is_told_what_serves(call, metric):
    with pytest.raises(TypeError, match=r"also needs labels: .*write mean_interval\(values\)"):
        call(metric, [[0.1, 0.2], [0.2, 0.1]], [0, 2])
