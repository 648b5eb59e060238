"""The errors of the differences of samples, which do not depend on each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.types import Array
from jaxmetrics.inference._margins import ByLevel
from jaxmetrics.inference._pairs import Pairs


class Sample(NamedTuple):
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
def pairs_of_samples(error: Array, sample: Sample) -> Pairs:
    """The Pairs of independent estimates with these standard errors `[samples]`."""
    library = numerics.namespace(error, *sample)
    own = library.sum(sample.parts, axis=0)
    total = own[:, None] + own[None, :]
    spread = own**2 / sample.df
    df = numerics.divide(total**2, spread[:, None] + spread[None, :], np.inf)
    same = library.eye(len(own), dtype=bool)
    # The parts of a sample are in the variances of the pairs with this sample, and in no other.
    mine = (same[:, :, None] | same[:, None, :]) & ~same
    parts = library.where(mine, sample.parts[:, :, None, None], 0.0)
    shares = numerics.divide(parts, library.where(same, 1.0, total), 0.0)
    return Pairs(
        _of_two(error**2),
        _of_two(own),
        df,
        shares.reshape(-1, *total.shape),
        (*sample.sizes.ravel(),),
    )


def _of_two(variances: Array) -> Array:
    """The errors of differences of independent estimates: 0 from itself, if its own is known.

    Not the product with a mask, which XLA takes for a choice, where NaN becomes 0.
    """
    library = numerics.namespace(variances)
    both = variances[:, None] + variances[None, :]
    same = library.eye(len(both), dtype=bool)
    return numerics.root(library.where(same, 0 * variances, both))


@library_program()
def pairs_by_limits(limits: ByLevel) -> Pairs:
    """The Pairs of independent estimates `[samples]`, from the limits of each."""
    _, error, own, below, above = limits
    library = numerics.namespace(error, own)
    apart = ~library.eye(len(own), dtype=bool)
    known, raised = (_of_two(x**2) for x in (error, own))
    sizes = library.hypot(below.sizes[:, None], above.sizes[None, :])
    one = library.ones((1, *known.shape))
    unlimited = library.full((), library.inf)
    below = below._replace(sizes=apart[..., None] * sizes)
    return Pairs(known, raised, library.inf * one[0], one, (unlimited,), below)
