"""The moments of closed-form intervals, of many data sets at once, by NumPy.

Written from the definitions, apart from the library: the two must agree. The rules, from moments to
limits, are the library's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxmetrics.inference._intervals.recall import Box, Heights, around_limit, likely_counts
from jaxmetrics.inference._intervals.rules import Moments

Columns = Any  # NumPy's, `[data_sets, ...]`


@dataclass(frozen=True)
class Sorted:
    """Data sets in order of falling score, `[data_sets, items]`.

    Attributes:
      positive: the labels.
      first, last: whether an item is the first, or the last, of those that tie.
    """

    positive: Columns
    first: Columns
    last: Columns

    @classmethod
    def of(cls, scores: Columns, n_positive: int) -> Sorted:
        order = np.argsort(-scores, axis=1, kind="stable")
        ranked = np.take_along_axis(scores, order, 1)
        edge = np.ones((len(scores), 1), bool)
        changes = ranked[:, 1:] != ranked[:, :-1]
        first, last = np.hstack([edge, changes]), np.hstack([changes, edge])
        return cls(order < n_positive, first, last)

    @property
    def sizes(self) -> tuple[Columns, Columns]:
        """Of negatives and of positives."""
        n1 = self.positive.sum(axis=1).astype(float)
        return self.positive.shape[1] - n1, n1

    def of_positives(self, x: Columns) -> Columns:
        return x[self.positive].reshape(len(x), -1)

    def of_negatives(self, x: Columns) -> Columns:
        return x[~self.positive].reshape(len(x), -1)

    @cached_property
    def _start(self) -> Columns:
        """The place of the first item of each tie."""
        places = np.arange(self.positive.shape[1])
        return np.maximum.accumulate(np.where(self.first, places, 0), axis=1)

    @cached_property
    def _end(self) -> Columns:
        n = self.positive.shape[1]
        places = np.where(self.last, np.arange(n), n)
        return np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]

    def above(self, of_class: Columns) -> Columns:
        """How many items of a class are above each item."""
        return self._at(np.cumsum(of_class, axis=1) - of_class, self._start)

    def not_below(self, of_class: Columns) -> Columns:
        return self._at(np.cumsum(of_class, axis=1), self._end)

    def sums_below(self, of_positives: Columns) -> tuple[Columns, Columns]:
        """The sums over the positives below each item, and over those that tie with it."""
        spread = np.zeros(self.positive.shape)
        spread[self.positive] = of_positives.ravel()
        from_here = np.cumsum(spread[:, ::-1], axis=1)[:, ::-1]
        below = self._at(from_here - spread, self._end)
        return below, self._at(from_here, self._start) - below

    @staticmethod
    def _at(x: Columns, places: Columns) -> Columns:
        return np.take_along_axis(x, places, 1)

    @cached_property
    def placements(self) -> tuple[Columns, Columns]:
        """Of each positive, the shares of the negatives above it and not below it."""
        n0 = self.sizes[0][:, None]
        counts = self.above(~self.positive), self.not_below(~self.positive)
        above, not_below = (self.of_positives(x) / n0 for x in counts)
        return above, not_below

    def height(self, limit: Any) -> Columns:
        """The largest TPR with an FPR within the limit."""
        return np.mean(self.placements[1] <= limit + 1e-12, axis=1)

    def moments(self, estimate: Columns, of_negatives: Columns, of_positives: Columns) -> Moments:
        """From the influence values of each class."""
        v0, v1 = (x.var(axis=1, ddof=1) for x in (of_negatives, of_positives))
        return Moments(estimate, (v0, v1), self.sizes)


def of_auc(data: Sorted) -> tuple[Moments, Any]:
    above, not_below = data.placements
    of_positives = 1 - (above + not_below) / 2
    wins = (data.above(data.positive) + data.not_below(data.positive)) / 2
    of_negatives = data.of_negatives(wins) / data.sizes[1][:, None]
    return data.moments(of_positives.mean(axis=1), of_negatives, of_positives), ()


def of_average_precision(data: Sorted) -> tuple[Moments, Any]:
    """And the average without each positive itself."""
    n0, n1 = (x[:, None] for x in data.sizes)
    caught = data.of_positives(data.not_below(data.positive))
    false = data.of_positives(data.not_below(~data.positive))
    precision = caught / (caught + false)
    gains, losses = (sum(data.sums_below(x / (caught + false) ** 2)) for x in (false, caught))
    of_positives = precision + data.of_positives(gains)
    of_negatives = -data.of_negatives(losses) * n0 / n1
    without = (caught - 0.5) / (caught - 0.5 + false)
    moments = data.moments(precision.mean(axis=1), of_negatives, of_positives)
    return moments, without.mean(axis=1)


def of_partial_auc(data: Sorted, limit: float) -> tuple[Moments, Any]:
    """And the height of the curve at the limit."""
    above, not_below = data.placements
    width = not_below - above
    tied = width > 0
    width = np.where(tied, width, 1)
    left, cut = np.maximum(limit - above, 0), np.maximum(limit - not_below, 0)
    slanted = (left**2 - cut**2) / (2 * width)
    shares = np.where(tied, slanted, left) / limit
    upright = -np.where(above < limit, 0.5, np.where(above == limit, 0.25, 0))
    by_above = np.where(tied, -left / width + slanted / width, upright)
    by_not_below = np.where(tied, cut / width - slanted / width, upright)
    below, _ = data.sums_below(by_above + by_not_below)
    _, beside = data.sums_below(by_not_below)
    of_negatives = data.of_negatives(below + beside) / data.sizes[1][:, None] / limit
    steps = np.where(np.abs(above - limit) < 1e-12, 0.5, above < limit)
    height = np.where(tied, np.clip((limit - above) / width, 0, 1), steps).mean(axis=1)
    return data.moments(shares.mean(axis=1), of_negatives, shares), height


def of_recall(data: Sorted, limit: float, level: float) -> tuple[Moments, Any]:
    """Without variances, which the rule does not need; and the heights around the limit."""
    n0, n1 = data.sizes
    area = of_partial_auc(data, limit)[0].estimate
    low, high = around_limit(np.float64(limit), n0)
    before = data.height(limit * (1 - 1e-7))
    heights = Heights(
        data.height(limit), before, *(data.height(x[:, None]) for x in (low, high)), area
    )
    fewest, most = likely_counts(np.float64(limit), n0, np.float64(level))
    least = np.where(fewest < 0, 0.0, data.height(fewest[:, None]))
    none = np.full(len(n0), np.nan)
    moments = Moments(heights.at, (none, none), (n0, n1))
    return moments, (heights, Box(least, data.height(most[:, None])))
