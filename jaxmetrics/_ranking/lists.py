"""Lists of documents in order of score: the one step between inputs and every ranking metric.

A list is a row of `[..., n_docs]`, or the items of a row `[n]` that share an id, their segment.
The classes here hold one row: one list, or the segments of the row. Their callers batch them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.cumulative import running_highest
from jaxmetrics._base.sorting import take
from jaxmetrics._base.types import Array

Places = int | tuple[int, ...] | None


class Ranking(NamedTuple):
    """The places of one list, or of several lists one after the other, the best item first.

    Attributes:
      item: `[places]`, the index of the item at each place. Masked items come last.
      rank: `[places]`, the rank of the item in its list, from 0.
      valid: `[places]`, whether the item is not masked.
      tied: `[places]`, whether the item ties with the one before it in its list.
      segment: `[places]`, the item's list; None if there is one list.
    """

    item: Array
    rank: Array
    valid: Array
    tied: Array
    segment: Array | None


class Lists(NamedTuple):
    """One row of inputs, each `[n]`: a list, or the segments that the row holds.

    Attributes:
      keys: the sort keys of the scores; the best score has the lowest key.
      labels: as given.
      valid: whether an item counts.
      segment: the list of each item, `num_segments` for items that do not count; None if the row is
        one list.
      by_score: the items in order of list and score, if the metric asks for it; of one list only
        the first max(k).
      falling: the keys of the labels in order of list and falling label, if the metric asks for
        them.
      num_segments: the number of lists; None if the row is one list.
    """

    keys: Array
    labels: Array
    valid: Array
    segment: Array | None
    by_score: Any
    falling: Any
    num_segments: int | None = None

    @property
    def library(self) -> Any:
        return jnp

    @property
    def several(self) -> bool:
        """Whether values are `[num_segments]`, and not of one list."""
        return self.segment is not None

    def ranking(self, k: Places = None) -> Ranking:
        """The ranking by score; of a single list only the first max(k) places."""
        item = self.by_score
        if k is not None and self.segment is None:
            item = item[: np.max(k)]
        keys, valid = take(self.keys, item), take(self.valid, item)
        place = places(item)
        tied = (keys == _before(keys)) & (valid == _before(valid)) & (place > 0)
        if self.segment is None:
            return Ranking(item, place, valid, tied, None)
        segment = take(self.segment, item)
        opens = (segment != _before(segment)) | (place == 0)
        first = running_highest(jnp.where(opens, place, 0))
        return Ranking(item, place - first, valid, tied & ~opens, segment)

    def of_rank(self, ranking: Ranking, function: Callable[[Array], Array]) -> Array:
        """A function of the rank from 1, at each place."""
        return function((ranking.rank + 1).astype(jnp.float64))

    def running_count(self, ranking: Ranking, counts: Array) -> Array:
        """At each place, the sum of its list's whole numbers up to this place."""
        return running(counts, ranking.rank == 0)

    def running_product(self, ranking: Ranking, factors: Array) -> Array:
        """At each place, the product of its list's factors up to this place."""
        return running(factors, ranking.rank == 0, jnp.multiply)

    def rank_of_first(self, chosen: Array) -> Array:
        """The rank from 0 of the best of the chosen items in each list, without a sort.

        `[]`, or `[num_segments]`; meaningless where a list has no chosen item.
        """
        n = len(self.keys)
        index = jnp.arange(n, dtype=jnp.int32)
        last = sorting.largest_key(self.keys)
        best = self._each(self._least(jnp.where(chosen & self.valid, self.keys, last)))
        at_best = chosen & self.valid & (self.keys == best)
        first = self._each(self._least(jnp.where(at_best, index, n)))
        before = (self.keys < best) | ((self.keys == best) & (index < first))
        return self.total(before.astype(jnp.int32))

    def _least(self, values: Array) -> Array:
        if self.segment is None:
            return jnp.min(values)
        return jax.ops.segment_min(values, self.segment, self.num_segments)

    def _each(self, of_lists: Array) -> Array:
        """For each item, the value of its list; meaningless for items that do not count."""
        if self.segment is None:
            return of_lists
        return of_lists.at[self.segment].get(mode="clip")

    def near_one(self, *counts: Array) -> tuple[Array, ...]:
        """Weights `[n]`, scaled as by `numerics.near_one`, but with a unit for each list."""
        if not numerics.is_inexact(counts[0]):
            return counts
        highest = functools.reduce(jnp.maximum, counts)
        highest = -self._least(jnp.where(self.valid, -highest, 0))
        unit = self._each(numerics.power_near(highest))
        return tuple(x / unit for x in counts)

    def falling_labels(self, ranking: Ranking) -> Array:
        """At the places of a ranking, the labels of each list in falling order."""
        keys = self.falling[: len(ranking.item)]
        return in_falling_order(self.labels, keys, self.valid, self.segment)

    def total(self, values: Array) -> Array:
        """The sum of `values` `[n]` of the valid items of each list: `[]`, or `[num_segments]`."""
        return self._total(jnp.where(self.valid, values, 0), self.segment)

    def total_at(self, ranking: Ranking, values: Array, k: Places = None) -> Array:
        """The sum over the first k places of each list of `values` `[places]`.

        `[]`, or `[num_segments]`; several k add a first axis.
        """
        within = ranking.valid
        if k is not None:
            # An int of 2^31 and more would be cut to the 32 bits of a rank.
            most = np.minimum(k, len(ranking.rank)).astype(np.int32)
            within = within & (ranking.rank < most[..., None])
        return self._total(jnp.where(within, values, 0), ranking.segment)

    def _total(self, values: Array, segment: Array | None) -> Array:
        if segment is None:
            return jnp.sum(values, axis=-1)

        def of_segments(x: Array) -> Array:
            return jax.ops.segment_sum(x, segment, self.num_segments)

        return jnp.vectorize(of_segments, signature="(n)->(s)")(values)

    def mean_of_ties(self, ranking: Ranking, values: Array) -> Array:
        """At each place, the mean of `values` `[n]` over the items that tie there."""
        n_places = len(ranking.item)
        tie = jnp.cumsum(~ranking.tied, dtype=jnp.int32) - 1

        def of_ties(values: Array) -> Array:
            sums = jax.ops.segment_sum(values, tie, n_places, indices_are_sorted=True)
            return take(sums, tie)

        sums, counts = of_ties(take(values, ranking.item)), of_ties(jnp.ones_like(tie))
        if n_places < len(values):  # the last tie may continue beyond the last place
            lowest = ranking.item[-1]
            among = (self.keys == self.keys[lowest]) & (self.valid == self.valid[lowest])
            cut = tie == tie[-1]
            sums = jnp.where(cut, jnp.sum(jnp.where(among, values, 0)), sums)
            counts = jnp.where(cut, jnp.sum(among), counts)
        return sums / counts


def places(order: Array) -> Array:
    """The index of each place, from 0."""
    return jnp.arange(len(order), dtype=jnp.int32)


def running(
    values: Array, starts: Array, operation: Callable[[Array, Array], Array] = jnp.add
) -> Array:
    """The running sum, or another running operation, on the last axis; it restarts at `starts`."""

    def combine(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        value = jnp.where(right[1], right[0], operation(left[0], right[0]))
        return value, left[1] | right[1]

    starts = jnp.broadcast_to(starts, values.shape)
    return lax.associative_scan(combine, (values, starts), axis=values.ndim - 1)[0]


def _before(x: Array) -> Array:
    return jnp.roll(x, 1)


# Ordering. NumPy sorts NumPy arrays; other arrays must be traced in double precision.


def order_of_items(keys: Any, valid: Any, segment: Any, *, first: int | None = None) -> Any:
    """Items `[..., n]` in order of segment, then of key, then of index; only the `first`.

    Masked items are last. `valid` is None if all items are valid, `segment` if there is one list.
    """
    library = numerics.namespace(keys)
    n = keys.shape[-1]
    index = library.arange(n, dtype=np.uint32)
    if segment is None and valid is not None:
        # A valid item may have the last key, too; index + n sorts masked items behind it.
        keys = library.where(valid, keys, sorting.largest_key(keys))
        index = library.where(valid, index, index + np.uint32(n))
    by_value = sorting.payload_by_key(*library.broadcast_arrays(keys, index), first=first)
    if segment is None:
        return by_value if valid is None else by_value - np.uint32(n) * (by_value >= n)
    segment, by_value = library.broadcast_arrays(segment, by_value)
    ids = take(segment, by_value).astype(np.uint32)
    place = library.broadcast_to(library.arange(n, dtype=np.uint32), ids.shape)
    return take(by_value, sorting.payload_by_key(ids, place))


def falling_keys(values: Any, valid: Any, segment: Any) -> Any:
    """The `descending_keys` of values, sorted by segment and then by falling value."""
    library = numerics.namespace(values)
    keys = sorting.descending_keys(values)
    if segment is None:
        return sorting.sort(
            keys if valid is None else library.where(valid, keys, sorting.largest_key(keys))
        )
    if keys.dtype == np.uint32:
        return sorting.sort_by_key_and_payload(
            *library.broadcast_arrays(segment.astype(np.uint32), keys)
        )[1]
    item = order_of_items(keys, valid, segment)
    return take(library.broadcast_to(keys, item.shape), item)


def in_falling_order(values: Any, keys: Any, valid: Any, segment: Any) -> Array:
    """The values `[places]`, in float64, whose `falling_keys` begin with these keys."""
    if numerics.namespace(keys) is np:
        return sorting.scores_of_keys(keys, values)
    return _of_keys(values, keys, valid, segment)


@jax.custom_jvp
def _of_keys(values: Array, keys: Array, valid: Array, segment: Array | None) -> Array:
    return sorting.scores_of_keys(keys, values)


@_of_keys.defjvp
def _slopes_of_keys(given: Any, slopes: Any) -> tuple[Array, Array]:
    """Keys are bits, which have no slopes; so these are put in order as the values were."""
    values, keys, valid, segment = given
    item = order_of_items(sorting.descending_keys(values), valid, segment)[: len(keys)]
    return _of_keys(*given), take(slopes[0], item).astype(jnp.float64)


def in_a_segment(segment: Any, valid: Any, num_segments: Any) -> Any:
    """The segment of each item; `num_segments` for items that are masked or out of range."""
    library = numerics.namespace(segment)
    inside = (segment >= 0) & (segment < num_segments)
    inside = inside if valid is None else inside & valid
    return library.where(inside, segment, num_segments).astype(np.int32)
