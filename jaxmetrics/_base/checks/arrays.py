"""Arrays of real numbers from whatever a caller passes, and checks that their shapes fit."""

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
    """`value` as an array of real numbers, without a copy where its owner allows that.

    A NumPy array stays one: in JAX, float64 would be rounded to float32 while x64 mode is off.
    """
    if value is None:
        raise TypeError(f"{name} is missing: pass an array with one entry per item")
    if isinstance(value, jax.Array):
        array: HostOrDeviceArray = value
    elif isinstance(value, np.ndarray):
        array = _native(np.asarray(value))
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        with double_precision():  # keeps a float64 tensor in float64
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
            f"{name} must hold numbers, got dtype {array.dtype}{_example(array)}: convert them; "
            "for two classes write labels == 'yes', where 'yes' is the positive class; for several "
            f"numpy.searchsorted(classes, {name})"
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
    """In a dtype that JAX has: the machine's byte order, and at most double precision."""
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _example(array: HostOrDeviceArray) -> str:
    return f" (such as {array.flat[0]!r})" if array.size and isinstance(array, np.ndarray) else ""


def as_arrays(
    needed: dict[str, ArrayLike], others: dict[str, ArrayLike | None]
) -> dict[str, HostOrDeviceArray]:
    """Arrays by name, with shapes that fit; those of `others` that are None are left out."""
    given = needed | {name: value for name, value in others.items() if value is not None}
    arrays = {name: as_array(name, value) for name, value in given.items()}
    check_shapes({name: array.shape for name, array in arrays.items()})
    return arrays


def extremes(values: Any, mask: Any) -> tuple[Any, Any]:
    """The lowest and highest of 0 and the valid values, which are concrete; NaN if one is NaN."""
    values, mask = near(values), near(mask)
    if mask is not None:
        host = isinstance(values, np.ndarray) and isinstance(mask, np.ndarray)
        values = (np if host else jnp).where(mask, values, 0)
    return values.min(initial=0), values.max(initial=0)


def check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if not shape:
            raise ValueError(f"{name} is a single number: pass an array [..., n] of n items")
    described = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    if len({shape[-1] for shape in shapes.values()}) > 1:
        hint = ""
        (first, scores), (_, labels), *_ = shapes.items()
        if first == "scores" and len(scores) > 1 and scores[-2] == labels[-1]:
            hint = (
                "; for one column of probabilities write scores[:, 1], for columns of models "
                "scores.T, for columns of classes one_vs_rest or multilabel"
            )
        raise ValueError(f"the last axis is the items and must agree, got {described}{hint}")
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(
            f"the leading axes are the batch and must broadcast, got {described}: an array that "
            "lacks a batch axis takes one of length 1, as in labels[None, :]"
        ) from None
