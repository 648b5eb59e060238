"""What thresholds flag: counts, the sizes of their errors, and the limits of a threshold."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.items import class_weights
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.operating import Point
from jaxmetrics.inference._influence.gradient import effective_size
from jaxmetrics.inference._intervals.operating import Chosen, Sizes, Terms, shares_of
from jaxmetrics.inference._intervals.rules import Limits

_ROUNDING = 1e-9


@double_program()
def flagged_at(items: Items, threshold: Array) -> tuple[Point, Sizes]:
    """What the decision `scores >= threshold` flags, and effective sizes, in float64."""
    positives, negatives, amounts = _weights(items)
    threshold = threshold.astype(jnp.float64)
    flagged = jnp.asarray(items.scores).astype(jnp.float64) >= threshold[..., None]
    (tp, total), (fp, every) = (_part(flagged, x) for x in (positives, negatives))
    none = jnp.zeros_like(tp)
    either = positives + negatives
    columns = positives, negatives, either, jnp.where(flagged, either, 0)
    sizes = Sizes(*(effective_size(x) + none for x in columns))
    if amounts is None:
        return Point(threshold, tp, fp, total, every, none, none), sizes
    caught, amount = _part(flagged, amounts)
    share = numerics.divide(caught, amount, jnp.nan)
    residual = jnp.where(amounts > 0, amounts * (flagged - share[..., None]), 0)
    n = jnp.sum(positives > 0, axis=-1)
    spread = numerics.divide(jnp.sum(residual**2, axis=-1), amount**2, jnp.nan)
    # The largest possible one, where one positive has no variance of its own.
    spread = jnp.where(n > 1, spread * numerics.divide(n, n - 1, 0.0), share * (1 - share))
    sizes = sizes._replace(amounts=effective_size(amounts) + none, spread=spread)
    return Point(threshold, tp, fp, total, every, caught, amount), sizes


@double_program()
def moments_of_choice(items: Items, terms: Terms, drawn: Point) -> dict[str, Chosen]:
    """By name, the moments of shares at the thresholds chosen in `[resamples, ...]`."""
    amounts = items.amounts is not None
    in_resamples = shares_of(drawn, terms, amounts=amounts)
    in_data = shares_of(_looked_up(items, drawn.threshold), terms, amounts=amounts)
    differences = {name: x - in_data[name] for name, x in in_resamples.items()}
    return {
        name: Chosen(jnp.nanmean(x, axis=0), jnp.nanvar(x, axis=0, ddof=1))
        for name, x in differences.items()
    }


@double_program()
def percentiles_of_threshold(drawn: Array, level: Array) -> Limits:
    """The percentiles of thresholds `[resamples, ...]`, without NaN; some may be infinite."""
    ascending = jnp.sort(drawn, axis=0)
    last = jnp.maximum(jnp.sum(~jnp.isnan(drawn), axis=0) - 1, 0)
    below = jnp.minimum(jnp.floor((1 - level) / 2 * (last + 1)).astype(last.dtype), last)
    ends = (below, last - below)
    low, high = (jnp.take_along_axis(ascending, x[None], axis=0)[0] for x in ends)
    return low, high


@double_program("of_negatives")
def order_statistics(items: Items, shares: Array, of_negatives: bool) -> Limits:
    """The scores of a class at or above which there are these shares `[..., 2]` of it.

    The lower limit is at the last share, and the upper one at the first; +inf for a share of 0 and
    -inf for one above 1.
    """
    positives, negatives, _ = _weights(items)

    def of_row(scores: Array, weights: Array, shares: Array) -> Array:
        order = jnp.argsort(-scores)
        counted = numerics.running_sum(weights[order])
        at = jnp.searchsorted(counted, shares * counted[-1] * (1 - _ROUNDING))
        found = scores[order].at[at].get(mode="fill", fill_value=-jnp.inf)
        return jnp.where(shares > 0, found, jnp.inf)

    weights = negatives if of_negatives else positives
    scores = jnp.where(weights > 0, items.scores.astype(jnp.float64), -jnp.inf)
    found = jnp.vectorize(of_row, signature="(n),(n),(k)->(k)")(scores, weights, shares)
    return found[..., 1], found[..., 0]


def _part(flagged: Array, weights: Array) -> tuple[Array, Array]:
    """The weight of the flagged items, and of all; equal if all are flagged, however rounded."""
    part, rest = (jnp.sum(jnp.where(x, weights, 0), axis=-1) for x in (flagged, ~flagged))
    total = jnp.sum(weights, axis=-1) + 0 * part
    return jnp.where(rest > 0, jnp.minimum(part, total), total), total


def _weights(items: Items) -> tuple[Array, Array, Array | None]:
    """The weight of each item as a positive and as a negative, and of its amount."""
    items = jax.tree.map(jnp.asarray, items)
    positives, negatives = class_weights(items._replace(amounts=None))
    amounts = None if items.amounts is None else class_weights(items)[0]
    return positives.astype(jnp.float64), negatives.astype(jnp.float64), amounts


def _looked_up(items: Items, thresholds: Array) -> Point:
    """What each of `[resamples, ...]` thresholds flags in the data, by one sort."""
    positives, negatives, amounts = _weights(items)
    columns = [positives, negatives, jnp.zeros_like(positives) if amounts is None else amounts]
    stacked = jnp.stack(jnp.broadcast_arrays(*columns), axis=-2)

    def of_row(scores: Array, weights: Array, thresholds: Array) -> tuple[Array, Array]:
        order = jnp.argsort(-scores)
        counted = numerics.running_sum(weights[:, order])
        counted = jnp.concatenate([jnp.zeros((3, 1)), counted], axis=-1)
        at = jnp.searchsorted(-scores[order], -thresholds, side="right")
        return counted[:, at], jnp.broadcast_to(counted[:, -1:], (3, len(thresholds)))

    rows = jnp.vectorize(of_row, signature="(n),(k,n),(b)->(k,b),(k,b)")
    # Scores that are left out may be NaN, which would end a search.
    scores = jnp.where(positives + negatives > 0, items.scores.astype(jnp.float64), -jnp.inf)
    found = rows(scores, stacked, jnp.moveaxis(thresholds, 0, -1))
    flagged, totals = ([jnp.moveaxis(x[..., i, :], -1, 0) for i in range(3)] for x in found)
    return Point(thresholds, flagged[0], flagged[1], totals[0], totals[1], flagged[2], totals[2])
