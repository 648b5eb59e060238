"""Placements by NumPy, of concrete data in the CPU's memory: a sorted search or a selection.

NumPy's vectorised sort is several times faster than XLA's. The classes are sorted apart, or only
the head of them that counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import nan_as_value
from jaxmetrics._base.host import at_hand, on_host
from jaxmetrics._base.merging import below_and_not_above
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.placements import most_within
from jaxmetrics._roc.quantile import quantile

R = TypeVar("R")

_SLACK = 2.0**-40  # weights reach a limit only up to rounding
# Rows of a batch with fewer items take less time in one program than one by one.
_SHORT = 1 << 12


class OneClass(NamedTuple):
    """Items of one class, their weights if they have any, and their indices if they are needed."""

    scores: HostArray
    weights: Any = None  # [n] or None
    items: Any = None  # [n] or None

    @property
    def weight(self) -> Any:
        """Their total weight, or their number."""
        return np.float64(len(self.scores) if self.weights is None else self.weights.sum())

    def only(self, mask: HostArray) -> OneClass:
        scores, *others = self
        kept = (None if x is None else x.compress(mask) for x in others)
        return OneClass(scores.compress(mask), *kept)

    def ascending(self, by_key: bool) -> OneClass:
        """In order. The scores are sorted in place, or become keys, by which weights are sorted."""
        scores, weights, items = self
        keys = ~sorting.descending_keys(scores) if by_key else scores
        if weights is None and items is None:
            sorting.sort_row(keys)
            return OneClass(keys)
        if weights is None:
            keys, items = sorting.sort_by_key(keys, items)
            return OneClass(keys, None, items)
        keys, order = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))
        return OneClass(keys, weights.take(order), None if items is None else items.take(order))

    def from_here(self) -> HostArray:
        """The weight of each entry and of all after it, and 0 at the end."""
        scores, weights, _ = self
        if weights is None:
            return np.arange(len(scores), -1, -1)
        sums = np.zeros(len(scores) + 1)
        np.cumsum(weights[::-1], out=sums[-2::-1])
        return sums

    def weight_from(self, *places: HostArray) -> list[HostArray]:
        """The weight of the entries from each of these places on."""
        if self.weights is None:
            return [len(self.scores) - x for x in places]
        sums = self.from_here()
        return [sums.take(x) for x in places]

    def near_one(self) -> OneClass:
        """The weights divided by the power of two near the highest, if it is far from 1."""
        highest = 1.0 if self.weights is None else self.weights.max(initial=0.0)
        if 1e-100 < highest < 1e100:
            return self
        _, exponent = np.frexp(highest)
        return self._replace(weights=self.weights * np.ldexp(1.0, -int(exponent)))


@dataclass(frozen=True)
class OnHost:
    """Placements of single positives, in ascending order. It may reorder the scores it holds.

    Attributes:
      positive, negative: the items of each class with weight; all of them, or the head that counts.
      total_positives, total_negatives: the weight of all items of each class, or their number.
    """

    positive: OneClass
    negative: OneClass
    total_positives: Any
    total_negatives: Any
    library = np

    @property
    def slack(self) -> float:
        return _SLACK if self.weighted else 0.0

    @cached_property
    def positives_ascending(self) -> OneClass:
        return self.positive.ascending(self._by_key)

    @cached_property
    def negatives_ascending(self) -> OneClass:
        return self.negative.ascending(self._by_key)

    @cached_property
    def places(self) -> tuple[HostArray, HostArray]:
        """How many negatives are below, and not above, each positive. One array without ties."""
        return below_and_not_above(self.negatives_ascending.scores, self.positives_ascending.scores)

    @cached_property
    def _placed(self) -> list[HostArray]:
        return self.negatives_ascending.weight_from(*self.places)

    def total(self, of_each: Any) -> Any:
        weights = self.positives_ascending.weights
        return of_each.sum(axis=-1) if weights is None else of_each @ weights

    @property
    def above(self) -> HostArray:
        return self._placed[1]

    @property
    def not_below(self) -> HostArray:
        return self._placed[0]

    @property
    def positives_above(self) -> HostArray:
        return self._of_ties[1]

    @property
    def positives_not_below(self) -> HostArray:
        return self._of_ties[0]

    @cached_property
    def _of_ties(self) -> list[HostArray]:
        """For each positive, the weight from the first that ties with it on, and of those above."""
        scores, sums = self.positives_ascending.scores, self.positives_ascending.from_here()
        tied = np.flatnonzero(scores[1:] == scores[:-1]) + 1  # with the one before
        not_below, above = sums[:-1].copy(), sums[1:].copy()
        if len(tied):
            ends = np.append(np.flatnonzero(np.diff(tied) > 1), len(tied) - 1)  # of the ties
            lengths = np.diff(ends, prepend=-1)
            last = tied.take(ends)
            not_below[tied] = sums.take(last - lengths).repeat(lengths)
            above[tied - 1] = sums.take(last + 1).repeat(lengths)
        return [not_below, above]

    def near_one(self, *, together: bool = False) -> OnHost:
        if together or not self._by_key:  # sums stay in range
            return self
        return _placements(self.positive.near_one(), self.negative.near_one())

    def head(self, max_fpr: Any) -> OnHost:
        most = np.ceil(np.max(max_fpr) * self.total_negatives)
        if self.weighted or not 2 * most < self.total_negatives:  # also if it is NaN
            return self
        limit = self._from_top(np.array([most], int))[0]
        return replace(
            self,
            positive=self.positive.only(self.positive.scores >= limit),
            negative=self.negative.only(self.negative.scores >= limit),
        )

    def caught(self, max_fpr: Any) -> Any:
        limit = np.asarray(max_fpr)
        if self.weighted:
            fpr: Any = self.not_below
            rates = numerics.rates(fpr, self.total_negatives).astype(limit.dtype)
            within = rates <= limit[..., None] * (1 + self.slack)
            return self.total(within)
        most = most_within(limit, self.total_negatives, 0.0)
        some_exceed = most < self.total_negatives
        one_too_many = self._from_top(np.where(some_exceed, most, 0).astype(int))
        return np.where(some_exceed, self._above(one_too_many), self.total_positives)

    def caught_above_quantile(self, q: Any, method: str) -> Any:
        from_top: Callable[[Any], Any] = self._from_top
        if self.weighted and self.total_negatives:
            scores, weights, _ = self.negative
            falling = scores.argsort()[::-1]
            copies = weights.take(falling).cumsum()

            def from_top(place: Any) -> Any:
                at = copies.searchsorted(place, side="right")
                return scores.take(falling).take(at, mode="clip")

        threshold: Any = quantile(self.total_negatives, from_top, q, method)
        return np.where(np.isnan(threshold), np.nan, self._above(threshold))

    @property
    def weighted(self) -> bool:
        return self.negative.weights is not None

    @property
    def _by_key(self) -> bool:
        given = (*self.positive[1:], *self.negative[1:])
        return any(x is not None for x in given)

    def _above(self, thresholds: Any) -> HostArray:
        """The weight of the positives above each threshold."""
        scores, weights, _ = self.positive
        masks = [scores > threshold for threshold in thresholds.ravel()]
        sums = [x.sum() if weights is None else weights.compress(x).sum() for x in masks]
        return np.array(sums, np.float64).reshape(thresholds.shape)

    def _from_top(self, places: Any) -> Any:
        """The scores of negatives at these places from the top, from 0; anything for NaN."""
        if not self.total_negatives:
            return np.full(places.shape, np.nan)
        places = np.where(places >= 0, places, 0).astype(int)
        scores = self.negative.scores
        at = len(scores) - 1 - places
        scores.partition(at.ravel())
        return scores[at]


def _placements(positive: OneClass, negative: OneClass) -> OnHost:
    return OnHost(positive, negative, positive.weight, negative.weight)


def evaluate_on_host(
    function: Callable[..., Any], items: Items, options: dict[str, Any]
) -> Array | None:
    """`function(placements, **options)` of each row of a batch; None if NumPy cannot do it now.

    The result is NaN where a valid score is NaN or no item is valid.
    """

    def of_row(placed: OnHost, undefined: bool, options: dict[str, Any]) -> Any:
        with np.errstate(all="ignore"):
            value = function(placed, **options)
        return np.nan * value if undefined else value

    found = of_each_row(of_row, items, options, _SHORT)
    if found is None:
        return None
    values, batch = found
    value = np.stack(values).reshape((*batch, *np.shape(values[0]))) if batch else values[0]
    with nan_as_value():
        return jnp.asarray(np.asarray(value, numerics.default_float()))


def of_each_row(
    function: Callable[[OnHost, bool, dict[str, Any]], R],
    items: Items,
    options: dict[str, Any],
    short: int,
    *,
    by_item: bool = False,
) -> tuple[list[R], tuple[int, ...]] | None:
    """`function(placements, undefined, options)` of each row of a batch, and the batch's shape.

    None if NumPy cannot do it now, or if the rows of a batch have fewer than `short` items.
    Undefined is a row where a valid score is NaN or no item is valid. Options that are arrays
    become NumPy's. With `by_item`, the classes have the indices of their items.
    """
    n = items.scores.shape[-1]
    names = [k for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))]
    found = at_hand(*items, *(options[name] for name in names))
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in items if x is not None))
    if 0 in batch or (batch and n < short) or not on_host(*found):
        return None
    items, limits = Items(*found[: len(items)]), found[len(items) :]
    options = {**options, **dict(zip(names, limits, strict=True))}
    # One by one: threads wait for each other between NumPy's short operations.
    rows = zip(*(_rows(x, batch) for x in items), strict=True) if batch else [items]
    return [function(*_of_row(Items(*row), by_item), options) for row in rows], batch


def _rows(x: Any, batch: tuple[int, ...]) -> Iterable[Any]:
    """The rows `[n]` of an array that is broadcast to a batch, as views."""
    if x is None:
        return itertools.repeat(None, math.prod(batch))
    whole = np.broadcast_to(x, (*batch, x.shape[-1]))
    return (whole[index] for index in np.ndindex(batch))


def _of_row(row: Items, by_item: bool) -> tuple[OnHost, bool]:
    """The placements of items `[n]`, and whether they are undefined."""
    scores: Any = row.scores
    labels: Any = row.labels
    where = row.where
    if scores.dtype == bool:
        scores = scores.view(np.uint8)
    elif jnp.issubdtype(scores.dtype, jnp.floating) and scores.dtype.itemsize < 4:
        scores = scores.astype(np.float32)  # which NumPy sorts faster

    def of(mask: HostArray, *weights: Any) -> tuple[OneClass, bool]:
        """The items of a class with weight, and whether a score of theirs is NaN."""
        mask = mask if where is None else mask & where
        indices = np.flatnonzero(mask).astype(np.uint32) if by_item else None
        items = OneClass(scores.compress(mask), None, indices)
        given = [x.compress(mask).astype(np.float64) for x in weights if x is not None]
        if given:
            product: Any = math.prod(given)
            items, weighty = items._replace(weights=product), product > 0
            items = items if weighty.all() else items.only(weighty)
        return items, len(items.scores) > 0 and bool(np.isnan(items.scores.max()))

    positive = labels if labels.dtype == bool else labels == 1
    positives, nan = of(positive, row.weights, row.amounts)
    negatives, nan_too = of(~positive, row.weights)
    some = len(positives.scores) or len(negatives.scores)
    return _placements(positives, negatives), nan or nan_too or not some
