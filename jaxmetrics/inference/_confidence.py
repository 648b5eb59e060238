"""Confidence intervals of a metric, by the method that suits it or that is asked for."""

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
from jaxmetrics._roc.metric import MetricLike, Options, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import (
    BootstrapResult,
    check_amounts,
    resampled,
    wald_limits,
)
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.gradient import choose_smooth
from jaxmetrics.inference._influence.variance import (
    Clusters,
    acceleration,
    as_default,
    estimate_and_error,
    moments_of,
)
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._intervals.rules import Limits, Moments
from jaxmetrics.inference._metrics import Share, error_bars_of

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

    auto: for `roc_auc`, and `partial_auc` from FPR 0, closed forms found by simulation, which need
    no key and hold their level with ten positives; "wilson" for `recall_at_fpr`; "logit" for
    `average_precision` and for clusters; "percentile" otherwise. logit: logit(A) -+ t SE /
    (A (1 - A)), taken back, with Welch's degrees of freedom. wald: A -+ z SE. wilson: Wilson's
    interval for a share of n = A (1 - A) / SE^2 draws, with the bootstrap's SE. percentile, basic
    and bca: from bootstrap replicates; the acceleration of bca is (1/6) S3 / S2^1.5, with
    S_k = sum_c sum phi^k / n_c^k of the influence values.

    Args:
      metric: any with one value a table; those without a usable gradient need a key. "logit" is for
        those from 0 to 1, and takes a partial area as a share of the largest there can be.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      confidence_level: in (0, 1).
      method: "auto", "closed form", "logit", "wald", "percentile", "basic", "bca" or "wilson".
      key: a JAX random key, for methods that resample.
      n_resamples: how many resamples those methods take.
      stratify: draw each class by itself, so that its size stays; else from all items.
      clusters: `[n]`, integers or strings, the same for items that belong together.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, for metrics that take them.
      memory_budget: the bytes that one batch of resamples may take.
      progress: called with the number of resamples that are ready, as they become so.

    Returns:
      An Interval `[...]`, whose `method` says which was chosen.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a key is missing,
        or the method does not serve the metric.

    NaN where the metric is. For a metric of 0 or 1 the closed forms, logit and wilson still have an
    interval. A warning says when a class is too small for the method to hold its level. Time
    O(n log n) for closed forms, else as `bootstrap`; memory O(n).

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
    items = checks.check_items(scores, labels, weights, where, amounts)
    level = checks.check_level(confidence_level)
    checks.check_choice("method", method, METHODS)
    check_amounts(metric, items)
    ids = checks.check_clusters(clusters, items)
    chosen = chosen_method(metric, method, clustered=ids is not None)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    smooth = record_of(metric).smooth
    resamples = chosen in RESAMPLING or (chosen == "wald" and not smooth)
    if resamples:
        request.check()
    _warn_of_few(metric, items, ids, chosen)
    if resamples:
        result = resampled(metric, items, request)
        if chosen == "wilson":
            return _by_wilson(result, items, ids, level)
        skew = as_default(acceleration(metric, items, ids)) if chosen == "bca" else 0.0
        return result.interval(method=chosen, confidence_level=level, acceleration=skew)
    if chosen != "wald":
        return _by_form(form_of(metric, chosen), items, ids, level)
    estimate, error = (as_default(x) for x in estimate_and_error(metric, items, ids))
    low, high = wald_limits(estimate, error, level)
    return Interval(estimate, low, high, error, chosen, level)


def chosen_method(metric: MetricLike, method: str = "auto", *, clustered: bool = False) -> str:
    """The method, or what "auto" stands for; refuses one that does not serve the metric."""
    chosen, arrays = choose(metric)
    known, name = error_bars_of(chosen.metric), chosen.metric.name
    closed = known.closed_form is not None and known.serves(chosen.options(arrays))
    if method == "auto":
        return "closed form" if closed and not clustered else known.auto
    if method == "closed form" and not (closed and not clustered):
        raise ValueError(
            "method='closed form' is for roc_auc, and partial_auc from FPR 0, without clusters: "
            "write method='auto'"
        )
    if method == "wilson" and known.auto != "wilson":
        raise ValueError("method='wilson' is for recall_at_fpr, a share: write method='auto'")
    if method == "bca" and not chosen.metric.smooth:
        raise TypeError(
            f"method='bca' needs influence values, and {name} is not known to be smooth in the "
            "weights: write method='percentile'"
        )
    if method == "logit":
        choose_smooth(metric)
    return method


def _warn_of_few(metric: MetricLike, items: Items, ids: Clusters | None, method: str) -> None:
    """Say that there are too few items for the method, and what that does to its coverage."""
    if not all(is_concrete(x) for x in (items.labels, items.where) if x is not None):
        return
    fewest, name, coverage = _FEWEST[method]
    labels = np.asarray(items.labels) == 1
    valid = True if items.where is None else np.asarray(items.where)
    counts = {
        "positives": int(np.sum(labels & valid, axis=-1).min()),
        "negatives": int(np.sum(~labels & valid, axis=-1).min()),
    }
    if ids is not None:
        counts = {"clusters": ids[1]}
    for what, count in counts.items():
        if 0 < count < fewest:
            some = f"is only 1 {what[:-1]}" if count == 1 else f"are only {count} {what}"
            warnings.warn(
                f"there {some}: with fewer than {fewest}, {name} of 95 % were seen to cover "
                f"{coverage}",
                stacklevel=3,
            )
    chosen, arrays = choose(metric)
    window = error_bars_of(chosen.metric).slope_in
    if method != "closed form" or window is None or not is_concrete(arrays[window]):
        return
    inside = float(np.min(np.asarray(arrays[window]))) * counts["negatives"]
    if 0 < inside < _FEWEST_INSIDE:
        warnings.warn(
            f"only {inside:.2g} negatives are within {window}: with fewer than {_FEWEST_INSIDE}, "
            "intervals of 95 % were seen to cover 83 to 100 %",
            stacklevel=3,
        )


# The size of a class below which a method is not to be trusted, what it is called, and what
# `python -m benchmarks.coverage` found there.
_FEWEST = {
    "closed form": (10, "closed-form intervals", "90 to 100 %, and less if labels are wrong"),
    "logit": (50, "logit intervals", "81 to 100 %, and of a partial area from 29 %"),
    "wald": (200, "Wald intervals", "50 to 95 %, and of a partial area from 24 %"),
    "percentile": (200, "percentile intervals", "49 to 96 %, and of a partial area from 33 %"),
    "basic": (200, "basic bootstrap intervals", "50 to 95 %, and of recall from 29 %"),
    "bca": (100, "BCa intervals", "49 to 97 %, and of a partial area from 43 %"),
    "wilson": (30, "Wilson intervals of the bootstrap's effective size", "61 to 98 %"),
}
_FEWEST_INSIDE = 3


class Form(NamedTuple):
    """A closed form for a metric.

    Attributes:
      name: what users call it.
      rule: from moments to limits.
      slope_in: the option by which the rule needs the derivative.
      metric: whose moments it takes: a share of the largest value there can be.
      share: what takes the share back to the metric; None if it is the metric.
    """

    name: str
    rule: Callable[..., Limits]
    slope_in: str | None
    metric: MetricLike
    share: Share | None


def form_of(metric: MetricLike, name: str) -> Form:
    """The "closed form" of a metric, or the "logit" one."""
    chosen, arrays = choose(metric)
    known = error_bars_of(chosen.metric)
    share = None if known.share is None else known.share(chosen.options(arrays))
    of_moments = metric if share is None else share.metric
    if name == "closed form" and known.closed_form is not None:
        return Form(name, known.closed_form, known.slope_in, of_moments, share)
    return Form(name, rules.logit_t, None, of_moments, share)


def _by_form(form: Form, items: Items, ids: Clusters | None, level: float) -> Interval:
    slope = None
    if ids is None:
        moments, slope = moments_of(form.metric, items, form.slope_in)
    else:
        moments = _moments_of_clusters(*estimate_and_error(form.metric, items, ids), float(ids[1]))
    numbers = limits_of_form(form, moments, slope, level)
    estimate, low, high, error = map(as_default, numbers)
    return Interval(estimate, low, high, error, form.name, level)


def limits_of_form(
    form: Form, moments: Moments, slope: Array | None, level: float
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits and standard error, in float64."""
    if form.share is None:
        return _limits(moments, slope, {}, level, form.rule, None, "")
    _, numbers, scale, value_of = form.share
    return _limits(moments, slope, numbers, level, form.rule, value_of, scale)


@double_program("rule", "value_of", "scale")
def _limits(
    moments: Moments,
    slope: Array | None,
    numbers: Options,
    level: Array,
    rule: Callable[..., Limits],
    value_of: Callable[[Array, Options, str], Array] | None,
    scale: str,
) -> tuple[Array, Array, Array, Array]:
    error, found = rules.standard_error(moments), moments.estimate
    if slope is None:
        low, high = rule(moments, level)
    else:
        # Of area / limit, the estimate, the derivative is (height - estimate) / limit.
        limit = numbers["max_fpr"]
        low, high = rule(moments, level, limit, limit * slope + found)
    if value_of is None:
        return found, low, high, error
    found, low, high, one, none = (
        value_of(share, numbers, scale) for share in (found, low, high, jnp.ones(()), jnp.zeros(()))
    )
    return found, low, high, error * (one - none)


@double_program()
def _moments_of_clusters(estimate: Array, error: Array, k: Array) -> Moments:
    """As if all K clusters were of one class, and the other class had no error."""
    sizes = jnp.full_like(estimate, k)
    return Moments(estimate, (jnp.zeros_like(error), error**2 * k), (sizes, sizes))


def _by_wilson(
    result: BootstrapResult, items: Items, ids: Clusters | None, level: float
) -> Interval:
    """A share of so many draws as give the bootstrap's error, and of no more than positives."""
    positives = count_positives(items, ids, result.estimate.ndim)
    low, high = map(as_default, _wilson(result.estimate, result.standard_error, positives, level))
    return Interval(result.estimate, low, high, result.standard_error, "wilson", level)


def count_positives(items: Items, ids: Clusters | None, ndim: int) -> Array:
    """The positives of each problem, or the clusters that have one, to be drawn independently.

    They go with values of `ndim` axes, the batch's first.
    """
    where = jnp.ones(1, bool) if items.where is None else jnp.asarray(items.where)
    positive = (jnp.asarray(items.labels) == 1) & where
    if ids is not None:
        index, n_clusters = ids
        positive = jnp.zeros((*positive.shape[:-1], n_clusters), bool).at[..., index].max(positive)
    count = jnp.sum(positive, axis=-1)
    lacking = max(items.scores.ndim - 1 - count.ndim, 0)
    count = count.reshape((1,) * lacking + count.shape)
    return count.reshape(count.shape + (1,) * (ndim - count.ndim)) if ndim else count.reshape(())


@double_program()
def _wilson(estimate: Array, error: Array, positives: Array, level: Array) -> tuple[Array, Array]:
    estimate, error = estimate.astype(jnp.float64), error.astype(jnp.float64)
    n = rules.effective_size(estimate, error**2, positives.astype(jnp.float64))
    return rules.wilson(estimate, n, level)
