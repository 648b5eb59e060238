"""Runs of items of one weight: of few distinct weights, far fewer are drawn than there are items.

Neighbouring items of one class may change places as long as no item of the other class is between
them: sums of their weights alone count. By weight, they are a few runs in place of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.order import LEFT_OUT, Ordered
from jaxmetrics.inference._bootstrap.units import Runs, numbers_of_classes

_MOST = 16  # distinct weights
_SOME = 1 << 10  # weights to look at first
# A run takes so many times as long as an item, whose counts are drawn in pairs.
_TIMES = 2


def few_weights(items: Items) -> bool:
    """Whether the items of one model, scores `[1, n]`, are far fewer runs of one weight.

    Runs are at most one for each item of the rarer class, and one between two of them for each
    weight. That is asked of the values wherever they lie, so that a key draws the same everywhere.
    """
    if not all(getattr(x, "is_fully_addressable", True) for x in items):
        return False
    if len(np.unique(np.asarray(items.weights)[:_SOME])) > _MOST:
        return False
    found, weights = without_weights(items)
    rarer = min(numbers_of_classes(found))
    distinct = len(np.unique(weights))
    return distinct <= _MOST and _TIMES * rarer * (1 + distinct) < len(weights)


def without_weights(items: Items) -> tuple[Items, HostArray]:
    """The items that have a weight, of NumPy's arrays, and the weights."""
    arrays: Any = [None if x is None else np.asarray(x) for x in items]
    found: Any = Items(*arrays)
    some = found.weights > 0
    where = some if found.where is None else found.where & some
    return found._replace(weights=None, where=where), found.weights


def by_weight(order: Ordered, runs: Runs, weights: HostArray) -> tuple[Ordered, Runs, HostArray]:
    """The items of each run by weight, the runs of one weight, and the weights `[n]` in order."""
    order = Ordered(*map(np.asarray, order))
    n_valid = np.count_nonzero(order.kinds != LEFT_OUT)
    given = weights.take(order.item)
    values = np.unique(weights)
    which = values.searchsorted(given[:n_valid])
    begins: Any = np.array(runs.begins)
    run = np.cumsum(begins[:n_valid]) - 1
    place = np.arange(len(given))
    place[:n_valid] = np.argsort(run * len(values) + which, kind="stable")
    order = Ordered(*(x.take(place) for x in order))
    given = given.take(place)
    begins[1:n_valid] |= given[1:n_valid] != given[: n_valid - 1]
    apart: Any = np.asarray(runs.apart)
    return order, Runs(begins, apart, begins.sum()), given
