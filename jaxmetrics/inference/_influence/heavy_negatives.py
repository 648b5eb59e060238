"""Errors of average precision where each negative stands for several, as thinned ones do.

Few of them are then above each positive, and the precision is far from linear in the weight of one.
Its slope is taken over a step: with and without what a negative weighs more than a positive.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from jaxmetrics._base.double import library_program
from jaxmetrics._base.duals import constant
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.items import class_weights, items_at_hand
from jaxmetrics._base.numerics import as_constant, divide, namespace
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.areas import average_precision
from jaxmetrics._roc.metric import placement_metric
from jaxmetrics._roc.placements import Groups, Placements
from jaxmetrics._roc.record import MetricLike, record_of
from jaxmetrics.inference._influence.sizes import times_as_heavy
from jaxmetrics.inference._intervals.effective import effective_size
from jaxmetrics.inference._intervals.ranges import Range


@functools.partial(placement_metric, check=dict, smooth=True)
def average_precision_by_steps(placed: Placements, *, step: Array) -> Array:
    """`average_precision`, whose slope is that of a step: of this share of all negatives."""
    placed = placed.near_one(together=True)
    size = step * placed.total_negatives
    precision_of = _precision_of_duals if placed.library is np else _precision

    def precisions(part: Groups) -> Any:
        return part.total(precision_of(part.positives_not_below, part.not_below, size))

    return divide(placed.summed(precisions), placed.total_positives, 0.0)


def _precision_of_duals(tps: Any, fps: Any, size: Any) -> Any:
    held, size = as_constant(fps), as_constant(size)
    # As its factor is 0, the slope needs no derivative of its own, which may be infinite.
    return divide(tps, tps + held, 0.0) + constant(_slope(tps, held, size)) * (fps - held)


def _slope(tps: Any, fps: Any, size: Any) -> Any:
    """The slope of the precision in `fps`, over a step down by `size`."""
    before = namespace(fps).maximum(fps - size, 0)
    precision, without_one = (divide(tps, tps + x, 0.0) for x in (fps, before))
    return -precision * divide(without_one, tps, 0.0)


@jax.custom_jvp
def _precision(tps: Array, fps: Array, size: Array) -> Array:
    return divide(tps, tps + fps, 0.0)


@_precision.defjvp
def _(given: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    # A derivative in the weights of this value and of these slopes is their own, over no step.
    tps, fps, size = given
    total = tps + fps
    precision, rest = (divide(x, total, 0.0) for x in (tps, fps))
    in_tps, in_fps = divide(rest, total, 0.0), _slope(tps, fps, size)
    return precision, in_tps * tangents[0] + in_fps * tangents[1]


def takes_steps(metric: MetricLike, items: Items) -> bool:
    """Whether the errors are those of `average_precision_by_steps`."""
    return items.weights is not None and record_of(metric) == average_precision.record


def in_steps(
    metric: MetricLike, items: Items, bounds: Range | None
) -> tuple[MetricLike, Range | None]:
    """Average precision by steps, and its Range, where items have weights; others as they are.

    The heavier the negatives, the fewer decide, and the heavier are the tails of their influence:
    its kurtosis less 1 grows as their weight. There is a degree of freedom at least.
    """
    if bounds is None or not takes_steps(metric, items):
        return metric, bounds
    step, times = near_tree(_step(items_at_hand(items)))
    kurtosis = 1 + (bounds.kurtosis - 1) * times
    # An array, as each new number would be compiled anew.
    step = namespace(step).asarray(step)
    by_steps = functools.partial(average_precision_by_steps, step=step)
    return by_steps, bounds._replace(kurtosis=kurtosis)


@library_program()
def _step(items: Items) -> tuple[Array, Array]:
    """The step, and how many times as heavy as a positive a negative is, at least 1."""
    positives, negatives = class_weights(items)
    size, times = effective_size(negatives), times_as_heavy(positives, negatives)
    library = namespace(size, times)
    times = library.maximum(times, 1.0)
    step = divide(1 - 1 / times, size, 0.0)
    return step, library.minimum(times, library.maximum((size - 1) / _PER_DEGREE, 1.0))


_PER_DEGREE = 10.0  # negatives for each degree of freedom, without weights
