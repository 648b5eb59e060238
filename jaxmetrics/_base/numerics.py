"""Rates and running sums of counts, every rule for 0 / 0, and questions about dtypes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.host import on_gpu, on_tpu
from jaxmetrics._base.types import Array, HostArray

R = TypeVar("R")
T = TypeVar("T")


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
        found: Array = quotient
        return found
    numerator, denominator = (
        x if is_inexact(x) else x.astype(jnp.float64) for x in (numerator, denominator)
    )
    # The inner where keeps a division by 0 out of the gradient, where NaN times 0 would be NaN.
    return jnp.where(defined, numerator / jnp.where(defined, denominator, 1), otherwise)


def rates(counts: Array, total: Array) -> Array:
    """`counts / total` correctly rounded, for counts that are not negative; NaN where total is 0.

    XLA replaces a division by a broadcast number with a product with its reciprocal. But
    49 * (1 / 49) is not 1, and a rate could exceed the limit that it equals. XLA cannot see that
    this denominator is the same everywhere, and divides.
    """
    if namespace(counts, total) is jnp:
        total = jnp.where(counts >= 0, total, counts)
    quotients: Array = counts / total
    return quotients


def running_total(x: Array) -> Array:
    """The cumulative sum along the last axis, which never decreases. Integers are added exactly.

    XLA adds floats in a tree, and its rounding may change the sum at an entry that is 0. Then two
    equal points of a curve would differ. So an entry that is 0 keeps the sum before it.
    """
    library = namespace(x)
    if library is np:
        in_turn: Array = library.cumsum(x, axis=-1)  # in which 0 changes no sum
        return in_turn
    if not is_inexact(x):
        return running_count(x)
    total = cumulated(x)
    fixed = lax.stop_gradient(total)
    settled = running_maximum(jnp.where(x > 0, fixed, 0))
    return total + (settled - fixed)


def running_count(x: Array) -> Array:
    """The cumulative sum of whole numbers along the last axis."""
    library = namespace(x)
    if library is np:
        counts: Array = library.cumsum(x, axis=-1)
        return counts
    found: Array = lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.add),
        default=functools.partial(jnp.cumsum, axis=-1),
    )
    return found


def running_highest(x: Array, *, reverse: bool = False) -> Array:
    """The highest so far along the last axis, or from its end, of numbers that are not negative."""
    found: Array = lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.maximum, reverse=reverse),
        default=lambda x: lax.cummax(x, axis=x.ndim - 1, reverse=reverse),
    )
    return found


def running_lowest(x: Array) -> Array:
    """The lowest so far along the last axis, of floats."""
    found: Array = lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.minimum, first=np.inf),
        default=running_minimum,
    )
    return found


def _in_loop(
    operation: Callable[[Array, Array], Array],
    x: Array,
    first: float = 0,
    *,
    reverse: bool = False,
) -> Array:
    """The running result along the last axis, in an eighth of the time of XLA's on the CPU."""

    def step(so_far: Array, entry: Array) -> tuple[Array, Array]:
        result = operation(so_far, entry)
        return result, result

    entries = jnp.moveaxis(x, -1, 0)
    start = jnp.full(x.shape[:-1], first, x.dtype)
    _, results = varying.scan(step, start, entries, unroll=8, reverse=reverse)
    return jnp.moveaxis(results, 0, -1)


def running_sum(x: Array) -> Array:
    """`running_total` as float64."""
    return running_total(x).astype(np.float64)


def largest_weight(dtype: Any) -> float:
    """What the highest weight of a row must not exceed, nor its reciprocal: sums and products of
    such weights do not overflow, and none that matters is subnormal, which processors take for 0.
    """
    return 1e28 if np.dtype(dtype).itemsize < 8 else 1e288


def power_near(highest: Array) -> Array:
    """A power of two near a number, and 1 for 0; a constant to derivatives."""
    library = namespace(highest)
    if library is np:
        found: Array = library.where(highest > 0, np.ldexp(0.5, library.frexp(highest)[1]), 1)
        return found
    half = lax.stop_gradient(highest) / 2
    if on_tpu():  # which reduces no 64-bit floats, whose exponents are those of 32 bits there
        power = lax.reduce_precision(half.astype(jnp.float32), exponent_bits=8, mantissa_bits=0)
        power = power.astype(half.dtype)
    else:
        power = lax.reduce_precision(half, exponent_bits=11, mantissa_bits=0)
    return jnp.where(power > 0, power, 1)


def next_above(x: Any) -> Any:
    """The next number of a floating dtype above a finite one that is not subnormal; 0 for 0.

    XLA for TPUs does not compile `nextafter` of 64-bit floats.

    Reference: S. M. Rump, P. Zimmermann, S. Boldo and G. Melquiond, "Computing predecessor and
    successor in rounding to nearest", BIT Numerical Mathematics 49, 2009.
    """
    half = 0.5 * np.float64(jnp.finfo(x.dtype).eps)  # NumPy's finfo has no bfloat16
    return x + abs(x) * (half * (1 + 2 * half)).astype(x.dtype)


def near_one(*counts: Array) -> tuple[Array, ...]:
    """Counts divided by the power of two near the highest of a row's; integers as they are.

    Products of weights such as 1e160 overflow, and those of 1e-160 vanish. A quotient of products
    keeps its value by this, to the last digit. Its derivative too: the power is a constant to it.
    """
    if not is_inexact(counts[0]):
        return counts
    library = namespace(*counts)
    highest = functools.reduce(
        library.maximum, (library.max(x, axis=-1, keepdims=True) for x in counts)
    )
    return tuple(x * (1 / power_near(highest)) for x in counts)


def shifted(x: Array) -> Array:
    """What is before each entry of the first axis: 0, and all but the last."""
    return jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])


def others(counts: Array) -> Array:
    """For each entry along the last axis, the sum of all others; no difference is rounded to 0."""
    none = jnp.zeros_like(counts[..., :1])
    before = jnp.concatenate([none, running_total(counts[..., :-1])], axis=-1)
    behind = jnp.flip(running_total(jnp.flip(counts[..., 1:], axis=-1)), axis=-1)
    return before + jnp.concatenate([behind, none], axis=-1)


SLACK = 2.0**-40


def slack(counts: Array) -> float:
    """Relative tolerance of a limit: sums of weights reach it only up to rounding."""
    return SLACK if is_inexact(counts) else 0.0


def running_minimum(x: Array) -> Array:
    """The smallest entry so far along the last axis."""
    library = namespace(x)
    if library is np:
        lowest: Array = library.minimum.accumulate(x, axis=-1)
        return lowest
    if _in_blocks(x):
        return _scanned(jnp.minimum, x, jnp.inf)
    return lax.cummin(x, axis=x.ndim - 1)


def running_maximum(x: Array) -> Array:
    """The largest entry so far along the last axis."""
    library = namespace(x)
    if library is np:
        highest: Array = library.maximum.accumulate(x, axis=-1)
        return highest
    if _in_blocks(x):
        return _scanned(jnp.maximum, x, -jnp.inf)
    if x.dtype == jnp.float64 and on_gpu():
        # XLA for GPUs joins scans of floats with sums, and fails. A NaN may have a sign.
        integers = _as_integers(jnp.where(jnp.isnan(x), jnp.nan, x))
        return _as_floats(lax.cummax(integers, axis=x.ndim - 1))
    return lax.cummax(x, axis=x.ndim - 1)


def _as_integers(x: Array) -> Array:
    """Integers in the order of the float64 x; those of negative numbers are less than 0."""
    bits = x.view(jnp.int64)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(jnp.int64).max, bits)


def _as_floats(integers: Array) -> Array:
    return _as_integers(integers.view(jnp.float64)).view(jnp.float64)


def sums_at(index: Array, values: Array, n: int) -> Array:
    """`[..., n]`, the sums of values `[..., items]` at each index, which `[items]` are of."""
    batch = values.shape[:-1]
    if namespace(index, values) is np:
        rows: Any = values.reshape(math.prod(batch), values.shape[-1])
        found: Any = np.array([np.bincount(index, row, n) for row in rows])
        of_host: Array = found.reshape(*batch, n)
        return of_host
    return jnp.zeros((*batch, n), values.dtype).at[..., index].add(values)


def sums_between(begins: HostArray, values: HostArray) -> HostArray:
    """`[..., runs]`, the sums of values `[..., n]` from each of `begins` to the next."""
    sums: HostArray
    some = begins[1:] > begins[:-1]
    if some.all():
        sums = np.add.reduceat(values, begins[:-1], axis=-1, dtype=np.float64)
        return sums
    sums = np.zeros((*values.shape[:-1], len(some)))
    if some.any():
        sums[..., some] = np.add.reduceat(values, begins[:-1][some], axis=-1, dtype=np.float64)
    return sums


def cumulated(x: Array) -> Array:
    """`jax.numpy.cumsum` of floats along the last axis, as each backend compiles it."""
    library = namespace(x)
    if library is jnp and _in_blocks(x):
        return _scanned(jnp.add, x, 0.0)
    sums: Array = library.cumsum(x, axis=-1)
    if library is jnp and on_gpu():
        # XLA for GPUs makes the transpose of a sum whose last entry alone is used a window of all
        # items at each of them.
        sums = lax.optimization_barrier(sums)
    return sums


def sums_from_the_end(x: Array) -> Array:
    """The sum of each entry and all after it along the last axis, of floats."""
    found: Array = lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.add, reverse=True),
        default=lambda x: jnp.flip(cumulated(jnp.flip(x, axis=-1)), axis=-1),
    )
    return found


def _in_blocks(x: Array) -> bool:
    """Whether XLA has no usable scan of this dtype.

    A TPU emulates 64-bit floats, and XLA's window reduction of 100,000 of them was not compiled
    after minutes. The same in blocks takes seconds.
    """
    return on_tpu() and x.dtype == jnp.float64


_BLOCK = 256


def _scanned(combine: Callable[[Array, Array], Array], x: Array, neutral: float) -> Array:
    """The scan by doubling steps within blocks, and then over the ends of the blocks.

    Steps are a loop, along an axis that is no vector's: in turn they took twice as long to compile.
    """
    *batch, n = x.shape
    width = min(_BLOCK, 1 << (n - 1).bit_length()) if n else 1
    none = [(0, 0)] * len(batch)
    padded = jnp.pad(x, [*none, (0, -n % width)], constant_values=neutral)
    blocks = jnp.moveaxis(padded.reshape(*batch, -(-n // width), width), -1, 0)
    before_all = jnp.full_like(blocks, neutral)

    def doubled(i: Array, blocks: Array) -> Array:
        entries, begin = jnp.concatenate([before_all, blocks]), width - jnp.left_shift(1, i)
        return combine(blocks, lax.dynamic_slice_in_dim(entries, begin, width))

    blocks = varying.fori_loop(0, width.bit_length() - 1, doubled, blocks)
    if blocks.shape[-1] > 1:
        ends = _scanned(combine, blocks[-1], neutral)
        blocks = combine(blocks, jnp.pad(ends[..., :-1], [*none, (1, 0)], constant_values=neutral))
    return jnp.moveaxis(blocks, 0, -1).reshape(padded.shape)[..., :n]


def default_float() -> Any:
    """The dtype of results: float32, or float64 in x64 mode."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def namespace(*arrays: Any) -> Any:
    """`numpy` if all are NumPy's arrays or numbers, `jax.numpy` otherwise, also for traced ones."""
    for x in arrays:
        if not isinstance(x, (np.ndarray, np.generic)):
            return jnp
    return np


def as_constant(x: Any) -> Any:
    """x without a derivative; NumPy's have none."""
    return x if namespace(x) is np else lax.stop_gradient(x)


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
    """Its value at JAX's x; the coefficients ascend."""
    value = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def over_batch(function: Callable[..., R], axes: int) -> Callable[..., R]:
    """`function` of one row, mapped over so many leading axes of a batch."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function


def over_rows(function: Callable[[T], R], rows: T, axes: int) -> R:
    """`function` of each row along so many leading axes of the arrays `[..., n]` of a pytree.

    Arrays that lack an axis, or have 1 of it, are the same for all: no copies are made of them.
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
        one: R = jax.tree.map(lambda x: x.reshape(1, *x.shape), of_rest(*arrays))
        return one
    in_axes = [None if alone else 0 for alone in shared]
    return jax.vmap(of_rest, in_axes=in_axes)(*arrays)


def at_each(function: Callable[[T], Array], limits: T) -> Any:
    """`function` of limits `[]` or `[k]`, a pytree; programs take one at a time.

    So memory does not grow with k. What a function keeps for later, as a cached property does, it
    must have before.
    """
    arrays = jax.tree.leaves(limits)
    if namespace(*arrays) is np or not any(np.ndim(x) for x in arrays):
        return function(limits)
    k = np.broadcast_shapes(*map(np.shape, arrays))
    return lax.map(function, jax.tree.map(lambda x: jnp.broadcast_to(x, k), limits))
