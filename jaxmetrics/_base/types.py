"""Array aliases, and the inputs of a metric as one value."""

from __future__ import annotations

from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh as Mesh

Array: TypeAlias = jax.Array
# Inputs may be anything that holds numbers: JAX and NumPy arrays, lists, columns of pandas or
# polars, tensors with `__dlpack__`. `checks.as_array` decides, so the static type stays open.
ArrayLike: TypeAlias = Any
HostArray: TypeAlias = npt.NDArray[Any]
HostOrDeviceArray: TypeAlias = jax.Array | HostArray
FloatArray: TypeAlias = npt.NDArray[np.float64]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Items(NamedTuple):
    """The checked arrays of the items, `[..., n]` each; leading axes broadcast."""

    scores: HostOrDeviceArray
    labels: HostOrDeviceArray
    weights: HostOrDeviceArray | None = None
    where: HostOrDeviceArray | None = None
    amounts: HostOrDeviceArray | None = None
