"""Compaction: the indices of the entries of a mask, or of a sample, without a sort."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.cumulative import running_count, running_highest
from jaxmetrics._base.types import Array

BITS = 32  # of a word, which holds so many entries of a mask
_SCATTERS = np.uint32(2654435761)  # 2^32 over the golden ratio: its multiples are even on [0, 2^32)


def sample_indices(n: int, step: int, library: Any = jnp) -> Array:
    """One index of each `step` of n, not always at the same place, as data may have that period."""
    index = library.arange(n // step, dtype=np.uint32)
    found: Array = (index * step + (index * _SCATTERS >> 16) % step).astype(np.int32)
    return found


def first_indices(mask: Array, capacity: int) -> tuple[Array, Array]:
    """The first indices at which `mask` `[n]` is True, in order, and whether there are so many.

    Both are `[capacity]`. XLA's running sum and scatter over all n entries take as long as half a
    sort on the CPU. Here they are over words of 32 entries, and over the result.
    """
    n, words = len(mask), in_words(mask)
    counts = number_of_bits(words)
    ends = running_count(counts)
    starts = ends - counts
    # Each word with entries, at the place of its first, is repeated up to the next.
    at = jnp.where(counts > 0, starts, capacity)
    number = jnp.arange(len(words), dtype=jnp.int32)
    word = running_highest(jnp.zeros(capacity, jnp.int32).at[at].set(number, mode="drop"))
    place = jnp.arange(capacity, dtype=jnp.int32)
    bit = _place_of_bit(words.at[word].get(), place - starts.at[word].get())
    return jnp.minimum(word * BITS + bit.astype(jnp.int32), n - 1), place < ends[-1]


def in_words(mask: Array) -> Array:
    """The entries of a mask `[n]`, bool or 0 and 1, as bits: the first one is the lowest."""
    entries = jnp.pad(mask, (0, -len(mask) % BITS)).reshape(-1, BITS).astype(jnp.uint32)
    words: Array = jnp.sum(entries << jnp.arange(BITS, dtype=jnp.uint32), axis=-1, dtype=jnp.uint32)
    return words


def number_of(mask: Array) -> Array:
    """How many entries are True: by words, as XLA for the CPU writes out numbers that it sums."""
    found: Array = jnp.sum(number_of_bits(in_words(mask)), dtype=jnp.int32)
    return found


def _place_of_bit(words: Array, number: Array) -> Array:
    """The place of the bit of this number, from 0, among those that are set, by bisection."""
    place, width = jnp.zeros_like(words), BITS // 2
    while width:
        below = number_of_bits((words >> place) & jnp.uint32((1 << width) - 1))
        beyond = number >= below
        number = jnp.where(beyond, number - below, number)
        place = jnp.where(beyond, place + jnp.uint32(width), place)
        width //= 2
    return place


def number_of_bits(words: Array) -> Array:
    """How many bits of each word are set."""
    return lax.population_count(words).astype(jnp.int32)
