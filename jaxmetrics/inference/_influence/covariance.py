"""The covariance of a metric between models that score the same items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import near, near_tree
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics.inference._influence.clusters import (
    Alone,
    Clusters,
    Sums,
    sums_and_items,
    sums_of_clusters,
    variances_and_draws,
)
from jaxmetrics.inference._influence.differences import between_models
from jaxmetrics.inference._influence.sizes import sizes_of
from jaxmetrics.inference._influence.variance import errors_of_items
from jaxmetrics.inference._intervals.ranges import Range


class Products(NamedTuple):
    """Inner products of the influence on models.

    Attributes:
      total: `[..., models, models]`, of all units.
      of_classes: `[..., 2, models, models]`, of the negatives and of the positives.
    """

    total: Array
    of_classes: Array


class Covariance(NamedTuple):
    """The covariance between models, and what its degrees of freedom follow from.

    Attributes:
      total: `[..., models, models]`.
      of_classes: `[..., 2, models, models]`, the parts of the negatives and of the positives; None
        if they are not known. With clusters the two classes depend on each other, and their parts
        do not add up to the total.
      sizes: the effective numbers of negatives, positives and all items, or of clusters with them.
      mixed: the share of the clusters that have both classes, by weight; 0 without clusters.
      draws: `[models]` each, the numbers of independent negatives and positives that would vary as
        much as the clusters do; None without clusters, or where nobody asked.
      between: `between_models` of the total and of the parts; None for these themselves.
    """

    total: Array
    of_classes: Array | None
    sizes: tuple[Any, Any, Any]
    mixed: Any
    draws: tuple[Array, Array] | None = None
    between: Products | None = None


def taken_for_known(total: Array) -> Covariance:
    """A Covariance with infinite sizes: its own error is small, or counted elsewhere."""
    unlimited = np.float64(np.inf)
    return Covariance(total, None, (unlimited, unlimited, unlimited), np.float64(0))


def covariance_of(
    metric: MetricLike, items: Items, clusters: Clusters | None, bounds: Range | None = None
) -> tuple[Array, Covariance]:
    """The metric `[..., models]` and its covariance, in float64 whatever the x64 mode.

    With the `bounds` of the metric, draws are counted, too.
    """
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    if clusters is not None:
        if bounds is None:
            sums, draws = sums_of_clusters(metric, items, clusters), None
        else:
            sums, alone = sums_and_items(metric, items, clusters)
            of_share = _in_shares(*near_tree((sums, alone, bounds)))
            draws = variances_and_draws(*near_tree(of_share))[1]
        return sums.estimate, covariance_of_clusters(sums, draws)
    estimate, _, found = covariance_of_items(metric, items)
    return estimate, found


def covariance_of_items(metric: MetricLike, items: Items) -> tuple[Array, Array, Covariance]:
    """The metric, the items' parts of its standard error, and its Covariance."""
    estimate, errors = errors_of_items(metric, items)
    positive = (near(items.labels) if isinstance(errors, np.ndarray) else items.labels) == 1
    own, between = _products_of_items(errors, positive)
    sizes = sizes_of(items, None, estimate.ndim)
    found = Covariance(*own, (*sizes,), np.float64(0), between=between)
    return estimate, errors, found


def covariance_of_clusters(sums: Sums, draws: tuple[Array, Array] | None) -> Covariance:
    """The Covariance, from sums of clusters, and the draws that they amount to if known."""
    own, between = _products_of_clusters(sums.of_classes)
    return Covariance(*own, sums.sizes, sums.mixed, draws, between)


@library_program()
def _in_shares(sums: Sums, alone: Alone, bounds: Range) -> tuple[Sums, Alone]:
    """The influence on the metric as a share of its range."""
    unit = bounds.high - bounds.low
    estimate, of_classes = bounds.share_of(sums.estimate), sums.of_classes / unit
    of_share = sums._replace(estimate=estimate, of_classes=of_classes)
    return of_share, alone._replace(variances=alone.variances / unit**2)


@library_program()
def _products_of_items(errors: Array, positive: Array) -> tuple[Products, Products]:
    """The products of models, and those with the digits of their differences."""
    library = numerics.namespace(errors, positive)

    def of_class(mask: Any) -> Any:
        if library is np and mask.ndim == 1:
            return errors.compress(mask, axis=-1)
        return library.where(mask, errors, 0)

    def added(of_classes: list[Array]) -> Products:
        found = library.stack(of_classes, axis=-3)
        return Products(library.sum(found, axis=-3), found)

    classes = [of_class(x) for x in (~positive, positive)]
    own = [*map(_products, classes)]
    return added(own), added([*map(products_between, own, classes)])


@library_program()
def _products_of_clusters(of_classes: Array) -> tuple[Products, Products]:
    """As `_products_of_items`, from sums `[..., models, 2, clusters]`."""
    library = numerics.namespace(of_classes)
    sums = library.sum(of_classes, axis=-2), library.moveaxis(of_classes, -2, -3)
    own = Products(*map(_products, sums))
    return own, Products(*map(products_between, own, sums))


def products_between(own: Array, units: Array) -> Array:
    """`between_models` of the inner products `own` of the rows of `units`."""

    def of_pair(a: Any, b: Any) -> Array:
        first, second = (numerics.without_nan(units[..., i, :]) for i in (a, b))
        return numerics.namespace(units).sum((first - second) ** 2, axis=-1)

    return between_models(own, of_pair)


def _products(units: Array) -> Array:
    """The inner products of the rows; a row with NaN is left out of the slopes of the others."""
    library = numerics.namespace(units)
    lost = library.any(library.isnan(units), axis=-1)
    known = library.where(lost[..., None], 0.0, units)
    return library.where(
        lost[..., None] | lost[..., None, :], library.nan, known @ known.swapaxes(-1, -2)
    )
