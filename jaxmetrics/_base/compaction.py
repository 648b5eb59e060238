"""Compaction: the indices of the entries of a mask, or of a sample, without a sort."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.numerics import running_count, running_highest
from jaxmetrics._base.types import Array

_BITS = 32  # of a word, which holds so many entries of the mask
_SCATTERS = np.uint32(2654435761)  # 2^32 over the golden ratio: its multiples are even on [0, 2^32)


def sample_indices(n: int, step: int) -> Array:
    """One index of each `step` of n, not always at the same place, as data may have that period."""
    index = jnp.arange(n // step, dtype=jnp.uint32)
    return (index * step + (index * _SCATTERS >> 16) % step).astype(jnp.int32)


def first_indices(mask: Array, capacity: int) -> tuple[Array, Array]:
    """The first indices at which `mask` `[n]` is True, in order, and whether there are so many.

    Both are `[capacity]`. XLA's running sum and scatter over all n entries take as long as half a
    sort on the CPU. Here they are over words of 32 entries, and over the result.
    """
    n = len(mask)
    each = jnp.arange(_BITS, dtype=jnp.uint32)
    entries = jnp.pad(mask, (0, -n % _BITS)).reshape(-1, _BITS).astype(jnp.uint32)
    words = jnp.sum(entries << each, axis=-1, dtype=jnp.uint32)
    counts = _count(words)
    ends = running_count(counts)
    starts = ends - counts
    # Each word with entries, at the place of its first, is repeated up to the next.
    at = jnp.where(counts > 0, starts, capacity)
    number = jnp.arange(len(words), dtype=jnp.int32)
    word = running_highest(jnp.zeros(capacity, jnp.int32).at[at].set(number, mode="drop"))
    place = jnp.arange(capacity, dtype=jnp.int32)
    bit = _place_of_bit(words.at[word].get(), place - starts.at[word].get())
    return jnp.minimum(word * _BITS + bit.astype(jnp.int32), n - 1), place < ends[-1]


def _place_of_bit(words: Array, number: Array) -> Array:
    """The place of the bit of this number, from 0, among those that are set, by bisection."""
    place, width = jnp.zeros_like(words), _BITS // 2
    while width:
        below = _count((words >> place) & jnp.uint32((1 << width) - 1))
        beyond = number >= below
        number = jnp.where(beyond, number - below, number)
        place = jnp.where(beyond, place + jnp.uint32(width), place)
        width //= 2
    return place


def _count(words: Array) -> Array:
    return lax.population_count(words).astype(jnp.int32)
