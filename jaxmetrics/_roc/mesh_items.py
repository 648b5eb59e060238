"""The items of a device of a mesh, within `shard_map`: their keys, weights and classes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.by_class import (
    LEFT_OUT,
    SORTED_NEGATIVES,
    SORTED_POSITIVES,
    ByClass,
    in_order,
)
from jaxmetrics._base.compaction import number_of
from jaxmetrics._base.items import class_weights, not_allowed
from jaxmetrics._base.parts import AxisName, largest_over, sum_over
from jaxmetrics._base.types import Array, Items

OfClasses = tuple[Array, Array]


def valid_on_mesh(items: Items) -> Array:
    """Which items are valid, whatever their weights."""
    valid: Array = ~numerics.is_nan(items.scores)
    return valid if items.where is None else valid & items.where


def kinds_on_mesh(items: Items) -> Array:
    """`[n]`, SORTED_POSITIVES, SORTED_NEGATIVES or LEFT_OUT of each item, whatever its weight."""
    of_valid = jnp.where(items.labels == 1, SORTED_POSITIVES, SORTED_NEGATIVES)
    return jnp.where(valid_on_mesh(items), of_valid, LEFT_OUT).astype(jnp.uint32)


def keys_on_mesh(items: Items) -> Array:
    """`[n]`, keys that ascend as the scores descend; the largest key for an invalid item."""
    keys = sorting.descending_keys(items.scores)
    return jnp.where(valid_on_mesh(items), keys, sorting.largest_key(keys))


def weights_on_mesh(items: Items) -> Array | None:
    """`[n]`, the weight of each item in its class; None if each counts once.

    The weight of an invalid item means nothing. Weights keep their own dtype, in which they travel.
    """
    if items.amounts is None:
        return None if items.weights is None else jnp.asarray(items.weights)
    positives, negatives = class_weights(items)
    return positives + negatives


def sorted_by_class(items: Items, weights: Array | None, *, indexed: bool = False) -> ByClass:
    """The items `[n]` of a device by class and key; `weights` are those of `weights_on_mesh`."""
    indexed |= weights is not None

    def in_order_of_class(items: Items) -> Any:
        return in_order(keys_on_mesh(items), kinds_on_mesh(items), indexed=indexed)

    given = items._replace(weights=None, amounts=None)
    keys, ends, index = varying.apart(in_order_of_class, given)
    weights = None if weights is None else sorting.take(weights, index)
    return ByClass.of(keys, ends, weights, index)


def ones() -> OfClasses:
    """Units that leave weights as they are."""
    return jnp.ones(()), jnp.ones(())


def units_of_classes(highest: Any, axis_name: AxisName, *, together: bool) -> OfClasses:
    """One over the power of two near the highest weight on all devices, by class or `together`."""
    of_all = [largest_over(x.astype(jnp.float64), axis_name) for x in highest]
    if together:
        of_all = [jnp.maximum(*of_all)] * 2
    positives, negatives = (1 / numerics.power_near(x) for x in of_all)
    return positives, negatives


def undefined_on_mesh(items: Items, axis_name: AxisName) -> Array:
    """Whether a valid score is NaN, no item is valid, or labels or weights are not allowed."""
    positives, negatives = class_weights(items)
    weighty = positives + negatives > 0
    n_bad = number_of(numerics.is_nan(items.scores) & weighty)
    bad = sum_over(n_bad, axis_name) + sum_over(not_allowed(items, axis_name), axis_name) > 0
    return bad | (sum_over(number_of(weighty), axis_name) == 0)
