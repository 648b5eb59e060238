"""Lists of documents in order of score: the one step between inputs and every ranking metric.

Lists are rows `[..., n_docs]`, or lie one after the other in flat items with an id each, their
segment. Everything is written for one row, or for the segments of one row, and batched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.sorting import take
from jaxmetrics._base.types import Array

Places = int | tuple[int, ...] | None


class Ranking(NamedTuple):
    """The places of one list, or of several lists one after the other, the best first.

    Attributes:
      item: `[places]`, which item stands there. Masked items stand behind all others.
      rank: `[places]`, the place within its list, from 0.
      valid: `[places]`, whether the item is not masked.
      tied: `[places]`, whether the item ties with the one before it in its list.
      segment: `[places]`, its list, where there are several.
    """

    item: Array
    rank: Array
    valid: Array
    tied: Array
    segment: Array | None


class Lists(NamedTuple):
    """One row of inputs: a list, or the segments that it holds; `[n]` each.

    Attributes:
      keys: of the scores, ascending from the best.
      labels: as given.
      valid: whether an item counts.
      segment: the list of an item, `num_segments` of one that does not count; None of one list.
      by_score: the items in order of list and score, where a metric asks for it; of one list those
        that are needed.
      falling: the keys of the labels in order of list and label, where a metric asks for them.
      num_segments: how many lists; None of one list.
    """

    keys: Array
    labels: Array
    valid: Array
    segment: Array | None
    by_score: Any
    falling: Any
    num_segments: int | None = None

    def ranking(self, k: Places = None) -> Ranking:
        """By score; of a single list no more places than the largest k has."""
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
        first = lax.cummax(jnp.where(opens, place, 0))
        return Ranking(item, place - first, valid, tied & ~opens, segment)

    def rank_of_first(self, chosen: Array) -> Array:
        """The rank from 0 of the first of some items in each list, which has one: no sort.

        `[]`, or `[num_segments]`.
        """
        n = len(self.keys)
        index = jnp.arange(n, dtype=jnp.int32)
        last = ~self.keys.dtype.type(0)
        best = self._each(self._least(jnp.where(chosen & self.valid, self.keys, last)))
        at_best = chosen & self.valid & (self.keys == best)
        first = self._each(self._least(jnp.where(at_best, index, n)))
        before = (self.keys < best) | ((self.keys == best) & (index < first))
        return self.total(before.astype(jnp.int32))

    def _least(self, values: Array) -> Array:
        """The smallest of each list."""
        if self.segment is None:
            return jnp.min(values)
        return jax.ops.segment_min(values, self.segment, self.num_segments)

    def _each(self, of_lists: Array) -> Array:
        """What is known of a list, for each of its items; anything where an item does not count."""
        if self.segment is None:
            return of_lists
        found: Array = of_lists.at[self.segment].get(mode="clip")
        return found

    def falling_labels(self, ranking: Ranking) -> Array:
        """At the places of a ranking, the labels of each list in their own order."""
        keys = self.falling[: len(ranking.item)]
        labels: Array = sorting.scores_of_keys(keys, self.labels)
        return labels

    def total(self, values: Array) -> Array:
        """The sum over each list of `values` `[n]` by item: `[]`, or `[num_segments]`."""
        return self._total(jnp.where(self.valid, values, 0), self.segment)

    def total_at(self, ranking: Ranking, values: Array, k: Places = None) -> Array:
        """The sum over the first k places of each list of `values` `[places]`.

        `[]`, or `[num_segments]`; before it an axis of several k.
        """
        within = ranking.valid
        if k is not None:
            within = within & (ranking.rank < jnp.asarray(k)[..., None])
        return self._total(jnp.where(within, values, 0), ranking.segment)

    def _total(self, values: Array, segment: Array | None) -> Array:
        if segment is None:
            return jnp.sum(values, axis=-1)

        def of_segments(x: Array) -> Array:
            return jax.ops.segment_sum(x, segment, self.num_segments)

        sums: Array = jnp.vectorize(of_segments, signature="(n)->(s)")(values)
        return sums

    def mean_of_ties(self, ranking: Ranking, values: Array) -> Array:
        """At each place, the mean of `values` `[n]` over the items that tie there."""
        n_places = len(ranking.item)
        tie = jnp.cumsum(~ranking.tied, dtype=jnp.int32) - 1

        def of_ties(values: Array) -> Array:
            sums = jax.ops.segment_sum(values, tie, n_places, indices_are_sorted=True)
            return take(sums, tie)

        sums, counts = of_ties(take(values, ranking.item)), of_ties(jnp.ones_like(tie))
        if n_places < len(values):  # the last tie may go on behind the last place
            lowest = ranking.item[-1]
            among = (self.keys == self.keys[lowest]) & (self.valid == self.valid[lowest])
            cut = tie == tie[-1]
            sums = jnp.where(cut, jnp.sum(jnp.where(among, values, 0)), sums)
            counts = jnp.where(cut, jnp.sum(among), counts)
        means: Array = sums / counts
        return means


def places(order: Array) -> Array:
    """`[places]`, the number of each place from 0."""
    return jnp.arange(len(order), dtype=jnp.int32)


def runs(starts: Array) -> tuple[Array, Array]:
    """The first and the last place of the run that each place is in; a run begins at `starts`."""
    place = places(starts)
    ends = jnp.append(starts[1:], jnp.ones(1, bool))
    first = lax.cummax(jnp.where(starts, place, 0))
    last = lax.cummin(jnp.where(ends, place, len(place)), reverse=True)
    return first, last


def running(
    values: Array, starts: Array, operation: Callable[[Array, Array], Array] = jnp.add
) -> Array:
    """The sum so far along the last axis, or another operation's; it begins anew at `starts`."""

    def combine(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        value = jnp.where(right[1], right[0], operation(left[0], right[0]))
        return value, left[1] | right[1]

    starts = jnp.broadcast_to(starts, values.shape)
    result: Array = lax.associative_scan(combine, (values, starts), axis=values.ndim - 1)[0]
    return result


def _before(x: Array) -> Array:
    return jnp.roll(x, 1)


# Ordering. Of NumPy's arrays by NumPy; others are to be traced in double precision.


def order_of_items(keys: Any, valid: Any, segment: Any, *, first: int | None = None) -> Any:
    """Items `[..., n]` in order of segment, then of key, then of index; the first so many.

    Masked items are last. `valid` is None where all are valid, `segment` where there is one list.
    """
    library = numerics.namespace(keys)
    n = keys.shape[-1]
    index = library.arange(n, dtype=np.uint32)
    if segment is None and valid is not None:
        # Behind the items of the same key, where a masked one has the key of a valid one.
        keys = library.where(valid, keys, _last(keys))
        index = library.where(valid, index, index + np.uint32(n))
    by_value = sorting.payload_by_key(*library.broadcast_arrays(keys, index), first=first)
    if segment is None:
        return by_value if valid is None else by_value - np.uint32(n) * (by_value >= n)
    segment, by_value = library.broadcast_arrays(segment, by_value)
    ids = _gather(segment, by_value).astype(np.uint32)
    place = library.broadcast_to(library.arange(n, dtype=np.uint32), ids.shape)
    return _gather(by_value, sorting.payload_by_key(ids, place))


def falling_keys(values: Any, valid: Any, segment: Any) -> Any:
    """The `descending_keys` of values in order of segment and of falling value."""
    library = numerics.namespace(values)
    keys = sorting.descending_keys(values)
    if segment is None:
        return sorting.sort(keys if valid is None else library.where(valid, keys, _last(keys)))
    if keys.dtype == np.uint32:
        return sorting.sort_by_key_and_payload(
            *library.broadcast_arrays(segment.astype(np.uint32), keys)
        )[1]
    item = order_of_items(keys, valid, segment)
    return _gather(library.broadcast_to(keys, item.shape), item)


def _last(keys: Any) -> Any:
    return ~keys.dtype.type(0)


def _gather(values: Any, order: Any) -> Any:
    """`take`, of NumPy's arrays by NumPy."""
    if isinstance(values, np.ndarray):
        return np.take_along_axis(values, order, -1)
    return take(values, order)


def in_a_segment(segment: Any, valid: Any, num_segments: Any) -> Any:
    """The segments, and `num_segments` for items that are in none."""
    library = numerics.namespace(segment)
    inside = (segment >= 0) & (segment < num_segments)
    inside = inside if valid is None else inside & valid
    return library.where(inside, segment, num_segments).astype(np.int32)
