"""Items of one class in the CPU's memory: their scores and weights, by NumPy."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.cumulative import running_total
from jaxmetrics._base.merging import counts_dtype
from jaxmetrics._base.types import HostArray

FEW_THRESHOLDS = 32  # up to so many thresholds, one pass for each takes less time than a sort
_BLOCK = 1 << 17
_MOST = 0.875  # above this share of entries kept, a mask as an index takes less time


def compressed(values: HostArray, mask: HostArray) -> HostArray:
    """`values.compress(mask)`, by blocks if long: NumPy's index takes 8 bytes for each entry kept.

    If nearly all are kept, `values[mask]` takes less time, and makes no such index.
    """
    n_kept = np.count_nonzero(mask)
    if n_kept > _MOST * len(mask):
        return values[mask]
    if len(mask) <= 8 * _BLOCK:
        return values.compress(mask)
    found, end = np.empty(n_kept, values.dtype), 0
    for begin in range(0, len(mask), _BLOCK):
        kept = values[begin : begin + _BLOCK].compress(mask[begin : begin + _BLOCK])
        found[end : end + len(kept)] = kept
        end += len(kept)
    return found


def sortable(scores: HostArray) -> HostArray:
    """Scores in a dtype that NumPy sorts, and sorts fast."""
    if scores.dtype == bool:
        return scores.view(np.uint8)
    if scores.dtype.itemsize < 4 and numerics.is_inexact(scores):
        return scores.astype(np.float32)
    return scores


class OneClass(NamedTuple):
    """Items of one class, their weights if they have any, and their indices if they are needed."""

    scores: HostArray
    weights: Any = None  # [n] or None
    items: Any = None  # [n] or None

    @property
    def plain(self) -> bool:
        """Whether there are only scores."""
        return self.weights is None and self.items is None

    @property
    def weight(self) -> Any:
        """Their total weight, or their number."""
        return np.float64(len(self.scores) if self.weights is None else self.weights.sum())

    @property
    def effective_size(self) -> Any:
        """(sum w)^2 / sum w^2."""
        weights = self.near_one()[0].weights
        if weights is None or not len(weights):
            return np.float64(len(self.scores))
        return weights.sum() ** 2 / (weights**2).sum()

    def weight_above(self, thresholds: HostArray, side: Literal["left", "right"]) -> HostArray:
        """The total weight of the items above each threshold; of side "left", not below it."""
        scores, weights, _ = self
        if thresholds.size > FEW_THRESHOLDS:
            if weights is None:
                return len(scores) - np.sort(scores).searchsorted(thresholds, side).astype(float)
            order = scores.argsort()
            sums = OneClass(scores, weights.take(order)).from_here()
            return sums.take(scores.searchsorted(thresholds, side, sorter=order)).astype(float)
        compare = np.greater if side == "right" else np.greater_equal

        def above(threshold: Any) -> Any:
            mask = compare(scores, threshold)
            return np.count_nonzero(mask) if weights is None else weights.compress(mask).sum()

        found = [above(threshold) for threshold in thresholds.ravel()]
        return np.array(found, float).reshape(thresholds.shape)

    def only(self, mask: HostArray) -> OneClass:
        scores, *others = self
        kept = (None if x is None else compressed(x, mask) for x in others)
        return OneClass(compressed(scores, mask), *kept)

    def weights_below(self, head: OneClass, unit: float) -> HostArray:
        """The weights of the items below the head of the class, in this unit."""
        if self.weights is None or len(head.scores) == len(self.scores):
            return np.broadcast_to(1.0, len(self.scores) - len(head.scores))
        lowest = head.scores.min(initial=np.inf)
        return self.weights.compress(self.scores < lowest) / unit

    def ascending(self, by_key: bool) -> OneClass:
        """Ascending: `by_key`, keys replace the scores; else scores alone are sorted in place."""
        scores, weights, items = self
        keys = ~sorting.descending_keys(scores) if by_key else scores
        if self.plain:
            sorting.sort_row(keys)
            return OneClass(keys)
        if weights is None:
            keys, items = sorting.sort_by_key(keys, items)
            return OneClass(keys, None, items)
        narrow = weights.astype(np.float32)
        if items is None and (narrow == weights).all():
            keys, words = sorting.sort_by_key(keys, narrow.view(np.uint32))
            return OneClass(keys, words.view(np.float32).astype(np.float64))
        keys, order = sorting.sort_by_key(keys, np.arange(len(keys), dtype=np.uint32))
        return OneClass(keys, weights.take(order), None if items is None else items.take(order))

    def from_here(self) -> HostArray:
        """`[n + 1]`, the weight of each entry and of all after it, and 0 at the end."""
        scores, weights, _ = self
        if weights is None:
            return np.arange(len(scores), -1, -1, dtype=counts_dtype(len(scores)))
        return np.append(running_total(weights[::-1])[::-1], 0.0)

    def falling(self) -> tuple[HostArray, HostArray]:
        """The scores in descending order, and the running weight."""
        falling = self.scores.argsort()[::-1]
        sums: Any = running_total(self.weights.take(falling))
        return self.scores.take(falling), sums

    def near_one(self) -> tuple[OneClass, float]:
        """The class and its unit: weights are divided by a power of two if they are far from 1."""
        highest = 1.0 if self.weights is None else self.weights.max(initial=0.0)
        if numerics.is_moderate(highest):
            return self, 1.0
        unit = float(np.ldexp(1.0, int(np.frexp(highest)[1])))
        return self._replace(weights=self.weights / unit), unit
