"""From a state to score tables: of the bins as they are, and of the ends of the order in them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array
from jaxmetrics._roc.table import ScoreTable, settled
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._state import State, check_state, totals


def table(state: State, *, bins: Bins, ignore_nan: bool = False) -> ScoreTable:
    """The score table of what a stream left: items of one bin tie.

    Every metric that takes a ScoreTable takes this one. How far its value may be from that of the
    data themselves, `bounds` says.

    Args:
      state: of `update` or `merge`.
      bins: those of `init`.
      ignore_nan: leave items without a score out, instead of a table that is undefined.

    Returns:
      A ScoreTable `[..., bins]` whose thresholds are the lowest scores of the bins. It holds
      NumPy's arrays in float64, for counts to 2^53; traced, JAX's in the default float.

    Raises:
      TypeError, ValueError: the state is not one of these bins.

    NaN thresholds where an item had no score, or there are no items of weight. Time and memory
    O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.edges([0.5])
      >>> state = jm.streaming.update(jm.streaming.init(bins), [.9, .7, .1], [1, 0, 0], bins=bins)
      >>> print(jm.streaming.table(state, bins=bins).negatives)
      [1. 1.]

    Reference: that of `jaxmetrics.streaming.init`.
    """
    check_state(state, bins)
    checks.check_flag("ignore_nan", ignore_nan)
    found: ScoreTable = _table(state.digits, bins.lower, ignore_nan)
    if is_concrete(state.digits):
        on_host: ScoreTable = jax.tree.map(np.asarray, found)
        return on_host
    return ScoreTable(*(x.astype(numerics.default_float()) for x in found))


@double_program("ignore_nan")
def _table(digits: Array, lower: Array, ignore_nan: bool) -> ScoreTable:
    return tied(*descending(digits), jnp.flip(lower), undefined_of(digits, ignore_nan))


def descending(digits: Array) -> tuple[Array, Array]:
    """Positives and negatives `[..., bins]`, the highest bin first."""
    negatives, positives, _ = totals(digits)
    return jnp.flip(positives, -1), jnp.flip(negatives, -1)


def undefined_of(digits: Array, ignore_nan: bool) -> Array:
    """`[...]`, whether there is no value."""
    negatives, positives, without = totals(digits)
    empty = jnp.sum(negatives + positives, axis=-1) == 0
    return empty if ignore_nan else empty | (without > 0)


def tied(positives: Array, negatives: Array, thresholds: Array, undefined: Array) -> ScoreTable:
    """A table of rows, of which those without weight repeat a neighbour's threshold."""
    thresholds = settled(jnp.broadcast_to(thresholds, positives.shape), positives + negatives > 0)
    thresholds = jnp.where(undefined[..., None], jnp.nan, thresholds)
    return ScoreTable(thresholds, positives, negatives)


def in_bins(
    positives: Array, negatives: Array, thresholds: Array, undefined: Array
) -> tuple[ScoreTable, ScoreTable, ScoreTable]:
    """Tables `[..., 2 bins]` in which, in a bin, negatives come first, all tie, positives do."""

    def turned(*columns: Array) -> Array:
        return jnp.stack(columns, axis=-1).reshape(*columns[0].shape[:-1], -1)

    none, levels = jnp.zeros_like(positives), jnp.repeat(thresholds, 2, axis=-1)
    first = turned(positives, none), turned(negatives, none)
    last = turned(none, positives), turned(none, negatives)
    return (
        tied(last[0], first[1], levels, undefined),
        tied(first[0], first[1], levels, undefined),
        tied(first[0], last[1], levels, undefined),
    )
