"""Ways that items go which the devices of a mesh hold in parts, within `shard_map`.

Where a metric is a sum over positives, which are few on every device, all devices receive these.
Otherwise each receives the items in ranges of the scores.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.counted_parts import sorted_by_class
from jaxmetrics._base.items import class_weights
from jaxmetrics._base.parts import AxisName, rows_of_range, size_of
from jaxmetrics._base.rarer_class import fit_in, room_for
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.mesh_counts import CountedOnMesh
from jaxmetrics._roc.mesh_placements import OnMesh, RowsOnMesh, rows_on_mesh, valid_on_mesh
from jaxmetrics._roc.rare_positives import rare_positives
from jaxmetrics._roc.table import ScoreTable

R = TypeVar("R")
# Returns placements of items with these weights of each class, of the devices along an axis.
Place: TypeAlias = Callable[[Items, tuple[Array, Array], AxisName], Any]


def placements_on_mesh(items: Items, weights: tuple[Array, Array], axis_name: AxisName) -> OnMesh:
    """The placements of the items `[n]` of all devices, with these weights of each class."""
    if is_counted(items, weights):
        keys, ends = varying.apart(_keys_by_class, items)
        return CountedOnMesh(axis_name, keys, ends, items.scores)
    keys, *weights_of_range = rows_of_range(rows_on_mesh(items, weights), axis_name)
    thresholds = sorting.scores_of_keys(keys, items.scores)
    return RowsOnMesh(axis_name, ScoreTable(thresholds, *weights_of_range))


def is_counted(items: Items, weights: tuple[Array, Array]) -> bool:
    """Whether items travel as their keys alone."""
    return items.scores.dtype.itemsize < 8 and not numerics.is_inexact(weights[0])


def _keys_by_class(items: Items) -> tuple[Array, Array]:
    keys, positives, negatives = rows_on_mesh(items, class_weights(items))
    return sorted_by_class(keys, positives > 0, negatives > 0)


def by_rarer_class(function: Callable[[Place], R], items: Items, axis_name: AxisName) -> R:
    """`function` of the way that moves less, where no more than `summed` and totals is asked for.

    The program has both ways if there may be few positives on each device.
    """
    room = room_for(items.scores.shape[-1], size_of(axis_name))
    if not room:
        return function(placements_on_mesh)
    few = fit_in(valid_on_mesh(items) & (items.labels == 1), room, axis_name)
    of_few = functools.partial(rare_positives, room=room)
    found: R = lax.cond(few, lambda: function(of_few), lambda: function(placements_on_mesh))
    return found
