"""Influence values of items, and the moments of a metric that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program, library_program
from jaxmetrics._base.host import at_hand
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE, Ordered
from jaxmetrics._roc.placements import OfTable
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import (
    Problems,
    as_given,
    by_row,
    choose_known,
    counts_of,
    of_each,
    of_items,
    problems_of,
    problems_without_rows,
    slopes_of,
    sorted_now,
    weights_by_kind,
)
from jaxmetrics.inference._influence.host_slopes import moments_on_host, units_on_host
from jaxmetrics.inference._influence.on_mesh import moments_on_mesh
from jaxmetrics.inference._influence.sums_over_positives import (
    is_sum_over_positives,
    slopes_in_order,
)
from jaxmetrics.inference._intervals.effective import spread_of_products
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.rules import (
    Moments,
    sixth_of_skewness,
    standard_error,
    unless_one,
)


def moments_of(
    metric: MetricLike, items: Items, level: Any = None, axis_name: AxisName = None
) -> tuple[Moments, Any]:
    """The moments of a metric, and the numbers of its closed form at this level, in float64.

    Without a level, these are None: they take further sums over the items.
    """
    at = None if level is None else np.float64(level)
    if axis_name is not None:
        return moments_on_mesh(metric, items, axis_name, at)
    chosen, arrays = choose_known(metric)
    found = moments_on_host(chosen, items, arrays, at)
    if found is not None:
        return found
    if is_sum_over_positives(chosen, items):
        return _moments_in_order(*sorted_now(items), arrays, at, chosen)
    problems, n_rows = problems_of(items, chosen.metric)
    return _moments(problems, arrays, at, chosen, n_rows)


def error_of_items(metric: MetricLike, items: Items, axis_name: AxisName) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error, in float64 whatever the x64 mode."""
    moments, _ = moments_of(metric, items, axis_name=axis_name)
    return moments.estimate, _error_of(moments)


def errors_of_items(metric: MetricLike, items: Items) -> tuple[Array, Array]:
    """The metric `[..., models]`, and numbers `[..., models, n]` of the items.

    The products of two models' numbers, summed over a class, are its part of their covariance.
    """
    return _by_item(metric, items, _errors)


def acceleration(metric: MetricLike, items: Items) -> Array:
    """(1/6) S3 / S2^1.5 with S_k = sum over classes of sum phi^k / n_c^k, in float64."""
    return _skewness_of(*at_hand(_by_item(metric, items, _contributions)[1]))


def influence_values(metric: MetricLike, items: Items) -> Array:
    """The influence values of the items, `[..., n]`, in float64 whatever the x64 mode."""
    chosen, arrays = choose_known(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    return _by_item(metric, items, _influences)[1]


def derivatives_of_items(metric: MetricLike, items: Items) -> tuple[Array, Array]:
    """The metric `[...]`, and `[..., n]` w_i d metric / d w_i of the items, in float64."""
    return _by_item(metric, items, _derivatives)


def _by_item(metric: MetricLike, items: Items, of_item: OfItem) -> tuple[Array, Array]:
    """The metric, and `of_item` of the items `[..., n]`."""
    chosen, arrays = choose_known(metric)
    found = None
    if not any(np.ndim(x) for x in arrays.values()):  # the metric has one value
        found = units_on_host(chosen, items, arrays, of_item)
    if found is not None:
        return found
    if is_sum_over_positives(chosen, items):
        return _units_in_order(*sorted_now(items), arrays, chosen, of_item, items.scores.shape[-1])
    problems, n_rows = problems_of(items, chosen.metric)
    return _item_units(problems, arrays, chosen, of_item, items.scores.shape[-1], n_rows)


_error_of = library_program()(standard_error)
_skewness_of = library_program()(sixth_of_skewness)


@double_program("chosen", "n_rows")
def _moments(
    problems: Problems, arrays: Options, level: Array | None, chosen: Chosen, n_rows: int
) -> tuple[Moments, Any]:
    def of_one(problem: Problems, bad: Array) -> tuple[Moments, Any]:
        weights = weights_by_kind(problem.items, problem.order)
        slopes = slopes_of(problem, chosen, arrays, n_rows)

        def of_class(kind: int) -> tuple[Array, Array]:
            n, weight = counts_of(problem)[kind], weights[kind].astype(jnp.float64)
            unit = numerics.power_near(jnp.max(weight))  # keeps squares from overflowing
            weight, slope = weight / unit, slopes.centred[kind] * unit
            squares = by_row(weight**2, problem.rows, n_rows)
            whole, total = jnp.sum(weight), jnp.sum(squares)
            size = numerics.divide(whole**2, total, 0.0)
            unbiased = numerics.divide(n, n - 1, 0.0)
            spread = jnp.sum(squares * slope**2, axis=-1)
            if problem.items.weights is not None:
                mean = slopes.means[kind][..., 0] * unit
                powers = total, jnp.sum(squares * slope, axis=-1), spread
                spread = spread_of_products(powers, mean, whole, n)
            return unless_one(size * unbiased * spread, n), size

        variances, sizes = zip(of_class(NEGATIVE), of_class(POSITIVE), strict=True)
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        moments = Moments(estimate, variances, sizes)
        return _with_numbers(moments, OfTable(slopes.table), level, chosen, chosen.options(arrays))

    return of_each(of_one, problems)


@double_program("chosen")
def _moments_in_order(
    items: Items, order: Ordered | None, arrays: Options, level: Array | None, chosen: Chosen
) -> tuple[Moments, Any]:
    def of_one(problem: Problems, bad: Array) -> tuple[Moments, Any]:
        found = slopes_in_order(problem.order, chosen, arrays)
        sizes = found.placed.total_negatives, found.placed.total_positives

        def variance(kind: int) -> Array:
            n, of_class = sizes[kind], problem.order.kinds == kind
            squares = jnp.sum(jnp.where(of_class, found.centred[kind] ** 2, 0), axis=-1)
            return unless_one(n * numerics.divide(n, n - 1, 0.0) * squares, n)

        estimate = jnp.where(bad[0], jnp.nan, found.estimate)
        moments = Moments(estimate, (variance(NEGATIVE), variance(POSITIVE)), sizes)
        return _with_numbers(moments, found.placed, level, chosen, chosen.options(arrays))

    return of_each(of_one, problems_without_rows(items, order))


def _with_numbers(
    moments: Moments, placed: Any, level: Array | None, chosen: Chosen, options: Options
) -> tuple[Moments, Any]:
    """Moments of each value, and the numbers of the closed form."""
    numbers = error_bars_of(chosen.metric).numbers_at(placed, moments.sizes, level, options)
    return moments.of_each_value(), numbers


# For the rows of a class, the factor of an item's weight, and the number to subtract from their
# product, or None. Takes `centred` and `mean` of the slopes, the number n of items of the class,
# and `each`, the mean weight of an item, or None without weights.
OfItem = Callable[[Array, Array, Array, Any], tuple[Array, Any]]


def _influences(centred: Array, mean: Array, n: Array, each: Any) -> tuple[Array, Any]:
    return n * centred, None


def _contributions(centred: Array, mean: Array, n: Array, each: Any) -> tuple[Array, Any]:
    """The products less their mean over the items: weights are random, as the scores are."""
    return (centred, None) if each is None else (centred + mean, mean * each)


def _derivatives(centred: Array, mean: Array, n: Array, each: Any) -> tuple[Array, Any]:
    return centred + mean, None


def _errors(centred: Array, mean: Array, n: Array, each: Any) -> tuple[Array, Any]:
    scale: Array = numerics.namespace(n).sqrt(numerics.divide(n, n - 1, 0.0))
    slope, less = _contributions(centred, mean, n, each)
    return unless_one(scale * slope, n), None if less is None else scale * less


@double_program("chosen", "of_item", "n_units", "n_rows")
def _item_units(
    problems: Problems,
    arrays: Options,
    chosen: Chosen,
    of_item: OfItem,
    n_units: int,
    n_rows: int,
) -> tuple[Array, Array]:
    def of_one(problem: Problems, bad: Array) -> tuple[Array, Array]:
        slopes = slopes_of(problem, chosen, arrays, n_rows)
        counts = counts_of(problem)
        each: Any = None, None
        if problem.items.weights is not None:
            weights = weights_by_kind(problem.items, problem.order)
            totals = jnp.stack([jnp.sum(x) for x in weights])
            each = numerics.divide(totals, counts, 0.0)
        given = zip(slopes.centred, slopes.means, counts, each, strict=True)
        by_class = [of_item(*of_class) for of_class in given]
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        of_values = numerics.over_batch(
            lambda by_class: of_items(by_class, problem, n_rows)[:n_units], estimate.ndim
        )
        return estimate, of_values(by_class) + 0 * estimate[..., None]

    return of_each(of_one, problems)


@double_program("chosen", "of_item", "n_units")
def _units_in_order(
    items: Items,
    order: Ordered | None,
    arrays: Options,
    chosen: Chosen,
    of_item: OfItem,
    n_units: int,
) -> tuple[Array, Array]:
    def of_one(problem: Problems, bad: Array) -> tuple[Array, Array]:
        found, kinds = slopes_in_order(problem.order, chosen, arrays), problem.order.kinds
        sizes = found.placed.total_negatives, found.placed.total_positives
        given = zip(found.centred, found.means, sizes, strict=True)
        negatives, positives = (of_item(*of_class, None)[0] for of_class in given)
        units = jnp.where(kinds == POSITIVE, positives, jnp.where(kinds == NEGATIVE, negatives, 0))
        estimate = jnp.where(bad[0], jnp.nan, found.estimate)
        return estimate, as_given(units, problem.order.item)[:n_units] + 0 * estimate

    return of_each(of_one, problems_without_rows(items, order))
