"""Loops, branches and derivatives of values that vary over the devices of `jax.shard_map`.

There, the type of a value says over which axes of the mesh it varies. The type of a loop's state
must not change. But a state that starts from constants and adds up arrays does not vary at first:
here it varies from the start. JAX also sums the derivative with respect to a value that is equal on
all devices over the devices: here each device has its own derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.sharding import get_abstract_mesh

from jaxmetrics._base.host import on_cpu, on_gpu
from jaxmetrics._base.types import Array

S = TypeVar("S")
Body = Callable[..., Any]

_AT_ONCE = 8  # steps of one launch


def scan(
    step: Body, start: S, inputs: Any, *, unroll: int = 1, reverse: bool = False
) -> tuple[S, Any]:
    """`jax.lax.scan`, with a state that varies from the start."""

    def next_state(state: S) -> Any:
        return step(state, jax.tree.map(lambda x: x[0], inputs))[0]

    varied = _varied(next_state, start)

    def one_step(state: S, entry: Any) -> tuple[S, Any]:
        state, outputs = step(state, entry)
        return varied(state), outputs

    return lax.scan(one_step, varied(start), inputs, unroll=unroll, reverse=reverse)


def repeated(n: int, step: Callable[[S], S], start: S) -> S:
    """The state, a few numbers, after n steps; on a GPU several steps are one launch."""
    at_once = _AT_ONCE if on_gpu() else 1
    whole, rest = divmod(n, at_once)

    def steps(_: Any, state: S) -> S:
        for _ in range(at_once):
            state = step(state)
        return state

    found = fori_loop(0, whole, steps, start)
    for _ in range(rest):
        found = step(found)
    return found


def fori_loop(first: Any, end: Any, body: Body, start: S) -> S:
    """`jax.lax.fori_loop`, with a state that varies from the start."""
    varied = _varied(lambda state: (body(first, state), first, end), start)

    def one_step(number: Any, state: Any) -> Any:
        return varied(body(number, state))

    return lax.fori_loop(first, end, one_step, varied(start))


def while_loop(goes_on: Body, body: Body, start: S) -> S:
    """`jax.lax.while_loop`, with a state that varies from the start."""
    varied = _varied(lambda state: (body(state), goes_on(state)), start)
    return lax.while_loop(goes_on, lambda state: varied(body(state)), varied(start))


def apart(function: Callable[..., S], *arguments: Any) -> S:
    """`function(*arguments)`, which XLA for CPUs then computes once, before its uses.

    Otherwise XLA computes it again for each use, and within a gather without vector instructions.
    Here it is a branch that is always taken, although XLA does not know this.
    """
    if not on_cpu():
        return function(*arguments)
    some = jnp.ravel(jax.tree.leaves(arguments)[0])[:1]
    always = largest_of_batch(jnp.sum(some != 0, dtype=jnp.int32)) < 2
    kinds = jax.eval_shape(function, *arguments)
    varied = _varied(lambda arguments: (arguments, function(*arguments)), arguments)

    def nothing(*_: Any) -> Any:
        return varied(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kinds))

    return lax.cond(always, lambda *x: varied(function(*x)), nothing, *arguments)


@custom_vmap
def largest_of_batch(number: Array) -> Array:
    """The number; under `vmap`, the largest of the numbers of all rows of the batch.

    It makes one predicate of a `cond` for all rows. With a predicate for each row, `vmap` would
    make a program that computes both branches.
    """
    return number


@largest_of_batch.def_vmap
def _(size: int, batched: list[bool], number: Array) -> tuple[Array, bool]:
    return largest_of_batch(jnp.max(number, axis=0, initial=0)), False


def vjp(function: Callable[..., Any], *at: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`jax.vjp`, whose derivative is each device's own, and no sum over devices."""
    varied = _varied(lambda at: (at, function(*at)), at)
    found: Any = jax.vjp(function, *varied(at), has_aux=has_aux)  # type: ignore[call-overload]
    value, pull_back, *aux = found
    return value, lambda cotangent: pull_back(varied(cotangent)), *aux


def over(axis_name: Any, items: S) -> S:
    """Items that vary over the axes whose devices hold parts of them, each of their arrays.

    Refuses items that are the same on all devices: they would count several times. Without
    `check_vma` this is not known.
    """
    names = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    axes = frozenset().union(*map(_axes_of, jax.tree.leaves(items)))
    for name in names:
        if name not in axes and lax.axis_size(name) > 1 and name in _axes_of(lax.axis_index(name)):
            raise ValueError(
                f"the items are the same on all devices along the axis {name!r}: leave it out of "
                "axis_name, or divide the items over it, as by in_specs of jax.shard_map"
            )
    return _varied(lambda items: items, items)(items)


def _varied(function: Callable[[Any], Any], start: Any) -> Callable[[Any], Any]:
    """A map that makes leaves of a pytree vary over the axes of `start` and `function(start)`."""
    if not get_abstract_mesh().manual_axes:
        return lambda tree: tree
    leaves = jax.tree.leaves((start, jax.eval_shape(function, start)))
    axes = frozenset().union(*map(_axes_of, leaves))

    def of_leaf(x: Any) -> Any:
        return lax.pcast(x, tuple(axes - _axes_of(x)), to="varying")

    return lambda tree: jax.tree.map(of_leaf, tree)


def _axes_of(x: Any) -> frozenset[str]:
    # `typeof` refuses shapes within a `vmap` over models that explicit axes of a mesh divide.
    kind: Any = x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x)
    return frozenset(kind.manual_axis_type.varying if kind.manual_axis_type else ())
