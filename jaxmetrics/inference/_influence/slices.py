"""The covariance of a metric in each slice of the items between models."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.sliced import Part, Sliced


def covariance_in_slices(sliced: Sliced, influence: list[HostArray], *, held: bool) -> HostArray:
    """`[slices, 2, models, models]`: the parts of the covariance of the negatives and positives.

    Of `influence` `[models, n]`, the derivatives in the weight of each item, times the weight of
    its class; up to a constant of the class if its weight is `held`, or there are no weights.
    """

    def of_part(part: Part) -> HostArray:
        return _covariance(part.sliced, [x[part.span] for x in influence], held)

    n_models = len(influence)
    none = np.zeros((0, 2, n_models, n_models))
    return np.concatenate([none, *in_threads(of_part, sliced.parts())])


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
    """The effective size of all negatives, and `[slices, models, models]`, their part.

    Of `weights` `[negatives]` or None, of how much of each is `flagged` `[models, negatives]`, and
    of the `slopes` `[slices, models]` of the curves at the threshold that all slices share.
    """
    n = flagged.shape[1]
    if weights is None and flagged.dtype == bool:
        total = squares = n
        both = np.array([[np.count_nonzero(a & b) for b in flagged] for a in flagged])
        sums = sums_of_squares = np.diagonal(both)
    else:
        weights = np.ones(n) if weights is None else weights
        total, of_squares = weights.sum(), weights**2
        squares = of_squares.sum()
        sums, sums_of_squares = flagged @ weights, flagged @ of_squares
        both = np.einsum("ai,bi->ab", flagged * of_squares, flagged)
    # sum w^2 (f_a - s_a) (f_b - s_b) / (sum w)^2, of what is flagged, f, and its mean s.
    with np.errstate(all="ignore"):
        share = sums / np.float64(total)
        mixed = np.outer(sums_of_squares, share)
        parts = both - mixed - mixed.T + squares * np.outer(share, share)
        of_flags = (n / (n - 1) if n != 1 else np.nan) * parts / np.float64(total) ** 2
        size = np.float64(total) ** 2 / squares
    return size, slopes[:, :, None] * slopes[:, None, :] * of_flags
