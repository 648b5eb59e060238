"""Partial-AUC loss for batches too small to hold the top negatives: a threshold per positive.

    objective = mean over positives i of min over t of (t + mean_j max(l_ij - t, 0) / max_fpr)

The minimum for positive i is the mean of the largest max_fpr of the losses l_ij, the conditional
value at risk: exactly those of the top negatives j, if a loss rises with the score of the negative,
as all but "square" do. The state holds the t of each positive, and each batch improves it.

Reference: D. Zhu, G. Li, B. Wang, X. Wu and T. Yang, "When AUC meets DRO: optimizing partial AUC
for deep learning with non-convex convergence guarantee", ICML 2022 (SOPA).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._batches import EMPTY, Pairs, apply_step, check_state, empty_slots
from jaxmetrics.losses._rows import order_of, permuted
from jaxmetrics.losses._surrogates import surrogate_numbers
from jaxmetrics.losses._top_set import edge_of_shares, shares_above

__all__ = ["State", "apply", "init"]


class State(NamedTuple):
    """One number for each positive, updated by each batch that holds it.

    Attributes:
      thresholds: `[n_slots]`. Pairs with the top negatives have losses above the threshold. -inf
        before the first batch that holds the positive.
    """

    thresholds: Array


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
      >>> print(jm.losses.cvar_partial_auc.init(2).thresholds)
      [-inf -inf]

    Nothing is NaN; memory O(n_slots). Reference: that of `jaxmetrics.losses.cvar_partial_auc`.
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
    max_fpr: float | Array,
    step_size: float | Array = 0.1,
    surrogate: str = "squared_hinge",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
) -> tuple[Array, State]:
    """The loss of a batch, and the state after it.

    loss = mean_i (t_i + mean_j max(l_ij - t_i, 0) / max_fpr), with t held fixed. Afterwards
    t_i becomes t_i - step_size (1 - share_i / max_fpr), with share_i the share of the negatives
    with l_ij > t_i. The first t_i of a positive is its loss at the edge of the batch's own top
    negatives.

    Args:
      state: from `init` or the call before.
      scores: `[n]` of the batch, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      index: `[n]`, the slot of each item, from 0. The index of a negative is not used.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out; their slots do not change.
      max_fpr: in (0, 1], the share of the negatives that count: the highest ones.
      step_size: in (0, 1], how far thresholds move, in units of the loss of a pair.
      surrogate: the loss of a pair, as in `pairwise_auc_loss`. "sigmoid" uses the standard
        deviation of the negatives of the batch.
      margin: above 0, for "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: above 0, for "logistic" and "sigmoid"; 1 and 0.2 by default.

    Returns:
      The objective at the present thresholds, as a mean over the batch's positives, and the state.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; state is not a State of this
        loss, or was cast to another dtype, scores have leading axes (use `vmap`), or the index of a
        positive has no slot.

    If a class is absent, the loss and its gradient are 0. If a valid score is NaN, a traced label,
    weight or option is invalid, or the traced index of a positive has no slot, the loss is NaN,
    and its gradient 0. In both cases, and where the loss is not finite, the state does not change.
    The loss can be differentiated in forward and reverse mode, any number of times, with the
    thresholds held fixed. Time and memory O(n^2) for a batch of n items.

    Example:
      >>> import jaxmetrics as jm
      >>> cvar = jm.losses.cvar_partial_auc
      >>> loss, state = cvar.apply(
      ...     cvar.init(3), [.5, .2, .9], [1, 0, 0], [0, 1, 2], max_fpr=.5
      ... )
      >>> print(f"{loss:.4f}")
      1.9600

    Reference: that of `jaxmetrics.losses.cvar_partial_auc`.
    """
    numbers = {"max_fpr": max_fpr, "step_size": step_size}
    check_state(state, State, "cvar_partial_auc")
    batch = scores, labels, index, weights, where
    pair = surrogate, surrogate_numbers(surrogate, margin, temperature)
    loss, thresholds = apply_step(_tail_mean, numbers, state.thresholds, batch, *pair)
    return loss, State(thresholds)


def _tail_mean(pairs: Pairs, held: Array, max_fpr: Array, step_size: Array) -> tuple[Array, Array]:
    order = order_of(pairs.row)
    scores, negatives = (permuted(x, order) for x in (pairs.row.scores, pairs.row.negatives))
    # The top negatives are those with the highest scores, for all positives alike.
    shares = shares_above(scores, negatives, None)
    edge_weights = edge_of_shares(*shares, negatives, max_fpr, jnp.zeros_like(max_fpr))
    edge = order[jnp.argmax(edge_weights)]
    threshold = lax.stop_gradient(jnp.where(held > EMPTY, held, pairs.losses[:, edge]))
    # XLA may compute a loss at the edge again for each use, rounded otherwise: `over` may not be 0.
    of_edge = pairs.row.scores == pairs.row.scores[edge]
    at_edge = (held <= EMPTY)[:, None] & of_edge
    over = pairs.losses - threshold[:, None]
    beyond = (over > 0) & ~at_edge
    slope = jnp.where(at_edge, 0.5, beyond).astype(over.dtype)  # of max(x, 0): 1/2 at 0
    excess = jnp.sum(pairs.negatives * slope * over, axis=1)
    share = jnp.sum(pairs.negatives * beyond, axis=1)
    return threshold + excess / max_fpr, threshold - step_size * (1 - share / max_fpr)
