"""The bootstrap of any metric of a score table, and of means of values of queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.host import as_jax, is_concrete, of_all_processes
from jaxmetrics._base.items import at_least_one, batch_of, items_at_hand, rows_of
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items, Mesh
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._bootstrap.result import BootstrapResult
from jaxmetrics.inference._bootstrap.run import Replicates, resample_items, resample_means
from jaxmetrics.inference._intervals.interval import standard_deviation
from jaxmetrics.inference._intervals.means import moments_of_sample


@takes_metric
@on_any_mesh
def bootstrap(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    key: Array,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    resampling: str = "multinomial",
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    batch: int | None = None,
    memory_budget: int = MEMORY_BUDGET,
    mesh: Mesh | None = None,
    progress: Callable[[int], None] | None = None,
) -> BootstrapResult:
    """Bootstrap replicates of a metric: its values on resamples drawn with replacement.

    theta*_b = metric with item i counted c_bi times, with counts c_b multinomial within each class.
    One sort serves all resamples. All models of a batch get the same resamples, so the replicates
    of two models may be subtracted. Resampling skips items that cannot change the metric; the
    distribution of the replicates stays exact.

    Args:
      metric: any metric of a score table, a functools.partial of one, or a function of a
        ScoreTable; it may return several values. Define it once: each new function, such as a
        lambda in a loop, is a new program, which JAX keeps.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      key: a JAX random key. The same key gives the same replicates for every `batch`.
      n_resamples: the number of resamples, at least 1.
      stratify: True keeps the number of items of each class fixed in every multinomial resample;
        False draws from all items together.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) are drawn
        together; clusters are drawn from all clusters, and `stratify` has no effect.
      resampling: "multinomial"; "poisson", independent counts of mean 1; "bayesian", weights from
        an exponential distribution.
      weights: `[..., n]`, not negative; an item's count multiplies its weight.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, how much each positive counts, for metrics that take amounts.
      batch: the number of resamples in memory at a time, in place of what `memory_budget` allows.
      memory_budget: the most bytes that one batch may take; on the CPU as many batches run at once
        as there are processors.
      mesh: its devices share the resamples, and each holds all items. The replicates are the same.
      progress: a function of the number of finished resamples, called after each round of batches;
        with a mesh once.

    Returns:
      A BootstrapResult, whose replicates are `[n_resamples, ...]` in the unit of the metric. If
      labels or where differ along the batch, each row is resampled separately.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; the key is missing, n_resamples
        is below 1, memory cannot hold the replicates or a batch, or clusters are not `[n]`.

    NaN where the metric is NaN, and in resamples that lack a class; `n_undefined` counts both.

    Time O(n log n) for the sort, then about 2 ns for each resample of each item. For one model
    without weights, amounts and clusters, runs of neighbouring items of one class take the place of
    items: for areas under the ROC curve and recall at a false positive rate all such runs, and for
    average precision the runs of negatives, beside each distinct score of the positives. Without
    weights and clusters, stratified, not Bayesian and outside of `jit`, only the runs up to
    `max_fpr` are drawn; for one model with amounts, and for several models with more than 131,072
    negatives, the items up to `max_fpr`. Outside of `jit`, items of up to 16 distinct weights form
    runs of one weight. Memory O(n + memory_budget).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
      >>> result = jm.bootstrap(jm.roc_auc, scores, labels, key=jax.random.key(0))
      >>> print(result.replicates.shape, bool(result.standard_error > 0))
      (2000,) True

    References: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", 1993; D. B. Rubin,
    "The Bayesian bootstrap", Annals of Statistics 9, 1981.
    """
    record_of(metric)  # an invalid metric is refused before the data are checked
    given = (scores, labels, weights, where, amounts)
    items = checks.check_items(*given, along={"clusters": clusters})
    ids = checks.check_clusters(clusters, items)
    request = Request(
        key, n_resamples, stratify, ids, resampling, batch, memory_budget, progress, mesh
    )
    check_amounts(metric, items)
    return resampled(metric, items, request)


def check_amounts(metric: MetricLike, items: Items) -> None:
    """Refuse amounts for a metric that takes none."""
    if items.amounts is not None and not record_of(metric).amounts:
        raise TypeError(
            "amounts are for metrics that take them, such as recall_at_fpr: leave amounts out"
        )


def resampled(metric: MetricLike, items: Items, request: Request) -> BootstrapResult:
    """The bootstrap of checked items."""
    chosen, arrays = choose(metric)
    batch, n = _shape_of(items)
    n_values = int(np.prod(batch)) * chosen.size(arrays, n)
    request.check(n_values=n_values, n_items=n)
    found = replicates_of(metric, items, request)
    if not jax.tree.leaves(found.values):
        raise TypeError(
            "metric must return a number or a pytree of numbers, got none: write return"
        )
    result = result_of(found)
    if is_concrete(result.n_undefined):
        lacking = np.sum(~np.asarray(found.defined)[1:], axis=0)
        _warn_of_undefined(np.asarray(result.n_undefined), lacking, request)
    return result


def result_of(found: Replicates) -> BootstrapResult:
    """The result of replicates, the first of which is the metric of the data."""
    dtype, defined = numerics.default_float(), found.defined
    library = numerics.namespace(defined, *jax.tree.leaves(found.values))

    def usable(values: Any) -> Any:
        shape = defined.shape + (1,) * (values.ndim - defined.ndim)
        return library.where(defined.reshape(shape), values.astype(dtype), np.nan)[1:]

    estimate = jax.tree.map(lambda x: x[0].astype(dtype), found.values)
    values = jax.tree.map(usable, found.values)
    errors = jax.tree.map(standard_deviation, values)
    undefined = ~defined[1:]
    for x in jax.tree.leaves(values):
        undefined = undefined | library.isnan(x).reshape(*undefined.shape, -1).any(axis=-1)
    parts = estimate, values, errors, library.sum(undefined, axis=0)
    return BootstrapResult(*jax.tree.map(as_jax, parts))


def _warn_of_undefined(n_undefined: HostArray, n_lacking: HostArray, request: Request) -> None:
    n_resamples = request.n_resamples
    most, lacking = (int(x.max(initial=0)) for x in (n_undefined, n_lacking))
    if most == n_resamples:
        warn(
            "the metric is undefined, as a class is absent or a score is NaN: its standard error "
            "is NaN",
        )
    elif lacking:
        together = request.clusters is not None or request.stratify
        hint = "" if together else ": write stratify=True to draw each class separately"
        warn(
            f"{lacking} of {n_resamples} resamples have items of one class only and are left "
            f"out{hint}",
        )
    elif most:
        warn(
            f"{most} of {n_resamples} resamples have both classes, but the metric is NaN, and they "
            "are left out, which biases its error: guard a division by 0, as the first rows of a "
            "table may have weight 0",
        )


def replicates_of(metric: MetricLike, items: Items, request: Request) -> Replicates:
    """Replicates `[n_resamples + 1, ..., *value]`; the first is the metric of the data."""
    # Threads start the programs, in no order that processes would share.
    items = items_at_hand(of_all_processes(at_least_one(items)))
    given = {k: v for k, v in items._asdict().items() if v is not None}
    batch, n = _shape_of(items)
    shared = all(x is None or x.size == n for x in (items.labels, items.where))

    def flat(x: Any, alone: bool) -> Any:
        library = numerics.namespace(x)
        return x.reshape(n) if alone else library.broadcast_to(x, (*batch, n)).reshape(-1, n)

    models = Items(**{k: flat(v, k != "scores" and v.size == n) for k, v in given.items()})
    if shared:
        found = resample_items(metric, models, request)
    else:
        rows = rows_of(models, models.scores.shape[:1], 2)
        alone = (row._replace(scores=row.scores[None]) for row in rows)
        each = [resample_items(metric, one, request) for one in alone]
        library = np if all(isinstance(x, np.ndarray) for x in jax.tree.leaves(each)) else jnp
        found = jax.tree.map(lambda *parts: library.concatenate(parts, axis=1), *each)
    return jax.tree.map(lambda x: x.reshape(len(x), *batch, *x.shape[2:]), found)


def _shape_of(items: Items) -> tuple[tuple[int, ...], int]:
    """The shape of the batch, and the number of items."""
    checks.check_rows(items)
    batch = batch_of(items)
    return batch, items.scores.shape[-1]


@on_any_mesh
def bootstrap_mean(
    values: ArrayLike,
    *,
    key: Array,
    n_resamples: int = 2000,
    resampling: str = "multinomial",
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    batch: int | None = None,
    memory_budget: int = MEMORY_BUDGET,
    mesh: Mesh | None = None,
) -> BootstrapResult:
    """Bootstrap replicates of a mean over queries, such as the mean nDCG.

    mean*_b = sum_q c_bq w_q v_q / sum_q c_bq w_q, with counts c_b of the queries multinomial. All
    rows get the same resamples, so the replicates of two models may be subtracted.

    Args:
      values: `[..., queries]`, a value for each query, with a row for each model.
      key: a JAX random key. The same key gives the same replicates for every `batch`.
      n_resamples: the number of resamples, at least 1.
      resampling: "multinomial"; "poisson", independent counts of mean 1; "bayesian", weights from
        an exponential distribution.
      weights: `[..., queries]`, not negative; a query's count multiplies its weight.
      where: `[..., queries]` bool, False for queries to leave out, such as ~isnan(values).
      batch: the number of resamples in memory at a time, in place of what `memory_budget` allows.
      memory_budget: the most bytes that one batch may take.
      mesh: its devices share the resamples, and each holds all values. The replicates are the
        same.

    Returns:
      A BootstrapResult, whose replicates are `[n_resamples, ...]` in the unit of the values, and
      whose `interval()` is by default the closed form "mean".

    Raises:
      TypeError, ValueError: as the conventions list under Errors; the key is missing, or a weight
        is negative or not finite.

    NaN where a valid value is NaN, where no query is valid, and in resamples without a valid query.
    Time O(n_resamples queries rows), memory O(memory_budget).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> result = jm.bootstrap_mean([.5, .9, .4, 1., .3, .8, .5, .6], key=jax.random.key(0))
      >>> found = result.interval()
      >>> print(f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})")
      0.625 (0.371 to 0.861)

    References: P. Hall, "On the removal of skewness by transformation", JRSS B 54, 1992, for the
    interval; M. D. Smucker, J. Allan and B. Carterette, "A comparison of statistical significance
    tests for information retrieval evaluation", CIKM 2007.
    """
    items = checks.check_values(values, weights, where)
    request = Request(
        key,
        n_resamples,
        stratify=False,
        resampling=resampling,
        batch=batch,
        memory_budget=memory_budget,
        mesh=mesh,
    )
    rows, n = _shape_of(items)
    request.check(n_values=int(np.prod(rows)), n_items=n)
    items = items_at_hand(items)
    result = result_of(resample_means(items, request))
    given = items.scores, items.weights, items.where
    sample = moments_of_sample(*given, numerics.default_float())
    return dataclasses.replace(result, sample=sample)
