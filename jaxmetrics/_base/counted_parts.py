"""Unweighted items that the devices of a mesh hold in parts: each receives one range of the keys.

As in `parts`, devices deal their sorted items out in turn, and then send each other those of each
range. Here an item travels as its key alone: the positives of a message come first, and every
device knows from the ranges how many these are. Nor are ties joined before they travel. A range may
begin or end within a tie, whose counts then go to the first of its devices.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.parts import AxisName, Rows, packed, size_of, so_many_below
from jaxmetrics._base.types import Array

_SAMPLES = 8  # of each part for each device: a range has at most 1 + 2/8 times the items of a part


class _Part(NamedTuple):
    """The items of a device, in order of class and then of key.

    Attributes:
      keys: `[n]`, those of positives, of negatives, and of no items.
      ends: `[2]`, where the positives end, and the negatives.
    """

    keys: Array
    ends: Array


def rows_of_counted_range(
    keys: Array, positive: Array, negative: Array, axis_name: AxisName
) -> Rows:
    """The rows of all devices whose keys are in the range of this one, in ascending order.

    Devices come in the order of their keys. All but one of the rows of one key count nothing.

    Args:
      keys: `[n]` of 32 bits, of this device, in any order.
      positive, negative: `[n]`, which items are; they may be neither.
      axis_name: of the devices.
    """
    kind = jnp.where(positive, 0, jnp.where(negative, 1, 2)).astype(jnp.uint32)
    ends = jnp.cumsum(jnp.stack([jnp.sum(x, dtype=jnp.int32) for x in (positive, negative)]))
    part = _Part(sorting.sort_by_key_and_payload(kind, keys)[1], ends)
    return _rows(*_received(part, axis_name), axis_name)


def _received(part: _Part, axis_name: AxisName) -> tuple[Array, Array]:
    """The keys of this device's range, and the kinds: 0 positive, 1 negative, 2 none."""
    n_devices, n = size_of(axis_name), len(part.keys)
    here = lax.axis_index(axis_name).astype(jnp.int32)
    limits = lax.all_gather(_limits(part, axis_name), axis_name)  # [parts, classes, ranges + 1]

    def dealt_to(device: Array, limits: Array) -> Array:
        """The same among each `n_devices`-th item, which the device is dealt."""
        places: Array = (limits - device + n_devices - 1) // n_devices
        return places

    filled = jnp.pad(part.keys, (0, -n % n_devices))
    dealt = lax.all_to_all(filled.reshape(-1, n_devices).T, axis_name, 0, 0, tiled=True)
    own = jnp.swapaxes(dealt_to(here, limits), 0, 1).reshape(2 * n_devices, -1)
    offsets = np.tile(np.arange(n_devices, dtype=np.int32) * dealt.shape[1], 2)
    capacity = _most(n, n_devices) // n_devices + 2 * n_devices
    index, _ = packed(own[:, :-1], own[:, 1:], offsets, capacity)
    sent = dealt.reshape(-1).at[index].get(mode="promise_in_bounds")
    keys = lax.all_to_all(sent, axis_name, 0, 0, tiled=True)

    devices = jnp.arange(n_devices, dtype=jnp.int32)[:, None, None]
    begin, end = (dealt_to(devices, limits[..., here + i]) for i in (0, 1))
    upto = jnp.cumsum(jnp.sum(end - begin, axis=1), axis=1)  # [devices, classes]
    place = jnp.arange(capacity, dtype=jnp.int32)
    positive, some = (place < x[:, None] for x in upto.T)
    kinds = jnp.where(positive, 0, jnp.where(some, 1, 2)).astype(jnp.uint32)
    return jnp.where(some, keys, ~np.zeros((), keys.dtype)).ravel(), kinds.ravel()


def _most(n: int, n_devices: int) -> int:
    """The most items in a range. A sample is followed by `apart` items of its part and class at
    most, itself included. A range has as many samples as each part gives; before the first ones of
    the two classes of each part there are less than `apart` items."""
    n_samples = n_devices * _SAMPLES
    apart = -(-n // n_samples)
    return (n_samples + 2 * n_devices) * apart


def _limits(part: _Part, axis_name: AxisName) -> Array:
    """`[classes, ranges + 1]`: where each range begins and ends among the keys of this part.

    Items are in order of key, then of device, then of place, so that no two are equal.
    """
    n_devices, n, here = size_of(axis_name), len(part.keys), lax.axis_index(axis_name)
    n_samples = n_devices * _SAMPLES
    apart = -(-n // n_samples)
    last = jnp.maximum(part.ends[1] - 1, 0)
    # Of a short part, the last samples are its last item again.
    places = jnp.minimum(jnp.arange(n_samples, dtype=jnp.int32) * apart, last)
    sample = part.keys.at[places].get(mode="promise_in_bounds")
    samples = lax.all_gather(sample, axis_name, tiled=True)
    numbers = jnp.arange(n_devices * n_samples, dtype=jnp.uint32)
    samples, order = sorting.sort_by_key_and_payload(samples, numbers)
    bounds, order = samples[n_samples::n_samples], order[n_samples::n_samples].astype(jnp.int32)
    device = order // n_samples
    place = jnp.minimum(order % n_samples * apart, lax.all_gather(last, axis_name)[device])

    def of_class(first: Array, end: Array) -> Array:
        below = so_many_below(part.keys, bounds, first, end)
        upto = so_many_below(part.keys, bounds, first, end, ties=True)
        inner = jnp.where(here == device, jnp.clip(place, below, upto), below)
        inner = jnp.where(here < device, upto, inner)
        return jnp.concatenate([first[None], inner, end[None]])

    zero = jnp.zeros_like(part.ends[0])
    return jnp.stack([of_class(zero, part.ends[0]), of_class(part.ends[0], part.ends[1])])


def _rows(keys: Array, kinds: Array, axis_name: AxisName) -> Rows:
    """One row for each item of this range; the last one of a tie has all counts of it."""
    keys, kinds = sorting.sort_by_key(keys, kinds)
    n_used = jnp.sum(kinds < 2, dtype=jnp.int32)
    last = jnp.concatenate([keys[1:] != keys[:-1], jnp.ones_like(keys[:1], bool)])
    # Only entries that are no items, all in the last tie, come behind those that are.
    items = jnp.minimum(jnp.arange(1, 1 + len(keys), dtype=jnp.int32), n_used)
    positives = numerics.running_count((kinds == 0).astype(jnp.int32))
    of_ties = numerics.running_highest(jnp.where(last, items, 0))
    begin = jnp.concatenate([jnp.zeros_like(of_ties[:1]), of_ties[:-1]])
    before = positives.at[jnp.maximum(begin - 1, 0)].get(mode="promise_in_bounds")
    gained = positives - jnp.where(begin > 0, before, 0)
    counts = [jnp.where(last, x, 0) for x in (gained, items - begin - gained)]
    return Rows(keys, *_with_borders(keys, counts, n_used, axis_name))


def _with_borders(
    keys: Array, counts: list[Array], n_used: Array, axis_name: AxisName
) -> list[Array]:
    """The counts, of which those of a tie that several devices have are all with the first."""
    ends = jnp.stack([keys[0], keys.at[jnp.maximum(n_used - 1, 0)].get(mode="promise_in_bounds")])
    at_first, at_final = keys == ends[0], keys == ends[1]
    of_first = jnp.stack([jnp.sum(jnp.where(at_first, x, 0), dtype=x.dtype) for x in counts])
    firsts, finals = jnp.moveaxis(lax.all_gather(ends, axis_name), -1, 0)
    others, used = lax.all_gather((of_first, n_used > 0), axis_name)
    device, here = jnp.arange(len(used)), lax.axis_index(axis_name)
    follow = used & (device > here) & (firsts == ends[1])
    taken = jnp.any(used & (device < here) & (finals == ends[0]))
    added = jnp.sum(jnp.where(follow[:, None], others, 0), axis=0, dtype=others.dtype)
    last = jnp.concatenate([keys[1:] != keys[:-1], jnp.ones_like(keys[:1], bool)])
    gains = at_final & last & (n_used > 0)
    return [
        jnp.where(at_first & taken, 0, jnp.where(gains, x + more, x))
        for x, more in zip(counts, added, strict=True)
    ]
