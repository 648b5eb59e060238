"""Placements of items that the devices of a mesh hold in parts, within `shard_map`.

Each device receives the rows of the score table in one range of the scores, and adds to what is
above each what the devices before it hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.items import not_allowed
from jaxmetrics._base.parts import (
    AxisName,
    Rows,
    largest_over,
    smallest_over,
    sum_over,
    total_before,
)
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.limits import Limit, slackened
from jaxmetrics._roc.placements import Beside, Corners
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.table import ScoreTable


@dataclass(frozen=True)
class OnMesh(ABC):
    """What one threshold decides, of rows that each device has in one range of the scores.

    Attributes:
      axis_name: of the devices.
    """

    axis_name: AxisName
    library = jnp

    @property
    @abstractmethod
    def table(self) -> ScoreTable:
        """The rows of this device."""

    @property
    @abstractmethod
    def not_below(self) -> Any:
        """As of `Groups`."""

    @property
    def slack(self) -> float:
        return numerics.slack(self.table.negatives)

    def _sum(self, of_rows: Any) -> Any:
        """Over the rows of all devices; counts of one device fit in their own dtype."""
        return sum_over(jnp.sum(of_rows, axis=-1, dtype=of_rows.dtype), self.axis_name)

    @property
    def total_positives(self) -> Any:
        return self._sum(self.table.positives)

    @property
    def total_negatives(self) -> Any:
        return self._sum(self.table.negatives)

    def caught(self, limit: Limit) -> Any:
        return self._sum(jnp.where(self._within(limit), self.table.positives, 0))

    def lowest_caught(self, limit: Limit) -> Any:
        return self._lowest(self._within(limit) & (self.table.positives > 0))

    def beside(self, limit: Limit) -> Beside:
        kept, beyond = self._within(limit), self._first_beyond(limit)
        within = self._lowest(kept & self._weighty)
        negatives = self.table.negatives
        after = kept | (self.table.thresholds == beyond[..., None])
        return Beside(
            within,
            jnp.where(beyond > -jnp.inf, beyond, within),
            self._sum(jnp.where(kept, negatives, 0)),
            self._sum(jnp.where(after, negatives, 0)),
        )

    def corners(self, limit: Limit) -> Corners:
        kept = self._within(limit)
        after = kept | (self.table.thresholds == self._first_beyond(limit)[..., None])
        _, *counts = self.table
        tps, fps = ([self._sum(jnp.where(x, of, 0)) for x in (kept, after)] for of in counts)
        return Corners(*fps, *tps)

    def quantile(self, q: Any, method: str) -> Any:
        def from_top(place: Any) -> Any:
            beyond = (self.not_below > place[..., None]) & self._weighty
            # Of a total that is next to its last place, no row is beyond.
            return jnp.maximum(self._highest(beyond), self._lowest(self.table.negatives > 0))

        return quantile(self.total_negatives, from_top, q, method)

    def caught_above(self, threshold: Any) -> Any:
        above = self.table.thresholds > threshold[..., None]
        return self._sum(jnp.where(above, self.table.positives, 0))

    @property
    def _weighty(self) -> Any:
        return self.table.positives + self.table.negatives > 0

    def _within(self, limit: Limit) -> Any:
        """Which rows `[..., rows]` end within the limit."""
        bound = jnp.asarray(limit.bound)
        points = limit.rate(self.not_below, self.total_negatives).astype(bound.dtype)
        return points <= slackened(bound, self.slack)[..., None]

    def _first_beyond(self, limit: Limit) -> Any:
        return self._highest(~self._within(limit) & self._weighty)

    def _highest(self, rows: Any) -> Any:
        thresholds = jnp.where(rows, self.table.thresholds, -jnp.inf)
        return largest_over(jnp.max(thresholds, axis=-1), self.axis_name)

    def _lowest(self, rows: Any) -> Any:
        thresholds = jnp.where(rows, self.table.thresholds, jnp.inf)
        return smallest_over(jnp.min(thresholds, axis=-1), self.axis_name)


@dataclass(frozen=True)
class RowsOnMesh(OnMesh):
    """A range of the rows of the score table of all items; devices come in descending order.

    Attributes:
      axis_name: of the devices.
      rows: those of this device, each with another threshold or without weight.
    """

    rows: ScoreTable

    @property
    def table(self) -> ScoreTable:
        return self.rows

    def total(self, of_each: Any) -> Any:
        return self._sum(self.table.positives * of_each)

    @cached_property
    def _tps(self) -> tuple[Any, Any]:
        return self._running(self.table.positives)

    @cached_property
    def _fps(self) -> tuple[Any, Any]:
        return self._running(self.table.negatives)

    def _running(self, counts: Any) -> tuple[Any, Any]:
        """The sums before each row, and with it."""
        upto = numerics.running_total(counts)
        before = jnp.concatenate([jnp.zeros_like(upto[:1]), upto[:-1]])
        of_others = total_before(upto[-1], self.axis_name)
        return before + of_others, upto + of_others

    @property
    def above(self) -> Any:
        return self._fps[0]

    @property
    def not_below(self) -> Any:
        return self._fps[1]

    @property
    def positives_above(self) -> Any:
        return self._tps[0]

    @property
    def positives_not_below(self) -> Any:
        return self._tps[1]

    def near_one(self, *, together: bool = False) -> RowsOnMesh:
        thresholds, *weights = self.table
        scaled = near_one_on_mesh(weights, self.axis_name, together=together)
        return RowsOnMesh(self.axis_name, ScoreTable(thresholds, *scaled))

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        del max_fpr
        return function(self)


def near_one_on_mesh(
    weights: Iterable[Array], axis_name: AxisName, *, together: bool
) -> tuple[Array, ...]:
    """Divided by the power of two near the highest of all devices; numbers of items as they are."""
    weights = tuple(weights)
    if not numerics.is_inexact(weights[0]):
        return weights
    highest = [largest_over(jnp.max(x), axis_name) for x in weights]
    if together:
        highest = [jnp.maximum(*highest)] * 2
    return tuple(
        x * (1 / numerics.power_near(most)) for x, most in zip(weights, highest, strict=True)
    )


def valid_on_mesh(items: Items) -> Array:
    """Which items count, whatever their weights."""
    valid: Array = ~numerics.is_nan(items.scores)
    return valid if items.where is None else valid & items.where


def rows_on_mesh(items: Items, weights: tuple[Array, Array]) -> Rows:
    """The items of this device as rows, with these weights of each class."""
    keys, valid = sorting.descending_keys(items.scores), valid_on_mesh(items)
    keys = jnp.where(valid, keys, ~np.zeros((), keys.dtype))
    return Rows(*jnp.broadcast_arrays(keys, *(jnp.where(valid, x, 0) for x in weights)))


def undefined_on_mesh(items: Items, weights: tuple[Array, Array], axis_name: AxisName) -> Array:
    """Whether a valid score is NaN, no item is valid, or labels or weights are not allowed."""
    weighty = weights[0] + weights[1] > 0
    n_bad = number_of(numerics.is_nan(items.scores) & weighty)
    bad = sum_over(n_bad, axis_name) + sum_over(not_allowed(items, axis_name), axis_name) > 0
    return bad | (sum_over(number_of(weighty), axis_name) == 0)
