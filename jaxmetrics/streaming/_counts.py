"""Sums in 32-bit integers that merge by `+` and neither overflow nor lose an increment.

A sum is a row of digits of base 2^16, the lowest first, each in an int32. Counts have two digits
and the unit 1; sums of weights have four and the unit 2^-32. A digit has room for 2^15 times its
base: as many states may be added, leaf by leaf, before the digits are carried. A sum of integers
does not depend on the order.

The highest digit has 31 bits: counts are exact up to 2^47, 1.4e14 items, and sums of weights up to
2^47 as well. The part of a weight below 2^-32 is dropped; float32 weights from 2^-8 to 2^24 have no
such part. Sums of squares have a fifth digit, and reach 2^63.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.types import Array, HostArray

BITS = 16
DIGITS_OF_COUNTS = 2
DIGITS_OF_WEIGHTS = 4
DIGITS_OF_SQUARES = 5
_UNIT = 2.0**-32  # of weights
_ROOM = 1 << (31 - BITS - 1)  # how many digits may be added to one before it is carried


def digits_of(weights: Array, n_digits: int = DIGITS_OF_WEIGHTS) -> Array:
    """`[..., digits]` of weights that are not negative; each step is exact in float32."""
    place = 2.0 ** (BITS * (n_digits - 1)) * _UNIT  # of the highest digit
    high = jnp.floor(weights / place)
    rest = (weights - high * place) / place * 2.0**BITS
    digits = [high]
    for _ in range(n_digits - 1):
        digit = jnp.floor(rest)
        digits.append(digit)
        rest = (rest - digit) * 2.0**BITS
    return jnp.stack(digits[::-1], axis=-1).astype(jnp.int32)


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
    lowest = sums.reshape(-1).at[slots * DIGITS_OF_COUNTS].add(1, mode="drop")
    return carried(lowest.reshape(sums.shape))


def added(sums: Array, slots: Array, digits: Array) -> Array:
    """`sums` `[slots, digits]`, plus `digits` `[n, digits]` at the `slots` `[n]` in range.

    Digits are carried each time that they have no room for more items.
    """
    n = len(slots)
    if n <= _ROOM:
        return carried(sums.at[slots].add(digits, mode="drop"))
    fill = -n % _ROOM
    slots = jnp.pad(slots, (0, fill), constant_values=len(sums)).reshape(-1, _ROOM)
    parts = jnp.pad(digits, ((0, fill), (0, 0))).reshape(-1, _ROOM, digits.shape[-1])

    def step(sums: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        return carried(sums.at[part[0]].add(part[1], mode="drop")), None

    total, _ = lax.scan(step, sums, (slots, parts))
    return total


def total_of(digits: Array) -> Array:
    """The sums in float64; callers trace it in double precision."""
    places = 2.0 ** (BITS * jnp.arange(digits.shape[-1], dtype=jnp.float64))
    unit = 1.0 if digits.shape[-1] == DIGITS_OF_COUNTS else _UNIT
    total: Array = jnp.sum(digits.astype(jnp.float64) * places, axis=-1) * unit
    return total
