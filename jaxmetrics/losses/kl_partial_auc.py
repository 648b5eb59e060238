"""Partial-AUC loss for batches too small to hold the top negatives: a soft maximum over negatives.

    objective = mean over positives i of kl_weight log(mean over negatives j of
                exp(l_ij / kl_weight))

For each positive it is the largest weighted mean of the losses l_ij minus a penalty: kl_weight
times the Kullback-Leibler divergence of the weights from equal weights. A small kl_weight selects
the largest losses, those of the top negatives, and a large one uses all. For any max_fpr the
objective is at least (mean of the largest max_fpr of the l_ij) - kl_weight log(1 / max_fpr).

Reference: D. Zhu, G. Li, B. Wang, X. Wu and T. Yang, "When AUC meets DRO: optimizing partial AUC
for deep learning with non-convex convergence guarantee", ICML 2022 (SOPA-s).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._batches import EMPTY, Pairs, apply_step, check_state, empty_slots
from jaxmetrics.losses._surrogates import surrogate_numbers

__all__ = ["State", "apply", "init", "objective"]


class State(NamedTuple):
    """One number for each positive, updated by each batch that holds it.

    Attributes:
      log_means: `[n_slots]`, the log of the mean of exp(l / kl_weight) over negatives; -inf before
        the first batch that holds the positive.
    """

    log_means: Array


def init(n_slots: int) -> State:
    """The state before the first batch.

    Args:
      n_slots: the number of slots, above the largest index that any batch will have: one slot for
        each item of the training set, or for each positive.

    Returns:
      A pytree of arrays, `[n_slots]`.

    Raises:
      TypeError, ValueError: n_slots is not a whole number, or is below 1.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.losses.kl_partial_auc.init(2).log_means)
      [-inf -inf]

    Nothing is NaN; memory O(n_slots). Reference: that of `jaxmetrics.losses.kl_partial_auc`.
    """
    return State(empty_slots(n_slots))


@on_any_mesh
def apply(
    state: State,
    scores: ArrayLike,
    labels: ArrayLike,
    index: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    kl_weight: float | Array = 1.0,
    step_size: float | Array = 0.5,
    surrogate: str = "squared_hinge",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
) -> tuple[Array, State]:
    """The loss of a batch, and the state after it.

    loss = mean_i kl_weight log(u_i), after u_i has become
    (1 - step_size) u_i + step_size mean_j exp(l_ij / kl_weight). The first u_i of a positive is the
    mean alone. The gradient in scores is that of mean_i mean_j exp(l_ij / kl_weight) l_ij / u_i,
    with the exponentials and u held fixed. The gradient in the weights of positives is that of
    mean_i kl_weight log(u_i), and in the weights of negatives that of
    mean_i mean_j kl_weight exp(l_ij / kl_weight) / u_i, both with u held fixed: on a first visit,
    these are the slopes of the loss. The state holds log u, which does not overflow.

    Args:
      state: from `init` or the call before.
      scores: `[n]` of the batch, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      index: `[n]`, the slot of each item, from 0. The index of a negative is not used.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out; their slots do not change.
      kl_weight: above 0, in units of the loss of a pair. A lower value gives the top negatives more
        weight.
      step_size: in (0, 1], the weight of this batch in u.
      surrogate: the loss of a pair, as in `pairwise_auc_loss`. "sigmoid" uses the standard
        deviation of the negatives of the batch.
      margin: above 0, for "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: above 0, for "logistic" and "sigmoid"; 1 and 0.2 by default.

    Returns:
      The loss, which estimates the objective over the batch's positives, and the state.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; state is not a State of this
        loss, or was cast to another dtype, scores have leading axes (use `vmap`), or the index of a
        positive has no slot.

    If a class is absent, the loss and its gradient are 0. If a valid score is NaN, a traced label,
    weight or option is invalid, or the traced index of a positive has no slot, the loss is NaN,
    and its gradient 0. In both cases, and where the loss is not finite, the state does not change.
    The loss can be differentiated in forward and reverse mode, any number of times, with u and the
    exponentials held fixed. Time and memory O(n^2) for a batch of n items.

    Example:
      >>> import jax, jaxmetrics as jm
      >>> kl = jm.losses.kl_partial_auc
      >>> def loss(scores, state):
      ...     return kl.apply(state, scores, [1, 0, 0], [0, 1, 2])
      >>> step = jax.value_and_grad(loss, has_aux=True)
      >>> (value, state), gradient = step(jax.numpy.array([.5, .2, .9]), kl.init(3))
      >>> print(f"{value:.4f}", *(f"{x:.3f}" for x in gradient))
      1.4738 -2.538 0.262 2.277

    Reference: that of `jaxmetrics.losses.kl_partial_auc`.
    """
    numbers = {"kl_weight": kl_weight, "step_size": step_size}
    check_state(state, State, "kl_partial_auc")
    batch = scores, labels, index, weights, where
    pair = surrogate, surrogate_numbers(surrogate, margin, temperature)
    loss, log_means = apply_step(_soft_maximum, numbers, state.log_means, batch, *pair)
    return loss, State(log_means)


@on_any_mesh
def objective(state: State, *, kl_weight: float | Array = 1.0) -> Array:
    """The estimated objective over all positives that batches have held so far.

    objective = mean_i kl_weight log(u_i), over these positives i.

    Args:
      state: from `apply`.
      kl_weight: the one given to `apply`.

    Returns:
      `[]`, in units of the loss of a pair. NaN before the first batch with both classes.

    Raises:
      TypeError, ValueError: state is not a State of this loss, or kl_weight is not a number above
        0.

    Time O(n_slots).

    Example:
      >>> import jaxmetrics as jm
      >>> kl = jm.losses.kl_partial_auc
      >>> _, state = kl.apply(kl.init(3), [.5, .2, .9], [1, 0, 0], [0, 1, 2])
      >>> print(f"{kl.objective(state):.4f}")
      1.4738

    Reference: that of `jaxmetrics.losses.kl_partial_auc`.
    """
    check_state(state, State, "kl_partial_auc")
    weight = jnp.asarray(checks.check_loss_options({"kl_weight": kl_weight})["kl_weight"])
    return weight * jnp.mean(state.log_means, where=state.log_means > EMPTY)


def _soft_maximum(
    pairs: Pairs, held: Array, kl_weight: Array, step_size: Array
) -> tuple[Array, Array]:
    losses, some = pairs.losses, pairs.negatives > 0
    powers = lax.stop_gradient(losses / kl_weight)
    top = jnp.max(powers, axis=1, initial=EMPTY, where=some)
    top = jnp.where(jnp.isfinite(top), top, 0)  # 0 without negatives
    # Differences from the largest power keep their digits, as sums with it would not.
    away = powers - top[:, None]
    log_shares = lax.stop_gradient(jnp.log(jnp.where(some, pairs.negatives, 1)))
    log_total = jax.nn.logsumexp(jnp.where(some, away + log_shares, EMPTY), axis=1)
    log_total = jnp.where(jnp.any(some), log_total, 0)
    batch = top + log_total
    ahead = jnp.logaddexp(jnp.log1p(-step_size) + held - batch, jnp.log(step_size))  # of the batch
    ahead = jnp.where(held > EMPTY, ahead, 0)
    away -= (log_total + ahead)[:, None]
    # The shares of a row add up to 1 / step_size at most: the batch has weight step_size in now.
    shares = jnp.where(some, jnp.exp(away + log_shares), 0)
    estimate = jnp.sum(lax.stop_gradient(shares) * jnp.where(some, losses, 0), axis=1)
    highest = math.log(jnp.finfo(losses.dtype).max) / 2  # products with exp(highest) are finite
    apart = jnp.where(pairs.row.is_negative, jnp.exp(jnp.minimum(away, highest)), 0)
    estimate += jnp.sum(lax.stop_gradient(kl_weight * apart) * pairs.negatives, axis=1)
    now = batch + ahead
    return kl_weight * now + estimate - lax.stop_gradient(estimate), now
