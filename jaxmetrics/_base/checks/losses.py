"""The numeric options of losses, and the slots of mini-batch losses."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.arrays import all_valid, as_array, first_invalid, wide_ids
from jaxmetrics._base.checks.values import number
from jaxmetrics._base.host import all_concrete, is_concrete
from jaxmetrics._base.numerics import default_float
from jaxmetrics._base.types import ArrayLike, HostOrDeviceArray, Items

_LOSS_OPTIONS: dict[str, Any] = {
    "max_fpr": number(0, 1, open_low=True, several=False),
    "min_tpr": number(0, 1, open_high=True, several=False),
    "margin": number(0, math.inf, open_low=True, open_high=True, several=False),
    "temperature": number(0, math.inf, open_low=True, open_high=True, several=False),
    "band": number(0, math.inf, open_high=True, several=False),
    "kl_weight": number(0, math.inf, open_low=True, open_high=True, several=False),
    "step_size": number(0, 1, open_low=True, several=False),
}


def check_loss_options(options: dict[str, Any]) -> dict[str, Any]:
    """The numeric options of a loss, each checked by its name, as arrays that may be traced."""
    checked = {name: _LOSS_OPTIONS[name](name, value) for name, value in options.items()}
    for name, value in checked.items():
        _refuse_rounded_away(name, value)
    return checked


def _refuse_rounded_away(name: str, value: HostOrDeviceArray) -> None:
    """Refuse a number that JAX's default float rounds to 0 or to infinity."""
    if not is_concrete(value):
        return
    dtype = default_float()
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.asarray(value).astype(dtype)
    if (rounded < np.finfo(dtype).tiny) != (np.asarray(value) == 0) or np.isinf(rounded):
        raise ValueError(
            f"{name} is beyond the range of {dtype}, got {value}: write a number nearer to 1"
        )


def check_slots(index: ArrayLike, items: Items, n_slots: int) -> HostOrDeviceArray:
    """The slot of each item of a batch; the slots of positives must exist."""
    array = as_array("index", index)
    for name, given in items._asdict().items():
        if given is not None and given.ndim > 1:
            raise ValueError(
                f"a batch is [n], got {name} {list(given.shape)}: for several models vmap the call"
            )
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"index must hold whole numbers, the slot of each item, got {array.dtype}")
    if array.shape != items.scores.shape:
        raise ValueError(
            f"index must be {list(items.scores.shape)}, one slot per item, got {list(array.shape)}"
        )
    array = wide_ids(array)
    if all_concrete(array, items.labels, items.where):
        with jax.ensure_compile_time_eval():
            valid = (array >= 0) & (array < n_slots) | (items.labels == 0)
            if not all_valid(valid, items.where):
                raise ValueError(
                    f"index must be from 0 to n_slots - 1 = {n_slots - 1}, got "
                    f"{first_invalid(array, valid, items.where)}: write init(n_slots) with a slot "
                    "for each positive"
                )
    return array
