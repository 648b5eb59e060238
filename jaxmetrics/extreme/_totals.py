"""Metrics of the predictions of all instances together: which labels are predicted."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics, sorting, varying
from jaxmetrics._base.double import double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._cutoffs import cutoff_array
from jaxmetrics.extreme._inputs import check_label_sets, label_ids
from jaxmetrics.extreme._matching import (
    ENDED,
    Matches,
    group_table,
    groups_of,
    in_blocks,
    in_chunks,
    match,
    rows_of,
    shaped,
    walked_groups,
)


@on_any_mesh
def prediction_proportions_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike | None = None,
    *,
    k: int | tuple[int, ...],
    groups: ArrayLike,
    num_groups: int | None = None,
) -> Array:
    """The share of each group of labels among the predictions in the first k places.

    share of g = predictions of group g among the first k of all lists / all predictions there.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: does not change the result; it lets all metrics here be called alike.
      k: how many first places of the whole list count, not of a group, at least 1: one int, or
        several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.

    Returns:
      `[..., num_groups]`, or `[..., num_groups, k]` for several k; the groups add up to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; groups is None, predicted has a
        label twice in a list or an id behind a -1, or k is below 1.

    NaN where there are no predictions. Traced ids out of range do not count. Time O(n k num_groups)
    in comparisons, about 20 to a vector instruction; memory O(n num_groups) for each of several
    k.

    Example:
      >>> import jaxmetrics as jm
      >>> share = jm.extreme.prediction_proportions_at_k
      >>> print(share([[2, 0, 1], [1, 3, -1]], k=2, groups=[0, 0, 1, 1]))
      [0.5 0.5]

    Reference: T. Wei and Y.-F. Li, "Does tail label help for large-scale multi-label learning?",
    IEEE Transactions on Neural Networks and Learning Systems 31, 2020, for predictions by how
    frequent labels are.
    """
    if groups is None:
        raise TypeError(
            "groups is missing: pass the group of each label, for example from label_deciles"
        )
    if relevant is None:
        predicted = label_ids("predicted", predicted)
        relevant = np.full((*predicted.shape[:-1], 1), -1, np.int32)
    sets = check_label_sets(predicted, relevant, groups, num_groups)
    cutoffs, one = checks.check_cutoffs("k", k)
    shape, places = sets.predicted.shape[:-1], max(sets.predicted.shape[-1], 1)
    ends, place = np.unique(np.minimum(cutoffs, places), return_inverse=True)
    rows = rows_of(sets.predicted, shape)[:, : ends[-1]]
    static = (tuple(ends.tolist()), sets.num_groups)

    def work(ids: Any, _: Any) -> Array:
        return _listed_by_group(ids, sets.groups, *static)

    listed = in_chunks(work, rows, np.zeros((len(rows), 0), np.int32))
    values = _shares(listed, place, shape, numerics.default_float())
    return shaped(values, sets, one=one)


@double_program("ends", "num_groups")
def _listed_by_group(
    predicted: Array, groups: Array, ends: tuple[int, ...], num_groups: int
) -> Array:
    """`[ends, num_groups, rows]`, the predictions of each group among the first `end` places."""
    table = group_table(groups, num_groups)

    def at_once(predicted: Array) -> Array:
        groups = walked_groups(predicted, table)
        going = jnp.cumsum(groups == ENDED, axis=0, dtype=jnp.int32) == 0
        every = jnp.arange(num_groups, dtype=groups.dtype)[:, None, None]
        mine = (groups == every) & going
        parts = [jnp.sum(mine[:, :end], axis=1, dtype=jnp.int32) for end in ends]
        return jnp.stack(parts)

    def block(predicted: Array) -> Array:
        groups = walked_groups(predicted, table)
        every = jnp.arange(num_groups, dtype=groups.dtype)[:, None]

        def step(state: Any, group: Array) -> Any:
            going, listed = state
            going &= group != ENDED
            return (going, listed + ((group == every) & going)), None

        state = jnp.ones(len(predicted), bool), jnp.zeros((num_groups, len(predicted)), jnp.int32)
        parts = []
        for start, end in zip((0, *ends), ends, strict=False):
            state, _ = varying.scan(step, state, groups[start:end])
            parts.append(state[1])
        return jnp.stack(parts)

    def walked(predicted: Array) -> Array:
        return in_blocks(block, (predicted,), num_groups)

    return lax.platform_dependent(predicted, cpu=walked, default=at_once)


@double_program("shape", "dtype")
def _shares(listed: Array, place: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    total = jnp.sum(listed.reshape(*listed.shape[:2], *shape), axis=-1)
    shares = total / jnp.sum(total, axis=1, keepdims=True)
    return shares.astype(dtype)[place]


@on_any_mesh
def positive_coverage_at_k(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | tuple[int, ...],
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """The share of the relevant labels that are predicted correctly for at least one instance.

    coverage = distinct labels that are a hit among the first k of some list / distinct labels that
    are relevant to some instance.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      k: how many first places of the whole list count, not of a group, at least 1: one int, or
        several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`; for several k `[..., k]` or
      `[..., num_groups, k]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; predicted or relevant has a label
        twice in a list, predicted an id behind a -1, or k is below 1.

    NaN where no label (of the group) is relevant. Traced ids out of range never hit. Time
    O(n L (k + L + num_groups + log n)), memory O(n L num_groups).

    Example:
      >>> import jaxmetrics as jm
      >>> predicted, relevant = [[2, 0, 1], [2, 3, -1]], [[0, 2], [2, 1]]
      >>> print(f"{jm.extreme.positive_coverage_at_k(predicted, relevant, k=2):.4f}")
      0.6667

    Reference: M. Ge, C. Delgado-Battenfeld and D. Jannach, "Beyond accuracy: evaluating recommender
    systems by coverage and serendipity", RecSys 2010.
    """
    sets = check_label_sets(predicted, relevant, groups, num_groups)
    cutoffs, one = checks.check_cutoffs("k", k)
    whole = sets._replace(groups=None, num_groups=1)
    if sets.groups is not None:
        whole = whole._replace(n_labels=len(sets.groups))
    found = match(whole, max(cutoffs))
    ids = rows_of(sets.relevant, sets.shape)
    arrays = (found, ids, sets.groups, cutoff_array(cutoffs))
    options = (sets.shape, sets.num_groups, numerics.default_float())
    return shaped(_coverage(*arrays, *options), sets, one=one)


@double_program("shape", "num_groups", "dtype")
def _coverage(
    found: Matches,
    ids: Array,
    groups: Array | None,
    cutoffs: Array,
    shape: tuple[int, ...],
    num_groups: int,
    dtype: Any,
) -> Array:
    *batch, n = shape
    labels = jnp.where(found.groups >= 0, ids.T, -1)

    def of_batch(x: Array) -> Array:
        x = jnp.moveaxis(x.reshape(len(x), *batch, n), 0, -1)
        return x.reshape(*batch, n * x.shape[-1])

    # The first entry of each label has the label's best position.
    labels, positions = _sorted_pairs(of_batch(labels), of_batch(found.positions))
    first = sorting.starts(labels)
    table = None if groups is None else group_table(groups, num_groups)
    group = jnp.where(first & (labels >= 0), groups_of(labels, table), -1)
    mine = group[..., None, :] == jnp.arange(num_groups, dtype=group.dtype)[:, None]
    distinct = jnp.sum(mine, axis=-1)  # [..., num_groups]

    def at(cutoff: Array) -> Array:
        covered = jnp.sum(mine & (positions < cutoff)[..., None, :], axis=-1)
        share = covered / distinct.astype(jnp.float64)
        return jnp.moveaxis(share, -1, 0).astype(dtype)

    return lax.map(at, cutoffs)


def _sorted_pairs(labels: Array, positions: Array) -> tuple[Array, Array]:
    # By label, then by position.
    if labels.dtype.itemsize == 8:
        labels, positions = lax.sort((labels, positions), num_keys=2)
        return labels, positions
    words = lax.sort((labels.astype(jnp.uint64) << 32) | positions.astype(jnp.uint64))
    return (words >> 32).astype(jnp.int32), (words & (2**32 - 1)).astype(jnp.int32)
