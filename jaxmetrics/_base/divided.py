"""Arrays whose items a mesh divides: the library opens the `shard_map` itself.

Outside of `jax.shard_map` the sharding of an array tells which axes of the mesh divide its items.
A function that takes `axis_name` gets a `Divided` in place of a name. Where it would use the name,
`over_parts` opens the `shard_map`. The code before and after it sees whole arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxmetrics._base import varying
from jaxmetrics._base.primitives import is_concrete


class NotInPartsError(TypeError):
    """Raised by a call that needs whole items. `on_any_mesh` repeats it without a `Divided`."""


@dataclass(frozen=True)
class Divided:
    """How the devices of a mesh divide the items of arrays `[..., n]`.

    Attributes:
      mesh: an abstract mesh, which has no devices, with axes of type `Auto`.
      shape: of the scores.
      axes: for each axis of the scores, the axes of the mesh over which it is sharded, or None.
    """

    mesh: Any
    shape: tuple[int, ...]
    axes: tuple[Any, ...]

    @property
    def names(self) -> Any:
        """The axes of the mesh that divide the items."""
        return self.axes[-1]

    @property
    def divides_models(self) -> bool:
        """Whether the mesh divides an axis of the batch, such as models."""
        return any(x is not None for x in self.axes[:-1])

    def axes_of(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """For each axis of an array of this shape, the axes of the mesh over which it is sharded.

        None for an axis that the scores lack or have in another size. Empty, which is whole, for an
        array whose last axis is not the items.
        """
        if shape[-1:] != self.shape[-1:]:
            return ()
        sizes, axes = (([None] * len(shape) + [*x])[-len(shape) :] for x in (self.shape, self.axes))
        return tuple(
            name if size == own else None
            for own, size, name in zip(shape, sizes, axes, strict=True)
        )

    def spec_of(self, array: Any) -> PartitionSpec:
        """The sharding of an array of the items; for any other array, whole on each device."""
        return PartitionSpec(*self.axes_of(array.shape))


def division_of(scores: Any) -> Divided | None:
    """How a mesh divides the items of scores; None if it does not, or they are no JAX array."""
    if not isinstance(scores, jax.Array) or not scores.size or not scores.ndim:
        return None
    sharding = sharding_of(scores)
    if not isinstance(sharding, NamedSharding):
        return None
    axes = axes_of(scores.ndim, sharding)
    names = axes[-1] if isinstance(axes[-1], tuple) else (axes[-1],)
    if axes[-1] is None or prod(sharding.mesh.shape[name] for name in names) == 1:
        return None
    return Divided(with_auto_axes(sharding.mesh.abstract_mesh), scores.shape, axes)


def sharding_of(array: jax.Array) -> Any:
    """The sharding of an array; that of a traced one has its explicit axes only."""
    return array.sharding if is_concrete(array) else jax.typeof(array).sharding


def axes_of(ndim: int, sharding: Any) -> tuple[Any, ...]:
    """For each axis of an array, the axes of the mesh over which it is sharded."""
    spec = () if sharding is None else sharding.spec
    return (*spec, *(None,) * (ndim - len(spec)))


def with_auto_axes(mesh: Any) -> Any:
    """An abstract mesh whose explicit axes are of type `Auto`."""
    return mesh.update_axis_types(dict.fromkeys(mesh.explicit_axes, AxisType.Auto))


def over_parts(
    function: Callable[..., Any], axis_name: Any, given: tuple[Any, ...], *constants: Any
) -> Any:
    """`function(*given, axis_name, *constants)`, on each device for its own part of the items.

    The first of the pytrees `given` has the items; each device has all of the others. If
    `axis_name` is a name, the caller is within `shard_map`, and `function` is only called. If it is
    a `Divided`, this opens the `shard_map`. The results must then have the axes of the batch first.
    They are sharded over these like the items, and are otherwise the same on all devices.
    """
    if not isinstance(axis_name, Divided):
        items, *others = given
        return function(varying.over(axis_name, items), *others, axis_name, *constants)
    return _over_parts(given, function, axis_name, constants)


@functools.partial(jax.jit, static_argnames=("function", "divided", "constants"))
def _over_parts(
    given: tuple[Any, ...],
    function: Callable[..., Any],
    divided: Divided,
    constants: tuple[Any, ...],
) -> Any:
    def of_part(*given: Any) -> Any:
        return function(*given, divided.names, *constants)

    items, *others = given
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in jax.tree.leaves(items)))
    *of_batch, _ = divided.axes_of((*batch, divided.shape[-1]))
    mapped = jax.shard_map(
        of_part,
        mesh=divided.mesh,
        in_specs=(jax.tree.map(divided.spec_of, items), *(PartitionSpec() for _ in others)),
        out_specs=PartitionSpec(*of_batch),
    )
    return mapped(*given)
