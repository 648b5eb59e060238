"""Losses of areas under the ROC curve, as sums over pairs of a positive and a negative."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.losses._pair_sums import Kernel, pair_sums, power, sigmoid, softplus, square
from jaxmetrics.losses._rows import Row, ascending, evaluate, spread
from jaxmetrics.losses._top_set import top_set

_MARGIN = ("hinge", "squared_hinge", "square")
SURROGATES = (*_MARGIN, "logistic", "sigmoid")


def pairwise_auc_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    surrogate: str = "squared_hinge",
    margin: float | Array | None = None,
    temperature: float | Array | None = None,
) -> Array:
    """The mean over pairs of a positive and a negative of a loss of their difference.

    loss = sum_ij w_i w_j surrogate(s_i - s_j) / sum_ij w_i w_j, over positives i and negatives j.
    With d = s_i - s_j a surrogate is
      "hinge": max(margin - d, 0);
      "squared_hinge": max(margin - d, 0)^2;
      "square": (margin - d)^2;
      "logistic": log(1 + exp(-d / temperature));
      "sigmoid": 1 / (1 + exp(d / (temperature c))), with c the standard deviation of the negatives'
        scores, so that it does not change when all scores are multiplied.
    All but the sigmoid are convex in the scores. At margin 1 the first three, and the logistic over
    log 2, are at least 1 where d <= 0 and not negative, so that the loss is an upper bound of
    1 - `jaxmetrics.roc_auc`. The sigmoid tends to 1 - AUC as temperature goes to 0.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      surrogate: the loss of a pair, see above.
      margin: above 0, of the first three; 1 by default.
      temperature: above 0; by default 1 for "logistic", 0.2 for "sigmoid".

    Returns:
      `[...]`, in float32, or float64 for scores of float64 in x64 mode.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, or an option is
        one that the surrogate does not have.

    0, with a gradient of 0, where there are no positives or no negatives. NaN where a valid score
    is, or a traced input is not what it should be. Differentiable to any order, in both modes.
    Time O(n log n), memory O(n), for every surrogate.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.losses.pairwise_auc_loss([.9, .8, .3, .1], [1, 0, 1, 0]):.3f}")
      0.935

    Reference: W. Gao, R. Jin, S. Zhu and Z.-H. Zhou, "One-pass AUC optimization", ICML 2013.
    """
    numbers = surrogate_numbers(surrogate, margin, temperature)
    return evaluate(_all_pairs, (surrogate,), numbers, scores, labels, weights, where)


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
) -> Array:
    """The mean loss of pairs of a positive and one of the highest negatives, by their difference.

    loss = sum_ij p_i q_j surrogate(s_i - s_j) / sum_ij p_i q_j, over positives i and negatives j,
    with the surrogates of `pairwise_auc_loss`. With u the share of the negatives above negative j,
    q_j is w_j times the mean of sigmoid((max_fpr - u) / (band max_fpr (1 - max_fpr))) over its
    interval of u: 1 for the highest negatives, 1/2 at max_fpr, 0 for the lowest. With band 0 it is
    the exact set of the highest max_fpr, and a fraction of the negative at its edge. Likewise p_i
    are of the lowest 1 - min_tpr of the positives.

    Minimising it maximises the area under the ROC curve to the left of max_fpr and above min_tpr.
    On its own a convex surrogate at a small max_fpr is minimised by scores that shrink until every
    pair costs its margin, and can lose to cross-entropy; the default, bounded and without scale, is
    for going on from a model that was trained with cross-entropy. The README says what it gains on
    which data, and how to choose by a validation set.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.
      max_fpr: in (0, 1], the share of the negatives that count, the highest.
      min_tpr: in [0, 1), the share of the positives that do not count, the highest.
      surrogate: "sigmoid", or another of `pairwise_auc_loss`.
      margin: above 0, of "hinge", "squared_hinge" and "square"; 1 by default.
      temperature: above 0; by default 1 for "logistic", 0.2 for "sigmoid".
      band: at least 0, how softly the sets end.

    Returns:
      `[...]`, in float32, or float64 for scores of float64 in x64 mode. With band 0 the sigmoid's
      tends to 1 - `jaxmetrics.partial_auc` of scale "range" as temperature goes to 0, with an error
      O(temperature^2) for smoothly distributed scores; the others bound that from above as those of
      `pairwise_auc_loss` do the AUC. With any band they are convex as those are.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, or an option is
        one that the surrogate does not have.

    0, with a gradient of 0, where there are no positives or no negatives. NaN where a valid score
    is, or a traced input is not what it should be. The sets are found by rank and carry no
    gradient. Differentiable to any order, in both modes. Time O(n log n), memory O(n), for
    every surrogate.

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
    return evaluate(_window, (surrogate, two_way), numbers, scores, labels, weights, where)


def surrogate_numbers(
    surrogate: str, margin: float | Array | None, temperature: float | Array | None
) -> dict[str, float | Array]:
    """The option that a surrogate has, by its name."""
    checks.check_choice("surrogate", surrogate, SURROGATES)
    if surrogate in _MARGIN:
        if temperature is not None:
            raise TypeError(f"surrogate {surrogate!r} has a margin, no temperature: write margin=")
        return {"margin": 1.0 if margin is None else margin}
    if margin is not None:
        raise TypeError(f"surrogate {surrogate!r} has a temperature, no margin: write temperature=")
    if temperature is None:
        temperature = 0.2 if surrogate == "sigmoid" else 1.0
    return {"temperature": temperature}


def _all_pairs(row: Row, surrogate: str, **numbers: Array) -> Array:
    return _mean(surrogate, *ascending(placed(row, surrogate, **numbers)))


def _window(
    row: Row,
    surrogate: str,
    two_way: bool,
    max_fpr: Array,
    min_tpr: Array,
    band: Array,
    **numbers: Array,
) -> Array:
    places, positives, negatives = ascending(placed(row, surrogate, **numbers))
    negatives = top_set(places, negatives, max_fpr, band)
    if two_way:
        lowest = top_set(-jnp.flip(places), jnp.flip(positives), 1 - min_tpr, band)
        positives = jnp.flip(lowest)
    return _mean(surrogate, places, positives, negatives)


def placed(row: Row, surrogate: str, **numbers: Array) -> Row:
    """With scores such that the loss of a pair is the kernel of the negative's less the other."""
    if surrogate in _MARGIN:
        places = row.scores + jnp.where(row.negatives > 0, numbers["margin"], 0)
    elif surrogate == "logistic":
        places = row.scores / numbers["temperature"]
    else:
        places = row.scores / (numbers["temperature"] * spread(row))
    return row._replace(scores=places)


def _mean(surrogate: str, places: Array, positives: Array, negatives: Array) -> Array:
    sums = positives * pair_sums(kernel_of(surrogate, places.dtype), places, negatives, None)
    return numerics.divide(jnp.sum(sums), jnp.sum(positives) * jnp.sum(negatives), 0.0)


def kernel_of(surrogate: str, dtype: Any) -> Kernel:
    """The loss of a pair, of the places of the negative less the positive."""
    if surrogate in ("logistic", "sigmoid"):
        return softplus(dtype) if surrogate == "logistic" else sigmoid(dtype)
    return square() if surrogate == "square" else power(1 if surrogate == "hinge" else 2)
