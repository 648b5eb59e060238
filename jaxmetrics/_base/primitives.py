"""Two primitives that JAX lacks, and a fast way in. Other files use only JAX's public API.

`opaque` is a program that is traced, batched and lowered in a context. `linear` is a linear
function with its own transpose. The list below names what they use, in JAX 0.10.2 and 0.12.0, and
after "If removed" what to write instead:

jax.extend.core.Primitive
    Defines both. If removed: a subclass of `jax.experimental.hijax.HiPrim`, whose methods are the
    rules below; they replace the next three entries too.
jax.interpreters.mlir: lower_fun, register_lowering, ir, and dim_var_values and replace of the
  context of a lowering
    The rule for lowering. core_call_lowering, which does not trace once more, does not know the
    primitives that JAX 0.12 replaces as it traces.
jax.interpreters.batching: fancy_primitive_batchers, bdim_at_front
    The rule for vmap. `primitive_batchers` is an older form, which does not know the mesh.
jax.interpreters.ad: primitive_jvps, primitive_transposes, Zero, instantiate_zeros,
  is_undefined_primal
    The rules for derivatives.
jax.extend.core.jaxpr_as_fun
    Evaluates a traced program. If removed: `jax.core.eval_jaxpr`.
out_avals of the result of jax.make_jaxpr, and jax.extend.core.unmapped_aval
    The types of results, and of a batch of results. If removed: `jax.typeof` of them under
    `jax.eval_shape`.
jax.core.Tracer
    Tells whether a value is traced. If removed: whether `numpy.asarray` of the value raises
    `jax.errors.TracerArrayConversionError`.
jax.extend.core.get_opaque_trace_state
    Tells quickly that nothing is traced. If removed: leave `is_top_level` out of `is_compiling`,
    in `host.py`.
jaxlib.xla_client.batched_device_put
    Makes a JAX array from a NumPy one in a quarter of the time of `jax.numpy.asarray`. If removed:
    leave out `to_default_device`, which then uses `asarray`.
jax.enable_x64, entered while JAX traces in 32 bits
    It is public, but its documentation does not promise that this works. If it stops working:
    `jax_explicit_x64_dtypes`, see below.

Remove `linear` when `jax.custom_derivatives.linear_call` can be batched, and differentiated with
respect to its residuals.

`jax_explicit_x64_dtypes="allow"` does not replace `opaque` (tested in both versions, x64 off):
- If a user sets it for the whole process, 64-bit sort, cumsum, searchsorted, scatter, scan and cond
  work, eagerly and under jit, vmap, grad and hessian.
- If this library sets it while it traces a program, they do not: the transpose of a gather, which
  JAX traces later, makes 32-bit zeros. JAX has no public context that sets it.
- Under it, everything without an explicit dtype has 32 bits: NumPy's arrays, constants, quotients
  of integers. Users' metrics consist of these. argmax and betainc of float64 raise a TypeError.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad, batching, mlir
from jax.sharding import SingleDeviceSharding, get_abstract_mesh

try:
    from jaxlib.xla_client import batched_device_put
except ImportError:
    batched_device_put = None

Context = Callable[[], AbstractContextManager[Any]]


def is_concrete(array: Any) -> bool:
    """Whether the values are known now, not traced."""
    return not isinstance(array, jax.core.Tracer)


def is_top_level() -> bool:
    """Whether no transformation of JAX runs now."""
    state, top = _trace_states()
    return bool(state() == top)


@functools.cache
def _trace_states() -> tuple[Callable[[], Any], Any]:
    """A function that returns the present state of tracing, and the state without any."""
    from jax.extend.core import get_opaque_trace_state  # a slow import, so not at the top

    # The first call may be within a trace. A new thread is within none.
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(get_opaque_trace_state()))
    thread.start()
    thread.join()
    return get_opaque_trace_state, found[0]


def to_default_device(values: np.ndarray[Any, Any]) -> jax.Array:
    """`jax.numpy.asarray`, faster, of an array that no other code holds or changes."""
    config: Any = jax.config
    plain = config.jax_default_device is None and get_abstract_mesh().empty
    if batched_device_put is None or not plain:
        return jnp.asarray(values)
    dtype = jax.dtypes.canonicalize_dtype(values.dtype)
    sharding, devices = _default_device()
    return batched_device_put(
        _type_of(values.shape, dtype), sharding, [values.astype(dtype, copy=False)], devices, False
    )


@functools.cache
def _default_device() -> tuple[SingleDeviceSharding, list[Any]]:
    device = jax.local_devices()[0]
    return SingleDeviceSharding(device), [device]


@functools.lru_cache(maxsize=256)
def _type_of(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.typeof(np.broadcast_to(np.zeros((), dtype), shape))


def opaque(
    function: Callable[..., Any], context: Context, *, one_by_one: bool = False
) -> Callable[..., Any]:
    """`function` of pytrees of arrays, traced, batched and lowered in a context.

    It has no derivative. Under `vmap` it is one program over all rows. With `one_by_one` it is a
    loop over the rows, which needs the memory of one row and takes one branch of a `cond` in each.
    """

    def run(*arguments: Any) -> Any:
        with context():
            jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        arrays = jax.tree.leaves(arguments)
        results = _opaque().bind(*arrays, program=_Program(jaxpr, context, one_by_one))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run


def linear(
    function: Callable[[Any, Any], Any],
    transpose: Callable[[Any, Any], Any],
    fixed: Any,
    arguments: Any,
    like: Any,
) -> Any:
    """`function(fixed, arguments)`, linear in `arguments`, with its own transpose.

    It can be batched. It can be differentiated with respect to `fixed` and `arguments`, in forward
    and reverse mode, any number of times. JAX traces each function only where it is called: if only
    the transpose is used, `function` costs nothing.

    Args:
      function: takes two pytrees of arrays.
      transpose: `transpose(fixed, cotangents)` returns a pytree with the structure of `arguments`.
      fixed: both functions may depend on it in any way.
      arguments: `function` is linear in it.
      like: a pytree of arrays with the types of the result.
    """
    trees = tuple(jax.tree.structure(x) for x in (fixed, arguments, like))
    results = _linear().bind(
        *jax.tree.leaves((fixed, arguments)),
        call=_Linear(function, transpose, *trees),
        types=tuple(jax.typeof(x) for x in jax.tree.leaves(like)),
    )
    return jax.tree.unflatten(trees[2], results)


@dataclass(frozen=True, eq=False, repr=False)  # JAX prints what it lowers
class _Program:
    """A traced program, hidden from JAX's transformations."""

    jaxpr: Any
    context: Context
    one_by_one: bool

    def __call__(self, *arrays: Any) -> Any:
        from jax.extend.core import jaxpr_as_fun

        return jaxpr_as_fun(self.jaxpr)(*arrays)

    def batched(self, axes: Any) -> Callable[..., Any]:
        """The program for a batch: `axes` has the batch axis of each array, or None without one."""
        if not self.one_by_one:
            return jax.vmap(self, in_axes=tuple(axes))

        def in_turn(*arrays: Any) -> Any:
            moving = [i for i, axis in enumerate(axes) if axis is not None]

            def of_row(row: Any) -> Any:
                values = dict(zip(moving, row, strict=True))
                return self(*(values.get(i, x) for i, x in enumerate(arrays)))

            return lax.map(of_row, [jnp.moveaxis(arrays[i], axes[i], 0) for i in moving])

        return in_turn


def _run_opaque(*arrays: Any, program: _Program) -> Any:
    with program.context():
        return jax.jit(program)(*arrays)


def _types_of_opaque(*_: Any, program: _Program) -> Any:
    return program.jaxpr.out_avals


def _lower_opaque(lowering: Any, *arrays: Any, program: _Program) -> Any:
    numbers = [_as_wide(x) for x in lowering.dim_var_values]
    with program.context():
        lower = mlir.lower_fun(program, multiple_results=True)
        return lower(lowering.replace(dim_var_values=numbers), *arrays)


def _as_wide(number: Any) -> Any:
    """The number of a platform or the size of an axis, in the 64 bits that the context expects.

    A program for several platforms has the first, one for any size the second, as arguments. Where
    they already have 64 bits, the conversion does nothing.
    """
    wide = mlir.ir.RankedTensorType.get([], mlir.ir.IntegerType.get_signless(64))
    return mlir.ir.Operation.create("stablehlo.convert", [wide], [number]).result


def _batch_opaque(axis: Any, arrays: Any, axes: Any, *, program: _Program) -> Any:
    if all(x is None for x in axes):
        return _opaque().bind(*arrays, program=program), [None] * len(program.jaxpr.out_avals)
    whole = opaque(program.batched(axes), program.context, one_by_one=program.one_by_one)
    results = whole(*arrays)
    return results, [0] * len(results)


@functools.cache
def _opaque() -> Any:
    primitive = _primitive("opaque")
    primitive.def_impl(_run_opaque)
    primitive.def_abstract_eval(_types_of_opaque)
    mlir.register_lowering(primitive, _lower_opaque)
    batching.fancy_primitive_batchers[primitive] = _batch_opaque
    return primitive


@dataclass(frozen=True, eq=False, repr=False)
class _Linear:
    """A linear function, its transpose, and the structures of their arguments and results."""

    function: Callable[[Any, Any], Any]
    transpose: Callable[[Any, Any], Any]
    fixed: Any
    arguments: Any
    results: Any

    def split(self, arrays: Any) -> tuple[list[Any], list[Any]]:
        n = self.fixed.num_leaves
        return list(arrays[:n]), list(arrays[n:])

    def __call__(self, *arrays: Any) -> list[Any]:
        fixed, arguments = self.split(arrays)
        given = self.fixed.unflatten(fixed), self.arguments.unflatten(arguments)
        return jax.tree.leaves(self.function(*given))

    def transposed(self) -> _Linear:
        return _Linear(self.transpose, self.function, self.fixed, self.results, self.arguments)

    def batched(self, axes: Any) -> _Linear:
        """Batched over the given axes of `fixed`, and over the leading axis of everything else."""
        in_axes = (self.fixed.unflatten(axes), 0)
        function, transpose = (jax.vmap(f, in_axes) for f in (self.function, self.transpose))
        return _Linear(function, transpose, self.fixed, self.arguments, self.results)


def _run_linear(*arrays: Any, call: _Linear, types: Any) -> Any:
    return jax.jit(call)(*arrays)


def _types_of_linear(*_: Any, call: _Linear, types: Any) -> Any:
    return list(types)


def _lower_linear(lowering: Any, *arrays: Any, call: _Linear, types: Any) -> Any:
    return mlir.lower_fun(call, multiple_results=True)(lowering, *arrays)


def _batch_linear(axis: Any, arrays: Any, axes: Any, *, call: _Linear, types: Any) -> Any:
    from jax.extend.core import unmapped_aval

    if all(x is None for x in axes):
        return _linear().bind(*arrays, call=call, types=types), [None] * len(types)
    size, mesh_axis = axis.size, axis.explicit_mesh_axis
    fixed, arguments = call.split(arrays)
    of_fixed, of_arguments = call.split(axes)
    # All arguments are batched, because the transpose returns batched cotangents for all.
    arguments = [
        batching.bdim_at_front(x, at, size, mesh_axis)
        for x, at in zip(arguments, of_arguments, strict=True)
    ]
    types = tuple(unmapped_aval(size, 0, x, mesh_axis) for x in types)
    results = _linear().bind(*fixed, *arguments, call=call.batched(of_fixed), types=types)
    return results, [0] * len(results)


def _push_linear(primals: Any, tangents: Any, *, call: _Linear, types: Any) -> Any:
    fixed, arguments = call.split(tangents)
    if all(type(x) is ad.Zero for x in fixed):
        bind = functools.partial(_linear().bind, call=call, types=types)
        known = call.split(primals)[0]
        return bind(*primals), bind(*known, *map(ad.instantiate_zeros, arguments))
    moving = [i for i, x in enumerate(tangents) if type(x) is not ad.Zero]

    def of_moving(*values: Any) -> list[Any]:
        arrays = list(primals)
        for i, value in zip(moving, values, strict=True):
            arrays[i] = value
        return call(*arrays)

    return jax.jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])


def _transpose_linear(cotangents: Any, *arrays: Any, call: _Linear, types: Any) -> Any:
    fixed, arguments = call.split(arrays)
    unknown = [ad.is_undefined_primal(x) for x in arguments]
    results = _linear().bind(
        *fixed,
        *map(ad.instantiate_zeros, cotangents),
        call=call.transposed(),
        types=tuple(
            x.aval if each else jax.typeof(x) for x, each in zip(arguments, unknown, strict=True)
        ),
    )
    wanted = [x if each else None for x, each in zip(results, unknown, strict=True)]
    return [None] * len(fixed) + wanted


@functools.cache
def _linear() -> Any:
    primitive = _primitive("linear")
    primitive.def_impl(_run_linear)
    primitive.def_abstract_eval(_types_of_linear)
    mlir.register_lowering(primitive, _lower_linear)
    batching.fancy_primitive_batchers[primitive] = _batch_linear
    ad.primitive_jvps[primitive] = _push_linear
    ad.primitive_transposes[primitive] = _transpose_linear
    return primitive


def _primitive(name: str) -> Any:
    from jax.extend.core import Primitive  # a slow import, so not at the top

    primitive = Primitive(name)
    primitive.multiple_results = True
    return primitive
