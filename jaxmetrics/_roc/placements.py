"""Placements: each positive with the weight of the negatives above it, and not below it.

The metrics that are sums over positives of a function of these are written once, for any source of
placements: a score table, whose rows are groups of tied positives, or items that NumPy sorts.

Reference: M. S. Pepe and T. Cai, "The analysis of placement values for evaluating discriminatory
measures", Biometrics 60, 2004.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.host import all_concrete
from jaxmetrics._base.numerics import is_inexact, namespace, rates, running_total, slack
from jaxmetrics._base.types import ArrayLike
from jaxmetrics._roc.quantile import weighted_quantile
from jaxmetrics._roc.table import ScoreTable

# Shares of the negatives, from which on a head with its positives is seldom a quarter of the items.
_SHORT_HEAD = 0.125


class Part(enum.Enum):
    """What of the order of the items a function of placements needs."""

    ALL = enum.auto()
    HEAD = enum.auto()  # only that of the items above the end of its window: `of_head`
    NONE = enum.auto()  # one score decides: `caught` and `caught_above_quantile`


def order_of_all(**options: Any) -> Part:
    """Of a function that needs the order of all items."""
    return Part.ALL


def order_of_head(max_fpr: ArrayLike) -> Part:
    """Of a function of the head, of which is known whether it is short."""
    long = all_concrete(max_fpr) and not np.max(max_fpr) < _SHORT_HEAD
    return Part.ALL if long else Part.HEAD


class Placements(Protocol):
    """Groups of positives with one score, and what is above and not below them, `[groups]`.

    All are numbers of items, or sums of weights, in float64 or as whole numbers.
    """

    @property
    def library(self) -> Any:
        """`numpy` or `jax.numpy`, for arithmetic with the arrays."""

    @property
    def total_positives(self) -> Any: ...

    @property
    def total_negatives(self) -> Any: ...

    @property
    def slack(self) -> float:
        """The relative tolerance of a limit of the FPR, which sums of weights reach only nearly."""

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
        """The sum over positives of `of_each` `[..., groups]`, times their weights."""

    def near_one(self, *, together: bool = False) -> Placements:
        """The same in a unit that keeps products of weights in range, one for each class or both.

        Derivatives have products, too.
        """

    def of_head(self, max_fpr: Any, function: Callable[[Placements], Any]) -> Any:
        """`function` of at least the groups with fewer negatives above than this share of them.

        The totals are those of all items.
        """

    def caught(self, max_fpr: Any) -> Any:
        """The weight of the positives whose share of negatives not below is at most `max_fpr`."""

    def caught_above_quantile(self, q: Any, method: str) -> Any:
        """The weight of the positives above the q-quantile of the negatives, NaN if it is NaN."""


@dataclass(frozen=True)
class OfPlacements:
    """A function of placements, as the function of a score table that a metric is."""

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: ArrayLike) -> Any:
        return self.function(OfTable(table), **options)


@dataclass(frozen=True)
class OfTable:
    """The rows of a table: groups of positives that tie, some of which are empty.

    Attributes:
      table: its counts.
      whole: the total weights of both classes, if the table is only the head of a longer one.
    """

    table: ScoreTable
    whole: tuple[Any, Any] | None = None
    library = jnp

    @property
    def slack(self) -> float:
        return slack(self.table.negatives)

    def total(self, of_each: Any) -> Any:
        return jnp.sum(self.table.positives * of_each, axis=-1)

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
        return self._fps.astype(jnp.float64)

    @property
    def positives_above(self) -> Any:
        return _before(self._tps, self.table.positives)

    @property
    def positives_not_below(self) -> Any:
        return self._tps.astype(jnp.float64)

    @property
    def total_positives(self) -> Any:
        return self._tps[-1].astype(jnp.float64) if self.whole is None else self.whole[0]

    @property
    def total_negatives(self) -> Any:
        return self._fps[-1].astype(jnp.float64) if self.whole is None else self.whole[1]

    def near_one(self, *, together: bool = False) -> OfTable:
        thresholds, *counts = self.table
        if together:
            positives, negatives = numerics.near_one(*counts)
        else:
            (positives,), (negatives,) = map(numerics.near_one, counts)
        return OfTable(ScoreTable(thresholds, positives, negatives))

    def of_head(self, max_fpr: Any, function: Callable[[Placements], Any]) -> Any:
        del max_fpr
        return function(self)

    def caught(self, max_fpr: Any) -> Any:
        last = last_within(_from_zero(self._fps), max_fpr, self.slack)
        return _from_zero(self._tps)[last]

    def caught_above_quantile(self, q: Any, method: str) -> Any:
        threshold = weighted_quantile(self.table.thresholds, self.table.negatives, q, method)
        weighty = self.table.positives + self.table.negatives > 0
        falling = numerics.running_minimum(jnp.where(weighty, self.table.thresholds, jnp.inf))
        above = _from_zero(self._tps)[jnp.searchsorted(-falling, -threshold, side="left")]
        return jnp.where(jnp.isnan(threshold), jnp.nan, above)


def _from_zero(sums: Any) -> Any:
    return jnp.concatenate([jnp.zeros(1), sums.astype(jnp.float64)])


def _before(sums: Any, counts: Any) -> Any:
    """The sums before each row. A difference of weights would be rounded."""
    return _from_zero(sums)[:-1] if is_inexact(counts) else (sums - counts).astype(jnp.float64)


def last_within(fps: Any, max_fpr: Any, slack: float) -> Any:
    """The index of the last point whose FPR is at most the limit, for each limit."""
    limit = jnp.asarray(max_fpr) * (1 + slack)
    return jnp.searchsorted(rates(fps, fps[-1]).astype(limit.dtype), limit, side="right") - 1


def most_within(limit: Any, total: Any, slack: float) -> Any:
    """The largest count whose rate is at most the limit, compared as in `last_within`."""
    if slack:
        return limit * (1 + slack) * total
    library = namespace(limit, total)
    nearest = library.round(limit * total)
    most = nearest - 1
    for count in (nearest, nearest + 1):
        most = library.where(rates(count, total).astype(limit.dtype) <= limit, count, most)
    return library.where(library.isnan(limit), library.nan, most)
