"""Paired comparisons of several models that score the same items."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import BootstrapResult, check_amounts, resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.covariance import Covariance, covariance_of
from jaxmetrics.inference._influence.sizes import smallest_sizes
from jaxmetrics.inference._influence.variance import as_default
from jaxmetrics.inference._intervals.distributions import (
    hotelling_survival,
    t_quantile,
    t_survival,
)
from jaxmetrics.inference._intervals.metrics import has_influence, range_of, with_influence
from jaxmetrics.inference._pairs import Pairs, pairs_of

# Normal vectors in the simulation of max |Z|, and how many are in memory at a time.
N_DRAWS, N_AT_A_TIME = 100_096, 256

_FEWEST = 10  # of a class, or clusters with it


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
    """Pairwise differences of models, with tests and confidence intervals.

    Pairwise arrays are `[models, models]`, row minus column; with a reference they are `[models]`,
    each model minus the reference.

    Attributes:
      estimate: `[models]`, the metric of each model.
      difference: pairwise, the difference of the metric.
      standard_error: pairwise, the standard error of the difference.
      low: pairwise, the lower limit of the difference, for this pair alone.
      high: pairwise, the upper limit of the difference, for this pair alone.
      p_value: pairwise, two-sided, of the hypothesis that the two models are equal.
      simultaneous_low: pairwise, the lower limit, simultaneous for all comparisons.
      simultaneous_high: pairwise, the upper limit, simultaneous for all comparisons.
      simultaneous_p_value: pairwise, two-sided, adjusted for all comparisons.
      best_set: `[models]` bool, the models that are not significantly worse than the best. The set
        contains the truly best model with probability `confidence_level` or more.
      chi2: `[]`, the statistic of the hypothesis that all models are equal.
      chi2_df: `[]`, its degrees of freedom.
      chi2_p_value: `[]`, its p-value.
      confidence_level: the nominal coverage of the limits and of the set.
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


@on_any_mesh
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
    """Paired differences of models on the same items: intervals, p-values, and the best set.

    d -+ t E(d) for each difference d of two models. E^2 = V_0 + V_1 with V_c = (s_c^2 +
    m max(L_c - s_c^2, 0) / n_c) / n_c, where s_c^2 is the variance in class c of the difference of
    the influence values. L_c is the variance that disagreements of the two models may have which
    were not drawn; m is 1, and up to 5 where hardly a failure of a model was seen. t has Welch's
    degrees of freedom, E^4 / sum_c V_c^2 / (n_c - 1), or those of the clusters. L_c is known for
    metrics with a closed-form interval; others have E = SE(d). A metric without known influence
    values has SE(d) from paired bootstrap replicates, and normal quantiles. Simultaneous limits
    have the quantile of max |T| over all comparisons in place of t, where T is normal, correlated
    as the differences are, and divided by the square root of a drawn variance. `best_set` is that
    of multiple comparisons with the best: a model leaves it if another model is better by more E
    than the quantile of its one-sided maximum. chi2 = d' (C V C')^+ d, with d = C A the differences
    of the estimates A and V their covariance, tests that all models are equal, by the F
    distribution (Hotelling's T^2).

    Args:
      metric: any metric with one value for each score table. The metrics of operating points,
        `recall_at_fpr`, `sensitivity_at_specificity` and `specificity_at_sensitivity`, and those
        that are smooth in the weights need no key; others do.
      scores: `[models, n]`, higher is more positive; two models or more.
      labels: `[n]`, bool or 0 and 1.
      reference: the index of one model, to compare the others with it alone; None compares all
        pairs.
      confidence_level: in (0, 1), of the limits and of the best set.
      key: a JAX random key, for metrics that are resampled. It also seeds the 100,096 draws of
        max |T|, which are the same in every call without a key.
      n_resamples: the number of resamples, for metrics that are resampled.
      stratify: True keeps the number of items of each class fixed in every resample; False draws
        from all items together.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: errors are those of whole clusters, and whole clusters are resampled.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[n]` bool, False for items to leave out.
      amounts: `[n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.
      progress: a function of the number of finished resamples, called after each round of batches.

    Returns:
      A Comparison in the unit of the metric; pairwise `[models, models]`, row minus column, or
      `[models]` with a reference.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores are not `[models, n]` with
        two models or more, labels differ between models, the metric has several values, or a metric
        that is resampled has no key.

    NaN where the metric is NaN. A warning names such models: they stay in the set, and the best
    of the others, their simultaneous limits and chi2 are found without them. Another one says
    when a class has fewer than ten items: limits then rest on disagreements that were not
    drawn. Where two models differ and E is 0, a p-value is NaN, and both stay in the set.
    Between models with the same influence values the difference and its limits are 0 and the
    p-value is 1. Two models without a failure may still be different: their difference is 0,
    with limits around it. A class that one cluster alone has makes errors and limits NaN.
    `standard_error` is SE(d), without L_c. Simultaneous p-values below 1e-5, the reach of the
    draws, are Bonferroni's: the p-value of the pair times the number of pairs, but at most
    1e-5. Limits are not clipped to the range of the metric. Time O(models n log n + models^2
    n), or as `bootstrap`; memory O(models n).

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
    given = (scores, labels, weights, where, amounts)
    items = checks.check_items(*given, along={"clusters": clusters})
    level = checks.check_level(confidence_level)
    check_amounts(metric, items)
    n_models = checks.check_models(items)
    numbers = 3 * N_AT_A_TIME * n_models**2
    checks.check_fits("the number of models", n_models, numbers, "compare fewer at a time")
    if reference is not None:
        checks.check_index("reference", reference, n_models)
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    metric, items = with_influence(metric, items)
    known = has_influence(record_of(metric))
    request.check(needs_key=not known)
    _warn_of_few(items, ids)
    if known:
        estimate, covariance = covariance_of(metric, items, ids)
    else:
        chosen, arrays = choose(metric)
        chosen.refuse_several(arrays, items.scores.shape[-1])
        result = resampled(metric, items, request)
        estimate, covariance = result.estimate, _of_replicates(result.replicates)
    bounds = range_of(metric) if known else None
    return _comparison(estimate, covariance, bounds, key, level, reference)


def comparison_of_replicates(
    result: BootstrapResult, *, confidence_level: float, key: Array | None
) -> Comparison:
    """A Comparison from replicates `[n_resamples, models]` of the same resamples."""
    covariance = _of_replicates(result.replicates)
    return _comparison(result.estimate, covariance, None, key, confidence_level, None)


def _warn_of_few(items: Items, ids: Clusters | None) -> None:
    for what, size in (smallest_sizes(items, ids) or {}).items():
        if 0 < size < _FEWEST:
            warnings.warn(
                f"a comparison rests on {size:.3g} {what}: with fewer than {_FEWEST} models may "
                "differ on items of which none was drawn, and in simulations some 95 % limits of "
                f"differences cover less than 88 %: add {what}",
                stacklevel=4,
            )


def _of_replicates(replicates: Array) -> Covariance:
    """The covariance of replicates, of which there are so many that its error is small."""
    total = _covariance_of(replicates)
    unlimited = np.float64(np.inf)
    return Covariance(total, None, (unlimited, unlimited, unlimited), np.float64(0))


def _comparison(
    estimate: Array,
    covariance: Covariance,
    bounds: tuple[Array, Array] | None,
    key: Array | None,
    confidence_level: float,
    reference: int | None,
) -> Comparison:
    _warn_of_undefined(estimate)
    key = jax.random.key(0) if key is None else key
    bits = jax.random.bits(key, (2,), jnp.uint32)
    best_set, values = _compared(estimate, covariance, bounds, bits, confidence_level, reference)
    numbers = {name: as_default(x) for name, x in values.items()}
    return Comparison(**numbers, best_set=best_set, confidence_level=confidence_level)


def _warn_of_undefined(estimate: Array) -> None:
    if not is_concrete(estimate):
        return
    lost = np.flatnonzero(np.isnan(np.asarray(estimate)))
    if 0 < len(lost) < len(estimate):
        models = "models " if len(lost) > 1 else "model "
        warnings.warn(
            f"the metric of {models}{', '.join(map(str, lost[:8]))}{', ...' * (len(lost) > 8)} is "
            "undefined, as a class is absent or a score is NaN: the other models are compared "
            "without",
            stacklevel=5,
        )


@double_program()
def _covariance_of(replicates: Array) -> Array:
    """The covariance `[models, models]` of replicates `[n_resamples, models]`, without NaN rows.

    A model without any value does not cost the others their rows; its covariances are NaN.
    """
    replicates = replicates.astype(jnp.float64)
    lost = jnp.all(jnp.isnan(replicates), axis=0)
    defined = ~jnp.any(jnp.isnan(replicates) & ~lost, axis=1, keepdims=True)
    count = jnp.sum(defined)
    kept = jnp.where(defined, replicates, 0)
    centred = jnp.where(defined, kept - jnp.sum(kept, axis=0) / count, 0)
    covariance = centred.T @ centred / (count - 1)
    return jnp.where(lost | lost[:, None], jnp.nan, covariance)


@double_program("reference")
def _compared(
    estimate: Array,
    covariance: Covariance,
    bounds: tuple[Array, Array] | None,
    bits: Array,
    level: Array,
    reference: int | None,
) -> tuple[Array, dict[str, Array]]:
    """The best set, and the other arrays of a Comparison by name."""
    estimate = estimate.astype(jnp.float64)
    total = covariance.total
    lost = jnp.isnan(estimate) | jnp.isnan(jnp.diagonal(total))
    without = lost[:, None] | lost
    difference = estimate[:, None] - estimate[None, :]
    pairs = pairs_of(estimate, covariance, bounds)
    z = numerics.divide(difference, pairs.error, jnp.where(difference == 0, 0.0, jnp.nan))
    largest, above = _largest(jnp.where(without, 0, total), pairs, without, bits, reference)
    margin = t_quantile((1 + level) / 2, pairs.df) * pairs.error
    wide = jnp.maximum(jnp.quantile(largest, level) * pairs.error, margin)
    # Draws at least as extreme as z, with a tolerance because the two are rounded differently.
    within = jnp.searchsorted(jnp.sort(largest), jnp.abs(z).ravel() * (1 - 1e-9)).reshape(z.shape)
    adjusted = (len(largest) - within.astype(jnp.float64) + 1) / (len(largest) + 1)
    p_value = t_survival(jnp.abs(z), pairs.df)
    n_pairs = len(z) - 1 if reference is not None else len(z) * (len(z) - 1) // 2
    beyond = within == len(largest)
    adjusted = jnp.where(beyond, jnp.minimum(adjusted, n_pairs * p_value), adjusted)
    adjusted = jnp.maximum(adjusted, p_value)
    pairwise = {
        "difference": difference,
        "standard_error": pairs.standard_error,
        "low": difference - margin,
        "high": difference + margin,
        "p_value": p_value,
        "simultaneous_low": difference - wide,
        "simultaneous_high": difference + wide,
        "simultaneous_p_value": jnp.where(jnp.isnan(z), jnp.nan, adjusted),
    }
    if reference is not None:
        pairwise = {name: x[:, reference] for name, x in pairwise.items()}
    behind = jnp.max(jnp.where(jnp.eye(len(z), dtype=bool) | without, -jnp.inf, -z), axis=1)
    chi2, df = _equality(estimate, total, lost)
    fewest = jnp.min(jnp.where(pairs.error > 0, pairs.df, jnp.inf))
    rest = {"chi2": chi2, "chi2_df": df, "chi2_p_value": hotelling_survival(chi2, df, fewest)}
    best_set = ~(behind > jnp.quantile(above, level, axis=0))
    return best_set, {"estimate": estimate, **pairwise, **rest}


def _largest(
    covariance: Array, pairs: Pairs, without: Array, bits: Array, reference: int | None
) -> tuple[Array, Array]:
    """Simulated maxima: of |T| over all comparisons, `[draws]`, and, for each model, of the lead of
    any other model over it, in standard errors, `[draws, models]`."""
    values, vectors = jnp.linalg.eigh(covariance)
    factor = vectors * jnp.sqrt(jnp.maximum(values, 0))
    key = jax.random.wrap_key_data(bits, impl="threefry2x32")
    spread = jnp.where(without, 0, pairs.standard_error)

    def some(number: Array) -> tuple[Array, Array]:
        n_models = len(covariance)
        shape = (N_AT_A_TIME, n_models + 3)
        normal = jax.random.normal(jax.random.fold_in(key, number), shape, jnp.float32)
        normal = normal.astype(jnp.float64)
        models = normal[:, :n_models] @ factor.T
        z = numerics.divide(models[:, :, None] - models[:, None, :], spread, 0.0)
        errors = jnp.sqrt(pairs.drawn_variances(normal[:, n_models:]))
        t = jnp.where(spread > 0, z / errors, 0.0)
        compared = t if reference is None else t[:, :, reference : reference + 1]
        others = jnp.where(jnp.eye(len(spread), dtype=bool), -jnp.inf, -t)
        return jnp.max(jnp.abs(compared), axis=(1, 2)), jnp.max(others, axis=2)

    largest, above = lax.map(some, jnp.arange(N_DRAWS // N_AT_A_TIME))
    return largest.ravel(), above.reshape(-1, len(spread))


def _equality(estimate: Array, covariance: Array, lost: Array) -> tuple[Array, Array]:
    """The chi-squared statistic of equal models, and its degrees of freedom, of those not lost."""
    order = jnp.argsort(lost, stable=True)
    estimate, covariance, lost = estimate[order], covariance[order][:, order], lost[order]
    none = jnp.isnan(estimate[0]) | lost[1]
    estimate = jnp.where(lost, estimate[0], estimate)
    covariance = jnp.where(lost[:, None] | lost, 0, covariance)
    differences = estimate[1:] - estimate[0]
    contrast = covariance[1:, 1:] - covariance[1:, :1] - covariance[:1, 1:] + covariance[0, 0]
    contrast = jnp.where(lost[1:, None] | lost[1:], 0, contrast)
    values, vectors = jnp.linalg.eigh(contrast)
    # The pseudo-inverse: directions without variance have no degree of freedom.
    counted = values > 1e-10 * jnp.max(jnp.abs(jnp.diagonal(covariance)))
    along = vectors.T @ differences
    chi2 = jnp.sum(jnp.where(counted, along**2 / jnp.where(counted, values, 1), 0))
    return jnp.where(none, jnp.nan, chi2), jnp.sum(counted).astype(jnp.float64)
