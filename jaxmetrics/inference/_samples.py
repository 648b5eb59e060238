"""Comparisons of independent samples: sites, months, cohorts."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import all_concrete, as_numpy, at_hand, near, near_tree
from jaxmetrics._base.items import class_weights, items_at_hand, shared_by_models
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._compared import Comparison, check_margin, comparison_of
from jaxmetrics.inference._forms import CLOSED, chosen_method, form_of, limits_of_items
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.covariance import covariance_of
from jaxmetrics.inference._influence.sizes import FEWEST, counted_as, too_few, warn_of_undefined
from jaxmetrics.inference._intervals.clustered import OfClusters, degrees_of_clusters
from jaxmetrics.inference._intervals.metrics import error_bars_of, has_influence, with_influence
from jaxmetrics.inference._intervals.rules import unrounded
from jaxmetrics.inference._margins import levels_for, limits_at
from jaxmetrics.inference._pairs import Pairs, only_number
from jaxmetrics.inference._pairs_of_samples import (
    VarianceParts,
    pairs_by_limits,
    pairs_of_samples,
)

# A metric that rises with the share of positives is warned of from this ratio of two shares on.
_ALIKE = 1.2


@takes_metric
@on_any_mesh
def compare_samples(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    reference: int | str | None = None,
    margin: float | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
    key: Array | None = None,
    n_resamples: int = 2000,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
) -> Comparison:
    """Differences of a metric between independent groups of items: sites, months, cohorts.

    The limits of the difference d = A_g - A_h of two groups are
    d - sqrt((A_g - l_g)^2 + (u_h - A_h)^2) and d + sqrt((u_g - A_g)^2 + (A_h - l_h)^2), with l and
    u the limits of each group by `confidence_interval` at the same level. The p-value is 1 - the
    level at which a limit of d is 0, found by interpolation. Simultaneous limits are the limits at
    the level of the quantile of max |Z| over all pairs. The best group and chi2 are those of
    `compare`; the error of each group is half the width of its interval over the normal quantile.

    The limits by method="delong" are d -+ t sqrt(SE_g^2 + SE_h^2), with Welch's degrees of freedom
    from n_g - 1 and n_h - 1. n_g counts all items of a group, which are too many where few of them
    are positive. Metrics without a closed-form or logit interval have the same limits, with degrees
    of freedom by class, or with errors by the bootstrap.

    Args:
      metric: any metric with one value for each score table; metrics without known influence values
        are resampled within each group, and need a key.
      scores: `[n]` or `[models, n]`, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      groups: `[n]`, integers or strings, not traced: two groups or more, which are compared in the
        order of `numpy.unique`. Items of different groups do not depend on each other.
      reference: the index or the name of one group, to compare the others with it alone; None
        compares all pairs.
      margin: a difference that is too small to matter, above 0, in the unit of the metric.
      confidence_level: in (0, 1).
      method: "auto" or "delong".
      key: a JAX random key, for metrics that are resampled.
      n_resamples: the number of resamples of each group, for such metrics.
      clusters: `[n]`, integers or strings, each within one group. Items of one cluster may depend
        on each other.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      where: `[n]` bool, False for items to leave out.
      memory_budget: the most bytes that one batch of resamples may take.

    Returns:
      A Comparison of groups: pairwise `[groups, groups]`, row minus column, or `[groups]` with a
      reference; with an axis of models before these if scores have one.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; there is one group, a cluster is
        in two, or the metric has several values.

    NaN where the metric of a group is NaN, and where a class of a group has one item. Warns where a
    class of a group has fewer than ten items. Time O(groups n log n) and memory O(n) for each
    model.

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [.1, .4, .35, .8, .7, .2, .9, .3, .6, .5, .2, .7]
      >>> labels = [0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1]
      >>> found = jm.compare_samples(jm.roc_auc, scores, labels, ["a"] * 6 + ["b"] * 6)
      >>> print(f"{found.difference[0, 1]:.3f} -+ {found.standard_error[0, 1]:.3f}")
      -0.250 -+ 0.289

    References: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a
    general approach", Statistics in Medicine 27, 2008; X. Robin et al., "pROC", BMC Bioinformatics
    12, 2011, for "delong".
    """
    along = {"clusters": clusters, "groups": groups}
    record_of(metric)  # refused before any data
    items = checks.check_items(scores, labels, weights, where, along=along)
    level, margin = checks.check_level(confidence_level), check_margin(margin, metric)
    checks.check_choice("method", method, ("auto", "delong"))
    one = checks.check_one_or_models(items)
    items = shared_by_models(items)
    hint = "name the missing value, or leave its items out with where="
    names, index = checks.check_ids("groups", groups, items, hint)
    n_groups = len(names)
    if n_groups < 2:
        raise ValueError(f"groups must be two or more, got {n_groups}: write confidence_interval")
    instead = "compare fewer at a time"
    checks.check_fits("the number of groups", n_groups, 9 * n_groups**3, instead)
    reference = checks.check_reference(reference, names.tolist(), n_groups)
    ids = checks.check_clusters(clusters, items)
    if ids is not None:
        _refuse_shared(ids[0], index)
    metric, items = with_influence(metric, items)
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    known = has_influence(chosen.metric)
    request = Request(key, n_resamples, True, ids, memory_budget=memory_budget)
    request.check(needs_key=not known)
    of_groups = [_of_group(items, index == g) for g in range(n_groups)]
    for g, group in enumerate(of_groups):
        _warn_of_small_group(group, ids, str(names[g]))
    _warn_of_prevalence(metric, items, index, names)
    by_limits = method == "auto" and chosen_method(metric) in CLOSED
    pairs_of_groups = _by_limits if by_limits else partial(_by_errors, delong=method == "delong")
    rows = []
    for i in range(1 if one else len(items.scores)):
        own = [x._replace(scores=x.scores if one else x.scores[i]) for x in of_groups]
        estimate, variance, pairs = pairs_of_groups(metric, own, request, level)
        warn_of_undefined(estimate, "group", names)
        covariance = numerics.namespace(variance).diag(variance)
        rows.append(comparison_of(estimate, covariance, pairs, level, reference, margin))
    found = rows[0] if one else jax.tree.map(lambda *x: jnp.stack(x), *rows)
    return found._captioned_as(group=names)


def _refuse_shared(ids: HostArray, index: HostArray) -> None:
    first = np.zeros(ids.max(initial=0) + 1, np.int64)
    first[ids] = index
    if np.any(first[ids] != index):
        raise ValueError(
            "each of the clusters must be within one of the groups, as groups do not depend on "
            "each other: with shared clusters compare models by compare(...), and sites or months "
            "by slices(..., clusters=...)"
        )


def _of_group(items: Items, mine: HostArray) -> Items:
    """The items, with those of the other groups masked."""
    return items._replace(where=mine if items.where is None else near(items.where) & mine)


def _warn_of_prevalence(
    metric: MetricLike, items: Items, index: HostArray, names: HostArray
) -> None:
    """Warn of a metric that may differ only because the groups' shares of positives do."""
    if not error_bars_of(record_of(metric)).of_prevalence or not all_concrete(*items):
        return
    of_classes = class_weights(items_at_hand(items))
    positives, negatives = (as_numpy(x).astype(np.float64) for x in of_classes)
    if positives.ndim > 1:
        positives, negatives = positives[0], negatives[0]
    n = [np.bincount(index, np.broadcast_to(x, index.shape)) for x in (positives, negatives)]
    shares = n[0] / np.maximum(n[0] + n[1], 1e-300)
    low, high = int(shares.argmin()), int(shares.argmax())
    if shares[high] > _ALIKE * shares[low]:
        warn(
            f"the metric rises with the share of positives, which is {shares[low]:.2g} in group "
            f"{names[low]} and {shares[high]:.2g} in {names[high]}: equally good scores differ; "
            "compare by roc_auc or partial_auc, or weight the negatives to one share",
        )


def _warn_of_small_group(group: Items, ids: Clusters | None, g: str) -> None:
    for what, size in too_few(group, ids):
        warn(
            f"group {g} has {counted_as(size, what)}: with fewer than {FEWEST} some 95 % limits of "
            f"differences cover less than they say: add {what}",
        )


def _by_limits(
    metric: MetricLike, groups: list[Items], request: Request, level: float
) -> tuple[Array, Array, Pairs]:
    """The metric of the groups, its variance, and their pairs."""
    form = form_of(metric, chosen_method(metric))
    levels = levels_for(level)

    def limits(where: Any) -> tuple[Array, ...]:
        return limits_of_items(form, groups[0]._replace(where=where), request.clusters, levels)

    masks: Any = [x.where for x in groups]
    found: Any
    if all_concrete(*groups[0]):
        found = zip(*map(limits, masks), strict=True)
    else:
        found = jax.vmap(limits)(jnp.stack(masks))  # traced once for all groups
    limited = limits_at(*(at_hand(*x) for x in found), levels)
    return limited.estimate, *pairs_by_limits(limited)


def _by_errors(
    metric: MetricLike, groups: list[Items], request: Request, level: float, *, delong: bool
) -> tuple[Array, Array, Pairs]:
    known = has_influence(record_of(metric))
    found = [_estimated(metric, x, request, g, known) for g, x in enumerate(groups)]
    stacked = [at_hand(*x) for x in zip(*found, strict=True)]
    estimate, variance, parts = _in_parts(*stacked, delong)
    return estimate, variance, pairs_of_samples(variance, parts)


def _estimated(
    metric: MetricLike, items: Items, request: Request, g: int, known: bool
) -> tuple[Any, ...]:
    """The metric, its variance, the parts by class, the sizes, and `Covariance.mixed`."""
    if known:
        items = items._replace(scores=items.scores[None])
        estimate, found = near_tree(covariance_of(metric, items, request.clusters))
        assert found.of_classes is not None
        library = numerics.namespace(estimate)
        sizes = library.stack([*map(only_number, found.sizes)])
        of_classes = found.of_classes[:, 0, 0]
        return estimate[0], found.total[0, 0], of_classes, sizes, only_number(found.mixed)
    own = request._replace(key=jax.random.fold_in(request.key, g))
    result = resampled(metric, items, own)
    error = near(result.standard_error).astype(np.float64)
    parts, sizes = error**2 * np.array([0.0, 1.0]), np.full(3, np.inf)
    return near(result.estimate), error**2, parts, sizes, np.float64(0)


@library_program("delong")
def _in_parts(
    estimate: tuple[Array, ...],
    total: tuple[Array, ...],
    parts: tuple[Array, ...],
    sizes: tuple[Array, ...],
    mixed: tuple[Array, ...],
    delong: bool,
) -> tuple[Array, Array, VarianceParts]:
    """The metric of the groups, its variance, and the parts of that."""
    library = numerics.namespace(*estimate, *total)
    values, variance, share = (library.stack([*x]) for x in (estimate, total, mixed))
    variance = unrounded(variance, values)
    of_classes, n = library.stack([*parts], axis=1), library.stack([*sizes], axis=1)
    if delong:
        none = library.zeros_like(variance)
        df = library.maximum(n[2] - 1, 1.0)
        return values, variance, VarianceParts(library.stack([none, none, variance]), n, df)
    df = degrees_of_clusters(OfClusters(of_classes[0], of_classes[1], variance, (*n,), share))
    apart = numerics.divide(of_classes, library.sum(of_classes, axis=0), 0.5)
    weights = library.concatenate([(1 - share) * apart, share[None]])
    return values.astype(np.float64), variance, VarianceParts(weights * variance, n, df)
