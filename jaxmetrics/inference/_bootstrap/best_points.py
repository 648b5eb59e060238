"""The operating point of least cost of each resample, by one scan along the cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics._roc.operating import Point
from jaxmetrics.inference._bootstrap.scans import (
    Drawn,
    Groups,
    continued,
    drawn_of_classes,
    scanned,
    whole,
)
from jaxmetrics.inference._bootstrap.units import Cells


class _Flagged(NamedTuple):
    """A threshold, and the drawn items that it flags, `[resamples]`."""

    threshold: Array
    tps: Array
    fps: Array
    caught: Array  # the amount of the flagged positives


class _Search(NamedTuple):
    """The carry of a scan for the best point, `[resamples]`.

    Attributes:
      so_far: what the threshold of the last cell flags.
      least: the least cost so far.
      best: the first point with this cost.
      of_row: the weight of both classes so far in the row of the last cell.
    """

    so_far: _Flagged
    least: Array
    best: _Flagged
    of_row: Array


def best_points(
    objective: Callable[..., Array],
    drawn: Drawn,
    cells: Cells,
    totals: Array | None,
    tied: bool,
) -> tuple[Point, Array]:
    """The operating point of each resample with the least objective, and whether it is defined.

    Of points that tie, it is the first. It is defined where both classes are drawn. `totals` and
    `tied` are as of `finish`.
    """
    if totals is None or len(totals) < 2:
        totals = drawn_of_classes(drawn, cells)
    negatives, positives = totals.astype(jnp.float64)
    tolerance = max(numerics.slack(cells.negatives), numerics.slack(drawn.counts))

    def value(flagged: _Flagged) -> Array:
        return objective(flagged.fps, flagged.tps, positives, negatives, tolerance)

    def cell(carry: _Search, inputs: Any) -> Any:
        so_far, least, best, of_row = carry
        count, positive, negative, amount, threshold, *more = inputs
        count = count.astype(jnp.float64)
        of_row = of_row + count * (positive + negative)
        here = _Flagged(
            jnp.broadcast_to(threshold, count.shape),
            so_far.tps + count * positive,
            so_far.fps + count * negative,
            so_far.caught + count * amount,
        )
        found = value(here)
        # A row that is not drawn is the same point as the row before it. If that is in another
        # group, the sums may be rounded differently, and the cost may seem to be less.
        better = (found < least * (1 - numerics.SLACK) - rounding) & (of_row > 0)
        if tied:
            better &= more[0] == 0
        best = _Flagged(*(jnp.where(better, x, y) for x, y in zip(here, best, strict=True)))
        of_row = of_row * more[0] if tied else zero
        return _Search(here, jnp.where(better, found, least), best, of_row), None

    zero = jnp.zeros(drawn.resamples)
    none = _Flagged(zero + jnp.inf, zero, zero, zero)
    amounts = jnp.zeros_like(cells.positives) if cells.amounts is None else cells.amounts
    classes = cells.positives, cells.negatives
    columns = *classes, amounts, cells.thresholds, *continued(cells, tied)
    first = jnp.broadcast_to(value(none), zero.shape)
    rounding = tolerance * first  # each group adds weights up in another order

    def starts(groups: Groups) -> _Search:
        tps, fps, caught = groups.before(*columns[:3])
        nothing = jax.tree.map(lambda x: jnp.broadcast_to(x, tps.shape), none)
        least = jnp.full(tps.shape, jnp.inf).at[0].set(first)
        of_row = groups.of_row_before(columns[0] + columns[1])
        return _Search(_Flagged(nothing.threshold, tps, fps, caught), least, nothing, of_row)

    def together(ends: _Search) -> _Search:
        group = numerics.first_least(ends.least, rounding)[None]
        best = jax.tree.map(lambda x: jnp.take_along_axis(x, group, axis=0)[0], ends.best)
        last = jax.tree.map(lambda x: x[-1], ends)
        best = _Flagged(best.threshold, *map(whole, best[1:], last.so_far[1:]))
        return last._replace(best=best)

    start, way = _Search(none, first, none, zero), (starts, together)
    every, _, best, _ = scanned(cell, start, drawn, cells, columns, *way, tied=tied)
    defined = (negatives > 0) & (positives > 0)
    best = best._replace(threshold=jnp.where(defined, best.threshold, jnp.nan))
    best = best._replace(**{x: jnp.where(defined, getattr(best, x), 0) for x in best._fields[1:]})
    # The totals are the sums of this scan, so that the rate of all items is exactly 1: sums in
    # another order may be rounded differently.
    values = Point(*best[:3], every.tps, every.fps, best.caught, every.caught)
    return values, defined
