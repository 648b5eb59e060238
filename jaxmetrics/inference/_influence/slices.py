"""Slices of items: their sizes, and the covariance of a metric in each between models."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import sorting
from jaxmetrics._base.types import Array, HostArray


class Order(NamedTuple):
    """The items of all slices by slice and score, of one model.

    Attributes:
      item: `[n]`, the place of each item in the order of `Sliced`.
      starts: `[n]` bool, where a tie of a slice begins.
      positive: `[n]` bool.
    """

    item: HostArray
    starts: HostArray
    positive: HostArray


class Sliced:
    """The items that have weight, by slice, and in each slice the negatives before the positives.

    Attributes:
      item: `[n]`, the index of each among all items.
      bounds: `[2 slices + 1]`, where each class of a slice begins and ends.
      weights: `[n]`, in units of the slice, or None.
      slice: `[n]`, the slice of each.
    """

    def __init__(
        self,
        positive: HostArray,
        ids: HostArray,
        n: int,
        where: Any,
        weights: Any,
        *,
        one_unit: bool,
    ) -> None:
        """Of `n` slices, by the index of each item's slice; weights in units of slices, or one."""
        code = ids.astype(np.int64) * 2 + positive
        valid = np.ones(len(ids), bool) if where is None else where
        if weights is not None:
            valid = valid & (weights > 0)
        code = np.where(valid, code, 2 * n)
        small = np.uint16 if 2 * n < 1 << 16 else np.uint32  # NumPy sorts the former by radix
        item = code.astype(small).argsort(kind="stable")
        counts = np.bincount(code, minlength=2 * n + 1)[:-1]
        self.bounds = np.concatenate([[0], counts.cumsum()])
        self.item = item[: self.bounds[-1]]
        self.counts = counts.reshape(n, 2)
        of_slices = self.counts.sum(axis=1)
        self.slice = np.arange(n).astype(small).repeat(of_slices)
        self.weights = None
        if weights is not None:
            taken = weights.take(self.item).astype(np.float64)
            highest = np.zeros(n)
            np.maximum.at(highest, self.slice.astype(np.intp), taken)
            highest = np.full(n, highest.max(initial=0)) if one_unit else highest
            units = np.ldexp(1.0, np.frexp(highest)[1])
            self.weights = taken / units.repeat(of_slices)

    def sums(self, values: HostArray) -> HostArray:
        """`[..., slices, 2]`, the sums of `[..., n]` over the classes of each slice."""
        ended = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
        found = np.add.reduceat(ended, self.bounds[:-1], axis=-1)
        found = np.where(np.diff(self.bounds) > 0, found, 0.0)
        return found.reshape(*values.shape[:-1], -1, 2)

    def spread(self, by_class: HostArray) -> HostArray:
        """`[n]`, for each item the entry `[slices, 2]` of its class and slice."""
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
        """By slice and ascending score: one sort by score, and a stable one by slice."""
        keys = ~sorting.descending_keys(scores)
        keys, by_score = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))
        by_slice = self.slice.take(by_score).argsort(kind="stable")
        keys = keys.take(by_slice)
        starts = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=starts[1:])
        starts[self.begins[:-1][np.diff(self.begins) > 0]] = True
        item = by_score.take(by_slice)
        positive = self.spread(np.arange(2) * np.ones((len(self.counts), 1), np.int8)) > 0
        return Order(item, starts, positive.take(item))


def covariance_in_slices(sliced: Sliced, influence: HostArray) -> HostArray:
    """`[slices, 2, models, models]`: the parts of the covariance of the negatives and positives.

    Of `influence` `[models, n]`, the derivatives in the weight of each item, times the weight of
    its class, up to a constant of the class.
    """
    weights = 1.0 if sliced.weights is None else sliced.weights
    with np.errstate(all="ignore"):
        n = sliced.counts
        scale = np.sqrt(n / (n - 1)) / sliced.totals
        units = []
        for own in influence:
            mean = sliced.sums(own * weights) / sliced.totals
            units.append((own - sliced.spread(mean)) * weights * sliced.spread(scale))
    models = range(len(units))
    found = np.zeros((len(n), 2, len(units), len(units)))
    for a in models:
        for b in models[: a + 1]:
            found[..., a, b] = found[..., b, a] = sliced.sums(units[a] * units[b])
    alone = (n <= 1)[..., None, None]  # the variance of one item is unknown
    return np.where(alone, np.nan, found)


def covariance_of_threshold(
    weights: HostArray, flagged: HostArray, slopes: HostArray
) -> tuple[Any, Array]:
    """The effective size of all negatives, and `[slices, models, models]`, their part.

    Of `weights` `[negatives]`, of which negatives are `flagged` `[models, negatives]`, and of the
    `slopes` `[slices, models]` of the curves at the threshold that all slices share.
    """
    n, total = len(weights), weights.sum()
    with np.errstate(all="ignore"):
        share = (flagged * weights).sum(axis=1, keepdims=True) / total
        units = (flagged - share) * weights / total
        of_flags = (n / (n - 1) if n != 1 else np.nan) * (units[:, None] * units).sum(axis=-1)
        size = total**2 / (weights**2).sum()
    return size, slopes[:, :, None] * slopes[:, None, :] * of_flags
