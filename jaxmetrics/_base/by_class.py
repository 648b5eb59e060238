"""The items of a device in order of class and then of key, and sums of their weights.

Without weights an item is its key alone. With them, a sum up to any place is that of whole blocks
and of a part of one: no running sum of all items is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import cumulative, sorting
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.host import on_cpu
from jaxmetrics._base.parts import first_that_is_not, so_many_below
from jaxmetrics._base.types import Array

Term: TypeAlias = Callable[[Array], Array]  # of each weight
Span: TypeAlias = tuple[Array, Array]  # where the items of a class begin and end

CLASSES = POSITIVES, NEGATIVES = 0, 1
LEFT_OUT = 2  # what is no item
_BLOCK = 32  # items
# XLA for the CPU writes out the terms of a sum: not those of all items at once.
_CHUNKS = 32
_AT_ONCE = 1 << 12


class _Weights(NamedTuple):
    """Of items in order.

    Attributes:
      of_items: `[n]`.
      of_blocks: `[classes, blocks + 1]`, the weight of the items of a class before each block.
      numbers: likewise, how many of them have a weight.
    """

    of_items: Array
    of_blocks: Array
    numbers: Array


@dataclass(frozen=True)
class ByClass:
    """Items of two classes in order.

    Attributes:
      keys: `[n]`, ascending within each class: positives, negatives, and those of no items.
      ends: `[classes]`, where the items of each class end.
      weights: None if each item counts once.
    """

    keys: Array
    ends: Array
    weights: _Weights | None

    @classmethod
    def of(cls, keys: Array, ends: Array, weights: Array | None) -> ByClass:
        """Of items with these weights `[n]`."""
        known = None
        if weights is not None:
            limits = [_limits(ends, x) for x in CLASSES]
            known = _Weights(weights, *_sums(weights, limits, (_weight, _is_some)))
        return cls(keys, ends, known)

    @property
    def of_items(self) -> Array:
        """`[n]`, the weights, of items that have them."""
        assert self.weights is not None
        return self.weights.of_items

    def limits(self, of_class: int) -> Span:
        return _limits(self.ends, of_class)

    def places(self, bounds: Array, of_class: int, *, ties: Any = False) -> Array:
        """Of the first item of a class with a key that is not below each bound, or is above it."""
        return so_many_below(self.keys, bounds, *self.limits(of_class), ties=ties)

    def first_that_is_not(
        self, above: Callable[[Array], Array], shape: tuple[int, ...], of_class: int
    ) -> Array:
        """Of the first item of a class with a key that is not `above`, as all before it are."""
        return first_that_is_not(above, self.keys, shape, *self.limits(of_class))

    def sums_to(self, places: Array, of_class: int) -> Array:
        """The weight of the items of a class before each place, or how many there are."""
        if self.weights is None:
            return places - self.limits(of_class)[0]
        return self._upto(places, of_class, self.weights.of_blocks[of_class], _weight)

    def numbers_to(self, places: Array, of_class: int) -> Array:
        """How many items of a class that have a weight are before each place."""
        if self.weights is None:
            return places - self.limits(of_class)[0]
        return self._upto(places, of_class, self.weights.numbers[of_class], _is_some)

    def sums_and_squares(
        self, places: Array, of_class: int, function: Callable[[Any], Array]
    ) -> tuple[Array, Array]:
        """Over the items of a class with a weight before each place: the sums of a function of the
        weight, and of its square."""

        def value(weights: Any) -> Array:
            return jnp.where(weights > 0, function(weights), 0)

        def square(weights: Any) -> Array:
            return value(weights) ** 2

        if self.weights is None:
            number = self.numbers_to(places, of_class)
            return number * value(1), number * square(1)
        terms = value, square
        of_blocks = _sums(self.of_items, [self.limits(of_class)], terms)
        sums, squares = (
            self._upto(places, of_class, x[0], term)
            for x, term in zip(of_blocks, terms, strict=True)
        )
        return sums, squares

    def highest(self, of_class: int) -> Array:
        """The highest weight of a class, or 0."""
        return jnp.max(jnp.where(self._which(of_class), self.of_items, 0))

    def lowest(self, of_class: int) -> Array:
        """The lowest weight of a class that is not 0, or infinity."""
        if self.weights is None:
            return jnp.ones(())
        some = self._which(of_class) & (self.of_items > 0)
        return jnp.min(jnp.where(some, self.of_items, jnp.inf))

    def _which(self, of_class: int) -> Array:
        begin, end = self.limits(of_class)
        place = lax.broadcasted_iota(jnp.int32, self.keys.shape, 0)
        return (begin <= place) & (place < end)

    def _upto(self, places: Array, of_class: int, of_blocks: Array, term: Term) -> Array:
        """The sum of the terms of a class before each place, of which that of blocks is known."""
        (begin, end), width = self.limits(of_class), _width(self.keys)

        def upto(places: Array) -> Array:
            block = places // width
            before: Array = of_blocks.at[block].get(mode="promise_in_bounds")
            index = (block * width)[..., None] + jnp.arange(width, dtype=jnp.int32)
            within = (begin <= index) & (index < jnp.minimum(places, end)[..., None])
            terms = term(self.of_items.at[index].get(mode="fill", fill_value=0))
            return before + _sum(jnp.where(within, terms, 0))

        if not on_cpu() or places.size <= _AT_ONCE:
            return upto(places)
        # The weights of a block are not kept for the way back.
        found: Array = lax.map(jax.checkpoint(upto), places.ravel(), batch_size=_AT_ONCE)
        return found.reshape(places.shape)


def in_order(keys: Array, kinds: Array, *, weighted: bool) -> tuple[Array, Array, Array | None]:
    """`keys` and `ends` of items `[n]`, and with weights the index that each item had.

    Kinds are POSITIVES, NEGATIVES, and LEFT_OUT for no items.
    """
    ends = jnp.cumsum(jnp.stack([number_of(kinds == x) for x in CLASSES]))
    if not weighted and keys.dtype == jnp.uint32:
        return sorting.sort_by_key_and_payload(kinds, keys)[1], ends, None
    keys, index = sorting.sort_within_kinds(kinds, keys)
    return keys, ends, index if weighted else None


def _limits(ends: Array, of_class: int) -> Span:
    return ends[of_class - 1] if of_class else jnp.zeros_like(ends[0]), ends[of_class]


def _width(items: Array) -> int:
    """How many items a block has."""
    return min(_BLOCK, len(items))


def _weight(weights: Array) -> Array:
    return weights.astype(jnp.float64)


def _is_some(weights: Array) -> Array:
    return (weights > 0).astype(jnp.int32)


def _sum(terms: Array) -> Array:
    return jnp.sum(terms, axis=-1, dtype=terms.dtype)


def _sums(weights: Array, limits: Sequence[Span], terms: Sequence[Term]) -> list[Array]:
    """`[limits, blocks + 1]`: the sum of each term over the items within limits before blocks."""
    width = _width(weights)
    n_blocks = len(weights) // width
    blocks = weights[: n_blocks * width].reshape(n_blocks, width)

    def of_block(block: tuple[Array, Array]) -> list[Array]:
        number, weights = block
        places = number * width + jnp.arange(width, dtype=jnp.int32)
        within = jnp.stack([(begin <= places) & (places < end) for begin, end in limits])
        return [_sum(jnp.where(within, term(weights), 0)) for term in terms]

    given = jnp.arange(n_blocks, dtype=jnp.int32), blocks
    if on_cpu() and n_blocks > _AT_ONCE:
        found = lax.map(of_block, given, batch_size=-(-n_blocks // _CHUNKS))
    else:
        found = jax.vmap(of_block)(given)
    upto = [cumulative.running_total(x.T) for x in found]
    return [jnp.pad(x, ((0, 0), (1, 0))) for x in upto]
