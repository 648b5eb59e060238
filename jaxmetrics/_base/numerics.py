"""Arithmetic of both array libraries: rules for 0 / 0, roots, sums, rows of a batch, dtypes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base.duals import Dual, constant
from jaxmetrics._base.host import on_tpu
from jaxmetrics._base.types import Array, HostArray

R = TypeVar("R")
T = TypeVar("T")

_SHORT = 64  # the longest run that is summed beside others


def divide(numerator: Array, denominator: Array, otherwise: float | Array) -> Array:
    """`numerator / denominator`, or `otherwise` where the denominator is 0.

    JAX divides 32-bit integers in single precision; here they become float64.
    """
    defined = denominator != 0
    if namespace(numerator, denominator) is np:
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient: Any = numerator / denominator
        if not defined.all():
            quotient = np.where(defined, quotient, otherwise)
        return quotient
    numerator, denominator = (
        x if is_inexact(x) else x.astype(jnp.float64) for x in (numerator, denominator)
    )
    # The inner where keeps a division by 0 out of the gradient, where NaN times 0 would be NaN.
    return jnp.where(defined, _ratio(numerator, jnp.where(defined, denominator, 1)), otherwise)


@jax.custom_jvp
def _ratio(x: Array, y: Array) -> Array:
    """x / y. JAX's own derivative has y^-2, which overflows where y is tiny."""
    return x / y


@functools.partial(_ratio.defjvp, symbolic_zeros=True)
def _slope_of_ratio(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x, y), (of_x, of_y) = primals, tangents
    found = _ratio(x, y)
    if isinstance(of_y, SymbolicZero):
        moved = of_x
    else:
        moved = -found * of_y if isinstance(of_x, SymbolicZero) else of_x - found * of_y
    return found, _ratio(moved, y)


def rates(counts: Array, total: Array) -> Array:
    """`counts / total` correctly rounded, for counts of -1 and more; NaN where total is 0.

    XLA replaces a division by a broadcast number with a product with its reciprocal. But
    49 * (1 / 49) is not 1, and a rate could exceed the limit that it equals. XLA cannot see that
    this denominator is the same everywhere, and divides.
    """
    if namespace(counts, total) is jnp:
        return divide(counts, jnp.where(counts >= -1, total, counts), jnp.nan)
    return counts / total


def product(a: Array, b: Array | float) -> Array:
    """`a * b` of numbers that are not negative, rounded as NumPy rounds it.

    A compiler may fuse a product with the sum that follows and round once. A quantile that equals a
    score could then be just beside it. The `where` between product and sum prevents that.
    """
    found = a * b
    return namespace(found).where(found >= 0, found, np.nan)


def largest_weight(dtype: Any) -> float:
    """The upper bound of the highest weight of a row; the lower bound is its reciprocal.

    Sums and products of such weights do not overflow, and none that matters is subnormal, which
    processors may take for 0.
    """
    return 1e28 if np.dtype(dtype).itemsize < 8 else 1e288


def power_near(highest: Array) -> Array:
    """A power of two near a number, and 1 for 0; a constant to derivatives."""
    library = namespace(highest)
    if library is np:
        return library.where(highest > 0, np.ldexp(0.5, library.frexp(highest)[1]), 1)
    half = lax.stop_gradient(highest) / 2
    if on_tpu():  # it cannot reduce float64, whose exponents have the range of float32 there
        power = lax.reduce_precision(half.astype(jnp.float32), exponent_bits=8, mantissa_bits=0)
        power = power.astype(half.dtype)
    else:
        power = lax.reduce_precision(half, exponent_bits=11, mantissa_bits=0)
    return jnp.where(power > 0, power, 1)


def is_moderate(highest: Any) -> Any:
    """Whether products of numbers up to this one, and their quotients, are in range."""
    return (highest > 1e-100) & (highest < 1e100)


def next_power_of_two(n: Any) -> int:
    """The lowest power of two from a whole number on, and 1 for 0: few sizes are then compiled."""
    return 1 << max(int(n) - 1, 0).bit_length()


def next_above(x: Any) -> Any:
    """The next number of a floating dtype above a finite one that is not subnormal; 0 for 0.

    XLA for TPUs does not compile `nextafter` of 64-bit floats.

    Reference: S. M. Rump, P. Zimmermann, S. Boldo and G. Melquiond, "Computing predecessor and
    successor in rounding to nearest", BIT Numerical Mathematics 49, 2009.
    """
    half = 0.5 * np.float64(jnp.finfo(x.dtype).eps)  # NumPy's finfo has no bfloat16
    return x + abs(x) * (half * (1 + 2 * half)).astype(x.dtype)


def near_one(*counts: Array) -> tuple[Array, ...]:
    """Counts divided by a power of two near the highest count of their row; integers as they are.

    Products of weights such as 1e160 overflow, and those of 1e-160 vanish. A power of two cancels
    in a quotient of products, to the last digit. It does so in the derivative too, to which the
    power is a constant.
    """
    if not is_inexact(counts[0]):
        return counts
    library = namespace(*counts)
    highest = functools.reduce(
        library.maximum, (library.max(x, axis=-1, keepdims=True) for x in counts)
    )
    return tuple(x * (1 / power_near(highest)) for x in counts)


def shifted(x: Array) -> Array:
    """The entry before each one along the first axis; 0 before the first."""
    return jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])


SLACK = 2.0**-40


def slack(counts: Array) -> float:
    """Relative tolerance of a limit: sums of weights reach it only up to rounding."""
    return SLACK if is_inexact(counts) else 0.0


def first_least(costs: Array, rounding: Any = 0.0) -> Array:
    """The index of the lowest cost along the first axis; the first of those equal up to rounding.

    For example, 0.3 * 1 and 0.1 * 3 tie, as 3 * 1 and 1 * 3 do. Costs must not be negative.
    `rounding` bounds the rounding error of the sums in the costs.
    """
    library = namespace(costs)
    bound = library.min(costs, axis=0) * (1 + SLACK) + rounding
    return library.argmax(costs <= bound, axis=0)


def sums_at(index: Array, values: Array, n: int) -> Array:
    """`[..., n]`, the sum of the values `[..., items]` that have each index `[items]`, below n."""
    batch = values.shape[:-1]
    if namespace(index, values) is np:
        rows: Any = values.reshape(math.prod(batch), values.shape[-1])
        found: Any = np.array([np.bincount(index, row, n) for row in rows])
        return found.reshape(*batch, n)
    return jnp.zeros((*batch, n), values.dtype).at[..., index].add(values)


def sums_between(begins: HostArray, values: HostArray) -> HostArray:
    """`[..., runs]`, the sums of values `[..., n]` from each of `begins` to the next.

    `begins` is `[runs + 1]`, and its last entry is n.
    """
    sums: HostArray
    some = begins[1:] > begins[:-1]
    if some.all():
        sums = np.add.reduceat(values, begins[:-1], axis=-1, dtype=np.float64)
        return sums
    sums = np.zeros((*values.shape[:-1], len(some)))
    if some.any():
        sums[..., some] = np.add.reduceat(values, begins[:-1][some], axis=-1, dtype=np.float64)
    return sums


def running_between(begins: HostArray, values: HostArray) -> HostArray:
    """`[n]`, the running sum of values `[n]` from each of `begins` to the next.

    Each is that of its run alone: differences of a single running sum would keep a NaN, and have
    the rounding of other runs. Short runs of about one length are the rows of a matrix.
    """
    sums = np.empty_like(values)
    first, lengths = begins[:-1], np.diff(begins)
    for i in np.flatnonzero(lengths > _SHORT).tolist():
        run = slice(first[i], first[i] + lengths[i])
        np.cumsum(values[run], out=sums[run])
    width = 1
    while width <= _SHORT:
        alike = (lengths <= width) & (2 * lengths > width)
        places = first[alike][:, None] + np.arange(width)
        inside = np.arange(width) < lengths[alike][:, None]
        rows = np.where(inside, values.take(places, mode="clip"), 0)
        sums[places[inside]] = rows.cumsum(axis=1)[inside]
        width *= 2
    return sums


def root(x: Any) -> Array:
    """The square root of x from 0 on; its slope at 0 is 0, where that of `sqrt` is infinite."""
    library, some = namespace(x), x > 0
    return library.where(some, library.sqrt(library.where(some, x, 1)), 0 * x)


def without_nan(x: Array) -> Array:
    """x, and 0 where it is NaN: 0 times NaN, in reverse mode, would make all slopes NaN."""
    library = namespace(x)
    return library.where(library.isnan(x), 0.0, x)


def above_rounding(x: Array, rounding: Any) -> Array:
    """x, and 0 where it is at most `rounding`, that of a sum; NaN stays NaN."""
    return namespace(x, rounding).where(x > rounding, x, 0 * x)


def eigh(matrix: Array) -> tuple[Array, Array]:
    """The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, in columns.

    The slopes of JAX's own are NaN where two eigenvalues are equal, as those of models that do not
    differ. Here such eigenvectors do not turn towards each other.
    """
    of_library: Any = np.linalg.eigh if namespace(matrix) is np else _eigh
    values, vectors = of_library(matrix)
    return values, vectors


@jax.custom_jvp
def _eigh(matrix: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


@_eigh.defjvp
def _slopes_of_eigh(given: tuple[Array], slopes: tuple[Array]) -> tuple[Any, Any]:
    values, vectors = _eigh(*given)
    moved = vectors.T @ (slopes[0] + slopes[0].T) @ vectors / 2
    turned = divide(moved, values - values[:, None], 0.0)
    return (values, vectors), (jnp.diagonal(moved), vectors @ turned)


def within(x: Any, low: Any, high: Any) -> Array:
    """x, and the end of its range that it is beyond by rounding; the slopes stay those of x."""
    library = namespace(x)
    clipped: Array = library.clip(as_constant(x), low, high)
    if isinstance(x, np.ndarray | np.generic):
        return clipped
    return x + (clipped - as_constant(x))


def default_float() -> Any:
    """The dtype of results: float32, or float64 in x64 mode."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def namespace(*arrays: Any) -> Any:
    """`numpy` if all are NumPy's arrays or numbers, `jax.numpy` otherwise, also for traced ones."""
    for x in arrays:
        if not isinstance(x, (np.ndarray, np.generic, Dual)):
            return jnp
    return np


def as_constant(x: Any) -> Any:
    """x without a derivative."""
    return constant(x) if namespace(x) is np else lax.stop_gradient(x)


def is_inexact(leaf: Any) -> bool:
    """Whether an array can carry a derivative."""
    kind = getattr(leaf.dtype, "kind", "V")  # of NumPy's own dtypes the quickest answer
    return kind in "fc" or (kind == "V" and bool(jnp.issubdtype(leaf.dtype, jnp.inexact)))


def is_nan(array: Any) -> Any:
    """Which entries are NaN, of an array of any dtype."""
    if is_inexact(array):
        return namespace(array).isnan(array)
    return namespace(array).zeros(array.shape, bool)


def polynomial(coefficients: Sequence[Any], x: Array) -> Array:
    """The value at a JAX array x of the polynomial with these coefficients, constant term first."""
    value = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def over_batch(function: Callable[..., R], axes: int) -> Callable[..., R]:
    """`function` of one row, mapped over `axes` leading axes of a batch."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function


def over_rows(function: Callable[[T], R], rows: T, axes: int) -> R:
    """`function` of each row along `axes` leading axes of the arrays `[..., n]` of a pytree.

    An array that lacks an axis, or whose length along it is 1, is shared by all rows, not copied.
    """
    if not axes:
        return function(rows)
    arrays, tree = jax.tree.flatten(rows)
    shared = [x.ndim <= axes or x.shape[0] == 1 for x in arrays]
    arrays = [
        x.reshape(x.shape[-axes:]) if alone and x.ndim > axes else x
        for x, alone in zip(arrays, shared, strict=True)
    ]

    def of_rest(*arrays: Array) -> R:
        return over_rows(function, jax.tree.unflatten(tree, arrays), axes - 1)

    if all(shared):
        return jax.tree.map(lambda x: x.reshape(1, *x.shape), of_rest(*arrays))
    in_axes = [None if alone else 0 for alone in shared]
    return jax.vmap(of_rest, in_axes=in_axes)(*arrays)


def at_each(function: Callable[[T], Array], limits: T) -> Any:
    """`function` of limits `[]` or `[k]`, a pytree; JAX programs compute one limit at a time.

    Memory therefore does not grow with k. What the function caches, as a cached property does, must
    be computed before this call, since tracers of the loop must not outlive it.
    """
    arrays = jax.tree.leaves(limits)
    if namespace(*arrays) is np or not any(np.ndim(x) for x in arrays):
        return function(limits)
    k = np.broadcast_shapes(*map(np.shape, arrays))
    return lax.map(function, jax.tree.map(lambda x: jnp.broadcast_to(x, k), limits))
