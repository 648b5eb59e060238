"""The lowest and the highest value of a metric that the counts of bins allow."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array
from jaxmetrics._roc.areas import in_counts, scaled
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._ends import Counted, counted, of_each
from jaxmetrics.streaming._metrics import ends_of, streamed
from jaxmetrics.streaming._question import Held, question
from jaxmetrics.streaming._state import State, is_weighted


class Bounds(NamedTuple):
    """The lowest and the highest value that the metric of the data can have; `[...]` each."""

    low: Array
    high: Array


@takes_metric
@on_any_mesh
def bounds(metric: MetricLike, state: State, *, bins: Bins, ignore_nan: bool = False) -> Bounds:
    """Bounds that always contain the metric of the data themselves.

    low = the metric if the negatives of each bin rank above its positives, high = the metric if
    they rank below. No other order within the bins gives a value outside. For `average_precision`
    the positives do not tie at the low end. For `threshold_at_fpr` the bounds are the two ends of a
    bin.

    Args:
      metric: `roc_auc`, `partial_auc`, `recall_at_fpr` (method "step" or "linear"),
        `threshold_at_fpr` (method "step"), `average_precision`, `precision_at_recall`,
        `recall_at_precision`, `sensitivity_at_specificity` or `specificity_at_sensitivity`, or a
        functools.partial of one.
      state: from `update` or `merge`.
      bins: the bins given to `init`.
      ignore_nan: leave out items without a score; by default they make the bounds NaN.

    Returns:
      Bounds `[...]`, rounded outwards. They contain the metric of the scores in float32 with
      certainty, for any data, weights, ties and merges. They allow for the parts of weights that
      rounding may have dropped, which are tiny if the bins have a fitting `weight_scale`. In a
      program traced in 32 bits, JAX first rounds the weights to float32; the bounds are then those
      of the rounded weights. They do not cover sampling error: `interval` does.

    Raises:
      TypeError: state is not a State, bins are not Bins, or the metric returns a threshold, too.
      ValueError: the state has other bins, its sums have overflowed, or bounds of the metric are
        not known.

    NaN where the metric is undefined, or an item has no score. Time and memory O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(4)
      >>> state = jm.streaming.init(bins)
      >>> scores, labels = [0.1, 0.4, 0.45, 0.9], [0, 0, 1, 1]
      >>> state = jm.streaming.update(state, scores, labels, bins=bins)
      >>> low, high = jm.streaming.bounds(jm.roc_auc, state, bins=bins)
      >>> print(f"{low:.4f} to {high:.4f}")
      0.7500 to 1.0000

    Reference: D. Bamber, "The area above the ordinal dominance graph and the area below the
    receiver operating characteristic graph", Journal of Mathematical Psychology 12, 1975, for the
    area between the orders of ties.
    """
    chosen, arrays, held, ignore_nan = question(metric, state, bins, ignore_nan)
    streamed(chosen, arrays)
    chosen.refuse_tree(arrays, bins.n)
    constants = (chosen, ignore_nan, is_weighted(state), numerics.default_float())
    low, high = _bounds(arrays, held, *constants)
    return Bounds(low, high)


@double_program("chosen", "ignore_nan", "weighted", "dtype")
def _bounds(
    arrays: Options,
    held: Held,
    chosen: Chosen,
    ignore_nan: bool,
    weighted: bool,
    dtype: Any,
) -> tuple[Array, Array]:
    def of_one(bins: Counted) -> tuple[Array, Array]:
        low, _, high = ends_of(chosen, arrays, bins, weighted)
        options = chosen.options(arrays)
        if "min_tpr" in options:
            low, high = _widened(low, high, options, bins, weighted)
        return _outward(low, dtype, -1), _outward(high, dtype, 1)

    return of_each(of_one, counted(held, ignore_nan))


def _widened(
    low: Array, high: Array, options: Options, bins: Counted, weighted: bool
) -> tuple[Array, Array]:
    """Ends of a partial area that allow for the rounding of rates at its limits.

    A partial area is a sum of differences to its limits, and a rate within SLACK of a limit is
    taken for the limit. Both errors are in proportion to the limit and not to the area. They occur
    twice: in the rates of the bins and in those of the items.
    """
    max_fpr, min_fpr, min_tpr = (
        jnp.asarray(options[name], jnp.float64) for name in ("max_fpr", "min_fpr", "min_tpr")
    )
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    raw = jnp.zeros_like(largest)
    lowest, highest = (
        scaled(x, max_fpr, min_fpr, min_tpr, options["scale"]) for x in (raw, largest)
    )
    for near, error in _NEAR_LIMITS if weighted else _NEAR_LIMITS[:1]:
        for limit in (max_fpr, min_fpr):
            raw += 2 * error * limit * _share_at(limit, bins, 0, near, weighted)
        at_floor = _share_at(min_tpr, bins, 1, near, weighted) > 0
        raw += 2 * error * min_tpr * (max_fpr - min_fpr) * at_floor
    if weighted:  # a window is the difference of two areas
        raw += jnp.where(min_fpr > 0, 2 * _ROUNDING * max_fpr, 0)
    room = raw * (highest - lowest) / largest
    return jnp.maximum(low - room, lowest), jnp.minimum(high + room, highest)


def _share_at(limit: Array, bins: Counted, of: int, near: float, weighted: bool) -> Array:
    """The share of the positives in the bins that a limit of the FPR, or of the TPR, is in or near.

    Without weights, items are not rounded, and bins only where an edge is near a limit.
    """
    weights = (bins.negatives, bins.positives)[of]
    after = jnp.cumsum(weights)
    edge = in_counts(limit, after[-1])[..., None]
    before, after = after - weights - edge, after - edge
    room = near * edge + 2 * bins.lost[of]  # of the edges and of the total
    if weighted:
        at = (before <= room) & (after >= -room)
    else:
        at = _is_beside(before, room) | _is_beside(after, room)
    total, lost = jnp.sum(bins.positives), bins.lost[1] if weighted else 0.0
    return numerics.divide(jnp.sum(jnp.where(at, bins.positives, 0), axis=-1) + lost, total, 0.0)


def _is_beside(distance: Array, room: Array) -> Array:
    return (distance != 0) & (jnp.abs(distance) <= room)


def _outward(value: Array, dtype: Any, sign: int) -> Array:
    """The value in `dtype`, rounded in the direction of `sign` past the sums' rounding error."""
    apart = value + sign * _ROUNDING * jnp.abs(value)
    apart = jnp.where(value == jnp.round(value), value, apart)  # 0 and 1 are exact
    narrow = apart.astype(dtype)
    beyond = jnp.nextafter(narrow, jnp.asarray(sign * jnp.inf, dtype))
    passed = narrow.astype(value.dtype) < apart if sign > 0 else narrow > apart
    return jnp.where(passed, beyond, narrow)


_ROUNDING = 2.0**-44
# How near to a limit a rate is, relative to it, and the error of their difference.
_NEAR_LIMITS = ((4 * numerics.SLACK, numerics.SLACK), (0.25, _ROUNDING))
