"""Paired comparisons of models that score the same items, with each other or with a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.frames import names_in
from jaxmetrics._base.host import near, near_tree
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, Items, Mesh
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.bootstrap import check_amounts, resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._compared import Comparison, check_margin, comparison_of
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.covariance import (
    Covariance,
    covariance_of,
    taken_for_known,
)
from jaxmetrics.inference._influence.heavy_negatives import in_steps
from jaxmetrics.inference._influence.sizes import (
    FEWEST,
    counted_as,
    few_among,
    smallest_sizes,
    warn_of_few_inside,
    warn_of_undefined,
)
from jaxmetrics.inference._intervals.metrics import has_influence, with_influence
from jaxmetrics.inference._intervals.ranges import Range, range_of
from jaxmetrics.inference._maxima import N_POINTS
from jaxmetrics.inference._pairs import pairs_of
from jaxmetrics.inference._tied_limits import warn_of_tied_limits


@takes_metric
@on_any_mesh
def compare(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    reference: int | str | None = None,
    margin: float | None = None,
    confidence_level: float = 0.95,
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
) -> Comparison:
    """Paired differences of models on the same items: intervals, p-values, and the best set.

    The limits of the difference d of two models are d -+ t E, with E^2 = V_0 + V_1 and
    V_c = (s_c^2 + a max(L_c - s_c^2, 0) / n_c) / n_c. Here s_c^2 is the variance in class c of the
    difference of the influence values. L_c is the variance that items may have on which the two
    models disagree, but of which none was drawn. a is 1, and up to 5 where hardly a failure of a
    model was seen. t has Welch's degrees of freedom, E^4 / sum_c (V_c^2 / (n_c - 1)), or those of
    the clusters.

    - Only metrics with a closed-form interval have a known L_c; for others E = SE(d). A metric
      without known influence values has SE(d) from paired bootstrap replicates, and normal
      quantiles.
    - With a limit of the FPR, m = n_0 max_fpr negatives are in the window. They may be so few that
      hardly one has influence. So V_0 is larger by 2 max(W - s_0^2, 0) / (m + 2) / n_0, and has
      m + 4 degrees of freedom. W is L_0 with the variances of two power laws that have the
      estimated areas. A recall has min(m, 2 sqrt(m (1 - max_fpr))) + 4 degrees of freedom, from
      the number of negatives that show the slope of the curve.
    - For average precision V_0 has (n_0 - 1) / 10 degrees of freedom, and the limits are
      d -+ (y + y^3) with y = t E: estimates that are far apart by chance also have too small a
      variance by chance. Where a negative weighs k > 1 times as much as a positive, its influence
      is what is lost without the excess, and the degrees of freedom are divided by k.

    In simultaneous limits the quantile of max |T| over all comparisons replaces t. T is normal,
    correlated as the differences are, and divided by the square root of a drawn variance. Its
    distribution is a mean over 4,096 directions of low discrepancy, with the length integrated out.
    `best_set` is Hsu's multiple comparison with the best: a model leaves the set if another model
    is better by more than E times the quantile of its one-sided maximum.
    chi2 = d' (C V C')^+ d, with d = C A the differences of the estimates A and V their covariance,
    tests that all models are equal, by the F distribution (Hotelling's T^2).

    Args:
      metric: any metric with one value for each score table. The metrics of operating points,
        `recall_at_fpr`, `sensitivity_at_specificity` and `specificity_at_sensitivity`, and those
        that are smooth in the weights need no key; others do.
      scores: `[models, n]`, higher is more positive; two models or more.
      labels: `[n]`, bool or 0 and 1.
      reference: the index or the name of one model, to compare the others with it alone; None
        compares all pairs.
      margin: a difference that is too small to matter, above 0, in the unit of the metric. It adds
        the tests that a model is not worse than another by the margin, and that two models differ
        by less than the margin.
      confidence_level: in (0, 1), of the limits and of the best set.
      key: a JAX random key, for metrics that are resampled.
      n_resamples: the number of resamples, for metrics that are resampled.
      stratify: True keeps the number of items of each class fixed in every resample; False draws
        from all items together, as clusters always are.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: errors are those of whole clusters, and whole clusters are resampled.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[n]` bool, False for items to leave out.
      amounts: `[n]`, how much each positive counts, for metrics that take amounts.
      memory_budget: the most bytes that one batch of resamples may take.
      mesh: devices that share the resamples; each has all items, and the replicates are the same.
      progress: a function of the number of finished resamples, called after each round of batches.

    Returns:
      A Comparison in the unit of the metric; pairwise `[models, models]`, row minus column, or
      `[models]` with a reference.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores are not `[models, n]` with
        two models or more, labels differ between models, the metric has several values, or a metric
        that is resampled has no key.

    NaN where the metric is NaN. A warning names such models; they stay in the set, and the best of
    the others, simultaneous limits and chi2 are computed without them. A second warning says when a
    class has fewer than ten items, or fewer than three negatives are within the limit of the FPR:
    limits then rest on disagreements that were not drawn. A third says where the limit of a recall
    with "step" or "quantile" is within a tie of many items, as of ratings. The errors do not allow
    for the jump of the curve there: equal models then differed significantly in 10 to 31 % of
    simulated data sets, and with "linear" in 4 to 6 %.

    Where two models differ and E is 0, the p-value is NaN, and both stay in the set; within `jit`,
    with three models or more, SE(d) is 0 below a millionth of the models' own. For two models
    with the same influence values the difference and its limits are 0 and the p-value is 1. Two
    models without a failure may still be different: their difference is 0, with limits around it.
    Errors and limits are NaN where a class is absent, or one cluster has all items of it.
    `standard_error` is SE(d), without L_c; `z` is d / E, or for average precision y / E with y +
    y^3 = d. Simultaneous p-values are at least those of the pair, and at most Bonferroni's. Where
    the error of a difference is below a millionth of the largest, all are Bonferroni's, as limits
    are. Limits are not clipped to the range of the metric. Time O(models n log n + models^2 n), or
    as `bootstrap`; memory O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> result = jm.compare(jm.roc_auc, scores, labels)
      >>> print(f"{result.difference[0, 1]:.3f} -+ {result.standard_error[0, 1]:.3f}")
      0.562 -+ 0.265

    References: E. R. DeLong et al., Biometrics 44, 1988; T. Hothorn, F. Bretz and P. Westfall,
    "Simultaneous inference in general parametric models", Biometrical Journal 50, 2008; J. C. Hsu,
    "Multiple Comparisons: Theory and Methods", 1996, chapter 4.
    """
    record_of(metric)  # refused before any data
    given = (scores, labels, weights, where, amounts)
    items = checks.check_items(*given, along={"clusters": clusters})
    level = checks.check_level(confidence_level)
    margin = check_margin(margin, metric)
    check_amounts(metric, items)
    n_models = checks.check_models(items)
    numbers = 4 * (N_POINTS + 8 * n_models) * n_models
    checks.check_fits("the number of models", n_models, numbers, "compare fewer at a time")
    reference = checks.check_reference(reference, names_in(scores), n_models)
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress, mesh=mesh
    )
    estimate, covariance, bounds = estimated(metric, items, request, _OF_MODELS)
    warn_of_undefined(estimate, "model", names_in(scores))
    warn_of_tied_limits(metric, items)
    pairs = pairs_of(estimate, covariance, bounds)
    between = covariance.between or covariance
    return comparison_of(estimate, between.total, pairs, level, reference, margin)


def estimated(
    metric: MetricLike, items: Items, request: Request, found: str
) -> tuple[Array, Covariance, Range | None]:
    """The metric `[models]`, its covariance, and its Range if known.

    Warns of few items; `found` is what simulations found with few within the limit of a rate.
    """
    given = metric, items
    metric, items = with_influence(metric, items)
    known = has_influence(record_of(metric))
    request.check(needs_key=not known)
    warn_of_few_to_compare(*given, request.clusters, found if known else "")
    if known:
        by_steps, bounds = in_steps(metric, items, range_of(metric))
        estimate, covariance = near_tree(covariance_of(by_steps, items, request.clusters, bounds))
        return estimate, covariance, bounds
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    result = resampled(metric, items, request)
    covariance = taken_for_known(_covariance_of(near(result.replicates)))  # with little error
    return near(result.estimate), covariance, None


_OF_MODELS = "0 to 4 % of equal models differ at 5 %, by errors that assume a shape of the curve"
_OF_CLUSTERS = "2 to 15 % of equal models differ at 5 %"


def warn_of_few_to_compare(
    metric: MetricLike, items: Items, ids: Clusters | None, found: str
) -> None:
    """Warn of few items of a class, and of few within a limit of a rate.

    `found` is what simulations found with few items within the limit; "" leaves that warning out.
    """
    sizes = smallest_sizes(items, ids) or {}
    if found:
        warn_of_few_inside(metric, sizes, found if ids is None else _OF_CLUSTERS)
    for what, size in few_among(sizes):
        warn(
            f"a comparison rests on {counted_as(size, what)}: with fewer than {FEWEST} models may "
            "differ on items of which none was drawn, and in simulations some 95 % limits of "
            f"differences cover less than 88 %: add {what}",
        )


@library_program()
def _covariance_of(replicates: Array) -> Array:
    """The covariance `[models, models]` of replicates `[n_resamples, models]`, without NaN rows.

    A model that is NaN in every row has NaN covariances; the others keep their rows.
    """
    library = numerics.namespace(replicates)
    replicates = replicates.astype(np.float64)
    lost = library.all(library.isnan(replicates), axis=0)
    defined = ~library.any(library.isnan(replicates) & ~lost, axis=1, keepdims=True)
    count = library.sum(defined)
    kept = library.where(defined, replicates, 0)
    kept = library.where(lost, 0, kept)
    centred = library.where(defined, kept - library.sum(kept, axis=0) / count, 0)
    covariance = centred.T @ centred / (count - 1)
    return library.where(lost | lost[:, None], library.nan, covariance)
