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
from jaxmetrics.inference._influence.sizes import sizes_of
from jaxmetrics.inference._influence.variance import errors_of_items
from jaxmetrics.inference._intervals.ranges import Range

# A variance of a difference that is less, relative to those of the models, is rounding only.
_ROUNDING = 1e-28
_OF_TWO = np.array([[1.0, -1.0], [-1.0, 1.0]])


class Apart(NamedTuple):
    """The covariance of two models less their mean, in which their difference keeps its digits.

    The variance of a difference is v + v - 2 c in the covariance of the models, too. But that has
    no digits of the difference of two models that rank nearly all items alike.

    Attributes:
      total, of_classes: as those of Covariance.
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
      apart: for the variance of the difference of two models; None for any other number.
    """

    total: Array
    of_classes: Array | None
    sizes: tuple[Any, Any, Any]
    mixed: Any
    draws: tuple[Array, Array] | None = None
    apart: Apart | None = None


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
    (total, of_classes), apart = _products_of_items(errors, positive)
    sizes = sizes_of(items, None, estimate.ndim)
    found = Covariance(total, of_classes, (*sizes,), np.float64(0), apart=apart)
    return estimate, errors, found


def covariance_of_clusters(sums: Sums, draws: tuple[Array, Array] | None) -> Covariance:
    """The Covariance, from sums of clusters, and the draws that they amount to if known."""
    (total, of_classes), apart = _products_of_clusters(sums.of_classes)
    return Covariance(total, of_classes, sums.sizes, sums.mixed, draws, apart)


@library_program()
def _in_shares(sums: Sums, alone: Alone, bounds: Range) -> tuple[Sums, Alone]:
    """The influence on the metric as a share of its range."""
    unit = bounds.high - bounds.low
    estimate, of_classes = bounds.share_of(sums.estimate), sums.of_classes / unit
    of_share = sums._replace(estimate=estimate, of_classes=of_classes)
    return of_share, alone._replace(variances=alone.variances / unit**2)


@library_program()
def _products_of_items(errors: Array, positive: Array) -> tuple[Apart, Apart | None]:
    """The total and the parts of the classes, of models and of two models less their mean."""
    library = numerics.namespace(errors, positive)

    def of_class(mask: Any) -> Any:
        if library is np and mask.ndim == 1:
            return errors.compress(mask, axis=-1)
        return library.where(mask, errors, 0)

    def added(of_classes: list[Array]) -> Apart:
        found = library.stack(of_classes, axis=-3)
        return Apart(library.sum(found, axis=-3), found)

    classes = [of_class(x) for x in (~positive, positive)]
    own = [*map(_products, classes)]
    two = errors.shape[-2] == 2
    return added(own), added([*map(products_of_two, classes, own)]) if two else None


@library_program()
def _products_of_clusters(of_classes: Array) -> tuple[Apart, Apart | None]:
    """As `_products_of_items`, from sums `[..., models, 2, clusters]`."""
    library = numerics.namespace(of_classes)
    sums = library.sum(of_classes, axis=-2), library.moveaxis(of_classes, -2, -3)
    own = Apart(*map(_products, sums))
    two = of_classes.shape[-3] == 2
    return own, Apart(*map(products_of_two, sums, own)) if two else None


def products_of_two(units: Array, own: Array) -> Array:
    """The inner products of two rows less their mean; `own` are those of the rows."""
    library = numerics.namespace(units, own)
    lost = library.isnan(own[..., 0, 0] + own[..., 1, 1])
    half = library.where(lost[..., None], 0.0, units[..., 0, :] - units[..., 1, :]) / 2
    return less_mean_of_two(library.sum(half**2, axis=-1), own)


def less_mean_of_two(variance: Array, own: Array) -> Array:
    """The covariance of two models less their mean, from the variance of half the difference.

    It is 0 where the models are equal but for rounding, and NaN where one of their `own` is NaN.
    """
    library = numerics.namespace(variance, own)
    largest = library.maximum(own[..., 0, 0], own[..., 1, 1])
    known = library.where(variance <= _ROUNDING * largest, 0.0, variance)
    return library.where(library.isnan(largest), np.nan, known)[..., None, None] * _OF_TWO


def _products(units: Array) -> Array:
    """The inner products of the rows; a row with NaN is left out of the slopes of the others."""
    library = numerics.namespace(units)
    lost = library.any(library.isnan(units), axis=-1)
    known = library.where(lost[..., None], 0.0, units)
    return library.where(
        lost[..., None] | lost[..., None, :], library.nan, known @ known.swapaxes(-1, -2)
    )
