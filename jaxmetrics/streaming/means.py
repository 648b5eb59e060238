"""Means of values that come one by one, such as the nDCG of each query, with their error bars.

A state is a sum of integers, as that of scores is: it merges by `+`, and any split of the values
in any order gives the same one. Values are kept to 2^-32, and so are their squares.
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

# How many values there are, how many without one, the sums of those above and of those below 0,
# and of all squares.
_VALUES, _UNDEFINED, _ABOVE, _BELOW, _SQUARES = range(5)
_LARGEST = 2.0**16  # of which 2^31 squares can be added


class State(NamedTuple):
    """What the values so far add up to; one leaf, of integers.

    Attributes:
      digits: `[..., 5, digits]` int32.
    """

    digits: Array


class Mean(NamedTuple):
    """The mean of values, and how sure it is; `[...]` each.

    Attributes:
      mean: of the values that are defined.
      standard_error: of the mean, if the values are a sample of independent ones.
      low: the lower limit of its confidence interval, mean - z standard_error.
      high: the upper limit.
      n: how many values are defined.
      n_undefined: how many are NaN, and left out.
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
      batch_shape: the leading axes of values, such as the number of models.

    Returns:
      A State, a pytree of one array.

    Raises:
      TypeError: batch_shape is no tuple of ints.

    Nothing is NaN; memory 100 bytes for each of the batch.

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
      state: of `init` or the call before; its memory is used again, so that it is gone after this.
      values: `[..., n]`, such as `jaxmetrics.ndcg(..., empty=nan)` of n queries, between -2^16 and
        2^16, taken in float32.
      where: `[..., n]` bool, False for values to leave out.

    Returns:
      The State.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    NaN is counted apart, and so is what is out of range. Compiled once a shape. Time O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> means = jm.streaming.means
      >>> state = means.update(means.init(), jm.ndcg([[.9, .8], [.2, .7]], [[1, 0], [1, 0]]))
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
    """Over the items `[..., n, digits]`, whose digits are below 2^16, carries taken on in time."""
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
      b: another of the same batch.

    Returns:
      The State, as if one had seen all values.

    Raises:
      TypeError, ValueError: one is no State, or they differ in batch.

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
    """The mean of all values and its standard error.

    mean = sum x / n, standard_error = sqrt(sum (x - mean)^2 / (n (n - 1))).

    Args:
      state: of `update` or `merge`.
      confidence_level: in (0, 1).

    Returns:
      A Mean `[...]`, in JAX's default float.

    Raises:
      TypeError, ValueError: an argument is not what it should be.

    The mean is NaN without values, its error with fewer than two. Time O(1).

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
