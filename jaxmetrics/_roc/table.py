"""ScoreTable, the type from which all metrics are computed, and how it is built."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, cumulative, numerics, sorting
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.host import LONG, on_host, to_program
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._roc.at_hand import in_jax, rows_at_hand
from jaxmetrics._roc.reported import holds, rounded_down

# The payload of a key in the sort: the kind of a negative, which comes first in ties, and of a
# positive. 0 is that of items which do not count; it is NEGATIVE in `_roc/order.py`, and
# SORTED_POSITIVES in `_base/by_class.py`.
KINDS = np.uint32(1), np.uint32(2)


class ScoreTable(NamedTuple):
    """The distinct scores in descending order, with the weight of each class at each score.

    Attributes:
      thresholds: `[..., rows]`, the score of each row, descending, rounded down to their dtype.
        Items that tie share a row. Where the dtype cannot tell two scores apart, their rows have
        one threshold, and `score >= threshold` flags both. All are NaN where the data are
        undefined: a valid score is NaN, or no item is valid.
      positives: `[..., rows]`, the total weight of the positives with this score; without weights,
        their number, an integer.
      negatives: `[..., rows]`, the same for the negatives.

    There are as many rows as items, and at least one. Ties and masked items leave some rows empty:
    these hold no weight and repeat a neighbour's threshold. The cumulative sums of positives and
    negatives are the true and false positives at `score >= threshold`.
    """

    thresholds: Array
    positives: Array
    negatives: Array


class SortedItems(NamedTuple):
    """Items without weights by descending score.

    Attributes:
      starts: whether the score of an item differs from that of the item before it.
      positives, negatives: 1 for an item of the class that counts, else 0.
      given: the items in their original order, as the arguments of `keys_and_kinds`.
    """

    starts: Array
    positives: Array
    negatives: Array
    given: tuple[Array, ...] | None = None


class Prepared(NamedTuple):
    """Items, and their sorted keys and payload if NumPy sorted them before tracing."""

    items: Items
    order: tuple[Any, Any] | None


@on_any_mesh
def score_table(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> ScoreTable:
    """The score table of scores and labels: the one sort that all metrics need.

    `positives[r]` is the sum of w_i over positives i with s_i = `thresholds[r]`; `negatives[r]` is
    the same for negatives. Thresholds descend.

    Args:
      scores: `[..., n]`, higher is more positive; any real dtype.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out, whatever they hold.

    Returns:
      A ScoreTable `[..., n]`, or `[..., 1]` without items, with leading axes broadcast; its counts
      are integers without weights.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example labels are -1 and 1,
        or a mask is not bool.

    All thresholds are NaN where a valid score is NaN or no item is valid. Time O(n log n), memory
    O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> table = jm.score_table([.45, .4, .35, .35, .8], [1, 0, 1, 0, 1])
      >>> print(table.positives, table.negatives)
      [1 1 0 1 0] [0 0 1 1 0]

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    dtype = numerics.default_float()
    items = checks.check_items(scores, labels, weights, where, dtype=dtype)
    table: ScoreTable
    if found := rows_by_numpy(items, {}):
        with np.errstate(all="ignore"):
            rows = [_reported(*build_row(row), row.scores.dtype, dtype) for row in found.rows]
        table = in_jax(rows, found.batch, items.scores)
    else:
        with double_precision():
            table = _score_table(to_program(prepared(items)), dtype)
    return table


@functools.partial(jax.jit, static_argnames="dtype")
def _score_table(source: Prepared, dtype: Any) -> ScoreTable:
    def of_source(source: Prepared) -> ScoreTable:
        return _reported(*build(source), source.items.scores.dtype, dtype)

    return in_double(of_source)(source)


def _reported(table: ScoreTable, undefined: Any, given: Any, dtype: Any) -> ScoreTable:
    """A table in `dtype`, with NaN thresholds where undefined; scores had the dtype `given`."""
    library = numerics.namespace(*table)
    thresholds = library.where(undefined[..., None], np.nan, table.thresholds)
    thresholds = library.broadcast_to(thresholds, table.positives.shape)
    if not holds(dtype, given):
        thresholds = rounded_down(thresholds, dtype)
    columns = (thresholds, table.positives, table.negatives)
    return ScoreTable(*(x.astype(dtype) if numerics.is_inexact(x) else x for x in columns))


def rows_by_numpy(source: Any, options: dict[str, Any]) -> Any:
    """The rows of Items or of a ScoreTable, if NumPy is to take them one by one; else None.

    It does not take more than a few short rows, nor rows that share scores, which JAX sorts once.
    """
    scores, *others = source
    if any(x is not None and x.shape[:-1] not in ((), scores.shape[:-1]) for x in others):
        return None
    return rows_at_hand(source, options, short=LONG)


def build_row(row: Items) -> tuple[ScoreTable, Any]:
    """`build` of one row of NumPy's arrays."""
    return build(Prepared(at_least_one(row), None))


def build(source: Prepared) -> tuple[ScoreTable, Array]:
    """The table, and `[...]` whether it is undefined.

    NumPy builds it from NumPy's arrays; others must be traced in double precision.
    """
    table, undefined, _ = build_sorted(source)
    return table, undefined


def build_sorted(source: Prepared) -> tuple[ScoreTable, Array, SortedItems | None]:
    """`build`, and the sorted items from which it was built if `labels_ride`, else None."""
    items, order = source
    keys, payload = sorted_keys(items) if order is None else order
    library = numerics.namespace(keys)
    nan = numerics.is_nan(items.scores)
    if labels_ride(items):
        negatives, positives = ((payload == x).astype(np.int32) for x in KINDS)
        undefined = library.any(nan if items.where is None else nan & items.where, axis=-1)
        # From the items, not the rows: a program that uses no row then builds none.
        some: Any = True if items.where is None else library.any(items.where, axis=-1)
    else:
        # The order depends on the scores alone: a batch of labels or weights shares one sort.
        positives, negatives = class_weights(items)
        undefined = library.any(nan & (positives + negatives > 0), axis=-1)
        nan = sorting.take(nan, payload)
        positives = library.where(nan, 0, sorting.take(positives, payload))
        negatives = library.where(nan, 0, sorting.take(negatives, payload))
        some = library.any(positives + negatives > 0, axis=-1)

    begins = starts(keys)
    in_order = None
    if labels_ride(items):
        in_order = SortedItems(begins, positives, negatives, _items_given(items, library))
    thresholds = sorting.scores_of_keys(keys, items.scores)
    thresholds, positives, negatives = _rows_of_items(begins, thresholds, positives, negatives)

    weighty = positives + negatives > 0
    undefined = undefined | library.logical_not(some) | not_allowed(items)
    return ScoreTable(settled(thresholds, weighty), positives, negatives), undefined, in_order


def settled(thresholds: Any, weighty: Any) -> Any:
    """Descending thresholds, in which rows without weight repeat a neighbour's threshold."""
    library = numerics.namespace(thresholds, weighty)
    weighed = library.where(weighty, thresholds, -np.inf)
    return falling(thresholds, weighty, library.max(weighed, axis=-1, keepdims=True))


def falling(thresholds: Any, weighty: Any, first: Any) -> Any:
    """Descending thresholds; rows without weight repeat the one before them, or `first`."""
    library = numerics.namespace(thresholds, weighty)
    if library is np:
        n = np.count_nonzero(weighty)
        if n and weighty[:n].all():  # usual on the host, and faster than a running minimum
            return np.append(thresholds[:n], np.full(len(thresholds) - n, thresholds[n - 1]))
    return cumulative.running_minimum(library.where(weighty, thresholds, first))


def preceded(start: float, values: Any) -> Any:
    """`[rows + 1]`: the start, and then the values `[rows]`."""
    library = numerics.namespace(values)
    return library.concatenate([library.full(1, start, values.dtype), values])


def labels_ride(items: Items) -> bool:
    """Whether the payload of the sort is the class of the item, not its index: saves a gather."""
    if items.weights is not None or items.amounts is not None:
        return False
    shapes = [x.shape for x in (items.labels, items.where, items.scores) if x is not None]
    return np.broadcast_shapes(*shapes) == items.scores.shape


def sorted_keys(items: Items) -> tuple[Any, Any]:
    """Sorted keys of at least one item, each with its item's class, or index if it has weights."""
    library = numerics.namespace(items.scores)
    if labels_ride(items):
        payload, most = kinds_of(items), int(KINDS[-1])
    else:
        most = items.scores.shape[-1] - 1
        payload = library.arange(most + 1, dtype=np.uint32)
    keys = sorting.descending_keys(items.scores)
    return sorting.sort_by_key(keys, library.broadcast_to(payload, keys.shape), most=most)


def _items_given(items: Items, library: Any) -> tuple[Array, ...] | None:
    """Scores, labels and the mask, if any; None on the host, where nothing uses them."""
    if library is np:
        return None
    arrays = [x for x in (items.scores, items.labels, items.where) if x is not None]
    return tuple(jax.lax.stop_gradient(jnp.broadcast_to(x, items.scores.shape)) for x in arrays)


def keys_and_kinds(scores: Array, labels: Array, where: Any = None) -> tuple[Array, Array]:
    """Keys of items `[n]`, ascending as scores descend, and kinds; kind 0 has score 0's key."""
    kinds = kinds_of(Items(scores, labels, where=where))
    return sorting.descending_keys(jnp.where(kinds > 0, scores, 0)), kinds


def kinds_of(items: Items) -> Any:
    """The kind of each item whose `labels_ride`: one of `KINDS`, or 0 if masked or NaN."""
    scores, where = items.scores, items.where
    valid = ~numerics.is_nan(scores) if where is None else ~numerics.is_nan(scores) & where
    negative, positive = KINDS
    kinds = numerics.namespace(scores).where(items.labels == 1, positive, negative)
    return kinds * valid.astype(np.uint32)


def prepared(items: Items) -> Prepared:
    """The items, at least one; sorted by NumPy if a CPU computes and has them in its memory."""
    items = at_least_one(items)
    names = ("scores", "labels", "where") if labels_ride(items) else ("scores",)
    near = on_host(*(getattr(items, name) for name in names))
    if near is None:
        return Prepared(items, None)
    return Prepared(items, sorted_keys(items._replace(**dict(zip(names, near, strict=True)))))


def _rows_of_items(starts: Any, thresholds: Any, *counts: Any) -> tuple[Any, ...]:
    """Thresholds and counts of sorted items, added up to rows: one for each item that `starts`."""
    reduced: Iterator[Any]
    if numerics.namespace(starts) is np:
        at = np.flatnonzero(starts)
        spare = len(starts) - len(at)
        if not spare:
            return thresholds, *counts
        reduced = (np.pad(_summed_from(at, x), (0, spare)) for x in counts)
        return np.pad(thresholds[at], (0, spare), constant_values=-np.inf), *reduced
    rows = cumulative.running_count(starts.astype(jnp.int32)) - 1
    reduced = (_at_rows(x, rows, "add", 0) for x in counts)
    return _at_rows(thresholds, rows, "max", -jnp.inf), *reduced


def _summed_from(starts: HostArray, counts: Any) -> Any:
    """The sums of counts `[n]` from each start to the next; by differences if these are exact."""
    if numerics.is_inexact(counts):
        return np.add.reduceat(counts, starts)
    ends = np.append(starts[1:], len(counts)) - 1
    return np.diff(counts.cumsum().take(ends), prepend=0).astype(counts.dtype)


def _at_rows(values: Array, rows: Array, operation: str, start: float) -> Array:
    """Values of sorted items, reduced to their rows; `rows` ascends along the last axis."""

    def scatter(values: Array, rows: Array) -> Array:
        at = jnp.full_like(values, start).at[rows]
        return getattr(at, operation)(values, indices_are_sorted=True, mode="promise_in_bounds")

    return jnp.vectorize(scatter, signature="(n),(n)->(n)")(values, rows)
