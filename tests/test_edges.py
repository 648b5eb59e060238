"""Cases at the edge: data closed over, sums that round, options and data that are not allowed."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk

import jaxmetrics as jm
from jaxmetrics._base import primitives

SCORES = [0.1, 0.4, 0.35, 0.8]
LABELS = [0, 1, 0, 1]


def by_amount(amounts, **options):
    return jm.recall_at_fpr(SCORES, LABELS, max_fpr=0.1, amounts=amounts, **options)


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint, jax.vmap])
def test_concrete_arrays_closed_over(transform):
    labels, weights, where = jnp.array(LABELS), jnp.ones(4), jnp.ones(4, bool)

    def metric(scores):
        total = jm.roc_auc(scores, labels, weights=weights, where=where)
        total += jm.recall_at_fpr(scores, labels, max_fpr=0.1, amounts=weights)
        return total + jm.one_vs_rest(jm.roc_auc)(jnp.stack([-scores, scores], 1), labels)

    scores = jnp.array(SCORES)
    value = transform(metric)(scores[None] if transform is jax.vmap else scores)
    np.testing.assert_allclose(value, 3, rtol=1e-6)
    bad = jnp.array([0, 1, 2, 1])
    with pytest.raises(ValueError, match="got 2"):
        jax.jit(lambda s: jm.roc_auc(s, bad))(scores)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_outside_of_a_transform_nothing_is_traced(transform):
    """Also if the first call of all was within one: eager calls would be programs of JAX's."""
    primitives._trace_states.cache_clear()
    inside = []

    def function(x):
        inside.append(primitives.is_top_level())
        return x

    transform(function)(jnp.ones(1))
    assert inside == [False]
    assert primitives.is_top_level()


def test_sampled_auc_under_transforms():
    def sampled(key):
        return jm.roc_auc_sampled(key, SCORES, [0, 1, 0, 0], n_pairs=500)

    keys = jax.random.split(jax.random.key(3), 4)
    expected = [float(sampled(key)) for key in keys]
    np.testing.assert_allclose(jax.jit(jax.vmap(sampled))(keys), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(sampled)(keys[0]), expected[0], rtol=1e-6)
    assert sampled(jax.random.PRNGKey(3)) == sampled(jax.random.key(3))
    assert np.isnan(jm.roc_auc_sampled(jax.random.key(0), [], [], n_pairs=5))


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_weights_stand_still_over_rows_of_the_other_class(seed):
    rng = np.random.default_rng(seed)
    n = 600
    weights, scores = rng.random(n), np.arange(n, 0, -1.0)
    labels = np.zeros(n, int)
    labels[: n // 2] = rng.integers(0, 2, n // 2)
    labels[0] = 1
    last = scores[labels == 1].min()
    with jax.enable_x64(True):
        fpr, tpr, _ = jm.roc_curve(scores, labels, weights=weights)
        assert (np.diff(tpr) >= 0).all()
        assert (np.diff(fpr) >= 0).all()
        assert tpr[np.flatnonzero(labels)[-1] + 1] == 1
        value, threshold = jm.precision_at_recall(
            scores, labels, weights=weights, min_recall=1.0, return_threshold=True
        )
        assert threshold == last
        flagged = scores >= last
        expected = (weights * labels)[flagged].sum() / weights[flagged].sum()
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        assert jm.threshold_at_fpr(scores, labels, weights=weights, max_fpr=1.0) == last
        ours = jm.drop_intermediate(jm.precision_recall_curve(scores, labels, weights=weights))
        theirs = sk.precision_recall_curve(
            labels, scores, sample_weight=weights, drop_intermediate=True
        )
        assert abs(len(ours.recall) - len(theirs[0])) <= 2


@pytest.mark.parametrize("weight", [1, 0.1, 0.3, 1 / 3, 0.7, 0.9, 1.1])
def test_equal_weights_do_not_move_a_limit(weight):
    scores, labels = np.arange(101, 0, -1.0), np.zeros(101)
    labels[1] = 1
    weights = np.full(101, weight)
    assert jm.recall_at_fpr(scores, labels, weights=weights, max_fpr=0.01) == 1
    value = jm.sensitivity_at_specificity(scores, labels, weights=weights, min_specificity=0.99)
    assert value == 1


def test_a_limit_before_the_first_point():
    options = {"max_fpr": [0.1, 1.0], "method": "linear"}
    threshold = jm.threshold_at_fpr([3.0, 2.0, 1.0], [0, 1, 0], **options)
    assert threshold.tolist() == [np.inf, 1]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (lambda x: jm.recall_at_fpr(SCORES, LABELS, max_fpr=x), -0.5),
        (lambda x: jm.recall_at_fpr(SCORES, LABELS, max_fpr=x, method="linear"), jnp.nan),
        (lambda x: jm.recall_at_fpr(SCORES, LABELS, max_fpr=x, method="quantile"), 1.5),
        (lambda x: jm.threshold_at_fpr(SCORES, LABELS, max_fpr=x), 7.0),
        (lambda x: jm.partial_auc(SCORES, LABELS, max_fpr=x), 5.0),
        (lambda x: jm.partial_auc(SCORES, LABELS, max_fpr=x, min_fpr=0.5), 0.1),
        (lambda x: jm.partial_auc(SCORES, LABELS, max_fpr=0.1, min_fpr=x), 0.5),
        (lambda x: jm.partial_auc(SCORES, LABELS, max_fpr=x, min_fpr=x), 0.5),
        (lambda x: jm.precision_at_recall(SCORES, LABELS, min_recall=x), jnp.nan),
        (lambda x: jm.sensitivity_at_specificity(SCORES, LABELS, min_specificity=x), jnp.nan),
        (lambda x: jm.min_cost_threshold(SCORES, LABELS, fp_cost=x), -1.0),
        (
            lambda x: jm.roc_auc(SCORES, LABELS, weights=jnp.array([1, 1, 1, 1.0]).at[0].set(x)),
            -1.0,
        ),
        (lambda x: by_amount(jnp.ones(4).at[1].set(x)), -0.5),
        (lambda x: by_amount(jnp.ones(4).at[1].set(x), method="linear"), jnp.inf),
        (lambda x: by_amount(x * jnp.ones(4)), -1.0),
        (lambda x: by_amount(x * jnp.ones(4), method="quantile"), 1e30),
        (lambda x: jm.average_precision(SCORES, jnp.array(LABELS, float).at[0].set(x)), 2.0),
    ],
)
def test_what_an_eager_call_refuses_is_nan_when_traced(metric, value):
    assert np.isnan(jax.jit(metric)(value))
    with pytest.raises(ValueError, match="must be"):
        metric(value)


def test_traced_amounts_that_do_not_count_may_be_anything():
    scores, labels = [0.1, 0.4, 0.35, 0.8, 0.2], [0, 1, 0, 1, 1]
    amounts = jnp.array([-1.0, 2.0, jnp.nan, 1.0, -5.0])
    metric = partial(jm.recall_at_fpr, max_fpr=0.1, where=jnp.arange(5) < 4)
    assert jax.jit(metric)(scores, labels, amounts=amounts) == 1
    assert metric(scores, labels, amounts=amounts) == 1


def test_empty_inputs():
    assert np.isnan(jm.one_vs_one(jm.roc_auc)(np.zeros((0, 3)), np.zeros(0, int)))
    assert np.isnan(jm.roc_auc(jm.ScoreTable(*[jnp.zeros(0)] * 3)))


@pytest.mark.parametrize("clusters", [None, []])
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_a_mean_of_nothing_is_undefined(shape, clusters):
    with pytest.warns(UserWarning, match="a mean without a valid value is NaN"):
        assert np.isnan(jm.mean_interval(np.zeros(shape), clusters=clusters).estimate).all()
    if len(shape) > 1:
        assert np.isnan(jm.compare_means(np.zeros(shape), clusters=clusters).estimate).all()


def test_intervals_say_why_they_are_undefined():
    with_nan = np.array([SCORES, [0.1, np.nan, 0.3, 0.8]])
    few = pytest.warns(UserWarning, match="there are only 2")
    with few, pytest.warns(UserWarning, match="the metric is undefined in 1 of 2 values"):
        jm.confidence_interval(jm.roc_auc, with_nan, LABELS)
    with pytest.warns(UserWarning, match="the metric is undefined, as a class is absent"):
        jm.confidence_interval(jm.roc_auc, SCORES, [0, 0, 0, 0], method="wald")
    with pytest.warns(UserWarning, match="undefined.*where=~isnan"):
        jm.operating_point(with_nan[1], LABELS, max_fpr=0.5)
    with pytest.warns(UserWarning, match=r"as a value is.*where=isfinite"):
        jm.mean_interval(with_nan[1])


UNDEFINED = {
    "value": partial(jm.compare_to_value, jm.roc_auc, value=0.5),
    "permutation": partial(jm.permutation_test, jm.roc_auc, key=jax.random.key(0), n_resamples=9),
    "size": partial(jm.sample_size, jm.roc_auc, difference=0.1),
    "power": partial(jm.power, jm.roc_auc, difference=0.1),
    "compare": partial(jm.compare, jm.roc_auc),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_results_say_why_they_are_undefined(name):
    both = np.stack([SCORES, SCORES[::-1]])
    with pytest.warns(UserWarning, match="the metric is undefined, as a class is absent"):
        UNDEFINED[name](both, [0, 0, 0, 0])


def test_undefined_groups_are_named():
    labels, groups = np.arange(12) % 2, np.repeat(["a", "b", "c"], 4)
    scores = np.where(np.arange(12) == 5, np.nan, np.sin(np.arange(12)))
    few = pytest.warns(UserWarning, match="group a has 2 positives")
    with few, pytest.warns(UserWarning, match=r"of group b is undefined.*other groups are"):
        jm.compare_samples(jm.roc_auc, scores, labels, groups=groups)


def test_a_level_that_is_alpha_is_doubted():
    few = pytest.warns(UserWarning, match="there are only 2")
    with few, pytest.warns(UserWarning, match=r"0\.05 is low: write 0\.95"):
        jm.confidence_interval(jm.roc_auc, SCORES, LABELS, confidence_level=0.05)


def test_integer_tables_stay_exact():
    table = jm.score_table(np.arange(50, 0, -1.0), np.arange(50) == 1)
    limit = np.array([1 / 49, np.nextafter(1 / 49, 0)])
    assert jm.recall_at_fpr(table, max_fpr=limit).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"weights": -np.ones(3)}, ValueError, "weights must be finite"),
        ({"weights": np.ones(2)}, ValueError, "one entry for each of the 3 items"),
        ({"weights": 1.0}, ValueError, "one entry for each of the 3 items"),
        ({"where": np.ones(3)}, TypeError, "where must be bool"),
    ],
)
def test_weights_and_masks_of_class_averages(options, error, words):
    scores, truth = np.eye(3), np.eye(3, dtype=int)
    for call in (
        partial(jm.multilabel(jm.roc_auc, "samples"), scores, truth),
        partial(jm.multilabel(jm.roc_auc, "micro"), scores, truth),
        partial(jm.one_vs_rest(jm.roc_auc), scores, [0, 1, 2]),
        partial(jm.one_vs_one(jm.roc_auc), scores, [0, 1, 2]),
    ):
        with pytest.raises(error, match=words):
            call(**options)


def test_arrays_of_odd_dtypes():
    scores = np.array(SCORES)
    for odd in (scores.astype(">f8"), scores.astype(np.longdouble), scores.astype(">f4")):
        assert jm.roc_auc(odd, np.array(LABELS, ">i4")) == 1


def test_options_of_a_users_metric():
    @jm.table_metric
    def weighted_sum(table, *, factors):
        return jnp.sum(table.positives) * jnp.sum(jnp.asarray(factors))

    assert weighted_sum(SCORES, LABELS, factors=(1.0, 2.0)) == 6
    assert weighted_sum(SCORES, LABELS, factors=np.ones(2)) == 4
    with pytest.raises(TypeError, match=r"option factors.*numpy.asarray"):
        weighted_sum(SCORES, LABELS, factors=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"option of .* may not be named weights"):
        jm.table_metric(lambda table, *, weights: 0)


def test_inference_refuses_a_batch_without_rows():
    scores, labels = np.zeros((0, 4)), [0, 1, 0, 1]
    interval = partial(jm.confidence_interval, jm.roc_auc)
    for call in (
        partial(jm.standard_error, jm.roc_auc),
        partial(jm.influence, jm.roc_auc),
        partial(jm.bootstrap, jm.roc_auc, key=jax.random.key(0)),
        interval,
        partial(interval, clusters=labels),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of classes that are small in no row
            with pytest.raises(ValueError, match=r"at least one row, got scores \[0, 4\]"):
                call(scores, labels)
    with pytest.raises(ValueError, match="at least one row"):
        jm.bootstrap_mean(scores, key=jax.random.key(0))
    assert jm.roc_auc(scores, labels).shape == (0,)


def test_no_specificity_is_a_sensitivity_of_1(rng):
    """What rounding leaves of all the weight is no specificity below 0."""
    labels, weights = np.arange(40) % 3 == 0, rng.random((200, 40))
    scores = rng.normal(size=(200, 40)).round(1).astype("float32")
    call = partial(jm.sensitivity_at_specificity, min_specificity=0.0, return_threshold=True)
    for function in (call, jax.jit(lambda *x, weights: call(*x, weights=weights))):
        found = function(scores, labels, weights=weights)
        assert (found.value == 1).all()
        np.testing.assert_array_equal(found.threshold, scores[:, labels].min(axis=1))
    for row, weight in zip(scores, weights, strict=True):
        assert call(row, labels, weights=weight).value == 1
