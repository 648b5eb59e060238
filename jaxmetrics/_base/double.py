"""Double precision under every transformation."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base.host import to_jax, to_program
from jaxmetrics._base.numerics import default_float, is_inexact, namespace
from jaxmetrics._base.primitives import linear, opaque
from jaxmetrics._base.types import Array

R = TypeVar("R")


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """64-bit types, ordinary promotion and NaN as a value, whatever the caller's modes are."""
    try:
        with jax.enable_x64(True), ordinary_promotion(), nan_as_value():
            yield
    except jax.errors.JaxRuntimeError as error:
        # Outside of jit, vmap and jvp pass NumPy's arrays on in 64 bits, but say that they have 32.
        if "InputMismatch" not in str(error):
            raise
        raise TypeError(
            "vmap and jvp outside of jit cannot take NumPy's 64-bit arrays while x64 mode is off: "
            "write jax.jit(jax.vmap(...)), or jax.numpy.asarray(...) around the arrays"
        ) from None


def in_native_floats(function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` of arrays in float64; of JAX's arrays on a TPU, in float32.

    TPUs emulate float64: the program of a quantile then has 16,000 instructions in place of 700.
    """
    if namespace(*arrays) is np:
        return function(*arrays)

    def single(*arrays: Array) -> Array:
        return function(*(x.astype(jnp.float32) for x in arrays)).astype(jnp.float64)

    return lax.platform_dependent(*arrays, tpu=single, default=function)


@contextlib.contextmanager
def ordinary_promotion() -> Iterator[None]:
    """JAX's ordinary promotion of dtypes and ranks, whatever the caller's modes are."""
    modes = jax.config.jax_numpy_dtype_promotion, jax.config.jax_numpy_rank_promotion  # type: ignore[attr-defined]
    if modes == ("standard", "allow"):
        yield  # the usual case: entering JAX's contexts takes longer than this check
        return
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@contextlib.contextmanager
def nan_as_value() -> Iterator[None]:
    """Turns off `jax_debug_nans` and `jax_debug_infs`, which raise an error at NaN and infinity.

    Here they are values: that of a resample that lacks a class is NaN, while the interval is
    finite, and the lowest bin begins at -inf.
    """
    if not (jax.config.jax_debug_nans or jax.config.jax_debug_infs):  # type: ignore[attr-defined]
        yield
        return
    with jax.debug_nans(False), jax.debug_infs(False):
        yield


def in_double(function: Callable[..., Any], *, one_by_one: bool = False) -> Callable[..., Any]:
    """`function` of pytrees of arrays, in `double_precision` under every transformation.

    JAX batches, transposes and lowers a program after it has traced it, outside of any context, and
    would mix 32 and 64 bits. The program is therefore one primitive, which is batched and lowered
    in the context. The rule for its derivative makes another such program. The result can be
    differentiated in forward and reverse mode, any number of times. Inputs that are not floating
    have no derivative. `one_by_one` is that of `opaque`.
    """
    rule = jax.custom_jvp(opaque(function, double_precision, one_by_one=one_by_one))
    program = functools.partial(in_double, one_by_one=one_by_one)

    @functools.partial(rule.defjvp, symbolic_zeros=True)
    def _(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        results = rule(*arguments)
        leaves, tree = jax.tree.flatten(arguments)
        given = enumerate(jax.tree.leaves(tangents))
        moving = {i: x for i, x in given if not isinstance(x, SymbolicZero)}
        places = tuple(moving)  # programs outlive the trace, and must not keep its tangents

        def of_moving(leaves: list[Any]) -> tuple[Callable[..., list[Any]], dict[int, Any]]:
            """The floating results as a function of the leaves with a tangent, and those leaves."""

            def floating(values: dict[int, Any]) -> list[Any]:
                all_leaves = [values.get(i, x) for i, x in enumerate(leaves)]
                return _floating(function(*jax.tree.unflatten(tree, all_leaves)))

            return floating, {i: leaves[i] for i in places}

        @program
        def pushed_forward(leaves: list[Any], tangents: dict[int, Any]) -> list[Any]:
            floating, at = of_moving(leaves)
            return jax.jvp(floating, (at,), (tangents,))[1]

        @program
        def pulled_back(leaves: list[Any], cotangents: list[Any]) -> dict[int, Any]:
            floating, at = of_moving(leaves)
            return jax.vjp(floating, at)[1](cotangents)[0]

        slopes = iter(linear(pushed_forward, pulled_back, leaves, moving, _floating(results)))
        return results, jax.tree.map(
            lambda x: next(slopes) if is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0),
            results,
        )

    return rule


def _floating(tree: Any) -> list[Any]:
    return [x for x in jax.tree.leaves(tree) if is_inexact(x)]


def double_program(
    *static: str, options: Callable[[], dict[str, Any] | None] = lambda: None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator: makes a function of pytrees one compiled program, `in_double`.

    The arguments named in `static` are compile-time constants. Pass all arguments by position.
    `options()` returns XLA's compiler options. It is called at the first call of the function,
    because an import must not start a device.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        names = list(inspect.signature(function).parameters)
        positions = tuple(names.index(name) for name in static)

        def run(*arguments: Any) -> Any:
            constants = {i: arguments[i] for i in positions}
            n = len(arguments)  # `compute` outlives the trace, and must not keep its arguments

            def compute(*varied: Any) -> Any:
                rest = iter(varied)
                return function(*(constants[i] if i in constants else next(rest) for i in range(n)))

            return in_double(compute)(*(x for i, x in enumerate(arguments) if i not in constants))

        run.__name__ = function.__name__  # profilers and logs show this name

        @functools.cache
        def compiled() -> Any:
            return jax.jit(run, static_argnums=positions, compiler_options=options())

        @functools.wraps(function)
        def call(*arguments: Any) -> R:
            with double_precision():
                return compiled()(*to_program(arguments))

        return call

    return decorate


def library_program(*static: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator: NumPy runs the function if all arrays are NumPy's; else a `double_program` does.

    The function is written for both array libraries. NumPy computes in float64, and nothing is
    compiled for its arrays.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        compiled = double_program(*static)(function)
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*arguments: Any) -> R:
            given = zip(names, arguments, strict=False)  # the last ones may have defaults
            varied = [x for name, x in given if name not in static]
            if namespace(*jax.tree.leaves(varied)) is not np:
                return compiled(*arguments)
            with np.errstate(all="ignore"):
                return function(*arguments)

        return call

    return decorate


def as_default(x: Any) -> Array:
    """A double-precision array of NumPy or JAX, which may be traced, in JAX's default float."""
    if namespace(x) is np:
        with nan_as_value(), np.errstate(all="ignore"):
            return to_jax(np.asarray(x, default_float()), None)
    return _rounded(x, default_float())


@double_program("dtype")
def _rounded(x: Array, dtype: Any) -> Array:
    return x.astype(dtype)
