"""Influence functions by one gradient with respect to weights, and the variances that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics.inference._influence.gradient import (
    Metric,
    Problems,
    Smooth,
    by_row,
    counts_of,
    in_order_weights,
    of_each,
    problems_of,
    slopes_of,
    smooth,
)
from jaxmetrics.inference._intervals.rules import Moments
from jaxmetrics.inference._intervals.rules import standard_error as standard_error_of

# The cluster of each item, from 0, and how many there are.
Clusters: TypeAlias = tuple[HostArray, int]


def influence(
    metric: Metric,
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
    return as_default(_by_item(metric, items, _influences)[1])


def standard_error(
    metric: Metric,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The standard error of a metric from its influence function.

    SE^2 = sum over classes c of n_c / (n_c - 1) sum_(i in c) (w_i d metric / d w_i)^2, which for
    `roc_auc` is DeLong's variance. With clusters, of which items within one may depend on each
    other: K / (K - 1) sum_k (sum_(i in k) w_i d metric / d w_i)^2 over K clusters.

    Args:
      metric: one that is smooth in the weights and has one value a table, as for `influence`.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      clusters: `[n]`, integers or strings, the same for items that belong together (a patient, a
        user); not traced.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, in the unit of the metric.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, the metric has
        several values a table or no usable gradient; `bootstrap` serves those.

    NaN where the metric is, and where a class has one item or there is one cluster. 0 where the
    classes are perfectly separated: `confidence_interval` has an interval for that case too. Time
    O(n log n), memory O(n) for each row of the batch.

    Example:
      >>> import jaxmetrics as jm
      >>> error = jm.standard_error(jm.roc_auc, [.1, .4, .35, .8], [0, 0, 1, 1])
      >>> print(f"{error:.4f}")
      0.3536

    References: DeLong et al., Biometrics 44, 1988; N. A. Obuchowski, "Nonparametric analysis of
    clustered ROC curve data", Biometrics 53, 1997.
    """
    items = checks.check_items(scores, labels, weights, where)
    ids = None if clusters is None else checks.check_clusters(clusters, items)
    return as_default(estimate_and_error(metric, items, ids)[1])


def covariance(
    metric: Metric,
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
    ids = None if clusters is None else checks.check_clusters(clusters, items)
    return as_default(estimate_and_covariance(metric, items, ids)[1])


def moments_of(
    metric: Metric, items: Items, slope_in: str | None = None
) -> tuple[Moments, Array | None]:
    """The moments of a metric and its derivative by one option, in float64."""
    known, options = smooth(metric)
    problems, n_rows = problems_of(items, known)
    return _moments(problems, options, known, slope_in, n_rows)


def estimate_and_error(
    metric: Metric, items: Items, clusters: Clusters | None
) -> tuple[Array, Array]:
    """The metric `[...]` and its standard error, in float64 whatever the x64 mode."""
    if clusters is None:
        moments, _ = moments_of(metric, items)
        return moments.estimate, _error_of(moments)
    estimate, errors = _by_item(metric, items, _errors, clusters)
    return estimate, _norms(errors)


def estimate_and_covariance(
    metric: Metric, items: Items, clusters: Clusters | None
) -> tuple[Array, Array]:
    """The metric `[..., models]` and its covariance, in float64 whatever the x64 mode."""
    estimate, errors = _by_item(metric, items, _errors, clusters)
    return estimate, _products(errors)


def acceleration(metric: Metric, items: Items, clusters: Clusters | None) -> Array:
    """(1/6) S3 / S2^1.5 with S_k = sum over classes of sum phi^k / n_c^k, in float64.

    With clusters, the sums are over what each contributes.
    """
    return _skewness(_by_item(metric, items, _contributions, clusters)[1])


def _by_item(
    metric: Metric, items: Items, of_item: Callable[..., Array], clusters: Clusters | None = None
) -> tuple[Array, Array]:
    """The metric, and `[..., n]` or, summed over clusters, `[..., clusters]`; in float64."""
    known, options = smooth(metric)
    problems, n_rows = problems_of(items, known)
    ids, n_units = (None, items.scores.shape[-1]) if clusters is None else clusters
    return _item_units(problems, options, ids, known, of_item, n_units, n_rows)


@double_program()
def _error_of(moments: Moments) -> Array:
    return standard_error_of(moments)


@double_program()
def _norms(units: Array) -> Array:
    """The length of each row."""
    return jnp.sqrt(jnp.sum(units**2, axis=-1))


@double_program()
def _products(units: Array) -> Array:
    """The products of rows, of which each column is added up."""
    return units @ jnp.swapaxes(units, -1, -2)


@double_program()
def _skewness(contributions: Array) -> Array:
    squares = jnp.sum(contributions**2, axis=-1)
    return numerics.divide(jnp.sum(contributions**3, axis=-1), squares**1.5, 0.0) / 6


@double_program("metric", "slope_in", "n_rows")
def _moments(
    problems: Problems,
    options: dict[str, Any],
    metric: Smooth,
    slope_in: str | None,
    n_rows: int,
) -> tuple[Moments, Array | None]:
    def of_one(problem: Problems, bad: Array) -> tuple[Moments, Array | None]:
        slopes = slopes_of(problem, metric, options, n_rows)
        weights = in_order_weights(problem.items, problem.order)[::-1]

        def of_class(kind: int) -> tuple[Array, Array]:
            n, weight = counts_of(problem)[kind], weights[kind]
            squares = by_row(weight**2, problem.rows, n_rows)
            size = numerics.divide(jnp.sum(weight) ** 2, jnp.sum(squares), 0.0)
            unbiased = numerics.divide(n, n - 1, jnp.nan)
            return size * unbiased * jnp.sum(squares * slopes.centred[kind] ** 2), size

        variances, sizes = zip(of_class(NEGATIVE), of_class(POSITIVE), strict=True)
        slope = None
        if slope_in is not None:

            def value(option: Array) -> Array:
                settings = {**options, **dict(metric.static), slope_in: option}
                result: Array = metric.function(slopes.table, **settings)
                return result

            slope = jax.grad(value)(jnp.asarray(options[slope_in], jnp.float64))
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        negatives, positives = (variance + 0 * estimate for variance in variances)
        return Moments(estimate, (negatives, positives), sizes), slope

    result: tuple[Moments, Array | None] = of_each(of_one, problems)
    return result


def _influences(centred: Array, n: Array) -> Array:
    return n * centred


def _contributions(centred: Array, n: Array) -> Array:
    return centred


def _errors(centred: Array, n: Array) -> Array:
    """Whose squares, and products between models, sum to the variance and covariance."""
    return jnp.sqrt(numerics.divide(n, n - 1, jnp.nan)) * centred


@double_program("metric", "of_item", "n_units", "n_rows")
def _item_units(
    problems: Problems,
    options: dict[str, Any],
    ids: Array | None,
    metric: Smooth,
    of_item: Callable[[Array, Array], Array],
    n_units: int,
    n_rows: int,
) -> tuple[Array, Array]:
    def of_one(problem: Problems, bad: Array) -> tuple[Array, Array]:
        slopes = slopes_of(problem, metric, options, n_rows)
        order = problem.order
        # Both classes in one table, to be looked up once.
        if ids is None:
            by_class = [
                of_item(slope, n)
                for slope, n in zip(slopes.centred, counts_of(problem), strict=True)
            ]
        else:
            by_class = list(slopes.raw)
        at = problem.rows + n_rows * (order.kinds == POSITIVE)
        positives, negatives = in_order_weights(problem.items, order)
        weights = positives + negatives
        units = sorting.take(jnp.concatenate(by_class), at)
        units = jnp.where(weights > 0, weights * units, 0)
        units = (
            jnp.zeros_like(units)
            .at[order.item]
            .set(units, unique_indices=True, mode="promise_in_bounds")
        )
        if ids is not None:
            valid = jnp.zeros(len(units), bool).at[order.item].set(weights > 0)
            units = _cluster_errors(units, ids, n_units, valid)
        estimate = jnp.where(bad[0], jnp.nan, slopes.estimate)
        return estimate, units[:n_units] + 0 * estimate

    result: tuple[Array, Array] = of_each(of_one, problems)
    return result


def _cluster_errors(units: Array, ids: Array, n_clusters: int, valid: Array) -> Array:
    """As `_errors`, of clusters rather than items."""
    sums = jnp.zeros(n_clusters).at[ids].add(units)
    used = jnp.zeros(n_clusters, bool).at[ids].max(valid)
    k = jnp.sum(used).astype(jnp.float64)
    mean = numerics.divide(jnp.sum(sums), k, 0.0)
    return jnp.where(used, jnp.sqrt(numerics.divide(k, k - 1, jnp.nan)) * (sums - mean), 0)


def as_default(x: Array) -> Array:
    """In JAX's default float, of a double precision array that may be traced."""
    return _rounded(x, numerics.default_float())


@double_program("dtype")
def _rounded(x: Array, dtype: Any) -> Array:
    return x.astype(dtype)
