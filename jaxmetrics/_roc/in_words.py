"""Placements of sorted items within a program for a GPU: words of 32 neighbours, and their bits.

On a GPU, a running count is three passes over memory and a new array. A word has one bit for each
of its items: the count at an item is the count before its word, plus the number of bits up to the
item. Items are read once, and only words are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.compaction import BITS, in_words, number_of_bits
from jaxmetrics._base.narrow_keys import of_sorted
from jaxmetrics._base.numerics import shifted
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array
from jaxmetrics._roc.table import KINDS, keys_and_kinds


class _Classes(NamedTuple):
    """An array for each class."""

    negatives: Array
    positives: Array


@dataclass(frozen=True)
class InWords:
    """Groups of positives that tie, `[32 words]`: the last item of each score stands for its group.

    Attributes:
      starts: `[words]`, the bits of the items whose score differs from that of the item before.
      classes: `[words]`, the bits of the items of each class.
      total_negatives: the number of all negatives, also if the items are only the head.
    """

    starts: Array
    classes: _Classes
    total_negatives: Any
    library = jnp
    slack = 0.0

    def total(self, of_each: Any) -> Any:
        # The product with 0 makes derivatives NaN where the value is, as for a table.
        return jnp.sum(self._gained * of_each, axis=-1)

    @property
    def above(self) -> Array:
        return _of_items(self._above.negatives)

    @property
    def not_below(self) -> Array:
        return _of_items(self._upto.negatives)

    @property
    def positives_above(self) -> Array:
        return _of_items(self._above.positives)

    @property
    def positives_not_below(self) -> Array:
        return _of_items(self._upto.positives)

    @cached_property
    def _gained(self) -> Array:
        """The positives of the group; 0 for an item that is not the last of its score."""
        after = jnp.append(self.starts[1:], jnp.uint32(1))
        ends = (self.starts >> 1) | (after << (BITS - 1))
        last = ((ends[:, None] >> _place()) & 1).astype(bool)
        return _of_items(jnp.where(last, self._upto.positives - self._above.positives, 0))

    @cached_property
    def _before(self) -> _Classes:
        """`[words]`, the number of items of each class before each word."""
        both = _packed(*(number_of_bits(x) for x in self.classes))
        return _unpacked(shifted(jnp.cumsum(both)))

    @cached_property
    def _above_before(self) -> _Classes:
        """`[words]`, the number of items above the score of the last item before each word."""
        first = _lowest_bits(_highest_bit(self.starts))
        found = (
            x + number_of_bits(y & first) for x, y in zip(self._before, self.classes, strict=True)
        )
        # Both counts grow together: the largest packed word has the largest of each.
        last = jnp.where(self.starts > 0, _packed(*found), 0)
        return _unpacked(shifted(lax.cummax(last)))

    @cached_property
    def _upto(self) -> _Classes:
        """`[words, 32]`, the number of items up to each item and including it."""
        upto = _lowest_bits(_place()) * 2 + 1
        found = (
            x[:, None] + number_of_bits(y[:, None] & upto)
            for x, y in zip(self._before, self.classes, strict=True)
        )
        return _Classes(*found)

    @cached_property
    def _above(self) -> _Classes:
        """`[words, 32]`, the number of items before the first that ties with each item."""
        starts = self.starts[:, None] & (_lowest_bits(_place()) * 2 + 1)
        first = _lowest_bits(_highest_bit(starts))
        found = (
            jnp.where(starts > 0, x[:, None] + number_of_bits(y[:, None] & first), z[:, None])
            for x, y, z in zip(self._before, self.classes, self._above_before, strict=True)
        )
        return _Classes(*found)


class Words(NamedTuple):
    """The bits of items: those at which a new score starts, and those of each class."""

    starts: Array
    classes: _Classes


def words_of(*given: Array) -> tuple[Words, tuple[Array, Array]]:
    """The words of items `[n]`, sorted here, and the numbers of positives and of negatives.

    The arguments are those of `keys_and_kinds`.
    """
    _, kinds = keys_and_kinds(*given)
    negatives, positives = (jnp.sum(kinds == x, dtype=jnp.int32).astype(jnp.float64) for x in KINDS)
    return of_sorted(_words, keys_and_kinds, given, most=int(KINDS[-1])), (positives, negatives)


def _words(keys: Array, kinds: Array) -> Words:
    # The bits that fill up the last word are of no class, and start no score.
    negatives, positives = (in_words(kinds == x) for x in KINDS)
    return Words(in_words(starts(keys)), _Classes(negatives, positives))


def _place() -> Array:
    return jnp.arange(BITS, dtype=jnp.uint32)


def _highest_bit(words: Array) -> Array:
    """The place of the highest bit that is set; it means nothing for a word of 0."""
    return (BITS - 1 - lax.clz(words)) & (BITS - 1)


def _lowest_bits(n: Array) -> Array:
    """Words of which the lowest n bits are set, for n below 32."""
    return (jnp.uint32(1) << n) - 1


def _of_items(counts: Array) -> Array:
    return counts.astype(jnp.float64).ravel()


def _packed(negatives: Array, positives: Array) -> Array:
    """Both numbers in one word of 64 bits: one running sum in place of two."""
    return (positives.astype(jnp.uint64) << 32) | negatives.astype(jnp.uint64)


def _unpacked(words: Array) -> _Classes:
    return _Classes(*(x.astype(jnp.int32) for x in (words.astype(jnp.uint32), words >> 32)))
