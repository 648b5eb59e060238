"""Items that the devices of a mesh hold in parts: each device receives ranges of the keys.

As in `parts`, devices deal their sorted items out in turn, and then send each other the items of
each range. Here an item travels as its key, with its weight if it has one. Its class does not
travel: the positives of a message come first, and every device knows from the limits of the ranges
how many they are. Ties are not joined before they travel. A range may therefore begin or end within
a tie. So all devices add up the weights of items below, and not above, the key of each bound.

A device may receive several ranges, one after the other, so that only one of them is in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import sorting
from jaxmetrics._base.by_class import CLASSES, LEFT_OUT, SORTED_NEGATIVES, SORTED_POSITIVES, ByClass
from jaxmetrics._base.parts import AxisName, dealt_over, packed, size_of, sum_over
from jaxmetrics._base.types import Array

_SAMPLES = 8  # of each part for each range, which has at most 1 + 2/8 times its share of the items
_ROUNDS = 24  # at most
_LEAST = 1 << 12  # items of a message; with fewer, another round is not worth its messages


class Dealt(NamedTuple):
    """The items that a device was dealt, and where the ranges of all devices begin and end.

    A part is what one device had before the deal.

    Attributes:
      keys: `[parts, n / parts]`, the keys dealt from each part: of positives, then of negatives,
        then of entries that do not count.
      weights: likewise, or None.
      limits: `[parts, classes, ranges + 1]`, the places in each part, before the deal, at which the
        ranges of each class begin; the last is its end.
      before: `[classes, ranges + 1]`, the weight of the items of all devices before each limit.
      bounds: `[ranges + 1]`, the key with which each range begins; the last is the largest key.
      beside: `[2, classes, ranges + 1]`, the weight of the items of all devices with a key below
        each bound, and that of the items with a key not above it.
    """

    keys: Array
    weights: Array | None
    limits: Array
    before: Array
    bounds: Array
    beside: Array


class Messages(NamedTuple):
    """The dealt items that this device sends to each in a round, `[devices, capacity]`.

    Attributes:
      places: of the items.
      is_sent: False where there is no such item.
    """

    places: Array
    is_sent: Array


class Range(NamedTuple):
    """The items of one range, in ascending order of their keys.

    Attributes:
      keys: `[m]`; the largest key where there is no item.
      kinds: `[m]`, the class of each item, and LEFT_OUT where there is no item.
      order: `[m]`, the place at which each item arrived; may be None if it was not asked for.
      messages: what this device sent for it, and for the ranges of others.
      weights: `[m]`, in float64, or None if each item counts once.
      before: `[classes]`, the weight of the items in the ranges before this one.
      bounds: `[2]`, the keys with which this range and the next one begin.
      beside: `[2, classes, 2]`, the weight of the items of all devices with a key below each of
        these bounds, and that of the items with a key not above it.
    """

    keys: Array
    kinds: Array
    order: Array | None
    messages: Messages
    weights: Array | None
    before: Array
    bounds: Array
    beside: Array


def most_rounds(n: int, n_devices: int) -> int:
    """The rounds in which devices of n items each receive their ranges, for a sum over ranges."""
    return min(max(n // (n_devices * _LEAST), 1), _ROUNDS)


def dealt_out(part: ByClass, axis_name: AxisName, n_rounds: int) -> Dealt:
    """What this device gets as all devices deal out their items in turn."""
    limits, before, bounds, beside = _limits(part, axis_name, n_rounds * size_of(axis_name))
    weights = None if part.weights is None else dealt_over(part.of_items, axis_name)
    limits = lax.all_gather(limits, axis_name)
    return Dealt(dealt_over(part.keys, axis_name), weights, limits, before, bounds, beside)


def range_of(dealt: Dealt, axis_name: AxisName, number: Array, *, ordered: bool = False) -> Range:
    """The range that this device receives in the round of this number.

    In a round, the ranges ascend with the index of the device. `ordered` asks for the order in
    which its items arrived.
    """
    n_devices, (_, length) = size_of(axis_name), dealt.keys.shape
    n_rounds = (len(dealt.bounds) - 1) // n_devices
    here = lax.axis_index(axis_name).astype(jnp.int32)

    def dealt_to(device: Array, limits: Array) -> Array:
        """Places in a part as places among those of its items that are dealt to the device."""
        return (limits - device + n_devices - 1) // n_devices

    of_round = lax.dynamic_slice_in_dim(dealt.limits, number * n_devices, n_devices + 1, axis=2)
    own = jnp.swapaxes(dealt_to(here, of_round), 0, 1).reshape(2 * n_devices, -1)
    offsets = np.tile(np.arange(n_devices, dtype=np.int32) * length, 2)
    capacity = _most(n_devices * length, n_devices, n_rounds) // n_devices + 2 * n_devices
    messages = Messages(*packed(own[:, :-1], own[:, 1:], offsets, capacity))

    def received(x: Array, some: Array, empty: Any) -> Array:
        sent = sorting.entries_at(x.reshape(-1), messages.places)
        return jnp.where(some, lax.all_to_all(sent, axis_name, 0, 0, tiled=True), empty).ravel()

    devices = jnp.arange(n_devices, dtype=jnp.int32)[:, None, None]
    begin, end = (dealt_to(devices, of_round[..., here + i]) for i in (0, 1))
    upto = jnp.cumsum(jnp.sum(end - begin, axis=1), axis=1)  # [devices, classes]
    place = jnp.arange(capacity, dtype=jnp.int32)
    positive, some = (place < x[:, None] for x in upto.T)
    kinds = jnp.where(
        positive, SORTED_POSITIVES, jnp.where(some, SORTED_NEGATIVES, LEFT_OUT)
    ).astype(jnp.uint32)
    keys, kinds = received(dealt.keys, some, sorting.largest_key(dealt.keys)), kinds.ravel()
    weights = order = None
    if dealt.weights is None and not ordered:
        keys, kinds = sorting.sort_by_key(keys, kinds, most=LEFT_OUT)
    else:
        places = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
        keys, order = sorting.sort_by_key(keys, places)
        kinds = sorting.take(kinds, order)
        if dealt.weights is not None:
            weights = received(dealt.weights, some, np.zeros((), dealt.weights.dtype))
            weights = sorting.take(weights.astype(jnp.float64), order)

    first = number * n_devices + here
    before = lax.dynamic_index_in_dim(dealt.before, first, axis=1, keepdims=False)
    bounds, beside = (
        lax.dynamic_slice_in_dim(x, first, 2, axis=-1) for x in (dealt.bounds, dealt.beside)
    )
    return Range(keys, kinds, order, messages, weights, before, bounds, beside)


def sent_back(of_dealt: Array, values: Array, items: Range, axis_name: AxisName) -> Array:
    """`of_dealt` `[parts, n / parts]`, with the values of the dealt items sent in a round.

    `values` `[m]` are those of `items`, the ordered range that this device received.
    """
    places, is_sent = items.messages
    arrived = jnp.zeros_like(values).at[items.order].set(values, unique_indices=True)
    returned = lax.all_to_all(arrived.reshape(places.shape), axis_name, 0, 0, tiled=True)
    at = of_dealt.reshape(-1).at[jnp.where(is_sent, places, of_dealt.size)]
    return at.set(returned, mode="drop").reshape(of_dealt.shape)


def dealt_back(of_dealt: Array, n: int, axis_name: AxisName) -> Array:
    """The values of this device's sorted items `[n]`, from those of the items dealt to each."""
    returned: Array = lax.all_to_all(of_dealt, axis_name, 0, 0, tiled=True)
    return returned.T.ravel()[:n]


def _most(n: int, n_devices: int, n_rounds: int) -> int:
    """An upper bound on the number of items in a range, of n items on all devices.

    A range has `n_devices * _SAMPLES` samples. Each stands for at most `apart` items: itself and
    those of its part and class up to the next sample. Of each part and class, fewer than `apart`
    items of the range come before its first sample.
    """
    apart = -(-n // (n_rounds * n_devices * _SAMPLES))
    return (n_devices * _SAMPLES + 2 * n_devices) * apart


def _limits(part: ByClass, axis_name: AxisName, n_ranges: int) -> tuple[Array, Array, Array, Array]:
    """The `limits` of this part, and the `before`, `bounds` and `beside` of `Dealt`.

    Items are in order of key, then of device, then of place, so that no two are equal.
    """
    keys, n_devices, here = part.keys, size_of(axis_name), lax.axis_index(axis_name)
    n_samples = n_ranges * _SAMPLES
    apart = -(-len(keys) // n_samples)
    last = jnp.maximum(part.ends[SORTED_NEGATIVES] - 1, 0)
    # The last samples of a short part repeat its last item.
    places = jnp.minimum(jnp.arange(n_samples, dtype=jnp.int32) * apart, last)
    sample = sorting.entries_at(keys, places)
    samples = lax.all_gather(sample, axis_name, tiled=True)
    numbers = jnp.arange(n_devices * n_samples, dtype=jnp.uint32)
    samples, order = sorting.sort_by_key_and_payload(samples, numbers)
    step = n_devices * _SAMPLES
    inner, order = samples[step::step], order[step::step].astype(jnp.int32)
    device = order // n_samples
    place = jnp.minimum(order % n_samples * apart, lax.all_gather(last, axis_name)[device])
    lowest = np.zeros(1, keys.dtype)
    bounds = jnp.concatenate([lowest, inner, ~lowest])

    def of_class(number: int) -> tuple[Array, Array, Array]:
        first, end = part.limits(number)
        beside = jnp.stack([part.places(bounds, number, ties=ties) for ties in (False, True)])
        below, upto = beside[:, 1:-1]
        at = jnp.where(here == device, jnp.clip(place, below, upto), below)
        at = jnp.where(here < device, upto, at)
        limits = jnp.concatenate([first[None], at, end[None]])
        return limits, part.sums_to(limits, number), part.sums_to(beside, number)

    of_classes = [of_class(x) for x in CLASSES]
    limits, before, beside = (jnp.stack(x, axis=-2) for x in zip(*of_classes, strict=True))
    return limits, sum_over(before, axis_name), bounds, sum_over(beside, axis_name)
