"""The lowest and the highest value of a metric over all orders of the items within bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics.streaming._question import Held
from jaxmetrics.streaming._tables import descending, in_bins, undefined_of

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
    """

    positives: Array
    negatives: Array
    lowest: Array
    highest: Array
    undefined: Array


def counted(held: Held, ignore_nan: bool) -> Counted:
    """What the bins `[..., bins]` of states hold."""
    positives, negatives = descending(held.digits)
    lowest, highest = (jnp.broadcast_to(x, positives.shape) for x in held.levels)
    return Counted(positives, negatives, lowest, highest, undefined_of(held.digits, ignore_nan))


def of_each(function: Callable[[Counted], R], states: Counted) -> R:
    """`function` of the bins of one state, for each of a batch."""
    return numerics.over_batch(function, states.undefined.ndim)(states)


def ends_by_order(value: Value, bins: Counted, weighted: bool) -> Array:
    """`[3, ...]`: negatives above positives in each bin, ties, and positives above negatives."""
    return _of_tables(value, in_bins(*bins[:2], bins.lowest, bins.undefined))


def ends_by_score(value: Value, bins: Counted, weighted: bool) -> Array:
    """The same for a threshold: scores are at the lower, or upper, ends of their bins."""
    _, even, best = in_bins(*bins[:2], bins.lowest, bins.undefined)
    worst, _, _ = in_bins(*bins[:2], bins.highest, bins.undefined)
    return _of_tables(value, (best, even, worst))


def ends_by_precision(value: Value, bins: Counted, weighted: bool) -> Array:
    """The same for average precision, at whose low end the positives do not tie."""
    low = _least_precision(bins.positives, bins.negatives, weighted)
    return ends_by_order(value, bins, weighted).at[0].set(low)


def _of_tables(value: Value, tables: tuple[ScoreTable, ...]) -> Array:
    stacked = ScoreTable(*map(jnp.stack, zip(*tables, strict=True)))
    values: Array = jax.vmap(value)(stacked)
    return values


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
