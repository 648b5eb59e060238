"""Tests of models against a given value, such as an area of 0.5."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_precision, library_program
from jaxmetrics._base.frames import names_in
from jaxmetrics._base.host import all_concrete, as_jax, at_hand, near_tree
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import check_amounts
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._compared import Comparison, check_margin, comparison_of
from jaxmetrics.inference._comparison import estimated, warn_of_few_to_compare
from jaxmetrics.inference._forms import CLOSED, chosen_method, form_of, limits_of_items
from jaxmetrics.inference._influence.covariance import Covariance, taken_for_known
from jaxmetrics.inference._influence.differences import NO_VARIANCE, squares_of
from jaxmetrics.inference._influence.sizes import OF_INTERVALS, warn_of_undefined
from jaxmetrics.inference._intervals.metrics import with_influence
from jaxmetrics.inference._intervals.ranges import ends_of_range
from jaxmetrics.inference._margins import ByLevel, Margins, levels_for, limits_at, quantiles_of
from jaxmetrics.inference._pairs import Pairs, pairs_of

_ROUNDING = 1e-9  # tolerance at the ends of the range of the metric


@takes_metric
@on_any_mesh
def compare_to_value(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    value: float,
    margin: float | None = None,
    confidence_level: float = 0.95,
    key: Array | None = None,
    n_resamples: int = 2000,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
) -> Comparison:
    """Tests of one or more models against a given value, such as ten biomarkers against 0.5.

    The limits of the difference d = A - value are the limits of A by `confidence_interval` at the
    same level, minus the value. So the two functions never contradict each other. The p-value is
    1 - the level at which a limit of d is 0, found by interpolation. Simultaneous limits adjust for
    the number of models: they are the limits at the level of the quantile of max |Z| over all
    models. chi2 is that of `compare`; the error of each model is the distance of its limit on the
    side of the value, over the normal quantile. A metric without a closed-form or logit interval
    has the limits d -+ t E that `compare` gives for a second model with this value and no error.

    Args:
      metric: any metric with one value for each score table; those without known influence values
        need a key.
      scores: `[n]` or `[models, n]`, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      value: the value to compare with, in the unit of the metric; finite.
      margin: a difference that is too small to matter, above 0. It adds the tests that a model is
        not worse than the value by the margin, and that the two differ by less than the margin.
      confidence_level: in (0, 1).
      key: a JAX random key, for metrics that are resampled.
      n_resamples: the number of resamples, for metrics that are resampled.
      clusters: `[n]`, integers or strings. Items of one cluster may depend on each other.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      where: `[n]` bool, False for items to leave out.
      amounts: `[n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.

    Returns:
      A Comparison of arrays `[models]`, or `[]` for scores `[n]`, each model minus the value. Its
      chi2 tests that all models have the value, and `best_set` has the models that are not
      significantly worse than the best of them and the value.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; the value is not finite or not in
        the range of the metric, or the metric has several values.

    NaN where the metric is NaN or a class has one item. Warns where a class has fewer than ten
    items. `z` is the normal quantile at which a limit is 0, and `df` is infinite. Time
    O(models n log n + models^2 n), memory O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [.1, .4, .35, .8, .7, .2, .9, .3, .6, .5, .2, .7, .8, .3, .1, .6, .9, .4, .2, .5]
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1]
      >>> found = jm.compare_to_value(jm.roc_auc, scores, labels, value=0.5)
      >>> print(f"{found.difference:.3f} -+ {found.standard_error:.3f}")
      0.425 -+ 0.055

    Reference: T. Hothorn, F. Bretz and P. Westfall, "Simultaneous inference in general parametric
    models", Biometrical Journal 50, 2008.
    """
    record_of(metric)  # refused before any data
    items = checks.check_items(
        scores, labels, weights, where, amounts, along={"clusters": clusters}
    )
    level, margin = checks.check_level(confidence_level), check_margin(margin, metric)
    value = checks.check_above("value", value, -np.inf)
    value = _in_range(metric, value)
    check_amounts(metric, items)
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    one = checks.check_one_or_models(items)
    if one:
        items = items._replace(scores=items.scores[None])
    ids = checks.check_clusters(clusters, items)
    request = Request(key, n_resamples, True, ids, memory_budget=memory_budget)
    limits = _limits(metric, items, request, level)
    n_models = len(items.scores)
    if n_models == 1 and limits is not None:  # its covariance is its variance
        known = limits.estimate, taken_for_known(_squared(limits.known))
        (estimate, covariance), bounds = near_tree(known), None
    else:
        estimate, covariance, bounds = estimated(metric, items, request, OF_INTERVALS)
    warn_of_undefined(estimate, "model", names_in(scores))
    estimate, covariance = _with_value(estimate, covariance, np.float64(value))
    pairs, total = pairs_of(estimate, covariance, bounds), covariance.total
    if limits is not None:
        given = near_tree((total, limits, np.float64(value), np.float64(level)))
        pairs, total = _pairs_with_value(pairs, limits), _with_errors(*given)
    found = comparison_of(estimate, total, pairs, level, n_models, margin)

    def without_value(x: Any) -> Any:
        if not x.ndim:
            return x
        (values,) = at_hand(x)
        return as_jax(values[0] if one else values[:n_models])

    own: Comparison = jax.tree.map(without_value, found)
    return own._captioned_as(value=(f"{value:g}",))


def _in_range(metric: MetricLike, value: float) -> float:
    """The value within the range of the metric; refuses one beyond it, such as a percentage."""
    low, high = ends_of_range(metric)
    if not low - _ROUNDING <= value <= high + _ROUNDING:
        hint = ": write fractions, 0.8 for 80 %" if value > 1 else ""
        raise ValueError(
            f"value must be in [{low:g}, {high:g}], as the metric is, got {value:g}{hint}"
        )
    return min(max(value, low), high)


def _limits(metric: MetricLike, items: Items, request: Request, level: float) -> ByLevel | None:
    """The limits of each model alone, by level; None without a closed-form or logit interval."""
    given = metric, items
    metric, items = with_influence(metric, items)
    ids = request.clusters
    method = chosen_method(metric)
    if method not in CLOSED:
        return None
    request.check(needs_key=False)
    if len(items.scores) == 1:
        warn_of_few_to_compare(*given, ids, OF_INTERVALS)
    form, levels = form_of(metric, method), levels_for(level)

    def of_model(scores: Any) -> tuple[Array, ...]:
        return limits_of_items(form, items._replace(scores=scores), ids, levels)

    found: Any
    if all_concrete(*items) or len(items.scores) == 1:
        models = (items.scores[i] for i in range(len(items.scores)))  # also of other processes
        found = zip(*map(of_model, models), strict=True)
    else:
        with double_precision():
            found = lax.map(of_model, items.scores)  # compiled once for all models
    return limits_at(*(at_hand(*x) for x in found), levels)


@library_program()
def _squared(error: Array) -> Array:
    """The covariance `[1, 1]` of one model, from its standard error `[1]`."""
    return squares_of(error[:, None])


@library_program()
def _pairs_with_value(pairs: Pairs, limits: ByLevel) -> Pairs:
    """The Pairs of models and a given value, the last; its pairs have the models' own limits."""
    library = numerics.namespace(pairs.error, limits.error)
    is_value = np.arange(len(pairs.df)) == len(pairs.df) - 1
    mine = is_value[:, None] != is_value

    def extended(x: Array) -> Array:
        return library.pad(x, [(0, 1), *[(0, 0)] * (x.ndim - 1)])

    own, below, above = map(extended, (limits.error, limits.below.sizes, limits.above.sizes))
    quantiles = limits.below.quantiles
    # model - value has the lower limit of the model; value - model has its upper one.
    of_value = library.where(is_value[None, :, None], below[:, None], above[None])
    sizes = library.where(mine[..., None], of_value, quantiles * pairs.error[..., None])
    shares = library.concatenate([library.where(mine, 0.0, pairs.shares), 1.0 * mine[None]])
    return Pairs(
        pairs.standard_error,
        library.where(mine, own[:, None] + own, pairs.error),
        library.where(mine, library.inf, pairs.df),
        shares,
        (*pairs.sizes, library.full((), library.inf)),
        Margins(quantiles, sizes),
    )


@library_program()
def _with_errors(covariance: Array, limits: ByLevel, value: Array, level: Array) -> Array:
    """The covariance of models and a value, scaled to the errors that the models' limits imply.

    The error of a model is the distance of its limit towards the value, over the normal quantile.
    """
    library = numerics.namespace(covariance, limits.error)
    z = library.broadcast_to(quantiles_of(level), limits.estimate.shape)
    above_it = limits.estimate > value
    errors = library.where(above_it, limits.below.at(z), limits.above.at(z)) / z
    errors = library.append(errors, 0.0)
    lost = library.append(library.isnan(limits.error), False)
    covariance = library.where(lost[:, None] | lost, 0.0, covariance)
    # The variance of a perfect model may be the rounding of 0 instead of 0.
    variances = library.diagonal(covariance)
    least = library.append(NO_VARIANCE * limits.estimate**2, 0.0)
    known = numerics.root(library.where(variances > least, variances, 0.0))
    scale = numerics.divide(errors, known, 0.0)
    alone = library.eye(len(errors), dtype=bool)
    scaled = library.where(alone, errors**2, covariance * scale * scale[:, None])
    return library.where(lost[:, None] | lost, library.nan, scaled)


@library_program()
def _with_value(estimate: Array, covariance: Covariance, value: Array) -> tuple[Array, Covariance]:
    """Append the value to the estimates and the covariance, as a model without variance."""
    library = numerics.namespace(estimate, covariance.total)

    def padded(x: Array) -> Array:
        return library.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 1), (0, 1)])

    estimate = estimate.astype(np.float64)
    # The rounding of a perfect model would be beyond its limits, which leave no room.
    is_value = library.abs(estimate - value) <= numerics.SLACK * abs(value)
    of_classes = covariance.of_classes
    more = covariance._replace(
        total=padded(covariance.total),
        of_classes=None if of_classes is None else padded(of_classes),
        between=None,  # differences from the value are those of the models
    )
    return library.append(library.where(is_value, value, estimate), value), more
