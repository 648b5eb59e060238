"""Double precision under every transformation."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base.numerics import is_inexact
from jaxmetrics._base.primitives import linear, opaque

R = TypeVar("R")


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """64-bit types, and JAX's ordinary promotion, whatever the caller's modes are."""
    with jax.enable_x64(True), ordinary_promotion():
        yield


@contextlib.contextmanager
def ordinary_promotion() -> Iterator[None]:
    """JAX's ordinary promotion of dtypes and ranks, whatever the caller's modes are."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arrays, in `double_precision` under every transformation.

    JAX batches, transposes and lowers a program after it has traced it, outside of any context, and
    would mix 32 and 64 bits. The program is therefore one primitive, which is batched and lowered
    in the context. The rule for its derivative makes another such program. The result can be
    differentiated in forward and reverse mode, any number of times. Inputs that are not floating
    have no derivative.
    """
    rule = jax.custom_jvp(opaque(function, double_precision))

    @functools.partial(rule.defjvp, symbolic_zeros=True)
    def _(leaves: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        moving = [i for i, x in enumerate(tangents) if not isinstance(x, SymbolicZero)]
        results = rule(*leaves)

        def of_moving(leaves: Any) -> tuple[Callable[..., list[Any]], list[Any]]:
            """The floating results as a function of the inputs with a tangent, and these inputs."""

            def run(*values: Any) -> list[Any]:
                given = list(leaves)
                for i, value in zip(moving, values, strict=True):
                    given[i] = value
                return [x for x in jax.tree.leaves(function(*given)) if is_inexact(x)]

            return run, [leaves[i] for i in moving]

        def pushed(leaves: Any, tangents: Any) -> Any:
            def push(*arrays: Any) -> Any:
                function, values = of_moving(arrays[: len(leaves)])
                return jax.jvp(function, values, list(arrays[len(leaves) :]))[1]

            return in_double(push)(*leaves, *tangents)

        def pulled(leaves: Any, cotangents: Any) -> Any:
            def pull(*arrays: Any) -> Any:
                function, values = of_moving(arrays[: len(leaves)])
                return jax.vjp(function, *values)[1](list(arrays[len(leaves) :]))

            return in_double(pull)(*leaves, *cotangents)

        flat, tree = jax.tree.flatten(results)
        like = [x for x in flat if is_inexact(x)]
        floating = iter(linear(pushed, pulled, leaves, [tangents[i] for i in moving], like))
        slopes = [
            next(floating) if is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0) for x in flat
        ]
        return results, jax.tree.unflatten(tree, slopes)

    return rule


def double_program(*static: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator: makes a function of pytrees one compiled program, `in_double`.

    The arguments named in `static` are compile-time constants. Pass all arguments by position.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        names = list(inspect.signature(function).parameters)
        positions = tuple(names.index(name) for name in static)

        def run(*arguments: Any) -> Any:
            constants = {i: arguments[i] for i in positions}
            varied = [x for i, x in enumerate(arguments) if i not in constants]
            leaves, tree = jax.tree.flatten(varied)

            def compute(*leaves: Any) -> Any:
                rest = iter(jax.tree.unflatten(tree, leaves))
                return function(
                    *(constants[i] if i in constants else next(rest) for i in range(len(arguments)))
                )

            return in_double(compute)(*leaves)

        run.__name__ = function.__name__  # profilers and logs show this name
        compiled = jax.jit(run, static_argnums=positions)

        @functools.wraps(function)
        def call(*arguments: Any) -> R:
            with double_precision():
                result: R = compiled(*arguments)
            return result

        return call

    return decorate
