"""Early stopping by a metric and the standard error of its paired difference."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.host import is_concrete, of_all_processes
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.quoting import restoring
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference import compare


class Stopping(NamedTuple):
    """The state of early stopping.

    Attributes:
      scores: `[n]`, the scores of the best checkpoint so far.
      best: the number of the best checkpoint, from 0.
      last: the number of the last checkpoint.
      stop: whether `patience` checkpoints went by without a better one.
    """

    scores: Array
    best: int
    last: int
    stop: bool


@takes_metric
def early_stopping(
    state: Stopping | None,
    metric: MetricLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    patience: int = 3,
    key: Array | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Stopping:
    """Whether to stop, as no later checkpoint is better by more than one standard error.

    A checkpoint becomes the best if d > SE(d), where d is its metric minus that of the best so far,
    on the same validation items. stop = last - best >= patience.

    Args:
      state: None at the first checkpoint, then what the previous call returned.
      metric: one value, higher is better; any that `compare` takes.
      scores: `[n]`, of this checkpoint on validation data.
      labels: `[n]`, bool or 0 and 1, the same at each call.
      patience: the number of checkpoints to wait for a better one.
      key: a JAX random key, for metrics that are resampled.
      weights: `[n]`, not negative.
      where: `[n]` bool, False for items to leave out.
      amounts: `[n]`, how much each positive counts, for metrics that take amounts.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a conversation) may
        depend on each other: the error is that of whole clusters.

    Returns:
      A Stopping. Save parameters where `best == last`.

    Raises:
      TypeError, ValueError: as `compare`; patience is not a whole number of at least 1, state is
        not a Stopping, or the scores are traced.

    A checkpoint whose metric is NaN is never better; a checkpoint with a value is better than it.
    Cost: one `compare` of two models; at the first checkpoint it checks the input.

    Example:
      >>> import jax.numpy as jnp, jaxmetrics as jm
      >>> labels, state = jnp.arange(40) % 4 == 0, None
      >>> for noise in (9, 3, 3, 3):
      ...     scores = labels + noise * jnp.sin(jnp.arange(40.) ** 2)
      ...     state = jm.training.early_stopping(state, jm.roc_auc, scores, labels, patience=2)
      >>> print(state.best, state.last, state.stop)
      1 3 True

    Reference: L. Breiman et al., "Classification and regression trees", 1984, section 3.4.3, for
    the rule of one standard error.
    """
    checks.check_count("patience", patience)
    if state is not None and not isinstance(state, Stopping):
        hint = restoring(state, Stopping._fields, "jm.training.Stopping")
        raise TypeError(
            f"state must be None or a Stopping, got {checks.brief(state)}: write "
            + (hint or "what the previous call returned")
        )
    scores = checks.as_array("scores", scores)
    if not is_concrete(scores):
        raise TypeError(
            "early_stopping decides now, and its scores are traced: call it outside jit and scan, "
            "with the scores that they return"
        )
    scores = scores.copy()  # the caller may write over it, or donate it
    if scores.ndim != 1:
        raise ValueError(f"scores must be [n], of one checkpoint; got scores {scores.shape}")
    best = scores if state is None else state.scores
    if best.shape != scores.shape:
        raise ValueError(
            "scores must be of the same items at each checkpoint; got scores "
            f"{scores.shape} after {best.shape}"
        )
    both = [scores, best]
    if not all(isinstance(x, jax.Array) for x in both):  # such as the best of a checkpoint
        both = of_all_processes(both)
    library = jnp if all(isinstance(x, jax.Array) for x in both) else np
    found = compare(
        metric,
        library.stack(both),
        labels,
        key=key,
        clusters=clusters,
        weights=weights,
        where=where,
        amounts=amounts,
    )
    if state is None:  # the comparison with itself has checked the input
        return Stopping(scores, 0, 0, False)
    now = state.last + 1
    undefined = jnp.isnan(found.estimate[1]) & ~jnp.isnan(found.estimate[0])
    if undefined or found.difference[0, 1] > found.standard_error[0, 1]:
        return Stopping(scores, now, now, False)
    return Stopping(state.scores, state.best, now, now - state.best >= patience)
