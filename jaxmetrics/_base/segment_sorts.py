"""Sorts within segments by NumPy, which lie one after the other in the CPU's memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jaxmetrics._base.sorting import sort_row
from jaxmetrics._base.types import HostArray

_BLOCK = 1 << 16  # items whose index, and segments whose number, are 16 bits of a word
_ITEMS_APART = 160  # of a segment, on average, from which on each segment is sorted by itself


def sort_segments(
    keys: HostArray, begins: HostArray, *, stable: bool = False
) -> tuple[HostArray, HostArray]:
    """Keys `[n]`, ascending within each segment, and the index that each had.

    `begins` `[segments + 1]` is where each segment begins and ends. 32-bit keys that tie are in
    order of index; 64-bit ones are if `stable`. Long segments are sorted one by one, which takes a
    third of the time of one sort of words with the segment in the upper bits: they stay in the
    cache. So do blocks of short ones, which are sorted together.
    """
    kind: Any = "stable" if stable else None
    if not _sort_apart(begins):
        return _sort_blocks(keys, begins, kind)
    if keys.dtype == np.uint64:
        index = _order_of_each(keys, begins, kind)
        return keys.take(index), index
    words = keys.astype(np.uint64) << 32
    words |= np.arange(len(keys), dtype=np.uint32)
    _sort_each(words, begins)
    return (words >> 32).astype(np.uint32), words.astype(np.uint32)


def _sort_blocks(keys: HostArray, begins: HostArray, kind: Any) -> tuple[HostArray, HostArray]:
    """`sort_segments`, of blocks of neighbouring segments."""
    found, index = np.empty_like(keys), np.empty(len(keys), np.int64)
    for first, last in pairwise(_blocks(begins)):
        bounds = begins[first : last + 1]
        block = slice(bounds[0], bounds[-1])
        found[block], item = _sort_block(keys[block], bounds, kind)
        np.add(item, bounds[0], out=index[block])
    return found, index


def _blocks(begins: HostArray) -> list[int]:
    """Where blocks begin, and the last ends: up to 65,536 segments and items, or one segment."""
    found = [0]
    while found[-1] < len(begins) - 1:
        first = found[-1]
        full = int(begins.searchsorted(begins[first] + _BLOCK, side="right")) - 1
        found.append(max(min(full, first + _BLOCK), first + 1))
    return found


def _sort_block(keys: HostArray, bounds: HostArray, kind: Any) -> tuple[HostArray, HostArray]:
    """The keys of a block in order of segment and key, and the index that each had."""
    if len(keys) > _BLOCK:  # of one segment
        return sort_segments(keys, bounds - bounds[0], stable=kind is not None)
    index = np.arange(len(keys), dtype=np.uint16)
    if keys.dtype == np.uint64:
        order = keys.argsort(kind=kind)
        words = _segments_in_upper_bits(bounds, 16).take(order).astype(np.uint32)
        words |= index
        words.sort()
        order = order.take(words.astype(np.uint16))
        return keys.take(order), order
    words = _segments_in_upper_bits(bounds, 48)
    words |= keys.astype(np.uint64) << 16
    words |= index
    words.sort()
    return (words >> 16).astype(np.uint32), words.astype(np.uint16)


def _order_of_each(keys: HostArray, begins: HostArray, kind: Any) -> HostArray:
    """The indices that sort the keys of each segment in ascending order."""
    order: HostArray
    if len(begins) > 2 and _are_rows(begins):
        order = keys.reshape(len(begins) - 1, -1).argsort(axis=-1, kind=kind) + begins[:-1, None]
        return order.ravel()
    order = np.empty(len(keys), np.int64)
    for begin, end in pairwise(begins.tolist()):
        order[begin:end] = keys[begin:end].argsort(kind=kind) + begin
    return order


def sort_in_segments(keys: HostArray, begins: HostArray) -> HostArray:
    """Keys `[n]`, ascending within each segment from `begins` `[segments + 1]`."""
    if not _sort_apart(begins):
        if keys.dtype == np.uint64:
            return sort_segments(keys, begins)[0]
        words = keys | _segments_in_upper_bits(begins, 32)
        words.sort()
        return words.astype(np.uint32)
    found = keys.copy()
    _sort_each(found, begins)
    return found


def _sort_apart(begins: HostArray) -> bool:
    """Whether segments are sorted one by one, or as rows, faster than all together."""
    return bool(begins[-1] >= _ITEMS_APART * (len(begins) - 1)) or _are_rows(begins)


def _are_rows(begins: HostArray) -> bool:
    """Whether all segments have the same length."""
    n, length = len(begins) - 1, int(begins[1])
    return n * length == begins[-1] and bool((begins[1:] - begins[:-1] == length).all())


def _segments_in_upper_bits(begins: HostArray, shift: int) -> HostArray:
    sizes = np.diff(begins)
    return (np.arange(len(sizes), dtype=np.uint64) << shift).repeat(sizes)


def _sort_each(values: HostArray, begins: HostArray) -> None:
    """Sort the values of each segment in place."""
    if len(begins) > 2 and _are_rows(begins):
        values.reshape(len(begins) - 1, -1).sort(axis=-1)
        return
    for begin, end in pairwise(begins.tolist()):
        sort_row(values[begin:end])
