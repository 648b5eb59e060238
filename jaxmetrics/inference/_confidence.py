"""Confidence intervals of a metric, by the default method of the metric or by a given one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import as_default, library_program
from jaxmetrics._base.host import all_concrete, near_tree, of_all_processes
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, ArrayLike, Items, Mesh
from jaxmetrics._base.warned import FewItems, warn
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import (
    check_amounts,
    resampled,
)
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._bootstrap.result import BootstrapResult, wald_limits
from jaxmetrics.inference._few_successes import warn_of_few_successes
from jaxmetrics.inference._forms import (
    CLOSED,
    Form,
    chosen_method,
    form_of,
    limits_by_clusters,
    limits_of_form,
)
from jaxmetrics.inference._influence.clusters import (
    Clusters,
    estimate_and_error,
    skewness_of_clusters,
)
from jaxmetrics.inference._influence.on_mesh import axis_of_parts
from jaxmetrics.inference._influence.sizes import (
    OF_INTERVALS,
    sizes_of,
    smallest_sizes,
    warn_of_few_inside,
    warn_of_undefined,
)
from jaxmetrics.inference._influence.variance import (
    acceleration,
    moments_of,
)
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.interval import Interval, interval_of
from jaxmetrics.inference._intervals.metrics import (
    error_bars_of,
    has_influence,
    with_influence,
)

RESAMPLING = ("percentile", "basic", "bca", "wilson")
METHODS = ("auto", "closed form", "logit", "wald", *RESAMPLING)


@takes_metric
@on_any_mesh
def confidence_interval(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    confidence_level: float = 0.95,
    method: str = "auto",
    key: Array | None = None,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    mesh: Mesh | None = None,
    progress: Callable[[int], None] | None = None,
    axis_name: AxisName = None,
) -> Interval:
    """A confidence interval for a metric.

    - closed form: for `roc_auc`, `average_precision`, `recall_at_fpr` and its other names
      `sensitivity_at_specificity` and `specificity_at_sensitivity`, and for `partial_auc` with
      min_fpr = min_tpr = 0. The rules were found by simulation on many populations: the coverage
      is near nominal from ten items of each class, and three negatives within `max_fpr`, on. With
      clusters it is that of as many items as vary as much, or the "logit" limits if these are
      further away.
    - logit: expit(logit(A) -+ t SE / (A (1 - A))), with Welch's degrees of freedom for t. With K
      clusters of equal size they are Welch's where each cluster has one class, at most K - 1 where
      each has both classes, and in between otherwise.
    - wald: A -+ z SE.
    - wilson: Wilson's interval for a proportion A of n = A (1 - A) / SE^2 draws, with SE from the
      bootstrap. n is at most the effective size (sum w)^2 / sum w^2 of the positives, or of the
      negatives for a specificity.
    - percentile, basic, bca: from bootstrap replicates. The acceleration of bca is
      (1/6) S3 / S2^1.5, with S_k = sum_c sum phi^k / n_c^k of the influence values phi.
    - auto: "closed form" where there is one, "logit" for other cases of these metrics, else
      "percentile".

    Args:
      metric: any metric. It must have one value for each score table for "closed form", "logit",
        "bca", and, if smooth, "wald". "logit" is for smooth metrics from 0 to 1; it takes a partial
        area as a share of its largest possible value.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      confidence_level: in (0, 1), the nominal coverage.
      method: "auto", "closed form", "logit", "wald", "percentile", "basic", "bca" or "wilson".
      key: a JAX random key, for methods that resample.
      n_resamples: the number of resamples, for methods that resample.
      stratify: True keeps the number of items of each class fixed in every resample; False draws
        from all items together, as clusters always are.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: errors are those of whole clusters, and whole clusters are resampled.
      weights: `[..., n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.
      mesh: devices that share the resamples; each has all items, and the replicates are the same.
      progress: a function of the number of finished resamples, called after each round of batches.
      axis_name: the axis, or axes, of `shard_map` that split the items; without clusters and keys.

    Returns:
      An Interval `[...]` in the unit of the metric; its `method` is the one that "auto" chose.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a method that resamples has no
        key, the method does not serve the metric, or it needs a metric with one value.

    NaN where the metric is NaN, a class is absent (average precision is 0 or 1 then), or one
    cluster has all items of a class. An estimate of exactly 0 or 1 still has an interval by "closed
    form", "logit" and "wilson". A warning says when a class is too small for the nominal coverage.
    Time O(n log n) or as `bootstrap`; memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
      >>> interval = jm.confidence_interval(jm.roc_auc, scores, labels)
      >>> print(f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})")
      0.889 (0.413 to 0.996)

    References: M. S. Pepe, "The Statistical Evaluation of Medical Tests for Classification and
    Prediction", 2003, section 5.2, for logit; B. Efron, "Better bootstrap confidence intervals",
    JASA 82, 1987, for bca; E. B. Wilson, "Probable inference, the law of succession, and
    statistical inference", JASA 22, 1927.
    """
    record = record_of(metric)
    along = {"clusters": clusters}
    items = checks.check_items(scores, labels, weights, where, amounts, along=along)
    checks.check_rows(items)
    level = checks.check_level(confidence_level)
    checks.check_choice("method", method, METHODS)
    check_amounts(metric, items)
    asked, given = metric, items
    if method not in RESAMPLING:
        metric, items = with_influence(metric, items)
    chosen = chosen_method(metric, method)
    resamples = chosen in RESAMPLING or (chosen == "wald" and not has_influence(record))
    if resamples and key is None and has_influence(record):
        raise TypeError(
            f"key is missing, and method={chosen!r} resamples: write key=jax.random.key(0); or "
            f"method='wald', as the influence values of {record.name} are known"
        )
    axis_name = axis_of_parts(axis_name, clusters=clusters, resamples=resamples)
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress, mesh=mesh
    )
    request.check(needs_key=resamples)
    if (sizes := smallest_sizes(given, ids)) is not None:
        warn_of_small_classes(asked, sizes, chosen, clustered=ids is not None)
    if resamples:
        function, arrays = choose(metric)
        refuse = function.refuse_several if chosen == "bca" else function.refuse_tree
        refuse(arrays, items.scores.shape[-1])
        result = resampled(metric, items, request)
        if chosen == "wilson":
            return _by_wilson(metric, result, items, ids, level)
        skew = as_default(_acceleration(metric, items, ids)) if chosen == "bca" else 0.0
        return result.interval(method=chosen, confidence_level=level, acceleration=skew)
    if chosen != "wald":
        return _by_form(form_of(metric, chosen), items, ids, level, axis_name)
    return _by_wald(metric, items, ids, level, axis_name)


def warn_of_small_classes(
    metric: MetricLike, sizes: dict[str, float], method: str, *, clustered: bool = False
) -> None:
    """Warn that a class is too small for the method, with the coverage that simulations found."""
    closed = method in CLOSED
    kind = f"{method} of clusters" if clustered and closed else method
    fewest, name, coverage = _FEWEST[kind]
    for what, size in sizes.items():
        if clustered and size == 1 and (closed or method == "wald"):
            warn(
                f"there is only 1 of the {what}, whose variance is unknown: the limits are NaN; a "
                "cluster must be smaller than its class",
            )
        elif 0 < size < fewest:
            few = f"there {_so_many(size, what)}: in simulations with fewer than {fewest}"
            warn(FewItems(few, f"95 % {name} cover {coverage}", "", what))
    if kind in _FEW_INSIDE:
        warn_of_few_inside(metric, sizes, _FEW_INSIDE[kind])


def _so_many(size: float, what: str) -> str:
    """The size in words; a size that is not a whole number comes with its formula."""
    if size != round(size) and what.startswith("clusters"):
        return f"are {what} that count as only {size:.3g} of one size"
    if size != round(size):
        by = "a" if what.endswith("amount") else "w"
        return f"are only {size:.3g} {what}, of the effective size (sum {by})^2 / sum {by}^2"
    if size == 1:
        return f"is only 1 {what[:-1]}" if " " not in what else f"is only 1 of the {what}"
    return f"are only {size:.0f} {what}"


# For each method: the class size below which a warning is given, the method in words, and the
# coverage that `python -m benchmarks.coverage` found below this size.
_FEWEST = {
    "closed form": (10, "closed-form intervals", "90 to 100 %, and less if labels are wrong"),
    "closed form of clusters": (
        50,
        "intervals of clusters",
        "84 to 100 %, the least of heavy tails",
    ),
    "logit of clusters": (
        50,
        "logit intervals of clusters",
        "83 to 97 %, the least of high values",
    ),
    "logit": (50, "logit intervals", "81 to 100 %, and from 29 % for a partial area"),
    "wald": (200, "Wald intervals", "50 to 95 %, and from 24 % for a partial area"),
    "percentile": (200, "percentile intervals", "49 to 96 %, and from 33 % for a partial area"),
    "basic": (200, "basic bootstrap intervals", "50 to 95 %, and from 29 % for recall"),
    "bca": (100, "BCa intervals", "49 to 97 %, and from 43 % for a partial area"),
    "wilson": (30, "Wilson intervals on the bootstrap's effective sample size", "61 to 98 %"),
}
# For each method: the coverage that simulations found with few items within a limit of a rate.
_FEW_INSIDE = {
    "closed form": OF_INTERVALS,
    "closed form of clusters": (
        "95 % intervals of clusters cover 70 to 100 %, the least of heavy tails"
    ),
    "wilson": "95 % Wilson intervals cover 50 to 97 %",
}


def _by_wald(
    metric: MetricLike, items: Items, ids: Clusters | None, level: float, axis_name: AxisName
) -> Interval:
    estimate, error = map(as_default, estimate_and_error(metric, items, ids, axis_name))
    warn_of_undefined(estimate)
    low, high = wald_limits(estimate, error, level)
    return Interval(estimate, low, high, error, "wald", level)


def _by_form(
    form: Form, items: Items, ids: Clusters | None, level: float, axis_name: AxisName
) -> Interval:
    if ids is None:
        moments, numbers = moments_of(form.metric, items, level, axis_name)
        if all_concrete(*moments.sizes):
            values, n_positives = map(
                np.asarray, of_all_processes((moments.estimate, moments.sizes[1]))
            )
            warn_of_few_successes(form.metric, values, n_positives)
        found = limits_of_form(form, moments, numbers, level)
    else:
        found = limits_by_clusters(form, items, ids, level)
    interval = interval_of(found, form.name, level)
    warn_of_undefined(interval.estimate)
    return interval


def _acceleration(metric: MetricLike, items: Items, ids: Clusters | None) -> Array:
    return acceleration(metric, items) if ids is None else skewness_of_clusters(metric, items, ids)


def _by_wilson(
    metric: MetricLike, result: BootstrapResult, items: Items, ids: Clusters | None, level: float
) -> Interval:
    """Wilson's interval for the effective size by the bootstrap, at most that of the class."""
    sizes = sizes_of(items, ids, result.estimate.ndim)
    most = sizes.negatives if error_bars_of(record_of(metric)).of_negatives else sizes.positives
    given = near_tree((result.estimate, result.standard_error, most, np.float64(level)))
    low, high = map(as_default, _wilson(*given))
    return Interval(result.estimate, low, high, result.standard_error, "wilson", level)


@library_program()
def _wilson(estimate: Array, error: Array, most: Array, level: Array) -> tuple[Array, Array]:
    estimate, error = estimate.astype(np.float64), error.astype(np.float64)
    n = rules.draws_of_share(estimate, error**2, most)
    return rules.wilson(estimate, n, level)
