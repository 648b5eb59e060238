"""Compaction: the indices of the entries of a mask, or of a sample, without a sort."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.cumulative import running_count, running_highest
from jaxmetrics._base.types import Array

BITS = 32  # entries of a mask in one word
# 2^32 over the golden ratio: its multiples modulo 2^32 are spread evenly.
_SCATTERS = np.uint32(2654435761)


def sample_indices(n: int, step: int, library: Any = jnp) -> Array:
    """One index of each `step` below n, at varying places in them, as data may be periodic."""
    index = library.arange(n // step, dtype=np.uint32)
    return (index * step + (index * _SCATTERS >> 16) % step).astype(np.int32)


def first_indices(mask: Array, capacity: int) -> tuple[Array, Array]:
    """The first `capacity` indices at which `mask` `[n]`, n > 0, is True, and which exist.

    Both are `[capacity]`. On the CPU, XLA's running sum and scatter over all n entries take as long
    as half a sort. Here they run over words of 32 entries, and over the result.
    """
    n, words = len(mask), in_words(mask)
    counts = number_of_bits(words)
    ends = running_count(counts)
    starts = ends - counts
    # Each word with True entries is put at the place of its first one, and repeated up to the next.
    at = jnp.where(counts > 0, starts, capacity)
    number = jnp.arange(len(words), dtype=jnp.int32)
    word = running_highest(jnp.zeros(capacity, jnp.int32).at[at].set(number, mode="drop"))
    place = jnp.arange(capacity, dtype=jnp.int32)
    bit = _place_of_bit(words.at[word].get(), place - starts.at[word].get())
    return jnp.minimum(word * BITS + bit.astype(jnp.int32), n - 1), place < ends[-1]


def in_words(mask: Array) -> Array:
    """The entries of a mask `[n]`, bool or 0 and 1, as bits of words, the lowest bit first."""
    entries = jnp.pad(mask, (0, -len(mask) % BITS)).reshape(-1, BITS).astype(jnp.uint32)
    return jnp.sum(entries << jnp.arange(BITS, dtype=jnp.uint32), axis=-1, dtype=jnp.uint32)


def number_of(mask: Array) -> Array:
    """The number of True entries, by words, as XLA for CPUs writes all terms of a sum to memory."""
    return jnp.sum(number_of_bits(in_words(mask)), dtype=jnp.int32)


def _place_of_bit(words: Array, number: Array) -> Array:
    """The place in each word of the set bit with this number, counted from 0, by bisection."""
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
