"""Every 0/0 rule, rates and running sums of counts, and what is asked of a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.types import Array

R = TypeVar("R")


def divide(numerator: Array, denominator: Array, otherwise: float | Array) -> Array:
    """`numerator / denominator`, and `otherwise` where the denominator is 0."""
    defined = denominator != 0
    # The inner where keeps a division by 0 out of the gradient, in which NaN times 0 is NaN.
    return jnp.where(defined, numerator / jnp.where(defined, denominator, 1), otherwise)


def rates(counts: Array, total: Array) -> Array:
    """`counts / total` correctly rounded, for counts that are not negative; NaN where total is 0.

    XLA turns a division by one broadcast number into a product with its reciprocal, by which 1 of
    49 times 49 is not 1, and a rate may be more than the limit that it equals. A denominator that
    varies in form is divided by.
    """
    return counts / jnp.where(counts >= 0, total, 1)


def running_total(x: Array) -> Array:
    """The sum so far, which does not fall. Counts are added as integers, which is exact.

    XLA adds floats in the order of a tree, by which a sum may change over entries that are 0, and
    two points of a curve that are one would differ. Over those the sum is that of the last entry.
    """
    total: Array = jnp.cumsum(x, axis=-1)
    if not is_inexact(x):
        return total
    fixed = lax.stop_gradient(total)
    settled = lax.cummax(jnp.where(x > 0, fixed, 0), axis=x.ndim - 1)
    return total + (settled - fixed)


def running_sum(x: Array) -> Array:
    """`running_total` in double precision."""
    return running_total(x).astype(jnp.float64)


def slack(counts: Array) -> float:
    """By which fraction a limit may be passed: weights add up to it only within rounding."""
    return 2.0**-40 if is_inexact(counts) else 0.0


def running_minimum(x: Array) -> Array:
    """The smallest entry so far along the last axis."""
    return lax.cummin(x, axis=x.ndim - 1)


def default_float() -> Any:
    """JAX's floating dtype of results here: float32, or float64 in x64 mode."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def namespace(array: Any) -> Any:
    """NumPy for its own arrays, JAX's for others, traced ones among them."""
    return np if isinstance(array, np.ndarray) else jnp


def is_inexact(leaf: Any) -> bool:
    """Whether an array can carry a derivative."""
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def is_nan(array: Any) -> Any:
    """Which entries are NaN, of an array of any dtype."""
    if is_inexact(array):
        return namespace(array).isnan(array)
    return namespace(array).zeros(array.shape, bool)


def over_batch(function: Callable[..., R], axes: int) -> Callable[..., R]:
    """`function` of one row, for each of a batch of so many leading axes."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function
