"""Placements by NumPy, of concrete data in the CPU's memory: a sorted search or a selection.

NumPy's vectorised sort is several times faster than XLA's. Each class is sorted by itself, or only
the head of it that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.cumulative import runs
from jaxmetrics._base.merging import below_and_not_above, counts_dtype
from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.host_class import OneClass
from jaxmetrics._roc.limits import Limit, limit_of_fpr, most_within
from jaxmetrics._roc.placements import Beside, Corners
from jaxmetrics._roc.quantile import quantile

_FEW_ITEMS = 1 << 12  # fewer negatives are sorted in less time than their head is found
_MOST_OF_HEAD = 0.5  # of the negatives: for more, all are sorted
_SAMPLE = 1 << 11
_MARGIN = 3  # standard deviations of a share of the sample
_SIDES: tuple[Literal["right", "left"], ...] = ("right", "left")  # above, and not below
_PART = 1 << 15  # positives whose arrays stay in the cache


@dataclass(frozen=True)
class OnHost:
    """Placements of items that NumPy sorts, or selects from. It may reorder the scores it holds.

    Attributes:
      positive, negative: the items with weight of each class, or only the head that counts.
      total_positives, total_negatives: the weight of all items of each class, or their number.
    """

    positive: OneClass
    negative: OneClass
    total_positives: Any
    total_negatives: Any
    library = np

    @property
    def slack(self) -> float:
        return numerics.SLACK if self._negatives_weighted else 0.0

    @cached_property
    def positives_ascending(self) -> OneClass:
        return self.positive.ascending(self._by_key)

    @cached_property
    def negatives_ascending(self) -> OneClass:
        return self.negative.ascending(self._by_key)

    @cached_property
    def places(self) -> tuple[HostArray, HostArray]:
        """How many negatives are below each positive, and not above it: one array if none tie."""
        return below_and_not_above(self.negatives_ascending.scores, self.positives_ascending.scores)

    def weight_from(self, places: HostArray) -> HostArray:
        """The weight of the negatives from each of these places on, in ascending order."""
        if not self._negatives_weighted:
            return len(self.negative.scores) - places
        return self._sums_of_negatives.take(places)

    @cached_property
    def _sums_of_negatives(self) -> Any:
        return self.negatives_ascending.from_here()

    def positives_from(self, begin: int, end: int | None = None) -> Any:
        """The weight of the positives from `begin` on; with `end`, from each place up to it on."""
        n = len(self.positive.scores)
        if self.positive.weights is not None:
            sums = self._sums_of_positives
            return sums[begin] if end is None else sums[begin : end + 1]
        if end is None:
            return n - begin
        return np.arange(n - begin, n - end - 1, -1, dtype=counts_dtype(n))

    @cached_property
    def _sums_of_positives(self) -> Any:
        return self.positives_ascending.from_here()

    def near_one(self, *, together: bool = False) -> OnHost:
        if together or not self._by_key:  # sums stay in range
            return self
        positive, negative = self.positive.near_one()[0], self.negative.near_one()[0]
        if positive is self.positive and negative is self.negative:  # keeps what is sorted
            return self
        return placements_of(positive, negative)

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        head = self if max_fpr is None else self.head(max_fpr)
        n, n_limits = len(head.positive.scores), 1 if max_fpr is None else max_fpr.size
        step = max(_PART // max(n_limits, 1), 1)
        if n <= step:
            return function(SortedPart(head, slice(0, n)))
        spans = (slice(i, min(i + step, n)) for i in range(0, n, step))
        return sum(function(SortedPart(head, span)) for span in spans)

    def head(self, max_fpr: Any) -> OnHost:
        """The placements of the items within `max_fpr`; the totals remain those of all items."""
        below = self._below_head(limit_of_fpr(max_fpr))
        if below is None:
            return self
        positive, negative = (x.only(x.scores >= below) for x in (self.positive, self.negative))
        return replace(self, positive=positive, negative=negative)

    def _below_head(self, limit: Limit) -> Any:
        """A score that the negatives within the limit and one beyond it reach, and not many more.

        None if they are few or many. With weights it comes from a sample, and is None if fewer
        reach it.
        """
        scores, weights, _ = self.negative
        share, total = np.max(limit.highest, initial=0), self.total_negatives
        if len(scores) <= _FEW_ITEMS or not share < _MOST_OF_HEAD:  # also if it is NaN
            return None
        if weights is None:
            return self._from_top(np.ceil(np.array([share * total])))[0]
        every = slice(None, None, max(len(scores) // _SAMPLE, 1))
        falling = scores[every].argsort()[::-1]
        sample, of_sample = (x[every].take(falling) for x in (scores, weights))
        part = (of_sample**2).sum() / of_sample.sum() ** 2  # of one item, on the average
        place = (share + _MARGIN * (np.sqrt(share * part) + part)) * of_sample.sum()
        below = sample.take(of_sample.cumsum().searchsorted(place), mode="clip")
        reached = weights.compress(scores >= below).sum()
        return below if reached > (share + self.slack) * total else None

    @property
    def scores(self) -> HostArray:
        """The scores of all items, in no order."""
        return np.concatenate([self.positive.scores, self.negative.scores])

    def caught(self, limit: Limit) -> Any:
        beyond, some = self._beyond(limit)
        return np.where(some, self.caught_above(beyond), self.total_positives)

    def lowest_caught(self, limit: Limit) -> Any:
        return _lowest(self.positive.scores, *self._beyond(limit))

    def beside(self, limit: Limit) -> Beside:
        beyond, some = self._beyond(limit)
        within = _lowest(self.scores, beyond, some)
        fps = _around(self.negative, beyond, some)
        return Beside(within, np.where(some, beyond, within), *fps)

    def corners(self, limit: Limit) -> Corners:
        beyond, some = self._beyond(limit)
        pairs = (
            (self.negative, self.negatives_ascending),
            (self.positive, self.positives_ascending),
        )
        if self._by_key:
            return Corners(*(x for items, _ in pairs for x in _around(items, beyond, some)))
        # Sorted once, for any number of limits.
        found = [
            np.where(some, len(x.scores) - x.scores.searchsorted(beyond, side), items.weight)
            for items, x in pairs
            for side in _SIDES
        ]
        return Corners(*found)

    def quantile(self, q: Any, method: str) -> Any:
        def from_top(place: Any) -> Any:
            if self._negatives_weighted and self.total_negatives:
                scores, sums = self._from_highest
                found = scores.take(sums.searchsorted(place, side="right"), mode="clip")
            else:
                found = self._from_top(place)
            return found.astype(np.float64)  # a difference of two scores may exceed their dtype

        return quantile(self.total_negatives, from_top, q, method)

    def caught_above(self, threshold: Any) -> Any:
        return self.positive.weight_above(np.asarray(threshold), "right")

    def _beyond(self, limit: Limit) -> tuple[Any, Any]:
        """The highest score of the negatives beyond the limit, and whether there are any."""
        total = self.total_negatives
        if self._negatives_weighted:
            below = self._below_head(limit)
            highest = None if below is None else self.negative.only(self.negative.scores >= below)
            scores, sums = self._from_highest if highest is None else highest.falling()
            points = limit.rate(sums, total).astype(limit.bound.dtype)
            at = points.searchsorted(limit.slackened_bound(self.slack), side="right")
            return scores.take(at, mode="clip") if len(scores) else total * at, at < len(scores)
        most = most_within(limit, total, 0.0)
        some = most < total
        return self._from_top(np.where(some, most, 0).astype(int)), some

    @cached_property
    def _from_highest(self) -> tuple[HostArray, HostArray]:
        return self.negative.falling()

    @property
    def _negatives_weighted(self) -> bool:
        return self.negative.weights is not None

    @property
    def _by_key(self) -> bool:
        return not (self.positive.plain and self.negative.plain)

    def _from_top(self, places: Any) -> Any:
        """The scores of negatives at these places, from 0 at the highest; any score for NaN."""
        if not self.total_negatives:
            return np.full(places.shape, np.nan)
        places = np.where(places >= 0, places, 0).astype(int)
        scores = self.negative.scores
        at = len(scores) - 1 - places
        # Scores sorted in place must stay in order, which a partition may change where some tie.
        if self._by_key or "negatives_ascending" not in vars(self):
            scores.partition(at.ravel())
        return scores[at]


@dataclass(frozen=True)
class SortedPart:
    """Some positives in ascending order, each a group. No array is as long as all positives."""

    whole: OnHost
    span: slice
    library = np

    @property
    def slack(self) -> float:
        return self.whole.slack

    @property
    def total_negatives(self) -> Any:
        return self.whole.total_negatives

    @property
    def weights(self) -> Any:
        """The weight of each positive, or None."""
        weights = self.whole.positives_ascending.weights
        return None if weights is None else weights[self.span]

    def total(self, of_each: Any) -> Any:
        weights = self.weights
        # The product by BLAS would wait for its threads on a busy machine.
        return np.add.reduce(of_each if weights is None else of_each * weights, -1)

    @cached_property
    def not_below(self) -> HostArray:
        return self.whole.weight_from(self.whole.places[0][self.span])

    @property
    def above(self) -> HostArray:
        below, not_above = self.whole.places
        ties = below is not not_above
        return self.whole.weight_from(not_above[self.span]) if ties else self.not_below

    @property
    def positives_not_below(self) -> HostArray:
        return self._of_ties[0]

    @property
    def positives_above(self) -> HostArray:
        return self._of_ties[1]

    @cached_property
    def _of_ties(self) -> tuple[HostArray, HostArray]:
        """For each positive, the weight of the positives not below it, and of those above it."""
        scores, begin, end = self.whole.positives_ascending.scores, self.span.start, self.span.stop
        part, sums = scores[self.span], self.whole.positives_from(begin, end)
        tied = np.flatnonzero(part[1:] == part[:-1]) + 1  # with the positive before
        not_below, above = sums[:-1].copy(), sums[1:].copy()
        if len(tied):
            ends = np.append(np.flatnonzero(np.diff(tied) > 1), len(tied) - 1)  # of runs of `tied`
            lengths = np.diff(ends, prepend=-1)
            last = tied.take(ends)
            not_below[tied] = sums.take(last - lengths).repeat(lengths)
            above[tied - 1] = sums.take(last + 1).repeat(lengths)
        if begin and scores[begin - 1] == part[0]:
            first = scores.searchsorted(part[0])
            not_below[: part.searchsorted(part[0], "right")] = self.whole.positives_from(first)
        if end < len(scores) and scores[end] == part[-1]:
            after = scores.searchsorted(part[-1], "right")
            above[part.searchsorted(part[-1]) :] = self.whole.positives_from(after)
        return not_below, above


def _around(items: OneClass, beyond: HostArray, some: HostArray) -> tuple[HostArray, HostArray]:
    """The weight of the items above each of `beyond`, and not below it; of all if not `some`."""
    above, not_below = (
        np.where(some, items.weight_above(beyond, side), items.weight) for side in _SIDES
    )
    return above, not_below


def _lowest(scores: HostArray, beyond: HostArray, some: HostArray) -> HostArray:
    """The lowest score above each of `beyond`, or of all if not `some`; +inf if there is none."""
    every = np.float64(scores.min() if len(scores) else np.inf)
    kept = np.sort(scores.compress(scores > beyond.min())) if beyond.size else scores
    at = kept.searchsorted(beyond, "right")
    found = kept.take(at, mode="clip") if len(kept) else 0
    return np.where(some, np.where(at < len(kept), found, np.inf), every)


def placements_of(positive: OneClass, negative: OneClass) -> OnHost:
    """The placements of all items with weight, given by class."""
    return OnHost(positive, negative, positive.weight, negative.weight)


def placements_of_both(positive: OneClass, negative: OneClass) -> OnHost:
    """The placements of items that belong to both classes in part, given in ascending order."""
    found, scores = placements_of(positive, negative), positive.scores
    known = {
        "positives_ascending": positive,
        "negatives_ascending": negative,
        "places": runs(sorting.starts(scores)),  # each item ties with itself
    }
    vars(found).update(known)  # what the properties of these names would sort and search for
    return found
