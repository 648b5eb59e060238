"""Which items the devices of a mesh, which each hold a part, send each other in `shard_map`.

If a metric is a sum over positives and each device has few, all devices receive all positives.
Otherwise each device receives the items of ranges of the scores.
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
# `place(items, weights, axis_name, indexed=False)` returns the placements of the items of all
# devices along the axis. The weights are those of `weights_on_mesh`.
Place: TypeAlias = Callable[..., Any]


def by_rarer_class(function: Callable[[Place], R], items: Items, axis_name: AxisName) -> R:
    """`function` of the way that moves less. It may ask placements only for `summed` and totals.

    The program has both ways if the shapes leave room for positives, and chooses as it runs.
    """
    room = room_for(items.scores.shape[-1], size_of(axis_name))
    if not room:
        return function(placements_on_mesh)
    few = fit_in(valid_on_mesh(items) & (items.labels == 1), room, axis_name)
    of_few = functools.partial(rare_positives, room=room)
    return lax.cond(few, lambda: function(of_few), lambda: function(placements_on_mesh))
