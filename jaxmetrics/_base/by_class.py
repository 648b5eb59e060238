"""The items of a device, sorted by class and then by key, and sums of their weights.

Without weights, only keys are stored. With weights, the sums of weights before each block of items
are stored too. The sum before any place adds items of one block to the sum before the block. So no
running sum over all items is in memory.
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
Term: TypeAlias = Callable[[Any], Array]  # an elementwise function of weights
Span: TypeAlias = tuple[Array, Array]  # where the items of a class begin and end

# The classes by their place in the sort, which has positives first. NEGATIVE and POSITIVE of
# `_roc/order.py` are the other way round, and KINDS of `_roc/table.py` are 1 and 2.
CLASSES = SORTED_POSITIVES, SORTED_NEGATIVES = 0, 1
LEFT_OUT = 2  # the kind of an entry that does not count
_BLOCK = 32  # items
# XLA for CPUs writes the terms of a sum to memory before it adds them. On a CPU, more than
# `_AT_ONCE` blocks are therefore summed in `_CHUNKS` chunks, and places `_AT_ONCE` at a time.
_CHUNKS = 32
_AT_ONCE = 1 << 12


class _Weights(NamedTuple):
    """The weights of sorted items, and their sums before blocks of items.

    Attributes:
      of_items: `[n]`, the weight of each item.
      of_blocks: `[classes, blocks + 1]`, the weight of the items of a class before each block; the
        last entry is the weight of all items of the class.
      numbers: likewise, the number of items with a weight above 0.
    """

    of_items: Array
    of_blocks: Array
    numbers: Array


@dataclass(frozen=True)
class ByClass:
    """Items of two classes, sorted by class and then by key.

    Attributes:
      keys: `[n]`: of positives, then of negatives, then of entries that do not count; ascending
        within each of these.
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
        """From `keys` and `ends`, the weights `[n]` in the order of the keys, and old indices."""
        known = None
        if weights is not None:
            limits = [_limits(ends, x) for x in CLASSES]
            known = _Weights(weights, *_sums(weights, limits, (_weight, _is_some)))
        return cls(keys, ends, known, index)

    @property
    def of_items(self) -> Array:
        """`[n]`, the weight of each item; only where `weights` is not None."""
        assert self.weights is not None
        return self.weights.of_items

    def limits(self, of_class: int) -> Span:
        return _limits(self.ends, of_class)

    def places(self, bounds: Array, of_class: int, *, ties: Any = False) -> Array:
        """The place of the first item of a class with a key >= each bound; > it where `ties`."""
        return so_many_below(self.keys, bounds, *self.limits(of_class), ties=ties)

    def first_that_is_not(
        self, above: Callable[[Array], Array], shape: tuple[int, ...], of_class: int
    ) -> Array:
        """The place of the first item of a class for whose key `above` is False.

        Within the class, the keys for which it is True come first. `above` takes and returns arrays
        of `shape`, which is also that of the result.
        """
        return first_that_is_not(above, self.keys, shape, *self.limits(of_class))

    def sums_to(self, places: Array, of_class: int) -> Array:
        """The weight of the items of a class before each place; their number without weights."""
        if self.weights is None:
            return places - self.limits(of_class)[0]
        (sums,) = self._upto(places, of_class, [self.weights.of_blocks[of_class]], [_weight])
        return sums

    def numbers_to(self, places: Array, of_class: int) -> Array:
        """The number of items of a class with a weight above 0 before each place."""
        if self.weights is None:
            return places - self.limits(of_class)[0]
        (numbers,) = self._upto(places, of_class, [self.weights.numbers[of_class]], [_is_some])
        return numbers

    def sums_of(self, terms: Sequence[Term], places: Array, of_class: int) -> list[Array]:
        """The sum of each term over a class's items with a weight above 0 before each place."""
        if self.weights is None:
            number = self.numbers_to(places, of_class)
            return [number * term(1) for term in terms]
        terms = [_of_some(term) for term in terms]

        def sums(places: Array) -> list[Array]:
            of_blocks = _sums(self.of_items, [self.limits(of_class)], terms)
            return self._upto(places, of_class, [x[0] for x in of_blocks], terms)

        # Otherwise XLA for CPUs holds arrays for the results while items are sorted and dealt out.
        return varying.apart(sums, places)

    def totals_of(self, term: Term) -> Array:
        """`[classes]`, the sum of a term over the items of each class with a weight above 0.

        The term is called with weights `[..., 1, items]`.
        """
        return self._reduced(term, jnp.sum, 0)

    def highest(self) -> Array:
        """`[classes]`, the highest weight of each class, or 0 without items."""
        return self._reduced(lambda weights: weights, jnp.max, 0)

    def lowest(self) -> Array:
        """`[classes]`, the lowest weight above 0 of each class, or infinity if it has none."""
        if self.weights is None:
            return jnp.ones(len(CLASSES))
        return self._reduced(lambda weights: weights, jnp.min, jnp.inf)

    def _reduced(self, term: Term, reduction: Callable[..., Array], none: Any) -> Array:
        """`[classes]`, a term reduced over each class's items with a weight above 0, or `none`."""

        def of_blocks(weights: Array, within: Array) -> Array:
            terms = jnp.where(within & (weights > 0), term(weights), none)
            return reduction(terms, axis=(0, -1))[None]

        limits = [self.limits(x) for x in CLASSES]
        return reduction(_of_blocks(self.of_items, limits, of_blocks), axis=0)

    def _upto(
        self, places: Array, of_class: int, of_blocks: Sequence[Array], terms: Sequence[Term]
    ) -> list[Array]:
        """The sum of each term over the items of a class before each place.

        `of_blocks` has, for each term, the sums before each block.
        """
        (begin, end), width = self.limits(of_class), _width(self.keys)

        def upto(places: Array) -> list[Array]:
            block = places // width
            before = [sorting.entries_at(x, block) for x in of_blocks]
            index = (block * width)[..., None] + jnp.arange(width, dtype=jnp.int32)
            within = (begin <= index) & (index < jnp.minimum(places, end)[..., None])
            weights = self.of_items.at[index].get(mode="fill", fill_value=0)
            inside = [_sum(jnp.where(within, term(weights), 0)) for term in terms]
            return [x + y for x, y in zip(before, inside, strict=True)]

        if not on_cpu() or places.size <= _AT_ONCE:
            return upto(places)
        # A derivative gathers the weights of the blocks again, instead of storing them.
        found = lax.map(jax.checkpoint(upto), places.ravel(), batch_size=_AT_ONCE)
        return [x.reshape(places.shape) for x in found]


def in_order(keys: Array, kinds: Array, *, indexed: bool) -> tuple[Array, Array, Array | None]:
    """The `keys` and `ends` of a `ByClass` of items `[n]`, and if `indexed` their old indices.

    Kinds are SORTED_POSITIVES, SORTED_NEGATIVES, and LEFT_OUT for entries that do not count.
    """
    ends = jnp.cumsum(jnp.stack([number_of(kinds == x) for x in CLASSES]))
    if not indexed and keys.dtype == jnp.uint32:
        return sorting.sort_by_key_and_payload(kinds, keys)[1], ends, None
    keys, index = sorting.sort_within_kinds(kinds, keys)
    return keys, ends, index if indexed else None


def _limits(ends: Array, of_class: int) -> Span:
    return ends[of_class - 1] if of_class else jnp.zeros_like(ends[0]), ends[of_class]


def _of_some(term: Term) -> Term:
    """The term, with the value 0 where the weight is 0."""
    return lambda weights: jnp.where(weights > 0, term(weights), 0)


def _width(items: Array) -> int:
    """The number of items of a block."""
    return min(_BLOCK, len(items))


def _weight(weights: Array) -> Array:
    return weights.astype(jnp.float64)


def _is_some(weights: Array) -> Array:
    return (weights > 0).astype(jnp.int32)


def _sum(terms: Array) -> Array:
    return jnp.sum(terms, axis=-1, dtype=terms.dtype)


def _sums(weights: Array, limits: Sequence[Span], terms: Sequence[Term]) -> list[Array]:
    """For each term, its sums `[limits, blocks + 1]` over the items within each of the limits.

    An entry is the sum before a block; the last one is the sum over all blocks.
    """

    def of_blocks(weights: Array, within: Array) -> list[Array]:
        return [_sum(jnp.where(within, term(weights), 0)) for term in terms]

    upto = [cumulative.running_total(x.T) for x in _of_blocks(weights, limits, of_blocks)]
    return [jnp.pad(x, ((0, 0), (1, 0))) for x in upto]


def _of_blocks(weights: Array, limits: Sequence[Span], function: Callable[..., T]) -> T:
    """The results of `function(weights, within)` of some blocks at a time, joined.

    `weights` are `[blocks, 1, width]`, where the last block may be short. `within` `[blocks,
    limits, width]` tells which items are within each of the limits. Results `[m, ...]` are joined
    along the first axis.
    """
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
    return jax.tree.map(lambda *x: jnp.concatenate(x), *several)
