"""Losses for areas under the ROC curve, as sums over pairs of a positive and a negative."""

from __future__ import annotations

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._evaluated import loss_of_rows
from jaxmetrics.losses._head import of_head, reach_of
from jaxmetrics.losses._pairs_of_parts import pairs_of_parts
from jaxmetrics.losses._rows import Row, ascending
from jaxmetrics.losses._sum_of_pairs import sum_of_pairs
from jaxmetrics.losses._surrogates import kernel_of, placed, surrogate_numbers, within_reach
from jaxmetrics.losses._top_set import top_set

# Capacity of the head, as a share of the items. At a max_fpr of 0.05 and the default band, about
# half of the items are in the head in float32.
_PARTS = (9 / 16,)


@on_any_mesh
def pairwise_auc_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    surrogate: str = "squared_hinge",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
    axis_name: AxisName = None,
) -> Array:
    """The mean surrogate loss over all pairs of a positive and a negative.

    loss = sum_ij w_i w_j surrogate(s_i - s_j) / sum_ij w_i w_j, over positives i and negatives j.
    With d = s_i - s_j the surrogates are
      "hinge": max(margin - d, 0);
      "squared_hinge": max(margin - d, 0)^2;
      "square": (margin - d)^2;
      "logistic": log(1 + exp(-d / temperature));
      "sigmoid": 1 / (1 + exp(d / (temperature c))), with c the standard deviation of the negatives'
        scores. The loss does not change when all scores are multiplied by a number above 0, except
        where c is 1 because all negatives tie or there is only one.
    All but the sigmoid are convex in the scores. The first three at margin 1, and the logistic
    divided by log 2, are never negative, and at least 1 where d <= 0. Their loss is therefore an
    upper bound of 1 - `jaxmetrics.roc_auc`. The loss with the sigmoid tends to 1 - AUC as
    temperature goes to 0.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      surrogate: the loss of a pair, one of those above.
      margin: above 0. Pairs that differ by less cost something under "hinge" and "squared_hinge";
        it is the target difference of "square". 1 by default.
      temperature: above 0, the width of "logistic" and "sigmoid"; 1 and 0.2 by default.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the loss of the whole, without a gather.

    Returns:
      `[...]`, in float32; in float64 for float64 scores in x64 mode.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a margin is given to "logistic"
        or "sigmoid", or a temperature to another surrogate.

    The loss and its gradient are 0 where there are no positives or no negatives. The loss is NaN,
    and its gradient 0, where a valid score is NaN, or a traced label, weight or option is invalid.
    It can be differentiated in forward and reverse mode, any number of times. Time O(n log n),
    memory O(n), for every surrogate.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.losses.pairwise_auc_loss([.9, .8, .3, .1], [1, 0, 1, 0]):.3f}")
      0.935

    Reference: W. Gao, R. Jin, S. Zhu and Z.-H. Zhou, "One-pass AUC optimization", ICML 2013.
    """
    numbers = surrogate_numbers(surrogate, margin, temperature)
    items = scores, labels, weights, where
    return loss_of_rows(_all_pairs, pairs_of_parts, (surrogate,), numbers, items, axis_name)


@on_any_mesh
def partial_auc_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    max_fpr: float | Array,
    min_tpr: float | Array = 0.0,
    surrogate: str = "sigmoid",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
    band: float | Array = 0.5,
    axis_name: AxisName = None,
) -> Array:
    """The mean surrogate loss over pairs of a positive and one of the highest negatives.

    loss = sum_ij p_i q_j surrogate(s_i - s_j) / sum_ij p_i q_j, over positives i and negatives j,
    with the surrogates of `pairwise_auc_loss`. Let u be the share of the negatives above a score.
    q_j is w_j times the mean of sigmoid((max_fpr - u) / (band max_fpr (1 - max_fpr))) over the
    interval of u that negative j takes. This mean is near 1 for the highest negatives, 1/2 at
    max_fpr, and near 0 for the lowest. With band 0 the negatives are exactly the highest max_fpr of
    all, with a fraction of the one at the edge. In the same way p_i selects the lowest 1 - min_tpr
    of the positives.

    Minimising the loss maximises the area under the ROC curve to the left of max_fpr and above
    min_tpr. A convex surrogate at a small max_fpr has a poor minimum: scores that shrink until
    every pair costs its margin. On its own it can lose to cross-entropy. The default surrogate is
    bounded and does not depend on the scale of the scores. Use it to continue from a model that
    cross-entropy has trained. The page on training shows on which data it gains, and how
    validation data decide.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], the share of the negatives that count: the highest ones.
      min_tpr: in [0, 1), the share of the positives that do not count: the highest ones.
      surrogate: the loss of a pair, one of those of `pairwise_auc_loss`.
      margin: above 0, for "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: above 0, for "logistic" and "sigmoid"; 1 and 0.2 by default.
      band: at least 0, how softly the sets of items end; 0 for exact sets.
      axis_name: the axis of the mesh, or a tuple of axes, over which `jax.shard_map` splits the
        items: each device passes its part, and all get the loss of the whole, without a gather.

    Returns:
      `[...]`, in float32; in float64 for float64 scores in x64 mode. With band 0 the loss with the
      sigmoid tends to 1 - `jaxmetrics.partial_auc` with scale "range" as temperature goes to 0. The
      error is O(temperature^2) for smoothly distributed scores. The other surrogates give an upper
      bound of that limit, under the conditions in `pairwise_auc_loss`. All of these but "square"
      are convex in the scores with any band.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a margin is given to "logistic"
        or "sigmoid", or a temperature to another surrogate.

    The loss and its gradient are 0 where there are no positives or no negatives. The loss is NaN,
    and its gradient 0, where a valid score is NaN, or a traced label, weight or option is invalid.
    The sets depend on ranks and weights, and carry no gradient in either. Low negatives may be left
    out if their q_j together are below the rounding error. The loss can be differentiated in
    forward and reverse mode, any number of times. Time O(n log n), memory O(n), for every
    surrogate.

    Example:
      >>> import jax, jaxmetrics as jm
      >>> def loss(scores):
      ...     return jm.losses.partial_auc_loss(scores, [1, 0, 1, 0], max_fpr=.5, band=0)
      >>> value, gradient = jax.value_and_grad(loss)(jax.numpy.array([.9, .8, .3, .1]))
      >>> print(f"{value:.4f}", *(f"{x:.2f}" for x in gradient))
      0.5963 -1.11 1.27 -0.01 -0.16

    Reference: H. Narasimhan and S. Agarwal, "A structural SVM based approach for optimizing partial
    AUC", ICML 2013, for the set of the highest negatives.
    """
    numbers = surrogate_numbers(surrogate, margin, temperature)
    numbers |= {"max_fpr": max_fpr, "min_tpr": min_tpr, "band": band}
    two_way = not (isinstance(min_tpr, (int, float)) and min_tpr == 0)
    items = scores, labels, weights, where
    return loss_of_rows(_window, pairs_of_parts, (surrogate, two_way), numbers, items, axis_name)


def _all_pairs(row: Row, surrogate: str, **numbers: Array) -> Array:
    return _mean_of_pairs(surrogate, ascending(placed(row, surrogate, **numbers)))


def _window(
    row: Row,
    surrogate: str,
    two_way: bool,
    max_fpr: Array,
    min_tpr: Array,
    band: Array,
    **numbers: Array,
) -> Array:
    def of_items(row: Row, total: Array | None) -> Array:
        places, positives, negatives, *_ = row
        negatives = top_set(places, negatives, max_fpr, band, total)
        if two_way:
            lowest = top_set(-jnp.flip(places), jnp.flip(positives), 1 - min_tpr, band)
            positives = jnp.flip(lowest)
        return _mean_of_pairs(surrogate, row._replace(positives=positives, negatives=negatives))

    row = placed(row, surrogate, **numbers)
    if surrogate == "square":  # the lowest negatives, outside the head, may have the highest loss
        return of_items(ascending(row), None)
    return of_head(of_items, row, reach_of(max_fpr, band), _PARTS)


def _mean_of_pairs(surrogate: str, row: Row) -> Array:
    """The weighted mean surrogate loss over the pairs of a row in ascending order."""
    places, positives, negatives, *_ = within_reach(row, surrogate)
    total = sum_of_pairs(kernel_of(surrogate, places.dtype), places, positives, negatives)
    return numerics.divide(total, jnp.sum(positives) * jnp.sum(negatives), 0.0)
