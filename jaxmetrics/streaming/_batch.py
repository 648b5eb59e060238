"""The leading axes of a state: those of the arrays that update it."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_batch_shape(batch_shape: tuple[int, ...]) -> None:
    """Refuse anything but a tuple of ints."""
    if not isinstance(batch_shape, tuple) or not all(isinstance(x, int) for x in batch_shape):
        raise TypeError(f"batch_shape must be a tuple of ints, got {batch_shape!r}")


def check_batch(arrays: Any, batch: tuple[int, ...]) -> None:
    """Refuse arrays `[..., n]` whose leading axes are not those of the state."""
    given = np.broadcast_shapes(*(x.shape for x in arrays if x is not None))[:-1]
    if given != batch:
        raise ValueError(
            f"the leading axes must be those of the state, {list(batch)}, got {list(given)}: write "
            f"batch_shape={given} in init"
        )
