"""Random words and numbers, against their distributions."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from random_words import N, doubled, frequencies_fit
from scipy import stats

from jaxmetrics.inference._bootstrap import random as _random


def words(rng, *shape):
    return rng.integers(0, 2**32, shape, dtype=np.uint32)


# ---- words


def test_threefry_is_that_of_jax(rng):
    key, counters = words(rng, 2), words(rng, 2, 50)
    expected = threefry_2x32(jnp.asarray(key), jnp.asarray(counters.ravel()))
    got = _random.threefry(tuple(key), *counters)
    np.testing.assert_array_equal(np.concatenate(got), expected)


def test_two_below(rng):
    """The first two digits, to base n, of the words as a fraction."""
    n = np.array([1, 2, 3, 1000, 2**30 - 1, 2**31 - 1])[:, None]
    high, low = words(rng, 2, 200)
    high[:2], low[:2] = [0, 2**32 - 1], [0, 2**32 - 1]
    got = doubled(_random.two_below, n, (high, low))
    value = high.astype(object) * 2**32 + low.astype(object)
    digits = (value * n.astype(object) ** 2) >> 64
    np.testing.assert_array_equal(got, [digits // n, digits % n])


def test_gamma(rng):
    """Each word is turned into the quantile that SciPy has for it."""
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    word = np.append(words(rng, 200), ends)
    sizes = np.arange(_random.MAX_SIZE + 1)
    tables = _random.gamma_tables(_random.MAX_SIZE)
    got = doubled(_random.gamma, tables, np.broadcast_to(word, (len(sizes), len(word))))
    assert got.dtype == np.float32
    assert (got[0] == 0).all()
    expected = stats.gamma(sizes[1:, None]).ppf((word + 0.5) / 2**32)
    assert np.all(abs(got[1:] - expected) < 3e-6 * np.sqrt(sizes[1:, None]))


def test_alias_tables():
    """Each count has its probability."""
    rates, most = np.array([1.0, 0.9, 0.1, 0.0]), _random.MAX_SIZE
    tables, starts = doubled(partial(_random.poisson_tables, max_size=most), rates)
    for r, rate in enumerate(rates):
        for size in range(most + 1):
            counts = starts[r, size] + np.arange(_random.BUCKETS)
            expected = stats.poisson.pmf(counts, rate * size)
            got = chances(tables[r, size], _random.BITS)
            np.testing.assert_allclose(got, expected, atol=2e-9)
            assert expected.sum() > 1 - 1e-8


def chances(table, bits):
    """The probability of each number, added up over the entries of an alias table."""
    kept, alias = (table >> bits).astype(float), table & ((1 << bits) - 1)
    found = kept.copy()
    np.add.at(found, alias, (1 << (32 - bits)) - kept)
    return found / 2**32


def test_alias_tables_of_pairs():
    """Two counts are independent, and those of no item are 0."""
    rates = np.array([1.0, 0.3])
    tables = doubled(_random.pair_tables, rates).reshape(3, 3, -1)
    laws = [stats.poisson.pmf(np.arange(16), rate) for rate in (0.0, *rates)]
    for first in range(3):
        for second in range(3):
            expected = np.outer(laws[first], laws[second]).ravel()
            got = chances(tables[first, second], _random.BITS_OF_PAIR)
            np.testing.assert_allclose(got, expected, atol=1e-8)


def test_look_up(rng):
    sizes = np.array([0, 1, 5, _random.MAX_SIZE])
    tables, starts = doubled(
        partial(_random.poisson_tables, max_size=_random.MAX_SIZE), np.array([0.8])
    )
    word, bits = words(rng, 200_000), _random.BITS
    for size in sizes:
        entry = doubled(partial(_random.entry, bits=bits), tables.ravel(), size, word)
        got = starts[0, size] + doubled(partial(_random.number, bits=bits), entry, word)
        frequencies_fit(got, stats.poisson(0.8 * size))


def test_geometric(rng):
    """How many items are passed over until one that a unit has."""
    word = words(rng, 100_000)
    for chance in (0.02, 0.6):
        got = doubled(_random.geometric, np.float64(chance), word)
        frequencies_fit(got, stats.geom(chance))
    assert (doubled(_random.geometric, np.float64(1), word) == 1).all()
    assert (doubled(_random.geometric, np.float64(0), word) > N).all()


@pytest.mark.parametrize("mean", [0.0, 0.3, 7.5, 990.0])
def test_poisson_by_inversion(mean, rng):
    distribution, first = doubled(
        partial(_random.poisson_distribution, most=1000), np.float64(mean)
    )
    counts = first + np.arange(len(distribution))
    np.testing.assert_allclose(distribution, stats.poisson.cdf(counts, mean), atol=1e-12)
    high, low = words(rng, 2, 1000)
    got = doubled(_random.invert, distribution, first, (high, low))
    uniform = (high + (low + 0.5) / 2**32) / 2**32
    np.testing.assert_array_equal(got, stats.poisson.ppf(uniform, mean))
