"""How many labels a study needs, and the power of one of a given size, from a pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import as_default, library_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import Column, Result, Table
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.record import MetricLike, record_of
from jaxmetrics.inference._intervals.metrics import error_bars_of
from jaxmetrics.inference._intervals.ranges import ends_of_range
from jaxmetrics.inference._pilot import Held, pilot_of
from jaxmetrics.inference._planning import (
    FEWEST,
    Effect,
    Errors,
    Pilot,
    Times,
    against_value,
    aim_in_words,
    of_one,
    of_pair,
    of_samples,
    power_of,
    smallest,
    width_of,
)

_ROUNDING = 1e-9
_ERRORS = {"one": of_one, "pair": of_pair, "samples": of_samples}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SampleSize(Result):
    """The size of a study.

    Attributes:
      n_positives: `[...]`, a whole number, in each sample if there are two. Infinite if no number
        is enough.
      n_negatives: `[...]`, the same for the negatives.
      standard_error: `[...]`, the expected standard error of the metric, or of the difference.
      n_clusters: `[...]`, the clusters, which have so many positives and negatives on average; None
        without clusters.
    """

    n_positives: Array
    n_negatives: Array
    standard_error: Array
    n_clusters: Array | None = None

    def _table(self) -> Table:
        columns = [
            Column("positives", {"n_positives": self.n_positives}, form="plain"),
            Column("negatives", {"n_negatives": self.n_negatives}, form="plain"),
            Column("standard error", {"standard_error": self.standard_error}, self.standard_error),
        ]
        if self.n_clusters is not None:
            columns.insert(0, Column("clusters", {"n_clusters": self.n_clusters}, form="plain"))
        index = self._rows(np.shape(self.n_positives), "model")
        return Table("Sample size", index, columns, self._caption.names.get("aim", ()))


@takes_metric
@on_any_mesh
def sample_size(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    difference: ArrayLike | None = None,
    width: ArrayLike | None = None,
    margin: ArrayLike | None = None,
    power: ArrayLike = 0.8,
    ratio: ArrayLike | None = None,
    paired: bool = True,
    confidence_level: float = 0.95,
    clusters: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> SampleSize:
    """How many positives and negatives a study needs, from the scores of a pilot.

    The smallest n_1, with n_0 = ratio n_1, at which the standard error sqrt(v_0 / n_0 + v_1 / n_1)
    gives the power, or the width. v_c is the variance, in class c of the pilot, of the influence
    values of the metric, or of their differences between two models. With clusters it is the
    smallest number of clusters at which the errors, those of the pilot's clusters, are as small.

    - width: intervals of each model by method="logit" of `confidence_interval` (Welch's t on the
      logit scale) are on average this wide.
    - difference: if this is the true difference of two models, the test of `compare` finds them
      different at 1 - confidence_level with this power. For one model and a given value, the
      interval by method="logit" leaves the value out. `compare_to_value` has the default interval:
      its power, planned as 0.80, was 0.70 to 0.84 for areas in simulations. For other metrics this
      interval is wider where few items decide: the power was 0.36 for average precisions of 0.96
      with 90 positives and 90 negatives, 0.66 for 0.92 with 144, 0.81 for 0.87 with 198 and 792,
      and 0.44 to 0.67 for recalls. Plan more items for these. For two samples it is the test of
      `compare_samples` by method="delong". Its default limits are wider near 1, and the power was
      0.26 to 0.60 for areas from 0.96 to 0.99 with 74 to 126 positives in each sample, 0.43 to 0.76
      for average precisions from 0.90 on, with three positives for each negative, 0.71 to 0.78 for
      partial areas up to 0.2, and 0.76 to 0.81 elsewhere.
    - margin: non-inferiority. If the true difference, first minus second, is `difference`, 0 by
      default, the one-sided lower limit of it is above -margin with this power.

    Args:
      metric: a metric whose influence values are known, as for `influence`.
      scores: `[n]` of one model or `[2, n]` of two, and for `width` `[..., n]`; higher is more
        positive.
      labels: `[n]`, bool or 0 and 1.
      difference: the true difference to detect, in the unit of the metric. Of one model it is that
        from a given value; with paired=False, that of two samples scored by this model.
      width: the width of an interval, in the unit of the metric.
      margin: by how much the first model may be worse, positive.
      power: the chance of detection, in (0, 1).
      ratio: negatives for each positive; by default those of the pilot.
      paired: True if both models score the same items; False if each has a sample of its own.
      confidence_level: in (0, 1), of two-sided intervals and tests; with a margin, of one-sided
        ones.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: the study has more clusters such as those of the pilot.
      where: `[n]` bool, False for items to leave out.

    Returns:
      A SampleSize `[...]`, of each sample if there are two.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; neither or both of a width and a
        test (difference, margin) are given, scores are not `[n]` or `[2, n]`, the metric has
        several values, its influence values are not known, or `ratio` is given with clusters, or
        for `average_precision`, which itself depends on it.

    The variances are estimated from the pilot. Their relative error is about sqrt(2 / m) with m
    items of a class; for a recall, whose variance rests on the slope of the curve, it is 24 % with
    500 items and 10 % with 50,000. NaN where the metric is NaN, a class has one item, the
    only model is at an end of the range or ties all items, or two models rank alike. Infinite at a
    difference of 0 and, with a margin, where the difference plus the margin is 0 or less. A
    difference is that of the first model minus the second. Warns where the limit of a recall is
    within a tie of many negatives. With clusters the power of `compare`, planned as 0.80 from a
    pilot of 20,000, was 0.70 to 0.91 in simulations of ten laws with 30 to 380, and 0.44 to 0.85 of
    five with 10 to 40 in which hardly an item fails. Time O(n log n) and a bisection, memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> needed = jm.sample_size(jm.roc_auc, scores, labels, difference=0.3)
      >>> print(needed.n_positives, needed.n_negatives)
      27.0 27.0

    References: N. A. Obuchowski and D. K. McClish, "Sample size determination for diagnostic
    accuracy studies involving binormal ROC curve indices", Statistics in Medicine 16, 1997; W. L.
    Jenkins and B. L. Welch, "Applications of the non-central t-distribution", Biometrika 31, 1940.
    """
    level = checks.check_level(confidence_level)
    if (width is None) == (difference is None and margin is None):
        raise TypeError(
            "one question must be asked: write width=0.05 for intervals, or difference=0.02, "
            "margin=0.01 or both for a test"
        )
    checks.check_flag("paired", paired)
    goal = _goal(metric, width, difference, margin)
    wanted = checks.check_number("power", power, high=1.0)
    items = checks.check_items(scores, labels, None, where, along={"clusters": clusters})
    ids = checks.check_clusters(clusters, items)
    if ratio is not None and ids is not None:
        raise TypeError(
            "ratio is for items without clusters, which bring theirs: leave ratio out, or give a "
            "pilot whose clusters have this ratio"
        )
    kind, pilot, held = pilot_of(metric, items, ids, paired=paired, of_width=width is not None)
    if ratio is not None and error_bars_of(record_of(metric)).of_prevalence:
        raise ValueError(
            f"ratio is for metrics that do not depend on it, and {record_of(metric).name} does: "
            "take a pilot with this share of positives and leave ratio out"
        )
    per_positive = None if ratio is None else checks.check_number("ratio", ratio)
    given = near_tree((pilot, held, per_positive, goal, wanted, np.float64(level)))
    study, error = jax.tree.map(as_default, _needed(*given, kind))
    found = SampleSize(study.positives, study.negatives, error, study.clusters)
    asked = {"width": width, "difference": difference, "margin": margin}
    return found._captioned_as(aim=aim_in_words(level, power, paired, **asked))


@takes_metric
@on_any_mesh
def power(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    difference: ArrayLike | None = None,
    margin: ArrayLike | None = None,
    n_positives: ArrayLike | None = None,
    n_negatives: ArrayLike | None = None,
    n_clusters: ArrayLike | None = None,
    paired: bool = True,
    confidence_level: float = 0.95,
    clusters: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The power of a study to find a difference, from the scores of a pilot.

    P(|d| > t E) for d normal with the true difference as its mean and the standard error
    sqrt(v_0 / n_0 + v_1 / n_1), as in `sample_size`. t and E are those of `compare`, and for two
    samples those of `compare_samples` by method="delong". The power allows for the correlation of d
    and E that skewed influence values cause. For one model and a given value, d is the difference
    on the logit scale, and E that of method="logit", as the interval that decides is skewed.

    Args:
      metric: a metric whose influence values are known, as for `influence`.
      scores: `[n]` of one model or `[2, n]` of two, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      difference: the true difference, as for `sample_size`.
      margin: of non-inferiority, as for `sample_size`.
      n_positives: positives of the study, of each sample if there are two; by default the pilot's.
      n_negatives: negatives of the study; by default as many for each positive as in the pilot.
      n_clusters: clusters of the study, in place of both; by default those of the pilot.
      paired: True if both models score the same items; False if each has a sample of its own.
      confidence_level: in (0, 1), of two-sided tests; with a margin, of one-sided ones.
      clusters: `[n]`, integers or strings, as for `sample_size`.
      where: `[n]` bool, False for items to leave out.

    Returns:
      `[...]`, from 0 to 1; differences and sizes broadcast.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; neither difference nor margin is
        given, scores are not `[n]` or `[2, n]`, the metric has several values, or its influence
        values are not known.

    NaN where the metric is NaN, a class of the pilot has one item, the only model's metric is an
    end of its range or its scores tie, or two models rank alike. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
      >>> scores = [[.1, .4, .35, .8, .7, .2, .9, .3], [.6, .4, .5, .3, .7, .2, .1, .8]]
      >>> found = jm.power(jm.roc_auc, scores, labels, difference=0.3, n_positives=27)
      >>> print(f"{found:.2f}")
      0.82

    Reference: N. A. Obuchowski and D. K. McClish, "Sample size determination for diagnostic
    accuracy studies involving binormal ROC curve indices", Statistics in Medicine 16, 1997.
    """
    level = checks.check_level(confidence_level)
    if difference is None and margin is None:
        raise TypeError("difference is missing: write difference=0.02, or margin=0.01, or both")
    checks.check_flag("paired", paired)
    effect = _goal(metric, None, difference, margin)
    items = checks.check_items(scores, labels, None, where, along={"clusters": clusters})
    ids = checks.check_clusters(clusters, items)
    sizes = _sizes(Held(n_negatives, n_positives, n_clusters), ids is not None)
    kind, pilot, held = pilot_of(metric, items, ids, paired=paired, of_width=False)
    given = near_tree((pilot, held, sizes, effect, np.float64(level)))
    found = _power(*given, kind)
    return as_default(found)


def _sizes(sizes: Held, clustered: bool) -> Held:
    """The sizes of a study, checked: clusters are not given in items, nor items in clusters."""
    if clustered and (sizes.negatives is not None or sizes.positives is not None):
        raise TypeError(
            "n_positives and n_negatives are for items without clusters, which bring theirs: "
            "write n_clusters=200"
        )
    if not clustered and sizes.clusters is not None:
        raise TypeError("n_clusters is the number of clusters: write clusters=ids, too")
    checked = (
        None if x is None else checks.check_number(f"n_{name}", x, low=1.0)
        for name, x in sizes._asdict().items()
    )
    return Held(*checked)


def _goal(metric: MetricLike, width: Any, difference: Any, margin: Any) -> Any:
    """The width, or the Effect; refuses what is not within the range of the metric."""
    lowest, highest = ends_of_range(metric)
    most = highest - lowest
    if width is not None:
        return checks.check_number("width", width, high=most)
    true = 0.0 if difference is None else difference
    number = checks.check_number("difference", true, low=-most, high=most)
    least = None if margin is None else checks.check_number("margin", margin, high=most)
    return Effect(number, least)


@library_program("kind")
def _needed(
    pilot: Pilot,
    held: Held,
    ratio: Array | None,
    goal: Any,
    wanted: Array,
    level: Array,
    kind: str,
) -> tuple[Held, Array]:
    """What a study has to have, and the standard error there."""
    library = numerics.namespace(*jax.tree.leaves((pilot, held, ratio, goal, wanted)))
    shapes = [np.shape(x) for x in jax.tree.leaves((ratio, wanted, goal))]
    shape = np.broadcast_shapes(*shapes, *([pilot.estimate.shape] if kind == "one" else []))

    def at(size: Array) -> Errors:
        return _ERRORS[kind](pilot, _study(held, size, ratio).times(held))

    def enough(size: Array) -> Array:
        errors = at(size)
        if isinstance(goal, Effect):
            return _power_at(errors, pilot, goal, level, kind) >= wanted
        return width_of(errors, pilot, level) <= goal

    study = _study(held, _whole(smallest(enough, shape)), ratio)
    whole = study._replace(negatives=_whole(study.negatives))
    if held.clusters is None:
        study = whole
    else:
        whole = whole._replace(positives=_whole(study.positives))
    error = _ERRORS[kind](pilot, study.times(held)).standard_error
    one = library.ones(shape)
    undefined = library.isnan(_ERRORS[kind](pilot, Times(one, one)).error)
    return jax.tree.map(lambda x: library.where(undefined, library.nan, x), (whole, error))


def _study(held: Held, size: Array, ratio: Array | None = None) -> Held:
    """A study of so many positives, or clusters, with a pilot that `held` these."""
    library = numerics.namespace(*jax.tree.leaves((held, size, ratio)))
    if held.clusters is not None:
        negatives, positives = (numerics.divide(x, held.clusters, np.nan) for x in held[:2])
        return Held(negatives * size, positives * size, size)
    if ratio is None:
        ratio = numerics.divide(held.negatives, held.positives, np.nan)
    return Held(library.maximum(ratio * size, FEWEST), size, None)


def _whole(size: Array) -> Array:
    return numerics.namespace(size).ceil(size * (1 - _ROUNDING))


@library_program("kind")
def _power(pilot: Pilot, held: Held, sizes: Held, effect: Effect, level: Array, kind: str) -> Array:
    """The power of a study with these sizes, each None where it is not given."""
    if held.clusters is not None:
        study = _study(held, held.clusters if sizes.clusters is None else sizes.clusters)
    else:
        study = _study(held, held.positives if sizes.positives is None else sizes.positives)
        if sizes.negatives is not None:
            study = study._replace(negatives=sizes.negatives)
    times = study.times(held)
    times = Times(*numerics.namespace(*times).broadcast_arrays(*times))
    return _power_at(_ERRORS[kind](pilot, times), pilot, effect, level, kind)


def _power_at(errors: Errors, pilot: Pilot, effect: Effect, level: Any, kind: str) -> Array:
    if kind == "one":
        errors, effect = against_value(pilot, errors, effect)
    return power_of(errors, effect, level)
