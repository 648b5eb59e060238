"""Confidence bands of the ROC curve."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import as_default, double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import STATIC, Column, Result, Table
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._base.words import percent_text
from jaxmetrics._roc.thresholds import recall_at_fpr
from jaxmetrics.inference._bands_by_boxes import (
    LOWEST,
    Band,
    of_independent_items,
    of_rates,
    rising,
)
from jaxmetrics.inference._bootstrap.bootstrap import resampled
from jaxmetrics.inference._bootstrap.request import MEMORY_BUDGET, Request
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.sizes import sizes_of, too_few
from jaxmetrics.inference._intervals import rules

METHODS = ("auto", "exact", "bootstrap")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RocBand(Result):
    """A ROC curve with a pointwise and a simultaneous confidence band.

    Attributes:
      fpr: `[points]`, the false positive rates.
      tpr: `[..., points]`, the true positive rate at each of them.
      low: `[..., points]`, pointwise lower limits.
      high: `[..., points]`, pointwise upper limits.
      simultaneous_low: `[..., points]`, lower limits, simultaneous for all points.
      simultaneous_high: `[..., points]`, upper limits, simultaneous for all points.
      confidence_level: the nominal coverage of each band.
    """

    fpr: Array
    tpr: Array
    low: Array
    high: Array
    simultaneous_low: Array
    simultaneous_high: Array
    confidence_level: float = field(metadata=STATIC)

    def _table(self) -> Table:
        shape, level = np.shape(self.tpr), percent_text(self.confidence_level)
        index = self._rows(shape, "model", "point")
        del index["point"]
        width = np.asarray(self.high) - np.asarray(self.low)
        together = ("simultaneous_low", "simultaneous_high")
        fpr = np.broadcast_to(self.fpr, shape)
        columns = [
            Column("FPR", {"fpr": fpr}, 10 * np.diff(np.unique(fpr))),
            Column("TPR", {"tpr": self.tpr}, width),
            Column(f"{level} interval", {"low": self.low, "high": self.high}, width),
            Column("all points at once", {name: getattr(self, name) for name in together}, width),
        ]
        return Table("ROC curve", index or {"point": [*range(len(fpr))]}, columns)


@on_any_mesh
def roc_band(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    fpr: ArrayLike | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
    key: Array | None = None,
    n_resamples: int = 2000,
    stratify: bool = True,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    memory_budget: int = MEMORY_BUDGET,
    progress: Callable[[int], None] | None = None,
) -> RocBand:
    """Pointwise and simultaneous confidence bands of the ROC curve.

    - boxes: if k of the n items of a class are at or above a threshold, the limits of that share in
      the population are BetaInv(l / 2; k, n - k + 1) and BetaInv(1 - l / 2; k + 1, n - k). The
      limits of both classes make a box of FPR x TPR at each threshold. As the curve never falls, it
      lies between the lines through the corners of the boxes. The simultaneous bands of "exact" and
      "auto" are made of such boxes. Their pointwise limits are those of `confidence_interval` for
      `recall_at_fpr` with method="linear", clipped to the simultaneous band.
    - exact: boxes with the local level l at which all limits of a class hold at once with
      probability sqrt(confidence_level). The whole curve lies within the simultaneous band with
      probability `confidence_level` or more, whatever the distributions of the scores are.
    - auto: narrower boxes, as the curve leaves a box only where the limits of both classes are
      wrong. The normal quantile of the l for probability `confidence_level` is multiplied by
      max(sqrt(n_0 + n_1) / (sqrt(n_0) + sqrt(n_1)), 0.95 - 0.3 / m^(1/3)), with m items of the
      smaller class. In simulations the band holds the whole curve at least as often as it should.
      With weights or clusters, the limits are those of k = p n of n = p (1 - p) / V items, and at
      most (sum w)^2 / sum w^2, for a share p of variance V = sum d_u^2 / (sum w)^2, with d_u the
      sum of w_i (1[s_i >= t] - p) over a unit u, which is an item or a cluster. As clusters are
      few, V is divided by the part that such a sum keeps (1 - 1 / K for K of one size), n is less
      where few of them differ, and is multiplied by the squared ratio of the quantiles of Student's
      t for items and for clusters: see the page on formulas.
      In simulations, means over seven families of scores, whole bands held 0.98 of the time and
      more, and 0.93 with weights from 0.2 to 5 that go with the scores, of one family 0.84 at
      least; the limits of one point 0.95 to 1.00, of one family 0.89 at least, and with such
      weights 0.90 to 1.00, of one family 0.76 at least. What no cluster of the sample shows no
      limit knows: where a tenth of the positive clusters is missed, whole bands of 16 held 0.83.
    - bootstrap: the limits are Wilson's for n = min(TPR (1 - TPR) / SE^2, n_1) draws, with SE from
      the bootstrap and n_1 the effective size of the positives. In the simultaneous band the
      quantile of max |TPR* - TPR| / SE over the points replaces the normal quantile, if it is
      larger. Limits cover too little where few negatives are within the FPR.

    The limits never fall, as the true curve does not: the lower one is at least those at points
    before it, and the upper one at most those at points behind it. By definition the TPR is 1 at an
    FPR of 1, without error. At an FPR of 0 the lower limit is 0, as the observed curve is above the
    true one there.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      fpr: `[points]`, increasing, in [0, 1], the points of the band; 0, 0.01, ... 1 by default. The
        simultaneous band by boxes holds for the whole curve, whatever they are; by the bootstrap
        it holds for these points.
      confidence_level: in (0, 1), the nominal coverage of each band.
      method: "auto", "exact" or "bootstrap", as above; "exact" is for items without weights and
        clusters.
      key: a JAX random key, for the bootstrap. Boxes need none: with them a key is accepted and not
        used, and `n_resamples`, `stratify`, `memory_budget` and `progress` change nothing.
      n_resamples: the number of resamples, at least 1.
      stratify: True keeps the number of items of each class fixed in every resample; False draws
        from all items together, as clusters always are.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other: errors are those of whole clusters, and the bootstrap resamples whole clusters.
      weights: `[..., n]`, not negative; an item of weight k counts k times in the metric, but is
        one observation.
      where: `[..., n]` bool, False for items to leave out.
      memory_budget: the most bytes that one batch of resamples may take.
      progress: a function of the number of finished resamples, called after each round of batches.

    Returns:
      A RocBand `[..., points]`, of rates from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; the bootstrap has no key,
        method="exact" comes with weights or clusters, or `fpr` does not increase or leaves [0, 1].

    NaN where a class is absent or a valid score is NaN; limits also where one cluster has all items
    of a class. Warns of a bootstrap with fewer than 31 negatives, or clusters with them, and of
    weights or clusters with an effective number below 10 in a class. By boxes, time
    O((n + points) log n) and memory O(n + points). By the bootstrap, time
    as `bootstrap` of a metric of the ROC curve, and O(n_resamples points log n); memory
    O(n + memory_budget + n_resamples points).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
      >>> band = jm.roc_band(scores, labels, fpr=[.25, .5, 1.])
      >>> print(bool((band.simultaneous_low <= band.low).all()))
      True

    References: S. Aldor-Noiman, L. D. Brown, A. Buja, W. Rolke and R. A. Stine, "The power to see:
    a new graphical test of normality", The American Statistician 67, 2013, for limits of equal
    local level; G. Campbell, "Advances in statistical methodology for the evaluation of diagnostic
    and laboratory tests", Statistics in Medicine 13, 1994, for boxes; E. L. Korn and B. I.
    Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24, 1998, for weights and clusters; J. L.
    Montiel Olea and M. Plagborg-Moller, "Simultaneous confidence bands: theory, implementation, and
    an application to SVARs", Journal of Applied Econometrics 34, 2019, for the bootstrap.
    """
    items = checks.check_items(scores, labels, weights, where, along={"clusters": clusters})
    level = checks.check_level(confidence_level)
    checks.check_choice("method", method, METHODS)
    grid = np.arange(101) / 100 if fpr is None else checks.check_grid("fpr", fpr)
    ids = checks.check_clusters(clusters, items)
    if method == "exact" and (weights is not None or ids is not None):
        raise ValueError(
            "method='exact' is for items without weights and clusters: write method='auto'"
        )
    request = Request(
        key, n_resamples, stratify, ids, memory_budget=memory_budget, progress=progress
    )
    resamples = method == "bootstrap"
    request.check(needs_key=resamples)
    checks.check_rows(items)
    if resamples:
        _warn_of_few_negatives(items, ids)
        found = _by_bootstrap(items, request, grid, level)
    elif weights is not None or ids is not None:
        _warn_of_few_draws(items, ids)
        found = of_rates(items, ids, grid, level)
    else:
        found = of_independent_items(items, grid, level, exact=method == "exact")
    return RocBand(as_default(grid.copy()), *found, level)


_FEWEST = 31  # negatives; resamples of fewer may have none above most of the positives


def _warn_of_few_negatives(items: Items, ids: Clusters | None) -> None:
    for what, size in too_few(items, ids, _FEWEST):
        if "negatives" in what:
            warn(
                f"a band by the bootstrap rests on {size:.3g} {what}: in simulations with 10 to 30 "
                "95 % limits of a point covered 59 to 90 %, and whole bands 54 to 91 %: leave "
                f"method out, or add {what}"
            )


def _warn_of_few_draws(items: Items, ids: Clusters | None) -> None:
    """Of the effective sizes that limits by draws rest on."""
    for what, size in too_few(items, ids):
        if ids is None:
            of = "with weights"
            then = (
                "where one item has most of the weight, limits of a point may be far too narrow: "
                f"take those of the whole curve, or add {what}"
            )
        else:
            of, then = "by clusters", f"others may differ as none of these do: add {what}"
        warn(f"a band {of} rests on an effective number of {size:.3g} {what}: {then}")


def _by_bootstrap(items: Items, request: Request, grid: HostArray, level: float) -> Band:
    # `max_fpr` must be above 0: the smallest one stands for 0, where the curve is as high.
    limit = np.maximum(grid, LOWEST)
    metric = functools.partial(recall_at_fpr, max_fpr=limit, method="linear")
    found = resampled(metric, items, request)
    positives = sizes_of(items, request.clusters, found.estimate.ndim).positives
    limits = _limits(found.estimate, found.replicates, positives, grid, level)
    return Band(found.estimate, *map(as_default, limits))


@double_program()
def _limits(
    tpr: Array, replicates: Array, positives: Array, fpr: Array, level: Array
) -> tuple[Array, ...]:
    tpr, replicates = tpr.astype(jnp.float64), replicates.astype(jnp.float64)
    variance = jnp.nanvar(replicates, axis=0, ddof=1)
    n = rules.draws_of_share(tpr, variance, positives)
    # A point where all resamples agree has variance 0 and must not set the maximum.
    z = numerics.divide(jnp.abs(replicates - tpr), jnp.sqrt(variance), 0.0)
    z = jnp.where(fpr > 0, z, 0 * z)
    critical = jnp.nanquantile(jnp.max(z, axis=-1), level, axis=0)
    joint = jnp.maximum(2 * ndtr(critical) - 1, level)[..., None]
    found = (*rising(rules.wilson(tpr, n, level), fpr), *rising(rules.wilson(tpr, n, joint), fpr))
    return tuple(jnp.where(jnp.isnan(tpr), jnp.nan, x) for x in found)
