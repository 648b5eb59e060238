"""Rows of arrays that NumPy evaluates one by one, and their values as arrays of JAX's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np

from jaxmetrics._base.double import nan_as_value
from jaxmetrics._base.host import on_host, to_jax
from jaxmetrics._base.items import rows_of

T = TypeVar("T", bound=tuple[Any, ...])

FEW = 64  # so few rows, of any length, take hundreds of ms less than the first call of a program


class Rows(NamedTuple, Generic[T]):
    """Arrays in the CPU's memory: their rows, the shape of the batch, and options as NumPy's."""

    rows: list[T]
    batch: tuple[int, ...]
    options: dict[str, Any]


def rows_at_hand(
    items: T, options: dict[str, Any], *, short: int, few: int = FEW
) -> Rows[T] | None:
    """The rows of Items, or of another NamedTuple of arrays `[..., n]`.

    None if NumPy cannot take them now, or if more than a `few` rows have fewer than `short` items.
    """
    given = [x for x in items if x is not None]
    single = all(x.ndim == 1 for x in given)
    batch = () if single else np.broadcast_shapes(*(x.shape[:-1] for x in given))
    if 0 in batch or (math.prod(batch) > few and given[0].shape[-1] < short):
        return None
    found = at_hand_with(items, options)
    if found is None:
        return None
    items, options = found
    # One by one: threads would wait for each other between NumPy's short operations.
    return Rows(list(rows_of(items, batch, len(batch) + 1)) if batch else [items], batch, options)


def at_hand_with(items: T, options: dict[str, Any]) -> tuple[T, dict[str, Any]] | None:
    """Items, and options that are arrays, as NumPy's; None if NumPy cannot take them now."""
    names = [k for k, v in options.items() if isinstance(v, (np.ndarray, jax.Array))]
    found = on_host(*items, *(options[name] for name in names))
    if found is None:
        return None
    limits = dict(zip(names, found[len(items) :], strict=True))
    return type(items)(*found[: len(items)]), {**options, **limits}


def in_jax(values: Sequence[Any], batch: tuple[int, ...], like: Any, dtype: Any = None) -> Any:
    """The values of all rows, each an array or a pytree of arrays, as JAX's arrays in `dtype`."""

    def whole(*rows: Any) -> jax.Array:
        found = np.reshape(rows, (*batch, *np.shape(rows[0]))) if batch else np.asarray(rows[0])
        return to_jax(found if dtype is None else found.astype(dtype), like)

    with nan_as_value(), np.errstate(all="ignore"):
        if isinstance(values[0], (np.ndarray, np.generic)):  # the usual case, without a tree
            return whole(*values)
        return jax.tree.map(whole, *values)
