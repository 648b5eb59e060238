"""Confidence intervals of a metric, by the default method of the metric or by a given one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.record import MetricLike, Options, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import (
    BootstrapResult,
    check_amounts,
    resampled,
    wald_limits,
)
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.variance import (
    Clusters,
    acceleration,
    as_default,
    estimate_and_error,
    moments_of,
)
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._intervals.metrics import Share, error_bars_of, share_of, under_one_name
from jaxmetrics.inference._intervals.rules import Limits, Moments
from jaxmetrics.inference._sizes import sizes_of, smallest_sizes

RESAMPLING = ("percentile", "basic", "bca", "wilson")
METHODS = ("auto", "closed form", "logit", "wald", *RESAMPLING)


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
    progress: Callable[[int], None] | None = None,
) -> Interval:
    """A confidence interval for a metric.

    - closed form: for `roc_auc`, and `partial_auc` with min_fpr = min_tpr = 0, without clusters.
      Found by simulation: the coverage is near nominal from ten items of each class.
    - logit: expit(logit(A) -+ t SE / (A (1 - A))), with Welch's degrees of freedom for t.
    - wald: A -+ z SE.
    - wilson: Wilson's interval for a proportion A of n = A (1 - A) / SE^2 draws, at most the
      effective size (sum w)^2 / sum w^2 of the positives, with SE from the bootstrap. Of a
      specificity, of the negatives.
    - percentile, basic, bca: from bootstrap replicates. The acceleration of bca is
      (1/6) S3 / S2^1.5, with S_k = sum_c sum phi^k / n_c^k of the influence values phi.
    - auto: "closed form" where there is one, "wilson" for `recall_at_fpr`,
      `sensitivity_at_specificity` and `specificity_at_sensitivity`, "logit" for `average_precision`
      and for other cases of `roc_auc` and `partial_auc`, else "percentile".

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
        from all items together.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: errors are those of whole clusters, and whole clusters are resampled.
      weights: `[..., n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.
      progress: a function of the number of finished resamples, called after each round of batches.

    Returns:
      An Interval `[...]` in the unit of the metric; its `method` is the one that "auto" chose.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a method that resamples has no
        key, the method does not serve the metric, or it needs a metric with one value.

    NaN where the metric is NaN. An estimate of exactly 0 or 1 still has an interval by "closed
    form", "logit" and "wilson". A warning says when a class is too small for the nominal coverage.
    Time O(n log n) without resampling, else as `bootstrap`; memory O(n).

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
    given = (scores, labels, weights, where, amounts)
    items = checks.check_items(*given, along={"clusters": clusters})
    level = checks.check_level(confidence_level)
    checks.check_choice("method", method, METHODS)
    check_amounts(metric, items)
    ids = checks.check_clusters(clusters, items)
    metric = under_one_name(metric)
    chosen = chosen_method(metric, method, clustered=ids is not None)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    record = record_of(metric)
    resamples = chosen in RESAMPLING or (chosen == "wald" and not record.smooth)
    if resamples and key is None and record.smooth:
        raise TypeError(
            f"key is missing, and method={chosen!r} resamples: write key=jax.random.key(0); or "
            f"method='wald', as {record.name} is smooth in the weights"
        )
    request.check(needs_key=resamples)
    if resamples:
        function, arrays = choose(metric)
        refuse = function.refuse_several if chosen == "bca" else function.refuse_tree
        refuse(arrays, items.scores.shape[-1])
    _warn_of_few(metric, items, ids, chosen)
    if resamples:
        result = resampled(metric, items, request)
        if chosen == "wilson":
            return _by_wilson(metric, result, items, ids, level)
        skew = as_default(acceleration(metric, items, ids)) if chosen == "bca" else 0.0
        return result.interval(method=chosen, confidence_level=level, acceleration=skew)
    if chosen != "wald":
        return _by_form(form_of(metric, chosen), items, ids, level)
    estimate, error = (as_default(x) for x in estimate_and_error(metric, items, ids))
    low, high = wald_limits(estimate, error, level)
    return Interval(estimate, low, high, error, chosen, level)


def chosen_method(metric: MetricLike, method: str = "auto", *, clustered: bool = False) -> str:
    """The method by name, with "auto" resolved; refuses a method that does not serve the metric."""
    chosen, arrays = choose(metric)
    known, name = error_bars_of(chosen.metric), chosen.metric.name
    closed = known.closed_form is not None and known.serves(chosen.options(arrays))
    if method == "auto":
        return "closed form" if closed and not clustered else known.auto
    if method == "closed form" and not (closed and not clustered):
        raise ValueError(
            "method='closed form' is for roc_auc, and for partial_auc with min_fpr=0 and "
            "min_tpr=0, without clusters: write method='auto'"
        )
    if method == "wilson" and known.auto != "wilson":
        raise ValueError(
            "method='wilson' is for recall_at_fpr, sensitivity_at_specificity and "
            "specificity_at_sensitivity, which are proportions: write method='auto'"
        )
    if method in ("bca", "logit") and not chosen.metric.smooth:
        raise TypeError(
            f"method={method!r} needs influence values, but {name} is not known to be smooth in "
            "the weights: write method='percentile'"
        )
    return method


def _warn_of_few(metric: MetricLike, items: Items, ids: Clusters | None, method: str) -> None:
    """Warn that a class is too small for the method, with the coverage that simulations found."""
    sizes = smallest_sizes(items, ids)
    if sizes is None:
        return
    fewest, name, coverage = _FEWEST[method]
    for what, size in sizes.items():
        if 0 < size < fewest:
            warnings.warn(
                f"there {_so_many(size, what)}: in simulations with fewer than {fewest}, 95 % "
                f"{name} cover {coverage}",
                stacklevel=3,
            )
    chosen, arrays = choose(metric)
    window = error_bars_of(chosen.metric).slope_in
    if method != "closed form" or window is None or not is_concrete(arrays[window]):
        return
    inside = float(np.min(np.asarray(arrays[window]))) * sizes["negatives"]
    if 0 < inside < _FEWEST_INSIDE:
        warnings.warn(
            f"only {inside:.2g} negatives are within {window}: in simulations with fewer than "
            f"{_FEWEST_INSIDE}, 95 % intervals cover 83 to 100 %",
            stacklevel=3,
        )


def _so_many(size: float, what: str) -> str:
    """In words; a size that is not a count of items says how it is made."""
    if size != round(size):
        return f"are only {size:.3g} {what} by the effective size (sum w)^2 / sum w^2"
    return f"is only 1 {what[:-1]}" if size == 1 else f"are only {size:.0f} {what}"


# For each method: the class size below which a warning is given, the method in words, and the
# coverage that `python -m benchmarks.coverage` found below this size.
_FEWEST = {
    "closed form": (10, "closed-form intervals", "90 to 100 %, and less if labels are wrong"),
    "logit": (50, "logit intervals", "81 to 100 %, and from 29 % for a partial area"),
    "wald": (200, "Wald intervals", "50 to 95 %, and from 24 % for a partial area"),
    "percentile": (200, "percentile intervals", "49 to 96 %, and from 33 % for a partial area"),
    "basic": (200, "basic bootstrap intervals", "50 to 95 %, and from 29 % for recall"),
    "bca": (100, "BCa intervals", "49 to 97 %, and from 43 % for a partial area"),
    "wilson": (30, "Wilson intervals on the bootstrap's effective sample size", "61 to 98 %"),
}
_FEWEST_INSIDE = 3


class Form(NamedTuple):
    """An interval of a metric that is computed from moments, without resampling.

    Attributes:
      name: the method, as users write it.
      rule: from moments to limits.
      slope_in: the option with respect to which the rule needs the derivative; None if it does not.
      share: the metric of the moments, and how it is turned into the metric that was asked for.
    """

    name: str
    rule: Callable[..., Limits]
    slope_in: str | None
    share: Share


def form_of(metric: MetricLike, name: str) -> Form:
    """The Form of a metric for the method "closed form" or "logit"."""
    known, share = error_bars_of(record_of(metric)), share_of(metric)
    if name == "closed form" and known.closed_form is not None:
        return Form(name, known.closed_form, known.slope_in, share)
    return Form(name, rules.logit_t, None, share)


def _by_form(form: Form, items: Items, ids: Clusters | None, level: float) -> Interval:
    slope = None
    if ids is None:
        moments, slope = moments_of(form.share.metric, items, form.slope_in)
    else:
        found, error = estimate_and_error(form.share.metric, items, ids)
        moments = _moments_of_clusters(found, error, sizes_of(items, ids, found.ndim).all)
    numbers = limits_of_form(form, moments, slope, level)
    estimate, low, high, error = map(as_default, numbers)
    return Interval(estimate, low, high, error, form.name, level)


def limits_of_form(
    form: Form, moments: Moments, slope: Array | None, level: float
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits and standard error, in float64."""
    _, numbers, value_of = form.share
    return _limits(moments, slope, numbers, level, form.rule, value_of)


@double_program("rule", "value_of")
def _limits(
    moments: Moments,
    slope: Array | None,
    numbers: Options,
    level: Array,
    rule: Callable[..., Limits],
    value_of: Callable[[Array, Options], Array],
) -> tuple[Array, Array, Array, Array]:
    found = moments.estimate
    if slope is None:
        low, high = rule(moments, level)
    else:
        # With estimate = area / limit, the slope is (height - estimate) / limit.
        limit = numbers["max_fpr"]
        low, high = rule(moments, level, limit, limit * slope + found)
    found, low, high, one, none = (
        value_of(share, numbers) for share in (found, low, high, jnp.ones(()), jnp.zeros(()))
    )
    return found, low, high, rules.standard_error(moments) * (one - none)


@double_program()
def _moments_of_clusters(estimate: Array, error: Array, k: Array) -> Moments:
    """Moments of one class that holds all K clusters; the other class has variance 0."""
    sizes = jnp.broadcast_to(k, estimate.shape)
    return Moments(estimate, (jnp.zeros_like(error), error**2 * k), (sizes, sizes))


def _by_wilson(
    metric: MetricLike, result: BootstrapResult, items: Items, ids: Clusters | None, level: float
) -> Interval:
    """Wilson's interval on the effective size of the bootstrap, at most that of the class."""
    sizes = sizes_of(items, ids, result.estimate.ndim)
    most = sizes.negatives if error_bars_of(record_of(metric)).of_negatives else sizes.positives
    low, high = map(as_default, _wilson(result.estimate, result.standard_error, most, level))
    return Interval(result.estimate, low, high, result.standard_error, "wilson", level)


@double_program()
def _wilson(estimate: Array, error: Array, most: Array, level: Array) -> tuple[Array, Array]:
    estimate, error = estimate.astype(jnp.float64), error.astype(jnp.float64)
    n = rules.effective_size(estimate, error**2, most)
    return rules.wilson(estimate, n, level)
