"""The errors of the differences of all pairs of models, and how well they are known.

To be traced inside `double_precision()`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._intervals.rules import OfClusters, degrees_of_clusters

_UNLIMITED = 1e9  # observations, of which a variance is as good as known


class Pairs(NamedTuple):
    """Of all pairs of models, `[models, models]`.

    Attributes:
      standard_error: of the difference.
      error: the same, with one more observation of the largest variance in each class.
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

    def drawn_variances(self, key: Array, n: int) -> Array:
        """`[n, models, models]`, of estimates of the variances over their true values."""
        k = jnp.stack([jnp.asarray(x, jnp.float64) for x in self.sizes]) - 1
        half = jnp.clip(k, 0.5, _UNLIMITED) / 2
        drawn = jax.random.gamma(key, half, (n, 3), jnp.float64) / half
        negatives, positives, every = (x[:, None, None] for x in drawn.T)
        apart = self.of_negatives * negatives + (1 - self.of_negatives) * positives
        drawn_variances: Array = self.mixed * every + (1 - self.mixed) * apart
        return drawn_variances


def pairs_of(estimate: Array, covariance: Covariance, bounds: tuple[Array, Array] | None) -> Pairs:
    """The pairs of models; `bounds` are the lowest and the highest value of the metric, if known.

    V_c = (s_c^2 + max(L_c - s_c^2, 0) / n_c) / n_c of each class, with s_c^2 the variance of the
    difference of the influence values, and L = uA + uB - 2 r sqrt(uA uB) its largest one: u is
    (A - lowest) (highest - A), and r the correlation of the two models there, at least 0.
    """
    sizes = [jnp.ravel(jnp.asarray(x, jnp.float64))[0] for x in covariance.sizes]
    mixed = jnp.ravel(jnp.asarray(covariance.mixed, jnp.float64))[0]
    total = _of_differences(covariance.total)
    classes = [_of_differences(x) for x in jnp.moveaxis(covariance.of_classes, -3, 0)]
    error = _root(total, covariance.total, estimate)
    if bounds is not None:
        lowest, highest = bounds
        u = jnp.maximum((estimate - lowest) * (highest - estimate), 0)
        raised = []
        for v, of_class, n in zip(classes, covariance.of_classes, sizes[:2], strict=True):
            deviations = jnp.sqrt(jnp.maximum(jnp.diagonal(of_class), 0))
            scale = deviations[:, None] * deviations[None, :]
            r = jnp.clip(numerics.divide(of_class, scale, 0.0), 0, 1)
            most = u[:, None] + u[None, :] - 2 * r * jnp.sqrt(u[:, None] * u[None, :])
            raised.append(v + numerics.divide(jnp.maximum(most - n * v, 0), n * n, 0.0))
        total = total + sum(x - v for x, v in zip(raised, classes, strict=True))
        classes = raised
    found = OfClusters(classes[0], classes[1], total, (sizes[0], sizes[1], sizes[2]), mixed)
    share = jnp.clip(numerics.divide(classes[0], classes[0] + classes[1], 0.5), 0, 1)
    raised_error = jnp.where(error == 0, 0.0, jnp.sqrt(total))
    df = degrees_of_clusters(found)
    return Pairs(error, raised_error, df, share, (sizes[0], sizes[1], sizes[2]), mixed)


def _of_differences(covariance: Array) -> Array:
    variances = jnp.diagonal(covariance)
    found: Array = variances[:, None] + variances[None, :] - 2 * covariance
    return found


def _root(variance: Array, covariance: Array, estimate: Array) -> Array:
    """The square root; 0 where a variance is the rounding of 0, as the models are equal, or no item
    has influence."""
    scale = jnp.maximum(jnp.diagonal(covariance), 1e-12 * estimate**2)
    scale = jnp.maximum(scale[:, None], scale[None, :])
    return jnp.sqrt(jnp.where(variance > 1e-12 * scale, variance, 0 * variance))
