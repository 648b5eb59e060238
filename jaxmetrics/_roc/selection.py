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
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.items import at_least_one, class_weights, not_allowed
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.placements import Limit, most_within
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.reported import Decision, finished, warn_if
from jaxmetrics._roc.table import static_options

_FEW = 4  # limits for which selections take less time than the one sort that many share


def few(limits: ArrayLike) -> bool:
    """Whether selection is the way for metrics that one threshold for each limit decides."""
    return np.size(limits) <= _FEW


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

    @cached_property
    def scores(self) -> Array:
        """In double precision, `[n]`, and NaN for items without weight."""
        weighty = sum(self._weights) > 0
        scores: Array = jnp.where(weighty, self._scores_of(self._keys), jnp.nan)
        return scores

    def caught(self, limit: Limit) -> Array:
        return jnp.sum(jnp.where(self._above(limit), self._weights[0], 0), axis=-1)

    def lowest_caught(self, limit: Limit) -> Array:
        caught = self._above(limit) & (self._weights[0] > 0)
        return jnp.min(jnp.where(caught, self.scores, jnp.inf), axis=-1)

    def quantile(self, q: Any, method: str) -> Array:
        def from_top(place: Array) -> Array:
            return self._scores_of(self._from_top(place))

        return quantile(self.total_negatives, from_top, q, method)

    def caught_above(self, threshold: Array) -> Array:
        above = self._scores_of(self._keys) > threshold[..., None]
        return jnp.sum(jnp.where(above, self._weights[0], 0), axis=-1)

    def _above(self, limit: Limit) -> Array:
        """Which items `[..., n]` are above all negatives that are beyond the limit."""
        most = most_within(limit, self.total_negatives, 0.0)
        all_within = (most >= self.total_negatives)[..., None]
        above: Array = (self._keys > self._from_top(most)[..., None]) | all_within
        return above

    def _scores_of(self, keys: Array) -> Array:
        scores: Array = sorting.scores_of_keys(~keys, self.items.scores)
        return scores

    def _from_top(self, places: Array) -> Array:
        """The keys of the negatives at these places from the top, from 0; 0 beyond the last."""
        keys = jnp.where(self._weights[1] > 0, self._keys, 0)
        highest = jnp.array(1, keys.dtype) << (8 * keys.dtype.itemsize - 1)

        def digit(i: Array, found: Array) -> Array:
            candidate = found | (highest >> jnp.asarray(i, keys.dtype))
            count = jnp.sum(keys >= candidate[..., None], axis=-1, dtype=jnp.int32)
            return jnp.where(count > places, candidate, found)

        none = jnp.zeros(places.shape, keys.dtype)
        found: Array = lax.fori_loop(0, 8 * keys.dtype.itemsize, digit, none)
        return found


def evaluate_by_selection(
    function: Callable[..., Any], items: Items, options: dict[str, Any], decision: Decision
) -> Any:
    """`function(placements, **options)` of each row of a batch, compiled, in double precision.

    The result is NaN where a valid score is NaN or no item is valid. Thresholds are rounded for the
    `decision` that they are for.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()
    with double_precision():
        values, unlike = _evaluate(at_least_one(items), arrays, function, static, decision, dtype)
    warn_if(unlike, dtype)
    return values


@functools.partial(jax.jit, static_argnames=("function", "static", "decision", "dtype"))
def _evaluate(
    items: Items,
    arrays: dict[str, Any],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    decision: Decision,
    dtype: Any,
) -> Any:
    def compute(items: Items, options: dict[str, Any]) -> Any:
        decided = decision(**options, **dict(static))

        def of_one(items: Items) -> Any:
            selected = _Selection(items)
            value = function(selected, **options, **dict(static))
            weighty = sum(class_weights(items)) > 0
            bad = jnp.any(numerics.is_nan(items.scores) & weighty) | ~jnp.any(weighty)
            bad |= not_allowed(items)
            given = items.scores.dtype
            return finished(value, bad, lambda: selected.scores, decided, given, dtype)

        given = jax.tree.map(jnp.asarray, items)
        shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves(given)))
        rows = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), given)
        values, unlike = numerics.over_batch(of_one, len(shape) - 1)(rows)
        return jax.tree.map(lambda x: x.astype(dtype), values), jax.tree.map(jnp.any, unlike)

    return in_double(compute)(items, arrays)
