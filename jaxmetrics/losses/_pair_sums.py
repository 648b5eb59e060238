"""Sums over all pairs of a function of their difference, in time O(n log n).

The function must be a sum of powers and exponentials of the distance. A pass over the sorted items
then carries a state, which has the sums over all earlier items. The binomial theorem moves its
moments to the next item, by terms that do not cancel. A factor moves each of its exponentials.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, zip_longest
from math import comb
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.double import ordinary_promotion
from jaxmetrics._base.host import on_cpu, on_tpu
from jaxmetrics._base.primitives import linear
from jaxmetrics._base.types import Array
from jaxmetrics.losses._kernels import Coefficients, Kernel, Side

# Length of a lane of items, the least one on the CPU. States move along all lanes at once, and then
# from lane to lane by doubling.
_STEPS = 16
# The most lanes on the CPU: their states stay in its caches. Not a power of two: the items of a
# column would then share few places of the caches.
_LANES = 1040


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def pair_sums(kernel: Kernel, places: Array, weights: Array, opens: Array | None) -> Array:
    """At each item the sum over the others j of `weights[j] f(places[j] - places[i])`.

    The item itself is left out, not subtracted: its slopes, which cancel, would leave their
    rounding where all other items are far.

    Args:
      kernel: f.
      places: `[n]` ascending, finite.
      weights: `[..., n]`, of any sign.
      opens: `[n]` bool, True where a list begins, or None for one list. Items of different lists
        make no pairs; places ascend within a list.

    Returns:
      `[..., n]`.
    """
    rows = weights.reshape(1, -1, len(places))
    kernels = ((kernel,),) * rows.shape[1]
    sums = pair_sums_of_rows(kernels)(places[None], rows, None if opens is None else opens[None])
    return sums.reshape(weights.shape)


@functools.cache
def pair_sums_of_rows(kernels: tuple[tuple[Kernel, ...], ...]) -> Callable[..., Array]:
    """`pair_sums` of places `[rows, n]` and weights `[rows, arrays, n]`; `vmap` only adds rows.

    Each array has its kernels, and the result `[rows, kernels, n]` those of all in turn.

    In all computations the rows are the last axis, so that short rows use vector instructions too.
    """

    sources = [array for array, each in enumerate(kernels) for _ in each]

    @ordinary_promotion()  # derivatives and batches are traced in the caller's modes
    def of_rows(places: Array, weights: Array, opens: Array | None) -> Array:
        number = None if opens is None else jnp.cumsum(opens, 1, dtype=jnp.int32)
        given = _Rows(places, weights, number)
        # The items above are those before in the mirror image. One program takes both images, as
        # two would take twice as long to compile.
        images = zip(zip(*chain(*kernels), strict=True), (given, given.mirrored()), strict=True)
        counted = [(sides, rows) for sides, rows in images if any(map(any, chain(*sides)))]
        found = jnp.zeros((len(places), len(sources), places.shape[-1]), places.dtype)
        if counted:
            of_images, rows = zip(*counted, strict=True)
            stacked = jax.tree.map(lambda *x: jnp.stack(x), *rows)
            sides = _sides_of_images(of_images, places.dtype)
            sums = _sums_before(list(zip(sides, sources, strict=True)), stacked)
            for image, x in zip(rows, sums, strict=True):
                found += x if image is given else jnp.flip(x, -1)
        return found

    mapped = custom_vmap(of_rows)

    @mapped.def_vmap
    def _(size: int, batched: Any, *given: Any) -> tuple[Array, bool]:
        def joined(x: Array, is_batched: bool) -> Array:
            x = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
            return lax.collapse(x, 0, 2)

        sums = mapped(*jax.tree.map(joined, given, tuple(batched)))
        rows = given[0].shape[-2]
        return sums.reshape(size, rows, *sums.shape[1:]), True

    return mapped


class _Moving(NamedTuple):
    """Tangents or cotangents; None for an input that has none."""

    places: Array | None
    weights: Array | None


@partial(pair_sums.defjvp, symbolic_zeros=True)
def _derivative(kernel: Kernel, primals: Any, tangents: Any) -> tuple[Array, Array]:
    moving = _Moving(*(None if isinstance(x, SymbolicZero) else x for x in tangents[:2]))
    sums = pair_sums(kernel, *primals)
    transpose = partial(_pulled_back, kernel, [x is not None for x in moving])
    pushed = partial(_pushed_forward, kernel)
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
    """Sums of w y^d, and of w exp(-k y) from k = 1, over items at distances y before a place.

    The terms, by d or k, are the first axis, so that each is computed as a vector over places.
    """

    moments: Array  # [powers, ...]
    decays: Array  # [exponentials, ...]

    def moved(self, distance: Array) -> State:
        """The state at a place that is further on by a distance `[...]`."""
        # Not a product with exp(-k distance): a factor near 1 is rounded, always in the same
        # direction if steps are equal, and the errors would add up.
        lost = self.decays * jnp.expm1(-_multiples(distance, *self.decays.shape))
        return State(_moved_moments(self.moments, distance), self.decays + lost)

    def joined(self, other: State) -> State:
        """The state of the items of both, at the same place."""
        return State(*map(jnp.add, self, other))

    def of(self, array: int) -> State:
        """The state of one array of weights, the second axis."""
        return State(*(x[:, array] for x in self))

    def where(self, chosen: Array | None) -> State:
        """The state where chosen, and the state of no items elsewhere; None chooses everywhere."""
        return self if chosen is None else State(*(jnp.where(chosen, x, 0) for x in self))


def state_of(side: Side, behind: Array, weight: Array) -> State:
    """The state of items `[n]` at distances `behind` before a place, with the side's terms."""
    powers = behind ** np.arange(len(side.powers), dtype=np.int32)[:, None]
    decays = jnp.exp(-_multiples(behind, len(side.exponentials), len(behind)))
    return State(*(_contract("kn,n->k", x, weight) for x in (powers, decays)))


def sum_of_state(side: Side, state: State, distance: Array | None = None) -> Array:
    """The sum of w g(y) over a state's items, at its place or `distance` `[...]` beyond it."""
    moments, decays = state
    if distance is not None:
        moments = _moved_moments(moments, distance)
    terms = [c * x for c, x in zip(side.powers, moments, strict=True) if np.any(c)]
    of_decays = [c * x for c, x in zip(side.exponentials, decays, strict=True)]
    if of_decays and distance is not None:
        t = jnp.exp(-distance)
        of_decays = [t * numerics.polynomial(of_decays, t)]
    return functools.reduce(jnp.add, terms + of_decays, jnp.zeros((), decays.dtype))


def _moved_moments(moments: Array, distance: Array) -> Array:
    """Sums of w (y + distance)^d, from those of w y^d."""
    terms = [
        [comb(d, e) * moments[e] * distance ** (d - e) for e in range(d + 1)]
        for d in range(len(moments))
    ]
    return jnp.stack([functools.reduce(jnp.add, each) for each in terms]) if terms else moments


def _multiples(distance: Array, n: int, *shape: int) -> Array:
    """`[n, ...]`, k times the distance for k from 1 to n; distances broadcast with the shape."""
    return distance * np.arange(1, n + 1, dtype=distance.dtype).reshape(-1, *[1] * len(shape))


class _Rows(NamedTuple):
    """Sorted items; several images of them have one axis more, the first.

    Attributes:
      place: `[rows, n]`, ascending within a list.
      weights: `[rows, arrays, n]`.
      number: `[rows, n]`, the number of each item's list; None if there is one list.
    """

    place: Array
    weights: Array
    number: Array | None

    def mirrored(self) -> _Rows:
        place, weights, number = jax.tree.map(partial(jnp.flip, axis=-1), self)
        return _Rows(-place, weights, number)


def _sides_of_images(sides: Sequence[Sequence[Side]], dtype: Any) -> list[Side]:
    """One Side for each kernel, of sides `[images][kernels]`, all with the same terms.

    Coefficients that differ between images are arrays `[images, 1, 1]`.
    """

    def joined(*coefficients: Coefficients) -> list[tuple[Any, ...]]:
        """Those of one kind of terms, for each kernel; given for the kernels of each image."""
        terms = np.array([*zip_longest(*coefficients, fillvalue=0.0)], dtype)
        by_kernel = np.moveaxis(terms.reshape(len(terms), len(sides), len(sides[0])), -1, 0)
        return [tuple(x[:, None, None] if np.ptp(x) else float(x[0]) for x in y) for y in by_kernel]

    return [Side(*x) for x in zip(*map(joined, *chain(*sides)), strict=True)]


class _Lanes(NamedTuple):
    """Sorted items, cut into lanes of neighbours; `[steps, images, lanes, rows]` each.

    Attributes:
      place: the place of each item.
      weights: several arrays of weights.
      number: the number of each item's list; None if there is one list.
    """

    place: Array
    weights: tuple[Array, ...]
    number: Array | None


def _lanes(images: _Rows) -> _Lanes:
    n_images, rows, n = images.place.shape
    lanes = -(-n // _STEPS)
    if on_cpu():  # odd for several rows, so that all rows together have no power of two
        lanes = -(-n // max(_STEPS, math.isqrt(n) // 3))
        lanes = min(lanes, _LANES if rows == 1 else _LANES // max(rows, 1) | 1)
    steps = -(-n // lanes)

    def in_lanes(x: Array, mode: str) -> Array:
        padded = jnp.pad(x, ((0, 0), (0, 0), (0, lanes * steps - n)), mode=mode)
        return padded.reshape(n_images, rows, lanes, steps).transpose(3, 0, 2, 1)

    number = None if images.number is None else in_lanes(images.number, "edge")
    each = tuple(in_lanes(x, "constant") for x in jnp.moveaxis(images.weights, 2, 0))
    return _Lanes(in_lanes(images.place, "edge"), each, number)


def _sums_before(asked: Sequence[tuple[Side, int]], images: _Rows) -> Array:
    """`[images, rows, asked, n]`, at each item the sum of w g(distance) over all items before it.

    `asked` has each g, and the array of weights w. All g have the same terms.
    """
    place, weights, number = _lanes(images)
    n_powers, n_decays = (len(x) for x in asked[0][0])
    # A GPU takes all steps in one kernel, so that states stay in its registers. On a TPU, whose
    # programs take long to compile, they are a loop.
    step_by_step = on_cpu() or on_tpu()
    at_place = np.arange(n_powers).reshape(-1, 1, 1, 1, 1) == 0

    def step(before: State, here: Any) -> tuple[State, tuple[Array, ...]]:
        gap, joins, weight = here
        weight = jnp.stack(weight)
        state = before.where(joins).moved(gap)
        if step_by_step:  # kept in memory, or XLA would compute it again for each sum
            state = lax.optimization_barrier(state)
        joined = state.joined(State(jnp.where(at_place, weight, 0), weight))
        sums = (sum_of_state(side, state.of(array)) for side, array in asked)  # 0 without terms
        return joined, tuple(jnp.broadcast_to(x, gap.shape) for x in sums)

    def since_last(x: Array) -> Array:
        return x - jnp.concatenate([x[:1], x[:-1]])

    joins = None if number is None else since_last(number) == 0
    gap = since_last(place)
    gap = gap if joins is None else jnp.where(joins, gap, 0)
    shape = len(weights), *place.shape[1:]
    none = State(*(jnp.zeros((k, *shape), place.dtype) for k in (n_powers, n_decays)))
    unroll = 1 if step_by_step else _STEPS
    given = gap, joins, weights
    of_lanes, sums = varying.scan(step, none, given, unroll=unroll)

    ends = _Ends(place[-1], None if number is None else number[-1])
    before = jax.tree.map(partial(ends.earlier, by=1), _of_all_before(of_lanes, ends))
    reached, distance = ends.since(1, place, number)

    found = []
    for (side, array), x in zip(asked, sums, strict=True):
        of_lanes_before = sum_of_state(side, before.of(array), distance)
        found.append(x + jnp.where(reached, of_lanes_before, 0))
    by_item = jnp.stack([lax.collapse(x.transpose(1, 3, 2, 0), 2) for x in found], 2)
    return by_item[..., : images.place.shape[-1]]


class _Ends(NamedTuple):
    """The last item of each lane, `[images, lanes, rows]`."""

    place: Array
    number: Array | None

    def earlier(self, x: Array, by: int | Array) -> Array:
        """At each lane, `x` `[..., lanes, rows]` of the lane `by` lanes before; it wraps around."""
        return jnp.roll(x, by, -2)

    def since(self, by: int | Array, place: Array, number: Array | None) -> tuple[Array, Array]:
        """Whether the lane `by` lanes before ends in an item's list, and how far before the item.

        `place` and `number` are those of the items. The distance is 0 where the answer is no.
        """
        lane = jnp.arange(self.place.shape[-2], dtype=jnp.int32)[:, None]
        reached = lane >= by
        if self.number is not None:
            reached &= number == self.earlier(self.number, by)
        return reached, jnp.where(reached, place - self.earlier(self.place, by), 0)


def _of_all_before(state: State, ends: _Ends) -> State:
    """The state `[terms, ..., lanes, rows]` at the end of each lane, of all items up to there."""

    def doubled(i: Array, state: State) -> State:
        by = jnp.left_shift(1, i)
        reached, distance = ends.since(by, ends.place, ends.number)
        earlier = State(*(ends.earlier(x, by) for x in state))
        return state.joined(earlier.where(reached).moved(distance))

    return varying.fori_loop(0, (ends.place.shape[-2] - 1).bit_length(), doubled, state)


def _contract(subscripts: str, *arrays: Any) -> Array:
    """`einsum` in full precision, which accelerators do not use by default."""
    return jnp.einsum(subscripts, *arrays, precision=lax.Precision.HIGHEST)
