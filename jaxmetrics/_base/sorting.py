"""Sorting by score: order-preserving integer keys, and the fastest sort on each backend.

XLA sorts floats through a slow comparator, and several operands more slowly still. Integer keys
avoid the comparator on every backend. On the CPU, one sort of 64-bit words that hold key and
payload avoids the second operand. On an accelerator, a radix sort of 32-bit keys with their
payloads moves fewer bytes. NumPy sorts data that are concrete and lie on the CPU.

Reference: M. Herf, "Radix tricks", 2001, which maps floats to unsigned integers in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxmetrics._base.host import in_threads, processors
from jaxmetrics._base.numerics import namespace
from jaxmetrics._base.types import Array, HostArray

MANY = 1 << 17  # fewer words are sorted before threads have started
_LONG_ROW = 1 << 15  # items from which on XLA's sort of several rows on a GPU may be no radix sort
_BITS_OF_INDEX = 30  # in a word of 64 bits, beside a key of 32 bits and a kind of 2


def descending_keys(scores: Any) -> Any:
    """Unsigned keys in the reverse order of `scores`: `uint32`, or `uint64` for 64-bit scores.

    -0.0 and 0.0 share a key. The key of NaN means nothing. The keys of a NumPy array are a NumPy
    array; other arrays must be traced in double precision.
    """
    unsigned, signed = _words(scores)
    sign = _sign(unsigned)
    if jnp.issubdtype(scores.dtype, jnp.floating):
        if isinstance(scores, np.ndarray):
            return _float_keys_on_host(scores.astype(_float_like(unsigned), copy=False))
        bits = scores.astype(_float_like(unsigned)).view(unsigned)
        # Compares bits: where subnormal numbers are flushed to 0, `== 0` is True for them too.
        bits = jnp.where(bits == sign, unsigned(0), bits)
        # Descending order: flips all bits but the sign if positive, and none if negative.
        return bits ^ ~((bits.view(signed) >> (8 * bits.dtype.itemsize - 1)).view(unsigned) | sign)
    if jnp.issubdtype(scores.dtype, jnp.signedinteger):
        return ~(scores.astype(signed).view(unsigned) ^ sign)
    return ~scores.astype(unsigned)


def _float_keys_on_host(scores: HostArray) -> HostArray:
    """`descending_keys` by NumPy, in one array: allocation takes longer than arithmetic."""
    unsigned, signed = _words(scores)
    bits = scores.view(unsigned)
    keys = (bits.view(signed) >> (8 * bits.dtype.itemsize - 1)).view(unsigned)
    keys |= _sign(unsigned)
    np.invert(keys, out=keys)
    keys ^= bits
    keys[bits == _sign(unsigned)] = ~_sign(unsigned)  # -0.0 gets the key of 0.0
    return keys


def scores_of_keys(keys: Array, like: Any) -> Any:
    """The scores of these `descending_keys`, in double precision; `like` has their old dtype."""
    unsigned, signed = _words(like)
    ascending, sign = ~keys, _sign(unsigned)
    if jnp.issubdtype(like.dtype, jnp.floating):
        bits = namespace(keys).where(ascending >= sign, ascending ^ sign, keys)
        return bits.view(_float_like(unsigned)).astype(jnp.float64)
    if jnp.issubdtype(like.dtype, jnp.signedinteger):
        return (ascending ^ sign).view(signed).astype(jnp.float64)
    return ascending.astype(jnp.float64)


def in_32_bits(values: HostArray) -> HostArray:
    """64-bit numbers as 32-bit ones if that changes none of them; otherwise as they are."""
    if values.dtype.itemsize < 8:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = values.astype(np.float32 if values.dtype.kind == "f" else np.int32)
    return narrow if np.array_equal(narrow, values) else values


def _words(scores: Any) -> tuple[Any, Any]:
    return (np.uint64, np.int64) if scores.dtype.itemsize == 8 else (np.uint32, np.int32)


def _float_like(unsigned: Any) -> Any:
    return np.float64 if unsigned is np.uint64 else np.float32


def _sign(unsigned: Any) -> Any:
    return unsigned(1 << (63 if unsigned is np.uint64 else 31))


def sort_by_key(keys: Any, payload: Any, *, most: int = (1 << 32) - 1) -> tuple[Any, Any]:
    """Keys `[..., n]` in ascending order, and their `uint32` payload in the same order.

    The order within a tie is unspecified; no payload is above `most`. NumPy sorts NumPy's arrays;
    other arrays must be traced in double precision.
    """
    if isinstance(keys, np.ndarray):
        return _sort_on_host(keys, payload)
    packed = _sort_packed if keys.dtype == jnp.uint32 else _sort_in_halves
    return lax.platform_dependent(
        keys, payload, cpu=packed, tpu=_sort_pairs, default=_of_any_batch(_sort_pairs, most)
    )


def sort_by_key_and_payload(
    keys: Any, payload: Any, *, most: int = (1 << 32) - 1
) -> tuple[Any, Any]:
    """As `sort_by_key`, with the payload ascending within a tie on every backend."""
    if keys.dtype == np.uint64:
        # Sorts again, by the rank among distinct keys, which fits in 32 bits.
        keys, payload = sort_by_key(keys, payload)
        library = namespace(keys)
        rank = (library.cumsum(starts(keys), axis=-1) - 1).astype(np.uint32)
        return keys, sort_by_key_and_payload(rank, payload, most=most)[1]
    if isinstance(keys, np.ndarray):
        return _sort_on_host(keys, payload)
    of_gpu = _of_any_batch(_sort_packed, most)
    return lax.platform_dependent(
        keys, payload, cpu=_sort_packed, tpu=_sort_by_both, default=of_gpu
    )


def sort_within_kinds(kinds: Array, keys: Array) -> tuple[Array, Array]:
    """Keys `[n]` sorted by kind, then key, then index, and the index that each had.

    Kinds are `uint32` below 4.
    """
    index = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
    if keys.dtype != jnp.uint32 or len(keys) > 1 << _BITS_OF_INDEX:
        keys, index = sort_by_key_and_payload(keys, index)
        places = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
        _, order = sort_by_key_and_payload(take(kinds, index), places)
        return take(keys, order), take(index, order)

    def in_words(*given: Array) -> tuple[Array, Array]:
        kinds, keys, index = (x.astype(jnp.uint64) for x in given)
        words = lax.sort((((kinds << 32) | keys) << _BITS_OF_INDEX) | index)
        most = jnp.uint64((1 << _BITS_OF_INDEX) - 1)
        return (words >> _BITS_OF_INDEX).astype(jnp.uint32), (words & most).astype(jnp.uint32)

    def by_all(*given: Array) -> tuple[Array, Array]:
        _, keys, index = lax.sort(given, num_keys=3, is_stable=False)
        return keys, index

    return lax.platform_dependent(kinds, keys, index, tpu=by_all, default=in_words)


def payload_by_key(keys: Any, payload: Any, *, first: int | None = None) -> Any:
    """The payload of `sort_by_key_and_payload` alone, cut to the `first` entries."""
    if isinstance(keys, np.ndarray) and keys.dtype == np.uint32:
        return _sorted_words(keys, payload)[..., :first].astype(np.uint32)
    return sort_by_key_and_payload(keys, payload)[1][..., :first]


def sort(keys: Any) -> Any:
    """Numbers `[..., n]` in ascending order."""
    if not isinstance(keys, np.ndarray):
        # For a stable sort, XLA for TPUs sorts by the place of each number, too.
        unstable = partial(lax.sort, is_stable=False)
        return lax.platform_dependent(keys, tpu=unstable, default=lax.sort)
    keys = np.array(keys, order="C")
    _sort_rows(keys)
    return keys


def _sort_rows(words: HostArray) -> None:
    """Sort in place, large batches and long rows in threads."""
    if not words.size:
        return
    rows = words.reshape(-1, words.shape[-1])
    if len(rows) == 1:
        sort_row(rows[0])
    elif words.size > MANY:
        in_threads(lambda part: part.sort(axis=-1), np.array_split(rows, processors()))  # views
    else:
        rows.sort(axis=-1)


def sort_row(values: HostArray) -> None:
    """Sort `[n]` in place, in threads if it is long."""
    n = len(values)
    parts = processors() if n > MANY else 1
    if parts == 1:
        values.sort()
        return
    ends = [n * i // parts for i in range(1, parts)]
    values.partition(ends)  # takes a fraction of the time of the sort
    in_threads(lambda part: part.sort(), np.split(values, ends))  # views


def order_of_ids(ids: HostArray, n: int) -> HostArray:
    """The index of each item in order of its id, from 0 to `n` - 1, and then of index."""
    if n <= 1 << 16:  # 16-bit numbers are sorted by radix
        return ids.astype(np.uint16, copy=False).argsort(kind="stable")
    order: Any = np.arange(len(ids), dtype=np.uint32)
    return payload_by_key(ids.astype(np.uint32, copy=False), order)


def _sort_on_host(keys: HostArray, payload: HostArray) -> tuple[HostArray, HostArray]:
    """NumPy's vectorised sort is several times faster than XLA's on the CPU."""
    if keys.dtype == np.uint64:
        order = np.argsort(keys, axis=-1)
        return np.take_along_axis(keys, order, -1), np.take_along_axis(payload, order, -1)
    words = _sorted_words(keys, payload)
    return (words >> 32).astype(np.uint32), words.astype(np.uint32)


def _sorted_words(keys: HostArray, payload: HostArray) -> HostArray:
    """64-bit words in ascending order: a 32-bit key, and its payload in the low half."""
    words = keys.astype(np.uint64, order="C")  # in C order, rows are views and sorted in place
    words <<= 32
    words |= payload
    _sort_rows(words)
    return words


def _sort_pairs(keys: Array, payload: Array) -> tuple[Array, Array]:
    keys, payload = lax.sort((keys, payload), num_keys=1, is_stable=False)
    return keys, payload


Sort = Callable[[Array, Array], tuple[Array, Array]]


@cache
def _of_any_batch(otherwise: Sort, most: int) -> Sort:
    """A sort for GPUs of all rows of a batch at once, also of a batch that `vmap` makes.

    A few long rows are sorted by one radix sort of words with the row in the upper bits. XLA would
    use a merge sort. Other rows are sorted by `otherwise`.
    """

    def of_rows(keys: Array, payload: Array) -> tuple[Array, Array]:
        *batch, n = keys.shape
        of_row, of_payload = ((x - 1).bit_length() for x in (math.prod(batch), most + 1))
        fits = keys.dtype == jnp.uint32 and of_row + of_payload <= 32
        if not of_row or n < _LONG_ROW or not fits:
            return otherwise(keys, payload)
        row = lax.broadcasted_iota(jnp.uint64, (math.prod(batch), n), 0).reshape(keys.shape)
        words = (((row << 32) | keys) << of_payload) | payload
        words = lax.sort(words.ravel()).reshape(keys.shape)
        rest = (words & ((1 << of_payload) - 1)).astype(jnp.uint32)
        return (words >> of_payload).astype(jnp.uint32), rest

    mapped = custom_vmap(of_rows)

    @mapped.def_vmap
    def _(size: int, batched: Any, *given: Array) -> tuple[Any, Any]:
        return mapped(*all_batched(size, batched, given)), (True, True)

    return mapped


def all_batched(size: int, batched: Any, given: tuple[Array, ...]) -> list[Array]:
    """The arguments of a rule of `custom_vmap`, broadcast so that all have the batch axis."""
    return [
        x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
        for x, is_batched in zip(given, batched, strict=True)
    ]


def _sort_by_both(keys: Array, payload: Array) -> tuple[Array, Array]:
    keys, payload = lax.sort((keys, payload), num_keys=2, is_stable=False)
    return keys, payload


def _sort_packed(keys: Array, payload: Array) -> tuple[Array, Array]:
    words = (keys.astype(jnp.uint64) << 32) | payload
    words = lax.sort(words)  # stable: takes two thirds of the time of XLA's unstable sort
    return (words >> 32).astype(jnp.uint32), words.astype(jnp.uint32)


def _sort_in_halves(keys: Array, payload: Array) -> tuple[Array, Array]:
    """64-bit keys, by a radix sort of two digits: the low half, then stably the high half."""
    position = lax.broadcasted_iota(jnp.uint32, keys.shape, keys.ndim - 1)
    _, by_low = _sort_packed(keys.astype(jnp.uint32), position)
    high = take((keys >> 32).astype(jnp.uint32), by_low)
    _, by_high = _sort_packed(high, position)  # the position breaks ties, which makes it stable
    order = take(by_low, by_high)
    return take(keys, order), take(payload, order)


def starts(x: Any) -> Array:
    """`[..., n]`: whether an entry differs from the one before it; True for the first."""
    library = namespace(x)
    first = library.ones_like(x[..., :1], dtype=bool)
    return library.concatenate([first, x[..., 1:] != x[..., :-1]], axis=-1)


def largest_key(keys: Any) -> Any:
    """The largest key of the dtype of the keys, for entries that come last."""
    return ~keys.dtype.type(0)


def entries_at(values: Array, index: Array) -> Array:
    """`values[index]` along the first axis, without a check of bounds; of JAX's arrays."""
    return values.at[index].get(mode="promise_in_bounds")


def take(values: Array, order: Array) -> Array:
    """`values[..., order]` without a check of bounds; leading axes broadcast."""
    library = namespace(values, order)
    if library is np:
        found: Array
        if values.ndim == 1 or order.ndim == 1:
            found = values.take(order, axis=-1)
        else:
            found = library.take_along_axis(np.broadcast_to(values, order.shape), order, -1)
        return found

    return jnp.vectorize(entries_at, signature="(n),(m)->(m)")(values, order)
