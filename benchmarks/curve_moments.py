"""The moments of closed-form intervals, of many data sets at once, by NumPy.

Written from the definitions, apart from the library: the two must agree. The rules, from moments to
limits, are the library's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxmetrics.inference._intervals.precision import Precisions
from jaxmetrics.inference._intervals.recall import Heights, around_limit, box_of
from jaxmetrics.inference._intervals.rules import Moments

Columns = Any  # NumPy's, `[data_sets, ...]`


@dataclass(frozen=True)
class Runs:
    """Data sets as counts of the items of each class that tie, `[data_sets, runs]`, in order of
    falling score."""

    positives: Columns
    negatives: Columns

    @property
    def sizes(self) -> tuple[Columns, Columns]:
        """Of negatives and of positives."""
        n0, n1 = (x.sum(axis=1).astype(float) for x in (self.negatives, self.positives))
        return n0, n1

    @cached_property
    def caught(self) -> Columns:
        """How many positives are not below each run."""
        return np.cumsum(self.positives, axis=1)

    @cached_property
    def false(self) -> Columns:
        return np.cumsum(self.negatives, axis=1)

    @cached_property
    def placements(self) -> tuple[Columns, Columns]:
        """The shares of the negatives above each run and not below it."""
        n0 = self.sizes[0][:, None]
        return (self.false - self.negatives) / n0, self.false / n0

    def from_here(self, of_positives: Columns) -> Columns:
        """The sums over the positives that are not above each run."""
        return np.cumsum((self.positives * of_positives)[:, ::-1], axis=1)[:, ::-1]

    def mean(self, of_positives: Columns) -> Columns:
        return (self.positives * of_positives).sum(axis=1) / self.sizes[1]

    def height(self, limit: Any) -> Columns:
        """The largest TPR with an FPR within the limit."""
        return self.mean(self.placements[1] <= limit + 1e-12)

    def moments(self, estimate: Columns, of_negatives: Columns, of_positives: Columns) -> Moments:
        """From the influence values of each class."""

        def variance(counts: Columns, values: Columns) -> Columns:
            n = counts.sum(axis=1)
            centre = (counts * values).sum(axis=1) / n
            return (counts * (values - centre[:, None]) ** 2).sum(axis=1) / (n - 1)

        v0 = variance(self.negatives, of_negatives)
        return Moments(estimate, (v0, variance(self.positives, of_positives)), self.sizes)


def of_auc(data: Runs) -> tuple[Moments, Any]:
    above, not_below = data.placements
    of_positives = 1 - (above + not_below) / 2
    of_negatives = (data.caught - data.positives / 2) / data.sizes[1][:, None]
    return data.moments(data.mean(of_positives), of_negatives, of_positives), ()


def of_average_precision(data: Runs) -> tuple[Moments, Any]:
    """And the average without each positive itself, and the odds of a negative."""
    n0, n1 = (x[:, None] for x in data.sizes)
    caught, flagged = data.caught, np.maximum(data.caught + data.false, 1)
    precision = caught / flagged
    gains, losses = (data.from_here(x / flagged**2) for x in (data.false, caught))
    without = np.maximum(caught - 0.5, 0) / np.maximum(flagged - 0.5, 0.5)
    moments = data.moments(data.mean(precision), -losses * n0 / n1, precision + gains)
    return moments, Precisions(data.mean(without), (n0 / n1)[:, 0])


def of_partial_auc(data: Runs, limit: float) -> tuple[Moments, Any]:
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
    below = data.from_here(by_above + by_not_below) - data.positives * by_above
    of_negatives = below / data.sizes[1][:, None] / limit
    steps = np.where(np.abs(above - limit) < 1e-12, 0.5, above < limit)
    height = data.mean(np.where(tied, np.clip((limit - above) / width, 0, 1), steps))
    return data.moments(data.mean(shares), of_negatives, shares), height


def of_recall(data: Runs, limit: float, level: float) -> tuple[Moments, Any]:
    """Without variances, which the rule does not need; and the heights around the limit."""
    n0, n1 = data.sizes
    area = of_partial_auc(data, limit)[0].estimate
    low, high = around_limit(np.float64(limit), n0)
    before = data.height(limit * (1 - 1e-7))
    heights = Heights(
        data.height(limit), before, *(data.height(x[:, None]) for x in (low, high)), area
    )

    def height(*limits: Columns) -> list[Columns]:
        return [data.height(x[:, None]) for x in limits]

    box = box_of(height, np.float64(limit), n0, np.float64(level))
    none = np.full(len(n0), np.nan)
    moments = Moments(heights.at, (none, none), (n0, n1))
    return moments, (heights, box)
