"""Sums of influence over clusters of items, which may depend on each other within a cluster.

Reference: N. A. Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53,
1997.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.order import LEFT_OUT
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import (
    Problems,
    choose_known,
    of_each,
    of_items,
    problems_of,
    slopes_of,
)
from jaxmetrics.inference._intervals.rules import sixth_of_skewness

# The cluster index of each item, from 0, and the number of clusters.
Clusters: TypeAlias = tuple[HostArray, int]


class Sums(NamedTuple):
    """The influence of the clusters, in float64.

    Attributes:
      estimate: `[...]`, the metric.
      of_classes: `[..., 2, clusters]`, of the negatives and of the positives of each cluster,
        centred over the clusters with such items, and times sqrt(K_c / (K_c - 1)) for K_c of them;
        NaN where one cluster has all items of a class.
      mixed: `[...]`, the share of the clusters that have items of both classes.
    """

    estimate: Array
    of_classes: Array
    mixed: Array


def sums_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> Sums:
    """The influence of clusters on a metric."""
    chosen, arrays = choose_known(metric)
    problems, n_rows = problems_of(items, chosen.metric)
    ids, n_clusters = clusters
    return Sums(*_sums(problems, arrays, ids, chosen, n_clusters, n_rows))


def error_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error."""
    sums = sums_of_clusters(metric, items, clusters)
    return sums.estimate, _error_of(sums.of_classes)


def skewness_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> Array:
    """A sixth of the skewness of the estimate."""
    return _skewness_of(sums_of_clusters(metric, items, clusters).of_classes)


@double_program()
def _error_of(of_classes: Array) -> Array:
    return jnp.sqrt(jnp.sum(jnp.sum(of_classes, axis=-2) ** 2, axis=-1))


@double_program()
def _skewness_of(of_classes: Array) -> Array:
    return sixth_of_skewness(jnp.sum(of_classes, axis=-2))


@double_program("chosen", "n_clusters", "n_rows")
def _sums(
    problems: Problems, arrays: Options, ids: Array, chosen: Chosen, n_clusters: int, n_rows: int
) -> tuple[Array, Array, Array]:
    def of_one(problem: Problems, bad: Array) -> tuple[Array, Array, Array]:
        slopes = slopes_of(problem, chosen, arrays, n_rows)
        weighty = of_items([jnp.ones(n_rows)] * 2, problem, n_rows) > 0
        kinds = jnp.full(len(weighty), LEFT_OUT).at[problem.order.item].set(problem.order.kinds)
        at = jnp.where(weighty, kinds, LEFT_OUT).astype(jnp.int32), ids
        shape = LEFT_OUT + 1, n_clusters
        held = jnp.zeros(shape, bool).at[at].set(True)[:LEFT_OUT]
        k = jnp.sum(held, axis=1, keepdims=True).astype(jnp.float64)
        scale = jnp.sqrt(numerics.divide(k, jnp.maximum(k - 1, 0), jnp.nan))

        def of_value(estimate: Array, negatives: Array, positives: Array) -> tuple[Array, Array]:
            by_item = of_items([negatives, positives], problem, n_rows)
            sums = jnp.zeros(shape).at[at].add(by_item)[:LEFT_OUT]
            mean = numerics.divide(jnp.sum(sums, axis=1, keepdims=True), k, 0.0)
            estimate = jnp.where(bad[0], jnp.nan, estimate)
            return estimate, jnp.where(held, scale * (sums - mean), 0) + 0 * estimate

        of_values = numerics.over_batch(of_value, slopes.estimate.ndim)
        estimate, of_classes = of_values(slopes.estimate, *slopes.raw)
        mixed = jnp.sum(held[0] & held[1]) / jnp.sum(held[0] | held[1])
        return estimate, of_classes, jnp.broadcast_to(mixed, estimate.shape)

    result: tuple[Array, Array, Array] = of_each(of_one, problems)
    return result
