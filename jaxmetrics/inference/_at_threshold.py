"""What a threshold flags: counts and effective sizes of rates, of items, clusters and resamples.

NumPy computes all of it for items in the memory of the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.items import class_weights
from jaxmetrics._base.types import Array, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.operating import Point
from jaxmetrics.inference._intervals.effective import effective_size
from jaxmetrics.inference._intervals.informative import Sums, draws_of_part
from jaxmetrics.inference._intervals.operating import (
    Clustered,
    OfChoice,
    Sizes,
    Terms,
    shares_of_point,
)


@library_program()
def flagged_at(items: Items, threshold: Array) -> tuple[Point, Sizes]:
    """The Point and the effective Sizes of the decision `scores >= threshold`, in float64."""
    positives, negatives, amounts = _counts_by_class(items)
    library = numerics.namespace(threshold, positives)
    threshold = threshold.astype(np.float64)
    flagged: Any = items.scores.astype(np.float64) >= threshold[..., None]
    (tp, total), (fp, every) = (_part(flagged, x) for x in (positives, negatives))
    none = library.zeros_like(tp)
    if items.weights is None:
        whole = total + every
        sizes = Sizes(total, every, whole, tp + fp, whole - tp - fp, whole, whole)
    else:
        sizes = Sizes(*(x + none for x in _draws(flagged, positives, negatives)))
    if amounts is None:
        return Point(threshold, tp, fp, total, every, none, none), sizes
    caught, amount = _part(flagged, amounts)
    share = numerics.divide(caught, amount, np.nan)
    # Shares, as the squares of amounts may overflow.
    of_each = numerics.divide(amounts, amount[..., None], 0.0)
    residual = library.where(amounts > 0, of_each * (flagged - share[..., None]), 0)
    n = library.sum(positives > 0, axis=-1)
    unbiased = library.sum(residual**2, axis=-1) * numerics.divide(n, n - 1, 0.0)
    spread = library.where(amount > 0, unbiased, np.nan)
    sizes = sizes._replace(amounts=effective_size(amounts) + none, spread=spread)
    return Point(threshold, tp, fp, total, every, caught, amount), sizes


def _draws(flagged: Any, positives: Any, negatives: Any) -> list[Array]:
    """The fields `positives` to `missed` of Sizes, in this order, for items with weights."""
    library = numerics.namespace(flagged, positives)
    caught, missed, alarms, passed = (
        Sums.of(library.where(x, weights, 0))
        for weights in (positives, negatives)
        for x in (flagged, ~flagged)
    )
    shares = [
        (caught, missed),
        (alarms, passed),
        (caught.plus(alarms), missed.plus(passed)),
        (caught, alarms),
        (missed, passed),
        (alarms, passed.plus(caught).plus(missed)),
        (missed, caught.plus(alarms).plus(passed)),
    ]
    return [draws_of_part(*x) for x in shares]


@library_program()
def clusters_at(items: Items, ids: Array, threshold: Array, terms: Terms) -> dict[str, Clustered]:
    """The Clustered of each share at a threshold, by the name of the share.

    The degrees of freedom are 2 (K - 1) / (kurtosis - 1), from 1 to K - 1, with the kurtosis of
    what each of the K clusters adds to the share. Where a few of the clusters decide the share, the
    variance between clusters is hardly known.
    """
    positives, negatives, amounts = weights_by_class(items)
    library = numerics.namespace(threshold, positives)
    flagged: Any = items.scores.astype(np.float64) >= threshold.astype(np.float64)[..., None]
    either, positive = positives + negatives, positives > 0
    # A prevalence that is given is the fixed weight of the positives among all items.
    every = (either,)
    if terms.prevalence is not None:
        of_class = (positives, terms.prevalence), (negatives, 1 - terms.prevalence)
        every = tuple(x * (p / library.sum(x, axis=-1))[..., None] for x, p in of_class)
    shares: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "recall": (flagged, (positives,)),
        "fpr": (flagged, (negatives,)),
        "precision": (positive, (flagged * either,)),
        "npv": (~positive, (~flagged * either,)),
        "flagged": (flagged, every),
    }
    if terms.fp_cost is not None:
        fp_cost, fn_cost = (numerics.divide(x, terms.dearer, 0.0)[..., None] for x in terms[1:])
        cost = library.where(positive, fn_cost * ~flagged, fp_cost * flagged)
        shares["cost"] = cost, every
    if amounts is not None:
        shares["recall_by_amount"] = flagged, (amounts,)
    return {name: _clustered_share(ids.astype(int), *share) for name, share in shares.items()}


def _clustered_share(ids: Array, values: Array, parts: tuple[Array, ...]) -> Clustered:
    """The Clustered of a weighted mean of `values`.

    The weights are the sum of `parts` `[..., n]`, such as one for each class. The total of each
    part is fixed, so values vary around the mean of their part.
    """
    library = numerics.namespace(values, *parts)

    def sums(x: Array) -> Array:
        return library.sum(x, axis=-1, keepdims=True)

    off = [
        part * (values - numerics.divide(sums(part * values), sums(part), 0.0)) for part in parts
    ]
    whole: Any = sum(map(sums, parts))
    added: Any = map(sum, (parts, off))
    of_items = (numerics.divide(x, whole, 0.0) for x in added)
    of_all, residuals = (numerics.sums_at(ids, x, x.shape[-1]) for x in of_items)
    k = library.sum(of_all > 0, axis=-1)
    kurtosis = numerics.divide(k, effective_size(residuals**2), np.inf)
    df = 2 * (k - 1) / library.maximum(kurtosis - 1, 2)
    return Clustered(effective_size(of_all), library.maximum(df, 1))


def warn_of_infinite_scores(point: Point) -> None:
    """Warn where it is best to flag nothing, but scores are +inf; only for a Point of NumPy's."""
    on_host = numerics.namespace(*point) is np
    if on_host and ((point.threshold == np.inf) & (point.tp + point.fp > 0)).any():
        warn(
            "it would be best to flag nothing, but any threshold flags scores of +inf, as the "
            "rates that are reported do: write a finite score above all others in their place"
        )


@library_program()
def moments_of_choice(items: Items, terms: Terms, drawn: Point) -> dict[str, OfChoice]:
    """The OfChoice of each share, by name, from the points `drawn` `[resamples, ...]`."""
    amounts = items.amounts is not None
    in_resamples = shares_of_point(drawn, terms, amounts=amounts)
    in_data = shares_of_point(_looked_up(items, drawn.threshold), terms, amounts=amounts)
    return {name: _moments(x, in_data[name]) for name, x in in_resamples.items()}


def _moments(x: Array, in_data: Array) -> OfChoice:
    """The OfChoice of x - in_data over the first axis, that of the resamples; NaN are left out."""
    library = numerics.namespace(x)
    x = x - in_data
    valid = ~library.isnan(x)
    n = library.sum(valid, axis=0)

    def mean_of(values: Array) -> Array:
        total = library.sum(library.where(valid, values, 0), axis=0)
        return numerics.divide(total, n, np.nan)

    mean = mean_of(x)
    squares = library.sum(library.where(valid, (x - mean) ** 2, 0), axis=0)
    variance = numerics.divide(squares, library.maximum(n - 1, 0), np.nan)
    return OfChoice(mean, variance, mean_of(in_data * (1 - in_data)))


def _part(flagged: Array, weights: Array) -> tuple[Array, Array]:
    """The weight of the flagged items and of all items; exactly equal if all are flagged."""
    library = numerics.namespace(flagged, weights)
    if not numerics.is_inexact(weights):
        part = library.sum(flagged & (weights > 0), axis=-1).astype(np.float64)
        return part, library.sum(weights, axis=-1) + 0 * part
    part, rest = (library.sum(library.where(x, weights, 0), axis=-1) for x in (flagged, ~flagged))
    total = library.sum(weights, axis=-1) + 0 * part
    return library.where(rest > 0, library.minimum(part, total), total), total


def weights_by_class(items: Items) -> tuple[Array, Array, Array | None]:
    """The weight of each item as a positive, as a negative, and as a positive times its amount."""
    positives, negatives, amounts = _counts_by_class(items)
    return positives.astype(np.float64), negatives.astype(np.float64), amounts


def _counts_by_class(items: Items) -> tuple[Array, Array, Array | None]:
    """`weights_by_class`, which are whole numbers for items without weights."""
    amounts = None if items.amounts is None else class_weights(items)[0]
    return *class_weights(items._replace(amounts=None)), amounts


def _looked_up(items: Items, thresholds: Array) -> Point:
    """The Point of each threshold `[resamples, ...]` in the data, without a sort of the items."""
    positives, negatives, amounts = weights_by_class(items)
    library = numerics.namespace(positives, thresholds)
    columns = [positives, negatives, library.zeros_like(positives) if amounts is None else amounts]
    stacked = library.stack(library.broadcast_arrays(*columns), axis=-2)

    def of_row(scores: Array, weights: Array, thresholds: Array) -> tuple[Array, Array]:
        ascending, n = library.sort(thresholds), len(thresholds)
        # The number of thresholds that flag each item.
        least = library.searchsorted(ascending, scores, side="right")
        sums = library.stack([numerics.sums_at(least, x, n + 1) for x in weights])
        counted = cumulative.cumulated(sums, reverse=True)
        at = library.searchsorted(ascending, thresholds) + 1
        return counted[:, at], library.broadcast_to(counted[:, :1], (3, n))

    rows = library.vectorize(of_row, signature="(n),(k,n),(b)->(k,b),(k,b)")
    # Scores of masked items may be NaN.
    scores = items.scores.astype(np.float64)
    scores = library.where(positives + negatives > 0, scores, -np.inf)
    found = rows(scores, stacked, library.moveaxis(thresholds, 0, -1))
    flagged, totals = ([library.moveaxis(x[..., i, :], -1, 0) for i in range(3)] for x in found)
    return Point(thresholds, flagged[0], flagged[1], totals[0], totals[1], flagged[2], totals[2])
