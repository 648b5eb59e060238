"""Groups of positives that are few on every device of a mesh, within `shard_map`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.parts import AxisName, Rows, gathered, sum_over
from jaxmetrics._base.rarer_class import added_for_owners, sums_beside
from jaxmetrics._base.types import Array


@dataclass(frozen=True)
class RarePositives:
    """Each positive of a device by itself, also those that tie.

    Attributes:
      own: the positives of this device.
      items: all items of this device.
      total_negatives: of all devices.
      axis_name: of the devices.
    """

    own: Rows
    items: Rows
    total_negatives: Any
    axis_name: AxisName
    library = jnp

    @property
    def slack(self) -> float:
        return numerics.slack(self.items.negatives)

    @cached_property
    def _keys(self) -> Array:
        keys: Array = gathered(self.own.keys, self.axis_name)
        return keys

    @cached_property
    def _negatives(self) -> Array:
        sums = sums_beside(self.items.keys, self.items.negatives, self._keys)
        return added_for_owners(sums, len(self.items.keys), self.axis_name)

    @cached_property
    def _positives(self) -> Array:
        weights = gathered(self.own.positives, self.axis_name)
        return sums_beside(self._keys, weights, self.own.keys).astype(jnp.float64)

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
        return sum_over(jnp.sum(self.own.positives * of_each, axis=-1), self.axis_name)
