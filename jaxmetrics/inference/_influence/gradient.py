"""The gradient of a metric with respect to the weights of the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import cumulative, numerics, sorting, varying
from jaxmetrics._base.checks import check_rows
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import is_concrete, on_cpu, on_host, on_tpu
from jaxmetrics._base.items import at_least_one, class_weights
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE, Ordered, apart_rows, in_order, undefined
from jaxmetrics._roc.placements import OfTable
from jaxmetrics._roc.record import Chosen, Metric, MetricLike, Options, choose
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics.inference._intervals.effective import effective_size
from jaxmetrics.inference._intervals.metrics import error_bars_of, has_influence
from jaxmetrics.inference._intervals.numbers import Decision

_IN_BOUNDS = "promise_in_bounds"
_IN_CACHE = 1 << 15  # items


class Problems(NamedTuple):
    """Items `[..., n]`, their order, and the row of the score table of each, if one is needed."""

    items: Items
    order: Ordered
    rows: Any


class Slopes(NamedTuple):
    """The derivatives of a metric with respect to the rows of one score table, in float64.

    Attributes:
      estimate: the value of the metric.
      table: the score table of the items.
      centred: for NEGATIVE and POSITIVE, the derivative with respect to the weight of the class in
        a row, with the total weight of the class held fixed.
      means: `[..., 1]`, what to add to `centred` for the derivatives where that total moves, too.
    """

    estimate: Array
    table: ScoreTable
    centred: tuple[Array, Array]
    means: tuple[Array, Array]


def choose_known(metric: MetricLike) -> tuple[Chosen, Options]:
    """A metric and its options that are arrays; refuses one whose influence is not known."""
    chosen, arrays = choose(metric)
    if not has_influence(chosen.metric):
        raise TypeError(
            f"{chosen.metric.name} is not known to be smooth in the weights, so its gradient may "
            "not be its influence function: to resample, write standard_error, confidence_interval "
            "or compare with key=jax.random.key(0); if the metric is an integral over a curve, "
            "write table_metric(smooth=True)"
        )
    return chosen, arrays


def order_now(items: Items) -> Ordered | None:
    """The order of the items if NumPy can sort them now; None if the compiled program sorts."""
    near = on_host(items.scores, items.labels, items.where)
    return None if near is None else in_order(Items(near[0], near[1], where=near[2]))


def sorted_now(items: Items) -> tuple[Items, Ordered | None]:
    """The items, at least one, and their order as of `order_now`."""
    check_rows(items)
    items = at_least_one(items)
    return items, order_now(items)


def problems_without_rows(items: Items, order: Ordered | None) -> Problems:
    """Items in order, within a program."""
    items = jax.tree.map(jnp.asarray, items)
    order = in_order(items) if order is None else jax.tree.map(jnp.asarray, order)
    return Problems(items, order, None)


def problems_of(items: Items, metric: Metric) -> tuple[Problems, int]:
    """Items in order, and the length of their score table, rounded up to few compiled sizes."""
    items, order = sorted_now(items)
    problems, most = _problems(items, order, metric.of_roc_curve)
    n = items.scores.shape[-1]
    rows = numerics.next_power_of_two(most) if is_concrete(most) else n
    return problems, min(rows, n)


@double_program()
def _problems(items: Items, order: Ordered | None, merge: Array) -> tuple[Problems, Array]:
    problems = problems_without_rows(items, order)

    def rows_of(order: Ordered) -> Array:
        apart, before = apart_rows(order, (merge, merge))
        kind_changes = starts(order.kinds) & ~apart
        begins = kind_changes | (starts(order.keys) & (apart | before))
        return cumulative.running_count(begins.astype(jnp.int32)) - 1

    rows = row_by_row(rows_of, problems.order)
    return problems._replace(rows=rows), jnp.max(rows) + 1


def of_each(function: Callable[..., Any], problems: Problems, *others: Any) -> Any:
    """`function(problem, *others, undefined)` for each problem of a batch; `undefined` is `[1]`."""
    given = problems, *others
    shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves(given)))
    bad = jnp.broadcast_to(undefined(problems.items), shape[:-1])
    problems, *others = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), given)
    problems = problems._replace(items=held_where_lost(problems.items))
    return row_by_row(function, problems, *others, bad[..., None])


def held_where_lost(items: Items) -> Items:
    """The items, with constant weights in rows without a value or without items of a class.

    Rows that share weights would else lose all slopes to one such row, whose slopes are NaN.
    """
    given = [x for x in (items.weights, items.amounts) if x is not None]
    if numerics.namespace(*given) is np:  # also without any
        return items
    absent = [jnp.sum(x, axis=-1) == 0 for x in class_weights(items)]
    lost = (undefined(items) | absent[0] | absent[1])[..., None]
    weights, amounts = (
        None if x is None else jnp.where(lost, lax.stop_gradient(x), x)
        for x in (items.weights, items.amounts)
    )
    return items._replace(weights=weights, amounts=amounts)


def row_by_row(function: Callable[..., Any], *trees: Any) -> Any:
    """Maps `function` of arrays `[n]` over arrays `[..., n]` with equal leading axes.

    On the CPU it maps over as many rows at a time as stay in the cache. It does so on a TPU, too: a
    program of several long rows takes three times as long to compile there, and moves three times
    as much.
    """
    *batch, n = jax.tree.leaves(trees)[0].shape
    if not batch:
        return function(*trees)
    flat = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), trees)
    rows = len(jax.tree.leaves(flat)[0])
    at_once = min(max(_IN_CACHE // n, 1), rows) if on_cpu() or on_tpu() else rows

    def of_row(row: Any) -> Any:
        return function(*row)

    if at_once == rows:  # without a loop: XLA for TPUs would have its body twice
        results = numerics.over_rows(of_row, flat, 1)
    elif at_once == 1:  # XLA for TPUs takes twice as long for batches of one
        results = lax.map(of_row, flat)
    else:
        results = lax.map(of_row, flat, batch_size=at_once)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), results)


def _table_of(problem: Problems, weights: tuple[Array, Array], n_rows: int) -> ScoreTable:
    """The score table of one problem `[n]`, with its counts in float64."""
    items, order, rows = problem
    scores = sorting.scores_of_keys(order.keys, items.scores)
    thresholds = (
        jnp.full(n_rows, -jnp.inf).at[rows].max(scores, indices_are_sorted=True, mode=_IN_BOUNDS)
    )
    negatives, positives = (by_row(x, rows, n_rows).astype(jnp.float64) for x in weights)
    return ScoreTable(thresholds, positives, negatives)


def slopes_of(problem: Problems, chosen: Chosen, arrays: Options, n_rows: int) -> Slopes:
    """The slopes of one problem `[n]`."""
    weights = weights_by_kind(problem.items, problem.order)
    return slopes_of_weights(weights, problem, chosen, arrays, n_rows)


def slopes_of_weights(
    weights: tuple[Array, Array],
    problem: Problems,
    chosen: Chosen,
    arrays: Options,
    n_rows: int,
) -> Slopes:
    """The slopes of one problem with these weights `[n]` of negatives and positives, in order."""
    table = _table_of(problem, weights, n_rows)
    decide = error_bars_of(chosen.metric).decision
    if decide is None:
        estimate, raw = _gradient(table, chosen, arrays)
    else:
        negatives, positives = map(effective_size, weights)
        decision = decide(OfTable(table), (negatives, positives), chosen.options(arrays))
        estimate, raw = decision.estimate, _slopes_of_decision(table, decision)

    def mean(slope: Array, count: Array) -> Array:
        total = jnp.sum(slope * count, axis=-1, keepdims=True)
        return numerics.divide(total, jnp.sum(count), 0.0)

    negatives, positives = map(mean, raw, (table.negatives, table.positives))
    centred = raw[0] - negatives, raw[1] - positives
    if decide is not None:
        negatives, positives = 0 * negatives, 0 * positives
    return Slopes(estimate, table, centred, (negatives, positives))


def _gradient(
    table: ScoreTable, chosen: Chosen, arrays: Options
) -> tuple[Array, tuple[Array, Array]]:
    """The value, and its derivatives in the negatives and in the positives of each row."""

    def value(negatives: Array, positives: Array) -> Array:
        counted = ScoreTable(table.thresholds, positives, negatives)
        return jnp.asarray(chosen.value(counted, arrays), jnp.float64)

    estimate, pull_back = varying.vjp(value, table.negatives, table.positives)
    chosen.refuse_shapes(estimate)
    negatives, positives = pull_back(jnp.ones(()))
    return estimate, (negatives, positives)


def _slopes_of_decision(table: ScoreTable, decision: Decision) -> tuple[Array, Array]:
    """The slopes of negatives and of positives, `[..., rows]`."""
    flagged = decision.flags(table.thresholds)
    negatives, positives = (
        numerics.divide(flagged, jnp.sum(x), 0.0) for x in (table.negatives, table.positives)
    )
    return -decision.slope[..., None] * negatives, positives


def of_items(by_class: list[tuple[Array, Any]], problem: Problems, n_rows: int) -> Array:
    """`[n]`, for each item as given: its weight times the entry of its row, less a number.

    `by_class` has these of the negatives and of the positives: the entries `[rows]`, and the number
    `[1]` or None.
    """
    (slopes, less), order = zip(*by_class, strict=True), problem.order
    # Both classes in one table, as each lookup is a slow gather.
    at = problem.rows + n_rows * (order.kinds == POSITIVE)
    negatives, positives = weights_by_kind(problem.items, order)
    weights = positives + negatives
    entries = sorting.take(jnp.concatenate(slopes), at)
    units = jnp.where(jnp.isnan(entries), jnp.nan, weights * numerics.without_nan(entries))
    if less[0] is not None:
        units = units - jnp.where(order.kinds == POSITIVE, less[1], less[0])
    units = jnp.where(weights > 0, units, 0)
    return as_given(units, order.item)


def as_given(in_order: Array, item: Any) -> Array:
    """Values `[n]` in some order, put in that of the inputs; `item` has the index of each there."""
    at = jnp.zeros_like(in_order).at[item]
    return at.set(in_order, unique_indices=True, mode=_IN_BOUNDS)


def by_row(x: Array, rows: Array, n_rows: int) -> Array:
    """The sums `[n_rows]` over the items `[n]` of each row."""
    return jnp.zeros(n_rows, x.dtype).at[rows].add(x, indices_are_sorted=True, mode=_IN_BOUNDS)


def weights_by_kind(items: Items, order: Ordered) -> tuple[Array, Array]:
    """The weights `[n]` of the negatives and of the positives, in order."""
    if items.weights is None and items.amounts is None:
        kinds = (order.kinds == NEGATIVE, order.kinds == POSITIVE)
        return kinds[0].astype(np.int32), kinds[1].astype(np.int32)
    positives, negatives = class_weights(items)
    return sorting.take(negatives, order.item), sorting.take(positives, order.item)


def counts_of(problem: Problems) -> Array:
    """The number of negatives and of positives with weight, `[2]`, in float64."""
    weights = weights_by_kind(problem.items, problem.order)
    return jnp.stack([jnp.sum(x > 0) for x in weights]).astype(jnp.float64)
