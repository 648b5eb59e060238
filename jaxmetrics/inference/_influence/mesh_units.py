"""Slopes of a metric in the weights of the items of each device of a mesh, within `shard_map`.

A device finds the slopes of the ranges that it receives, up to what the ranges of others add, and
sends them back the way that the items came. Where few positives travel instead, it finds the slopes
of its own items.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import cumulative, varying
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES
from jaxmetrics._base.key_ranges import dealt_back, sent_back
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array
from jaxmetrics._roc.mesh_placements import OnMesh
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics.inference._influence.gradient import as_given
from jaxmetrics.inference._influence.mesh_slopes import (
    OfRange,
    Ranges,
    of_range,
    slopes_of_few,
    within_range,
)
from jaxmetrics.inference._influence.sums_over_positives import MetricOf, Totals


def units_of(
    placed: OnMesh | RarePositives, value_of: MetricOf, counts: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The value of a metric, and weight * slope of the items `[n]` of the device, centred by class.

    It is 0 for items without weight. The placements must be indexed. `counts` are the numbers of
    negatives and of positives with a weight.
    """
    of_way = _of_ranges if isinstance(placed, OnMesh) else _of_few
    estimate, in_order = of_way(placed.near_one(together=True), value_of, Totals(*counts))
    return estimate, as_given(in_order, placed.part.index)


def _of_ranges(placed: Any, value_of: MetricOf, numbers: Totals) -> tuple[Array, Array]:
    ranges, part = Ranges.of(placed, value_of), placed.part

    def with_range(of_dealt: Array, number: Array) -> tuple[Array, OfRange]:
        groups = placed.groups_of(ranges.dealt, number)
        found, items = ranges.terms(groups), groups.items
        slopes, _ = within_range(groups, found)
        slopes = jnp.where(items.kinds == SORTED_POSITIVES, slopes[POSITIVE], slopes[NEGATIVE])
        of_dealt = sent_back(of_dealt, slopes, items, placed.axis_name)
        return of_dealt, of_range(groups, found)

    none = jnp.zeros(ranges.dealt.keys.shape)
    of_dealt, of_rounds = varying.scan(with_range, none, ranges.rounds)
    others = ranges.of_others(of_rounds, numbers)
    slopes = dealt_back(of_dealt, len(part.keys), placed.axis_name)

    is_positive, number = _last_bounds(part, ranges.dealt.bounds)
    at_bound = part.keys == entries_at(ranges.dealt.bounds, number)

    def of_own_class(of_bounds: Array) -> Array:
        of_negative, of_positive = (x.at[number].get(mode="clip") for x in of_bounds)
        return jnp.where(is_positive, of_positive, of_negative)

    added = jnp.where(at_bound, of_own_class(others.at_bounds), of_own_class(others.after))
    means = jnp.where(is_positive, others.means[POSITIVE], others.means[NEGATIVE])
    return others.estimate, _centred(_weights(placed), slopes + added, means)


def _last_bounds(part: Any, bounds: Array) -> tuple[Array, Array]:
    """For each sorted item `[n]`: is it positive, and which is the last bound not above its key."""
    n, n_bounds = len(part.keys), len(bounds) - 1
    begin = jnp.concatenate(
        [part.places(bounds[1:], x) for x in (SORTED_POSITIVES, SORTED_NEGATIVES)]
    )
    begins = jnp.zeros(n + 1, jnp.int32).at[begin].add(1)
    begins = begins.at[part.ends[SORTED_POSITIVES]].add(-n_bounds)  # negatives have the bounds anew
    is_positive = jnp.arange(n, dtype=jnp.int32) < part.ends[SORTED_POSITIVES]
    return is_positive, cumulative.running_count(begins)[:-1]


def _of_few(placed: Any, value_of: MetricOf, numbers: Totals) -> tuple[Array, Array]:
    found, n = slopes_of_few(placed, value_of, numbers), len(placed.part.keys)
    above, upto = placed.places_beside(found.keys)
    place = jnp.arange(n, dtype=jnp.int32)
    # How many positives are before each place: the next one, if any, is the first of its tie.
    number = cumulative.running_count(jnp.zeros(n + 1, jnp.int32).at[upto].add(1))[:-1]

    def at_next(of_positives: Array) -> Array:
        return of_positives.at[number].get(mode="clip")

    is_tied = (number < len(found.keys)) & (at_next(above) <= place)
    slopes = jnp.where(is_tied, at_next(found.tied), at_next(found.between))
    weights = jnp.where(place < placed.part.ends[SORTED_POSITIVES], 0, _weights(placed))
    of_negatives = _centred(weights, slopes, found.mean)
    return found.estimate, of_negatives.at[: len(found.own)].add(found.own)


def _weights(placed: Any) -> Array:
    """The weights `[n]` of the sorted items of this device; 0 for what is left out."""
    part, place = placed.part, jnp.arange(len(placed.part.keys), dtype=jnp.int32)
    weights: Any = 1.0
    if placed.is_weighted:
        units = jnp.where(place < part.ends[SORTED_POSITIVES], *placed.units)
        weights = units * part.of_items
    return jnp.where(place < part.ends[SORTED_NEGATIVES], weights, 0)


def _centred(weights: Array, slopes: Array, means: Array) -> Array:
    return jnp.where(weights > 0, weights * slopes - means, 0)
