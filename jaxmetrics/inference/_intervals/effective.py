"""How many observations unequal weights amount to. Over the array library, in float64."""

from __future__ import annotations

import itertools
import operator
from typing import NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array

_ROUNDING = 1e-9


class Shares(NamedTuple):
    """Weights along the last axis, as shares of their sum.

    Attributes:
      of_items: `[..., n]`; `[..., 1]` where all are equal.
      n: Kish's effective size.
      kept, df: of a mean, as of `kept_and_df`.
    """

    of_items: Array
    n: Array
    kept: Array
    df: Array


def shares_of(weights: Array) -> Shares:
    """The shares of weights `[..., n]`; NaN where all are 0."""
    n, shares = kish(weights)
    return Shares(shares, n, *kept_and_df(shares))


def equal_shares(counted: Array, n: Array) -> Shares:
    """`shares_of` the n items that are `counted`, `[..., items]` or, of all of them, `[1]`.

    Without an array of equal weights, which NumPy is slow with and XLA adds up as it compiles.
    """
    n = n.astype(np.float64)
    kept, df = numerics.divide(n - 1, n, np.nan), numerics.divide(n * (n - 1), n, np.nan)
    return Shares(numerics.divide(1.0 * counted, n[..., None], np.nan), n, kept, df)


def effective_size(weights: Array) -> Array:
    """(sum w)^2 / sum w^2 along the last axis."""
    return kish(weights.astype(np.float64))[0]


def clusters_of_one_size(weights: Array) -> Array:
    """How many have the degrees of freedom of clusters with these weights; 0 of none."""
    n, shares = kish(weights)
    library = numerics.namespace(n)
    found: Array = kept_and_df(shares)[1] + 1
    whole = library.round(found)  # which clusters of one size are but for rounding
    found = library.where(library.abs(found - whole) < _ROUNDING * found, whole, found)
    counted: Array = library.where(n > 0, found, 0.0)
    return counted


def kish(weights: Array) -> tuple[Array, Array]:
    """Kish's effective size of weights along the last axis, and their shares of the sum."""
    library = numerics.namespace(weights)
    # Shares of the largest: equal weights become 1, whose sums are exact, and none overflows.
    largest = library.max(weights, axis=-1, keepdims=True, initial=0)
    weights = numerics.divide(weights, largest, 0.0)
    total = library.sum(weights, axis=-1)
    n = numerics.divide(total**2, library.sum(weights**2, axis=-1), 0.0)
    return n, numerics.divide(weights, total[..., None], np.nan)


def kept_and_df(shares: Array) -> tuple[Array, Array]:
    """The part of the variance of a mean that sum p^2 d^2 keeps, and its degrees of freedom.

    For values of one variance and d their distances from the mean: 1 - 1 / n and n - 1 of equal
    shares, and less of unequal ones, as the largest draw the mean towards their values. The sum is
    taken for a multiple of chi-squared with the same mean and variance, as by F. E. Satterthwaite,
    "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
    """
    library = numerics.namespace(shares)
    # The largest share p apart: of one near 1 nothing is left but what the others add up to.
    p = library.max(shares, axis=-1, initial=0)
    largest = shares == p[..., None]
    others = library.where(largest & (library.cumsum(largest, axis=-1) == 1), 0.0, shares)
    powers = itertools.accumulate(5 * [others], operator.mul)  # as NumPy is slow with others**3
    s1, s2, s3, s4, s5 = (library.sum(x, axis=-1) for x in powers)
    p2 = p**2 + s2
    # d^2 of the largest, and its products with d of the others, have these expectations: s1^2 + s2,
    # and lean - share of the other.
    square, lean = s1**2 + s2, s2 - p * s1
    mean = p**2 * square + (1 + p2) * s2 - 2 * s3
    half_variance = p**4 * square**2 + 2 * p**2 * (lean**2 * s2 - 2 * lean * s3 + s4)
    half_variance = half_variance + (1 + 2 * p2) * s4 - 4 * s5
    half_variance = half_variance + (p2 * s2) ** 2 + 2 * s2 * s4 - 4 * p2 * s2 * s3 + 2 * s3**2
    return numerics.divide(mean, p2, 0.0), numerics.divide(mean**2, half_variance, 0.0)
