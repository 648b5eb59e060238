"""Metrics that count a hit by the inverse of its label's propensity."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._cutoffs import check_reduce, cutoff_array, discounts
from jaxmetrics.extreme._inputs import check_label_sets, check_propensities
from jaxmetrics.extreme._matching import Matches, by_group, match, over_columns, rows_of, shaped


class RatioOfSums(NamedTuple):
    """What of each instance goes into a ratio of sums, which is a mean by weight.

    `bootstrap_mean(values, weights=weights, where=weights > 0, key=key)` resamples the ratio.

    Attributes:
      values: `[..., n]` or with further axes, what the instance has over the best that it could
        have; NaN without relevant labels.
      weights: the same shape, the best that it could have; 0 without relevant labels.
    """

    values: Array
    weights: Array


def propensity_scored_precision_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    propensities: ArrayLike,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    reduce: str | None = "mean",
) -> Any:
    """Hits among the first k, rare labels counting more, over the most that there could be.

    PSP@k = sum over instances of the sum over hits of 1 / p, over the sum over instances of that of
    the best list, which has the relevant labels of least propensity first. By group, an instance's
    predicted and relevant labels are those of the group, in the order that they have.

    Args:
      predicted: `[..., n, K]` label ids in rank order, -1 after the end of a list.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many places to look at, at least 1, one or several; a last axis is added for several.
      propensities: `[n_labels]` in (0, 1], such as the function `propensities` gives.
      groups: `[n_labels]`, the group of each label from 0, such as `label_deciles` gives.
      num_groups: how many groups there are; needed where `groups` is traced.
      reduce: "mean", by weight, which is the ratio of the sums; or None for a RatioOfSums.

    Returns:
      `[...]`, or `[..., num_groups]` with groups; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` a RatioOfSums in which an axis of instances comes
      first: `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where no instance has relevant labels (in the group), or where a traced propensity of one is
    not in (0, 1]. Time and memory as `precision_at_k`, O(n K (L + num_groups)) and
    O(n (L + num_groups)).

    Example:
      >>> import jaxmetrics as jm
      >>> score = jm.extreme.propensity_scored_precision_at_k
      >>> print(score([[0, 1], [2, 1]], [[0, 2], [2, -1]], k=1, propensities=[1, .5, .25]))
      0.625

    Reference: H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.
    """
    return _propensity_scored(
        predicted, relevant, k, propensities, groups, num_groups, reduce, False
    )


def propensity_scored_ndcg_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    propensities: ArrayLike,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    reduce: str | None = "mean",
) -> Any:
    """Hits among the first k, discounted by position, rare labels counting more, over the best.

    PSnDCG@k = sum over instances of the sum over hits of 1 / (p log2(position + 1)), over the sum
    over instances of that of the first k of the best list, which has the relevant labels of least
    propensity first. By group, an instance's predicted and relevant labels are those of the group,
    in the order that they have.

    Args:
      predicted: `[..., n, K]` label ids in rank order, -1 after the end of a list.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many places to look at, at least 1, one or several; a last axis is added for several.
      propensities: `[n_labels]` in (0, 1], such as the function `propensities` gives.
      groups: `[n_labels]`, the group of each label from 0, such as `label_deciles` gives.
      num_groups: how many groups there are; needed where `groups` is traced.
      reduce: "mean", by weight, which is the ratio of the sums; or None for a RatioOfSums.

    Returns:
      `[...]`, or `[..., num_groups]` with groups; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` a RatioOfSums in which an axis of instances comes
      first: `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN where no instance has relevant labels (in the group), or where a traced propensity of one is
    not in (0, 1]. Time and memory as `precision_at_k`, O(n K (L + num_groups)) and
    O(n (L + num_groups)).

    Example:
      >>> import jaxmetrics as jm
      >>> score = jm.extreme.propensity_scored_ndcg_at_k
      >>> value = score([[0, 1], [2, 1]], [[0, 2], [2, -1]], k=2, propensities=[1, .5, .25])
      >>> print(f"{value:.4f}")
      0.5793

    Reference: H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.
    """
    return _propensity_scored(
        predicted, relevant, k, propensities, groups, num_groups, reduce, True
    )


def _propensity_scored(
    predicted: ArrayLike,
    relevant: ArrayLike,
    k: Any,
    propensities: ArrayLike,
    groups: ArrayLike | None,
    num_groups: int | None,
    reduce: str | None,
    discounted: bool,
) -> Any:
    known = check_propensities(propensities)
    sets = check_label_sets(predicted, relevant, groups, num_groups, len(known))
    if sets.groups is not None and sets.groups.shape != known.shape:
        raise ValueError(
            f"propensities and groups must be of the same labels, got {known.shape[0]} and "
            f"{sets.groups.shape[0]}"
        )
    cutoffs, one = checks.check_cutoffs("k", k)
    check_reduce(reduce, ("mean",))
    found = match(sets, max(cutoffs) if sets.groups is None else None)
    ids = rows_of(sets.relevant, sets.shape)
    dtype = numerics.default_float()
    arrays = (found, ids, known, cutoff_array(cutoffs))
    places = sets.predicted.shape[-1] if discounted else None
    return shaped(_ratios(*arrays, sets.shape, reduce, places, dtype), sets, one=one)


@double_program("shape", "reduce", "places", "dtype")
def _ratios(
    found: Matches,
    ids: Array,
    propensities: Array,
    cutoffs: Array,
    shape: tuple[int, ...],
    reduce: str | None,
    places: int | None,
    dtype: Any,
) -> Any:
    propensities = propensities.astype(jnp.float64)
    allowed = (propensities > 0) & (propensities <= 1)
    inverse = 1 / jnp.where(allowed, propensities, jnp.nan)
    label = jnp.where(found.groups >= 0, ids.T, 0)
    gains = inverse.at[label].get(mode="promise_in_bounds")
    column = jnp.arange(len(gains), dtype=jnp.int32)[:, None]
    # The place of each relevant label in the best list of its group.
    best = over_columns(
        lambda one, every: (
            (one[1] == every[1])
            & ((one[0] > every[0]) | ((one[0] == every[0]) & (one[2] < every[2])))
        ),
        (gains, found.groups, column),
    ).astype(jnp.int32)

    had_gains, best_gains = gains, gains
    if places is not None:  # discounted
        had_gains = gains * discounts(found.positions, places)
        best_gains = gains * discounts(best, len(gains))

    def at(cutoff: Array) -> Any:
        def gained(positions: Array, gains: Array) -> Array:
            gain = by_group(
                jnp.where(positions < cutoff, gains, 0), found.groups, len(found.listed)
            )
            return gain.reshape(len(gain), *shape)

        # A gain of NaN is to be seen, whether there is a hit or not.
        most = gained(best, best_gains)
        had = jnp.where(jnp.isnan(most), jnp.nan, gained(found.positions, had_gains))
        if reduce is not None:
            return (jnp.sum(had, -1) / jnp.sum(most, -1)).astype(dtype)
        values = numerics.divide(had, most, jnp.nan)
        return RatioOfSums(values.astype(dtype), most.astype(dtype))

    return lax.map(at, cutoffs)
