"""How many entries of one sorted array are below those of another, by NumPy."""

from __future__ import annotations

import numpy as np

from jaxmetrics._base.types import HostArray

# A binary search of a long array misses the cache at each step. Where fewer entries than this are
# found between two neighbours, a merge is faster, which reads all of them in order.
_SPARSE = 16
_BLOCK = 1 << 16  # entries to place at a time, so that a merge needs little memory
_SMALL = 1 << 12  # so few are in the cache


def below_and_not_above(values: HostArray, at: HostArray) -> tuple[HostArray, HostArray]:
    """How many `values` are below, and how many are not above, each entry of `at`.

    Both are in ascending order, without NaN, and of one dtype.
    """
    not_above = _not_above(values, at)
    if not len(values) or not len(at):
        return not_above, not_above
    ties = np.flatnonzero((values.take(not_above - 1, mode="clip") == at) & (not_above > 0))
    if not len(ties):
        return not_above, not_above
    tied = at.take(ties)
    begins = np.flatnonzero(np.append(True, tied[1:] != tied[:-1]))
    first = np.searchsorted(values, tied.take(begins), side="left")
    below = not_above.copy()
    below[ties] = first.repeat(np.diff(np.append(begins, len(ties))))
    return below, not_above


def _not_above(values: HostArray, at: HostArray) -> HostArray:
    if len(values) > _SPARSE * len(at) or len(values) < _SMALL:
        return np.searchsorted(values, at, side="right")
    counts = np.empty(len(at), np.int64)
    for begin in range(0, len(at), _BLOCK):
        block = at[begin : begin + _BLOCK]
        low = np.searchsorted(values, block[0], side="left")
        high = np.searchsorted(values, block[-1], side="right")
        counts[begin : begin + _BLOCK] = low + _merged(values[low:high], block)
    return counts


def _merged(values: HostArray, at: HostArray) -> HostArray:
    """A stable sort finds the two runs, and merges them without a search."""
    order = np.concatenate([values, at]).argsort(kind="stable")
    places = np.flatnonzero(order >= len(values))
    places -= np.arange(len(at))
    return places
