"""Items of a class that is rare on every device of a mesh: only these are gathered.

Within `shard_map`, each device has the items of the class in a room whose size is known when the
program is compiled, and all devices receive all rooms. Each sums up its own items of the other
class above and below what it received. The sums are added up over devices, for the device that has
the item. Where an item does not fit in, `key_ranges` is the way out.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import cumulative, numerics, sorting, varying
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.parts import AxisName, largest_over, size_of, so_many_below
from jaxmetrics._base.types import Array

_BYTES = 13  # that a device receives for a place of another one's room: key, flag, two counts
_LEAST = 64  # places, for which a second way through a program is worth its compilation


def room_for(n: int, n_devices: int) -> int:
    """Places for the items of a class, on each device with n items; 0 if they would be too few.

    What the others send adds up to at most one byte for each item of a device.
    """
    others = n_devices - 1
    room = n // (_BYTES * others) if others else 0
    return room if room >= _LEAST else 0


def fit_in(which: Array, room: int, axis_name: AxisName) -> Array:
    """Whether the items of a class fit in on every device, in every row of a batch."""
    return largest_over(varying.largest_of_batch(number_of(which)), axis_name) <= room


def sums_beside(keys: Array, weights: Array, at: Array) -> Array:
    """`[2, m]`: the sums of the weights of keys that are below each of `at`, or not above it.

    Whole weights are 0 or 1.
    """
    bounds, ties = jnp.stack([at, at]), np.array([[False], [True]])
    if not numerics.is_inexact(weights):
        keys = sorting.sort(jnp.where(weights > 0, keys, ~np.zeros((), keys.dtype)))
        return so_many_below(keys, bounds, 0, number_of(weights > 0), ties=ties)
    order = lax.broadcasted_iota(jnp.uint32, keys.shape, 0)
    keys, order = sorting.sort_by_key(keys, order)
    upto = cumulative.running_total(sorting.take(weights, order))
    sums = jnp.concatenate([jnp.zeros_like(upto[:1]), upto])
    places = so_many_below(keys, bounds, 0, len(keys), ties=ties)
    return sums.at[places].get(mode="promise_in_bounds")


def added_for_owners(sums: Array, n: int, axis_name: AxisName) -> Array:
    """Over all devices with n items each: the sums `[2, devices * room]` at each device's room."""
    exact = numerics.is_inexact(sums) or n * size_of(axis_name) <= np.iinfo(np.int32).max
    added: Array = lax.psum_scatter(
        sums if exact else sums.astype(jnp.float64), axis_name, scatter_dimension=1, tiled=True
    )
    return added.astype(jnp.float64)
