"""Squared slopes of a metric of unweighted items that the devices of a mesh hold in parts, summed.

The metrics here are affine in one sum over positives, of a function of how many items are above
each and not below. One item more changes it at the positives with lower scores, and at those that
tie. So the slope of an item is a sum over these, and only sums over ranges of the scores travel,
or what few positives add to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.counted_parts import Range, dealt_out, most_rounds, range_of
from jaxmetrics._base.parts import gathered, size_of, so_many_below, sum_over
from jaxmetrics._base.rarer_class import sums_beside, total_of
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_counts import CountedOnMesh, InRange
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics._roc.placements import Groups
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics.inference._influence.host_slopes import GroupsOfPositives

Summed = Callable[[Callable[[Groups], Any]], Any]
# The value of a metric, from the total numbers of both classes, and from its sum over positives.
MetricOf = Callable[["Totals", Summed], Array]
_IN_BOUNDS = "promise_in_bounds"


class Totals(NamedTuple):
    """Numbers of items of all devices."""

    negatives: Array
    positives: Array


class Squares(NamedTuple):
    """The value of a metric, and for each class the sum of the squares of the slopes of its items,
    less their mean."""

    estimate: Array
    of_classes: Array


@dataclass(frozen=True)
class Totalled:
    """Placements of which only totals and one sum over positives are known."""

    total_negatives: Array
    total_positives: Array
    of_sum: Summed
    library = jnp

    def near_one(self, *, together: bool = False) -> Totalled:
        del together
        return self

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        del max_fpr
        return self.of_sum(function)


class _OfPositives(NamedTuple):
    """What positives `[m]` add.

    Attributes:
      value: their part of the sum over positives.
      own: of each its own part of the slope in its weight.
      lower: `[classes, m]`, their part of the slope of each item with a higher score.
      tied: the same of each item that ties.
      slopes: `[classes]`, what they add to the slopes of all items.
    """

    value: Array
    own: Array
    lower: Array
    tied: Array
    slopes: Array


def squares_of(placed: CountedOnMesh | RarePositives, metric_of: MetricOf) -> Squares:
    """Of the items of all devices; the metric has one value."""
    totals = Totals(placed.total_negatives, placed.total_positives)
    if isinstance(placed, CountedOnMesh):
        return _squares_of_ranges(placed, metric_of, totals)
    return _squares_of_few(placed, metric_of, totals)


def _of_positives(
    groups: Groups, positives: Array, metric_of: MetricOf, totals: Totals
) -> _OfPositives:
    columns = jnp.stack(
        [
            positives.astype(jnp.float64),
            *(groups.above, groups.not_below),
            *(groups.positives_above, groups.positives_not_below),
        ]
    )

    def value(columns: Array) -> tuple[Array, Array]:
        found = []

        def of_these(function: Callable[[Groups], Any]) -> Any:
            found.append(function(GroupsOfPositives(columns, jnp.stack(totals[::-1]))))
            return found[0]

        return metric_of(totals, of_these), found[0]

    of_metric, pull_back, of_sum = varying.vjp(value, columns, has_aux=True)
    (slopes,) = pull_back(jnp.ones_like(of_metric))
    own, *rest = slopes
    above, tied = jnp.stack(rest[::2]), jnp.stack(rest[1::2])
    of_positives, *others = jnp.sum(columns * slopes, axis=-1)
    of_all = jnp.stack([others[0] + others[1], of_positives + others[2] + others[3]])
    return _OfPositives(of_sum, own, above + tied, tied, of_all)


def _sums_below(keys: Array, lower: Array, tied: Array) -> Array:
    """`[..., m]`: at each key the sum of `lower` over larger keys, and of `tied` over equal ones.

    Keys `[m]` ascend, as scores descend.
    """
    most, place = len(keys) - 1, jnp.arange(len(keys), dtype=jnp.int32)
    differs = keys[1:] != keys[:-1]
    first = numerics.running_highest(jnp.where(jnp.append(True, differs), place, 0))
    to_end = jnp.where(jnp.append(differs, True), most - place, 0)
    last = most - numerics.running_highest(to_end, reverse=True)
    upto_lower, upto_tied = numerics.cumulated(lower), numerics.cumulated(tied)

    def at(x: Array, index: Array) -> Array:
        return x.at[..., index].get(mode=_IN_BOUNDS)

    ties = at(upto_tied, last) - at(upto_tied, first) + at(tied, first)
    return upto_lower[..., -1:] - at(upto_lower, last) + ties


class _OfRange(NamedTuple):
    """What the positives of a range add to the slopes of other items, `[classes]`: all of them to
    items with higher scores, and those with the keys at its ends."""

    lower: Array
    begin_lower: Array
    begin_tied: Array
    end_tied: Array


def _squares_of_ranges(placed: CountedOnMesh, metric_of: MetricOf, totals: Totals) -> Squares:
    axis_name = placed.axis_name
    n_devices, here = size_of(axis_name), lax.axis_index(axis_name).astype(jnp.int32)
    n_rounds = most_rounds(len(placed.keys), n_devices)
    dealt = dealt_out(placed.keys, placed.ends, axis_name, n_rounds)
    rounds = jnp.arange(n_rounds, dtype=jnp.int32)

    def of_range(number: Array) -> tuple[Range, _OfPositives]:
        items = range_of(dealt, axis_name, number)
        groups = InRange(items, totals.negatives)
        return items, _of_positives(groups, items.kinds == 0, metric_of, totals)

    def added(number: Array) -> tuple[Array, Array, _OfRange]:
        items, found = of_range(number)
        begin, end = (items.keys == x for x in items.bounds)

        def at(which: Array, x: Array) -> Array:
            return jnp.sum(jnp.where(which, x, 0), axis=-1)

        ends = at(begin, found.lower), at(begin, found.tied), at(end, found.tied)
        return found.value, found.slopes, _OfRange(jnp.sum(found.lower, axis=-1), *ends)

    values, slopes, of_rounds = lax.map(added, rounds)
    value, all_slopes = (sum_over(jnp.sum(x, axis=0), axis_name) for x in (values, slopes))
    means = _means(all_slopes, totals)
    ranges = _OfRange(*(_in_order(lax.all_gather(x, axis_name)) for x in of_rounds))
    at_bounds, after = _between_ranges(dealt.bounds, ranges)

    def squares(number: Array) -> Array:
        items, found = of_range(number)
        first = number * n_devices + here
        slopes = _sums_below(items.keys, found.lower, found.tied) + after[:, first, None]
        for i in range(2):
            known = at_bounds[:, first + i, None]
            slopes = jnp.where(items.keys == items.bounds[i], known, slopes)
        of_class = jnp.stack([items.kinds == 1, items.kinds == 0])
        centred = slopes.at[POSITIVE].add(found.own) - means[:, None]
        return jnp.sum(jnp.where(of_class, centred**2, 0), axis=-1)

    total = sum_over(jnp.sum(lax.map(squares, rounds), axis=0), axis_name)
    return Squares(metric_of(totals, lambda _: value), total)


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
        jnp.where(from_here[..., None], ranges.lower, 0)
        + jnp.where(tie_begins, ranges.begin_tied - ranges.begin_lower, 0)
        + jnp.where(tie_ends, ranges.end_tied, 0)
    )
    after = jnp.where((number > number[:, None])[..., None], ranges.lower, 0)
    return jnp.sum(at_bounds, axis=1).T, jnp.sum(after, axis=1).T


def _squares_of_few(placed: RarePositives, metric_of: MetricOf, totals: Totals) -> Squares:
    axis_name, positives = placed.axis_name, placed.own.positives
    found = _of_positives(placed, positives, metric_of, totals)
    means = _means(sum_over(found.slopes, axis_name), totals)
    numbers = jnp.arange(len(placed.keys), dtype=jnp.uint32)
    keys, order = sorting.sort_by_key_and_payload(placed.keys, numbers)
    lower, tied = (sorting.take(gathered(x, axis_name), order) for x in (found.lower, found.tied))
    slopes = _sums_below(keys, lower, tied)

    at_own = so_many_below(keys, placed.own.keys, 0, len(keys))
    own = found.own + slopes[POSITIVE].at[at_own].get(mode=_IN_BOUNDS) - means[POSITIVE]
    of_positives = jnp.sum(positives * own**2)

    # Negatives of a device are alike between the positives.
    above, not_below = sums_beside(placed.items.keys, placed.items.negatives, keys)
    first = jnp.append(True, keys[1:] != keys[:-1])
    between = above - jnp.append(0, not_below[:-1])
    from_here = jnp.sum(lower[NEGATIVE]) - numerics.cumulated(lower[NEGATIVE]) + lower[NEGATIVE]
    mean = means[NEGATIVE]
    squares = (
        between * (from_here - mean) ** 2 + (not_below - above) * (slopes[NEGATIVE] - mean) ** 2
    )
    rest = (total_of(placed.items.negatives) - not_below[-1]) * mean**2
    of_negatives = jnp.sum(jnp.where(first, squares, 0)) + rest
    total = sum_over(jnp.stack([of_negatives, of_positives]), axis_name)
    return Squares(metric_of(totals, lambda _: sum_over(found.value, axis_name)), total)


def _means(slopes: Array, totals: Totals) -> Array:
    return numerics.divide(slopes, jnp.stack(totals), 0.0)
