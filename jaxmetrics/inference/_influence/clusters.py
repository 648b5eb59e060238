"""Sums of influence over clusters of items, which may depend on each other within a cluster.

Reference: N. A. Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53,
1997.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import at_hand
from jaxmetrics._base.items import class_weights
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference._influence.variance import derivatives_of_items
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
    estimate, derivatives = at_hand(*derivatives_of_items(metric, items))
    return Sums(*_sums(estimate, derivatives, Items(*at_hand(*items)), *clusters))


def error_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error."""
    sums = sums_of_clusters(metric, items, clusters)
    return sums.estimate, _error_of(sums.of_classes)


def skewness_of_clusters(metric: MetricLike, items: Items, clusters: Clusters) -> Array:
    """A sixth of the skewness of the estimate."""
    return _skewness_of(sums_of_clusters(metric, items, clusters).of_classes)


@library_program()
def _error_of(of_classes: Array) -> Array:
    library = numerics.namespace(of_classes)
    error: Array = library.sqrt(library.sum(library.sum(of_classes, axis=-2) ** 2, axis=-1))
    return error


@library_program()
def _skewness_of(of_classes: Array) -> Array:
    return sixth_of_skewness(numerics.namespace(of_classes).sum(of_classes, axis=-2))


@library_program("n_clusters")
def _sums(
    estimate: Array, derivatives: Array, items: Items, ids: Array, n_clusters: int
) -> tuple[Array, Array, Array]:
    library = numerics.namespace(derivatives)
    batch = max(x.ndim for x in items if x is not None) - 1
    values = (1,) * (estimate.ndim - batch)  # axes of a metric with several values

    def of_clusters(x: Array) -> Array:
        return numerics.sums_at(ids, x, n_clusters)

    def of_class(weights: Array) -> tuple[Array, Array]:
        weighty = (weights > 0).reshape(*weights.shape[:-1], *values, weights.shape[-1])
        held = of_clusters(weighty.astype(np.float64)) > 0
        sums = of_clusters(library.where(weighty, derivatives, 0.0))
        k = library.sum(held, axis=-1, keepdims=True).astype(np.float64)
        mean = numerics.divide(library.sum(sums, axis=-1, keepdims=True), k, 0.0)
        scale = library.sqrt(numerics.divide(k, library.maximum(k - 1, 0), np.nan))
        return library.where(held, scale * (sums - mean), 0.0) + 0 * estimate[..., None], held

    positives, negatives = class_weights(items)
    sums, held = zip(of_class(negatives), of_class(positives), strict=True)
    mixed = library.sum(held[0] & held[1], axis=-1) / library.sum(held[0] | held[1], axis=-1)
    return estimate, library.stack(sums, axis=-2), library.broadcast_to(mixed, estimate.shape)
