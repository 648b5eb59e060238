"""Scans along the cells of all resamples at once, from the first to the last or by groups.

The CPU takes cell after cell of a tile, which stays in its cache. A GPU takes groups of cells side
by side, and each group starts from the sums of all cells before it: one scan of a million cells
would be a million launches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.host import on_cpu, on_gpu, on_tpu
from jaxmetrics._base.numerics import shifted
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array
from jaxmetrics.inference._bootstrap.units import TILE, Cells, tiles_of

T = TypeVar("T")

_ROUNDING = 1e-12  # above the relative difference of two sums in different orders
GROUP = 64  # cells of a group; a divisor of TILE


class Drawn(NamedTuple):
    """How often each resample draws each cell of a model.

    Attributes:
      counts: `[units, resamples]`, how often the units are drawn.
      words: the counts, packed eight to a word if possible: a gather takes as long for a byte.
      unit: `[cells]`, the unit that fills each cell; None if cell i is filled by unit i.
    """

    counts: Array
    words: Array
    unit: Array | None

    @property
    def resamples(self) -> int:
        return self.counts.shape[1]

    def of_cells(self, at: Array) -> Array:
        """The counts `[len(at), resamples]` of these cells."""
        if self.unit is not None:
            at = entries_at(self.unit, at)
        return entries_at(self.counts, at)

    def tile(self, number: Array) -> Array:
        """The counts of a tile, `[TILE, resamples]`."""
        if self.unit is None:
            return tile_of(number, self.counts)[0]
        unit = self.unit

        def gathered(number: Array) -> Array:
            return entries_at(self.words, tile_of(number, unit)[0])

        words = varying.apart(gathered, number)
        return lax.bitcast_convert_type(words, self.counts.dtype).reshape(TILE, -1)

    def in_order(self, used: Array) -> Array:
        """The counts of the first `used` cells, in order; those of the others mean nothing."""
        if self.unit is None:
            return self.counts

        def tile(number: Array, found: Array) -> Array:
            return lax.dynamic_update_slice_in_dim(found, self.tile(number), number * TILE, 0)

        start = jnp.zeros((len(self.unit), self.resamples), self.counts.dtype)
        return varying.fori_loop(0, tiles_of(used), tile, start)


def drawn_of(counts: Array, unit: Array | None) -> Drawn:
    """The counts `[units, resamples]`, to be read by cells.

    The CPU gathers them tile by tile, to stay in its cache, and an accelerator all at once.
    """
    if unit is not None and not on_cpu():
        counts, unit = entries_at(counts, unit), None
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
        """The sums over all cells before each group, `[groups, resamples]`, for each argument."""
        sums = self._summed(*map(in_groups, of_cells))
        return [shifted(jnp.cumsum(x, axis=0)) for x in sums]

    def of_row_before(self, of_cell: Array) -> Array:
        """The sums over those cells before each group that share a row with its first cell."""
        if self.joined is None:
            return jnp.zeros(self.counts.shape[1:])
        joined = in_groups(self.joined) > 0
        # The cells of a group whose row goes on in the next group.
        in_last = lax.cumprod(joined.astype(jnp.int32), axis=0, reverse=True)
        (sums,) = self._summed(jnp.where(in_last > 0, in_groups(of_cell), 0))
        ends = ~jnp.all(joined, axis=0)[:, None]

        def both(a: Any, b: Any) -> Any:
            return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]

        return shifted(lax.associative_scan(both, (sums, jnp.broadcast_to(ends, sums.shape)))[0])

    def _summed(self, *of_cells: Array) -> tuple[Array, ...]:
        """The sums of each group, by a scan: XLA's sum would store all counts again in 64 bits."""

        def add(sums: Any, cell: Any) -> tuple[Any, None]:
            count, *columns = cell
            drawn = count.astype(jnp.float64)
            return tuple(x + drawn * y[:, None] for x, y in zip(sums, columns, strict=True)), None

        none = tuple(jnp.zeros(self.counts.shape[1:]) for _ in of_cells)
        columns = tuple(x.astype(jnp.float64) for x in of_cells)
        return _after(add, none, (self.counts, *columns))


def in_groups(x: Array) -> Array:
    """Reshapes `[cells of all groups, ...]` to `[cells, groups, ...]`."""
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
    """The last carry of a scan along the cells of the head.

    Args:
      cell: a step of the scan. It takes the carry, and the counts of a cell with its entries of the
        columns, which are in float64.
      start: the carry before the first cell.
      drawn: how often the cells are drawn.
      cells: the cells, which say how many are in the head.
      columns: `[cells]` each. Beyond the head the counts or the columns are 0, so that a step
        changes nothing. If tied, the last column says whether the next cell is in the same row.
      starts: from the Groups to the carries before each group, `[groups, ...]`.
      together: from the carries after each group, `[groups, ...]`, to the carry at the end.
      tied: whether any row has several cells.
    """
    if on_gpu():
        groups = Groups(in_groups(drawn.counts), columns[-1] if tied else None)
        inputs = groups.counts, *(in_groups(x.astype(jnp.float64)) for x in columns)

        def of_group(start: T, *inputs: Array) -> T:
            return _after(cell, start, inputs)

        ends = jax.vmap(of_group, (0, *[1] * len(inputs)))(starts(groups), *inputs)
        return together(ends)

    def tile(number: Array, carry: T) -> T:
        rest = (x.astype(jnp.float64) for x in tile_of(number, *columns))
        return _after(cell, carry, (drawn.tile(number), *rest))

    return varying.fori_loop(0, tiles_of(cells.head), tile, start)


def _after(cell: Callable[[T, Any], tuple[T, None]], start: T, inputs: Any) -> T:
    """The carry after all cells. Many at once compile slowly for a TPU, which emulates float64."""
    return varying.scan(cell, start, inputs, unroll=2 if on_tpu() else 16)[0]


def continued(cells: Cells, tied: bool) -> tuple[Array, ...]:
    """A column that says whether the next cell is in the same row; none if all rows have one."""
    if not tied:
        return ()
    joined = cells.joined[1:] & (jnp.arange(1, len(cells.joined)) < cells.used)
    return (jnp.pad(joined, (0, 1)),)


def whole(part: Array, total: Array) -> Array:
    """The part, or the total where both are equal up to rounding: the rate of all items is then 1.

    Groups add up the two in different orders.
    """
    return jnp.where(part >= total * (1 - _ROUNDING), total, part)


def tile_of(number: Array, *columns: Array) -> tuple[Array, ...]:
    return tuple(lax.dynamic_slice_in_dim(x, number * TILE, TILE) for x in columns)


def drawn_of_classes(drawn: Drawn, cells: Cells) -> Array:
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
    return varying.fori_loop(0, tiles_of(cells.used), tile, start)
