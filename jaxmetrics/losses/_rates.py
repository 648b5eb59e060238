"""Losses for rates at thresholds: recall at a false positive rate, and average precision."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.numerics import divide
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._evaluated import loss_of_rows
from jaxmetrics.losses._head import reach_of, shares_in_head
from jaxmetrics.losses._kernels import sigmoid
from jaxmetrics.losses._pair_sums import pair_sums
from jaxmetrics.losses._rates_of_parts import average_precision_of_parts, recall_of_parts
from jaxmetrics.losses._rows import Row, ascending, of_negatives, weight_of_positives
from jaxmetrics.losses._surrogates import placed
from jaxmetrics.losses._top_set import edge_of_shares

# Capacities of the head of a recall, as shares of the items: for band 0, and for the default band.
_PARTS = (1 / 8, 1 / 2)


@on_any_mesh
def recall_at_fpr_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    max_fpr: float | Array,
    temperature: float | Array = 0.2,
    band: float | Array = 0.5,
    axis_name: AxisName = None,
) -> Array:
    """1 - recall at a false positive rate, smoothed.

    loss = sum_i w_i sigmoid((q - s_i) / (temperature c)) / sum_i w_i, over positives i. c is the
    standard deviation of the negatives' scores. The threshold q is a smooth quantile of them: their
    weighted mean. The weights are a logistic density of u, the share of the negatives above, with
    centre max_fpr and scale band max_fpr (1 - max_fpr); q leaves out low negatives whose weights
    together are below the rounding error. The scores, q and c carry gradient; u in the weights of q
    does not.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], the false positive rate at the threshold.
      temperature: above 0, the width of the sigmoid in standard deviations of the negatives.
      band: at least 0, the width of the smooth quantile. With 0 the threshold is the score of the
        first negative that must not pass, and only this negative moves it.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the loss of the whole, without a gather.

    Returns:
      `[...]`, from 0 to 1. With band 0 it tends to 1 - `jaxmetrics.recall_at_fpr` as
      temperature goes to 0, if no positive ties with the threshold. It is 0 at a max_fpr of 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; max_fpr is not in (0, 1].

    The loss and its gradient are 0 where there are no positives or no negatives. The loss is NaN,
    and its gradient 0, where a valid score is NaN, or a traced label, weight or option is invalid.
    It can be differentiated in forward and reverse mode, any number of times. Time O(n log n),
    memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> loss = jm.losses.recall_at_fpr_loss([.9, .8, .3, .1], [1, 0, 1, 0], max_fpr=.5)
      >>> print(f"{loss:.4f}")
      0.4483

    Reference: E. Eban et al., "Scalable learning of non-decomposable objectives", AISTATS 2017, for
    the objective.
    """
    numbers = {"max_fpr": max_fpr, "temperature": temperature, "band": band}
    items = scores, labels, weights, where
    return loss_of_rows(_recall_loss, recall_of_parts, (), numbers, items, axis_name)


@on_any_mesh
def average_precision_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    temperature: float | Array = 0.1,
    axis_name: AxisName = None,
) -> Array:
    """1 - average precision, with a sigmoid in place of each comparison of two scores.

    loss = 1 - sum_i w_i precision_i / sum_i w_i, over positives i, with
    precision_i = (sum of w_j a_ij over positives j) / (sum of w_j a_ij over all j), a_ii = 1, and
    a_ij = sigmoid((s_j - s_i) / (temperature c)) for other items j. c is the standard deviation of
    the negatives' scores.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      temperature: above 0, the width of the sigmoid in standard deviations of the negatives.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the loss of the whole, without a gather.

    Returns:
      `[...]`, from 0 to 1. It tends to 1 - `jaxmetrics.average_precision` as temperature goes to 0,
      if no scores tie. A weight of k is not exactly k copies of an item: each copy counts as half
      above the others.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; temperature is not above 0.

    The loss and its gradient are 0 where there are no positives or no negatives. The loss is NaN,
    and its gradient 0, where a valid score is NaN, or a traced label, weight or option is invalid.
    It can be differentiated in forward and reverse mode, any number of times. Time O(n log n),
    memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> loss = jm.losses.average_precision_loss([.9, .8, .3, .1], [1, 0, 1, 0])
      >>> print(f"{loss:.4f}")
      0.1928

    Reference: A. Brown et al., "Smooth-AP: smoothing the path towards large-scale image retrieval",
    ECCV 2020.
    """
    numbers, items = {"temperature": temperature}, (scores, labels, weights, where)
    return loss_of_rows(
        _average_precision_loss, average_precision_of_parts, (), numbers, items, axis_name
    )


def _recall_loss(row: Row, max_fpr: Array, temperature: Array, band: Array) -> Array:
    shares = shares_in_head(row, reach_of(max_fpr, band), _PARTS)
    edge, negatives = edge_of_shares(*shares, row.negatives, max_fpr, band), of_negatives(row)
    above = jnp.sum(edge * negatives.scores) - negatives.scores
    missed = jax.nn.sigmoid(above / (temperature * negatives.std))
    return _mean_of_positives(jnp.where(max_fpr < 1, missed, 0), row)


def _average_precision_loss(row: Row, temperature: Array) -> Array:
    row = ascending(placed(row, "sigmoid", temperature=temperature))
    both = jnp.stack([row.positives, row.weights])
    found, all_above = both + pair_sums(sigmoid(both.dtype), row.scores, both, None)
    # An item of weight 0, far from all others, has nothing above it, not even itself.
    none = all_above <= jnp.finfo(all_above.dtype).tiny
    precision = divide(found, jnp.where(none, 0, all_above), 1.0)
    return _mean_of_positives(1 - precision, row)


def _mean_of_positives(values: Array, row: Row) -> Array:
    """The weighted mean over the positives; 0 where a class is absent."""
    return divide(jnp.sum(row.positives * values), weight_of_positives(row), 0.0)
