"""What a pilot shows about the errors of a study, with or without clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import all_concrete, near, near_tree
from jaxmetrics._base.items import class_weights, items_at_hand
from jaxmetrics._base.types import Array, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics.inference._influence.clusters import Clusters, Sums, sums_and_items
from jaxmetrics.inference._influence.covariance import (
    Covariance,
    covariance_of_clusters,
    covariance_of_items,
)
from jaxmetrics.inference._influence.differences import of_differences
from jaxmetrics.inference._influence.sizes import sizes_of, warn_of_undefined
from jaxmetrics.inference._intervals.clustered import OfClusters
from jaxmetrics.inference._intervals.metrics import with_influence
from jaxmetrics.inference._intervals.ranges import range_of
from jaxmetrics.inference._planning import Pilot, Times
from jaxmetrics.inference._tied_limits import warn_of_tied_limits

_ROUNDING = 1e-9


class Held(NamedTuple):
    """The numbers `[...]` of negatives, positives and clusters of a pilot, or a study.

    `clusters` is None where there are none.
    """

    negatives: Any
    positives: Any
    clusters: Any

    def times(self, pilot: Held) -> Times:
        """How many times those of the pilot these are."""
        k0, k1 = (numerics.divide(x, y, np.nan) for x, y in zip(self[:2], pilot[:2], strict=True))
        return Times(k0, k1)


def pilot_of(
    metric: MetricLike,
    items: Items,
    clusters: Clusters | None,
    *,
    paired: bool,
    of_width: bool,
) -> tuple[str, Pilot, Held]:
    """The kind of plan, "pair", "samples" or "one"; the Pilot, and what it has."""
    shape = items.scores.shape
    if not of_width and (len(shape) > 2 or shape[:-1] not in ((), (2,))):
        raise ValueError(
            f"scores must be [n] of one model or [2, n] of two, got {list(shape)}: plan one pair "
            "at a time"
        )
    metric, items = with_influence(metric, items)
    bounds = range_of(metric)
    alone = len(shape) == 1 or of_width
    if of_width:  # each model by itself
        rows: Any = (x if x is None or x.ndim < 2 else x[..., None, :] for x in items)
        items = Items(*rows)
    if alone:
        n_models = 1 if paired or of_width else 2
        library = numerics.namespace(items.scores)
        of_models = items.scores if of_width and len(shape) > 1 else items.scores[None]
        items = items._replace(scores=library.concatenate([of_models] * n_models))
    kind = ("pair" if paired else "samples") if not alone or n_models == 2 else "one"
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, shape[-1])
    if clusters is None:
        estimate, errors, covariance = covariance_of_items(metric, items)
        labels = near(items.labels) if isinstance(errors, np.ndarray) else items.labels
        thirds = _thirds_of_items(errors, labels, covariance.sizes, kind)
        of_items = None
    else:
        sums, of_items = sums_and_items(metric, items, clusters)
        covariance = covariance_of_clusters(sums, None)
        estimate, thirds = sums.estimate, _thirds_of_clusters(sums, covariance.sizes, kind)
    warn_of_undefined(estimate)
    warn_of_tied_limits(metric, items, planned=True)
    pilot, lost = _pilot(*near_tree((estimate, thirds, covariance, bounds)), kind)
    if kind == "pair":
        pilot = pilot._replace(alone=near_tree(of_items))
    if all_concrete(lost) and lost.any():
        warn("the plan is NaN: the pilot has no errors, or its models no difference, to learn from")
    negatives, positives, _ = (x[..., 0] for x in sizes_of(items, None, estimate.ndim))
    number = None if clusters is None else _number_of_clusters(items_at_hand(items), *clusters)
    return kind, pilot, Held(negatives, positives, number)


@library_program("kind")
def _thirds_of_items(
    errors: Array, labels: Array, sizes: tuple[Array, ...], kind: str
) -> tuple[Array, Array]:
    library = numerics.namespace(errors, labels)
    by_class = (library.where(labels == positive, errors, 0) for positive in (0, 1))
    negatives, positives = (_third(x, n, kind) for x, n in zip(by_class, sizes[:2], strict=True))
    return negatives, positives


@library_program("kind")
def _thirds_of_clusters(sums: Sums, sizes: tuple[Array, ...], kind: str) -> tuple[Array, Array]:
    whole = numerics.namespace(sums.of_classes).sum(sums.of_classes, axis=-2)
    third = _third(whole, sizes[2], kind)
    return third, 0 * third


def _third(units: Array, n: Array, kind: str) -> Array:
    """The third central moment of a sum of n independent `units` `[..., models, units]`.

    Their squares add up to an unbiased variance, so they are larger by sqrt(n / (n - 1)).
    """
    library = numerics.namespace(units, n)
    if kind == "pair":
        units = units[..., :1, :] - units[..., 1:, :]
    kept = library.maximum(n - 1, 0.0) / library.maximum(n, 1.0)
    third: Array = library.sum(units**3, axis=-1) * kept**1.5
    return third if kind == "samples" else third[..., 0]


@library_program("kind")
def _pilot(
    estimate: Array, thirds: tuple[Array, Array], covariance: Covariance, bounds: Any, kind: str
) -> tuple[Pilot, Array]:
    """The Pilot; and whether its variances are NaN, as they were 0 or the only model is at an end
    of the range."""
    library = numerics.namespace(estimate, covariance.total)
    sizes = covariance.sizes
    assert covariance.of_classes is not None
    of_model, of_negatives, of_positives = (
        library.diagonal(x, axis1=-2, axis2=-1)
        for x in (covariance.total, *library.moveaxis(covariance.of_classes, -3, 0))
    )
    of_all = library.sum(of_model, axis=-1)
    least = _ROUNDING**2 * library.sum(estimate**2, axis=-1) / sizes[2][..., 0]
    lost = of_all <= least
    if kind == "pair":
        alike = of_differences(covariance.total)[0, 1] <= _ROUNDING * of_all
        lost = ~lost & alike
        total = library.where(lost, library.nan, covariance.total)
        return Pilot(estimate, covariance._replace(total=total), thirds, bounds), lost
    if kind == "one" and bounds is not None:
        share = bounds.share_of(estimate[..., 0])
        lost = lost | (share <= _ROUNDING) | (share >= 1 - _ROUNDING)
    of_model = library.where(lost[..., None], library.nan, of_model)
    sizes = tuple(library.broadcast_to(n, of_model.shape) for n in sizes)
    mixed = library.broadcast_to(covariance.mixed, of_model.shape)
    variances = OfClusters(of_negatives, of_positives, of_model, sizes, mixed)
    if kind == "one":
        estimate, variances = jax.tree.map(lambda x: x[..., 0], (estimate, variances))
    return Pilot(estimate, variances, thirds, bounds), lost


@library_program("n_clusters")
def _number_of_clusters(items: Items, ids: Array, n_clusters: int) -> Array:
    """`[...]`, the number of clusters with items that count."""
    positives, negatives = class_weights(items)
    held = (positives + negatives).astype(np.float64)
    found: Array = (numerics.sums_at(ids, held, n_clusters) > 0).sum(axis=-1).astype(np.float64)
    return found[..., 0] if held.ndim > 1 else found
