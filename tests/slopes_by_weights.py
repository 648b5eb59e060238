"""Variances from gradients in the weights."""

from functools import partial

import jax
import numpy as np


@partial(jax.jit, static_argnums=0)
def _slopes(metric, scores, labels, weights, options):
    return jax.grad(lambda w: metric(scores, labels, weights=w, **options))(weights)


def slopes(metric, scores, labels, weights):
    """The gradient in weights, by one program for each function, whatever its limit is."""
    options = {}
    if isinstance(metric, partial) and "method" not in metric.keywords:
        metric, options = metric.func, metric.keywords
    return np.asarray(_slopes(metric, scores, labels, np.asarray(weights, float), options))


def variance(metric, scores, labels):
    """sum over classes of n_c / (n_c - 1) * sum of (w g)^2, with g the gradient at w = 1."""
    gradient = slopes(metric, scores, labels, np.ones(len(labels)))
    total = 0.0
    for members in (labels, ~labels):
        n = members.sum()
        assert abs(gradient[members].sum()) < 1e-12
        total += n / (n - 1) * np.sum(gradient[members] ** 2)
    return total
