"""Means of values that arrive one by one, such as the nDCG of each query, with confidence limits.

A state is a sum of integers, as that of scores is. It merges by `+`, and any split and any order of
the values lead to the same state. Values and their squares are kept to 2^-32.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program, ordinary_promotion
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.inference._intervals.distributions import normal_quantile
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._batch import check_batch, check_batch_shape

__all__ = ["Mean", "State", "init", "merge", "result", "update"]

# Numbers of defined and of undefined values; sums of positive values, of negative ones, of squares.
_VALUES, _UNDEFINED, _ABOVE, _BELOW, _SQUARES = range(5)
_LARGEST = 2.0**16  # a state has room for 2^31 squares of it


class State(NamedTuple):
    """The sums of the values so far; one array of integers.

    Attributes:
      digits: `[..., 5, digits]` int32.
    """

    digits: Array


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

    Nothing is NaN. Memory 100 bytes for each mean of the batch.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.means.init().digits.shape)
      (5, 5)

    Reference: that of `jaxmetrics.streaming.init`.
    """
    check_batch_shape(batch_shape)
    return State(jnp.zeros((*batch_shape, 5, _counts.DIGITS_OF_SQUARES), jnp.int32))


def update(state: State, values: ArrayLike, *, where: ArrayLike | None = None) -> State:
    """The state after a batch of values.

    Args:
      state: from `init` or the last `update`. Its buffer is donated: use the returned state.
      values: `[..., n]`, from -2^16 to 2^16, such as `jaxmetrics.ndcg(..., empty=nan)` of n
        queries; in JAX's default float.
      where: `[..., n]` bool, False for values to leave out.

    Returns:
      The State.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; state is not a State of means,
        or leading axes other than those of the state.

    NaN and values out of range are counted separately. Compiled once for each input shape. Time
    O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> state = means.update(means.init(), jm.ndcg([[0.9, 0.8], [0.2, 0.7]], [[1, 0], [1, 0]]))
      >>> print(f"{means.result(state).mean:.4f}")
      0.8155

    Reference: that of `jaxmetrics.streaming.init`.
    """
    _check_means(state)
    given = checks.as_arrays({"values": values}, {"where": where})
    check_batch(given.values(), state.digits.shape[:-2])
    with ordinary_promotion():
        updated: State = _update(state, given["values"], given.get("where"))
    return updated


@functools.partial(jax.jit, donate_argnums=0)
def _update(state: State, values: Array, where: Array | None) -> State:
    values = jnp.asarray(values)
    values = values.astype(jnp.promote_types(values.dtype, jnp.float32))
    defined = jnp.abs(values) <= _LARGEST
    valid = jnp.ones(1, bool) if where is None else where
    counted = defined & valid
    value = jnp.where(counted, values, 0)

    def total(amounts: Array) -> Array:
        return _sum(
            _counts.digits_of(jnp.broadcast_to(amounts, counted.shape), _counts.DIGITS_OF_SQUARES)
        )

    columns = [
        total(counted.astype(values.dtype)),
        total((~defined & valid).astype(values.dtype)),
        total(jnp.maximum(value, 0)),
        total(jnp.maximum(-value, 0)),
        total(value**2),
    ]
    return State(_counts.carried(state.digits + jnp.stack(columns, axis=-2)))


def _sum(digits: Array) -> Array:
    """The sum over items of digits `[..., n, digits]` below 2^16, carried before they overflow."""
    room = 1 << (31 - _counts.BITS - 1)
    while digits.shape[-2] > 1:
        n = min(room, digits.shape[-2])
        fill = -digits.shape[-2] % n
        padded = jnp.pad(digits, [(0, 0)] * (digits.ndim - 2) + [(0, fill), (0, 0)])
        parts = padded.reshape(*digits.shape[:-2], -1, n, digits.shape[-1])
        digits = _counts.carried(jnp.sum(parts, axis=-2))
    return digits[..., 0, :] if digits.shape[-2] else jnp.zeros_like(jnp.sum(digits, axis=-2))


def merge(a: State, b: State) -> State:
    """The state of the values of both: a + b, as `jax.lax.psum` adds them.

    Args:
      a: a State.
      b: a State with the same leading axes.

    Returns:
      The State, as if one state had seen all values.

    Raises:
      TypeError: a or b is not a State of means.
      ValueError: they differ in leading axes.

    Nothing is NaN.

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
    return State(_counts.carried(a.digits + b.digits))


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
      ValueError: confidence_level is not in (0, 1).

    The mean is NaN without values, its standard error and limits with fewer than two. Time O(1).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> found = means.result(means.update(means.init(), [1., 0., 1., 1.]))
      >>> print(f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})")
      0.75 (0.26 to 1.24)

    Reference: that of `jaxmetrics.bootstrap_mean`, whose interval suits few and skewed values.
    """
    _check_means(state)
    level = checks.check_level(confidence_level)
    found: Mean = _result(state.digits, jnp.asarray(level), numerics.default_float())
    return found


@double_program("dtype")
def _result(digits: Array, level: Array, dtype: Any) -> Mean:
    totals = jnp.moveaxis(_counts.total_of(digits), -1, 0)
    n = totals[_VALUES]
    mean = numerics.divide(totals[_ABOVE] - totals[_BELOW], n, jnp.nan)
    about_mean = jnp.maximum(totals[_SQUARES] - n * mean**2, 0)
    error = jnp.sqrt(numerics.divide(about_mean, n * jnp.maximum(n - 1, 0), jnp.nan))
    margin = normal_quantile((1 + level) / 2) * error
    found = mean, error, mean - margin, mean + margin, n, totals[_UNDEFINED]
    return Mean(*(x.astype(dtype) for x in found))


def _check_means(state: State) -> None:
    if not isinstance(state, State):
        raise TypeError(f"state must be a State of means, got {state!r}: write means.init()")
