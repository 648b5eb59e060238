"""How many entries of one sorted array are below those of another, by NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import HostArray

# A binary search of a long array misses the cache at each step. A merge reads all entries in order,
# and is faster where on average at most so many lie between two that are sought.
_SPARSE = 8
_SMALL = 1 << 12  # arrays of fewer entries stay in the cache
_BLOCK = 1 << 16  # entries that a thread places at a time, so that a merge needs little memory


def below_and_not_above(values: HostArray, at: HostArray) -> tuple[HostArray, HostArray]:
    """How many `values` are below, and how many are not above, each entry of `at`.

    Both are in ascending order, without NaN, and of one dtype.
    """
    if max(len(values), len(at)) < _SMALL:
        return values.searchsorted(at, "left"), values.searchsorted(at, "right")
    if not len(values) or not len(at):
        none = np.zeros(len(at), np.int64)
        return none, none
    not_above = np.empty(len(at), counts_dtype(len(values)))
    begins = range(0, len(at), _BLOCK)
    ties = in_threads(functools.partial(_place, values, at, not_above), begins)
    if not any(map(len, ties)):
        return not_above, not_above
    below = not_above.copy()
    in_threads(functools.partial(_place_ties, values, at, below), begins, ties)
    return below, not_above


def counts_dtype(most: int) -> Any:
    """int32 if it holds counts up to `most` and the sum of two of them; int64 otherwise."""
    return np.int32 if most < 1 << 30 else np.int64


def _place(values: HostArray, at: HostArray, not_above: HostArray, begin: int) -> HostArray:
    """Fill in a block of `not_above`; returns the places in it whose entry ties with a value."""
    block, counts = (x[begin : begin + _BLOCK] for x in (at, not_above))
    low = np.searchsorted(values, block[0], side="left")
    high = np.searchsorted(values, block[-1], side="right")
    between = values[low:high]
    if len(between) > _SPARSE * len(block) or len(between) < _SMALL:
        found = np.searchsorted(between, block, side="right")
    else:
        found = _merged(between, block)
    np.add(found, low, out=counts, casting="same_kind")
    last = values.take(counts - 1, mode="clip")
    return np.flatnonzero((last == block) & (counts > 0)).astype(np.uint32)


def _place_ties(
    values: HostArray, at: HostArray, below: HostArray, begin: int, ties: HostArray
) -> None:
    """Fill in `below` at the ties of a block."""
    if not len(ties):
        return
    tied = at[begin : begin + _BLOCK].take(ties)
    starts = np.flatnonzero(np.append(True, tied[1:] != tied[:-1]))
    first = np.searchsorted(values, tied.take(starts), side="left")
    below[begin : begin + _BLOCK][ties] = first.repeat(np.diff(np.append(starts, len(ties))))


def _merged(values: HostArray, at: HostArray) -> HostArray:
    """How many values are not above each of `at`: a stable sort finds the two runs and merges."""
    order = np.concatenate([values, at]).argsort(kind="stable")
    places = np.flatnonzero(order >= len(values))
    places -= np.arange(len(at))
    return places
