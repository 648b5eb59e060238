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
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import nan_as_value
from jaxmetrics._base.host import on_host, to_jax
from jaxmetrics._base.merging import below_and_not_above
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.placements import Beside, Limit, limit_of_fpr, most_within, slackened
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.reported import Decision, as_reported, warn_if

_FEW = 32  # thresholds for which as many passes take less time than a sort
# Rows of a batch with fewer items take less time in one program than one by one.
_SHORT = 1 << 12


class _Class(NamedTuple):
    """Items of one class, and their weights if they have any."""

    scores: HostArray
    weights: Any = None  # [n] or None

    @property
    def weight(self) -> Any:
        """Their total weight, or their number."""
        return np.float64(len(self.scores) if self.weights is None else self.weights.sum())

    def weight_above(self, thresholds: HostArray, side: Literal["left", "right"]) -> HostArray:
        """The total weight of the items above each threshold; of side "left", not below it."""
        scores, weights = self
        if thresholds.size > _FEW:  # one sort takes less time than so many passes
            order = scores.argsort()
            sums = _Class(scores, None if weights is None else weights.take(order)).from_here()
            return sums.take(scores.searchsorted(thresholds, side, sorter=order)).astype(float)
        compare = np.greater if side == "right" else np.greater_equal

        def above(threshold: Any) -> Any:
            mask = compare(scores, threshold)
            return np.count_nonzero(mask) if weights is None else weights.compress(mask).sum()

        found = [above(threshold) for threshold in thresholds.ravel()]
        return np.array(found, float).reshape(thresholds.shape)

    def only(self, mask: HostArray) -> _Class:
        scores, weights = self
        return _Class(scores.compress(mask), None if weights is None else weights.compress(mask))

    def ascending(self, by_key: bool) -> _Class:
        """In order. The scores are sorted in place, or become keys, by which weights are sorted."""
        scores, weights = self
        keys = ~sorting.descending_keys(scores) if by_key else scores
        if weights is None:
            sorting.sort_row(keys)
            return _Class(keys)
        keys, order = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))
        return _Class(keys, weights.take(order))

    def from_here(self) -> HostArray:
        """The weight of each entry and of all after it, and 0 at the end."""
        scores, weights = self
        if weights is None:
            return np.arange(len(scores), -1, -1)
        sums = np.zeros(len(scores) + 1)
        np.cumsum(weights[::-1], out=sums[-2::-1])
        return sums

    def near_one(self) -> _Class:
        """The weights divided by the power of two near the highest, if it is far from 1."""
        highest = 1.0 if self.weights is None else self.weights.max(initial=0.0)
        if 1e-100 < highest < 1e100:
            return self
        _, exponent = np.frexp(highest)
        return self._replace(weights=self.weights * np.ldexp(1.0, -int(exponent)))


@dataclass(frozen=True)
class _OnHost:
    """Placements of single positives, in ascending order. It may reorder the scores it holds."""

    positive: _Class
    negative: _Class
    total_positives: Any
    total_negatives: Any
    library = np

    @property
    def slack(self) -> float:
        return numerics.SLACK if self._negatives_weighted else 0.0

    @cached_property
    def _ascending(self) -> _Class:
        return self.positive.ascending(self._by_key)

    @cached_property
    def _placed(self) -> list[HostArray]:
        negative, at = self.negative.ascending(self._by_key), self._ascending.scores
        below, not_above = below_and_not_above(negative.scores, at)
        if negative.weights is None:
            return [len(negative.scores) - x for x in (not_above, below)]
        sums = negative.from_here()
        return [sums.take(x) for x in (not_above, below)]

    def total(self, of_each: Any) -> Any:
        weights = self._ascending.weights
        return of_each.sum(axis=-1) if weights is None else of_each @ weights

    @property
    def above(self) -> HostArray:
        return self._placed[0]

    @property
    def not_below(self) -> HostArray:
        return self._placed[1]

    @property
    def positives_above(self) -> HostArray:
        return self._of_ties[1]

    @property
    def positives_not_below(self) -> HostArray:
        return self._of_ties[0]

    @cached_property
    def _of_ties(self) -> list[HostArray]:
        """For each positive, the weight from the first that ties with it on, and of those above."""
        scores, sums = self._ascending.scores, self._ascending.from_here()
        tied = np.flatnonzero(scores[1:] == scores[:-1]) + 1  # with the one before
        not_below, above = sums[:-1].copy(), sums[1:].copy()
        if len(tied):
            ends = np.append(np.flatnonzero(np.diff(tied) > 1), len(tied) - 1)  # of the ties
            lengths = np.diff(ends, prepend=-1)
            last = tied.take(ends)
            not_below[tied] = sums.take(last - lengths).repeat(lengths)
            above[tied - 1] = sums.take(last + 1).repeat(lengths)
        return [not_below, above]

    def near_one(self, *, together: bool = False) -> _OnHost:
        if together or not self._by_key:  # sums stay in range
            return self
        return _placements(self.positive.near_one(), self.negative.near_one())

    def of_head(self, max_fpr: Any, function: Callable[[Any], Any]) -> Any:
        share = np.max(limit_of_fpr(max_fpr).highest, initial=0)
        most = np.ceil(share * self.total_negatives)
        if self._negatives_weighted or not 2 * most < self.total_negatives:  # also if it is NaN
            return function(self)
        limit = self._from_top(np.array([most], int))[0]
        head = replace(
            self,
            positive=self.positive.only(self.positive.scores >= limit),
            negative=self.negative.only(self.negative.scores >= limit),
        )
        return function(head)

    @property
    def scores(self) -> HostArray:
        """Those of all items, in no order."""
        return np.concatenate([self.positive.scores, self.negative.scores])

    def caught(self, limit: Limit) -> Any:
        beyond, some = self._beyond(limit)
        return np.where(some, self.caught_above(beyond), self.total_positives)

    def lowest_caught(self, limit: Limit) -> Any:
        return _lowest(self.positive.scores, *self._beyond(limit))

    def beside(self, limit: Limit) -> Beside:
        beyond, some = self._beyond(limit)
        within = _lowest(self.scores, beyond, some)
        negative, total = self.negative, self.total_negatives
        fps_within = np.where(some, negative.weight_above(beyond, "right"), total)
        fps_beyond = np.where(some, negative.weight_above(beyond, "left"), total)
        return Beside(within, np.where(some, beyond, within), fps_within, fps_beyond)

    def quantile(self, q: Any, method: str) -> Any:
        def from_top(place: Any) -> Any:
            if self._negatives_weighted and self.total_negatives:
                scores, sums = self._from_highest
                found = scores.take(sums.searchsorted(place, side="right"), mode="clip")
            else:
                found = self._from_top(place)
            return found.astype(np.float64)  # a difference of two may exceed their dtype

        return quantile(self.total_negatives, from_top, q, method)

    def caught_above(self, threshold: Any) -> Any:
        return self.positive.weight_above(np.asarray(threshold), "right")

    def _beyond(self, limit: Limit) -> tuple[Any, Any]:
        """The highest score of negatives that exceeds the limit, and whether one does."""
        total = self.total_negatives
        if self._negatives_weighted:
            scores, sums = self._from_highest
            points = limit.rate(sums, total).astype(limit.bound.dtype)
            at = points.searchsorted(slackened(limit.bound, self.slack), side="right")
            return scores.take(at, mode="clip") if len(scores) else total * at, at < len(scores)
        most = most_within(limit, total, 0.0)
        some = most < total
        return self._from_top(np.where(some, most, 0).astype(int)), some

    @cached_property
    def _from_highest(self) -> tuple[HostArray, HostArray]:
        """The negatives' scores in descending order, and the weight of each and of those before."""
        falling = self.negative.scores.argsort()[::-1]
        return self.negative.scores.take(falling), self.negative.weights.take(falling).cumsum()

    @property
    def _negatives_weighted(self) -> bool:
        return self.negative.weights is not None

    @property
    def _by_key(self) -> bool:
        return self._negatives_weighted or self.positive.weights is not None

    def _from_top(self, places: Any) -> Any:
        """The scores of negatives at these places from the top, from 0; anything for NaN."""
        if not self.total_negatives:
            return np.full(places.shape, np.nan)
        places = np.where(places >= 0, places, 0).astype(int)
        scores = self.negative.scores
        at = len(scores) - 1 - places
        scores.partition(at.ravel())
        return scores[at]


def _lowest(scores: HostArray, beyond: HostArray, some: HostArray) -> HostArray:
    """The lowest score above each of `beyond`, or of all without one; +inf if none is above."""
    every = scores.min() if len(scores) else np.inf
    kept = np.sort(scores.compress(scores > beyond.min())) if beyond.size else scores
    at = kept.searchsorted(beyond, "right")
    found = kept.take(at, mode="clip") if len(kept) else 0
    return np.where(some, np.where(at < len(kept), found, np.inf), every)


def _placements(positive: _Class, negative: _Class) -> _OnHost:
    return _OnHost(positive, negative, positive.weight, negative.weight)


def evaluate_on_host(
    function: Callable[..., Any], items: Items, options: dict[str, Any], decision: Decision
) -> Any:
    """`function(placements, **options)` of each row of a batch; None if NumPy cannot do it now.

    The result is NaN where a valid score is NaN or no item is valid. Thresholds are rounded for the
    `decision` that they are for.
    """
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in items if x is not None))
    if 0 in batch or (batch and items.scores.shape[-1] < _SHORT):
        return None
    names = [k for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))]
    found = on_host(*items, *(options[name] for name in names))
    if found is None:
        return None
    items, limits = Items(*found[: len(items)]), found[len(items) :]
    options = {**options, **dict(zip(names, limits, strict=True))}
    decided, given, dtype = decision(**options), items.scores.dtype, numerics.default_float()

    def of_row(row: Items) -> tuple[Any, Any]:
        placed, undefined = _of_row(*row)
        with np.errstate(all="ignore"):
            value = function(placed, **options)
            if undefined:
                return jax.tree.map(lambda x: np.nan * x, value), None
            return as_reported(value, lambda: placed.scores, decided, given, dtype)

    if batch:  # one by one: threads wait for each other between NumPy's short operations
        rows = zip(*(_rows(x, batch) for x in items), strict=True)
        each, unlikes = zip(*(of_row(Items(*row)) for row in rows), strict=True)
        values = jax.tree.map(lambda *x: np.reshape(x, (*batch, *x[0].shape)), *each)
        unlike = any(unlikes)
    else:
        values, unlike = of_row(items)
    with nan_as_value():
        values = jax.tree.map(lambda x: to_jax(np.asarray(x, dtype)), values)
    warn_if(unlike, dtype)
    return values


def _rows(x: Any, batch: tuple[int, ...]) -> Iterable[Any]:
    """The rows `[n]` of an array that is broadcast to a batch, as views."""
    if x is None:
        return itertools.repeat(None, math.prod(batch))
    whole = np.broadcast_to(x, (*batch, x.shape[-1]))
    return (whole[index] for index in np.ndindex(batch))


def _of_row(
    scores: Any, labels: Any, weights: Any, where: Any, amounts: Any
) -> tuple[_OnHost, bool]:
    """The placements of items `[n]`, and whether they are undefined."""
    if scores.dtype == bool:
        scores = scores.view(np.uint8)
    elif jnp.issubdtype(scores.dtype, jnp.floating) and scores.dtype.itemsize < 4:
        scores = scores.astype(np.float32)  # which NumPy sorts faster

    def of(mask: HostArray, *weights: Any) -> tuple[_Class, bool]:
        """The items of a class with weight, and whether a score of theirs is NaN."""
        mask = mask if where is None else mask & where
        items = _Class(scores.compress(mask))
        given = [x.compress(mask).astype(np.float64) for x in weights if x is not None]
        if given:
            product: Any = math.prod(given)
            items, weighty = items._replace(weights=product), product > 0
            items = items if weighty.all() else items.only(weighty)
        return items, len(items.scores) > 0 and bool(np.isnan(items.scores.max()))

    positive = labels if labels.dtype == bool else labels == 1
    positives, nan = of(positive, weights, amounts)
    negatives, nan_too = of(~positive, weights)
    some = len(positives.scores) or len(negatives.scores)
    return _placements(positives, negatives), nan or nan_too or not some
