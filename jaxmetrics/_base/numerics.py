"""Every 0/0 rule, and the double precision in which results are computed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import batching, mlir

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


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """64-bit types at hand, and JAX's ordinary promotion, whatever the caller's modes are."""
    with jax.enable_x64(True), ordinary_promotion():
        yield


@contextlib.contextmanager
def ordinary_promotion() -> Iterator[None]:
    """JAX's ordinary promotion of dtypes and ranks, whatever the caller's modes are."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arrays, in `double_precision` under every transformation.

    JAX batches, transposes and lowers a program after it was traced, outside of any context, and
    would mix 32 and 64 bits. So the program is one primitive, which is batched and lowered in the
    context, and its derivative is a rule of its own, which is again such a program and can be
    differentiated again. Inputs that are not floating have no derivative.
    """

    def run(*leaves: Any) -> Any:
        with double_precision():
            program, shapes = jax.make_jaxpr(function, return_shape=True)(*leaves)
        results = _bind(leaves, program)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    def forward(*leaves: Any) -> tuple[Any, tuple[Any, ...]]:
        return rule(*leaves), leaves

    def backward(leaves: tuple[Any, ...], cotangents: Any) -> tuple[Any, ...]:
        floating = [i for i, leaf in enumerate(leaves) if is_inexact(leaf)]
        flat, tree = jax.tree.flatten(cotangents)

        def pull_back(*arrays: Any) -> Any:
            primals, flat = list(arrays[: len(leaves)]), arrays[len(leaves) :]

            def of_floating(*values: Any) -> Any:
                for i, value in zip(floating, values, strict=True):
                    primals[i] = value
                return function(*primals)

            return jax.vjp(of_floating, *(primals[i] for i in floating))[1](
                jax.tree.unflatten(tree, flat)
            )

        gradients: list[Any] = [None] * len(leaves)
        for i, gradient in zip(floating, in_double(pull_back)(*leaves, *flat), strict=True):
            gradients[i] = gradient
        return tuple(gradients)

    rule = jax.custom_vjp(run)
    rule.defvjp(forward, backward)
    return rule


def double_program(*static: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Makes a function of pytrees one compiled program, `in_double`.

    Arguments at the positions `static` are constants of the program. All are positional.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        def run(*arguments: Any) -> Any:
            constants = {i: arguments[i] for i in static}
            varied = [x for i, x in enumerate(arguments) if i not in constants]
            leaves, tree = jax.tree.flatten(varied)

            def compute(*leaves: Any) -> Any:
                rest = iter(jax.tree.unflatten(tree, leaves))
                return function(
                    *(constants[i] if i in constants else next(rest) for i in range(len(arguments)))
                )

            return in_double(compute)(*leaves)

        run.__name__ = function.__name__  # by which profilers and logs call the program
        compiled = jax.jit(run, static_argnums=static)

        @functools.wraps(function)
        def call(*arguments: Any) -> R:
            with double_precision():
                result: R = compiled(*arguments)
            return result

        return call

    return decorate


@dataclass(frozen=True, eq=False)
class _Program:
    """A traced program, which JAX is not to look into."""

    jaxpr: Any

    def __call__(self, *arrays: Any) -> Any:
        return jax.core.eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *arrays)


def _bind(arrays: Sequence[Any], jaxpr: Any) -> list[Any]:
    results: list[Any] = _primitive().bind(*arrays, program=_Program(jaxpr))
    return results


def _run(*arrays: Any, program: _Program) -> Any:
    with double_precision():
        return jax.jit(program)(*arrays)


def _results(*_: Any, program: _Program) -> Any:
    return program.jaxpr.out_avals


def _lower(context: Any, *arrays: Any, program: _Program) -> Any:
    with double_precision():
        return mlir.lower_fun(program, multiple_results=True)(context, *arrays)


def _batch(arrays: Any, axes: Any, *, program: _Program) -> Any:
    with double_precision():
        batched = jax.make_jaxpr(jax.vmap(program, in_axes=tuple(axes)))(*arrays)
    results = _bind(arrays, batched)
    return results, [0] * len(results)


@functools.cache
def _primitive() -> Any:
    from jax.extend.core import Primitive  # here, as it takes longer than all else to import

    primitive = Primitive("double_precision")
    primitive.multiple_results = True
    primitive.def_impl(_run)
    primitive.def_abstract_eval(_results)
    mlir.register_lowering(primitive, _lower)
    batching.primitive_batchers[primitive] = _batch
    return primitive
