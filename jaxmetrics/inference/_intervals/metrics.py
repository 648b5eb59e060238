"""What inference knows of each metric: its default interval and how its resamples are evaluated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.items import exchanged
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc, scaled
from jaxmetrics._roc.limits import MANY
from jaxmetrics._roc.operating import Point, chosen_point
from jaxmetrics._roc.record import Chosen, Metric, MetricLike, Options, choose
from jaxmetrics._roc.thresholds import recall_at_fpr, threshold_at_fpr
from jaxmetrics._roc.tradeoffs import (
    min_cost_threshold,
    precision_at_recall,
    recall_at_precision,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
)
from jaxmetrics.inference._intervals import areas, precision, recall
from jaxmetrics.inference._intervals.best_point import BEST_POINTS, by_rule
from jaxmetrics.inference._intervals.numbers import (
    Decision,
    Numbers,
    decision_of_recall,
    height_at_limit,
    heights_and_box,
    no_numbers,
    precisions,
)
from jaxmetrics.inference._intervals.precision import Precisions
from jaxmetrics.inference._intervals.recall import Box, Heights
from jaxmetrics.inference._intervals.rules import Limits, Moments

Rule: TypeAlias = Callable[[Moments, Any, Any, Options], Limits]


class Curves(NamedTuple):
    """Counts of the curves of each resample; the last axis is the resamples.

    Attributes:
      negatives: `[resamples]`, all negatives drawn.
      positives: `[resamples]`, all positives drawn.
      area: `[limits, resamples]`, pairs under the ROC curve left of each limit; `[resamples]`
        without limits.
      caught: `[limits, resamples]`, true positives at the last threshold within each limit.
      precisions: `[resamples]`, the sum over the positives of the precision at each one's score.
    """

    negatives: Array
    positives: Array
    area: Array
    caught: Array
    precisions: Array


class Finish(NamedTuple):
    """How a metric is computed for many resamples. Hashable.

    Attributes:
      chosen: the metric.
      merges: whether neighbouring negatives of different scores may be drawn as one run, and
        whether neighbouring positives may.
      of_curves: the metric as a function of Curves and the options, if it is one.
      limits: names of the options that are false positive rates; the curve beyond them is not used.
      by_precision: whether `of_curves` needs the precisions, in place of the areas.
      objective: the cost whose minimum is the operating point of the metric, as in `BestPoint`;
        None if there is none.
      of_point: the metric as a function of that Point and the options; None if it is the Point.
      apart: whether amounts are an option `[rows]` of the metric, in place of factors of the
        positives' weights.
    """

    chosen: Chosen
    merges: tuple[bool, bool]
    of_curves: Callable[[Curves, Options], Array] | None = None
    limits: tuple[str, ...] = ()
    by_precision: bool = False
    objective: Callable[..., Array] | None = None
    of_point: Callable[[Point, Options], Array] | None = None
    apart: bool = False

    @property
    def of_tables(self) -> bool:
        """Whether the metric needs score tables."""
        return self.of_curves is None and self.objective is None

    @property
    def of_area(self) -> bool:
        """Whether the metric needs nothing of the curves but the whole area under the ROC curve."""
        return self.of_curves is not None and not (self.limits or self.by_precision)


class MetricAsShare(NamedTuple):
    """A metric as a share, 0 to 1, of its largest possible value.

    Attributes:
      metric: the share, as a metric.
      value_of: the original metric as a function of the share and its options; linear in the share.
    """

    metric: MetricLike
    value_of: Callable[[Array, Options], Array]


class ErrorBars(NamedTuple):
    """What inference adds to a metric.

    Attributes:
      auto: the method of "auto" where the closed form does not hold.
      closed_form: the rule that gives limits from moments, level, numbers and options, if any.
      numbers: what that rule needs of the data beside the moments.
      decision: returns the Decision of a metric that one threshold decides; the influence follows
        from it. None for other metrics.
      serves: whether the closed form holds with these options.
      share: returns, from the options, the MetricAsShare that the rule is for; None if that is the
        metric itself.
      finish: returns a faster Finish from the default one and the options.
      same_as: returns, from the options, another metric with the same value, or None.
      proportion: whether the metric is a share of a class, which may have Wilson's interval.
      of_negatives: whether that class is the negatives.
      of_prevalence: whether the metric depends on the share of positives.
      kurtosis: the kurtosis of the influence of the negatives.
      curvature: c of the margins y + c y^3 of a difference, with y a multiple of its error; None if
        the margins are y.
    """

    auto: str = "percentile"
    closed_form: Rule | None = None
    numbers: Numbers = no_numbers
    decision: Callable[..., Decision] | None = None
    serves: Callable[[Options], bool] = lambda options: True
    share: Callable[[Options], MetricAsShare] | None = None
    finish: Callable[[Finish, Options], Finish] = lambda finish, options: finish
    same_as: Callable[[Options], MetricLike | None] = lambda options: None
    proportion: bool = False
    of_negatives: bool = False
    of_prevalence: bool = False
    kurtosis: np.float64 = np.float64(3)
    curvature: np.float64 | None = None

    def numbers_at(self, placed: Any, sizes: Any, level: Any, options: Options) -> Any:
        """`numbers`, or None without a level."""
        return None if level is None else self.numbers(placed, sizes, level, options)


def under_one_name(metric: MetricLike) -> MetricLike:
    """The metric, or the one of the same value that has rules: one number has one interval."""
    chosen, arrays = choose(metric)
    other = error_bars_of(chosen.metric).same_as(chosen.options(arrays))
    return metric if other is None else other


def with_influence(metric: MetricLike, items: Items) -> tuple[MetricLike, Items]:
    """The metric, or one of the same value whose influence is known, and the items for it.

    A specificity is the recall of the reversed scores with the classes exchanged.
    """
    chosen, arrays = choose(metric)
    options = chosen.options(arrays)
    if chosen.metric != specificity_at_sensitivity.record or options["return_threshold"]:
        return under_one_name(metric), items
    recall = functools.partial(recall_at_fpr, max_fpr=complement(options["min_sensitivity"]))
    return recall, exchanged(items)


def share_of(metric: MetricLike) -> MetricAsShare:
    """The metric as a share of its largest value; most metrics are that share themselves."""
    chosen, arrays = choose(metric)
    share = error_bars_of(chosen.metric).share
    return MetricAsShare(metric, itself) if share is None else share(chosen.options(arrays))


def itself(share: Array, options: Options) -> Array:
    """The share, of a metric that is one."""
    return share


def has_influence(metric: Metric) -> bool:
    """Whether the influence values of a metric are known, so that no error needs resamples."""
    return metric.smooth or error_bars_of(metric).decision is not None


def error_bars_of(metric: Metric) -> ErrorBars:
    """The ErrorBars of a metric of the library; the default ones for a user's metric."""
    return _ERROR_BARS.get(metric, ErrorBars())


def _is_known_zero(option: Any) -> bool:
    return is_concrete(option) and not np.any(np.asarray(option))


# The area under the ROC curve.


def _finish_roc_auc(finish: Finish, options: Options) -> Finish:
    return finish._replace(of_curves=_roc_auc)


def _roc_auc(curves: Curves, options: Options) -> Array:
    return curves.area / (curves.negatives * curves.positives)


# The partial area.


def _from_zero(options: Options) -> bool:
    return _is_known_zero(options["min_fpr"]) and _is_known_zero(options["min_tpr"])


def _share_of_window(options: Options) -> MetricAsShare:
    window = {name: options[name] for name in ("max_fpr", "min_fpr", "min_tpr")}
    share = functools.partial(partial_auc, **window, scale="range")
    return MetricAsShare(share, _AREAS_OF_SHARES[options["scale"]])


def _area_of_share(share: Array, options: Options, *, scale: str) -> Array:
    if scale == "range":
        return share
    library = numerics.namespace(share)
    names = ("max_fpr", "min_fpr", "min_tpr")
    window = {name: library.asarray(options[name], np.float64) for name in names}
    largest = (window["max_fpr"] - window["min_fpr"]) * (1 - window["min_tpr"])
    return scaled(share * largest, **window, scale=scale)


# One partial for each scale: partials are hashed by identity, and a new one would compile again.
_AREAS_OF_SHARES = {
    scale: functools.partial(_area_of_share, scale=scale) for scale in ("raw", "range", "mcclish")
}


def _roc_auc_if_whole(options: Options) -> MetricLike | None:
    limit = options["max_fpr"]
    whole = _from_zero(options) and not np.ndim(limit) and is_concrete(limit) and limit == 1
    return roc_auc if whole else None


def _finish_partial_auc(finish: Finish, options: Options) -> Finish:
    if not _is_known_zero(options["min_tpr"]):
        return finish
    if _is_known_zero(options["min_fpr"]):
        return finish._replace(of_curves=_partial_auc, limits=("max_fpr",))
    return finish._replace(of_curves=_area_between, limits=("min_fpr", "max_fpr"))


def _partial_auc(curves: Curves, options: Options) -> Array:
    return _scaled(curves.area, curves, options)


def _area_between(curves: Curves, options: Options) -> Array:
    return _scaled(curves.area[1] - curves.area[0], curves, options)


def _scaled(area: Array, curves: Curves, options: Options) -> Array:
    names = ("max_fpr", "min_fpr", "min_tpr")
    limits = {name: jnp.asarray(options[name])[..., None] for name in names}
    share = area / (curves.negatives * curves.positives)
    return scaled(share, **limits, scale=options["scale"])


# Average precision.


def _finish_average_precision(finish: Finish, options: Options) -> Finish:
    # Negatives between two positives matter by their number only, so they may merge. Positives may
    # not, because each has its own precision.
    return finish._replace(of_curves=_average_precision, by_precision=True, merges=(True, False))


def _average_precision(curves: Curves, options: Options) -> Array:
    return numerics.divide(curves.precisions, curves.positives, 0.0)


def _finish_chosen_point(finish: Finish, options: Options) -> Finish:
    # A rule that is resampled by runs chooses +inf or the score of a positive. So negatives may
    # merge.
    finish = finish._replace(apart=True, merges=(True, False))
    return finish if "threshold" in options else finish._replace(objective=by_rule)


def _finish_best_point(finish: Finish, options: Options) -> Finish:
    best = BEST_POINTS[finish.chosen.metric]
    if not best.serves(options):
        return finish
    # Only +inf and the score of a positive can be the best threshold.
    return finish._replace(objective=best.objective, of_point=best.value, merges=(True, False))


# Recall at a false positive rate.


def _finish_recall(finish: Finish, options: Options) -> Finish:
    if options["method"] == "quantile":
        return finish
    # The scan pays for each limit, so score tables are faster for many limits.
    if options["method"] == "step" and np.size(options["max_fpr"]) <= MANY:
        finish = finish._replace(of_curves=_recall_at_fpr, limits=("max_fpr",))
    return finish._replace(merges=(True, True))


def _recall_at_fpr(curves: Curves, options: Options) -> Array:
    return curves.caught / jnp.where(curves.negatives > 0, curves.positives, jnp.nan)


def _recall_if_alone(options: Options) -> MetricLike | None:
    if options["return_threshold"]:
        return None
    return functools.partial(recall_at_fpr, max_fpr=complement(options["min_specificity"]))


def complement(limit: Any) -> Any:
    """1 - limit, raised by the rounding of the limit: a rate that equals the limit is within it.

    In float64 the limit is lowered by the relative `SLACK`, which is less than the difference of
    two rates of at most 2^30 items; in float32 by half a unit. It is lowered by a factor: XLA would
    add a constant to the 1 first, and in 32 bits 1 has no digits for it.
    """
    rounding = max(numerics.SLACK, float(np.finfo(limit.dtype).eps) / 2)
    return (1 - numerics.product(limit, 1 - rounding)).astype(limit.dtype)


def _limits_of_auc(moments: Moments, level: Any, numbers: Any, options: Options) -> Limits:
    return areas.auc(moments, level)


def _limits_of_partial_auc(moments: Moments, level: Any, height: Array, options: Options) -> Limits:
    return areas.partial_auc(moments, level, options["max_fpr"], height)


def _limits_of_precision(
    moments: Moments, level: Any, numbers: Precisions, options: Options
) -> Limits:
    return precision.average_precision(moments, level, numbers)


def _limits_of_recall(
    moments: Moments, level: Any, numbers: tuple[Heights, Box], options: Options
) -> Limits:
    return recall.recall(moments, *numbers, options["max_fpr"], level)


_ERROR_BARS: dict[Metric, ErrorBars] = {
    roc_auc.record: ErrorBars("logit", _limits_of_auc, finish=_finish_roc_auc),
    partial_auc.record: ErrorBars(
        "logit",
        _limits_of_partial_auc,
        height_at_limit,
        serves=_from_zero,
        share=_share_of_window,
        finish=_finish_partial_auc,
        same_as=_roc_auc_if_whole,
    ),
    average_precision.record: ErrorBars(
        "logit",
        _limits_of_precision,
        precisions,
        finish=_finish_average_precision,
        of_prevalence=True,
        kurtosis=precision.KURTOSIS,
        curvature=precision.CURVATURE,
    ),
    recall_at_fpr.record: ErrorBars(
        "logit",
        _limits_of_recall,
        heights_and_box,
        decision_of_recall,
        finish=_finish_recall,
        proportion=True,
    ),
    sensitivity_at_specificity.record: ErrorBars(
        "wilson", same_as=_recall_if_alone, proportion=True
    ),
    specificity_at_sensitivity.record: ErrorBars(
        "wilson", finish=_finish_best_point, proportion=True, of_negatives=True
    ),
    precision_at_recall.record: ErrorBars(finish=_finish_best_point),
    recall_at_precision.record: ErrorBars(finish=_finish_best_point),
    threshold_at_fpr.record: ErrorBars(finish=_finish_best_point),
    min_cost_threshold.record: ErrorBars(finish=_finish_best_point),
    chosen_point.record: ErrorBars(finish=_finish_chosen_point),
}
