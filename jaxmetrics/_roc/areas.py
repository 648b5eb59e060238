"""Metrics that integrate over a curve: areas under ROC and precision-recall."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.table import ScoreTable, evaluate


@partial(library_metric, smooth=True, of_roc_curve=True)
def roc_auc(table: ScoreTable) -> Array:
    """The area under the ROC curve: how often a positive outranks a negative.

    AUC = sum_ij w_i w_j ([s_i > s_j] + [s_i = s_j] / 2) / (W1 W0), over positives i and negatives
    j, with W1 and W0 the total weights.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, from 0 to 1; 0.5 is chance.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.roc_auc([.1, .4, .35, .8], [0, 0, 1, 1]))
      0.75

    Reference: J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver
    operating characteristic (ROC) curve", Radiology 143, 1982.
    """
    tps = numerics.running_sum(table.positives)
    outranked = jnp.sum(table.negatives * (tps - table.positives / 2))
    return outranked / (tps[-1] * jnp.sum(table.negatives))


@partial(library_metric, smooth=True, of_roc_curve=True)
def partial_auc(
    table: ScoreTable,
    *,
    max_fpr: ArrayLike = 1.0,
    min_fpr: ArrayLike = 0.0,
    min_tpr: ArrayLike = 0.0,
    scale: str = "raw",
) -> Array:
    """The area under the part of the ROC curve that matters.

    raw = integral from `min_fpr` to `max_fpr` of max(ROC(u) - min_tpr, 0) du, with ROC linear
    between its points. With `min_tpr` this is the two-way partial AUC: left of `max_fpr`, above
    `min_tpr`.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], one or several; a last axis is added for several.
      min_fpr: in [0, max_fpr).
      min_tpr: in [0, 1).
      scale: "raw", the area itself; "range", the area over the largest there can be, 0 to 1;
        "mcclish", (1 + (raw - chance) / (largest - chance)) / 2, which is 0.5 for chance and 1 for
        perfect, as scikit-learn's `roc_auc_score(max_fpr=)` has it.

    Returns:
      `[...]` or `[..., k]`.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time O(n log n), memory O(n). In a
    gradient, a limit that falls on a step of the curve stands in the middle of the step.

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
      >>> few = [1, 0, 0, 0, 1, 1, 1, 1, 1, 0]
      >>> print(f"{jm.partial_auc(few, labels, max_fpr=0.3, scale='mcclish'):.4f}")
      0.5882

    References: D. K. McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9,
    1989; H. Yang et al., "Two-way partial AUC and its properties", Statistical Methods in Medical
    Research 28, 2019.
    """
    max_fpr, min_fpr, min_tpr = map(jnp.asarray, (max_fpr, min_fpr, min_tpr))
    curve = _Steps.of(table)
    n_negative, n_positive = (x[-1].astype(jnp.float64) for x in (curve.fps, curve.tps))
    low, high = in_counts(min_fpr, n_negative), in_counts(max_fpr, n_negative)
    floor = in_counts(min_tpr, n_positive)
    entry = curve.abscissa(floor)  # left of it the curve is below the floor
    low, high = jnp.maximum(low, entry), jnp.maximum(high, entry)
    counts = curve.area(high) - curve.area(low) - floor * (high - low)
    return scaled(counts / (n_negative * n_positive), max_fpr, min_fpr, min_tpr, scale)


def scaled(raw: Array, max_fpr: Array, min_fpr: Array, min_tpr: Array, scale: str) -> Array:
    """A raw partial area on the scale that was asked for."""
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    if scale == "range":
        raw = raw / largest
    if scale == "mcclish":
        chance = (_above(max_fpr, min_tpr) ** 2 - _above(min_fpr, min_tpr) ** 2) / 2
        raw = (1 + (raw - chance) / (largest - chance)) / 2
    return raw


def _above(fpr: Array, min_tpr: Array) -> Array:
    """How far the diagonal of chance is above the floor."""
    return jnp.maximum(fpr - min_tpr, 0)


class _Steps(NamedTuple):
    """A ROC curve in counts: each row of a table goes right by `widths` and up by `rises`."""

    widths: Array
    rises: Array
    fps: Array  # where a row ends; integers, if the counts are, to spare memory
    tps: Array
    doubled_areas: Array  # under the curve up to there; integers, if the counts are

    @classmethod
    def of(cls, table: ScoreTable) -> _Steps:
        widths, rises = table.negatives, table.positives
        fps, tps = numerics.running_total(widths), numerics.running_total(rises)
        # Without division, as JAX divides 32-bit integers in single precision.
        wide = jnp.float64 if numerics.is_inexact(widths) else jnp.int64
        doubled = widths.astype(wide) * (2 * tps.astype(wide) - rises)
        return cls(widths, rises, fps, tps, jnp.cumsum(doubled))

    def area(self, x: Array) -> Array:
        """The area left of x. Its derivative, where x is at a step, is that of the middle."""

        def within(row: Array) -> Array:
            width, rise, fp, tp = self._at(row)
            inside = x - (fp - width)
            height = tp - rise + numerics.divide(inside, width, 0.0) * rise / 2
            doubled = self.doubled_areas[row].astype(jnp.float64)
            return doubled / 2 - width * (tp - rise / 2) + inside * height

        before = jnp.searchsorted(self.fps, _like(self.fps, jnp.ceil, x), side="left")
        after = jnp.searchsorted(self.fps, _like(self.fps, jnp.floor, x), side="right")
        return (within(before) + within(jnp.minimum(after, len(self.fps) - 1))) / 2

    def abscissa(self, y: Array) -> Array:
        """Where the curve rises through y."""
        row = jnp.searchsorted(self.tps, _like(self.tps, jnp.ceil, y), side="left")
        width, rise, fp, tp = self._at(row)
        return fp - width + numerics.divide(y - (tp - rise), rise, 0.0) * width

    def _at(self, row: Array) -> list[Array]:
        return [column[row].astype(jnp.float64) for column in self[:4]]


def _like(counts: Array, rounding: Callable[[Array], Array], x: Array) -> Array:
    """x, rounded to a whole number where the counts that it is compared with are whole."""
    whole = jnp.issubdtype(counts.dtype, jnp.integer)
    return rounding(x).astype(counts.dtype) if whole else x


def in_counts(limit: Array, total: Array) -> Array:
    """A limit of a rate in counts; a whole number where a whole number over the total equals it."""
    counts = limit * total
    whole = jnp.round(counts)
    equal = (whole / total).astype(limit.dtype) == limit
    return counts + lax.stop_gradient(jnp.where(equal, whole - counts, 0))


@partial(library_metric, smooth=True)
def average_precision(table: ScoreTable) -> Array:
    """Average precision: the precision at each positive, averaged over the positives.

    AP = sum_k (R_k - R_(k-1)) P_k over the distinct thresholds, without interpolation.

    Args:
      scores: `[..., n]`, higher is more positive; or one ScoreTable in place of all inputs.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, from 0 to 1; the share of positives is chance.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    0 without positives, as in scikit-learn; NaN where a valid score is NaN or no item is valid.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.average_precision([.1, .4, .35, .8], [0, 0, 1, 1]):.4f}")
      0.8333

    Reference: J. Davis and M. Goadrich, "The relationship between precision-recall and ROC
    curves", ICML 2006.
    """
    tps = numerics.running_sum(table.positives)
    fps = numerics.running_sum(table.negatives)
    precision = numerics.divide(tps, tps + fps, 0.0)
    return numerics.divide(jnp.sum(table.positives * precision), tps[-1], 0.0)


def roc_auc_sampled(
    key: Array,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    n_pairs: int,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """AUC by its meaning: the share of random pairs in which the positive outranks the negative.

    mean over pairs of [s_i > s_j] + [s_i = s_j] / 2, with i drawn from the positives and j from the
    negatives, in proportion to weight. Its standard error is at most 0.5 / sqrt(n_pairs).

    Args:
      key: a JAX random key. The same uniform numbers serve every row of a batch.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      n_pairs: how many pairs to draw, at least 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time
    O((n + n_pairs) log n), memory O(n + n_pairs).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> print(jm.roc_auc_sampled(jax.random.key(0), [1., 2., 3.], [0, 1, 1], n_pairs=100))
      1.0

    Reference: J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver
    operating characteristic (ROC) curve", Radiology 143, 1982.
    """
    checks.check_count("n_pairs", n_pairs)
    items = checks.check_items(scores, labels, weights, where)
    implementation = None
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        implementation, key = str(jax.random.key_impl(key)), jax.random.key_data(key)
    options = {"key_data": key, "n_pairs": n_pairs, "implementation": implementation}
    result: Array = evaluate(_sampled, items, options)
    return result


def _sampled(
    table: ScoreTable, *, key_data: Array, n_pairs: int, implementation: str | None
) -> Array:
    key = jax.random.wrap_key_data(key_data, impl=implementation)
    uniform = jax.random.uniform(key, (2, n_pairs), jnp.float64)

    def rows(counts: Array, uniform: Array) -> tuple[Array, Array]:
        """Rows of a table drawn in proportion to their counts, and whether there are any."""
        total = numerics.running_sum(counts)
        return jnp.searchsorted(total, uniform * total[-1], side="right"), total[-1] > 0

    winner, some_positive = rows(table.positives, uniform[0])
    loser, some_negative = rows(table.negatives, uniform[1])
    mean = jnp.mean((winner < loser) + (winner == loser) / 2)
    return jnp.where(some_positive & some_negative, mean, jnp.nan)
