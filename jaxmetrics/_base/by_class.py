"""The items of a device in order of class and then of key, and sums of their weights.

Without weights an item is its key alone. With them, a sum up to any place is that of whole blocks
and of a part of one: no running sum of all items is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import cumulative, sorting, varying
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.host import on_cpu
from jaxmetrics._base.parts import first_that_is_not, so_many_below
from jaxmetrics._base.types import Array

T = TypeVar("T")
Term: TypeAlias = Callable[[Any], Array]  # of each weight
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
      of_blocks: `[classes, blocks + 1]`, the weight of the items of a class before each block, and
        of all.
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
      index: `[n]`, of each item before the sort; may be None if it was not asked for.
    """

    keys: Array
    ends: Array
    weights: _Weights | None
    index: Array | None = None

    @classmethod
    def of(
        cls, keys: Array, ends: Array, weights: Array | None, index: Array | None = None
    ) -> ByClass:
        """Of items with these weights `[n]`."""
        known = None
        if weights is not None:
            limits = [_limits(ends, x) for x in CLASSES]
            known = _Weights(weights, *_sums(weights, limits, (_weight, _is_some)))
        return cls(keys, ends, known, index)

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
        (sums,) = self._upto(places, of_class, [self.weights.of_blocks[of_class]], [_weight])
        return sums

    def numbers_to(self, places: Array, of_class: int) -> Array:
        """How many items of a class that have a weight are before each place."""
        if self.weights is None:
            return places - self.limits(of_class)[0]
        (numbers,) = self._upto(places, of_class, [self.weights.numbers[of_class]], [_is_some])
        return numbers

    def sums_of(self, terms: Sequence[Term], places: Array, of_class: int) -> list[Array]:
        """The sum of each term over the items of a class that have a weight before each place."""
        if self.weights is None:
            number = self.numbers_to(places, of_class)
            return [number * term(1) for term in terms]
        terms = [_of_some(term) for term in terms]

        def sums(places: Array) -> list[Array]:
            of_blocks = _sums(self.of_items, [self.limits(of_class)], terms)
            return self._upto(places, of_class, [x[0] for x in of_blocks], terms)

        # So that XLA for CPUs has no arrays for the results while items are sorted and dealt out.
        return varying.apart(sums, places)

    def totals_of(self, term: Term) -> Array:
        """`[classes]`: that over all items of each; weights are `[..., 1, items]` to the term."""
        return self._reduced(term, jnp.sum, 0)

    def highest(self) -> Array:
        """`[classes]`, the highest weight of each, or 0."""
        return self._reduced(lambda weights: weights, jnp.max, 0)

    def lowest(self) -> Array:
        """`[classes]`, the lowest weight of each that is not 0, or infinity."""
        if self.weights is None:
            return jnp.ones(len(CLASSES))
        return self._reduced(lambda weights: weights, jnp.min, jnp.inf)

    def _reduced(self, term: Term, reduction: Callable[..., Array], none: Any) -> Array:
        """`[classes]`: of the terms of the items of each that have a weight."""

        def of_blocks(weights: Array, within: Array) -> Array:
            terms = jnp.where(within & (weights > 0), term(weights), none)
            return reduction(terms, axis=(0, -1))[None]

        limits = [self.limits(x) for x in CLASSES]
        return reduction(_of_blocks(self.of_items, limits, of_blocks), axis=0)

    def _upto(
        self, places: Array, of_class: int, of_blocks: Sequence[Array], terms: Sequence[Term]
    ) -> list[Array]:
        """The sum of each term of a class before each place, of which that of blocks is known."""
        (begin, end), width = self.limits(of_class), _width(self.keys)

        def upto(places: Array) -> list[Array]:
            block = places // width
            before = [x.at[block].get(mode="promise_in_bounds") for x in of_blocks]
            index = (block * width)[..., None] + jnp.arange(width, dtype=jnp.int32)
            within = (begin <= index) & (index < jnp.minimum(places, end)[..., None])
            weights = self.of_items.at[index].get(mode="fill", fill_value=0)
            inside = [_sum(jnp.where(within, term(weights), 0)) for term in terms]
            return [x + y for x, y in zip(before, inside, strict=True)]

        if not on_cpu() or places.size <= _AT_ONCE:
            return upto(places)
        # The weights of a block are not kept for the way back.
        found = lax.map(jax.checkpoint(upto), places.ravel(), batch_size=_AT_ONCE)
        return [x.reshape(places.shape) for x in found]


def in_order(keys: Array, kinds: Array, *, indexed: bool) -> tuple[Array, Array, Array | None]:
    """`keys` and `ends` of items `[n]`, and if `indexed` the index that each item had.

    Kinds are POSITIVES, NEGATIVES, and LEFT_OUT for no items.
    """
    ends = jnp.cumsum(jnp.stack([number_of(kinds == x) for x in CLASSES]))
    if not indexed and keys.dtype == jnp.uint32:
        return sorting.sort_by_key_and_payload(kinds, keys)[1], ends, None
    keys, index = sorting.sort_within_kinds(kinds, keys)
    return keys, ends, index if indexed else None


def _limits(ends: Array, of_class: int) -> Span:
    return ends[of_class - 1] if of_class else jnp.zeros_like(ends[0]), ends[of_class]


def _of_some(term: Term) -> Term:
    """The same of weights, but 0 of those of 0."""
    return lambda weights: jnp.where(weights > 0, term(weights), 0)


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
    """`[limits, blocks + 1]`: the sum of each term over the items within limits before each block,
    and over all."""

    def of_blocks(weights: Array, within: Array) -> list[Array]:
        return [_sum(jnp.where(within, term(weights), 0)) for term in terms]

    upto = [cumulative.running_total(x.T) for x in _of_blocks(weights, limits, of_blocks)]
    return [jnp.pad(x, ((0, 0), (1, 0))) for x in upto]


def _of_blocks(weights: Array, limits: Sequence[Span], function: Callable[..., T]) -> T:
    """`function(weights [blocks, 1, width], which are within limits [blocks, limits, width])`,
    `[m, ...]` of several blocks at a time; the last one may be short."""
    whole = _width(weights)
    n_blocks, n_last = divmod(len(weights), whole)
    begins, ends = (jnp.stack(x)[:, None] for x in zip(*limits, strict=True))

    def of_several(first: Any, number: int, width: int = whole) -> T:
        blocks = lax.dynamic_slice_in_dim(weights, first, number * width)
        place = first + jnp.arange(number * width, dtype=jnp.int32).reshape(number, 1, width)
        return function(blocks.reshape(number, 1, width), (begins <= place) & (place < ends))

    several: list[T] = []
    each = n_blocks // _CHUNKS if on_cpu() and n_blocks > _AT_ONCE else 0
    n_left = n_blocks - _CHUNKS * each
    if each:
        firsts = each * whole * jnp.arange(_CHUNKS, dtype=jnp.int32)
        chunks = lax.map(lambda first: of_several(first, each), firsts)
        several.append(jax.tree.map(jnp.concatenate, chunks))
    if n_left:
        several.append(of_several(_CHUNKS * each * whole, n_left))
    if n_last:
        several.append(of_several(n_blocks * whole, 1, n_last))
    found: T = jax.tree.map(lambda *x: jnp.concatenate(x), *several)
    return found
