"""Bands of the ROC curve by boxes of order statistics, without resamples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.double import as_default, double_program
from jaxmetrics._base.items import batch_of, one_id_at_least
from jaxmetrics._base.types import Array, HostArray, Items
from jaxmetrics._base.undifferentiable import undifferentiable
from jaxmetrics._roc.at_hand import in_jax, rows_at_hand
from jaxmetrics._roc.host_rows import evaluate_on_host
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics._roc.placements import OfPlacements, OfTable, Placements, as_constants
from jaxmetrics._roc.table_values import evaluate
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._intervals import boxes
from jaxmetrics.inference._intervals.numbers import Sizes, heights_and_box, heights_of
from jaxmetrics.inference._intervals.rates import Rates, rates_of
from jaxmetrics.inference._intervals.recall import recall, squared_slope
from jaxmetrics.inference._intervals.rules import Limits, Moments

LOWEST = float(np.finfo(np.float64).tiny)  # replaces an FPR of 0, as `max_fpr` must be above 0
LINE = {"method": "linear", "quantile_method": "linear"}
_NO_DERIVATIVE = (
    "a band has no derivative in the weights: write jax.lax.stop_gradient(weights), or "
    "confidence_interval of recall_at_fpr"
)


class Band(NamedTuple):
    """The curve and its limits at each FPR, `[..., points]`."""

    tpr: Array
    low: Array
    high: Array
    simultaneous_low: Array
    simultaneous_high: Array


def of_independent_items(items: Items, fpr: HostArray, level: float, *, exact: bool) -> Band:
    """The Band of items that count alike; by NumPy where possible, as XLA takes seconds."""
    options = {"fpr": fpr, "level": level, "exact": exact}
    found: Band | None = evaluate_on_host(band, items, options, short=0)
    return found or evaluate(OfPlacements(band), items, options)


def band(placed: Placements, *, fpr: Array, level: Any, exact: bool) -> Band:
    """The Band by boxes; NaN if a class is absent."""
    library, placed = placed.library, as_constants(placed)
    fpr = library.asarray(fpr, np.float64)
    joint = boxes.simultaneous(placed, fpr, level, exact=exact)
    sizes = placed.total_negatives, placed.total_positives
    each = _pointwise(placed, sizes, fpr, library.asarray(level, np.float64))
    return _clipped(each, joint, fpr)


def of_rates(items: Items, clusters: Clusters | None, fpr: HostArray, level: float) -> Band:
    """The Band of items with weights or clusters; by NumPy where possible."""
    if items.weights is None:
        items = items._replace(weights=np.ones(items.scores.shape[-1], np.float32))
    ids, n_clusters = (None, 0) if clusters is None else clusters
    ids = one_id_at_least(ids)
    found = rows_at_hand(items, {}, short=0)
    if found is None:
        items = items._replace(weights=undifferentiable(items.weights, _NO_DERIVATIVE))
        return Band(*map(as_default, _of_rates(items, ids, fpr, level, n_clusters)))
    with np.errstate(all="ignore"):
        rows = [_of_row(x, ids, fpr, level, n_clusters) for x in found.rows]
    return in_jax(rows, found.batch, items.scores, numerics.default_float())


@double_program("level", "n_clusters")
def _of_rates(items: Items, ids: Any, fpr: Array, level: float, n_clusters: int) -> Band:
    batch = len(batch_of(items))
    return numerics.over_rows(lambda row: _of_row(row, ids, fpr, level, n_clusters), items, batch)


def _of_row(row: Items, ids: Any, fpr: Any, level: Any, n_clusters: int) -> Band:
    """The Band of scores `[n]` with weights."""
    level = np.float64(level)
    rates = rates_of(row, ids, n_clusters, level)
    placed = OfTable(rates.table, constant=True)
    library = placed.library
    joint = boxes.simultaneous_of_rates(rates, fpr, level)
    sizes = tuple(library.maximum(n, 1.0) for n in draws_at(placed, rates, fpr))
    tpr, *limits = _pointwise(placed, sizes, fpr, level)
    tpr = library.where(rates.undefined, library.nan, tpr)
    found = _clipped((tpr, *limits), joint, fpr)
    unknown = library.isnan(rates.negatives.variance[-1] + rates.positives.variance[-1])
    return Band(found.tpr, *(library.where(unknown, library.nan, x) for x in found[1:]))


def draws_at(placed: OfTable, rates: Rates, fpr: Array) -> Sizes:
    """The numbers of independent items whose height of the curve at each FPR varies as much."""
    library, limit = placed.library, placed.library.maximum(fpr, LOWEST)
    last, after = placed.rows_around(limit_of_fpr(limit))
    draws = rates.negatives.draws, rates.positives.draws
    n0, n1 = (library.minimum(x[last], x[after]) for x in draws)
    if rates.correlation is None:
        return n0, n1
    # Clusters whose negatives are low where their positives are high: both move the curve one way.
    heights = heights_of(placed, (n0, n1), {"max_fpr": limit, **LINE})
    v0, v1 = (x.variance[last] for x in (rates.negatives, rates.positives))
    v0 = library.where(v0 > 0, squared_slope(heights, limit, (n0, n1)) * v0, 0.0)
    correlation = library.clip(rates.correlation[last], -1.0, 0.0)
    together = v0 + v1 - 2 * library.sqrt(v0 * v1) * correlation
    part = numerics.divide(v0 + v1, together, 1.0)
    return n0 * part, n1 * part


def _pointwise(
    placed: Placements, sizes: Sizes, fpr: Array, level: Any
) -> tuple[Array, Array, Array]:
    """The height of the curve at each FPR, and its limits for that point alone, as of a recall."""
    library = placed.library
    limit = library.maximum(fpr, LOWEST)
    heights, likely = heights_and_box(placed, sizes, level, {"max_fpr": limit, **LINE})
    none = library.zeros_like(heights.at)  # variances, which the sizes allow for
    moments = Moments(heights.at, (none, none), sizes)
    return heights.at, *recall(moments, heights, likely, limit, level)


def _clipped(recalls: tuple[Array, Array, Array], joint: Limits, fpr: Array) -> Band:
    """Limits that never fall; the simultaneous ones also hold for each point alone."""
    library = numerics.namespace(fpr)
    tpr, low, high = recalls
    joint, (low, high) = rising(joint, fpr), rising((low, high), fpr)
    low, high = library.maximum(low, joint[0]), library.minimum(high, joint[1])
    limits = (library.where(library.isnan(tpr), library.nan, x) for x in (low, high, *joint))
    return Band(tpr, *limits)


def rising(limits: Limits, fpr: Array) -> Limits:
    """Limits that never fall, as no curve does; the lower one is 0 at an FPR of 0, and 1 at 1."""
    library = numerics.namespace(*limits, fpr)
    low = library.where(fpr == 0, 0.0, library.where(fpr == 1, 1.0, limits[0]))
    high = cumulative.running_minimum(limits[1][..., ::-1])[..., ::-1]
    return cumulative.running_maximum(low), high
