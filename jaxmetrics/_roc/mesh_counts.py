"""Placements of unweighted items that the devices of a mesh hold in parts, within `shard_map`.

A device receives the items of one range of the scores, or of several in turn where a metric is a
sum over positives. To what is above an item in its range, it adds what the ranges before hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import sorting
from jaxmetrics._base.counted_parts import Range, dealt_out, most_rounds, range_of
from jaxmetrics._base.parts import size_of, sum_over
from jaxmetrics._base.types import Array
from jaxmetrics._roc.in_order import InOrder
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.order import starts
from jaxmetrics._roc.placements import Groups
from jaxmetrics._roc.table import ScoreTable, SortedItems

_POSITIVES, _NEGATIVES = 0, 1


@dataclass(frozen=True)
class InRange:
    """Groups of one positive each: the items of a range.

    Attributes:
      items: the items.
      total_negatives: of all ranges.
    """

    items: Range
    total_negatives: Any
    library = jnp
    slack = 0.0

    def total(self, of_each: Any) -> Any:
        return self._alone.total(of_each)

    @property
    def above(self) -> Array:
        return self._of_all(self._alone.above, _NEGATIVES, upto=False)

    @property
    def not_below(self) -> Array:
        return self._of_all(self._alone.not_below, _NEGATIVES, upto=True)

    @property
    def positives_above(self) -> Array:
        return self._of_all(self._alone.positives_above, _POSITIVES, upto=False)

    @property
    def positives_not_below(self) -> Array:
        return self._of_all(self._alone.positives_not_below, _POSITIVES, upto=True)

    @cached_property
    def _alone(self) -> InOrder:
        """The same as if this range was all items."""
        keys, kinds = self.items.keys, self.items.kinds
        positives, negatives = ((kinds == x).astype(jnp.int32) for x in (_POSITIVES, _NEGATIVES))
        return InOrder(SortedItems(starts(keys), positives, negatives), self.total_negatives)

    def _of_all(self, counts: Array, of_class: int, *, upto: bool) -> Array:
        """Counts of this range as those of all; ties may go on in the ranges beside it."""
        counts = counts + self.items.before[of_class]
        for bound, known in zip(
            self.items.bounds, self.items.beside[int(upto), of_class], strict=True
        ):
            counts = jnp.where(self.items.keys == bound, known, counts)
        return counts


@dataclass(frozen=True)
class CountedOnMesh(OnMesh):
    """The items of all devices, without weights.

    Attributes:
      axis_name: of the devices.
      keys: of this device, in order of class and then of key.
      ends: `[classes]`, where those of each class end.
      like: has the dtype of the scores.
    """

    keys: Array
    ends: Array
    like: Any

    @property
    def total_positives(self) -> Array:
        return sum_over(self.ends[_POSITIVES], self.axis_name)

    @property
    def total_negatives(self) -> Array:
        return sum_over(self.ends[_NEGATIVES] - self.ends[_POSITIVES], self.axis_name)

    def near_one(self, *, together: bool = False) -> CountedOnMesh:
        del together
        return self

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        del max_fpr
        n_rounds = most_rounds(len(self.keys), size_of(self.axis_name))
        dealt = dealt_out(self.keys, self.ends, self.axis_name, n_rounds)

        def of_round(number: Array) -> Any:
            items = range_of(dealt, self.axis_name, number)
            return function(InRange(items, self.total_negatives))

        sums = lax.map(of_round, jnp.arange(n_rounds, dtype=jnp.int32))
        return sum_over(jnp.sum(sums, axis=0), self.axis_name)

    @cached_property
    def _groups(self) -> InRange:
        """The items of the only range of this device."""
        dealt = dealt_out(self.keys, self.ends, self.axis_name, 1)
        items = range_of(dealt, self.axis_name, jnp.int32(0))
        return InRange(items, self.total_negatives)

    @cached_property
    def table(self) -> ScoreTable:
        """Its rows are items."""
        items = self._groups.items
        thresholds = sorting.scores_of_keys(items.keys, self.like)
        counts = ((items.kinds == x).astype(jnp.int32) for x in (_POSITIVES, _NEGATIVES))
        return ScoreTable(thresholds, *counts)

    @cached_property
    def not_below(self) -> Array:
        return self._groups.not_below
