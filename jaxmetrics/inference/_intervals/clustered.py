"""Intervals from sums over clusters of items, which may depend on each other.

Over the array library, in float64, as the rules of independent items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.rules import (
    Limits,
    Moments,
    around,
    degrees,
    ends,
    interior,
    on_logit,
    spread_of,
)

_TINY = 1e-300
_UNSEEN = 1 / 12  # of a cluster that fails as a whole, which is added to what the clusters vary


class OfClusters(NamedTuple):
    """The variances of an estimate from sums over clusters.

    The clusters with negatives and those with positives may be the same ones, in part or all.
    """

    negatives: Array  # their part of the variance
    positives: Array
    total: Array  # also with the covariance of the two parts in clusters with both
    sizes: tuple[Array, Array, Array]  # clusters with negatives, with positives, and all, as in
    # `clusters_of_one_size`
    mixed: Array  # the share of the clusters with both, by weight

    @property
    def ratio(self) -> Array:
        """The variance over the sum of the parts of both classes; a NaN has no slope."""
        library, apart = numerics.namespace(self.total), self.negatives + self.positives
        unknown = library.isnan(self.total + apart)
        total, apart = (library.where(unknown, 0.0, x) for x in (self.total, apart))
        return numerics.divide(total, apart, library.where(unknown, np.nan, 1.0))


def degrees_of_clusters(found: OfClusters) -> Array:
    """The degrees of freedom: Welch's f if each cluster has one class, min(K - 1, f) if all have
    both.

    V^2 / ((1 - w) (V1^2 / (K1 - 1) + V0^2 / (K0 - 1)) + w V^2 / min(K - 1, f)), at least 1, with
    f = (V1 + V0)^2 / (V1^2 / (K1 - 1) + V0^2 / (K0 - 1)) and w the share of the clusters with both,
    by weight. The K are those of `clusters_of_one_size`, or fewer: of negatives within a limit.
    """
    k0, k1, k = found.sizes
    apart = spread_of(found.negatives, 1.0, k0) + spread_of(found.positives, 1.0, k1)
    library = numerics.namespace(apart)
    together = library.maximum(spread_of(found.total, 1.0, k), found.ratio**2 * apart)
    share = library.where(found.mixed < 1, (1 - found.mixed) * apart, 0.0)
    share = share + library.where(found.mixed > 0, found.mixed * together, 0.0)
    return degrees(found.total, share, 1.0)


def logit_t_of_clusters(estimate: Array, found: OfClusters, level: Any) -> Limits:
    """expit(logit(A) -+ t SE / (A (1 - A))), with the degrees of freedom of the clusters for t."""
    sizes = found.sizes[:2]
    centre = interior(estimate, sizes)
    limits = on_logit(centre, found.total, degrees_of_clusters(found), level)
    return around(estimate, ends(estimate, limits, sizes, level, found.total))


def draws_of_clusters(
    estimate: Array, ratio: Array, variance: Array, alone: Array, n: Array, clusters: Array
) -> Array:
    """How many independent items of a class vary as much as its clusters: from `clusters` to `n`.

    n V_1 / V, where V is the `variance` that the class adds to the estimate, and V_1 is that of
    independent items, `alone`. Where hardly a cluster fails, V and V_1 do not show how one would:
    so a part of a cluster is added to V that fails as a whole, and to V_1 as many items that fail.
    `ratio` is the variance of the estimate over the sum of both V. Where it is above 1, as clusters
    with both classes move the curve one way, there are fewer draws; where it is below 1, there are
    more, by its root alone, as it is less sure at the ends of the curve.
    """
    library = numerics.namespace(estimate, variance)
    unknown = library.isnan(estimate)  # as 0 times NaN would be NaN in the slopes of the sizes
    estimate = library.clip(library.where(unknown, 0.5, estimate), 0.0, 1.0)
    known = library.nan_to_num(variance)
    of_cluster = library.maximum(n / clusters, 1.0)
    times = numerics.divide(known, library.nan_to_num(alone), library.inf)
    times = library.clip(times, 1.0, of_cluster)
    added = _UNSEEN * (library.maximum(estimate, 1 - estimate) / clusters) ** 2
    draws = n * (known / times + added / of_cluster) / (known + added)
    ratio = library.nan_to_num(ratio)
    ratio = library.maximum(ratio, numerics.root(ratio))
    draws = library.clip(draws / library.maximum(ratio, _TINY), clusters, n)
    return library.where(unknown, library.nan, draws)


def moments_of_clusters(estimate: Array, found: OfClusters, draws: tuple[Array, Array]) -> Moments:
    """The moments of so many `draws` of both classes with the variance of the clusters."""
    parts = found.negatives, found.positives
    of_negatives, of_positives = (x * found.ratio * n for x, n in zip(parts, draws, strict=True))
    return Moments(estimate, (of_negatives, of_positives), draws)
