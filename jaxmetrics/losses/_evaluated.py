"""The value of a loss for each row of a batch, on one device or over a mesh.

Within `shard_map`, each device holds a part of the items. The loss and its slopes in the scores are
computed from the parts, without a gather. All other derivatives (in weights, in options, and of the
slopes themselves) are computed from the gathered items.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base import checks, numerics, varying
from jaxmetrics._base.divided import over_parts
from jaxmetrics._base.host import to_program
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.parts import AxisName, gathered
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics.losses._rows import Row, checked_items, nan_if_infinite, refused, rows_of_items

Numbers: TypeAlias = dict[str, Any]

# with_slopes(items, numbers, axis_name, *constants), where items are this device's part `[..., n]`
# -> (loss of all items `[...]`, its slopes in the scores of the part `[..., n]`).
WithSlopes: TypeAlias = Callable[..., tuple[Array, Array]]


def loss_of_rows(
    loss: Callable[..., Array],
    with_slopes: WithSlopes,
    constants: tuple[Any, ...],
    numbers: Numbers,
    given: tuple[ArrayLike, ArrayLike, ArrayLike | None, ArrayLike | None],
    axis_name: AxisName,
) -> Array:
    """`loss(row, *constants, **numbers)` of each row of a batch, in one compiled program.

    The items are given as scores, labels, weights and where. With an axis they are this device's
    part. Each device gets the loss of all items, which `with_slopes` computes from the parts.
    """
    items = at_least_one(checked_items(*given))
    checked = checks.check_loss_options(numbers)
    axis_name = checks.check_axis_name(axis_name)
    if axis_name is None:
        return _loss_of_rows(to_program(items), checked, loss, constants)
    return over_parts(_loss_of_parts, axis_name, (items, checked), loss, constants, with_slopes)


def _loss_of_parts(
    items: Items,
    numbers: Numbers,
    axis_name: AxisName,
    loss: Callable[..., Array],
    constants: tuple[Any, ...],
    with_slopes: WithSlopes,
) -> Array:
    value = Parts(loss, constants, axis_name, with_slopes).apart(items, numbers)
    # Each device has the same loss of all items. Without the mean, the gradient would be that of
    # the sum of the devices' losses.
    return lax.pmean(value, axis_name)


@functools.partial(jax.jit, static_argnames=("loss", "constants"))
def _loss_of_rows(
    items: Items, numbers: Numbers, loss: Callable[..., Array], constants: tuple[Any, ...]
) -> Array:
    undefined = refused(items, numbers)
    batch = rows_of_items(items, undefined)
    dtype = batch.scores.dtype
    numbers = {name: jnp.asarray(x, dtype) for name, x in numbers.items()}

    def of_one(row: Row) -> Array:
        return loss(row, *constants, **numbers)

    value = numerics.over_batch(of_one, batch.scores.ndim - 1)(batch)
    return jnp.where(undefined, jnp.nan, value * nan_if_infinite(batch))


class Parts(NamedTuple):
    """A loss whose items are divided over the devices of an axis; hashable."""

    loss: Callable[..., Array]
    constants: tuple[Any, ...]
    axis_name: AxisName
    with_slopes: WithSlopes

    def gathered(self, scores: Array, rest: Items, numbers: Numbers) -> Array:
        """The loss of all items; each device computes it from the gathered items."""
        whole = gathered(rest._replace(scores=scores), self.axis_name)
        return _loss_of_rows(whole, numbers, self.loss, self.constants)

    def slopes_of_gathered(
        self, scores: Array, rest: Items, numbers: Numbers
    ) -> tuple[Array, Array]:
        """The same, and its slopes in the scores of this device's part."""
        whole = gathered(rest._replace(scores=scores), self.axis_name)

        def of_scores(scores: Array) -> Array:
            items = whole._replace(scores=scores)
            return _loss_of_rows(items, numbers, self.loss, self.constants)

        value, pull_back = varying.vjp(of_scores, whole.scores)
        (slopes,) = pull_back(jnp.ones_like(value))
        n = scores.shape[-1]
        first = lax.axis_index(self.axis_name) * n
        return value, lax.dynamic_slice_in_dim(slopes, first, n, axis=-1)

    def apart(self, items: Items, numbers: Numbers) -> Array:
        """The loss of all items on each device, computed without a gather."""
        shape = jnp.broadcast_shapes(*(x.shape for x in items if x is not None))
        scores = jnp.broadcast_to(items.scores, shape)
        rest = items._replace(scores=jnp.zeros(0, scores.dtype))  # all but the scores
        return _of_parts(self, scores, rest, numbers)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_parts(parts: Parts, scores: Array, rest: Items, numbers: Numbers) -> Array:
    return _slopes_of_parts(parts, scores, rest, numbers)[0]


@functools.partial(_of_parts.defjvp, symbolic_zeros=True)
def _derivative(parts: Parts, primals: Any, tangents: Any) -> tuple[Array, Array]:
    moving, *others = tangents
    if not all(isinstance(x, SymbolicZero) for x in jax.tree.leaves(others)):
        return _pushed(parts.gathered, primals, tangents)
    value, slopes = _slopes_of_parts(parts, *primals)
    # Not a `psum`: the type varies over the axis, as that of a loss of gathered items does, and the
    # transpose adds up the cotangents of all devices.
    of_each = lax.all_gather(jnp.sum(slopes * moving, axis=-1), parts.axis_name)
    return value, jnp.sum(of_each, axis=0)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _slopes_of_parts(
    parts: Parts, scores: Array, rest: Items, numbers: Numbers
) -> tuple[Array, Array]:
    items = rest._replace(scores=scores)
    return parts.with_slopes(items, numbers, parts.axis_name, *parts.constants)


@functools.partial(_slopes_of_parts.defjvp, symbolic_zeros=True)
def _second_derivative(parts: Parts, primals: Any, tangents: Any) -> Any:
    return _pushed(parts.slopes_of_gathered, primals, tangents)


def _pushed(function: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """`jax.jvp` along the inputs whose tangents are not symbolic zeros."""
    leaves, tree = jax.tree.flatten(primals)
    moving = jax.tree.leaves(tangents, is_leaf=lambda x: isinstance(x, SymbolicZero))
    some = [i for i, x in enumerate(moving) if not isinstance(x, SymbolicZero)]

    def of_moving(*inputs: Any) -> Any:
        both = {**dict(enumerate(leaves)), **dict(zip(some, inputs, strict=True))}
        return function(*jax.tree.unflatten(tree, [both[i] for i in range(len(leaves))]))

    return jax.jvp(of_moving, [leaves[i] for i in some], [moving[i] for i in some])
