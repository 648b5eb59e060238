"""What a resample draws, and how the draws become the rows of a score table.

Units are drawn with replacement: items, clusters of them, or runs of items that stand together in
the order of scores. Cells are the places of one model's items, in that order, that units fill. For
runs, the cells are the units. Integers throughout, but for weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import (
    LEFT_OUT,
    NEGATIVE,
    POSITIVE,
    Ordered,
    apart_rows,
    starts,
)
from jaxmetrics.inference._bootstrap.random import MAX_SIZE
from jaxmetrics.inference._influence.gradient import in_order_weights

# How much deeper than its mean a head is, in units of what never fails.
SPARE = 1.0
# Arrays of units and cells are worked on in tiles of this many.
TILE = 128


class Units(NamedTuple):
    """What is drawn, in one or two strata; unused places come last and have size 0.

    Attributes:
      size: `[units]`, how many items are drawn as one.
      stratum: `[units]`, 0 or 1.
      used: `[]`, how many there are.
      owner: `[items]`, the unit of each item of stratum 0, then of stratum 1.
      drawn: `[2]`, the items of each stratum that units have.
      total: `[2]`, all items of each stratum; those that no unit has are only counted.
    """

    size: Array
    stratum: Array
    used: Array
    owner: Array
    drawn: Array
    total: Array


class Cells(NamedTuple):
    """Where one model has the units, by falling score, negatives first in a tie.

    Attributes:
      unit: `[cells]`, the unit that fills a cell; None where that is the cell's own number.
      positives: `[cells]`, what each draw of the unit adds to the positives.
      negatives: `[cells]`, the same of the negatives.
      joined: `[cells]`, whether the score is that of the cell before, so that they are one row.
      thresholds: `[cells]`, the score.
      used: `[]`, how many cells there are; unused ones come last.
    """

    unit: Array | None
    positives: Array
    negatives: Array
    joined: Array
    thresholds: Array
    used: Array


class Runs(NamedTuple):
    """Items `[n]` in order, marked where a new run begins.

    Attributes:
      begins: `[n]`, whether a run begins.
      apart: `[n]`, whether the item's row may not be joined with its neighbours.
      used: `[]`, how many runs there are.
    """

    begins: Array
    apart: Array
    used: Array


def head_of(order: Ordered, limit: Any) -> Any:
    """How many leading items hold what nearly every resample needs up to a false positive rate.

    A count with mean m is beyond m + 7.7 sqrt(m) + 20 less often than once in 10^13. A limit of 1
    needs all but those left out.
    """
    library = numerics.namespace(order.keys)
    valid = library.sum(order.kinds != LEFT_OUT)
    negatives = library.cumsum(order.kinds == NEGATIVE, dtype=np.int32)
    mean = limit * negatives[-1]
    depth = library.ceil(mean + SPARE * (7.7 * library.sqrt(mean) + 20)).astype(np.int32)
    last = library.searchsorted(negatives, library.clip(depth, 1, negatives[-1]))
    last = library.minimum(last, len(negatives) - 1)
    # To the end of the last one's tie.
    end = library.searchsorted(order.keys, order.keys[last], side="right")
    return library.where((limit < 1) & (depth < negatives[-1]), end, valid)


def runs_of(order: Ordered, merge: Array) -> Runs:
    """The runs of items that are drawn as one: of one class, and of one score unless `merge`.

    With `merge`, a tie of both classes is apart from its neighbours, as the curve is slanted there.
    """
    apart, before = apart_rows(order, merge)
    begins = starts(order.kinds) | (starts(order.keys) & (apart | before))
    begins &= order.kinds != LEFT_OUT
    return Runs(begins, apart, jnp.sum(begins, dtype=jnp.int32))


def units_of_runs(
    order: Ordered, runs: Runs, total: Array, like: Array, capacity: int, stratified: Array
) -> tuple[Units, Cells]:
    """Runs as units and as cells; those of more than MAX_SIZE items as several.

    Args:
      order: the items that are drawn one by one.
      runs: of these, at most `capacity`.
      total: `[2]`, all negatives and positives, also those that are not among `order`.
      like: an array of the scores' dtype.
      capacity: how many runs there may be.
      stratified: whether each class is drawn by itself.
    """
    n = len(order.kinds)
    end = jnp.sum(order.kinds != LEFT_OUT, dtype=jnp.int32)
    at = jnp.nonzero(runs.begins, size=capacity, fill_value=n)[0].astype(jnp.int32)
    at = jnp.minimum(at, end)
    size = jnp.concatenate([at[1:], end[None]]) - at

    pieces = (size + MAX_SIZE - 1) // MAX_SIZE
    until = jnp.cumsum(pieces, dtype=jnp.int32)
    index = jnp.arange(capacity + n // MAX_SIZE, dtype=jnp.int32)
    run = jnp.minimum(jnp.searchsorted(until, index, side="right"), capacity - 1)
    earlier = index - (until - pieces)[run]
    size = jnp.where(index < until[-1], jnp.clip(size[run] - earlier * MAX_SIZE, 0, MAX_SIZE), 0)

    first = jnp.minimum(at, n - 1)[run]
    is_positive = order.kinds[first] == POSITIVE
    stratum = jnp.where(stratified & is_positive, 1, 0)
    by_stratum, _ = partition(index, stratum)
    units = Units(
        size=size,
        stratum=stratum,
        used=until[-1],
        owner=jnp.repeat(by_stratum, size[by_stratum], total_repeat_length=n),
        drawn=_by_stratum(size, stratum),
        total=jnp.where(stratified, total, jnp.stack([total[0] + total[1], 0])),
    )
    cells = Cells(
        unit=None,
        positives=is_positive.astype(jnp.int32),
        negatives=(~is_positive).astype(jnp.int32),
        joined=runs.apart[first] & ((earlier > 0) | ~starts(order.keys)[first]),
        thresholds=sorting.scores_of_keys(order.keys[first], like),
        used=until[-1],
    )
    return units, cells


def _by_stratum(size: Array, stratum: Array) -> Array:
    return jnp.stack([jnp.sum(jnp.where(stratum == s, size, 0), dtype=jnp.int32) for s in (0, 1)])


def partition(values: Array, strata: Array) -> tuple[Array, Array]:
    """Values `[n]` of stratum 0, then of stratum 1, in order, and how many there are of each."""
    members = [strata == s for s in (0, 1)]
    ranks = [jnp.cumsum(m, dtype=jnp.int32) for m in members]
    counts = jnp.stack([rank[-1] for rank in ranks])
    to = jnp.where(members[0], ranks[0] - 1, counts[0] + ranks[1] - 1)
    to = jnp.where(members[0] | members[1], to, len(values))
    return jnp.zeros_like(values).at[to].set(values, mode="drop"), counts


def units_of_items(strata: Array) -> Units:
    """Each item, or cluster, its own unit; `strata` says 0, 1, or LEFT_OUT."""
    n = len(strata)
    owner, counts = partition(jnp.arange(n, dtype=jnp.int32), strata)
    return Units(
        size=(strata != LEFT_OUT).astype(jnp.int32),
        stratum=jnp.where(strata == 1, 1, 0),
        used=jnp.int32(n),
        owner=owner,
        drawn=counts,
        total=counts,
    )


def cells_of_items(items: Items, order: Ordered, unit_of_item: Array | None, limit: Array) -> Cells:
    """Each item `[n]` a cell, of which those of the head for a limit are used."""
    positives, negatives = in_order_weights(items, order)
    return Cells(
        unit=order.item if unit_of_item is None else sorting.take(unit_of_item, order.item),
        positives=positives,
        negatives=negatives,
        joined=~starts(order.keys),
        thresholds=sorting.scores_of_keys(order.keys, items.scores),
        used=head_of(order, limit).astype(jnp.int32),
    )


def padded(units: Units, cells: Cells) -> tuple[Units, Cells]:
    """With places for whole tiles; what is added is unused."""
    unit = None if cells.unit is None else _whole_tiles(cells.unit)
    return padded_units(units), Cells(
        unit=unit,
        positives=_whole_tiles(cells.positives),
        negatives=_whole_tiles(cells.negatives),
        joined=_whole_tiles(cells.joined, True),
        thresholds=_whole_tiles(cells.thresholds),
        used=cells.used,
    )


def padded_units(units: Units) -> Units:
    """With places for whole tiles; what is added has no items."""
    return units._replace(size=_whole_tiles(units.size), stratum=_whole_tiles(units.stratum))


def _whole_tiles(x: Array, fill: float = 0) -> Array:
    widths = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % TILE)]
    return jnp.pad(x, widths, constant_values=fill)
