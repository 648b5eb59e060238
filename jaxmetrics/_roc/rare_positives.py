"""Placements of positives that are few on each device of a mesh, within `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES, ByClass
from jaxmetrics._base.compaction import first_indices, number_of
from jaxmetrics._base.parts import AxisName, gathered, sum_over
from jaxmetrics._base.rarer_class import added_for_owners, sums_beside
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.mesh_items import (
    OfClasses,
    keys_on_mesh,
    kinds_on_mesh,
    ones,
    sorted_by_class,
    units_of_classes,
)
from jaxmetrics._roc.placements import Groups


class Own(NamedTuple):
    """The positives of a device, `[room]`; places without an item remain.

    Attributes:
      keys: lower for a higher score; the largest key where there is no item.
      weights: the weight of each positive, 1 without weights; 0 where there is no item.
    """

    keys: Array
    weights: Array


@dataclass(frozen=True)
class RarePositives:
    """Placements, and groups of one positive each, also where positives tie.

    Attributes:
      own: the positives of this device.
      part: the items of this device in order; without weights only the negatives.
      units: the factors of the weights of positives and of negatives.
      slack: as in `Groups`.
      axis_name: the axis of the devices.
    """

    own: Own
    part: ByClass
    units: OfClasses
    slack: float
    axis_name: AxisName
    library = jnp

    @property
    def is_weighted(self) -> bool:
        return self.part.weights is not None

    def near_one(self, *, together: bool = False) -> RarePositives:
        if not self.is_weighted:
            return self
        highest = jnp.max(self.own.weights), self.part.highest()[SORTED_NEGATIVES]
        units = units_of_classes(highest, self.axis_name, together=together)
        return replace(self, units=units)

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        return function(self)

    @property
    def total_positives(self) -> Array:
        return sum_over(jnp.sum(self.positives), self.axis_name)

    @property
    def total_negatives(self) -> Array:
        return sum_over(self.negatives, self.axis_name)

    @property
    def positives(self) -> Array:
        """The weight of each positive of this device; 1 without weights."""
        if not self.is_weighted:
            return self.own.weights
        return self.own.weights.astype(jnp.float64) * self.units[SORTED_POSITIVES]

    @property
    def negatives(self) -> Array:
        """The number, or the total weight, of this device's negatives."""
        return self._of_negatives(self.part.ends[SORTED_NEGATIVES])

    def _of_negatives(self, places: Array) -> Array:
        sums = self.part.sums_to(places, SORTED_NEGATIVES)
        return sums * self.units[SORTED_NEGATIVES] if self.is_weighted else sums

    @cached_property
    def keys(self) -> Array:
        """The keys of the positives of all devices."""
        return gathered(self.own.keys, self.axis_name)

    def places_beside(self, keys: Array) -> Array:
        """`[2, m]`, the places of this device's first negative not below each key, and above it."""
        bounds, ties = jnp.stack([keys, keys]), np.array([[False], [True]])
        return self.part.places(bounds, SORTED_NEGATIVES, ties=ties)

    @cached_property
    def _negatives(self) -> Array:
        sums = self._of_negatives(self.places_beside(self.keys))
        return added_for_owners(sums, len(self.part.keys), self.axis_name)

    @cached_property
    def _positives(self) -> Array:
        weights = self.positives
        if not numerics.is_inexact(weights):  # all weights are 0 or 1: move one byte each
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
        return sum_over(jnp.sum(self.positives * of_each, axis=-1), self.axis_name)


def rare_positives(
    items: Items,
    weights: Array | None,
    axis_name: AxisName,
    *,
    room: int,
    indexed: bool = False,
) -> RarePositives:
    """The placements of the items of all devices; this device holds `[n]`.

    `weights` are those of `weights_on_mesh`. Each device must have at most `room` positives.
    """
    if weights is None and not indexed:
        own, part = _of_counted(items, room)
    else:
        part = sorted_by_class(items, weights, indexed=True)
        some = jnp.arange(room) < part.ends[SORTED_POSITIVES]
        of_own = jnp.ones(room, jnp.int32) if weights is None else part.of_items[:room]
        own = _own(part.keys[:room], some, of_own)
    slack = 0.0 if items.weights is None else numerics.SLACK
    return RarePositives(own, part, ones(), slack, axis_name)


def _of_counted(items: Items, room: int) -> tuple[Own, ByClass]:
    """The positives, and the part, of items without weights: only the negatives are sorted."""
    keys, kinds = keys_on_mesh(items), kinds_on_mesh(items)
    index, some = first_indices(kinds == SORTED_POSITIVES, room)
    own = _own(sorting.entries_at(keys, index), some, jnp.ones(room, jnp.int32))
    negative = kinds == SORTED_NEGATIVES
    ends = jnp.stack([jnp.zeros((), jnp.int32), number_of(negative)])
    keys = sorting.sort(jnp.where(negative, keys, sorting.largest_key(keys)))
    return own, ByClass.of(keys, ends, None)


def _own(keys: Array, some: Array, weights: Array) -> Own:
    return Own(jnp.where(some, keys, sorting.largest_key(keys)), jnp.where(some, weights, 0))
