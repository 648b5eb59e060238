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
from jaxmetrics.streaming._counts import BITS, LARGEST_DIGIT

# Four columns follow the bins of a class.
#   UNDEFINED counts the items without a bin.
#   ORIGIN reveals states of other bins. The row of the negatives has the number of items. The row
#     of the positives has that number times the fingerprint of the bins, modulo 2^48, in the two
#     highest digits. If 2^k divides the number, it shows the 48 - k lowest bits of the fingerprint.
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
    return _counts.is_full(digits[..., 0, -EXTRA + USED, -1])


def stamp_of(low: Array, high: Array, fingerprint: Any) -> Array:
    """`[..., 2]`, the digits of a number of items times a fingerprint, modulo 2^48.

    The number is low + 2^16 high, with low below 2^16. Products of int32 are modulo 2^32.
    """
    below, above = (
        jnp.asarray(x, jnp.int32) for x in (fingerprint & LARGEST_DIGIT, fingerprint >> BITS)
    )
    lowest = low.astype(jnp.uint32) * below.astype(jnp.uint32)
    carry = (lowest >> BITS).astype(jnp.int32)
    highest = carry + low * above + high * below + ((high * above) << BITS)
    return jnp.stack([(lowest & LARGEST_DIGIT).astype(jnp.int32), highest], axis=-1)


def is_wrong(digits: Array, fingerprint: np.int32) -> Array:
    """`[...]`: whether sums have overflowed, or some are of bins with another fingerprint."""
    columns, one = _counts.carried(_extra(digits)), one_of(digits.shape[-1])
    seen = columns[..., 0, ORIGIN, one : one + 2]
    expected = stamp_of(seen[..., 0], seen[..., 1], fingerprint)
    other: Array = jnp.any(columns[..., 1, ORIGIN, -2:] != expected, axis=-1)
    return other | has_overflowed(digits)


def origin_of(digits: Array) -> tuple[HostArray, HostArray]:
    """The number of items, and that number times the fingerprint of the bins, modulo 2^48.

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
    one = one_of(columns.shape[-1])
    pairs = columns[:, 0, ORIGIN, one : one + 2], columns[:, 1, ORIGIN, -2:]
    seen, stamp = ((x[:, 0] + (x[:, 1] << BITS)).astype(np.uint64) for x in pairs)
    return seen, stamp & MODULO


def are_of_other_bins(seen: HostArray, stamp: HostArray, fingerprint: int) -> bool:
    """Whether some of the items are of bins with another fingerprint."""
    return bool(np.any((seen * np.uint64(fingerprint) - stamp) & MODULO))


def differ_in_bins(a: tuple[HostArray, HostArray], b: tuple[HostArray, HostArray]) -> bool:
    """Whether two states are of different bins, from the `origin_of` each."""
    (of_a, bits_a), (of_b, bits_b) = _fingerprint(*a), _fingerprint(*b)
    return bool(np.any((of_a - of_b) & bits_a & bits_b))


def _fingerprint(seen: HostArray, stamp: HostArray) -> tuple[HostArray, HostArray]:
    """The lowest bits of the fingerprint, and a mask of those that the stamp shows; 0 of no items.

    It is the stamp over the number of items, modulo a power of two, without their factors of two.
    """
    factor = seen & -seen
    some = np.maximum(factor, 1)
    odd, inverse = seen // some, seen // some
    for _ in range(5):  # Newton's steps double the bits that are right, from 3 to 96
        inverse = inverse * (2 - odd * inverse)
    shown = np.where(seen > 0, (MODULO + 1) // some - 1, 0)
    return stamp // some * inverse, shown


MODULO = np.uint64(2**48 - 1)


@jax.jit
def _extra(digits: Array) -> Array:
    return digits[..., -EXTRA:, :].astype(jnp.int32)
