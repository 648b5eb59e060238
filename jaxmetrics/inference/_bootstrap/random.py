"""Counter-based random words, integers, Poisson counts and gamma variates.

The word of unit i of resample j depends on the key, i and j alone, not on the chunk of resamples in
which it is drawn. The values of `jax.random` change with the shape of the array, and its loop over
the Threefry rounds takes ten times as long on the CPU as the rounds written out.

References: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, for
Threefry; A. J. Walker, "An efficient method for generating discrete random variables with general
distributions", ACM Transactions on Mathematical Software 3, 1977, for alias tables.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import gammaln
from numpy.polynomial import chebyshev

from jaxmetrics._base.cumulative import cumulated
from jaxmetrics._base.host import at_hand
from jaxmetrics._base.numerics import namespace
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array, HostArray

Words: TypeAlias = tuple[Array, Array]
# The distribution function of a count, from a first count on, and this first count.
Distribution: TypeAlias = tuple[Array, Array]

# An alias table has 2^BITS counts, enough for a unit of MAX_SIZE items.
BITS = 7
BUCKETS = 1 << BITS
MAX_SIZE = 64
# The number of a pair of items has this many bits: the count of the first item in the upper half,
# and that of the second in the lower half.
BITS_OF_PAIR = 8
# The number of coefficients of a quantile in r = sqrt(-2 log p), for p from 2^-33 to 1/2.
TERMS = 20
_ENDS = np.sqrt(-2 * np.log([0.5, 2.0**-33]))
_MIDDLE, _REACH = float(_ENDS.mean()), float(_ENDS[1] - _ENDS[0]) / 2
# More items than a resample ever lacks, yet a block of such numbers adds up within 32 bits.
MANY = 1 << 20


@jax.jit
def words_of(key: Array) -> Array:
    """Two words `[2]` from any JAX key."""
    return jax.random.bits(key, (2,), jnp.uint32)


def keys_of(key: Array) -> tuple[Words, ...]:
    """Two words for each of three purposes; by NumPy where the key is at hand."""
    (words,) = at_hand(words_of(key))
    return _of_purposes(words) if isinstance(words, np.ndarray) else jax.jit(_of_purposes)(words)


def _of_purposes(words: Any) -> tuple[Words, ...]:
    purposes: Any = np.arange(3, dtype=np.uint32)
    first, second = threefry(tuple(words), purposes, np.zeros_like(purposes))
    return tuple((first[i], second[i]) for i in range(3))


def threefry(key: Words, first: Array, second: Array) -> Words:
    """Threefry-2x32 with 20 rounds: two random words for each pair of counters."""

    def rotated(x: Array, by: int) -> Array:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    keys = (*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    x, y = first + keys[0], second + keys[1]
    for group in range(5):
        for by in rotations[group % 2]:
            x = x + y
            y = rotated(y, by) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def two_below(n: Array, words: Words) -> tuple[Array, Array]:
    """Two integers from 0 to n - 1 from 64 random bits: uniform to n^2 / 2^64.

    They are the first two digits, to base n, of the bits as a fraction. Each alone is uniform to
    n / 2^64.
    """
    n, digits = n.astype(jnp.uint64), []
    high, low = (word.astype(jnp.uint64) for word in words)
    for _ in range(2):
        product = low * n
        high = high * n + (product >> 32)
        digits.append((high >> 32).astype(jnp.int32))
        high, low = high & np.uint64(0xFFFFFFFF), product & np.uint64(0xFFFFFFFF)
    return digits[0], digits[1]


@functools.cache
def gamma_tables(max_size: int) -> HostArray:
    """Coefficients `[max_size + 1, 2, TERMS]` of the quantiles of Gamma(size), for `gamma`.

    In r = sqrt(-2 log p), with p the lower and the upper tail from 2^-33 to 1/2, a quantile is
    almost a straight line. The error of the polynomial is below 2e-8 standard deviations, and of
    variates in float32 below 3e-6.
    """
    nodes = np.cos((np.arange(TERMS) + 0.5) * np.pi / TERMS)
    tail = np.exp(-((_MIDDLE + _REACH * nodes) ** 2) / 2)
    size = np.arange(1, max_size + 1)[:, None]
    inverses = scipy.special.gammaincinv, scipy.special.gammainccinv
    quantiles = np.stack([inverse(size, tail) for inverse in inverses], 1)
    fitted = chebyshev.chebfit(nodes, quantiles.reshape(-1, TERMS).T, TERMS - 1).T
    powers = np.apply_along_axis(chebyshev.cheb2poly, 1, fitted)
    found = np.pad(powers.reshape(max_size, 2, TERMS), ((1, 0), (0, 0), (0, 0)))
    return found.astype(np.float32)


def gamma(coefficients: Array, word: Array) -> Array:
    """Gamma variates from words `[..., units, resamples]`, in float32.

    The coefficients are `[..., units, 2, TERMS]`, entries of `gamma_tables`.
    """
    upper = (word >> np.uint32(31)) == 1
    # The midpoint of one of 2^32 parts of [0, 1], or its distance from 1 if that is smaller.
    tail = (jnp.where(upper, ~word, word).astype(jnp.float32) + 0.5) * 2.0**-32
    x = (jnp.sqrt(-2 * jnp.log(tail)) - _MIDDLE) / _REACH
    found = jnp.zeros_like(x)
    for k in reversed(range(TERMS)):
        low, high = (coefficients[..., side, k, None] for side in (0, 1))
        found = found * x + jnp.where(upper, high, low)
    return jnp.maximum(found, 0)


def geometric(chance: Array, word: Array) -> Array:
    """The number of trials up to the first success, from 1 to MANY."""
    trials = jnp.floor(jnp.log((word.astype(jnp.float64) + 0.5) * 2.0**-32) / jnp.log1p(-chance))
    # For chance 0 the quotient is infinite, and for chance 1 it is 0.
    return jnp.minimum(trials, MANY - 1.0).astype(jnp.int32) + 1


def poisson_tables(rates: Array, max_size: int) -> tuple[Array, Array]:
    """Alias tables `[rates, max_size + 1, BUCKETS]` of Poisson(rate * size), and its first counts.

    Counts more than 6.4 standard deviations below the mean are left off, with probability below
    1e-13. Probabilities are exact to 3e-9.
    """
    library = namespace(rates)
    mean = rates[:, None] * library.arange(max_size + 1)
    start = library.maximum(library.floor(mean - 6.4 * library.sqrt(mean)), 0).astype(np.int64)
    chance = _poisson_chances(mean, start[..., None] + library.arange(BUCKETS))
    return _alias_tables(chance, BITS), start.astype(np.uint32)


def pair_tables(rates: Array) -> Array:
    """Alias tables `[(1 + rates)^2, 2^BITS_OF_PAIR]` of two Poisson counts, of rates 0 and `rates`.

    Counts above 15 are left off, with probability below 1e-13. Probabilities are exact to 1e-8.
    """
    library = namespace(rates)
    means = library.concatenate([library.zeros(1), rates])
    chance = _poisson_chances(means, library.arange(1 << (BITS_OF_PAIR // 2)))
    both = chance[:, None, :, None] * chance[None, :, None, :]
    return _alias_tables(both.reshape(-1, 1 << BITS_OF_PAIR), BITS_OF_PAIR)


def _poisson_chances(mean: Array, counts: Array) -> Array:
    """The probabilities `[..., counts]` of counts `[counts]` or `[..., counts]`."""
    library = namespace(mean, counts)
    factors = library.maximum(library.arange(MAX_SIZE + BUCKETS + 1.0), 1)
    log_factorial = cumulated(library.log(factors))
    safe = library.maximum(mean, 1e-300)[..., None]
    return library.exp(counts * library.log(safe) - safe - log_factorial[counts])


def _alias_tables(chance: Array, bits: int) -> Array:
    """Alias tables `[..., 2^bits]` of probabilities, which are made to add up to 1.

    The first bits of a word choose a bucket. The bucket stands for its own number if the other bits
    are below its threshold, and else for its alias.
    """
    library = namespace(chance)
    buckets, full = 1 << bits, 1 << (32 - bits)
    share = chance / library.sum(chance, axis=-1, keepdims=True)
    level = library.round(share * 2.0**32).astype(np.int64)
    rest = (1 << 32) - library.sum(level, axis=-1, keepdims=True)
    fullest = library.argmax(level, axis=-1)[..., None]
    level = level + library.where(library.arange(buckets) == fullest, rest, 0)
    # Walker's method: the surplus of heavy buckets fills the light ones, both in order.
    lack = library.maximum(full - level, 0)
    missing = library.cumsum(lack, axis=-1)
    surplus = library.cumsum(library.maximum(level - full, 0), axis=-1)

    # One search in all tables, as one for each is slow: the sums of each table are raised above
    # those of the table before.
    apart = (library.arange(level[..., 0].size) << 40).reshape(*level.shape[:-1], 1)
    first = (apart >> 40) * buckets

    def find(sums: Array, of: Array, side: str = "left") -> Array:
        at = library.searchsorted((sums + apart).ravel(), (of + apart).ravel(), side=side)
        return at.reshape(of.shape) - first

    poured_from = find(surplus, missing - lack, side="right")
    exhausted_at = library.minimum(find(missing, surplus), buckets - 1)
    left_over = full + surplus - library.take_along_axis(missing, exhausted_at, axis=-1)
    heavy = level > full
    threshold = library.where(heavy, left_over, level)
    alias = library.where(heavy, find(surplus, surplus, side="right"), poured_from)
    threshold, alias = library.minimum(threshold, full), library.minimum(alias, buckets - 1)
    # The threshold of a full bucket needs one bit more than there is, so it is its own alias.
    itself = threshold == full
    alias = library.where(itself, library.arange(buckets), alias)
    threshold = library.where(itself, full - 1, threshold)
    return ((threshold << bits) | alias).astype(np.uint32)


def entry(tables: Array, table: Array, word: Array, bits: int) -> Array:
    """The entry of a word in one of the alias tables `[tables * 2^bits]`."""
    at = (table.astype(jnp.uint32) << np.uint32(bits)) + (word >> np.uint32(32 - bits))
    return entries_at(tables, at.astype(jnp.int32))


def number(entry: Array, word: Array, bits: int) -> Array:
    """The number that a word and its entry in an alias table stand for."""
    rest, mask = (1 << (32 - bits)) - 1, (1 << bits) - 1
    kept = (word & np.uint32(rest)) < (entry >> np.uint32(bits))
    return jnp.where(kept, word >> np.uint32(32 - bits), entry & np.uint32(mask))


def poisson_distribution(mean: Array, most: int) -> Distribution:
    """The distribution function of a Poisson count of a mean up to `most`, and its first count.

    It covers 8 standard deviations on either side of the mean.
    """
    reach = 8 * int(np.sqrt(most)) + 32
    first = jnp.maximum(jnp.floor(mean) - reach, 0)
    counts = first + jnp.arange(2 * reach)
    safe = jnp.maximum(mean, 1e-300)
    return cumulated(jnp.exp(counts * jnp.log(safe) - safe - gammaln(counts + 1))), first


def invert(distribution: Array, first: Array, words: Words) -> Array:
    """The counts at which the distribution function exceeds the uniform numbers of the words."""
    high, low = (word.astype(jnp.float64) for word in words)
    uniform = (high + (low + 0.5) * 2.0**-32) * 2.0**-32
    found = jnp.searchsorted(distribution, uniform * distribution[-1], side="right")
    return (first + jnp.minimum(found, len(distribution) - 1)).astype(jnp.int32)
