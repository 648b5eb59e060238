"""Squared slopes of a metric of items that the devices of a mesh hold in parts, summed.

Only sums over ranges of the scores travel, or what few positives add to the slopes of others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import cumulative, numerics, sorting
from jaxmetrics._base.by_class import NEGATIVES, POSITIVES
from jaxmetrics._base.parts import gathered, size_of, smallest_over, so_many_below, sum_over
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.mesh_ranges import InRange
from jaxmetrics._roc.order import NEGATIVE, POSITIVE, starts
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics.inference._influence.sums_over_positives import (
    MetricOf,
    OfPositives,
    Totals,
    mean_slopes,
    of_both,
    of_positives,
    sums_below,
)
from jaxmetrics.inference._intervals.numbers import Decision

_IN_BOUNDS = "promise_in_bounds"


class Squares(NamedTuple):
    """The value of a metric, and for each class the sum of the squares of the slopes of its items,
    times their weights, less their mean."""

    estimate: Array
    of_classes: Array


def squares_of(
    placed: OnMesh | RarePositives, value_of: MetricOf, counts: tuple[Array, Array]
) -> Squares:
    """Of the items of all devices; the metric has one value.

    `counts` are how many negatives and positives have a weight.
    """
    if isinstance(placed, OnMesh):
        return _squares_of_ranges(placed.near_one(together=True), value_of, Totals(*counts))
    return _squares_of_few(placed.near_one(together=True), value_of, Totals(*counts))


def squares_of_decision(placed: OnMesh, decision: Decision) -> Squares:
    """Those of a recall: a flagged positive adds to it; a flagged negative moves the threshold up,
    along the curve."""
    sums, squares = placed.near_one().weights_around(decision.beyond)
    tied = 0.0 if decision.tied is None else decision.tied
    ones = jnp.ones_like(decision.estimate)
    shares = jnp.where(decision.some, jnp.stack([ones, tied * ones, 0 * ones]), 1)[:, None]
    totals = jnp.sum(sums, axis=0)
    means = numerics.divide(jnp.sum(shares * sums, axis=0), totals, 0.0)
    of_classes = numerics.divide(jnp.sum(squares * (shares - means) ** 2, axis=0), totals**2, 0.0)
    of_negatives = decision.slope**2 * of_classes[NEGATIVES]
    return Squares(decision.estimate, jnp.stack([of_negatives, of_classes[POSITIVES]]))


class _OfRange(NamedTuple):
    """What the positives of a range add to the slopes of other items, `[classes]`.

    Attributes:
      of_higher: to those of items with higher scores.
      begin_above: what of that is no part of the slopes of items that tie with the first of them.
      end_not_below: to the slopes of items that tie with the last of them.
    """

    of_higher: Array
    begin_above: Array
    end_not_below: Array


def _squares_of_ranges(placed: OnMesh, value_of: MetricOf, numbers: Totals) -> Squares:
    axis_name = placed.axis_name
    n_devices, here = size_of(axis_name), lax.axis_index(axis_name).astype(jnp.int32)
    totals = Totals(placed.total_negatives, placed.total_positives)
    dealt, rounds = placed.in_ranges()

    def of_range(number: Array) -> tuple[InRange, OfPositives]:
        groups = placed.groups_of(dealt, number)
        return groups, of_positives(groups, groups.positives, value_of, totals)

    def added(number: Array) -> tuple[tuple[Array, ...], _OfRange]:
        groups, found = of_range(number)
        items = groups.items
        begin, end = (items.keys == x for x in items.bounds)

        def at(which: Array, x: Array) -> Array:
            return jnp.sum(jnp.where(which, x, 0), axis=-1)

        ends = at(begin, found.above), at(end, found.not_below)
        ranges = _OfRange(jnp.sum(found.of_higher, axis=-1), *ends)
        return (found.value, found.slopes, found.in_totals), ranges

    sums, of_rounds = lax.map(added, rounds)
    value, all_slopes, in_totals = (sum_over(jnp.sum(x, axis=0), axis_name) for x in sums)
    in_totals, means = _totals_and_means(all_slopes, in_totals, totals, numbers, placed.is_weighted)
    ranges = _OfRange(*(_in_order(lax.all_gather(x, axis_name)) for x in of_rounds))
    at_bounds, after = _between_ranges(dealt.bounds, ranges)

    def squares(number: Array) -> Array:
        groups, found = of_range(number)
        items = groups.items
        first = number * n_devices + here
        slopes = sums_below(starts(items.keys), found.above, found.not_below)
        slopes = slopes + after[:, first, None]
        for i in range(2):
            known = at_bounds[:, first + i, None]
            slopes = jnp.where(items.keys == items.bounds[i], known, slopes)
        slopes = of_both(slopes)
        weights = jnp.stack([groups.negatives, groups.positives])
        slopes = slopes.at[POSITIVE].add(found.own) + in_totals[:, None]
        centred = weights * slopes - means[:, None]
        return jnp.sum(jnp.where(weights > 0, centred**2, 0), axis=-1)

    total = sum_over(jnp.sum(lax.map(squares, rounds), axis=0), axis_name)
    return Squares(value_of(totals, lambda _: value), total)


def _totals_and_means(
    slopes: Array, in_totals: Array, totals: Totals, numbers: Totals, is_weighted: bool
) -> tuple[Array, Array]:
    """`[classes]`: what the totals add to the slope of each item, and the mean slopes."""
    if not is_weighted:
        in_totals = jnp.zeros_like(in_totals)  # alike for all items, and so for their mean
    return in_totals, mean_slopes(slopes + in_totals * jnp.stack(totals), numbers)


def _in_order(of_devices: Array) -> Array:
    """`[ranges, ...]` of `[devices, rounds, ...]`: in a round devices come in order of the keys."""
    return jnp.swapaxes(of_devices, 0, 1).reshape(-1, *of_devices.shape[2:])


def _between_ranges(bounds: Array, ranges: _OfRange) -> tuple[Array, Array]:
    """`[classes, ranges + 1]` the slopes of items with the key of each bound, without their own
    part, and `[classes, ranges]` what the positives of the ranges after each one add to them.

    A tie may go on over several ranges, which then begin with the same bound.
    """
    number, begins, ends = jnp.arange(len(bounds) - 1), bounds[:-1], bounds[1:]
    bound = jnp.arange(len(bounds))[:, None]
    from_here = number >= bound
    tie_begins = (from_here & (begins == bounds[:, None]))[..., None]
    tie_ends = (~from_here & (ends == bounds[:, None]))[..., None]
    at_bounds = (
        jnp.where(from_here[..., None], ranges.of_higher, 0)
        - jnp.where(tie_begins, ranges.begin_above, 0)
        + jnp.where(tie_ends, ranges.end_not_below, 0)
    )
    after = jnp.where((number > number[:, None])[..., None], ranges.of_higher, 0)
    return jnp.sum(at_bounds, axis=1).T, jnp.sum(after, axis=1).T


def _squares_of_few(placed: RarePositives, value_of: MetricOf, numbers: Totals) -> Squares:
    totals = Totals(placed.total_negatives, placed.total_positives)
    axis_name, positives = placed.axis_name, placed.positives
    found = of_positives(placed, positives, value_of, totals)
    slopes, in_totals = (sum_over(x, axis_name) for x in (found.slopes, found.in_totals))
    in_totals, means = _totals_and_means(slopes, in_totals, totals, numbers, placed.is_weighted)
    index = jnp.arange(len(placed.keys), dtype=jnp.uint32)
    keys, order = sorting.sort_by_key_and_payload(placed.keys, index)
    above, not_below = (
        sorting.take(gathered(x, axis_name), order) for x in (found.above, found.not_below)
    )
    begins = starts(keys)
    of_tied = of_both(sums_below(begins, above, not_below))

    at_own = so_many_below(keys, placed.own.keys, 0, len(keys))
    own = found.own + of_tied[POSITIVE].at[at_own].get(mode=_IN_BOUNDS) + in_totals[POSITIVE]
    of_own = jnp.sum(jnp.where(positives > 0, positives * own - means[POSITIVE], 0) ** 2)

    # Negatives of a device are alike between the positives, but for their weights.
    places = placed.places_beside(keys)
    of_end = placed.part.ends[NEGATIVES, None]
    least, sums = _sums_of_negatives(placed, jnp.append(places.ravel(), of_end))
    at_above, at_upto = sums[:, :-1].reshape(3, *places.shape).swapaxes(0, 1)
    after = jnp.pad(at_upto, ((0, 0), (1, 0)))

    def squared(slopes: Array, sums: Array) -> Array:
        return _squares_of_alike(slopes + in_totals[NEGATIVE], means[NEGATIVE], least, sums)

    from_here = cumulative.sums_from_the_end(above[NEGATIVE] + not_below[NEGATIVE])
    between = squared(from_here, at_above - after[:, :-1])
    tied = squared(of_tied[NEGATIVE], at_upto - at_above)
    rest = squared(jnp.zeros_like(least), sums[:, -1] - after[:, -1])
    of_negatives = jnp.sum(jnp.where(begins, between + tied, 0)) + rest
    total = sum_over(jnp.stack([of_negatives, of_own]), axis_name)
    return Squares(value_of(totals, lambda _: sum_over(found.value, axis_name)), total)


def _sums_of_negatives(placed: RarePositives, places: Array) -> tuple[Array, Array]:
    """Of negatives: the least weight on all devices; and `[3, ...]` over those of this device that
    are before each place: their number, the sum of (weight - least), and that of its squares."""
    part, unit = placed.part, placed.units[NEGATIVES]
    lowest = smallest_over(unit * part.lowest()[NEGATIVES], placed.axis_name)
    least = jnp.where(jnp.isfinite(lowest), lowest, 0)

    def more(weights: Any) -> Any:
        return unit * weights - least

    terms = (
        lambda weights: jnp.ones_like(weights, jnp.int32),
        more,
        lambda weights: more(weights) ** 2,
    )
    number, *sums = part.sums_of(terms, places, NEGATIVES)
    return least, jnp.stack([number.astype(jnp.float64), *sums])


def _squares_of_alike(slopes: Array, mean: Array, least: Array, sums: Array) -> Array:
    """The sum of (weight slope - mean)^2 over items with the same slope.

    Of equal weights it is a square, and 0 where their slopes are the mean.
    """
    number, more, squares = sums
    of_least = least * slopes - mean
    found: Array = number * of_least**2 + slopes * (2 * of_least * more + slopes * squares)
    return found
