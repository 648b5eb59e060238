"""Sums in 32-bit integers that merge by `+` and neither overflow nor lose an increment.

A sum is a row of digits of base 2^16, the lowest first, each in an int32. Counts have two digits
and the unit 1; sums of weights have four and the unit 2^-32, times a scale that is a power of two.
A sum of integers does not depend on the order.

The highest digit has 31 bits: counts are exact up to 2^47, 1.4e14 items, and sums of weights reach
2^47 as well. The part of a weight below the unit is dropped; float32 weights from 2^-8 to 2^24 have
no such part. Both numbers are in units of the scale.

Each state also counts the room that it uses: the 14 highest bits of its highest digit, plus 1.
States are added leaf by leaf, and so are these counts. A total of at most 2^14 proves that no digit
has overflowed: there are at most 2^14 states, whose lower digits add up to less than 2^31, and so
do their highest ones. The count itself wraps round at 2^32, which takes at least 2^18 states.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.host import on_tpu
from jaxmetrics._base.types import Array, HostArray

BITS = 16
LARGEST_DIGIT = (1 << BITS) - 1
DIGITS_OF_COUNTS = 2
DIGITS_OF_WEIGHTS = 4
UNIT = 2.0**-32  # of weights
LARGEST = 2.0**46  # of the weights of a batch
MOST_LOST = 1e-3  # the largest share of a sum that the rounding to a unit may have taken
ROOM = 1 << (31 - BITS - 1)  # number of digits that may be added to a digit before it is carried
_FULL = ROOM + 1  # stands for the room used where a state has overflowed


def split(weights: Array, n_digits: int = DIGITS_OF_WEIGHTS) -> tuple[list[Array], Array]:
    """The digits of weights that are not negative, and which weights lost a part below 2^-32.

    Each step is exact in float32.
    """
    place = 2.0 ** (BITS * (n_digits - 1)) * UNIT  # of the highest digit
    high = jnp.floor(weights / place)
    rest = (weights - high * place) / place * 2.0**BITS
    digits = [high]
    for _ in range(n_digits - 1):
        digit = jnp.floor(rest)
        digits.append(digit)
        rest = (rest - digit) * 2.0**BITS
    return [x.astype(jnp.int32) for x in digits[::-1]], rest > 0


def split_scaled(weights: Array, scale: float) -> tuple[Array, list[Array], Array]:
    """Weights / scale, in floats, and what `split` returns of it, exact for whole weights too."""
    halves, kind = [weights], jnp.promote_types(weights.dtype, jnp.float32)
    if not numerics.is_inexact(weights) and weights.dtype.itemsize >= 4:
        # A float would round large ones, but not their halves, whose digits have no bit in common.
        halves, kind = [weights >> BITS << BITS, weights & LARGEST_DIGIT], numerics.default_float()
    scaled = [x.astype(kind) / scale for x in halves]
    digits, lost = zip(*map(split, scaled), strict=True)
    added = [functools.reduce(jnp.add, x) for x in zip(*digits, strict=True)]
    return functools.reduce(jnp.add, scaled), added, functools.reduce(jnp.logical_or, lost)


def room_used(a: Array, b: Array, overflow: Array | bool) -> Array:
    """The room that a state uses; a and b are highest digits of its sums, one of them the largest.

    A highest digit that overflows once, through a batch or a merge, is negative.
    """
    full = overflow | (jnp.minimum(a, b) < 0)
    return jnp.where(full, _FULL, (jnp.maximum(a, b) >> (BITS + 1)) + 1)


def is_full(used: Any) -> Any:
    """Whether a digit may have overflowed, from the room that is used."""
    return (used < 0) | (used >= _FULL)


def carried(digits: Array) -> Array:
    """The same sums `[..., digits]`, with each digit but the highest below its base."""
    n = digits.shape[-1]
    for i in range(n - 1):
        place: HostArray = np.zeros(n, np.int32)
        place[i : i + 2] = -1 << BITS, 1
        digits = digits + (digits[..., i : i + 1] >> BITS) * place
    return digits


def counted(sums: Array, slots: Array) -> Array:
    """`sums` `[slots, digits]` of counts, plus 1 at each of `slots` `[n]` that is in range."""
    if not on_tpu():
        lowest = sums.reshape(-1).at[slots * DIGITS_OF_COUNTS].add(1, mode="drop")
        return carried(lowest.reshape(sums.shape))
    # Digit by digit: a TPU stores a last axis of 2 as one of 128.
    low, high = (sums[:, i] for i in range(DIGITS_OF_COUNTS))
    low = low.at[slots].add(1, mode="drop")
    return jnp.stack([low & LARGEST_DIGIT, high + (low >> BITS)], axis=-1)


def added(sums: Array, slots: Array, digits: Array) -> Array:
    """`sums` `[slots, digits]`, plus `digits` `[n, digits]` at the `slots` `[n]` in range.

    Digits are carried each time that they have no room for more items.
    """
    n = len(slots)
    if n <= ROOM:
        return carried(sums.at[slots].add(digits, mode="drop"))
    fill = -n % ROOM
    slots = jnp.pad(slots, (0, fill), constant_values=len(sums)).reshape(-1, ROOM)
    parts = jnp.pad(digits, ((0, fill), (0, 0))).reshape(-1, ROOM, digits.shape[-1])

    def step(sums: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        return carried(sums.at[part[0]].add(part[1], mode="drop")), None

    total, _ = varying.scan(step, sums, (slots, parts))
    return total


def total_of_items(digits: Array) -> Array:
    """`[..., digits]`, the sum of digits `[..., n, digits]` below 2^16, given as one array.

    `summed` takes one array for each digit; there XLA would recompute all of them for each sum.
    """
    while digits.shape[-2] > 1:
        n = min(digits.shape[-2], ROOM)
        fill = [(0, 0)] * (digits.ndim - 2) + [(0, -digits.shape[-2] % n), (0, 0)]
        parts = jnp.pad(digits, fill).reshape(*digits.shape[:-2], -1, n, digits.shape[-1])
        digits = carried(jnp.sum(parts, axis=-2, dtype=jnp.int32))
    return jnp.sum(digits, axis=-2, dtype=jnp.int32)


def summed(digits: list[Array], n_digits: int) -> Array:
    """`[..., n_digits]`, the sum over items of digits `[..., n]`, each below 2^20."""

    def of_parts(x: Array) -> Array:
        n = max(min(x.shape[-1], _AT_ONCE), 1)
        padded = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % n)])
        return jnp.sum(padded.reshape(*x.shape[:-1], -1, n), axis=-1, dtype=jnp.int32)

    while True:
        digits = [of_parts(x) for x in digits]
        digits += [jnp.zeros_like(digits[0])] * (n_digits - len(digits))
        parts = carried(jnp.stack(digits, axis=-1))
        if parts.shape[-2] <= 1:
            return jnp.sum(parts, axis=-2, dtype=jnp.int32)
        digits = [parts[..., i] for i in range(n_digits)]


_AT_ONCE = 1 << 11


def total_of(digits: Array) -> Array:
    """The sums in float64; callers trace it in double precision."""
    return whole(digits) * (1.0 if digits.shape[-1] == DIGITS_OF_COUNTS else UNIT)


def whole(digits: Array) -> Array:
    """The sums in float64, in units of the lowest digit."""
    places = 2.0 ** (BITS * jnp.arange(digits.shape[-1], dtype=jnp.float64))
    return jnp.sum(digits.astype(jnp.float64) * places, axis=-1)
