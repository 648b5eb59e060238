"""Metrics that one threshold, or the items above it, decide: the threshold is selected.

The k-th largest key is found digit by digit, from the highest digit: each pass counts the keys that
are not below a candidate. A pass is a sum: it needs no memory, and over devices no gather. If one
threshold decides, nothing is sorted. If the items above it count, only these are sorted. Their
threshold may be a little too low, and is taken from a sample of the items.
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

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.compaction import first_indices, sample_indices
from jaxmetrics._base.double import double_precision, in_double
from jaxmetrics._base.host import on_cpu, one_by_one, to_program
from jaxmetrics._base.items import at_least_one, batch_of, class_weights, not_allowed
from jaxmetrics._base.parts import AxisName, smallest_over, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.in_order import placements_in_order
from jaxmetrics._roc.limits import Limit, limit_of_fpr, most_within
from jaxmetrics._roc.placements import Part
from jaxmetrics._roc.quantile import quantile
from jaxmetrics._roc.reported import Decision, finished, holds, warn_if
from jaxmetrics._roc.table_values import static_options

_PART = 4  # the head is sorted alone if it has at most 1 / _PART of the items
_SAMPLE = 1 << 11
# An accelerator reads the keys once for each digit: larger digits need fewer passes. On the CPU,
# counting takes longer than reading, and a digit is one bit.
_BITS_OF_DIGIT = 2
_MARGIN = 3  # standard deviations of a count in the sample


@dataclass(frozen=True)
class Selection:
    """`Placements` by selection, for items `[n]` whose negatives have no weights.

    Attributes:
      items: all items, or the part of a device.
      axis_name: the axis of the devices that each hold a part, within `shard_map`; None otherwise.
    """

    items: Items
    axis_name: AxisName = None
    library = jnp

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        return class_weights(self.items)

    @cached_property
    def _keys(self) -> Array:
        """Keys that rise with the score. Only an integer dtype's lowest score can have key 0."""
        return ~sorting.descending_keys(self.items.scores)

    def near_one(self, *, together: bool = False) -> Selection:
        return self

    @property
    def total_positives(self) -> Array:
        return self._sum(self._weights[0]).astype(jnp.float64)

    @property
    def total_negatives(self) -> Array:
        return self._count(self._weights[1] > 0).astype(jnp.float64)

    def _sum(self, of_items: Array) -> Array:
        # On one device, counts fit in their own dtype.
        return sum_over(jnp.sum(of_items, axis=-1, dtype=of_items.dtype), self.axis_name)

    def _count(self, which: Array) -> Array:
        return sum_over(jnp.sum(which, axis=-1, dtype=jnp.int32), self.axis_name)

    @cached_property
    def scores(self) -> Array:
        """The scores `[n]` in double precision, NaN for items without weight."""
        weighty = sum(self._weights) > 0
        return jnp.where(weighty, self._scores_of(self._keys), jnp.nan)

    def summed(self, function: Callable[[Any], Any], max_fpr: Any) -> Any:
        """The sum over the head, or over all items if the head is long or was not found."""
        capacity = max(len(self._keys) // _PART, 1)
        negative, total = self._weights[1] > 0, self.total_negatives
        needed = jnp.floor(jnp.max(limit_of_fpr(max_fpr).highest, initial=0) * total) + 1
        needed = lax.stop_gradient(needed)
        head = ((self._weights[0] > 0) | negative) & (self._keys >= self._below(needed))
        enough = jnp.sum(head & negative, dtype=jnp.int32) >= needed
        few = jnp.sum(head, dtype=jnp.int32) <= capacity

        def of_few() -> Any:
            index, some = first_indices(head, capacity)
            items = _at(self.items, index)._replace(where=some)
            return of(items, (self.total_positives, total))

        def of(items: Items, whole: Any = None) -> Any:
            return placements_in_order(items, whole).summed(function)

        return lax.cond(enough & few, of_few, lambda: of(self.items))

    def _below(self, needed: Array) -> Array:
        """A key that most likely at least `needed` negatives reach, and not many more.

        It comes from a sample of one of each `step` items. It is 0, which all keys reach, if the
        sample has too few.
        """
        step = max(len(self._keys) // _SAMPLE, 1)
        index = sample_indices(len(self._keys), step)
        sample = sorting.sort(_at(jnp.where(self._weights[1] > 0, self._keys, 0), index))
        mean = needed / step
        place = mean + _MARGIN * (jnp.sqrt(mean) + 1)
        inside = place < len(sample)
        return jnp.where(inside, sample[-1 - jnp.where(inside, place, 0).astype(jnp.int32)], 0)

    def caught(self, limit: Limit) -> Array:
        return self._sum(jnp.where(self._above(limit), self._weights[0], 0))

    def lowest_caught(self, limit: Limit) -> Array:
        caught = self._above(limit) & (self._weights[0] > 0)
        lowest = jnp.min(jnp.where(caught, self.scores, jnp.inf), axis=-1)
        return smallest_over(lowest, self.axis_name)

    def quantile(self, q: Any, method: str) -> Array:
        return quantile(self.total_negatives, self.from_top, q, method)

    def caught_above(self, threshold: Array) -> Array:
        above = self._scores_of(self._keys) > threshold[..., None]
        return self._sum(jnp.where(above, self._weights[0], 0))

    def _above(self, limit: Limit) -> Array:
        """Which items `[..., n]` are above every negative that is beyond the limit."""
        most = most_within(limit, self.total_negatives, 0.0)
        all_within = (most >= self.total_negatives)[..., None]
        return (self._keys > self._from_top(most)[..., None]) | all_within

    def from_top(self, places: Array) -> Array:
        """The scores of the negatives at these places, counted from 0 at the highest."""
        return self._scores_of(self._from_top(places))

    def _scores_of(self, keys: Array) -> Array:
        return sorting.scores_of_keys(~keys, self.items.scores)

    def _from_top(self, places: Array) -> Array:
        """The keys of the negatives at these places, from 0 at the highest; 0 beyond the last."""
        keys = jnp.where(self._weights[1] > 0, self._keys, 0)
        n_bits, width = 8 * keys.dtype.itemsize, 1 if on_cpu() else _BITS_OF_DIGIT
        digits = [np.asarray(x, keys.dtype) for x in range(1, 1 << width)]

        def digit(i: Array, found: Array) -> Array:
            shift = jnp.asarray(n_bits - width * (i + 1), keys.dtype)
            # A separate sum for each count: for one array of counts, XLA for GPUs would read the
            # keys again for each.
            counts = [self._count(keys >= (found | (x << shift))[..., None]) for x in digits]
            reached = sum((x > places).astype(keys.dtype) for x in counts)
            return found | (reached << shift)

        none = jnp.zeros(places.shape, keys.dtype)
        return varying.fori_loop(0, n_bits // width, digit, none)


def _at(rows: Any, index: Array) -> Any:
    """The entries at `index` of each array `[n]` of a pytree."""
    return jax.tree.map(lambda x: sorting.entries_at(x, index), rows)


def highest(scores: Array, which: Array, places: Array) -> Array:
    """The scores at `places` among those of `[n]` that are `which`, from 0 at the highest.

    A place beyond the last gives any value. It takes arrays of NumPy or of JAX.
    """
    if numerics.namespace(scores, which) is jnp:
        chosen = Items(scores, jnp.zeros(scores.shape, bool), None, which, None)
        return Selection(chosen).from_top(places)
    of_class: Any = scores[which]
    found: Any = np.full(places.shape, np.nan)
    if len(of_class):
        at = len(of_class) - 1 - np.minimum(places, len(of_class) - 1).astype(int)
        found = np.partition(of_class, at)[at]
    return found


def has_exact_thresholds(items: Items) -> bool:
    """Whether negatives have no weights, and float64 represents every score."""
    return items.weights is None and holds(np.float64, items.scores.dtype)


def selects(items: Items, order: Part) -> bool:
    """Whether a selection takes less time than the sort of all items, and has exact thresholds."""
    if not has_exact_thresholds(items):
        return False
    return order is Part.NONE or (order is Part.HEAD and one_by_one(items.scores.shape[-1]))


def evaluate_by_selection(
    function: Callable[..., Any], items: Items, options: dict[str, Any], decision: Decision
) -> Any:
    """`function(placements, **options)` of each row of a batch, compiled, in double precision.

    The result is NaN where a valid score is NaN or no item is valid. Thresholds are rounded as the
    `decision` requires.
    """
    static, arrays = static_options(options)
    dtype = numerics.default_float()
    with double_precision():
        items = to_program(at_least_one(items))
        values, unlike = _evaluate(items, arrays, function, static, decision, dtype)
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
    def of_one(items: Items, options: dict[str, Any]) -> Any:
        selected = Selection(items)
        value = function(selected, **options, **dict(static))
        weighty = sum(class_weights(items)) > 0
        bad = jnp.any(numerics.is_nan(items.scores) & weighty) | ~jnp.any(weighty)
        bad |= not_allowed(items)
        decided, kind = decision(**options, **dict(static)), items.scores.dtype
        value, unlike = finished(value, bad, lambda: selected.scores, decided, kind, dtype)
        return jax.tree.map(lambda x: x.astype(dtype), value), unlike

    given = jax.tree.map(jnp.asarray, items)
    axes = len(batch_of(given))
    program = in_double(of_one, one_by_one=one_by_one(given.scores.shape[-1]))
    values, unlike = numerics.over_rows(lambda row: program(row, arrays), given, axes)
    return values, jax.tree.map(jnp.any, unlike)
