"""Thresholds as they are reported: rounded so that they flag what the metric counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.cumulative import running_minimum
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.numerics import as_constant, is_inexact, namespace
from jaxmetrics._base.warned import warn

# Returns, from the options of a metric, AT_LEAST, ABOVE or, if its value is no threshold, None.
Decision = Callable[..., str | None]
AT_LEAST, ABOVE = "score >= threshold", "score > threshold"
_FIELDS = {"threshold", "thresholds"}  # of one row, and of all rows of a curve


def no_decision(**options: Any) -> None:
    """The decision of a metric whose value is no threshold."""


def holds(dtype: Any, other: Any) -> bool:
    """Whether the floating `dtype` represents every number of the real dtype `other`."""
    if jnp.issubdtype(other, jnp.floating):
        return bool(other.itemsize <= np.dtype(dtype).itemsize)
    bits: int = 8 * other.itemsize - int(jnp.issubdtype(other, jnp.signedinteger))
    return bits <= np.finfo(dtype).nmant + 1


def rounded_down(x: Any, dtype: Any) -> Any:
    """The largest numbers of `dtype` that are at most `x`, as float64.

    Subnormal numbers are left out, as XLA takes them for 0.
    """
    if dtype == np.float64:
        return x
    library, tiny = namespace(x), float(np.finfo(dtype).tiny)
    return library.where(abs(x) < tiny, library.where(x < 0, -tiny, 0.0), _down(x, dtype))


def _down(x: Any, dtype: Any) -> Any:
    """`rounded_down`, also to subnormal numbers."""
    library, near = namespace(x), _nearest(x, dtype)
    lower = library.nextafter(near.astype(dtype), np.asarray(-np.inf, dtype)).astype(np.float64)
    return library.where(near > x, lower, near)


def as_reported(
    value: Any,
    scores: Callable[[], Any],
    decision: str | None,
    given: Any,
    dtype: Any,
    *,
    of_table: bool = False,
) -> tuple[Any, Any]:
    """A value whose thresholds are rounded to `dtype`, and whether any then flags other items.

    Thresholds are the fields `threshold` and `thresholds` of a NamedTuple, and the whole value if
    there is a `decision`. The second result is None if `dtype` represents every score, or if the
    value holds no threshold.

    Args:
      value: a pytree in double precision.
      scores: returns the scores `[n]` of the items, NaN for items without weight.
      decision: AT_LEAST, ABOVE or None.
      given: the dtype in which scores were given; None if only their table is known.
      dtype: the dtype of the result.
      of_table: whether `scores` returns the thresholds of a table: descending, one for each
        distinct score. A value with a field `thresholds` needs a table.
    """
    if decision is None and not isinstance(value, tuple):  # the usual case: no threshold
        return value, None
    unlike: list[Any] = []
    exact = given is not None and holds(dtype, given)

    def rounded(path: tuple[Any, ...], x: Any) -> Any:
        field = getattr(path[-1], "name", None) if path else None
        if decision == ABOVE and dtype != np.float64:
            x, differs = _each(_above, x, scores(), dtype)
        elif (field in _FIELDS or decision == AT_LEAST) and not exact:
            x, at = as_constant(x), as_constant(scores())
            if field == "thresholds":
                differs = _next_alike(at, dtype)
            else:
                differs = _each(_flags_others, x, at, dtype, of_table)
            x = rounded_down(x, dtype)
        else:
            return x
        unlike.append(differs.any())
        return x

    value = jax.tree_util.tree_map_with_path(rounded, value)
    return value, None if exact or not unlike else sum(unlike) > 0


def finished(
    value: Any,
    undefined: Any,
    scores: Callable[[], Any],
    decision: str | None,
    given: Any,
    dtype: Any,
    *,
    of_table: bool = False,
) -> tuple[Any, Any]:
    """A value `as_reported`; where it is undefined, it is NaN and causes no warning."""
    library = namespace(undefined)
    value = jax.tree.map(lambda x: library.asarray(x, np.float64), value)
    value, unlike = as_reported(value, scores, decision, given, dtype, of_table=of_table)
    if library is jnp or undefined.any():
        value = jax.tree.map(lambda x: library.where(undefined, np.nan, x), value)
    return value, jax.tree.map(lambda x: x & ~undefined, unlike)


def _each(function: Callable[..., Any], thresholds: Any, *others: Any) -> Any:
    """`function` of each threshold; NumPy takes one at a time, which bounds memory."""
    if namespace(thresholds) is jnp:
        return jnp.vectorize(lambda x: function(x, *others))(thresholds)
    n = thresholds.size
    found = [function(x, *others) for x in (thresholds.ravel() if n else np.full(1, np.nan))]
    return jax.tree.map(lambda *x: np.reshape(x[:n], thresholds.shape), *found)


def _next_alike(scores: Any, dtype: Any) -> Any:
    """Whether each of the descending scores, rounded down, also flags the next lower score."""
    library, some = namespace(scores), scores == scores
    before = running_minimum(library.where(some, scores, np.inf))[:-1]
    some_before = library.cumsum(some)[:-1] > 0
    return some_before & (_nearest(scores[1:], dtype) >= rounded_down(before, dtype))


def _flags_others(x: Any, scores: Any, dtype: Any, of_table: bool) -> Any:
    """Whether the score `x` `[]`, rounded down, also flags a lower one of the scores `[n]`."""
    library, lower, equal = namespace(x, scores), scores < x, scores == x
    highest = library.where(lower, scores, -np.inf).max()
    # A threshold is compared with scores as they are, or with rounded ones. If it flags a lower
    # score as it is, it also flags the rounded one, which is tested here.
    flagged = lower.any() & equal.any() & (_nearest(highest, dtype) >= rounded_down(x, dtype))
    if of_table:
        return flagged | (equal.sum() > 1)
    if library is jnp or is_inexact(scores):
        return flagged
    same = scores[equal]  # equal in double precision, where whole numbers above 2^53 coincide
    return flagged | (len(same) > 0 and same.min() < same.max())


def _above(x: Any, scores: Any, dtype: Any) -> tuple[Any, Any]:
    """A quantile as a number of `dtype` between the same two scores, and whether there is none."""
    exact, scores = as_constant(x), as_constant(scores)
    library, over = namespace(exact, scores), scores > exact
    low = library.where(scores <= exact, scores, -np.inf).max()
    high = library.where(over, scores, np.inf).min()
    low, high = low.astype(np.float64), high.astype(np.float64)
    none_over, near = ~over.any(), _nearest(exact, dtype)
    up = library.where(near < low, -rounded_down(-exact, dtype), near)
    down = rounded_down(exact, dtype)
    down = library.where(down < low, _down(exact, dtype), down)  # between subnormal scores
    number = library.where((near < high) | none_over, up, down)
    differs = library.zeros((), bool)
    for below, above in ((low, high), (_nearest(low, dtype), _nearest(high, dtype))):
        differs = differs | ~((below <= number) & ((number < above) | none_over))
    finite = library.isfinite(exact)
    slope = library.where(finite, x - exact, 0)  # 0, with the derivative of x
    return number + slope, finite & differs


def _nearest(x: Any, dtype: Any) -> Any:
    near = x.astype(dtype)
    if namespace(x) is jnp:
        # XLA for GPUs would remove a conversion to the dtype and back.
        near = lax.optimization_barrier(near)
    return near.astype(np.float64)


def warn_if(unlike: Any, dtype: Any) -> None:
    """Warn that thresholds flag other items than the metric counted, where that is known."""
    if unlike is not None and is_concrete(unlike) and bool(unlike):
        name = np.dtype(dtype).name
        way = "turn x64 mode on" if name == "float32" else "rank the scores first"
        warn(
            f"{name} cannot tell scores beside a threshold apart, so that comparing scores with it "
            f"flags other items than the metric counted: {way}",
        )
