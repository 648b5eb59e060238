"""Partial AUC from batches too small to hold the top negatives: a threshold for each positive.

    objective = mean over positives i of min over t of t + mean_j max(l_ij - t, 0) / max_fpr

is the mean of the l_ij over exactly the top max_fpr of the negatives j, the conditional value at
risk. The t of each positive is remembered and improved batch by batch.

Reference: D. Zhu, G. Li, B. Wang, X. Wu and T. Yang, "When AUC meets DRO: optimizing partial AUC
for deep learning with non-convex convergence guarantee", ICML 2022 (SOPA).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._areas import surrogate_numbers
from jaxmetrics.losses._batches import EMPTY, Batch, Pairs, apply_step, empty_slots
from jaxmetrics.losses._rows import order_of, permuted
from jaxmetrics.losses._top_set import edge_set

__all__ = ["State", "apply", "init"]


class State(NamedTuple):
    """What each positive remembers.

    Attributes:
      thresholds: `[n_slots]`, losses of pairs above which are those of the top negatives; -inf
        before the first visit.
    """

    thresholds: Array


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
      >>> print(jm.losses.cvar_partial_auc.init(2).thresholds)
      [-inf -inf]

    Nothing is NaN; memory O(n_slots). Reference: that of `jaxmetrics.losses.cvar_partial_auc`.
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
    max_fpr: float | Array,
    step_size: float | Array = 0.1,
    surrogate: str = "squared_hinge",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
) -> tuple[Array, State]:
    """The loss of a batch, for its gradient, and the state after it.

    loss = mean_i t_i + mean_j max(l_ij - t_i, 0) / max_fpr, with t held fixed; afterwards
    t_i = t_i - step_size (1 - share of negatives with l_ij > t_i / max_fpr). On a first visit t_i
    is the loss at the edge of the batch's own top negatives.

    Args:
      state: of `init` or the call before.
      scores: `[n]` of the batch, higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      index: `[n]`, the slot of each item, from 0; of negatives it is not looked at.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out, whose slots stay as they are.
      max_fpr: in (0, 1], the share of the negatives that count.
      step_size: in (0, 1], by how much thresholds move, in units of the loss of a pair.
      surrogate: of a pair, as in `partial_auc_loss`; the "sigmoid" is measured in standard
        deviations of the negatives of the batch.
      margin: of "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: by default 1 for "logistic", 0.2 for "sigmoid".

    Returns:
      The mean over the batch's positives of the objective at their thresholds, and the state.

    Raises:
      TypeError, ValueError: an input is not what it should be, or an index has no slot.

    The state stays as it was, and the loss is 0 with a gradient of 0 where a class is absent, NaN
    where a valid score is or a traced input is not what it should be. Traced, an index that has no
    slot is not remembered. Time and memory O(n^2) of the batch.

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
    batch = Batch(scores, labels, index, weights, where)
    pair = surrogate, surrogate_numbers(surrogate, margin, temperature)
    loss, thresholds = apply_step(_tail_mean, numbers, state.thresholds, batch, *pair)
    return loss, State(thresholds)


def _tail_mean(pairs: Pairs, held: Array, max_fpr: Array, step_size: Array) -> tuple[Array, Array]:
    order = order_of(pairs.row)
    scores, negatives = (permuted(x, order) for x in (pairs.row.scores, pairs.row.negatives))
    # Losses rise with the score of the negative, so one item is at the edge for all positives.
    edge = order[jnp.argmax(edge_set(scores, negatives, max_fpr, jnp.zeros_like(max_fpr)))]
    threshold = lax.stop_gradient(jnp.where(held > EMPTY, held, pairs.losses[:, edge]))
    over = pairs.losses - threshold[:, None]
    excess = jnp.sum(pairs.negatives * jnp.maximum(over, 0), axis=1)
    share = jnp.sum(pairs.negatives * (over > 0), axis=1)
    return threshold + excess / max_fpr, threshold - step_size * (1 - share / max_fpr)
