"""Checks of single values: numbers in an interval, words, flags, counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import get_abstract_mesh

from jaxmetrics._base.checks.arrays import own
from jaxmetrics._base.divided import Divided
from jaxmetrics._base.host import is_concrete, memory_size
from jaxmetrics._base.quoting import brief, cut
from jaxmetrics._base.types import HostOrDeviceArray


def number(
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    several: bool = True,
) -> Any:
    """A check of one number, or of several, that may be traced. It returns an array."""
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"

    def inside(value: Any) -> Any:
        above = value > low if open_low else value >= low
        return above & (value < high if open_high else value <= high)

    def check(name: str, value: Any) -> HostOrDeviceArray:
        if type(value) is float and inside(value):
            return np.array(value)
        wanted = f"a number in {interval}{' or several' if several else ''}"
        try:
            if isinstance(value, jax.Array):  # its dtype stays: rates are compared in it
                floating = jnp.issubdtype(value.dtype, jnp.floating)
                array: HostOrDeviceArray = value if floating else value.astype(float)
            else:
                array = own(np.asarray(value))
                array = array.astype(np.float64) if array.dtype.kind in "iu" else _as_floats(array)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be {wanted}, got {brief(value)}") from None
        numeric = jnp.issubdtype(array.dtype, jnp.floating)
        if not numeric or (array.ndim and not several):
            raise TypeError(f"{name} must be {wanted}, got {brief(value)}")
        if not is_concrete(array):
            return jnp.where(inside(array), array, jnp.nan)  # a traced value cannot raise
        host = np.asarray(array)
        outside = host[~inside(host)]
        if outside.size:
            given = f"{outside[0]:g} among {host.size} values" if host.ndim else cut(f"{value}")
            percent = high == 1.0 and bool(np.any(abs(outside) > 1))
            hint = ": write fractions, 0.01 for 1 %" if percent else ""
            raise ValueError(f"{name} must be in {interval}, got {given}{hint}")
        return array

    return check


def _as_floats(array: Any) -> Any:
    """An array of objects as floats if these are Python's numbers; NumPy makes one from 2^64 on."""
    if array.dtype != object or not all(type(x) in (int, float) for x in array.flat):
        return array
    return np.array([*map(_as_float, array.flat)]).reshape(array.shape)


def _as_float(value: Any) -> float:
    """A number as a float; whole ones beyond all floats are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def constant(low: float, high: float, *, open_low: bool = True, nan: bool = False) -> Any:
    """A check of a number that is known when tracing, below `high`.

    It is above `low`, or with `open_low=False` not below it.
    """

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            given = brief(value)
            raise TypeError(f"{name} must be a number that is known when tracing, got {given}")
        found = _as_float(value)
        if nan and math.isnan(found):
            return math.nan  # one object: each other NaN would be a new constant, and compile again
        if not ((low < found if open_low else low <= found) and found < high):
            raise ValueError(f"{name} must be between {low:g} and {high:g}, got {cut(str(value))}")
        return found

    return check


def one_of(options: Iterable[str | None]) -> Any:
    """A check that a word is one of `options`."""
    allowed = tuple(options)

    def check(name: str, value: Any) -> str:
        if value not in allowed:
            which = "one of " * (len(allowed) > 1) + ", ".join(map(repr, allowed))
            raise ValueError(f"{name} must be {which}, got {brief(value)}")
        return str(value)

    return check


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {brief(value)}")
    return value


def check_choice(name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    """Refuse anything but one of the words, or None if it is allowed."""
    one_of(allowed)(name, value)


def check_count(name: str, value: int) -> None:
    """Refuse anything but a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        traced = "" if is_concrete(value) else ": it must be known when tracing, as a Python int"
        raise TypeError(f"{name} must be an int, got {brief(value)}{traced}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {brief(value)}")


def check_cutoffs(name: str, value: Any) -> tuple[tuple[int, ...], bool]:
    """Cutoffs k as constants, and whether a single one was given."""
    wanted = f"{name} must be an int or several ints, known when tracing"
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # traced, or of lengths that differ
        traced = not all(map(is_concrete, jax.tree.leaves(value)))
        way = f"functools.partial(metric, {name}=...), or by static_argnames={name!r} of jax.jit"
        hint = f": fix it by {way}" if traced else ""
        raise TypeError(f"{wanted}, got {brief(value)}{hint}") from None
    if any(isinstance(x, int) and abs(x) >= 2**63 for x in jax.tree.leaves(value)):
        raise ValueError(f"{name} must be at least 1 and below 2^63, got {brief(value)}")
    if array.dtype.kind not in "iu" or array.ndim > 1 or not array.size:
        raise TypeError(f"{wanted}, got {brief(value)}")
    if array.min() < 1:
        raise ValueError(f"{name} must be at least 1, got {array.min()}")
    if array.max() >= 2**63:
        raise ValueError(f"{name} must be below 2^63, got {array.max()}")
    return tuple(array.reshape(-1).tolist()), not array.ndim


def check_above(name: str, value: float, low: float, high: float = math.inf) -> float:
    """A finite constant above `low` and below `high`."""
    return constant(low, high)(name, value)


def check_nonnegative(name: str, value: float) -> float:
    """A finite constant that is not negative."""
    return constant(0, math.inf, open_low=False)(name, value)


def check_number(
    name: str, value: Any, *, low: float = 0.0, high: float = math.inf
) -> HostOrDeviceArray:
    """A number above `low` and below `high`, or several, as an array; they may be traced."""
    return number(low, high, open_low=True, open_high=True)(name, value)


def check_index(name: str, value: int, n: int) -> None:
    """Refuse anything but a whole number from 0 to n - 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, got {brief(value)}")
    if not 0 <= value < n:
        raise ValueError(f"{name} must be from 0 to {n - 1}, got {brief(value)}")


def check_reference(reference: int | str | None, names: Sequence[Any] | None, n: int) -> int | None:
    """The index of one of n models or groups, given as an index or by name; None if not given."""
    if isinstance(reference, str):
        if names is None:
            raise TypeError(
                f"reference must be an index, got {brief(reference)}: names are those of a dict or "
                "a frame of scores"
            )
        known = tuple(map(str, names))
        check_choice("reference", reference, known)
        if known.count(reference) > 1:
            raise ValueError(f"reference must be an index, got {brief(reference)}, a name of two")
        return known.index(reference)
    if reference is not None:
        check_index("reference", reference, n)
    return reference


def check_fits(name: str, value: int, n_numbers: int, instead: str) -> None:
    """Refuse a number of results that memory cannot hold: XLA would end the process."""
    n_bytes = 8 * n_numbers
    if n_bytes > memory_size():
        raise ValueError(
            f"{name} = {value:,} needs {n_bytes / 1e9:,.0f} GB for the results, and this machine "
            f"has {memory_size() / 1e9:,.0f} GB: {instead}"
        )


def check_axis_name(axis_name: Any) -> Any:
    """The axes of the mesh within `shard_map`, hashable; None and a `Divided` as they are."""
    if axis_name is None or isinstance(axis_name, Divided):
        return axis_name
    names = tuple(axis_name) if isinstance(axis_name, (list, tuple)) else axis_name
    several = names if isinstance(names, tuple) else (names,)
    known = get_abstract_mesh().manual_axes
    if not several or not all(name in known for name in several):
        raise ValueError(
            f"axis_name must be an axis of the mesh, or a tuple of such, within jax.shard_map; got "
            f"{brief(axis_name)}: leave it out where one call has all items"
        )
    if len(set(several)) < len(several):
        raise ValueError(f"axis_name must name each axis once, got {brief(axis_name)}")
    return names
