"""Placements by NumPy of rows that share labels: models of the same items, sorted in threads.

Such rows have classes of the same sizes, so that one call of NumPy's serves many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.host import in_threads, processors
from jaxmetrics._base.merging import below_and_not_above
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.at_hand import at_hand_with, in_jax
from jaxmetrics._roc.host_class import FEW_THRESHOLDS, OneClass, sortable
from jaxmetrics._roc.host_placements import OnHost, placements_of
from jaxmetrics._roc.limits import Limit, limit_of_fpr, most_within
from jaxmetrics._roc.placements import Beside, Part
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.reported import Decision, as_reported, warn_if

R = TypeVar("R")

_LONGEST = 1 << 17  # from so many items on, threads sort a single row
_SHORTEST = 1 << 7  # rows of fewer items take less time in a program
_AT_ONCE = 1 << 21  # items of all rows of a block
_MANY = 1 << 15  # scores of a class, above which threads start in less time than a sort takes
_PART = 1 << 16  # groups times limits, whose arrays stay in the cache


def evaluate_batch(
    function: Callable[..., Any],
    items: Items,
    options: dict[str, Any],
    decision: Decision,
    order: Part,
) -> Any:
    """`function(placements, **options)` of rows that share labels; None if NumPy cannot do it now.

    Else as `evaluate_on_host`, which takes all other items. `order` is the order of the items that
    `function` needs.
    """
    scores, labels, weights, where, amounts = items
    n = scores.shape[-1]
    plain = labels.ndim == 1 and weights is None and amounts is None
    shared = plain and (where is None or where.ndim == 1) and scores.ndim > 1
    if not (shared and _SHORTEST <= n < _LONGEST and scores.size > n):
        return None
    found = at_hand_with(items, options)
    if found is None:
        return None
    near, options = found
    valid: Any = True if where is None else near.where
    classes = [np.flatnonzero(x & valid) for x in (near.labels == 1, near.labels != 1)]
    dtype, given, chosen = numerics.default_float(), scores.dtype, decision(**options)
    axes = max((np.ndim(x) for x in options.values() if isinstance(x, np.ndarray)), default=0)
    values: list[Any] = []
    unlike: list[Any] = []
    rows = np.asarray(near.scores).reshape(-1, n)
    step = max(_AT_ONCE // n, 1)
    with np.errstate(all="ignore"):
        for begin in range(0, len(rows), step):
            block = sortable(rows[begin : begin + step])
            positive, negative = (block.take(x, axis=1) for x in classes)
            placed = RowsOnHost(positive, negative, order, axes)
            value, differs = _reported(function(placed, **options), placed, chosen, given, dtype)
            values.append(jax.tree.map(placed.where_defined, value))
            unlike.append(differs)
    warn_if(any(unlike), dtype)

    def whole(*blocks: Any) -> Any:
        return np.concatenate(blocks).reshape(*items.scores.shape[:-1], *blocks[0].shape[1:])

    return in_jax([jax.tree.map(whole, *values)], (), items.scores, dtype)


@dataclass(frozen=True)
class RowsOnHost:
    """Placements of rows of items without weights. It reorders the scores in place.

    Attributes:
      positive, negative: `[rows, items]`, the scores of each class.
      order: the part of the order of the items that is needed.
      axes: the number of axes of the limits, which follow the axis of the rows.
    """

    positive: HostArray
    negative: HostArray
    order: Part
    axes: int
    library = np
    slack = 0.0

    @property
    def total_positives(self) -> Any:
        return np.float64(self.positive.shape[-1])

    @property
    def total_negatives(self) -> Any:
        return np.float64(self.negative.shape[-1])

    @cached_property
    def defined(self) -> HostArray:
        """`[rows]`, whether there are items, and none is NaN."""
        found = np.full(len(self.positive), self.total_positives + self.total_negatives > 0)
        for scores in (self.positive, self.negative):
            if scores.size and numerics.is_inexact(scores):
                found &= ~np.isnan(scores.max(axis=-1))
        return found

    def where_defined(self, value: Any) -> Any:
        """A value of each row, or NaN where the row is not `defined`."""
        defined = self.defined.reshape(-1, *(1,) * (value.ndim - 1))
        return np.where(defined, value, np.nan)

    def near_one(self, *, together: bool = False) -> RowsOnHost:
        return self

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        negative = self._head(max_fpr) if self.order is Part.HEAD else _sorted(self.negative)
        positive = _sorted(self.positive)
        groups = positive.shape[-1] * (1 if max_fpr is None else max_fpr.size)
        step = max(_PART // max(groups, 1), 1)
        spans = (slice(i, i + step) for i in range(0, len(positive), step))
        found = [function(_Rows(self, positive[x], negative[x])) for x in spans]
        return np.concatenate(found)

    def _head(self, max_fpr: Any) -> HostArray:
        """The negatives within `max_fpr`, ascending; all negatives if a tie crosses that end."""
        n = self.negative.shape[-1]
        most = np.ceil(np.max(limit_of_fpr(max_fpr).highest, initial=0) * n)
        if not 2 * most < n:  # also if it is NaN
            return _sorted(self.negative)
        end = n - 1 - int(most)

        def sort(rows: HostArray) -> None:
            rows.partition(end, axis=-1)
            rows[:, end:].sort(axis=-1)

        _in_parts(sort, self.negative)
        if end and (self.negative[:, :end].max(axis=-1) == self.negative[:, end]).any():
            return _sorted(self.negative)
        return self.negative[:, end:]

    def caught(self, limit: Limit) -> Any:
        if limit.bound.size > FEW_THRESHOLDS:
            return self._each(lambda row: row.caught(limit))
        return self._of_caught(_count, *self._beyond(limit))

    def lowest_caught(self, limit: Limit) -> Any:
        def lowest(mask: HostArray) -> Any:
            return np.where(mask, self.positive, np.float64(np.inf)).min(axis=-1, initial=np.inf)

        if limit.bound.size > FEW_THRESHOLDS:
            return self._each(lambda row: row.lowest_caught(limit))
        return self._of_caught(lowest, *self._beyond(limit))

    def caught_above(self, threshold: Any) -> Any:
        if threshold[0].size > FEW_THRESHOLDS:
            rows = zip(map(OneClass, self.positive), threshold, strict=True)
            return np.stack([row.weight_above(x, "right") for row, x in rows])
        return self._of_caught(_count, threshold, np.True_)

    def _of_caught(self, function: Callable[[Any], Any], beyond: Any, some: Any) -> Any:
        """`function` of the mask of positives above each score `[rows, ...]`; all if not `some`."""
        columns = beyond.reshape(len(beyond), -1).T
        flags = np.broadcast_to(some, beyond.shape[1:]).ravel()
        found = [
            function((self.positive > x[:, None]) | ~y) for x, y in zip(columns, flags, strict=True)
        ]
        return np.array(found).T.reshape(beyond.shape)

    def beside(self, limit: Limit) -> Beside:
        return self._each(lambda row: row.beside(limit))

    def _each(self, function: Callable[[OnHost], R]) -> R:
        """`function` of the placements of each row: for methods that many rows seldom need."""
        pairs = zip(map(OneClass, self.positive), map(OneClass, self.negative), strict=True)
        return _stacked(function(placements_of(*pair)) for pair in pairs)

    def quantile(self, q: Any, method: str) -> Any:
        def from_top(place: Any) -> Any:
            return self._from_top(place).astype(np.float64)

        return quantile(self.total_negatives, from_top, q, method)

    def _beyond(self, limit: Limit) -> tuple[Any, Any]:
        """The highest score of the negatives beyond the limit, and whether there are any."""
        most = most_within(limit, self.total_negatives, 0.0)
        some = most < self.total_negatives
        return self._from_top(np.where(some, most, 0)), some

    def _from_top(self, places: Any) -> Any:
        """`[rows, ...]`, the negatives' scores at these places from the top; any score for NaN."""
        n_rows, n = self.negative.shape
        if not n:
            return np.full((n_rows, *places.shape), np.nan)
        at = n - 1 - np.where(places >= 0, places, 0).astype(int)
        _in_parts(lambda rows: rows.partition(at.ravel(), axis=-1), self.negative)
        return self.negative[:, at]


@dataclass(frozen=True)
class _Rows:
    """Some rows: their positives, each a group, and the negatives that count, ascending."""

    whole: RowsOnHost
    positive: HostArray
    negative: HostArray
    library = np
    slack = 0.0

    @property
    def total_negatives(self) -> Any:
        return self.whole.total_negatives

    def total(self, of_each: Any) -> Any:
        return np.add.reduce(of_each, -1)

    @cached_property
    def _places(self) -> tuple[Any, Any]:
        rows = zip(self.negative, self.positive, strict=True)
        below, not_above = zip(*(below_and_not_above(*x) for x in rows), strict=True)
        return self._beside_limits(below), self._beside_limits(not_above)

    def _beside_limits(self, rows: Any) -> Any:
        """`[rows, groups]` as `[rows, ..., groups]`, with axes of 1 for those of the limits."""
        n_rows, n = self.positive.shape
        return np.reshape(rows, (n_rows, *(1,) * self.whole.axes, n))

    @property
    def not_below(self) -> Any:
        return self.negative.shape[-1] - self._places[0]

    @property
    def above(self) -> Any:
        return self.negative.shape[-1] - self._places[1]

    @cached_property
    def _tied(self) -> Any:
        """`[rows, groups - 1]`, whether a positive ties with the next one."""
        return self.positive[:, :-1] == self.positive[:, 1:]

    @property
    def positives_not_below(self) -> Any:
        n = self.positive.shape[-1]
        first = np.broadcast_to(np.arange(n), self.positive.shape)
        if self._tied.any():
            first = first.copy()
            first[:, 1:][self._tied] = 0
            first = np.maximum.accumulate(first, axis=-1)
        return self._beside_limits(n - first)

    @property
    def positives_above(self) -> Any:
        n = self.positive.shape[-1]
        last = np.broadcast_to(np.arange(n), self.positive.shape)
        if self._tied.any():
            last = last.copy()
            last[:, :-1][self._tied] = n
            last = np.minimum.accumulate(last[:, ::-1], axis=-1)[:, ::-1]
        return self._beside_limits(n - 1 - last)


def _count(mask: HostArray) -> Any:
    return np.count_nonzero(mask, axis=-1)


def _sorted(rows: HostArray) -> HostArray:
    """The rows, each sorted in place."""
    _in_parts(lambda part: part.sort(axis=-1), rows)
    return rows


def _in_parts(work: Callable[[HostArray], None], rows: HostArray) -> None:
    """`work` of parts of the rows, in threads if there are many scores."""
    parts = processors() if rows.size > _MANY else 1
    in_threads(work, np.array_split(rows, parts))  # views


def _reported(
    value: Any, placed: RowsOnHost, decision: str | None, given: Any, dtype: Any
) -> tuple[Any, bool]:
    """`as_reported` of each row."""
    if decision is None and not isinstance(value, tuple):
        return value, False
    rows: list[Any] = []
    unlike = False
    for i, defined in enumerate(placed.defined):
        row = jax.tree.map(lambda x, i=i: x[i], value)
        if defined:
            scores = partial(np.concatenate, (placed.positive[i], placed.negative[i]))
            row, differs = as_reported(row, scores, decision, given, dtype)
            unlike |= bool(differs)
        rows.append(row)
    return _stacked(rows), unlike


def _stacked(rows: Iterable[R]) -> R:
    """One pytree of arrays `[rows, ...]` from one for each row."""
    return jax.tree.map(lambda *x: np.stack(x), *rows)
