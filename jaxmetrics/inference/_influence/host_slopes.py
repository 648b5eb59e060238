"""Moments and influence of metrics of placements by NumPy, of concrete data in the CPU's memory.

All negatives between two neighbouring positives have the same influence, and so have all that tie
with one positive. The slopes of the metric in the placements of the positives are added up, which
gives those in the weights of rows of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.duals import value_and_slopes
from jaxmetrics._base.merging import counts_dtype
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.host_class import OneClass
from jaxmetrics._roc.host_placements import OnHost
from jaxmetrics._roc.host_rows import of_each_row
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics.inference._intervals.effective import spread_of_products
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.numbers import Decision
from jaxmetrics.inference._intervals.rules import Moments

SHORT = 1 << 14  # items; many rows of a batch with fewer take less time in one program
FEW_ROWS = 512  # up to so many take less time here than the first call of such a program
# Groups whose arrays stay in the cache; more are differentiated in parts. A metric is linear in the
# sum over all groups, so each group has the same slopes whatever else is in the sum.
_PART = 1 << 15
_FEW = 1 << 14  # items; fewer are sorted sooner than the head that counts is found
_NONE = np.zeros(0)


class _Rows(NamedTuple):
    """The items of one class, in rows that share one slope.

    Attributes:
      n: the number of items; those below the head are in the first row.
      items: the items of the head, in ascending order.
      below: the weights of the items below the head.
      bounds: `[rows + 1]`, where each row begins and ends among them.
      weights: `[rows]`, the total weight of each row.
      centred: `[rows]`, the derivative in the weight of an item, with that of the class held fixed.
      mean: what to add to `centred` for the derivative where the weight of the class moves, too.
    """

    n: float
    items: OneClass
    below: HostArray
    bounds: HostArray
    weights: HostArray
    centred: HostArray
    mean: Any


@dataclass(frozen=True)
class GroupsOfPositives:
    """Placements of groups of positives, as variables to differentiate in, JAX's or `duals`.

    Attributes:
      columns: `[5, groups]`, the weights of the groups, above, not_below, positives_above and
        positives_not_below.
      totals: `[2]`, the weights of all positives and of all negatives.
    """

    columns: Any
    totals: Any
    library = property(lambda self: numerics.namespace(self.columns[0]))
    slack = numerics.SLACK

    above = property(lambda self: self.columns[1])
    not_below = property(lambda self: self.columns[2])
    positives_above = property(lambda self: self.columns[3])
    positives_not_below = property(lambda self: self.columns[4])
    total_positives = property(lambda self: self.totals[0])
    total_negatives = property(lambda self: self.totals[1])

    def total(self, of_each: Any) -> Any:
        return self.library.sum(self.columns[0] * of_each, axis=-1)

    def near_one(self, *, together: bool = False) -> GroupsOfPositives:
        positives, negatives = map(numerics.as_constant, self.totals)
        if self.library is np and numerics.is_moderate(positives) & numerics.is_moderate(negatives):
            return self
        if together:
            positives = negatives = self.library.maximum(positives, negatives)
        units = [numerics.power_near(x) for x in (positives, negatives)]
        columns = [x / units[of] for x, of in zip(self.columns, _CLASSES, strict=True)]
        return GroupsOfPositives(columns, [x / u for x, u in zip(self.totals, units, strict=True)])

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        return function(self)


_CLASSES = 0, 1, 1, 0, 0  # the entry of `totals` for each column: 0 is the positives


@dataclass(frozen=True)
class _AskedLimits(OnHost):
    """Placements without items, which note the limits by which a metric asks for a head."""

    limits: list[Any]

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        if max_fpr is not None:
            self.limits.append(max_fpr)
        return super().summed(function)


def moments_on_host(
    chosen: Chosen, items: Items, arrays: Options, level: Any
) -> tuple[Moments, Any] | None:
    """`moments_of` of the variance, as NumPy's; None if NumPy cannot now."""
    if chosen.metric.of_placements is None:
        return None
    known = error_bars_of(chosen.metric)

    def of_row(placed: OnHost, undefined: bool, arrays: Options) -> tuple[Any, ...]:
        options = chosen.options(arrays)
        sizes: Any
        variances: Any
        with np.errstate(all="ignore"):
            if known.decision is None:
                estimate, rows = _row_slopes(placed, chosen, arrays, headed=True)
                sizes, variances = map(tuple, zip(*map(_size_and_variance, rows), strict=True))
            else:
                sizes = placed.negative.effective_size, placed.positive.effective_size
            beside = known.numbers_at(placed, sizes, level, options)
            if known.decision is not None:
                decision = known.decision(placed, sizes, options, beside)
                estimate, variances = decision.estimate, _variances(placed, decision)
        estimate = np.nan * estimate if undefined else estimate
        sizes = tuple(np.broadcast_to(x, np.shape(estimate)) for x in sizes)
        return estimate, *(x + 0 * estimate for x in variances), *sizes, beside

    found = of_each_row(of_row, items, arrays, SHORT, few=FEW_ROWS)
    if found is None:
        return None
    estimate, v0, v1, n0, n1, beside = stacked(*found)
    return Moments(estimate, (v0, v1), (n0, n1)), beside


def stacked(rows: Any, batch: tuple[int, ...]) -> Any:
    """One pytree of arrays `[*batch, ...]` from one for each row."""
    return jax.tree.map(lambda *x: np.reshape(x, (*batch, *np.shape(x[0]))), *rows)


def _variances(placed: OnHost, decision: Decision) -> tuple[Any, Any]:
    """The variances of the influence of negatives and of positives on a recall."""
    of_negatives = decision.slope**2 * _variance_of_flags(placed.negative, decision)
    return of_negatives, _variance_of_flags(placed.positive, decision)


def _variance_of_flags(items: OneClass, decision: Decision) -> Any:
    """The unbiased variance of whether an item is flagged; under weights as of `Moments`."""
    n, items = len(items.scores), items.near_one()[0]
    part = 0.0 if decision.tied is None else decision.tied
    above, tied = _flagged(items, decision)
    share = (above + part * tied) / items.weight
    squares = items if items.weights is None else items._replace(weights=items.weights**2)
    (above, tied), of_all = _flagged(squares, decision), squares.weight
    total = above * (1 - share) ** 2 + tied * (part - share) ** 2
    total = total + (of_all - above - tied) * share**2
    return (n / (n - 1) if n != 1 else np.nan) * total / of_all


def _flagged(items: OneClass, decision: Decision) -> tuple[Any, Any]:
    """The weight of the items above the threshold, and of those at it if a part is flagged."""
    at = np.asarray(decision.beyond)
    above, tied = items.weight_above(at, "right"), np.zeros(at.shape)
    if decision.tied is not None:
        tied = items.weight_above(at, "left") - above
    return np.where(decision.some, above, items.weight), np.where(decision.some, tied, 0)


def units_on_host(
    chosen: Chosen, items: Items, arrays: Options, of_item: Callable[..., tuple[Any, Any]]
) -> tuple[Any, Any] | None:
    """The metric, and `of_item` of each item `[..., n]`, as NumPy's; None if NumPy cannot now."""
    if chosen.metric.of_placements is None:
        return None

    def of_row(placed: OnHost, undefined: bool, arrays: Options) -> tuple[Any, HostArray]:
        with np.errstate(all="ignore"):
            estimate, by_class = rows_of(placed, chosen, arrays)
            rows = list(by_class)
            values = [of_item(x.centred, x.mean, np.float64(x.n), _mean_weight(x)) for x in rows]
        estimate = np.nan if undefined else estimate
        units = np.full(items.scores.shape[-1], 0 * estimate)
        for (_, of_class, _, bounds, *_), (value, less) in zip(rows, values, strict=True):
            found = (value + 0 * estimate).repeat(bounds[1:] - bounds[:-1])
            found = found if of_class.weights is None else found * of_class.weights
            units[of_class.items] = found if less is None else found - less
        return estimate, units

    found = of_each_row(of_row, items, arrays, 2 * SHORT, few=FEW_ROWS, by_item=True)
    if found is None:
        return None
    return stacked(*found)


def _mean_weight(rows: _Rows) -> Any:
    return None if rows.items.weights is None else rows.weights.sum() / np.float64(rows.n)


def rows_of(placed: OnHost, chosen: Chosen, arrays: Options) -> tuple[Any, Iterable[_Rows]]:
    """The value, and the rows of negatives and of positives."""
    decide = error_bars_of(chosen.metric).decision
    if decide is None:
        return _row_slopes(placed, chosen, arrays)
    # Copies, as a selection reorders scores in place, but not the indices of the items.
    classes = [x._replace(scores=x.scores.copy()) for x in (placed.negative, placed.positive)]
    sizes = classes[0].effective_size, classes[1].effective_size
    decision = decide(placed, sizes, chosen.options(arrays))
    chosen.refuse_shapes(decision.estimate)
    rows = []
    for items, slope in zip(classes, (-decision.slope, 1.0), strict=True):
        flags = decision.flags(items.scores)
        tied = [] if decision.tied is None else [decision.tied]
        shares = np.unique([0.0, 1.0, *tied])
        groups = [items.only(flags == x) for x in shares]
        joined: Any = (
            None if x[0] is None else np.concatenate(x) for x in zip(*groups, strict=True)
        )
        scaled, _ = OneClass(*joined).near_one()
        slopes = shares * slope / scaled.weight
        bounds = np.cumsum([0, *(len(x.scores) for x in groups)])
        rows.append(_rows(scaled, slopes, bounds, _NONE)._replace(mean=0.0))
    return decision.estimate, rows


def _head(placed: OnHost, chosen: Chosen, arrays: Options) -> OnHost:
    """The part of the placements that the metric depends on."""
    if len(placed.positive.scores) + len(placed.negative.scores) < _FEW:
        return placed
    none, zero = OneClass(placed.positive.scores[:0]), np.float64(0)
    asked = _AskedLimits(none, none, zero, zero, [])
    _value(chosen, asked, arrays)
    return placed.head(asked.limits[0]) if asked.limits else placed


def _value(chosen: Chosen, placed: Any, arrays: Options) -> Any:
    assert chosen.metric.of_placements is not None
    return chosen.metric.of_placements(placed, **chosen.options(arrays))


def _row_slopes(
    whole: OnHost, chosen: Chosen, arrays: Options, *, headed: bool = False
) -> tuple[Any, Iterable[_Rows]]:
    """The value, and the rows of negatives and of positives, one class after the other.

    If `headed`, only the items that the metric depends on are sorted.
    """

    def value(columns: Any, totals: Any) -> Any:
        return _value(chosen, GroupsOfPositives(columns, totals), arrays)

    if any(x.ndim for x in arrays.values()):
        chosen.refuse_several(arrays, 1)
    placed = _head(whole, chosen, arrays) if headed else whole
    positive, unit = placed.positives_ascending.near_one()
    negative, unit_of_negatives = placed.negatives_ascending.near_one()
    first = _first_of_groups(placed, joined=chosen.metric.of_roc_curve)
    lower, not_above = (x.take(first) for x in placed.places)
    n, kind = len(first), counts_dtype(max(len(positive.scores), len(negative.scores)))
    bounds = np.zeros(n + 2, kind)
    bounds[1:-1], bounds[-1] = first, len(positive.scores)
    of_groups = _sums(placed.positives_ascending, bounds)[1:]
    sums = placed.positives_ascending.from_here()
    totals = np.array([placed.total_positives, placed.total_negatives], np.float64)
    of_negatives, of_positives, so_far = np.zeros(2 * n + 1), np.zeros(n + 1), 0.0
    by_totals = np.zeros(2)
    for begin in range(0, max(n, 1), _PART):
        end = min(begin + _PART, n)
        part = slice(begin, end)
        columns = np.empty((5, end - begin))
        columns[0] = of_groups[part]
        columns[1:3] = [placed.weight_from(x[part]) for x in (not_above, lower)]
        columns[3:5] = [sums.take(x[part]) for x in (bounds[2:], first)]
        estimate, slopes, in_totals = value_and_slopes(value, columns, totals)
        by_totals += in_totals
        by_weight, by_negatives, by_positives = slopes[0], slopes[1:3], slopes[3:5]
        of_negatives[2 * begin : 2 * end + 1] = _spread(of_negatives[2 * begin], *by_negatives)
        spread = _spread(so_far, *by_positives)
        of_positives[begin + 1 : end + 1] = by_weight + spread[1::2]
        so_far = spread[-1]
    if n > _PART:
        estimate = _value(chosen, placed, arrays)

    between = np.zeros(2 * n + 2, kind)
    between[1:-1:2], between[2::2], between[-1] = lower, not_above, len(negative.scores)
    of_positives += by_totals[0]
    of_negatives += by_totals[1]
    of_positives *= unit
    of_negatives *= unit_of_negatives

    def of_classes() -> Iterator[_Rows]:
        below = whole.negative.weights_below(placed.negative, unit_of_negatives)
        yield _rows(negative, of_negatives, between, below)
        below = whole.positive.weights_below(placed.positive, unit)
        yield _rows(positive, of_positives, bounds, below)

    return float(estimate), of_classes()


def _first_of_groups(placed: OnHost, *, joined: bool) -> HostArray:
    """The first positive of each group of positives that tie.

    If `joined`, positives between which there is no negative form one group, too.
    """
    below, not_above = placed.places
    keys = [placed.positives_ascending.scores]
    if joined:
        keys = [below] if below is not_above else [below, not_above]
    begins = np.ones(len(below), bool)
    begins[1:] = False
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)


def _sums(items: OneClass, bounds: HostArray) -> HostArray:
    """The weight of the items between neighbouring bounds, by direct sums.

    Differences of running sums would be rounded to the digits of all weights.
    """
    lengths = bounds[1:] - bounds[:-1]
    if items.weights is None:
        return lengths.astype(np.float64)
    sums = np.add.reduceat(np.append(items.weights, 0.0), bounds[:-1])
    return np.where(lengths > 0, sums, 0.0)


def _spread(start: float, by_above: HostArray, by_not_below: HostArray) -> HostArray:
    """The slopes of items between groups and of items that tie with a group, in turn, from below.

    An item above a group counts in both placements of the group, and one that ties with it in
    `not_below` alone. `start` is the slope of the items below all groups.
    """
    slopes = np.full(2 * len(by_above) + 1, start)
    slopes[2::2] = by_above + by_not_below
    np.cumsum(slopes[::2], out=slopes[::2])
    slopes[1::2] = slopes[:-1:2] + by_not_below
    return slopes


def _rows(items: OneClass, slopes: HostArray, bounds: HostArray, below: HostArray) -> _Rows:
    """The rows between the bounds, their slopes centred in place.

    The lowest row also has the items of the weights `below`.
    """
    weights = _sums(items, bounds)
    weights[0] += below.sum()
    of_class = weights.sum()
    # Not BLAS's product, whose threads wait for JAX's.
    mean = np.einsum("i,i", slopes, weights) / of_class if of_class else 0.0
    slopes -= mean
    n = len(items.scores) + len(below)
    return _Rows(n, items, below, bounds, weights, slopes, mean)


def _size_and_variance(rows: _Rows) -> tuple[Any, Any]:
    """The effective size of a class, and the unbiased variance of the influence in it."""
    n, items, below, bounds, weights, centred, mean = rows
    size = total = weights.sum()
    if items.weights is None or not total:
        spread = np.einsum("i,i,i", weights, centred, centred)
    else:
        squares = _sums(items._replace(weights=items.weights**2), bounds)
        squares[0] += (below**2).sum()
        lean = np.einsum("i,i", squares, centred)
        powers = squares.sum(), lean, np.einsum("i,i,i", squares, centred, centred)
        size = total**2 / powers[0]
        spread = spread_of_products(powers, mean, total, np.float64(n))
    return size, size * (n / (n - 1) if n != 1 else np.nan) * spread
