"""Confidence intervals: each method against its formula, scales, ends, warnings and errors."""

import logging
import warnings
from functools import partial

import interval_formulas as formulas
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics.inference._forms import form_of, limits_of_form
from jaxmetrics.inference._influence.variance import moments_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are only"),
]

KEY = jax.random.key(21)
Z = stats.norm.ppf(0.975)
LIMIT = 0.2
PARTIAL = partial(jm.partial_auc, max_fpr=LIMIT)
RECALL = partial(jm.recall_at_fpr, max_fpr=[0.1, LIMIT])
BY_WILSON = partial(jm.confidence_interval, RECALL, method="wilson", key=KEY)


@pytest.fixture(scope="module")
def data():
    """Scores with ties and labels, of 60 positives and 140 negatives."""
    rng = np.random.default_rng(1)
    labels = np.arange(200) % 10 < 3
    return (rng.normal(size=200) + 1.2 * labels).round(1).astype("float32"), labels


def close(a, b, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def placements(scores, labels):
    """Of each class, the influence values of the AUC, whose mean is the AUC."""
    positive, negative = scores[labels][:, None], scores[~labels]
    wins = (positive > negative) + (positive == negative) / 2
    return wins.mean(axis=0), wins.mean(axis=1)


def moments(parts):
    """The estimate, and of each class the variance and the size."""
    return parts[0].mean(), [x.var(ddof=1) for x in parts], [len(x) for x in parts]


def limits(interval):
    return np.stack([interval.low, interval.high])


# ---- closed forms


def test_auto_of_the_auc(data):
    parts = placements(*data)
    interval = jm.confidence_interval(jm.roc_auc, *data)
    assert interval.method == "closed form"
    assert interval.confidence_level == 0.95
    estimate, variances, sizes = moments(parts)
    close(limits(interval), formulas.auc(estimate, variances, sizes, 0.95))
    close(interval.standard_error, np.sqrt(np.sum(np.array(variances) / sizes)))
    close(interval.estimate, estimate)


def test_auto_of_a_partial_area(data):
    """Of influence values that are gradients; the height is that of the curve at the limit."""
    scores, labels = data
    metric = partial(PARTIAL, scale="range")
    interval = jm.confidence_interval(metric, scores, labels, confidence_level=0.9)
    phi = np.asarray(jm.influence(metric, scores, labels), float)
    _, variances, sizes = moments((phi[~labels], phi[labels]))
    thresholds = np.unique(scores)[::-1][:, None]
    fpr, tpr = (np.mean(scores[labels == c] >= thresholds, axis=1) for c in (False, True))
    found = float(interval.estimate), variances, sizes
    expected = formulas.partial_auc(*found, 0.9, LIMIT, np.interp(LIMIT, fpr, tpr))
    assert interval.method == "closed form"
    close(limits(interval), expected)


def test_logit(data):
    estimate, variances, sizes = moments(placements(*data))
    for level in (0.8, 0.95):
        interval = jm.confidence_interval(jm.roc_auc, *data, method="logit", confidence_level=level)
        close(limits(interval), formulas.logit_t(estimate, variances, sizes, level))
    assert interval.method == "logit"


def test_wald(data):
    interval = jm.confidence_interval(jm.roc_auc, *data, method="wald")
    estimate, variances, sizes = moments(placements(*data))
    margin = Z * np.sqrt(np.sum(np.array(variances) / sizes))
    close(limits(interval), [estimate - margin, estimate + margin])


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_auto_of_average_precision(level, data):
    """Logit limits, moved for the positive that counts itself and for few successes."""
    scores, labels = data
    for kept in (labels >= 0, ~labels | (np.cumsum(labels) <= 12)):  # many, and few successes
        items = scores[kept], labels[kept]
        interval = jm.confidence_interval(jm.average_precision, *items, confidence_level=level)
        phi = np.asarray(jm.influence(jm.average_precision, *items), float)
        _, variances, sizes = moments((phi[~items[1]], phi[items[1]]))
        positives, negatives = (items[0][items[1] == c] for c in (True, False))
        caught = (positives >= positives[:, None]).sum(1)
        estimate = np.mean(caught / (caught + (negatives >= positives[:, None]).sum(1)))
        without = formulas.precision_without_itself(positives, negatives)
        expected = formulas.average_precision(estimate, variances, sizes, level, without)
        assert interval.method == "closed form"
        close(interval.estimate, estimate)
        close(limits(interval), expected)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_auto_of_recall(level, data):
    """Of several limits at once, without a key: the hull of a slope's limits and of a box."""
    scores, labels = data
    positives, negatives = (scores[labels == c].astype(float) for c in (True, False))
    interval = jm.confidence_interval(RECALL, scores, labels, confidence_level=level)
    assert interval.method == "closed form"
    expected = [formulas.recall(positives, negatives, t, level) for t in (0.1, LIMIT)]
    close(limits(interval), np.transpose(expected))
    close(interval.estimate, RECALL(scores, labels))
    for i, t in enumerate((0.1, LIMIT)):
        alone = partial(jm.recall_at_fpr, max_fpr=t)
        close(interval.standard_error[i], jm.standard_error(alone, scores, labels))
        one = jm.confidence_interval(alone, scores, labels, confidence_level=level)
        close(limits(one), limits(interval)[:, i])


@pytest.mark.slow
def test_several_limits_of_several_models_in_jit(data):
    """As many as models, of which each has classes of its own."""
    scores, labels = data
    given = np.stack([scores, -scores]), np.stack([labels, np.roll(labels, 1) | labels])
    found = jax.jit(partial(jm.confidence_interval, RECALL))(*given)
    for i in range(2):
        alone = jm.confidence_interval(RECALL, *(x[i] for x in given))
        close(limits(found)[:, i], limits(alone))
        close(found.standard_error[i], alone.standard_error)


def test_recall_by_amounts(data, rng):
    """Equal amounts are none, and unequal ones count as their effective size."""
    scores, labels = data
    metric = partial(jm.recall_at_fpr, max_fpr=LIMIT)
    alone = jm.confidence_interval(metric, scores, labels)
    equal = jm.confidence_interval(metric, scores, labels, amounts=np.full(200, 7.0))
    close(limits(equal), limits(alone))
    doubled = np.where(np.cumsum(labels) <= 12, 100.0, 1e-9)  # as if 12 positives were there
    few = jm.confidence_interval(metric, scores, labels, amounts=doubled)
    kept = ~labels | (np.cumsum(labels) <= 12)
    expected = jm.confidence_interval(metric, scores[kept], labels[kept])
    close(limits(few), limits(expected), rtol=1e-4)
    assert np.diff(limits(few), axis=0) > 1.5 * np.diff(limits(alone), axis=0)


def clusters_of(kind, labels):
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 14, len(labels))
    if kind == "one class":
        return np.where(labels, ids % 6, 6 + ids)
    if kind == "some mixed":
        return np.where(labels, ids % 6, ids)
    return ids


@pytest.fixture(scope="module")
def influences(data):
    """Of each metric, with its influence values."""
    scores, labels = data
    found = {
        metric: np.asarray(jm.influence(metric, scores, labels), float)
        for metric in (jm.roc_auc, partial(jm.recall_at_fpr, max_fpr=LIMIT))
    }
    # Clusters of other sizes change the shares of the classes, and this depends on them.
    slopes = jax.grad(lambda w: jm.average_precision(scores, labels, weights=w))
    with jax.enable_x64(True):
        phi = np.asarray(slopes(jnp.ones(200))) * np.where(labels, 60, 140)
    return {**found, jm.average_precision: phi}


@pytest.mark.parametrize("kind", ["one class", "some mixed", "mixed"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clusters(kind, level, data, influences):
    """The variance of the class sums of clusters, with degrees of freedom between Welch's and those
    of all clusters."""
    scores, labels = data
    clusters = clusters_of(kind, labels)
    for metric, phi in influences.items():
        found = jm.confidence_interval(
            metric, scores, labels, clusters=clusters, confidence_level=level
        )
        assert found.method == "logit"
        estimate = float(metric(scores, labels))
        expected, error = formulas.logit_t_of_clusters(estimate, phi, labels, clusters, level)
        close(limits(found), expected)
        close(found.standard_error, error)


def test_clusters_of_other_numbers_compile_nothing(caplog):
    """Of numbers of items and of clusters that no program had: they share those of positives."""
    rng = np.random.default_rng(8)
    recall = partial(jm.recall_at_fpr, max_fpr=LIMIT)

    def every(n, n_clusters):
        labels, clusters = np.arange(n) % 3 == 0, rng.integers(0, n_clusters, n)
        scores = rng.normal(size=(2, n)) + labels
        for metric in (jm.roc_auc, jm.average_precision, recall):
            jm.confidence_interval(metric, scores[0], labels, clusters=clusters)
        jm.compare(jm.roc_auc, scores, labels, clusters=clusters)

    every(300, 80)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        jax.jit(lambda x: x + 1)(1.0)
        assert any("Compiling" in r.getMessage() for r in caplog.records)
        caplog.clear()
        every(311, 83)
    assert [r.getMessage() for r in caplog.records if "Compiling" in r.getMessage()] == []


def test_mixed_clusters_are_draws_of_one_class(data):
    """All with both classes: t has the degrees of all, and the variance is that of sums."""
    scores, labels = data
    clusters = clusters_of("mixed", labels)
    assert all(len(set(labels[clusters == k])) == 2 for k in range(14))
    phi = np.asarray(jm.influence(jm.roc_auc, scores, labels), float)
    sums = np.bincount(clusters, phi / np.where(labels, labels.sum(), (~labels).sum()))
    kept, df = formulas.kept_and_df(np.bincount(clusters) * 1.0)
    assert 10 < df < 13
    error, estimate = np.sqrt(np.sum(sums**2) / kept), float(jm.roc_auc(scores, labels))
    found = jm.confidence_interval(jm.roc_auc, scores, labels, clusters=clusters)
    close(found.standard_error, error)
    close(limits(found), formulas.on_logit(estimate, error**2, df, 0.95))


@pytest.mark.filterwarnings("ignore:.*cluster")
def test_a_class_in_one_cluster_has_no_interval(data):
    scores, labels = data
    for positives in (labels, ~labels):
        clusters = np.where(positives, 0, 1 + np.arange(200) % 9)
        found = jm.confidence_interval(jm.roc_auc, scores, labels, clusters=clusters)
        assert np.isnan(limits(found)).all()
        assert np.isnan(found.standard_error)
        close(found.estimate, jm.roc_auc(scores, labels))


def test_scales_of_a_partial_area(data):
    """An interval says the same on each scale."""
    found = {
        scale: jm.confidence_interval(partial(PARTIAL, scale=scale), *data)
        for scale in ("range", "raw", "mcclish")
    }
    shares = limits(found["range"])
    assert (shares > 0).all()
    assert (shares < 1).all()
    chance = LIMIT**2 / 2
    maps = {
        "raw": (lambda share: share * LIMIT, LIMIT),
        "mcclish": (
            lambda share: (1 + (share * LIMIT - chance) / (LIMIT - chance)) / 2,
            LIMIT / (LIMIT - chance) / 2,
        ),
    }
    for scale, (of_share, unit) in maps.items():
        close(limits(found[scale]), of_share(shares))
        close(found[scale].estimate, of_share(found["range"].estimate))
        close(found[scale].standard_error, unit * found["range"].standard_error)
    metric = partial(PARTIAL, scale="mcclish")
    close(found["mcclish"].estimate, metric(*data))
    close(found["mcclish"].standard_error, jm.standard_error(metric, *data))


def test_windows_that_are_not_from_zero(data):
    band = partial(jm.partial_auc, min_fpr=0.1, max_fpr=0.4)
    interval = jm.confidence_interval(band, *data)
    assert interval.method == "logit"
    assert 0 <= interval.low < interval.estimate < interval.high <= 0.3
    two_way = partial(jm.partial_auc, max_fpr=0.4, min_tpr=0.3)
    interval = jm.confidence_interval(two_way, *data)
    assert interval.method == "logit"
    assert 0 <= interval.low < interval.estimate < interval.high <= 0.4 * 0.7
    # All the curve is the area, whichever way it is asked for.
    whole = jm.confidence_interval(partial(jm.partial_auc, max_fpr=1.0), *data, method="logit")
    close(limits(whole), limits(jm.confidence_interval(jm.roc_auc, *data, method="logit")))


def test_several_limits(data):
    """Closed forms take one limit at a time."""
    several = partial(jm.partial_auc, max_fpr=[0.1, 0.3])
    with pytest.raises(ValueError, match="one limit at a time"):
        jm.confidence_interval(several, *data)


def test_batch_and_masks(data, rng):
    scores, labels = data
    models = np.stack([scores, rng.permutation(scores)])
    where = rng.random(200) < 0.8
    spoiled = np.where(where, models, np.nan)
    found = jm.confidence_interval(jm.roc_auc, spoiled, labels, where=where)
    assert found.low.shape == found.standard_error.shape == (2,)
    for i in range(2):
        estimate, variances, sizes = moments(placements(models[i][where], labels[where]))
        close(limits(found)[:, i], formulas.auc(estimate, variances, sizes, 0.95))


def test_closed_forms_in_jit(data):
    compute = partial(jm.confidence_interval, PARTIAL)
    compiled = jax.jit(compute)
    found = compiled(*data)
    assert found.method == "closed form"
    close(limits(found), limits(compute(*data)))
    undefined = compiled(data[0], np.ones(200, bool))
    assert np.isnan(limits(undefined)).all()


# ---- from replicates


@pytest.fixture(scope="module")
def replicates(data):
    """Of the AUC, with the key and the number that the intervals are given."""
    return np.asarray(jm.bootstrap(jm.roc_auc, *data, key=KEY).replicates, float)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_percentile_and_basic(level, data, replicates):
    estimate = float(jm.roc_auc(*data))
    options = {"key": KEY, "confidence_level": level}
    expected = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    interval = jm.confidence_interval(jm.roc_auc, *data, method="percentile", **options)
    close(limits(interval), expected)
    close(interval.standard_error, replicates.std(ddof=1))
    assert interval.method == "percentile"
    basic = jm.confidence_interval(jm.roc_auc, *data, method="basic", **options)
    close(limits(basic), 2 * estimate - expected[::-1])


def test_bca(data, replicates):
    """B. Efron and R. Tibshirani, equations 14.10 to 14.14, with ties by half, and the
    acceleration of two samples."""
    parts = placements(*data)
    estimate = parts[0].mean()
    below = np.mean(replicates < estimate - 1e-6)
    equal = np.mean(np.abs(replicates - estimate) <= 1e-6)
    bias = stats.norm.ppf(below + equal / 2)
    centred = [(x - x.mean()) / len(x) for x in parts]
    third, second = (sum(np.sum(x**k) for x in centred) for k in (3, 2))
    acceleration = third / second**1.5 / 6
    assert abs(acceleration) > 1e-3
    z = bias + np.array([-Z, Z])
    shares = stats.norm.cdf(bias + z / (1 - acceleration * z))
    interval = jm.confidence_interval(jm.roc_auc, *data, method="bca", key=KEY)
    close(limits(interval), np.quantile(replicates, shares))
    result = jm.bootstrap(jm.roc_auc, *data, key=KEY)
    again = result.interval(method="bca", acceleration=acceleration)
    close(limits(again), limits(interval))
    close(result.interval(method="wald").high, estimate + Z * replicates.std(ddof=1))


def test_bca_of_one_sample_is_that_of_scipy():
    """Given SciPy's replicates, and the acceleration of its jackknife."""
    rng = np.random.default_rng(4)
    values = rng.gamma(2, size=30)
    expected = stats.bootstrap((values,), np.mean, method="BCa", rng=rng, n_resamples=1999)
    leave_out = (values.sum() - values) / 29
    deviations = leave_out.mean() - leave_out
    acceleration = np.sum(deviations**3) / np.sum(deviations**2) ** 1.5 / 6
    with jax.enable_x64(True):
        result = jm.BootstrapResult(
            jnp.asarray(values.mean()),
            jnp.asarray(expected.bootstrap_distribution),
            jnp.ones(()),
            jnp.zeros((), int),
        )
        interval = result.interval(method="bca", acceleration=acceleration)
    close(limits(interval), expected.confidence_interval, rtol=1e-9)


def test_limits_leave_out_what_is_undefined():
    values = np.random.default_rng(5).normal(size=(400, 2))
    values[:100, 1] = np.nan
    result = jm.BootstrapResult(jnp.zeros(2), jnp.asarray(values), jnp.ones(2), jnp.array([0, 100]))
    interval = result.interval(confidence_level=0.9)
    close(limits(interval)[:, 1], np.quantile(values[100:, 1], [0.05, 0.95]))
    for method in ("percentile", "basic", "bca"):
        every = jnp.where(jnp.arange(2) == 0, result.replicates, jnp.nan)
        nothing = jm.BootstrapResult(jnp.array([0, jnp.nan]), every, jnp.ones(2), jnp.zeros(2))
        found = limits(nothing.interval(method=method))
        np.testing.assert_array_equal(np.isnan(found), [[False, True]] * 2)


def test_bca_where_all_replicates_are_on_one_side():
    result = jm.BootstrapResult(
        jnp.ones(()), jnp.linspace(0.5, 0.9, 2000), jnp.ones(()), jnp.zeros(())
    )
    interval = result.interval(method="bca")
    assert 0.5 <= interval.low <= interval.high <= 0.9


def test_wilson(data):
    """Of as many draws as give the bootstrap's error, p (1 - p) / V, and no more than positives."""
    interval = BY_WILSON(*data)
    assert interval.method == "wilson"
    result = jm.bootstrap(RECALL, *data, key=KEY)
    close(interval.standard_error, result.standard_error)
    p = np.asarray(interval.estimate, float)
    n = np.minimum(p * (1 - p) / np.asarray(result.standard_error, float) ** 2, 60)
    assert n.min() < 60
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    margin = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    close(limits(interval), [middle - margin, middle + margin])


def test_methods_of_other_metrics(data):
    with pytest.raises(TypeError, match="key is missing"):
        jm.confidence_interval(RECALL, *data, method="wilson")
    with pytest.raises(ValueError, match="method='wilson' is for recall_at_fpr"):
        jm.confidence_interval(jm.roc_auc, *data, method="wilson", key=KEY)
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    with pytest.raises(TypeError, match="method='bca' needs influence values"):
        jm.confidence_interval(threshold, *data, method="bca", key=KEY)
    with pytest.raises(TypeError, match="is not known to be smooth"):
        jm.confidence_interval(threshold, *data, method="logit")
    with pytest.raises(ValueError, match="method='closed form' is for roc_auc"):
        jm.confidence_interval(threshold, *data, method="closed form")


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
