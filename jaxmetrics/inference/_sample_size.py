"""How many labels a study needs, and the power of one of a given size, from a pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import as_default, double_program, library_program
from jaxmetrics._base.host import all_concrete, near_tree
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import Column, Result, Table
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, choose, record_of
from jaxmetrics.inference._influence.sizes import sizes_of, warn_of_undefined
from jaxmetrics.inference._influence.variance import errors_of_items
from jaxmetrics.inference._intervals.metrics import error_bars_of, with_influence
from jaxmetrics.inference._intervals.ranges import ends_of_range, range_of
from jaxmetrics.inference._pairs import of_differences
from jaxmetrics.inference._planning import (
    FEWEST,
    Effect,
    Errors,
    Pilot,
    Sizes,
    against_value,
    aim_in_words,
    of_one,
    of_pair,
    of_samples,
    power_of,
    smallest,
    width_of,
)
from jaxmetrics.inference._tied_limits import warn_of_tied_limits

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
    """

    n_positives: Array
    n_negatives: Array
    standard_error: Array

    def _table(self) -> Table:
        columns = [
            Column("positives", {"n_positives": self.n_positives}, form="plain"),
            Column("negatives", {"n_negatives": self.n_negatives}, form="plain"),
            Column("standard error", {"standard_error": self.standard_error}, self.standard_error),
        ]
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
    where: ArrayLike | None = None,
) -> SampleSize:
    """How many positives and negatives a study needs, from the scores of a pilot.

    The smallest n_1, with n_0 = ratio n_1, at which the standard error sqrt(v_0 / n_0 + v_1 / n_1)
    gives the power, or the width. v_c is the variance, in class c of the pilot, of the influence
    values of the metric, or of their differences between two models.

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
      where: `[n]` bool, False for items to leave out.

    Returns:
      A SampleSize `[...]`, of each sample if there are two.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; neither or both of a width and a
        test (difference, margin) are given, scores are not `[n]` or `[2, n]`, the metric has
        several values, its influence values are not known, or `ratio` is given for
        `average_precision`, which itself depends on it.

    The variances are estimated from the pilot. Their relative error is about sqrt(2 / m) with m
    items of a class; for a recall, whose variance rests on the slope of the curve, it is 24 % with
    500 items and 10 % with 50,000. NaN where the metric is NaN, a class has one item, the
    only model is at an end of the range or ties all items, or two models rank alike. Infinite at a
    difference of 0 and, with a margin, where the difference plus the margin is 0 or less. A
    difference is that of the first model minus the second. Warns where the limit of a recall is
    within a tie of many negatives. Time O(n log n) and a bisection, memory O(n).

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
    kind, pilot, sizes = _pilot(metric, scores, labels, where, paired, of_width=width is not None)
    if ratio is not None and error_bars_of(record_of(metric)).of_prevalence:
        raise ValueError(
            f"ratio is for metrics that do not depend on it, and {record_of(metric).name} does: "
            "take a pilot with this share of positives and leave ratio out"
        )
    per_positive = None if ratio is None else checks.check_number("ratio", ratio)
    given = near_tree((pilot, sizes, per_positive, goal, wanted, np.float64(level)))
    found = SampleSize(*map(as_default, _needed(*given, kind)))
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
    paired: bool = True,
    confidence_level: float = 0.95,
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
      paired: True if both models score the same items; False if each has a sample of its own.
      confidence_level: in (0, 1), of two-sided tests; with a margin, of one-sided ones.
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
    kind, pilot, sizes = _pilot(metric, scores, labels, where, paired, of_width=False)
    given = (n_positives, n_negatives)
    counts = [
        None if x is None else checks.check_number(name, x, low=1.0)
        for name, x in zip(("n_positives", "n_negatives"), given, strict=True)
    ]
    given = near_tree((pilot, sizes, counts, effect, np.float64(level)))
    found = _power(*given, kind)
    return as_default(found)


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


def _pilot(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    where: ArrayLike | None,
    paired: bool,
    *,
    of_width: bool,
) -> tuple[str, Pilot, Sizes]:
    """The kind of plan, a key of _ERRORS, the Pilot, and the Sizes of the pilot."""
    items = checks.check_items(scores, labels, None, where)
    shape = items.scores.shape
    if not of_width and (len(shape) > 2 or shape[:-1] not in ((), (2,))):
        raise ValueError(
            f"scores must be [n] of one model or [2, n] of two, got {list(shape)}: plan one pair "
            "at a time"
        )
    metric, items = with_influence(metric, items)
    bounds = range_of(metric)
    alone = len(shape) == 1 or of_width
    if of_width:  # each model by itself
        rows: Any = (x if x is None or x.ndim < 2 else x[..., None, :] for x in items)
        items = Items(*rows)
    if alone:
        n_models = 1 if paired or of_width else 2
        library = numerics.namespace(items.scores)
        of_models = items.scores if of_width and len(shape) > 1 else items.scores[None]
        items = items._replace(scores=library.concatenate([of_models] * n_models))
    chosen, arrays = choose(metric)
    chosen.refuse_several(arrays, shape[-1])
    estimate, errors = errors_of_items(metric, items)
    warn_of_undefined(estimate)
    warn_of_tied_limits(metric, items, planned=True)
    negatives, positives, _ = sizes_of(items, None, estimate.ndim)
    kind = ("pair" if paired else "samples") if not alone or n_models == 2 else "one"
    given = estimate, errors, items.labels, bounds, Sizes(negatives, positives), kind
    pilot, sizes, lost = _of_observations(*given)
    if all_concrete(lost) and lost.any():
        warn("the plan is NaN: the pilot has no errors, or its models no difference, to learn from")
    return kind, pilot, sizes


@double_program("kind")
def _of_observations(
    estimate: Array, errors: Array, labels: Array, bounds: Any, sizes: Sizes, kind: str
) -> tuple[Pilot, Sizes, Array]:
    """The Pilot, from the items' parts `errors` of the standard error, and its Sizes; and whether
    the variances are NaN, as they were 0 or the only model is at an end of the range."""
    counts = Sizes(*(x[..., 0] for x in sizes))
    n = jnp.stack(counts, axis=-1)[..., None]
    positive = labels.astype(bool)
    apart = jnp.stack([jnp.where(x, errors, 0) for x in (~positive, positive)], axis=-3)
    of_classes = n[..., None] * (apart @ jnp.swapaxes(apart, -1, -2))
    # `errors` are influence values over n, times sqrt(n / (n - 1)) for unbiased variances.
    influence = apart * jnp.sqrt(jnp.maximum(n * (n - 1), 0))[..., None]
    if kind == "pair":
        influence = influence[..., :1, :] - influence[..., 1:, :]
    thirds = jnp.sum(influence**3, axis=-1) / n
    thirds = thirds * jnp.array([1.0, -1.0]) if kind == "samples" else thirds[..., 0]
    of_model = jnp.sum(jnp.diagonal(of_classes, axis1=-2, axis2=-1), axis=-2)
    least = _ROUNDING**2 * jnp.sum(estimate**2, axis=-1)
    if kind == "pair":
        of_both = jnp.sum(of_model, axis=-1)
        of_difference = of_differences(jnp.sum(of_classes, axis=-3))[0, 1]
        lost = (of_both > least) & (of_difference <= _ROUNDING * of_both)
    else:
        lost = jnp.sum(of_model, axis=-1) <= least
    if kind == "one":
        estimate, of_classes = estimate[..., 0], of_classes[..., 0, 0]
        if bounds is not None:
            share = bounds.share_of(estimate)
            lost |= (share <= _ROUNDING) | (share >= 1 - _ROUNDING)
    lost_of_each = lost.reshape(*lost.shape, *(1,) * (of_classes.ndim - lost.ndim))
    of_classes = jnp.where(lost_of_each, jnp.nan, of_classes)
    return Pilot(estimate, of_classes, thirds, bounds), counts, lost


@library_program("kind")
def _needed(
    pilot: Pilot,
    sizes: Sizes,
    ratio: Array | None,
    goal: Any,
    wanted: Array,
    level: Array,
    kind: str,
) -> tuple[Array, Array, Array]:
    """The numbers of positives and negatives, and the standard error there."""
    library = numerics.namespace(*jax.tree.leaves((pilot, sizes, ratio, goal, wanted)))
    ratio = sizes.negatives / sizes.positives if ratio is None else ratio
    shapes = [np.shape(x) for x in jax.tree.leaves((ratio, wanted, goal))]
    shape = np.broadcast_shapes(*shapes, *([pilot.estimate.shape] if kind == "one" else []))

    def at(positives: Array) -> Errors:
        few = FEWEST + 0 * positives
        return _ERRORS[kind](pilot, Sizes(library.maximum(ratio * positives, few), positives))

    def enough(positives: Array) -> Array:
        errors = at(positives)
        if isinstance(goal, Effect):
            return _power_at(errors, pilot, goal, level, kind) >= wanted
        narrow: Array = width_of(errors, pilot, level) <= goal
        return narrow

    positives = library.ceil(smallest(enough, shape) * (1 - _ROUNDING))
    negatives = library.maximum(library.ceil(ratio * positives * (1 - _ROUNDING)), FEWEST)
    errors = _ERRORS[kind](pilot, Sizes(negatives, positives))
    undefined = library.isnan(at(library.full(shape, FEWEST)).error)
    found = positives, negatives, errors.standard_error
    n_positives, n_negatives, error = (library.where(undefined, library.nan, x) for x in found)
    return n_positives, n_negatives, error


@library_program("kind")
def _power(
    pilot: Pilot, sizes: Sizes, counts: Any, effect: Effect, level: Array, kind: str
) -> Array:
    """The power with `counts` positives and negatives, each None where it is not given."""
    library = numerics.namespace(*jax.tree.leaves((sizes, counts)))
    positives = sizes.positives if counts[0] is None else counts[0]
    per_positive = sizes.negatives / sizes.positives
    negatives = per_positive * positives if counts[1] is None else counts[1]
    study = Sizes(*library.broadcast_arrays(negatives, positives))
    return _power_at(_ERRORS[kind](pilot, study), pilot, effect, level, kind)


def _power_at(errors: Errors, pilot: Pilot, effect: Effect, level: Any, kind: str) -> Array:
    if kind == "one":
        errors, effect = against_value(pilot, errors, effect)
    return power_of(errors, effect, level)
