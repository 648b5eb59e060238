"""What must hold of every metric, whatever it computes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import BY_NAME, CURVES, EVERY_METRIC, sample

import jaxmetrics as jm


def close(a, b, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


@EVERY_METRIC
def test_permutation(entry, rng):
    scores, labels, weights = sample(rng)
    order = rng.permutation(len(scores))
    expected = entry.metric(scores, labels, weights=weights)
    close(entry.metric(scores[order], labels[order], weights=weights[order]), expected)


@EVERY_METRIC
def test_monotone_transform(entry, rng):
    scores, labels, weights = sample(rng)
    expected = entry.metric(scores, labels, weights=weights)
    value = entry.metric(np.exp(scores.astype(float)), labels, weights=weights)
    if entry.threshold and entry.rank_only:
        close(value, np.exp(np.asarray(expected, float)), rtol=1e-5)
    elif entry.rank_only:
        close(value, expected)


@EVERY_METRIC
def test_integer_weights_equal_copies(entry, rng):
    scores, labels, _ = sample(rng)
    copies = rng.integers(0, 4, len(scores))
    copies[:2] = 1
    repeated = (np.repeat(scores, copies), np.repeat(labels, copies))
    close(entry.metric(scores, labels, weights=copies), entry.metric(*repeated))


@EVERY_METRIC
@pytest.mark.parametrize("weighted", [False, True])
def test_where_equals_deletion(entry, weighted, rng):
    scores, labels, weights = sample(rng)
    labels = labels.astype(int)
    keep = rng.random(len(scores)) < 0.7
    keep[:2] = True
    options = {"weights": weights[keep]} if weighted else {}
    expected = entry.metric(scores[keep], labels[keep], **options)
    for garbage in (np.nan, np.inf, -np.inf, 1e30):
        spoiled = np.where(keep, scores, garbage).astype("float32")
        options = {"weights": np.where(keep, weights, np.nan)} if weighted else {}
        value = entry.metric(spoiled, np.where(keep, labels, -1), where=keep, **options)
        close(value, expected)


@EVERY_METRIC
def test_zero_weight_equals_deletion(entry, rng):
    scores, labels, weights = sample(rng)
    weights[5:20] = 0
    keep = weights > 0
    expected = entry.metric(scores[keep], labels[keep], weights=weights[keep])
    spoiled = np.where(keep, scores, np.nan).astype("float32")
    close(entry.metric(scores, labels, weights=weights), expected)
    close(entry.metric(spoiled, labels, weights=weights), expected)


@EVERY_METRIC
def test_scale_of_weights(entry, rng):
    if "quantile" in entry.name or "order-statistic" in entry.name:
        pytest.skip("a quantile counts copies, so the scale of the weights is part of its meaning")
    scores, labels, weights = sample(rng)
    expected = entry.metric(scores, labels, weights=weights)
    weights = weights.astype(float)
    for scale in (7.5, 1e200, 1e-200):  # of the last two, products overflow or vanish
        close(entry.metric(scores, labels, weights=scale * weights), expected)


@EVERY_METRIC
def test_a_nan_score_spoils_its_row_alone(entry, rng):
    scores, labels, weights = sample(rng, batch=(3,))
    expected = entry.metric(scores, labels)
    scores[1, 7] = np.nan
    for options in ({}, {"weights": np.ones_like(weights)}):
        value = np.asarray(entry.metric(scores, labels, **options))
        assert np.isnan(value[1]).all()
        close(value[[0, 2]], np.asarray(expected)[[0, 2]])


@EVERY_METRIC
def test_infinite_scores_are_scores(entry, rng):
    if not entry.rank_only or entry.threshold:
        pytest.skip("the value is measured in scores")
    scores, labels, _ = sample(rng)
    infinite = np.where(scores == scores.max(), np.inf, scores)
    infinite = np.where(scores == scores.min(), -np.inf, infinite)
    close(entry.metric(infinite, labels), entry.metric(scores, labels))


@EVERY_METRIC
def test_absent_classes(entry):
    scores = np.array([0.1, 0.2, 0.3], "float32")
    if entry.needs_both:
        assert np.isnan(np.asarray(entry.metric(scores, [1, 1, 1]))).all()
        assert np.isnan(np.asarray(entry.metric(scores, [0, 0, 0]))).all()
    for nothing in ([], np.zeros((2, 0))):
        assert np.isnan(np.asarray(entry.metric(nothing, np.zeros_like(nothing)))).all()
    masked = entry.metric(scores, [0, 1, 1], where=np.zeros(3, bool))
    assert np.isnan(np.asarray(masked)).all()
    weightless = entry.metric(scores, [0, 1, 1], weights=np.zeros(3))
    assert np.isnan(np.asarray(weightless)).all()


@EVERY_METRIC
def test_one_item_and_two(entry):
    one = np.asarray(entry.metric([0.5], [1]))
    assert np.isnan(one).all() or not entry.needs_both
    two = np.asarray(entry.metric([0.25, 0.75], [0, 1]))
    assert np.isfinite(two).all()


@EVERY_METRIC
def test_a_table_gives_what_its_scores_give(entry, rng):
    scores, labels, weights = sample(rng, batch=(2, 3))
    expected = entry.metric(scores, labels, weights=weights)
    close(entry.metric(jm.score_table(scores, labels, weights=weights)), expected, rtol=1e-5)
    close(entry.metric(jm.score_table(scores, labels)), entry.metric(scores, labels))


@EVERY_METRIC
def test_batch_axes_broadcast(entry, rng):
    scores, _, _ = sample(rng, batch=(4, 1))
    _, labels, weights = sample(rng, batch=(3,))
    value = np.asarray(entry.metric(scores, labels, weights=weights))
    assert value.shape[:2] == (4, 3)
    for i in range(4):
        for j in range(3):
            close(value[i, j], entry.metric(scores[i, 0], labels[j], weights=weights[j]))


@pytest.mark.parametrize(
    "name",
    [
        "roc_auc",
        pytest.param("recall-quantile", marks=pytest.mark.slow),
        pytest.param("threshold-step", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "dtype", ["float16", jnp.bfloat16, "float32", "int8", "int16", "int32", "int64", "uint8"]
)
def test_dtypes_of_scores(name, dtype, rng):
    metric = BY_NAME[name].metric
    scores, labels, _ = sample(rng)
    scores = np.clip(np.round(scores * 10) + 40, 0, 100)  # exact in every dtype
    close(metric(scores.astype(dtype), labels), metric(scores, labels))


@pytest.mark.parametrize("name", CURVES)
def test_masked_and_weightless_items_repeat_points(name, rng):
    scores, labels, weights = sample(rng)
    keep = rng.random(len(scores)) < 0.6
    keep[:2] = True
    expected = jm.drop_intermediate(CURVES[name](scores[keep], labels[keep], weights=weights[keep]))
    spoiled = np.where(keep, scores, np.nan).astype("float32")
    for options in ({"weights": weights, "where": keep}, {"weights": weights * keep}):
        curve = CURVES[name](spoiled, labels, **options)
        assert all(len(x) == len(scores) + 1 for x in curve)
        for a, b in zip(jm.drop_intermediate(curve), expected, strict=True):
            close(a, b)


def problems():
    """Scores with many ties, labels, and which of the items count; one shape, compiled once."""
    n = 20
    scores = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    flags = st.lists(st.booleans(), min_size=n, max_size=n)
    return st.tuples(scores.map(np.array), flags.map(np.array), flags.map(np.array))


@given(problems())
def test_complement(problem):
    """Negated scores with the classes exchanged give the same AUC, one minus it when not."""
    scores, labels, where = problem
    auc = jm.roc_auc(scores, labels, where=where)
    close(jm.roc_auc(-scores, ~labels, where=where), auc)
    close(jm.roc_auc(-scores, labels, where=where), 1 - auc)
    close(jm.roc_auc(scores, ~labels, where=where), 1 - auc)


@given(problems(), st.floats(0.01, 0.99))
def test_partial_areas_add_up(problem, cut):
    scores, labels, where = problem
    left = jm.partial_auc(scores, labels, where=where, max_fpr=cut)
    right = jm.partial_auc(scores, labels, where=where, min_fpr=cut)
    close(left + right, jm.roc_auc(scores, labels, where=where), rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "roc_auc",
        pytest.param("partial_auc", marks=pytest.mark.slow),
        "average_precision",
        "recall-linear",
    ],
)
def test_gradient_is_zero_where_masked(name, rng):
    scores, labels, weights = sample(rng)
    keep = rng.random(len(scores)) < 0.6
    keep[:2] = True
    spoiled = np.where(keep, scores, np.nan).astype("float32")

    @jax.jit
    @partial(jax.grad, argnums=2)
    def slopes(scores, labels, weights, where=None):
        return jnp.sum(BY_NAME[name].metric(scores, labels, weights=weights, where=where))

    gradient = np.asarray(slopes(spoiled, labels, weights, keep))
    kept = slopes(scores[keep], labels[keep], weights[keep])
    assert (gradient[~keep] == 0).all()
    close(gradient[keep], kept, rtol=1e-4)
