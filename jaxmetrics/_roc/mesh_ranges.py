"""Groups of the items in the range of the scores that a device of a mesh receives, in `shard_map`.

The weight above an item is that above it in its range, plus that of the ranges before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import cumulative
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES
from jaxmetrics._base.key_ranges import Range
from jaxmetrics._base.sorting import entries_at, starts
from jaxmetrics._base.types import Array
from jaxmetrics._roc.in_order import InOrder
from jaxmetrics._roc.table import SortedItems


@dataclass(frozen=True)
class InRange:
    """Groups of one positive each: the items of a range.

    Attributes:
      items: the items.
      units: `[classes]`, the factors of their weights.
      total_negatives: the weight of the negatives of all ranges.
      slack: as in `Groups`.
    """

    items: Range
    units: Array
    total_negatives: Any
    slack: float
    library = jnp

    def total(self, of_each: Any) -> Any:
        return self._alone.total(of_each)

    @property
    def positives(self) -> Array:
        """The weight of each item as a positive, 1 without weights; 0 for all other items."""
        return self._of_class(SORTED_POSITIVES)

    @property
    def negatives(self) -> Array:
        return self._of_class(SORTED_NEGATIVES)

    def _of_class(self, number: int) -> Array:
        which, weights = self.items.kinds == number, self.items.weights
        if weights is None:
            return which.astype(jnp.int32)
        return jnp.where(which, weights, 0) * self.units[number]

    @property
    def above(self) -> Array:
        return self._of_all(self._alone.above, SORTED_NEGATIVES, upto=False)

    @property
    def not_below(self) -> Array:
        return self._of_all(self._alone.not_below, SORTED_NEGATIVES, upto=True)

    @property
    def positives_above(self) -> Array:
        return self._of_all(self._alone.positives_above, SORTED_POSITIVES, upto=False)

    @property
    def positives_not_below(self) -> Array:
        return self._of_all(self._alone.positives_not_below, SORTED_POSITIVES, upto=True)

    @cached_property
    def _alone(self) -> InOrder | _Weighted:
        """The groups as if this range held all items."""
        begins, positives, negatives = starts(self.items.keys), self.positives, self.negatives
        if self.items.weights is None:
            return InOrder(SortedItems(begins, positives, negatives), self.total_negatives)
        return _Weighted(begins, positives, negatives)

    def _of_all(self, sums: Array, of_class: int, *, upto: bool) -> Array:
        """Sums over all ranges, from those of this one.

        A tie with one of its bounds may go on in the range beside it: these sums are known.
        """
        before, beside = (
            x[..., of_class, :] * self.units[of_class]
            for x in (self.items.before[:, None], self.items.beside)
        )
        sums = sums + before
        for bound, known in zip(self.items.bounds, beside[int(upto)], strict=True):
            sums = jnp.where(self.items.keys == bound, known, sums)
        return sums


@dataclass(frozen=True)
class _Weighted:
    """The weights of items `[m]` by descending score; `begins` is True where a tie begins."""

    begins: Array
    positives: Array
    negatives: Array

    def total(self, of_each: Any) -> Any:
        return jnp.sum(self.positives * of_each, axis=-1)

    @cached_property
    def _sums(self) -> Array:
        """`[classes, m + 1]`, the weight of the items before each one."""
        sums = [cumulative.running_total(x) for x in (self.positives, self.negatives)]
        return jnp.pad(jnp.stack(sums), ((0, 0), (1, 0)))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        return cumulative.runs(self.begins)

    def _sums_to(self, of_class: int, *, upto: bool) -> Array:
        places = self._ends[upto]
        return entries_at(self._sums[of_class], places)

    @property
    def above(self) -> Array:
        return self._sums_to(SORTED_NEGATIVES, upto=False)

    @property
    def not_below(self) -> Array:
        return self._sums_to(SORTED_NEGATIVES, upto=True)

    @property
    def positives_above(self) -> Array:
        return self._sums_to(SORTED_POSITIVES, upto=False)

    @property
    def positives_not_below(self) -> Array:
        return self._sums_to(SORTED_POSITIVES, upto=True)
