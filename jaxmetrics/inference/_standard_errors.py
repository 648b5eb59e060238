"""Influence values, standard errors and covariances of a metric."""

from __future__ import annotations

from collections.abc import Callable

from jaxmetrics._base import checks
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.metric import MetricLike, record_of
from jaxmetrics.inference._bootstrap.bootstrap import check_amounts, resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.variance import (
    as_default,
    estimate_and_covariance,
    estimate_and_error,
    influence_values,
)


def influence(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The influence of each item on a metric.

    phi_i = n_c w_i d metric / d w_i, with n_c the items of i's class and the class totals held
    fixed. The metric with another item like i in place of an average one of its class is about
    metric + phi_i / n_c; over each class the values sum to 0. One gradient gives them all, ties
    and weights included. For `roc_auc` they are DeLong's placement values minus the AUC.

    Args:
      metric: one that is smooth in the weights and has one value a table: `roc_auc`,
        `partial_auc`, `average_precision`, your own, or a functools.partial of one.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; their influence is 0.

    Returns:
      `[..., n]`, in the unit of the metric.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, the metric has
        several values a table or no usable gradient; `bootstrap` serves those.

    NaN where the metric is. Time O(n log n), memory O(n) for each row of the batch.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.influence(jm.roc_auc, [.1, .4, .35, .8], [0, 0, 1, 1]))
      [ 0.25 -0.25 -0.25  0.25]

    Reference: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two
    or more correlated receiver operating characteristic curves", Biometrics 44, 1988.
    """
    items = checks.check_items(scores, labels, weights, where)
    return as_default(influence_values(metric, items))


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
) -> Array:
    """The standard error of a metric, from its influence function or from resamples.

    SE^2 = sum over classes c of n_c / (n_c - 1) sum_(i in c) (w_i d metric / d w_i)^2, which for
    `roc_auc` is DeLong's variance. With clusters, of which items within one may depend on each
    other: K / (K - 1) sum_k (sum_(i in k) w_i d metric / d w_i)^2 over K clusters. For a metric
    that is not smooth in the weights it is the standard deviation of bootstrap replicates.

    Args:
      metric: any. One that is smooth in the weights, such as `roc_auc`, `partial_auc` and
        `average_precision`, must have one value a table; others need a key.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      key: a JAX random key, for metrics that are resampled.
      n_resamples: how many resamples those take.
      stratify: draw each class by itself, so that its size stays; else from all items.
      clusters: `[n]`, integers or strings, the same for items that belong together (a patient, a
        user); not traced.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, for metrics that take them.
      memory_budget: the bytes that one batch of resamples may take.
      progress: called with the number of resamples that are ready, as they become so.

    Returns:
      `[...]`, in the unit of the metric.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a smooth metric
        has several values a table, or a key is missing for one that is not smooth.

    NaN where the metric is, and where a class has one item or there is one cluster. 0 where the
    classes are perfectly separated: `confidence_interval` has an interval for that case too. Time
    O(n log n), memory O(n) for each row of the batch; of resampled metrics as `bootstrap`.

    Example:
      >>> import jaxmetrics as jm
      >>> error = jm.standard_error(jm.roc_auc, [.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(f"{error:.4f}")
      0.3536

    References: DeLong et al., Biometrics 44, 1988; N. A. Obuchowski, "Nonparametric analysis of
    clustered ROC curve data", Biometrics 53, 1997.
    """
    items = checks.check_items(scores, labels, weights, where, amounts)
    check_amounts(metric, items)
    ids = checks.check_clusters(clusters, items)
    if record_of(metric).smooth:
        return as_default(estimate_and_error(metric, items, ids)[1])
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    found: Array = resampled(metric, items, request).standard_error
    return found


def covariance(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The covariance of a metric between models that score the same items.

    Cov_ab = sum over classes c of n_c / (n_c - 1) sum_(i in c) (w_i d metric_a / d w_i)
    (w_i d metric_b / d w_i); the diagonal is `standard_error` squared.

    Args:
      metric: one that is smooth in the weights and has one value a table, as for `influence`.
      scores: `[..., models, n]`, higher is more positive.
      labels: `[n]` or `[..., models, n]`, bool or 0 and 1.
      clusters: `[n]`, integers or strings, the same for items that belong together; not traced.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.

    Returns:
      `[..., models, models]`.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, the metric has
        several values a table or no usable gradient; `bootstrap` serves those.

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
    items = checks.check_items(scores, labels, weights, where)
    if items.scores.ndim < 2:
        raise ValueError(
            f"scores must be [..., models, n], got {list(items.scores.shape)}: write "
            "standard_error(...) ** 2 for one model"
        )
    ids = checks.check_clusters(clusters, items)
    return as_default(estimate_and_covariance(metric, items, ids)[1])
