"""Limits of the threshold that leaves a given share of a class, by its order statistics.

NumPy computes them for items in the memory of the CPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.items import class_weights
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.selection import highest
from jaxmetrics.inference._at_threshold import weights_by_class
from jaxmetrics.inference._intervals.distributions import binomial_quantiles
from jaxmetrics.inference._intervals.effective import effective_size
from jaxmetrics.inference._intervals.operating import QuantileOf, Sizes
from jaxmetrics.inference._intervals.rules import Limits

_ROUNDING = 1e-9
_SOME = 5  # clusters; of fewer, `_clustered_size` counts each as one item


def limits_of_quantile(
    of_class: QuantileOf, share: Any, items: Items, ids: Array | None, sizes: Sizes, level: float
) -> tuple[Sizes, Limits]:
    """The limits of a threshold that leaves a share of a class; with clusters, sizes by them."""
    of_negatives, size = of_class == "negatives", getattr(sizes, of_class)
    if ids is not None:
        size = _clustered_size(items, ids, near_tree(share + 0 * size), of_negatives)
        of_size: dict[str, Any] = {of_class: size}
        sizes = sizes._replace(**of_size)
    shares = _likely_shares(*near_tree((size, share, np.float64(level))))
    return sizes, _order_statistics(items, ids, shares, of_negatives)


@library_program("of_negatives")
def _clustered_size(items: Items, ids: Array, share: Array, of_negatives: bool) -> Array:
    """The number `[...]` of independent items of a class that vary as much as its clusters.

    The variance is that of the share of the class at or above a score. It is taken at two scores,
    one with `share` of the class at or above it and one with half of the class, and the smaller
    number counts: the few items above a high score do not show how the items of a cluster depend on
    each other. The number is at most Kish's effective size of the items, or, with fewer than _SOME
    clusters, that of the clusters.
    """
    positives, negatives, _ = weights_by_class(items)
    library = numerics.namespace(positives, share)

    def of_row(scores: Array, weights: Array, shares: Array) -> Array:
        order = library.argsort(-scores)
        weights, index = weights[order], ids[order].astype(int)
        scores, counted = scores[order], cumulative.running_sum(weights)
        total = counted[-1]
        at = library.searchsorted(counted, shares * total * (1 - _ROUNDING))
        at = library.minimum(at, len(scores) - 1)

        def squares(of_item: Array) -> Any:
            return library.sum(numerics.sums_at(index, of_item, len(scores)) ** 2)

        n_clusters = library.sum(numerics.sums_at(index, weights, len(scores)) > 0)
        each = numerics.divide(total**2, squares(weights), 0.0)
        most: list[Any] = [library.where(n_clusters < _SOME, each, effective_size(weights))]
        for at_least, above in zip(scores[at], shares, strict=True):
            spread = squares(weights * ((scores >= at_least) - above))
            unbiased = spread * n_clusters / library.maximum(n_clusters - 1, 1)
            inflated = numerics.divide(unbiased, above * (1 - above) * total**2, 0.0)
            most.append(numerics.divide(library.ones_like(inflated), inflated, library.inf))
        return functools.reduce(library.minimum, most) * (1 + _ROUNDING)

    weights = negatives if of_negatives else positives
    scores = library.where(weights > 0, items.scores.astype(np.float64), -np.inf)
    shares = library.stack([share, 0 * share + 0.5], axis=-1)
    return library.vectorize(of_row, signature="(n),(n),(k)->()")(scores, weights, shares)


@library_program()
def _likely_shares(size: Array, share: Array, level: Array) -> Array:
    """The shares `[..., 2]` of a class above the two limits of its (1 - share)-quantile.

    The number of items above the true quantile is binomial, whatever distribution the scores have.
    """
    chances = [(1 + side * level) / 2 for side in (-1, 1)]
    fewest, most = binomial_quantiles(chances, size, share + 0 * size)
    return numerics.namespace(size).stack([fewest / size, (most + 1) / size], axis=-1)


@library_program("of_negatives")
def _order_statistics(items: Items, ids: Array | None, shares: Array, of_negatives: bool) -> Limits:
    """The limits of a quantile: the scores at or above which `shares` `[..., 2]` of a class are.

    The first share gives the upper limit and the second the lower one. A share of 0 gives +inf, and
    one above 1 gives -inf. Where scores have levels, the lowest with a share of the negatives of at
    most x may be the one above their quantile, and so is the upper limit.
    """
    positives, negatives = class_weights(items._replace(amounts=None))
    library = numerics.namespace(positives, shares)
    units: Any = np.arange(items.scores.shape[-1]) if ids is None else ids

    def of_row(scores: Array, weights: Array, others: Array, shares: Array) -> Array:
        least = shares * library.sum(weights) * (1 - _ROUNDING)  # weight at or above the limit
        if items.weights is None:
            places = library.ceil(library.maximum(least, 1)) - 1
            found = highest(scores, weights > 0, places)
        else:
            order = library.argsort(-library.where(weights > 0, scores, -np.inf))
            at = library.searchsorted(cumulative.running_sum(weights[order]), least)
            found = library.take(scores[order], at, mode="clip")
        if of_negatives:
            next_level = _next_level(scores, units, weights + others > 0, found[0])
            found = library.stack([next_level, found[1]])
        found = library.where(shares > 1, -np.inf, found)
        return library.where(shares > 0, found, np.inf)

    rows = library.vectorize(of_row, signature="(n),(n),(n),(k)->(k)")
    both = (negatives, positives) if of_negatives else (positives, negatives)
    found = rows(items.scores, *both, shares).astype(np.float64)
    return found[..., 1], found[..., 0]


def _next_level(scores: Array, units: Array, counted: Array, score: Array) -> Array:
    """The next higher score, or +inf, where items of several units tie at this one; else this."""
    library = numerics.namespace(scores, score)
    here = (scores == score) & counted
    first, last = _ends(units, here)
    return library.where(first < last, _ends(scores, (scores > score) & counted)[0], score)


def _ends(values: Array, which: Array) -> tuple[Array, Array]:
    """The lowest and the highest of the values that are `which`; inf and -inf if there are none."""
    library = numerics.namespace(values, which)
    every: Any = np.True_
    values, which = (values[which], every) if library is np else (values, which)
    values = values.astype(np.float64)
    low, high = (library.where(which, values, x) for x in (np.inf, -np.inf))
    return library.min(low, initial=np.inf), library.max(high, initial=-np.inf)
