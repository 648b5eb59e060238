"""Losses of a rate at a threshold: recall at a false positive rate, and average precision."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxmetrics._base.numerics import divide
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._pair_sums import pair_sums, sigmoid
from jaxmetrics.losses._rows import Row, ascending, evaluate, spread
from jaxmetrics.losses._top_set import edge_set


def recall_at_fpr_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    max_fpr: float | Array,
    temperature: float | Array = 0.2,
    band: float | Array = 0.5,
) -> Array:
    """One less the recall at the threshold that a share of the negatives passes, smoothed.

    loss = sum_i w_i sigmoid((q - s_i) / (temperature c)) / sum_i w_i over positives i, with c the
    standard deviation of the negatives' scores and q their quantile: the mean of their scores with
    the weights of a logistic density of ranks u, the share of negatives above, about max_fpr and
    of scale band max_fpr (1 - max_fpr). Scores, q and c all carry gradient.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], the false positive rate.
      temperature: above 0, the width of the sigmoid in standard deviations of the negatives.
      band: at least 0, the width of the quantile. With 0 it is the first negative that may not
        pass, of which alone the threshold has its gradient.

    Returns:
      `[...]`, from 0 to 1. With band 0 it tends to 1 - `jaxmetrics.recall_at_fpr` as temperature
      goes to 0, if no positive ties with the threshold.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    0, with a gradient of 0, where there are no positives or no negatives. NaN where a valid score
    is, or a traced input is not what it should be. Differentiable to any order, in both modes.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> loss = jm.losses.recall_at_fpr_loss([.9, .8, .3, .1], [1, 0, 1, 0], max_fpr=.5)
      >>> print(f"{loss:.4f}")
      0.4483

    Reference: A. Eban et al., "Scalable learning of non-decomposable objectives", AISTATS 2017, for
    the objective.
    """
    numbers = {"max_fpr": max_fpr, "temperature": temperature, "band": band}
    return evaluate(_recall, (), numbers, scores, labels, weights, where)


def average_precision_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    temperature: float | Array = 0.1,
) -> Array:
    """One less the average precision, with a sigmoid for each comparison of two scores.

    loss = 1 - sum_i w_i precision_i / sum_i w_i over positives i, where precision_i is the weight
    of the positives above i over that of all items above i, i itself among them, and an item j is
    above i to the extent sigmoid((s_j - s_i) / (temperature c)); c is the standard deviation of the
    negatives' scores.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      temperature: above 0, in standard deviations of the negatives.

    Returns:
      `[...]`, from 0 to 1. It tends to 1 - `jaxmetrics.average_precision` as temperature goes to 0,
      if no scores tie. Of copies of an item each has half of the others above it, so that a weight
      of k is not quite k copies.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    0, with a gradient of 0, where there are no positives or no negatives. NaN where a valid score
    is, or a traced input is not what it should be. Differentiable to any order, in both modes.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> loss = jm.losses.average_precision_loss([.9, .8, .3, .1], [1, 0, 1, 0])
      >>> print(f"{loss:.4f}")
      0.1928

    Reference: A. Brown et al., "Smooth-AP: smoothing the path towards large-scale image retrieval",
    ECCV 2020.
    """
    numbers = {"temperature": temperature}
    return evaluate(_average_precision, (), numbers, scores, labels, weights, where)


def _recall(row: Row, max_fpr: Array, temperature: Array, band: Array) -> Array:
    row = ascending(row)
    threshold = jnp.sum(edge_set(row.scores, row.negatives, max_fpr, band) * row.scores)
    missed = jax.nn.sigmoid((threshold - row.scores) / (temperature * spread(row)))
    return _mean(missed, row)


def _average_precision(row: Row, temperature: Array) -> Array:
    row = ascending(row._replace(scores=row.scores / (temperature * spread(row))))
    # An item is half above itself by the sigmoid, and wholly by the definition.
    both = jnp.stack([row.positives, row.weights])
    found, all_above = pair_sums(sigmoid(both.dtype), row.scores, both, None) + both / 2
    precision = divide(found, jnp.where(row.positives > 0, all_above, 0), 0.0)
    return _mean(1 - precision, row)


def _mean(values: Array, row: Row) -> Array:
    """Over the positives; 0 where a class is absent."""
    total = jnp.where(jnp.any(row.negatives > 0), jnp.sum(row.positives), 0)
    return divide(jnp.sum(row.positives * values), total, 0.0)
