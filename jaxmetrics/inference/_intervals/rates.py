"""The rates of both classes at or above each threshold, and the draws that they vary as.

Where items have weights, or depend on each other within clusters, a share p has another variance V
than that of as many independent items. The limits of a share of p (1 - p) / V draws serve it.

Reference: E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected
number of positive counts estimated from survey data", Survey Methodology 24, 1998.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._base import cumulative, numerics, sorting
from jaxmetrics._base.items import at_least_one, class_weights
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.table import Prepared, ScoreTable, build, sorted_keys
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.effective import kept_and_df, kish, to_ends
from jaxmetrics.inference._intervals.rules import draws_of_share

ByClass: TypeAlias = tuple[Array, Array]  # of negatives, of positives

_PRIOR = 3.0  # the prior that `_shrunk` shrinks to counts as this many draws that differ


class Rate(NamedTuple):
    """The share of a class at or above each threshold, from none of its items to all, `[rows + 1]`.

    Attributes:
      at: the share.
      variance: its variance; NaN where one cluster has all items of the class.
      draws: how many independent items have a share that varies as much, and is known as well; at
        most Kish's size.
    """

    at: Array
    variance: Array
    draws: Array

    def drawn(self, rows: Array) -> tuple[Array, Array]:
        """The draws of these rows, and how many of them are at or above the threshold."""
        draws = self.draws[rows]
        return draws, self.at[rows] * draws


class Rates(NamedTuple):
    """The rates of both classes.

    Attributes:
      table: the table of the items, `[rows]`.
      undefined: whether a valid score is NaN, or no item is valid.
      negatives, positives: the rates of the classes.
      correlation: that of the two, by clusters, `[rows + 1]`; None without clusters.
    """

    table: ScoreTable
    undefined: Array
    negatives: Rate
    positives: Rate
    correlation: Array | None


class _Units(NamedTuple):
    """Sums over the units of each class, which are items or clusters, as of `_by_threshold`.

    Attributes:
      squares: of the squared weights of the units at or above a threshold.
      products: of these weights times the whole weights of the units.
    """

    squares: ByClass
    products: ByClass


def rates_of(row: Items, ids: Any, n_clusters: int, level: Any) -> Rates:
    """The rates of scores `[n]` with weights, and with clusters unless `ids` is None.

    The variance by few clusters is not known well: there are fewer draws, by the squared ratio of
    the quantiles of Student's t at this level, of as many degrees of freedom as independent items
    and as the clusters have.
    """
    items = at_least_one(row)
    order = sorted_keys(items)  # one sort for all tables
    of_positives, of_negatives = (numerics.near_one(x)[0] for x in class_weights(items))
    by_class, weights = (of_negatives, of_positives), of_negatives + of_positives

    def table(of_items: Array) -> tuple[ScoreTable, Array]:
        return build(Prepared(items._replace(weights=of_items), order))

    def units(unit: Any, n: int) -> _Units:
        added = _in_units(weights, unit, n, order[1])
        return _Units(*(_by_threshold(table(x)[0]) for x in added))

    whole, undefined = table(weights)
    above = _by_threshold(whole)
    squares = _by_threshold(table(weights**2)[0])
    sizes = (kish(x)[0] for x in by_class)
    given = zip(above, squares, squares, sizes, strict=True)
    alone = negatives, positives = [_rate(*x) for x in given]
    if ids is None:
        return Rates(whole, undefined, negatives, positives, None)
    of_class = units(2 * ids + (items.labels == 1), 2 * n_clusters)
    known = [_known(x, numerics.sums_at(ids, x, n_clusters), level) for x in by_class]
    by_clusters = zip(above, *of_class, alone, known, strict=True)
    negatives, positives = (_rate_by_clusters(*x) for x in by_clusters)
    correlation = _correlation(above, of_class, units(ids, n_clusters))
    return Rates(whole, undefined, negatives, positives, correlation)


def _in_units(weights: Array, unit: Array, n: int, order: Array) -> tuple[Array, Array]:
    """What each item adds to the sums of `_Units`; `order` has the items by descending score."""
    library = numerics.namespace(weights, unit)
    place = library.arange(len(order), dtype=np.uint32)
    keys, places = sorting.sort_by_key_and_payload(
        sorting.take(unit, order).astype(np.uint32), place, most=len(order) - 1
    )
    at = sorting.take(order, places)  # the items of a unit in turn
    whole = numerics.sums_at(unit, weights, n)
    own = sorting.take(weights, at)
    before = cumulative.running_sum(own) - own
    before = before - sorting.take(cumulative.running_sum(whole) - whole, keys)
    above = numerics.sums_at(at, before, len(order))  # in the order of the items again
    return weights * (2 * above + weights), weights * sorting.take(whole, unit)


class _Known(NamedTuple):
    """What is known of a variance by clusters, beside one by as many independent items.

    Attributes:
      kept: the part that a sum of squares keeps of it; NaN where one cluster has all items.
      draws: the squared ratio of quantiles of Student's t for items and for clusters, at most 1.
      alike: the effective size of the items over that of the clusters.
    """

    kept: Array
    draws: Array
    alike: Array


def _known(of_items: Array, of_clusters: Array, level: Any) -> _Known:
    """What is known by clusters of a class, from the weights of its items and of the clusters."""
    (n, items), (k, clusters) = kish(of_items), kish(of_clusters)
    (kept, df), (kept_of_clusters, df_of_clusters) = map(kept_and_df, (items, clusters))
    library = numerics.namespace(df_of_clusters)
    some = df_of_clusters > 0
    by_items, by_clusters = (
        distributions.t_quantile((1 + level) / 2, library.where(some, x, 1.0))
        for x in (df, df_of_clusters)
    )
    part = library.where(some, numerics.divide(kept_of_clusters, kept, np.nan), np.nan)
    return _Known(part, library.minimum((by_items / by_clusters) ** 2, 1.0), n / k)


def _share(sums: Array) -> Array:
    """The shares of the last sum."""
    return to_ends(sums / sums[-1])


def _rate(weights: Array, squares: Array, products: Array, most: Array, kept: Any = 1.0) -> Rate:
    """The Rate of a class from sums over its units `[rows + 1]`, of at most so many draws."""
    share = _share(weights)
    variance = _squared(weights, squares, products) / weights[-1] ** 2 / kept
    known = numerics.namespace(variance).nan_to_num(variance)
    return Rate(share, variance, draws_of_share(share, known, most))


def _rate_by_clusters(
    weights: Array, squares: Array, products: Array, alone: Rate, known: _Known
) -> Rate:
    """The Rate of a class by its clusters, of at most the draws of its items `alone`."""
    rate = _rate(weights, squares, products, alone.draws, known.kept)
    return rate._replace(draws=_shrunk(rate, alone.draws, known.alike) * known.draws)


def _squared(weights: Array, squares: Array, products: Array) -> Array:
    """The sum of the squared distances of units from what they would have at the mean share."""
    library, share = numerics.namespace(weights), _share(weights)
    found = library.maximum(squares - 2 * share * products + share**2 * products[-1], 0.0)
    return library.where(share == 1, 0.0, found)


def _shrunk(rate: Rate, alone: Array, alike: Array) -> Array:
    """The draws, fewer where few clusters differ, and known from other thresholds.

    Where no cluster differs there would be as many as of the items `alone`, which may be copies of
    each other. So `times`, by which clusters take draws away, is shrunk to a `prior`.
    """
    library = numerics.namespace(alone)
    times = alone / rate.draws
    few = library.minimum(rate.at, 1 - rate.at) * rate.draws  # that differ from the others
    most = library.max((few * times + _PRIOR) / (few + _PRIOR))
    prior = (most * alike) ** 0.5  # between these and one draw for each cluster
    return library.minimum(alone * (few + _PRIOR) / (few * times + _PRIOR * prior), rate.draws)


def _correlation(above: ByClass, of_class: _Units, of_both: _Units) -> Array:
    """The correlation of the two rates, from sums over the units of each class and of both."""
    # Of a cluster with weights a and b, (a + b)^2 - a^2 - b^2 is 2 a b.
    twice: Any = sum(of_both.squares) - sum(of_class.squares)
    a, b = (x - y for x, y in zip(of_both.products, of_class.products, strict=True))
    p, q = map(_share, above)
    together = twice / 2 - q * a - p * b + p * q * a[-1]
    by_class = (_squared(*x) for x in zip(above, *of_class, strict=True))
    spread = numerics.namespace(p).sqrt(math.prod(by_class))
    return numerics.divide(together, spread, 0.0)


def _by_threshold(table: ScoreTable) -> ByClass:
    """The sums of both columns up to each row, from none of them to all; negatives first."""
    library = numerics.namespace(*table)
    none = library.zeros(1)
    sums = (cumulative.running_sum(x) for x in (table.negatives, table.positives))
    negatives, positives = (library.concatenate([none, x]) for x in sums)
    return negatives, positives
