"""A metric of ranked lists: a function of Lists, evaluated for each row of scores and labels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Concatenate, NamedTuple, Protocol, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import on_host, threads, to_jax
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items, P
from jaxmetrics._ranking.host_lists import (
    Given,
    HostLists,
    are_few_grades,
    values_of_rows,
    values_of_segments,
)
from jaxmetrics._ranking.lists import Lists, Places, falling_keys, in_a_segment, order_of_items

_MANY = 1 << 14  # items; a list, or a row of segments, with more is long
_FEW_ROWS = 16  # up to so many short rows of segments take less time than to compile a program


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


class Documents(NamedTuple):
    """The inputs of a metric of lists.

    Attributes:
      items: scores, labels and mask.
      segment: the list of each item; None where each row is a list.
      orders: the items by score and the keys of falling labels, if NumPy has sorted them.
    """

    items: Items
    segment: Any
    orders: tuple[Any, Any] | None = None


class Asked(NamedTuple):
    """What is computed of documents: constants of a compiled program. Hashable.

    Attributes:
      function: the metric as a function of Lists and options.
      options: names and values, in order of name.
      num_segments: how many lists a row has; None where each row is one.
      ordered: whether the function needs the order by score.
      ideal: whether it needs the labels in falling order.
    """

    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...]
    num_segments: int | None
    ordered: bool
    ideal: bool

    @property
    def several(self) -> bool:
        """Whether there are several k, the last axis of the values."""
        return isinstance(self.k, tuple)

    @property
    def k(self) -> Places:
        """The option `k`; None without it."""
        return dict(self.options).get("k")


def list_metric(
    *,
    ordered: bool = True,
    ideal: bool = False,
    graded: bool = False,
    denominators: tuple[str, ...] = (),
    few_grades: bool = False,
) -> Callable[[Callable[Concatenate[Lists, P], tuple[Array, Any]]], ListMetric[P]]:
    """Make a function of Lists a metric of scores and labels.

    `function(lists, *, option=default, ...)` returns the value of each list and whether it is
    undefined, both `[num_segments]`, or `[]` for one list. Several k are the first axis of the
    value. The metric evaluates the function for each row of a batch, compiled, in double precision;
    or, if the CPU's memory has the data, by NumPy, of `HostLists`. It returns NaN where the value
    is undefined or a valid score or label is NaN. Options are constants.

    Args:
      ordered: whether the function needs the order by score.
      ideal: whether the function needs the labels in falling order.
      graded: whether the metric refuses negative labels.
      denominators: the values that the function's option `denominator` may have.
      few_grades: whether NumPy is faster only where labels are a few whole numbers.
    """

    def decorate(
        function: Callable[Concatenate[Lists, P], tuple[Array, Any]],
    ) -> ListMetric[P]:
        options = keywords(
            function,
            {"scores": REQUIRED, "labels": REQUIRED},
            ("where", "segments", "num_segments"),
        )

        @on_any_mesh
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
            if denominators:
                checks.check_choice("denominator", chosen["denominator"], denominators)
            items, segment, count = checks.check_lists(
                scores, labels, segments, num_segments, where
            )
            if graded or chosen.get("gain") == "exponential":
                checks.check_grades(items.labels, items.where, chosen)
            sorts_labels = ideal and not callable(chosen.get("gain"))
            constants = tuple(sorted(chosen.items()))
            asked = Asked(function, constants, count, ordered, sorts_labels)
            documents = Documents(at_least_one(items), one_id_at_least(segment))
            by_numpy = _values_on_host(documents, asked, few_grades)
            if by_numpy is not None:
                return to_jax(by_numpy, items.scores)
            of_data = count is not None and num_segments is None
            rounded = of_data and on_host(*items, segment) is not None
            if rounded:  # data with about as many lists share a compiled program
                asked = asked._replace(num_segments=numerics.next_power_of_two(count))
            with double_precision():
                documents = documents._replace(orders=_orders_on_host(documents, asked))
            value: Array = _values_of_lists(documents, asked, np.dtype(numerics.default_float()))
            if rounded:
                values = np.asarray(value)
                values = values[..., :count, :] if asked.several else values[..., :count]
                return to_jax(values, items.scores)
            return value

        public: Any = metric
        public.__signature__ = options.signature
        return public

    return decorate


def _values_on_host(documents: Documents, asked: Asked, few_grades: bool) -> HostArray | None:
    """The values by NumPy, which compiles nothing; None if it lacks the data, or if it is slower.

    A compiled program is faster for long lists; for segments of many short rows, which NumPy takes
    one after the other; and for segments of long rows if the function needs no sort.
    """
    items, ids, _ = documents
    n, options = items.scores.shape[-1], dict(asked.options)
    slow = n > _MANY * (asked.num_segments or 1)
    if ids is not None:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in (items.scores, items.labels, ids)))
        many = math.prod(batch) > _FEW_ROWS
        slow |= (many and n < _MANY) or (n > _MANY and not asked.ordered)
    if slow or any(map(callable, options.values())):
        return None
    views = on_host(items.scores, items.labels, items.where, ids)
    if views is None or not all(x is None or x.size for x in views):
        return None
    dtype = numerics.default_float()
    given = Given(*views)
    if few_grades and not are_few_grades(given.labels):
        return None
    given = given._replace(labels=sorting.in_32_bits(given.labels))

    def of_lists(lists: HostLists) -> HostArray:
        with np.errstate(all="ignore"):
            value, undefined = asked.function(lists, **options)
            nan = numerics.is_nan(lists.scores) | numerics.is_nan(lists.labels)
            undefined = undefined | (lists.total(nan) > 0) if nan.any() else undefined
            value = np.where(undefined, np.nan, value).astype(dtype)
        return np.moveaxis(value, 0, -1) if asked.several else value

    if ids is None:
        return values_of_rows(of_lists, given)
    return values_of_segments(of_lists, given, asked.num_segments or 0)


def _orders_on_host(documents: Documents, asked: Asked) -> tuple[Any, Any] | None:
    """`_orders` by NumPy, which is faster, if the CPU has the data at hand; else None."""
    if not asked.ordered:
        return None
    items, segment, _ = documents
    found = on_host(items.scores, items.labels, items.where, segment)
    if found is None:
        return None
    scores, labels, where, ids = found
    near = Documents(Items(scores, labels, where=where), ids)
    # Sorts of rows use threads themselves, and for few items it takes longer to start a thread.
    if segment is None or segment.size <= sorting.MANY:
        return _orders(near, asked)
    with threads(2) as workers:

        def start(*work: Any) -> Callable[[], Any]:
            return workers.submit(*work).result

        return _orders(near, asked, start)


def _orders(
    documents: Documents,
    asked: Asked,
    start: Callable[..., Callable[[], Any]] = functools.partial,
) -> tuple[Any, Any]:
    """The items by score and the keys of falling labels; `start` begins one of the two sorts."""
    items, segment, _ = documents
    valid, most = items.where, None if asked.k is None else np.max(asked.k)
    if segment is not None:
        segment, most = in_a_segment(segment, valid, asked.num_segments), None

    def by_score(scores: Any) -> Any:
        return order_of_items(sorting.descending_keys(scores), valid, segment, first=most)

    falling = start(falling_keys, items.labels, valid, segment) if asked.ideal else None
    ordered = start(by_score, items.scores)()
    return ordered, None if falling is None else falling()[..., :most]


@double_program("asked", "dtype")
def _values_of_lists(documents: Documents, asked: Asked, dtype: Any) -> Any:
    documents = jax.tree.map(jnp.asarray, documents)
    items, segment, orders = documents
    if not asked.ordered:
        orders = None, None
    elif orders is None:
        orders = _orders(documents, asked)
    valid = jnp.ones(1, bool) if items.where is None else items.where
    astray = jnp.zeros(1, bool)  # an eager call refuses ids out of range; traced, they give NaN
    if segment is not None:
        segment = in_a_segment(segment, valid, asked.num_segments)
        astray = valid & (segment == asked.num_segments)
        valid = segment < asked.num_segments
    # Masked labels, NaN or large, would have gains whose slopes are NaN even where none counts.
    labels = jnp.where(valid, items.labels, jnp.zeros((), items.labels.dtype))
    nan = numerics.is_nan(items.scores) | numerics.is_nan(labels)
    keys = sorting.descending_keys(items.scores)

    def of_one(lists: Lists, nan: Array, astray: Array) -> Array:
        lists = lists._replace(num_segments=asked.num_segments)
        value, undefined = asked.function(lists, **dict(asked.options))
        undefined = undefined | (lists.total(nan.astype(jnp.int32)) > 0) | jnp.any(astray)
        value = jnp.where(undefined, jnp.nan, value)
        return jnp.moveaxis(value, 0, -1) if asked.several else value

    row = (keys, labels, valid, segment, nan, astray)
    shape = np.broadcast_shapes(*(x.shape for x in row if x is not None))
    *row_of_lists, nan, astray = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), row)
    orders = jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape[:-1], x.shape[-1])), orders)
    of_rows = numerics.over_batch(of_one, len(shape) - 1)
    return of_rows(Lists(*row_of_lists, *orders), nan, astray).astype(dtype)
