"""Influence functions by one gradient with respect to weights, and the variances that they give."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics import _checks, _numerics, _sorting
from jaxmetrics._table import (
    ScoreTable,
    at_hand,
    at_least_one,
    class_weights,
    on_host,
    resolve,
    static_options,
    traits,
)
from jaxmetrics._types import Array, ArrayLike, HostArray, Items
from jaxmetrics.inference._order import NEGATIVE, POSITIVE, Ordered, in_order, starts, undefined
from jaxmetrics.inference._rules import Moments
from jaxmetrics.inference._rules import standard_error as standard_error_of

_IN_BOUNDS = "promise_in_bounds"
Metric: TypeAlias = Callable[..., Any]
# The cluster of each item, from 0, and how many there are.
Clusters: TypeAlias = tuple[HostArray, int]


class Deviations(NamedTuple):
    """What the items of one table contribute to the error of a metric, `[n]` in order of score.

    Attributes:
      estimate: the value of the metric.
      gradient: w_i * d metric / d w_i, which sums to 0 over all items.
      centred: the same at fixed total weights of the classes; it sums to 0 over each class.
      weights: of the items, 0 for those that are left out.
      table: of the problem.
    """

    estimate: Array
    gradient: Array
    centred: Array
    weights: Array
    table: ScoreTable


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
    items = _checks.check_items(scores, labels, weights, where)
    return as_default(_by_item(metric, items, _influences)[1])


def standard_error(
    metric: Metric,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Array:
    """The standard error of a metric from its influence function.

    SE^2 = sum over classes c of n_c / (n_c - 1) sum_(i in c) (w_i d metric / d w_i)^2, which for
    `roc_auc` is DeLong's variance. With clusters, of which items within one may depend on each
    other: K / (K - 1) sum_k (sum_(i in k) w_i d metric / d w_i)^2 over K clusters.

    Args:
      metric: one that is smooth in the weights and has one value a table, as for `influence`.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      clusters: `[n]`, integers or strings, the same for items that belong together (a patient, a
        user); not traced.

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
    items = _checks.check_items(scores, labels, weights, where)
    ids = None if clusters is None else _checks.check_clusters(clusters, items)
    return as_default(estimate_and_error(metric, items, ids)[1])


def covariance(
    metric: Metric,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Array:
    """The covariance of a metric between models that score the same items.

    Cov_ab = sum over classes c of n_c / (n_c - 1) sum_(i in c) (w_i d metric_a / d w_i)
    (w_i d metric_b / d w_i); the diagonal is `standard_error` squared.

    Args:
      metric: one that is smooth in the weights and has one value a table, as for `influence`.
      scores: `[..., models, n]`, higher is more positive.
      labels: `[n]` or `[..., models, n]`, bool or 0 and 1.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      clusters: `[n]`, integers or strings, the same for items that belong together; not traced.

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
    items = _checks.check_items(scores, labels, weights, where)
    if items.scores.ndim < 2:
        raise ValueError(
            f"scores must be [..., models, n], got {list(items.scores.shape)}: write "
            "standard_error(...) ** 2 for one model"
        )
    ids = None if clusters is None else _checks.check_clusters(clusters, items)
    return as_default(estimate_and_covariance(metric, items, ids)[1])


def moments_of(
    metric: Metric, items: Items, slope_in: str | None = None
) -> tuple[Moments, Array | None]:
    """The moments of a metric and its derivative by one option, in float64."""
    function, static, arrays = smooth(metric)
    items = at_least_one(items)
    return _moments(items, order_now(items), arrays, function, static, slope_in)


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


def acceleration(metric: Metric, items: Items) -> Array:
    """(1/6) S3 / S2^1.5 with S_k = sum over classes of sum phi^k / n_c^k, in float64."""
    return _skewness(_by_item(metric, items, _contributions)[1])


@_numerics.double_program()
def _skewness(contributions: Array) -> Array:
    squares = jnp.sum(contributions**2, axis=-1)
    return jnp.sum(contributions**3, axis=-1) / jnp.maximum(squares, 1e-300) ** 1.5 / 6


def _by_item(
    metric: Metric, items: Items, of_item: Callable[..., Array], clusters: Clusters | None = None
) -> tuple[Array, Array]:
    """The metric, and `[..., n]` or, summed over clusters, `[..., clusters]`; in float64."""
    function, static, arrays = smooth(metric)
    n, items = items.scores.shape[-1], at_least_one(items)
    order = order_now(items)
    ids, n_clusters = (None, n) if clusters is None else clusters
    result: tuple[Array, Array] = _item_units(
        items, order, arrays, ids, function, static, of_item, n_clusters
    )
    return result


@_numerics.double_program()
def _error_of(moments: Moments) -> Array:
    return standard_error_of(moments)


@_numerics.double_program()
def _norms(units: Array) -> Array:
    """The length of each row."""
    return jnp.sqrt(jnp.sum(units**2, axis=-1))


@_numerics.double_program()
def _products(units: Array) -> Array:
    """The products of rows, of which each column is added up."""
    return units @ jnp.swapaxes(units, -1, -2)


def smooth(metric: Metric) -> tuple[Metric, tuple[tuple[str, Any], ...], dict[str, Any]]:
    """The function of a table that a metric stands for, and its options, static and arrays.

    Raises if its gradient is no influence function.
    """
    name = getattr(traits(metric).public, "__name__", repr(metric))
    if not traits(metric).smooth:
        raise TypeError(
            f"{name} has no usable gradient, as its error depends on the density of the scores: "
            "write bootstrap(metric, scores, labels, key=...), or confidence_interval(..., "
            "key=...), which resample"
        )
    function, options = resolve(metric)
    static, arrays = static_options(options)
    return function, static, arrays


def order_now(items: Items) -> Ordered | None:
    """The order of items that NumPy may sort at once; None where that is for the program to do."""
    host = at_hand(items)
    return in_order(host) if on_host(host.scores, host.labels, host.where) else None


def _deviations(items: Items, order: Ordered, of_table: Metric) -> Deviations:
    """Of one problem `[n]`."""
    positives, negatives = in_order_weights(items, order)
    rows = lax.optimization_barrier(jnp.cumsum(starts(order.keys), dtype=jnp.int32) - 1)
    thresholds = (
        jnp.full(rows.shape, -jnp.inf)
        .at[rows]
        .max(
            _sorting.scores_of_keys(order.keys, items.scores),
            indices_are_sorted=True,
            mode=_IN_BOUNDS,
        )
    )

    def by_row(x: Array) -> Array:
        sums = jnp.zeros_like(x).at[rows].add(x, indices_are_sorted=True, mode=_IN_BOUNDS)
        return sums.astype(jnp.float64)

    def value(positives: Array, negatives: Array) -> Array:
        return jnp.asarray(of_table(ScoreTable(thresholds, positives, negatives)), jnp.float64)

    table = ScoreTable(thresholds, by_row(positives), by_row(negatives))
    estimate, pull_back = jax.vjp(value, table.positives, table.negatives)
    if estimate.ndim:
        raise ValueError(
            f"the metric must have one value a table, got {list(estimate.shape)}: take one limit "
            "at a time, or write bootstrap(...)"
        )
    slopes = [_sorting.take(slope, rows) for slope in pull_back(jnp.ones(()))]
    is_positive = order.kinds == POSITIVE
    weights = jnp.where(is_positive, positives, negatives)
    centres = [
        _numerics.divide(jnp.sum(w * slope), jnp.sum(w), 0.0)
        for w, slope in zip((positives, negatives), slopes, strict=True)
    ]
    gradient = jnp.where(is_positive, slopes[0], slopes[1])
    centred = gradient - jnp.where(is_positive, centres[0], centres[1])
    return Deviations(estimate, weights * gradient, weights * centred, weights, table)


def in_order_weights(items: Items, order: Ordered) -> tuple[Array, Array]:
    """What each item `[n]`, in order, adds to the positives and to the negatives."""
    if items.weights is None and items.amounts is None:
        kinds = (order.kinds == POSITIVE, order.kinds == NEGATIVE)
        return kinds[0].astype(jnp.int32), kinds[1].astype(jnp.int32)
    positives, negatives = class_weights(items)
    return _sorting.take(positives, order.item), _sorting.take(negatives, order.item)


def _batched(function: Metric, items: Items, order: Ordered | None, *extra: Array) -> Any:
    """`function(items, order, undefined, *extra)` for each problem of a batch."""
    items = jax.tree.map(jnp.asarray, items)
    order = in_order(items) if order is None else jax.tree.map(jnp.asarray, order)
    bad = undefined(items)
    arrays = {k: v for k, v in items._asdict().items() if v is not None and k != "in_order"}
    shape = jnp.broadcast_shapes(*(x.shape for x in arrays.values()))
    items = Items(**{k: jnp.broadcast_to(x, shape) for k, x in arrays.items()})
    order = Ordered(*(jnp.broadcast_to(x, shape) for x in order))
    bad = jnp.broadcast_to(bad, shape[:-1])
    mapped: Any = lambda items, order, bad: function(items, order, bad, *extra)  # noqa: E731
    for _ in shape[:-1]:
        mapped = jax.vmap(mapped)
    return mapped(items, order, bad)


def _by_class(order: Ordered, deviations: Deviations) -> tuple[Array, Array]:
    """n_c, the items with weight, of (negatives, positives), and n_c of each item's class."""
    is_positive = order.kinds == POSITIVE
    weighty = deviations.weights > 0
    counts = jnp.stack([jnp.sum(weighty & ~is_positive), jnp.sum(weighty & is_positive)])
    counts = counts.astype(jnp.float64)
    return counts, jnp.where(is_positive, counts[1], counts[0])


@_numerics.double_program(3, 4, 5)
def _moments(
    items: Items,
    order: Ordered | None,
    options: dict[str, Any],
    function: Metric,
    static: tuple[tuple[str, Any], ...],
    slope_in: str | None,
) -> tuple[Moments, Array | None]:
    def of_table(table: ScoreTable, **varied: Array) -> Array:
        value: Array = function(table, **{**options, **varied, **dict(static)})
        return value

    def of_one(items: Items, order: Ordered, bad: Array) -> tuple[Moments, Array | None]:
        found = _deviations(items, order, of_table)
        counts, _ = _by_class(order, found)

        def of_class(kind: int) -> tuple[Array, Array]:
            n, members = counts[kind], order.kinds == kind
            weights = jnp.where(members, found.weights, 0)
            size = _numerics.divide(jnp.sum(weights) ** 2, jnp.sum(weights**2), 0.0)
            squares = jnp.sum(jnp.where(members, found.centred, 0) ** 2)
            return size * squares * _numerics.divide(n, n - 1, jnp.nan), size

        variances, sizes = zip(of_class(NEGATIVE), of_class(POSITIVE), strict=True)
        estimate = jnp.where(bad, jnp.nan, found.estimate)
        slope = None
        if slope_in is not None:
            at = jnp.asarray(options[slope_in], jnp.float64)
            slope = jax.grad(lambda x: of_table(found.table, **{slope_in: x}))(at)
        return Moments(estimate, variances, sizes), slope

    result: tuple[Moments, Array | None] = _batched(of_one, items, order)
    return result


def _influences(found: Deviations, n: Array) -> Array:
    return n * found.centred


def _contributions(found: Deviations, n: Array) -> Array:
    return found.centred


def _errors(found: Deviations, n: Array) -> Array:
    """Whose squares, and products between models, sum to the variance and covariance."""
    unbiased = jnp.sqrt(_numerics.divide(n, n - 1, jnp.nan))
    return jnp.where(found.weights > 0, unbiased * found.centred, 0)


@_numerics.double_program(4, 5, 6, 7)
def _item_units(
    items: Items,
    order: Ordered | None,
    options: dict[str, Any],
    ids: Array | None,
    function: Metric,
    static: tuple[tuple[str, Any], ...],
    of_item: Callable[[Deviations, Array], Array],
    n_units: int,
) -> tuple[Array, Array]:
    of_table = functools.partial(function, **options, **dict(static))

    def of_one(items: Items, order: Ordered, bad: Array) -> tuple[Array, Array]:
        found = _deviations(items, order, of_table)
        _, n = _by_class(order, found)
        units = of_item(found, n) if ids is None else found.gradient
        units = (
            jnp.zeros_like(units).at[order.item].set(units, unique_indices=True, mode=_IN_BOUNDS)
        )
        if ids is not None:
            units = _cluster_errors(units, ids, n_units, _valid(items))
        estimate = jnp.where(bad, jnp.nan, found.estimate)
        return estimate, units[:n_units] + 0 * estimate

    result: tuple[Array, Array] = _batched(of_one, items, order)
    return result


def _cluster_errors(units: Array, ids: Array, n_clusters: int, valid: Array) -> Array:
    """As `_errors`, of clusters rather than items."""
    sums = jnp.zeros(n_clusters).at[ids].add(units)
    used = jnp.zeros(n_clusters, bool).at[ids].max(valid)
    k = jnp.sum(used).astype(jnp.float64)
    mean = _numerics.divide(jnp.sum(sums), k, 0.0)
    return jnp.where(used, jnp.sqrt(_numerics.divide(k, k - 1, jnp.nan)) * (sums - mean), 0)


def _valid(items: Items) -> Array:
    valid = jnp.ones(items.scores.shape, bool) if items.where is None else items.where
    return jnp.asarray(valid if items.weights is None else valid & (items.weights > 0))


def as_default(x: Array) -> Array:
    """In JAX's default float, of a double precision array that may be traced."""
    return _rounded(x, _numerics.default_float())


@_numerics.double_program(1)
def _rounded(x: Array, dtype: Any) -> Array:
    return x.astype(dtype)
