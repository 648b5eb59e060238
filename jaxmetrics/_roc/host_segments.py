"""Placements in many sorted slices at once: every method is a search by NumPy.

Arrays are `[..., slices, k]`, where one slice may stand for all. Options and totals are
`[slices, 1]`: the function of a metric of one sample then serves all slices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.cumulative import running_total
from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.limits import Limit, most_within
from jaxmetrics._roc.placements import Beside
from jaxmetrics._roc.quantile import quantile

Side = Literal["right", "left"]


@dataclass(frozen=True)
class Segments:
    """The items of one class of each slice, in ascending order of score.

    Attributes:
      scores: `[n]`; other entries than those of the segments are ignored.
      weights: `[n]`, or None.
      begins, ends: `[slices]`, where the segment of each slice begins and ends in these arrays.
    """

    scores: HostArray
    weights: Any
    begins: HostArray
    ends: HostArray

    def some(self, which: HostArray) -> Segments:
        """The segments of some slices; a segment that stands for all slices still does."""
        if len(self.begins) == 1:
            return self
        return Segments(self.scores, self.weights, self.begins[which], self.ends[which])

    @cached_property
    def counts(self) -> HostArray:
        """`[slices, 1]`, the number of items of each segment."""
        return (self.ends - self.begins)[:, None]

    @cached_property
    def total(self) -> HostArray:
        """`[slices, 1]`, the weight of each segment."""
        return self.weight_from(np.zeros_like(self.counts))

    def weight_from(self, places: HostArray) -> HostArray:
        """The weight of the items from these places of their segments on."""
        if self.weights is None:
            return (self.counts - places).astype(np.float64)
        taken = self._from_here.take(self._starts + places, mode="clip")
        return np.where(places < self.counts, taken, 0.0)

    @cached_property
    def _from_here(self) -> HostArray:
        """`[items]`, the weight of each item of these segments and of those after it in its own."""
        parts = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        sums = [running_total(self.weights[begin:end][::-1])[::-1] for begin, end in parts]
        return np.concatenate([*sums, np.zeros(1)])

    @cached_property
    def _starts(self) -> HostArray:
        """`[slices, 1]`, where the sums of each segment begin."""
        ends: HostArray = self.counts.cumsum()
        return ends[:, None] - self.counts

    def weight_above(self, thresholds: Any, side: Side) -> HostArray:
        """The weight of the items above each threshold; of side "left", not below it."""
        return self.weight_from(self.search(thresholds, side))

    def at(self, places: HostArray) -> HostArray:
        """The scores at these places of their segments; NaN beyond the end."""
        found = _taken(self.scores, self.begins[:, None] + places)
        return np.where(places < self.counts, found, np.nan)

    def search(self, at: Any, side: Side) -> HostArray:
        """How many items of the segment are below each entry; of side "right", not above it."""
        if len(self.begins) == 1:
            return self.scores[self.begins[0] : self.ends[0]].searchsorted(at, side)
        compare = np.less if side == "left" else np.less_equal
        begins = self.begins[:, None]

        def before(place: HostArray) -> HostArray:
            return compare(_taken(self.scores, begins + place), at)

        return self._bisected(before, at)

    def from_top(self, places: Any) -> HostArray:
        """The scores at these places, counted from 0 at the highest; any value without items."""
        whole = np.minimum(np.where(places >= 0, places, 0), self.counts - 1).astype(int)
        return _taken(self.scores, self.ends[:, None] - 1 - whole)

    def within(self, reached: Callable[[HostArray], HostArray], like: Any) -> HostArray:
        """How many items from the top have a running weight that `reached` is false of."""
        last = self._starts + self.counts - 1
        return self._bisected(lambda place: ~reached(self._from_here.take(last - place)), like)

    def _bisected(self, before: Callable[[HostArray], HostArray], like: Any) -> HostArray:
        """The first place of each segment for which `before` is false, or its end."""
        low = np.zeros(np.broadcast_shapes(np.shape(like), self.counts.shape), np.int64)
        high = low + self.counts
        for _ in range(int(self.counts.max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            beyond = before(middle) & (low < high)
            low = np.where(beyond, middle + 1, low)
            high = np.where(beyond, high, middle)
        return low


def _taken(values: HostArray, index: HostArray) -> HostArray:
    """`values[index]`; any value where an index is out of bounds."""
    if not len(values):
        return np.zeros(index.shape, values.dtype)
    return values.take(index, mode="clip")


@dataclass(frozen=True)
class InSegments:
    """The placements of each slice; the positives are padded where they are summed."""

    positive: Segments
    negative: Segments
    library = np

    @property
    def slack(self) -> float:
        return 0.0 if self.negative.weights is None else numerics.SLACK

    @property
    def total_positives(self) -> HostArray:
        return self.positive.total

    @property
    def total_negatives(self) -> HostArray:
        return self.negative.total

    def near_one(self, *, together: bool = False) -> InSegments:
        return self  # weights already are in the unit of each slice

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        return function(self._padded)

    def caught(self, limit: Limit) -> Any:
        beyond, some = self._beyond(limit)
        return np.where(some, self.caught_above(beyond), self.total_positives)

    def caught_above(self, threshold: Any) -> Any:
        return self.positive.weight_above(threshold, "right")

    def beside(self, limit: Limit) -> Beside:
        """The threshold of the point within the limit is not known, and given as +inf."""
        beyond, some = self._beyond(limit)
        sides: tuple[Side, Side] = ("right", "left")
        fps = (self.negative.weight_above(beyond, side) for side in sides)
        around = (np.where(some, x, self.total_negatives) for x in fps)
        return Beside(np.full(np.shape(beyond), np.inf), beyond, *around)

    def quantile(self, q: Any, method: str) -> Any:
        total: Any = self.total_negatives

        def from_top(place: Any) -> Any:
            if self.negative.weights is not None:
                place = self.negative.within(lambda sums: sums > place, place)
            return self.negative.from_top(place).astype(np.float64)

        return quantile(total, from_top, q, method)

    def _beyond(self, limit: Limit) -> tuple[Any, Any]:
        """The highest score of the negatives beyond the limit, and whether there are any."""
        total = self.total_negatives
        if self.negative.weights is None:
            most = most_within(limit, total, 0.0)
        else:
            bound = limit.slackened_bound(self.slack)
            most = self.negative.within(
                lambda sums: limit.rate(sums, total).astype(limit.bound.dtype) > bound, bound
            )
            total = self.negative.counts
        some = most < total
        return self.negative.from_top(np.where(some, most, 0)), some

    @cached_property
    def _padded(self) -> _Padded:
        positive = self.positive
        width = max(int(positive.counts.max(initial=0)), 1)
        place = np.minimum(np.arange(width), np.maximum(positive.counts - 1, 0))
        at, real = positive.begins[:, None] + place, np.arange(width) < positive.counts
        scores, weights = _taken(positive.scores, at), real.astype(np.float64)
        if positive.weights is not None:
            weights *= _taken(positive.weights, at)
        below = self.negative.search(scores, "left")
        tie = np.any((self.negative.at(below) == scores) & real)
        not_above = self.negative.search(scores, "right") if tie else below
        above, not_below = map(self.negative.weight_from, (not_above, below))
        return _Padded(self, *(x[:, None] for x in (weights, above, not_below)))


@dataclass(frozen=True)
class _Padded:
    """The positives of each slice `[slices, 1, width]`, each a group; padding has weight 0.

    They do not know the positives beside them, as a recall, the only metric of slices here, asks
    for negatives alone.
    """

    whole: InSegments
    weights: HostArray
    above: HostArray
    not_below: HostArray
    library = np

    @property
    def slack(self) -> float:
        return self.whole.slack

    @property
    def total_negatives(self) -> Any:
        return self.whole.total_negatives[..., None]

    def total(self, of_each: Any) -> Any:
        return np.einsum("...i,...i", self.weights, of_each)
