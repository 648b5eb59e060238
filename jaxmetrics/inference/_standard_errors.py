"""Influence values, standard errors and covariances of a metric."""

from __future__ import annotations

from collections.abc import Callable

from jaxmetrics._base import checks
from jaxmetrics._base.double import as_default
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import check_amounts, resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.clusters import estimate_and_error
from jaxmetrics.inference._influence.covariance import covariance_of
from jaxmetrics.inference._influence.on_mesh import (
    axis_of_parts,
    covariance_on_mesh,
)
from jaxmetrics.inference._influence.variance import influence_values
from jaxmetrics.inference._intervals.metrics import has_influence, with_influence


@takes_metric
@on_any_mesh
def influence(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The influence function of a metric, evaluated at each item.

    phi_i = n_c w_i d metric / d w_i, with n_c the number of items of i's class and the total weight
    of each class held fixed. Another item like i in place of an average one of its class changes
    the metric by about phi_i / n_c. The values of each class sum to 0. For `roc_auc` they are
    DeLong's placement values minus the AUC.

    Args:
      metric: a metric with one value for each score table: `roc_auc`, `partial_auc`,
        `average_precision`, `recall_at_fpr`, `sensitivity_at_specificity`,
        `specificity_at_sensitivity`, your own that is smooth in the weights, or a functools.partial
        of one.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[..., n]` bool, False for items to leave out; their influence is 0.

    Returns:
      `[..., n]`, in the unit of the metric.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; the influence values of the
        metric are not known, or it has several values. `bootstrap` takes such metrics.

    NaN where the metric is NaN. Time O(n log n), memory O(n) for each row of the batch.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.influence(jm.roc_auc, [.1, .4, .35, .8], [0, 0, 1, 1]))
      [ 0.25 -0.25 -0.25  0.25]

    Reference: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two
    or more correlated receiver operating characteristic curves", Biometrics 44, 1988.
    """
    record_of(metric)  # refused before any data
    items = checks.check_items(scores, labels, weights, where)
    metric, items = with_influence(metric, items)
    return as_default(influence_values(metric, items))


@takes_metric
@on_any_mesh
def standard_error(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    key: Array | None = None,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    progress: Callable[[int], None] | None = None,
    axis_name: AxisName = None,
) -> Array:
    """The standard error of a metric, from its influence function or from resamples.

    SE^2 = sum over classes c of n_c / (n_c - 1) sum_(i in c) z_i^2, with z_i = w_i d metric / d w_i
    minus its mean over the n_c items of the class; for `roc_auc` it is DeLong's. With clusters
    SE^2 = sum_k (sum_c z_kc)^2, where z_kc = (S_kc - mean of S_kc over the K_c clusters with items
    of class c) / sqrt((1 - w) g_c + w g), S_kc = sum_(i in k and c) w_i d metric / d w_i, and w is
    the share of clusters with both classes. g_c is 1 - 1 / K_c for clusters of one size, and less
    for others, as the page of formulas says; g is that of all items. For an operating
    point, such as `recall_at_fpr`, the influence follows from the slope of the ROC curve at the
    threshold in place of a gradient. For other metrics SE is the standard deviation of bootstrap
    replicates.

    Args:
      metric: any metric. `roc_auc`, `partial_auc`, `average_precision`, `recall_at_fpr`,
        `sensitivity_at_specificity`, `specificity_at_sensitivity` and others that are smooth in the
        weights must have one value for each score table; the rest need a key.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      key: a JAX random key, for metrics that are resampled.
      n_resamples: the number of resamples, for metrics that are resampled.
      stratify: True keeps the number of items of each class fixed in every resample; False draws
        from all items together, as clusters always are.
      clusters: `[n]`, integers or strings, not traced. Items of one cluster (a patient, a user) may
        depend on each other: the error is that of whole clusters.
      weights: `[..., n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.
      progress: a function of the number of finished resamples, called after each round of batches.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.
        Not with clusters, nor for metrics that are resampled.

    Returns:
      `[...]`, in the unit of the metric; `[..., limits]` of a recall at several limits.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a metric with influence values
        has several values, or one that is resampled has no key.

    NaN where the metric is NaN, and, without resamples, where a class has one item, or one cluster
    has all items of a class. 0 where the classes are perfectly separated: `confidence_interval`
    serves this case too. Too small where few heavy items have most of the weight: with lognormal
    weights (sigma 1) by 2 to 5 % with 100 items in the smaller class and 10 to 12 % with 20;
    `clusters` of one item each allow for that. Time O(n log n), memory O(n) for each row of the
    batch; as `bootstrap` if resampled.

    Example:
      >>> import jaxmetrics as jm
      >>> error = jm.standard_error(jm.roc_auc, [.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(f"{error:.4f}")
      0.3536

    References: DeLong et al., Biometrics 44, 1988; N. A. Obuchowski, "Nonparametric analysis of
    clustered ROC curve data", Biometrics 53, 1997.
    """
    given = (scores, labels, weights, where, amounts)
    record_of(metric)  # refused before any data
    items = checks.check_items(*given, along={"clusters": clusters})
    check_amounts(metric, items)
    metric, items = with_influence(metric, items)
    known = has_influence(record_of(metric))
    axis_name = axis_of_parts(axis_name, clusters=clusters, resamples=not known)
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    request.check(needs_key=not known)
    if known:
        return as_default(estimate_and_error(metric, items, ids, axis_name)[1])
    chosen, arrays = choose(metric)
    chosen.refuse_tree(arrays, items.scores.shape[-1])
    return resampled(metric, items, request).standard_error


@takes_metric
@on_any_mesh
def covariance(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    axis_name: AxisName = None,
) -> Array:
    """The covariance matrix of a metric between models that score the same items.

    Cov_ab = sum over classes c of n_c / (n_c - 1) sum_(i in c) z_ia z_ib, with z_ia = w_i
    d metric_a / d w_i minus its mean over the n_c items of the class. With clusters Cov_ab =
    sum_k (sum_c z_kc)_a (sum_c z_kc)_b, with z_kc as in `standard_error`. The diagonal is
    `standard_error` squared.

    Args:
      metric: a metric whose influence values are known and that has one value for each score
        table, as for `influence`.
      scores: `[..., models, n]`, higher is more positive.
      labels: `[n]` or `[..., models, n]`, bool or 0 and 1.
      clusters: `[n]`, integers or strings, not traced. Items of one cluster may depend on each
        other: the covariance is that of whole clusters.
      weights: shaped as labels, not negative; an item of weight k counts k times in the metric, but
        is one observation.
      where: shaped as labels, bool, False for items to leave out.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the value of the whole.
        Not with clusters.

    Returns:
      `[..., models, models]`, in the squared unit of the metric.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores have no axis of models, or
        the influence values of the metric are not known, or it has several values; `bootstrap`
        takes such metrics.

    NaN as for `standard_error`. Time O(models n log n + models^2 n), memory O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [[.1, .4, .35, .8], [.2, .5, .9, .1]]
      >>> print(jm.covariance(jm.roc_auc, scores, [0, 0, 1, 1]))
      [[ 0.125 -0.125]
       [-0.125  0.25 ]]

    Reference: X. Sun and W. Xu, "Fast implementation of DeLong's algorithm for comparing the areas
    under correlated receiver operating characteristic curves", IEEE Signal Processing Letters 21,
    2014.
    """
    record_of(metric)  # refused before any data
    items = checks.check_items(scores, labels, weights, where, along={"clusters": clusters})
    if items.scores.ndim < 2:
        raise ValueError(
            f"scores must be [..., models, n], got {list(items.scores.shape)}: write "
            "standard_error(...) ** 2 for one model"
        )
    axis_name = axis_of_parts(axis_name, clusters=clusters)
    ids = checks.check_clusters(clusters, items)
    metric, items = with_influence(metric, items)
    if axis_name is not None:
        return as_default(covariance_on_mesh(metric, items, axis_name))
    return as_default(covariance_of(metric, items, ids)[1].total)
