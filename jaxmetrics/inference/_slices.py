"""A metric in every slice of the items: intervals, and differences that hold for all slices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import as_default
from jaxmetrics._base.host import all_concrete, is_compiling, of_all_processes, to_jax
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import STATIC, Column, Result, Table, interval_columns
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._base.words import some_of, visible
from jaxmetrics._roc.record import MetricLike, record_of
from jaxmetrics.inference._few_successes import warn_of_unequal_slices
from jaxmetrics.inference._forms import Form, chosen_method, form_of
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.heavy_negatives import takes_steps
from jaxmetrics.inference._influence.sizes import (
    enough_inside,
    sizes_of,
    warn_of_undefined,
)
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._intervals.metrics import itself, with_influence
from jaxmetrics.inference._intervals.ranges import Range, range_of
from jaxmetrics.inference._pairs import Pairs
from jaxmetrics.inference._slice_by_slice import (
    Influence,
    Slice,
    apart,
    clusters_in_slices,
    influence_in_slices,
    negatives_drawn,
    pairs_by_slice,
    values_of_clusters,
)
from jaxmetrics.inference._slice_tests import (
    SliceDifferences,
    from_rest,
    levels_of,
    of_models,
    pairs_of_items,
    scaled,
)
from jaxmetrics.inference._slice_values import (
    SlicedItems,
    SliceValues,
    check_sliced,
    slice_estimates,
    sliced_items,
    values_of_items,
    values_of_shares,
    weights_of_positives,
)
from jaxmetrics.inference._tied_limits import warn_of_tied_limits

# Within a limit clusters count as half of the independent items that they amount to, but not by
# much more than their number: where a few have extreme effects, a sample without these seems sure.
_PER_ITEM, _MOST_MORE = 2, 1.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Slices(Result):
    """A metric in each slice, with tests that hold for all slices at once.

    Arrays `[slices, models]` are `[slices]` if scores are `[n]`.

    Attributes:
      names: the value of each slice, in order; pairs for crossed slices.
      n_items: `[slices]`, the number of items that count.
      n_positives: `[slices]`, the number of positives that count.
      tested: `[slices]` bool, whether both classes have at least `min_items` items, or clusters
        with items. Simultaneous limits and p-values of other slices are NaN, and these do not
        count in the adjustment.
      estimate: `[slices, models]`, the metric of the slice.
      standard_error: `[slices, models]`, of the estimate.
      low: `[slices, models]`, the lower limit of the estimate, for this slice and model alone.
      high: `[slices, models]`, the upper limit of the estimate.
      models: `[slices, models, models]`, differences of models within each slice, row minus column;
        None for scores `[n]`.
      rest: `[slices, models]`, differences of each slice from the mean of the others, weighted by
        the weights of their positives.
      confidence_level: the nominal coverage of the limits.
      effective: `[slices, 2]`, the effective sizes (sum w)^2 / sum w^2 of the two classes; with
        clusters, the numbers of clusters of one size that have as many degrees of freedom.
      correlation: `[slices, slices, models]`, of the estimates of slices that share clusters; None
        if no two do.
      n_clusters: `[2]`, as `effective`, of all slices together; None if no two share clusters.
    """

    names: tuple[Any, ...] = field(metadata=STATIC)
    n_items: Array
    n_positives: Array
    tested: Array
    estimate: Array
    standard_error: Array
    low: Array
    high: Array
    models: SliceDifferences | None
    rest: SliceDifferences
    confidence_level: float = field(metadata=STATIC)
    effective: Array | None = None
    correlation: Array | None = None
    n_clusters: Array | None = None

    def _is_readable(self) -> bool:
        return np.shape(self.n_items) == (len(self.names),) and super()._is_readable()

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
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Slices:
    """A metric in every slice of the items, and which slices and models differ.

    For slice s and model a: the metric A_sa of the items of the slice, with its closed-form
    interval. Models within a slice: A_sa - A_sb -+ t E, as `compare` of the items of the slice.
    A slice and the rest: A_s - B_s with B_s = sum_(r /= s) W_r A_r / sum_(r /= s) W_r, where W_r is
    the weight of the positives of slice r; its lower limit is A_s - B_s - sqrt((A_s - l_s)^2 +
    sum_(r /= s) (W_r (u_r - A_r))^2 / (sum_(r /= s) W_r)^2) from the limits l and u of the slices,
    and its upper one the reverse. Here l_s and u_s are at least as far from A_s as the limits
    logit A_s -+ z P_s / ((B_s (1 - B_s))^(3/4) (A_s (1 - A_s))^(1/4)), with P_s the standard error
    that the slice would have if influence values varied as much in all slices. Each of these two
    families of m tests is adjusted by itself, by Sidak: limits have the level
    confidence_level^(1 / m), and p-values are 1 - (1 - p)^m. That is exact for independent tests,
    such as those within different slices, and conservative for others.

    Args:
      metric: `roc_auc`, `partial_auc`, `average_precision`, `recall_at_fpr`,
        `sensitivity_at_specificity`, `specificity_at_sensitivity`, or a functools.partial of one.
      scores: `[n]` or `[models, n]`, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      slices: `[n]`, integers or strings, the slice of each item (a country, a month); or a tuple of
        two such arrays, whose slices are crossed. Each day of a column of dates would be a slice:
        for months pass `dates.dt.to_period("M")` of pandas, or texts such as "2026-03".
      min_items: the fewest items of each class with which a slice is tested. With a limit of a rate
        and threshold="slice", at least three items must also be within the limit; of clusters
        three, or two that amount to six independent items.
      threshold: for metrics with a limit of a rate: "slice", where each slice has the threshold of
        its own negatives; "global", one threshold for all, that of all negatives.
      confidence_level: in (0, 1), the nominal coverage.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other, also if they are in several slices: errors and limits are those of whole
        clusters, and `min_items` counts clusters with items of each class.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      where: `[n]` bool, False for items to leave out.

    Returns:
      A Slices in the unit of the metric. Slices that are too small to be tested are listed too.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a slice is None or NaN, scores or
        slices are traced, the metric is not one of those above or has several values, or it has no
        threshold, or that of "quantile", and threshold="global".

    NaN where the metric of a slice is NaN; such slices are left out of the mean of the others. A
    warning says where the limit of a recall with "step" or "quantile" is within a tie of many
    items, as of ratings: errors do not allow for the jump of the curve there, nor do those of
    `trend`. With equal models and heavy-tailed scores, at least one of eight slices differed in 8
    to 13 % of simulations for recalls at an FPR, and in 4 % for partial areas. P-values of `rest`
    are interpolated between its limits at nine levels. Where slices share clusters, all distances d
    in the root count with the correlation R of the slices, as sum_rq d_r d_q R_rq with minus signs
    between slice and rest. With 24 clusters in each of 12 slices, one slice or more differed from
    the rest in 9 % of simulations, and with 60 in 6 to 7 %. Time O(models n log n + models^2 n),
    memory O(models n), and both O(slices^2 models^2) where slices share clusters. With clusters and
    "global" each slice takes the negatives of all: time O(slices models n log n), and memory
    O(slices models n).

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
    along = {"slices": slices, "clusters": clusters}
    record_of(metric)  # refused before any data
    items = checks.check_items(scores, labels, weights, where, along=along)
    level = checks.check_level(confidence_level)
    checks.check_count("min_items", min_items)
    checks.check_choice("threshold", threshold, ("slice", "global"))
    checks.check_one_or_models(items)
    names, ids = checks.check_slices("slices", slices, items)
    if is_compiling() or not all_concrete(*items):
        raise TypeError(
            "slices sorts by NumPy and cannot be traced: call it outside of jit, and of grad"
        )
    of_cluster = checks.check_clusters(clusters, items)
    items = of_all_processes(items)
    found, _ = slices_of_items(
        metric,
        items,
        names,
        ids,
        of_cluster,
        min_items=min_items,
        one_threshold=threshold == "global" and len(ids) > 0,
        level=level,
        level_alone=level,
    )
    n_items, n_positives = np.asarray(found.n_items), np.asarray(found.n_positives)
    both = np.minimum(n_positives, n_items - n_positives) > 0
    warn_of_undefined(np.asarray(found.estimate)[both])
    warn_of_unequal_slices(metric, found)
    tested = {int(i): visible(str(names[i])) for i in np.flatnonzero(found.tested)}
    warn_of_tied_limits(metric, items, (ids, tested) if threshold == "slice" else None)
    return found


def _values_and_pairs(
    form: Form,
    items: SlicedItems,
    parts: list[Slice] | None,
    known: list[Influence] | None,
    levels: HostArray,
    bounds: Range | None,
    alone: bool,
) -> tuple[SliceValues, Pairs | None]:
    """The values of the share that the form is of, and the models compared, unless one is alone."""
    of_shares = form._replace(value_of=itself)
    pairs = None
    if parts is not None:
        pairs = None if alone else pairs_by_slice(form.metric, parts, known, bounds)
        if known is not None:
            return values_of_clusters(of_shares, parts, known, levels), pairs
    estimates = slice_estimates(items, form, levels)
    if not alone and parts is None:
        pairs = pairs_of_items(estimates, bounds)
    return values_of_items(estimates, of_shares, levels), pairs


def slices_of_items(
    metric: MetricLike,
    items: Items,
    names: tuple[Any, ...],
    ids: HostArray,
    clusters: Clusters | None,
    *,
    min_items: int,
    one_threshold: bool = False,
    level: float,
    level_alone: float,
) -> tuple[Slices, Interval]:
    """As `slices`, from the slice index `ids`, and intervals of the level `level_alone`."""
    metric, exchanged = with_influence(metric, items)
    given = sliced_items(exchanged, ids, len(names), one_threshold)
    form = form_of(metric, chosen_method(metric))
    check_sliced(form.metric, given)
    alone = items.scores.ndim == 1
    counts = units = given.sliced.counts
    sizes, parts, known = given.sliced.sizes, None, None
    bounds = range_of(form.metric)
    limit = None if bounds is None or one_threshold else bounds.max_fpr
    if names and (clusters is not None or takes_steps(form.metric, items)):
        if one_threshold:
            numbers = len(names) * (items.scores.size + 4 * len(ids))  # each has all negatives
            instead = "write threshold='slice', or leave clusters out"
            checks.check_fits("the number of slices", len(names), numbers, instead)
        parts = apart(exchanged, ids, len(names), clusters, one_threshold=one_threshold)
        if clusters is not None:
            units, sizes = clusters_in_slices(given.sliced, clusters[0])
            known = influence_in_slices(form.metric, parts, with_covariance=not alone)
    n_positives = counts[:, int(exchanged.labels is items.labels)]
    tested = units.min(axis=1) >= min_items
    if limit is not None:
        negatives = sizes[:, 0]
        if known is not None:
            drawn = negatives_drawn(known) / _PER_ITEM
            negatives = np.clip(drawn, negatives, _MOST_MORE * negatives)
        tested &= enough_inside(negatives * limit)
    n_models = 1 if alone else items.scores.shape[0]
    levels = np.append(levels_of(level, int(tested.sum()) * n_models), level_alone)
    each, at = np.unique(levels, return_inverse=True)
    found, pairs = _values_and_pairs(form, given, parts, known, each, bounds, alone)
    low, high = (x[..., at] for x in found.limits)
    correlation = found.correlation
    rest = from_rest(
        found,
        (low[..., :-1], high[..., :-1]),
        weights_of_positives(given),
        tested,
        levels[:-1],
        correlation,
    )
    one, none = values_of_shares(form, np.array([1.0, 0.0]))
    models = None
    if pairs is not None:
        compared = of_models(found.estimate, pairs, tested, level)
        models = replace(
            scaled(compared, one - none, as_default),
            correlation=jax.tree.map(as_default, found.correlation_of_differences),
        )

    def out(x: Any) -> Any:
        return as_default(x[:, 0] if alone else x)

    def of_metric(share: Any) -> Any:
        return out(values_of_shares(form, share))

    n_clusters = None
    if found.covariance is not None:
        one_row = exchanged._replace(scores=np.atleast_2d(np.asarray(exchanged.scores))[0])
        n_clusters = as_default(np.array(sizes_of(one_row, clusters, 0)[:2]).ravel())
    of_slices = Slices(
        names,
        n_items=to_jax(counts.sum(axis=1).astype(np.int32), None),
        n_positives=to_jax(n_positives.astype(np.int32), None),
        tested=to_jax(tested, None),
        estimate=of_metric(found.estimate),
        standard_error=out(found.error * (one - none)),
        low=of_metric(low[..., 0]),
        high=of_metric(high[..., 0]),
        models=models,
        rest=scaled(rest, one - none, out),
        confidence_level=level,
        effective=as_default(sizes),
        correlation=jax.tree.map(lambda x: as_default(x[..., 0] if alone else x), correlation),
        n_clusters=n_clusters,
    )
    limits = of_metric(low[..., -1]), of_metric(high[..., -1])
    values = of_slices.estimate, *limits, of_slices.standard_error
    return of_slices._captioned_as(slice=names), Interval(*values, form.name, level_alone)
