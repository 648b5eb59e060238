"""The state of a stream: the number, or the weight, of the items of each class in each bin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import all_concrete, is_compiling, is_concrete, to_program
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.quoting import restoring
from jaxmetrics._base.types import Array, ArrayLike, HostArray, HostOrDeviceArray, Items
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._batch import check_batch, check_digits, is_ready, zeros
from jaxmetrics.streaming._bins import Bins, bin_of, parts_of
from jaxmetrics.streaming._columns import (
    EXTRA,
    LOST,
    ORIGIN,
    UNDEFINED,
    USED,
    are_of_other_bins,
    differ_in_bins,
    has_overflowed,
    one_of,
    origin_of,
    stamp_of,
    with_last,
)


class State(NamedTuple):
    """The counts of a stream so far; one array of integers. a + b, or sum([a, b]), is merge(a, b).

    Attributes:
      digits: `[..., 2, bins + 4, digits]` int32, for negatives and for positives.
    """

    digits: Array

    def __add__(self, other: State) -> State:  # type: ignore[override]  # not a longer tuple
        return merge(self, other)

    def __radd__(self, other: int) -> State:  # sum(states) begins with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented


def init(bins: Bins, batch_shape: tuple[int, ...] = (), *, weighted: bool = False) -> State:
    """A state that has seen no items.

    Args:
      bins: such as `float16_bins()`. Every use of the state needs the same bins.
      batch_shape: leading axes of the scores, such as `(n_models,)`.
      weighted: whether items have weights.

    Returns:
      A State, a pytree of one array: 16 bytes a bin for each problem of the batch, 32 if weighted.
      Counts are exact up to 2^47 = 1.4e14 items. Weights are counted in units of s 2^-32, where s
      is the `weight_scale` of the bins, and their sums stay below s 2^47.

    Raises:
      TypeError: bins are not Bins, or batch_shape is not a tuple of ints.
      ValueError: the state does not fit into memory.

    Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.init(jm.streaming.uniform_bins(100)).digits.shape)
      (2, 104, 2)

    Reference: Y. Ben-Haim and E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11,
    2010, for histograms of streams.
    """
    check_bins(bins)
    n_digits = _counts.DIGITS_OF_WEIGHTS if weighted else _counts.DIGITS_OF_COUNTS
    return State(zeros(batch_shape, 2, bins.n + EXTRA, n_digits))


@on_any_mesh
def update(
    state: State,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    bins: Bins,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> State:
    """The state after a batch of items.

    The count of each class in each bin grows by the number, or the weight, of its new items.

    Args:
      state: from `init` or the last `update`. Its buffer is donated: use the returned state.
        For several models write `init(bins, batch_shape)`: one state that `jax.vmap` gives to all
        of them cannot be donated, as JAX warns.
      scores: `[..., n]`, higher is more positive, rounded to float32.
      labels: `[..., n]`, bool or 0 and 1.
      bins: the bins given to `init`.
      weights: `[..., n]`, not negative, for a weighted state; 1 by default. The part below the
        unit, the bins' weight_scale 2^-32, is dropped; `bounds` allow for it.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      The State. Any split and any order of the items lead to the same state.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; weights for a state without
        them, leading axes other than those of the state, a state of other bins, one that an
        `update` has used up, or one whose sums have overflowed.

    `update` does not wait for a device that still computes the state. If it is then given other
    bins of the same number, or sums overflow, a later function that takes the state refuses it. In
    a traced program a state of other bins, or one whose sums have overflowed, makes all values NaN.

    Items whose score is NaN are counted separately. So are items with invalid labels or weights in
    traced arrays. Either makes `table` and `bounds` NaN unless ignore_nan=True. Compiled once for
    each input shape. Time O(n + bins), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(100)
      >>> state = jm.streaming.init(bins)
      >>> state = jm.streaming.update(state, [0.1, 0.4, 0.35], [0, 0, 1], bins=bins)
      >>> state = jm.streaming.update(state, [0.8], [1], bins=bins)
      >>> print(jm.roc_auc(jm.streaming.table(state, bins=bins)))
      0.75

    Reference: that of `jaxmetrics.streaming.init`.
    """
    check_state(state, bins, wait=False)
    items = checks.check_items(scores, labels, weights, where, rows_are_problems=True)
    if weights is not None and not is_weighted(state):
        raise TypeError("the state has no weights: write weighted=True where it is made")
    items = items._replace(scores=checks.unwrapped(items.scores))
    check_batch(items, state.digits.shape[:-3])
    with np.errstate(over="ignore"):  # scores beyond float32 are in the first or last bin
        return _with_precision(state, at_least_one(items), *parts_of(bins))


def _with_precision(state: State, items: Items, *of_bins: Any) -> State:
    """The update, in double precision where single would round weights, or cut them to 32 bits."""
    kind: Any = np.float32 if items.weights is None else items.weights.dtype
    if kind != np.float32 and kind.itemsize >= 4:
        if all_concrete(state.digits, *items) and not is_compiling():
            with double_precision():
                return _update(state, to_program(items), *of_bins)
        if kind in (np.int64, np.uint64) and is_concrete(items.weights):
            return _update_in_double(state, items, *of_bins)
    return _update(state, to_program(items), *of_bins)


def _updated(
    state: State, items: Items, fingerprint: Any, edges: HostArray | None, bins: Bins
) -> State:
    scores, labels = jnp.asarray(items.scores), jnp.asarray(items.labels)
    n_digits = state.digits.shape[-1]
    undefined, positive = numerics.is_nan(scores), labels == 1
    if labels.dtype != bool:
        undefined = undefined | ((labels != 0) & ~positive)
    valid = jnp.ones(1, bool) if items.where is None else jnp.asarray(items.where)
    shape = jnp.broadcast_shapes(scores.shape, labels.shape, valid.shape)
    adds: _Weights | None = None
    if n_digits == _counts.DIGITS_OF_WEIGHTS:
        weight = jnp.ones(1) if items.weights is None else jnp.asarray(items.weights)
        allowed = (weight >= 0) & (weight < jnp.inf)
        undefined = undefined | ~allowed
        shape = jnp.broadcast_shapes(shape, weight.shape)
        adds = _weights(weight, bins.weight_scale, undefined, positive, valid, shape)
    index = jnp.where(
        undefined, bins.n + UNDEFINED, bin_of(bins, scores.astype(jnp.float32), edges)
    )
    columns = bins.n + EXTRA
    slot = index + jnp.where(positive, columns, 0)
    slot = jnp.where(valid, slot, 2 * columns)  # out of range: dropped

    def of_row(digits: Array, slot: Array, valid: Array, adds: _Weights | None) -> Array:
        seen = jnp.sum(valid, dtype=jnp.int32)
        last, overflow = digits[:, bins.n :], has_overflowed(digits)
        last = last.at[0, ORIGIN, one_of(n_digits)].add(seen)
        stamp = stamp_of(seen & _counts.LARGEST_DIGIT, seen >> _counts.BITS, fingerprint)
        last = last.at[1, ORIGIN, -2:].add(stamp)
        if adds is None:
            digits = with_last(digits, last, overflow)
            return _counts.counted(digits.reshape(-1, n_digits), slot).reshape(digits.shape)
        last = last.at[:, LOST, 0].add(adds.lost).at[1, USED].add(adds.total)
        flat = with_last(digits, last, overflow | adds.overflow).reshape(-1, n_digits)
        return _counts.added(flat, slot, adds.digits).reshape(digits.shape)

    slot, valid = (jnp.broadcast_to(x, shape) for x in (slot, valid))
    return State(numerics.over_batch(of_row, len(shape) - 1)(state.digits, slot, valid, adds))


_update: Callable[..., State] = jax.jit(_updated, static_argnames="bins", donate_argnames="state")
_update_in_double = double_program("bins")(_updated)  # within a program, which donates nothing


class _Weights(NamedTuple):
    """What the weights of a batch add.

    Attributes:
      digits: `[..., n, digits]`, the weights; 0 for items that are masked.
      lost: `[..., 2]`, number of items of each class whose weight has lost a part by rounding.
      total: `[..., digits]`, the sum of the weights.
      overflow: `[...]`, whether the sum is more than a batch may add.
    """

    digits: Array
    lost: Array
    total: Array
    overflow: Array


def _weights(
    weight: Array,
    scale: float,
    undefined: Array,
    positive: Array,
    valid: Array,
    shape: tuple[int, ...],
) -> _Weights:
    scaled, digits, lost = _counts.split_scaled(weight, scale)
    some, here = weight != 0, valid & ~undefined
    lost = (lost | (some & (scaled == 0))) & here
    # An undefined item adds 1 unit, so that it is noticed however small its weight.
    added = [jnp.where(undefined, some if i == 0 else 0, x) for i, x in enumerate(digits)]

    def whole(x: Array) -> Array:
        return jnp.broadcast_to(x, shape)

    def number(which: Array) -> Array:
        return jnp.sum(whole(which), axis=-1, dtype=jnp.int32)

    of_items = jnp.stack([whole(jnp.where(valid, x, 0)) for x in added], axis=-1)
    return _Weights(
        of_items,
        jnp.stack([number(lost & ~positive), number(lost & positive)], axis=-1),
        _counts.total_of_items(of_items),
        ~(jnp.sum(whole(jnp.where(here, scaled, 0)), axis=-1) < _counts.LARGEST),
    )


@on_any_mesh
def merge(a: State, b: State) -> State:
    """The state of the items of both.

    a + b is the same. So are `jax.lax.psum` and other sums leaf by leaf, of up to 16,384 states
    before the next `update` or `merge`. A sum of more states is refused, up to 2^18; then the
    integers wrap round, and 2^32 equal states add up to an empty one.

    Args:
      a: a State.
      b: a State with the same bins and leading axes, and weighted if a is.

    Returns:
      The State, as if one state had seen all items.

    Raises:
      TypeError: a or b is not a State.
      ValueError: they differ in bins or leading axes, only one is weighted, an `update` has used
        one up, or the sums of one have overflowed.

    Where traced, states of different bins are merged, and all values of the sum are NaN. Time
    O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(100)
      >>> a, b = (
      ...     jm.streaming.update(jm.streaming.init(bins), scores, labels, bins=bins)
      ...     for scores, labels in [([0.1, 0.4], [0, 0]), ([0.35, 0.8], [1, 1])]
      ... )
      >>> print(jm.roc_auc(jm.streaming.table(jm.streaming.merge(a, b), bins=bins)))
      0.75

    Reference: that of `jaxmetrics.streaming.init`.
    """
    for state in (a, b):
        _check_is_state(state)
    if a.digits.shape != b.digits.shape:
        raise ValueError(
            f"states must be of the same bins, batch and kind to be merged, got {_described(a)} "
            f"and {_described(b)}"
        )
    known = is_concrete(a.digits) and is_concrete(b.digits)
    if known and differ_in_bins(origin_of(a.digits), origin_of(b.digits)):
        raise ValueError(
            "states are of different bins: use the same bins for all states to be merged"
        )
    return State(_merged(a.digits, b.digits))


@jax.jit
def _merged(a: Array, b: Array) -> Array:
    digits = _counts.carried(a + b)
    return with_last(digits, digits[..., -EXTRA:, :], has_overflowed(a) | has_overflowed(b))


@on_any_mesh
def n_items(state: State) -> HostOrDeviceArray:
    """Number of items that a state has seen, including those of weight 0 or without a score.

    It does not check the bins: it also counts the items of a sum, leaf by leaf, of states with
    different bins. `table` refuses such a sum.

    Args:
      state: from `update` or `merge`.

    Returns:
      `[...]`, NumPy's int64; JAX's default float where traced.

    Raises:
      TypeError: state is not a State.
      ValueError: an `update` has used the state up, or its sums have overflowed.

    NaN where a traced state has overflowed. Time O(1).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.float16_bins()
      >>> state = jm.streaming.update(jm.streaming.init(bins), [0.1, 0.4], [0, 1], bins=bins)
      >>> print(int(jm.streaming.n_items(state)))
      2

    Reference: that of `jaxmetrics.streaming.init`.
    """
    _check_is_state(state)
    if not is_concrete(state.digits):
        return _seen(state.digits).astype(numerics.default_float())
    seen, _ = origin_of(state.digits)
    return seen.reshape(state.digits.shape[:-3]).astype(np.int64)


@double_program()
def _seen(digits: Array) -> Array:
    seen = _counts.total_of(digits[..., 0, -EXTRA + ORIGIN, :])
    return jnp.where(has_overflowed(digits), jnp.nan, seen)


def is_weighted(state: State) -> bool:
    """Whether items have weights."""
    return state.digits.shape[-1] == _counts.DIGITS_OF_WEIGHTS


def refuse_weights(state: State) -> None:
    """Refuse a weighted state, from which no sampling error can be computed."""
    if is_weighted(state):
        raise TypeError(
            "the sampling error of weighted items needs the squares of the weights, which a state "
            "does not store: keep the items and write confidence_interval(...), or bounds(...) here"
        )


def check_bins(bins: Bins) -> None:
    """Refuse anything but Bins."""
    if not isinstance(bins, Bins):
        raise TypeError(
            f"bins must be Bins, got {checks.brief(bins)}: write float16_bins(), "
            "uniform_bins(n) or edges(array)"
        )


def check_state(state: State, bins: Bins, *, wait: bool = True) -> None:
    """Refuse a state of other bins, one that is used up, and one whose sums have overflowed.

    Without `wait`, a state that a device still computes is left to the next check.
    """
    check_bins(bins)
    _check_is_state(state)
    found = state.digits.shape[-2] - EXTRA
    if found != bins.n:
        raise ValueError(f"the state has {found} bins, and bins has {bins.n}: use the bins of init")
    known = is_concrete(state.digits) and (wait or is_ready(state.digits))
    if known and are_of_other_bins(*origin_of(state.digits), bins.fingerprint):
        raise ValueError("the state, or one merged into it, is of other bins: use those of init")


def _check_is_state(state: State) -> None:
    if not isinstance(state, State):
        hint = restoring(state, State._fields, "State") or "init(bins)"
        raise TypeError(f"state must be a State, got {checks.brief(state)}: write {hint}")
    check_digits(state.digits, "State")


def _described(state: State) -> str:
    *batch, _, columns, _ = state.digits.shape
    kind = "with weights" if is_weighted(state) else "without weights"
    return f"{columns - EXTRA} bins, batch {batch}, {kind}"
