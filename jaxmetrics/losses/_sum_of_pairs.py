"""The sum over all pairs of a function of their difference, with its slopes from the same pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base.host import on_cpu
from jaxmetrics._base.types import Array
from jaxmetrics.losses._kernels import Kernel
from jaxmetrics.losses._pair_sums import pair_sums, pair_sums_of_rows


def sum_of_pairs(kernel: Kernel, places: Array, targets: Array, sources: Array) -> Array:
    """The sum over all pairs of `targets[i] sources[j] f(places[j] - places[i])`.

    Arrays are those of `pair_sums`, without lists.
    """
    # On a CPU moving the states takes most of the time, and the sum and its slopes share the moves.
    # A GPU would move more bytes, and those of a kernel with one side share no direction.
    if on_cpu() and all(any(map(any, side)) for side in kernel):
        return _in_one_pass(kernel, places, targets, sources)
    return jnp.sum(targets * pair_sums(kernel, places, sources, None))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _in_one_pass(kernel: Kernel, places: Array, targets: Array, sources: Array) -> Array:
    return jnp.sum(targets * pair_sums(kernel, places, sources, None))


@partial(_in_one_pass.defjvp, symbolic_zeros=True)
def _slopes_of_sum(kernel: Kernel, primals: Any, tangents: Any) -> tuple[Array, Array]:
    places, targets, sources = primals
    sums, at_targets, at_sources = _with_slopes(kernel, places, targets, sources)
    value = jnp.sum(targets * sums)
    tangent, (of_places, of_targets, of_sources) = jnp.zeros_like(value), tangents
    if not isinstance(of_places, SymbolicZero):
        tangent += jnp.sum((sources * at_sources - targets * at_targets) * of_places)
    if not isinstance(of_targets, SymbolicZero):
        tangent += jnp.sum(sums * of_targets)
    if not isinstance(of_sources, SymbolicZero):
        tangent += jnp.sum(pair_sums(kernel.mirrored(), places, targets, None) * of_sources)
    return value, tangent


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _with_slopes(kernel: Kernel, places: Array, targets: Array, sources: Array) -> Array:
    """`[3, n]`: the sums over sources of f and of f', and those over targets of f', mirrored."""
    slope = kernel.derivative()
    sums = pair_sums_of_rows(((kernel, slope), (slope.mirrored(),)))
    return sums(places[None], jnp.stack([sources, targets])[None], None)[0]


@_with_slopes.defjvp
def _derivatives(kernel: Kernel, primals: Any, tangents: Any) -> tuple[Array, Array]:
    slope = kernel.derivative()

    def one_by_one(places: Array, targets: Array, sources: Array) -> Array:
        given = (kernel, sources), (slope, sources), (slope.mirrored(), targets)
        return jnp.stack([pair_sums(f, places, x, None) for f, x in given])

    return _with_slopes(kernel, *primals), jax.jvp(one_by_one, primals, tangents)[1]
