"""The numbers that a closed form needs of the data, for given numbers of draws of both classes.

Items of one cluster count as fewer draws than they are, which differ between rows of a batch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.items import at_least_one, batch_of
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.at_hand import rows_at_hand
from jaxmetrics._roc.placements import OfTable
from jaxmetrics._roc.record import Chosen, MetricLike, Options, choose
from jaxmetrics._roc.table import Prepared, build
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.numbers import no_numbers


class _Rows(NamedTuple):
    """Items `[..., n]`, and the draws of both classes for all values of the metric in turn."""

    scores: Any
    labels: Any
    weights: Any
    where: Any
    amounts: Any
    draws: Any


def numbers_of_draws(
    metric: MetricLike, items: Items, draws: tuple[Array, Array], level: Any
) -> Any:
    """The numbers of the closed form at this level, from the draws `[..., *values]` of classes."""
    chosen, arrays = choose(metric)
    if error_bars_of(chosen.metric).numbers is no_numbers:
        return ()
    batch = batch_of(items)
    shape = draws[0].shape[len(batch) :]
    stacked = numerics.namespace(*draws).stack(draws, axis=len(batch))
    rows = _Rows(*items, stacked.reshape(*batch, 2 * math.prod(shape)))
    found = rows_at_hand(rows, arrays, short=0)
    if found is None:
        return _of_rows(rows, arrays, level, chosen, shape, len(batch))
    with np.errstate(all="ignore"):
        each = [_of_row(x, found.options, level, chosen, shape) for x in found.rows]
    return jax.tree.map(lambda *x: np.reshape(x, (*batch, *np.shape(x[0]))), *each)


@double_program("chosen", "shape", "axes")
def _of_rows(
    rows: _Rows, arrays: Options, level: Array, chosen: Chosen, shape: tuple[int, ...], axes: int
) -> Any:
    return numerics.over_rows(lambda row: _of_row(row, arrays, level, chosen, shape), rows, axes)


def _of_row(row: _Rows, arrays: Options, level: Any, chosen: Chosen, shape: tuple[int, ...]) -> Any:
    *items, draws = row
    table, _ = build(Prepared(at_least_one(Items(*items)), None))
    negatives, positives = draws.reshape(2, *shape)
    options = chosen.options(arrays)
    return error_bars_of(chosen.metric).numbers(
        OfTable(table), (negatives, positives), level, options
    )
