"""Placements of sorted items within a program: running counts, in place of the rows of a table.

On the CPU, the scatters of XLA that add ties up to rows take a third of the time of the sort. A
running count takes a twentieth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.cumulative import running_count, running_highest
from jaxmetrics._base.host import on_gpu
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.in_words import InWords, Words, words_of
from jaxmetrics._roc.placements import Groups, OfPlacements, OfTable
from jaxmetrics._roc.table import Prepared, ScoreTable, SortedItems, build_sorted


@dataclass(frozen=True)
class InOrder:
    """Groups of one positive each: items `[n]` without weights by descending score.

    Attributes:
      items: the items.
      total_negatives: the number of all negatives, also if `items` are only the head.
      all_count: whether each item is of one of the classes, so that one count gives the other.
      negatives_first: whether negatives come before the positives of their tie, on a CPU.
    """

    items: SortedItems
    total_negatives: Any
    all_count: bool = False
    negatives_first: bool = False
    library = jnp
    slack = 0.0

    def total(self, of_each: Any) -> Any:
        # No product with the positives: XLA for the CPU would fuse it with the sum, which takes
        # several times as long. The product with 0 makes derivatives NaN where the value is, as
        # for a table.
        return jnp.sum(jnp.where(self.items.positives > 0, of_each, 0 * of_each), axis=-1)

    @cached_property
    def _fps(self) -> Array:
        return running_count(self.items.negatives)

    @cached_property
    def _tps(self) -> Array:
        if not self.all_count:
            return running_count(self.items.positives)
        return jnp.arange(1, len(self.items.positives) + 1, dtype=jnp.int32) - self._fps

    @cached_property
    def above(self) -> Array:
        return self._at_start(self._fps, self.items.negatives)

    @cached_property
    def positives_above(self) -> Array:
        return self._at_start(self._tps, self.items.positives)

    @cached_property
    def not_below(self) -> Array:
        if not self.negatives_first:
            return self._at_end(self._fps)
        return lax.platform_dependent(
            self._fps, cpu=lambda x: x.astype(jnp.float64), default=self._at_end
        )

    @cached_property
    def positives_not_below(self) -> Array:
        return self._at_end(self._tps)

    def _at_start(self, counts: Array, of_item: Array) -> Array:
        """For each item, the count before the first item of its tie."""
        at = running_highest(jnp.where(self.items.starts, counts - of_item, 0))
        return at.astype(jnp.float64)

    def _at_end(self, counts: Array) -> Array:
        """For each item, the count up to the last item of its tie, this one included."""
        ends = jnp.append(self.items.starts[1:], True)
        after = jnp.where(ends, counts[-1] - counts, 0)
        return (counts[-1] - running_highest(after, reverse=True)).astype(jnp.float64)


class NegativesFirst(InOrder):
    """The same for items whose negatives come before the positives of their tie on any backend."""

    @property
    def not_below(self) -> Array:
        return self._fps.astype(jnp.float64)


@dataclass(frozen=True, kw_only=True)
class OfSorted(OfTable):
    """Placements of items `[n]` without weights: sums use the items, all else uses their table.

    Attributes:
      items: the items from which the table was built.
      all_count, negatives_first: as in `InOrder`.
      words: the bits of the items, which a GPU counts; None on other backends.
    """

    items: SortedItems
    all_count: bool
    negatives_first: bool
    words: Words | None

    @property
    def total_positives(self) -> Any:
        return _number(self.items.positives) if self.whole is None else self.whole[0]

    @property
    def total_negatives(self) -> Any:
        return _number(self.items.negatives) if self.whole is None else self.whole[1]

    def near_one(self, *, together: bool = False) -> OfSorted:
        return self

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        if self.constant:
            return function(self)
        if self.words is not None:
            return function(InWords(*self.words, self.total_negatives))
        known = self.all_count, self.negatives_first
        return function(InOrder(self.items, self.total_negatives, *known))


def placements_in_order(items: Items, whole: tuple[Any, Any] | None) -> OfTable:
    """The placements of items `[n]` in a program; `whole` is as in `OfTable`."""
    table, _, found = build_sorted(Prepared(items, None))
    return OfTable(table, whole) if found is None else _of_sorted(items, table, found, whole)


def over_items(
    function: Callable[..., Any], items: Items, found: SortedItems | None
) -> Callable[..., Any]:
    """A metric's function of a table. If it is of placements, sums use the sorted items `found`."""
    if found is None or not isinstance(function, OfPlacements):
        return function
    of_placements = function.function
    return lambda table, **options: of_placements(_of_sorted(items, table, found), **options)


def _of_sorted(
    items: Items, table: ScoreTable, found: SortedItems, whole: tuple[Any, Any] | None = None
) -> OfSorted:
    # A NaN score is of no class, but then the value is NaN, too. Only the sort of 32-bit keys on
    # the CPU also orders ties by class.
    all_count, negatives_first = items.where is None, items.scores.dtype.itemsize < 8
    words = None
    if on_gpu() and found.given is not None:
        words, totals = words_of(*found.given)
        whole = whole or totals
    return OfSorted(
        table,
        whole,
        items=found,
        all_count=all_count,
        negatives_first=negatives_first,
        words=words,
    )


def _number(ones: Array) -> Array:
    return jnp.sum(ones, dtype=jnp.int32).astype(jnp.float64)
