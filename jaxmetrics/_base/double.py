"""Double precision under every transformation: the one file that touches JAX's internals."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
from jax.interpreters import batching, mlir

from jaxmetrics._base.numerics import is_inexact

R = TypeVar("R")


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


def double_program(*static: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Makes a function of pytrees one compiled program, `in_double`.

    The arguments that `static` names are constants of the program. All are passed by position.
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

        run.__name__ = function.__name__  # by which profilers and logs call the program
        compiled = jax.jit(run, static_argnums=positions)

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
