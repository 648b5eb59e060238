"""Arrays that lie on a mesh of devices: functions of them give the result of one device.

JAX refuses to sort along a sharded axis of type `Explicit`, which is the default of
`jax.make_mesh`, and more. A function is therefore computed with axes of type `Auto`, where XLA
divides the work, and only its result gets a sharding again. Within `jax.shard_map` there is nothing
to do: each device has its own arrays.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
    get_abstract_mesh,
    reshard,
    use_abstract_mesh,
)

from jaxmetrics._base.divided import (
    Divided,
    NotInPartsError,
    axes_of,
    division_of,
    sharding_of,
    with_auto_axes,
)
from jaxmetrics._base.double import nan_as_value, ordinary_promotion
from jaxmetrics._base.host import is_compiling
from jaxmetrics._base.primitives import is_concrete
from jaxmetrics._base.results import introduced, scores_among, with_names_of

F = TypeVar("F", bound=Callable[..., Any])


def on_any_mesh(function: F) -> F:
    """`function`, which also takes arrays on a mesh, with axes of any type.

    Arrays on this process's own CPU devices are moved to one of them, where NumPy sorts. An array
    of the result that has the shape of an argument is sharded like it. In the others only leading
    axes of the arguments, such as models, keep their sharding. If a function takes `axis_name`, and
    the sharding of the items is known, its `axis_name` is a `Divided`. In all of it NaN is a
    value, and promotion is ordinary.
    """

    def on_mesh(*arguments: Any, **options: Any) -> Any:
        given = list(_arrays((*arguments, *options.values())))
        placed, context = [x for x in given if _on_mesh(x)], get_abstract_mesh()
        if not placed and not context.explicit_axes:
            return function(*arguments, **options)
        near = placed and all(map(_near, placed)) and all(map(is_concrete, given))
        if near and context.empty and not is_compiling():
            mesh = sharding_of(placed[0]).mesh
            # An array moved to the device itself would keep the mesh in its type.
            alone = SingleDeviceSharding(mesh.devices.flat[0])
            put: Any = jax.device_put
            shardings: list[Any] = [
                sharding_of(x) if _on_mesh(x) and sharding_of(x).mesh.shape == mesh.shape else None
                for x in given
            ]
            arguments, options = _mapped(lambda x: put(x, alone), (arguments, options))
            value = function(*arguments, **options)
        else:
            # The type of an array has its sharding over explicit axes only.
            shardings = [jax.typeof(x).sharding for x in given]
            meshes: Any = (*(x.mesh for x in shardings), context)
            mesh = next((x for x in meshes if x.explicit_axes), None)
            # Read before the call, in which the function may donate the memory of its arguments.
            concrete = [sharding_of(x).mesh for x in placed if is_concrete(x)]
            put = functools.partial(_resharded, concrete[0] if concrete else None)
            divided = None
            if takes_axis() and options.get("axis_name") is None and not context.manual_axes:
                divided = division_of(scores_among(arguments, options))
            if divided is None and mesh is None:
                return function(*arguments, **options)
            auto = with_auto_axes(mesh) if divided is None else divided.mesh
            with use_abstract_mesh(auto):
                arguments, options = _mapped(_in_auto_axes, (arguments, options))
                value = _of_parts_or_whole(function, divided, arguments, options)
            if mesh is None:
                return value

        laid = [_Laid(x.shape, axes_of(x.ndim, y)) for x, y in zip(given, shardings, strict=True)]

        def sharded(x: Any) -> Any:
            if not isinstance(x, jax.Array):
                return x
            axes = _axes_of_result(x.shape, laid)
            return put(x, NamedSharding(mesh, PartitionSpec(*axes)))

        return with_names_of(jax.tree.map(sharded, value), value)

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        with nan_as_value(), ordinary_promotion():
            return introduced(on_mesh(*arguments, **options), arguments, options)

    @functools.cache
    def takes_axis() -> bool:
        return "axis_name" in inspect.signature(run).parameters

    public: Any = run
    return public


def _of_parts_or_whole(
    function: Callable[..., Any], divided: Divided | None, arguments: Any, options: Any
) -> Any:
    if divided is not None:
        with contextlib.suppress(NotInPartsError):
            return function(*arguments, **(options | {"axis_name": divided}))
    return function(*arguments, **options)


def _resharded(mesh: Mesh | None, array: jax.Array, sharding: Any) -> Any:
    """`array`, which may have been computed on one device of a mesh, with a result's sharding."""
    if mesh is not None and is_concrete(array) and array.devices() != {*mesh.devices.flat}:
        array = on_all(array, mesh)
    return reshard(array, sharding)


def _in_auto_axes(array: jax.Array) -> Any:
    """The same array with axes of type `Auto`. No data are sent between devices."""
    if not is_concrete(array):
        return reshard(array, PartitionSpec())
    sharding = sharding_of(array)
    names = sharding.mesh.axis_names
    auto = Mesh(sharding.mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))
    with jax.ensure_compile_time_eval():  # concrete arrays stay so, also while a program is traced
        return jax.device_put(array, NamedSharding(auto, sharding.spec))


def check_mesh(mesh: Any) -> None:
    """Refuse anything but a mesh of devices or None, and any mesh within `jax.shard_map`."""
    if mesh is None:
        return
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"mesh must be a jax.sharding.Mesh, got {type(mesh).__name__}: write "
            'jax.make_mesh((jax.device_count(),), ("resamples",))'
        )
    if get_abstract_mesh().manual_axes:
        raise ValueError("mesh is for calls outside of jax.shard_map: leave mesh out")


def on_all(tree: Any, mesh: Mesh) -> Any:
    """The arrays of a pytree, whole on each device of a mesh; all processes must have the same.

    Within `jit` this also tells JAX of the devices, as JAX does not look into programs `in_double`.
    """
    sharding = NamedSharding(mesh, PartitionSpec())

    def put(x: Any) -> Any:
        if sharding.is_fully_addressable or not is_concrete(x):
            return jax.device_put(x, sharding)
        # `device_put` checks that the processes' arrays are equal, which fails at NaN.
        return jax.make_array_from_process_local_data(sharding, np.asarray(x))

    return jax.tree.map(put, tree)


def in_shares(function: Callable[[Any, Any], Any], mesh: Mesh) -> Callable[[Any, Any], Any]:
    """`function(whole, split)` with an equal share of the arrays `split` on each device of a mesh.

    Each device has all of `whole`. The results of the shares are joined along the first axis, on
    all devices; nothing else is sent between them.
    """
    names = mesh.axis_names
    mesh = Mesh(mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))

    def of_share(whole: Any, split: Any) -> Any:
        found = function(whole, split)
        return jax.tree.map(lambda x: jax.lax.all_gather(x, names, tiled=True), found)

    return jax.shard_map(
        of_share,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(names)),
        out_specs=PartitionSpec(),
        check_vma=False,
    )


def _arrays(values: Iterable[Any]) -> Iterator[jax.Array]:
    """The JAX arrays among arguments: alone, as leaves of pytrees, and as options of metrics."""
    for value in values:
        if isinstance(value, jax.Array):
            yield value
        elif isinstance(value, functools.partial):
            yield from _arrays(value.keywords.values())
        elif not isinstance(value, np.ndarray) and not _of_numbers(value):
            yield from (x for x in jax.tree.leaves(value) if isinstance(x, jax.Array))


def _of_numbers(value: Any) -> bool:
    """Whether it is a number or a list of numbers, which may be long."""
    some = value[0] if isinstance(value, list) and value else value
    return isinstance(some, (int, float))


def _mapped(place: Callable[[jax.Array], jax.Array], tree: Any) -> Any:
    """`tree`, with `place` applied to those of its `_arrays` that are on a mesh."""

    def of_leaf(leaf: Any) -> Any:
        if isinstance(leaf, functools.partial):
            options = _mapped(place, leaf.keywords)
            return functools.partial(leaf.func, *leaf.args, **options)
        if isinstance(leaf, dict):  # JAX would sort its keys, which may be models
            return {key: _mapped(place, value) for key, value in leaf.items()}
        return place(leaf) if isinstance(leaf, jax.Array) and _on_mesh(leaf) else leaf

    return jax.tree.map(of_leaf, tree, is_leaf=lambda x: isinstance(x, dict))


def _on_mesh(array: jax.Array) -> bool:
    """Whether an array lies on a mesh of several devices, or on one with explicit axes.

    Of a traced array only explicit axes are known.
    """
    sharding = sharding_of(array)
    if not is_concrete(array):
        return bool(sharding.mesh.explicit_axes)
    if not isinstance(sharding, NamedSharding) or array.is_deleted():
        return False  # the function's own error says which call took the memory of the array
    return sharding.mesh.size > 1 or bool(sharding.mesh.abstract_mesh.explicit_axes)


def _near(array: jax.Array) -> bool:
    """Whether all of an array lies in CPU memory of this process, and none in another process."""
    return (
        is_concrete(array)
        and array.is_fully_addressable
        and all(x.platform == "cpu" for x in sharding_of(array).device_set)
    )


class _Laid(NamedTuple):
    """The shape of an array, and the axes of the mesh over which each of its axes is sharded."""

    shape: tuple[int, ...]
    axes: tuple[Any, ...]


def _axes_of_result(shape: tuple[int, ...], laid: list[_Laid]) -> tuple[Any, ...]:
    """The axes of the mesh over which each axis of an array of the result is sharded."""
    for x in laid:
        if x.shape == shape:
            return x.axes
    batches = ([*zip(x.shape[:-1], x.axes[:-1], strict=True)] for x in laid)
    rest = next((batch for batch in batches if any(name for _, name in batch)), [])
    axes: list[Any] = []
    for size in shape:
        place = next((i for i, (length, _) in enumerate(rest) if length == size), None)
        axes.append(None if place is None else rest[place][1])
        rest = rest if place is None else rest[place + 1 :]
    return tuple(axes)
