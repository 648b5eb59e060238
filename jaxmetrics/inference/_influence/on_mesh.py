"""Moments and covariances of a metric of items that the devices of a mesh hold in parts.

Variances are sums over the ranges that devices receive, or over few positives. Covariances need the
slope of each item, which goes back to the device that holds the item.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.by_class import SORTED_NEGATIVES, SORTED_POSITIVES
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.divided import Divided, NotInPartsError, over_parts
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.items import at_least_one, batch_of, class_weights
from jaxmetrics._base.keywords import GATHER
from jaxmetrics._base.parts import AxisName, largest_over, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.mesh_items import undefined_on_mesh, weights_on_mesh
from jaxmetrics._roc.mesh_placements import OnMesh, placements_on_mesh
from jaxmetrics._roc.mesh_ways import Place, by_rarer_class
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import choose_known
from jaxmetrics.inference._influence.mesh_squares import (
    Squares,
    squares_and,
    squares_of_decision,
)
from jaxmetrics.inference._influence.mesh_units import units_of
from jaxmetrics.inference._influence.sums_over_positives import metric_of
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.numbers import Decision, Sizes
from jaxmetrics.inference._intervals.rules import Moments

R = TypeVar("R")


def moments_on_mesh(
    metric: MetricLike, items: Items, axis_name: AxisName, level: np.float64 | None
) -> tuple[Moments, Any]:
    """`moments_of` of the variance, of the items of all devices."""
    chosen, arrays = _chosen(metric, axis_name)
    given = at_least_one(items), arrays, level
    with double_precision():
        return over_parts(_moments, axis_name, given, chosen)


def covariance_on_mesh(metric: MetricLike, items: Items, axis_name: AxisName) -> Array:
    """`[..., models, models]`, in float64 whatever the x64 mode."""
    chosen, arrays = _chosen(metric, axis_name)
    if isinstance(axis_name, Divided) and axis_name.divides_models:
        raise NotInPartsError
    with double_precision():
        given = at_least_one(items), arrays
        return over_parts(_covariance, axis_name, given, chosen)


def axis_of_parts(axis_name: AxisName, *, clusters: Any, resamples: bool = False) -> AxisName:
    """The checked axis name.

    Refuses clusters and resamples, which need more than the items of each device and sums over all.
    """
    if axis_name is not None and (clusters is not None or resamples):
        if isinstance(axis_name, Divided):
            raise NotInPartsError
        what = "clusters" if clusters is not None else "metrics and methods that are resampled"
        raise TypeError(
            f"axis_name is not for {what}: {GATHER}, or leave the sharding of whole arrays to "
            "jax.jit"
        )
    return checks.check_axis_name(axis_name)


def _chosen(metric: MetricLike, axis_name: AxisName) -> tuple[Chosen, Options]:
    chosen, arrays = choose_known(metric)
    if not chosen.metric.on_mesh:
        if isinstance(axis_name, Divided):
            raise NotInPartsError
        raise TypeError(
            f"axis_name is for roc_auc, partial_auc, average_precision and recall_at_fpr, not for "
            f"{chosen.metric.name}: {GATHER}"
        )
    return chosen, arrays


@double_program("axis_name", "chosen")
def _moments(
    items: Items, arrays: Options, level: Array | None, axis_name: AxisName, chosen: Chosen
) -> tuple[Moments, Any]:
    def of_one(items: Items) -> tuple[Moments, Any]:
        one = _OfDevice(items, arrays, chosen, axis_name)

        def of_placed(placed: Any) -> tuple[Sizes, Any]:
            sizes = one.sizes(placed)
            numbers_at = error_bars_of(chosen.metric).numbers_at
            return sizes, numbers_at(placed, sizes, level, chosen.options(arrays))

        (estimate, squares), (sizes, numbers) = one.squares_and(of_placed)
        variances: Any = [
            size * _unbiased(n) * of_class
            for size, n, of_class in zip(sizes, one.counts, squares, strict=True)
        ]
        return Moments(estimate, variances, sizes).of_each_value(), numbers

    return _of_each(of_one, items)


@double_program("axis_name", "chosen")
def _covariance(items: Items, arrays: Options, axis_name: AxisName, chosen: Chosen) -> Array:
    def errors(items: Items) -> Array:
        one = _OfDevice(items, arrays, chosen, axis_name)
        estimate, units = one.estimate_and_units()
        of_negatives, of_positives = (jnp.sqrt(_unbiased(n)) for n in one.counts)
        return units * jnp.where(items.labels == 1, of_positives, of_negatives) + 0 * estimate

    units = _of_each(errors, items)
    return sum_over(units @ jnp.swapaxes(units, -1, -2), axis_name)


def _of_each(function: Callable[[Items], Any], items: Items) -> Any:
    items = jax.tree.map(jnp.asarray, items)
    axes = len(batch_of(items))
    return numerics.over_rows(function, items, axes)


def _unbiased(n: Array) -> Array:
    return numerics.divide(n, n - 1, jnp.nan)


class _OfDevice:
    """The items `[n]` of a device, and the influence of each on the metric of all.

    Attributes:
      counts: the numbers of negatives and of positives with a weight on all devices.
    """

    def __init__(self, items: Items, arrays: Options, chosen: Chosen, axis_name: AxisName) -> None:
        self._items, self._axis_name = items, axis_name
        self._chosen, self._options = chosen, chosen.options(arrays)
        self._decided = error_bars_of(chosen.metric).decision is not None
        self._weights = weights_on_mesh(items)
        positives, negatives = class_weights(items)
        self._classes = negatives, positives
        n_negatives, n_positives = (
            sum_over(number_of(x > 0), axis_name) for x in (negatives, positives)
        )
        self.counts = n_negatives, n_positives

    def estimate_and_units(self) -> tuple[Array, Array]:
        """The metric of all, and `[n]` for the items of the device, 0 without weight.

        An entry is the weight of an item times the derivative in it, centred over its class.
        """

        def of_way(place: Place) -> tuple[Array, Array]:
            placed = place(self._items, self._weights, self._axis_name, indexed=True)
            return units_of(placed, metric_of(self._chosen, self._options), self.counts)

        if self._decided:
            estimate, units = self._units_of_decision()
        else:
            estimate, units = by_rarer_class(of_way, self._items, self._axis_name)
        return self._defined(estimate), units

    def sizes(self, placed: OnMesh | RarePositives) -> Sizes:
        """The effective sizes of the negatives and the positives of all: (sum w)^2 / sum w^2."""
        if self._weights is None:
            return self.counts

        largest = largest_over(placed.part.highest(), self._axis_name)[:, None]

        def share(weights: Array) -> Array:
            # Equal weights become 1, whose sums are exact, and none overflows.
            return numerics.divide(weights.astype(jnp.float64), largest, 0.0)

        totals = [placed.part.totals_of(x) for x in (share, lambda weights: share(weights) ** 2)]
        shares, squares = sum_over(jnp.stack(totals), self._axis_name)
        found = numerics.divide(shares**2, squares, 0.0)
        return found[SORTED_NEGATIVES], found[SORTED_POSITIVES]

    def squares_and(
        self, function: Callable[[Any], tuple[Sizes, Any]]
    ) -> tuple[Squares, tuple[Sizes, Any]]:
        """The Squares of the items of all, and `function` of their placements: sizes and numbers.

        The items are sorted once for both.
        """

        def of_way(place: Place) -> tuple[Squares, tuple[Sizes, Any]]:
            placed = place(self._items, self._weights, self._axis_name)
            value_of = metric_of(self._chosen, self._options)
            return squares_and(placed, value_of, self.counts, function)

        if self._decided:
            of_placed = sizes, numbers = function(self._in_ranges)
            found = squares_of_decision(self._in_ranges, self._decision(sizes, numbers))
        else:
            found, of_placed = by_rarer_class(of_way, self._items, self._axis_name)
        return found._replace(estimate=self._defined(found.estimate)), of_placed

    def _defined(self, estimate: Array) -> Array:
        return jnp.where(undefined_on_mesh(self._items, self._axis_name), jnp.nan, estimate)

    @cached_property
    def _in_ranges(self) -> OnMesh:
        return placements_on_mesh(self._items, self._weights, self._axis_name)

    def _decision(self, sizes: Sizes, numbers: Any = None) -> Decision:
        decide: Any = error_bars_of(self._chosen.metric).decision
        return decide(self._in_ranges, sizes, self._options, numbers)

    def _units_of_decision(self) -> tuple[Array, Array]:
        """`estimate_and_units` of a recall at a threshold."""
        decision = self._decision(self.sizes(self._in_ranges))
        self._chosen.refuse_shapes(decision.estimate)
        flagged = decision.flags(self._items.scores.astype(jnp.float64))
        of_negatives, of_positives = (
            self._shares(flagged, x.astype(jnp.float64)) for x in self._classes
        )
        return decision.estimate, of_positives - decision.slope * of_negatives

    def _shares(self, flagged: Array, weights: Array) -> Array:
        """What each item adds to the share of its class that is flagged, centred."""

        def of_all(of_items: Array) -> Array:
            return sum_over(jnp.sum(of_items, axis=-1), self._axis_name)

        largest = largest_over(jnp.max(weights, axis=-1, initial=0), self._axis_name)
        weights = weights / numerics.power_near(largest)  # keeps sums from overflowing
        total = of_all(weights)
        share = numerics.divide(of_all(weights * flagged), total, 0.0)
        return numerics.divide(weights, total, 0.0) * (flagged - share)
