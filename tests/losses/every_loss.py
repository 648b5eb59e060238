"""The losses, their surrogates and the items that their tests share."""

from functools import cache, partial

import jax
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm

CONVEX = ("hinge", "squared_hinge", "square", "logistic")
LOSSES = {
    "squared_hinge": jm.losses.pairwise_auc_loss,
    "logistic": partial(jm.losses.partial_auc_loss, max_fpr=0.3, surrogate="logistic"),
    "sigmoid": partial(jm.losses.partial_auc_loss, max_fpr=0.3),
    "two-way": partial(jm.losses.partial_auc_loss, max_fpr=0.4, min_tpr=0.3, band=0.0),
    "recall": partial(jm.losses.recall_at_fpr_loss, max_fpr=0.2),
    "average precision": jm.losses.average_precision_loss,
}
# The logistic one is a window of unbounded pairs, of which the others have each. The two-way one
# has a second set by the code of the first, and is also compared with naive sums.
SET_TWICE = marked("two-way", fast=False)
EVERY_LOSS = pytest.mark.parametrize(
    "name", [marked(x, fast=x not in ("logistic", "two-way")) for x in LOSSES]
)
# What takes long is tested of the default alone, and of the rest with -m slow.
DEFAULT_LOSS = pytest.mark.parametrize(
    "name", [marked(name, fast=name == "sigmoid") for name in LOSSES]
)


@cache
def compiled(name):
    """(scores, labels, weights, where) -> value and gradient, one program for all tests."""
    if name == "two-way":  # that of the tests of options
        options = {"max_fpr": 0.4, "min_tpr": 0.3, "band": 0.0, "temperature": 0.2}
        return lambda *items: compiled_area("sigmoid")(*items, options)

    def loss(scores, labels, weights, where):
        return LOSSES[name](scores, labels, weights=weights, where=where)

    return jax.jit(jax.value_and_grad(loss))


@cache
def compiled_area(surrogate):
    """The same of a two-way loss, with its numbers as further arguments."""

    def loss(scores, labels, weights, where, options):
        named = {"surrogate": surrogate, "weights": weights, "where": where}
        return jm.losses.partial_auc_loss(scores, labels, **named, **options)

    return jax.jit(jax.value_and_grad(loss))


def sample(rng, n=40, *, ties=False, weighted=True, batch=()):
    labels = rng.random((*batch, n)) < 0.4
    labels[..., 0], labels[..., 1] = True, False
    scores = rng.normal(size=(*batch, n)) + labels
    weights = rng.random((*batch, n)) + 0.1 if weighted else np.ones((*batch, n))
    return scores.round(0) / 2 if ties else scores, labels, weights


def parts_of(scores, weights, share, band):
    """The weights of the highest share, by sums over all items."""
    total = weights.sum()
    above = np.array([weights[scores > s].sum() for s in scores]) / total
    upto = np.array([weights[scores >= s].sum() for s in scores]) / total
    width = band * share * (1 - share)
    if width:
        running = [-width * np.logaddexp(0, (share - u) / width) for u in (above, upto)]
    else:
        running = [np.minimum(u, share) for u in (above, upto)]
    return (running[1] - running[0]) * weights / (upto - above)
