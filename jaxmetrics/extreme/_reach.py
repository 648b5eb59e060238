"""How many places of its list an instance needs for a recall."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._cutoffs import check_reduce, mean_of_counted
from jaxmetrics.extreme._inputs import check_label_sets
from jaxmetrics.extreme._matching import NOWHERE, Matches, by_group, match, over_columns, shaped


@on_any_mesh
def k_for_recall(
    predicted: ArrayLike,
    relevant: ArrayLike,
    *,
    min_recall: ArrayLike,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    n_labels: int | None = None,
    reduce: str | None = "median",
) -> Array:
    """The least k whose first k predictions have `min_recall` of the relevant labels.

    k = min {k: hits among the first k / relevant labels >= min_recall}, or n_labels / 2 where no k
    is enough; the median over instances. By group, an instance keeps only its predicted and
    relevant labels of the group, in unchanged order.

    Args:
      predicted: `[..., n, K]` label ids in rank order, padded with -1 at the end.
      relevant: `[..., n, L]` label ids in any order, padded with -1.
      min_recall: the recall to reach, in [0, 1]: one, or several, which add a last axis.
      groups: `[n_labels]`, the group of each label, from 0, for example from `label_deciles`.
      num_groups: the number of groups; required where `groups` is traced.
      n_labels: the number of labels; by default the length of `groups`.
      reduce: "median" or "mean" over instances; None returns the value of each.

    Returns:
      `[...]`, or `[..., num_groups]` with `groups`: a number of places. For several min_recall
      `[..., several]` or `[..., num_groups, several]`. With `reduce=None` the axis of instances
      stands before these: `[..., n]`, `[..., n, num_groups]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; n_labels is missing without
        `groups`, not their length, or 2^30 or more; a label is twice in a list, or min_recall is
        not in [0, 1].

    An instance without relevant labels (in the group) is NaN, and the median leaves it out. The
    result is NaN without other instances, or if a traced min_recall is not in [0, 1]. Time
    O(n ((K + L) (L + num_groups) + num_groups log n)) in comparisons, about 20 to a vector
    instruction; memory O(n (L + num_groups)), for several min_recall O(n (L + several num_groups)).

    Example:
      >>> import jaxmetrics as jm
      >>> predicted, relevant = [[2, 0, 1], [1, 3, -1], [0, 1, 2]], [[0, 2], [1, -1], [3, -1]]
      >>> print(jm.extreme.k_for_recall(predicted, relevant, min_recall=0.8, n_labels=8))
      2.0

    Reference: G. Salton and M. J. McGill, "Introduction to modern information retrieval", 1983, for
    recall as a function of how much is retrieved.
    """
    limits = checks.check_options({"min_recall": min_recall})["min_recall"]
    check_reduce(reduce, ("median", "mean"))
    sets = check_label_sets(predicted, relevant, groups, num_groups, n_labels)
    if n_labels is None:
        if sets.groups is None:
            raise TypeError(
                "n_labels is missing without groups: write n_labels=..., the number of labels"
            )
        n_labels = len(sets.groups)
    if n_labels >= _MOST_LABELS:
        raise ValueError(
            f"n_labels must be below 2^30, got {n_labels}: number the labels that occur with "
            "numpy.unique(ids, return_inverse=True)[1]"
        )
    several = limits.reshape(-1)
    options = (sets.shape, n_labels, reduce, numerics.default_float())
    least = match(sets, then=lambda found: _least_places(found, several))
    values = _reached(least, several, *options)
    return shaped(values, sets, one=not limits.ndim)


_MOST_LABELS = 1 << 30  # twice as many are in 32 bits


@double_program()
def _least_places(found: Matches, limits: Array) -> Array:
    """`[limits, num_groups, rows]`, the least k; NOWHERE if none, -1 without relevant labels."""
    groups, num_groups = found.groups, len(found.listed)
    relevant = by_group(jnp.ones_like(groups), groups, num_groups)
    every = np.arange(num_groups)[:, None, None]
    of_group = jnp.sum(jnp.where(groups == every, relevant[:, None], 0), axis=0)
    upto = over_columns(
        lambda one, every: (one[0] == every[0]) & (one[1] <= every[1]), (groups, found.positions)
    )
    recall = upto.astype(jnp.float64) / of_group

    def at(limit: Array) -> Array:
        # Recall is rounded to the dtype of the limit first: 0.8 in float32 is above 4 / 5.
        enough = (found.positions < NOWHERE) & (recall.astype(limit.dtype) >= limit)
        places = jnp.where(enough, found.positions + 1, NOWHERE)
        k = by_group(places, groups, num_groups, least=True)
        return jnp.where(relevant > 0, jnp.where(limit > 0, k, 0), -1)

    return lax.map(at, limits)


@double_program("shape", "n_labels", "reduce", "dtype")
def _reached(
    least: Array,
    limits: Array,
    shape: tuple[int, ...],
    n_labels: int,
    reduce: str | None,
    dtype: Any,
) -> Array:
    def at(given: tuple[Array, Array]) -> Array:
        k, limit = given
        # Twice k, as n_labels / 2 may have a fraction.
        doubled = jnp.where(k < NOWHERE, 2 * k, n_labels)  # integers sort faster
        doubled = jnp.where(k >= 0, doubled, NOWHERE).reshape(len(k), *shape)
        if reduce == "median":
            value = _median(doubled)
        else:
            value = jnp.where(doubled < NOWHERE, doubled.astype(jnp.float64) / 2, jnp.nan)
            value = mean_of_counted(value) if reduce == "mean" else value
        return jnp.where(jnp.isnan(limit), jnp.nan, value).astype(dtype)

    return lax.map(at, (least, limits))


def _median(doubled: Array) -> Array:
    """Half the median over the last axis of the values that are not NOWHERE."""
    if not doubled.shape[-1]:
        return jnp.full(doubled.shape[:-1], jnp.nan)
    ordered = lax.sort(doubled)
    count = jnp.sum(doubled < NOWHERE, axis=-1, keepdims=True)
    middle = jnp.concatenate([jnp.maximum(count - 1, 0) // 2, count // 2], axis=-1)
    middle = jnp.minimum(middle, doubled.shape[-1] - 1)
    two = jnp.take_along_axis(ordered, middle, axis=-1).astype(jnp.float64)
    return jnp.where(count[..., 0] > 0, jnp.sum(two, axis=-1) / 4, jnp.nan)
