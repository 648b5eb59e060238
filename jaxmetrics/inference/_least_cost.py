"""The thresholds whose cost is not significantly above the least: limits of the cheapest one.

A percentile of resamples is no limit of a point that minimises a step function: it moves at the
rate n^(-1/3), and the bootstrap is inconsistent. A test of each threshold against the chosen one is
a test of a sum over the items between the two.
"""

from __future__ import annotations

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.types import Array, Items
from jaxmetrics.inference._at_threshold import weights_by_class
from jaxmetrics.inference._intervals.distributions import normal_quantile
from jaxmetrics.inference._intervals.rules import Limits

_MORE = 2  # items of each class, by which the variance of few items is raised
_ROUNDING = 1e-9


@library_program()
def limits_of_cheapest(
    items: Items, ids: Array | None, threshold: Array, costs: tuple[Array, Array], level: Array
) -> Limits:
    """The lowest and the highest threshold that is not significantly dearer than `threshold`.

    `costs` `[...]` are those of a flagged negative and of a missed positive, and `ids` `[n]` are of
    clusters. A limit is infinite if it may be best to flag everything, or nothing.
    """
    positives, negatives, _ = weights_by_class(items)
    library = numerics.namespace(positives, threshold)
    added = [x[..., None] * y for x, y in zip(costs, (negatives, positives), strict=True)]
    largest = library.max(added[0] + added[1], axis=-1, keepdims=True)
    added = [numerics.divide(x, largest, 0.0) for x in added]
    typical = [numerics.divide((x**2).sum(axis=-1), x.sum(axis=-1), 0.0) for x in added]
    variance = _MORE * (typical[0] ** 2 + typical[1] ** 2)
    scores = library.where(positives + negatives > 0, items.scores.astype(float), -library.inf)
    z = library.maximum(normal_quantile(level), 0.0)

    def of_row(scores: Array, added: Array, variance: Array, threshold: Array) -> Array:
        order = library.argsort(-scores)
        scores, added = scores[order], added[order]
        place, n = library.arange(len(scores)), library.sum(scores >= threshold)
        distance = library.where(place < n, n - 1 - place, place - n)
        nearer = library.zeros_like(added)
        if ids is not None:
            nearer = _of_cluster(2 * ids[order] + (place < n), distance, added)
        # The square of the sum of each cluster grows by this as the threshold passes an item.
        cost, squares = (_from_start(x) for x in (added, added * (2 * nearer + added)))
        dearer, spread = cost - cost[n], library.abs(squares - squares[n])
        ends = library.full(1, library.inf)
        upper, lower = (library.concatenate(x) for x in ((ends, scores), (scores, -ends)))
        inside = dearer <= z * library.sqrt(spread + variance) * (1 + _ROUNDING)
        inside = inside & (lower < upper)  # no threshold is within a tie
        low = library.min(library.where(inside, lower, library.inf))
        high = library.max(library.where(inside, upper, -library.inf))
        limits: Array = library.stack([low, high])
        return limits

    rows = library.vectorize(of_row, signature="(n),(n),(),()->(k)")
    found = rows(scores, added[0] - added[1], variance, threshold)
    return found[..., 0], found[..., 1]


def _of_cluster(group: Array, distance: Array, added: Array) -> Array:
    """The sum over the items of the same group that are nearer."""
    library = numerics.namespace(group, added)
    order = library.argsort(group.astype(int) * len(group) + distance)
    group = group[order]
    sums = _from_start(added[order])[:-1]
    sums = sums - sums[library.searchsorted(group, group)]
    found: Array = sums[library.argsort(order)]
    return found


def _from_start(values: Array) -> Array:
    """`[n + 1]`, running sums from 0 on."""
    library = numerics.namespace(values)
    found: Array = library.concatenate([library.zeros(1), numerics.cumulated(values)])
    return found
