"""Placements of positives that are few on every device of a mesh, within `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.parts import AxisName, Rows, gathered, sum_over
from jaxmetrics._base.rarer_class import added_for_owners, compacted, sums_beside, total_of
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.mesh_placements import near_one_on_mesh, rows_on_mesh, valid_on_mesh
from jaxmetrics._roc.placements import Groups


@dataclass(frozen=True)
class RarePositives:
    """Each positive of a device by itself, also those that tie.

    Attributes:
      items: of this device.
      positive: which of these are, whatever their weights.
      room: places for the positives of a device, which must fit in.
      axis_name: of the devices.
    """

    items: Rows
    positive: Array
    room: int
    axis_name: AxisName
    library = jnp

    @property
    def slack(self) -> float:
        return numerics.slack(self.items.negatives)

    def near_one(self, *, together: bool = False) -> RarePositives:
        weights = self.items[1:]
        scaled = near_one_on_mesh(weights, self.axis_name, together=together)
        return replace(self, items=Rows(self.items.keys, *scaled))

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        del max_fpr
        return function(self)

    @property
    def total_positives(self) -> Array:
        return self._sum(self.items.positives)

    @property
    def total_negatives(self) -> Array:
        return self._sum(self.items.negatives)

    def _sum(self, of_items: Array) -> Array:
        return sum_over(total_of(of_items), self.axis_name)

    @cached_property
    def own(self) -> Rows:
        """The positives of this device."""
        return compacted(self.items, self.positive, self.room)

    @cached_property
    def keys(self) -> Array:
        """Those of the positives of all devices."""
        keys: Array = gathered(self.own.keys, self.axis_name)
        return keys

    @cached_property
    def _negatives(self) -> Array:
        sums = sums_beside(self.items.keys, self.items.negatives, self.keys)
        return added_for_owners(sums, len(self.items.keys), self.axis_name)

    @cached_property
    def _positives(self) -> Array:
        weights = self.own.positives
        if not numerics.is_inexact(weights):  # 0 or 1, and a byte each
            weights = weights > 0
        weights = gathered(weights, self.axis_name)
        return sums_beside(self.keys, weights, self.own.keys).astype(jnp.float64)

    @property
    def above(self) -> Array:
        return self._negatives[0]

    @property
    def not_below(self) -> Array:
        return self._negatives[1]

    @property
    def positives_above(self) -> Array:
        return self._positives[0]

    @property
    def positives_not_below(self) -> Array:
        return self._positives[1]

    def total(self, of_each: Any) -> Array:
        of_own = jnp.sum(self.own.positives * of_each, axis=-1)
        return sum_over(of_own, self.axis_name)


def rare_positives(
    items: Items, weights: tuple[Array, Array], axis_name: AxisName, *, room: int
) -> RarePositives:
    """The placements of the items `[n]` of all devices, with these weights of each class."""
    positive = valid_on_mesh(items) & (items.labels == 1)
    return RarePositives(rows_on_mesh(items, weights), positive, room, axis_name)
