"""Runs of items of one class and one weight: with few distinct weights, far fewer than the items.

The order of neighbouring items of one class does not change the metric: only the sum of their
weights counts. So a run of one class is sorted by weight, and split into one run for each weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.order import LEFT_OUT, Ordered
from jaxmetrics.inference._bootstrap.units import Runs, numbers_of_classes

_MOST = 16  # distinct weights
_SOME = 1 << 10  # weights to look at first
# A run takes about this many times as long as an item, as the counts of items are drawn in pairs.
_TIMES = 2


def few_weights(items: Items) -> bool:
    """Whether the items of one model, scores `[1, n]`, form far fewer runs of one weight.

    There is at most one run for each item of the rarer class, and between two of these one run of
    the other class for each distinct weight. The answer depends on the values and not on the device
    that holds them, so that a key draws the same everywhere. It is False for arrays of which this
    process holds only a part.
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
    """The items without their weights, masked where these are 0, and the weights; NumPy arrays."""
    arrays: Any = [None if x is None else np.asarray(x) for x in items]
    found: Any = Items(*arrays)
    some = found.weights > 0
    where = some if found.where is None else found.where & some
    return found._replace(weights=None, where=where), found.weights


def by_weight(order: Ordered, runs: Runs, weights: HostArray) -> tuple[Ordered, Runs, HostArray]:
    """The items of each run sorted by weight, the runs of one weight, and the weights in order.

    The weights `[n]` are given in the order of the inputs.
    """
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
    begins[1:n_valid] |= given[1:n_valid] != given[: max(n_valid - 1, 0)]
    apart: Any = np.asarray(runs.apart)
    return order, Runs(begins, apart, begins.sum()), given
