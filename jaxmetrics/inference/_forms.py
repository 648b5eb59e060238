"""Intervals computed from moments, without resampling: the one of each metric, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.record import Chosen, MetricLike, Options, choose, record_of
from jaxmetrics.inference._influence.clusters import (
    Clusters,
    sums_and_items,
    variances_and_draws,
)
from jaxmetrics.inference._influence.numbers_of_draws import numbers_of_draws
from jaxmetrics.inference._influence.variance import moments_of
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.clustered import (
    OfClusters,
    logit_t_of_clusters,
    moments_of_clusters,
)
from jaxmetrics.inference._intervals.metrics import (
    Rule,
    error_bars_of,
    has_influence,
    share_of,
)
from jaxmetrics.inference._intervals.rules import Limits, Moments

CLOSED = ("closed form", "logit")


def chosen_method(metric: MetricLike, method: str = "auto") -> str:
    """The method by name, with "auto" resolved; refuses a method that does not serve the metric."""
    chosen, arrays = choose(metric)
    known, name = error_bars_of(chosen.metric), chosen.metric.name
    closed = known.closed_form is not None and known.serves(chosen.options(arrays))
    if method == "auto":
        return "closed form" if closed else known.auto
    if method == "closed form" and not closed:
        raise ValueError(
            "method='closed form' is for roc_auc, average_precision, recall_at_fpr, and for "
            "partial_auc with min_fpr=0 and min_tpr=0: write method='auto'"
        )
    if method == "wilson" and not known.proportion:
        raise ValueError(
            "method='wilson' is for recall_at_fpr, sensitivity_at_specificity and "
            "specificity_at_sensitivity, which are proportions: write method='auto'"
        )
    if method in ("bca", "logit") and not has_influence(chosen.metric):
        raise TypeError(
            f"method={method!r} needs influence values, but {name} is not known to be smooth in "
            "the weights: write method='percentile'"
        )
    return method


class Form(NamedTuple):
    """An interval of a metric that is computed from moments, without resampling.

    Attributes:
      name: the method, as users write it.
      rule: a function of the moments, the level, numbers and options that returns the limits.
      metric: the metric that the moments are of: a share, from 0 to 1.
      value_of: a function of the share and its options that returns the metric asked for.
    """

    name: str
    rule: Rule
    metric: MetricLike
    value_of: Callable[[Array, Options], Array]


def form_of(metric: MetricLike, name: str) -> Form:
    """The Form of a metric for the method "closed form" or "logit"."""
    known, share = error_bars_of(record_of(metric)), share_of(metric)
    rule = known.closed_form if name == "closed form" else None
    return Form(name, rule or _logit_t, share.metric, share.value_of)


def _logit_t(moments: Moments, level: Array, numbers: Any, options: Options) -> Limits:
    return rules.logit_t(moments, level)


def limits_of_items(
    form: Form, items: Items, ids: Clusters | None, levels: Any
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits `[levels]` and standard error of scores `[n]`, in float64."""
    if ids is not None:
        return limits_by_clusters(form, items, ids, levels)
    return limits_of_form(form, *moments_of(form.metric, items, levels), levels)


def limits_by_clusters(
    form: Form, items: Items, ids: Clusters, level: Any
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits and standard error by clusters, in float64.

    A closed form takes as many draws as have the variance of the clusters. It has no fewer degrees
    of freedom than these, so the limits are the hull of its own and of the "logit" ones.
    """
    sums, alone = sums_and_items(form.metric, items, ids)
    known = variances_and_draws(*near_tree((sums, alone)))
    return limits_of_draws(form, items, sums.estimate, *known, level)


def limits_of_draws(
    form: Form,
    items: Items,
    estimate: Array,
    found: OfClusters,
    draws: tuple[Array, Array],
    level: Any,
) -> tuple[Array, Array, Array, Array]:
    """`limits_by_clusters`, from what `variances_and_draws` returns."""
    chosen, arrays = choose(form.metric)
    rule = None if form.name == "logit" else form.rule
    at = np.float64(level)
    numbers = () if rule is None else numbers_of_draws(form.metric, items, draws, at)
    given = near_tree((estimate, found, draws, numbers, arrays, at))
    return _limits_of_clusters(*given, chosen, rule, form.value_of)


def limits_of_form(
    form: Form, moments: Moments, numbers: Any, level: Any
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits and standard error, in float64; by NumPy where the inputs are known."""
    chosen, arrays = choose(form.metric)
    given = near_tree((moments, numbers, arrays, np.float64(level)))
    return _limits(*given, chosen, form.rule, form.value_of)


@library_program("chosen", "rule", "value_of")
def _limits(
    moments: Moments,
    numbers: Any,
    arrays: Options,
    level: Any,
    chosen: Chosen,
    rule: Rule,
    value_of: Callable[[Array, Options], Array],
) -> tuple[Array, Array, Array, Array]:
    options = chosen.options(arrays)
    library, estimate, error = moments.library, moments.estimate, rules.standard_error(moments)
    negatives, positives = (rules.unrounded(x, estimate) for x in moments.variances)
    moments = moments._replace(variances=(negatives, positives))
    # In reverse mode 0 times NaN would make the slopes of other rows NaN.
    lost = library.isnan(estimate)
    moments = jax.tree.map(lambda x: library.where(lost, 0.5, x), moments)
    limits = rule(moments, level, numbers, options)
    low, high = (library.where(lost, library.nan, x) for x in limits)
    return _values((estimate, low, high, error), options, value_of)


@library_program("chosen", "rule", "value_of")
def _limits_of_clusters(
    estimate: Array,
    found: OfClusters,
    draws: tuple[Array, Array],
    numbers: Any,
    arrays: Options,
    level: Any,
    chosen: Chosen,
    rule: Rule | None,
    value_of: Callable[[Array, Options], Array],
) -> tuple[Array, Array, Array, Array]:
    options = chosen.options(arrays)
    library = numerics.namespace(found.total)
    unknown = library.isnan(found.total)
    error = numerics.root(found.total)
    # In reverse mode 0 times NaN, or infinity of one cluster, would make all slopes NaN.
    found = jax.tree.map(lambda x: library.where(unknown, 2.0, x), found)
    limits = logit_t_of_clusters(estimate, found, level)
    if rule is not None:
        moments = moments_of_clusters(estimate, found, draws)
        limits = rules.hull(limits, rule(moments, level, numbers, options))
    unknown = unknown | library.isnan(limits[0] + limits[1])  # one may be an end of the scale
    low, high = (library.where(unknown, library.nan, x) for x in limits)
    values = estimate, low, high, error
    return _values(values, options, value_of)


def _values(
    found: tuple[Array, Array, Array, Array],
    options: Options,
    value_of: Callable[[Array, Options], Array],
) -> tuple[Array, Array, Array, Array]:
    """Estimate, limits and error of the metric from those of a share, in which it is linear."""
    *points, error = found
    estimate, low, high = (value_of(x, options) for x in points)
    one, none = (value_of(numerics.namespace(error).float64(x), options) for x in (1.0, 0.0))
    return estimate, low, high, error * (one - none)
