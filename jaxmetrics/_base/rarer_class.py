"""Items of a class that is rare on every device of a mesh: only these are gathered.

Within `shard_map`, each device puts its items of the class into a room, a buffer whose size is
fixed when the program is compiled. All devices receive all rooms. For each item that it received, a
device sums the weights of its own items of the other class with keys below the item's, and not
above it. The sums are added up over all devices, and the device that owns the item receives them.
Where the items of a device do not fit in its room, the program uses `key_ranges` instead.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import cumulative, numerics, sorting, varying
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.parts import AxisName, largest_over, size_of, so_many_below
from jaxmetrics._base.types import Array

_BYTES = 13  # that a device receives for each place of another's room: key, flag, two counts
_LEAST = 64  # places; with fewer, a second branch of the program is not worth its compilation


def room_for(n: int, n_devices: int) -> int:
    """The places in the room of each device with n items; 0 if they would be too few.

    A device receives at most one byte from the others for each item of its own.
    """
    others = n_devices - 1
    room = n // (_BYTES * others) if others else 0
    return room if room >= _LEAST else 0


def fit_in(which: Array, room: int, axis_name: AxisName) -> Array:
    """Whether the items where `which` is True fit in the room, on every device and in every row."""
    return largest_over(varying.largest_of_batch(number_of(which)), axis_name) <= room


def sums_beside(keys: Array, weights: Array, at: Array) -> Array:
    """`[2, m]`: the sum of the weights of keys below each of `at`, and of those not above it.

    Integer weights must be 0 or 1, and 0 only beside the largest key.
    """
    bounds, ties = jnp.stack([at, at]), np.array([[False], [True]])
    if not numerics.is_inexact(weights):
        keys = sorting.sort(keys)
        return so_many_below(keys, bounds, 0, number_of(weights > 0), ties=ties)
    order = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
    keys, order = sorting.sort_by_key(keys, order)
    upto = cumulative.running_total(sorting.take(weights, order))
    sums = jnp.concatenate([jnp.zeros_like(upto[:1]), upto])
    places = so_many_below(keys, bounds, 0, len(keys), ties=ties)
    return sorting.entries_at(sums, places)


def added_for_owners(sums: Array, n: int, axis_name: AxisName) -> Array:
    """The sums `[2, devices * room]` added over all devices of n items; each gets its room's part.

    The result is `[2, room]`.
    """
    exact = numerics.is_inexact(sums) or n * size_of(axis_name) <= np.iinfo(np.int32).max
    added: Array = lax.psum_scatter(
        sums if exact else sums.astype(jnp.float64), axis_name, scatter_dimension=1, tiled=True
    )
    return added.astype(jnp.float64)
