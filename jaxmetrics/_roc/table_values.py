"""Values of functions of a score table, for each row of a batch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.host import on_host, one_by_one, to_program
from jaxmetrics._base.items import rows_of
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.at_hand import in_jax
from jaxmetrics._roc.in_order import over_items
from jaxmetrics._roc.reported import Decision, finished, no_decision, warn_if
from jaxmetrics._roc.table import (
    Prepared,
    ScoreTable,
    SortedItems,
    build_row,
    build_sorted,
    prepared,
    rows_by_numpy,
)


def evaluate(
    function: Callable[..., Any],
    source: Items | ScoreTable,
    options: dict[str, Any],
    decision: Decision = no_decision,
) -> Any:
    """`function(table, **options)` for each table of a batch, compiled, in double precision.

    `function` receives one ScoreTable `[rows]`, with integer counts where there are no weights.
    Results have JAX's default floating dtype, and are NaN where the table is undefined. Options
    that are arrays are traced; others are compile-time constants. Thresholds are rounded as the
    `decision` requires.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()

    def of(source: Prepared | ScoreTable) -> tuple[Any, Any]:
        with double_precision():
            given = to_program(source), arrays
            found: tuple[Any, Any] = _evaluate(given, function, static, decision, dtype)
        return found

    if isinstance(source, ScoreTable):
        values, unlike = of(jax.tree.map(checks.own, source))
    elif rows := _rows_on_host(source):
        shape, items = rows
        found = [of(prepared(row)) for row in items]
        values, unlike = jax.tree.map(lambda *x: jnp.stack(x).reshape(shape + x[0].shape), *found)
        unlike = jax.tree.map(jnp.any, unlike)
    else:
        values, unlike = of(prepared(source))
    warn_if(unlike, dtype)
    return values


def evaluate_by_numpy(
    function: Callable[..., Any],
    source: Items | ScoreTable,
    options: dict[str, Any],
    decision: Decision,
) -> Any:
    """`evaluate` by NumPy, for a function of either library's arrays; None if NumPy cannot now."""
    found = rows_by_numpy(source, options)
    if found is None:
        return None
    scores, *_ = source
    of_table, dtype = isinstance(source, ScoreTable), numerics.default_float()
    given = None if of_table else scores.dtype
    with np.errstate(all="ignore"):
        tables = map(_table_given if of_table else build_row, found.rows)
        rows = [_value(function, found.options, *x, given, decision, dtype) for x in tables]
    values, unlike = zip(*rows, strict=True)
    warn_if(any(unlike), dtype)
    return in_jax(values, found.batch, scores, dtype)


def _rows_on_host(items: Items) -> tuple[tuple[int, ...], Iterator[Items]] | None:
    """The shape of a batch whose rows are sorted and evaluated one by one, and views of its rows.

    None if one program takes the whole batch: NumPy does not sort it, or its rows are short.
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
        if isinstance(source, Prepared):
            table, undefined, in_order = build_sorted(source)
            given = source.items.scores.dtype
        else:
            (table, undefined), in_order, given = _table_given(source), None, None
        named = {**options, **dict(static)}

        def of_one(table: ScoreTable, undefined: Array, in_order: SortedItems | None) -> Any:
            found = function
            if isinstance(source, Prepared):
                found = over_items(function, source.items, in_order)
            return _value(found, named, table, undefined, given, decision, dtype)

        batch = table.positives.shape[:-1]
        table = ScoreTable(*(jnp.broadcast_to(x, table.positives.shape) for x in table))
        undefined = jnp.broadcast_to(undefined, batch)
        values, unlike = numerics.over_batch(of_one, len(batch))(table, undefined, in_order)
        return jax.tree.map(lambda x: x.astype(dtype), values), jax.tree.map(jnp.any, unlike)

    source, options = arrays
    axes = _axes_of_rows(source.items) if isinstance(source, Prepared) else None
    program = in_double(compute, one_by_one=axes is not None)
    if not axes:
        return program(source, options)
    values, unlike = numerics.over_rows(lambda rows: program(rows, options), source, axes)
    return values, jax.tree.map(jnp.any, unlike)


def _value(
    function: Callable[..., Any],
    options: dict[str, Any],
    table: ScoreTable,
    undefined: Any,
    given: Any,
    decision: Decision,
    dtype: Any,
) -> tuple[Any, Any]:
    """`finished` for one table; `given` is the dtype of the scores, or None if it is not known."""
    value = function(table, **options)

    def scores() -> Any:
        weighty = table.positives + table.negatives > 0
        return numerics.namespace(*table).where(weighty, table.thresholds, np.nan)

    decided = decision(**options)
    return finished(value, undefined, scores, decided, given, dtype, of_table=True)


def _axes_of_rows(items: Items) -> int | None:
    """The number of leading axes whose rows are taken one by one; None if all are taken at once.

    Only axes of the scores count: rows that share scores share a sort.
    """
    if not one_by_one(items.scores.shape[-1]):
        return None
    shape = items.scores.shape[:-1]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in jax.tree.leaves(items)))
    own = [len(shape) == len(batch) and a == b for a, b in zip(shape, batch, strict=False)]
    return [*own, False].index(False)


def _table_given(table: ScoreTable) -> tuple[ScoreTable, Array]:
    """A caller's table, with at least one row and 64-bit numbers, and whether it is undefined."""
    library = numerics.namespace(*table)
    thresholds, *counts = map(library.asarray, table)
    if not thresholds.shape[-1]:
        thresholds = library.full((*thresholds.shape[:-1], 1), np.nan)
        counts = [library.zeros((*x.shape[:-1], 1), x.dtype) for x in counts]
    counts = [x.astype(np.float64 if numerics.is_inexact(x) else np.int64) for x in counts]
    table = ScoreTable(thresholds.astype(np.float64), *counts)
    return table, library.isnan(table.thresholds[..., 0])
