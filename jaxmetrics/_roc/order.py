"""Items in order of decreasing score, negatives first within a tie: the input of inference."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import cumulative, numerics, sorting
from jaxmetrics._base.items import not_allowed
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, Items

# The kinds of items, in the order that they have in a tie, and the places of the classes in arrays
# of both. SORTED_POSITIVES and SORTED_NEGATIVES of `_base/by_class.py` are the other way round, and
# KINDS of `_roc/table.py` are 1 and 2.
NEGATIVE, POSITIVE, LEFT_OUT = 0, 1, 2
_MOST_ITEMS = 1 << 30  # a word of 32 bits holds the kind of an item above its index


class Ordered(NamedTuple):
    """Items `[..., n]` by decreasing score; in a tie negatives first; those left out at the end.

    Attributes:
      keys: equal where scores tie; `sorting.scores_of_keys` returns the scores.
      kinds: NEGATIVE, POSITIVE or LEFT_OUT.
      item: the index of the item among the inputs.
    """

    keys: Any
    kinds: Any
    item: Any


def in_order(items: Items) -> Ordered:
    """The items in order, with leading axes broadcast. NumPy sorts NumPy's arrays."""
    scores, labels, where = items.scores, items.labels, items.where
    library = numerics.namespace(scores)
    if any(numerics.namespace(x) is jnp for x in (labels, where) if x is not None):
        library = jnp
    n = scores.shape[-1]
    if n >= _MOST_ITEMS:
        raise ValueError(f"at most 2^30 items can be resampled, got {n}")
    bits = np.uint32(n.bit_length())
    kinds = (labels == 1).astype(np.uint32)
    if where is not None:
        kinds = library.where(where, kinds, np.uint32(LEFT_OUT))
    payload = (kinds << bits) | library.arange(n, dtype=np.uint32)
    keys = sorting.descending_keys(library.asarray(scores))
    if where is not None:
        keys = library.where(where, keys, sorting.largest_key(keys))
    arrays, most = library.broadcast_arrays(keys, payload), (LEFT_OUT << int(bits)) + n
    keys, payload = sorting.sort_by_key_and_payload(*arrays, most=most)
    index = payload & ((np.uint32(1) << bits) - np.uint32(1))
    kinds = (payload >> bits).astype(np.uint8)
    return Ordered(keys, kinds, index.astype(np.int32))


def apart_rows(order: Ordered, merges: Any) -> tuple[Array, Array]:
    """`[n]`: whether the row of an item, and the row of the item before it, must stay separate.

    Rows of both classes must, as the ROC curve is slanted there. Rows of negatives alone, and of
    positives alone, may join their neighbours where `merges` `[2]` says so.
    """
    library, row_begins = numerics.namespace(*order), starts(order.keys)
    both: Any
    rows = cumulative.running_count(row_begins.astype(np.int32)) - 1
    differs = starts(order.kinds) & ~row_begins
    if library is np:
        both = np.logical_or.reduceat(differs, np.flatnonzero(row_begins)).take(rows)
    else:
        at = jnp.zeros_like(row_begins).at[rows]
        of_rows = at.max(differs, indices_are_sorted=True, mode="promise_in_bounds")
        both = sorting.entries_at(of_rows, rows)
    apart = both | ~library.where(order.kinds == POSITIVE, merges[1], merges[0])
    return apart, library.concatenate([apart[:1], apart[:-1]])


def undefined(items: Items) -> Array:
    """`[...]`: whether a valid score is NaN, no item is valid, or labels or weights are invalid.

    For NumPy's arrays the result is NumPy's, as their labels and weights were checked before.
    """
    scores, where = items.scores, items.where
    library = numerics.namespace(scores)
    valid = library.ones(scores.shape[-1:], bool) if where is None else where
    if items.weights is not None:
        valid = valid & (items.weights > 0)
    nan = library.zeros(1, bool)
    if numerics.is_inexact(scores):
        nan = library.isnan(scores)
    bad: Array = library.any(nan & valid, axis=-1) | ~library.any(valid, axis=-1)
    return bad if library is np else bad | not_allowed(items)
