"""Partial AUC from batches too small to hold the top negatives: a soft maximum over negatives.

    objective = mean over positives i of kl_weight log(mean over negatives j of
                exp(l_ij / kl_weight))

It is the largest mean of the l_ij under weights of the negatives that are penalised by kl_weight
times their divergence from even ones. A small kl_weight looks at the top negatives alone, a large
one at all. For any max_fpr it is above the mean over the top negatives less
kl_weight log(1 / max_fpr).

Reference: D. Zhu, G. Li, B. Wang, X. Wu and T. Yang, "When AUC meets DRO: optimizing partial AUC
for deep learning with non-convex convergence guarantee", ICML 2022 (SOPA-s).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._areas import surrogate_numbers
from jaxmetrics.losses._batches import EMPTY, Batch, Pairs, apply_step, empty_slots

__all__ = ["State", "apply", "init", "objective"]


class State(NamedTuple):
    """What each positive remembers.

    Attributes:
      log_means: `[n_slots]`, log mean over negatives of exp(l / kl_weight); -inf before the first
        visit.
    """

    log_means: Array


def init(n_slots: int) -> State:
    """A state in which no positive was seen.

    Args:
      n_slots: one more than the largest index that will come; one slot an item of the training set,
        or one a positive.

    Returns:
      A pytree of arrays, `[n_slots]`.

    Raises:
      TypeError, ValueError: n_slots is not a whole number of at least 1.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.losses.kl_partial_auc.init(2).log_means)
      [-inf -inf]

    Nothing is NaN; memory O(n_slots). Reference: that of `jaxmetrics.losses.kl_partial_auc`.
    """
    return State(empty_slots(n_slots))


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
    """The loss of a batch, for its gradient, and the state after it.

    u_i = (1 - step_size) u_i + step_size mean_j exp(l_ij / kl_weight), and on a first visit the
    mean alone; the gradient is that of sum_i mean_j exp(l_ij / kl_weight) l_ij / u_i, with the
    exponentials and u held fixed. Logarithms are kept of u, which do not overflow.

    Args:
      state: of `init` or the call before.
      scores: `[n]` of the batch, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      index: `[n]`, the slot of each item, from 0; of negatives it is not looked at.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out, whose slots stay as they are.
      kl_weight: above 0, in units of the loss of a pair.
      step_size: in (0, 1], the share of this batch in what is remembered.
      surrogate: of a pair, as in `partial_auc_loss`; the "sigmoid" is measured in standard
        deviations of the negatives of the batch.
      margin: of "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: by default 1 for "logistic", 0.2 for "sigmoid".

    Returns:
      The mean over the batch's positives of kl_weight log u_i, which estimates the objective, with
      the gradient of the estimator; and the state.

    Raises:
      TypeError, ValueError: an input is not what it should be, or an index has no slot.

    The state stays as it was, and the loss is 0 with a gradient of 0 where a class is absent, NaN
    where a valid score is or a traced input is not what it should be. Traced, an index that has no
    slot is not remembered. Time and memory O(n^2) of the batch.

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
    batch = Batch(scores, labels, index, weights, where)
    pair = surrogate, surrogate_numbers(surrogate, margin, temperature)
    loss, log_means = apply_step(_soft_maximum, numbers, state.log_means, batch, *pair)
    return loss, State(log_means)


def objective(state: State, *, kl_weight: float | Array = 1.0) -> Array:
    """The objective by what all positives that were seen remember.

    Args:
      state: of `apply`.
      kl_weight: that of `apply`.

    Returns:
      `[]`, the mean of kl_weight log u_i. NaN before the first batch.

    Raises:
      TypeError, ValueError: kl_weight is not above 0.

    Time O(n_slots).

    Example:
      >>> import jaxmetrics as jm
      >>> kl = jm.losses.kl_partial_auc
      >>> _, state = kl.apply(kl.init(3), [.5, .2, .9], [1, 0, 0], [0, 1, 2])
      >>> print(f"{kl.objective(state):.4f}")
      1.4738

    Reference: that of `jaxmetrics.losses.kl_partial_auc`.
    """
    weight = jnp.asarray(checks.check_loss_options({"kl_weight": kl_weight})["kl_weight"])
    return weight * jnp.mean(state.log_means, where=state.log_means > EMPTY)


def _soft_maximum(
    pairs: Pairs, held: Array, kl_weight: Array, step_size: Array
) -> tuple[Array, Array]:
    losses, some = pairs.losses, pairs.negatives > 0
    log_shares = jnp.log(jnp.where(some, pairs.negatives, 1))
    exponents = lax.stop_gradient(jnp.where(some, losses / kl_weight + log_shares, EMPTY))
    batch = jax.nn.logsumexp(exponents, axis=1)
    mixed = jnp.logaddexp(jnp.log1p(-step_size) + held, jnp.log(step_size) + batch)
    now = jnp.where(held > EMPTY, mixed, batch)
    # At most 1 / step_size, as now has that share of the batch.
    shares = jnp.exp(exponents - now[:, None])
    estimate = jnp.sum(shares * jnp.where(some, losses, 0), axis=1)
    return kl_weight * now + estimate - lax.stop_gradient(estimate), now
