"""States of streams: what is counted and merged, whatever the batches and bins."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from numpy.testing import assert_allclose, assert_array_equal
from streams import BINS, METRICS, UNIFORM, M, S, filled, index_of, sample

import jaxmetrics as jm
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._tables import tied

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
        (lambda: S.uniform_bins(10, "0", 1.0), "low must be a number in"),
        (lambda: jax.jit(lambda x: S.uniform_bins(10, 0.0, x))(1.0), "outside of jit, from known"),
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


def test_ends_may_be_arrays():
    """Computed in float64, whatever they are: a lowest and a highest score make the same bins."""
    low, high = np.float32([-0.7, 2.3])
    same = S.uniform_bins(1000, float(low), float(high))
    for of in (np.float32, jnp.asarray):
        assert S.uniform_bins(1000, of(low), of(high)) == same


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


def mean_of_devices(state):
    stacked = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    return jax.vmap(lambda x: jax.lax.pmean(x, "data"), axis_name="data", out_axes=None)(stacked)


def cast(dtype):
    return lambda state: jax.tree.map(lambda x: x.astype(dtype), state)


@pytest.mark.parametrize(
    "spoil",
    [mean_of_devices, *map(cast, (jnp.float16, jnp.bfloat16, jnp.int16, jnp.int8))],
    ids=["pmean", "float16", "bfloat16", "int16", "int8"],
)
def test_a_mean_of_states_or_a_cast_is_refused(spoil, rng):
    """By every function, also where traced: no number of the digits is what it was."""
    scores, labels = sample(rng)
    counts, sums = filled(UNIFORM, scores, labels), M.update(M.init(), scores)
    uses = [
        (counts, lambda x: S.update(x, scores, labels, bins=UNIFORM)),
        (counts, lambda x: S.merge(counts, x)),
        (counts, S.n_items),
        (counts, lambda x: S.table(x, bins=UNIFORM)),
        (counts, lambda x: S.bounds(jm.roc_auc, x, bins=UNIFORM)),
        (counts, lambda x: S.interval(jm.roc_auc, x, bins=UNIFORM)),
        (counts, lambda x: S.bootstrap(jm.roc_auc, x, bins=UNIFORM, key=jax.random.key(0))),
        (sums, lambda x: M.update(x, scores)),
        (sums, lambda x: M.merge(sums, x)),
        (sums, M.result),
    ]
    for state, use in uses:
        spoiled = spoil(state)
        for called in (use, jax.jit(use)):
            with pytest.raises(TypeError, match=r"int32, got .*: add states by jax\.lax\.psum or "):
                called(spoiled)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_digits_in_another_byte_order_are_refused_as_such(kind):
    swapped = np.dtype(kind).newbyteorder()
    for state, use in ((S.init(UNIFORM), S.n_items), (M.init(), M.result)):
        digits = np.asarray(state.digits).astype(swapped)
        with pytest.raises(TypeError, match=r"byte order.*State\(digits\.astype\(numpy\.int32\)\)"):
            use(type(state)(digits))


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


def test_the_lowest_whole_number_is_out_of_range_with_a_warning():
    means = jm.streaming.means
    with pytest.warns(UserWarning, match="1 of 3 values are beyond"):
        means.update(means.init(), np.array([-(2**31), 1, 1], np.int32))


def test_two_quantile_bins():
    np.testing.assert_array_equal(S.quantile_bins([0.5, 0.25, 1.0], 2).lower, [-np.inf, 0.5])
    with pytest.raises(ValueError, match="n must be at least 2"):
        S.quantile_bins([0.5], 1)


def test_empty_bins_repeat_the_threshold_of_a_neighbour():
    positives, negatives = np.array([0.0, 1, 0, 1]), np.array([0.0, 0, 0, 1])
    table = tied(positives, negatives, np.array([4.0, 3, 2, 1]), np.array(False))
    assert table.thresholds.tolist() == [3, 3, 3, 1]


def test_weights_are_in_the_unit_of_the_items():
    bins = S.uniform_bins(2, weight_scale=2.0**-10)
    given = {"weights": [2.0**-10, 2.0**-11, 2.0**-12]}
    state = S.update(S.init(bins, weighted=True), [0.1, 0.6, 0.7], [0, 1, 1], bins=bins, **given)
    table = S.table(state, bins=bins)
    np.testing.assert_allclose(table.positives, [3 * 2.0**-12, 0])
    np.testing.assert_allclose(table.negatives, [0, 2.0**-10])
