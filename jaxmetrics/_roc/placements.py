"""Placements: for each positive, the weight of the negatives above it, and not below it.

A metric that sums a function of these two over the positives is written once, for any source of
placements: a score table, whose rows are groups of tied positives, or items that NumPy sorts.

Reference: M. S. Pepe and T. Cai, "The analysis of placement values for evaluating discriminatory
measures", Biometrics 60, 2004.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.cumulative import running_total
from jaxmetrics._base.host import all_concrete
from jaxmetrics._base.numerics import is_inexact, namespace, slack
from jaxmetrics._base.types import ArrayLike
from jaxmetrics._roc.limits import Limit
from jaxmetrics._roc.quantile import weighted_quantile
from jaxmetrics._roc.table import ScoreTable, falling, preceded

# From this FPR limit on, the head is seldom a quarter of the items or less: `selection` would then
# sort all items.
_SHORT_HEAD = 0.125
_FEW = 4  # up to so many limits, selections within a program take less time than the sort


class Part(enum.Enum):
    """Which part of the order of the items a function of placements needs."""

    ALL = enum.auto()
    POSITIVES = enum.auto()  # only what is above and not below each positive: `summed`
    HEAD = enum.auto()  # the same, only for the positives within `max_fpr`: `summed`
    NONE = enum.auto()  # one score for each limit: `caught`, `lowest_caught`, `quantile`


def order_of_all(**options: Any) -> Part:
    """`Metric.orders` of a function that needs the order of all items."""
    return Part.ALL


def order_of_positives(**options: Any) -> Part:
    """`Metric.orders` of a function that is a sum over positives."""
    return Part.POSITIVES


def order_of_head(max_fpr: ArrayLike) -> Part:
    """`Metric.orders` of a sum over the head; all positives if the head is known to be long."""
    long = all_concrete(max_fpr) and not np.max(np.asarray(max_fpr), initial=0) < _SHORT_HEAD
    return Part.POSITIVES if long else Part.HEAD


def order_of_few(limits: ArrayLike) -> Part:
    """`Metric.orders` of a function that one score for each limit decides; many share one sort."""
    return Part.NONE if np.size(limits) <= _FEW else Part.ALL


class Beside(NamedTuple):
    """The ROC points on both sides of a limit: their thresholds and false positives."""

    within: Any
    beyond: Any
    fps_within: Any
    fps_beyond: Any


class Corners(NamedTuple):
    """The ROC points on both sides of a limit: their false and true positives, as weights."""

    fps_within: Any
    fps_beyond: Any
    tps_within: Any
    tps_beyond: Any


class Groups(Protocol):
    """Groups of positives that share a score, and the weights above and not below each, `[groups]`.

    Without weights, these are numbers of items. They are in float64, or integers.
    """

    @property
    def library(self) -> Any:
        """`numpy` or `jax.numpy`, for arithmetic with the arrays."""

    @property
    def slack(self) -> float:
        """Relative tolerance of an FPR limit, which sums of weights reach only up to rounding."""

    @property
    def total_negatives(self) -> Any:
        """The weight of all negatives, which broadcasts with what is of each group."""

    @property
    def above(self) -> Any:
        """The weight of the negatives above the group."""

    @property
    def not_below(self) -> Any:
        """The weight of the negatives above the group, and of those that tie with it."""

    @property
    def positives_above(self) -> Any:
        """The weight of the positives above the group."""

    @property
    def positives_not_below(self) -> Any:
        """The weight of the positives above the group, and of those that tie with it."""

    def total(self, of_each: Any) -> Any:
        """The sum of `of_each` `[..., groups]`, times the weight of the positives of each group."""


class Placements(Protocol):
    """Where the positives are among the negatives, in weights, or in numbers without weights."""

    @property
    def library(self) -> Any:
        """`numpy` or `jax.numpy`, for arithmetic with the arrays."""

    @property
    def total_positives(self) -> Any: ...

    @property
    def total_negatives(self) -> Any: ...

    def near_one(self, *, together: bool = False) -> Placements:
        """The placements with weights in units that keep products of weights in range.

        Each class has its own unit, or `together` one for both. Derivatives of quotients have
        products, even where the value has none.
        """

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        """The sum of `function(groups)` over parts that together hold all groups.

        With `max_fpr`, groups may be left out if a larger share of the negatives is above them.
        """

    def caught(self, limit: Limit) -> Any:
        """The weight of the positives above every negative that is beyond the limit."""

    def lowest_caught(self, limit: Limit) -> Any:
        """The lowest score of the positives that `caught` counts; +inf if there is none."""

    def beside(self, limit: Limit) -> Beside:
        """The last ROC point within the limit, and the next one, or the same if it is the end."""

    def corners(self, limit: Limit) -> Corners:
        """The weights of both classes at these points; only of a table, and of one row by NumPy."""

    def quantile(self, q: Any, method: str) -> Any:
        """The q-quantile of the negatives' scores."""

    def caught_above(self, threshold: Any) -> Any:
        """The weight of the positives with a score above `threshold`."""


@dataclass(frozen=True)
class OfPlacements:
    """A function of placements as a function of a score table, which `Metric.function` must be."""

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: ArrayLike) -> Any:
        return self.function(OfTable(table), **options)


def as_constants(placed: Placements) -> Placements:
    """The placements without derivatives: one search may then serve many limits."""
    return replace(placed, constant=True) if isinstance(placed, OfTable) else placed


@dataclass(frozen=True)
class OfTable:
    """Placements from the rows of a table: groups of positives that tie, some of which are empty.

    Attributes:
      table: the table `[rows]`.
      whole: the total weights of positives and of negatives, if the table is only a head.
      constant: whether the metric is not differentiated, as that of a resample.
    """

    table: ScoreTable
    whole: tuple[Any, Any] | None = None
    constant: bool = False

    @property
    def library(self) -> Any:
        return namespace(*self.table)

    @property
    def slack(self) -> float:
        return slack(self.table.negatives)

    def total(self, of_each: Any) -> Any:
        return self.library.sum(self.table.positives * of_each, axis=-1)

    @cached_property
    def _tps(self) -> Any:
        return running_total(self.table.positives)

    @cached_property
    def _fps(self) -> Any:
        return running_total(self.table.negatives)

    @property
    def above(self) -> Any:
        return _before(self._fps, self.table.negatives)

    @property
    def not_below(self) -> Any:
        return self._fps.astype(np.float64)

    @property
    def positives_above(self) -> Any:
        return _before(self._tps, self.table.positives)

    @property
    def positives_not_below(self) -> Any:
        return self._tps.astype(np.float64)

    @property
    def total_positives(self) -> Any:
        return self._tps[-1].astype(np.float64) if self.whole is None else self.whole[0]

    @property
    def total_negatives(self) -> Any:
        return self._fps[-1].astype(np.float64) if self.whole is None else self.whole[1]

    def near_one(self, *, together: bool = False) -> OfTable:
        thresholds, *counts = self.table
        if together:
            positives, negatives = numerics.near_one(*counts)
        else:
            (positives,), (negatives,) = map(numerics.near_one, counts)
        return OfTable(ScoreTable(thresholds, positives, negatives), constant=self.constant)

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        return function(self)

    @cached_property
    def _falling(self) -> Any:
        """The thresholds; a row without weight repeats the one before it, or +inf."""
        weighty = self.table.positives + self.table.negatives > 0
        return falling(self.table.thresholds, weighty, np.inf)

    def _last_within(self, limit: Limit) -> Any:
        """The index of the last ROC point within the limit; point 0 is at +inf."""
        fps, most = _from_zero(self._fps), limit.slackened_bound(self.slack)
        points = limit.rate(fps, fps[-1]).astype(most.dtype)
        return self.library.searchsorted(points, most, side="right") - 1

    def caught(self, limit: Limit) -> Any:
        return _from_zero(self._tps)[self._last_within(limit)]

    def lowest_caught(self, limit: Limit) -> Any:
        # By rows: the sum of positives does not change at a weight that rounding absorbs.
        thresholds = falling(self.table.thresholds, self.table.positives > 0, np.inf)
        return preceded(np.inf, thresholds)[self._last_within(limit)]

    def beside(self, limit: Limit) -> Beside:
        thresholds, fps = preceded(np.inf, self._falling), _from_zero(self._fps)
        last, after = self.rows_around(limit)
        return Beside(thresholds[last], thresholds[after], fps[last], fps[after])

    def corners(self, limit: Limit) -> Corners:
        fps, tps = _from_zero(self._fps), _from_zero(self._tps)
        last, after = self.rows_around(limit)
        return Corners(fps[last], fps[after], tps[last], tps[after])

    def rows_around(self, limit: Limit) -> tuple[Any, Any]:
        """The index of the last ROC point within the limit, and of the next one or the end."""
        last = self._last_within(limit)
        return last, self.library.minimum(last + 1, self._fps.shape[-1])

    def quantile(self, q: Any, method: str) -> Any:
        return weighted_quantile(self.table.thresholds, self.table.negatives, q, method)

    def caught_above(self, threshold: Any) -> Any:
        first = self.library.searchsorted(-self._falling, -threshold, side="left")
        return _from_zero(self._tps)[first]


def _from_zero(sums: Any) -> Any:
    return preceded(0, sums.astype(np.float64))


def _before(sums: Any, counts: Any) -> Any:
    """The sum before each row. For weights it is not a difference, which would be rounded."""
    return _from_zero(sums)[:-1] if is_inexact(counts) else (sums - counts).astype(np.float64)
