"""Limits of the threshold of least cost, or of enough precision, by a test of each threshold.

Percentiles of resamples are no limits of the cheapest threshold: the point that minimises a step
function converges at the rate n^(-1/3), where the bootstrap is inconsistent. Nor are they limits of
the lowest threshold of enough precision: few resamples choose one above that of the data. But the
costs of two thresholds differ by a sum over the items between them, and its variance can be
estimated.
"""

from __future__ import annotations

import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.operating import COSTS, Point, costs_in_sample, precision_in_sample
from jaxmetrics._roc.record import Options
from jaxmetrics.inference._at_threshold import weights_by_class
from jaxmetrics.inference._intervals.distributions import normal_quantile
from jaxmetrics.inference._intervals.rules import Limits

_MORE = 2  # typical items of each class whose squares are added to the variance of few items
_ROUNDING = 1e-9


_costs_in_sample = library_program("criterion")(costs_in_sample)
_precision_in_sample = library_program()(precision_in_sample)


def limits_of_best(
    name: str, options: Options, items: Items, ids: HostArray | None, point: Point, level: float
) -> Limits:
    """Limits of the threshold that is the best in the population."""
    totals, prevalence = (point.positives, point.negatives), options.get("prevalence")
    if name == "min_precision":
        limit = _precision_in_sample(options[name], prevalence, *totals)
        given = near_tree((ids, limit, np.float64(level)))
        return limits_of_precise(items, *given, prevalence is not None)
    terms = *(options.get(x) for x in (*COSTS, "criterion")), prevalence
    costs = _costs_in_sample(*totals, *terms)
    return limits_of_cheapest(items, *near_tree((ids, point.threshold, costs, np.float64(level))))


@library_program()
def limits_of_cheapest(
    items: Items, ids: Array | None, threshold: Array, costs: tuple[Array, Array], level: Array
) -> Limits:
    """The lowest and the highest threshold that is not significantly dearer than `threshold`.

    `costs` `[...]` are those of a flagged negative and of a missed positive, and `ids` `[n]` are
    the cluster indices. A limit is infinite if it may be best to flag everything, or nothing.
    """
    library = numerics.namespace(*costs, threshold)
    z = library.maximum(normal_quantile(level), 0.0)
    dearer, ends = _dearer(items, ids, threshold, costs, fixed=False)
    return _hull(dearer <= z * (1 + _ROUNDING), ends)


@library_program("fixed")
def limits_of_precise(
    items: Items, ids: Array | None, precision: Array, level: Array, fixed: bool
) -> Limits:
    """Limits of the lowest threshold whose precision in the population is `precision` or more.

    To flag at such a threshold costs no more than to flag nothing, if a flagged negative costs
    `precision` and a missed positive 1 - `precision`. The lower limit is the lowest threshold
    that is not significantly dearer, and the upper one the lowest that is significantly cheaper.
    `fixed`: the sizes of the classes, to which `precision` belongs, are not random.
    """
    library = numerics.namespace(items.labels, precision)
    z = normal_quantile((1 + level) / 2) * (1 + _ROUNDING)
    nothing = library.full((), library.inf)
    dearer, ends = _dearer(items, ids, nothing, (precision, 1 - precision), fixed)
    enough = ((dearer < -z) & (ends[0] > ends[1])).astype(int)
    below = library.cumsum(enough[..., ::-1], axis=-1)[..., ::-1] - enough
    return _hull((dearer <= z) & (below == 0), ends)


def _hull(inside: Array, ends: Limits) -> Limits:
    """The lowest and the highest threshold `inside`; a threshold does not split a tie."""
    library, (upper, lower) = numerics.namespace(inside), ends
    inside = inside & (lower < upper)
    low = library.min(library.where(inside, lower, library.inf), axis=-1)
    high = library.max(library.where(inside, upper, -library.inf), axis=-1)
    return low, high


def _dearer(
    items: Items, ids: Array | None, start: Array, costs: tuple[Array, Array], fixed: bool
) -> tuple[Array, Limits]:
    """By how many standard errors it costs more to flag 0 to n items than those from `start` on.

    Also the upper and the lower ends `[..., n + 1]` of the thresholds that flag so many items.
    """
    positives, negatives, _ = weights_by_class(items)
    library = numerics.namespace(positives, start)
    added = [x[..., None] * y for x, y in zip(costs, (negatives, positives), strict=True)]
    largest = library.max(added[0] + added[1], axis=-1, keepdims=True)
    added = [numerics.divide(x, largest, 0.0) for x in added]
    typical = [numerics.divide((x**2).sum(axis=-1), x.sum(axis=-1), 0.0) for x in added]
    variance = _MORE * (typical[0] ** 2 + typical[1] ** 2)
    scores = library.where(positives + negatives > 0, items.scores.astype(float), -library.inf)

    def of_row(
        scores: Array, negatives: Array, positives: Array, variance: Array, start: Array
    ) -> tuple[Array, Array, Array]:
        order = library.argsort(-scores)
        scores, classes = scores[order], (negatives[order], -positives[order])
        added = classes[0] + classes[1]
        place, n = library.arange(len(scores)), library.sum(scores >= start)
        distance = library.where(place < n, n - 1 - place, place - n)
        nearer = library.zeros_like(added)
        if ids is not None:
            nearer = _of_cluster(2 * ids[order] + (place < n), distance, added)
        # The square of the sum of each cluster grows by this as the threshold passes an item.
        cost, squares = (_from_start(x) for x in (added, added * (2 * nearer + added)))
        dearer, spread = cost - cost[n], library.abs(squares - squares[n])
        if fixed:
            spread = spread - _of_sizes(added, classes, None if ids is None else ids[order])
        ends = library.full(1, library.inf)
        upper, lower = (library.concatenate(x) for x in ((ends, scores), (scores, -ends)))
        error = library.sqrt(library.maximum(spread, 0.0) + variance)
        return numerics.divide(dearer, error, 0.0), upper, lower

    rows = library.vectorize(of_row, signature="(n),(n),(n),(),()->(k),(k),(k)")
    dearer, *ends = rows(scores, *added, variance, start)
    return dearer, (ends[0], ends[1])


def _of_sizes(added: Array, classes: tuple[Array, Array], ids: Array | None) -> Array:
    """The part of the squares of running sums that is due to random sizes of the classes.

    `sum_g D_g^2 - sum_g (D_g - sum_k r_k T_gk)^2`, with `D_g` the sum of a cluster's flagged
    items, `T_gk` that of all its items of class k, and `r_k` the share of class k that is flagged.
    """
    of_cluster: tuple[Array, ...] = classes
    if ids is not None:
        index = ids.astype(int)
        of_cluster = tuple(numerics.sums_at(index, x, len(index))[index] for x in classes)
    shares = [numerics.divide(_from_start(x), x.sum(), 0.0) for x in classes]
    found: Array = 0.0 * _from_start(added)
    for share, whole in zip(shares, of_cluster, strict=True):
        found = found + 2 * share * _from_start(added * whole)
        for other, values in zip(shares, classes, strict=True):
            found = found - share * other * (values * whole).sum()
    return found


def _of_cluster(group: Array, distance: Array, added: Array) -> Array:
    """For each item, the sum of `added` over the items of its group at a smaller `distance`."""
    library = numerics.namespace(group, added)
    order = library.argsort(group.astype(int) * len(group) + distance)
    group = group[order]
    sums = _from_start(added[order])[:-1]
    sums = sums - sums[library.searchsorted(group, group)]
    return sums[library.argsort(order)]


def _from_start(values: Array) -> Array:
    """The running sums `[n + 1]`, of which the first is 0."""
    library = numerics.namespace(values)
    return library.concatenate([library.zeros(1), cumulative.cumulated(values)])
