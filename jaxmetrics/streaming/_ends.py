"""The lowest and the highest value of a metric over all orders of the items within bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics.streaming._columns import whole_totals
from jaxmetrics.streaming._question import Held
from jaxmetrics.streaming._tables import tied, undefined_of

R = TypeVar("R")
Value: TypeAlias = Callable[[ScoreTable], Array]


class Counted(NamedTuple):
    """What the bins of one state hold, the highest bin first; a pytree.

    Attributes:
      positives: `[bins]`.
      negatives: `[bins]`.
      lowest: `[bins]`, the lower end of each.
      highest: `[bins]`, the upper end of each.
      undefined: `[]`, whether metrics are NaN.
      lost: `[2]`, how much larger the weights of the negatives and of the positives may be than the
        sums of the bins.
    """

    positives: Array
    negatives: Array
    lowest: Array
    highest: Array
    undefined: Array
    lost: Array


def counted(held: Held, ignore_nan: bool) -> Counted:
    """What the bins `[..., bins]` of states hold."""
    negatives, positives, lost = whole_totals(held.digits)
    negatives, positives = jnp.flip(negatives, -1), jnp.flip(positives, -1)
    lowest, highest = (jnp.broadcast_to(x, positives.shape) for x in held.levels)
    undefined = undefined_of(held.digits, held.fingerprint, ignore_nan)
    return Counted(positives, negatives, lowest, highest, undefined, lost)


def of_each(function: Callable[[Counted], R], states: Counted) -> R:
    """`function` of the bins of one state, for each of a batch."""
    return numerics.over_batch(function, states.undefined.ndim)(states)


# Rounding may have dropped up to `lost` of the weight of a class, in any of the bins. A metric of
# the ROC curve is lowest if the negatives lost it above all bins and the positives below all bins:
# each point of the curve is then furthest from the corner (0, 1). The opposite is highest.


def tables_of_ends(bins: Counted) -> tuple[ScoreTable, ScoreTable, ScoreTable]:
    """Tables with, in each bin, negatives above positives, ties, and positives above negatives."""

    def turned(*columns: Array) -> Array:
        return jnp.stack(columns, axis=-1).ravel()

    none, levels = jnp.zeros_like(bins.positives), jnp.repeat(bins.lowest, 2)
    first = turned(bins.positives, none), turned(bins.negatives, none)
    last = turned(none, bins.positives), turned(none, bins.negatives)
    return (
        tied(last[0], first[1], levels, bins.undefined),
        tied(first[0], first[1], levels, bins.undefined),
        tied(first[0], last[1], levels, bins.undefined),
    )


def ends_by_order(value: Value, bins: Counted, weighted: bool) -> Array:
    """The values `[3, ...]` of `tables_of_ends`; the two ends allow for lost weights."""
    low, even, high = tables_of_ends(bins)
    if weighted:
        negatives, positives = bins.lost
        low = _with(low, above=(0, negatives), below=(positives, 0))
        high = _with(high, above=(positives, 0), below=(0, negatives))
    return _of_tables(value, (low, even, high))


def ends_by_precision(value: Value, bins: Counted, weighted: bool) -> Array:
    """As `ends_by_order`, for a metric of precision and recall.

    At the low end, lost positives below all bins lower the recall. Negatives in proportion go with
    them: the precision where all items are flagged must not rise.
    """
    low, even, high = tables_of_ends(bins)
    if weighted:
        negatives, positives = bins.lost
        n_negative, n_positive = jnp.sum(bins.negatives) + negatives, jnp.sum(bins.positives)
        beside = numerics.divide(n_negative * positives, n_positive, jnp.inf)
        beside = jnp.where(positives > 0, beside, 0)
        low = _with(low, above=(0, negatives), below=(positives, beside))
        high = _with(high, above=(positives, 0), below=(0, negatives))
    found = _of_tables(value, (low, even, high))
    return found.at[0].set(jnp.where(_all_lost(bins), 0, found[0])) if weighted else found


def _all_lost(bins: Counted) -> Array:
    """Whether there may be positives, but rounding has dropped all of their weight."""
    return ~bins.undefined & (jnp.sum(bins.positives) == 0) & (bins.lost[1] > 0)


def ends_by_score(value: Value, bins: Counted, weighted: bool) -> Array:
    """As `ends_by_order`, for a threshold: all scores are at the lower, or upper, ends of bins.

    A positive whose weight is lost may be in any bin, and the threshold may be its score.
    """
    _, even, best = tables_of_ends(bins)
    worst, _, _ = tables_of_ends(bins._replace(lowest=bins.highest))
    if weighted:
        more, anywhere = bins.lost
        _, _, best = tables_of_ends(bins._replace(positives=bins.positives + anywhere))
        best, worst = _with(best, below=(0, more)), _with(worst, above=(0, more))
    found = _of_tables(value, (best, even, worst))
    return found.at[2].set(jnp.where(_all_lost(bins), jnp.inf, found[2])) if weighted else found


def ends_by_mean_precision(value: Value, bins: Counted, weighted: bool) -> Array:
    """As `ends_by_order`, for average precision: at the low end the positives do not tie."""
    more, lost = bins.lost
    found = ends_by_order(value, bins, weighted)
    if not weighted:
        return found.at[0].set(_least_precision(bins.positives, bins.negatives, weighted))
    low = _least_precision(bins.positives, bins.negatives.at[0].add(more), weighted)
    total = jnp.sum(bins.positives)
    return found.at[0].set(low * numerics.divide(total, total + lost, 0.0))


def _with(
    table: ScoreTable, *, above: tuple[Any, Any] = (0, 0), below: tuple[Any, Any] = (0, 0)
) -> ScoreTable:
    """The table with more positives and negatives in its first row, and in its last one."""
    columns = (table.positives, table.negatives)
    more = (x.at[0].add(a).at[-1].add(b) for x, a, b in zip(columns, above, below, strict=True))
    return ScoreTable(table.thresholds, *more)


def _of_tables(value: Value, tables: tuple[ScoreTable, ...]) -> Array:
    stacked = ScoreTable(*map(jnp.stack, zip(*tables, strict=True)))
    return jax.vmap(value)(stacked)


def _least_precision(positives: Array, negatives: Array, weighted: bool) -> Array:
    """A lower bound of average precision: in each bin negatives are above positives, untied.

    With F false positives and T to T + P true ones, the bin adds the sum over i = 1 to P of
    (T + i) / (T + i + F). It is at least P - F log((T + F + P + 1/2) / (T + F + 1/2)). With
    weights, however they are split, the bin adds at least the integral: the same without the 1/2.
    """
    tps, fps = jnp.cumsum(positives), jnp.cumsum(negatives)
    before = tps - positives + fps + (0.0 if weighted else 0.5)
    lost = fps * jnp.log1p(numerics.divide(positives, before, 0.0))
    return numerics.divide(jnp.sum(positives - lost), tps[-1], 0.0)
