"""Weights of all sizes, and sums that overflow."""

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from numpy.testing import assert_allclose, assert_array_equal
from streams import METRICS, UNIFORM, M, S, filled

import jaxmetrics as jm

SPECIFICITY = partial(jm.specificity_at_sensitivity, min_sensitivity=0.5)
FIRST = ("roc_auc", "two-way", "recall", "threshold", "precision", "average precision")
DISTINCT = np.linspace(0.001, 0.999, 300, dtype=np.float32)


def small_weights(rng, scale):
    labels = rng.random(300) < 0.3
    weights = rng.random(300) ** 4 * scale
    return rng.permuted(DISTINCT), labels, weights


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_whole_weights_beyond_single_precision(kind, x64):
    """A weight of 2^24 + 1 is one that float32 rounds."""
    bins, weights = S.uniform_bins(4), np.array([1, 2**24 + 1, 1, 2**24 + 3], kind)
    items = np.array([0.3, 0.9, 0.6, 0.1]), np.array([1, 0, 1, 0])
    state = filled(bins, *items, weights=weights)
    assert sum(S.table(state, bins=bins).negatives) == 2**25 + 4
    low, high = S.bounds(jm.roc_auc, state, bins=bins)
    assert float(low) <= Fraction(2**24 + 3, 2**25 + 4) <= float(high)


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_whole_weights_of_a_program_are_those_of_an_eager_update(kind):
    """Also beyond 2^24, where float32 rounds, and in units of another scale."""
    largest = np.iinfo(kind).max
    weights = np.array([1, 2**24 + 1, largest, largest - 1], kind)
    items = np.array([0.3, 0.9, 0.6, 0.1]), np.array([1, 0, 1, 0])
    for scale in (1.0, 2.0**20):
        bins = S.uniform_bins(4, weight_scale=scale)
        update = partial(S.update, S.init(bins, weighted=True), *items, bins=bins)
        traced = jax.jit(lambda x, update=update: update(weights=x))(weights)
        assert_array_equal(traced.digits, filled(bins, *items, weights=weights).digits)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_whole_weights_that_a_program_encloses_keep_64_bits(kind):
    """JAX would cut such constants of a program to 32 bits: 2^32 + 1 would count as 1."""
    n = 2**13  # long constants are hidden from XLA
    bins, weights = S.uniform_bins(4), np.resize([1, 2**32 + 1, 2**31 + 1, 2**33 + 3], n)
    weights = weights.astype(kind)
    items = np.resize([0.3, 0.9, 0.6, 0.1], n), np.resize([1, 0, 1, 0], n)
    expected = filled(bins, *items, weights=weights).digits

    def update(digits, scores):
        return S.update(S.State(digits), scores, items[1], weights=weights, bins=bins).digits

    state, scores = S.init(bins, weighted=True).digits, np.float32(items[0])
    assert_array_equal(jax.jit(update)(state, scores), expected)
    found = jax.vmap(update)(jnp.stack(2 * [state]), np.stack(2 * [scores]))
    assert_array_equal(found, np.stack(2 * [expected]))


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


@pytest.mark.parametrize(
    ("metric", "weights", "exact"),
    [
        (SPECIFICITY, (1e9 / 3, 2e4 / 3), lambda a, b: b / (a + b)),
        (jm.roc_auc, (1e12 / 3, 2e7 / 3), lambda a, b: b / (a + b)),
        (jm.roc_auc, (1e13 / 3, 1e-6), lambda a, b: b / (a + b)),
        (SPECIFICITY, (1e-6, 1e12 / 3), lambda a, b: b / (a + b)),
    ],
)
def test_sums_with_more_digits_than_double_precision(metric, weights, exact, x64):
    """A positive between two negatives of such weights; the oracle is in fractions."""
    bins = S.edges([0.25, 0.5])
    items = np.float32([0.9, 0.1, 0.4]), np.array([0, 0, 1])
    state = filled(bins, *items, weights=np.array([*weights, 1.0]))
    low, high = map(float, S.bounds(metric, state, bins=bins))
    value = exact(*map(Fraction, weights))
    assert Fraction(low) <= value <= Fraction(high)
    assert high - low < 1e-9 * high + 1e-14


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
    digits, none = state.digits, jnp.zeros_like(state.digits)
    for _ in range(80):  # the sums wrap round to 0
        digits = S._state._merged(digits, digits)
    for pair in ((digits, none), (none, digits)):
        assert np.isnan(traced(S.State(S._state._merged(*pair)))[0])


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
