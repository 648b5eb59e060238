"""The columns of a state: the bins, and four that show whether their sums can be trusted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.host import as_numpy
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics.streaming import _counts

# Four columns follow the bins of a class.
#   UNDEFINED counts the items without a bin.
#   ORIGIN reveals states of other bins. The row of the negatives has the number of items. The row
#     of the positives has that number times the fingerprint of the bins, modulo 2^32, in the
#     highest digit, from which nothing is carried.
#   USED reveals states that have overflowed. The row of the negatives has the room that the state
#     uses, in the highest digit. The row of the positives has the sum of all weights.
#   LOST bounds the weight of each class that rounding has dropped: one unit for each item that lost
#     a part.
UNDEFINED, ORIGIN, USED, LOST = range(4)
EXTRA = 4


def with_last(digits: Array, last: Array, overflow: Array) -> Array:
    """`digits` with the last columns `[..., 2, 4, digits]`, in which the room used is updated."""
    items, weight = last[..., 0, ORIGIN, :], last[..., 1, USED, :]  # no bin has larger sums
    highest = [_counts.carried(x)[..., -1] for x in (items, weight)]
    used = _counts.room_used(highest[0], highest[1], overflow)
    last = last.at[..., 0, USED, -1].set(used)
    # XLA does this in place, but not a scatter.
    return lax.dynamic_update_slice_in_dim(digits, last, digits.shape[-2] - EXTRA, digits.ndim - 2)


def one_of(n_digits: int) -> int:
    """The digit whose unit is 1."""
    return 0 if n_digits == _counts.DIGITS_OF_COUNTS else _counts.DIGITS_OF_WEIGHTS // 2


def totals(digits: Array) -> tuple[Array, Array, Array]:
    """Negatives and positives `[..., bins]`, and the items without a bin `[...]`, in float64."""
    found = _counts.total_of(digits)
    n = found.shape[-1] - EXTRA
    return found[..., 0, :n], found[..., 1, :n], jnp.sum(found[..., n + UNDEFINED], axis=-1)


def lost_of(digits: Array) -> Array:
    """`[..., 2]`: how much larger the weights of each class may be than the sums of its bins."""
    return _counts.total_of(digits[..., -EXTRA + LOST, :])


def whole_totals(digits: Array) -> tuple[Array, Array, Array]:
    """Negatives and positives `[..., bins]`, whose sums double precision holds to the last bit.

    For that, sums of weights beyond 2^51 units lose their last bits. Also `[..., 2]`: how much
    larger the weights of each class may be than these.
    """
    negatives, positives, _ = totals(digits)
    lost = lost_of(digits)
    n_digits = digits.shape[-1]
    if n_digits == _counts.DIGITS_OF_COUNTS:
        return negatives, positives, lost
    sums = _counts.carried(digits[..., :-EXTRA, :])
    weight = jnp.stack([negatives, positives], axis=-2).sum(axis=-1) + lost
    _, exponent = jnp.frexp(weight / _counts.UNIT)
    cut = jnp.maximum(exponent - _HELD, 0)[..., None, None]
    below = jnp.clip(cut - _counts.BITS * np.arange(n_digits), 0, 31)
    kept = (sums >> below) << below
    unit = jnp.ldexp(_counts.UNIT, cut[..., 0, 0])
    rounded = jnp.sum(jnp.any(kept != sums, axis=-1), axis=-1)
    found = _counts.total_of(kept)
    return found[..., 0, :], found[..., 1, :], (jnp.ceil(lost / unit) + rounded) * unit


_HELD = 51  # bits of a sum, of the 53 of double precision; the others are for what was lost


def has_overflowed(digits: Array) -> Array:
    """`[...]`: whether some sum may have overflowed."""
    overflowed: Array = _counts.is_full(digits[..., 0, -EXTRA + USED, -1])
    return overflowed


def is_wrong(digits: Array, fingerprint: np.int32) -> Array:
    """`[...]`: whether sums have overflowed, or some are of bins with another fingerprint."""
    seen, stamp = _origin(_extra(digits))  # int32, whose product is modulo 2^32
    other: Array = seen * fingerprint != stamp
    return other | has_overflowed(digits)


def origin_of(digits: Array) -> tuple[HostArray, HostArray]:
    """The number of items, and that number times the fingerprint of the bins, modulo 2^32.

    Refuses a state whose sums have overflowed.
    """
    with jax.ensure_compile_time_eval():  # the state may be a constant in a traced program
        columns = as_numpy(_extra(digits)).astype(np.int64)
    columns = columns.reshape(-1, *columns.shape[-3:])
    if np.any(_counts.is_full(columns[:, 0, USED, -1])):
        raise ValueError(
            "the sums of the state have overflowed: it holds at most 1.4e14 items, and weights up "
            "to weight_scale * 1.4e14, and at most 16,384 states are added leaf by leaf; "
            "give the bins a larger weight_scale, or add up states by merge"
        )
    seen, stamp = _origin(columns)
    return seen.astype(np.uint64), stamp.astype(np.uint64)


def _origin(columns: Any) -> tuple[Any, Any]:
    one = one_of(columns.shape[-1])
    seen = columns[..., 0, ORIGIN, one] + (columns[..., 0, ORIGIN, one + 1] << _counts.BITS)
    return seen, columns[..., 1, ORIGIN, -1]


MODULO = np.uint64(2**32 - 1)


@jax.jit
def _extra(digits: Array) -> Array:
    return digits[..., -EXTRA:, :].astype(jnp.int32)
