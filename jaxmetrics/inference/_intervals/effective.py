"""Effective numbers of observations with unequal weights. Over the array library, in float64."""

from __future__ import annotations

import itertools
import operator
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.rules import ROUNDING, SIZE_ROUNDING

_OF_SQUARES = 1e-13  # the rounding of a sum of squares


class Shares(NamedTuple):
    """Weights along the last axis, as shares of their sum.

    Attributes:
      of_items: `[..., n]`; `[..., 1]` where all items count equally.
      n: Kish's effective size.
      kept, df: those of `kept_and_df`, for a mean with these shares.
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
    """`shares_of` n items of equal weight: those that are `counted`, `[..., items]`, or `[1]`: all.

    An array of equal weights would be slow with NumPy, and XLA would add it up when it compiles.
    """
    n = n.astype(np.float64)
    kept, df = numerics.divide(n - 1, n, np.nan), numerics.divide(n * (n - 1), n, np.nan)
    return Shares(numerics.divide(1.0 * counted, n[..., None], np.nan), n, kept, df)


def effective_size(weights: Array) -> Array:
    """(sum w)^2 / sum w^2 along the last axis."""
    return kish(weights.astype(np.float64))[0]


def clusters_of_one_size(weights: Array) -> Array:
    """The number of clusters of one size that have as many degrees of freedom; 0 without any."""
    n, shares = kish(weights)
    library = numerics.namespace(n)
    found = nearly_whole(kept_and_df(shares)[1] + 1)  # exact for clusters of one size
    return library.where(n > 0, found, 0.0)


def nearly_whole(n: Array) -> Array:
    """A size that is a whole number but for rounding, as that of equal weights, is this number."""
    library = numerics.namespace(n)
    whole = library.round(n)
    return library.where(library.abs(n - whole) < SIZE_ROUNDING * n, whole, n)


def to_ends(share: Any) -> Array:
    """A share that is 0 or 1 but for rounding, as that of a whole class by weights, is this."""
    library = numerics.namespace(share)
    end = library.round(share)
    return library.where(library.abs(share - end) <= ROUNDING, end, share)


def spread_of_products(
    powers: tuple[Array, Array, Array], mean: Array, total: Array, n: Any
) -> Array:
    """sum (w v - sum w v / n)^2 of n weights w times values v: both are random.

    `powers` are the sums of w^2 d^k for k = 0, 1, 2, with d = v - `mean`, the distances from the
    weighted mean, and `total` is sum w. 0 where it is the rounding of 0, as of equal products.
    """
    squares, lean, spread = powers
    spread = spread + 2 * mean * lean
    spread = spread + mean**2 * (squares - numerics.divide(total**2, n, 0.0))
    return numerics.above_rounding(spread, _OF_SQUARES * mean**2 * squares)


def kish(weights: Array) -> tuple[Array, Array]:
    """Kish's effective size of weights along the last axis, and their shares of the sum."""
    library = numerics.namespace(weights)
    # Divided by the largest, equal weights become 1, whose sums are exact, and no sum overflows.
    largest = library.max(weights, axis=-1, keepdims=True, initial=0)
    weights = numerics.divide(weights, largest, 0.0)
    total = library.sum(weights, axis=-1)
    n = numerics.divide(total**2, library.sum(weights**2, axis=-1), 0.0)
    return n, numerics.divide(weights, total[..., None], np.nan)


def kept_and_df(shares: Array) -> tuple[Array, Array]:
    """E[sum p^2 d^2] over the variance of a mean with shares p, and the degrees of freedom.

    d are the distances of the values, of one variance, from their mean. The two are 1 - 1 / n and
    n - 1 for equal shares, and less for unequal ones, because items of large shares draw the mean
    towards their values. For the degrees of freedom the sum is taken as a multiple of chi-squared
    with the same mean and variance, as by F. E. Satterthwaite, "An approximate distribution of
    estimates of variance components", Biometrics Bulletin 2, 1946.
    """
    library = numerics.namespace(shares)
    # The largest share p is kept apart: near 1, 1 - p has few digits, but the others' sum has all.
    # Its slope is that of one item, where that of a maximum would be shared by all equal ones.
    largest = shares == library.max(shares, axis=-1, keepdims=True, initial=0)
    first = largest & (library.cumsum(largest, axis=-1) == 1)
    p = library.sum(library.where(first, shares, 0.0), axis=-1)
    others = library.where(first, 0.0, shares)
    powers = itertools.accumulate(5 * [others], operator.mul)  # as NumPy is slow with others**3
    s1, s2, s3, s4, s5 = (library.sum(x, axis=-1) for x in powers)
    p2 = p**2 + s2
    # For values of variance 1: E d^2 of the item with the largest share is s1^2 + s2 (`square`),
    # and E of its d times the d of another item is `lean` - the share of the other.
    square, lean = s1**2 + s2, s2 - p * s1
    mean = p**2 * square + (1 + p2) * s2 - 2 * s3
    half_variance = p**4 * square**2 + 2 * p**2 * (lean**2 * s2 - 2 * lean * s3 + s4)
    half_variance = half_variance + (1 + 2 * p2) * s4 - 4 * s5
    half_variance = half_variance + (p2 * s2) ** 2 + 2 * s2 * s4 - 4 * p2 * s2 * s3 + 2 * s3**2
    return numerics.divide(mean, p2, 0.0), numerics.divide(mean**2, half_variance, 0.0)
