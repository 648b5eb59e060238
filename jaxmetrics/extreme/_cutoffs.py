"""Metrics of the first k places of a list: precision, normalized recall and nDCG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, cumulative, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._inputs import LabelSets, check_label_sets
from jaxmetrics.extreme._matching import NOWHERE, Matches, by_group, match, shaped


@on_any_mesh
def precision_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    reduce: str | None = "mean",
) -> Array:
    """The share of the first k predictions that are relevant, over all labels or by group.

    P@k = hits among the first k / min(k, length of the list), averaged over instances. By group, an
    instance keeps only its predicted and relevant labels of the group, in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places count, at least 1: one int, or several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      reduce: "mean" averages over instances; None returns the value of each.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` the axis of instances stands before these:
      `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; predicted or relevant has a label
        twice in a list, predicted an id behind a -1, or k is below 1.

    An instance without relevant labels (in the group) is NaN, and the mean leaves it out; without
    other instances the mean is NaN. An instance without predictions is 0. Traced ids out of
    range never hit. Time O(n (K + L) (L + num_groups)) in comparisons, about 20 to a vector
    instruction; without groups, k takes the place of K. Memory O(n (L + num_groups)).

    Example:
      >>> import jaxmetrics as jm
      >>> predicted, relevant = [[2, 0, 1], [1, 3, -1]], [[0, 2], [1, -1]]
      >>> print(jm.extreme.precision_at_k(predicted, relevant, k=2))
      0.75
      >>> print(jm.extreme.precision_at_k(predicted, relevant, k=2, groups=[0, 0, 1, 1]))
      [0.75 1.  ]

    Reference: K. Bhatia et al., "The extreme classification repository", 2016.
    """
    sets = check_label_sets(predicted, relevant, groups, num_groups)
    return _at_cutoffs(_instance_precision, sets, k, reduce)


@on_any_mesh
def normalized_recall_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    reduce: str | None = "mean",
) -> Array:
    """Hits among the first k, divided by the most that are possible, over all labels or by group.

    R@k = hits among the first k / min(k, relevant labels), averaged over instances. By group, an
    instance keeps only its predicted and relevant labels of the group, in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places count, at least 1: one int, or several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      reduce: "mean" averages over instances; None returns the value of each.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` the axis of instances stands before these:
      `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; predicted or relevant has a label
        twice in a list, predicted an id behind a -1, or k is below 1.

    An instance without relevant labels (in the group) is NaN, and the mean leaves it out; without
    other instances the mean is NaN. An instance without predictions is 0. Time
    O(n (K + L) (L + num_groups)), memory O(n (L + num_groups)), as for `precision_at_k`.

    Example:
      >>> import jaxmetrics as jm
      >>> predicted, relevant = [[2, 0, 1], [1, 3, -1]], [[0, 3], [1, -1]]
      >>> print(jm.extreme.normalized_recall_at_k(predicted, relevant, k=[1, 2]))
      [0.5  0.75]

    Reference: K. Järvelin and J. Kekäläinen, "IR evaluation methods for retrieving highly relevant
    documents", SIGIR 2000, for recall at a cutoff.
    """
    sets = check_label_sets(predicted, relevant, groups, num_groups)
    return _at_cutoffs(_instance_recall, sets, k, reduce)


@on_any_mesh
def ndcg_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    reduce: str | None = "mean",
    truncate_ideal: bool = False,
) -> Array:
    """Discounted hits among the first k, divided by the discounted hits of the best list.

    nDCG@k = sum over hits of 1 / log2(position + 1), over the sum over i = 1 to R of
    1 / log2(i + 1), with R the number of relevant labels; averaged over instances. By group, an
    instance keeps only its predicted and relevant labels of the group, in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places count, at least 1: one int, or several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      reduce: "mean" averages over instances; None returns the value of each.
      truncate_ideal: whether the best list ends at k too, with min(k, R) in place of R. A list of k
        hits then has 1.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`. With `reduce=None` the axis of instances stands before these:
      `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; predicted or relevant has a label
        twice in a list, predicted an id behind a -1, or k is below 1.

    An instance without relevant labels (in the group) is NaN, and the mean leaves it out; without
    other instances the mean is NaN. An instance without predictions is 0. Time
    O(n (K + L) (L + num_groups)), memory O(n (L + num_groups)), as for `precision_at_k`.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.extreme.ndcg_at_k([[2, 0, 1]], [[1, 2]], k=3):.4f}")
      0.9197

    Reference: K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
    ACM Transactions on Information Systems 20, 2002.
    """
    sets = check_label_sets(predicted, relevant, groups, num_groups)
    checks.check_flag("truncate_ideal", truncate_ideal)
    return _at_cutoffs(
        _instance_ndcg_truncated if truncate_ideal else _instance_ndcg, sets, k, reduce
    )


# A metric of each instance, by group, from the matches, the number of relevant labels, the discount
# at each relevant label's position, and the cutoff.
Instance = Callable[[Matches, Array, Array, Array], Array]


def _at_cutoffs(instance: Instance, sets: LabelSets, k: Any, reduce: str | None) -> Array:
    cutoffs, one = checks.check_cutoffs("k", k)
    check_reduce(reduce, ("mean",))
    # With groups, a place behind the last cutoff may be among the first of its group.
    found = match(sets, max(cutoffs) if sets.groups is None else None)
    dtype = numerics.default_float()
    options = (instance, sets.shape, sets.predicted.shape[-1], reduce, dtype)
    values = _values_at_cutoffs(found, cutoff_array(cutoffs), *options)
    return shaped(values, sets, one=one)


def cutoff_array(cutoffs: tuple[int, ...]) -> Any:
    """Cutoffs as an array argument, so that one compiled program serves all cutoffs."""
    return np.minimum(np.asarray(cutoffs), NOWHERE).astype(np.int32)


def check_reduce(reduce: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse all but None and the allowed words."""
    if reduce is not None:
        checks.check_choice("reduce", reduce, allowed)


@double_program("instance", "shape", "places", "reduce", "dtype")
def _values_at_cutoffs(
    found: Matches,
    cutoffs: Array,
    instance: Instance,
    shape: tuple[int, ...],
    places: int,
    reduce: str | None,
    dtype: Any,
) -> Array:
    """`[k, num_groups, ...]`; one cutoff at a time, as the values of all instances take memory."""
    relevant = by_group(jnp.ones_like(found.groups), found.groups, len(found.listed))
    worth = discounts(found.positions, places)

    def at(cutoff: Array) -> Array:
        values = jnp.where(relevant > 0, instance(found, relevant, worth, cutoff), jnp.nan)
        values = values.reshape(len(found.listed), *shape)
        return (values if reduce is None else mean_of_counted(values)).astype(dtype)

    return lax.map(at, cutoffs)


def mean_of_counted(values: Array) -> Array:
    """The mean over the last axis of the values that are not NaN."""
    counted = ~jnp.isnan(values)
    return jnp.sum(jnp.where(counted, values, 0), -1) / jnp.sum(counted, -1)


def _hits(found: Matches, cutoff: Array) -> Array:
    """`[num_groups, rows]`, hits among the first places of each group.

    In float64: JAX divides 32-bit integers in single precision.
    """
    hit = (found.positions < cutoff).astype(jnp.int32)
    return by_group(hit, found.groups, len(found.listed)).astype(jnp.float64)


def _instance_precision(found: Matches, relevant: Array, worth: Array, cutoff: Array) -> Array:
    made = jnp.minimum(cutoff, found.listed)
    return _hits(found, cutoff) / jnp.maximum(made, 1)


def _instance_recall(found: Matches, relevant: Array, worth: Array, cutoff: Array) -> Array:
    return _hits(found, cutoff) / jnp.maximum(jnp.minimum(cutoff, relevant), 1)


def _instance_ndcg(found: Matches, relevant: Array, worth: Array, cutoff: Array) -> Array:
    labels = len(found.groups)
    gain = jnp.where(found.positions < cutoff, worth, 0)
    ideal = cumulative.cumulated(discounts(jnp.arange(labels, dtype=jnp.int32), labels))
    best = entries_at(ideal, jnp.maximum(relevant - 1, 0))
    return by_group(gain, found.groups, len(found.listed)) / best


def _instance_ndcg_truncated(found: Matches, relevant: Array, worth: Array, cutoff: Array) -> Array:
    return _instance_ndcg(found, jnp.minimum(relevant, cutoff), worth, cutoff)


def discounts(positions: Array, places: int) -> Array:
    """1 / log2(position + 2) for positions from 0 in a list of `places`; beyond it, meaningless.

    A lookup in a table takes a tenth of the time of a logarithm.
    """
    table = jnp.asarray(1 / np.log2(np.arange(max(places, 1)) + 2))
    return entries_at(table, jnp.minimum(positions, len(table) - 1))
