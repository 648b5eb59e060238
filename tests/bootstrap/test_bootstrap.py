"""The bootstrap: theory, the same key, several models, and what is undefined."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from registry import sample
from resamples import FEW, KEY, N, close, problem, replicates

import jaxmetrics as jm
from jaxmetrics.inference._intervals.interval import limits_of_replicates

# ---- theory


@pytest.mark.parametrize("ties", [True, marked(False, fast=False)])
def test_spread_of_the_auc(ties):
    """The variance of the bootstrap AUC has a closed form."""
    data, n_resamples = problem(1, ties), 20_000
    positive, negative = data.scores[0][data.labels], data.scores[0][~data.labels]
    difference = positive[:, None] - negative
    wins = (difference > 0) + (difference == 0) / 2
    area, (n1, n0) = wins.mean(), wins.shape
    v10, v01 = wins.mean(axis=1).var(), wins.mean(axis=0).var()
    within = area - np.mean(difference == 0) / 4 - area**2
    variance = (within + (n0 - 1) * v10 + (n1 - 1) * v01) / (n0 * n1)
    options = {"key": KEY, "n_resamples": n_resamples, "batch": 128}  # of the program of few
    result = jm.bootstrap(jm.roc_auc, data.scores[0], data.labels, **options)
    close(result.estimate, area)
    error = np.sqrt(variance)
    assert abs(result.standard_error / error - 1) < 4 / np.sqrt(2 * n_resamples)
    assert abs(np.mean(result.replicates) - area) < 4 * error / np.sqrt(n_resamples)
    assert result.n_undefined == 0


def resampled_by_numpy(data, n_resamples):
    rng = np.random.default_rng(3)
    classes = [np.flatnonzero(data.labels == c) for c in (False, True)]
    index = np.concatenate([rng.choice(c, (n_resamples, len(c))) for c in classes], axis=1)
    return data.scores[0][index], data.labels[index]


@pytest.mark.parametrize(
    ("metric", "ties"),
    [
        pytest.param(partial(jm.partial_auc, max_fpr=0.1), True, marks=pytest.mark.slow),
        pytest.param(jm.average_precision, False, marks=pytest.mark.slow),
        pytest.param(partial(jm.partial_auc, max_fpr=0.1), False, marks=pytest.mark.slow),
        pytest.param(jm.average_precision, True, marks=pytest.mark.slow),
        pytest.param(partial(jm.recall_at_fpr, max_fpr=0.05), True, marks=pytest.mark.slow),
        pytest.param(partial(jm.recall_at_fpr, max_fpr=0.05), False, marks=pytest.mark.slow),
    ],
)
def test_against_numpy(metric, ties):
    """Where only the items of the highest scores are drawn, and where negatives are in runs."""
    data = problem(2, ties)
    got = replicates(metric, data.scores[0], data.labels, n_resamples=20_000)
    expected = np.asarray(metric(*resampled_by_numpy(data, 5000)))
    error = expected.std() * np.sqrt(1 / 20_000 + 1 / 5000)
    assert abs(got.mean() - expected.mean()) < 4 * error
    kurtosis = np.mean((expected - expected.mean()) ** 4) / expected.var() ** 2
    error_of_spread = np.sqrt((kurtosis - 1) / 4 * (1 / 20_000 + 1 / 5000))
    assert abs(got.std() / expected.std() - 1) < 4 * error_of_spread
    for share in (0.025, 0.975):
        tail = np.mean(got <= np.quantile(expected, share))
        below = np.mean(expected <= np.quantile(expected, share))
        assert abs(tail - below) < 4 * np.sqrt(below * (1 - below) / 5000) + 1e-3


# ---- the same key, the same answer


def test_any_chunk_gives_the_same(data):
    for scores, options in (
        (data.scores[0], {"batch": 37}),
        (data.scores, {"memory_budget": 20_000}),
    ):
        expected = replicates(jm.roc_auc, scores, data.labels)
        got = replicates(jm.roc_auc, scores, data.labels, **options)
        np.testing.assert_array_equal(got, expected)


def test_keys(data):
    scores, labels = data.scores[0], data.labels
    first = replicates(jm.roc_auc, scores, labels)
    np.testing.assert_array_equal(replicates(jm.roc_auc, scores, labels), first)
    # More resamples begin with the same.
    more = replicates(jm.roc_auc, scores, labels, n_resamples=3 * FEW)
    np.testing.assert_array_equal(more[:FEW], first)
    other = replicates(jm.roc_auc, scores, labels, key=jax.random.key(6))
    assert (first != other).mean() > 0.9
    raw = replicates(jm.roc_auc, scores, labels, key=jax.random.key_data(KEY))
    np.testing.assert_array_equal(raw, first)


def test_intervals_of_results_that_were_saved_or_are_a_batch(data):
    found = jm.bootstrap(jm.roc_auc, data.scores, data.labels, key=KEY, n_resamples=FEW)
    for method in ("percentile", "bca", "wald"):
        saved = jax.device_get(found).interval(method=method)
        jax.tree.map(close, saved, found.interval(method=method))
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), found)
    with pytest.raises(ValueError, match=r"write jax\.vmap\(lambda result: result\.interval"):
        batch.interval()
    each = jax.vmap(lambda result: result.interval())(batch)
    close(each.low, np.stack([found.interval().low] * 2))


@pytest.mark.slow  # the next has a program of a batch
def test_jit(data):
    def result(scores, labels):
        return jm.bootstrap(jm.roc_auc, scores, labels, key=KEY, n_resamples=FEW)

    jax.tree.map(close, jax.jit(result)(data.scores, data.labels), result(data.scores, data.labels))


def test_a_program_over_problems_that_may_be_undefined(data):
    """Under jit and vmap each is resampled as it would be alone, and what is undefined is NaN."""
    scores, labels = np.stack([data.scores[0]] * 6), np.stack([data.labels] * 6)
    where = np.stack([labels[0], ~labels[0], labels[0] & ~labels[0], *np.ones((3, N), bool)])
    scores[3, 17] = np.nan
    scores[5] = data.scores[1]

    def result(scores, labels, where):
        return jm.bootstrap(jm.roc_auc, scores, labels, where=where, key=KEY, n_resamples=FEW)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jax.jit(jax.vmap(result))(scores, labels, where)
    for leaf in (found.estimate, found.replicates, found.standard_error):
        assert np.isnan(leaf[:4]).all()
        assert np.isfinite(leaf[4:]).all()
    np.testing.assert_array_equal(found.n_undefined, [FEW] * 4 + [0] * 2)
    for row, model in zip(found.replicates[4:], data.scores, strict=True):
        close(row, replicates(jm.roc_auc, model, data.labels))
    for i in range(4):
        with pytest.warns(UserWarning, match="undefined"):
            alone = result(scores[i], labels[i], where[i])
        assert np.isnan(alone.estimate)
        assert np.isnan(alone.replicates).all()
        assert np.isnan(alone.standard_error)
        assert alone.n_undefined == FEW


def test_x64_mode(data):
    single = replicates(jm.roc_auc, data.scores[0], data.labels)
    with jax.enable_x64(True):
        double = replicates(jm.roc_auc, data.scores[0], data.labels)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(double.astype("float32"), single)


def test_strict_promotion_of_the_callers(data):
    expected = replicates(jm.roc_auc, data.scores[0], data.labels)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        got = replicates(jm.roc_auc, data.scores[0], data.labels)
    np.testing.assert_array_equal(got, expected)


def test_double_precision_scores_do_not_tie(data):
    order = np.argsort(np.argsort(data.scores[0] + 1e-3 * np.arange(N)))
    close_together = 1 + order * 1e-12
    assert len(np.unique(close_together.astype("float32"))) == 1
    got = replicates(jm.roc_auc, close_together, data.labels)
    np.testing.assert_array_equal(got, replicates(jm.roc_auc, order, data.labels))


def test_other_containers(data):
    expected = replicates(jm.roc_auc, data.scores[0], data.labels)
    given = data.scores[0].tolist(), data.labels.astype(int).tolist()
    np.testing.assert_array_equal(replicates(jm.roc_auc, *given), expected)
    on_device = jnp.asarray(data.scores[0]), jnp.asarray(data.labels)
    np.testing.assert_array_equal(replicates(jm.roc_auc, *on_device), expected)


# ---- several models


def test_models_are_paired(data):
    pair = replicates(jm.roc_auc, data.scores, data.labels)
    swapped = replicates(jm.roc_auc, data.scores[::-1], data.labels)
    np.testing.assert_array_equal(swapped, pair[:, ::-1])
    same = replicates(jm.roc_auc, data.scores[[1, 1]], data.labels)
    np.testing.assert_array_equal(same, pair[:, [1, 1]])
    # The models share the noise of the sample, so that their difference varies less.
    assert np.corrcoef(pair.T)[0, 1] > 0.5


def test_labels_that_differ_along_the_batch(data, rng):
    labels = np.stack([data.labels, rng.permutation(data.labels)])
    got = jm.bootstrap(jm.roc_auc, data.scores, labels, key=KEY, n_resamples=FEW)
    for i in range(2):
        alone = jm.bootstrap(jm.roc_auc, data.scores[i], labels[i], key=KEY, n_resamples=FEW)
        close(got.estimate[i], alone.estimate)
        close(got.replicates[:, i], alone.replicates)
    # A batch of two axes, of which the scores have one and the labels the other.
    both = jm.bootstrap(jm.roc_auc, data.scores[:, None], labels, key=KEY, n_resamples=FEW)
    assert both.replicates.shape == (FEW, 2, 2)
    close(both.replicates[:, [0, 1], [0, 1]], got.replicates)


def test_axes_of_length_one(data):
    got = replicates(jm.roc_auc, data.scores[:1], data.labels[None])
    assert got.shape == (FEW, 1)
    close(got[:, 0], replicates(jm.roc_auc, data.scores[0], data.labels))


def test_where_equals_deletion(data):
    """Of one model, whose runs do not see what is left out."""
    scores, labels, where = data.scores[0], data.labels, data.where
    extra = np.concatenate([np.full(15, np.nan), scores]).astype("float32")
    got = replicates(
        jm.roc_auc,
        extra,
        np.concatenate([np.full(15, -1), labels]),
        where=np.arange(N + 15) >= 15,
    )
    np.testing.assert_array_equal(got, replicates(jm.roc_auc, scores, labels))
    short = replicates(jm.roc_auc, scores[where], labels[where])
    np.testing.assert_array_equal(replicates(jm.roc_auc, scores, labels, where=where), short)


# ---- what is undefined


def test_resamples_that_lack_a_class(data):
    labels = np.arange(N) < 2
    with pytest.warns(UserWarning, match="resamples have items of one class only"):
        result = jm.bootstrap(
            jm.roc_auc, data.scores[0], labels, key=KEY, n_resamples=5000, stratify=False
        )
    lacking = (1 - 2 / N) ** N
    error = np.sqrt(lacking * (1 - lacking) / 5000)
    assert abs(result.n_undefined / 5000 - lacking) < 4 * error
    assert np.isnan(result.replicates).sum() == result.n_undefined
    assert np.isfinite(result.standard_error)
    close(result.standard_error, np.nanstd(result.replicates, ddof=1), rtol=1e-5)
    assert np.isfinite(result.interval().low)


def test_a_model_with_nan_does_not_spoil_others(data):
    scores = data.scores.copy()
    scores[1, 7] = np.nan
    with pytest.warns(UserWarning, match="undefined"):
        result = jm.bootstrap(jm.roc_auc, scores, data.labels, key=KEY, n_resamples=FEW)
    expected = replicates(jm.roc_auc, data.scores, data.labels)
    np.testing.assert_array_equal(result.replicates[:, 0], expected[:, 0])
    assert np.isnan(result.replicates[:, 1]).all()
    np.testing.assert_array_equal(result.n_undefined, [0, FEW])


def test_no_items():
    with pytest.warns(UserWarning, match="undefined"):
        result = jm.bootstrap(jm.roc_auc, [], [], key=KEY, n_resamples=FEW)
    assert np.isnan(result.estimate)
    assert np.isnan(result.replicates).all()


def test_a_row_without_weight_leaves_the_others_theirs(rng):
    scores, labels = rng.normal(size=(2, 50)), rng.random((2, 50)) < 0.4
    weights = np.array([[1.0], [0.0]]) * np.ones(50)
    given = {"key": KEY, "n_resamples": FEW}
    with pytest.warns(UserWarning, match="undefined"):
        found = jm.bootstrap(jm.roc_auc, scores, labels, weights=weights, **given)
    alone = jm.bootstrap(jm.roc_auc, scores[0], labels[0], weights=weights[0], **given)
    close(found.replicates[:, 0], alone.replicates)
    assert np.isnan(found.replicates[:, 1]).all()


def test_replicates_that_are_nan_are_counted_and_said(rng):
    """A user's precision is 0 / 0 in rows that a resample draws no items of."""

    def best_f1(table):
        tps, fps = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
        precision, recall = tps / (tps + fps), tps / tps[-1]
        return jnp.max(2 * precision * recall / (precision + recall))

    def guarded(table):
        tps, fps = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
        return jnp.max(2 * tps / (tps + fps + tps[-1]))

    scores, labels, _ = sample(rng, 60, ties=False)
    with pytest.warns(UserWarning, match="have both classes, but the metric is NaN"):
        result = jm.bootstrap(best_f1, scores, labels, key=KEY, n_resamples=FEW)
    assert result.n_undefined == np.isnan(result.replicates).sum() > FEW / 5
    result = jm.bootstrap(guarded, scores, labels, key=KEY, n_resamples=FEW)
    assert result.n_undefined == 0


@pytest.mark.parametrize("limit", [marked(x, fast=x == 0.7) for x in (0.15, 0.3, 0.6, 0.7)])
def test_a_limit_that_a_count_reaches_is_reached_in_resamples(limit, rng):
    """49 times 1 / 49 is not 1: XLA multiplies by the reciprocal of a number that it knows."""
    labels = np.arange(50) < 30  # and 20 negatives
    scores = rng.normal(size=50) + labels
    found, above = (
        jm.bootstrap(partial(jm.recall_at_fpr, max_fpr=x), scores, labels, key=KEY, n_resamples=100)
        for x in (limit, limit + 1e-9)
    )
    np.testing.assert_array_equal(found.replicates, above.replicates)
    assert found.estimate == jm.recall_at_fpr(scores, labels, max_fpr=limit)


@pytest.mark.parametrize("library", [np, jnp])
def test_a_limit_may_be_infinite(library):
    """That of a threshold which some resamples do not reach, also exactly at such a resample."""
    given = library.zeros(()), library.asarray([0.0, 1.0, np.inf, np.inf, np.inf])
    low, high = limits_of_replicates(*given, np.float64(0), np.float64(0.5), "percentile")
    np.testing.assert_array_equal([low, high], [1, np.inf])
