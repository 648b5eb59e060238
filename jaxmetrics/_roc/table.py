"""ScoreTable, the one type between inputs and answers, and how functions of it are evaluated."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.host import at_hand, on_host
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed
from jaxmetrics._base.types import Array, ArrayLike, Items


class ScoreTable(NamedTuple):
    """Rows in order of descending score, with the weight of each class in them.

    Attributes:
      thresholds: `[..., rows]`, the score of a row, descending. Items that tie are one row. NaN
        throughout where the data are undefined (NaN in a valid score, or no valid item).
      positives: `[..., rows]`, the total weight of the positives whose score is the threshold;
        their number, an integer, where there are no weights.
      negatives: `[..., rows]`, the same of the negatives.

    The number of rows is the number of items, and at least one. Rows that are left over, because
    items tie or are masked, hold no weight and repeat a neighbour's threshold. The sums of the
    leading rows are the counts of true and of false positives at `score >= threshold`.
    """

    thresholds: Array
    positives: Array
    negatives: Array


class Prepared(NamedTuple):
    """Items, and their keys and payload in order where that was found before tracing."""

    items: Items
    order: tuple[Any, Any] | None


def score_table(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> ScoreTable:
    """The score table of scores and labels: one sort, from which every metric follows.

    Row r holds `positives[r]`, the sum of w_i over positives i with s_i = `thresholds[r]`, and
    `negatives[r]` likewise; thresholds descend.

    Args:
      scores: `[..., n]`, higher is more positive; any real dtype.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative. An item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.

    Returns:
      A ScoreTable `[..., n]` with the leading axes broadcast; integer counts without weights.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    A row of a batch that holds NaN in a valid score, or no valid item, has NaN thresholds and no
    weight. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> table = jm.score_table([.45, .4, .35, .35, .8], [1, 0, 1, 0, 1])
      >>> print(table.positives, table.negatives)
      [1 1 0 1 0] [0 0 1 1 0]

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    source = _prepared(checks.check_items(scores, labels, weights, where))
    dtype = numerics.default_float()
    with double_precision():
        table: ScoreTable = _score_table(source, dtype)
    return table


@functools.partial(jax.jit, static_argnums=1)
def _score_table(source: Prepared, dtype: Any) -> ScoreTable:
    def build(source: Prepared) -> ScoreTable:
        table, undefined = _build(source)
        thresholds = jnp.where(undefined[..., None], jnp.nan, table.thresholds)
        thresholds = jnp.broadcast_to(thresholds, table.positives.shape)
        columns = (thresholds, table.positives, table.negatives)
        return ScoreTable(*(x.astype(dtype) if numerics.is_inexact(x) else x for x in columns))

    table: ScoreTable = in_double(build)(source)
    return table


def _build(source: Prepared) -> tuple[ScoreTable, Array]:
    """The table, and `[...]` whether it is undefined. Trace in double precision."""
    items, order = jax.tree.map(jnp.asarray, source)
    keys, payload = _in_order(items) if order is None else order
    nan = numerics.is_nan(items.scores)
    if _labels_ride(items):
        positives, negatives = (payload == 1).astype(jnp.int32), (payload == 2).astype(jnp.int32)
        undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    else:
        # Sorting depends on the scores alone, so a batch of labels or weights shares one order.
        positives, negatives = class_weights(items)
        undefined = jnp.any(nan & (positives + negatives > 0), axis=-1)
        nan = sorting.take(nan, payload)
        positives = jnp.where(nan, 0, sorting.take(positives, payload))
        negatives = jnp.where(nan, 0, sorting.take(negatives, payload))

    first = jnp.ones_like(keys[..., :1], bool)
    starts = jnp.concatenate([first, keys[..., 1:] != keys[..., :-1]], axis=-1)
    rows = jnp.cumsum(starts, axis=-1, dtype=jnp.int32) - 1
    thresholds = sorting.scores_of_keys(keys, items.scores)
    thresholds = _at_rows(thresholds, rows, "max", -jnp.inf)
    positives, negatives = _at_rows(positives, rows, "add", 0), _at_rows(negatives, rows, "add", 0)

    weighty = positives + negatives > 0
    undefined |= ~jnp.any(weighty, axis=-1) | not_allowed(items)
    return ScoreTable(settled(thresholds, weighty), positives, negatives), undefined


def settled(thresholds: Array, weighty: Array) -> Array:
    """Falling thresholds, with those of rows that hold no weight a neighbour's."""
    thresholds = jnp.where(weighty, thresholds, -jnp.inf)
    highest = jnp.max(thresholds, axis=-1, keepdims=True)
    return numerics.running_minimum(jnp.where(weighty, thresholds, highest))


def _labels_ride(items: Items) -> bool:
    """Whether the class can be sorted along with the key, so that nothing need be gathered."""
    if items.weights is not None or items.amounts is not None:
        return False
    shapes = [x.shape for x in (items.labels, items.where, items.scores) if x is not None]
    return np.broadcast_shapes(*shapes) == items.scores.shape


def _in_order(items: Items) -> tuple[Any, Any]:
    """Keys in order, and along with each its class or the index of its item."""
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
    """With at least one item; and in order, where the CPU has the data at hand to do it now."""
    items = at_least_one(items)
    host = Items(*at_hand(*items))
    ride = _labels_ride(items)
    needed = (host.scores, host.labels, host.where) if ride else (host.scores,)
    return Prepared(items, _in_order(host) if on_host(*needed) else None)


def _at_rows(values: Array, rows: Array, operation: str, start: float) -> Array:
    """Items in sorted order gathered into their rows; `rows` ascends along the last axis."""

    def scatter(values: Array, rows: Array) -> Array:
        at = jnp.full_like(values, start).at[rows]
        result: Array = getattr(at, operation)(
            values, indices_are_sorted=True, mode="promise_in_bounds"
        )
        return result

    scattered: Array = jnp.vectorize(scatter, signature="(n),(n)->(n)")(values, rows)
    return scattered


def evaluate(function: Callable[..., Any], source: Items | ScoreTable, **options: Any) -> Any:
    """`function(table, **options)` for each table of a batch, compiled, in double precision.

    `function` sees one ScoreTable `[rows]`, of integer counts where there are no weights; results
    are in JAX's default float, and NaN where the table is undefined. Options that are arrays are
    traced, others are static.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()
    prepared = _prepared(source) if isinstance(source, Items) else source
    with double_precision():
        return _evaluate((prepared, arrays), function, static, dtype)


def static_options(
    options: dict[str, Any],
) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
    """The options that are compile-time constants, hashable, and those that are arrays."""
    arrays = {k: v for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))}
    static = tuple(sorted((k, v) for k, v in options.items() if k not in arrays))
    for name, option in static:
        if not isinstance(option, Hashable):
            raise TypeError(
                f"option {name} must be an array or a constant, got {option!r}: "
                "write numpy.asarray(...) or a tuple"
            )
    return static, arrays


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _evaluate(
    arrays: tuple[Prepared | ScoreTable, dict[str, Any]],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    dtype: Any,
) -> Any:
    def compute(source: Prepared | ScoreTable, options: dict[str, Any]) -> Any:
        table, undefined = _build(source) if isinstance(source, Prepared) else _given(source)

        def of_one(table: ScoreTable, undefined: Array) -> Any:
            value = function(table, **options, **dict(static))
            return jax.tree.map(
                lambda x: jnp.where(undefined, jnp.nan, jnp.asarray(x, jnp.float64)), value
            )

        batch = table.positives.shape[:-1]
        table = ScoreTable(*(jnp.broadcast_to(x, table.positives.shape) for x in table))
        undefined = jnp.broadcast_to(undefined, batch)
        values = numerics.over_batch(of_one, len(batch))(table, undefined)
        return jax.tree.map(lambda x: x.astype(dtype), values)

    return in_double(compute)(*arrays)


def _given(table: ScoreTable) -> tuple[ScoreTable, Array]:
    thresholds, *counts = (jnp.asarray(x) for x in table)
    if not thresholds.shape[-1]:
        thresholds = jnp.full((*thresholds.shape[:-1], 1), jnp.nan)
        counts = [jnp.zeros((*x.shape[:-1], 1), x.dtype) for x in counts]
    counts = [x.astype(jnp.float64 if numerics.is_inexact(x) else jnp.int64) for x in counts]
    table = ScoreTable(thresholds.astype(jnp.float64), *counts)
    return table, jnp.isnan(table.thresholds[..., 0])
