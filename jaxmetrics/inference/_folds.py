"""A metric of cross-validated scores: the mean of the folds' values, and the pooled value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import as_default
from jaxmetrics._base.host import all_concrete, is_compiling, of_all_processes
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import STATIC, Result, Table, interval_columns
from jaxmetrics._base.types import Array, ArrayLike, HostArray
from jaxmetrics._roc.areas import average_precision, partial_auc
from jaxmetrics._roc.record import MetricLike, record_of
from jaxmetrics.inference._confidence import confidence_interval
from jaxmetrics.inference._few_successes import warn_of_folds
from jaxmetrics.inference._forms import Form, chosen_method, form_of
from jaxmetrics.inference._influence.sizes import warn_of_undefined
from jaxmetrics.inference._intervals.interval import Interval, interval_of
from jaxmetrics.inference._intervals.metrics import with_influence
from jaxmetrics.inference._intervals.rules import around, draws_of_share, wilson
from jaxmetrics.inference._slice_values import (
    check_sliced,
    limits_of_slices,
    slice_estimates,
    sliced_items,
    values_of_shares,
)

_NEAR = 0.02  # a level so low that the two limits nearly meet
_TOO_HIGH = (average_precision.record, partial_auc.record)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FoldInterval(Result):
    """A metric of cross-validated scores.

    Attributes:
      names: the folds, in order.
      values: `[folds]` or `[folds, models]`, the metric of each fold.
      mean: the mean of these values, and its interval, `[]` or `[models]`.
      pooled: the metric of all items together, and its interval, `[]` or `[models]`.
    """

    names: tuple[Any, ...] = field(metadata=STATIC)
    values: Array
    mean: Interval
    pooled: Interval

    def _is_readable(self) -> bool:
        return np.shape(self.values)[:1] == (len(self.names),) and super()._is_readable()

    def _table(self) -> Table:
        """The folds, which have no intervals, their mean, and all items pooled."""
        unknown = np.full(np.shape(self.values), np.nan)

        def stacked(name: str, folds: Any) -> Any:
            rows = [getattr(x, name) for x in (self.mean, self.pooled)]
            return np.concatenate([np.asarray(folds), np.stack(rows)])

        value = stacked("estimate", self.values)
        low, high, error = (stacked(x, unknown) for x in ("low", "high", "standard_error"))
        name, level = self._caption.metric, self.mean.confidence_level
        columns = interval_columns(name, value, low, high, error, level)
        shape, folds = value.shape, (*self.names, "mean", "pooled")
        kinds = ("fold", "model")[: len(shape)]
        return Table(name, self._captioned_as(fold=folds)._rows(shape, *kinds), columns)


@takes_metric
@on_any_mesh
def fold_interval(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    folds: ArrayLike,
    *,
    confidence_level: float = 0.95,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> FoldInterval:
    """The mean over folds of a metric, and the metric of all folds pooled, with intervals.

    mean = sum_k A_k / K over the K folds, with SE^2 = sum_k SE_k^2 / K^2. Its limits are C - d and
    C + d, widened to contain the mean, where

    - C is the mean of the c_k, which are the A_k. But average precision with few positives, and a
      partial area with few negatives, are too high in every fold, and a mean over folds remains so.
      For these metrics c_k is the point where the limits of fold k meet as their level falls to 0.
    - b combines the closed-form limits l and u of the folds: it is sqrt(sum_k (c_k - l_k)^2) / K
      below C, and sqrt(sum_k (u_k - c_k)^2) / K above.
    - d = b + (1 - 1 / sqrt(K)) max(w - b, 0). For a metric from 0 to 1, w is the distance from C to
      Wilson's limit for C (1 - C) / SE^2 draws, at most the number of items. It is needed because a
      fold at an end of the range has no room towards that end, but the mean of the folds has: b
      alone is too short with many folds.

    The pooled value and its interval are those of `confidence_interval` of all items. Report the
    mean: each fold has its own model, and the pooled value also compares scores of different
    models, which need not be on one scale.

    Both intervals are about the models that were trained: about the mean of their true values. They
    do not allow for the variation of training another model on other data.

    Args:
      metric: as for `slices`.
      scores: `[n]` or `[models, n]`, higher is more positive; each item scored by the model of its
        fold, which was trained without the item.
      labels: `[n]`, bool or 0 and 1.
      folds: `[n]`, integers or strings, the fold of each item.
      confidence_level: in (0, 1), the nominal coverage.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      where: `[n]` bool, False for items to leave out.

    Returns:
      A FoldInterval in the unit of the metric.

    Raises:
      TypeError, ValueError: as for `slices`; there are no items.

    The mean is NaN where a fold lacks a class: stratify the folds by class. Its standard error is
    NaN where a fold has one item of a class; then w takes the variance of the A_k over K in place
    of SE^2. A warning says where folds have so few positives that the mean of their average
    precision is too high all the same: of 10 and 20 folds with 30 and 50 positives each, 95 %
    limits covered 0.81 to 0.93, of three laws with heavy tails. Time O(models n log n), memory
    O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2, .9, .3], [0, 0, 1, 1, 1, 0, 1, 0]
      >>> found = jm.fold_interval(jm.roc_auc, scores, labels, [0, 0, 0, 0, 1, 1, 1, 1])
      >>> print(found.mean.estimate, found.pooled.estimate)
      0.875 0.9375

    Reference: E. LeDell, M. Petersen and M. van der Laan, "Computationally efficient confidence
    intervals for cross-validated area under the ROC curve estimates", Electronic Journal of
    Statistics 9, 2015.
    """
    record_of(metric)  # refused before any data
    checks.check_alignment({"scores": scores, "labels": labels, "folds": folds})
    items = checks.check_items(scores, labels, weights, where, along={"folds": folds})
    level = checks.check_level(confidence_level)
    checks.check_one_or_models(items)
    names, ids = checks.check_slices("folds", folds, items)
    if is_compiling() or not all_concrete(*items):
        raise TypeError(
            "fold_interval sorts by NumPy and cannot be traced: call it outside of jit, and of grad"
        )
    if not names:
        raise ValueError("folds must be one or more, got none: there are no items")
    items = of_all_processes(items)
    of_metric, exchanged = with_influence(metric, items)
    given = sliced_items(exchanged, ids, len(names), one_threshold=False)
    form, levels = form_of(of_metric, chosen_method(of_metric)), np.array([_NEAR, level])
    check_sliced(form.metric, given)
    found = limits_of_slices(slice_estimates(given, form, levels), form, levels)
    options: Any = {"confidence_level": confidence_level, "weights": weights, "where": where}
    pooled = confidence_interval(metric, scores, labels, **options)
    values, below, above, error = (x[:, 0] if items.scores.ndim == 1 else x for x in found)
    (least, low), (most, high) = (np.moveaxis(x, -1, 0) for x in (below, above))
    warn_of_undefined(values)
    mean, n = values.mean(axis=0), len(values)
    centres = values
    if record_of(metric) in _TOO_HIGH:
        # Limits are widened to contain the estimate. Where it is too high, `most` is the estimate
        # itself, and `least` is the point near which limits meet.
        centres = least + most - values
    warn_of_folds(metric, values, given.sliced.counts[:, int(exchanged.labels is items.labels)])
    centre, spread = centres.mean(axis=0), np.sqrt((error**2).sum(axis=0)) / n
    # Where a class has one item the error is unknown: the variance between the folds replaces it.
    variance = np.where(np.isnan(spread), values.var(axis=0) / max(n - 1, 1), spread**2)
    room = _room(form, centre, variance, given.sliced.counts.sum(), np.float64(level))
    low, high = (
        centre + side * _of_mean(np.sqrt(((centres - x) ** 2).sum(axis=0)) / n, wide, n)
        for side, x, wide in zip((-1, 1), (low, high), room, strict=True)
    )
    limits = around(mean, (low, high))
    interval = interval_of((mean, *limits, spread), pooled.method, level)
    return FoldInterval(names, as_default(values), interval, pooled)


def _room(form: Form, centre: Any, variance: Any, n_items: Any, level: Any) -> Any:
    """The distances of Wilson's limits below and above the centre.

    They are for as many draws as have this variance, at most the number of items.
    """
    none, one = values_of_shares(form, np.array([0.0, 1.0]))
    unit = one - none
    share = np.clip((centre - none) / unit, 0.0, 1.0)
    low, high = wilson(share, draws_of_share(share, variance / unit**2, n_items), level)
    return unit * (share - low), unit * (high - share)


def _of_mean(distance: HostArray, room: HostArray, n: int) -> HostArray:
    """The distance of a limit of the mean of n folds: b raised towards w, as in `fold_interval`.

    A fold at an end of the range has no distance of its own there. And the asymmetry of the limits
    of a fold is smaller by sqrt(n) in the mean. One fold alone keeps its limits.
    """
    return distance + (1 - n**-0.5) * np.maximum(room - distance, 0.0)
