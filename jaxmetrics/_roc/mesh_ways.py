"""Ways that items go which the devices of a mesh hold in parts, within `shard_map`.

Where a metric is a sum over positives, which are few on every device, all devices receive these.
Otherwise each receives the items in ranges of the scores.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from jax import lax

from jaxmetrics._base.parts import AxisName, size_of
from jaxmetrics._base.rarer_class import fit_in, room_for
from jaxmetrics._base.types import Items
from jaxmetrics._roc.mesh_items import valid_on_mesh
from jaxmetrics._roc.mesh_placements import placements_on_mesh
from jaxmetrics._roc.rare_positives import rare_positives

R = TypeVar("R")
# Returns placements of items with these weights of each in its class, of the devices along an axis.
Place: TypeAlias = Callable[..., Any]


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
