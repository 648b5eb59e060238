"""Influence values of items or clusters, and their moments and covariances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import double_program, nan_as_value
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import (
    Problems,
    by_row,
    choose_smooth,
    counts_of,
    in_order_weights,
    of_each,
    problems_of,
    slopes_of,
)
from jaxmetrics.inference._influence.host_slopes import moments_on_host, units_on_host
from jaxmetrics.inference._intervals.rules import Moments
from jaxmetrics.inference._intervals.rules import standard_error as standard_error_of

# The cluster index of each item, from 0, and the number of clusters.
Clusters: TypeAlias = tuple[HostArray, int]


def moments_of(
    metric: MetricLike, items: Items, slope_in: str | None = None
) -> tuple[Moments, Array | None]:
    """The moments of a metric, and its derivative with respect to one option, in float64."""
    chosen, arrays = choose_smooth(metric)
    moments = moments_on_host(chosen, items, arrays, slope_in)
    if moments is not None:
        return moments
    problems, n_rows = problems_of(items, chosen.metric)
    return _moments(problems, arrays, chosen, slope_in, n_rows)


def estimate_and_error(
    metric: MetricLike, items: Items, clusters: Clusters | None
) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error, in float64 whatever the x64 mode."""
    if clusters is None:
        moments, _ = moments_of(metric, items)
        on_host = numerics.namespace(*moments.sizes) is np
        return moments.estimate, (standard_error_of if on_host else _error_of)(moments)
    estimate, errors = _by_item(metric, items, _errors, clusters)
    return estimate, _norms(errors)


def estimate_and_covariance(
    metric: MetricLike, items: Items, clusters: Clusters | None
) -> tuple[Array, Array]:
    """The metric `[..., models]` and its covariance, in float64 whatever the x64 mode."""
    estimate, errors = _by_item(metric, items, _errors, clusters)
    return estimate, _products(errors)


def acceleration(metric: MetricLike, items: Items, clusters: Clusters | None) -> Array:
    """(1/6) S3 / S2^1.5 with S_k = sum over classes of sum phi^k / n_c^k, in float64.

    With clusters, the sums are over the contributions of whole clusters.
    """
    return _skewness(_by_item(metric, items, _contributions, clusters)[1])


def influence_values(metric: MetricLike, items: Items) -> Array:
    """`[..., n]`, in float64 whatever the x64 mode."""
    return _by_item(metric, items, _influences)[1]


def _by_item(
    metric: MetricLike,
    items: Items,
    of_item: Callable[..., Array],
    clusters: Clusters | None = None,
) -> tuple[Array, Array]:
    """The metric, and `of_item` of the items `[..., n]`, or of clusters `[..., clusters]`."""
    chosen, arrays = choose_smooth(metric)
    found = None if clusters is not None else units_on_host(chosen, items, arrays, of_item)
    if found is not None:
        return found
    problems, n_rows = problems_of(items, chosen.metric)
    ids, n_units = (None, items.scores.shape[-1]) if clusters is None else clusters
    return _item_units(problems, arrays, ids, chosen, of_item, n_units, n_rows)


@double_program()
def _error_of(moments: Moments) -> Array:
    return standard_error_of(moments)


@double_program()
def _norms(units: Array) -> Array:
    """The Euclidean norm of each row."""
    return jnp.sqrt(jnp.sum(units**2, axis=-1))


@double_program()
def _products(units: Array) -> Array:
    """The inner products of the rows."""
    return units @ jnp.swapaxes(units, -1, -2)


@double_program()
def _skewness(contributions: Array) -> Array:
    squares = jnp.sum(contributions**2, axis=-1)
    return numerics.divide(jnp.sum(contributions**3, axis=-1), squares**1.5, 0.0) / 6


@double_program("chosen", "slope_in", "n_rows")
def _moments(
    problems: Problems,
    arrays: Options,
    chosen: Chosen,
    slope_in: str | None,
    n_rows: int,
) -> tuple[Moments, Array | None]:
    def of_one(problem: Problems, bad: Array) -> tuple[Moments, Array | None]:
        slopes = slopes_of(problem, chosen, arrays, n_rows)
        weights = in_order_weights(problem.items, problem.order)[::-1]

        def of_class(kind: int) -> tuple[Array, Array]:
            n, weight = counts_of(problem)[kind], weights[kind].astype(jnp.float64)
            unit = numerics.power_near(jnp.max(weight))  # of squares that do not overflow
            weight, slope = weight / unit, slopes.centred[kind] * unit
            squares = by_row(weight**2, problem.rows, n_rows)
            size = numerics.divide(jnp.sum(weight) ** 2, jnp.sum(squares), 0.0)
            unbiased = numerics.divide(n, n - 1, jnp.nan)
            return size * unbiased * jnp.sum(squares * slope**2), size

        variances, sizes = zip(of_class(NEGATIVE), of_class(POSITIVE), strict=True)
        slope = None
        if slope_in is not None:

            def value(option: Array) -> Array:
                result: Array = chosen.value(slopes.table, {**arrays, slope_in: option})
                return result

            slope = jax.grad(value)(jnp.asarray(arrays[slope_in], jnp.float64))
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        negatives, positives = (variance + 0 * estimate for variance in variances)
        return Moments(estimate, (negatives, positives), sizes), slope

    result: tuple[Moments, Array | None] = of_each(of_one, problems)
    return result


def _influences(centred: Array, n: Array) -> Array:
    return n * centred


def _contributions(centred: Array, n: Array) -> Array:
    return centred


def _errors(centred: Array, n: Array) -> Array:
    """Values whose squares sum to the variance, and whose products to a covariance of models."""
    scale: Array = numerics.namespace(n).sqrt(numerics.divide(n, n - 1, jnp.nan))
    return scale * centred


@double_program("chosen", "of_item", "n_units", "n_rows")
def _item_units(
    problems: Problems,
    arrays: Options,
    ids: Array | None,
    chosen: Chosen,
    of_item: Callable[[Array, Array], Array],
    n_units: int,
    n_rows: int,
) -> tuple[Array, Array]:
    def of_one(problem: Problems, bad: Array) -> tuple[Array, Array]:
        slopes = slopes_of(problem, chosen, arrays, n_rows)
        order = problem.order
        # Both classes in one table, as each lookup is a slow gather.
        if ids is None:
            by_class = [
                of_item(slope, n)
                for slope, n in zip(slopes.centred, counts_of(problem), strict=True)
            ]
        else:
            by_class = list(slopes.raw)
        at = problem.rows + n_rows * (order.kinds == POSITIVE)
        positives, negatives = in_order_weights(problem.items, order)
        weights = positives + negatives
        units = sorting.take(jnp.concatenate(by_class), at)
        units = jnp.where(weights > 0, weights * units, 0)
        units = (
            jnp.zeros_like(units)
            .at[order.item]
            .set(units, unique_indices=True, mode="promise_in_bounds")
        )
        if ids is not None:
            valid = jnp.zeros(len(units), bool).at[order.item].set(weights > 0)
            units = _cluster_errors(units, ids, n_units, valid)
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        return estimate, units[:n_units] + 0 * estimate

    result: tuple[Array, Array] = of_each(of_one, problems)
    return result


def _cluster_errors(units: Array, ids: Array, n_clusters: int, valid: Array) -> Array:
    """As `_errors`, for clusters."""
    sums = jnp.zeros(n_clusters).at[ids].add(units)
    used = jnp.zeros(n_clusters, bool).at[ids].max(valid)
    k = jnp.sum(used).astype(jnp.float64)
    mean = numerics.divide(jnp.sum(sums), k, 0.0)
    return jnp.where(used, jnp.sqrt(numerics.divide(k, k - 1, jnp.nan)) * (sums - mean), 0)


def as_default(x: Array) -> Array:
    """A double-precision array, traced, NumPy's or not, in JAX's default float."""
    if numerics.namespace(x) is np:
        with nan_as_value():
            return jnp.asarray(np.asarray(x, numerics.default_float()))
    return _rounded(x, numerics.default_float())


@double_program("dtype")
def _rounded(x: Array, dtype: Any) -> Array:
    return x.astype(dtype)
