"""Values of metrics of items that the devices of a mesh hold in parts, within `shard_map`.

If one threshold decides, it is selected, and only sums of counts travel. For sums over positives,
items travel as `mesh_ways` says. Otherwise each device sorts its part, and thresholds are searched
for in these parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.divided import over_parts
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.items import at_least_one, batch_of
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.mesh_items import undefined_on_mesh, weights_on_mesh
from jaxmetrics._roc.mesh_placements import placements_on_mesh
from jaxmetrics._roc.mesh_ways import Place, by_rarer_class
from jaxmetrics._roc.placements import Part
from jaxmetrics._roc.selection import Selection, has_exact_thresholds
from jaxmetrics._roc.table_values import static_options


def evaluate_on_mesh(
    function: Callable[..., Any],
    items: Items,
    options: dict[str, Any],
    order: Part,
    axis_name: AxisName,
) -> Any:
    """`function(placements, **options)` of each row of a batch, over the items of all devices.

    It is compiled, in double precision. The result is the same on all devices, and NaN where a
    valid score is NaN or no item is valid.
    """
    static, arrays = static_options(options)
    selected = order is Part.NONE and has_exact_thresholds(items)
    summed = order in (Part.POSITIVES, Part.HEAD)
    dtype = numerics.default_float()
    with double_precision():
        items = jax.tree.map(jnp.asarray, at_least_one(items))
        given = items, arrays
        return over_parts(_evaluate, axis_name, given, function, static, selected, summed, dtype)


@functools.partial(
    jax.jit, static_argnames=("function", "static", "selected", "summed", "axis_name", "dtype")
)
def _evaluate(
    items: Items,
    arrays: dict[str, Any],
    axis_name: AxisName,
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    selected: bool,
    summed: bool,
    dtype: Any,
) -> Any:
    def of_one(items: Items, options: dict[str, Any]) -> Any:
        def value_of(placed: Any) -> Array:
            return jnp.asarray(function(placed, **options, **dict(static)), jnp.float64)

        # Weights are made anew within each branch, where they take no memory of their own.
        def of_way(place: Place) -> Array:
            return value_of(place(items, weights_on_mesh(items), axis_name))

        if selected:
            value = value_of(Selection(items, axis_name))
        elif summed:
            value = by_rarer_class(of_way, items, axis_name)
        else:
            value = of_way(placements_on_mesh)
        undefined = undefined_on_mesh(items, axis_name)
        return jnp.where(undefined, jnp.nan, value).astype(dtype)

    axes = len(batch_of(items))
    program = in_double(of_one)
    return numerics.over_rows(lambda row: program(row, arrays), items, axes)
