"""What inference adds to each metric: how its bootstrap is finished, and the interval of "auto"."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc, scaled
from jaxmetrics._roc.metric import Chosen, Metric, Options
from jaxmetrics._roc.thresholds import recall_at_fpr
from jaxmetrics.inference._intervals import rules
from jaxmetrics.inference._intervals.rules import Limits

_MANY = 8


class Curves(NamedTuple):
    """Of the ROC curves of resamples, in counts; the last axis is the resamples.

    Attributes:
      negatives: `[resamples]`, all of them.
      positives: `[resamples]`.
      area: `[limits, resamples]`, under the curve left of each limit; without limits `[resamples]`.
      caught: `[limits, resamples]`, positives at the last threshold within each limit.
    """

    negatives: Array
    positives: Array
    area: Array
    caught: Array


class Finish(NamedTuple):
    """How a metric is computed of many resamples; hashable.

    Attributes:
      chosen: the metric.
      merges: whether neighbouring runs of one class may be one.
      of_curves: of Curves and the options, the same value; None if it needs tables.
      limits: the names of options that are false positive rates, up to which the curve is needed.
    """

    chosen: Chosen
    merges: bool
    of_curves: Callable[[Curves, Options], Array] | None = None
    limits: tuple[str, ...] = ()


class Share(NamedTuple):
    """A metric as a share of the largest value that it can have.

    Attributes:
      metric: the share.
      numbers: the options that the largest value depends on.
      scale: the scale of the metric.
      value_of: of a share, the numbers and the scale, the metric; linear in the share.
    """

    metric: Callable[..., Any]
    numbers: Options
    scale: str
    value_of: Callable[[Array, Options, str], Array]


class ErrorBars(NamedTuple):
    """What inference adds to a metric.

    Attributes:
      auto: the method that "auto" stands for where the closed form does not serve.
      closed_form: the rule from moments to limits, if there is one.
      slope_in: the option by which that rule needs the derivative of the share.
      serves: whether the closed form holds with such options.
      share: with such options, the share of the largest value that rules are for; itself if None.
      finish: a faster way than score tables from resamples to values, with such options.
    """

    auto: str = "percentile"
    closed_form: Callable[..., Limits] | None = None
    slope_in: str | None = None
    serves: Callable[[Options], bool] = lambda options: True
    share: Callable[[Options], Share] | None = None
    finish: Callable[[Finish, Options], Finish] = lambda finish, options: finish


def error_bars_of(metric: Metric) -> ErrorBars:
    """What inference adds to a metric; nothing to one of a user."""
    return _ERROR_BARS.get(metric, ErrorBars())


def _is_zero(option: Any) -> bool:
    return is_concrete(option) and not np.any(np.asarray(option))


# The area under the ROC curve.


def _finish_roc_auc(finish: Finish, options: Options) -> Finish:
    return finish._replace(of_curves=_roc_auc)


def _roc_auc(curves: Curves, options: Options) -> Array:
    return curves.area / (curves.negatives * curves.positives)


# The partial area.


def _from_zero(options: Options) -> bool:
    return _is_zero(options["min_fpr"]) and _is_zero(options["min_tpr"])


def _share_of_window(options: Options) -> Share:
    window = {name: options[name] for name in ("max_fpr", "min_fpr", "min_tpr")}
    share = functools.partial(partial_auc, **window, scale="range")
    return Share(share, window, options["scale"], _area_of_share)


def _area_of_share(share: Array, window: Options, scale: str) -> Array:
    if scale == "range":
        return share
    largest = (window["max_fpr"] - window["min_fpr"]) * (1 - window["min_tpr"])
    return scaled(share * largest, **window, scale=scale)


def _finish_partial_auc(finish: Finish, options: Options) -> Finish:
    if not _is_zero(options["min_tpr"]):
        return finish
    if _is_zero(options["min_fpr"]):
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


# Recall at a false positive rate.


def _finish_recall(finish: Finish, options: Options) -> Finish:
    if options["method"] == "quantile":
        return finish
    # Each limit adds to the work of the scan; many are looked up in tables in less time.
    if options["method"] == "step" and np.size(options["max_fpr"]) <= _MANY:
        finish = finish._replace(of_curves=_recall_at_fpr, limits=("max_fpr",))
    return finish._replace(merges=True)


def _recall_at_fpr(curves: Curves, options: Options) -> Array:
    return curves.caught / jnp.where(curves.negatives > 0, curves.positives, jnp.nan)


_ERROR_BARS: dict[Metric, ErrorBars] = {
    roc_auc.record: ErrorBars("logit", rules.auc, finish=_finish_roc_auc),
    partial_auc.record: ErrorBars(
        "logit",
        rules.partial_auc,
        slope_in="max_fpr",
        serves=_from_zero,
        share=_share_of_window,
        finish=_finish_partial_auc,
    ),
    average_precision.record: ErrorBars("logit"),
    recall_at_fpr.record: ErrorBars("wilson", finish=_finish_recall),
}
