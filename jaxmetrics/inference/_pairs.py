"""The errors of the differences of all pairs of models, and how well they are known.

To be traced inside `double_precision()`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._intervals.rules import OfClusters, degrees_of_clusters, lacking

_MORE = 4.0
_FEWEST = (0.25, 0.375)
_ROUNDING = 1e-12


class Pairs(NamedTuple):
    """Of all pairs of models, `[models, models]`.

    Attributes:
      standard_error: of the difference.
      error: the same, with disagreements that may not have been drawn.
      df: the degrees of freedom of `error`.
      of_negatives: the share of the negatives in the variance.
      sizes: the numbers of negatives, positives and all items, or of clusters with such.
      mixed: the share of the clusters with both classes.
    """

    standard_error: Array
    error: Array
    df: Array
    of_negatives: Array
    sizes: tuple[Array, Array, Array]
    mixed: Array

    def drawn_variances(self, normal: Array) -> Array:
        """`[draws, models, models]`, estimates of the variances over their true values.

        From three normal numbers `[draws, 3]` for each, by the chi-squared of E. B. Wilson and
        M. M. Hilferty 1931, whose lower tail is a little low for few observations.
        """
        k = jnp.stack([jnp.maximum(x - 1, 0.5) for x in self.sizes])
        drawn = jnp.maximum(1 - 2 / (9 * k) + normal * jnp.sqrt(2 / (9 * k)), 1e-3) ** 3
        negatives, positives, every = (x[:, None, None] for x in drawn.T)
        apart = self.of_negatives * negatives + (1 - self.of_negatives) * positives
        variances: Array = self.mixed * every + (1 - self.mixed) * apart
        return variances


def pairs_of(estimate: Array, covariance: Covariance, bounds: tuple[Array, Array] | None) -> Pairs:
    """The pairs of models; `bounds` are the lowest and the highest value of the metric, if known.

    The variance of a difference is V_0 + V_1, of the negatives and the positives, with
    V_c = (s_c^2 + m max(L_c - s_c^2, 0) / n_c) / n_c, where s_c^2 is the variance of the difference
    of the influence values, and L_c of `_largest_variances` a variance that disagreements which
    were not drawn may have. m is 1, and 5 where hardly a failure of a model has been seen; with
    clusters, times the share of them that have one class.
    """
    sizes = [jnp.ravel(jnp.asarray(x, jnp.float64))[0] for x in covariance.sizes]
    n0, n1, n = sizes
    mixed = jnp.ravel(jnp.asarray(covariance.mixed, jnp.float64))[0]
    total = _of_differences(covariance.total)
    of_classes = covariance.of_classes
    if of_classes is None:
        of_classes = jnp.stack([jnp.zeros_like(covariance.total), covariance.total])
    classes = [_of_differences(x) for x in of_classes]
    error = _root(total, covariance.total, estimate)
    if bounds is not None:
        share = jnp.clip((estimate - bounds[0]) / (bounds[1] - bounds[0]), 0, 1)
        unit = (bounds[1] - bounds[0]) ** 2
        weight = (1 - mixed) * (1 + _MORE * _unseen(share, jnp.minimum(n0, n1)))
        given = zip(classes, of_classes, (n0, n1), strict=True)
        added = []
        for v, of_class, n_c in given:
            largest = unit * _largest_variances(share, of_class / unit, n_c)
            added.append(weight * numerics.divide(jnp.maximum(largest - n_c * v, 0), n_c**2, 0.0))
        classes = [v + x for v, x in zip(classes, added, strict=True)]
        total = total + added[0] + added[1]
    df = degrees_of_clusters(OfClusters(classes[0], classes[1], total, (n0, n1, n), mixed))
    of_negatives = jnp.clip(numerics.divide(classes[0], classes[0] + classes[1], 0.5), 0, 1)
    # Models without any variance, such as perfect ones, may be different; others are equal.
    constant = jnp.diagonal(covariance.total) <= _ROUNDING**2 * estimate**2
    different = constant[:, None] & constant[None, :] & ~jnp.eye(len(constant), dtype=bool)
    raised = jnp.where((error == 0) & ~different, 0.0, jnp.sqrt(total))
    return Pairs(error, raised, df, of_negatives, (n0, n1, n), mixed)


def _unseen(share: Array, n: Array) -> Array:
    """From 0 to 1 as the soft failures n (1 - A) or successes n A of a model of a pair get few."""
    fewest = n * jnp.minimum(share, 1 - share)
    few = lacking(fewest, _FEWEST)
    return jnp.maximum(few[:, None], few[None, :])


def _largest_variances(share: Array, of_class: Array, n: Array) -> Array:
    """uA + uB - 2 r sqrt(uA uB) with u = p (1 - p) and p = (n A + 1/2) / (n + 1).

    r is the correlation of the two models' influence values, with one more observation, in which
    each has the variance u and they do not depend on each other.
    """
    p = (n * share + 0.5) / (n + 1)
    u = p * (1 - p)
    deviations = jnp.sqrt(n * jnp.maximum(jnp.diagonal(of_class), 0) + u / n)
    r = jnp.clip(n * of_class / (deviations[:, None] * deviations[None, :]), 0, 1)
    found: Array = u[:, None] + u[None, :] - 2 * r * jnp.sqrt(u[:, None] * u[None, :])
    return found


def _of_differences(covariance: Array) -> Array:
    variances = jnp.diagonal(covariance)
    found: Array = variances[:, None] + variances[None, :] - 2 * covariance
    return found


def _root(variance: Array, covariance: Array, estimate: Array) -> Array:
    """The square root; 0 where a variance is the rounding of 0, as the models are equal, or no item
    has influence."""
    scale = jnp.maximum(jnp.diagonal(covariance), _ROUNDING * estimate**2)
    scale = jnp.maximum(scale[:, None], scale[None, :])
    return jnp.sqrt(jnp.where(variance > _ROUNDING * scale, variance, 0 * variance))
