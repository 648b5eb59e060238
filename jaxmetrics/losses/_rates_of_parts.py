"""Losses for rates, and their slopes, where the devices of a mesh hold the items in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxmetrics._base.numerics import divide
from jaxmetrics._base.parts import AxisName, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics.losses._kernels import sigmoid
from jaxmetrics.losses._range import (
    in_range,
    loss_and_slopes,
    nan_where_infinite,
    sum_of_devices,
)
from jaxmetrics.losses._rows import Row, of_negatives, weight_of_positives
from jaxmetrics.losses._surrogates import placed, slopes_in_scores
from jaxmetrics.losses._top_set import edge_of_shares

Pair: TypeAlias = tuple[Array, Array]


def recall_of_parts(
    items: Items, numbers: dict[str, Any], axis_name: AxisName
) -> tuple[Array, Array]:
    """`loss_and_slopes` of `recall_at_fpr_loss`."""

    def of_row(row: Row, *, max_fpr: Array, temperature: Array, band: Array) -> tuple[Array, Array]:
        edge = _edge(row, max_fpr, band, axis_name)
        unit, scores, shares, away, std, varies = of_negatives(row, axis_name)
        above = sum_over(jnp.sum(edge * scores), axis_name) - scores
        missed = jnp.where(max_fpr < 1, jax.nn.sigmoid(above / (temperature * std)), 0)
        total = weight_of_positives(row, axis_name)
        value = divide(sum_of_devices(row.positives * missed, axis_name), total, 0.0)

        slopes = divide(row.positives * missed * (1 - missed), total * temperature * std, 0.0)
        of_std = jnp.where(varies, sum_over(jnp.sum(slopes * above), axis_name), 0) / std**2
        of_threshold = sum_over(jnp.sum(slopes), axis_name)
        slopes = (of_threshold * edge - slopes - of_std * shares * away) / unit
        return nan_where_infinite((value, slopes), row, axis_name)

    return loss_and_slopes(of_row, items, numbers, axis_name)


def average_precision_of_parts(
    items: Items, numbers: dict[str, Any], axis_name: AxisName
) -> tuple[Array, Array]:
    """`loss_and_slopes` of `average_precision_loss`."""

    def of_row(row: Row, *, temperature: Array) -> tuple[Array, Array]:
        places = placed(row, "sigmoid", axis_name, temperature=temperature)
        value, slopes = _average_precision(places, axis_name)
        slopes = slopes_in_scores(slopes, row, "sigmoid", axis_name, temperature=temperature)
        return nan_where_infinite((value, slopes), places, axis_name)

    return loss_and_slopes(of_row, items, numbers, axis_name)


def _edge(row: Row, max_fpr: Array, band: Array, axis_name: AxisName) -> Array:
    """`edge_of_shares` of the items of this device."""
    (_, negatives), back, here = in_range(row, (row.positives, row.negatives), axis_name)
    shares = here.shares_above(negatives)
    edge = edge_of_shares(*shares, negatives, max_fpr, band, axis_name)
    of_weight = divide(edge, negatives, 0.0)
    return row.negatives * back((jnp.zeros_like(of_weight), of_weight))[1]


def _average_precision(items: Row, axis_name: AxisName) -> tuple[Array, Array]:
    """The loss of all items, and its slopes in the places of this device's items."""
    kernel = sigmoid(items.scores.dtype)
    weights = items.positives, items.weights
    of_rows, back, here = in_range(items, weights, axis_name)
    # The sums count an item as half above itself, the definition as wholly above.
    sums = back(tuple(here.pair_sums(kernel, x) for x in of_rows))
    found, all_above = (x + weight / 2 for x, weight in zip(sums, weights, strict=True))
    total = weight_of_positives(items, axis_name)
    precision = divide(found, jnp.where(items.positives > 0, all_above, 0), 0.0)
    value = divide(sum_of_devices(items.positives * (1 - precision), axis_name), total, 0.0)

    # Slopes of the loss in the two sums of each item, and from these, by the chain rule, in places.
    in_found = -divide(divide(items.positives, all_above, 0.0), total, 0.0)
    in_sums = in_found, -in_found * precision
    in_sums_of_rows, _, _ = in_range(items, in_sums, axis_name)
    slope = kernel.derivative()  # of the distance to either side alike
    at_once = slope.at(jnp.zeros((), items.scores.dtype))
    at_rows = back(of_rows)
    # In its row. XLA may round in two ways what it computes twice, but not these weights.
    alone = at_rows[1] == items.weights

    def from_others(own: Pair, of_rows: Pair, at_rows: Pair) -> Iterator[Array]:
        """Two sums of the slopes times a number of each item, without the item itself."""
        others = back(tuple(here.sums_of_others(slope, x) for x in of_rows))
        for x, together, other in zip(own, at_rows, others, strict=True):
            yield other + at_once * jnp.where(alone, 0, together - x)

    of_found, of_all = (
        weight * of_sums - in_sum * of_weights
        for weight, in_sum, of_weights, of_sums in zip(
            weights,
            in_sums,
            from_others(weights, of_rows, at_rows),
            from_others(in_sums, in_sums_of_rows, back(in_sums_of_rows)),
            strict=True,
        )
    )
    return value, of_found + of_all
