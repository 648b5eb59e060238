"""From the draws of a chunk of resamples to the metric of each.

Areas under the ROC curve, recall at a false positive rate, average precision and the operating
point of least cost come from one scan along the cells, for all resamples of a chunk at once. Any
other metric is called with the score tables.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.host import on_cpu, on_gpu
from jaxmetrics._base.types import Array
from jaxmetrics._roc.areas import in_counts
from jaxmetrics._roc.limits import limit_of_fpr, most_within
from jaxmetrics._roc.record import MetricLike, Options, choose
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics.inference._bootstrap.best_points import best_points
from jaxmetrics.inference._bootstrap.scans import (
    Drawn,
    Groups,
    continued,
    drawn_of,
    drawn_of_classes,
    scanned,
    tile_of,
    whole,
)
from jaxmetrics.inference._bootstrap.units import TILE, Cells, Mixed, tiles_of
from jaxmetrics.inference._intervals.metrics import (
    Curves,
    Finish,
    error_bars_of,
    under_one_name,
)

# From this many cells on, an area in whole numbers takes half the time, though its program takes
# longer to compile.
MANY = 1 << 14
# Above the relative difference of two sums of the same weights in different orders.
_ROUNDING = 1e-9


def finish_of(metric: MetricLike) -> tuple[Finish, Options]:
    """How to finish a metric, and its options that are arrays."""
    chosen, arrays = choose(under_one_name(metric))
    record, options = chosen.metric, chosen.options(arrays)
    default = Finish(chosen, merges=(record.of_roc_curve,) * 2)
    return error_bars_of(record).finish(default, options), arrays


class Finished(NamedTuple):
    """The metric of each resample of a chunk.

    Attributes:
      values: `[resamples, ...]`, or a pytree of such.
      defined: `[resamples]`, whether both classes were drawn.
      sufficient: `[resamples]`, whether the cells reach every limit.
    """

    values: Any
    defined: Array
    sufficient: Array


def finish(
    how: Finish, counts: Array, cells: Cells, totals: Array | None, arrays: Options, tied: bool
) -> Finished:
    """The metric of each resample of one model.

    Args:
      how: the Finish of `finish_of`.
      counts: `[units, resamples]`, how often each unit is drawn.
      cells: the places of the units in the model's order.
      totals: `[2, resamples]`, the numbers of all negatives and positives drawn; `[1, resamples]`,
        of negatives alone, where positives count by amounts; None if unknown.
      arrays: the options that are arrays.
      tied: whether any row has several cells.
    """
    drawn = drawn_of(counts, cells.unit)
    if how.objective is not None:
        options = how.chosen.options(arrays)
        objective = partial(how.objective, options=options)
        points, defined = best_points(objective, drawn, cells, totals, tied)
        best: Any = points
        if how.of_point is not None:
            best = jnp.where(defined, how.of_point(points, options), jnp.nan)
        return Finished(best, defined, jnp.ones_like(defined))
    if how.of_curves is None:
        return _of_tables(how, drawn.in_order(cells.used), cells, arrays, tied)
    if totals is None:  # given totals are of negatives without weights, in the unit of the cells
        classes = cells.positives, cells.negatives
        if how.by_precision:  # a precision adds up both classes, which need the same unit
            positives, negatives = numerics.near_one(*classes)
        else:
            (positives,), (negatives,) = map(numerics.near_one, classes)
        cells = cells._replace(positives=positives, negatives=negatives)
    options = how.chosen.options(arrays)
    limits = [jnp.asarray(options[name]) for name in how.limits]
    shape = jnp.broadcast_shapes(*(x.shape for x in limits))
    shape = (len(limits), *shape) if len(limits) > 1 else shape
    joint = jnp.stack(jnp.broadcast_arrays(*limits)).ravel() if limits else None
    curves, end = _curves(drawn, cells, totals, joint, how.by_precision, tied)
    sufficient = end >= curves.negatives * (1 - _ROUNDING)
    if joint is not None:
        sufficient |= end > jnp.max(joint) * curves.negatives
        curves = curves._replace(
            area=curves.area.reshape(*shape, -1), caught=curves.caught.reshape(*shape, -1)
        )
    values = jnp.moveaxis(how.of_curves(curves, options), -1, 0)
    defined = (curves.negatives > 0) & (curves.positives > 0)
    return Finished(values, defined, sufficient | ~defined)


def _curves(
    drawn: Drawn,
    cells: Cells,
    totals: Array | None,
    limits: Array | None,
    by_precision: bool,
    tied: bool,
) -> tuple[Curves, Array]:
    """The curves, and the number of negatives drawn in the head, `[resamples]`."""
    edge = within = None
    totals = None if totals is None else totals.astype(jnp.float64)
    if limits is not None:
        if totals is None:
            totals = drawn_of_classes(drawn, cells)
        elif len(totals) == 1:
            totals = jnp.concatenate([totals, drawn_of_classes(drawn, cells)[1:]])
        slack = max(numerics.slack(cells.negatives), numerics.slack(drawn.counts))
        edge = in_counts(limits[:, None], totals[0])
        within = most_within(limit_of_fpr(limits[:, None]), totals[0], slack)

    def cell(carry: tuple[Curves, Array], inputs: Any) -> tuple[tuple[Curves, Array], None]:
        so_far, of_row = carry  # of_row: the positives of the row if by precision, else negatives
        fps, tps, area, caught, precisions = so_far
        count, positive, negative, *more = inputs
        count = count.astype(jnp.float64)
        p, n = count * positive, count * negative
        of_row = of_row + (p if by_precision else n)
        if by_precision:
            precision = (tps + p) / jnp.where(of_row > 0, tps + p + fps + n, 1.0)
            last = 1 - more[0] if tied else 1
            precisions = precisions + of_row * precision * last
        elif edge is None:
            area = area + n * tps
            if tied:
                area = area + p * of_row * 0.5
        else:
            area = area + jnp.clip(edge - fps, 0, n) * tps
            if tied:
                inside = jnp.clip(edge - (fps + n - of_row), 0, of_row)
                area = area + p * (inside * inside / jnp.where(of_row > 0, 2 * of_row, 1.0))
            caught = caught + jnp.where(fps + n <= within, p, 0)
        of_row = of_row * more[0] if tied else zero
        return (Curves(fps + n, tps + p, area, caught, precisions), of_row), None

    zero = jnp.zeros(drawn.resamples)
    zeros = zero if limits is None else jnp.zeros((len(limits), len(zero)))
    in_head = jnp.arange(len(cells.joined)) < cells.head
    classes = (jnp.where(in_head, x, 0) for x in (cells.positives, cells.negatives))
    columns = *classes, *continued(cells, tied)
    start = Curves(zero, zero, zeros, zeros, zero)
    plain = limits is None and not (by_precision or tied or on_gpu())
    counted = not any(map(numerics.is_inexact, (drawn.counts, cells.negatives)))
    if plain and counted and len(cells.joined) >= MANY:
        curves = _area_of_counts(start, drawn, cells, columns)
    else:

        def starts(groups: Groups) -> tuple[Curves, Array]:
            tps, fps = groups.before(*columns[:2])
            none = [jnp.zeros((len(fps), *x.shape)) for x in (zeros, zeros, zero)]
            of_row = groups.of_row_before(columns[0 if by_precision else 1])
            return Curves(fps, tps, *none), of_row

        def together(ends: tuple[Curves, Array]) -> tuple[Curves, Array]:
            curves, of_row = ends
            fps, tps = curves.negatives[-1], curves.positives[-1]
            area, caught, precisions = (jnp.sum(x, axis=0) for x in curves[2:])
            return Curves(fps, tps, area, whole(caught, tps), precisions), of_row[-1]

        way = starts, together
        curves, _ = scanned(cell, (start, zero), drawn, cells, columns, *way, tied=tied)
    if cells.mixed is not None:
        curves = curves._replace(area=curves.area + 0.5 * _tied_pairs(drawn, cells, cells.mixed))
    end = curves.negatives
    if totals is not None:
        curves = curves._replace(negatives=totals[0])
        if len(totals) > 1:
            curves = curves._replace(positives=totals[1])
    return curves, end


def _area_of_counts(
    start: Curves, drawn: Drawn, cells: Cells, columns: tuple[Array, ...]
) -> Curves:
    """The curves in whole numbers within each tile, where no row has several cells.

    A draw adds one item at most, and a unit is drawn 255 times at most: a tile has less than 2^31
    pairs of a negative and a positive.
    """

    def cell(carry: Curves, inputs: Any) -> tuple[Curves, None]:
        count, positive, negative = inputs
        count = count.astype(jnp.int32)
        p, n = count * positive, count * negative
        area = carry.area + n * carry.positives
        return carry._replace(
            negatives=carry.negatives + n, positives=carry.positives + p, area=area
        ), None

    none = jax.tree.map(lambda x: x.astype(jnp.int32), start)

    def tile(number: Array, before: Curves) -> Curves:
        inputs = drawn.tile(number), *tile_of(number, *columns)
        here = varying.scan(cell, none, inputs, unroll=TILE // 2)[0]
        here = jax.tree.map(lambda x: x.astype(jnp.float64), here)
        between = here.negatives * before.positives
        here = here._replace(area=here.area + between)
        return jax.tree.map(jnp.add, before, here)

    return varying.fori_loop(0, tiles_of(cells.head), tile, start)


def _tied_pairs(drawn: Drawn, cells: Cells, mixed: Mixed) -> Array:
    """The number of pairs of a negative and a positive that tie, `[resamples]`."""
    counts = drawn.of_cells(mixed.cell).astype(jnp.float64)
    used = jnp.arange(len(mixed.cell)) < mixed.used
    negatives, positives = (
        _sums(counts * jnp.where(used, x[mixed.cell], 0)[:, None], mixed.row)
        for x in (cells.negatives, cells.positives)
    )
    return jnp.sum(negatives * positives, axis=0)


def _of_tables(how: Finish, counts: Array, cells: Cells, arrays: Options, tied: bool) -> Finished:
    """The metric of the score table of each resample.

    The CPU takes one resample at a time, which stays in the cache.
    """
    valid = jnp.arange(len(cells.joined)) < cells.used
    lowest = jnp.min(jnp.where(valid, cells.thresholds, jnp.inf))
    thresholds = jnp.where(valid, cells.thresholds, lowest)
    rows = None
    if tied:
        rows = jnp.maximum(jnp.cumsum(~cells.joined & valid, dtype=jnp.int32) - 1, 0)
        thresholds = jnp.full(len(rows), lowest).at[rows].max(thresholds)
    classes = [jnp.where(valid, x, 0) for x in (cells.positives, cells.negatives)]

    def of_one(drawn: Array) -> tuple[Any, Array]:
        positives, negatives = _by_row(drawn, classes, rows)
        options = arrays
        if cells.amounts is not None:
            amounts = jnp.where(valid, cells.amounts, 0)
            options = {**arrays, "amounts": _sums(drawn.astype(jnp.float64) * amounts, rows)}
        table = ScoreTable(thresholds, positives, negatives)
        value = how.chosen.value_of_resample(table, options)
        value = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), value)
        return value, (jnp.sum(positives) > 0) & (jnp.sum(negatives) > 0)

    at_once = 1 if on_cpu() else counts.shape[1]
    values, defined = lax.map(of_one, counts.T, batch_size=at_once)
    return Finished(values, defined, jnp.ones_like(defined))


def _by_row(drawn: Array, classes: list[Array], rows: Array | None) -> tuple[Array, Array]:
    """The positives and the negatives of each row, `[rows]`, with cells drawn `drawn` times."""
    if any(numerics.is_inexact(x) for x in (drawn, *classes)):
        each = drawn.astype(jnp.float64)
        return _sums(each * classes[0], rows), _sums(each * classes[1], rows)
    if rows is None:
        each = drawn.astype(jnp.int32)
        return each * classes[0], each * classes[1]
    # Both sums in one 64-bit word take one scatter instead of two.
    words = (classes[0].astype(jnp.int64) << 32) | classes[1]
    both = _sums(drawn.astype(jnp.int64) * words, rows)
    return (both >> 32).astype(jnp.int32), both.astype(jnp.int32)


def _sums(x: Array, rows: Array | None) -> Array:
    """The sums over the cells of each row; without `rows`, each cell is a row."""
    if rows is None:
        return x
    return jnp.zeros_like(x).at[rows].add(x, indices_are_sorted=True, mode="promise_in_bounds")
