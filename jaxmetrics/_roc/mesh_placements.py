"""Placements of items that the devices of a mesh hold in parts, within `shard_map`.

Where one threshold decides, it is selected, and only sums of counts travel. Where positives are few
on every device, and no more is needed than what is above and below them, all devices receive these.
Otherwise each device receives the rows of the score table in one range of the scores, and adds to
what is above each what the devices before it hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.counted_parts import rows_of_counted_range
from jaxmetrics._base.divided import over_parts
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed
from jaxmetrics._base.parts import (
    AxisName,
    Rows,
    largest_over,
    rows_of_range,
    size_of,
    smallest_over,
    sum_over,
    total_before,
)
from jaxmetrics._base.rarer_class import compacted, fit_in, room_for
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.limits import Limit, slackened
from jaxmetrics._roc.placements import Beside, Corners, Groups, Part
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.rare_positives import RarePositives
from jaxmetrics._roc.selection import Selection, has_exact_thresholds
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics._roc.table_values import static_options


@dataclass(frozen=True)
class OnMesh:
    """A range of the rows of the score table of all items; devices come in descending order.

    Attributes:
      table: the rows of this device, each with another threshold or without weight.
      axis_name: of the devices.
    """

    table: ScoreTable
    axis_name: AxisName
    library = jnp

    @property
    def slack(self) -> float:
        return numerics.slack(self.table.negatives)

    def _sum(self, of_rows: Any) -> Any:
        """Over the rows of all devices; counts of one device fit in their own dtype."""
        return sum_over(jnp.sum(of_rows, axis=-1, dtype=of_rows.dtype), self.axis_name)

    def total(self, of_each: Any) -> Any:
        return self._sum(self.table.positives * of_each)

    @property
    def total_positives(self) -> Any:
        return self._sum(self.table.positives)

    @property
    def total_negatives(self) -> Any:
        return self._sum(self.table.negatives)

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

    def near_one(self, *, together: bool = False) -> OnMesh:
        thresholds, *counts = self.table
        counts = _near_one(counts, self.axis_name, together=together)
        return OnMesh(ScoreTable(thresholds, *counts), self.axis_name)

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        del max_fpr
        return function(self)

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
            return self._highest(beyond)

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
class PositivesOnMesh:
    """What of `Placements` needs no more than what is above and below each positive.

    Attributes:
      items: those of this device, `[n]`.
      weights: of each as a positive and as a negative.
      axis_name: of the devices.
    """

    items: Items
    weights: tuple[Array, Array]
    axis_name: AxisName
    library = jnp

    @property
    def total_positives(self) -> Any:
        return self._sum(self.weights[0])

    @property
    def total_negatives(self) -> Any:
        return self._sum(self.weights[1])

    def _sum(self, weights: Array) -> Array:
        dtype = weights.dtype if numerics.is_inexact(weights) else jnp.int32
        return sum_over(jnp.sum(weights, dtype=dtype), self.axis_name)

    def near_one(self, *, together: bool = False) -> PositivesOnMesh:
        positives, negatives = _near_one(self.weights, self.axis_name, together=together)
        return replace(self, weights=(positives, negatives))

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        """Of positives that are gathered, if they are few on every device."""
        del max_fpr
        room = room_for(self.items.scores.shape[-1], size_of(self.axis_name))
        if not room:
            return function(self.in_ranges())
        total = self.total_negatives

        # Of arrays that are there anyway: each branch makes those that it needs.
        def of_few() -> Any:
            rows = self._rows
            own = compacted(rows, self._positive, room)
            return function(RarePositives(own, rows, total, self.axis_name))

        few = fit_in(self._positive, room, self.axis_name)
        return lax.cond(few, of_few, lambda: function(self.in_ranges()))

    def in_ranges(self) -> OnMesh:
        rows = self._rows
        if rows.keys.dtype == jnp.uint32 and not numerics.is_inexact(rows.positives):
            kinds = rows.positives > 0, rows.negatives > 0
            rows = rows_of_counted_range(rows.keys, *kinds, self.axis_name)
        else:
            rows = rows_of_range(rows, self.axis_name)
        thresholds = sorting.scores_of_keys(rows.keys, self.items.scores)
        return OnMesh(ScoreTable(thresholds, rows.positives, rows.negatives), self.axis_name)

    @property
    def _valid(self) -> Array:
        valid: Array = ~numerics.is_nan(self.items.scores)
        return valid if self.items.where is None else valid & self.items.where

    @property
    def _positive(self) -> Any:
        return self._valid & (self.items.labels == 1)

    @property
    def _rows(self) -> Rows:
        keys, valid = sorting.descending_keys(self.items.scores), self._valid
        keys = jnp.where(valid, keys, ~np.zeros((), keys.dtype))
        return Rows(*jnp.broadcast_arrays(keys, *(jnp.where(valid, x, 0) for x in self.weights)))


def _near_one(counts: Iterable[Array], axis_name: AxisName, *, together: bool) -> list[Array]:
    """Divided by the power of two near the highest of all devices; numbers of items as they are."""
    counts = list(counts)
    if not numerics.is_inexact(counts[0]):
        return counts
    highest = [largest_over(jnp.max(x), axis_name) for x in counts]
    if together:
        highest = [jnp.maximum(*highest)] * 2
    return [x * (1 / numerics.power_near(most)) for x, most in zip(counts, highest, strict=True)]


def positives_on_mesh(
    items: Items, weights: tuple[Array, Array], axis_name: AxisName
) -> PositivesOnMesh:
    """The placements of the items `[n]` of all devices, with these weights of each class."""
    counted = not numerics.is_inexact(weights[0])
    positives, negatives = (x > 0 if counted else x for x in weights)
    return PositivesOnMesh(items, (positives, negatives), axis_name)


def placements_on_mesh(items: Items, weights: tuple[Array, Array], axis_name: AxisName) -> OnMesh:
    """As `positives_on_mesh`, where all that placements have is needed."""
    return positives_on_mesh(items, weights, axis_name).in_ranges()


def undefined_on_mesh(items: Items, weights: tuple[Array, Array], axis_name: AxisName) -> Array:
    """Whether a valid score is NaN, no item is valid, or labels or weights are not allowed."""
    weighty = weights[0] + weights[1] > 0
    bad = jnp.any(numerics.is_nan(items.scores) & weighty) | not_allowed(items, axis_name)
    return (sum_over(bad, axis_name) > 0) | (sum_over(jnp.any(weighty), axis_name) == 0)


def evaluate_on_mesh(
    function: Callable[..., Any],
    items: Items,
    options: dict[str, Any],
    order: Part,
    axis_name: AxisName,
) -> Any:
    """`function(placements, **options)` of each row of a batch, of the items of all devices.

    Compiled, in double precision. The result is the same on all devices, and NaN where a valid
    score is NaN or no item is valid.
    """
    static, arrays = static_options(options)
    selected = order is Part.NONE and has_exact_thresholds(items)
    summed = order in (Part.POSITIVES, Part.HEAD)
    dtype = numerics.default_float()
    with double_precision():
        items = jax.tree.map(jnp.asarray, at_least_one(items))
        given = items, arrays
        return over_parts(_evaluate, axis_name, given, function, static, selected, summed, dtype)


@functools.partial(
    jax.jit, static_argnames=("function", "static", "selected", "summed", "axis_name", "dtype")
)
def _evaluate(
    items: Items,
    arrays: dict[str, Any],
    axis_name: AxisName,
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    selected: bool,
    summed: bool,
    dtype: Any,
) -> Any:
    def of_one(items: Items, options: dict[str, Any]) -> Any:
        weights = class_weights(items)
        if selected:
            placed: Any = Selection(items, axis_name)
        elif summed:
            placed = positives_on_mesh(items, weights, axis_name)
        else:
            placed = placements_on_mesh(items, weights, axis_name)
        value = jnp.asarray(function(placed, **options, **dict(static)), jnp.float64)
        undefined = undefined_on_mesh(items, weights, axis_name)
        return jnp.where(undefined, jnp.nan, value).astype(dtype)

    axes = max(x.ndim for x in jax.tree.leaves(items)) - 1
    program = in_double(of_one)
    return numerics.over_rows(lambda row: program(row, arrays), items, axes)
