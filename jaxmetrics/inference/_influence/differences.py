"""Differences of all pairs of estimates, their variances, and the rounding of 0.

Written over the array library: NumPy's, or JAX's inside `double_precision()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array

NO_VARIANCE = 1e-28  # times the square of the estimate: a smaller variance is the rounding of 0
_ROUNDING = 1e-12
# Of the larger variance of two models: of smaller variances v + v - 2 c has not ten digits.
_ALIKE = 1e-6


def lost_models(estimate: Array, covariance: Array) -> Array:
    """`[models]`, which have no value or no error.

    Numbers replace these until the end: in reverse mode 0 times NaN would be NaN in the slopes of
    the other models, too.
    """
    library = numerics.namespace(estimate, covariance)
    return library.isnan(estimate) | library.isnan(library.diagonal(covariance))


def squares_of(error: Array) -> Array:
    """The squares of errors; a NaN has no slope."""
    library = numerics.namespace(error)
    return library.where(library.isnan(error), library.nan, numerics.without_nan(error) ** 2)


def differences_of(estimate: Any, standard_error: Array) -> Array:
    """`[..., models, models]`, row minus column; 0 where models without a difference are rounded.

    Two copies of one value may be rounded in different ways.
    """
    library = numerics.namespace(estimate, standard_error)
    rows, columns = estimate[..., :, None], estimate[..., None, :]
    largest = library.maximum(library.abs(rows), library.abs(columns))
    difference = rows - columns
    alike = (standard_error == 0) & (library.abs(difference) <= math.sqrt(NO_VARIANCE) * largest)
    # Subtracted, not replaced: equal models move apart with the values of one of them.
    return difference - numerics.as_constant(library.where(alike, difference, 0.0))


def of_differences(covariance: Array) -> Array:
    """The variances of the differences of all pairs, from `[..., models, models]`."""
    variances = numerics.namespace(covariance).diagonal(covariance, axis1=-2, axis2=-1)
    return variances[..., :, None] + variances[..., None, :] - 2 * covariance


def between_models(covariance: Array, of_pair: Callable[[Any, Any], Array]) -> Array:
    """A matrix with the differences of the covariance, also of models that are nearly equal.

    v + v - 2 c has no digits of the variance of a difference that is far below v. NumPy finds those
    by `of_pair(a, b)`, and so does a program for two models. The matrix is then -1/2 of the
    variances of all pairs, from which `of_differences` gives these; else it is the covariance.
    """
    library = numerics.namespace(covariance)
    own = library.diagonal(covariance, axis1=-2, axis2=-1)
    largest = library.maximum(own[..., :, None], own[..., None, :])
    n_models, variances = covariance.shape[-1], of_differences(covariance)
    if library is np:
        alike = np.triu(variances <= _ALIKE * largest, 1)
        pairs = np.argwhere(alike.reshape(-1, n_models, n_models).any(axis=0))
        if not len(pairs):
            return covariance
        for a, b in pairs:
            variances[..., a, b] = variances[..., b, a] = of_pair(a, b)
    elif n_models == 2:
        of_two = of_pair(0, 1)[..., None, None] * (1 - np.eye(2))
        variances = library.where(library.isnan(largest), np.nan, of_two)
    else:
        return covariance
    return -numerics.above_rounding(variances, NO_VARIANCE * largest) / 2


def root_of(variance: Array, covariance: Array, estimate: Array) -> Array:
    """The square root; 0 where a variance is the rounding of 0.

    It is 0 if two models are equal, or if no item has influence.
    """
    library = numerics.namespace(variance, covariance, estimate)
    own = _ROUNDING * library.diagonal(covariance)
    rounding = library.maximum(own, NO_VARIANCE * estimate**2)
    rounding = library.maximum(rounding[:, None], rounding[None, :])
    return numerics.root(numerics.above_rounding(variance, rounding))
