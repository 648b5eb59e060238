"""Running sums, counts and extremes along the last axis, in the form that suits each backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.host import on_gpu, on_tpu
from jaxmetrics._base.numerics import is_inexact, namespace, next_power_of_two
from jaxmetrics._base.types import Array

_WIDTH = 1 << 12  # of a block; 10,000,000 equal numbers in one block would sum to 10 right digits


def running_total(x: Array) -> Array:
    """The cumulative sum along the last axis, which never decreases. Integers are added exactly.

    An entry of 0 leaves the sum exactly as it was, so that equal points of a curve stay equal. On a
    CPU, floats are added in turn within a block, and then the sum before the block is added: NumPy
    and XLA round alike.
    """
    if not is_inexact(x):
        return running_count(x)
    if namespace(x) is np:
        return _in_blocks_on_host(x)
    return lax.platform_dependent(x, cpu=_in_blocks_of_loops, default=_in_tree)


def _in_blocks_on_host(x: Any) -> Any:
    sums = np.empty(x.shape, x.dtype)
    for begin in range(0, x.shape[-1], _WIDTH):
        block = sums[..., begin : begin + _WIDTH]
        np.cumsum(x[..., begin : begin + _WIDTH], axis=-1, out=block)
        if begin:
            block += sums[..., begin - 1 : begin]
    return sums


def _in_blocks_of_loops(x: Array) -> Array:
    *batch, n = x.shape
    if n <= _WIDTH:
        return _in_loop(jnp.add, x)

    def of_block(before: Array, entries: Array) -> tuple[Array, Array]:
        upto = before + jnp.moveaxis(_in_loop(jnp.add, jnp.moveaxis(entries, 0, -1)), -1, 0)
        return upto[-1], upto

    entries = jnp.moveaxis(jnp.pad(x, [*[(0, 0)] * len(batch), (0, -n % _WIDTH)]), -1, 0)
    blocks = entries.reshape(-1, _WIDTH, *batch)
    _, sums = varying.scan(of_block, jnp.zeros(batch, x.dtype), blocks)
    return jnp.moveaxis(sums.reshape(-1, *batch)[:n], 0, -1)


def _in_tree(x: Array) -> Array:
    """`cumulated`, corrected: XLA adds in a tree, whose rounding may change the sum at a 0."""
    total = cumulated(x)
    fixed = lax.stop_gradient(total)
    settled = running_maximum(jnp.where(x > 0, fixed, 0))
    return total + (settled - fixed)


def running_count(x: Array) -> Array:
    """The cumulative sum of whole numbers along the last axis."""
    library = namespace(x)
    if library is np:
        return library.cumsum(x, axis=-1)
    return lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.add),
        default=functools.partial(jnp.cumsum, axis=-1),
    )


def running_highest(x: Array, *, reverse: bool = False) -> Array:
    """The highest entry so far along the last axis, or from its end; entries must be 0 or more.

    Of JAX's arrays, by a loop on CPUs. `running_maximum` is of any floats, and of NumPy's arrays.
    """
    return lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.maximum, reverse=reverse),
        tpu=lambda x: _scanned(jnp.maximum, x, 0, reverse=reverse),
        default=lambda x: lax.cummax(x, axis=x.ndim - 1, reverse=reverse),
    )


def runs(begins: Any) -> tuple[Any, Any]:
    """`[m]`: where the run of each entry begins, and where the next run begins.

    `begins` `[m]` is True at the first entry of each run.
    """
    if namespace(begins) is np:
        ends = np.append(np.flatnonzero(begins), len(begins))
        sizes = np.diff(ends)
        return np.repeat(ends[:-1], sizes), np.repeat(ends[1:], sizes)
    n, place = len(begins), jnp.arange(len(begins), dtype=jnp.int32)
    first = running_highest(jnp.where(begins, place, 0))
    to_end = jnp.where(jnp.append(begins[1:], True), n - 1 - place, 0)
    return first, n - running_highest(to_end, reverse=True)


def running_lowest(x: Array) -> Array:
    """The lowest entry so far along the last axis, of floats.

    Of JAX's arrays, by a loop on CPUs. `running_minimum` is of NumPy's arrays, too.
    """
    return lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.minimum, first=np.inf),
        default=running_minimum,
    )


def _in_loop(
    operation: Callable[[Array, Array], Array],
    x: Array,
    first: float = 0,
    *,
    reverse: bool = False,
) -> Array:
    """The running result along the last axis, in an eighth of the time of XLA's own on the CPU."""

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


def others(counts: Array) -> Array:
    """For each entry along the last axis, the sum of all others, without cancellation."""
    library = namespace(counts)
    none = library.zeros_like(counts[..., :1])
    before = library.concatenate([none, running_total(counts[..., :-1])], axis=-1)
    behind = library.flip(running_total(library.flip(counts[..., 1:], axis=-1)), axis=-1)
    return before + library.concatenate([behind, none], axis=-1)


def running_minimum(x: Array) -> Array:
    """The smallest entry so far along the last axis, of floats of either library."""
    library = namespace(x)
    if library is np:
        return library.minimum.accumulate(x, axis=-1)
    if on_tpu():
        return _scanned(jnp.minimum, x, jnp.inf)
    return lax.cummin(x, axis=x.ndim - 1)


def running_maximum(x: Array) -> Array:
    """The largest entry so far along the last axis, of floats of either library."""
    library = namespace(x)
    if library is np:
        return library.maximum.accumulate(x, axis=-1)
    if on_tpu():
        return _scanned(jnp.maximum, x, -jnp.inf)
    if x.dtype == jnp.float64 and on_gpu():
        # XLA for GPUs joins scans of floats with sums, and fails: this is a scan of integers. A NaN
        # with a sign bit would become the lowest of them, so every NaN gets the bits without one.
        integers = _as_integers(jnp.where(jnp.isnan(x), jnp.nan, x))
        return _as_floats(lax.cummax(integers, axis=x.ndim - 1))
    return lax.cummax(x, axis=x.ndim - 1)


def _as_integers(x: Array) -> Array:
    """Integers in the order of the float64 x, negative where x is. The map is its own inverse."""
    bits = x.view(jnp.int64)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(jnp.int64).max, bits)


def _as_floats(integers: Array) -> Array:
    return _as_integers(integers.view(jnp.float64)).view(jnp.float64)


def cumulated(x: Array, *, reverse: bool = False) -> Array:
    """`jax.lax.cumsum` of floats along the last axis, as each backend compiles it."""
    if namespace(x) is np:
        step = -1 if reverse else 1
        return x[..., ::step].cumsum(axis=-1)[..., ::step]
    if on_tpu():
        return _scanned(jnp.add, x, 0.0, reverse=reverse)
    sums = lax.cumsum(x, axis=x.ndim - 1, reverse=reverse)
    if on_gpu():
        # Where only the last sum is used, XLA for GPUs would compile the transpose as a window over
        # all items for each item.
        sums = lax.optimization_barrier(sums)
    return sums


def sums_from_the_end(x: Array) -> Array:
    """The sum of each entry and all after it along the last axis, of floats."""
    return lax.platform_dependent(
        x,
        cpu=functools.partial(_in_loop, jnp.add, reverse=True),
        default=functools.partial(cumulated, reverse=True),
    )


_BLOCK = 256


def _scanned(
    combine: Callable[[Array, Array], Array],
    x: Array,
    neutral: float,
    *,
    reverse: bool = False,
) -> Array:
    """The scan by doubling steps within blocks, and then over the ends of the blocks; for TPUs.

    There XLA's own window reductions of 100,000 entries take long to compile: 5 seconds for sums of
    32-bit floats, 7 to 35 for maxima of 32-bit integers, and minutes for sums of 64-bit floats.
    This takes a fifth of a second.

    The steps are a loop, along an axis that is not laid out in vectors. Written out one after the
    other, they took twice as long to compile.
    """
    if reverse:
        return jnp.flip(_scanned(combine, jnp.flip(x, axis=-1), neutral), axis=-1)
    *batch, n = x.shape
    width = min(_BLOCK, next_power_of_two(n))
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
