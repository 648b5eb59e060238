"""What a resample draws, and how the draws become the rows of a score table.

Units are drawn with replacement: items, clusters of them, or runs of items that stand together in
the order of scores. Cells are the places of one model's items, in that order, that units fill. For
runs, the cells are the units. Integers throughout, but for weights.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from jaxmetrics import _sorting
from jaxmetrics._types import Array, Items
from jaxmetrics.inference._influence import in_order_weights
from jaxmetrics.inference._order import LEFT_OUT, NEGATIVE, POSITIVE, Ordered, starts
from jaxmetrics.inference._random import MAX_SIZE

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
    """Items `[n]` in order, marked where a new run begins."""

    begins: Array
    joined: Array
    end: Array  # items from here on are not drawn one by one
    used: Array  # how many runs there are


def runs_of(order: Ordered, merge: Array | bool, depth: Array) -> Runs:
    """The runs of items that are drawn as one: of one class, and of one score unless `merge`.

    With `merge`, a tie of both classes is apart from its neighbours, as the curve is slanted there.
    `depth` negatives, and the rest of the last one's tie, are within the end.
    """
    keys, kinds = order.keys, order.kinds
    index = jnp.arange(len(keys), dtype=jnp.int32)
    row_begins, kind_changes = starts(keys), starts(kinds)
    rows = jnp.cumsum(row_begins, dtype=jnp.int32) - 1
    both = jnp.zeros_like(row_begins).at[rows].max(kind_changes & ~row_begins)
    apart = jnp.where(merge, _sorting.take(both, rows), True)
    before = jnp.concatenate([apart[:1], apart[:-1]])
    begins = kind_changes | (row_begins & (apart | before))
    run = jnp.cumsum(begins, dtype=jnp.int32) - 1
    first = jnp.zeros_like(index).at[run].add(jnp.where(begins, index, 0), indices_are_sorted=True)
    begins |= (index - _sorting.take(first, run)) % MAX_SIZE == 0
    joined = apart & ~row_begins
    negatives_before = jnp.cumsum(kinds == NEGATIVE, dtype=jnp.int32) - (kinds == NEGATIVE)
    beyond = (kinds == LEFT_OUT) | (row_begins & (negatives_before >= depth))
    end = jnp.where(jnp.any(beyond), jnp.argmax(beyond), len(keys)).astype(jnp.int32)
    begins &= index < end
    return Runs(begins, joined & (index < end), end, jnp.sum(begins, dtype=jnp.int32))


def units_of_runs(
    order: Ordered, runs: Runs, like: Array, capacity: int, stratified: Array
) -> tuple[Units, Cells]:
    """Runs as units and as cells, at most `capacity`; `like` is of the scores' dtype."""
    kinds, n = order.kinds, len(order.kinds)
    index = jnp.arange(n, dtype=jnp.int32)
    within = index < runs.end
    at = jnp.nonzero(runs.begins, size=capacity, fill_value=n)[0].astype(jnp.int32)
    at = jnp.minimum(at, runs.end)
    following = jnp.concatenate([at[1:], runs.end[None]])
    place = jnp.minimum(at, n - 1)
    is_positive = kinds[place] == POSITIVE
    strata = jnp.where(kinds == LEFT_OUT, LEFT_OUT, jnp.where(stratified, kinds, 0))
    number = jnp.cumsum(runs.begins, dtype=jnp.int32) - 1
    owner, drawn = partition(number, jnp.where(within, strata, LEFT_OUT))
    units = Units(
        size=following - at,
        stratum=jnp.where(stratified & is_positive, 1, 0),
        used=runs.used,
        owner=owner,
        drawn=drawn,
        total=jnp.stack([jnp.sum(strata == s, dtype=jnp.int32) for s in (0, 1)]),
    )
    cells = Cells(
        unit=None,
        positives=is_positive.astype(jnp.int32),
        negatives=(~is_positive).astype(jnp.int32),
        joined=runs.joined[place],
        thresholds=_sorting.scores_of_keys(order.keys, like)[place],
        used=runs.used,
    )
    return units, cells


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


def cells_of_items(items: Items, order: Ordered, unit_of_item: Array | None, depth: Array) -> Cells:
    """Each item `[n]` a cell; those past the end, as in `runs_of`, are left out."""
    positives, negatives = in_order_weights(items, order)
    unit = order.item if unit_of_item is None else _sorting.take(unit_of_item, order.item)
    runs = runs_of(order, False, depth)
    return Cells(
        unit=unit,
        positives=positives,
        negatives=negatives,
        joined=~starts(order.keys),
        thresholds=_sorting.scores_of_keys(order.keys, items.scores),
        used=runs.end,
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


def head_depth(order: Ordered, limit: Array) -> Array:
    """The negatives that hold nearly every resample's first `limit` of all; all for a limit of 1.

    A count with mean m is beyond m + 7.7 sqrt(m) + 20 less often than once in 10^13.
    """
    mean = limit * jnp.sum(order.kinds == NEGATIVE)
    depth = jnp.ceil(mean + SPARE * (7.7 * jnp.sqrt(mean) + 20))
    return jnp.where(limit < 1, depth, len(order.kinds)).astype(jnp.int32)
