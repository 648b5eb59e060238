"""Which of several models is better, by paired comparisons on the items that all have scored."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import ndtr

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.metric import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import BootstrapResult, check_amounts, resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.variance import as_default, estimate_and_covariance
from jaxmetrics.inference._intervals.distributions import chi2_survival, normal_quantile

# Normal vectors by which the largest of several deviations is simulated, and how many at a time.
N_DRAWS, N_AT_A_TIME = 100_096, 256


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        "estimate",
        "difference",
        "standard_error",
        "low",
        "high",
        "p_value",
        "simultaneous_low",
        "simultaneous_high",
        "simultaneous_p_value",
        "best_set",
        "chi2",
        "chi2_df",
        "chi2_p_value",
    ],
    meta_fields=["confidence_level"],
)
@dataclass(frozen=True)
class Comparison:
    """A comparison of models: `[models, models]`, row minus column; or `[models]`, minus reference.

    Attributes:
      estimate: `[models]`, the metric of each.
      difference: between two models.
      standard_error: of the difference.
      low: the lower limit of the difference.
      high: the upper limit.
      p_value: of the hypothesis that the two do not differ, two-sided.
      simultaneous_low: lower limits that hold for all comparisons at once.
      simultaneous_high: upper limits that hold for all comparisons at once.
      simultaneous_p_value: the same as a p-value, adjusted for the number of comparisons.
      best_set: `[models]` bool, the models that cannot be told from the best. It has the best one
        with the confidence level.
      chi2: `[]`, the statistic of the hypothesis that no models differ.
      chi2_df: its degrees of freedom.
      chi2_p_value: its p-value.
      confidence_level: of the limits and of the set.
    """

    estimate: Array
    difference: Array
    standard_error: Array
    low: Array
    high: Array
    p_value: Array
    simultaneous_low: Array
    simultaneous_high: Array
    simultaneous_p_value: Array
    best_set: Array
    chi2: Array
    chi2_df: Array
    chi2_p_value: Array
    confidence_level: float


def compare(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    reference: int | None = None,
    confidence_level: float = 0.95,
    key: Array | None = None,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compare models that have scored the same items: differences, errors, p-values, the best.

    The covariance of the models comes from their influence values, or, for metrics without, from
    paired bootstrap replicates. Limits are d -+ z SE(d); simultaneous ones have the quantile of
    max |Z| over all comparisons in place of z, with Z normal of the same covariance. A model is in
    `best_set` unless some other is better by more than the quantile of its own one-sided maximum.
    chi2 = d' (C V C')^+ d over the differences d = C A of the models.

    Args:
      metric: any with one value a table; those without a usable gradient need a key.
      scores: `[models, n]`, higher is more positive; two models or more.
      labels: `[n]`, bool or 0 and 1.
      reference: the model that the others are compared with; all pairs are compared without.
      confidence_level: in (0, 1).
      key: a JAX random key, for metrics whose covariance is resampled; also of the simulation of
        max |Z|, which has 100,096 draws and is otherwise the same every time.
      n_resamples: how many resamples, where it is resampled.
      stratify: draw each class by itself, so that its size stays; else from all items.
      clusters: `[n]`, integers or strings, the same for items that belong together.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out.
      amounts: `[n]`, for metrics that take them.
      memory_budget: the bytes that one batch of resamples may take.
      progress: called with the number of resamples that are ready, as they become so.

    Returns:
      A Comparison, each `[models, models]`, row minus column; `[models]` with a reference.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, or a key is
        missing.

    NaN where the metric is, and a p-value where a difference other than 0 has a standard error of
    0, which is no measure of it; such models stay in the set. Of a model and itself, or an equal
    one, the difference and its limits are 0 and the p-value 1. Limits may pass those of the metric.
    Time O(models n log n + models^2 n), or as `bootstrap`; memory
    O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> result = jm.compare(jm.roc_auc, scores, labels)
      >>> print(f"{result.difference[0, 1]:.3f} -+ {result.standard_error[0, 1]:.3f}")
      0.562 -+ 0.265

    References: E. R. DeLong et al., Biometrics 44, 1988; T. Hothorn, F. Bretz and P. Westfall,
    "Simultaneous inference in general parametric models", Biometrical Journal 50, 2008; J. C. Hsu,
    "Multiple Comparisons: Theory and Methods", 1996, chapter 4.
    """
    items = checks.check_items(scores, labels, weights, where, amounts)
    level = checks.check_level(confidence_level)
    check_amounts(metric, items)
    n_models = checks.check_models(items)
    if reference is not None:
        checks.check_index("reference", reference, n_models)
    ids = checks.check_clusters(clusters, items)
    if record_of(metric).smooth:
        estimate, covariance = estimate_and_covariance(metric, items, ids)
    else:
        request = Request(
            key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
        )
        request.check()
        chosen, arrays = choose(metric)
        chosen.refuse_several(arrays, items.scores.shape[-1])
        result = resampled(metric, items, request)
        estimate, covariance = result.estimate, _covariance_of(result.replicates)
    return _comparison(estimate, covariance, key, level, reference)


def comparison_of_replicates(
    result: BootstrapResult, *, confidence_level: float, key: Array | None
) -> Comparison:
    """Compare models whose replicates `[n_resamples, models]` are of the same resamples."""
    covariance = _covariance_of(result.replicates)
    return _comparison(result.estimate, covariance, key, confidence_level, None)


def _comparison(
    estimate: Array,
    covariance: Array,
    key: Array | None,
    confidence_level: float,
    reference: int | None,
) -> Comparison:
    key = jax.random.key(0) if key is None else key
    bits = jax.random.bits(key, (2,), jnp.uint32)
    best_set, values = _compared(estimate, covariance, bits, confidence_level, reference)
    numbers = {name: as_default(x) for name, x in values.items()}
    return Comparison(**numbers, best_set=best_set, confidence_level=confidence_level)


@double_program()
def _covariance_of(replicates: Array) -> Array:
    """The covariance `[models, models]` of replicates `[n_resamples, models]` that are defined."""
    replicates = replicates.astype(jnp.float64)
    defined = ~jnp.any(jnp.isnan(replicates), axis=1, keepdims=True)
    count = jnp.sum(defined)
    kept = jnp.where(defined, replicates, 0)
    centred = jnp.where(defined, kept - jnp.sum(kept, axis=0) / count, 0)
    return centred.T @ centred / (count - 1)


@double_program("reference")
def _compared(
    estimate: Array, covariance: Array, bits: Array, level: Array, reference: int | None
) -> tuple[Array, dict[str, Array]]:
    """The best set, and all else of a Comparison by name."""
    estimate = estimate.astype(jnp.float64)
    difference = estimate[:, None] - estimate[None, :]
    variances = jnp.diagonal(covariance)
    variance = variances[:, None] + variances[None, :] - 2 * covariance
    # Of models that are equal, or whose influence is 0, but for rounding, it is 0.
    scale = jnp.maximum(variances, 1e-12 * estimate**2)
    scale = jnp.maximum(scale[:, None], scale[None, :])
    error = jnp.sqrt(jnp.where(variance > 1e-12 * scale, variance, 0 * variance))
    z = numerics.divide(difference, error, jnp.where(difference == 0, 0.0, jnp.nan))
    largest, above = _largest(covariance, error, bits, reference)
    margin = normal_quantile((1 + level) / 2) * error
    wide = jnp.quantile(largest, level) * error
    # The draws that are as far out, with some tolerance as z and they are rounded differently.
    within = jnp.searchsorted(jnp.sort(largest), jnp.abs(z).ravel() * (1 - 1e-9)).reshape(z.shape)
    adjusted = (len(largest) - within + 1) / (len(largest) + 1)
    pairwise = {
        "difference": difference,
        "standard_error": error,
        "low": difference - margin,
        "high": difference + margin,
        "p_value": 2 * ndtr(-jnp.abs(z)),
        "simultaneous_low": difference - wide,
        "simultaneous_high": difference + wide,
        "simultaneous_p_value": jnp.where(jnp.isnan(z), jnp.nan, adjusted),
    }
    if reference is not None:
        pairwise = {name: x[:, reference] for name, x in pairwise.items()}
    behind = jnp.max(jnp.where(jnp.eye(len(z), dtype=bool), -jnp.inf, -z), axis=1)
    chi2, df = _equality(estimate, covariance)
    rest = {"chi2": chi2, "chi2_df": df, "chi2_p_value": chi2_survival(chi2, df)}
    best_set = ~(behind > jnp.quantile(above, level, axis=0))
    return best_set, {"estimate": estimate, **pairwise, **rest}


def _largest(
    covariance: Array, error: Array, bits: Array, reference: int | None
) -> tuple[Array, Array]:
    """Of simulated models: the largest |Z| of all comparisons `[draws]`, and, for each model, by
    how much the best of the others is above it, in standard errors, `[draws, models]`."""
    values, vectors = jnp.linalg.eigh(covariance)
    factor = vectors * jnp.sqrt(jnp.maximum(values, 0))
    key = jax.random.wrap_key_data(bits, impl="threefry2x32")

    def some(number: Array) -> tuple[Array, Array]:
        shape = (N_AT_A_TIME, len(covariance))
        normal = jax.random.normal(jax.random.fold_in(key, number), shape, jnp.float32)
        models = normal.astype(jnp.float64) @ factor.T
        z = numerics.divide(models[:, :, None] - models[:, None, :], error, 0.0)
        compared = z if reference is None else z[:, :, reference : reference + 1]
        others = jnp.where(jnp.eye(len(error), dtype=bool), -jnp.inf, -z)
        return jnp.max(jnp.abs(compared), axis=(1, 2)), jnp.max(others, axis=2)

    largest, above = lax.map(some, jnp.arange(N_DRAWS // N_AT_A_TIME))
    return largest.ravel(), above.reshape(-1, len(error))


def _equality(estimate: Array, covariance: Array) -> tuple[Array, Array]:
    """The chi-squared statistic of equal models, and its degrees of freedom."""
    differences = estimate[1:] - estimate[0]
    contrast = covariance[1:, 1:] - covariance[1:, :1] - covariance[:1, 1:] + covariance[0, 0]
    values, vectors = jnp.linalg.eigh(contrast)
    # Directions in which the models agree throughout have no say.
    counted = values > 1e-10 * jnp.max(jnp.abs(jnp.diagonal(covariance)))
    along = vectors.T @ differences
    chi2 = jnp.sum(jnp.where(counted, along**2 / jnp.where(counted, values, 1), 0))
    return chi2 + 0 * jnp.sum(differences), jnp.sum(counted).astype(jnp.float64)
