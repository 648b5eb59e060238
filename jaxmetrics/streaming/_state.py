"""The state of a stream: how many items, or what weight, of each class is in each bin."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program, ordinary_promotion
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.types import Array, ArrayLike, HostArray, HostOrDeviceArray, Items
from jaxmetrics.streaming import _counts
from jaxmetrics.streaming._batch import check_batch, check_batch_shape
from jaxmetrics.streaming._bins import Bins, bin_of

# Behind the bins of a class: what has no bin, and what tells how the state came about, which is
# the number of items and, modulo 2^32, that times the fingerprint of the bins, in the digit that
# nothing is carried from.
UNDEFINED, ORIGIN = 0, 1
_EXTRA = 2


class State(NamedTuple):
    """What a stream left so far; one leaf, of integers, so that `+` and `psum` merge it.

    Attributes:
      digits: `[..., 2, bins + 2, digits]` int32, of negatives and of positives.
    """

    digits: Array


def init(bins: Bins, batch_shape: tuple[int, ...] = (), *, weighted: bool = False) -> State:
    """A state that has seen nothing.

    Args:
      bins: such as `float16_bins()`; they are given again with every use of the state.
      batch_shape: the leading axes of scores, such as the number of models.
      weighted: whether items have weights.

    Returns:
      A State, a pytree of one array, of 16 bytes a bin, 32 if weighted, for each of the batch.
      Counts and sums of weights are whole numbers of 48 bits and 2^-32 of 80: 1.4e14 items can be
      counted, and none is lost by rounding.

    Raises:
      TypeError: bins are none, or batch_shape is no tuple of ints.

    Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.init(jm.streaming.uniform_bins(100)).digits.shape)
      (2, 102, 2)

    Reference: Y. Ben-Haim and E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11,
    2010, for histograms of streams.
    """
    check_bins(bins)
    check_batch_shape(batch_shape)
    n_digits = _counts.DIGITS_OF_WEIGHTS if weighted else _counts.DIGITS_OF_COUNTS
    return State(jnp.zeros((*batch_shape, 2, bins.n + _EXTRA, n_digits), jnp.int32))


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

    Each bin's count of each class grows by the items, or their weight, whose score is in it.

    Args:
      state: of `init` or the call before; its memory is used again, so that it is gone after this.
      scores: `[..., n]`, higher is more positive, taken in float32.
      labels: `[..., n]`, bool or 0 and 1.
      bins: those of `init`.
      weights: `[..., n]`, not negative, for a state that is weighted; 1 by default.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      The State. Any split of the items, in any order, leads to the same one.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, or the state is
        of other bins.

    A device that is still at work on the state is not waited for: other bins of as many are then
    refused by a later update, by `merge` or, at the latest, by what reads the state.

    An item whose score is NaN is counted apart, and so are, traced, one whose label or weight is
    not what it should be: `table` and `bounds` are then NaN unless told to ignore them. Compiled
    once a shape. Time O(n + bins), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(100)
      >>> state = jm.streaming.init(bins)
      >>> state = jm.streaming.update(state, [.1, .4, .35], [0, 0, 1], bins=bins)
      >>> state = jm.streaming.update(state, [.8], [1], bins=bins)
      >>> print(jm.roc_auc(jm.streaming.table(state, bins=bins)))
      0.75

    Reference: that of `jaxmetrics.streaming.init`.
    """
    check_state(state, bins, wait=False)
    items = checks.check_items(scores, labels, weights, where)
    if weights is not None and not is_weighted(state):
        raise TypeError("the state has no weights: write init(bins, weighted=True)")
    check_batch(items, state.digits.shape[:-3])
    with ordinary_promotion():
        updated: State = _update(state, at_least_one(items), bins)
    return updated


@functools.partial(jax.jit, static_argnums=2, donate_argnums=0)
def _update(state: State, items: Items, bins: Bins) -> State:
    scores, labels = jnp.asarray(items.scores), jnp.asarray(items.labels)
    n_digits = state.digits.shape[-1]
    undefined = numerics.is_nan(scores)
    if labels.dtype != bool:
        undefined = undefined | ((labels != 0) & (labels != 1))
    adds = None
    if items.weights is not None:
        weight = jnp.asarray(items.weights)
        weight = weight.astype(jnp.promote_types(weight.dtype, jnp.float32))
        allowed = (weight >= 0) & (weight < jnp.inf)
        undefined = undefined | ~allowed
        adds = _counts.digits_of(jnp.where(allowed, weight, 1))
    elif n_digits == _counts.DIGITS_OF_WEIGHTS:
        adds = _counts.digits_of(jnp.ones(()))
    index = jnp.where(undefined, bins.n + UNDEFINED, bin_of(bins, scores.astype(jnp.float32)))
    columns = bins.n + _EXTRA
    slot = index + jnp.where(labels == 1, columns, 0)
    valid = jnp.ones(1, bool) if items.where is None else items.where
    slot = jnp.where(valid, slot, 2 * columns)  # which there is none of

    def of_row(digits: Array, slot: Array, valid: Array, adds: Array | None) -> Array:
        seen = jnp.sum(valid, dtype=jnp.int32)
        stamp = seen * np.int32(bins.fingerprint)  # modulo 2^32
        origin = np.array([0, 1]), bins.n + ORIGIN, np.array([_one(n_digits), n_digits - 1])
        digits = digits.at[origin].add(jnp.stack([seen, stamp]))
        flat = digits.reshape(-1, n_digits)
        sums = _counts.counted(flat, slot) if adds is None else _counts.added(flat, slot, adds)
        return sums.reshape(digits.shape)

    batch = slot.shape[:-1]
    shape = (*batch, scores.shape[-1])
    slot, valid = (jnp.broadcast_to(x, shape) for x in (slot, valid))
    adds = None if adds is None else jnp.broadcast_to(adds, (*shape, n_digits))
    return State(numerics.over_batch(of_row, len(batch))(state.digits, slot, valid, adds))


def _one(n_digits: int) -> int:
    """The digit whose unit is 1."""
    return 0 if n_digits == _counts.DIGITS_OF_COUNTS else _counts.DIGITS_OF_WEIGHTS // 2


def merge(a: State, b: State) -> State:
    """The state of the items of both.

    merge = a + b, leaf by leaf. So `jax.lax.psum`, a sum over stacked states and a tree of merges
    give the same; up to 32,768 states may be added so before the next `update` or `merge`.

    Args:
      a: a State.
      b: another of the same bins, batch and kind.

    Returns:
      The State, as if one had seen all items.

    Raises:
      TypeError, ValueError: states differ in bins, batch or kind.

    Nothing is NaN. Time O(bins).

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.uniform_bins(100)
      >>> a, b = (
      ...     jm.streaming.update(jm.streaming.init(bins), scores, labels, bins=bins)
      ...     for scores, labels in [([.1, .4], [0, 0]), ([.35, .8], [1, 1])]
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
    if is_concrete(a.digits) and is_concrete(b.digits):
        (seen_a, stamp_a), (seen_b, stamp_b) = _origin(a), _origin(b)
        if np.any(seen_a * stamp_b != seen_b * stamp_a):
            raise ValueError("states are of different bins: use the same ones for all that merge")
    return State(_merged(a.digits, b.digits))


@jax.jit
def _merged(a: Array, b: Array) -> Array:
    return _counts.carried(a + b)


def n_items(state: State) -> HostOrDeviceArray:
    """How many items a state has seen, those of weight 0 and with NaN among them.

    Args:
      state: of `update`.

    Returns:
      `[...]`, NumPy's int64; traced, in JAX's default float.

    Raises:
      TypeError: state is none.

    Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.float16_bins()
      >>> state = jm.streaming.update(jm.streaming.init(bins), [.1, .4], [0, 1], bins=bins)
      >>> print(int(jm.streaming.n_items(state)))
      2

    Reference: that of `jaxmetrics.streaming.init`.
    """
    _check_is_state(state)
    found = _seen(state.digits)
    if not is_concrete(found):
        return found.astype(numerics.default_float())
    on_host: HostArray = np.asarray(found, np.int64)
    return on_host


@double_program()
def _seen(digits: Array) -> Array:
    return _counts.total_of(digits[..., 0, -_EXTRA + ORIGIN, :])


def totals(digits: Array) -> tuple[Array, Array, Array]:
    """Negatives and positives `[..., bins]`, and what has no bin `[...]`, in float64."""
    found = _counts.total_of(digits)
    n = found.shape[-1] - _EXTRA
    return found[..., 0, :n], found[..., 1, :n], jnp.sum(found[..., n + UNDEFINED], axis=-1)


def is_weighted(state: State) -> bool:
    """Whether items have weights."""
    return state.digits.shape[-1] == _counts.DIGITS_OF_WEIGHTS


def refuse_weights(state: State) -> None:
    """Refuse weights where the sampling error is asked for."""
    if is_weighted(state):
        raise TypeError(
            "the sampling error of weights needs their squares, which a state has not: use a state "
            "without weights"
        )


def check_bins(bins: Bins) -> None:
    """Refuse what is not Bins."""
    if not isinstance(bins, Bins):
        raise TypeError(
            f"bins must be Bins, got {bins!r}: write float16_bins(), uniform_bins(n) or "
            "edges(array)"
        )


def check_state(state: State, bins: Bins, *, wait: bool = True) -> None:
    """Refuse a state that is not one of these bins.

    Without `wait`, one that a device is still at work on is looked at the next time.
    """
    check_bins(bins)
    _check_is_state(state)
    found = state.digits.shape[-2] - _EXTRA
    if found != bins.n:
        raise ValueError(f"the state has {found} bins, and bins has {bins.n}: use those of init")
    if is_concrete(state.digits) and (wait or _is_ready(state.digits)):
        seen, stamp = _origin(state)
        if np.any(seen * np.uint32(bins.fingerprint) != stamp):
            raise ValueError("the state is of other bins, or merged from such: use those of init")


def _is_ready(array: Array) -> bool:
    ready = getattr(array, "is_ready", None)  # NumPy's has none
    return ready is None or bool(ready())


def _origin(state: State) -> tuple[HostArray, HostArray]:
    """The number of items, and that times the fingerprint of the bins, modulo 2^32."""
    columns = np.asarray(_origins(state.digits)).view(np.uint32)
    columns = columns.reshape(-1, *columns.shape[-2:])
    one = _one(columns.shape[-1])
    seen = columns[..., 0, one] + (columns[..., 0, one + 1] << np.uint32(_counts.BITS))
    return seen, columns[..., 1, -1]


@jax.jit
def _origins(digits: Array) -> Array:
    return digits[..., -_EXTRA + ORIGIN, :].astype(jnp.int32)


def _check_is_state(state: State) -> None:
    if not isinstance(state, State):
        raise TypeError(f"state must be a State, got {state!r}: write init(bins)")


def _described(state: State) -> str:
    *batch, _, columns, n_digits = state.digits.shape
    kind = "with weights" if n_digits == _counts.DIGITS_OF_WEIGHTS else "without weights"
    return f"{columns - _EXTRA} bins, batch {batch}, {kind}"
