"""A function of sorted keys and their payload, for many items on a GPU.

A GPU's radix sort of 32-bit words takes two thirds of the time of one of pairs, and the function
that follows reads half as much. Scores use few of the exponents of float32: the smallest magnitude
among them is far above that of all floats. Their keys therefore leave gaps beside the key of 0.
Without these gaps, a key has room for the payload in the same word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxmetrics._base.sorting import all_batched, descending_keys, sort_by_key
from jaxmetrics._base.types import Array

_MANY = 1 << 22  # items from which on the branch takes less time than it saves
_ZERO = descending_keys(np.zeros(1, np.float32))[0]

OfSorted = Callable[[Array, Array], Any]
Keyed = Callable[..., tuple[Array, Array]]


def of_sorted(function: OfSorted, keyed: Keyed, given: tuple[Array, ...], *, most: int) -> Any:
    """`function(keys, payload)` of keys `[n]` in ascending order, as `sort_by_key` returns them.

    `keyed(*given)` returns the keys and the payload to sort; no payload is above `most`. The
    function may get other keys, with the same ties and the same order. Arrays must be traced in
    double precision.
    """
    keys, payload = keyed(*given)
    if keys.dtype != jnp.uint32 or len(keys) < _MANY:
        return function(*sort_by_key(keys, payload, most=most))
    return _in_words_or_pairs(function, keyed, most)(*given)


@cache
def _in_words_or_pairs(function: OfSorted, keyed: Keyed, most: int) -> Callable[..., Any]:
    bits = most.bit_length()

    def of_row(*given: Array) -> Any:
        span = span_of(keyed(*given)[0])

        # Each branch computes the keys again: keys passed to it would be written and read.
        def of_words() -> Any:
            keys, payload = keyed(*given)
            words = lax.sort((narrowed(keys, span) << bits) | payload)
            return function(words >> bits, words & ((1 << bits) - 1))

        def of_pairs() -> Any:
            return function(*sort_by_key(*keyed(*given), most=most))

        return lax.cond(span.n_keys <= 1 << (32 - bits), of_words, of_pairs)

    mapped = custom_vmap(of_row)

    @mapped.def_vmap
    def _(size: int, batched: Any, *given: Array) -> tuple[Any, Any]:
        arrays = all_batched(size, batched, given)
        found = jax.vmap(function)(*sort_by_key(*jax.vmap(keyed)(*arrays), most=most))
        return found, jax.tree.map(lambda _: True, found)

    return mapped


class Span(NamedTuple):
    """The ranges of keys below and above the key of the score 0.

    Attributes:
      first: the lowest key below that of 0.
      n_below: the number of integers from `first` to the highest key below that of 0; 0 without
        such keys.
      beyond: the lowest key above that of 0.
      n_keys: the number of integers in both ranges and of the key of 0, without the gaps between.
    """

    first: Array
    n_below: Array
    beyond: Array
    n_keys: Array


def span_of(keys: Array) -> Span:
    """The span of keys `[n]`."""
    below, above = keys < _ZERO, keys > _ZERO
    first, last = jnp.min(jnp.where(below, keys, _ZERO)), jnp.max(jnp.where(below, keys, 0))
    n_below = jnp.where(last >= first, last - first + 1, 0)
    beyond, end = jnp.min(jnp.where(above, keys, ~np.uint32(0))), jnp.max(keys)
    n_above = jnp.where(end >= beyond, end - beyond + 1, 0)
    n_keys = n_below.astype(jnp.uint64) + n_above.astype(jnp.uint64) + 1
    return Span(first, n_below, beyond, n_keys)


def narrowed(keys: Array, span: Span) -> Array:
    """Keys with the same ties and order, from 0 on, without the gaps beside the key of 0."""
    not_below = span.n_below + jnp.where(keys > _ZERO, 1 + keys - span.beyond, 0)
    return jnp.where(keys < _ZERO, keys - span.first, not_below)
