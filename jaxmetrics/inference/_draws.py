"""How often each unit is in each resample: many resamples at once, in whole tiles of units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._types import Array
from jaxmetrics.inference import _random
from jaxmetrics.inference._random import Distribution, Words
from jaxmetrics.inference._resampling import TILE, Units

COUNTS = jnp.uint16


class Sampler(NamedTuple):
    """What the draws of some units need, whatever the chunk of resamples.

    Attributes:
      units: what is drawn.
      words: `[2]`, of the random key.
      tables: alias tables of Poisson counts, flattened, by stratum and then by size of the unit.
      starts: their first counts.
      rest: by stratum, the distribution of the count of items that no unit has; None if all have.
    """

    units: Units
    words: Array
    tables: Array
    starts: Array
    rest: tuple[Distribution, Distribution] | None


class Draws(NamedTuple):
    """A chunk of resamples, which are the last axis.

    Attributes:
      counts: `[units, resamples]`, how often each unit is drawn.
      totals: `[2, resamples]`, all items drawn of each stratum, also those that no unit has.
      accepted: `[resamples]`; others are to be ignored, which does not bias those accepted.
    """

    counts: Array
    totals: Array
    accepted: Array


def rates_of(total: Array, fill: Array) -> Array:
    """The rates `[2]` of the Poisson counts of each stratum: 1, or, if totals are filled, less.

    So much less that the sum, whose standard deviation is sqrt(n), is seldom above n.
    """
    lower = 1 - jnp.minimum(1, 2 / jnp.sqrt(jnp.maximum(total.astype(jnp.float64), 1)))
    return jnp.where(fill, lower, 1.0)


def draw(source: Sampler, first: Array, n: int, resampling: str) -> Draws:
    """The resamples `first` to `first + n - 1`, of which number 0 is the data as they are.

    Even numbers come first, then odd ones: the two words of a Threefry block. `n` and `first` are
    even. `in_turn` puts results right.

    Multinomial: Poisson counts, given their total, are multinomial. They are drawn at a rate a
    little below 1, and as many single items as are missing are added, each equally likely. Where
    the total is not within two standard deviations of its mean the resample is not accepted, which
    depends on the total alone.
    """
    units, resamples = source.units, numbers(first, n)
    if resampling == "bayesian":
        weights, totals = _of_tiles(source, first, n, _exponential, jnp.float32)
        return Draws(weights, totals, jnp.ones(n, bool))
    if resampling == "swap":
        counts, totals = _of_tiles(source, first, n, _coin, COUNTS)
        return Draws(counts, totals, jnp.ones(n, bool))
    counts, drawn = _of_tiles(source, first, n, _poisson, COUNTS)
    rest = _rest(source, resamples)
    if resampling == "poisson":
        return Draws(counts, drawn + rest, jnp.ones(n, bool))
    missing = units.total[:, None] - drawn - rest
    window = jnp.ceil(4 * jnp.sqrt(units.total.astype(jnp.float64))).astype(jnp.int32)
    accepted = jnp.all((missing >= 0) & (missing <= window[:, None]), axis=0)
    counts = _top_up(source, counts, jnp.where(accepted, missing, 0), resamples)
    return Draws(counts, jnp.broadcast_to(units.total[:, None], missing.shape), accepted)


def numbers(first: Array, n: int) -> Array:
    """The numbers of the resamples of a chunk, in the order of the draws."""
    even = first.astype(jnp.uint32) + jnp.arange(0, n, 2, dtype=jnp.uint32)
    return jnp.concatenate([even, even + 1])


def in_turn(values: Array) -> Array:
    """Values `[resamples, ...]` of a chunk, in the order of the resamples' numbers."""
    halves = values.reshape(2, -1, *values.shape[1:])
    return jnp.swapaxes(halves, 0, 1).reshape(values.shape)


def _words_ahead(
    words: Callable[[Array], Any], steps: Array, body: Callable[[Array, Any, Any], Any], start: Any
) -> Any:
    """A loop whose step gets `words(step)`, which were made in the step before.

    They are then in memory, where XLA would else fuse their arithmetic into the gathers that use
    them, which are not vectorised. Step -1 gets zeros, and must do nothing that stays.
    """

    def step(number: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return words(number + 1), body(number, *carry)

    shapes = jax.eval_shape(words, jnp.int32(0))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    result: Any = lax.fori_loop(jnp.int32(-1), steps.astype(jnp.int32), step, (zeros, start))[1]
    return result


def _of_tiles(
    source: Sampler, first: Array, n: int, count: Callable[..., Array], dtype: Any
) -> tuple[Array, Array]:
    """The counts of all units, and their totals by stratum."""
    units = source.units
    key = _random.for_purpose(source.words, 0)
    half = (TILE, n // 2)
    pair = first.astype(jnp.uint32) // 2 + lax.broadcasted_iota(jnp.uint32, half, 1)
    as_is = numbers(first, n) == 0

    def words(tile: Array) -> Array:
        unit = (tile * TILE).astype(jnp.uint32) + lax.broadcasted_iota(jnp.uint32, half, 0)
        if count is _coin:  # both units of a pair have one coin
            unit = units.owner.astype(jnp.uint32)[jnp.minimum(unit, len(units.owner) - 1)]
        return jnp.concatenate(_random.threefry(key, unit, pair), axis=1)

    def body(tile: Array, word: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        counts, drawn = carry
        begin = jnp.maximum(tile, 0) * TILE
        size, stratum = (
            lax.dynamic_slice_in_dim(x, begin, TILE)[:, None] for x in (units.size, units.stratum)
        )
        new = jnp.where(as_is, size.astype(dtype), count(source, word, size, stratum).astype(dtype))
        whole = jnp.where(tile < 0, 0, new.astype(jnp.int32))
        both = jnp.sum(whole, axis=0, dtype=jnp.int32)
        one = jnp.sum(whole * stratum, axis=0, dtype=jnp.int32)
        counts = lax.dynamic_update_slice_in_dim(counts, new, begin, 0)
        return counts, drawn + jnp.stack([both - one, one])

    start = (jnp.zeros((len(units.size), n), dtype), jnp.zeros((2, n), jnp.int32))
    counts, drawn = _words_ahead(words, (units.used + TILE - 1) // TILE, body, start)
    return counts, drawn


def _poisson(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    table = stratum * (len(source.starts) // 2) + size
    offset = (table * _random.BUCKETS).astype(jnp.uint32)
    start = source.starts.at[table].get(mode="promise_in_bounds")
    return _random.look_up(source.tables, offset, start, word)


def _exponential(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    return _random.exponential(word) * size


def _coin(source: Sampler, word: Array, size: Array, stratum: Array) -> Array:
    """Heads for a unit of stratum 0, tails for one of stratum 1."""
    return (word & np.uint32(1)) ^ (stratum == 0)


def _rest(source: Sampler, resamples: Array) -> Array:
    """How many items `[2, resamples]` fall to no unit."""
    if source.rest is None:
        return jnp.zeros((2, len(resamples)), jnp.int32)
    left = (source.units.total - source.units.drawn)[:, None]
    strata = jnp.broadcast_to(jnp.arange(2, dtype=jnp.uint32)[:, None], (2, len(resamples)))
    words = _random.threefry(_random.for_purpose(source.words, 1), strata, resamples[None])
    drawn = [
        _random.invert(*source.rest[stratum], (words[0][stratum], words[1][stratum]))
        for stratum in (0, 1)
    ]
    return jnp.where(resamples == 0, left, jnp.stack(drawn))


def _top_up(source: Sampler, counts: Array, slots: Array, resamples: Array) -> Array:
    """The counts with as many single items more as there are slots `[2, resamples]`.

    An item that no unit has changes nothing.
    """
    units = source.units
    key = _random.for_purpose(source.words, 2)
    block = 32
    down = lax.broadcasted_iota(jnp.int32, (block, len(resamples)), 0)
    across = lax.broadcasted_iota(jnp.int32, (block, len(resamples)), 1)
    blocks = (jnp.max(slots, axis=1) + block - 1) // block

    def of_block(number: Array) -> tuple[Array, Array]:
        stratum = (number >= blocks[0]).astype(jnp.int32)
        return stratum, (number - stratum * blocks[0]) * block + down

    def words(number: Array) -> Words:
        stratum, slot = of_block(number)
        counter = (2 * slot + stratum).astype(jnp.uint32)
        return _random.threefry(key, counter, jnp.broadcast_to(resamples, counter.shape))

    def body(number: Array, word: Words, counts: Array) -> Array:
        stratum, slot = of_block(number)
        item = _random.below(units.total[stratum], word)
        counted = (number >= 0) & (slot < slots[stratum]) & (item < units.drawn[stratum])
        begin = stratum * units.drawn[0]
        unit = units.owner.at[jnp.where(counted, begin + item, 0)].get(mode="promise_in_bounds")
        return counts.at[unit, across].add(counted.astype(counts.dtype), mode="promise_in_bounds")

    filled: Array = _words_ahead(words, jnp.sum(blocks), body, counts)
    return filled
