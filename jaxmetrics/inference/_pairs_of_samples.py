"""The errors of the differences of samples, which do not depend on each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.types import Array
from jaxmetrics.inference._influence.differences import squares_of
from jaxmetrics.inference._margins import ByLevel
from jaxmetrics.inference._pairs import Pairs


class VarianceParts(NamedTuple):
    """The parts of the variances of several independent estimates.

    Attributes:
      parts: `[3, samples]`, of the negatives, the positives, and of clusters with both.
      sizes: `[3, samples]`, the number of observations that each part is estimated from.
      df: `[samples]`, the degrees of freedom of their sum.
    """

    parts: Array
    sizes: Array
    df: Array


@library_program()
def pairs_of_samples(variance: Array, known: VarianceParts) -> Pairs:
    """The Pairs of independent estimates with these variances `[samples]`."""
    library = numerics.namespace(variance, *known)
    lost = library.isnan(variance)  # as `lost_models`
    known = VarianceParts(*(library.where(lost, 1.0, x) for x in known))
    own = library.sum(known.parts, axis=0)
    total = own[:, None] + own[None, :]
    spread = own**2 / known.df
    df = numerics.divide(total**2, spread[:, None] + spread[None, :], np.inf)
    same = library.eye(len(own), dtype=bool)
    # The parts of a sample are in the variances of the pairs with this sample, and in no other.
    mine = (same[:, :, None] | same[:, None, :]) & ~same
    parts = library.where(mine, known.parts[:, :, None, None], 0.0)
    shares = numerics.divide(parts, library.where(same, 1.0, total), 0.0)
    pairs = Pairs(
        _of_two(variance),
        _of_two(own),
        df,
        shares.reshape(-1, *total.shape),
        (*known.sizes.ravel(),),
    )
    return pairs.with_pairs(lost[:, None] | lost, np.nan)


def _of_two(variances: Array) -> Array:
    """The errors of differences of independent estimates: 0 from itself, if its own is known.

    Not the product with a mask, which XLA takes for a choice, where NaN becomes 0.
    """
    library = numerics.namespace(variances)
    both = variances[:, None] + variances[None, :]
    same = library.eye(len(both), dtype=bool)
    return numerics.root(library.where(same, 0 * variances, both))


@library_program()
def pairs_by_limits(limits: ByLevel) -> tuple[Array, Pairs]:
    """The variances of independent estimates `[samples]`, and their Pairs, from their limits."""
    _, error, own, below, above = limits
    library = numerics.namespace(error, own)
    apart = ~library.eye(len(own), dtype=bool)
    variance = squares_of(own)
    known, raised = _of_two(squares_of(error)), _of_two(variance)
    sizes = library.hypot(below.sizes[:, None], above.sizes[None, :])
    one = library.ones((1, *known.shape))
    unlimited = library.full((), library.inf)
    below = below._replace(sizes=apart[..., None] * sizes)
    return variance, Pairs(known, raised, library.inf * one[0], one, (unlimited,), below)
