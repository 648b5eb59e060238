"""Placements of items that the devices of a mesh hold in parts, within `shard_map`.

Each device sorts its part. A threshold is found digit by digit, as in `selection`: each pass
searches for one place in every part, and only sums travel. For a sum over positives, each device
receives the items of one range of the scores, or of several in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.by_class import CLASSES, SORTED_NEGATIVES, SORTED_POSITIVES, ByClass
from jaxmetrics._base.key_ranges import Dealt, dealt_out, most_rounds, range_of
from jaxmetrics._base.parts import AxisName, size_of, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.limits import Limit
from jaxmetrics._roc.mesh_items import OfClasses, ones, sorted_by_class, units_of_classes
from jaxmetrics._roc.mesh_ranges import InRange
from jaxmetrics._roc.placements import Beside, Groups
from jaxmetrics._roc.quantile import quantile

_BITS_OF_DIGIT = 4
Ends: TypeAlias = Array | dict[int, Array]  # by class


@dataclass(frozen=True)
class OnMesh:
    """The placements of the items of all devices.

    Attributes:
      part: the items of this device, by class and key.
      like: an array with the dtype of the scores.
      units: the factors of the weights of positives and of negatives.
      slack: as in `Groups`.
      axis_name: the axis of the devices.
    """

    part: ByClass
    like: Any
    units: OfClasses
    slack: float
    axis_name: AxisName
    library = jnp

    @property
    def is_weighted(self) -> bool:
        return self.part.weights is not None

    def near_one(self, *, together: bool = False) -> OnMesh:
        if not self.is_weighted:
            return self
        units = units_of_classes(self.part.highest(), self.axis_name, together=together)
        return replace(self, units=units)

    @cached_property
    def total_positives(self) -> Array:
        return self._before(self.part.ends, SORTED_POSITIVES)

    @cached_property
    def total_negatives(self) -> Array:
        return self._before(self.part.ends, SORTED_NEGATIVES)

    def summed(self, function: Callable[[Groups], Any], max_fpr: Any = None) -> Any:
        return sum_over(jnp.sum(self.of_ranges(function), axis=0), self.axis_name)

    def of_ranges(self, function: Callable[[InRange], Any]) -> Any:
        """`[rounds, ...]`, the function of each range that this device receives."""
        dealt, rounds = self.in_ranges

        @jax.checkpoint  # a derivative makes each range anew: none is kept for it
        def of_range(number: Array) -> Any:
            return function(self.groups_of(dealt, number))

        return lax.map(of_range, rounds)

    @cached_property
    def in_ranges(self) -> tuple[Dealt, Array]:
        """The items, dealt out to the devices, and the numbers of the rounds: one range in each."""
        n_rounds = most_rounds(len(self.part.keys), size_of(self.axis_name))
        dealt = dealt_out(self.part, self.axis_name, n_rounds)
        return dealt, jnp.arange(n_rounds, dtype=jnp.int32)

    def groups_of(self, dealt: Dealt, number: Array) -> InRange:
        """The groups in the range that this device receives in the round of this number."""
        items = range_of(dealt, self.axis_name, number, ordered=self.part.index is not None)
        units = jnp.stack(self.units)
        total_negatives = dealt.before[SORTED_NEGATIVES, -1] * units[SORTED_NEGATIVES]
        return InRange(items, units, total_negatives, self.slack)

    def caught(self, limit: Limit) -> Array:
        return self._before(self._kept(limit), SORTED_POSITIVES)

    def lowest_caught(self, limit: Limit) -> Array:
        caught = self._number_before(self._kept(limit), (SORTED_POSITIVES,))
        lowest = self._score(self._key_of(caught - 1, (SORTED_POSITIVES,)))
        return jnp.where(caught > 0, lowest, jnp.inf)

    def beside(self, limit: Limit) -> Beside:
        kept = self._kept(limit)
        within, beyond, after = self._around(kept)
        fps = (self._before(x, SORTED_NEGATIVES) for x in (kept, after))
        return Beside(within, beyond, *fps)

    def quantile(self, q: Any, method: str) -> Array:
        last = self._number_before(self.part.ends, (SORTED_NEGATIVES,)) - 1

        def from_top(place: Array) -> Array:
            def within(keys: Array) -> Array:
                return self._below(keys) <= place

            ends = self._places(self._key(within, place.shape))
            number = self._number_before(ends, (SORTED_NEGATIVES,))
            # The slack of the place may exceed the rest of the total: no negative is then beyond.
            return self._score(self._key_of(jnp.minimum(number, last), (SORTED_NEGATIVES,)))

        return quantile(self.total_negatives, from_top, q, method)

    def caught_above(self, threshold: Array) -> Array:
        return self._before(
            {SORTED_POSITIVES: self._end_of(jnp.greater, threshold, SORTED_POSITIVES)},
            SORTED_POSITIVES,
        )

    def weights_around(self, thresholds: Array) -> tuple[Array, Array]:
        """The sums of the weights, and of their squares, of the items above each threshold, equal
        to it and below it: each `[3, classes, ...]`."""

        def of_class(number: int) -> Array:
            beside = (self._end_of(x, thresholds, number) for x in (jnp.greater, jnp.greater_equal))
            end = jnp.broadcast_to(self.part.ends[number], thresholds.shape)
            ends = jnp.stack([*beside, end])
            unit = self.units[number]
            squares = self.part.sums_of([lambda weights: (unit * weights) ** 2], ends, number)
            upto = jnp.stack([unit * self.part.sums_to(ends, number), *squares])
            return jnp.diff(upto, axis=1, prepend=0)

        of_classes = jnp.stack([of_class(x) for x in CLASSES], axis=2)
        sums, squares = sum_over(of_classes, self.axis_name)
        return sums, squares

    def _end_of(
        self, which: Callable[[Array, Array], Array], thresholds: Array, of_class: int
    ) -> Array:
        """The place in a class after the items whose scores compare as `which` with thresholds."""

        def within(keys: Array) -> Array:
            return which(self._score(keys), thresholds)

        return self.part.first_that_is_not(within, thresholds.shape, of_class)

    def _score(self, keys: Array) -> Array:
        return sorting.scores_of_keys(keys, self.like)

    def _before(self, ends: Ends, of_class: int) -> Array:
        """The weight of a class on all devices, before these places `[classes, ...]` of each."""
        sums = sum_over(self.part.sums_to(ends[of_class], of_class), self.axis_name)
        return sums * self.units[of_class] if self.is_weighted else sums

    def _number_before(self, ends: Ends, classes: Sequence[int] = CLASSES) -> Array:
        """How many items of these classes have weight and are before the places, on all devices."""
        numbers = [self.part.numbers_to(ends[x], x) for x in classes]
        return sum_over(jnp.sum(jnp.stack(numbers), axis=0), self.axis_name)

    def _kept(self, limit: Limit) -> Array:
        """The places `[classes, ...]` before which all items of this part are within the limit."""
        bound, total = jnp.asarray(limit.bound), self.total_negatives

        def within(sums: Array) -> Array:
            rates = limit.rate(sums, total).astype(bound.dtype)
            return rates <= limit.slackened_bound(self.slack)

        key = self._key(lambda keys: within(self._below(keys)), bound.shape)
        return jnp.where(within(total), self._all(bound.ndim), self._places(key))

    def _all(self, axes: int) -> Array:
        return self.part.ends.reshape(-1, *(1,) * axes)

    def _around(self, kept: Array) -> tuple[Array, Array, Array]:
        """The lowest score before these places, the next lower score, and the places after it.

        The first is +inf if no item is before the places. If none is after them, the last two are
        the lowest score again, and these places.
        """
        number = self._number_before(kept)
        within, beyond = self._key_of(jnp.stack([number - 1, number]))
        some = number < self._number_before(self._all(number.ndim))
        after = jnp.stack([self.part.places(beyond, x, ties=True) for x in CLASSES])
        lowest = jnp.where(number > 0, self._score(within), jnp.inf)
        return lowest, jnp.where(some, self._score(beyond), lowest), jnp.where(some, after, kept)

    def _key_of(self, number: Array, classes: Sequence[int] = CLASSES) -> Array:
        """The key at place `number`, from 0, among the items of these classes that have weight."""

        def within(keys: Array) -> Array:
            ends = {x: self.part.places(keys, x) for x in classes}
            return self._number_before(ends, classes) <= number

        return self._key(within, number.shape)

    def _below(self, keys: Array) -> Array:
        """The weight of the negatives with lower keys than these: with higher scores."""
        return self._before(
            {SORTED_NEGATIVES: self.part.places(keys, SORTED_NEGATIVES)}, SORTED_NEGATIVES
        )

    def _places(self, keys: Array) -> Array:
        return jnp.stack([self.part.places(keys, x) for x in CLASSES])

    def _key(self, within: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
        """The highest key that is `within`, as all lower keys are.

        It is found digit by digit from the highest. Each step searches in every part, and adds up
        over devices.
        """
        dtype = self.part.keys.dtype
        n_bits = 8 * dtype.itemsize
        digits = np.arange(1, 1 << _BITS_OF_DIGIT, dtype=dtype).reshape(-1, *(1,) * len(shape))

        def digit(i: Array, found: Array) -> Array:
            shift = jnp.asarray(n_bits - _BITS_OF_DIGIT * (i + 1), dtype)
            some = within(found | (digits << shift))
            return found | (jnp.sum(some, axis=0, dtype=dtype) << shift)

        start = jnp.zeros(shape, dtype)
        return varying.fori_loop(0, n_bits // _BITS_OF_DIGIT, digit, start)


def placements_on_mesh(
    items: Items, weights: Array | None, axis_name: AxisName, *, indexed: bool = False
) -> OnMesh:
    """The placements of the items of all devices, which each hold `[n]`.

    `weights` are those of `weights_on_mesh`; `indexed` ones know which item has which place.
    """
    slack = 0.0 if items.weights is None else numerics.SLACK
    part = sorted_by_class(items, weights, indexed=indexed)
    return OnMesh(part, items.scores, ones(), slack, axis_name)
