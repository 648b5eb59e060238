"""The number of times that each resample draws each unit, for many resamples at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.host import on_gpu
from jaxmetrics._base.numerics import namespace
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array
from jaxmetrics.inference._bootstrap import random
from jaxmetrics.inference._bootstrap.random import Distribution, Words
from jaxmetrics.inference._bootstrap.units import TILE, Units, tiles_of

# A unit of MAX_SIZE items is drawn more than 255 times with probability below 1e-50.
COUNTS = jnp.uint8
# Poisson rates are lowered by this many standard deviations of the total, which is rarely exceeded.
_MARGIN = 2.5
# A lower bound of the share of resamples that are accepted: it is 0.9938 for each of two strata.
SHARE_ACCEPTED = 0.98
# A step of the top-up takes this many resamples, and this many slots of each. A GPU takes all
# resamples at once: each step of a loop is several launches, and one read of its condition.
_RESAMPLES, _BLOCK = 16, 128
_BLOCK_OF_GPU = 1 << 10
# Counts that a GPU draws in one step: an eighth of all, but between these limits. The several
# arrays of words then take less memory than the counts and their copies.
_DRAWN_AT_ONCE = 1 << 20, 1 << 23
_UNITS_AT_ONCE = 1 << 18  # at most: for Bayesian weights each has 160 bytes of coefficients


class Sampler(NamedTuple):
    """The inputs of all draws, the same for every chunk of resamples.

    Attributes:
      units: the units to draw.
      keys: two words each for the counts of the units, for `rest` and for the missing items.
      tables: alias tables of Poisson counts, flattened, by stratum and then by size of the unit;
        `pair_tables` if no unit has more than one item; for Bayesian weights `gamma_tables`.
      starts: the first count of each alias table; empty for pairs and Bayesian weights.
      rest: by stratum, the distribution of the number of draws of items that are in no unit; None
        if every item is in a unit.
    """

    units: Units
    keys: tuple[Words, ...]
    tables: Array
    starts: Array
    rest: tuple[Distribution, Distribution] | None


class Draws(NamedTuple):
    """The draws of a chunk of resamples; the last axis is the resamples.

    Attributes:
      counts: `[units, resamples]`, how often each unit is drawn.
      totals: `[2, resamples]`, the number of items drawn from each stratum, in a unit or not.
      accepted: `[resamples]`, False for resamples to ignore. Ignoring them causes no bias.
    """

    counts: Array
    totals: Array
    accepted: Array


def rates_of(total: Array, fill: Array) -> Array:
    """The Poisson rate of an item of each stratum, `[2]`: 1, or less if totals are filled up.

    Then the expected total is _MARGIN standard deviations, sqrt(n) each, below the n items of the
    stratum, and rarely exceeds n.
    """
    library = namespace(total, fill)
    n = library.maximum(total.astype(np.float64), 1)
    lower = 1 - library.minimum(1, _MARGIN / library.sqrt(n))
    return library.where(fill, lower, 1.0)


def draw(source: Sampler, first: Array, n: int, resampling: str) -> Draws:
    """The resamples `first` to `first + n - 1`; number 0 is the data themselves.

    Even numbers come first, then odd ones, as a Threefry block has two words. `n` and `first` are
    even. `in_turn` restores the order.

    Multinomial: Poisson counts are multinomial given their total. They are drawn at a rate a little
    below 1, and then the missing items are added one by one, each item equally likely. A resample
    is accepted if no stratum has too many. This depends on the totals alone, so it does not bias
    the counts.
    """
    units, resamples = source.units, numbers(first, n)
    poisson = _POISSON if len(source.starts) else _POISSON_PAIRS
    law = {"bayesian": _GAMMA, "swap": _COIN}.get(resampling, poisson)
    counts, drawn = _of_tiles(source, first, n, law)
    if resampling in ("bayesian", "swap"):
        return Draws(counts, drawn, jnp.ones(n, bool))
    rest = _rest(source, resamples)
    if resampling == "poisson":
        return Draws(counts, drawn + rest, jnp.ones(n, bool))
    missing = units.total[:, None] - drawn - rest
    accepted = jnp.all(missing >= 0, axis=0)
    counts = _top_up(source, counts, jnp.where(accepted, missing, 0), resamples)
    return Draws(counts, jnp.broadcast_to(units.total[:, None], missing.shape), accepted)


def numbers(first: Array, n: int) -> Array:
    """The resample numbers of a chunk, in the order of the draws."""
    even = first.astype(jnp.uint32) + jnp.arange(0, n, 2, dtype=jnp.uint32)
    return jnp.concatenate([even, even + 1])


def in_turn(values: Array) -> Array:
    """Values `[resamples, ...]` of a chunk, in the order of the resample numbers."""
    halves = values.reshape(2, -1, *values.shape[1:])
    return jnp.swapaxes(halves, 0, 1).reshape(values.shape)


class _Law(NamedTuple):
    """How the words of a tile become counts.

    Attributes:
      units: the number of units that share one word.
      entry: looks words up in the tables: from the sampler, words `[tiles, words, resamples]`, and
        the sizes and strata `[tiles, units, 1]`, to entries `[tiles, words, resamples]`.
      counts: from the sampler, entries, words, sizes and strata to the counts
        `[tiles, units, resamples]`.
      dtype: the dtype of the counts.
    """

    units: int
    entry: Callable[..., Array]
    counts: Callable[..., Array]
    dtype: Any = COUNTS


def _of_tiles(source: Sampler, first: Array, n: int, law: _Law) -> tuple[Array, Array]:
    """The counts of all units, `[units, n]`, and their totals by stratum, `[2, n]`.

    On the CPU a step is one tile, which stays in the cache; a GPU takes many tiles a step.
    """
    units = source.units
    n_tiles = len(units.size) // TILE
    steps = _steps(n_tiles, n) if on_gpu() else n_tiles
    at_once = -(-n_tiles // steps)
    n_units, half = at_once * TILE, n // 2
    columns = [jnp.pad(x, (0, steps * n_units - len(x))) for x in (units.size, units.stratum)]
    shape = (at_once, TILE // law.units, half)
    pair = first.astype(jnp.uint32) // 2 + lax.broadcasted_iota(jnp.uint32, shape, 2)
    place = np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(*shape[:2], 1)
    as_is = (numbers(first, n) == 0).reshape(2, half)

    def words(step: Array) -> Array:
        """The 32-bit words of an even and the next odd resample, as one of 64 bits."""
        unit = (step * place.size).astype(jnp.uint32) + jnp.broadcast_to(place, shape)
        if law is _COIN:  # the two units of a pair share one coin
            unit = units.owner.astype(jnp.uint32)[jnp.minimum(unit, len(units.owner) - 1)]
        even, odd = random.threefry(source.keys[0], unit, pair)
        return (odd.astype(jnp.uint64) << 32) | even.astype(jnp.uint64)

    def halves(both: Array) -> tuple[Array, Array]:
        return both.astype(jnp.uint32), (both >> 32).astype(jnp.uint32)

    def entries(both: Array, *columns: Array) -> tuple[Array, ...]:
        return tuple(law.entry(source, word, *columns) for word in halves(both))

    def body(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        counts, drawn = state
        begin = jnp.int32(step) * n_units
        size, stratum = (
            lax.dynamic_slice_in_dim(x, begin, n_units).reshape(-1, TILE, 1) for x in columns
        )
        both = varying.apart(words, step)
        found = varying.apart(entries, both, size, stratum)
        for i, (entry, word) in enumerate(zip(found, halves(both), strict=True)):
            new = law.counts(source, entry, word, size, stratum).astype(law.dtype)
            new = jnp.where(as_is[i], size.astype(law.dtype), new).reshape(n_units, half)
            counts = lax.dynamic_update_slice(counts, new, (begin, jnp.int32(i * half)))
        new = lax.dynamic_slice_in_dim(counts, begin, n_units).reshape(-1, TILE, n)
        whole = new.astype(jnp.int16)  # 128 counts of at most 255 add up within 16 bits
        all_drawn = jnp.sum(whole, axis=1, dtype=jnp.int16)
        one = jnp.sum(whole * stratum.astype(jnp.int16), axis=1, dtype=jnp.int16)
        here = [jnp.sum(x, axis=0, dtype=jnp.int32) for x in (all_drawn - one, one)]
        return counts, drawn + jnp.stack(here)

    counts = jnp.zeros((steps * n_units, n), law.dtype)
    end = (tiles_of(units.used) + at_once - 1) // at_once
    counts, drawn = varying.fori_loop(0, end, body, (counts, jnp.zeros((2, n), jnp.int32)))
    return counts[: len(units.size)], drawn


def _steps(n_tiles: int, n: int) -> int:
    """The number of steps in which a GPU draws `n_tiles` tiles of n resamples."""
    least, largest = _DRAWN_AT_ONCE
    drawn = max(min(largest, n_tiles * TILE * n // 8), least)
    at_once = max(min(drawn // n, _UNITS_AT_ONCE) // TILE, 1)
    return -(-n_tiles // at_once)


def _entry_of_unit(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    return random.entry(source.tables, _table(source, size, stratum), word, random.BITS)


def _count_of_unit(
    source: Sampler, entry: Array, word: Array, size: Array, stratum: Array
) -> Array:
    start = entries_at(source.starts, _table(source, size, stratum))
    return start + random.number(entry, word, random.BITS)


def _table(source: Sampler, size: Array, stratum: Array) -> Array:
    return stratum * (len(source.starts) // 2) + size


def _entry_of_pair(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    """The common entry of two units of at most one item, which are half a tile apart."""
    rate = jnp.where(size > 0, 1 + stratum, 0)
    first, second = jnp.split(rate, 2, axis=-2)
    return random.entry(source.tables, 3 * first + second, word, random.BITS_OF_PAIR)


def _counts_of_pair(
    source: Sampler, entry: Array, word: Array, size: Array, stratum: Array
) -> Array:
    both, half = random.number(entry, word, random.BITS_OF_PAIR), random.BITS_OF_PAIR // 2
    return jnp.concatenate([both >> np.uint32(half), both & np.uint32((1 << half) - 1)], axis=-2)


def _no_entry(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    return word


def _gamma(source: Sampler, entry: Array, word: Array, size: Array, stratum: Array) -> Array:
    """The sum of the exponential weights of the unit's items."""
    coefficients = entries_at(source.tables, size[..., 0])
    return random.gamma(coefficients, word)


def _coin(source: Sampler, entry: Array, word: Array, size: Array, stratum: Array) -> Array:
    """1 if the coin of its pair chooses the unit: heads stratum 0, tails stratum 1; else 0."""
    return (word & np.uint32(1)) ^ (stratum == 0)


_POISSON = _Law(1, _entry_of_unit, _count_of_unit)
_POISSON_PAIRS = _Law(2, _entry_of_pair, _counts_of_pair)
_GAMMA = _Law(1, _no_entry, _gamma, jnp.float32)
_COIN = _Law(1, _no_entry, _coin)


def _rest(source: Sampler, resamples: Array) -> Array:
    """The number of draws `[2, resamples]` of items that are in no unit."""
    if source.rest is None:
        return jnp.zeros((2, len(resamples)), jnp.int32)
    left = (source.units.total - source.units.drawn)[:, None]
    strata = jnp.broadcast_to(jnp.arange(2, dtype=jnp.uint32)[:, None], (2, len(resamples)))
    words = random.threefry(source.keys[1], strata, resamples[None])
    drawn = [
        random.invert(*source.rest[stratum], (words[0][stratum], words[1][stratum]))
        for stratum in (0, 1)
    ]
    return jnp.where(resamples == 0, left, jnp.stack(drawn))


class _Slots(NamedTuple):
    """The state of adding missing items: group after group, and in each block after block.

    A group is some resamples that lack about equally many items of one stratum. A block is a number
    of slots for each resample of a group, and a slot adds one item.

    Attributes:
      group: the number of the group.
      block: the number of the block in the group.
      passed: `[resamples of the group]`, the missing items that earlier blocks added or skipped.
      counts: `[units, resamples]`, with the items added so far.
    """

    group: Array
    block: Array
    passed: Array
    counts: Array


def _top_up(source: Sampler, counts: Array, missing: Array, resamples: Array) -> Array:
    """The counts after drawing as many more items as are `missing`, `[2, resamples]`, one by one.

    Items in no unit change nothing and are skipped: the number of draws up to the next item that is
    in a unit is geometric.
    """
    units, key = source.units, source.keys[2]
    lanes = len(resamples)
    width, block = (lanes, _BLOCK_OF_GPU) if on_gpu() else (math.gcd(lanes, _RESAMPLES), _BLOCK)
    n_groups = lanes // width  # of each stratum
    in_order = jnp.argsort(missing, axis=1).astype(jnp.int32).reshape(-1, width)
    down = lax.broadcasted_iota(jnp.int32, (block // 2, width), 0)
    draws = 1 if source.rest is None else 2

    def items(group: Array, number: Array) -> tuple[Array, ...]:
        """A random item for each slot and, if some are in no unit, a word for the draws to it."""
        stratum = group // n_groups
        pair = (2 * draws * (number * (block // 2) + down) + stratum).astype(jnp.uint32)
        lane = jnp.broadcast_to(resamples[in_order[group]], pair.shape)
        item, *word = (random.threefry(key, pair + np.uint32(2 * i), lane) for i in range(draws))
        found = random.two_below(units.drawn[stratum], item), *word
        # The two slots of a pair are neighbours, so that the draws do not depend on the block size.
        return tuple(jnp.stack(x, axis=1).reshape(block, width) for x in found)

    def body(state: _Slots) -> _Slots:
        found = varying.apart(items, state.group, state.block)
        stratum, across = state.group // n_groups, in_order[state.group]
        here, drawn = missing[stratum, across], units.drawn[stratum]
        gone = jnp.arange(1, block + 1, dtype=jnp.int32)[:, None]
        if source.rest is not None:
            chance = drawn.astype(jnp.float64) / units.total[stratum]
            gone = jnp.cumsum(random.geometric(chance, found[1]), axis=0, dtype=jnp.int32)
        at = state.passed + gone
        added = at <= here
        item = jnp.where(added, stratum * units.drawn[0] + found[0], 0)
        unit = entries_at(units.owner, item)
        counts = state.counts.at[unit, jnp.broadcast_to(across, unit.shape)].add(
            added.astype(COUNTS), mode="promise_in_bounds"
        )
        done = jnp.all(at[-1] >= here)
        return _Slots(
            state.group + done.astype(jnp.int32),
            jnp.where(done, 0, state.block + 1),
            jnp.where(done, 0, jnp.minimum(at[-1], random.MANY)),
            counts,
        )

    start = _Slots(jnp.int32(0), jnp.int32(0), jnp.zeros(width, jnp.int32), counts)
    filled: _Slots = varying.while_loop(lambda state: state.group < 2 * n_groups, body, start)
    return filled.counts
