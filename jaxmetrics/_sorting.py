"""Sorting by score: order-preserving integer keys, and the sort that is fastest on each backend.

XLA sorts floats through a slow comparator, and several operands slower still. Integer keys avoid
the first everywhere. On the CPU one sort of a 64-bit word that holds key and payload avoids the
second; on an accelerator a radix sort of a 32-bit key with its payload moves fewer bytes.

Reference: M. Herf, "Radix tricks", 2001, for the image of a float among the unsigned integers.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxmetrics._types import Array


def descending_keys(scores: Array) -> Array:
    """Unsigned keys in the reverse order of `scores`: `uint32`, or `uint64` for 64-bit scores.

    -0.0 and 0.0 share a key. NaN has a key of no meaning. Trace in double precision.
    """
    unsigned, signed = _words(scores)
    if jnp.issubdtype(scores.dtype, jnp.floating):
        bits = lax.bitcast_convert_type(scores.astype(_float_like(unsigned)), unsigned)
        # By its bits, not by == 0, which is true of subnormal numbers where they are flushed.
        bits = jnp.where(bits == _sign(unsigned), unsigned(0), bits)
        negative = bits >= _sign(unsigned)
        ascending = jnp.where(negative, ~bits, bits | _sign(unsigned))
    elif jnp.issubdtype(scores.dtype, jnp.signedinteger):
        ascending = lax.bitcast_convert_type(scores.astype(signed), unsigned) ^ _sign(unsigned)
    else:
        ascending = scores.astype(unsigned)
    return ~ascending


def scores_of_keys(keys: Array, like: Array) -> Array:
    """The scores, in double precision, whose `descending_keys` these are; `like` had the dtype."""
    unsigned, signed = _words(like)
    ascending = ~keys
    if jnp.issubdtype(like.dtype, jnp.floating):
        positive = ascending >= _sign(unsigned)
        bits = jnp.where(positive, ascending ^ _sign(unsigned), ~ascending)
        return lax.bitcast_convert_type(bits, _float_like(unsigned)).astype(jnp.float64)
    if jnp.issubdtype(like.dtype, jnp.signedinteger):
        return lax.bitcast_convert_type(ascending ^ _sign(unsigned), signed).astype(jnp.float64)
    return ascending.astype(jnp.float64)


def _words(scores: Array) -> tuple[Any, Any]:
    return (jnp.uint64, jnp.int64) if scores.dtype.itemsize == 8 else (jnp.uint32, jnp.int32)


def _float_like(unsigned: Any) -> Any:
    return jnp.float64 if unsigned is jnp.uint64 else jnp.float32


def _sign(unsigned: Any) -> Any:
    return unsigned(1 << (63 if unsigned is jnp.uint64 else 31))


def sort_by_key(keys: Array, payload: Array) -> tuple[Array, Array]:
    """Keys `[..., n]` in ascending order, and their `uint32` payload in the same order.

    The order within a tie is unspecified. Trace in double precision.
    """
    packed = _sort_packed if keys.dtype == jnp.uint32 else _sort_in_halves
    result: tuple[Array, Array] = lax.platform_dependent(
        keys, payload, cpu=packed, default=_sort_pairs
    )
    return result


def _sort_pairs(keys: Array, payload: Array) -> tuple[Array, Array]:
    keys, payload = lax.sort((keys, payload), num_keys=1, is_stable=False)
    return keys, payload


def _sort_packed(keys: Array, payload: Array) -> tuple[Array, Array]:
    words = (keys.astype(jnp.uint64) << 32) | payload
    words = lax.sort(words)  # stable, which XLA's CPU sort does in two thirds of the time
    return (words >> 32).astype(jnp.uint32), words.astype(jnp.uint32)


def _sort_in_halves(keys: Array, payload: Array) -> tuple[Array, Array]:
    """64-bit keys, as a radix sort of two digits: the low half, then stably the high half."""
    position = lax.broadcasted_iota(jnp.uint32, keys.shape, keys.ndim - 1)
    _, by_low = _sort_packed(keys.astype(jnp.uint32), position)
    high = take((keys >> 32).astype(jnp.uint32), by_low)
    _, by_high = _sort_packed(high, position)  # the position breaks ties, which makes it stable
    order = take(by_low, by_high)
    return take(keys, order), take(payload, order)


def take(values: Array, order: Array) -> Array:
    """`values[..., order]`, leading axes broadcast."""

    def gather(row: Array, index: Array) -> Array:
        return row.at[index].get(mode="promise_in_bounds")

    taken: Array = jnp.vectorize(gather, signature="(n),(m)->(m)")(values, order)
    return taken
