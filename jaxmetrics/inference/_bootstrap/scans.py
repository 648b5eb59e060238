"""Scans along the cells of all resamples at once, from the first to the last or by groups.

The CPU takes cell after cell of a tile, which stays in its cache. A GPU takes groups of cells side
by side, each from what all cells before it add up to: a scan of a million cells would be as many
launches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.host import on_cpu, on_gpu
from jaxmetrics._base.numerics import shifted
from jaxmetrics._base.types import Array
from jaxmetrics.inference._bootstrap.units import TILE, Cells, tiles_of

T = TypeVar("T")

_UNROLL = 16
_ROUNDING = 1e-12  # above the relative difference of two sums in different orders
GROUP = 64  # cells, which divide a tile


class Drawn(NamedTuple):
    """How often each resample draws each cell of a model.

    Attributes:
      counts: `[units, resamples]`, how often the units are drawn.
      words: the counts, eight to a word where that can be: a gather takes as long for a byte.
      unit: `[cells]`, the unit that fills each cell; None if cell i is filled by unit i.
    """

    counts: Array
    words: Array
    unit: Array | None

    @property
    def resamples(self) -> int:
        n: int = self.counts.shape[1]
        return n

    def of_cells(self, at: Array) -> Array:
        """The counts `[len(at), resamples]` of these cells."""
        if self.unit is not None:
            at = self.unit.at[at].get(mode="promise_in_bounds")
        return self.counts.at[at].get(mode="promise_in_bounds")

    def tile(self, number: Array) -> Array:
        """The counts of a tile."""
        if self.unit is None:
            return tile_of(number, self.counts)[0]
        unit = self.unit

        def gathered(number: Array) -> Array:
            return self.words.at[tile_of(number, unit)[0]].get(mode="promise_in_bounds")

        words = varying.apart(gathered, number)
        return lax.bitcast_convert_type(words, self.counts.dtype).reshape(TILE, -1)

    def in_order(self, used: Array) -> Array:
        """The counts of so many cells, in order; those of others mean nothing."""
        if self.unit is None:
            return self.counts

        def tile(number: Array, found: Array) -> Array:
            return lax.dynamic_update_slice_in_dim(found, self.tile(number), number * TILE, 0)

        start = jnp.zeros((len(self.unit), self.resamples), self.counts.dtype)
        found: Array = varying.fori_loop(0, tiles_of(used), tile, start)
        return found


def drawn_of(counts: Array, unit: Array | None) -> Drawn:
    """The counts `[units, resamples]`, to be read by cells.

    The CPU gathers them tile by tile, which stay in its cache, an accelerator all at once.
    """
    if unit is not None and not on_cpu():
        counts, unit = counts.at[unit].get(mode="promise_in_bounds"), None
    words, resamples = counts, counts.shape[1]
    if unit is not None and counts.dtype.itemsize == 1 and resamples % 8 == 0:
        words = lax.bitcast_convert_type(counts.reshape(-1, resamples // 8, 8), jnp.uint64)
    return Drawn(counts, words, unit)


@dataclass(frozen=True)
class Groups:
    """Cells in groups of neighbours.

    Attributes:
      counts: `[cells, groups, resamples]`, how often each cell is drawn.
      joined: `[cells of all groups]`, whether the next cell is in the same row; None where no row
        has several cells.
    """

    counts: Array
    joined: Array | None

    def before(self, *of_cells: Array) -> list[Array]:
        """What all cells before each group add up to, `[groups, resamples]`."""
        sums = self._summed(*map(in_groups, of_cells))
        return [shifted(jnp.cumsum(x, axis=0)) for x in sums]

    def of_row_before(self, of_cell: Array) -> Array:
        """What those of them add up to that are in the row which the group goes on with."""
        if self.joined is None:
            return jnp.zeros(self.counts.shape[1:])
        joined = in_groups(self.joined) > 0
        # Of a group, the cells behind which no row ends.
        in_last = lax.cumprod(joined.astype(jnp.int32), axis=0, reverse=True)
        (sums,) = self._summed(jnp.where(in_last > 0, in_groups(of_cell), 0))
        ends = ~jnp.all(joined, axis=0)[:, None]

        def both(a: Any, b: Any) -> Any:
            return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]

        return shifted(lax.associative_scan(both, (sums, jnp.broadcast_to(ends, sums.shape)))[0])

    def _summed(self, *of_cells: Array) -> tuple[Array, ...]:
        """The sums of each group. XLA's own would store all counts once more, in 64 bits."""

        def add(sums: Any, cell: Any) -> tuple[Any, None]:
            count, *columns = cell
            drawn = count.astype(jnp.float64)
            return tuple(x + drawn * y[:, None] for x, y in zip(sums, columns, strict=True)), None

        none = tuple(jnp.zeros(self.counts.shape[1:]) for _ in of_cells)
        columns = tuple(x.astype(jnp.float64) for x in of_cells)
        sums: tuple[Array, ...]
        sums, _ = varying.scan(add, none, (self.counts, *columns), unroll=_UNROLL)
        return sums


def in_groups(x: Array) -> Array:
    """`[cells, groups, ...]` of `[cells of all groups, ...]`."""
    return jnp.moveaxis(x.reshape(-1, GROUP, *x.shape[1:]), 1, 0)


def scanned(
    cell: Callable[[T, Any], tuple[T, None]],
    start: T,
    drawn: Drawn,
    cells: Cells,
    columns: tuple[Array, ...],
    starts: Callable[[Groups], T],
    together: Callable[[T], T],
    *,
    tied: bool,
) -> T:
    """The carry of a scan along the cells of the head, with their counts and columns in float64.

    Args:
      cell: a step.
      start: the carry before the first cell.
      drawn: how often the cells are drawn.
      cells: of which the head has so many.
      columns: `[cells]` each; of cells beyond the head the counts or the columns are 0, so that a
        step changes nothing; if tied, the last one is whether the next cell is in the same row.
      starts: the carries `[groups, ...]` before each group.
      together: the carry at the end from those at the end of each group, `[groups, ...]`.
      tied: whether any row has several cells.
    """
    if on_gpu():
        groups = Groups(in_groups(drawn.counts), columns[-1] if tied else None)
        inputs = groups.counts, *(in_groups(x.astype(jnp.float64)) for x in columns)

        def of_group(start: T, *inputs: Array) -> T:
            last: T = varying.scan(cell, start, inputs, unroll=_UNROLL)[0]
            return last

        ends = jax.vmap(of_group, (0, *[1] * len(inputs)))(starts(groups), *inputs)
        return together(ends)

    def tile(number: Array, carry: T) -> T:
        rest = (x.astype(jnp.float64) for x in tile_of(number, *columns))
        inputs = drawn.tile(number), *rest
        last: T = varying.scan(cell, carry, inputs, unroll=_UNROLL)[0]
        return last

    found: T = varying.fori_loop(0, tiles_of(cells.head), tile, start)
    return found


def continued(cells: Cells, tied: bool) -> tuple[Array, ...]:
    """Whether the next cell is in the same row; nothing where no row has several cells."""
    if not tied:
        return ()
    joined = cells.joined[1:] & (jnp.arange(1, len(cells.joined)) < cells.used)
    return (jnp.pad(joined, (0, 1)),)


def whole(part: Array, total: Array) -> Array:
    """The total itself, of which groups added up all in another order: a rate of all is 1."""
    return jnp.where(part >= total * (1 - _ROUNDING), total, part)


def tile_of(number: Array, *columns: Array) -> tuple[Array, ...]:
    return tuple(lax.dynamic_slice_in_dim(x, number * TILE, TILE) for x in columns)


def totals(drawn: Drawn, cells: Cells) -> Array:
    """All negatives and positives drawn, `[2, resamples]`."""
    classes = jnp.stack([cells.negatives, cells.positives]).astype(jnp.float64)
    if on_gpu():
        used = jnp.where(jnp.arange(len(cells.joined)) < cells.used, classes, 0)
        counts = drawn.counts.astype(jnp.float64)
        return jnp.stack([jnp.sum(counts * x[:, None], axis=0) for x in used])

    def tile(number: Array, sums: Array) -> Array:
        (here,) = tile_of(number, classes.T)
        return sums + here.T @ drawn.tile(number).astype(jnp.float64)

    start = jnp.zeros((2, drawn.resamples))
    sums: Array = varying.fori_loop(0, tiles_of(cells.used), tile, start)
    return sums
