"""A metric in every slice of the items: intervals, and differences that hold for all slices."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import as_default
from jaxmetrics._base.host import all_concrete, in_threads, is_compiling
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import Column, Result, Table, interval_columns
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._base.words import some_of, visible
from jaxmetrics._roc.record import Chosen, MetricLike, Options, choose
from jaxmetrics._roc.sliced import Sliced
from jaxmetrics.inference._few_successes import warn_of_unequal_slices
from jaxmetrics.inference._forms import Form, chosen_method, form_of, limits_of_form
from jaxmetrics.inference._influence.sizes import enough_inside, warn_of_undefined
from jaxmetrics.inference._influence.slice_decisions import decided_by_all, decided_in_slices
from jaxmetrics.inference._influence.slice_slopes import InSlices, smooth_in_slices
from jaxmetrics.inference._influence.slices import covariance_in_slices, covariance_of_threshold
from jaxmetrics.inference._intervals.metrics import error_bars_of, with_influence
from jaxmetrics.inference._intervals.ranges import range_of
from jaxmetrics.inference._intervals.rules import Moments
from jaxmetrics.inference._slice_tests import (
    SliceDifferences,
    from_rest,
    levels_of,
    of_models,
    pooled_errors,
    scaled,
)

_FEW = 128  # slices whose limits one thread takes at a time

_DATA = (
    *("n_items", "n_positives", "tested", "estimate", "standard_error", "low", "high"),
    *("models", "rest"),
)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[*_DATA],
    meta_fields=["names", "confidence_level"],
)
@dataclass(frozen=True)
class Slices(Result):
    """A metric in each slice, with tests that hold for all slices at once.

    Arrays `[slices, models]` are `[slices]` if scores are `[n]`.

    Attributes:
      names: the value of each slice, in order; pairs for crossed slices.
      n_items: `[slices]`, the number of items.
      n_positives: `[slices]`, the number of positives.
      tested: `[slices]` bool, whether both classes have at least `min_items` items. Simultaneous
        limits and p-values of other slices are NaN, and these do not count in the adjustment.
      estimate: `[slices, models]`, the metric of the slice.
      standard_error: `[slices, models]`, of the estimate.
      low: `[slices, models]`, the lower limit of the estimate, for this slice and model alone.
      high: `[slices, models]`, the upper limit of the estimate.
      models: `[slices, models, models]`, differences of models within each slice, row minus column;
        None for scores `[n]`.
      rest: `[slices, models]`, differences of each slice from the mean of the others, weighted by
        the weights of their positives.
      confidence_level: the nominal coverage of the limits.
    """

    names: tuple[Any, ...]
    n_items: Array
    n_positives: Array
    tested: Array
    estimate: Array
    standard_error: Array
    low: Array
    high: Array
    models: SliceDifferences | None
    rest: SliceDifferences
    confidence_level: float

    def _table(self) -> Table:
        shape = np.shape(self.estimate)
        index = self._captioned_as(slice=self.names)._rows(shape, *("slice", "model")[: len(shape)])
        name, level = self._caption.metric, self.confidence_level
        whole = (len(shape) - 1) * (1,)

        def of_slice(heading: str, **parts: Any) -> Column:
            grown = {
                k: np.broadcast_to(np.reshape(x, (-1, *whole)), shape) for k, x in parts.items()
            }
            return Column(heading, grown, form="plain")

        rest = self.rest
        columns = [
            of_slice("items", n_items=self.n_items),
            of_slice("positive", n_positives=self.n_positives),
            of_slice("", tested=self.tested),
            *interval_columns(name, self.estimate, self.low, self.high, self.standard_error, level),
            Column("minus the rest", {"rest_difference": rest.difference}, rest.high - rest.low),
            Column("p, all slices", {"rest_p_value": rest.simultaneous_p_value}, form="p"),
        ]
        return Table(name, index, columns, self._notes())

    def _notes(self) -> tuple[str, ...]:
        """Which models are worse in which slices, and how many slices are too small."""
        notes = []
        slices = [visible(str(x)) for x in self._labels("slice", len(self.names))]
        if self.models is not None:
            worse: Any = np.asarray(self.models.simultaneous_high) < 0
            models = [visible(str(x)) for x in self._labels("model", worse.shape[-1])]
            for a, b in zip(*worse.any(axis=0).nonzero(), strict=True):
                where = some_of([slices[i] for i in worse[:, a, b].nonzero()[0]])
                notes.append(f"{models[a]} significantly worse than {models[b]} in {where}")
        small = int((~np.asarray(self.tested)).sum())
        if small:
            notes.append(f"too few items for tests in {small} of {len(slices)} slices")
        return tuple(notes)


@takes_metric
@on_any_mesh
def slices(
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    slices: Any,
    *,
    min_items: int = 20,
    threshold: str = "slice",
    confidence_level: float = 0.95,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Slices:
    """A metric in every slice of the items, and which slices and models differ.

    For slice s and model a: the metric A_sa of the items of the slice, with its closed-form
    interval. Models within a slice: A_sa - A_sb -+ t E, as `compare` of the items of the slice.
    A slice and the rest: A_s - B_s with B_s = sum_(r /= s) W_r A_r / sum_(r /= s) W_r, where W_r is
    the weight of the positives of slice r; its lower limit is A_s - B_s - sqrt((A_s - l_s)^2 +
    sum_(r /= s) (W_r (u_r - A_r))^2 / (sum_(r /= s) W_r)^2) from the limits l and u of the slices,
    and its upper one the reverse. Here l_s and u_s are at least as far from A_s as logit A_s -+
    z P_s / ((B_s (1 - B_s))^(3/4) (A_s (1 - A_s))^(1/4)), with the standard error P_s of the slice
    if influence values vary as much in all slices. Each of these two families of m tests is
    adjusted by itself, by Sidak: limits have the level confidence_level^(1 / m), and p-values are
    1 - (1 - p)^m. That is exact for independent tests, which slices are, and on the safe side for
    others.

    Args:
      metric: `roc_auc`, `partial_auc`, `average_precision`, `recall_at_fpr`,
        `sensitivity_at_specificity`, `specificity_at_sensitivity`, or a functools.partial of one.
      scores: `[n]` or `[models, n]`, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      slices: `[n]`, integers or strings, the slice of each item (a country, a month); or a tuple of
        two such arrays, whose slices are crossed.
      min_items: the fewest items of each class with which a slice is tested. With a limit of a rate
        and thresholds of slices, three items must be within it, too.
      threshold: for metrics with a limit of a rate: "slice", where each slice has the threshold of
        its own negatives; "global", one threshold for all, that of all negatives.
      confidence_level: in (0, 1), the nominal coverage.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      where: `[n]` bool, False for items to leave out.

    Returns:
      A Slices in the unit of the metric. Slices that are too small to be tested are listed too.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a slice is None or NaN, scores or
        slices are traced, or the metric is not one of those above.

    NaN where the metric of a slice is NaN; such slices are not in the rest. P-values of the rest
    are interpolated between nine levels of its limits. Time O(models n log n + models^2 n), memory
    O(models n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2, .9, .3], [0, 0, 1, 1, 1, 0, 1, 0]
      >>> country = ["fr", "fr", "fr", "fr", "de", "de", "de", "de"]
      >>> result = jm.slices(jm.roc_auc, scores, labels, country, min_items=2)
      >>> print(result.names, result.estimate)
      ('de', 'fr') [1.   0.75]

    References: Z. Sidak, "Rectangular confidence regions for the means of multivariate normal
    distributions", JASA 62, 1967; G. Y. Zou and A. Donner, "Construction of confidence limits about
    effect measures: a general approach", Statistics in Medicine 27, 2008.
    """
    items = checks.check_items(scores, labels, weights, where, along={"slices": slices})
    level = checks.check_level(confidence_level)
    checks.check_count("min_items", min_items)
    checks.check_choice("threshold", threshold, ("slice", "global"))
    checks.check_one_or_models(items)
    names, ids = checks.check_slices("slices", slices, items.scores.shape[-1])
    if is_compiling() or not all_concrete(*items):
        raise TypeError("slices sorts by NumPy and cannot be traced: call it outside of jit")
    how: Any = {"min_items": min_items, "one_threshold": threshold == "global", "level": level}
    found = slices_of_items(metric, items, names, ids, **how, level_alone=level)
    both = np.minimum(found.n_positives, found.n_items - found.n_positives) > 0
    warn_of_undefined(np.asarray(found.estimate)[both])
    warn_of_unequal_slices(metric, found)
    return found


def slices_of_items(
    metric: MetricLike,
    items: Items,
    names: tuple[Any, ...],
    ids: HostArray,
    *,
    min_items: int,
    one_threshold: bool = False,
    level: float,
    level_alone: float,
) -> Slices:
    """As `slices`, by the index of each item's slice; the limits of estimates have a level too."""
    metric, exchanged = with_influence(metric, items)
    given = _given(exchanged, ids, len(names), one_threshold)
    form = form_of(metric, chosen_method(metric))
    counts = given.sliced.counts
    n_positives = counts[:, int(exchanged.labels is items.labels)]
    alone = items.scores.ndim == 1
    tested, bounds = counts.min(axis=1) >= min_items, range_of(form.metric)
    if bounds is not None and bounds.max_fpr is not None and not one_threshold:
        tested &= enough_inside(given.sliced.sizes[:, 0] * bounds.max_fpr)
    n_models = 1 if alone else items.scores.shape[0]
    levels = np.append(levels_of(level, int(tested.sum()) * n_models), level_alone)
    each, at = np.unique(levels, return_inverse=True)
    found = _found(given, form, each)
    estimate, low, high, error = _limits(found, form, each)
    low, high = low[..., at], high[..., at]
    one, none = _values_of(form, np.array([1.0, 0.0]))
    share_error = error / (one - none)
    shares = tuple((x[..., :-1] - none) / (one - none) for x in (low, high))
    pooled = pooled_errors(found.of_classes, found.sizes)
    rest = from_rest(
        found.estimate, share_error, pooled, shares, found.weights, tested, levels[:-1]
    )
    models = None
    if not alone:
        compared = found.estimate, found.of_classes, found.sizes, bounds, tested, level
        models = scaled(of_models(*compared), one - none, as_default)

    def out(x: Any) -> Any:
        return as_default(x[:, 0] if alone else x)

    of_slices = Slices(
        names,
        n_items=jnp.asarray(counts.sum(axis=1), np.int32),
        n_positives=jnp.asarray(n_positives, np.int32),
        tested=jnp.asarray(tested),
        estimate=out(estimate),
        standard_error=out(error),
        low=out(low[..., -1]),
        high=out(high[..., -1]),
        models=models,
        rest=scaled(rest, one - none, out),
        confidence_level=level,
    )
    return of_slices._captioned_as(slice=names)


def _flat(x: Any) -> Any:
    return None if x is None else np.asarray(x).reshape(-1)


class _Given(NamedTuple):
    """The items by slice; scores `[models, n]` and weights `[n]` are in the order of `sliced`."""

    sliced: Sliced
    scores: list[HostArray]
    weights: Any
    one_threshold: bool


def _given(items: Items, ids: HostArray, n: int, one_threshold: bool) -> _Given:
    labels, where, weights = map(_flat, (items.labels, items.where, items.weights))
    sliced = Sliced.of(labels == 1, ids, n, where, weights, one_unit=one_threshold)
    scores = in_threads(lambda row: row.take(sliced.item), np.atleast_2d(np.asarray(items.scores)))
    taken = None if weights is None else weights.take(sliced.item)
    return _Given(sliced, scores, taken, one_threshold)


class _Found(NamedTuple):
    """Of the share that the closed form is of.

    Attributes:
      estimate: `[slices, models]`.
      of_classes: `[slices, 2, models, models]`, the parts of the covariance.
      sizes: `[slices]` each, the effective sizes of negatives and positives.
      weights: `[slices]`, of the positives.
      numbers: what the closed form needs beside, `[slices, models, ...]`.
    """

    estimate: HostArray
    of_classes: Any
    sizes: tuple[HostArray, HostArray]
    weights: HostArray
    numbers: Any


def _found(given: _Given, form: Form, levels: HostArray) -> _Found:
    chosen, arrays = choose(form.metric)
    decides = error_bars_of(chosen.metric).decision is not None
    _check_metric(chosen, arrays, given, decides)
    sliced, scores, _, one_threshold = given
    arrays = {name: np.asarray(x) for name, x in arrays.items()}
    sizes = sliced.sizes[:, 0], sliced.sizes[:, 1]
    if one_threshold:
        both = in_threads(lambda x: decided_by_all(chosen, arrays, sliced, x, levels), scores)
        found = [x[0] for x in both]
    else:
        way = decided_in_slices if decides else smooth_in_slices
        found = in_threads(lambda x: way(chosen, arrays, sliced, x, levels), scores)
    of_classes = covariance_in_slices(sliced, [x.influence for x in found], held=decides)
    if one_threshold:
        negative = ~sliced.positive
        weight = None if sliced.weights is None else sliced.weights[negative]
        flagged = np.stack([x[1].flagged[negative] for x in both])
        slopes = np.stack([x[1].slopes for x in both], axis=1)
        size, of_classes[:, 0] = covariance_of_threshold(weight, flagged, slopes)
        sizes = np.full(len(sliced.counts), size), sizes[1]
    estimate, numbers = _of_models(given, found)
    return _Found(estimate, of_classes, sizes, _positives(given), numbers)


def _positives(given: _Given) -> HostArray:
    """The weights of the positives, in one unit."""
    if given.weights is None:
        return given.sliced.totals[:, 1]
    weights = given.weights.astype(np.float64)
    return given.sliced.sums(weights / weights.max(initial=1e-300))[:, 1]


def _of_models(given: _Given, found: list[InSlices]) -> tuple[HostArray, Any]:
    """The values and numbers of all models; NaN where a slice has a score that is."""
    sliced = given.sliced
    estimate = np.stack([x.estimate for x in found], axis=1)
    lost = np.zeros(estimate.shape)
    for i, scores in enumerate(given.scores):
        bad = scores != scores
        lost[:, i] = sliced.sums(bad.astype(float)).sum(axis=1) if bad.any() else 0
    lost[sliced.counts.sum(axis=1) == 0] = 1
    numbers = jax.tree.map(lambda *x: np.stack(x, axis=1), *(x.numbers for x in found))
    return np.where(lost > 0, np.nan, estimate), numbers


def _check_metric(chosen: Chosen, arrays: Options, given: _Given, decides: bool) -> None:
    known = chosen.metric.smooth or decides
    if chosen.metric.of_placements is None or not known:
        raise TypeError(
            "slices takes roc_auc, partial_auc, average_precision, recall_at_fpr, "
            "sensitivity_at_specificity, specificity_at_sensitivity, or a functools.partial of "
            f"one, got {chosen.metric.name}: write a loop with where=(slices == name)"
        )
    chosen.refuse_several(arrays, len(given.scores[0]))
    if given.one_threshold and not decides:
        raise ValueError(
            f"threshold='global' is for metrics with a threshold, and {chosen.metric.name} has "
            "none: leave threshold out"
        )
    options = chosen.options(arrays)
    if given.one_threshold and options["method"] == "quantile":
        raise ValueError("threshold='global' needs method='step' or 'linear', got 'quantile'")


def _limits(
    found: _Found, form: Form, levels: HostArray
) -> tuple[HostArray, HostArray, HostArray, HostArray]:
    """Estimate and error `[slices, models]`, and limits `[slices, models, levels]`."""
    estimate: Any = found.estimate[..., None]
    sizes: Any = tuple(np.broadcast_to(x[:, None, None], estimate.shape) for x in found.sizes)
    parts = np.diagonal(found.of_classes, axis1=2, axis2=3)[..., None]
    variances: Any = tuple(parts[:, i] * sizes[i] + 0 * estimate for i in (0, 1))
    numbers = jax.tree.map(lambda x: x if x.ndim == 3 else x[..., None], found.numbers)
    moments = Moments(estimate, variances, sizes)

    def of_some(some: slice) -> list[HostArray]:
        here, beside = jax.tree.map(lambda x: x[some], (moments, numbers))
        at: Any = levels
        values = limits_of_form(form, here, beside, at)
        whole = (*here.estimate.shape[:-1], len(levels))
        return [np.broadcast_to(np.asarray(x), whole) for x in values]

    n = len(estimate)  # SciPy's quantiles take longer than all else, and let threads run
    runs = [slice(i, i + _FEW) for i in range(0, max(n, 1), _FEW)]
    middle, low, high, error = map(np.concatenate, zip(*in_threads(of_some, runs), strict=True))
    return middle[..., 0], low, high, error[..., 0]


def _values_of(form: Form, shares: Any) -> HostArray:
    chosen, arrays = choose(form.metric)
    arrays = {name: np.asarray(x, np.float64) for name, x in arrays.items()}
    return np.asarray(form.value_of(shares, chosen.options(arrays)))
