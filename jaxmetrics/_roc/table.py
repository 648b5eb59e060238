"""ScoreTable, the type from which all metrics are computed, and how functions of it are called."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.host import on_host, one_by_one
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed, rows_of
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.reported import (
    Decision,
    finished,
    holds,
    no_decision,
    rounded_down,
    warn_if,
)


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
      A ScoreTable `[..., n]`, with leading axes broadcast; its counts are integers without weights.

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
    source = _prepared(
        checks.check_items(scores, labels, weights, where, dtype=numerics.default_float())
    )
    dtype = numerics.default_float()
    with double_precision():
        table: ScoreTable = _score_table(source, dtype)
    return table


@functools.partial(jax.jit, static_argnames="dtype")
def _score_table(source: Prepared, dtype: Any) -> ScoreTable:
    def of_source(source: Prepared) -> ScoreTable:
        table, undefined = build(source)
        thresholds = jnp.where(undefined[..., None], jnp.nan, table.thresholds)
        thresholds = jnp.broadcast_to(thresholds, table.positives.shape)
        if not holds(dtype, source.items.scores.dtype):
            thresholds = rounded_down(thresholds, dtype)
        columns = (thresholds, table.positives, table.negatives)
        return ScoreTable(*(x.astype(dtype) if numerics.is_inexact(x) else x for x in columns))

    table: ScoreTable = in_double(of_source)(source)
    return table


def build(source: Prepared) -> tuple[ScoreTable, Array]:
    """The table, and `[...]` whether it is undefined. Must be traced in double precision."""
    items, order = jax.tree.map(jnp.asarray, source)
    keys, payload = _in_order(items) if order is None else order
    nan = numerics.is_nan(items.scores)
    if _labels_ride(items):
        positives, negatives = (payload == 1).astype(jnp.int32), (payload == 2).astype(jnp.int32)
        undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    else:
        # The order depends on the scores alone: a batch of labels or weights shares one sort.
        positives, negatives = class_weights(items)
        undefined = jnp.any(nan & (positives + negatives > 0), axis=-1)
        nan = sorting.take(nan, payload)
        positives = jnp.where(nan, 0, sorting.take(positives, payload))
        negatives = jnp.where(nan, 0, sorting.take(negatives, payload))

    first = jnp.ones_like(keys[..., :1], bool)
    starts = jnp.concatenate([first, keys[..., 1:] != keys[..., :-1]], axis=-1)
    rows = numerics.running_count(starts.astype(jnp.int32)) - 1
    thresholds = sorting.scores_of_keys(keys, items.scores)
    thresholds = _at_rows(thresholds, rows, "max", -jnp.inf)
    positives, negatives = _at_rows(positives, rows, "add", 0), _at_rows(negatives, rows, "add", 0)

    weighty = positives + negatives > 0
    undefined |= ~jnp.any(weighty, axis=-1) | not_allowed(items)
    return ScoreTable(settled(thresholds, weighty), positives, negatives), undefined


def settled(thresholds: Array, weighty: Array) -> Array:
    """Descending thresholds, in which rows without weight repeat a neighbour's threshold."""
    thresholds = jnp.where(weighty, thresholds, -jnp.inf)
    highest = jnp.max(thresholds, axis=-1, keepdims=True)
    return numerics.running_minimum(jnp.where(weighty, thresholds, highest))


def _labels_ride(items: Items) -> bool:
    """Whether the class can be the payload of the sort, which saves a gather."""
    if items.weights is not None or items.amounts is not None:
        return False
    shapes = [x.shape for x in (items.labels, items.where, items.scores) if x is not None]
    return np.broadcast_shapes(*shapes) == items.scores.shape


def _in_order(items: Items) -> tuple[Any, Any]:
    """Sorted keys, each with its item's class or index."""
    scores, labels, where = items.scores, items.labels, items.where
    library = numerics.namespace(scores)
    if _labels_ride(items):
        valid = ~numerics.is_nan(scores) if where is None else ~numerics.is_nan(scores) & where
        payload = (2 - (labels == 1).astype(np.uint32)) * valid.astype(np.uint32)
    else:
        payload = library.arange(scores.shape[-1], dtype=np.uint32)
    keys = sorting.descending_keys(scores)
    return sorting.sort_by_key(keys, library.broadcast_to(payload, keys.shape))


def _prepared(items: Items) -> Prepared:
    """At least one item, sorted by NumPy if the CPU computes and has the data at hand."""
    items = at_least_one(items)
    names = ("scores", "labels", "where") if _labels_ride(items) else ("scores",)
    near = on_host(*(getattr(items, name) for name in names))
    if near is None:
        return Prepared(items, None)
    return Prepared(items, _in_order(items._replace(**dict(zip(names, near, strict=True)))))


def _at_rows(values: Array, rows: Array, operation: str, start: float) -> Array:
    """Values of sorted items, reduced to their rows; `rows` ascends along the last axis."""

    def scatter(values: Array, rows: Array) -> Array:
        at = jnp.full_like(values, start).at[rows]
        result: Array = getattr(at, operation)(
            values, indices_are_sorted=True, mode="promise_in_bounds"
        )
        return result

    scattered: Array = jnp.vectorize(scatter, signature="(n),(n)->(n)")(values, rows)
    return scattered


def evaluate(
    function: Callable[..., Any],
    source: Items | ScoreTable,
    options: dict[str, Any],
    decision: Decision = no_decision,
) -> Any:
    """`function(table, **options)` for each table of a batch, compiled, in double precision.

    `function` receives one ScoreTable `[rows]`, with integer counts where there are no weights.
    Results have JAX's default floating dtype, and are NaN where the table is undefined. Options
    that are arrays are traced; others are compile-time constants. Thresholds are rounded for the
    `decision` that they are for.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()

    def of(source: Prepared | ScoreTable) -> tuple[Any, Any]:
        with double_precision():
            found: tuple[Any, Any] = _evaluate((source, arrays), function, static, decision, dtype)
        return found

    if isinstance(source, ScoreTable):
        values, unlike = of(jax.tree.map(checks.own, source))
    elif rows := _rows_on_host(source):
        shape, items = rows
        found = [of(_prepared(row)) for row in items]
        values, unlike = jax.tree.map(lambda *x: jnp.stack(x).reshape(shape + x[0].shape), *found)
        unlike = jax.tree.map(jnp.any, unlike)
    else:
        values, unlike = of(_prepared(source))
    warn_if(unlike, dtype)
    return values


def _rows_on_host(items: Items) -> tuple[tuple[int, ...], Iterator[Items]] | None:
    """The shape of a batch whose rows are sorted and evaluated one by one, and views of its rows.

    None if the batch is one program: NumPy does not sort it, or its rows are short.
    """
    axes = _axes_of_rows(items)
    shape, near = items.scores.shape[:axes], on_host(*items)
    if not axes or 0 in shape or near is None:
        return None
    return shape, rows_of(Items(*near), shape, items.scores.ndim)


def static_options(
    options: dict[str, Any],
) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
    """The options that are compile-time constants, as hashable pairs, and those that are arrays."""
    arrays = {k: v for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))}
    static = tuple(sorted((k, _one_nan(v)) for k, v in options.items() if k not in arrays))
    for name, option in static:
        if not isinstance(option, Hashable):
            raise TypeError(
                f"option {name} must be an array or a constant, got {checks.brief(option)}: "
                "write numpy.asarray(...) or a tuple"
            )
    return static, arrays


def _one_nan(option: Any) -> Any:
    """NaN as one object: it is hashed by identity, and each new one would compile again."""
    return math.nan if isinstance(option, (float, np.floating)) and option != option else option


@functools.partial(jax.jit, static_argnames=("function", "static", "decision", "dtype"))
def _evaluate(
    arrays: tuple[Prepared | ScoreTable, dict[str, Any]],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    decision: Decision,
    dtype: Any,
) -> Any:
    def compute(source: Prepared | ScoreTable, options: dict[str, Any]) -> Any:
        table, undefined = build(source) if isinstance(source, Prepared) else _given(source)
        given = source.items.scores.dtype if isinstance(source, Prepared) else None
        decided = decision(**options, **dict(static))

        def of_one(table: ScoreTable, undefined: Array) -> Any:
            value = function(table, **options, **dict(static))

            def scores() -> Array:
                return jnp.where(table.positives + table.negatives > 0, table.thresholds, jnp.nan)

            return finished(value, undefined, scores, decided, given, dtype, of_table=True)

        batch = table.positives.shape[:-1]
        table = ScoreTable(*(jnp.broadcast_to(x, table.positives.shape) for x in table))
        undefined = jnp.broadcast_to(undefined, batch)
        values, unlike = numerics.over_batch(of_one, len(batch))(table, undefined)
        return jax.tree.map(lambda x: x.astype(dtype), values), jax.tree.map(jnp.any, unlike)

    source, options = arrays
    axes = _axes_of_rows(source.items) if isinstance(source, Prepared) else None
    program = in_double(compute, one_by_one=axes is not None)
    if not axes:
        return program(source, options)
    values, unlike = numerics.over_rows(lambda rows: program(rows, options), source, axes)
    return values, jax.tree.map(jnp.any, unlike)


def _axes_of_rows(items: Items) -> int | None:
    """Along how many leading axes rows are taken one by one; None if they are not.

    These are the axes of the scores: what shares scores shares a sort.
    """
    if not one_by_one(items.scores.shape[-1]):
        return None
    shape = items.scores.shape[:-1]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in jax.tree.leaves(items)))
    own = [len(shape) == len(batch) and a == b for a, b in zip(shape, batch, strict=False)]
    return [*own, False].index(False)


def _given(table: ScoreTable) -> tuple[ScoreTable, Array]:
    thresholds, *counts = (jnp.asarray(x) for x in table)
    if not thresholds.shape[-1]:
        thresholds = jnp.full((*thresholds.shape[:-1], 1), jnp.nan)
        counts = [jnp.zeros((*x.shape[:-1], 1), x.dtype) for x in counts]
    counts = [x.astype(jnp.float64 if numerics.is_inexact(x) else jnp.int64) for x in counts]
    table = ScoreTable(thresholds.astype(jnp.float64), *counts)
    return table, jnp.isnan(table.thresholds[..., 0])
