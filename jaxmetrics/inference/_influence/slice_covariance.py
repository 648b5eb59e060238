"""The covariance between models of a metric in each slice of the items."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.sliced import RunOfSlices, Sliced


def covariance_in_slices(sliced: Sliced, influence: list[HostArray], *, held: bool) -> HostArray:
    """`[slices, 2, models, models]`: the parts of the covariance of the negatives and positives.

    `influence` `[models, n]` has the derivatives in the weight of each item, times the weight of
    its class. If that weight is `held`, or without weights, they may be off by a constant for each
    class, which centring removes.
    """

    def of_part(part: RunOfSlices) -> HostArray:
        return _covariance(part.sliced, [x[part.span] for x in influence], held)

    return np.concatenate(in_threads(of_part, sliced.parts()))


def _covariance(sliced: Sliced, influence: list[HostArray], held: bool) -> HostArray:
    with np.errstate(all="ignore"):
        n = sliced.counts
        units = []
        for own in influence:
            products = sliced.weighted(own)
            total = sliced.sums(products)
            if held or sliced.weights is None:
                units.append(sliced.weighted(own - sliced.spread(total / sliced.totals)))
            else:
                units.append(products - sliced.spread(total / n))
        models = range(len(units))
        found = np.zeros((len(n), 2, len(units), len(units)))
        for a in models:
            for b in models[: a + 1]:
                found[..., a, b] = found[..., b, a] = sliced.sums(units[a] * units[b])
        found *= (n / (n - 1) / sliced.totals**2)[..., None, None]
    alone = (n <= 1)[..., None, None]  # the variance of one item is unknown
    return np.where(alone, np.nan, found)


def covariance_of_threshold(
    weights: Any, flagged: HostArray, slopes: HostArray
) -> tuple[Any, Array]:
    """The effective size of all negatives, and their part of the covariance.

    That is `[slices, models, models]`, if all slices share a threshold.

    Args:
      weights: `[negatives]`, or None.
      flagged: `[models, negatives]`, the share of each negative that is flagged.
      slopes: `[slices, models]`, those of the ROC curves at the threshold.
    """
    n = flagged.shape[1]
    with np.errstate(all="ignore"):
        # sum w^2 (f_a - s_a) (f_b - s_b), with f the flagged share of an item, s its mean.
        if weights is None and flagged.dtype == bool:
            total = squares = np.float64(n)
            both = np.array([[np.count_nonzero(a & b) for b in flagged] for a in flagged])
            parts = both - np.outer(both.diagonal(), both.diagonal()) / total
        else:
            weights = np.ones(n) if weights is None else weights
            total, squares = weights.sum(), (weights**2).sum()
            share = flagged @ weights / total
            # Centred first: the difference of sums of squares is rounded to the digits of these.
            centred = (flagged - share[:, None]) * weights
            parts = np.einsum("ai,bi->ab", centred, centred)
        of_flags: Any = (n / (n - 1) if n != 1 else np.nan) * parts / total**2
        size = total**2 / squares
    return size, slopes[:, :, None] * slopes[:, None, :] * of_flags
