"""Confidence bands of the ROC curve."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import ndtr

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.thresholds import recall_at_fpr
from jaxmetrics.inference._bootstrap.bootstrap import resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._confidence import count_positives
from jaxmetrics.inference._influence.variance import as_default
from jaxmetrics.inference._intervals import rules


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["fpr", "tpr", "low", "high", "simultaneous_low", "simultaneous_high"],
    meta_fields=["confidence_level"],
)
@dataclass(frozen=True)
class RocBand:
    """A ROC curve with bands.

    Attributes:
      fpr: `[points]`, the false positive rates.
      tpr: `[..., points]`, the curve at these.
      low: `[..., points]`, lower limits, each for its own point.
      high: `[..., points]`, upper limits.
      simultaneous_low: `[..., points]`, lower limits for all points at once.
      simultaneous_high: `[..., points]`, upper limits.
      confidence_level: of the limits.
    """

    fpr: Array
    tpr: Array
    low: Array
    high: Array
    simultaneous_low: Array
    simultaneous_high: Array
    confidence_level: float


def roc_band(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    fpr: ArrayLike | None = None,
    confidence_level: float = 0.95,
    key: Array,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    progress: Callable[[int], None] | None = None,
) -> RocBand:
    """Confidence bands of the ROC curve, for each point by itself and for all at once.

    At each FPR the limits are Wilson's for a share TPR of n = TPR (1 - TPR) / SE^2 draws, with SE
    from the bootstrap. The simultaneous ones have, in place of the normal quantile, that of
    max |TPR* - TPR| / SE over the points. As the true curve rises, limits are made to rise too.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      fpr: `[points]`, rising, in (0, 1]; 0.01, 0.02, ... 1 by default.
      confidence_level: in (0, 1).
      key: a JAX random key.
      n_resamples: how many, at least 1.
      stratify: draw each class by itself, so that its size stays; else from all items.
      clusters: `[n]`, integers or strings, the same for items that belong together.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      memory_budget: the bytes that one batch of resamples may take.
      progress: called with the number of resamples that are ready, as they become so.

    Returns:
      A RocBand `[..., points]`.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where a class is absent or a valid score is NaN. Time as `bootstrap` of a metric of the
    ROC curve, and O(n_resamples points log n); memory O(n + memory_budget + n_resamples points).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
      >>> band = jm.roc_band(scores, labels, fpr=[.25, .5, 1.], key=jax.random.key(0))
      >>> print(bool((band.simultaneous_low <= band.low).all()))
      True

    Reference: L. E. Bantis, C. T. Nakas and B. Reiser, "Construction of confidence regions in the
    ROC space after the estimation of the optimal Youden index-based cut-off point", Biometrics 70,
    2014, for regions; J. L. Montiel Olea and M. Plagborg-Moller, "Simultaneous confidence bands:
    theory, implementation, and an application to SVARs", Journal of Applied Econometrics 34, 2019.
    """
    items = checks.check_items(scores, labels, weights, where)
    level = checks.check_level(confidence_level)
    grid = np.arange(1, 101) / 100 if fpr is None else checks.check_grid("fpr", fpr)
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    metric = functools.partial(recall_at_fpr, max_fpr=grid, method="linear")
    found = resampled(metric, items, request)
    positives = count_positives(items, ids, found.estimate.ndim - 1)[..., None]
    limits = _limits(found.estimate, found.replicates, positives, level)
    low, high, joint_low, joint_high = map(as_default, limits)
    points = jnp.asarray(grid, numerics.default_float())
    return RocBand(points, found.estimate, low, high, joint_low, joint_high, level)


@double_program()
def _limits(
    tpr: Array, replicates: Array, positives: Array, level: Array
) -> tuple[Array, Array, Array, Array]:
    tpr, replicates = tpr.astype(jnp.float64), replicates.astype(jnp.float64)
    variance = jnp.nanvar(replicates, axis=0, ddof=1)
    n = rules.effective_size(tpr, variance, positives.astype(jnp.float64))
    # Points at which no resample differs say nothing of how far others stray.
    z = numerics.divide(jnp.abs(replicates - tpr), jnp.sqrt(variance), 0.0)
    critical = jnp.nanquantile(jnp.max(z, axis=-1), level, axis=0)
    joint = jnp.maximum(2 * ndtr(critical) - 1, level)[..., None]
    axis = tpr.ndim - 1

    def rising(low: Array, high: Array) -> tuple[Array, Array]:
        low, high = lax.cummax(low, axis=axis), lax.cummin(high, axis=axis, reverse=True)
        return jnp.where(jnp.isnan(tpr), jnp.nan, low), jnp.where(jnp.isnan(tpr), jnp.nan, high)

    return *rising(*rules.wilson(tpr, n, level)), *rising(*rules.wilson(tpr, n, joint))
