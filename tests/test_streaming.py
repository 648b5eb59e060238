"""States of streams: what is counted, merged and certain, whatever the data and their order."""

import operator
from functools import partial
from itertools import pairwise
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.streaming import _bootstrap, _counts, _items
from jaxmetrics.streaming._bins import bin_of
from jaxmetrics.streaming._ends import Counted
from jaxmetrics.streaming._intervals import _drawn_recalls
from jaxmetrics.streaming._state import _update

S, M = jm.streaming, jm.streaming.means
UNIFORM = S.uniform_bins(20)
FOUR = [0.1, 0.5, 0.501, 0.9]
BINS = {  # three of them are 20, which share all programs but that of an update
    "float16": S.float16_bins(),
    "uniform": UNIFORM,
    "one": S.uniform_bins(1),
    "edges": S.edges(sorted([*FOUR, *np.linspace(-1.3, 1.7, 15)])),
    "quantiles": S.quantile_bins(np.linspace(-1, 2, 200) ** 3, 20),
}
METRICS = {
    "roc_auc": jm.roc_auc,
    "partial": partial(jm.partial_auc, max_fpr=0.1),
    "range": partial(jm.partial_auc, min_fpr=0.05, max_fpr=0.4, scale="range"),
    "two-way": partial(jm.partial_auc, max_fpr=0.5, min_tpr=0.3, scale="mcclish"),
    "recall": partial(jm.recall_at_fpr, max_fpr=0.1),
    "linear": partial(jm.recall_at_fpr, max_fpr=0.1, method="linear"),
    "threshold": partial(jm.threshold_at_fpr, max_fpr=0.1),
    "average precision": jm.average_precision,
    "precision": partial(jm.precision_at_recall, min_recall=0.6),
    "recall at precision": partial(jm.recall_at_precision, min_precision=0.4),
    "sensitivity": partial(jm.sensitivity_at_specificity, min_specificity=0.8),
    "specificity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
}
OF_ENDS = ("roc_auc", "range", "linear", "threshold", "average precision")
OF_ENDS += ("recall at precision", "specificity")
UNWEIGHTED = ("roc_auc", "recall", "threshold", "average precision")


def filled(bins, *arrays, weights=None, where=None, parts=1, batch=()):
    state = S.init(bins, batch, weighted=weights is not None)
    edges = np.linspace(0, arrays[0].shape[-1], parts + 1).astype(int)
    for start, end in pairwise(edges):
        cut = {
            name: None if x is None else x[..., start:end]
            for name, x in (("weights", weights), ("where", where))
        }
        state = S.update(state, *(x[..., start:end] for x in arrays), bins=bins, **cut)
    return state


_bin_of = jax.jit(bin_of, static_argnums=0)


def index_of(bins, scores):
    """The bins of scores, in one program, not one for each of its steps."""
    return np.asarray(_bin_of(bins, scores))


def sample(rng, n=300, batch=()):
    labels = rng.random(n) < 0.3
    scores = rng.normal(0.4, 0.2, (*batch, n)) + 0.2 * labels
    return scores.astype(np.float32), labels


# Bins.


MANY = {
    "many": S.uniform_bins(1 << 20, -0.37, 1.7),
    "narrow": S.uniform_bins(65_536, 0.99, 2.01),
    "more": S.uniform_bins((1 << 20) + 77, -0.1, 3.3),
    "of all numbers": S.uniform_bins(100, -3e38, 2.9e38),
}


@pytest.mark.parametrize(
    "bins",
    [marked(x, fast=x is not MANY["many"]) for x in (*BINS.values(), *MANY.values())],
    ids=[*BINS, *MANY],
)
def test_a_bin_begins_at_its_lowest_score(bins, rng):
    """Also next to its ends, beyond all of them, and for either zero."""
    lower = bins.lower
    near = [np.nextafter(lower, np.float32(side)) for side in (-np.inf, np.inf)]
    other = np.float32([np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0, 1e-45, -1e-45, 65520, 65519])
    scores = np.concatenate([lower, *near, other, rng.normal(size=500).astype(np.float32)])
    scores = np.sort(scores[~np.isnan(scores)])
    index = index_of(bins, scores)
    assert (np.diff(index) >= 0).all()
    assert (lower[index] <= scores).all()
    above = np.append(lower, np.float32(np.nan))[index + 1]
    assert not (scores >= above)[scores < np.inf].any()


def test_float16_bins_are_the_nearest_float16(rng):
    scores = rng.normal(size=5000).astype(np.float32) * 10 ** rng.uniform(-9, 6, 5000)
    scores = scores.astype(np.float32)
    with np.errstate(over="ignore"):
        half = scores.astype(np.float16) + np.float16(0)  # -0.0 is 0.0
    bins = BINS["float16"]
    index = index_of(bins, scores)
    assert_array_equal(
        np.unique(half, return_inverse=True)[1], np.unique(index, return_inverse=True)[1]
    )
    assert bins.lower[index][half == np.inf].max(initial=65520) == 65520


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: S.uniform_bins(0), "n must be at least 1"),
        (lambda: S.uniform_bins(10, 1.0, 0.0), "low must be below high"),
        (lambda: S.uniform_bins(100, 1e6, 1e6 + 1), "too few numbers from .* for 100 bins"),
        (lambda: S.edges([0.1, 0.1]), "edges must ascend"),
        (lambda: S.edges([]), r"edges must be \[m\]"),
        (lambda: S.edges([np.nan]), "edges must be finite"),
        (lambda: S.edges([0.5, 1e39]), "edges must be finite in float32"),
        (lambda: S.quantile_bins([np.nan], 4), "scores not empty"),
        (lambda: S.init(20), "bins must be Bins"),
        (lambda: S.init(UNIFORM, 3), "batch_shape must be a tuple"),
        (lambda: S.uniform_bins(10**14), "at most 16,777,216 bins, got 100,000,000,000,000"),
        (lambda: S.quantile_bins([0.1, 0.2], 10**14), "n = 100,000,000,000,000 needs 3,200,000 GB"),
        (lambda: S.init(UNIFORM, (10**7, 10**7)), "size of batch_shape = 1.* GB: count fewer"),
        (lambda: M.init((10**14,)), "size of batch_shape = 1.* GB: count fewer"),
    ],
)
def test_bad_bins(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


# Counts.


def test_digits_are_exact(rng):
    weights = np.r_[rng.random(1000), rng.random(1000) * 1e6, 0, 1, 2.0**23, 2.0**-20]
    weights = weights.astype(np.float32)
    with jax.enable_x64(True):
        digits, lost = _counts.split(jnp.asarray(weights))
        found = _counts.total_of(jnp.stack(digits, axis=-1))
    assert all((np.asarray(x) < 2**16).all() for x in digits[:-1])
    unit = 2.0**-32
    assert_array_equal(found, np.floor(weights.astype(np.float64) / unit) * unit)
    assert_array_equal(lost, np.asarray(found) < weights)


def test_counts_do_not_overflow():
    """A trillion items of one bin, by merging a state with itself."""
    state = filled(UNIFORM, np.full(1000, 0.5, np.float32), np.arange(1000) % 2)
    n = 1000
    while n < 10**12:
        state, n = S.merge(state, state), 2 * n
    with jax.enable_x64(True):
        table = S.table(state, bins=UNIFORM)
        assert table.positives.sum() == table.negatives.sum() == n / 2
        assert S.n_items(state) == n
    assert jm.roc_auc(S.table(state, bins=UNIFORM)) == 0.5
    more = S.update(state, [0.9], [1], bins=UNIFORM)
    assert float(np.asarray(S.table(more, bins=UNIFORM).positives).sum()) == n / 2 + 1


@pytest.mark.parametrize("n", [32_768, 100_000])
def test_many_weights_of_one_bin_do_not_overflow(n):
    """Of which the digits of a batch add up to more than 32 bits hold."""
    weight = np.float32(1 - 2.0**-24)
    scores, weights = np.full(n, 0.5, np.float32), np.full(n, weight)
    state = filled(UNIFORM, scores, np.arange(n) % 4 == 0, weights=weights)
    table = S.table(state, bins=UNIFORM)
    assert table.positives.sum() == n // 4 * float(weight)
    assert table.negatives.sum() == n * 3 // 4 * float(weight)
    assert S.n_items(state) == n


def test_sums_of_leaves_are_merges(rng):
    scores, labels = sample(rng, 2400)  # in parts of 300, as other samples are
    weights = rng.random(2400).astype(np.float32)
    states = [filled(UNIFORM, scores[i::8], labels[i::8], weights=weights[i::8]) for i in range(8)]
    whole = filled(UNIFORM, scores, labels, weights=weights, parts=8)
    summed = jax.tree.map(lambda *x: sum(x), *states)
    by_numpy = jax.tree.map(lambda *x: np.stack(x).sum(0), *states)
    assert by_numpy.digits.dtype == np.int64
    merged = states[0]
    for state in states[1:]:
        merged = S.merge(merged, state)
    assert_array_equal(merged.digits, whole.digits)
    expected = S.table(whole, bins=UNIFORM)
    for state in (summed, by_numpy, merged):
        for a, b in zip(S.table(state, bins=UNIFORM), expected, strict=True):
            assert_array_equal(a, b)
    more = scores[:300], labels[:300]
    longer = S.merge(whole, filled(UNIFORM, *more, weights=weights[:300]))
    for state in (by_numpy, summed):
        again = S.update(state, *more, bins=UNIFORM, weights=weights[:300])
        assert_array_equal(again.digits, longer.digits)


def test_states_are_added_by_plus(rng):
    """As merge adds them, with its checks, in and out of jit; a state remains a pytree."""
    scores, labels = sample(rng, 900)
    parts = [filled(UNIFORM, scores[i::3], labels[i::3]) for i in range(3)]
    whole = filled(UNIFORM, scores, labels, parts=3)
    total = parts[0]
    total += parts[1]
    total += parts[2]
    folded, _ = jax.lax.scan(
        lambda sofar, part: (sofar + part, None), S.init(UNIFORM), jax.tree.map(stack, *parts)
    )
    for state in (total, sum(parts, S.init(UNIFORM)), jax.jit(lambda a, b: a + b)(*parts[:2])):
        assert isinstance(state, S.State)
    for state in (total, sum(parts), folded):
        assert_array_equal(state.digits, whole.digits)
    with pytest.raises(ValueError, match="same bins, batch and kind to be merged"):
        total + S.init(jm.streaming.uniform_bins(7))
    with pytest.raises(TypeError, match="state must be a State"):
        operator.add(total, (1,))
    with pytest.raises(TypeError, match="unsupported operand"):
        operator.add(1, total)
    means = [M.update(M.init(), x) for x in ([1.0, 0.0], [1.0, 2.0])]
    assert M.result(means[0] + means[1]).n == M.result(sum(means)).n == 4
    with pytest.raises(ValueError, match="same batch to be merged"):
        means[0] + M.init((2,))


def stack(*arrays):
    return jnp.stack(arrays)


@pytest.mark.parametrize(("name", "weighted"), in_turn(BINS, (False, True)))
def test_any_split_in_any_order_is_the_same(name, weighted, rng):
    bins = BINS[name]
    scores, labels = sample(rng)
    weights = rng.random(300).astype(np.float32) if weighted else None
    where = rng.permutation(300) < 250  # whole parts of 50, which are one program
    whole = filled(bins, scores, labels, weights=weights, where=where)
    order = rng.permutation(300)
    shuffled = filled(
        bins,
        scores[order],
        labels[order],
        weights=None if weights is None else weights[order],
        where=where[order],
        parts=6,
    )
    assert_array_equal(whole.digits, shuffled.digits)
    kept = filled(
        bins,
        scores[where],
        labels[where],
        weights=None if weights is None else weights[where],
        where=np.ones(250, bool),  # in the program of the parts
        parts=5,
    )
    assert_array_equal(whole.digits, kept.digits)


def test_a_table_of_bins_is_that_of_the_scores_of_bins(rng, x64):
    scores, labels = sample(rng, batch=(2, 3))
    bins = UNIFORM
    state = filled(bins, scores, labels, batch=(2, 3))
    table = S.table(state, bins=bins)
    lowest = bins.lower[index_of(bins, scores)]
    for metric in (jm.roc_auc, METRICS["partial"], METRICS["threshold"], jm.average_precision):
        assert_allclose(metric(table), metric(lowest, labels), rtol=1e-12)
    weights = rng.integers(0, 4, 300).astype(np.float32)
    state = filled(bins, scores, labels, weights=weights, batch=(2, 3))
    assert_allclose(
        jm.roc_auc(S.table(state, bins=bins)),
        jm.roc_auc(lowest, labels, weights=weights),
        rtol=1e-12,
    )


# What has no score.


def test_nan_is_counted_apart(rng):
    scores, labels = sample(rng)
    missing = np.where(np.arange(300) % 50 == 7, np.nan, scores)
    state = filled(UNIFORM, missing, labels)
    assert S.n_items(state) == 300
    assert np.isnan(jm.roc_auc(S.table(state, bins=UNIFORM)))
    assert np.isnan(S.bounds(jm.roc_auc, state, bins=UNIFORM)).all()
    assert np.isnan(S.interval(jm.roc_auc, state, bins=UNIFORM).low)
    there = ~np.isnan(missing)
    kept = filled(UNIFORM, scores[there], labels[there])
    for a, b in zip(
        S.table(state, bins=UNIFORM, ignore_nan=True), S.table(kept, bins=UNIFORM), strict=True
    ):
        assert_array_equal(a, b)
    masked = filled(UNIFORM, missing, labels, where=there)
    assert_array_equal(masked.digits, kept.digits)
    empty = S.init(UNIFORM)
    assert np.isnan(jm.roc_auc(S.table(empty, bins=UNIFORM)))
    one_class = filled(UNIFORM, scores, labels | True)
    assert np.isnan(S.bounds(jm.roc_auc, one_class, bins=UNIFORM)).all()


def test_what_an_eager_call_refuses_is_counted_apart_if_traced(rng):
    scores, labels = sample(rng)
    step = jax.jit(
        lambda state, labels, weights: S.update(
            state, scores, labels, bins=UNIFORM, weights=weights
        )
    )
    ones = np.ones(300, np.float32)
    for bad_labels, bad_weights in ((labels * 2 - 1, ones), (labels * 1, -ones)):
        state = step(S.init(UNIFORM, weighted=True), bad_labels, bad_weights)
        assert np.isnan(jm.roc_auc(S.table(state, bins=UNIFORM)))
        assert S.n_items(state) == 300


# Bounds.


@pytest.mark.parametrize(
    ("name", "weighted"),
    [  # Each way to an end; that they hold is seen of the others by the two tests of weights, too.
        marked(x, weighted, fast=x in OF_ENDS and weighted == (x not in UNWEIGHTED))
        for x in METRICS
        for weighted in (True, False)
    ],
)
def test_bounds_hold(name, weighted, rng, x64):
    """Of scores with ties, in one bin and in many; the best and the worst order reach them.

    Of as many models as NumPy takes one by one.
    """
    metric = METRICS[name]
    bins = UNIFORM
    weights = rng.integers(1, 5, 60).astype(np.float32) if weighted else None
    rows = np.round(rng.random((8, 60)), 3).astype(np.float32)
    rows[0] = 0.5
    labels = rng.random(60) < 0.3
    labels[:2] = True, False
    index = index_of(bins, rows)
    inside = np.float32(1e-4) * rng.permuted(np.tile(np.arange(60), (8, 1)), axis=1)
    worst = bins.lower[index].clip(0) + np.where(labels, 0, 0.01).astype(np.float32)
    best = bins.lower[index].clip(0) + np.where(labels, 0.01, 0).astype(np.float32)
    for scores in (rows, bins.lower[index].clip(0) + inside, worst, best):
        assert_array_equal(index_of(bins, scores), index)
        state = filled(bins, scores, labels, weights=weights, batch=(8,))
        low, high = S.bounds(metric, state, bins=bins)
        value = metric(scores, labels, weights=weights)
        assert (low <= value).all()
        assert (value <= high).all()
        tied = metric(S.table(state, bins=bins))
        assert (low <= tied).all()
        assert (tied <= high).all()
    if name not in ("threshold", "average precision"):
        assert_allclose(metric(worst, labels, weights=weights), low, rtol=1e-12)
        assert_allclose(metric(best, labels, weights=weights), high, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_bounds_cannot_be_broken(data):
    """Adversarial scores, ties, weights and merges; on the grid of the bins and beside it."""
    bins = BINS[data.draw(st.sampled_from(["uniform", "edges"]))]
    n = 12
    grid = np.concatenate([bins.lower[1:], np.nextafter(bins.lower[1:], np.float32(-np.inf))])
    score = st.one_of(
        st.sampled_from(grid.tolist()),
        st.floats(-2, 2, width=32),
        st.sampled_from([float("inf"), float("-inf"), 0.0, -0.0]),
    )
    scores = np.float32(data.draw(st.lists(score, min_size=n, max_size=n)))
    labels = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weights = np.float32(
        data.draw(st.lists(st.sampled_from([0, 0.25, 1, 3, 1000]), min_size=n, max_size=n))
    )
    cut = data.draw(st.integers(1, n - 1))
    parts = [slice(None, cut), slice(cut, None)]
    # Padded, so that shapes are few.
    states = []
    for part in parts:
        where = np.zeros(n, bool)
        where[part] = True
        states.append(filled(bins, scores, labels, weights=weights, where=where))
    state = S.merge(*states)
    name = data.draw(
        st.sampled_from(["roc_auc", "two-way", "recall", "threshold", "average precision"])
    )
    low, high = S.bounds(METRICS[name], state, bins=bins)
    value = METRICS[name](scores, labels, weights=weights)
    if np.isnan(value):
        assert np.isnan(low) or name == "average precision"
    else:
        assert low <= value <= high


def test_bounds_of_a_rare_class(rng):
    """200 uniform bins take an AUC of .75 for .54; they say so, and float16 bins do not."""
    labels = np.arange(200_000) % 1000 == 0
    scores = 1 / (1 + np.exp(8 - rng.normal(size=len(labels)) - labels))
    scores = scores.astype(np.float32)
    exact = float(jm.roc_auc(scores, labels))
    coarse, fine = (filled(b, scores, labels) for b in (S.uniform_bins(200), BINS["float16"]))
    assert jm.roc_auc(S.table(coarse, bins=S.uniform_bins(200))) < exact - 0.1
    low, high = S.bounds(jm.roc_auc, coarse, bins=S.uniform_bins(200))
    assert low < exact < high
    low, high = S.bounds(jm.roc_auc, fine, bins=BINS["float16"])
    assert low < exact < high
    assert high - low < 1e-3


def test_bounds_are_rounded_outwards(rng):
    scores, labels = sample(rng, 3000)
    state = filled(UNIFORM, scores, labels)
    with jax.enable_x64(True):
        wide = S.bounds(jm.roc_auc, state, bins=UNIFORM)
    narrow = S.bounds(jm.roc_auc, state, bins=UNIFORM)
    assert narrow.low.dtype == np.float32
    assert float(narrow.low) <= float(wide.low) < float(wide.high) <= float(narrow.high)


# Intervals.


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


def test_an_interval_warns_of_few_as_that_of_the_data_does(rng):
    scores, _ = sample(rng, 4000)
    few = filled(UNIFORM, scores, np.arange(4000) < 6)
    with pytest.warns(UserWarning, match="only 6 positives.* 95 % closed-form"):
        S.interval(jm.roc_auc, few, bins=UNIFORM)
    few = filled(UNIFORM, scores, np.arange(4000) >= 25)
    with pytest.warns(UserWarning, match=r"only 2\.5 negatives are within max_fpr=0\.1.* Wilson"):
        S.interval(METRICS["recall"], few, bins=UNIFORM, key=jax.random.key(1), n_resamples=100)


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


@pytest.mark.slow
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
    interval = S.interval(metric, state, bins=UNIFORM, key=jax.random.key(1))
    exact = jm.confidence_interval(metric, scores, labels, key=jax.random.key(2))
    assert interval.low < exact.low < exact.high < interval.high


@pytest.mark.parametrize("name", [marked("threshold", fast=False), "recall at precision"])
def test_an_interval_by_the_bootstrap_is_around_that_of_the_data(name, rng):
    scores, labels = sample(rng, 1000)
    state, key = filled(UNIFORM, scores, labels), jax.random.key(3)
    found = S.interval(METRICS[name], state, bins=UNIFORM, key=key)
    exact = jm.confidence_interval(METRICS[name], scores, labels, key=key)
    low, high = S.bounds(METRICS[name], state, bins=UNIFORM)
    assert found.method == exact.method == "percentile"
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


# Programs.


def test_in_jit_scan_and_a_batch(rng):
    scores, labels = sample(rng, 600, batch=(3,))
    expected = filled(UNIFORM, scores, labels, batch=(3,))

    @jax.jit
    def run(scores, labels):
        def step(state, batch):
            return S.update(state, *batch, bins=UNIFORM), None

        batches = scores.reshape(3, 6, 100).swapaxes(0, 1), labels.reshape(6, 100)
        state, _ = jax.lax.scan(step, S.init(UNIFORM, (3,)), batches)
        table = S.table(state, bins=UNIFORM)
        return state, jm.roc_auc(table), S.bounds(jm.roc_auc, state, bins=UNIFORM)

    state, value, (low, high) = run(scores, labels)
    assert_array_equal(state.digits, expected.digits)
    assert_allclose(value, jm.roc_auc(S.table(expected, bins=UNIFORM)), rtol=1e-6)
    assert (low <= value).all() & (value <= high).all()


def test_a_state_may_be_a_constant_of_a_program(rng):
    labels = rng.random(200) < 0.4
    state = filled(UNIFORM, (rng.random(200) + labels) / 2, labels)

    def recall(max_fpr):
        return S.bounds(partial(jm.recall_at_fpr, max_fpr=max_fpr), state, bins=UNIFORM)

    assert_allclose(jax.jit(recall)(0.2), recall(0.2), rtol=1e-6)


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_stream_of_millions_of_rows(n):
    """Made on the fly, in a hundred batches; the memory is that of a tenth of them.

    And the bounds hold the exact AUC.
    """
    bins = BINS["float16"]

    def batch(key):
        chance, noise = jax.random.split(key)
        labels = jax.random.bernoulli(chance, 0.1, (n,))
        return jax.nn.sigmoid(jax.random.normal(noise, labels.shape) + labels - 2), labels

    @jax.jit
    def run(keys):
        def step(state, key):
            return S.update(state, *batch(key), bins=bins), None

        return jax.lax.scan(step, S.init(bins), keys)[0]

    keys = jax.random.split(jax.random.key(0), 100)
    state = run(keys)
    scores, labels = (np.asarray(x).ravel() for x in jax.lax.map(batch, keys))
    low, high = S.bounds(jm.roc_auc, state, bins=bins)
    assert S.n_items(state) == len(labels) == 100 * n
    assert low <= jm.roc_auc(scores, labels) <= high < low + 1e-3
    whole, tenth = (run.lower(x).compile().memory_analysis() for x in (keys, keys[:10]))
    assert whole.temp_size_in_bytes == tenth.temp_size_in_bytes < 20_000_000


def test_update_is_compiled_once_and_takes_the_memory_of_the_state(rng):
    scores, labels = sample(rng, 333)
    before = _update._cache_size()
    state = S.init(UNIFORM)
    for _ in range(3):
        old = state
        state = S.update(state, scores, labels, bins=S.uniform_bins(20))
    assert _update._cache_size() == before + 1
    assert old.digits.is_deleted()


def test_a_restored_state_goes_on(rng):
    scores, labels = sample(rng)
    state = filled(UNIFORM, scores[:100], labels[:100])
    restored = jax.tree.map(lambda x: jnp.asarray(np.array(x)), state)
    state = S.update(restored, scores[100:], labels[100:], bins=UNIFORM)
    assert_array_equal(state.digits, filled(UNIFORM, scores, labels).digits)


def test_items_without_weights_have_a_weight_of_1(rng):
    scores, labels = sample(rng)
    found = [
        S.update(S.init(UNIFORM, weighted=True), scores, labels, bins=UNIFORM, weights=given)
        for given in (None, np.ones(labels.shape[-1]))
    ]
    np.testing.assert_array_equal(*(x.digits for x in found))


# Bad input.


def test_states_of_other_bins_are_refused(rng, monkeypatch):
    scores, labels = sample(rng)
    other = S.uniform_bins(20, 0.0, 2.0)
    # An update does not wait for the one before, and looks at a state that is there.
    state = jax.block_until_ready(filled(UNIFORM, scores, labels))
    with pytest.raises(ValueError, match="the state has 20 bins, and bins has 5"):
        S.table(state, bins=S.edges(FOUR))
    with pytest.raises(ValueError, match="the state, or one merged into it, is of other bins"):
        S.update(state, scores, labels, bins=other)
    with pytest.raises(ValueError, match="states are of different bins"):
        S.merge(state, filled(other, scores, labels))
    mixed = jax.tree.map(jnp.add, state, filled(other, scores, labels))
    with pytest.raises(ValueError, match="or one merged into it, is of other bins"):
        S.bounds(jm.roc_auc, mixed, bins=UNIFORM)
    monkeypatch.setattr(S._state, "is_ready", lambda array: False)
    unseen = S.update(filled(UNIFORM, scores, labels), scores, labels, bins=other)
    for read in (S.table, partial(S.bounds, jm.roc_auc)):
        with pytest.raises(ValueError, match="or one merged into it, is of other bins"):
            read(unseen, bins=UNIFORM)
    with pytest.raises(ValueError, match=r"5 bins, batch .*, without weights and 20 bins"):
        S.merge(S.init(S.edges(FOUR)), state)
    with pytest.raises(ValueError, match=r"without weights and 20 bins, batch .*, with weights"):
        S.merge(state, S.init(UNIFORM, weighted=True))
    assert S.merge(state, S.init(UNIFORM)).digits.shape == (2, 24, 2)


def test_traced_states_of_other_bins_make_all_values_nan(rng):
    """One of a batch; and what is returned is refused."""
    scores, labels = sample(rng)
    other = S.uniform_bins(20, 0.0, 2.0)

    @jax.jit
    def read(plain, weighted):
        updated = S.update(plain, scores, labels, bins=UNIFORM)
        merged = weighted + jax.tree.map(lambda x: x[::-1], weighted)
        table, one = (S.table(x, bins=UNIFORM) for x in (weighted, S.State(merged.digits[0])))
        found = S.interval(jm.roc_auc, updated, bins=UNIFORM)
        numbers = found.estimate, found.low, found.high, found.standard_error
        return updated, table, (one, S.bounds(jm.roc_auc, updated, bins=UNIFORM), numbers)

    right, wrong = (filled(bins, scores, labels) for bins in (UNIFORM, other))
    ones = np.ones(300, np.float32)
    of_bins = [filled(bins, scores, labels, weights=ones).digits for bins in (UNIFORM, other)]
    for plain, second in ((right, 0), (wrong, 1)):
        found = read(plain, S.State(jnp.stack([of_bins[0], of_bins[second]])))
        updated, table, values = jax.tree.map(np.asarray, found)
        assert all(np.isnan(x).all() == second for x in jax.tree.leaves(values))
        assert_array_equal([np.isnan(x).all(axis=-1) for x in table], [[False, second]] * 3)
    with pytest.raises(ValueError, match="is of other bins"):
        S.table(updated, bins=UNIFORM)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: S.update(s, [0.1], [1], bins=UNIFORM, weights=[1.0]), "weighted=True"),
        (lambda s: S.update(s, [[0.1]], [1], bins=UNIFORM), r"batch_shape=\(1,\)"),
        (lambda s: S.update(s, [0.1], [-1], bins=UNIFORM), "labels must be bool or 0 and 1"),
        (lambda s: S.update(0, [0.1], [1], bins=UNIFORM), "state must be a State"),
        (lambda s: S.update(s._asdict(), [0.1], [1], bins=UNIFORM), r"State\(\*\*restored\)"),
        (lambda s: S.table(MappingProxyType(s._asdict()), bins=UNIFORM), r"State\(\*\*restored"),
        (lambda s: S.table(tuple(s), bins=UNIFORM), r"write State\(\*restored\)"),
        (lambda s: S.table(S.State([1]), bins=UNIFORM), r"State\(jnp.asarray\(digits, jnp"),
        (lambda s: S.table(s, bins=UNIFORM, ignore_nan=1), "ignore_nan must be True or False"),
        (lambda s: S.bounds(jm.min_cost_threshold, s, bins=UNIFORM), "got min_cost_threshold"),
        (lambda s: S.bounds(lambda table: 0, s, bins=UNIFORM), "bounds are known for roc_auc"),
        (
            lambda s: S.bounds(
                partial(jm.recall_at_fpr, max_fpr=0.1, method="quantile"), s, bins=UNIFORM
            ),
            "write 'step' or 'linear'",
        ),
        (lambda s: S.interval(METRICS["recall"], s, bins=UNIFORM), "key is missing"),
        (lambda s: S.interval(METRICS["threshold"], s, bins=UNIFORM), "key is missing"),
        (lambda s: S.interval(jm.min_cost_threshold, s, bins=UNIFORM), "bounds are known for"),
        (lambda s: S.bootstrap(jm.roc_auc, s, bins=UNIFORM, key=None), "key is missing"),
        (
            lambda s: jax.jit(
                lambda s: S.bootstrap(jm.roc_auc, s, bins=UNIFORM, key=jax.random.key(0))
            )(s),
            "resampled outside of jit, got a traced state",
        ),
        (
            lambda s: S.interval(jm.roc_auc, S.init(UNIFORM, weighted=True), bins=UNIFORM),
            "sampling error of weighted items",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(S.init(UNIFORM))


# Means of values.


def test_means_are_those_of_all_values(rng, x64):
    """In any split and order, with values of both signs, NaN and a mask."""
    values = np.round(rng.normal(0.3, 1, (2, 40_000)), 3).astype(np.float32)
    values[:, ::100] = np.nan
    where = rng.random(40_000) < 0.9
    whole = M.init((2,))  # in parts that are of the program of the others
    for i in np.array_split(np.arange(40_000), 5):
        whole = M.update(whole, values[:, i], where=where[i])
    order = rng.permutation(40_000)
    parts = [M.update(M.init((2,)), values[:, i], where=where[i]) for i in np.array_split(order, 7)]
    summed = jax.tree.map(lambda *x: sum(x), *parts)
    merged = M.merge(M.merge(parts[0], parts[1]), parts[2])
    for part in parts[3:]:
        merged = M.update(merged, values[:, :0])
        merged = M.merge(merged, part)
    assert_array_equal(merged.digits, whole.digits)
    for state in (whole, summed):
        found = M.result(state, confidence_level=0.9)
        kept = values[:, where].astype(float)
        assert_allclose(found.mean, np.nanmean(kept, axis=1), rtol=1e-7)
        n = (~np.isnan(kept)).sum(1)
        assert_array_equal(found.n, n)
        assert_array_equal(found.n_undefined, np.isnan(kept).sum(1))
        error = np.nanstd(kept, axis=1, ddof=1) / np.sqrt(n)
        assert_allclose(found.standard_error, error, rtol=1e-6)
        assert_allclose(found.high - found.mean, 1.6448536 * error, rtol=1e-6)


def test_few_values_and_those_out_of_range():
    nothing = M.result(M.init())
    assert np.isnan(nothing.mean)
    one = M.result(M.update(M.init(), [0.5]))
    assert one.mean == 0.5
    assert np.isnan(one.standard_error)
    with pytest.warns(UserWarning, match=r"3 of 6 values are beyond 65,536, such as 1e\+06"):
        odd = M.result(M.update(M.init(), [1e6, np.inf, -np.inf, np.nan, 2.0, 4.0]))
    assert (odd.mean, odd.n, odd.n_undefined) == (3, 2, 4)
    assert_allclose(odd.standard_error, 1)


def test_batches_of_similar_size_share_a_program():
    before, state = M._update._cache_size(), M.init()
    for n in (1025, 1500, 2048):
        state = M.update(state, jnp.ones(n), where=np.arange(n) < 1000)
    assert M._update._cache_size() <= before + 1
    assert M.result(state).n == 3000


def test_means_do_not_overflow():
    state, n = M.update(M.init(), np.full(1000, 100.5, np.float32)), 1000
    while n < 10**12:
        state, n = M.merge(state, state), 2 * n
    with jax.enable_x64(True):
        found = M.result(state)
        assert found.n == n
        assert found.mean == 100.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: M.init(3), "batch_shape must be a tuple"),
        (lambda: M.update(S.init(UNIFORM), [0.1]), "state must be a State of means"),
        (lambda: M.update(M.init()._asdict(), [0.1]), r"means.State\(\*\*restored\)"),
        (lambda: M.result(list(M.init())), r"write means.State\(\*restored\)"),
        (lambda: M.update(M.init(), [[0.1]]), r"batch_shape=\(1,\)"),
        (lambda: M.merge(M.init(), M.init((2,))), "same batch to be merged"),
        (lambda: M.result(M.init(), confidence_level=95), "write 0.95 for 95 %"),
    ],
)
def test_bad_input_of_means(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


# Exact values of data that are read again and again.


def read(scores, labels, weights=None, size=700):
    """A function that gives batches, and counts how often it was called."""

    def batches():
        batches.passes += 1
        for start in range(0, len(scores), size):
            part = slice(start, start + size)
            yield (scores[part], labels[part], *([] if weights is None else [weights[part]]))

    batches.passes = 0
    return batches


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=()
            if name in ("roc_auc", "two-way", "threshold", "average precision")
            else pytest.mark.slow,
        )
        for name in METRICS
    ],
)
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_exact_is_exact(name, weighted, rng, x64):
    """Of both precisions, with and without ties, in memory for all items and for a few."""
    n = 800
    weights = rng.random(n) * (rng.random(n) < 0.9) if weighted else None
    labels = rng.random(n) < 0.3
    for dtype, digits, memories in (
        (np.float32, 9, (10**6, 45)),
        (np.float64, 9, (10**6, 200, 45)),
        (np.float64, 1, (10**6, 45)),
    ):
        scores = np.round(rng.normal(size=n) + labels, digits).astype(dtype)
        expected = METRICS[name](scores, labels, weights=weights)
        for memory in memories:
            batches = read(scores, labels, weights, size=300)
            found = S.exact(METRICS[name], batches, memory_items=memory)
            assert_allclose(found, expected, rtol=1e-13)
            assert batches.passes <= 3 or memory < 10**6


def test_exact_reads_only_what_it_must(rng):
    """A threshold is in one cell, however many items there are."""
    labels = rng.random(50_000) < 0.1
    scores = rng.normal(size=50_000) + labels
    batches = read(scores, labels, size=5000)
    S.exact(METRICS["recall"], batches, memory_items=1000)
    assert batches.passes == 3  # the dtype, the counts, the cell


def test_exact_and_nan(rng):
    scores, labels = sample(rng)
    scores[5] = np.nan
    assert np.isnan(S.exact(jm.roc_auc, read(scores, labels)))
    there = ~np.isnan(scores)
    found = S.exact(jm.roc_auc, read(scores, labels), ignore_nan=True)
    assert_allclose(found, jm.roc_auc(scores[there], labels[there]), rtol=1e-6)
    assert np.isnan(S.exact(jm.roc_auc, list))
    assert np.isnan(S.exact(jm.roc_auc, read(scores[6:], labels[6:] & False)))
    assert S.exact(jm.average_precision, read(scores[6:], labels[6:] & False)) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_exact_of_infinite_scores(dtype):
    """Those of one class are in a cell that is not sorted, and begins with keys of NaN."""
    for scores, labels in (
        ([np.inf, 0.5], [1, 0]),
        ([np.inf, 0.5], [0, 1]),
        ([np.inf, np.inf, 0.5, 0.2], [1, 1, 0, 1]),
        ([np.inf, -np.inf, 0.5], [0, 1, 1]),
    ):
        given = np.array(scores, dtype), np.array(labels)
        for name in ("roc_auc", "partial", "recall"):
            found = S.exact(METRICS[name], lambda given=given: [given])
            assert_allclose(found, METRICS[name](*given), rtol=1e-6)


def test_exact_refuses_batches_that_change(rng):
    scores, labels = sample(rng)
    sizes = iter([300, 300, 200])

    def batches():
        n = next(sizes)
        yield scores[:n], labels[:n]

    with pytest.raises(ValueError, match="the same items each time, got 10 items, then 8"):
        S.exact(jm.roc_auc, batches, memory_items=10)
    with pytest.raises(TypeError, match="write yield scores, labels"):
        S.exact(jm.roc_auc, lambda: [scores])
    with pytest.raises(ValueError, match=r"a batch must be \[n\]"):
        S.exact(jm.roc_auc, lambda: [(scores[None], labels)])
    with pytest.raises(ValueError, match="one dtype, got float32, then float64"):
        S.exact(jm.roc_auc, lambda: [(scores, labels), (scores.astype(float), labels)])
    with pytest.raises(ValueError, match="take one limit at a time"):
        S.exact(partial(jm.recall_at_fpr, max_fpr=[0.1, 0.2]), read(scores, labels))
    with_threshold = partial(METRICS["precision"], return_threshold=True)
    with pytest.raises(TypeError, match="leave return_threshold out"):
        S.exact(with_threshold, read(scores, labels))


@pytest.mark.parametrize("again", [False, True])
def test_exact_refuses_what_can_be_read_once(again, rng):
    """An iterator, and a function that returns the same one, whose first batch would be lost."""
    once = read(*sample(rng))()
    with pytest.raises((TypeError, ValueError), match="which can be read once"):
        S.exact(jm.roc_auc, (lambda: once) if again else once)
    with pytest.raises(TypeError, match=r"each time, got list: write .* lambda: batches"):
        S.exact(jm.roc_auc, [*read(*sample(rng))()])


# Weights that are small or large, and sums that overflow.

FIRST = ("roc_auc", "two-way", "recall", "threshold", "precision", "average precision")
DISTINCT = np.linspace(0.001, 0.999, 300, dtype=np.float32)


def small_weights(rng, scale):
    labels = rng.random(300) < 0.3
    weights = rng.random(300) ** 4 * scale
    return rng.permuted(DISTINCT), labels, weights


@pytest.mark.parametrize("name", [marked(name, fast=name in FIRST) for name in METRICS])
@pytest.mark.parametrize("scale", [1e-8, 3e-10])
def test_bounds_allow_for_rounded_weights(name, scale, rng, x64):
    """Of weights near the unit of 2^-32 and below it; the right scale makes the bounds narrow."""
    scores, labels, weights = small_weights(rng, scale)
    value = METRICS[name](scores, labels, weights=weights)
    widths = []
    for weight_scale in (1.0, 2.0**-30):
        bins = S.edges(DISTINCT, weight_scale=weight_scale)
        low, high = S.bounds(
            METRICS[name], filled(bins, scores, labels, weights=weights), bins=bins
        )
        assert low <= value <= high
        widths.append(high - low)
    assert widths[1] < 0.02 * widths[0] or name in ("threshold", "average precision")


def test_weights_of_all_sizes(rng):
    """A fitting scale leaves next to nothing of the rounding, also of NumPy's float64."""
    for scale in (2.0**-64, 1e-9, 1e15):
        scores, labels, weights = small_weights(rng, scale)
        bins = S.edges(DISTINCT, weight_scale=2.0 ** round(np.log2(scale)))
        state = filled(bins, scores, labels, weights=weights)
        with jax.enable_x64(True):
            low, high = S.bounds(jm.roc_auc, state, bins=bins)
            value = jm.roc_auc(scores, labels, weights=weights)
            tied = jm.roc_auc(S.table(state, bins=bins))
            assert low <= value <= high < low + 1e-6
            assert_allclose(tied, value, rtol=1e-6)
            assert_allclose(S.table(state, bins=bins).positives.sum(), weights[labels].sum(), 1e-6)


def test_weights_that_are_too_small_are_refused_or_nan(rng):
    scores, labels, weights = small_weights(rng, 1e-9)
    state = filled(UNIFORM, scores, labels, weights=weights)
    with pytest.raises(ValueError, match="too small for weight_scale=1: rounding may have taken"):
        S.table(state, bins=UNIFORM)
    traced = jax.jit(lambda state: jm.roc_auc(S.table(state, bins=UNIFORM)))
    assert np.isnan(traced(state))
    assert (
        S.bounds(jm.roc_auc, state, bins=UNIFORM).low
        < S.bounds(jm.roc_auc, state, bins=UNIFORM).high
    )


def test_a_missing_score_of_a_small_weight_is_seen(rng):
    state = S.init(UNIFORM, weighted=True)
    scores, weights = np.array([0.1, 0.9, np.nan]), np.array([1.0, 1.0, 1e-30])
    state = S.update(state, scores, [0, 1, 1], bins=UNIFORM, weights=weights)
    assert np.isnan(jm.roc_auc(S.table(state, bins=UNIFORM)))


def test_states_of_other_scales_are_refused(rng):
    scores, labels, weights = small_weights(rng, 1.0)
    other = S.uniform_bins(20, weight_scale=0.5)
    assert other != UNIFORM
    assert other == S.uniform_bins(20, weight_scale=0.5)
    state, unlike = (
        jax.block_until_ready(filled(bins, scores, labels, weights=weights))
        for bins in (UNIFORM, other)
    )
    with pytest.raises(ValueError, match="is of other bins"):
        S.table(state, bins=other)
    with pytest.raises(ValueError, match="states are of different bins"):
        S.merge(state, unlike)
    for scale in (1e-6, 0.0, 2.0**65):
        with pytest.raises(ValueError, match=r"power of two from 2\^-64 to 2\^64, got"):
            S.float16_bins(weight_scale=scale)
    with pytest.raises(TypeError, match="weight_scale must be a number"):
        S.uniform_bins(20, weight_scale="1")


READERS = {
    "table": lambda s: S.table(s, bins=UNIFORM),
    "bounds": lambda s: S.bounds(jm.roc_auc, s, bins=UNIFORM),
    "items": S.n_items,
    "merge": lambda s: S.merge(s, S.init(UNIFORM, weighted=s.digits.shape[-1] == 4)),
    "update": lambda s: S.update(s, DISTINCT, DISTINCT > 0.5, bins=UNIFORM),
}


@pytest.mark.parametrize("weight", [None, 1e6, 1e15])
def test_sums_that_overflow_are_refused(weight, rng):
    """By merging a state with itself; until then counts are right, and after that NaN in jit."""
    scores, labels, weights = small_weights(rng, 1.0)
    weights = None if weight is None else np.full(300, weight)
    traced = jax.jit(lambda s: (S.n_items(s), jm.roc_auc(S.table(s, bins=UNIFORM))))
    state, n, right = filled(UNIFORM, scores, labels, weights=weights), 300, 0
    for _ in range(60):
        seen, area = traced(state)
        if np.isnan(seen):
            assert np.isnan(area)
            break
        assert float(seen) == n
        assert not np.isnan(area)
        state, n, right = S.State(S._state._merged(*[state.digits] * 2)), 2 * n, right + 1
    assert right == {None: 39, 1e6: 19, 1e15: 0}[weight]
    for read in READERS.values():
        with pytest.raises(ValueError, match="the sums of the state have overflowed"):
            read(jax.block_until_ready(S.State(jnp.copy(state.digits))))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sum_of_many_states(weighted, rng):
    """Of 16,384 it is right, and of more it is refused, on whatever device they are added."""
    scores, labels, weights = small_weights(rng, 1.0)
    state = filled(UNIFORM, scores, labels, weights=weights if weighted else None)
    for m in (16_384, 16_385, 1 << 20, 1 << 27):
        summed = S.State(state.digits * m)
        if m <= 16_384:
            assert S.n_items(summed) == 300 * m
            one, many = (S.table(x, bins=UNIFORM) for x in (state, summed))
            assert_array_equal(one.positives * m, many.positives)
            assert S.n_items(S.merge(summed, state)) == 300 * (m + 1)
        else:
            for read in READERS.values():
                with pytest.raises(ValueError, match="at most 16,384 states are added leaf"):
                    read(jax.block_until_ready(S.State(jnp.copy(summed.digits))))


def test_a_state_that_update_has_taken(rng):
    """The error says which state to use."""
    state = S.init(UNIFORM)
    S.update(state, DISTINCT, DISTINCT > 0.5, bins=UNIFORM)
    for read in READERS.values():
        with pytest.raises(ValueError, match="use the state that update returned"):
            read(state)
    mean = M.init()
    values = np.zeros(1000, np.float32)
    M.update(mean, values)
    for read in (M.result, lambda s: M.update(s, values), lambda s: M.merge(M.init(), s)):
        with pytest.raises(ValueError, match="use the state that update returned"):
            read(mean)


@pytest.mark.parametrize(
    ("mean", "spread"),
    [(1e4, 1.0), *(marked(*x, fast=False) for x in ((6e4, 1e-2), (1e4, 0.0), (0.0, 1.0)))],
)
def test_a_standard_error_far_from_0(mean, spread, rng):
    values = (mean + spread * rng.normal(size=1000)).astype(np.float32)
    kept = values.astype(float)
    with jax.enable_x64(True):
        found = M.result(M.merge(M.update(M.init(), values), M.update(M.init(), -values[:0])))
        assert_allclose(found.mean, kept.mean(), rtol=1e-9)
        expected = np.sqrt(np.sum((kept - kept.mean()) ** 2) / 999 / 1000)
        assert_allclose(found.standard_error, expected, rtol=1e-7, atol=0)


@pytest.mark.parametrize("size", [1e-3, 1e-8, 1e-12])
def test_means_of_small_values(size, rng, x64):
    values = (size * (1 + 0.1 * rng.normal(size=1000))).astype(np.float32)
    kept = values.astype(float)
    found = M.result(M.update(M.init(), values))
    assert_allclose(found.mean, kept.mean(), rtol=2e-7)
    assert_allclose(found.standard_error, kept.std(ddof=1) / np.sqrt(1000), rtol=1e-6)


@pytest.mark.parametrize("size", [1e-18, 1e-30, 1e-37])
def test_means_that_rounding_takes_are_refused_or_nan(size):
    """However their states were added; zeros are exact."""
    parts = [M.update(M.init(), np.float32([[size, 0.0]] * 2)[i]) for i in range(2)]
    for state in (parts[0] + parts[1], jax.tree.map(lambda a, b: a + b, *parts)):
        with pytest.raises(ValueError, match=r"keeps them to 2\^-64.*pass multiples of them"):
            M.result(state)
        assert np.isnan(jax.jit(M.result)(state)).all()
    assert M.result(M.update(M.init(), np.zeros(9))).mean == 0
    larger = M.update(parts[0], np.full(9, 1.0))
    assert_allclose(M.result(larger).mean, 9 / 11, rtol=1e-6)


def test_means_that_overflow():
    state = M.update(M.init(), np.full(1000, 2.0**16, np.float32))
    traced = jax.jit(M.result)
    for _ in range(21):
        assert M.result(state).mean == traced(state).mean == 2.0**16
        assert M.result(state).standard_error == 0
        state = M.merge(state, state)
    full = M._merged(state.digits, state.digits)
    assert np.isnan(traced(M.State(full))).all()
    for read in (M.result, lambda s: M.merge(M.init(), s), lambda s: M.update(s, np.zeros(1000))):
        with pytest.raises(ValueError, match="the sums of the state have overflowed"):
            read(jax.block_until_ready(M.State(jnp.copy(full))))


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


@pytest.mark.slow
def test_bounds_where_rounding_takes_all_positives():
    """Each weighs less than the unit of the sums."""
    bins, labels = jm.streaming.edges([0.2, 0.5]), np.arange(200) < 50
    scores = np.random.default_rng(0).random(200).astype(np.float32)
    weights = np.where(labels, 1e-12, 1e-3).astype(np.float32)
    state = jm.streaming.init(bins, weighted=True)
    state = jm.streaming.update(state, scores, labels, bins=bins, weights=weights)
    for metric in (
        partial(jm.precision_at_recall, min_recall=0.5),
        partial(jm.threshold_at_fpr, max_fpr=0.2),
        partial(jm.threshold_at_fpr, max_fpr=1.0),
        jm.average_precision,
    ):
        low, high = jm.streaming.bounds(metric, state, bins=bins)
        assert low <= metric(scores, labels, weights=weights) <= high


def test_the_lowest_whole_number_is_out_of_range_with_a_warning():
    means = jm.streaming.means
    with pytest.warns(UserWarning, match="1 of 3 values are beyond"):
        means.update(means.init(), np.array([-(2**31), 1, 1], np.int32))
