"""Intervals, errors and the bootstrap of streams."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from numpy.testing import assert_allclose, assert_array_equal
from streams import BINS, METRICS, UNIFORM, S, filled, index_of, sample

import jaxmetrics as jm
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.streaming import _bootstrap, _items
from jaxmetrics.streaming._ends import Counted
from jaxmetrics.streaming._intervals import _drawn_recalls


@pytest.mark.parametrize(
    "name", [marked(x, fast=x == "roc_auc") for x in ("roc_auc", "partial", "average precision")]
)
def test_an_interval_is_around_that_of_the_data(name, rng, x64):
    scores, labels = sample(rng, 4000)
    exact = jm.confidence_interval(METRICS[name], scores, labels)
    fine = S.interval(METRICS[name], filled(BINS["float16"], scores, labels), bins=BINS["float16"])
    coarse = S.interval(METRICS[name], filled(UNIFORM, scores, labels), bins=UNIFORM)
    assert fine.method == exact.method
    assert_allclose(fine.standard_error, exact.standard_error, rtol=0.02)
    for found in (fine, coarse):
        assert found.low < exact.low < exact.high < found.high
    assert_allclose(fine.low, exact.low, atol=2e-3)
    assert_allclose(fine.high, exact.high, atol=2e-3)
    assert coarse.high - coarse.low < 4 * (exact.high - exact.low)


def test_estimates_and_errors_are_those_of_items_that_tie(rng):
    labels = np.arange(40) < 25
    scores = np.float32((rng.integers(0, 12, 40) + 4 * labels + 0.5) / 20)
    found = S.interval(jm.roc_auc, filled(UNIFORM, scores, labels), bins=UNIFORM)
    assert_allclose(found.estimate, jm.roc_auc(scores, labels), rtol=1e-6)
    assert_allclose(found.standard_error, jm.standard_error(jm.roc_auc, scores, labels), rtol=1e-5)
    opposite = S.interval(jm.roc_auc, filled(UNIFORM, 0.9 - 0.5 * labels, labels), bins=UNIFORM)
    assert opposite.estimate == opposite.low == opposite.standard_error == 0
    assert 0 < opposite.high < 0.5


def test_an_interval_warns_of_few_as_that_of_the_data_does(rng):
    scores, _ = sample(rng, 4000)
    few = filled(UNIFORM, scores, np.arange(4000) < 6)
    with pytest.warns(UserWarning, match="only 6 positives.* 95 % closed-form"):
        S.interval(jm.roc_auc, few, bins=UNIFORM)
    few = filled(UNIFORM, scores, np.arange(4000) >= 25)
    with pytest.warns(UserWarning, match=r"only 2\.5 negatives are within max_fpr=0\.1.* Wilson"):
        S.interval(METRICS["recall"], few, bins=UNIFORM, key=jax.random.key(1), n_resamples=100)


def test_an_interval_that_is_resampled_needs_a_key(rng):
    state = filled(UNIFORM, *sample(rng))
    for name in ("recall", "threshold"):
        with pytest.raises(TypeError, match="key is missing"):
            S.interval(METRICS[name], state, bins=UNIFORM)


def test_a_standard_error_is_nan_where_all_scores_share_a_bin(rng):
    """Not 0, which it is where the classes are apart."""
    scores, labels = sample(rng)
    together, apart = (filled(UNIFORM, x, labels) for x in (2 + scores, labels * 0.5))
    for name in ("roc_auc", "recall", "precision"):
        same, separate = (
            S.interval(METRICS[name], x, bins=UNIFORM, key=jax.random.key(1), n_resamples=100)
            for x in (together, apart)
        )
        assert same.low < same.high
        assert np.isnan(same.standard_error)
        assert separate.standard_error == 0


def test_the_error_of_an_undefined_recall_is_nan():
    state = filled(UNIFORM, np.float32([0.1, 0.9]), np.ones(2, int))
    recall = partial(jm.recall_at_fpr, max_fpr=0.2)
    with pytest.warns(UserWarning, match="only 2 positives"):
        found = S.interval(recall, state, bins=UNIFORM, key=jax.random.key(0), n_resamples=30)
    for number in (found.estimate, found.low, found.high, found.standard_error):
        assert np.isnan(number)


def test_recall_is_resampled_as_the_multinomial_is(rng, x64):
    """The halving of bins against multinomial draws of all of them."""
    scores, labels = sample(rng, 500)
    state = filled(UNIFORM, scores, labels)
    positives, negatives = (np.asarray(x) for x in S.table(state, bins=UNIFORM)[1:])
    metric = partial(jm.recall_at_fpr, max_fpr=0.2)
    draws = [rng.multinomial(x.sum(), x / x.sum(), 4000) for x in (positives, negatives)]
    with jax.enable_x64(True):
        low, high = _drawn_recalls(
            jax.random.key(0),
            jnp.asarray(positives),
            jnp.asarray(negatives),
            limit_of_fpr(jnp.asarray(0.2)),
            4000,
        )
    for found, shift in ((low, 0), (high, 1)):
        zero = np.zeros_like(draws[0])
        columns = [
            np.stack(pair, -1).reshape(4000, -1)
            for pair in (
                ((zero, draws[0]), (draws[1], zero)),
                ((draws[0], zero), (zero, draws[1])),
            )[shift]
        ]
        table = jm.ScoreTable(-np.arange(40.0) * np.ones((4000, 1)), *columns)
        expected = np.asarray(metric(table))
        assert_allclose(np.mean(found), expected.mean(), atol=4 * expected.std() / 4000**0.5)
        assert_allclose(np.std(found), expected.std(), rtol=0.06)


def test_all_is_recalled_where_every_negative_may_pass(x64):
    positives, negatives = jnp.array([1.0, 2, 0, 5]), jnp.array([3.0, 1, 2, 4])
    limit = limit_of_fpr(jnp.asarray(1.0))
    for found in _drawn_recalls(jax.random.key(0), positives, negatives, limit, 50):
        assert_array_equal(found, 1)


def test_a_specificity_has_the_interval_of_the_recall_of_reversed_scores(rng):
    labels, scores = np.arange(40) < 30, rng.permutation(64)[:40] + 0.5
    given = {"bins": S.uniform_bins(64, 0, 64), "key": jax.random.key(3), "n_resamples": 200}
    state, mirrored = (
        filled(given["bins"], *x) for x in ((scores, labels), (64 - scores, ~labels))
    )
    found = S.interval(partial(jm.specificity_at_sensitivity, min_sensitivity=0.5), state, **given)
    want = S.interval(partial(jm.recall_at_fpr, max_fpr=0.5), mirrored, **given)
    for name in ("estimate", "low", "high", "standard_error"):
        assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-6)


@pytest.mark.slow
def test_an_interval_of_a_recall_is_around_that_of_the_data(rng, x64):
    scores, labels = sample(rng, 500)
    metric = partial(jm.recall_at_fpr, max_fpr=0.2)
    found = S.interval(metric, filled(UNIFORM, scores, labels), bins=UNIFORM, key=jax.random.key(1))
    exact = jm.confidence_interval(metric, scores, labels)
    assert found.low < exact.low < exact.high < found.high


@pytest.mark.parametrize("name", [marked("threshold", fast=False), "recall at precision"])
def test_an_interval_by_the_bootstrap_is_around_that_of_the_data(name, rng):
    scores, labels = sample(rng, 1000)
    state, key = filled(UNIFORM, scores, labels), jax.random.key(3)
    found = S.interval(METRICS[name], state, bins=UNIFORM, key=key)
    exact = jm.confidence_interval(METRICS[name], scores, labels, key=key)
    low, high = S.bounds(METRICS[name], state, bins=UNIFORM)
    assert found.method == exact.method == "percentile"
    assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(found))
    assert found.low < exact.low < exact.high < found.high
    assert found.low <= low < high <= found.high


def test_the_bootstrap_is_that_of_the_bins(rng):
    """As if the items had the scores of their bins, one model and several."""
    scores, labels = sample(rng, 500, batch=(2,))
    metric = jm.roc_auc
    state, key = filled(UNIFORM, scores, labels, batch=(2,)), jax.random.key(1)
    found = S.bootstrap(metric, state, bins=UNIFORM, key=key, n_resamples=4000)
    lowest = UNIFORM.lower[index_of(UNIFORM, scores)]
    expected = jm.bootstrap(metric, lowest, labels, key=key, n_resamples=4000)
    assert_allclose(found.estimate, expected.estimate, rtol=1e-6)
    assert_allclose(found.standard_error, expected.standard_error, rtol=0.06)
    apart = np.abs(np.mean(found.replicates, 0) - np.mean(expected.replicates, 0))
    assert (apart < 5 * expected.standard_error / 2000**0.5).all()
    again = S.bootstrap(metric, state, bins=UNIFORM, key=key, n_resamples=4000)
    assert_array_equal(found.replicates, again.replicates)
    assert np.abs(np.corrcoef(np.asarray(found.replicates).T)[0, 1]) < 0.1


def counted_in(bins, scores, labels):
    """What an unweighted state holds, by NumPy."""
    at = index_of(bins, scores)
    counts = [np.bincount(at[labels == x], minlength=bins.n)[::-1] for x in (True, False)]
    ends = bins.lower, np.append(bins.lower[1:], np.inf)
    return Counted(*counts, *(x[::-1].astype(float) for x in ends), np.False_, np.zeros(2))


@pytest.mark.parametrize(
    "name", ["threshold", *(marked(x, fast=False) for x in ("recall at precision", "precision"))]
)
def test_few_items_are_resampled_as_their_bins_are(name, rng, monkeypatch):
    """The ends are the same to the last digit, and limits but for the draws."""
    scores, labels = sample(rng, 1000, batch=(2,))
    state, asked = filled(UNIFORM, scores, labels, batch=(2,)), []

    def interval(few):
        monkeypatch.setattr(_bootstrap, "are_few", lambda *bins: asked.append(bins) or few)
        return S.interval(METRICS[name], state, bins=UNIFORM, key=jax.random.key(3))

    found, expected = interval(True), interval(False)
    assert len(asked) == 4
    assert not _items.are_few(*asked[0])  # of 1,000 items in 20 bins
    assert _items.are_few(asked[0][0], counted_in(S.float16_bins(), scores[0], labels))
    assert_allclose(found.estimate, expected.estimate, rtol=2e-7)
    assert_allclose(found.standard_error, expected.standard_error, rtol=0.25)  # of few steps
    for one, other in ((found.low, expected.low), (found.high, expected.high)):
        assert_allclose(one, other, atol=0.3 * np.max(expected.standard_error))


def test_thresholds_of_items_are_ends_of_bins(rng, x64):
    """Their scores are next to the ends, also to the outermost."""
    scores, labels = sample(rng, 1000)  # in the programs of the last test
    metric = METRICS["threshold"]
    for bins in (S.uniform_bins(256), S.edges([0.0, 0.5])):
        held = counted_in(bins, scores, labels)
        request = Request(jax.random.key(0), 2000)
        found = _items.resample_counted(metric, held, _items.scores_by_score, request)
        assert np.isin(found, np.append(bins.lower, np.inf).astype(np.float64)).all()
        assert found[0, 0] < found[0, 2]  # of the data themselves


def test_the_bootstrap_of_a_trillion_items(rng):
    """Each resample has as many items of each class as the stream; a metric of the user's."""
    scores, labels = sample(rng, 1000)
    state = filled(UNIFORM, scores, labels)
    while S.n_items(state) < 10**12:
        state = S.merge(state, state)

    def classes(table):
        return {"positive": jnp.sum(table.positives), "auc": jm.roc_auc(table)}

    result = S.bootstrap(classes, state, bins=UNIFORM, key=jax.random.key(0), n_resamples=50)
    assert len(np.unique(result.replicates["positive"])) == 1
    assert 0 < result.standard_error["auc"] < 1e-5


def test_the_bootstrap_of_what_is_undefined(rng):
    scores, labels = sample(rng)
    missing = np.where(np.arange(300) % 50 == 7, np.nan, scores)
    for state in (
        filled(UNIFORM, missing, labels),
        filled(UNIFORM, scores, labels & False),
        S.init(UNIFORM),
    ):
        found = S.bootstrap(jm.roc_auc, state, bins=UNIFORM, key=jax.random.key(0), n_resamples=8)
        assert np.isnan(found.estimate)
        assert np.isnan(found.replicates).all()
        assert found.n_undefined == 8


@pytest.mark.parametrize(
    ("metric", "option", "limits"),
    [
        marked(jm.recall_at_fpr, "max_fpr", (0.7, 0.75), fast=False),
        (jm.specificity_at_sensitivity, "min_sensitivity", (0.6, 0.59)),
    ],
)
@pytest.mark.parametrize("kind", [marked(np.float32, fast=False), jnp.float32])
def test_an_interval_of_a_recall_takes_the_limit_in_its_own_digits(
    metric, option, limits, kind, rng
):
    """Of 10 negatives 7 are within 0.7, as within 0.75, and at 0.59 and 0.6 18 of 30 positives."""
    labels = np.arange(40) < 30
    bins = S.uniform_bins(64, 0, 64)
    state = filled(bins, rng.permutation(64)[:40] + 0.5, labels)
    given = {"bins": bins, "key": jax.random.key(3), "n_resamples": 200}
    found, want = (S.interval(partial(metric, **{option: kind(x)}), state, **given) for x in limits)
    assert_allclose((found.low, found.high), (want.low, want.high), rtol=1e-6)
