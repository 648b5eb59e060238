"""Placements by NumPy, of concrete data in the CPU's memory: a sorted search or a selection.

NumPy's vectorised sort is several times faster than XLA's. The classes are sorted apart, or only
the head of them that counts, and the items of a long row in as many parts as there are processors:
placements among parts of the negatives add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.host import at_hand, in_threads, on_host, processors
from jaxmetrics._base.merging import below_and_not_above
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._roc.placements import most_within
from jaxmetrics._roc.quantile import quantile

_SLACK = 2.0**-40  # weights reach a limit only up to rounding


class _Class(NamedTuple):
    """Items of one class, and their weights if they have any."""

    scores: HostArray
    weights: Any = None  # [n] or None

    @property
    def weight(self) -> Any:
        """Their total weight, or their number."""
        return np.float64(len(self.scores) if self.weights is None else self.weights.sum())

    def only(self, mask: HostArray) -> _Class:
        scores, weights = self
        return _Class(scores.compress(mask), None if weights is None else weights.compress(mask))

    def ascending(self, by_key: bool) -> _Class:
        """In order. The scores are sorted in place, or become keys, by which weights are sorted."""
        scores, weights = self
        keys = ~sorting.descending_keys(scores) if by_key else scores
        if weights is None:
            keys.sort()
            return _Class(keys)
        keys, order = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))
        return _Class(keys, weights.take(order))

    def from_here(self) -> HostArray:
        """The weight of each entry and of all after it, and 0 at the end."""
        scores, weights = self
        if weights is None:
            return np.arange(len(scores), -1, -1)
        sums = np.zeros(len(scores) + 1)
        sums[:-1] = weights[::-1].cumsum()[::-1]
        return sums


def _near_one(parts: Sequence[_Class]) -> list[_Class]:
    """The weights of a class divided by the power of two near the highest."""
    highest = max((x.weights.max(initial=0.0) for x in parts if x.weights is not None), default=0)
    unit = np.ldexp(1.0, -max(int(np.frexp(highest)[1]), -1000))
    return [x if x.weights is None else x._replace(weights=x.weights * unit) for x in parts]


@dataclass(frozen=True)
class _OnHost:
    """Placements of single positives, in ascending order. It may reorder the scores it holds."""

    positive: _Class
    negative: tuple[_Class, ...]  # in parts
    total_positives: Any
    total_negatives: Any
    library = np

    @property
    def slack(self) -> float:
        return _SLACK if self._weighted else 0.0

    @cached_property
    def _ascending(self) -> _Class:
        return self.positive.ascending(self._by_key)

    @cached_property
    def _placed(self) -> tuple[HostArray, HostArray]:
        at = self._ascending.scores

        def among(part: _Class) -> list[HostArray]:
            part = part.ascending(self._by_key)
            below, not_above = below_and_not_above(part.scores, at)
            if part.weights is None:
                return [len(part.scores) - x for x in (not_above, below)]
            return [part.from_here().take(x) for x in (not_above, below)]

        above, not_below = zip(*in_threads(among, self.negative), strict=True)
        return sum(above), sum(not_below)

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
        differs = scores[1:] != scores[:-1]
        if differs.all():
            return [sums[:-1], sums[1:]]
        ends = np.append(np.flatnonzero(differs) + 1, len(scores))
        lengths = np.diff(ends, prepend=0)
        return [sums.take(at).repeat(lengths) for at in (ends - lengths, ends)]

    def near_one(self, *, together: bool = False) -> _OnHost:
        if together or not self._by_key:  # sums stay in range
            return self
        (positive,) = _near_one([self.positive])
        return _placements(positive, _near_one(self.negative))

    def head(self, max_fpr: Any) -> _OnHost:
        most = np.ceil(np.max(max_fpr) * self.total_negatives)
        if self._weighted or not 2 * most < self.total_negatives:  # also if it is NaN
            return self
        limit = self._from_top(np.array([most], int))[0]
        return replace(
            self,
            positive=self.positive.only(self.positive.scores >= limit),
            negative=tuple(x.only(x.scores >= limit) for x in self.negative),
        )

    def caught(self, max_fpr: Any) -> Any:
        limit = np.asarray(max_fpr)
        if self._weighted:
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
        if self._weighted and self.total_negatives:
            scores, weights = (np.concatenate(x) for x in zip(*self.negative, strict=True))
            falling = scores.argsort()[::-1]
            copies = weights.take(falling).cumsum()

            def from_top(place: Any) -> Any:
                at = copies.searchsorted(place, side="right")
                return scores.take(falling).take(at, mode="clip")

        threshold: Any = quantile(self.total_negatives, from_top, q, method)
        return np.where(np.isnan(threshold), np.nan, self._above(threshold))

    @property
    def _weighted(self) -> bool:
        return self.negative[0].weights is not None

    @property
    def _by_key(self) -> bool:
        return self._weighted or self.positive.weights is not None

    def _above(self, thresholds: Any) -> HostArray:
        """The weight of the positives above each threshold."""
        scores, weights = self.positive
        masks = [scores > threshold for threshold in thresholds.ravel()]
        sums = [x.sum() if weights is None else weights.compress(x).sum() for x in masks]
        return np.array(sums, np.float64).reshape(thresholds.shape)

    def _from_top(self, places: Any) -> Any:
        """The scores of negatives at these places from the top, from 0; anything for NaN."""
        if not self.total_negatives:
            return np.full(places.shape, np.nan)
        places = np.nan_to_num(places).astype(int)
        most = places.max(initial=0)

        def top(part: _Class) -> HostArray:
            begin = len(part.scores) - 1 - most
            if begin > 0:
                part.scores.partition(begin)
            return part.scores[max(begin, 0) :]

        tops = self.negative[0].scores
        if len(self.negative) > 1:
            tops = np.concatenate(in_threads(top, self.negative))
        at = len(tops) - 1 - places
        tops.partition(np.unique(at))
        return tops[at]


def _placements(positive: _Class, negative: Iterable[_Class]) -> _OnHost:
    negative = tuple(negative)
    return _OnHost(positive, negative, positive.weight, sum(x.weight for x in negative))


def evaluate_on_host(
    function: Callable[..., Any], items: Items, options: dict[str, Any]
) -> Array | None:
    """`function(placements, **options)` of each row of a batch; None if NumPy cannot do it now.

    The result is NaN where a valid score is NaN or no item is valid.
    """
    names = [k for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))]
    found = at_hand(*items, *(options[name] for name in names))
    if not on_host(*found):
        return None
    items, limits = Items(*found[: len(items)]), found[len(items) :]
    options = {**options, **dict(zip(names, limits, strict=True))}
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in items if x is not None))
    n = items.scores.shape[-1]
    parts = processors() if n > sorting.MANY else 1

    def of_row(row: Items) -> Any:
        placed, undefined = _of_row(row, parts)
        with np.errstate(all="ignore"):
            value = function(placed, **options)
        return np.nan * value if undefined else value

    if not batch:
        values = of_row(items)
    elif 0 in batch:
        return None
    else:
        rows = zip(*(_rows(x, batch) for x in items), strict=True)
        by_rows = parts == 1 and n * math.prod(batch) > sorting.MANY
        each = list(itertools.starmap(Items, rows))
        values = np.stack(in_threads(of_row, each) if by_rows else list(map(of_row, each)))
        values = values.reshape((*batch, *values.shape[1:]))
    return jnp.asarray(np.asarray(values, numerics.default_float()))


def _rows(x: Any, batch: tuple[int, ...]) -> Iterable[Any]:
    """The rows `[n]` of an array that is broadcast to a batch, as views."""
    if x is None:
        return itertools.repeat(None, math.prod(batch))
    whole = np.broadcast_to(x, (*batch, x.shape[-1]))
    return (whole[index] for index in np.ndindex(batch))


def _of_row(items: Items, parts: int) -> tuple[_OnHost, bool]:
    """The placements of items `[n]`, and whether they are undefined."""
    n = len(items.scores)
    slices = [slice(n * i // parts, n * (i + 1) // parts) for i in range(parts)]

    def by_class(part: slice) -> tuple[_Class, _Class, bool]:
        return _by_class(*(x if x is None else x[part] for x in items))

    positives, negatives, nan = zip(*in_threads(by_class, slices), strict=True)
    positive: _Class = positives[0]
    if parts > 1:
        scores, weights = zip(*positives, strict=True)
        together = None if positive.weights is None else np.concatenate(weights)
        positive = _Class(np.concatenate(scores), together)
    some = len(positive.scores) or any(len(x.scores) for x in negatives)
    return _placements(positive, negatives), any(nan) or not some


def _by_class(
    scores: Any, labels: Any, weights: Any, where: Any, amounts: Any
) -> tuple[_Class, _Class, bool]:
    """The positives and the negatives with weight, and whether a score of theirs is NaN."""
    positive = labels if labels.dtype == bool else labels == 1
    negative = ~positive
    if where is not None:
        positive, negative = positive & where, negative & where
    if scores.dtype == bool:
        scores = scores.view(np.uint8)
    elif jnp.issubdtype(scores.dtype, jnp.floating) and scores.dtype.itemsize < 4:
        scores = scores.astype(np.float32)  # which NumPy sorts faster

    def of(mask: HostArray, *weights: Any) -> _Class:
        given = [x.compress(mask).astype(np.float64) for x in weights if x is not None]
        if not given:
            return _Class(scores.compress(mask))
        product: Any = math.prod(given)
        weighty, items = product > 0, _Class(scores.compress(mask), product)
        return items if weighty.all() else items.only(weighty)

    classes = of(positive, weights, amounts), of(negative, weights)
    nan = any(len(x.scores) and bool(np.isnan(x.scores.max())) for x in classes)
    return *classes, nan
