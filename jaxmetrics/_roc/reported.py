"""Thresholds as they are reported: rounded so that they flag what the metric counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array

# From the options of a metric: AT_LEAST, ABOVE or, where its value is no threshold, None.
Decision = Callable[..., str | None]
AT_LEAST, ABOVE = "score >= threshold", "score > threshold"
_FIELDS = {"threshold", "thresholds"}  # of one row, and of all rows of a curve


def no_decision(**options: Any) -> None:
    """The decision of a metric whose value is no threshold."""


def holds(dtype: Any, other: Any) -> bool:
    """Whether the floating `dtype` has all numbers of the real dtype `other`."""
    if jnp.issubdtype(other, jnp.floating):
        return bool(other.itemsize <= np.dtype(dtype).itemsize)
    bits: int = 8 * other.itemsize - int(jnp.issubdtype(other, jnp.signedinteger))
    return bits <= np.finfo(dtype).nmant + 1


def rounded_down(x: Array, dtype: Any) -> Array:
    """The largest numbers of `dtype` that are at most `x`, as float64.

    Subnormal numbers are left out, as XLA takes them for 0.
    """
    if dtype == jnp.float64:
        return x
    near = x.astype(dtype)
    down = jnp.where(near.astype(jnp.float64) > x, jnp.nextafter(near, -jnp.inf), near)
    tiny = float(np.finfo(dtype).tiny)
    return jnp.where(jnp.abs(x) < tiny, jnp.where(x < 0, -tiny, 0.0), down.astype(jnp.float64))


def as_reported(
    value: Any, table: Any, decision: str | None, scores: Any, dtype: Any
) -> tuple[Any, Array | None]:
    """A result of one table, with thresholds that `dtype` has, and whether some flag other items.

    Thresholds are the fields `threshold` and `thresholds` of a NamedTuple, and all of the value if
    there is a `decision`. The second result is None where `dtype` has every score.

    Args:
      value: a pytree in double precision.
      table: the ScoreTable `[rows]` of the value.
      decision: AT_LEAST, ABOVE or None.
      scores: the dtype of the scores; None if only their table is known.
      dtype: the dtype of the result.
    """
    unlike: list[Array] = []
    exact = scores is not None and holds(dtype, scores)

    def rounded(path: tuple[Any, ...], x: Array) -> Array:
        field = getattr(path[-1], "name", None) if path else None
        if decision == ABOVE and dtype != jnp.float64:
            x, differs = _above(x, table, dtype)
        elif (field in _FIELDS or decision == AT_LEAST) and not exact:
            x, differs = _at_least(x, table, dtype, every_row=field == "thresholds")
        else:
            return x
        unlike.append(differs)
        return x

    value = jax.tree_util.tree_map_with_path(rounded, value)
    return value, None if exact or not unlike else jnp.any(jnp.stack(unlike))


def _at_least(x: Array, table: Any, dtype: Any, every_row: bool) -> tuple[Array, Array]:
    """Thresholds of rows, rounded down, and whether one also flags the row below its own."""
    x, thresholds, weighty = _constants(x, table)
    # The row below counts in the comparison with scores as they are, and with rounded ones.
    below = _nearest(thresholds[1:], dtype) >= rounded_down(thresholds[:-1], dtype)
    below &= weighty[1:] & (jnp.cumsum(weighty[:-1]) > 0)
    if not every_row:
        below &= thresholds[:-1] == x[..., None]
    return rounded_down(x, dtype), jnp.any(below)


def _above(x: Array, table: Any, dtype: Any) -> tuple[Array, Array]:
    """Quantiles, rounded to a number between the same two scores, and whether there is none."""
    exact, thresholds, weighty = _constants(x, table)
    over = thresholds > exact[..., None]
    low = jnp.max(jnp.where(weighty & ~over, thresholds, -jnp.inf), axis=-1)
    high = jnp.min(jnp.where(weighty & over, thresholds, jnp.inf), axis=-1)
    none_over = ~jnp.any(weighty & over, axis=-1)
    near = _nearest(exact, dtype)
    up = jnp.where(near < low, -rounded_down(-exact, dtype), near)
    number = jnp.where((near < high) | none_over, up, rounded_down(exact, dtype))
    ends = [(low, high), (_nearest(low, dtype), _nearest(high, dtype))]
    fits = [(low <= number) & ((number < high) | none_over) for low, high in ends]
    differs = jnp.any(jnp.isfinite(exact) & ~jnp.all(jnp.stack(fits), axis=0))
    slope = jnp.where(jnp.isfinite(exact), x - exact, 0)  # 0, and keeps the derivative
    return number + slope, differs


def _constants(x: Array, table: Any) -> tuple[Array, Array, Array]:
    """The values, the thresholds, and which rows have weight, all without derivatives."""
    thresholds, positives, negatives = map(lax.stop_gradient, table)
    return lax.stop_gradient(x), thresholds, positives + negatives > 0


def _nearest(x: Array, dtype: Any) -> Array:
    return x.astype(dtype).astype(jnp.float64)


def warn_if(unlike: Any, dtype: Any) -> None:
    """Warn that thresholds flag other items than the metric counted, where that is known."""
    if unlike is not None and is_concrete(unlike) and bool(unlike):
        name = np.dtype(dtype).name
        way = "turn x64 mode on" if name == "float32" else "rank the scores first"
        warnings.warn(
            f"{name} cannot tell scores beside a threshold apart, so that comparing scores with it "
            f"flags other items than the metric counted: {way}",
            stacklevel=5,
        )
