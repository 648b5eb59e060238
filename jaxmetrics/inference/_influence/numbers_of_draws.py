"""The numbers that a closed form needs of the data, for given numbers of draws of both classes.

Items of one cluster count as fewer draws than they are, which differ between rows of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.items import at_least_one, batch_of
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.host_placements import OnHost
from jaxmetrics._roc.host_rows import of_each_row
from jaxmetrics._roc.placements import OfTable, Placements
from jaxmetrics._roc.record import Chosen, MetricLike, Options, choose
from jaxmetrics._roc.table import Prepared, build
from jaxmetrics.inference._influence.gradient import held_where_lost
from jaxmetrics.inference._influence.host_slopes import stacked
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.numbers import no_numbers


def numbers_of_draws(
    metric: MetricLike, items: Items, draws: tuple[Array, Array], level: Any
) -> Any:
    """The numbers of the closed form at this level, from the draws `[..., *values]` of classes."""
    chosen, arrays = choose(metric)
    if error_bars_of(chosen.metric).numbers is no_numbers:
        return ()
    batch = batch_of(items)
    shape = draws[0].shape[len(batch) :]
    both = numerics.namespace(*draws).stack(draws, axis=len(batch))
    both = both.reshape(*batch, 2 * math.prod(shape))

    def each() -> Iterator[Array]:  # not begun where other processes hold rows
        yield from both.reshape(-1, both.shape[-1])

    rows = each()

    def of_row(placed: OnHost, undefined: bool, arrays: Options) -> Any:
        with np.errstate(all="ignore"):
            return _numbers(placed, next(rows), arrays, level, chosen, shape)

    found = of_each_row(of_row, items, arrays, short=0)
    if found is None:
        return _of_rows((items, both), arrays, level, chosen, shape, len(batch))
    return stacked(*found)


@double_program("chosen", "shape", "axes")
def _of_rows(
    rows: tuple[Items, Array],
    arrays: Options,
    level: Array,
    chosen: Chosen,
    shape: tuple[int, ...],
    axes: int,
) -> Any:
    def of_row(row: tuple[Items, Array]) -> Any:
        table, _ = build(Prepared(at_least_one(row[0]), None))
        return _numbers(OfTable(table), row[1], arrays, level, chosen, shape)

    items, draws = rows
    return numerics.over_rows(of_row, (held_where_lost(items), draws), axes)


def _numbers(
    placed: Placements,
    draws: Array,
    arrays: Options,
    level: Any,
    chosen: Chosen,
    shape: tuple[int, ...],
) -> Any:
    negatives, positives = draws.reshape(2, *shape)
    numbers = error_bars_of(chosen.metric).numbers
    return numbers(placed, (negatives, positives), level, chosen.options(arrays))
