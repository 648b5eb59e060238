"""How sure a value is of which a state is all that is left: bins and sample, both at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc
from jaxmetrics._roc.metric import resolve
from jaxmetrics._roc.table import static_options
from jaxmetrics._roc.thresholds import recall_at_fpr
from jaxmetrics.inference._bootstrap.bootstrap import result_of
from jaxmetrics.inference._bootstrap.random import words_of
from jaxmetrics.inference._confidence import chosen_method, form_of, limits_of_form
from jaxmetrics.inference._influence.influence import as_default
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.interval import Interval, limits_of_replicates
from jaxmetrics.inference._intervals.rules import Moments
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._bootstrap import replicates
from jaxmetrics.streaming._bounds import check_metric, levels_of, values_of
from jaxmetrics.streaming._state import State, check_state, refuse_weights
from jaxmetrics.streaming._tables import descending, undefined_of

_RECALL = recall_at_fpr.table_function
_SMOOTH = tuple(f.table_function for f in (roc_auc, partial_auc, average_precision))


def interval(
    metric: Callable[..., Any],
    state: State,
    *,
    bins: Bins,
    confidence_level: float = 0.95,
    key: Array | None = None,
    n_resamples: int = 2000,
    ignore_nan: bool = False,
) -> Interval:
    """A confidence interval of a metric from what a stream left, at a cost free of its length.

    low = the lower limit that the data would have if they were at the low end of `bounds`, high =
    the upper one at the high end; so it covers at least as often as that of
    `jaxmetrics.confidence_interval` for the data themselves. The limits are its closed forms, with
    variances from the gradient of the metric by the counts of bins; for `recall_at_fpr` Wilson's,
    with the standard error of a bootstrap of the bins: of each resample the bin of the threshold
    is found by halving, with a binomial draw a step, which has the law of the multinomial; for
    other metrics percentiles of `jaxmetrics.streaming.bootstrap`.

    Args:
      metric: as for `bounds`, with one value.
      state: of `update` or `merge`, without weights.
      bins: those of `init`.
      confidence_level: in (0, 1).
      key: a JAX random key, for all but `roc_auc`, `partial_auc` and `average_precision`.
      n_resamples: how many resamples there are of it.
      ignore_nan: leave items without a score out, instead of an interval that is NaN.

    Returns:
      An Interval `[...]`; its estimate has ties in each bin, and its standard error is that of the
      sample alone, that of the bootstrap the largest of both ends.

    Raises:
      TypeError, ValueError: the state is not one of these bins, has weights, of which the squares
        are not known, the metric is none of those, or a key is missing.

    NaN where the metric is undefined, or an item had no score. Time O(bins), for recall
    O(n_resamples log bins), by percentiles that of the bootstrap; memory O(bins).

    Example:
      >>> import jax.numpy as jnp
      >>> import jaxmetrics as jm
      >>> bins, scores = jm.streaming.float16_bins(), jnp.arange(100) / 100
      >>> state = jm.streaming.init(bins)
      >>> state = jm.streaming.update(state, scores, scores > .7, bins=bins)
      >>> state = jm.streaming.update(state, scores, scores > .3, bins=bins)
      >>> found = jm.streaming.interval(jm.roc_auc, state, bins=bins)
      >>> print(f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})")
      0.920 (0.879 to 0.952)

    Reference: that of `jaxmetrics.confidence_interval`.
    """
    check_state(state, bins)
    level = checks.check_level(confidence_level)
    checks.check_flag("ignore_nan", ignore_nan)
    function, options = resolve(metric)
    check_metric(function, options)
    refuse_weights(state)
    if function is _RECALL:
        checks.check_key(key)
        checks.check_count("n_resamples", n_resamples)
        return _of_recall(state, bins, options, level, key, n_resamples, ignore_nan)
    if function not in _SMOOTH:
        return _of_replicates(function, options, state, bins, level, key, n_resamples, ignore_nan)
    form = form_of(metric, chosen_method(metric, None))
    function, options = resolve(form.metric)
    static, arrays = static_options(options)
    constants = (function, static, form.slope_in, ignore_nan)
    moments, slope = _moments(state.digits, levels_of(bins), arrays, *constants)
    numbers = _composed(*limits_of_form(form, moments, slope, level))
    estimate, low, high, error = map(as_default, numbers)
    return Interval(estimate, low, high, error, form.name, level)


@double_program("function", "static", "slope_in", "ignore_nan")
def _moments(
    digits: Array,
    levels: tuple[Array, Array],
    options: dict[str, Array],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    slope_in: str | None,
    ignore_nan: bool,
) -> tuple[Moments, Array | None]:
    """`[..., 3]`, of the low end, of ties in each bin, and of the high end; and a derivative."""

    def of_one(
        positives: Array, negatives: Array, undefined: Array
    ) -> tuple[Moments, Array | None]:
        def values(positives: Array, negatives: Array, option: Array) -> Array:
            settings = {**options, **dict(static)}
            if slope_in is not None:
                settings[slope_in] = option
            return values_of(function, settings, positives, negatives, levels, undefined, False)

        option = jnp.asarray(0 if slope_in is None else options[slope_in], jnp.float64)
        estimates, pull_back = jax.vjp(values, positives, negatives, option)
        if estimates.ndim > 1:
            raise ValueError(
                f"the metric must have one value a state, got {list(estimates.shape[1:])}: take "
                "one limit at a time"
            )
        by_positives, by_negatives, by_option = jax.vmap(pull_back)(jnp.eye(3))

        def of_class(slopes: Array, count: Array) -> tuple[Array, Array]:
            n = jnp.sum(count)
            centred = slopes - numerics.divide(slopes @ count, n, 0.0)[:, None]
            unbiased = numerics.divide(n, n - 1, jnp.nan)
            return n * unbiased * (centred**2 @ count) + 0 * estimates, jnp.full(3, n)

        classes = of_class(by_negatives, negatives), of_class(by_positives, positives)
        (v0, n0), (v1, n1) = classes
        return Moments(estimates, (v0, v1), (n0, n1)), None if slope_in is None else by_option

    columns = (*descending(digits), undefined_of(digits, ignore_nan))
    found: tuple[Moments, Array | None]
    found = numerics.over_batch(of_one, columns[0].ndim - 1)(*columns)
    return found


@double_program()
def _composed(
    estimate: Array, low: Array, high: Array, error: Array
) -> tuple[Array, Array, Array, Array]:
    """The lowest lower limit and the highest upper one, around the value with ties in each bin."""
    return estimate[..., 1], low[..., 0], high[..., 2], error[..., 1]


def _of_replicates(
    function: Callable[..., Any],
    options: dict[str, Any],
    state: State,
    bins: Bins,
    level: float,
    key: Any,
    n_resamples: int,
    ignore_nan: bool,
) -> Interval:
    found = replicates(_ends_of_bins, function, options, state, bins, key, n_resamples, ignore_nan)
    result = result_of(found)
    if result.estimate.ndim > result.n_undefined.ndim + 1:
        raise ValueError("the metric must have one value: take one limit at a time")
    low, high = (
        limits_of_replicates(
            result.estimate[..., end], result.replicates[..., end], 0.0, level, "percentile"
        )[side]
        for end, side in ((0, 0), (2, 1))
    )
    error = jnp.max(result.standard_error, axis=-1)
    return Interval(result.estimate[..., 1], low, high, error, "percentile", level)


def _ends_of_bins(
    function: Callable[..., Any],
    options: dict[str, Any],
    positives: Array,
    negatives: Array,
    levels: tuple[Array, Array],
    undefined: Array,
) -> Array:
    return values_of(function, options, positives, negatives, levels, undefined, False)


def _of_recall(
    state: State,
    bins: Bins,
    options: dict[str, Any],
    level: float,
    key: Any,
    n_resamples: int,
    ignore_nan: bool,
) -> Interval:
    if np.ndim(options["max_fpr"]):
        raise ValueError("max_fpr must be one limit: take one at a time")
    static, arrays = static_options(options)
    numbers = _recall(
        state.digits,
        levels_of(bins),
        arrays,
        words_of(key),
        jnp.asarray(level),
        static,
        n_resamples,
        ignore_nan,
    )
    estimate, low, high, error = map(as_default, numbers)
    return Interval(estimate, low, high, error, "wilson", level)


@double_program("static", "n_resamples", "ignore_nan")
def _recall(
    digits: Array,
    levels: tuple[Array, Array],
    options: dict[str, Array],
    seed: Array,
    level: Array,
    static: tuple[tuple[str, Any], ...],
    n_resamples: int,
    ignore_nan: bool,
) -> tuple[Array, ...]:
    key = jax.random.wrap_key_data(seed, impl="threefry2x32")
    limit = jnp.asarray(options["max_fpr"], jnp.float64)

    def of_one(positives: Array, negatives: Array, undefined: Array) -> tuple[Array, ...]:
        settings = {**options, **dict(static)}
        ends = values_of(_RECALL, settings, positives, negatives, levels, undefined, False)
        drawn = _drawn_recalls(key, positives, negatives, limit, n_resamples)
        variances = jnp.stack([jnp.var(x, ddof=1) for x in drawn])
        sizes = rules.effective_size(ends[::2], variances, jnp.sum(positives))
        low, high = rules.wilson(ends[::2], sizes, level)
        numbers = ends[1], low[0], high[1], jnp.sqrt(jnp.max(variances))
        return tuple(jnp.where(undefined, jnp.nan, x) for x in numbers)

    columns = (*descending(digits), undefined_of(digits, ignore_nan))
    return numerics.over_batch(of_one, columns[0].ndim - 1)(*columns)


def _drawn_recalls(
    key: Array, positives: Array, negatives: Array, limit: Array, n_resamples: int
) -> tuple[Array, Array]:
    """Recalls `[n_resamples]` at the low and at the high end of the bin of the threshold.

    A resample has as many of each class as the data. How many of its negatives are in one half of
    some bins, of those that are in them all, is binomial; so the bin in which their number passes
    the limit is found from the highest score down, without drawing the others.
    """
    depth = max(len(negatives) - 1, 1).bit_length()
    padding = (1, (1 << depth) - len(negatives))
    above, right = (jnp.cumsum(jnp.pad(x, padding)) for x in (negatives, positives))
    n0, n1 = above[-1], right[-1]
    allowed = jnp.floor(limit * n0 * (1 + 2.0**-40))
    keys = jax.random.split(key, depth + 2)

    def draw(key: Array, n: Array, part: Array, whole: Array) -> Array:
        share = jnp.clip(numerics.divide(part, whole, 0.0), 0, 1)
        drawn: Array = jax.random.binomial(key, n, share, dtype=jnp.float64)
        return drawn

    def halve(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        first, inside, left = state
        half = jnp.left_shift(1, depth - 1 - i)
        start, middle, end = above[first], above[first + half], above[first + 2 * half]
        drawn = draw(keys[i], inside, middle - start, end - start)
        fits = drawn <= left
        return (
            jnp.where(fits, first + half, first),
            jnp.where(fits, inside - drawn, drawn),
            jnp.where(fits, left - drawn, left),
        )

    start = jnp.zeros(n_resamples, int), jnp.full(n_resamples, n0), jnp.full(n_resamples, allowed)
    bin_at, inside, left = lax.fori_loop(0, depth, halve, start)
    all_fit = inside <= left
    passed = right[bin_at + all_fit]
    least = draw(keys[depth], jnp.full(n_resamples, n1), passed, n1)
    more = draw(keys[depth + 1], n1 - least, right[bin_at + 1] - passed, n1 - passed)
    return numerics.divide(least, n1, jnp.nan), numerics.divide(least + more, n1, jnp.nan)
