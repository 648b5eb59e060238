"""Slices of items, and the placements of the positives in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics, segment_sorts, sorting
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import HostArray

_PART = 1 << 16  # items


class Order(NamedTuple):
    """The items of all slices by slice and ascending score, for one model.

    Attributes:
      item: `[n]`, the place of each item in the order of `Sliced`.
      starts: `[n]` bool, True at the first item of each tie within a slice.
      positive: `[n]` bool, the class of each item.
    """

    item: HostArray
    starts: HostArray
    positive: HostArray


@dataclass(frozen=True)
class Sliced:
    """The items that have weight, by slice, and in each slice the negatives before the positives.

    Attributes:
      item: `[n]`, the index of each item among all items.
      bounds: `[2 slices + 1]`, where each class of each slice begins and ends.
      weights: `[n]`, in the unit of each slice, or None.
    """

    item: HostArray
    bounds: HostArray
    weights: Any

    @classmethod
    def of(
        cls,
        positive: HostArray,
        ids: HostArray,
        n: int,
        where: Any,
        weights: Any,
        *,
        one_unit: bool,
    ) -> Sliced:
        """The items of `n` slices; `ids` holds the index of each item's slice.

        Weights far from 1 are divided by a power of two near the highest of their slice, or of all
        slices with `one_unit`.
        """
        small = np.uint16 if 2 * n < 1 << 16 else np.uint32
        code: HostArray = 2 * ids.astype(small) + positive
        valid = where
        if weights is not None:
            valid = weights > 0 if where is None else where & (weights > 0)
        if valid is not None:
            code[~valid] = 2 * n
        bounds = np.zeros(2 * n + 1, np.int64)
        np.cumsum(np.bincount(code, minlength=2 * n)[: 2 * n], out=bounds[1:])
        item = sorting.order_of_ids(code, 2 * n + 1)[: bounds[-1]]
        found = cls(item, bounds, None)
        if weights is None:
            return found
        taken = weights.take(item).astype(np.float64)
        highest = np.zeros(n)
        np.maximum.at(highest, np.arange(n).repeat(np.diff(found.begins)), taken)
        highest = np.full(n, highest.max(initial=0)) if one_unit else highest
        moderate = numerics.is_moderate(highest)  # and stays: it may be a number of copies
        units = np.ldexp(1.0, np.where(moderate, 0, np.frexp(highest)[1]))
        return replace(found, weights=taken / units.repeat(np.diff(found.begins)))

    @cached_property
    def counts(self) -> HostArray:
        """`[slices, 2]`, the number of items of each class."""
        return np.diff(self.bounds).reshape(-1, 2)

    @cached_property
    def positive(self) -> HostArray:
        """`[n]` bool, the class of each item."""
        return np.tile([False, True], len(self.counts)).repeat(np.diff(self.bounds))

    def parts(self) -> list[RunOfSlices]:
        """Runs of slices whose arrays stay in the cache, and which threads take in turn.

        There is one at least, also without slices.
        """
        begins = self.begins
        end = len(begins) - 1
        cuts = begins[:-1].searchsorted(np.arange(0, len(self.item), _PART))
        firsts = np.union1d(0, cuts[cuts < end]).tolist()
        found = []
        for first, last in zip(firsts, [*firsts[1:], end], strict=True):
            span = slice(int(begins[first]), int(begins[last]))
            bounds = self.bounds[2 * first : 2 * last + 1] - span.start
            weights = None if self.weights is None else self.weights[span]
            part = Sliced(self.item[span], bounds, weights)
            found.append(RunOfSlices(part, slice(first, last), span))
        return found

    def sums(self, values: HostArray) -> HostArray:
        """`[..., slices, 2]`, the sums of `[..., n]` over the classes of each slice."""
        found: HostArray = numerics.sums_between(self.bounds, values)
        return found.reshape(*values.shape[:-1], -1, 2)

    def weighted(self, values: HostArray) -> HostArray:
        """The values `[..., n]` times the weights."""
        return values if self.weights is None else values * self.weights

    def spread(self, by_class: HostArray) -> HostArray:
        """`[n]`, for each item the entry of `by_class` `[slices, 2]` for its slice and class."""
        return by_class.ravel().repeat(self.counts.ravel())

    @cached_property
    def totals(self) -> HostArray:
        """`[slices, 2]`, the weight of each class."""
        return self.counts.astype(float) if self.weights is None else self.sums(self.weights)

    @cached_property
    def sizes(self) -> HostArray:
        """`[slices, 2]`, the effective size of each class."""
        if self.weights is None:
            return self.totals
        squares = self.sums(self.weights**2)
        return np.where(squares > 0, self.totals**2 / np.where(squares > 0, squares, 1), 0.0)

    @property
    def begins(self) -> HostArray:
        """`[slices + 1]`, where each slice begins and ends."""
        return self.bounds[::2]

    def order(self, scores: HostArray) -> Order:
        """The items by slice and ascending score; `scores` `[n]` are in the order of `item`."""
        keys = ~sorting.descending_keys(scores)
        keys, item = segment_sorts.sort_segments(keys, self.begins)
        starts = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=starts[1:])
        starts[self.begins[:-1][np.diff(self.begins) > 0]] = True
        return Order(item, starts, self.positive.take(item))

    def positives(self) -> Sliced:
        """The positives of each slice alone."""
        bounds = np.zeros_like(self.bounds)
        np.cumsum((self.counts * [0, 1]).ravel(), out=bounds[1:])
        weights = None if self.weights is None else self.weights.compress(self.positive)
        return Sliced(self.item.compress(self.positive), bounds, weights)

    def ascending(self, scores: HostArray) -> tuple[HostArray, Any]:
        """Scores and weights, in ascending order of score within each class of each slice."""

        def of_part(part: RunOfSlices) -> tuple[HostArray, Any]:
            given = scores[part.span]
            if self.weights is not None:
                keys = ~sorting.descending_keys(given)
                item = segment_sorts.sort_segments(keys, part.sliced.bounds)[1]
                return given.take(item), part.sliced.weights.take(item)
            found = given.copy()
            for begin, end in pairwise(part.sliced.bounds.tolist()):
                sorting.sort_row(found[begin:end])
            return found, None

        parts = in_threads(of_part, self.parts())
        found, weights = zip(*parts, strict=True)
        return np.concatenate(found), None if self.weights is None else np.concatenate(weights)


class RunOfSlices(NamedTuple):
    """Some neighbouring slices, with places from 0 on, and the spans of these slices and items."""

    sliced: Sliced
    slices: slice
    span: slice


class TiedPositives(NamedTuple):
    """Groups of positives that tie: where each tie begins and ends in an `Order`, and its slice."""

    begins: HostArray
    ends: HostArray
    slice: HostArray


def groups_of(sliced: Sliced, order: Order) -> TiedPositives:
    """The groups of each slice, and an empty group at the end of each slice without positives."""
    begins = np.flatnonzero(order.positive)
    ends = begins + 1
    if not order.starts.all():  # some tie
        firsts = np.append(np.flatnonzero(order.starts), len(order.item))
        own = firsts.searchsorted(begins, side="right") - 1
        own = own[np.append(True, own[1:] != own[:-1])] if len(own) else own
        begins, ends = firsts.take(own), firsts.take(own + 1)
    without = np.flatnonzero(sliced.counts[:, 1] == 0)
    last = sliced.begins[1:].take(without)
    return TiedPositives(
        np.concatenate([begins, last]),
        np.concatenate([ends, last]),
        np.concatenate([sliced.begins.searchsorted(begins, side="right") - 1, without]),
    )


def columns_of(sliced: Sliced, order: Order, groups: TiedPositives) -> HostArray:
    """`[5, groups]`: the weight of each group, and that of the negatives above it, of the negatives
    not below it, of the positives above it, and of the positives not below it."""
    places = np.stack([sliced.begins[1:].take(groups.slice), groups.begins, groups.ends])
    if sliced.weights is None:
        sums = np.zeros(len(order.item) + 1, np.int32)
        np.cumsum(order.positive, out=sums[1:])
        of_positives = sums.take(places)
        of_negatives = places - of_positives
    else:
        weights = sliced.weights.take(order.item)
        begins = places == sliced.begins.take(groups.slice)

        def before(chosen: HostArray) -> HostArray:
            """The weight of the chosen items of the slice before each place."""
            upto = numerics.running_between(sliced.begins, weights * chosen)
            return np.where(begins, 0.0, np.append(0.0, upto).take(places))

        of_positives, of_negatives = before(order.positive), before(~order.positive)
    columns = np.empty((5, places.shape[1]))
    columns[0] = of_positives[2] - of_positives[1]
    for at, (last, first, after) in ((1, of_negatives), (3, of_positives)):
        columns[at], columns[at + 1] = last - after, last - first
    return columns


@dataclass(frozen=True)
class EachGroup:
    """Placements that treat each group of positives as a sample, whose value is its own part.

    Attributes:
      columns: `[5, groups]`, as from `columns_of`.
      totals: `[2, groups]`, the weights of the negatives and of the positives of its slice.
    """

    columns: Any
    totals: Any

    library = np
    slack = numerics.SLACK
    total_negatives = property(lambda self: self.totals[0])
    total_positives = property(lambda self: self.totals[1])

    def near_one(self, *, together: bool = False) -> EachGroup:
        return self  # weights already are in the unit of each slice

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        return function(_Alone(self))


@dataclass(frozen=True)
class _Alone:
    """The groups of EachGroup, `[groups, 1]`: each is the only one of its sample."""

    whole: EachGroup

    library = np
    slack = numerics.SLACK
    total_negatives = property(lambda self: self.whole.total_negatives[..., None])
    above = property(lambda self: self.whole.columns[1][..., None])
    not_below = property(lambda self: self.whole.columns[2][..., None])
    positives_above = property(lambda self: self.whole.columns[3][..., None])
    positives_not_below = property(lambda self: self.whole.columns[4][..., None])

    def total(self, of_each: Any) -> Any:
        return self.whole.columns[0] * of_each[..., 0]
