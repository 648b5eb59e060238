"""The array of a state: its leading axes, and whether it is still there."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array

_SWAPPED = tuple(np.dtype(x).newbyteorder() for x in (np.int32, np.int64))


def zeros(batch_shape: tuple[int, ...], *shape: int) -> Array:
    """The integers of an empty state; refuses a batch_shape that is wrong or exceeds the memory."""
    if not isinstance(batch_shape, tuple) or not all(isinstance(x, int) for x in batch_shape):
        raise TypeError(f"batch_shape must be a tuple of ints, got {batch_shape!r}")
    n = math.prod(batch_shape)
    n_numbers = n * math.prod(shape) // 2  # int32, but `check_fits` counts numbers of 8 bytes
    checks.check_fits("the size of batch_shape", n, n_numbers, "count fewer problems in one state")
    return jnp.zeros((*batch_shape, *shape), jnp.int32)


def check_batch(arrays: Any, batch: tuple[int, ...]) -> None:
    """Refuse arrays `[..., n]` whose leading axes are not those of the state."""
    given = np.broadcast_shapes(*(x.shape for x in arrays if x is not None))[:-1]
    if given != batch:
        raise ValueError(
            f"the leading axes must be those of the state, {list(batch)}, got {list(given)}: write "
            f"batch_shape={given} in init"
        )


def check_digits(digits: Any, name: str) -> None:
    """Refuse digits that are no array of integers, and those that were donated to an `update`."""
    if not hasattr(digits, "shape"):
        raise TypeError(
            f"the digits of a State must be an array, got {checks.brief(digits)}: write "
            f"{name}(jnp.asarray(digits, jnp.int32))"
        )
    if digits.dtype in _SWAPPED:
        raise TypeError(
            f"the digits of a State must be in this machine's byte order, got {digits.dtype}: "
            f"write {name}(digits.astype(numpy.int32))"
        )
    if digits.dtype not in (np.int32, np.int64):  # a mean, or a cast, has lost some of them
        raise TypeError(
            f"the digits of a State must be int32, got {digits.dtype}: add states by "
            "jax.lax.psum or merge(a, b), not by pmean, and leave them out of casts of precision"
        )
    if is_concrete(digits) and getattr(digits, "is_deleted", bool)():
        raise ValueError(
            "an update has taken the memory of this state: use the state that update returned"
        )


def is_ready(digits: Any) -> bool:
    """Whether digits can be read without waiting for a device, or for another process."""
    if isinstance(digits, jax.Array) and not digits.is_fully_addressable:
        return False
    ready = getattr(digits, "is_ready", None)  # a NumPy array has none
    return ready is None or bool(ready())
