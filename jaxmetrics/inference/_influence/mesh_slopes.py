"""What positives add to the slopes of a metric, of items that the devices of a mesh hold in parts.

The metric is affine in one sum over positives, and the slope in the weight of an item is a sum over
the positives below it. A device has the positives of the ranges that it receives, and devices tell
each other what those of each range add. Where few positives travel instead, each device has all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import cumulative, sorting
from jaxmetrics._base.key_ranges import Dealt
from jaxmetrics._base.parts import gathered, so_many_below, sum_over
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.mesh_ranges import InRange
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
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


class OfRange(NamedTuple):
    """What the positives of a range add to the metric and to slopes, `[classes]`.

    Attributes:
      value: to the metric's sum over positives.
      slopes: to the sum of the slopes of all items.
      in_totals: to the slopes in the totals of the classes.
      of_higher: to the slope of an item with a higher score.
      begin_above: the part of that which an item at the range's first bound lacks, as it ties with
        the positives there.
      end_not_below: what the positives at the next range's bound add to the slope of an item there.
    """

    value: Array
    slopes: Array
    in_totals: Array
    of_higher: Array
    begin_above: Array
    end_not_below: Array


class OfOthers(NamedTuple):
    """The value of a metric, and what other ranges add to the slopes of the items of a range.

    Attributes:
      estimate: the value.
      at_bounds: `[classes, ranges + 1]`, added for an item with the key of a bound.
      after: `[classes, ranges]`, added for any other item of a range.
      means: `[classes]`, the mean of weight * slope.
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
        return cls(placed, value_of, totals, *placed.in_ranges)

    def terms(self, groups: InRange) -> OfPositives:
        """What the positives of a range add."""
        return of_positives(groups, groups.positives, self.value_of, self.totals)

    def of_others(self, of_rounds: OfRange, numbers: Totals) -> OfOthers:
        """From what the ranges of this device add; `numbers` of all items have a weight."""
        axis_name = self.placed.axis_name
        value, slopes, in_totals = (sum_over(jnp.sum(x, axis=0), axis_name) for x in of_rounds[:3])
        is_weighted = self.placed.is_weighted
        in_totals, means = _totals_and_means(slopes, in_totals, self.totals, numbers, is_weighted)
        beyond = (_in_order(lax.all_gather(x, axis_name)) for x in of_rounds[3:])
        of_higher = _between_ranges(self.dealt.bounds, *beyond)
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
    """The slopes of the items of a range, `[classes, m]`, without what other ranges add.

    Also which items have the key of its first and of its last bound, `[2, m]`. The slopes of these
    have a positive's own term alone: `OfOthers.at_bounds` has all else.
    """
    keys, bounds = groups.items.keys, groups.items.bounds
    at_bounds = keys == bounds[:, None]
    sums = of_both(sums_below(starts(keys), found.above, found.not_below))
    slopes = jnp.where(jnp.any(at_bounds, axis=0), 0, sums)
    return slopes.at[POSITIVE].add(found.own), at_bounds


class OfFew(NamedTuple):
    """The value of a metric, and the slopes where few positives travel.

    Attributes:
      estimate: the value.
      own: `[room]`, weight * slope of each positive of this device, centred.
      keys: `[m]`, of the positives of all devices, ascending.
      begins: `[m]`, whether a tie of positives begins.
      tied: `[m]`, the slope of a negative that ties with each of these.
      between: `[m + 1]`, the slope of a negative above each of these, and below all.
      mean: the mean weight * slope of the negatives.
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
    own = found.own + sorting.entries_at(tied[POSITIVE], at_own) + in_totals[POSITIVE]
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
        in_totals = jnp.zeros_like(in_totals)  # the same for all items, so centring removes it
    return in_totals, mean_slopes(slopes + in_totals * jnp.stack(totals), numbers)


def _in_order(of_devices: Array) -> Array:
    """`[ranges, ...]` from `[devices, rounds, ...]`: a round has its devices in order of keys."""
    return jnp.swapaxes(of_devices, 0, 1).reshape(-1, *of_devices.shape[2:])


def _between_ranges(
    bounds: Array, of_higher: Array, begin_above: Array, end_not_below: Array
) -> tuple[Array, Array]:
    """The slopes at the bounds, `[classes, ranges + 1]`, and what later ranges add to each range.

    The first are slopes of items with the key of a bound, less the part of a positive's own term.
    The second, `[classes, ranges]`, is what the positives of all ranges after a range add to the
    slopes of its items. A tie may span several ranges, which then begin with the same bound.
    """
    number, begins, ends = jnp.arange(len(bounds) - 1), bounds[:-1], bounds[1:]
    bound = jnp.arange(len(bounds))[:, None]
    from_here = number >= bound
    tie_begins = (from_here & (begins == bounds[:, None]))[..., None]
    tie_ends = (~from_here & (ends == bounds[:, None]))[..., None]
    at_bounds = (
        jnp.where(from_here[..., None], of_higher, 0)
        - jnp.where(tie_begins, begin_above, 0)
        + jnp.where(tie_ends, end_not_below, 0)
    )
    after = jnp.where((number > number[:, None])[..., None], of_higher, 0)
    return jnp.sum(at_bounds, axis=1).T, jnp.sum(after, axis=1).T
