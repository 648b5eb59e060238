"""Means of streams of values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from numpy.testing import assert_allclose, assert_array_equal
from streams import UNIFORM, M, S


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
    none = jnp.zeros_like(full)
    for _ in range(200):  # the sums wrap round to 0
        full = M._merged(full, full)
    for pair in ((full, none), (none, full)):
        assert np.isnan(traced(M.State(M._merged(*pair)))).all()
