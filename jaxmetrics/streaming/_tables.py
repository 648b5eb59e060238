"""Score tables of a state, with ties in each bin, and whether metrics of them are NaN."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import as_numpy, is_concrete, of_all_processes
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array
from jaxmetrics._roc.table import ScoreTable, settled
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._columns import is_wrong, lost_of, totals
from jaxmetrics.streaming._state import State, check_state


@on_any_mesh
def table(state: State, *, bins: Bins, ignore_nan: bool = False) -> ScoreTable:
    """The score table of a state, in which the items of one bin tie.

    Every metric that takes a ScoreTable takes this one. `bounds` says how far its value can be from
    that of the data themselves.

    Args:
      state: from `update` or `merge`.
      bins: the bins given to `init`.
      ignore_nan: leave out items without a score; by default they make the table undefined.

    Returns:
      A ScoreTable `[..., bins]` whose thresholds are the lowest scores of the bins. It holds NumPy
      arrays in float64, exact for counts to 2^53; where traced, JAX arrays in the default float.

    Raises:
      TypeError: state is not a State, or bins are not Bins.
      ValueError: the state has other bins, its sums have overflowed, or weights are so small that
        rounding may have taken 0.1 % of a class.

    Thresholds are NaN where an item has no score, or no item has weight. In a traced program they
    are also NaN where an eager call would raise for what the state holds. Time and memory O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.edges([0.5])
      >>> state = jm.streaming.init(bins)
      >>> state = jm.streaming.update(state, [0.9, 0.7, 0.1], [1, 0, 0], bins=bins)
      >>> print(jm.streaming.table(state, bins=bins).negatives)
      [1. 1.]

    Reference: that of `jaxmetrics.streaming.init`.
    """
    check_state(state, bins)
    checks.check_flag("ignore_nan", ignore_nan)
    fingerprint = np.int32(bins.fingerprint)
    found, share_lost = _table(state.digits, fingerprint, bins.lower, bins.weight_scale, ignore_nan)
    if not is_concrete(state.digits):
        return ScoreTable(*(x.astype(numerics.default_float()) for x in found))
    share = as_numpy(share_lost).max(initial=0.0)
    if share > _counts.MOST_LOST:
        raise ValueError(
            f"weights are too small for weight_scale={bins.weight_scale:g}: rounding may have "
            f"taken {share:.1%} of the weight of a class; make the bins with weight_scale= a power "
            "of two near the largest weights"
        )
    return jax.tree.map(np.asarray, of_all_processes(found))


@double_program("ignore_nan")
def _table(
    digits: Array, fingerprint: np.int32, lower: Array, scale: Array, ignore_nan: bool
) -> tuple[ScoreTable, Array]:
    """The table, and the largest share of the weight of a class that rounding may have taken."""
    scale = jnp.where(is_wrong(digits, fingerprint), jnp.nan, scale)[..., None]
    positives, negatives = (x * scale for x in descending(digits))
    lost, kept = lost_of(digits) * scale, jnp.stack([negatives, positives], -2).sum(-1)
    share = jnp.max(numerics.divide(lost, kept + lost, 0.0), axis=-1)
    undefined = undefined_of(digits, fingerprint, ignore_nan) | (share > _counts.MOST_LOST)
    return tied(positives, negatives, jnp.flip(lower), undefined), share


def descending(digits: Array) -> tuple[Array, Array]:
    """Positives and negatives `[..., bins]`, the highest bin first."""
    negatives, positives, _ = totals(digits)
    return jnp.flip(positives, -1), jnp.flip(negatives, -1)


def undefined_of(digits: Array, fingerprint: np.int32, ignore_nan: bool) -> Array:
    """`[...]`, whether metrics are NaN: no weight, an item without a score, sums that are wrong."""
    negatives, positives, without = totals(digits)
    weight = jnp.sum(negatives + positives, axis=-1) + jnp.sum(lost_of(digits), axis=-1)
    undefined = (weight == 0) | is_wrong(digits, fingerprint)
    return undefined if ignore_nan else undefined | (without > 0)


def tied(positives: Array, negatives: Array, thresholds: Array, undefined: Array) -> ScoreTable:
    """A table of rows; rows without weight repeat a neighbour's threshold."""
    thresholds = settled(jnp.broadcast_to(thresholds, positives.shape), positives + negatives > 0)
    thresholds = jnp.where(undefined[..., None], jnp.nan, thresholds)
    return ScoreTable(thresholds, positives, negatives)
