"""Slopes of a metric that is affine in one sum over positives.

Each term of the sum is a function of how many items are above a positive, and not below it. One
more item changes the terms of the positives with lower scores, and of those that tie with it. So
the slope in the weight of an item is a running sum over the positives, which needs no score table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import cumulative, numerics, varying
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.in_order import NegativesFirst
from jaxmetrics._roc.order import NEGATIVE, POSITIVE, Ordered
from jaxmetrics._roc.placements import Groups
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics._roc.table import SortedItems
from jaxmetrics.inference._influence.host_slopes import GroupsOfPositives
from jaxmetrics.inference._intervals.metrics import error_bars_of

Summed = Callable[[Callable[[Groups], Any]], Any]
# The value of a metric, from the total weights of both classes and from its sum over positives.
MetricOf = Callable[["Totals", Summed], Array]


class Totals(NamedTuple):
    """The numbers of items of all devices, or their weights."""

    negatives: Array
    positives: Array


@dataclass(frozen=True)
class Totalled:
    """Placements of which only totals and one sum over positives are known."""

    total_negatives: Array
    total_positives: Array
    of_sum: Summed
    library = jnp

    def near_one(self, *, together: bool = False) -> Totalled:
        return self

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        return self.of_sum(function)


class OfPositives(NamedTuple):
    """What positives `[m]` add to a metric, and to the slopes of items.

    Attributes:
      value: their part of the sum over positives.
      own: `[m]`, what the term of each positive adds to the slope in its own weight.
      above: `[classes, m]`, the slope of each term in the number of items above the positive, by
        the class of these items: negatives and, if the terms depend on them, positives.
      not_below: likewise, in the number of items above the positive or tied with it.
      slopes: `[classes]`, what they add to the sum of weight * slope over the items of a class.
      in_totals: `[classes]`, the slopes in the totals, of a metric of these positives alone.
    """

    value: Array
    own: Array
    above: Array
    not_below: Array
    slopes: Array
    in_totals: Array

    @property
    def of_higher(self) -> Array:
        """`[classes, m]`, their part of the slope of each item with a higher score."""
        return self.above + self.not_below


class SlopesInOrder(NamedTuple):
    """The slopes of a metric in the weights of items `[n]`, in order of decreasing score.

    Attributes:
      placed: the placements, of which totals and one sum are known.
      estimate: the value of the metric.
      centred: for NEGATIVE and POSITIVE, the slope in the weight of an item of the class, with the
        total weight of the class held fixed. Of items of the other class it means nothing.
      means: what to add to `centred` for the slopes where that total moves, too.
    """

    placed: Totalled
    estimate: Array
    centred: tuple[Array, Array]
    means: Array


def is_sum_over_positives(chosen: Chosen, items: Items) -> bool:
    """Whether the metric of these items is one of those whose slopes are found here."""
    counted = items.weights is None and items.amounts is None
    return counted and chosen.metric.on_mesh and error_bars_of(chosen.metric).decision is None


def metric_of(chosen: Chosen, options: Options) -> MetricOf:
    """The value of a metric from totals and a sum."""

    def value_of(totals: Totals, of_sum: Summed) -> Array:
        of_placements: Any = chosen.metric.of_placements
        value = of_placements(Totalled(*totals, of_sum), **options)
        chosen.refuse_shapes(value)
        return jnp.asarray(value, jnp.float64)

    return value_of


def slopes_in_order(order: Ordered, chosen: Chosen, arrays: Options) -> SlopesInOrder:
    """The slopes of items `[n]`."""
    classes = [(order.kinds == x).astype(jnp.int32) for x in (NEGATIVE, POSITIVE)]
    negatives, positives = classes
    totals = Totals(*(jnp.sum(x).astype(jnp.float64) for x in classes))
    begins = starts(order.keys)
    items = SortedItems(begins, positives, negatives)
    groups = NegativesFirst(items, totals.negatives)
    value_of = metric_of(chosen, chosen.options(arrays))
    found = of_positives(groups, positives, value_of, totals)
    means = mean_slopes(found.slopes, totals)
    of_negatives, *of_others = sums_below(begins, found.above, found.not_below)
    of_each_positive = sum(of_others, found.own)
    centred = (
        _centred(of_negatives, means[NEGATIVE], negatives),
        _centred(of_each_positive, means[POSITIVE], positives),
    )
    placed = Totalled(*totals, lambda function: function(groups))
    estimate = value_of(totals, lambda _: found.value)
    return SlopesInOrder(placed, estimate, centred, means + found.in_totals)


def _centred(slopes: Array, mean: Array, of_class: Array) -> Array:
    """The slopes less their mean; 0 if all items of the class have one slope, up to rounding."""
    centred = slopes - mean
    rounding = len(slopes) * np.finfo(np.float64).eps * abs(mean)
    varies = jnp.max(abs(centred) * of_class, initial=0) > rounding
    return jnp.where(varies, centred, 0)


@dataclass(frozen=True)
class _AskedNames:
    """Groups that note the names of the attributes that are read."""

    groups: Groups
    names: set[str]

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self.groups, name)


def _asks_for_positives(groups: Groups, value_of: MetricOf, totals: Totals) -> bool:
    """Whether the terms depend on the numbers of positives, too, whose slopes take more sums."""
    names: set[str] = set()
    value_of(totals, lambda function: function(_AskedNames(groups, names)))
    return bool(names & {"positives_above", "positives_not_below"})


def of_positives(
    groups: Groups, positives: Array, value_of: MetricOf, totals: Totals
) -> OfPositives:
    """What the positives add; a group is one positive, or none where its entry is 0."""
    placements = [groups.above, groups.not_below]
    if _asks_for_positives(groups, value_of, totals):
        placements += [groups.positives_above, groups.positives_not_below]
    columns = jnp.stack([positives.astype(jnp.float64), *placements])

    def value(columns: Array, totals: Totals) -> tuple[Array, Array]:
        found = []

        def of_these(function: Callable[[Groups], Any]) -> Any:
            found.append(function(GroupsOfPositives(columns, jnp.stack(totals[::-1]))))
            return found[0]

        return value_of(totals, of_these), found[0]

    of_metric, pull_back, of_sum = varying.vjp(value, columns, totals, has_aux=True)
    slopes, in_totals = pull_back(jnp.ones_like(of_metric))
    own, *rest = slopes
    above, not_below = jnp.stack(rest[::2]), jnp.stack(rest[1::2])
    of_all_positives, *others = jnp.sum(columns * slopes, axis=-1)
    of_all = jnp.stack([others[0] + others[1], sum(others[2:], of_all_positives)])
    return OfPositives(of_sum, own, above, not_below, of_all, jnp.stack(in_totals))


def sums_below(begins: Array, above: Array, not_below: Array) -> Array:
    """`[..., m]`: at each entry the sum of `above` over those with lower scores, and of `not_below`
    over these and those that tie.

    Scores `[m]` descend; `begins` marks those that differ from the one before.
    """
    first, after = cumulative.runs(begins)

    # Both in one running sum, as each such sum takes seconds to compile for a TPU.
    terms = jnp.stack([above, not_below])
    # The 0 behind the last comes after the sum: with jax 0.12, XLA for GPUs makes a padded sum a
    # window over all items at each item.
    upto = cumulative.sums_from_the_end(terms)
    sums = jnp.append(upto, jnp.zeros_like(upto[..., :1]), axis=-1)
    of_lower, of_tied = (
        x.at[..., index].get(mode="promise_in_bounds")
        for x, index in zip(sums, (after, first), strict=True)
    )
    return of_lower + of_tied


def of_both(of_classes: Array) -> Array:
    """`[2, m]`, with 0 for the positives if no term depends on the numbers of positives."""
    return jnp.pad(of_classes, ((0, 2 - len(of_classes)), (0, 0)))


def mean_slopes(slopes: Array, totals: Totals) -> Array:
    """`[classes]`, the mean slope of the items of each class, from sums of their slopes."""
    return numerics.divide(slopes, jnp.stack(totals), 0.0)
