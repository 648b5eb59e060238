"""Permutation tests of pairs of models: the two models swap their ranks of random items."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.cumulative import runs
from jaxmetrics._base.double import as_default, library_program
from jaxmetrics._base.frames import names_in
from jaxmetrics._base.host import all_concrete, at_hand, of_all_processes
from jaxmetrics._base.items import at_least_one, items_at_hand, shared_by_models
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.pair_rows import each_pair_once
from jaxmetrics._base.results import Column, Result, Table
from jaxmetrics._base.sorting import starts
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.order import in_order
from jaxmetrics._roc.record import MetricLike, choose, evaluate_chosen, record_of
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._bootstrap.run import resample_swaps
from jaxmetrics.inference._influence.gradient import as_given
from jaxmetrics.inference._influence.sizes import warn_of_undefined

_ROUNDING = 1e-13  # of a metric, beside its value


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PermutationTest(Result):
    """Permutation tests of pairs of models.

    Attributes:
      estimate: `[models]`, the metric of each model.
      difference: `[models, models]`, the difference of the metric, row minus column.
      p_value: `[models, models]`, two-sided, for each pair alone.
    """

    estimate: Array
    difference: Array
    p_value: Array

    def _table(self) -> Table:
        estimate, shape = np.asarray(self.estimate), np.shape(self.difference)
        both = {"estimate": estimate[..., None], "minus_estimate": estimate[..., None, :]}
        columns = [
            Column("", both),
            Column("difference", {"difference": self.difference}),
            Column("p", {"p_value": self.p_value}, form="p"),
        ]
        index = self._rows(shape, "model", "minus")
        title = f"Differences of {self._caption.metric}"
        return each_pair_once(Table(title, index, columns, ("permutation test",)), shape)


@takes_metric
@on_any_mesh
def permutation_test(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    key: Array,
    n_resamples: int = 10_000,
    clusters: ArrayLike | None = None,
    where: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """P-values of permutation tests of pairs of models, which swap the ranks of random items.

    p = (1 + #{b: |d*_b| >= |d|}) / (1 + n_resamples), with d the difference of two models. For
    d*_b a fair coin decides for each item whether the two models swap their ranks of it. Ranks,
    with ties averaged, replace the scores because the scores of two models need not have the same
    unit. The test is exact under the hypothesis that the two models rank items exchangeably; with
    clusters, that they rank whole clusters so, whose items share a coin. K clusters have no p-value
    below 2^(1 - K).

    Args:
      metric: any metric with one value for each score table that depends on the ranks alone.
      scores: `[models, n]`, higher is more positive; two models or more.
      labels: `[n]`, bool or 0 and 1.
      key: a JAX random key. All pairs of models use the same coins.
      n_resamples: the number of permutations, at least 1.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other.
      where: `[n]` bool, False for items to leave out.
      memory_budget: the most bytes that one batch of permutations may take.

    Returns:
      A PermutationTest `[models, models]`, row minus column, in the unit of the metric.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores are not `[models, n]` with
        two models or more, labels differ between models, or the metric has several values, or is
        not of the ranks alone, as a threshold is not (unseen where arrays are traced).

    NaN where the metric is NaN; the p-value of a model and itself is 1. Time
    O(models^2 n_resamples n), memory O(n + memory_budget).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> test = jm.permutation_test(jm.roc_auc, scores, labels, key=jax.random.key(0))
      >>> print(bool(.05 < test.p_value[0, 1] < .3))
      True

    References: E. S. Venkatraman and C. B. Begg, "A distribution-free procedure for comparing
    receiver operating characteristic curves from a paired experiment", Biometrika 83, 1996;
    A. I. Bandos, H. E. Rockette and D. Gur, "A permutation test sensitive to differences in areas
    for comparing ROC curves from a paired design", Statistics in Medicine 24, 2005.
    """
    record_of(metric)  # refused before any data
    items = checks.check_items(scores, labels, None, where, along={"clusters": clusters})
    ids, items = checks.check_clusters(clusters, items), at_least_one(items)
    n_models = checks.check_models(items)
    request = Request(key, n_resamples, clusters=ids, memory_budget=memory_budget)
    request.check(n_values=n_models * (n_models - 1))
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, items.scores.shape[-1])
    flat = items_at_hand(shared_by_models(items))
    ranks, estimate = _ranks(flat), evaluate_chosen(metric, items)
    warn_of_undefined(estimate, "model", names_in(scores))
    if all_concrete(ranks, estimate):
        ranked = evaluate_chosen(metric, items._replace(scores=ranks))
        _refuse_values(*of_all_processes((estimate, ranked)))
    pairs = tuple(itertools.combinations(range(n_models), 2))
    values = [
        resample_swaps(
            metric, flat._replace(scores=_of_pair(ranks, np.array(pair))), request
        ).values
        for pair in pairs
    ]
    found = _of_pairs(*at_hand(estimate), values)
    return PermutationTest(estimate, *map(as_default, found))


def _refuse_values(given: Array, ranked: Array) -> None:
    """Raise where the metric of the ranks is not that of the scores, `[models]`."""
    differs = ~np.isclose(given, ranked, rtol=1e-5, atol=1e-6, equal_nan=True)
    if differs.any():
        model = int(differs.argmax())
        raise ValueError(
            "permutation_test needs a metric of the ranks alone, as models swap their ranks, got "
            f"one that is {given[model]:.3g} for the scores of model {model} and "
            f"{ranked[model]:.3g} for their ranks: write jm.bootstrap(metric, ...) instead"
        )


@library_program()
def _of_pairs(estimate: Array, values: list[Array]) -> tuple[Array, Array]:
    """Differences and p-values from values `[1 + n_resamples, 2]` of each pair, the data first."""
    library = numerics.namespace(estimate, *values)
    both = library.stack(values)
    swapped = both[..., 0] - both[..., 1]  # `[pairs, 1 + n_resamples]`
    # Equal values, and equal differences, may be sums in another order, rounded differently.
    rounding = _ROUNDING * library.max(library.abs(both[:, 0]), axis=-1)
    found = library.where(library.abs(swapped[:, 0]) <= rounding, 0, swapped[:, 0])
    extreme = library.abs(swapped) >= library.abs(found[:, None]) * (1 - 1e-9)
    count = library.sum(extreme, axis=-1, dtype=np.float64)
    p = library.where(
        library.isnan(found), library.nan, numerics.rates(count, library.float64(len(both[0])))
    )
    model = np.arange(len(estimate))
    side = np.sign(model - model[:, None])  # 1 where the pair is, -1 where it is turned around
    pair = np.zeros_like(side)
    pair[side > 0] = np.arange(len(values))  # in the order of `itertools.combinations`
    pair += pair.T
    own = (estimate - estimate).astype(np.float64)[:, None]  # NaN where the metric is
    difference = library.where(side == 0, own, side * found[pair])
    return difference, library.where(side == 0, 1 + own, p[pair])


@library_program()
def _of_pair(ranks: Array, pair: Array) -> Array:
    return ranks[pair]


@library_program()
def _ranks(items: Items) -> Array:
    """Minus twice the rank from the top `[models, n]`, ties averaged; higher is more positive.

    They are whole numbers, in the narrowest float that holds them exactly, as it sorts faster.
    """
    order = in_order(items)

    def of_keys(keys: Array) -> Any:
        first, after = runs(starts(keys))
        return 1 - first - after

    ranks: Any
    if numerics.namespace(*order) is np:
        sorted_ranks = np.stack([of_keys(keys) for keys in order.keys])
        ranks = np.empty_like(sorted_ranks)
        np.put_along_axis(ranks, order.item, sorted_ranks, -1)
    else:
        ranks = jax.vmap(as_given)(jax.vmap(of_keys)(order.keys), order.item)
    exact = 2 * ranks.shape[-1] <= 2 ** (np.finfo(np.float32).nmant + 1)
    ranks = ranks.astype(np.float32 if exact else np.float64)
    return numerics.namespace(ranks).where(items.scores == items.scores, ranks, np.nan)
