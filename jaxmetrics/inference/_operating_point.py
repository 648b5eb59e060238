"""What happens at a threshold: the rates, the cost and their intervals."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_precision, library_program
from jaxmetrics._base.host import all_concrete, at_hand, near_tree
from jaxmetrics._base.items import at_least_one, batch_of, items_at_hand, rows_of
from jaxmetrics._base.keywords import known_options
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import STATIC, Column, Result, Table, width_between
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._base.words import percent_text
from jaxmetrics._roc.operating import COSTS, RULES, Point, check_rule, chosen_point
from jaxmetrics.inference._at_threshold import (
    clusters_at,
    flagged_at,
    moments_of_choice,
    warn_of_infinite_scores,
)
from jaxmetrics.inference._bootstrap.bootstrap import replicates_of
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._chosen_threshold import chosen_threshold, in_dtype
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.sizes import too_few, warn_of_undefined
from jaxmetrics.inference._intervals.interval import Interval, interval_of
from jaxmetrics.inference._intervals.operating import (
    OfChoice,
    QuantileOf,
    Sizes,
    Terms,
    limits_at_threshold,
    limits_of_choice,
    normal_error,
)
from jaxmetrics.inference._intervals.rules import Limits, around
from jaxmetrics.inference._quantile_thresholds import limits_of_quantile
from jaxmetrics.inference._tested_thresholds import limits_of_best

# Rules whose threshold is a quantile of a class.
QUANTILES: dict[str, QuantileOf] = {"max_fpr": "negatives", "min_recall": "positives"}
# Rules whose threshold is the best point of the sample.
BEST = ("min_precision", "criterion", "cost")

_HEADINGS = {"fpr": "FPR", "npv": "NPV", "recall_by_amount": "recall by amount"}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OperatingPoint(Result):
    """A threshold, and what the decision `score >= threshold` does; each an Interval `[...]`.

    Estimates are those of the sample at this threshold. Limits are of what the same threshold does
    in the population.

    Attributes:
      threshold: in the unit of the scores; its limits are of the threshold that the rule chooses in
        the population, and may be infinite.
      recall: the share of the positives that is flagged.
      fpr: the share of the negatives that is flagged.
      precision: the share of the flagged items that is positive; also known as PPV.
      npv: the share of the items that are not flagged that is negative.
      flagged: the share of all items that is flagged.
      cost: the mean cost of an item, `fp_cost` for a false positive and `fn_cost` for a missed
        positive; None without costs.
      recall_by_amount: the share of the amount of the positives that is flagged; None without
        amounts.
      confidence_level: the nominal coverage of each interval.
    """

    threshold: Interval
    recall: Interval
    fpr: Interval
    precision: Interval
    npv: Interval
    flagged: Interval
    cost: Interval | None
    recall_by_amount: Interval | None
    confidence_level: float = dataclasses.field(metadata=STATIC)

    @property
    def specificity(self) -> Interval:
        """1 - fpr: the share of the negatives that is not flagged."""
        fpr = self.fpr
        estimate, low, high = (1 - x for x in (fpr.estimate, fpr.high, fpr.low))
        return dataclasses.replace(fpr, estimate=estimate, low=low, high=high)

    def _table(self) -> Table:
        columns = []
        for field in dataclasses.fields(self):
            interval = getattr(self, field.name)
            if isinstance(interval, Interval):
                width = width_between(interval.low, interval.high)
                ends = {f"{field.name}_{x}": getattr(interval, x) for x in ("low", "high")}
                parts = {field.name: interval.estimate, **ends}
                form = "number"
                if field.name == "threshold":  # people use it: show its digits
                    form = "threshold"
                    width = np.minimum(width, np.abs(np.asarray(interval.estimate)) / 25)
                columns.append(Column(_HEADINGS.get(field.name, field.name), parts, width, form))
        index = self._rows(np.shape(self.threshold.estimate), "model")
        note = f"{percent_text(self.confidence_level)} intervals"
        return Table("Operating point", index, columns, (note,))


@known_options
@on_any_mesh
def operating_point(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    max_fpr: ArrayLike | None = None,
    min_recall: ArrayLike | None = None,
    min_precision: ArrayLike | None = None,
    threshold: ArrayLike | None = None,
    criterion: str | None = None,
    fp_cost: ArrayLike | None = None,
    fn_cost: ArrayLike | None = None,
    prevalence: ArrayLike | None = None,
    confidence_level: float = 0.95,
    key: Array | None = None,
    n_resamples: int = 2000,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    progress: Callable[[int], None] | None = None,
) -> OperatingPoint:
    """What a threshold, given or chosen by a rule, does: rates and cost, each with an interval.

    One rule chooses the threshold t of the decision `score >= t`:

    - max_fpr: the largest recall with FPR <= max_fpr, as `threshold_at_fpr`.
    - min_recall: the smallest FPR with recall >= min_recall, as `specificity_at_sensitivity`.
    - min_precision: the largest recall with precision >= min_precision, as `recall_at_precision`.
    - threshold: this one.
    - criterion="youden": the largest recall - FPR; of several such t the highest.
    - fp_cost and fn_cost, where no other rule is given: the lowest cost of an item,
      fp_cost (1 - p) FPR + fn_cost p (1 - recall), with p the share of positives; of several such t
      the highest.

    The intervals are about what this very threshold does to new items, not about the best that the
    rule attains: for recall at an FPR known exactly see `confidence_interval` of `recall_at_fpr`.
    With max_fpr, min_recall and threshold, rates have Jeffreys's limits, and what follows from two
    rates has those of Zou and Donner. Where max_fpr or min_recall choose t, it is the score of a
    positive, which counts half, and precision has the limits of a negative binomial draw. t has the
    limits of a quantile; with clusters, those for as many independent items as give the share above
    t the same variance. With costs and criterion the limits of t are the lowest and the highest
    threshold whose cost is not significantly above the least: at most z_level (sum v_i^2 + 2 (v_0^2
    + v_1^2))^(1/2) above it, where v_i is what flagging item i adds to the cost, the sum is over
    the items between the two thresholds, and v_0 and v_1 are typical v_i of each class. With
    min_precision=c, flagging an item costs c - label: the lower limit of t is the lowest threshold
    whose cost is not significantly above 0, the upper one the lowest whose cost is significantly
    below 0, by the same error over all flagged items. With prevalence the variance is that of
    recall and FPR, each in a class of fixed size.

    All other intervals with costs, criterion and min_precision use the bootstrap and need a key:
    these rules choose the best point of the sample, whose value is better than that of new items.
    In each resample the rule chooses again; d is the value in the resample minus the value in the
    data, both at the threshold so chosen. Limits are Jeffreys's around (value - mean of d), for as
    many draws as give the variance of d; with prevalence, those of precision and NPV follow from
    recall and FPR. With clusters this holds for any rule, but max_fpr and min_recall choose once;
    the draws are fewer where few clusters decide, and the clusters at a rate of 0 or 1.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      max_fpr: the largest FPR, in (0, 1].
      min_recall: the smallest recall, in [0, 1].
      min_precision: the smallest precision, in [0, 1], at `prevalence` if that is given.
      threshold: a threshold, in the unit of the scores.
      criterion: "youden".
      fp_cost: cost of one false positive; also reported beside another rule.
      fn_cost: cost of one false negative.
      prevalence: the share of positives where the threshold will be used, in (0, 1), if it is not
        that of the sample, as in case-control data. Recall and FPR do not depend on it; precision,
        NPV, share flagged and cost are those at this share, which is taken to be known.
      confidence_level: in (0, 1), the nominal coverage of each interval.
      key: a JAX random key, for what is resampled.
      n_resamples: the number of resamples, for what is resampled.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: whole clusters are resampled.
      weights: `[..., n]`, not negative; an item of weight k counts k times, but is one observation.
      where: `[..., n]` bool, False for items to leave out.
      amounts: `[..., n]`, how much each positive counts in `recall_by_amount`. The threshold does
        not depend on them.
      memory_budget: the most bytes that one batch of resamples may take.
      progress: a function of the number of finished resamples, called after each round of batches.

    Returns:
      An OperatingPoint, whose fields are Intervals `[...]`. The threshold is rounded so that
      `scores >= threshold` flags what is reported.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; no rule or more than one is
        given, a limit is an array, one cost comes without the other, or what is resampled has no
        key.

    NaN where a class is absent or a valid score is NaN; precision also where nothing is flagged,
    and npv where all items are. The threshold is +inf where it is best to flag nothing; scores of
    +inf are flagged even then, and a warning says so. Warns of fewer than 20 clusters. Time
    O(n log n), or as `bootstrap` of a function of a table; memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
      >>> point = jm.operating_point(scores, labels, max_fpr=0.2)
      >>> found = point.threshold.estimate, point.recall.estimate
      >>> print(*(f"{x:.3f}" for x in found))
      0.700 0.667

    References: W. J. Youden, "Index for rating diagnostic tests", Cancer 3, 1950; L. D. Brown,
    T. T. Cai and A. DasGupta, "Interval estimation for a binomial proportion", Statistical Science
    16, 2001; G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures",
    Statistics in Medicine 27, 2008; B. Efron and R. Tibshirani, "An Introduction to the Bootstrap",
    1993, section 17.6, for the optimism.
    """
    given = (scores, labels, weights, where, amounts)
    items = checks.check_items(*given, along={"clusters": clusters})
    level = checks.check_level(confidence_level)
    ids = checks.check_clusters(clusters, items)
    checks.check_rows(items)
    alone = not (threshold is None or isinstance(threshold, str) or np.ndim(threshold))
    if alone and numerics.is_inexact(items.scores):
        threshold = in_dtype(threshold, items.scores.dtype)
    rule = functools.partial(
        chosen_point,
        min_precision=min_precision,
        threshold=threshold,
        fp_cost=fp_cost,
        fn_cost=fn_cost,
        criterion=criterion,
        prevalence=prevalence,
    )
    options = check_rule({**rule.keywords, "max_fpr": max_fpr, "min_recall": min_recall})
    name = next((x for x in RULES if x in options), "cost")
    resamples = ids is not None or name in BEST
    request = Request(
        key,
        n_resamples,
        stratify=prevalence is not None,
        clusters=ids,
        memory_budget=memory_budget,
        progress=progress,
    )
    if resamples and key is None:
        raise TypeError(
            "key is missing, and clusters, costs, min_precision and criterion resample: write "
            "key=jax.random.key(0)"
        )
    batch = batch_of(items)
    n_values = len(Point._fields) * int(np.prod(batch))
    request.check(needs_key=resamples, n_values=n_values)
    items = at_least_one(items)
    reported = chosen_threshold(rule, options, items._replace(amounts=None))
    terms = near_tree(Terms(*(options.get(x) for x in ("prevalence", *COSTS))))
    drawn = None
    if resamples:
        at = reported if name in QUANTILES else None
        drawn = jax.tree.map(lambda x: x[1:], _replicates(rule, items, request, batch, at))
    items, (reported,) = items_at_hand(items), at_hand(reported)
    library = numerics.namespace(reported)
    point, sizes = flagged_at(items, library.broadcast_to(reported, batch))
    if name != "threshold":
        warn_of_infinite_scores(point)
    chosen = None if drawn is None else moments_of_choice(items, terms, near_tree(drawn))
    index = None if ids is None else near_tree(ids[0])
    if index is not None:
        sizes = sizes._replace(clusters=clusters_at(items, index, point.threshold, terms))
    of_class, limits = QUANTILES.get(name), None
    if name in BEST:
        limits = limits_of_best(name, options, items, index, point, level)
    elif of_class is not None:
        sizes, limits = limits_of_quantile(of_class, options[name], items, index, sizes, level)
    given = near_tree((point, sizes, terms, np.float64(level), chosen, limits))
    values = _intervals(*given, of_class)
    warn_of_undefined(values["recall"][0])
    if ids is not None:
        _warn_of_few_clusters(items, ids)
    method = "bootstrap" if resamples else "closed form"
    return _result(values, method, level)


_FEWEST = 20  # clusters with items of a class


def _warn_of_few_clusters(items: Items, ids: Clusters) -> None:
    for what, size in too_few(items, ids, _FEWEST):
        warn(
            f"the limits rest on {size:.3g} {what}: in simulations with 2 to 20, 95 % limits of "
            f"rates covered 89 to 100 %, and are wide: add {what}"
        )


def _replicates(
    rule: functools.partial[Any], items: Items, request: Request, batch: tuple[int, ...], at: Any
) -> Any:
    """The Point of every resample, row by row where runs of items can be drawn or `at` is given.

    `at` `[...]`, if it is not None, is the threshold in all resamples.
    """
    by_item = any(x is not None for x in (request.clusters, items.weights, items.amounts))
    if at is None and (by_item or not all_concrete(*items)):
        return replicates_of(rule, items, request).values
    rows = list(rows_of(items, batch, len(batch) + 1))
    rules = [rule] * len(rows)
    if at is not None:
        known = jnp.where(jnp.isnan(at), jnp.inf, at).ravel()  # NaN would be refused
        rules = [functools.partial(rule, threshold=x) for x in known]
    each = [replicates_of(of, row, request).values for of, row in zip(rules, rows, strict=True)]
    with double_precision():  # else thresholds are rounded, and flag other items
        return jax.tree.map(lambda *x: jnp.stack(x, axis=1).reshape(len(x[0]), *batch), *each)


@library_program("of")
def _intervals(
    point: Point,
    sizes: Sizes,
    terms: Terms,
    level: Array,
    chosen: dict[str, OfChoice] | None,
    limits: Limits | None,
    of: QuantileOf | None,
) -> dict[str, tuple[Array, ...]]:
    """Estimates, limits and standard errors by name."""
    library, at = numerics.namespace(*point), point.threshold
    given = point, sizes, terms, level, of
    found: dict[str, tuple[Array, ...]] = (
        {**limits_at_threshold(*given)} if chosen is None else {**limits_of_choice(*given, chosen)}
    )
    low, high = around(at, (at, at) if limits is None else limits)
    error = library.where(low < high, normal_error((low, high), level), 0.0)
    found["threshold"] = at, low, high, error
    if "cost" in found:
        found["cost"] = tuple(x * terms.dearer for x in found["cost"])
    bad = library.isnan(at) | (point.positives <= 0) | (point.negatives <= 0)
    return {
        name: tuple(library.where(bad | library.isnan(x[0]), library.nan, y) for y in x)
        for name, x in found.items()
    }


def _result(values: dict[str, tuple[Array, ...]], method: str, level: float) -> OperatingPoint:
    def interval(name: str) -> Any:
        if name not in values:
            return None
        return interval_of(values[name], "closed form" if name == "threshold" else method, level)

    fields = [x.name for x in dataclasses.fields(OperatingPoint)][:-1]
    return OperatingPoint(**{x: interval(x) for x in fields}, confidence_level=level)
