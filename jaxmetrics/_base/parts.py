"""A sort of items that the devices of a mesh hold in parts: each receives one range of the keys.

Within `shard_map`, each device sorts its part. It then deals its sorted rows out to all devices in
turn, so that each holds an even sample of every part. Whatever the order of the items was, a range
of keys now has about as many rows on one device as on any other. All devices agree on ranges, from
a regular sample of each part, and send each other the rows of each range. The number of rows that
any device may have for another, or receive, is bounded. Shapes are therefore static, and no row is
ever left out.

Reference: H. Shi and J. Schaeffer, "Parallel sorting by regular sampling", Journal of Parallel and
Distributed Computing 14, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.types import Array

# A name, or several, as `jax.lax.psum` has it; None where one device has all items.
AxisName: TypeAlias = Any

_SAMPLES = 4  # of each part for each range, which has at most 1 + 1/4 times the rows of a part


class Rows(NamedTuple):
    """Distinct keys with the weight of each class.

    Attributes:
      keys: `[n]`; the largest key where there is no row.
      positives, negatives: `[n]`; 0 where there is no row.
    """

    keys: Array
    positives: Array
    negatives: Array


def size_of(axis_name: AxisName) -> int:
    """The number of devices along the axis."""
    return lax.psum(1, axis_name)


def sum_over(x: Array, axis_name: AxisName) -> Array:
    """The sum over the devices along the axis, if there is one.

    Integers become float64, as all devices together may have more items than int32 can count.
    """
    if axis_name is None:
        return x
    return lax.psum(x if numerics.is_inexact(x) else x.astype(jnp.float64), axis_name)


def largest_over(x: Array, axis_name: AxisName) -> Array:
    """The largest over the devices along the axis, if there is one; a constant to derivatives."""
    return x if axis_name is None else lax.pmax(lax.stop_gradient(x), axis_name)


def smallest_over(x: Array, axis_name: AxisName) -> Array:
    """The smallest over the devices along the axis, if there is one; a constant to derivatives."""
    return x if axis_name is None else lax.pmin(lax.stop_gradient(x), axis_name)


def gathered(arrays: Any, axis_name: AxisName) -> Any:
    """The arrays `[..., n]` of a pytree, with the items of all devices along the last axis."""
    return jax.tree.map(lambda x: lax.all_gather(x, axis_name, axis=x.ndim - 1, tiled=True), arrays)


def rows_of_range(rows: Rows, axis_name: AxisName) -> Rows:
    """The rows of all devices whose keys are in the range of this device, in ascending order.

    Ranges ascend with the index of the device. Rows with the same key are joined.

    Args:
      rows: the rows of this device, `[n]` in any order; several may have the same key.
      axis_name: the axis of the devices.
    """
    rows, n_used = _joined(rows)
    n_devices, n = size_of(axis_name), len(rows.keys)
    bounds = _bounds(rows.keys, n_used, axis_name)
    dealt = Rows(*(dealt_over(x, axis_name, y) for x, y in zip(rows, _empty(rows), strict=True)))
    of_each = lax.all_gather(n_used, axis_name)
    lengths = (of_each - lax.axis_index(axis_name).astype(jnp.int32) + n_devices - 1) // n_devices

    below = jax.vmap(lambda keys: so_many_below(keys, bounds, 0, len(keys)))(dealt.keys)
    inner = jnp.minimum(below, lengths[:, None])
    starts = jnp.concatenate([jnp.zeros_like(lengths[:, None]), inner], axis=1)
    ends = jnp.concatenate([inner, lengths[:, None]], axis=1)

    capacity = _most(n, n_devices) // n_devices + n_devices
    offsets = np.arange(n_devices, dtype=np.int32) * dealt.keys.shape[1]
    index, some = packed(starts, ends, offsets, capacity)

    def sent(x: Array, empty: Any) -> Array:
        found = sorting.entries_at(x.reshape(-1), index)
        chosen = jnp.where(some, found, empty)
        received: Array = lax.all_to_all(chosen, axis_name, 0, 0, tiled=True)
        return received.ravel()

    return _joined(Rows(*map(sent, dealt, _empty(rows))))[0]


def _empty(rows: Rows) -> tuple[Any, Any, Any]:
    """The key and the weights of an entry that is no row."""
    zero = np.zeros((), rows.positives.dtype)
    return sorting.largest_key(rows.keys), zero, zero


def _most(n: int, n_devices: int) -> int:
    """An upper bound on the number of rows in a range.

    A range has as many samples as each part gives. Each stands for at most `apart` rows: itself and
    those of its part up to the next sample. Of each part, fewer than `apart` rows of the range come
    before its first sample.
    """
    n_samples = n_devices * _SAMPLES
    apart = -(-n // n_samples)
    return (n_samples + n_devices) * apart


def _bounds(keys: Array, n_used: Array, axis_name: AxisName) -> Array:
    """The first key of each range but the first one, the same on all devices."""
    n_devices = size_of(axis_name)
    n_samples = n_devices * _SAMPLES
    apart = -(-len(keys) // n_samples)
    places = jnp.arange(n_samples, dtype=jnp.int32) * apart
    # The last samples of a short part repeat its last row.
    sample = sorting.entries_at(keys, jnp.minimum(places, n_used - 1))
    samples = sorting.sort(lax.all_gather(sample, axis_name, tiled=True))
    return samples[n_samples::n_samples]


def so_many_below(keys: Array, bounds: Array, first: Any, end: Any, *, ties: Any = False) -> Array:
    """The place of the first key >= each bound; of the first key > the bound where `ties`.

    Keys ascend from the place `first` to `end`.
    """

    def below(keys: Array) -> Array:
        return (keys < bounds) | (ties & (keys == bounds))

    return first_that_is_not(below, keys, bounds.shape, first, end)


def first_that_is_not(
    below: Callable[[Array], Array], keys: Array, shape: tuple[int, ...], first: Any, end: Any
) -> Array:
    """The place of the first key for which `below` is False, by bisection.

    From the place `first` to `end`, the keys for which it is True come first. `below` takes and
    returns arrays of `shape`, which is also that of the result. `jax.numpy.searchsorted` fails
    where `vmap` is over models that a mesh with explicit axes divides.
    """
    n_steps = len(keys).bit_length()

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        place, length = state
        more = place + length
        key = sorting.entries_at(keys, jnp.minimum(more, len(keys)) - 1)
        return jnp.where((more <= end) & below(key), more, place), length // 2

    start = jnp.zeros(shape, jnp.int32) + first, jnp.int32(1 << n_steps >> 1)
    return varying.repeated(n_steps, step, start)[0]


def dealt_over(x: Array, axis_name: AxisName, empty: Any = 0) -> Array:
    """`[parts, n / parts]`: of each part `[n]`, every `n_devices`-th entry.

    The first is at the index of this device. `empty` stands for entries beyond the end.
    """
    n_devices = size_of(axis_name)
    filled = jnp.pad(x, (0, -len(x) % n_devices), constant_values=empty)
    return lax.all_to_all(filled.reshape(-1, n_devices).T, axis_name, 0, 0, tiled=True)


def packed(starts: Array, ends: Array, offsets: Any, capacity: int) -> tuple[Array, Array]:
    """The indices of the rows of each range, part after part, and which of the entries are rows.

    Both are `[ranges, capacity]`.

    Args:
      starts, ends: `[parts, ranges]`, where the rows of each range begin and end within each part.
      offsets: `[parts]`, where each part begins.
      capacity: the most rows of a range.
    """
    upto = jnp.cumsum(ends - starts, axis=0)  # [parts, ranges]
    place = jnp.arange(capacity, dtype=jnp.int32)
    index = jnp.zeros((starts.shape[1], capacity), jnp.int32)
    for part, offset in enumerate(offsets):
        before = upto[part - 1] if part else jnp.zeros_like(upto[0])
        here = offset + (starts[part] - before)[:, None] + place
        index = jnp.where(place >= before[:, None], here, index)
    some = place < upto[-1][:, None]
    return jnp.where(some, index, 0), some


def _joined(rows: Rows) -> tuple[Rows, Array]:
    """The rows in ascending order of key, those of one key joined, and the number of keys."""
    keys, positives, negatives = rows
    order = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
    keys, order = sorting.sort_by_key(keys, order)
    number = jnp.cumsum(sorting.starts(keys), dtype=jnp.int32) - 1

    def at_rows(x: Array) -> Array:
        x = sorting.take(x, order)
        at = jnp.zeros_like(x).at[number]
        return at.add(x, indices_are_sorted=True, mode="promise_in_bounds")

    largest = jnp.full_like(keys, sorting.largest_key(keys))
    distinct = largest.at[number].min(keys, indices_are_sorted=True, mode="promise_in_bounds")
    return Rows(distinct, at_rows(positives), at_rows(negatives)), number[-1] + 1
