"""Metrics that weight a hit by 1 / propensity of its label."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._cutoffs import check_reduce, cutoff_array, discounts
from jaxmetrics.extreme._inputs import LEAST_PROPENSITY, check_label_sets, check_propensities
from jaxmetrics.extreme._matching import Matches, by_group, match, over_columns, rows_of, shaped


class RatioOfSums(NamedTuple):
    """A ratio of sums over instances, as a weighted mean of the ratios of the instances.

    `bootstrap_mean(values, weights=weights, where=weights > 0, key=key)` resamples the ratio.

    Attributes:
      values: `[..., n]`, or with more axes after these, the ratio of each instance: its weighted
        hits, divided by those of its best list; NaN without relevant labels.
      weights: the same shape, the weighted hits of the best list; 0 without relevant labels.
    """

    values: Array
    weights: Array


@on_any_mesh
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
    """Hits among the first k, weighted by 1 / propensity, divided by those of the best list.

    PSP@k = sum of 1 / p over the hits among the first k of all lists / the same sum for the best
    lists, which have the relevant labels in order of rising propensity p. By group, an instance
    keeps only its predicted and relevant labels of the group, in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places count, at least 1: one int, or several, which add a last axis.
      propensities: `[n_labels]` in (0, 1], for example from the function `propensities`.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      reduce: "mean", the ratio of the two sums; or None for a RatioOfSums.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` a RatioOfSums, where the axis of instances stands
      before these: `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a propensity is not in (0, 1] or
        below 1.2e-38, a predicted or relevant label has no propensity, a list has a label twice,
        groups are not as many as propensities, or k is below 1.

    NaN where no instance has relevant labels (in the group), or where a traced propensity of a
    relevant label is not in (0, 1] or below 1.2e-38. Time O(n (K + L) (L + num_groups)), memory
    O(n (L + num_groups)), as for `precision_at_k`.

    Example:
      >>> import jaxmetrics as jm
      >>> score = jm.extreme.propensity_scored_precision_at_k
      >>> print(score([[0, 1], [2, 1]], [[0, 2], [2, -1]], k=1, propensities=[1, .5, .25]))
      0.625

    Reference: H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.
    """
    given = predicted, relevant, groups, num_groups
    return _propensity_scored(given, k, propensities, reduce, discounted=False)


@on_any_mesh
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
    """Discounted hits among the first k, weighted by 1 / propensity, divided by the best list's.

    PSnDCG@k = sum of 1 / (p log2(position + 1)) over the hits among the first k of all lists / the
    same sum for the first k of the best lists, which have the relevant labels in order of rising
    propensity p. By group, an instance keeps only its predicted and relevant labels of the group,
    in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places count, at least 1: one int, or several, which add a last axis.
      propensities: `[n_labels]` in (0, 1], for example from the function `propensities`.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      reduce: "mean", the ratio of the two sums; or None for a RatioOfSums.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` a RatioOfSums, where the axis of instances stands
      before these: `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a propensity is not in (0, 1] or
        below 1.2e-38, a predicted or relevant label has no propensity, a list has a label twice,
        groups are not as many as propensities, or k is below 1.

    NaN where no instance has relevant labels (in the group), or where a traced propensity of a
    relevant label is not in (0, 1] or below 1.2e-38. Time O(n (K + L) (L + num_groups)), memory
    O(n (L + num_groups)), as for `precision_at_k`.

    Example:
      >>> import jaxmetrics as jm
      >>> score = jm.extreme.propensity_scored_ndcg_at_k
      >>> value = score([[0, 1], [2, 1]], [[0, 2], [2, -1]], k=2, propensities=[1, .5, .25])
      >>> print(f"{value:.4f}")
      0.5793

    Reference: H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.
    """
    given = predicted, relevant, groups, num_groups
    return _propensity_scored(given, k, propensities, reduce, discounted=True)


def _propensity_scored(
    given: tuple[ArrayLike, ArrayLike, ArrayLike | None, int | None],
    k: Any,
    propensities: ArrayLike,
    reduce: str | None,
    *,
    discounted: bool,
) -> Any:
    """The metric of predicted and relevant labels, their groups and the number of these."""
    known = check_propensities(propensities)
    sets = check_label_sets(*given, len(known), "len(propensities)")
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
    allowed = (propensities >= LEAST_PROPENSITY) & (propensities <= 1)
    inverse = 1 / jnp.where(allowed, propensities, jnp.nan)
    label = jnp.where(found.groups >= 0, ids.T, 0)
    gains = entries_at(inverse, label)
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

        # A propensity that is not allowed makes the result NaN whether its label is a hit or not:
        # no gain is above NaN, so its label is in the best list.
        most = gained(best, best_gains)
        had = gained(found.positions, had_gains)
        if reduce is not None:
            return (jnp.sum(had, -1) / jnp.sum(most, -1)).astype(dtype)
        values = numerics.divide(had, most, jnp.nan)
        return RatioOfSums(values.astype(dtype), most.astype(dtype))

    return lax.map(at, cutoffs)
