"""Lists in order of score by NumPy, which compiles nothing: concrete data in the CPU's memory.

The lists of a part lie one after the other, without masked items. A part stays in the cache, and
threads take the parts in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._base import numerics, segment_sorts, sorting
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.items import rows_of
from jaxmetrics._base.types import HostArray
from jaxmetrics._ranking.lists import Places, in_a_segment

_PART = 1 << 16  # items
_GRADES = 32  # up to this many grades are counted, and more are sorted
_ALL = np.ones((), bool)

OfLists: TypeAlias = Callable[["HostLists"], HostArray]


class HostRanking(NamedTuple):
    """The first places of each list, one list after the other, as `Ranking`.

    Attributes:
      item, rank: `[places]`.
      valid: True.
      begins: `[lists + 1]`, where the places of each list begin and end.
      at: `[places]`, the index of each place among all places of all lists; None if all are here.
    """

    item: HostArray
    rank: HostArray
    valid: HostArray
    begins: HostArray
    at: HostArray | None


@dataclass(frozen=True)
class HostLists:
    """Some lists with the methods of `Lists`; all items are valid.

    Attributes:
      scores: `[n]`, one list after the other.
      labels: `[n]`, as given.
      begins: `[lists + 1]`, where each list begins and ends.
    """

    scores: HostArray
    labels: HostArray
    begins: HostArray
    library = np
    several = True

    @property
    def valid(self) -> HostArray:
        return np.ones(len(self.labels), bool)

    @cached_property
    def sizes(self) -> HostArray:
        """`[lists]`, the number of items of each."""
        return self.begins[1:] - self.begins[:-1]

    @cached_property
    def _some(self) -> HostArray:
        """`[lists]`, whether a list has an item."""
        return self.sizes > 0

    @cached_property
    def _keys(self) -> HostArray:
        return sorting.descending_keys(self.scores)

    @cached_property
    def order(self) -> tuple[HostArray, HostArray]:
        """The items by list and score, and which of them tie with the one before."""
        keys, item = segment_sorts.sort_segments(self._keys, self.begins, stable=True)
        tied = np.zeros(len(keys), bool)
        np.equal(keys[1:], keys[:-1], out=tied[1:])
        tied[self.begins[:-1][self._some]] = False
        return item, tied

    def ranking(self, k: Places = None) -> HostRanking:
        """The ranking by score; of each list only the first max(k) places."""
        item = self.order[0]
        most = self.sizes if k is None else np.minimum(self.sizes, np.max(k))
        begins = self.begins if k is None else _from_zero(most)
        rank = np.arange(begins[-1]) - begins[:-1].repeat(most)
        if k is None:
            return HostRanking(item, rank, _ALL, begins, None)
        at = rank + self.begins[:-1].repeat(most)
        return HostRanking(item.take(at), rank, _ALL, begins, at)

    def of_rank(self, ranking: HostRanking, function: Callable[[Any], Any]) -> HostArray:
        """A function of the rank from 1, at each place."""
        values: HostArray = function(np.arange(1.0, self.sizes.max(initial=0) + 1))
        return values.take(ranking.rank)

    def rank_of_first(self, chosen: HostArray) -> HostArray:
        """The rank from 0 of the best of the chosen items in each list, without a sort."""
        last, n = sorting.largest_key(self._keys), len(self.labels)
        index = np.arange(n)
        best = self._least(np.where(chosen, self._keys, last)).repeat(self.sizes)
        equal = self._keys == best
        first = self._least(np.where(chosen & equal, index, n)).repeat(self.sizes)
        return self.total((self._keys < best) | (equal & (index < first)))

    def _least(self, values: HostArray) -> HostArray:
        found = np.zeros(len(self.sizes), values.dtype)
        if self._some.any():
            found[self._some] = np.minimum.reduceat(values, self.begins[:-1][self._some])
        return found

    def falling_labels(self, ranking: HostRanking) -> HostArray:
        """At the places of a ranking, the labels of each list in falling order."""
        falling = self._falling_grades()
        if falling is not None:
            return falling if ranking.at is None else falling.take(ranking.at)
        keys = segment_sorts.sort_in_segments(sorting.descending_keys(self.labels), self.begins)
        taken: Any = keys if ranking.at is None else keys.take(ranking.at)
        labels: Any = sorting.scores_of_keys(taken, self.labels)
        return labels

    def _falling_grades(self) -> HostArray | None:
        """The labels of each list in falling order if they are few whole numbers, by counting."""
        if not are_few_grades(self.labels):
            return None
        grades = self.labels.astype(np.intp)
        n_grades = int(grades.max(initial=0)) + 1
        if n_grades * len(self.sizes) > _GRADES * len(grades):  # nearly all lists are empty
            return None
        of_list = np.arange(1, len(self.sizes) + 1).repeat(self.sizes) * n_grades
        counts = np.bincount(of_list - 1 - grades, minlength=n_grades * len(self.sizes))
        every = np.arange(n_grades)[::-1].astype(self.labels.dtype)
        return np.tile(every, len(self.sizes)).repeat(counts)

    def total(self, values: HostArray) -> HostArray:
        """The sum of values `[..., n]` over each list, `[..., lists]`."""
        return numerics.sums_between(self.begins, values)

    def total_at(self, ranking: HostRanking, values: HostArray, k: Places = None) -> HostArray:
        """The sum over the first k places of each list; several k add a first axis."""
        if isinstance(k, tuple):
            values = np.where(ranking.rank < np.asarray(k)[:, None], values, 0.0)
        return numerics.sums_between(ranking.begins, values)

    def mean_of_ties(self, ranking: HostRanking, values: HostArray) -> HostArray:
        """At each place, the mean of `values` `[n]` over the items that tie there."""
        item, tied = self.order
        if not tied.any():
            return values.take(ranking.item)
        starts = np.flatnonzero(~tied)
        counts = np.diff(starts, append=len(tied))
        means: HostArray = (np.add.reduceat(values.take(item), starts) / counts).repeat(counts)
        return means if ranking.at is None else means.take(ranking.at)

    def running_count(self, ranking: HostRanking, counts: HostArray) -> HostArray:
        """At each place, the sum of its list's whole numbers up to this place."""
        sums = _from_zero(counts)
        return sums[1:] - sums.take(ranking.begins[:-1]).repeat(np.diff(ranking.begins))

    def running_product(self, ranking: HostRanking, factors: HostArray) -> HostArray:
        """At each place, the product of its list's factors up to this place; by doubling."""
        found, step = factors.astype(np.float64), 1
        while step < ranking.rank.max(initial=0) + 1:
            far = np.flatnonzero(ranking.rank >= step)
            found[far] *= found[far - step]
            step *= 2
        return found


def are_few_grades(labels: HostArray) -> bool:
    """Whether labels are whole numbers from 0 to below `_GRADES`."""
    if not (labels.min(initial=0) >= 0 and labels.max(initial=0) < _GRADES):
        return False
    return np.array_equal(labels.astype(np.intp), labels)


class Given(NamedTuple):
    """Arrays that broadcast: scores, labels, the mask of the items that count, and ids of lists."""

    scores: Any
    labels: Any
    where: Any = None
    ids: Any = None


def values_of_rows(of_lists: OfLists, given: Given) -> HostArray:
    """The values of `of_lists` for the rows `[..., n_docs]` as lists; the batch axes come first."""
    arrays = [x for x in given if x is not None]
    *batch, length = np.broadcast_shapes(*(x.shape for x in arrays))
    n = math.prod(batch)
    rows = [x.reshape(-1, x.shape[-1]) for x in arrays]
    places = [
        np.broadcast_to(np.arange(len(x)).reshape(y.shape[:-1]), batch).ravel()
        for x, y in zip(rows, arrays, strict=True)
    ]

    def of_part(first: int) -> HostArray:
        some = slice(first, first + step)
        taken = (x.take(at[some], axis=0) for x, at in zip(rows, places, strict=True))
        scores, labels, *mask = (np.broadcast_to(x, (len(x), length)) for x in taken)
        if not mask:
            sizes = np.full(len(scores), length)
            return of_lists(HostLists(scores.ravel(), labels.ravel(), _from_zero(sizes)))
        sizes = mask[0].sum(axis=1)
        return of_lists(HostLists(scores[mask[0]], labels[mask[0]], _from_zero(sizes)))

    step = max(_PART // length, 1)
    found = np.concatenate(in_threads(of_part, range(0, n, step)))
    return found.reshape((*batch, *found.shape[1:]))


def values_of_segments(of_lists: OfLists, given: Given, n_lists: int) -> HostArray:
    """The values of `of_lists` for the segments of each row; the batch axes come first."""
    *batch, n = np.broadcast_shapes(*(x.shape for x in given if x is not None))
    shared = given.ids.ndim == 1 and (given.where is None or given.where.ndim == 1)
    order: Any = None
    found = []
    for row in rows_of(given, tuple(batch), len(batch) + 1):
        whole = Given(*(x if x is None else np.broadcast_to(x, n) for x in row))
        if order is None or not shared:
            order = _by_list(whole.ids, whole.where, n_lists)
        found.append(_of_row(of_lists, whole, *order))
    return np.stack(found).reshape((*batch, *found[0].shape))


def _by_list(ids: HostArray, where: Any, n_lists: int) -> tuple[HostArray, HostArray]:
    """The items that count, in order of their lists, and where each list begins and ends."""
    ids = in_a_segment(ids, where, n_lists)
    begins = _from_zero(np.bincount(ids, minlength=n_lists)[:n_lists])
    return sorting.order_of_ids(ids, n_lists + 1)[: begins[-1]], begins


def _of_row(of_lists: OfLists, row: Given, item: HostArray, begins: HostArray) -> HostArray:
    cuts = begins[:-1].searchsorted(np.arange(0, max(len(item), 1), _PART))
    cuts = np.unique(np.append(cuts, len(begins) - 1)).tolist()

    def of_part(first: int, last: int) -> HostArray:
        some = item[begins[first] : begins[last]]
        own = begins[first : last + 1] - begins[first]
        return of_lists(HostLists(row.scores.take(some), row.labels.take(some), own))

    return np.concatenate(in_threads(of_part, cuts[:-1], cuts[1:]))


def _from_zero(sizes: HostArray) -> HostArray:
    return np.append(0, sizes.cumsum())
