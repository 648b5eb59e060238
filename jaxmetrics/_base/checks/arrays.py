"""Whatever a caller has as real arrays, of shapes that fit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.double import double_precision
from jaxmetrics._base.host import near
from jaxmetrics._base.types import ArrayLike, HostArray, HostOrDeviceArray


def all_valid(valid: Any, mask: Any) -> bool:
    return bool((valid if mask is None else valid | ~mask).all())


def as_array(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """`value` as a real array; without a copy where its owner allows it.

    NumPy keeps its own dtype, so that float64 survives although JAX's x64 mode is off.
    """
    if value is None:
        raise TypeError(f"{name} is missing: pass an array with one entry an item")
    if isinstance(value, jax.Array):
        array: HostOrDeviceArray = value
    elif isinstance(value, np.ndarray):
        array = _native(np.asarray(value))
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        with double_precision():  # a float64 tensor stays one
            array = jnp.from_dlpack(value)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, jax.Array) for v in value):
        array = jnp.asarray(value)
    else:
        array = _host_array(name, value)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(
            f"{name} must be real, got {array.dtype}: write {name}.real or abs({name}), "
            "whichever orders the items"
        )
    if array.dtype != bool and not jnp.issubdtype(array.dtype, jnp.number):
        raise TypeError(
            f"{name} must hold numbers, got dtype {array.dtype}{_example(array)}: convert first, "
            "for labels by comparing with the positive class, as in labels == 'yes', for several "
            f"classes by numpy.searchsorted(classes, {name})"
        )
    if name == "where" and array.dtype != bool:
        raise TypeError(f"where must be bool, got {array.dtype}: write where=mask != 0")
    return array


def _host_array(name: str, value: ArrayLike) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
        if array.dtype == object and hasattr(value, "to_numpy"):  # pandas' nullable columns
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name} cannot be read as one array of numbers: {error}") from None
    return _native(array)


def _native(array: HostArray) -> HostArray:
    """Of a dtype that JAX has: in the machine's byte order, and of double precision at most."""
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _example(array: HostOrDeviceArray) -> str:
    return f" (such as {array.flat[0]!r})" if array.size and isinstance(array, np.ndarray) else ""


def as_arrays(
    needed: dict[str, ArrayLike], others: dict[str, ArrayLike | None]
) -> dict[str, HostOrDeviceArray]:
    """Arrays by name, of shapes that fit; without those of the others that are None."""
    given = needed | {name: value for name, value in others.items() if value is not None}
    arrays = {name: as_array(name, value) for name, value in given.items()}
    check_shapes({name: array.shape for name, array in arrays.items()})
    return arrays


def extremes(values: Any, mask: Any) -> tuple[Any, Any]:
    """The lowest and highest of the valid values, which are concrete, and 0; NaN if one is NaN."""
    values, mask = near(values), near(mask)
    if mask is not None:
        host = isinstance(values, np.ndarray) and isinstance(mask, np.ndarray)
        values = (np if host else jnp).where(mask, values, 0)
    return values.min(initial=0), values.max(initial=0)


def check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if not shape:
            raise ValueError(f"{name} is a single number: pass an array with an axis of items")
    described = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    if len({shape[-1] for shape in shapes.values()}) > 1:
        hint = ""
        (first, scores), (_, labels), *_ = shapes.items()
        if first == "scores" and len(scores) > 1 and scores[-2] == labels[-1]:
            hint = (
                "; for one column of probabilities write scores[:, 1], for one model a column "
                "scores.T, for classes one_vs_rest or multilabel"
            )
        raise ValueError(f"the last axis is the items and must agree, got {described}{hint}")
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(
            f"the leading axes are the batch and must broadcast, got {described}: insert axes of "
            "length 1, as in labels[None, :], where a batch axis is shared"
        ) from None
