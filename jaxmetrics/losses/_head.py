"""Losses of the highest negatives: only the items that count, the head, are sorted.

A soft set gives every negative a weight. But beyond some share of the negatives, the reach, all
weights together are below the rounding error of the others. A sample of the items gives a threshold
that is, on purpose, a little too low. All items are then checked: if the negatives above the
threshold do not cover the reach, or are too many for the head, all items are sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxmetrics._base.compaction import first_indices, sample_indices
from jaxmetrics._base.cumulative import cumulated
from jaxmetrics._base.host import one_by_one
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array
from jaxmetrics.losses._rows import Row, ascending, order_of, permuted, row_at
from jaxmetrics.losses._top_set import reached, shares_above

R = TypeVar("R")

_LEAST, _MOST = 1 << 11, 1 << 14  # bounds of the size of the sample, which is n / 16
_MARGIN = 3  # of the threshold, in standard deviations of a share of the sample


def reach_of(share: Array, band: Array) -> Array:
    """The share of the negatives beyond which a soft set of the highest `share` is negligible.

    With u the share of the negatives above, weights fall as exp(-u / width). Beyond the reach they
    add up to less than the spacing of floats at 1, relative to the weight of the whole set.
    """
    beyond = float(np.log(2 / jnp.finfo(share.dtype).eps))
    return lax.stop_gradient(share + beyond * band * share * (1 - share))


def of_head(
    function: Callable[[Row, Array | None], R],
    row: Row,
    reach: Array,
    parts: tuple[float, ...],
) -> R:
    """`function(row, total)`, where the row has only the positives and the negatives that count.

    Args:
      function: takes a row in ascending order, and the weight of all negatives, or None if the row
        has all of them.
      row: all items.
      reach: the share of the negatives that count, the highest ones.
      parts: capacities of the row, as shares of the items, ascending. The least one that suffices
        is used; if none does, the row has all items.
    """

    def of_kept(capacity: int | None, kept: Array, total: Array, row: Row) -> R:
        if capacity is None:
            return function(ascending(row), None)
        return function(row_at(row, _in_order(row, kept, capacity)), total)

    return _in_branches(of_kept, row, reach, parts, positives=True)


def shares_in_head(row: Row, reach: Array, parts: tuple[float, ...]) -> tuple[Array, Array]:
    """`shares_above` each item, of the negatives' weight, in the order of the row.

    The arguments are as in `of_head`. An item that is not sorted has shares of 1: a negative beyond
    the reach, or a positive.
    """
    still = Row(*map(lax.stop_gradient, row))

    def of_kept(capacity: int | None, kept: Array, total: Array, row: Row) -> tuple[Array, Array]:
        order = _in_order(row, kept, capacity)
        kept_row = row_at(row, order)
        total_of_kept = None if capacity is None else total
        found = shares_above(kept_row.scores, kept_row.negatives, total_of_kept)
        above, upto = (jnp.ones_like(kept, x.dtype).at[order].set(x, mode="drop") for x in found)
        return above, upto

    return _in_branches(of_kept, still, reach, parts, positives=False)


def _in_branches(
    of_kept: Callable[..., R], row: Row, reach: Array, parts: tuple[float, ...], *, positives: bool
) -> R:
    """`of_kept(capacity, kept, total, row)`, by the least capacity that suffices.

    The capacity is None for all items: if no capacity suffices, a score is infinite, or `vmap`,
    the size or the backend speaks against branches.
    """
    n = len(row.scores)
    still = Row(*map(lax.stop_gradient, row))
    total = jnp.sum(still.negatives)
    if not one_by_one(n):
        return of_kept(None, still.is_negative, total, row)
    head = still.is_negative & (still.scores >= _below(still, reach))
    # Strictly more than the reach: the first negative beyond it may be the threshold of a rate.
    enough = jnp.sum(jnp.where(head, still.negatives, 0)) > reached(reach, total.dtype) * total
    enough &= jnp.all(jnp.isfinite(still.scores))
    kept = head | still.is_positive if positives else head
    capacities = [int(part * n) for part in parts]
    too_few = jnp.sum(jnp.sum(kept, dtype=jnp.int32) > np.array(capacities), dtype=jnp.int32)
    number = _if_alone(jnp.where(enough, too_few, len(parts)), np.int32(len(parts)))
    branches = [partial(of_kept, capacity) for capacity in (*capacities, None)]
    return lax.switch(number, branches, kept, total, row)


@custom_vmap
def _if_alone(number: Array, otherwise: Any) -> Array:
    """The number of a branch; `otherwise` under `vmap`, which would compute all branches."""
    return number


@_if_alone.def_vmap
def _(size: int, batched: Any, number: Array, otherwise: Array) -> tuple[Array, bool]:
    return (otherwise[0] if batched[1] else otherwise), False


def _below(row: Row, reach: Array) -> Array:
    """A score that, very likely, at least the share `reach` of the negatives reach, and few more.

    It is estimated from a sample: one of every `step` items.
    """
    n = len(row.scores)
    step = max(n // min(max(n // 16, _LEAST), _MOST), 1)
    index = sample_indices(n, step)
    sample = Row(*(entries_at(x, index) for x in row))
    order = order_of(sample)
    weights, scores = permuted(sample.negatives, order), permuted(sample.scores, order)
    total = jnp.sum(weights)
    effective = total**2 / jnp.maximum(jnp.sum(weights**2), jnp.finfo(total.dtype).tiny)
    share = reach + _MARGIN * (jnp.sqrt(reach / effective) + 1 / effective)
    upto = cumulated(weights, reverse=True)
    return jnp.max(jnp.where(upto >= share * total, scores, -jnp.inf))


def _in_order(row: Row, kept: Array, capacity: int | None) -> Array:
    """The indices of the kept items in ascending order, and n in unused places.

    Without a capacity, the indices of all items. Only the sort uses the indices of the compaction:
    XLA would repeat the compaction within each other user.
    """
    if capacity is None:
        return order_of(row)
    index, some = first_indices(kept, capacity)
    # Unused places are sorted by the score of the last item, which `row_at` gives them.
    return order_of(row, jnp.where(some, index, len(kept) - 1), some)
