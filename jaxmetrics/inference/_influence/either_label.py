"""Slopes of a metric of items that belong to both classes in part, as by a proxy of the label."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import cumulative, sorting
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import on_host
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
from jaxmetrics.inference._influence.host_slopes import FEW_ROWS, SHORT, rows_of


class _Ranked(NamedTuple):
    """Items `[..., n]` by decreasing score, and what they add to the classes."""

    scores: Any
    negatives: Array
    positives: Array


def ranked(items: Items) -> tuple[Items, Ordered]:
    """The items, and the order that all calls of `slopes_by_label` share."""
    items, order = sorted_now(items)
    return items_at_hand(items), _in_order(items) if order is None else order


_in_order = double_program()(in_order)


def slopes_by_label(
    metric: MetricLike, items: Items, order: Ordered, parts: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """The metric `[...]`, and its derivative in the weight of a negative and of a positive.

    `parts` `[..., n]` are what the items add to the negatives and to the positives, in order. The
    derivatives `[..., n]`, in order, are those in the weight of a negative and of a positive with
    the item's score, whatever the item adds.
    """
    chosen, arrays = choose_known(metric)
    found = _slopes_on_host(items.scores, order, parts, arrays, chosen)
    return _slopes_by_label(items, order, parts, arrays, chosen) if found is None else found


def _slopes_on_host(
    scores: Any, order: Ordered, parts: tuple[Array, Array], arrays: Options, chosen: Chosen
) -> tuple[Array, Array, Array] | None:
    """`slopes_by_label` by NumPy; None if it cannot now."""
    if chosen.metric.of_placements is None or on_host(scores, *parts) is None:
        return None
    ranked_items = _Ranked(sorting.take(scores, order.item), *parts)
    found = rows_at_hand(ranked_items, arrays, short=SHORT, few=FEW_ROWS)
    if found is None:
        return None

    def of_row(row: _Ranked) -> tuple[Any, ...]:
        scores, negatives, positives = (np.ascontiguousarray(x[::-1]) for x in row)
        scores, index = sortable(scores), np.arange(len(scores), dtype=np.uint32)
        both = (OneClass(scores, x, index) for x in (positives, negatives))
        with np.errstate(all="ignore"):
            estimate, by_class = rows_of(placements_of_both(*both), chosen, found.options)
            undefined = np.nan if np.isnan(scores).any() else 0 * estimate
            return estimate + undefined, *(_by_item(rows) + undefined for rows in by_class)

    rows: Any = (np.stack(x) for x in zip(*map(of_row, found.rows), strict=True))
    estimate, negatives, positives = (x.reshape((*found.batch, *x.shape[1:])) for x in rows)
    return estimate, negatives, positives


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

    found: tuple[Array, Array, Array] = of_each(of_one, Problems(items, order, None), parts)
    return found
