"""Between which values a metric of the data must be, by their bins alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc
from jaxmetrics._roc.metric import resolve
from jaxmetrics._roc.table import ScoreTable, static_options
from jaxmetrics._roc.thresholds import (
    precision_at_recall,
    recall_at_fpr,
    recall_at_precision,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
    threshold_at_fpr,
)
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._state import State, check_state, is_weighted
from jaxmetrics.streaming._tables import descending, in_bins, undefined_of


class Bounds(NamedTuple):
    """The ends of an interval that holds a value of the data; `[...]` each."""

    low: Array
    high: Array


def bounds(
    metric: Callable[..., Any], state: State, *, bins: Bins, ignore_nan: bool = False
) -> Bounds:
    """The interval in which the metric of the data themselves is, whatever they are.

    low = the metric if in each bin all negatives were above all positives, high = if below. No
    other order within bins is beyond them. For `average_precision` the low end has each positive
    by itself; for `threshold_at_fpr` ends are the lowest and the highest score of a bin.

    Args:
      metric: `roc_auc`, `partial_auc`, `recall_at_fpr` and `threshold_at_fpr` (not by "quantile"),
        `average_precision`, `precision_at_recall`, `recall_at_precision`,
        `sensitivity_at_specificity` or `specificity_at_sensitivity`, or a partial of one.
      state: of `update` or `merge`.
      bins: those of `init`.
      ignore_nan: leave items without a score out, instead of bounds that are NaN.

    Returns:
      Bounds `[...]`, rounded outwards. They hold the value that the metric has for the scores in
      float32, for any data, weights, ties and merges; there is no error rate. That the data are a
      sample, `interval` takes into account.

    Raises:
      TypeError, ValueError: the state is not one of these bins, or the metric is none of those.

    NaN where the metric is undefined, or an item had no score. Time and memory O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(4)
      >>> state = jm.streaming.init(bins)
      >>> scores, labels = [.1, .4, .45, .9], [0, 0, 1, 1]
      >>> state = jm.streaming.update(state, scores, labels, bins=bins)
      >>> low, high = jm.streaming.bounds(jm.roc_auc, state, bins=bins)
      >>> print(f"{low:.4f} to {high:.4f}")
      0.7500 to 1.0000

    Reference: D. Bamber, "The area above the ordinal dominance graph and the area below the
    receiver operating characteristic graph", Journal of Mathematical Psychology 12, 1975, for the
    area between the orders of ties.
    """
    check_state(state, bins)
    checks.check_flag("ignore_nan", ignore_nan)
    function, options = resolve(metric)
    check_metric(function, options)
    static, arrays = static_options(options)
    constants = (function, static, ignore_nan, is_weighted(state), numerics.default_float())
    low, high = _bounds(state.digits, levels_of(bins), arrays, *constants)
    return Bounds(low, high)


def levels_of(bins: Bins) -> tuple[HostArray, HostArray]:
    """The lowest and the highest score of each bin, the highest bin first."""
    upper = np.append(bins.lower[1:], np.float32(np.inf))
    return bins.lower[::-1].copy(), upper[::-1].copy()


def check_metric(function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse a metric whose ends are not known."""
    if function not in _BOUNDED:
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"bounds are known for {', '.join(f.__name__ for f in _BOUNDED)}, got {name}: its "
            "value with ties in each bin is metric(table(state, bins=bins))"
        )
    if options.get("method") == "quantile":
        raise ValueError(
            "bounds are not known of method='quantile', which lies between scores: write 'step' or "
            "'linear'"
        )
    if function is threshold_at_fpr.table_function and options["method"] != "step":
        raise ValueError("bounds of a threshold are known for method='step' alone")


_BOUNDED = tuple(
    metric.table_function
    for metric in (
        roc_auc,
        partial_auc,
        recall_at_fpr,
        threshold_at_fpr,
        average_precision,
        precision_at_recall,
        recall_at_precision,
        sensitivity_at_specificity,
        specificity_at_sensitivity,
    )
)


@double_program("function", "static", "ignore_nan", "weighted", "dtype")
def _bounds(
    digits: Array,
    levels: tuple[Array, Array],
    options: dict[str, Array],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    ignore_nan: bool,
    weighted: bool,
    dtype: Any,
) -> tuple[Array, Array]:
    def of_one(positives: Array, negatives: Array, undefined: Array) -> Array:
        settings = {**options, **dict(static)}
        return values_of(function, settings, positives, negatives, levels, undefined, weighted)

    columns = (*descending(digits), undefined_of(digits, ignore_nan))
    batch = columns[0].ndim - 1
    low, _, high = jnp.moveaxis(numerics.over_batch(of_one, batch)(*columns), batch, 0)
    return _outward(low, dtype, -1), _outward(high, dtype, 1)


def values_of(
    function: Callable[..., Any],
    options: dict[str, Any],
    positives: Array,
    negatives: Array,
    levels: tuple[Array, Array],
    undefined: Array,
    weighted: bool,
) -> Array:
    """`[3, ...]`, the low end, the value with ties in each bin, and the high end.

    Of bins `[n]`, the highest first, and their lowest and highest scores.
    """
    lowest, highest = levels
    worst, even, best = in_bins(positives, negatives, lowest, undefined)
    ends = worst, even, best
    if function is threshold_at_fpr.table_function:
        ends = best, even, in_bins(positives, negatives, highest, undefined)[0]
    tables = ScoreTable(*map(jnp.stack, zip(*ends, strict=True)))
    values: Array = jax.vmap(lambda table: function(table, **options))(tables)
    if function is average_precision.table_function:
        values = values.at[0].set(_least_precision(positives, negatives, weighted))
    return jnp.where(undefined, jnp.nan, values)


def _least_precision(positives: Array, negatives: Array, weighted: bool) -> Array:
    """Average precision if in each bin all negatives are above all positives, which do not tie.

    With F false positives and T to T + P true ones, the bin adds sum over i = 1 to P of
    (T + i) / (T + i + F), which is at least P - F log((T + F + P + 1/2) / (T + F + 1/2)); of
    weights, however they are cut, at least the integral, which is that without the halves.
    """
    tps, fps = jnp.cumsum(positives), jnp.cumsum(negatives)
    before = tps - positives + fps + (0.0 if weighted else 0.5)
    lost = fps * jnp.log1p(numerics.divide(positives, before, 0.0))
    return numerics.divide(jnp.sum(positives - lost), tps[-1], 0.0)


def _outward(value: Array, dtype: Any, sign: int) -> Array:
    """In a dtype, not nearer to the other end, and beyond what the rounding of sums may hide."""
    apart = value + sign * _ROUNDING * jnp.abs(value)
    apart = jnp.where(value == jnp.round(value), value, apart)  # ends of the scale are exact
    narrow = apart.astype(dtype)
    beyond = jnp.nextafter(narrow, jnp.asarray(sign * jnp.inf, dtype))
    passed = narrow.astype(value.dtype) < apart if sign > 0 else narrow > apart
    return jnp.where(passed, beyond, narrow)


_ROUNDING = 2.0**-44
