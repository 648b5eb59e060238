"""Means of values that arrive one by one, such as the nDCG of each query, with confidence limits.

A state is a sum of integers, as that of scores is. It merges by `+`, and any split and any order of
the values lead to the same state. Values are kept to 2^-64, and the squares of what is kept are
exact: the standard error holds wherever the mean is.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import as_numpy, is_concrete, near, of_all_processes, to_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.quoting import restoring
from jaxmetrics._base.types import Array, ArrayLike, HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics.inference._intervals.distributions import normal_quantile
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._batch import check_batch, check_digits, is_ready, zeros

__all__ = ["Mean", "State", "init", "merge", "result", "update"]

# Rows of a state: the number of defined values and of undefined ones; the sum of the positive
# values and of the sizes of the negative ones, in units of 2^-64; the sum of squares, in units of
# 2^-128. The last row has the room that the state uses, in the highest digit, and the number of
# values that have lost a part below 2^-64, in the lower digits.
_VALUES, _UNDEFINED, _ABOVE, _BELOW, _SQUARES, _USED = range(6)
_DIGITS, _DIGITS_OF_VALUES = 11, 6
_UNIT = 2.0**-64
_LARGEST = 2.0**16  # a state has room for 2^31 squares of it


class State(NamedTuple):
    """The sums of the values so far; one array of integers. a + b, or sum([a, b]), is merge(a, b).

    Attributes:
      digits: `[..., 6, digits]` int32.
    """

    digits: Array

    def __add__(self, other: State) -> State:  # type: ignore[override]  # not a longer tuple
        return merge(self, other)

    def __radd__(self, other: int) -> State:  # sum(states) begins with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented


class Mean(NamedTuple):
    """The mean of values with its standard error and confidence limits; `[...]` each.

    Attributes:
      mean: the mean of the values that are defined.
      standard_error: of the mean, if the values are independent.
      low: the lower limit of its confidence interval, mean - z standard_error.
      high: the upper limit, mean + z standard_error.
      n: number of values that are defined.
      n_undefined: number of values that are NaN or out of range, and left out.
    """

    mean: Array
    standard_error: Array
    low: Array
    high: Array
    n: Array
    n_undefined: Array


def init(batch_shape: tuple[int, ...] = ()) -> State:
    """A state that has seen no values.

    Args:
      batch_shape: leading axes of the values, such as `(n_models,)`.

    Returns:
      A State, a pytree of one array.

    Raises:
      TypeError: batch_shape is not a tuple of ints.
      ValueError: the state does not fit into memory.

    Nothing is NaN. Memory 264 bytes for each mean of the batch.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.means.init().digits.shape)
      (6, 11)

    Reference: that of `jaxmetrics.streaming.init`.
    """
    return State(zeros(batch_shape, 6, _DIGITS))


@on_any_mesh
def update(state: State, values: ArrayLike, *, where: ArrayLike | None = None) -> State:
    """The state after a batch of values.

    n, sum x and sum x^2 grow by those of the new values x.

    Args:
      state: from `init` or the last `update`. Its buffer is donated: use the returned state.
        With leading axes write `init(batch_shape)`: one state that `jax.vmap` gives to all rows
        cannot be donated, as JAX warns.
      values: `[..., n]`, from -2^16 to 2^16, such as `jaxmetrics.ndcg(..., empty=nan)` of n
        queries; in JAX's default float. The part below 2^-64 is dropped.
      where: `[..., n]` bool, False for values to leave out.

    Returns:
      The State.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; state is not a State of means, an
        `update` has used it up, its sums have overflowed, or leading axes other than its own.

    NaN and values out of range are counted separately. `update` does not wait for a device that
    still computes the state; if sums overflow, a later function that takes the state refuses it,
    and in a traced program the result is NaN. A warning says where values in the CPU's memory are
    out of range. Compiled once for each power of two that n reaches for such values, and once for
    each shape of values on other devices. Time O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> state = means.update(means.init(), jm.ndcg([[0.9, 0.8], [0.2, 0.7]], [[1, 0], [1, 0]]))
      >>> print(f"{means.result(state).mean:.4f}")
      0.8155

    Reference: that of `jaxmetrics.streaming.init`.
    """
    _check_means(state, wait=False)
    given = checks.as_arrays({"values": values}, {"where": where})
    check_batch(given.values(), state.digits.shape[:-2])
    values, where = near(checks.unwrapped(given["values"])), near(given.get("where"))
    if isinstance(values, np.ndarray) and not isinstance(where, jax.Array):
        values, where = _padded(values, where)
    else:
        values, where = to_program((values, where))
    return _update(state, values, where)


def _padded(values: HostArray, where: HostArray | None) -> tuple[HostArray, HostArray]:
    """Values and mask, padded to a power of two: batches of similar size share a program.

    Warns of values out of range, which are left out.
    """
    values, valid = np.broadcast_arrays(values, np.bool_(True) if where is None else where)
    with np.errstate(over="ignore"):  # _LARGEST overflows float16
        beyond = valid & ((values > _LARGEST) | (values < -_LARGEST))
    if beyond.any():
        warn(
            f"{beyond.sum()} of {valid.sum()} values are beyond {_LARGEST:,.0f}, such as "
            f"{values[beyond][0]:g}, and left out: write values / 1000, or of another unit"
        )
    n = values.shape[-1]
    widths = [(0, 0)] * (values.ndim - 1) + [(0, numerics.next_power_of_two(n) - n)]
    return np.pad(values, widths), np.pad(valid, widths)


@functools.partial(jax.jit, donate_argnums=0)
def _update(state: State, values: Array, where: Array | None) -> State:
    values = jnp.asarray(values)
    values = values.astype(jnp.promote_types(values.dtype, jnp.float32))
    defined = jnp.abs(values) <= _LARGEST
    valid = jnp.ones(1, bool) if where is None else where
    counted = defined & valid
    value = jnp.where(counted, values, 0)

    def split(amounts: Array) -> tuple[list[Array], Array]:
        amounts = jnp.broadcast_to(amounts, counted.shape) * (_counts.UNIT / _UNIT)
        return _counts.split(amounts, _DIGITS_OF_VALUES)

    def digits_of(amounts: Array) -> list[Array]:
        return split(amounts)[0]

    def number(which: Array) -> list[Array]:
        return [jnp.broadcast_to(which, counted.shape).astype(jnp.int32)]

    sizes, lost = split(jnp.abs(value))
    lost = lost | ((value != 0) & ~functools.reduce(jnp.logical_or, (x > 0 for x in sizes)))
    columns = [
        number(counted),
        number(~defined & valid),
        digits_of(jnp.maximum(value, 0)),
        digits_of(jnp.maximum(-value, 0)),
        _squared(sizes),
        number(lost),
    ]
    sums = jnp.stack([_counts.summed(x, _DIGITS) for x in columns], axis=-2)
    return State(_closed(_counts.carried(state.digits + sums), _has_overflowed(state.digits)))


def _squared(digits: list[Array]) -> list[Array]:
    """The digits of squares, not carried: each is below 2^20."""
    found = [jnp.zeros_like(digits[0]) for _ in range(_DIGITS + 1)]
    wide = [x.astype(jnp.uint32) for x in digits]
    for i in range(len(wide)):
        for j in range(i, len(wide)):
            product, times = wide[i] * wide[j], 1 if i == j else 2
            for k, half in enumerate((product & 0xFFFF, product >> _counts.BITS)):
                found[i + j + k] += times * half.astype(jnp.int32)
    return found[:_DIGITS]  # enough: the square of _LARGEST is a 1 in the last digit


def _has_overflowed(digits: Any) -> Any:
    return _counts.is_full(digits[..., _USED, -1])


def _closed(digits: Array, overflow: Array) -> Array:
    """Carried digits, in which the room used is updated."""
    highest = digits[..., :_USED, -1]
    least, most = jnp.min(highest, axis=-1), jnp.max(highest, axis=-1)
    used = _counts.room_used(least, most, overflow)
    return digits.at[..., _USED, -1].set(used)


@on_any_mesh
def merge(a: State, b: State) -> State:
    """The state of the values of both, as a + b and `jax.lax.psum` return it.

    Sums leaf by leaf have the limits that `jaxmetrics.streaming.merge` names.

    Args:
      a: a State.
      b: a State with the same leading axes.

    Returns:
      The State, as if one state had seen all values.

    Raises:
      TypeError: a or b is not a State of means.
      ValueError: they differ in leading axes, an `update` has used one up, or the sums of one have
        overflowed.

    Nothing is NaN. Time O(1).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> a, b = means.update(means.init(), [1., 0.]), means.update(means.init(), [1.])
      >>> print(f"{means.result(means.merge(a, b)).mean:.4f}")
      0.6667

    Reference: that of `jaxmetrics.streaming.init`.
    """
    _check_means(a)
    _check_means(b)
    if a.digits.shape != b.digits.shape:
        raise ValueError(
            f"states must be of the same batch to be merged, got {list(a.digits.shape[:-2])} and "
            f"{list(b.digits.shape[:-2])}"
        )
    return State(_merged(a.digits, b.digits))


@jax.jit
def _merged(a: Array, b: Array) -> Array:
    return _closed(_counts.carried(a + b), _has_overflowed(a) | _has_overflowed(b))


@on_any_mesh
def result(state: State, *, confidence_level: float = 0.95) -> Mean:
    """The mean of all values, its standard error and its confidence limits.

    mean = sum x / n, standard_error = sqrt(sum (x - mean)^2 / (n (n - 1))).

    Args:
      state: from `update` or `merge`.
      confidence_level: in (0, 1).

    Returns:
      A Mean `[...]`, in JAX's default float.

    Raises:
      TypeError: state is not a State of means, or confidence_level is not a number.
      ValueError: confidence_level is not in (0, 1), an `update` has used the state up, its sums
        have overflowed (it has room for 2^31 values of the largest size), or rounding to 2^-64 may
        have taken 0.1 % of the values.

    The mean is NaN without values, its standard error and limits with fewer than two. All are NaN
    where a traced state has overflowed or lost too much by rounding. Time O(1).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> found = means.result(means.update(means.init(), [1., 0., 1., 1.]))
      >>> print(f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})")
      0.75 (0.26 to 1.24)

    Reference: that of `jaxmetrics.bootstrap_mean`, whose interval suits few and skewed values: it
    also rests on their skewness, which a state does not keep.
    """
    _check_means(state)
    level = checks.check_level(confidence_level)
    found: Mean
    found, rounded = _result(state.digits, jnp.asarray(level), numerics.default_float())
    if is_concrete(state.digits) and np.any(of_all_processes(rounded)):
        raise ValueError(
            "values are too small: a state keeps them to 2^-64 = 5.4e-20, and rounding may have "
            "taken 0.1 % of their sum; pass multiples of them, and divide the result"
        )
    return found


@double_program("dtype")
def _result(digits: Array, level: Array, dtype: Any) -> tuple[Mean, Array]:
    """The mean, and whether rounding may have taken more than a thousandth of the values."""
    digits = digits.astype(jnp.int64)
    n, undefined = (_counts.whole(digits[..., i, :]) for i in (_VALUES, _UNDEFINED))
    above, below = (_counts.whole(digits[..., i, :]) * _UNIT for i in (_ABOVE, _BELOW))
    mean = numerics.divide(above - below, n, jnp.nan)
    # n sum x^2 - (sum x)^2 in integers: far from 0 the two agree in most of their digits.
    exact = _counts.carried(jnp.pad(digits, [(0, 0)] * (digits.ndim - 1) + [(0, 1)]))
    summed = exact[..., _ABOVE, :] - exact[..., _BELOW, :]
    spread = _product(exact[..., _VALUES, :], exact[..., _SQUARES, :]) - _product(summed, summed)
    spread = _counts.whole(_counts.carried(spread)) * _UNIT**2
    error = jnp.sqrt(numerics.divide(spread, n**2 * jnp.maximum(n - 1, 0), jnp.nan))
    margin = normal_quantile((1 + level) / 2) * error
    found = mean, error, mean - margin, mean + margin, n, undefined
    lost = _counts.whole(digits[..., _USED, :-1]) * _UNIT
    rounded = lost > _counts.MOST_LOST * (above + below + lost)
    full = _has_overflowed(digits) | rounded
    return Mean(*(jnp.where(full, jnp.nan, x).astype(dtype) for x in found)), rounded


def _product(a: Array, b: Array) -> Array:
    """`[..., 2 m]`, the digits of the product of two numbers of m digits, not carried."""
    m = a.shape[-1]
    products = a[..., :, None] * b[..., None, :]
    # Rows of length 2 m + 1, read as rows of length 2 m, shift each row one place to the right.
    shifted = jnp.pad(products, [(0, 0)] * (a.ndim) + [(0, m + 1)])
    flat = shifted.reshape(*a.shape[:-1], -1)[..., : 2 * m * m]
    return jnp.sum(flat.reshape(*a.shape[:-1], m, 2 * m), axis=-2)


def _check_means(state: State, *, wait: bool = True) -> None:
    if not isinstance(state, State):
        hint = restoring(state, State._fields, "means.State") or "means.init()"
        raise TypeError(f"state must be a State of means, got {checks.brief(state)}: write {hint}")
    check_digits(state.digits, "means.State")
    if not is_concrete(state.digits) or not (wait or is_ready(state.digits)):
        return
    if np.any(_has_overflowed(as_numpy(state.digits))):
        raise ValueError(
            "the sums of the state have overflowed: it has room for 2^31 values of the largest "
            "size, and for 16,384 states added leaf by leaf; add up states by merge"
        )
