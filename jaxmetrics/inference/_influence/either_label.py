"""Slopes of a metric of items that belong to both classes in part, as by a proxy of the label."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import cumulative, sorting
from jaxmetrics._base.double import double_program
from jaxmetrics._base.items import items_at_hand
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.at_hand import rows_at_hand
from jaxmetrics._roc.host_class import OneClass, sortable
from jaxmetrics._roc.host_placements import placements_of_both
from jaxmetrics._roc.order import NEGATIVE, POSITIVE, Ordered, in_order
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import (
    Problems,
    choose_known,
    of_each,
    slopes_of_weights,
    sorted_now,
)
from jaxmetrics.inference._influence.host_slopes import FEW_ROWS, SHORT, rows_of, stacked


class Ranked(NamedTuple):
    """Items, and the order that all calls of `slopes_by_label` share.

    `scores` `[..., n]` are in this order where NumPy sorted them; else None.
    """

    items: Items
    order: Ordered
    scores: Any


class _Row(NamedTuple):
    """The scores of items `[n]` in order, and what the items add to the classes."""

    scores: Any
    negatives: Array
    positives: Array


def ranked(items: Items) -> Ranked:
    """The items, sorted once."""
    items, order = sorted_now(items)
    if order is None:
        return Ranked(items, _in_order(items), None)
    items = items_at_hand(items)
    scores: Any = items.scores
    return Ranked(items, order, sorting.take(scores, order.item))


_in_order = double_program()(in_order)


def slopes_by_label(
    metric: MetricLike, ranked: Ranked, parts: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """The metric `[...]`, and its derivative in the weight of a negative and of a positive.

    `parts` `[..., n]` are what the items add to the negatives and to the positives, in order. The
    derivatives `[..., n]`, in order, are those in the weight of a negative and of a positive with
    the item's score, whatever the item adds.
    """
    chosen, arrays = choose_known(metric)
    items, order, scores = ranked
    found = None
    if scores is not None and chosen.metric.of_placements is not None:
        found = _slopes_on_host(_Row(scores, *parts), arrays, chosen)
    return _slopes_by_label(items, order, parts, arrays, chosen) if found is None else found


def _slopes_on_host(
    rows: _Row, arrays: Options, chosen: Chosen
) -> tuple[Array, Array, Array] | None:
    """`slopes_by_label` of rows `[..., n]` by NumPy; None if it cannot now."""
    found = rows_at_hand(rows, arrays, short=SHORT, few=FEW_ROWS)
    if found is None:
        return None

    def of_row(row: _Row) -> tuple[Any, ...]:
        scores, negatives, positives = (np.ascontiguousarray(x[::-1]) for x in row)
        scores, index = sortable(scores), np.arange(len(scores), dtype=np.uint32)
        both = (OneClass(scores, x, index) for x in (positives, negatives))
        with np.errstate(all="ignore"):
            estimate, by_class = rows_of(placements_of_both(*both), chosen, found.options)
            undefined = np.nan if np.isnan(scores).any() else 0 * estimate
            return estimate + undefined, *(_by_item(rows) + undefined for rows in by_class)

    return stacked(map(of_row, found.rows), found.batch)


def _by_item(rows: Any) -> HostArray:
    """The slope of each item by decreasing score, of those in rows."""
    slopes = np.empty(len(rows.items.items))
    slopes[rows.items.items] = (rows.centred + rows.mean).repeat(np.diff(rows.bounds))
    return slopes[::-1]


@double_program("chosen")
def _slopes_by_label(
    items: Items, order: Ordered, parts: tuple[Array, Array], arrays: Options, chosen: Chosen
) -> tuple[Array, Array, Array]:
    def of_one(
        problem: Problems, parts: tuple[Array, Array], bad: Array
    ) -> tuple[Array, Array, Array]:
        # A row for each score: in a joined row of negatives, a positive would tie with all of them.
        begins = sorting.starts(problem.order.keys).astype(jnp.int32)
        problem = problem._replace(rows=cumulative.running_count(begins) - 1)
        slopes = slopes_of_weights(parts, problem, chosen, arrays, len(begins))
        chosen.refuse_shapes(slopes.estimate)
        # An unlabelled item has weight 0, but its score must be a number all the same.
        bad = bad[0] | jnp.any(jnp.isnan(problem.items.scores))
        estimate = jnp.where(bad, jnp.nan, slopes.estimate)

        def by_item(kind: int) -> Array:
            return (slopes.centred[kind] + slopes.means[kind])[problem.rows] + 0 * estimate

        return estimate, by_item(NEGATIVE), by_item(POSITIVE)

    return of_each(of_one, Problems(items, order, None), parts)
