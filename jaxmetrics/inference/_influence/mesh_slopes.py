"""What positives add to the slopes of a metric in the weights of items in parts of a mesh.

The metric is affine in one sum over positives. The slope of an item is a sum over the positives
below it. In a range of the scores, a device has those of the range, and all devices tell each other
what the positives of each range add. Where few positives travel instead, each device has all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import cumulative, sorting
from jaxmetrics._base.key_ranges import Dealt
from jaxmetrics._base.parts import gathered, so_many_below, sum_over
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

_IN_BOUNDS = "promise_in_bounds"


class OfRange(NamedTuple):
    """What the positives of a range add, `[classes]`, to the metric and to slopes.

    Attributes:
      value: to the sum over positives.
      slopes: to the sum of the slopes of all items.
      in_totals: to the slopes in the totals.
      of_higher: to the slopes of items with higher scores.
      begin_above: what of that is no part of the slopes of items that tie with the first of them.
      end_not_below: to the slopes of items that tie with the last of them.
    """

    value: Array
    slopes: Array
    in_totals: Array
    of_higher: Array
    begin_above: Array
    end_not_below: Array


class OfOthers(NamedTuple):
    """The value of a metric, and what the slope of an item has beyond its own range, by class.

    Attributes:
      estimate: the value.
      at_bounds: `[classes, ranges + 1]`, what is added for an item with the key of a bound.
      after: `[classes, ranges]`, what is added for any other item of a range.
      means: `[classes]`, of the weight times the slope.
    """

    estimate: Array
    at_bounds: Array
    after: Array
    means: Array


@dataclass(frozen=True)
class Ranges:
    """The ranges of the scores that this device receives in rounds.

    Attributes:
      placed: the items of all devices.
      value_of: the value of the metric.
      totals: the weights of all items.
      dealt: the items that the device was dealt.
      rounds: the numbers of the rounds.
    """

    placed: OnMesh
    value_of: MetricOf
    totals: Totals
    dealt: Dealt
    rounds: Array

    @classmethod
    def of(cls, placed: OnMesh, value_of: MetricOf) -> Ranges:
        totals = Totals(placed.total_negatives, placed.total_positives)
        return cls(placed, value_of, totals, *placed.in_ranges())

    def terms(self, number: Array) -> tuple[InRange, OfPositives]:
        """Of the range of a round: the items, and what its positives add."""
        groups = self.placed.groups_of(self.dealt, number)
        return groups, of_positives(groups, groups.positives, self.value_of, self.totals)

    def of_others(self, of_rounds: OfRange, numbers: Totals) -> OfOthers:
        """From what the ranges of all rounds add; `numbers` of items have a weight."""
        axis_name = self.placed.axis_name
        value, slopes, in_totals = (sum_over(jnp.sum(x, axis=0), axis_name) for x in of_rounds[:3])
        is_weighted = self.placed.is_weighted
        in_totals, means = _totals_and_means(slopes, in_totals, self.totals, numbers, is_weighted)
        ranges = OfRange(*(_in_order(lax.all_gather(x, axis_name)) for x in of_rounds))
        of_higher = _between_ranges(self.dealt.bounds, ranges)
        at_bounds, after = (of_both(x) + in_totals[:, None] for x in of_higher)
        return OfOthers(self.value_of(self.totals, lambda _: value), at_bounds, after, means)


def of_range(groups: InRange, found: OfPositives) -> OfRange:
    """What the positives of a range add."""

    def at(bound: Array, x: Array) -> Array:
        return jnp.sum(jnp.where(groups.items.keys == bound, x, 0), axis=-1)

    first, last = groups.items.bounds
    of_higher = jnp.sum(found.of_higher, axis=-1)
    ends = at(first, found.above), at(last, found.not_below)
    return OfRange(found.value, found.slopes, found.in_totals, of_higher, *ends)


def within_range(groups: InRange, found: OfPositives) -> tuple[Array, Array]:
    """`[classes, m]` what the positives of a range add to the slopes of its items; and which of
    these have the key of a bound: to them a positive adds only its own part."""
    keys, bounds = groups.items.keys, groups.items.bounds
    at_bounds = keys == bounds[:, None]
    sums = of_both(sums_below(starts(keys), found.above, found.not_below))
    slopes = jnp.where(jnp.any(at_bounds, axis=0), 0, sums)
    return slopes.at[POSITIVE].add(found.own), at_bounds


class OfFew(NamedTuple):
    """The value of a metric, and the slopes where few positives travel.

    Attributes:
      estimate: the value.
      own: `[room]`, for each positive of this device its weight times its slope, less the mean.
      keys: `[m]`, of the positives of all devices, ascending.
      begins: `[m]`, whether a tie of positives begins.
      tied: `[m]`, the slope of a negative that ties with each of these.
      between: `[m + 1]`, the slope of a negative above each of these, and below all.
      mean: of the negatives, the weight times the slope.
    """

    estimate: Array
    own: Array
    keys: Array
    begins: Array
    tied: Array
    between: Array
    mean: Array


def slopes_of_few(placed: RarePositives, value_of: MetricOf, numbers: Totals) -> OfFew:
    """`numbers` are those of the items with a weight."""
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
    tied = of_both(sums_below(begins, above, not_below))

    at_own = so_many_below(keys, placed.own.keys, 0, len(keys))
    own = found.own + tied[POSITIVE].at[at_own].get(mode=_IN_BOUNDS) + in_totals[POSITIVE]
    centred = jnp.where(positives > 0, positives * own - means[POSITIVE], 0)
    between = cumulative.sums_from_the_end(above[NEGATIVE] + not_below[NEGATIVE])
    estimate = value_of(totals, lambda _: sum_over(found.value, axis_name))
    tied, between = (x + in_totals[NEGATIVE] for x in (tied[NEGATIVE], jnp.append(between, 0)))
    return OfFew(estimate, centred, keys, begins, tied, between, means[NEGATIVE])


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


def _between_ranges(bounds: Array, ranges: OfRange) -> tuple[Array, Array]:
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
