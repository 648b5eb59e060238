"""Two primitives that JAX lacks; the one file that uses what is not JAX's public API."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax
from jax import lax
from jax.interpreters import ad, batching, mlir

Context = Callable[[], AbstractContextManager[Any]]


def is_traced(array: Any) -> bool:
    """Whether the values are not known now."""
    return isinstance(array, jax.core.Tracer)


def opaque(function: Callable[..., Any], context: Context) -> Callable[..., Any]:
    """`function` of arrays, traced, batched and lowered in a context. It has no derivative."""

    def run(*arrays: Any) -> Any:
        with context():
            program, shapes = jax.make_jaxpr(function, return_shape=True)(*arrays)
        results = _opaque().bind(*arrays, program=_Program(program, context))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run


def linear(
    function: Callable[[Any, Any], Any],
    transpose: Callable[[Any, Any], Any],
    fixed: Any,
    arguments: Any,
    like: Any,
) -> Any:
    """`function(fixed, arguments)`, linear in the arguments, with a transpose of its own.

    Unlike `jax.custom_derivatives.linear_call` it can be batched, and differentiated with respect
    to `fixed`, any number of times. Each function is traced only where it is needed.

    Args:
      function: of two pytrees of arrays.
      transpose: `transpose(fixed, cotangents)`, like `arguments`.
      fixed: what the functions need not be linear in.
      arguments: what they are.
      like: a pytree of arrays of the shapes and dtypes of the result.
    """
    trees = [jax.tree.flatten(x) for x in (fixed, arguments, like)]
    (fixed, _), (arguments, _), (like, _) = trees

    def flat(function: Callable[[Any, Any], Any], position: int) -> _Flat:
        def run(fixed: Any, arguments: Any) -> list[Any]:
            given = trees[0][1].unflatten(fixed), trees[position][1].unflatten(arguments)
            return jax.tree.leaves(function(*given))

        return run

    call = _Linear(flat(function, 1), flat(transpose, 2), len(fixed))
    results = _linear().bind(*fixed, *arguments, call=call, like=tuple(map(jax.typeof, like)))
    return jax.tree.unflatten(trees[2][1], results)


# An opaque program.


@dataclass(frozen=True, eq=False)
class _Program:
    """A traced program, which JAX is not to look into."""

    jaxpr: Any
    context: Context

    def __call__(self, *arrays: Any) -> Any:
        from jax.extend.core import jaxpr_as_fun

        return jaxpr_as_fun(self.jaxpr)(*arrays)


def _run_opaque(*arrays: Any, program: _Program) -> Any:
    with program.context():
        return jax.jit(program)(*arrays)


def _results_of_opaque(*_: Any, program: _Program) -> Any:
    return program.jaxpr.out_avals


def _lower_opaque(lowering: Any, *arrays: Any, program: _Program) -> Any:
    with program.context():
        return mlir.lower_fun(program, multiple_results=True)(lowering, *arrays)


def _batch_opaque(arrays: Any, axes: Any, *, program: _Program) -> Any:
    results = opaque(jax.vmap(program, in_axes=tuple(axes)), program.context)(*arrays)
    return results, [0] * len(results)


@functools.cache
def _opaque() -> Any:
    primitive = _primitive("opaque")
    primitive.def_impl(_run_opaque)
    primitive.def_abstract_eval(_results_of_opaque)
    mlir.register_lowering(primitive, _lower_opaque)
    batching.primitive_batchers[primitive] = _batch_opaque
    return primitive


# A linear function.

_Flat = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


@dataclass(frozen=True, eq=False)
class _Linear:
    """A linear function and its transpose; of a list of fixed arrays and one of arguments."""

    function: _Flat
    transpose: _Flat
    n_fixed: int

    def split(self, arrays: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return arrays[: self.n_fixed], arrays[self.n_fixed :]

    def __call__(self, *arrays: Any) -> list[Any]:
        return self.function(*self.split(arrays))


def _run_linear(*arrays: Any, call: _Linear, like: Any) -> Any:
    del like
    return jax.jit(call)(*arrays)


def _results_of_linear(*_: Any, call: _Linear, like: Any) -> Any:
    del call
    return list(like)


def _lower_linear(lowering: Any, *arrays: Any, call: _Linear, like: Any) -> Any:
    del like
    return mlir.lower_fun(call, multiple_results=True)(lowering, *arrays)


def _batch_linear(arrays: Any, axes: Any, *, call: _Linear, like: Any) -> Any:
    from jax.extend.core import unmapped_aval

    size = next(x.shape[at] for x, at in zip(arrays, axes, strict=True) if at is not None)
    fixed, arguments = call.split(arrays)
    of_fixed, of_arguments = (tuple(x) for x in call.split(axes))
    # All arguments are batched, as are then all cotangents.
    arguments = [
        lax.broadcast(x, (size,)) if at is None else x
        for x, at in zip(arguments, of_arguments, strict=True)
    ]
    of_arguments = tuple(0 if at is None else at for at in of_arguments)

    def batched(function: _Flat, before: Any, after: Any) -> _Flat:
        def run(fixed: Any, arguments: Any) -> list[Any]:
            of_rows = jax.vmap(
                lambda *x: tuple(function(*x)), in_axes=(of_fixed, before), out_axes=after
            )
            return list(of_rows(tuple(fixed), tuple(arguments)))

        return run

    leading = (0,) * len(like)
    call = _Linear(
        batched(call.function, of_arguments, leading),
        batched(call.transpose, leading, of_arguments),
        call.n_fixed,
    )
    like = tuple(unmapped_aval(size, 0, x) for x in like)
    return _linear().bind(*fixed, *arguments, call=call, like=like), leading


def _push_linear(primals: Any, tangents: Any, *, call: _Linear, like: Any) -> Any:
    fixed, arguments = call.split(tangents)
    if all(type(x) is ad.Zero for x in fixed):
        bind = functools.partial(_linear().bind, *call.split(primals)[0], call=call, like=like)
        return bind(*call.split(primals)[1]), bind(*map(_not_symbolic, arguments))
    moving = [i for i, x in enumerate(tangents) if type(x) is not ad.Zero]

    def of_moving(*values: Any) -> list[Any]:
        arrays = list(primals)
        for i, value in zip(moving, values, strict=True):
            arrays[i] = value
        return call(*arrays)

    return jax.jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])


def _transpose_linear(cotangents: Any, *arrays: Any, call: _Linear, like: Any) -> Any:
    del like
    fixed, arguments = call.split(arrays)
    if all(type(x) is ad.Zero for x in cotangents):
        return [None] * len(arrays)
    unknown = [ad.is_undefined_primal(x) for x in arguments]
    results = _linear().bind(
        *fixed,
        *map(_not_symbolic, cotangents),
        call=_Linear(call.transpose, call.function, call.n_fixed),
        like=tuple(
            x.aval if each else jax.typeof(x) for x, each in zip(arguments, unknown, strict=True)
        ),
    )
    wanted = [x if each else None for x, each in zip(results, unknown, strict=True)]
    return [None] * len(fixed) + wanted


def _not_symbolic(tangent: Any) -> Any:
    with jax.enable_x64(True):  # in which zeros have the dtype that they should, be it 32 bits
        return ad.instantiate_zeros(tangent)


@functools.cache
def _linear() -> Any:
    primitive = _primitive("linear")
    primitive.def_impl(_run_linear)
    primitive.def_abstract_eval(_results_of_linear)
    mlir.register_lowering(primitive, _lower_linear)
    batching.primitive_batchers[primitive] = _batch_linear
    ad.primitive_jvps[primitive] = _push_linear
    ad.primitive_transposes[primitive] = _transpose_linear
    return primitive


def _primitive(name: str) -> Any:
    from jax.extend.core import Primitive  # here, as it takes longer than all else to import

    primitive = Primitive(name)
    primitive.multiple_results = True
    return primitive
