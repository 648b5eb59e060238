"""Sums of the squared slopes of a metric, of items that the devices of a mesh hold in parts.

Of the slopes, devices exchange only sums over ranges of the scores or, where positives are few,
what each of these adds to the slopes of other items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES
from jaxmetrics._base.parts import size_of, smallest_over, sum_over
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics.inference._influence.mesh_slopes import (
    Ranges,
    of_range,
    slopes_of_few,
    within_range,
)
from jaxmetrics.inference._influence.sums_over_positives import MetricOf, Totals
from jaxmetrics.inference._intervals.numbers import Decision


class Squares(NamedTuple):
    """The value of a metric, and for each class the sum of squares of centred weight * slope."""

    estimate: Array
    of_classes: Array


def squares_of(
    placed: OnMesh | RarePositives, value_of: MetricOf, counts: tuple[Array, Array]
) -> Squares:
    """The Squares of the items of all devices, of a metric with one value.

    `counts` are the numbers of negatives and of positives that have a weight.
    """
    if isinstance(placed, OnMesh):
        return _squares_of_ranges(placed.near_one(together=True), value_of, Totals(*counts))
    return _squares_of_few(placed.near_one(together=True), value_of, Totals(*counts))


def squares_of_decision(placed: OnMesh, decision: Decision) -> Squares:
    """The Squares of a recall."""
    sums, squares = placed.near_one().weights_around(decision.beyond)
    tied = 0.0 if decision.tied is None else decision.tied
    ones = jnp.ones_like(decision.estimate)
    shares = jnp.where(decision.some, jnp.stack([ones, tied * ones, 0 * ones]), 1)[:, None]
    totals = jnp.sum(sums, axis=0)
    means = numerics.divide(jnp.sum(shares * sums, axis=0), totals, 0.0)
    of_classes = numerics.divide(jnp.sum(squares * (shares - means) ** 2, axis=0), totals**2, 0.0)
    of_negatives = decision.slope**2 * of_classes[SORTED_NEGATIVES]
    return Squares(decision.estimate, jnp.stack([of_negatives, of_classes[SORTED_POSITIVES]]))


def _squares_of_ranges(placed: OnMesh, value_of: MetricOf, numbers: Totals) -> Squares:
    ranges, axis_name = Ranges.of(placed, value_of), placed.axis_name
    of_rounds = lax.map(lambda number: of_range(*ranges.terms(number)), ranges.rounds)
    others = ranges.of_others(of_rounds, numbers)

    def squares(number: Array) -> Array:
        groups, found = ranges.terms(number)
        slopes, at_bounds = within_range(groups, found)
        first = number * size_of(axis_name) + lax.axis_index(axis_name).astype(jnp.int32)
        added = others.after[:, first, None]
        for i in range(2):
            added = jnp.where(at_bounds[i], others.at_bounds[:, first + i, None], added)
        weights = jnp.stack([groups.negatives, groups.positives])
        centred = weights * (slopes + added) - others.means[:, None]
        return jnp.sum(jnp.where(weights > 0, centred**2, 0), axis=-1)

    of_classes = jnp.sum(lax.map(squares, ranges.rounds), axis=0)
    return Squares(others.estimate, sum_over(of_classes, axis_name))


def _squares_of_few(placed: RarePositives, value_of: MetricOf, numbers: Totals) -> Squares:
    found = slopes_of_few(placed, value_of, numbers)
    # Negatives of a device are alike between the positives, but for their weights.
    places = placed.places_beside(found.keys)
    of_end = placed.part.ends[SORTED_NEGATIVES, None]
    least, sums = _sums_of_negatives(placed, jnp.append(places.ravel(), of_end))
    at_above, at_upto = sums[:, :-1].reshape(3, *places.shape).swapaxes(0, 1)
    after = jnp.pad(at_upto, ((0, 0), (1, 0)))

    def squared(slopes: Array, sums: Array) -> Array:
        return _squares_of_alike(slopes, found.mean, least, sums)

    between = squared(found.between[:-1], at_above - after[:, :-1])
    tied = squared(found.tied, at_upto - at_above)
    rest = squared(found.between[-1], sums[:, -1] - after[:, -1])
    of_negatives = jnp.sum(jnp.where(found.begins, between + tied, 0)) + rest
    of_classes = jnp.stack([of_negatives, jnp.sum(found.own**2)])
    return Squares(found.estimate, sum_over(of_classes, placed.axis_name))


def _sums_of_negatives(placed: RarePositives, places: Array) -> tuple[Array, Array]:
    """The least weight of the negatives of all devices, and `[3, ...]` sums over this device's.

    Of its negatives before each place: their number, and the sums of (weight - least) and of its
    square.
    """
    part, unit = placed.part, placed.units[SORTED_NEGATIVES]
    lowest = smallest_over(unit * part.lowest()[SORTED_NEGATIVES], placed.axis_name)
    least = jnp.where(jnp.isfinite(lowest), lowest, 0)

    def more(weights: Any) -> Any:
        return unit * weights - least

    terms = (
        lambda weights: jnp.ones_like(weights, jnp.int32),
        more,
        lambda weights: more(weights) ** 2,
    )
    number, *sums = part.sums_of(terms, places, SORTED_NEGATIVES)
    return least, jnp.stack([number.astype(jnp.float64), *sums])


def _squares_of_alike(slopes: Array, mean: Array, least: Array, sums: Array) -> Array:
    """The sum of (weight slope - mean)^2 over items with the same slope.

    The sums are those of `_sums_of_negatives`. With equal weights the result is a multiple of one
    square, and exactly 0 where least * slope is the mean.
    """
    number, more, squares = sums
    of_least = least * slopes - mean
    return number * of_least**2 + slopes * (2 * of_least * more + slopes * squares)
