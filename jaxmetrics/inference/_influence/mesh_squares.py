"""Sums of the squared slopes of a metric, of items that the devices of a mesh hold in parts.

Of the slopes, devices exchange only sums over ranges of the scores or, where positives are few,
what each of these adds to the slopes of other items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES
from jaxmetrics._base.parts import size_of, smallest_over, sum_over
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.mesh_ranges import InRange
from jaxmetrics._roc.placements import Groups
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics.inference._influence.mesh_slopes import (
    OfOthers,
    OfRange,
    Ranges,
    of_range,
    slopes_of_few,
    within_range,
)
from jaxmetrics.inference._influence.sums_over_positives import MetricOf, OfPositives, Totals
from jaxmetrics.inference._intervals.numbers import Decision

R = TypeVar("R")


class Squares(NamedTuple):
    """The value of a metric, and for each class the sum of squares of centred weight * slope."""

    estimate: Array
    of_classes: Array


def squares_and(
    placed: OnMesh | RarePositives,
    value_of: MetricOf,
    counts: tuple[Array, Array],
    function: Callable[[Any], R],
) -> tuple[Squares, R]:
    """The Squares of the items of all devices, of a metric with one value; `function` of `placed`.

    `counts` are the numbers of negatives and of positives that have a weight.
    """
    placed = placed.near_one(together=True)
    if isinstance(placed, OnMesh):
        return _squares_of_ranges(placed, value_of, Totals(*counts), function)
    return _squares_of_few(placed, value_of, Totals(*counts)), function(placed)


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


def _squares_of_ranges(
    placed: OnMesh, value_of: MetricOf, numbers: Totals, function: Callable[[Any], R]
) -> tuple[Squares, R]:
    ranges, axis_name = Ranges.of(placed, value_of), placed.axis_name

    def of_groups(groups: InRange) -> tuple[OfRange, _Scatter]:
        found = ranges.terms(groups)
        return of_range(groups, found), _scatter_of(groups, found)

    accompanied = _Accompanied(placed, of_groups)
    of_placed = function(accompanied)
    of_rounds, scatters = accompanied.found()
    others = ranges.of_others(of_rounds, numbers)
    number = ranges.rounds * size_of(axis_name) + lax.axis_index(axis_name).astype(jnp.int32)
    of_classes = jnp.sum(scatters.squares(others, number), axis=0)
    return Squares(others.estimate, sum_over(of_classes, axis_name)), of_placed


@dataclass(frozen=True)
class _Accompanied:
    """Placements whose first sum also finds `beside` of each range, so that none comes twice.

    `found`, after all sums, returns it for all ranges.
    """

    placed: OnMesh
    beside: Callable[[InRange], Any]
    _found: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.placed, name)

    def near_one(self, *, together: bool = False) -> _Accompanied:
        return self  # as `placed` is

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        if self._found:
            return self.placed.summed(function)
        sums, beside = self.placed.of_ranges(lambda x: (function(x), self.beside(x)))
        self._found.append(beside)
        return sum_over(jnp.sum(sums, axis=0), self.placed.axis_name)

    def found(self) -> Any:
        return self._found[0] if self._found else self.placed.of_ranges(self.beside)


class _Scatter(NamedTuple):
    """What the squares of a range need of it, while what other ranges add is not known.

    `[..., 3, classes]`: of the items at the first bound, of those at the last, and of all others.

    Attributes:
      counts: the number of items.
      weights: the mean of their weights w; v are the distances from it.
      slopes: the mean of their slopes by weight; d are the distances from it.
      products: the sums of v^2, of v w d, of (w d)^2, and of w d, which is 0 but for rounding.
    """

    counts: Array
    weights: Array
    slopes: Array
    products: tuple[Array, Array, Array, Array]

    def squares(self, others: OfOthers, number: Array) -> Array:
        """`[rounds, classes]`, the sums of (w slope - mean)^2 in the ranges of these numbers."""
        at_bounds, after = others.at_bounds.T, others.after.T
        added = jnp.stack([at_bounds[number], at_bounds[number + 1], after[number]], axis=1)
        slopes, (of_weights, of_both, of_slopes, rounding) = self.slopes + added, self.products
        away = slopes * self.weights - others.means
        within = of_slopes + slopes * (2 * of_both + slopes * of_weights)
        of_each = within + away * (2 * rounding + away * self.counts)
        return jnp.sum(jnp.maximum(of_each, 0), axis=-2)


def _scatter_of(groups: InRange, found: OfPositives) -> _Scatter:
    slopes, (first, last) = within_range(groups, found)
    weights = jnp.stack([groups.negatives, groups.positives])

    def of_these(which: Array) -> _Scatter:
        def sums(of_items: Array) -> Array:
            return jnp.sum(jnp.where(which & (weights > 0), of_items, 0), axis=-1)

        counts, totals = sums(jnp.ones_like(weights)), sums(weights)
        mean_weights = numerics.divide(totals, counts, 0.0)
        mean_slopes = numerics.divide(sums(weights * slopes), totals, 0.0)
        v, wd = weights - mean_weights[:, None], weights * (slopes - mean_slopes[:, None])
        products = sums(v**2), sums(v * wd), sums(wd**2), sums(wd)
        return _Scatter(counts, mean_weights, mean_slopes, products)

    # One after the other: XLA for CPUs writes the terms of a sum to memory before it adds them.
    return lax.map(of_these, jnp.stack([first & ~last, last, ~(first | last)]))


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
