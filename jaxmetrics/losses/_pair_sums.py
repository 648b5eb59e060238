"""Sums over all pairs of a function of their difference, in time O(n log n).

The function must be a sum of powers and exponentials of the distance. A pass over the sorted items
then carries a state, which sums up all items before the present one. The binomial theorem moves its
moments to the next item, by terms that do not cancel; one factor moves each exponential.

The sigmoid is such a sum as well. With t = exp(-|x|) it is t / (1 + t), or 1 minus that. The pole
of t / (1 + t) is at -1, far from the interval from 0 to 1, where a polynomial in t approximates it
to within 5.8^-degree: the one that accelerates alternating series, from a Chebyshev polynomial. The
derivatives and the integral of the sigmoid are such sums too.

Reference: H. Cohen, F. Rodriguez Villegas and D. Zagier, "Convergence acceleration of alternating
series", Experimental Mathematics 9, 2000.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base import varying
from jaxmetrics._base.double import ordinary_promotion
from jaxmetrics._base.primitives import linear
from jaxmetrics._base.types import Array

# Of many items a state moves along rows of blocks, which are small; of few ones by doubling.
_MANY = 1 << 17
_ROWS = 512

Coefficients = tuple[float, ...]


class Side(NamedTuple):
    """g(y) = sum over d of powers[d] y^d + sum over k of exponentials[k - 1] exp(-k y)."""

    powers: Coefficients = ()
    exponentials: Coefficients = ()

    def derivative(self) -> Side:
        powers = tuple(d * x for d, x in enumerate(self.powers))[1:]
        exponentials = tuple(-k * x for k, x in enumerate(self.exponentials, 1))
        return Side(powers, exponentials)

    def negative(self) -> Side:
        return Side(*(tuple(-x for x in part) for part in self))


class Kernel(NamedTuple):
    """f(x): `above(x)` for x > 0, otherwise `below(-x)`."""

    below: Side
    above: Side

    def derivative(self) -> Kernel:
        return Kernel(self.below.derivative().negative(), self.above.derivative())

    def mirrored(self) -> Kernel:
        """f(-x)."""
        return Kernel(self.above, self.below)

    def at(self, x: Array) -> Array:
        """f(x), element by element."""
        distance = jnp.abs(x)
        return jnp.where(x > 0, _value(self.above, distance), _value(self.below, distance))


def power(degree: int) -> Kernel:
    """max(x, 0)^degree."""
    return Kernel(Side(), Side((0.0,) * degree + (1.0,)))


def square() -> Kernel:
    """x^2."""
    return Kernel(*[Side((0.0, 0.0, 1.0))] * 2)


def softplus(dtype: Any) -> Kernel:
    """log(1 + exp(x)), to the precision of `dtype`."""
    tail = tuple(c / k for k, c in enumerate(_alternating(_degree(dtype)), 1))
    return Kernel(Side((), tail), Side((0.0, 1.0), tail))


def sigmoid(dtype: Any) -> Kernel:
    """1 / (1 + exp(-x)), to the precision of `dtype`."""
    return softplus(dtype).derivative()


def _degree(dtype: Any) -> int:
    return 24 if np.dtype(dtype).itemsize == 8 else 12


@functools.cache
def _alternating(degree: int) -> Coefficients:
    """Coefficients of t, t^2, ... in a polynomial that approximates t / (1 + t) on [0, 1].

    The polynomial is t (1 - R(t) / R(-1)) / (1 + t), with R the Chebyshev polynomial of [0, 1].
    """
    # R(t) = sum over k of degree / (degree + k) C(degree + k, 2 k) 4^k (-t)^k. The terms at t = -1
    # are positive whole numbers, so their sums are exact.
    terms = [degree * comb(degree + k, 2 * k) * 4**k // (degree + k) for k in range(degree + 1)]
    total, left, found = sum(terms), sum(terms), []
    for k in range(degree):
        left -= terms[k]
        found.append((-1) ** k * left / total)
    return tuple(found)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def pair_sums(kernel: Kernel, places: Array, weights: Array, opens: Array | None) -> Array:
    """At each item the sum over j of `weights[j] f(places[j] - places[i])`.

    Args:
      kernel: f.
      places: `[n]` ascending.
      weights: `[..., n]`, of any sign.
      opens: `[n]` bool, True where a list begins, or None for one list. Items of different lists
        make no pairs; places ascend within a list.

    Returns:
      `[..., n]`. The sum at i includes j = i.
    """
    with ordinary_promotion():  # derivatives are traced in the caller's modes
        blocks = _blocks(places, weights, opens)
        # In reverse order the items above come before.
        above = jnp.flip(_across(kernel.above, blocks.reversed()), (-2, -1))
        total = _within(kernel, blocks) + _across(kernel.below, blocks) + above
        return total.reshape(*weights.shape[:-1], -1)[..., : len(places)]


class _Moving(NamedTuple):
    """Tangents or cotangents; None for an input that has none."""

    places: Array | None
    weights: Array | None


@functools.partial(pair_sums.defjvp, symbolic_zeros=True)
def _derivative(kernel: Kernel, primals: Any, tangents: Any) -> tuple[Array, Array]:
    moving = _Moving(*(None if isinstance(x, SymbolicZero) else x for x in tangents[:2]))
    sums = pair_sums(kernel, *primals)
    transpose = functools.partial(_pulled_back, kernel, [x is not None for x in moving])
    pushed = functools.partial(_pushed_forward, kernel)
    return sums, linear(pushed, transpose, primals, moving, sums)


def _pushed_forward(kernel: Kernel, primals: Any, tangents: _Moving) -> Array:
    places, weights, opens = primals
    parts = []
    if tangents.weights is not None:
        parts.append(pair_sums(kernel, places, tangents.weights, opens))
    if tangents.places is not None:
        with ordinary_promotion():
            both = jnp.stack([weights * tangents.places, weights])
            of_sources, at_targets = pair_sums(kernel.derivative(), places, both, opens)
            parts.append(of_sources - tangents.places * at_targets)
    return functools.reduce(jnp.add, parts)


def _pulled_back(
    kernel: Kernel, wanted: Sequence[bool], primals: Any, cotangents: Array
) -> _Moving:
    places, weights, opens = primals
    to_places = to_weights = None
    if wanted[0]:
        slope = kernel.derivative()
        if slope.mirrored() == slope:  # one call for both is half the work
            both = pair_sums(slope, places, jnp.stack([cotangents, weights]), opens)
            at_sources, at_targets = both
        else:
            at_sources = pair_sums(slope.mirrored(), places, cotangents, opens)
            at_targets = pair_sums(slope, places, weights, opens)
        to_places = weights * at_sources - cotangents * at_targets
        to_places = jnp.sum(to_places.reshape(-1, len(places)), 0)
    if wanted[1]:
        to_weights = pair_sums(kernel.mirrored(), places, cotangents, opens)
    return _Moving(to_places, to_weights)


class State(NamedTuple):
    """Sums of w y^d, and of w exp(-k y) from k = 1, over items at distances y before a place."""

    moments: Array  # [..., powers]
    decays: Array  # [..., exponentials]

    def moved(self, distance: Array) -> State:
        """The state at a place that is further on by a distance `[...]`."""
        decays = self.decays * _decay(distance, self.decays.shape[-1])
        return State(_moved_moments(self.moments, distance), decays)

    def joined(self, before: State, joins: Array, distance: Array) -> State:
        """With the state at a place that is so far before, where it joins."""
        moved = before.moved(jnp.where(joins, distance, 0))
        return State(
            *(a + jnp.where(joins[..., None], b, 0) for a, b in zip(self, moved, strict=True))
        )


def _moved_moments(moments: Array, distance: Array) -> Array:
    """Sums of w (y + distance)^d, from those of w y^d."""
    n = moments.shape[-1]
    terms = [
        [comb(d, e) * moments[..., e] * distance ** (d - e) for e in range(d + 1)] for d in range(n)
    ]
    return jnp.stack([functools.reduce(jnp.add, each) for each in terms], -1) if n else moments


def _of_all_before(state: State, end: Array, last: Array) -> State:
    """The state at the end of each block, of all items of its last list up to there.

    Args:
      state: `[..., blocks, terms]`, of the items of the block itself.
      end: `[blocks]`, the place of the last item of a block.
      last: `[blocks]`, the number of the list that this item is in.
    """
    blocks = len(end)
    if blocks > _MANY // 8:
        return _along_rows(state, end, last)
    block = jnp.arange(blocks, dtype=jnp.int32)

    def doubled(i: Array, state: State) -> State:
        shift = jnp.left_shift(1, i)
        from_end, from_last = (_shifted(x[:, None], shift)[:, 0] for x in (end, last))
        joins = (block >= shift) & (from_last == last)
        return state.joined(_shifted(state, shift), joins, end - from_end)

    total: State = varying.fori_loop(0, (blocks - 1).bit_length(), doubled, state)
    return total


def _along_rows(state: State, end: Array, last: Array) -> State:
    """`_of_all_before` of many blocks: along all rows of them at once, and then from row to row."""
    blocks = len(end)
    shape = _ROWS, -(-blocks // _ROWS)
    fill = shape[0] * shape[1] - blocks
    end, last = (jnp.pad(x, (0, fill), mode="edge").reshape(shape) for x in (end, last))

    def in_rows(x: Array) -> Array:  # [steps, ..., rows, terms]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, fill), (0, 0)])
        return jnp.moveaxis(x.reshape(*x.shape[:-2], *shape, x.shape[-1]), -2, 0)

    def step(before: tuple[State, Array, Array], here: Any) -> Any:
        so_far, from_end, from_last = before
        own, end, last = here
        total = own.joined(so_far, from_last == last, end - from_end)
        return (total, end, last), total

    own = jax.tree.map(in_rows, state)
    none = jax.tree.map(lambda x: jnp.zeros_like(x[0]), own)
    _, totals = varying.scan(step, (none, end[:, 0], last[:, 0] - 1), (own, end.T, last.T))
    of_rows = _of_all_before(jax.tree.map(lambda x: x[-1], totals), end[:, -1], last[:, -1])
    earlier = jax.tree.map(lambda x: x[..., None, :, :], _shifted(of_rows, 1))
    totals = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -3), totals)
    from_end, from_last = (jnp.roll(x[:, -1], 1) for x in (end, last))
    joins = (from_last == last.T).at[:, 0].set(False)
    totals = totals.joined(earlier, joins, end.T - from_end)

    def in_order(x: Array) -> Array:
        x = jnp.swapaxes(x, -3, -2)
        return x.reshape(*x.shape[:-3], blocks + fill, x.shape[-1])[..., :blocks, :]

    found: State = jax.tree.map(in_order, totals)
    return found


def _shifted(values: Any, by: int | Array) -> Any:
    """`[..., blocks, terms]`, shifted by a number of blocks; the first ones become 0."""

    def shift(x: Array) -> Array:
        blocks = x.shape[-2]
        padded = jnp.concatenate([jnp.zeros_like(x), x], -2)
        return lax.dynamic_slice_in_dim(padded, blocks - by, blocks, -2)

    return jax.tree.map(shift, values)


def _decay(distance: Array, n: int) -> Array:
    """exp(-k distance), `[..., n]`, for k from 1."""
    return jnp.exp(-distance[..., None] * np.arange(1, n + 1, dtype=distance.dtype))


def _value(side: Side, distance: Array) -> Array:
    """g(distance)."""
    powers = _polynomial(side.powers, distance)
    if not side.exponentials:
        return powers
    t = jnp.exp(-distance)
    return powers + t * _polynomial(side.exponentials, t)


def _polynomial(coefficients: Sequence[float | Array], x: Array) -> Array:
    """The polynomial in x; coefficients in ascending order of powers."""
    value = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


class _Blocks(NamedTuple):
    """Sorted items, cut into blocks.

    Attributes:
      place: `[blocks, items]`.
      weight: `[..., blocks, items]`.
      number: `[blocks, items]`, the number of the list that an item is in.
    """

    place: Array
    weight: Array
    number: Array

    def reversed(self) -> _Blocks:
        place, weight, number = (jnp.flip(x, (-2, -1)) for x in self)
        return _Blocks(-place, weight, number)


def _blocks(places: Array, weights: Array, opens: Array | None) -> _Blocks:
    n = len(places)
    size = 8 if n > _MANY else 16
    blocks = -(-n // size)
    fill = blocks * size - n
    place = jnp.pad(places, (0, fill), mode="edge")
    weight = jnp.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, fill)])
    if opens is None:
        number = jnp.zeros(blocks * size, jnp.int32)
    else:
        number = jnp.cumsum(jnp.pad(opens, (0, fill)), dtype=jnp.int32)
    return _Blocks(*(x.reshape(*x.shape[:-1], blocks, size) for x in (place, weight, number)))


def _within(kernel: Kernel, blocks: _Blocks) -> Array:
    """The part of items of the same block, pair by pair; of tied items the later ones are above."""
    place, weight, number = blocks
    distance = jnp.abs(place[:, None, :] - place[:, :, None])
    later = ~np.tri(place.shape[-1], dtype=bool)
    pairs = jnp.where(later, _value(kernel.above, distance), _value(kernel.below, distance))
    pairs = jnp.where(number[:, None, :] == number[:, :, None], pairs, 0)
    return _contract("bij,...bj->...bi", pairs, weight)


def _across(side: Side, blocks: _Blocks) -> Array:
    """The part of items of all earlier blocks, from the state at the end of the block before."""
    place, weight, number = blocks
    if not any(side.powers) and not any(side.exponentials):
        return jnp.zeros_like(weight)
    end, last = place[:, -1], number[:, -1]
    known = number == last[:, None]
    behind = jnp.where(known, end[:, None] - place, 0)
    weight = jnp.where(known, weight, 0)
    state = state_of(side, behind, weight)
    moments, decays = _shifted(_of_all_before(state, end, last), 1)

    reached = (number == jnp.roll(last, 1)[:, None]).at[0].set(False)
    distance = jnp.where(reached, place - jnp.roll(end, 1)[:, None], 0)
    return jnp.where(reached, sum_of_state(side, State(moments, decays), distance), 0)


def state_of(side: Side, behind: Array, weight: Array) -> State:
    """The sums that the side needs of items `[..., blocks, items]` so far behind a place."""
    powers = behind[..., None] ** np.arange(len(side.powers), dtype=np.int32)
    return State(
        _contract("bjd,...bj->...bd", powers, weight),
        _contract("bjk,...bj->...bk", _decay(behind, len(side.exponentials)), weight),
    )


def sum_of_state(side: Side, state: State, distance: Array) -> Array:
    """The sum of weight times g over a state's items, so far beyond its place as `[..., n]`."""
    moments, decays = state
    total = jnp.zeros((), distance.dtype)
    if side.powers:
        moments = _moved_moments(moments[..., None, :], distance)
        total = _contract("...d,d->...", moments, np.asarray(side.powers, distance.dtype))
    if side.exponentials:
        of_side = decays * np.asarray(side.exponentials, distance.dtype)
        t = jnp.exp(-distance)
        total = total + t * _polynomial([x[..., None] for x in jnp.moveaxis(of_side, -1, 0)], t)
    return total


def _contract(subscripts: str, *arrays: Any) -> Array:
    """`einsum` in full precision, which accelerators do not use by default."""
    contracted: Array = jnp.einsum(subscripts, *arrays, precision=lax.Precision.HIGHEST)
    return contracted
