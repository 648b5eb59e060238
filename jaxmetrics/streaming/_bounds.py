"""The lowest and the highest value of a metric that the counts of bins allow."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array
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
        return _outward(low, dtype, -1), _outward(high, dtype, 1)

    return of_each(of_one, counted(held, ignore_nan))


def _outward(value: Array, dtype: Any, sign: int) -> Array:
    """The value in `dtype`, rounded in the direction of `sign` past the sums' rounding error."""
    apart = value + sign * _ROUNDING * jnp.abs(value)
    apart = jnp.where(value == jnp.round(value), value, apart)  # 0 and 1 are exact
    narrow = apart.astype(dtype)
    beyond = jnp.nextafter(narrow, jnp.asarray(sign * jnp.inf, dtype))
    passed = narrow.astype(value.dtype) < apart if sign > 0 else narrow > apart
    return jnp.where(passed, beyond, narrow)


_ROUNDING = 2.0**-44
