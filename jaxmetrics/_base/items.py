"""Checked items, made ready: at least one, weights by class, and whether traced ones are valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from jaxmetrics._base.host import at_hand
from jaxmetrics._base.numerics import is_inexact, largest_weight, namespace
from jaxmetrics._base.parts import AxisName, largest_over
from jaxmetrics._base.types import Array, HostArray, HostOrDeviceArray, Items

T = TypeVar("T", bound=tuple[Any, ...])


def at_least_one(items: Items) -> Items:
    """The items. One masked item replaces empty input, as reductions need an entry."""
    if items.scores.shape[-1]:
        return items
    one = items._replace(where=np.zeros(1, bool) if items.where is None else items.where)
    zeros: list[Any] = [x if x is None else np.zeros((*x.shape[:-1], 1), x.dtype) for x in one]
    return Items(*zeros)


def items_at_hand(items: Items) -> Items:
    """The items, as NumPy views where they lie in the memory of the CPU that computes."""
    return Items(*at_hand(*items))


def shared_by_models(items: Items) -> Items:
    """The items, with labels and all that is not of scores `[n]`: it may be `[1, n]`."""
    scores, *shared = items
    flat: list[Any] = [x if x is None else x.reshape(-1) for x in shared]
    return Items(scores, *flat)


def one_id_at_least(ids: Any) -> Any:
    """The ids of the items that `at_least_one` returns."""
    if ids is None or ids.shape[-1]:
        return ids
    return np.zeros((*ids.shape[:-1], 1), np.int32)


def batch_of(items: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of the batch: the leading axes of arrays `[..., n]`, some of which may be None."""
    return np.broadcast_shapes(*(x.shape[:-1] for x in items if x is not None))


def rows_of(items: T, batch: tuple[int, ...], ndim: int) -> Iterator[T]:
    """Each row of the arrays of a NamedTuple, broadcast to the leading axes `batch`.

    Rows of NumPy arrays are views. `ndim` is the number of axes of the broadcast arrays; an array
    may lack some of the leading ones.
    """

    def whole(x: Any) -> Any:
        own = (1,) * (ndim - x.ndim) + x.shape
        return namespace(x).broadcast_to(x, batch + own[len(batch) :])

    arrays: list[Any] = [None if x is None else whole(x) for x in items]
    for index in np.ndindex(batch):
        row: list[Any] = [None if x is None else x[index] for x in arrays]
        yield type(items)(*row)


def class_weights(items: Items) -> tuple[Array, Array]:
    """The weight of each item as a positive and as a negative; 0 where it is masked."""
    _, labels, weights, where, amounts = items
    library = namespace(*(x for x in items[1:] if x is not None))
    valid = library.asarray(True) if where is None else where
    positive, negative = (labels == 1) & valid, (labels != 1) & valid
    if weights is None and amounts is None:
        return positive.astype(np.int32), negative.astype(np.int32)
    weight = library.where(valid, 1 if weights is None else weights, 0).astype(np.float64)
    amount = 1 if amounts is None else library.where(positive, amounts, 0)
    return library.where(positive, weight * amount, 0), library.where(negative, weight, 0)


def exchanged(items: Items) -> Items:
    """The items in the reverse order, with exchanged classes; an invalid label remains one."""
    scores, labels, *others = items
    # Whole numbers have no negative that cannot overflow.
    backward = -scores if is_inexact(scores) else ~scores
    return Items(backward, ~labels if labels.dtype == bool else 1 - labels, *others)


def class_masks(items: Items) -> tuple[HostArray, HostArray]:
    """Which items are valid negatives, and which are valid positives; NumPy's."""
    positive = np.asarray(items.labels) == 1
    valid = True if items.where is None else np.asarray(items.where)
    return ~positive & valid, positive & valid


def not_allowed(items: Items, axis_name: AxisName = None) -> Any:
    """`[...]`: whether an eager call refuses labels, weights or amounts; traced, they give NaN.

    Too large or too small is judged by the weights of all devices along the axis, if there is one.
    """
    library = namespace(*(x for x in items[1:] if x is not None))
    refused = library.zeros(items.labels.shape, bool)
    if items.labels.dtype != bool:
        refused = (items.labels != 0) & (items.labels != 1)
    if items.weights is not None:
        refused = refused | ~((items.weights >= 0) & (items.weights < np.inf))
    beyond = beyond_scale(items.weights, items.where, axis_name)
    if items.amounts is not None:  # those of negatives do not count, and may be anything
        positive = items.labels == 1
        refused = refused | (positive & ~((items.amounts >= 0) & (items.amounts < np.inf)))
        positive = positive if items.where is None else positive & items.where
        beyond = beyond | beyond_scale(items.amounts, positive, axis_name)
    refused = refused if items.where is None else refused & items.where
    return library.any(refused, axis=-1) | beyond


def beyond_scale(
    weights: HostOrDeviceArray | None,
    where: HostOrDeviceArray | None,
    axis_name: AxisName = None,
) -> Any:
    """`[...]`: whether the highest weight is too large or too small for sums and products."""
    if weights is None or not is_inexact(weights):
        return np.False_
    largest = largest_weight(weights.dtype)
    library = namespace(weights) if where is None else namespace(weights, where)
    counted = weights if where is None else library.where(where, weights, 0)
    highest = largest_over(library.max(counted, axis=-1, initial=0), axis_name)
    return (highest > largest) | ((highest > 0) & (highest < 1 / largest))
