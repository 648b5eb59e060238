"""Values of a metric in slices of the items, their covariance, and their limits at many levels."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics._roc.sliced import Sliced
from jaxmetrics.inference._forms import Form, limits_of_form
from jaxmetrics.inference._influence.differences import between_models
from jaxmetrics.inference._influence.slice_covariance import (
    covariance_in_slices,
    covariance_of_threshold,
)
from jaxmetrics.inference._influence.slice_decisions import decided_by_all, decided_in_slices
from jaxmetrics.inference._influence.slice_slopes import InSlices, smooth_in_slices
from jaxmetrics.inference._intervals.metrics import error_bars_of, has_influence
from jaxmetrics.inference._intervals.rules import Moments

_FEW = 128  # slices whose limits a thread computes at a time


def _flat(x: Any) -> Any:
    return None if x is None else np.asarray(x).reshape(-1)


class SlicedItems(NamedTuple):
    """The items by slice; scores `[models, n]` and weights `[n]` are in the order of `sliced`."""

    sliced: Sliced
    scores: list[HostArray]
    weights: Any
    one_threshold: bool


def sliced_items(items: Items, ids: HostArray, n: int, one_threshold: bool) -> SlicedItems:
    """The SlicedItems; `ids` has the slice of each item, from 0 to n - 1."""
    labels, where, weights = map(_flat, (items.labels, items.where, items.weights))
    sliced = Sliced.of(labels == 1, ids, n, where, weights, one_unit=one_threshold)
    scores = in_threads(lambda row: row.take(sliced.item), np.atleast_2d(np.asarray(items.scores)))
    taken = None if weights is None else weights.take(sliced.item)
    return SlicedItems(sliced, scores, taken, one_threshold)


class SliceEstimates(NamedTuple):
    """Results for the share, from 0 to 1, that the closed form is for.

    Attributes:
      estimate: `[slices, models]`.
      of_classes: `[slices, 2, models, models]`, the parts of the covariance.
      sizes: `[slices]` each, the effective sizes of negatives and positives.
      numbers: the further numbers that the closed form needs, `[slices, models, ...]`.
      between: `between_models` of `of_classes`.
    """

    estimate: HostArray
    of_classes: Any
    sizes: tuple[HostArray, HostArray]
    numbers: Any
    between: HostArray


def slice_estimates(items: SlicedItems, form: Form, levels: HostArray) -> SliceEstimates:
    """The SliceEstimates of the metric of the form; `levels` are those of the limits to come."""
    chosen, arrays = choose(form.metric)
    decides = error_bars_of(chosen.metric).decision is not None
    sliced, scores, _, one_threshold = items
    arrays = {name: np.asarray(x) for name, x in arrays.items()}
    sizes = sliced.sizes[:, 0], sliced.sizes[:, 1]
    if one_threshold:
        both = in_threads(lambda x: decided_by_all(chosen, arrays, sliced, x, levels), scores)
        found = [x[0] for x in both]
    else:
        way = decided_in_slices if decides else smooth_in_slices
        found = in_threads(lambda x: way(chosen, arrays, sliced, x, levels), scores)
    influence: Any = [x.influence for x in found]
    of_classes: Any = covariance_in_slices(sliced, influence, held=decides)

    def of_pair(a: Any, b: Any) -> Any:
        difference = influence[a] - influence[b]
        return covariance_in_slices(sliced, [difference], held=decides)[..., 0, 0]

    if one_threshold:
        negative = ~sliced.positive
        weight = None if sliced.weights is None else sliced.weights[negative]
        flagged = np.stack([x[1].flagged[negative] for x in both])
        slopes = np.stack([x[1].slopes for x in both], axis=1)
        size, of_classes[:, 0] = covariance_of_threshold(weight, flagged, slopes)
        sizes = np.full(len(sliced.counts), size), sizes[1]
    between: Any = of_classes if one_threshold else between_models(of_classes, of_pair)
    estimate, numbers = _of_models(items, found)
    return SliceEstimates(estimate, of_classes, sizes, numbers, between)


def weights_of_positives(items: SlicedItems) -> HostArray:
    """The total weight of the positives of each slice, in the same unit for all slices."""
    if items.weights is None:
        return items.sliced.totals[:, 1]
    weights = items.weights.astype(np.float64)
    return items.sliced.sums(weights / weights.max(initial=1e-300))[:, 1]


def _of_models(items: SlicedItems, found: list[InSlices]) -> tuple[HostArray, Any]:
    """The estimates and numbers of all models; NaN where a slice has a NaN score, or no item."""
    sliced = items.sliced
    estimate = np.stack([x.estimate for x in found], axis=1)
    lost = np.zeros(estimate.shape)
    for i, scores in enumerate(items.scores):
        bad = scores != scores
        lost[:, i] = sliced.sums(bad.astype(float)).sum(axis=1) if bad.any() else 0
    lost[sliced.counts.sum(axis=1) == 0] = 1
    numbers = jax.tree.map(lambda *x: np.stack(x, axis=1), *(x.numbers for x in found))
    return np.where(lost > 0, np.nan, numerics.within(estimate, 0, 1)), numbers


def check_sliced(metric: MetricLike, items: SlicedItems) -> None:
    """Refuse a metric that slices and folds do not take."""
    chosen, arrays = choose(metric)
    decides = error_bars_of(chosen.metric).decision is not None
    if chosen.metric.of_placements is None or not has_influence(chosen.metric):
        raise TypeError(
            "slices and folds take roc_auc, partial_auc, average_precision, recall_at_fpr, "
            "sensitivity_at_specificity, specificity_at_sensitivity, or a functools.partial of "
            f"one, got {chosen.metric.name}: write a loop with where=(slices == name)"
        )
    chosen.refuse_several(arrays, len(items.scores[0]))
    if items.one_threshold and not decides:
        raise ValueError(
            f"threshold='global' is for metrics with a threshold, and {chosen.metric.name} has "
            "none: leave threshold out"
        )
    options = chosen.options(arrays)
    if items.one_threshold and options["method"] == "quantile":
        raise ValueError("threshold='global' needs method='step' or 'linear', got 'quantile'")


class SliceValues(NamedTuple):
    """Values of the share, from 0 to 1, that the closed form is for.

    Attributes:
      estimate: `[slices, models]`.
      error: their standard errors.
      limits: the lower and the upper ones, `[slices, models, levels]`.
      variances: `[slices, 2, models]`, the parts of the negatives and of the positives.
      sizes: `[slices, 2]`, the effective sizes of the classes, or numbers of clusters with them.
      covariance: `[slices, models, slices, models]`; None if no two slices share a cluster.
    """

    estimate: HostArray
    error: HostArray
    limits: tuple[HostArray, HostArray]
    variances: HostArray
    sizes: HostArray
    covariance: HostArray | None = None

    @property
    def correlation(self) -> HostArray | None:
        """`[slices, slices, models]`, of the estimates."""
        if self.covariance is None:
            return None
        return _correlation(_own(self.covariance), np.where(self.error > 0, 0.0, np.inf))

    @property
    def correlation_of_differences(self) -> HostArray | None:
        """`[slices, slices, models, models]`, of the differences of models."""
        if self.covariance is None:
            return None
        own, others = _own(self.covariance), np.einsum("sarb->srab", self.covariance)
        both = own[..., :, None] + own[..., None, :]
        least = _OF_DIFFERENCES * np.einsum("ss...->s...", both)
        return _correlation(both - others - others.swapaxes(-1, -2), least)


def _own(covariance: HostArray) -> Any:
    """`[slices, slices, models]`, of each model by itself."""
    return np.einsum("sara->sra", covariance)


_OF_DIFFERENCES = 1e-12  # the rounding of a variance, in units of those of both models


def _correlation(covariance: Any, least: HostArray) -> HostArray:
    """From `[slices, slices, ...]`; 0 with what has a variance of `least` or less, its rounding."""
    variances = np.einsum("ss...->s...", covariance)
    deviations = numerics.root(np.where(variances > least, variances, 0.0))
    found: Any = numerics.divide(covariance, deviations[:, None] * deviations[None], 0.0)
    return np.where(np.isnan(found), 0.0, found)


def values_of_items(found: SliceEstimates, form: Form, levels: HostArray) -> SliceValues:
    """The SliceValues of independent items."""
    estimate, low, high, error = limits_of_slices(found, form, levels)
    variances = np.diagonal(found.of_classes, axis1=2, axis2=3)
    return SliceValues(estimate, error, (low, high), variances, np.stack(found.sizes, axis=1))


def limits_of_slices(
    estimates: SliceEstimates, form: Form, levels: HostArray
) -> tuple[HostArray, HostArray, HostArray, HostArray]:
    """Estimate and error `[slices, models]`, and limits `[slices, models, levels]`."""
    estimate: Any = estimates.estimate[..., None]
    sizes: Any = tuple(np.broadcast_to(x[:, None, None], estimate.shape) for x in estimates.sizes)
    parts = np.diagonal(estimates.of_classes, axis1=2, axis2=3)[..., None]
    variances: Any = tuple(parts[:, i] * sizes[i] + 0 * estimate for i in (0, 1))
    numbers = jax.tree.map(lambda x: x if x.ndim == 3 else x[..., None], estimates.numbers)
    moments = Moments(estimate, variances, sizes)

    def of_some(some: slice) -> list[HostArray]:
        here, beside = jax.tree.map(lambda x: x[some], (moments, numbers))
        at: Any = levels
        values = limits_of_form(form, here, beside, at)
        whole = (*here.estimate.shape[:-1], len(levels))
        return [np.broadcast_to(np.asarray(x), whole) for x in values]

    n = len(estimate)  # SciPy's quantiles take most of the time, and release the GIL
    runs = [slice(i, i + _FEW) for i in range(0, max(n, 1), _FEW)]
    middle, low, high, error = map(np.concatenate, zip(*in_threads(of_some, runs), strict=True))
    return middle[..., 0], low, high, error[..., 0]


def values_of_shares(form: Form, shares: Any) -> HostArray:
    """The metric asked for, from values of the share that the form is of."""
    chosen, arrays = choose(form.metric)
    arrays = {name: np.asarray(x, np.float64) for name, x in arrays.items()}
    return np.asarray(form.value_of(shares, chosen.options(arrays)))
