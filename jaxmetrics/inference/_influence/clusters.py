"""Sums of influence over clusters of items, which may depend on each other within a cluster.

Reference: N. A. Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53,
1997.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import at_hand
from jaxmetrics._base.items import batch_of, class_weights, items_at_hand
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference._influence.gradient import held_where_lost
from jaxmetrics.inference._influence.variance import derivatives_of_items, error_of_items
from jaxmetrics.inference._intervals.clustered import OfClusters, draws_of_clusters
from jaxmetrics.inference._intervals.effective import clusters_of_one_size, kept_and_df, kish
from jaxmetrics.inference._intervals.rules import sixth_of_skewness, unrounded

# The cluster index of each item, from 0, and the number of clusters.
Clusters: TypeAlias = tuple[HostArray, int]


class Sums(NamedTuple):
    """The influence of the clusters, in float64.

    Attributes:
      estimate: `[...]`, the metric.
      of_classes: `[..., 2, clusters]`, the influence of the negatives and of the positives of each
        cluster, centred over the clusters with such items. It is divided by the root of the part
        of the variance that a sum of squares keeps (`kept_and_df`), so that the squares add up to
        the variance. NaN where one cluster has all items of a class.
      mixed: `[...]`, the share of the clusters that have items of both classes, by weight.
      sizes: `[...]` each, the numbers of clusters of one size that have as many degrees of freedom
        as those with negatives, with positives, and all.
    """

    estimate: Array
    of_classes: Array
    mixed: Array
    sizes: tuple[Array, Array, Array]


class Alone(NamedTuple):
    """What clusters are compared with to count them as draws, `[..., 2]`: negatives, positives.

    Attributes:
      variances: what the classes would add to the variance if their items were independent.
      n_items, n_clusters: Kish's sizes of the classes, of items and of clusters.
    """

    variances: Array
    n_items: Array
    n_clusters: Array


def sums_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> Sums:
    """The influence of clusters on a metric."""
    estimate, derivatives = at_hand(*derivatives_of_items(metric, items))
    return _sums(estimate, derivatives, items_at_hand(items), *clusters)


def sums_and_items(metric: MetricLike, items: Items, clusters: Clusters) -> tuple[Sums, Alone]:
    """The influence of clusters, and that of their items."""
    estimate, derivatives = at_hand(*derivatives_of_items(metric, items))
    given = estimate, derivatives, items_at_hand(items), *clusters
    return _sums(*given), _alone(*given)


def estimate_and_error(
    metric: MetricLike, items: Items, clusters: Clusters | None, axis_name: AxisName
) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error, by items or by clusters, in float64."""
    if clusters is None:
        return error_of_items(metric, items, axis_name)
    sums = sums_of_clusters(metric, items, clusters)
    return sums.estimate, _error_of(sums.estimate, sums.of_classes)


def skewness_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> Array:
    """A sixth of the skewness of the estimate."""
    return _skewness_of(sums_of_clusters(metric, items, clusters).of_classes)


@library_program()
def _error_of(estimate: Array, of_classes: Array) -> Array:
    return numerics.root(unrounded(_squares(of_classes)[-1], estimate))


def _squares(of_classes: Array) -> tuple[Array, Array, Array]:
    """The sums of the squares of the negatives, of the positives, and of both together."""
    library, known = numerics.namespace(of_classes), numerics.without_nan(of_classes)
    lost = library.any(library.isnan(of_classes), axis=-1)
    negatives, positives = (
        library.where(lost[..., kind], np.nan, library.sum(known[..., kind, :] ** 2, axis=-1))
        for kind in (NEGATIVE, POSITIVE)
    )
    both = library.sum(library.sum(known, axis=-2) ** 2, axis=-1)
    return negatives, positives, library.where(library.any(lost, axis=-1), np.nan, both)


@library_program()
def _skewness_of(of_classes: Array) -> Array:
    return sixth_of_skewness(numerics.namespace(of_classes).sum(of_classes, axis=-2))


@library_program()
def variances_and_draws(sums: Sums, alone: Alone) -> tuple[OfClusters, tuple[Array, Array]]:
    """The variances by clusters, and the draws of both classes."""
    library = numerics.namespace(sums.of_classes)
    negatives, positives, total = (unrounded(x, sums.estimate) for x in _squares(sums.of_classes))
    found = OfClusters(negatives, positives, total, sums.sizes, sums.mixed)
    variances = unrounded(alone.variances, sums.estimate[..., None])
    by_class = (library.moveaxis(x, -1, 0) for x in alone._replace(variances=variances))
    given = zip((negatives, positives), *by_class, strict=True)
    n0, n1 = (draws_of_clusters(sums.estimate, found.ratio, *x) for x in given)
    return found, (n0, n1)


@library_program("n_clusters")
def _sums(estimate: Array, derivatives: Array, items: Items, ids: Array, n_clusters: int) -> Sums:
    library, derivatives = numerics.namespace(derivatives), numerics.without_nan(derivatives)
    items, of_values = held_where_lost(items), _beside(estimate, items)

    def of_clusters(x: Array) -> Array:
        return numerics.sums_at(ids, x, n_clusters)

    of_items = _weights(items)
    weights = [of_clusters(x) for x in of_items]
    held = [of_values(x > 0) for x in weights]
    both = weights[0] + weights[1]
    mixed = library.sum(library.where(held[0] & held[1], of_values(both), 0.0), axis=-1)
    mixed = mixed / library.sum(of_values(both), axis=-1)
    # In clusters with both classes the two influences may cancel: one part kept serves both.
    together = library.where(mixed > 0, mixed, 0.0)[..., None]
    sums = []
    for weighty, weight, some in zip(of_items, weights, held, strict=True):
        sum_of = of_clusters(library.where(of_values(weighty > 0), derivatives, 0.0))
        kept, of_both = (of_values(_kept(x)) for x in (weight, both))
        blend = library.where(kept > 0, (1 - together) * kept + together * of_both, 0.0)
        found = numerics.divide(_centred(sum_of, some), library.sqrt(blend), np.nan)
        # No cluster tells how a class that is absent varies.
        present = library.any(some, axis=-1, keepdims=True) & ~library.isnan(estimate)[..., None]
        sums.append(library.where(present, library.where(some, found, 0.0), np.nan))
    sizes = (of_values(clusters_of_one_size(x)[..., None])[..., 0] for x in (*weights, both))
    mixed, *counted = (library.broadcast_to(x, estimate.shape) for x in (mixed, *sizes))
    return Sums(estimate, library.stack(sums, axis=-2), mixed, (*counted,))


@library_program("n_clusters")
def _alone(estimate: Array, derivatives: Array, items: Items, ids: Array, n_clusters: int) -> Alone:
    library, derivatives = numerics.namespace(derivatives), numerics.without_nan(derivatives)
    items, of_values = held_where_lost(items), _beside(estimate, items)

    def of_class(weights: Array) -> tuple[Array, ...]:
        valid = of_values(weights > 0)
        squares = library.sum(_centred(derivatives, valid) ** 2, axis=-1)
        variance = numerics.divide(squares, of_values(_kept(weights))[..., 0], np.nan)
        variance = library.where(library.isnan(estimate), np.nan, variance)
        sizes = (kish(x)[0] for x in (weights, numerics.sums_at(ids, weights, n_clusters)))
        found = variance, *(of_values(x[..., None])[..., 0] for x in sizes)
        return tuple(library.broadcast_to(x, estimate.shape) for x in found)

    by_class = zip(*map(of_class, _weights(items)), strict=True)
    return Alone(*(library.stack(x, axis=-1) for x in by_class))


def _weights(items: Items) -> list[Array]:
    """The weights of the negatives and of the positives, in float64."""
    return [x.astype(np.float64) for x in class_weights(items)[::-1]]


def _beside(estimate: Array, items: Items) -> Callable[[Array], Array]:
    """A function that gives an array `[..., n]` the axes of a metric with several values."""
    values = (1,) * (estimate.ndim - len(batch_of(items)))
    return lambda x: x.reshape(*x.shape[:-1], *values, x.shape[-1])


def _kept(weights: Array) -> Array:
    """`[..., 1]`, the part of the variance of a mean that a sum of squares keeps."""
    return kept_and_df(kish(weights)[1])[0][..., None]


def _centred(x: Array, some: Array) -> Array:
    """x less the mean of `some`; 0 elsewhere."""
    library = numerics.namespace(x, some)
    x = library.where(some, x, 0.0)
    k = library.sum(some, axis=-1, keepdims=True).astype(np.float64)
    mean = numerics.divide(library.sum(x, axis=-1, keepdims=True), k, 0.0)
    return library.where(some, x - mean, 0.0)
