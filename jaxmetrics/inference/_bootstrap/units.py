"""The units that a resample draws, and the cells of the sorted data that they fill.

A unit is drawn with replacement. It is an item, a cluster of items, or a run of neighbouring items
in the order of scores. A cell is the place of a unit in one model's order of scores. For runs, the
cells are the units. All counts are integers unless there are weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.compaction import first_indices
from jaxmetrics._base.items import class_masks
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import LEFT_OUT, POSITIVE, Ordered, apart_rows
from jaxmetrics.inference._bootstrap.random import MAX_SIZE
from jaxmetrics.inference._influence.gradient import weights_by_kind

# Scales the margin of a head beyond its mean depth: at 1 a head in practice never falls short. It
# has a name so that tests can make heads fall short.
SPARE = 1.0
# The loops over units and cells take this many at a time.
TILE = 128
# A weight that no negatives reach.
ALL = math.inf


class Units(NamedTuple):
    """The units of one or two strata; unused places come last and have size 0.

    Attributes:
      size: `[units]`, the number of items in the unit.
      stratum: `[units]`, 0 or 1.
      used: `[]`, the number of units.
      owner: `[items]`, the unit of each item of stratum 0, then of each item of stratum 1.
      drawn: `[2]`, the number of items of each stratum that are in a unit.
      total: `[2]`, the number of all items of each stratum, in a unit or not.
    """

    size: Array
    stratum: Array
    used: Array
    owner: Array
    drawn: Array
    total: Array


class Cells(NamedTuple):
    """The places of the units in one model's order of falling scores, negatives first in a tie.

    Attributes:
      unit: `[cells]`, the unit that fills each cell; None if cell i is filled by unit i.
      positives: `[cells]`, what each draw of the unit adds to the positives.
      negatives: `[cells]`, what each draw of the unit adds to the negatives.
      joined: `[cells]`, whether the cell is in the same row of the score table as the one before.
      thresholds: `[cells]`, the score.
      used: `[]`, the number of cells; unused ones come last.
      head: `[]`, the number of cells in the head: the metric depends on these and the totals alone.
      amounts: `[cells]`, what each draw of the unit adds to the amount of the positives, where
        that is counted apart from their number.
      mixed: the cells of rows with both classes, where only these rows matter to the metric.
    """

    unit: Array | None
    positives: Array
    negatives: Array
    joined: Array
    thresholds: Array
    used: Array
    head: Array
    amounts: Array | None = None
    mixed: Mixed | None = None


class Mixed(NamedTuple):
    """The cells of the rows that have both classes; unused places come last.

    Attributes:
      cell: `[few]`, the index of each cell.
      row: `[few]`, the number of its row, from 0.
      used: `[]`, the number of such cells.
    """

    cell: Array
    row: Array
    used: Array


class Runs(NamedTuple):
    """The runs of items `[n]` in order.

    Attributes:
      begins: `[n]`, whether a run begins at the item.
      apart: `[n]`, whether the item's score must not share a run with neighbouring scores.
      used: `[]`, the number of runs.
    """

    begins: Array
    apart: Array
    used: Array


def numbers_of_classes(items: Items) -> Any:
    """The number of valid negatives and positives, `[2]`."""
    return np.array([x.sum() for x in class_masks(items)], np.int32)


def weight_of_head(limit: float, items: Items) -> Any:
    """The weight of top negatives, `[models]`, with which a resample reaches a false positive rate.

    Nearly every resample does: a binomial or Poisson count of mean m + 7.7 sqrt(m) + 20 is m or
    less with probability below 1e-8.
    """
    negative, _ = class_masks(items)
    weights = 1.0 if items.weights is None else np.asarray(items.weights, np.float64)
    weights = np.atleast_2d(np.where(negative, weights, 0.0))
    mean, spread = limit * weights.sum(-1), np.sqrt(limit * (weights**2).sum(-1))
    return mean + SPARE * (7.7 * spread + 20 * weights.max(-1))


def head_of(order: Ordered, negatives: Any, weight: Any) -> Any:
    """Number of top items whose negatives have the weight.

    It is that of all valid items if the negatives have no more than the weight in all.

    Args:
      order: the items in order.
      negatives: `[n]`, the weights of the negatives in order.
      weight: `[]`.
    """
    library = numerics.namespace(order.keys)
    valid = library.sum(order.kinds != LEFT_OUT)
    reached = library.cumsum(negatives, dtype=np.float64)
    last = library.searchsorted(reached, library.minimum(weight, reached[-1]))
    last = library.minimum(last, len(reached) - 1)
    # A tie is either all in the head or all beyond it.
    end = library.searchsorted(order.keys, order.keys[last], side="right")
    return library.where(weight < reached[-1], end, valid)


def items_of_head(items: Items, depth: int) -> Items:
    """The items down to the `depth`-th negative of any model and, with amounts, all positives.

    The other items change the metric of a resample only by the number of them that are drawn. The
    result is padded, so that data of similar size share a compiled program.
    """
    scores, labels = np.asarray(items.scores), np.asarray(items.labels)
    amounts = None if items.amounts is None else np.asarray(items.amounts)
    negatives, positives = class_masks(items)
    kept = positives if amounts is not None else np.zeros_like(positives)
    for row in scores:
        kept = kept | (
            (negatives | positives) & (row >= np.partition(row[negatives], -depth)[-depth])
        )
    at = np.flatnonzero(kept)
    n = places(len(at))
    valid, at = np.arange(n) < len(at), np.pad(at, (0, n - len(at)))
    amounts = None if amounts is None else amounts[..., at]
    return Items(scores[:, at], labels[at], None, valid, amounts)


def places(n: int) -> int:
    """A power of two of at least n, so that data of similar size share a compiled program."""
    return max(numerics.next_power_of_two(n), TILE)


def whole_tiles(n: int) -> int:
    """The least number of places, of at least n, that are whole tiles."""
    return n + -n % TILE


def few_lengths(n: int) -> int:
    """One of at most eight lengths between two powers of two, at least n and in whole tiles.

    Data of similar size then share a compiled program, whose loops end at the places in use.
    """
    step = max(numerics.next_power_of_two(n) // 16, TILE)
    return n + -n % step


def runs_of(order: Ordered, merges: Any) -> Runs:
    """The runs of neighbouring items of one class, and of one score where `apart_rows` says so."""
    apart, before = apart_rows(order, merges)
    begins = starts(order.kinds) | (starts(order.keys) & (apart | before))
    begins &= order.kinds != LEFT_OUT
    return Runs(begins, apart, numerics.namespace(begins).sum(begins, dtype=np.int32))


def units_of_runs(
    order: Ordered,
    runs: Runs,
    weights: Array | None,
    total: Array,
    like: Array,
    capacity: int,
    stratified: Array,
) -> tuple[Units, Cells]:
    """Runs as units and as cells; a run of more than MAX_SIZE items is split into several.

    Args:
      order: the items in the runs, in order.
      runs: the runs of `order`, at most `capacity`.
      weights: `[n]`, in order, the same for all items of a run; None if all are 1.
      total: `[2]`, the number of all negatives and positives, in `order` or not.
      like: an array of the scores' dtype.
      capacity: the largest number of runs.
      stratified: whether each class is drawn separately.
    """
    n, library = len(order.kinds), numerics.namespace(*order)
    end = library.sum(order.kinds != LEFT_OUT, dtype=np.int32)
    at = library.minimum(_places_of(runs.begins, capacity), end)
    size = library.concatenate([at[1:], end[None]]) - at

    pieces = (size + MAX_SIZE - 1) // MAX_SIZE
    until = library.cumsum(pieces, dtype=np.int32)
    index = library.arange(capacity + n // MAX_SIZE, dtype=np.int32)
    run = library.minimum(library.searchsorted(until, index, side="right"), capacity - 1)
    earlier = index - (until - pieces)[run]
    rest = library.clip(size[run] - earlier * MAX_SIZE, 0, MAX_SIZE)
    size = library.where(index < until[-1], rest, 0)

    first = library.minimum(at, n - 1)[run]
    is_positive = order.kinds[first] == POSITIVE
    stratum = library.where(stratified & is_positive, 1, 0)
    by_stratum, _ = partition(index, stratum)
    units = Units(
        size=size,
        stratum=stratum,
        used=until[-1],
        owner=_repeated(by_stratum, size[by_stratum], n),
        drawn=_by_stratum(size, stratum),
        total=library.where(stratified, total, library.stack([total[0] + total[1], 0 * total[0]])),
    )
    weight = np.int32(1) if weights is None else weights[first].astype(np.float64)
    cells = Cells(
        unit=None,
        positives=weight * is_positive,
        negatives=weight * ~is_positive,
        joined=runs.apart[first] & ((earlier > 0) | ~starts(order.keys)[first]),
        thresholds=sorting.scores_of_keys(order.keys[first], like),
        used=until[-1],
        head=until[-1],
    )
    return units, cells


def _by_stratum(size: Array, stratum: Array) -> Array:
    library = numerics.namespace(size, stratum)
    sizes = (library.where(stratum == s, size, 0) for s in (0, 1))
    return library.stack([library.sum(x, dtype=np.int32) for x in sizes])


def _places_of(begins: Any, capacity: int) -> Any:
    """Where runs begin, `[capacity]`; after the last run, the number of items."""
    n = len(begins)
    if numerics.namespace(begins) is jnp:
        index, exist = first_indices(begins, capacity)
        return jnp.where(exist, index, n)
    found = np.full(capacity, n, np.int32)
    places = np.flatnonzero(begins)
    found[: len(places)] = places
    return found


def _repeated(values: Any, counts: Any, n: int) -> Any:
    """`repeat` to a length n that is known when it is traced; surplus entries mean nothing."""
    if numerics.namespace(values, counts) is jnp:
        return jnp.repeat(values, counts, total_repeat_length=n)
    repeated = np.repeat(values, counts)
    return np.pad(repeated, (0, n - len(repeated)))


def partition(values: Any, strata: Any) -> tuple[Any, Any]:
    """Values `[n]` of stratum 0, then of stratum 1, in order, and the number of each."""
    members = [strata == s for s in (0, 1)]
    if numerics.namespace(values, strata) is np:
        parts = [values[x] for x in members]
        whole = np.concatenate([*parts, np.zeros_like(values)])[: len(values)]
        return whole, np.array([len(x) for x in parts], np.int32)
    ranks = [jnp.cumsum(m, dtype=jnp.int32) for m in members]
    counts = jnp.stack([rank[-1] for rank in ranks])
    to = jnp.where(members[0], ranks[0] - 1, counts[0] + ranks[1] - 1)
    to = jnp.where(members[0] | members[1], to, len(values))
    return jnp.zeros_like(values).at[to].set(values, mode="drop"), counts


def units_of_items(strata: Array) -> Units:
    """A unit for each item or cluster, from its stratum: 0, 1, or LEFT_OUT."""
    n, library = len(strata), numerics.namespace(strata)
    owner, counts = partition(library.arange(n, dtype=np.int32), strata)
    return Units(
        size=(strata != LEFT_OUT).astype(np.int32),
        stratum=library.where(strata == 1, 1, 0),
        used=library.asarray(n, np.int32),
        owner=owner,
        drawn=counts,
        total=counts,
    )


def units_of_all(n: int, library: Any) -> Units:
    """`units_of_items` of n items that are all in stratum 0.

    It needs no array of strata: XLA would evaluate the partition of a constant as it compiles,
    which takes minutes.
    """
    item, counts = library.arange(n, dtype=np.int32), library.asarray([n, 0], np.int32)
    none = library.zeros(n, np.int32)
    return Units(none + 1, none, library.int32(n), item, drawn=counts, total=counts)


def cells_of_items(
    items: Items,
    order: Ordered,
    unit_of_item: Array | None,
    weight: Array | None,
    apart: bool,
    counted: bool,
) -> Cells:
    """A cell for each item `[n]`.

    Args:
      items: the items of one model.
      order: their order.
      unit_of_item: `[n]`, the unit of each item; None if each item is a unit.
      weight: of the negatives in the head; None if the head is all items.
      apart: whether amounts are counted apart from the number of positives.
      counted: whether the totals of both classes are known, so that only the head is used.
    """
    negatives, positives = weights_by_kind(items, order)
    amounts = None
    if apart and items.amounts is not None:
        amounts = positives
        negatives, positives = weights_by_kind(items._replace(amounts=None), order)
    library = numerics.namespace(*order)
    valid = library.sum(order.kinds != LEFT_OUT)
    head = valid if weight is None else head_of(order, negatives, weight)
    used = head if counted else valid
    return Cells(
        unit=order.item if unit_of_item is None else sorting.take(unit_of_item, order.item),
        positives=positives,
        negatives=negatives,
        joined=~starts(order.keys),
        thresholds=sorting.scores_of_keys(order.keys, items.scores),
        used=used.astype(np.int32),
        head=head.astype(np.int32),
        amounts=amounts,
    )


def tiles_of(n: Array) -> Array:
    """The number of tiles of n units or cells."""
    return (n + TILE - 1) // TILE


def has_ties(cells: Cells) -> bool:
    """Whether a row has several cells that are used."""
    used, joined = np.asarray(cells.used)[..., None], np.asarray(cells.joined)
    return bool(np.any(joined & (np.arange(joined.shape[-1]) < used)))


def padded(units: Units, cells: Cells, length: Callable[[int], int]) -> tuple[Units, Cells]:
    """The units and cells, padded with unused places to the `length` for each number of places."""

    def longer(x: Any, fill: float = 0) -> Any:
        return padded_to(length(x.shape[-1]), x, fill)

    return padded_units(units, length), cells._replace(
        unit=None if cells.unit is None else longer(cells.unit),
        positives=longer(cells.positives),
        negatives=longer(cells.negatives),
        joined=longer(cells.joined, True),
        thresholds=longer(cells.thresholds),
        amounts=None if cells.amounts is None else longer(cells.amounts),
    )


def padded_units(units: Units, length: Callable[[int], int]) -> Units:
    """The units, padded with units of size 0, and their owners."""
    names = ("size", "stratum", "owner")
    arrays = {name: getattr(units, name) for name in names}
    return units._replace(**{k: padded_to(length(len(x)), x) for k, x in arrays.items()})


def padded_to(n: int, x: Any, fill: float = 0) -> Any:
    """`x` `[..., m]`, padded to `[..., n]`."""
    if n == x.shape[-1]:
        return x
    widths = [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])]
    return numerics.namespace(x).pad(x, widths, constant_values=fill)
