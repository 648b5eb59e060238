"""Metrics that one threshold decides, of items in no order: it is selected, and nothing is sorted.

The k-th largest key is found digit by digit, from the highest: each pass counts the keys that are
not below a candidate. A pass is a sum, so that it needs no memory, and over devices no gather.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.placements import most_within
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.table import static_options


@dataclass(frozen=True)
class _Selection:
    """What of `Placements` needs no order, for items `[n]` whose negatives have no weights."""

    items: Items
    library = jnp

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        return class_weights(self.items)

    @cached_property
    def _keys(self) -> Array:
        """The higher the score, the larger; 0 is less than all of them but the lowest."""
        keys: Array = ~sorting.descending_keys(self.items.scores)
        return keys

    @property
    def total_positives(self) -> Array:
        total: Array = jnp.sum(self._weights[0]).astype(jnp.float64)
        return total

    @property
    def total_negatives(self) -> Array:
        return jnp.sum(self._weights[1] > 0, dtype=jnp.int32).astype(jnp.float64)

    def caught(self, max_fpr: Any) -> Array:
        most = most_within(jnp.asarray(max_fpr), self.total_negatives, 0.0)
        one_too_many = self._from_top(most)[..., None]
        above = jnp.sum(jnp.where(self._keys > one_too_many, self._weights[0], 0), axis=-1)
        return jnp.where(most < self.total_negatives, above, self.total_positives)

    def caught_above_quantile(self, q: Any, method: str) -> Array:
        def from_top(place: Array) -> Array:
            scores: Array = sorting.scores_of_keys(~self._from_top(place), self.items.scores)
            return scores

        threshold = quantile(self.total_negatives, from_top, q, method)
        scores = sorting.scores_of_keys(~self._keys, self.items.scores)
        above = jnp.where(scores > threshold[..., None], self._weights[0], 0)
        return jnp.where(jnp.isnan(threshold), jnp.nan, jnp.sum(above, axis=-1))

    def _from_top(self, places: Array) -> Array:
        """The keys of the negatives at these places from the top, from 0; 0 beyond the last."""
        keys = jnp.where(self._weights[1] > 0, self._keys, 0)
        highest = jnp.array(1, keys.dtype) << (8 * keys.dtype.itemsize - 1)

        def digit(i: Array, found: Array) -> Array:
            candidate = found | (highest >> i.astype(keys.dtype))
            count = jnp.sum(keys >= candidate[..., None], axis=-1, dtype=jnp.int32)
            return jnp.where(count > places, candidate, found)

        none = jnp.zeros(places.shape, keys.dtype)
        found: Array = lax.fori_loop(0, 8 * keys.dtype.itemsize, digit, none)
        return found


def evaluate_by_selection(
    function: Callable[..., Any], items: Items, options: dict[str, Any]
) -> Array:
    """`function(placements, **options)` of each row of a batch, compiled, in double precision.

    The result is NaN where a valid score is NaN or no item is valid.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()
    with double_precision():
        value: Array = _evaluate(at_least_one(items), arrays, function, static, dtype)
    return value


@functools.partial(jax.jit, static_argnames=("function", "static", "dtype"))
def _evaluate(
    items: Items,
    arrays: dict[str, Any],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    dtype: Any,
) -> Any:
    def compute(items: Items, options: dict[str, Any]) -> Any:
        def of_one(items: Items) -> Array:
            value = function(_Selection(items), **options, **dict(static))
            weighty = sum(class_weights(items)) > 0
            bad = jnp.any(numerics.is_nan(items.scores) & weighty) | ~jnp.any(weighty)
            return jnp.where(bad | not_allowed(items), jnp.nan, value).astype(dtype)

        given = jax.tree.map(jnp.asarray, items)
        shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves(given)))
        rows = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), given)
        return numerics.over_batch(of_one, len(shape) - 1)(rows)

    return in_double(compute)(items, arrays)
