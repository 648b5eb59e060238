"""Unweighted items that the devices of a mesh hold in parts: each receives ranges of the keys.

As in `parts`, devices deal their sorted items out in turn, and then send each other those of each
range. Here an item travels as its key alone: the positives of a message come first, and every
device knows from the ranges how many these are. Nor are ties joined before they travel. A range may
begin or end within a tie, of which all devices therefore count how many items it has.

A device may receive several ranges, one after the other, so that only one of them is in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import sorting
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.parts import AxisName, packed, size_of, so_many_below, sum_over
from jaxmetrics._base.types import Array

_SAMPLES = 8  # of each part for each range: one has at most 1 + 2/8 times its share of the items
_ROUNDS = 16
_LEAST = 1 << 12  # items of a message, for which another round is worth its messages


class Dealt(NamedTuple):
    """The items that a device was dealt, and where the ranges of all devices begin and end.

    Attributes:
      keys: `[parts, n / parts]`, of each part those of positives, of negatives, and of no items.
      limits: `[parts, classes, ranges + 1]`, places of items in each whole part.
      bounds: `[ranges + 1]`, the key with which each range begins; the last is the largest key.
      beside: `[2, classes, ranges + 1]`, how many items of all devices have a key that is below
        each bound, and that is not above it.
    """

    keys: Array
    limits: Array
    bounds: Array
    beside: Array


class Range(NamedTuple):
    """The items of one range, in ascending order of their keys.

    Attributes:
      keys: `[m]`; the largest key where there is no item.
      kinds: `[m]`, 0 of a positive, 1 of a negative, 2 where there is no item.
      before: `[classes]`, how many items are in the ranges before this one.
      bounds: `[2]`, the keys with which this range begins, and the next one.
      beside: `[2, classes, 2]`, how many items of all devices are below these, and not above.
    """

    keys: Array
    kinds: Array
    before: Array
    bounds: Array
    beside: Array


def sorted_by_class(keys: Array, positive: Array, negative: Array) -> tuple[Array, Array]:
    """The keys `[n]` of 32 bits in order of class and then of key, and where each class ends.

    Those of no items, which are neither positive nor negative, come last.
    """
    kinds = jnp.where(positive, 0, jnp.where(negative, 1, 2)).astype(jnp.uint32)
    ends = jnp.cumsum(jnp.stack([number_of(x) for x in (positive, negative)]))
    return sorting.sort_by_key_and_payload(kinds, keys)[1], ends


def most_rounds(n: int, n_devices: int) -> int:
    """In so many a device with n items receives its ranges, if these are summed over."""
    return min(max(n // (n_devices * _LEAST), 1), _ROUNDS)


def dealt_out(keys: Array, ends: Array, axis_name: AxisName, n_rounds: int) -> Dealt:
    """The items of all devices, of each `sorted_by_class`, dealt out in turn."""
    n_devices = size_of(axis_name)
    limits, bounds, beside = _limits(keys, ends, axis_name, n_rounds * n_devices)
    filled = jnp.pad(keys, (0, -len(keys) % n_devices))
    dealt = lax.all_to_all(filled.reshape(-1, n_devices).T, axis_name, 0, 0, tiled=True)
    return Dealt(dealt, lax.all_gather(limits, axis_name), bounds, beside)


def range_of(dealt: Dealt, axis_name: AxisName, number: Array) -> Range:
    """The range that this device has in the round of this number.

    In each, devices come in the order of their keys.
    """
    n_devices, (_, length) = size_of(axis_name), dealt.keys.shape
    n_rounds = (len(dealt.bounds) - 1) // n_devices
    here = lax.axis_index(axis_name).astype(jnp.int32)

    def dealt_to(device: Array, limits: Array) -> Array:
        """The same among each `n_devices`-th item, which the device is dealt."""
        places: Array = (limits - device + n_devices - 1) // n_devices
        return places

    of_round = lax.dynamic_slice_in_dim(dealt.limits, number * n_devices, n_devices + 1, axis=2)
    own = jnp.swapaxes(dealt_to(here, of_round), 0, 1).reshape(2 * n_devices, -1)
    offsets = np.tile(np.arange(n_devices, dtype=np.int32) * length, 2)
    capacity = _most(n_devices * length, n_devices, n_rounds) // n_devices + 2 * n_devices
    index, _ = packed(own[:, :-1], own[:, 1:], offsets, capacity)
    sent = dealt.keys.reshape(-1).at[index].get(mode="promise_in_bounds")
    keys = lax.all_to_all(sent, axis_name, 0, 0, tiled=True)

    devices = jnp.arange(n_devices, dtype=jnp.int32)[:, None, None]
    begin, end = (dealt_to(devices, of_round[..., here + i]) for i in (0, 1))
    upto = jnp.cumsum(jnp.sum(end - begin, axis=1), axis=1)  # [devices, classes]
    place = jnp.arange(capacity, dtype=jnp.int32)
    positive, some = (place < x[:, None] for x in upto.T)
    kinds = jnp.where(positive, 0, jnp.where(some, 1, 2)).astype(jnp.uint32)
    keys = jnp.where(some, keys, ~np.zeros((), keys.dtype))
    keys, kinds = sorting.sort_by_key(keys.ravel(), kinds.ravel(), most=2)

    first = number * n_devices + here
    before = jnp.sum(dealt.limits[..., first] - dealt.limits[..., 0], axis=0, dtype=jnp.float64)
    bounds, beside = (
        lax.dynamic_slice_in_dim(x, first, 2, axis=-1) for x in (dealt.bounds, dealt.beside)
    )
    return Range(keys, kinds, before, bounds, beside)


def _most(n: int, n_devices: int, n_rounds: int) -> int:
    """The most items in a range. A sample is followed by `apart` items of its part and class at
    most, itself included. A range has as many samples as each part gives for it and for the other
    devices; before the first ones of the two classes of each part there are less than `apart`
    items."""
    apart = -(-n // (n_rounds * n_devices * _SAMPLES))
    return (n_devices * _SAMPLES + 2 * n_devices) * apart


def _limits(
    keys: Array, ends: Array, axis_name: AxisName, n_ranges: int
) -> tuple[Array, Array, Array]:
    """`limits` of this part, and `bounds` and `beside`, of `Dealt`.

    Items are in order of key, then of device, then of place, so that no two are equal.
    """
    n_devices, n, here = size_of(axis_name), len(keys), lax.axis_index(axis_name)
    n_samples = n_ranges * _SAMPLES
    apart = -(-n // n_samples)
    last = jnp.maximum(ends[1] - 1, 0)
    # Of a short part, the last samples are its last item again.
    places = jnp.minimum(jnp.arange(n_samples, dtype=jnp.int32) * apart, last)
    sample = keys.at[places].get(mode="promise_in_bounds")
    samples = lax.all_gather(sample, axis_name, tiled=True)
    numbers = jnp.arange(n_devices * n_samples, dtype=jnp.uint32)
    samples, order = sorting.sort_by_key_and_payload(samples, numbers)
    step = n_devices * _SAMPLES
    inner, order = samples[step::step], order[step::step].astype(jnp.int32)
    device = order // n_samples
    place = jnp.minimum(order % n_samples * apart, lax.all_gather(last, axis_name)[device])
    lowest = np.zeros(1, keys.dtype)
    bounds = jnp.concatenate([lowest, inner, ~lowest])

    def of_class(first: Array, end: Array) -> tuple[Array, Array]:
        beside = jnp.stack(
            [so_many_below(keys, bounds, first, end, ties=ties) for ties in (False, True)]
        )
        below, upto = beside[:, 1:-1]
        at = jnp.where(here == device, jnp.clip(place, below, upto), below)
        at = jnp.where(here < device, upto, at)
        return jnp.concatenate([first[None], at, end[None]]), beside - first

    zero = jnp.zeros_like(ends[0])
    limits, beside = zip(of_class(zero, ends[0]), of_class(ends[0], ends[1]), strict=True)
    return jnp.stack(limits), bounds, sum_over(jnp.stack(beside, axis=1), axis_name)
