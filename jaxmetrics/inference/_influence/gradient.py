"""The gradient of a metric with respect to the weights of the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.checks import check_rows
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import is_concrete, on_cpu, on_host
from jaxmetrics._base.items import at_least_one, class_weights
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import (
    NEGATIVE,
    POSITIVE,
    Ordered,
    apart_rows,
    in_order,
    starts,
    undefined,
)
from jaxmetrics._roc.record import Chosen, Metric, MetricLike, Options, choose
from jaxmetrics._roc.table import ScoreTable

_IN_BOUNDS = "promise_in_bounds"
_IN_CACHE = 1 << 15  # items


class Problems(NamedTuple):
    """Items `[..., n]`, their order, and the row of the score table of each."""

    items: Items
    order: Ordered
    rows: Array


class Slopes(NamedTuple):
    """The derivatives of a metric with respect to the rows of one score table, in float64.

    Attributes:
      estimate: the value of the metric.
      table: the score table of the items.
      raw: for NEGATIVE and POSITIVE, the derivative with respect to the weight of the class in a
        row.
      centred: the same derivative with the total weight of the class held fixed.
    """

    estimate: Array
    table: ScoreTable
    raw: tuple[Array, Array]
    centred: tuple[Array, Array]


def choose_smooth(metric: MetricLike) -> tuple[Chosen, Options]:
    """A metric and its options that are arrays; refuses a metric that is not known to be smooth."""
    chosen, arrays = choose(metric)
    if not chosen.metric.smooth:
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


def problems_of(items: Items, metric: Metric) -> tuple[Problems, int]:
    """Items in order, and the length of their score table, rounded up to few compiled sizes."""
    check_rows(items)
    items = at_least_one(items)
    problems, most = _problems(items, order_now(items), metric.of_roc_curve)
    n = items.scores.shape[-1]
    rows = 1 << int(most - 1).bit_length() if is_concrete(most) else n
    return problems, min(rows, n)


@double_program()
def _problems(items: Items, order: Ordered | None, merge: Array) -> tuple[Problems, Array]:
    items = jax.tree.map(jnp.asarray, items)
    order = in_order(items) if order is None else jax.tree.map(jnp.asarray, order)

    def rows_of(order: Ordered) -> Array:
        apart, before = apart_rows(order, merge)
        kind_changes = starts(order.kinds) & ~apart
        begins = kind_changes | (starts(order.keys) & (apart | before))
        return jnp.cumsum(begins, dtype=jnp.int32) - 1

    rows = row_by_row(rows_of, order)
    return Problems(items, order, rows), jnp.max(rows) + 1


def of_each(function: Callable[..., Any], problems: Problems) -> Any:
    """`function(problem, undefined)` for each problem of a batch."""
    shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves(problems)))
    bad = jnp.broadcast_to(undefined(problems.items), shape[:-1])
    each = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), problems)
    return row_by_row(function, each, bad[..., None])


def row_by_row(function: Callable[..., Any], *trees: Any) -> Any:
    """Maps `function` of arrays `[n]` over arrays `[..., n]` with equal leading axes.

    On the CPU it maps over as many rows at a time as stay in the cache.
    """
    *batch, n = jax.tree.leaves(trees)[0].shape
    if not batch:
        return function(*trees)
    flat = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), trees)
    rows = len(jax.tree.leaves(flat)[0])
    at_once = min(max(_IN_CACHE // n, 1), rows) if on_cpu() else rows
    results = lax.map(lambda row: function(*row), flat, batch_size=at_once)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), results)


def slopes_of(problem: Problems, chosen: Chosen, arrays: Options, n_rows: int) -> Slopes:
    """The slopes of one problem `[n]`."""
    items, order, rows = problem
    positives, negatives = in_order_weights(items, order)
    scores = sorting.scores_of_keys(order.keys, items.scores)
    thresholds = (
        jnp.full(n_rows, -jnp.inf).at[rows].max(scores, indices_are_sorted=True, mode=_IN_BOUNDS)
    )

    def value(positives: Array, negatives: Array) -> Array:
        table = ScoreTable(thresholds, positives, negatives)
        return jnp.asarray(chosen.value(table, arrays), jnp.float64)

    counts = [by_row(x, rows, n_rows).astype(jnp.float64) for x in (positives, negatives)]
    estimate, pull_back = jax.vjp(value, *counts)
    chosen.refuse_shapes(estimate)
    by_positives, by_negatives = pull_back(jnp.ones(()))

    def centred(slope: Array, count: Array) -> Array:
        return slope - numerics.divide(jnp.sum(slope * count), jnp.sum(count), 0.0)

    return Slopes(
        estimate,
        ScoreTable(thresholds, *counts),
        (by_negatives, by_positives),
        (centred(by_negatives, counts[1]), centred(by_positives, counts[0])),
    )


def by_row(x: Array, rows: Array, n_rows: int) -> Array:
    """The sums `[n_rows]` over the items `[n]` of each row."""
    sums: Array = (
        jnp.zeros(n_rows, x.dtype).at[rows].add(x, indices_are_sorted=True, mode=_IN_BOUNDS)
    )
    return sums


def in_order_weights(items: Items, order: Ordered) -> tuple[Array, Array]:
    """The positive and the negative weight of each item `[n]`, in order."""
    if items.weights is None and items.amounts is None:
        kinds = (order.kinds == POSITIVE, order.kinds == NEGATIVE)
        return kinds[0].astype(jnp.int32), kinds[1].astype(jnp.int32)
    positives, negatives = class_weights(items)
    return sorting.take(positives, order.item), sorting.take(negatives, order.item)


def counts_of(problem: Problems) -> Array:
    """The number of negatives and of positives with weight, `[2]`, in float64."""
    positives, negatives = in_order_weights(problem.items, problem.order)
    return jnp.stack([jnp.sum(x > 0) for x in (negatives, positives)]).astype(jnp.float64)
