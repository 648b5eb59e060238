"""A metric of ranked lists: a function of Lists, evaluated for each row of scores and labels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Protocol, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import at_hand, on_host, threads
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.types import Array, ArrayLike, Items, P
from jaxmetrics._ranking.lists import Lists, Places, falling_keys, in_a_segment, order_of_items


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


def list_metric(
    *, ordered: bool = True, ideal: bool = False, graded: bool = False
) -> Callable[[Callable[Concatenate[Lists, P], tuple[Array, Any]]], ListMetric[P]]:
    """Make a function of Lists a metric of scores and labels.

    `function(lists, *, option=default, ...)` returns the value of each list and whether it is
    undefined, both `[num_segments]`, or `[]` for one list. Several k are the first axis of the
    value. The metric evaluates the function for each row of a batch, compiled, in double precision.
    It returns NaN where the value is undefined or a valid score or label is NaN. Options are
    constants.

    Args:
      ordered: whether the function needs the order by score.
      ideal: whether the function needs the labels in falling order.
      graded: whether the metric refuses negative labels.
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
                    orders = _orders_on_host(items, segment, count, chosen.get("k"), sorts)
            dtype = np.dtype(numerics.default_float())
            value: Array = _values_of_lists(
                items, segment, orders, function, constants, count, ordered, sorts, dtype
            )
            return value

        public: Any = metric
        public.__signature__ = options.signature
        found: ListMetric[P] = public
        return found

    return decorate


def _orders_on_host(
    items: Items, segment: Any, num_segments: int | None, k: Places, ideal: bool
) -> tuple[Any, Any] | None:
    """The orders by NumPy, which sorts faster than XLA, if the data is in the CPU's memory."""
    *host, ids = at_hand(*items, segment)
    items = Items(*host)
    if not on_host(items.scores, items.labels, items.where, ids):
        return None
    # The sort of rows has threads of its own, and for few items a thread costs more than it saves.
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
    """The items by score and the keys of falling labels; `start` begins one of the two sorts."""
    valid, most = items.where, None if k is None else np.max(k)
    if segment is not None:
        segment, most = in_a_segment(segment, valid, num_segments), None

    def by_score(scores: Any) -> Any:
        return order_of_items(sorting.descending_keys(scores), valid, segment, first=most)

    falling = start(falling_keys, items.labels, valid, segment) if ideal else None
    ordered = start(by_score, items.scores)()
    return ordered, None if falling is None else falling()[..., :most]


@double_program("function", "options", "num_segments", "ordered", "ideal", "dtype")
def _values_of_lists(
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
