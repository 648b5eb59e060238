"""A metric in one slice after the other: of items in clusters, and average precision by steps."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from jaxmetrics._base import numerics
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.record import MetricLike
from jaxmetrics._roc.sliced import Sliced
from jaxmetrics.inference._forms import Form, limits_of_draws
from jaxmetrics.inference._influence.clusters import (
    Clusters,
    Sums,
    sums_and_items,
    variances_and_draws,
)
from jaxmetrics.inference._influence.covariance import (
    Covariance,
    covariance_of,
    covariance_of_clusters,
)
from jaxmetrics.inference._influence.heavy_negatives import in_steps
from jaxmetrics.inference._intervals.clustered import OfClusters
from jaxmetrics.inference._intervals.effective import clusters_of_one_size
from jaxmetrics.inference._intervals.ranges import Range
from jaxmetrics.inference._pairs import Pairs, pairs_of
from jaxmetrics.inference._slice_tests import stacked
from jaxmetrics.inference._slice_values import SliceValues


class Slice(NamedTuple):
    """The items of a slice that count, and their clusters.

    Attributes:
      items: scores `[models, n]`, all others `[n]`.
      clusters: numbered from 0 within the slice; None without clusters.
      among: the number of each of them among the clusters of all items.
    """

    items: Items
    clusters: Any
    among: Any


def clusters_in_slices(sliced: Sliced, ids: HostArray) -> tuple[HostArray, HostArray]:
    """`[slices, 2]`: the number of clusters with items of each class, and of clusters of one size.

    `ids` are the clusters of all items. Items of a slice that shares a threshold are its own here.
    """
    weights: Any = np.ones(len(sliced.item)) if sliced.weights is None else sliced.weights
    held = [np.split(x, sliced.bounds[1:-1]) for x in (ids[sliced.item], weights)]

    def of_class(clusters: HostArray, weights: HostArray) -> tuple[int, Any]:
        each, at = np.unique(clusters, return_inverse=True)
        of_cluster: Any = np.bincount(at, weights)
        return len(each), clusters_of_one_size(of_cluster)

    counts, sizes = zip(*map(of_class, *held), strict=True)
    return np.reshape(counts, (-1, 2)), np.reshape(sizes, (-1, 2))


def apart(
    items: Items,
    ids: HostArray,
    n: int,
    clusters: Clusters | None,
    *,
    one_threshold: bool = False,
) -> list[Slice]:
    """The n slices, by the slice index `ids`.

    With one threshold for all, a slice has the negatives of all slices: the recall of its positives
    at the threshold that they share is that of these items, and so is its influence.
    """

    def slice_of(at: HostArray) -> Slice:
        some = Items(scores[:, at], labels[at], None if weights is None else weights[at])
        if clusters is None:
            return Slice(some, None, None)
        among, own = np.unique(clusters[0][at], return_inverse=True)
        return Slice(some, (own, max(len(among), 1)), among)

    scores = np.atleast_2d(np.asarray(items.scores))
    labels: Any
    labels, weights, where = (None if x is None else np.ravel(np.asarray(x)) for x in items[1:4])
    order = np.arange(len(ids)) if where is None else np.flatnonzero(where)
    order = order[np.argsort(ids[order], kind="stable")]
    parts = np.split(order, np.searchsorted(ids[order], range(1, n)))
    if one_threshold:
        negatives = order[labels[order] != 1]
        parts = [np.append(negatives, at[labels[at] == 1]) for at in parts]
    return [slice_of(at) for at in parts]


class Influence(NamedTuple):
    """Of the clusters of a slice, on a metric that is a share from 0 to 1.

    Attributes:
      sums: their Sums.
      variances, draws: what `variances_and_draws` returns of them.
      covariance: their Covariance; None where one model has no need of it.
    """

    sums: Sums
    variances: OfClusters
    draws: tuple[Any, Any]
    covariance: Covariance | None


def influence_in_slices(
    metric: MetricLike, slices: list[Slice], *, with_covariance: bool
) -> list[Influence]:
    """The Influence in each slice, of items in clusters."""

    def of_slice(part: Slice) -> Influence:
        sums, alone = near_tree(sums_and_items(metric, part.items, part.clusters))
        variances, draws = variances_and_draws(sums, alone)
        covariance = covariance_of_clusters(sums, draws) if with_covariance else None
        return near_tree(Influence(sums, variances, draws, covariance))

    return [*map(of_slice, slices)]


def negatives_drawn(of_slices: list[Influence]) -> HostArray:
    """`[slices]`, how many independent negatives the clusters of each slice amount to."""
    return np.array([np.min(x.draws[0]) for x in of_slices])


def values_of_clusters(
    form: Form, slices: list[Slice], of_slices: list[Influence], levels: HostArray
) -> SliceValues:
    """The metric of the form in each slice; the parts of variances add up to those of clusters."""

    def of_slice(part: Slice, found: Influence) -> tuple[Any, ...]:
        items = part.items

        def limits_of(i: int) -> tuple[HostArray, ...]:
            row = items._replace(scores=items.scores[i])
            known = found.sums.estimate, found.variances, found.draws
            estimate, variances, draws = jax.tree.map(lambda x: x[i], known)
            limits = limits_of_draws(form, row, estimate, variances, draws, levels)
            return np.broadcast_arrays(*limits)

        rows = map(limits_of, range(len(items.scores)))
        estimate, low, high, error = np.stack([*rows], axis=1)
        sizes = np.stack(found.sums.sizes[:2])[:, 0]
        return estimate[:, 0], error[:, 0], low, high, sizes, found.sums.of_classes

    *values, sums = zip(*map(of_slice, slices, of_slices), strict=True)
    estimate, error, low, high, sizes = map(np.stack, values)
    parts: Any = np.stack([(x**2).sum(axis=-1).T for x in sums])  # [slices, 2, models]
    variance: Any = error**2
    ratio: Any = numerics.divide(variance, parts.sum(axis=1), 1.0)
    return SliceValues(
        estimate,
        error,
        (low, high),
        parts * ratio[:, None],
        sizes,
        _covariance([x.among for x in slices], [x.sum(axis=1) for x in sums]),
    )


def _covariance(among: list[HostArray], sums: list[HostArray]) -> HostArray | None:
    """Of all slices and models, from the sums `[models, clusters]` of each slice."""
    own = [x[:, : len(ids)] for x, ids in zip(sums, among, strict=True)]  # an empty slice has one
    clusters = np.concatenate(among)
    if len(np.unique(clusters)) == len(clusters):
        return None
    n, n_models = len(own), len(own[0])
    lengths = np.repeat([len(x) for x in among], n_models)
    begins = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([np.tile(x, n_models) for x in among])
    rows = scipy.sparse.csr_array((np.concatenate([x.ravel() for x in own]), columns, begins))
    products: HostArray = (rows @ rows.T).toarray()
    return products.reshape(n, n_models, n, n_models)


def pairs_by_slice(
    metric: MetricLike,
    slices: list[Slice],
    of_slices: list[Influence] | None,
    bounds: Range | None,
) -> Pairs:
    """The Pairs of the models within each slice, as `compare` has them."""

    def of_slice(part: Slice, known: Influence | None) -> Pairs:
        by_steps, bounds_in_slice = in_steps(metric, part.items, bounds)
        if known is not None and known.covariance is not None and by_steps is metric:
            found = known.sums.estimate, known.covariance
        else:
            found = near_tree(covariance_of(by_steps, part.items, part.clusters, bounds))
        return pairs_of(*found, bounds_in_slice)

    pairs = map(of_slice, slices, of_slices or itertools.repeat(None))
    return stacked([*pairs], bounds, len(slices[0].items.scores))
