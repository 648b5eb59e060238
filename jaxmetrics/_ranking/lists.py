"""Lists of documents in order of score: the one step between inputs and every ranking metric.

Lists are rows `[..., n_docs]`, or lie one after the other in flat items with an id each, their
segment. Everything is written for one row, or for the segments of one row, and batched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, NamedTuple, Protocol, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import at_hand, on_host, threads
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.types import Array, ArrayLike, Items, P

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


class ListMetric(Protocol[P]):
    """A metric of ranked lists: rows of documents, or segments of flat items."""

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *args: P.args, **options: P.kwargs
    ) -> Array: ...

    @overload
    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        segments: ArrayLike,
        num_segments: int | None = None,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> Array: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike, **options: Any
    ) -> Array: ...


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


def take(values: Array, order: Array) -> Array:
    """`values[order]`, all of which are known to exist."""
    taken: Array = values.at[order].get(mode="promise_in_bounds")
    return taken


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


def order(keys: Any, valid: Any, segment: Any, *, first: int | None = None) -> Any:
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
    item = order(keys, valid, segment)
    return _gather(library.broadcast_to(keys, item.shape), item)


def _last(keys: Any) -> Any:
    return ~keys.dtype.type(0)


def _gather(values: Any, order: Any) -> Any:
    if isinstance(values, np.ndarray):
        return np.take_along_axis(values, order, -1)
    return sorting.take(values, order)


# Evaluation.


def list_metric(
    *, ordered: bool = True, ideal: bool = False, graded: bool = False
) -> Callable[[Callable[Concatenate[Lists, P], tuple[Array, Any]]], ListMetric[P]]:
    """Makes a function of Lists a metric of scores and labels.

    `function(lists, *, option=default, ...)` returns its value for each list and whether that is
    undefined, `[lists]` both, or `[]` of one list; for several k the value has them as its first
    axis. It is evaluated for each row of a batch, compiled, in double precision; the result is NaN
    where it is undefined and where a valid score or label is NaN. Options are constants.

    Args:
      ordered: whether it asks for the order by score.
      ideal: whether it asks for the labels in falling order.
      graded: whether labels must not be negative.
    """

    def decorate(
        function: Callable[Concatenate[Lists, P], tuple[Array, Any]],
    ) -> ListMetric[P]:
        options = keywords(
            function,
            {"scores": REQUIRED, "labels": REQUIRED},
            ("where", "segments", "num_segments"),
        )

        @functools.wraps(function)
        def metric(
            scores: ArrayLike,
            labels: ArrayLike,
            *,
            where: ArrayLike | None = None,
            segments: ArrayLike | None = None,
            num_segments: int | None = None,
            **given: Any,
        ) -> Array:
            chosen = checks.check_list_options(options.filled(given))
            items, segment, count = checks.check_lists(
                scores, labels, segments, num_segments, where
            )
            exponential = chosen.get("gain") == "exponential"
            if graded or exponential:
                checks.check_grades(items.labels, items.where, chosen.get("max_grade"))
            items, segment = at_least_one(items), one_id_at_least(segment)
            constants = tuple(sorted(chosen.items()))
            sorts = ideal and not callable(chosen.get("gain"))
            with double_precision():
                orders = None
                if ordered:
                    orders = _orders_now(items, segment, count, chosen.get("k"), sorts)
            dtype = np.dtype(numerics.default_float())
            value: Array = _evaluate(
                items, segment, orders, function, constants, count, ordered, sorts, dtype
            )
            return value

        public: Any = metric
        public.__signature__ = options.signature
        found: ListMetric[P] = public
        return found

    return decorate


def _orders_now(
    items: Items, segment: Any, num_segments: int | None, k: Places, ideal: bool
) -> tuple[Any, Any] | None:
    """By NumPy, which is faster, where the CPU has the data at hand."""
    *host, ids = at_hand(*items, segment)
    items = Items(*host)
    if not on_host(items.scores, items.labels, items.where, ids):
        return None
    # Rows are sorted in threads themselves, and for few items it takes longer to start one.
    if segment is None or segment.size <= sorting.MANY:
        return _orders(items, ids, num_segments, k, ideal)
    with threads(2) as workers:

        def start(*work: Any) -> Callable[[], Any]:
            return workers.submit(*work).result

        return _orders(items, ids, num_segments, k, ideal, start)


def _orders(
    items: Items,
    segment: Any,
    num_segments: int | None,
    k: Places,
    ideal: bool,
    start: Callable[..., Callable[[], Any]] = functools.partial,
) -> tuple[Any, Any]:
    """By score, and the labels in their own order; `start(function, *arguments)` begins either."""
    valid, most = items.where, None if k is None else np.max(k)
    if segment is not None:
        segment, most = in_a_segment(segment, valid, num_segments), None

    def by_score(scores: Any) -> Any:
        return order(sorting.descending_keys(scores), valid, segment, first=most)

    falling = start(falling_keys, items.labels, valid, segment) if ideal else None
    ordered = start(by_score, items.scores)()
    return ordered, None if falling is None else falling()[..., :most]


def in_a_segment(segment: Any, valid: Any, num_segments: Any) -> Any:
    """The segments, and `num_segments` for items that are in none."""
    library = numerics.namespace(segment)
    inside = (segment >= 0) & (segment < num_segments)
    inside = inside if valid is None else inside & valid
    return library.where(inside, segment, num_segments).astype(np.int32)


@double_program("function", "options", "num_segments", "ordered", "ideal", "dtype")
def _evaluate(
    items: Items,
    segment: Any,
    orders: tuple[Any, Any] | None,
    function: Callable[..., Any],
    options: tuple[tuple[str, Any], ...],
    num_segments: int | None,
    ordered: bool,
    ideal: bool,
    dtype: Any,
) -> Any:
    items, segment, orders = jax.tree.map(jnp.asarray, (items, segment, orders))
    k = dict(options).get("k")
    if not ordered:
        orders = None, None
    elif orders is None:
        orders = _orders(items, segment, num_segments, k, ideal)
    valid = jnp.ones(1, bool) if items.where is None else items.where
    if segment is not None:
        segment = in_a_segment(segment, valid, num_segments)
        valid = segment < num_segments
    nan = numerics.is_nan(items.scores) | numerics.is_nan(items.labels)
    keys = sorting.descending_keys(items.scores)

    def of_one(lists: Lists, nan: Array) -> Array:
        lists = lists._replace(num_segments=num_segments)
        value, undefined = function(lists, **dict(options))
        undefined = undefined | (lists.total(nan.astype(jnp.int32)) > 0)
        value = jnp.where(undefined, jnp.nan, value)
        return jnp.moveaxis(value, 0, -1) if isinstance(k, tuple) else value

    row = (keys, items.labels, valid, segment, nan)
    shape = np.broadcast_shapes(*(x.shape for x in row if x is not None))
    *row_of_lists, nan = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), row)
    orders = jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape[:-1], x.shape[-1])), orders)
    of_rows = numerics.over_batch(of_one, len(shape) - 1)
    return of_rows(Lists(*row_of_lists, *orders), nan).astype(dtype)
