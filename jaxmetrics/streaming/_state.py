"""The state of a stream: the number, or the weight, of the items of each class in each bin."""

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

# Two columns follow the bins of a class. UNDEFINED counts the items without a bin. ORIGIN reveals
# states of other bins: it has the number of items, and, modulo 2^32, that number times the
# fingerprint of the bins, in the highest digit, from which nothing is carried.
UNDEFINED, ORIGIN = 0, 1
_EXTRA = 2


class State(NamedTuple):
    """The counts of a stream so far; one array of integers, which `+` and `psum` merge.

    Attributes:
      digits: `[..., 2, bins + 2, digits]` int32, for negatives and for positives.
    """

    digits: Array


def init(bins: Bins, batch_shape: tuple[int, ...] = (), *, weighted: bool = False) -> State:
    """A state that has seen no items.

    Args:
      bins: such as `float16_bins()`. Every use of the state needs the same bins.
      batch_shape: leading axes of the scores, such as `(n_models,)`.
      weighted: whether items have weights.

    Returns:
      A State, a pytree of one array: 16 bytes a bin for each problem of the batch, 32 if weighted.
      Counts are exact up to 1.4e14 items, and so are sums of weights, in units of 2^-32.

    Raises:
      TypeError: bins are not Bins, or batch_shape is not a tuple of ints.

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

    The count of each class in each bin grows by the number, or the weight, of its new items.

    Args:
      state: from `init` or the last `update`. Its buffer is donated: use the returned state.
      scores: `[..., n]`, higher is more positive, rounded to float32.
      labels: `[..., n]`, bool or 0 and 1.
      bins: the bins given to `init`.
      weights: `[..., n]`, not negative, for a weighted state; 1 by default.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      The State. Any split and any order of the items lead to the same state.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; weights for a state without
        them, leading axes other than those of the state, or a state of other bins.

    `update` does not wait for a device that still computes the state. If it is then given other
    bins of the same number, a later function that takes the state refuses it.

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
        raise TypeError("the state has no weights: write init(bins, weighted=True)")
    check_batch(items, state.digits.shape[:-3])
    with ordinary_promotion():
        updated: State = _update(state, at_least_one(items), bins)
    return updated


@functools.partial(jax.jit, static_argnames="bins", donate_argnames="state")
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
    slot = jnp.where(valid, slot, 2 * columns)  # out of range, which is dropped

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

    merge = a + b, leaf by leaf. `jax.lax.psum`, a sum over stacked states and a tree of merges
    return the same. Up to 16,384 states may be added by `+` before the next `update` or `merge`.

    Args:
      a: a State.
      b: a State with the same bins and leading axes, and weighted if a is.

    Returns:
      The State, as if one state had seen all items.

    Raises:
      TypeError: a or b is not a State.
      ValueError: they differ in bins or leading axes, or only one is weighted.

    Nothing is NaN. Time O(bins).

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
    if is_concrete(a.digits) and is_concrete(b.digits):
        (seen_a, stamp_a), (seen_b, stamp_b) = _origin(a), _origin(b)
        if np.any(seen_a * stamp_b != seen_b * stamp_a):
            raise ValueError(
                "states are of different bins: use the same bins for all states to be merged"
            )
    return State(_merged(a.digits, b.digits))


@jax.jit
def _merged(a: Array, b: Array) -> Array:
    return _counts.carried(a + b)


def n_items(state: State) -> HostOrDeviceArray:
    """Number of items that a state has seen, with those of weight 0 and those without a score.

    Args:
      state: from `update` or `merge`.

    Returns:
      `[...]`, NumPy's int64; JAX's default float where traced.

    Raises:
      TypeError: state is not a State.

    Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> bins = jm.streaming.float16_bins()
      >>> state = jm.streaming.update(jm.streaming.init(bins), [0.1, 0.4], [0, 1], bins=bins)
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
    """Negatives and positives `[..., bins]`, and the items without a bin `[...]`, in float64."""
    found = _counts.total_of(digits)
    n = found.shape[-1] - _EXTRA
    return found[..., 0, :n], found[..., 1, :n], jnp.sum(found[..., n + UNDEFINED], axis=-1)


def is_weighted(state: State) -> bool:
    """Whether items have weights."""
    return state.digits.shape[-1] == _counts.DIGITS_OF_WEIGHTS


def refuse_weights(state: State) -> None:
    """Refuse a weighted state, from which no sampling error can be computed."""
    if is_weighted(state):
        raise TypeError(
            "the sampling error of weighted items needs the squares of the weights, which a state "
            "does not store: write init(bins) without weighted=True"
        )


def check_bins(bins: Bins) -> None:
    """Refuse anything but Bins."""
    if not isinstance(bins, Bins):
        raise TypeError(
            f"bins must be Bins, got {bins!r}: write float16_bins(), uniform_bins(n) or "
            "edges(array)"
        )


def check_state(state: State, bins: Bins, *, wait: bool = True) -> None:
    """Refuse a state of other bins.

    Without `wait`, a state that a device still computes is left to the next check.
    """
    check_bins(bins)
    _check_is_state(state)
    found = state.digits.shape[-2] - _EXTRA
    if found != bins.n:
        raise ValueError(f"the state has {found} bins, and bins has {bins.n}: use the bins of init")
    if is_concrete(state.digits) and (wait or _is_ready(state.digits)):
        seen, stamp = _origin(state)
        if np.any(seen * np.uint32(bins.fingerprint) != stamp):
            raise ValueError(
                "the state, or one merged into it, is of other bins: use those of init"
            )


def _is_ready(array: Array) -> bool:
    ready = getattr(array, "is_ready", None)  # a NumPy array has none
    return ready is None or bool(ready())


def _origin(state: State) -> tuple[HostArray, HostArray]:
    """The number of items, and that number times the fingerprint of the bins, modulo 2^32."""
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
