"""`python -m benchmarks.clustered_bands`: how often bands of items in clusters hold the true curve.

The normal quantiles of the scores in a cluster are correlated, as by an effect of the cluster.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from benchmarks.band_coverage import Sample, Setup, report
from benchmarks.bands import Family

SIZES = ((15, 4), (40, 4), (40, 20), (150, 4))  # clusters, and items in each at the mean


class Kind(NamedTuple):
    """What clusters are like.

    Attributes:
      correlation: of the normal quantiles of the scores in a cluster.
      both: whether clusters have items of both classes.
      sign: what the effect of a cluster on its negatives is multiplied by.
      missed: the share of the positive clusters that are below all items.
    """

    correlation: float
    both: bool = True
    sign: float = 1.0
    missed: float = 0.0


KINDS = {
    "none, both classes": Kind(0.0),
    "0.5, one class each": Kind(0.5, both=False),
    "0.5, both classes": Kind(0.5),
    "0.5, both classes, opposite": Kind(0.5, sign=-1.0),
    "0.95, one class each": Kind(0.95, both=False),
    "none, a tenth of the positive clusters missed": Kind(0.0, both=False, missed=0.1),
}
_POOL = 1 << 20  # draws of a class, whose order statistics are its quantiles


@functools.cache
def quantiles(draw: Callable[..., Any]) -> Any:
    """The sorted draws of a class."""
    return np.sort(draw(_POOL, random_state=np.random.default_rng(0)))


def clustered(kind: Kind, clusters: int, size: int) -> Setup:
    """Samples of so many clusters."""

    def sample(family: Family, rng: Any) -> Sample:
        ids = np.repeat(np.arange(clusters), np.maximum(rng.poisson(size, clusters), 1))
        if kind.both:
            labels = rng.random(len(ids)) < 0.3
        else:
            labels = (rng.permutation(clusters) < 0.4 * clusters)[ids]
        effect = rng.normal(size=clusters)[ids] * kind.correlation**0.5
        effect = np.where(labels, effect, kind.sign * effect)
        own = rng.normal(size=len(ids)) * (1 - kind.correlation) ** 0.5
        at = (special.ndtr(effect + own) * _POOL).astype(int)
        scores = np.where(labels, quantiles(family.positives)[at], quantiles(family.negatives)[at])
        missed = labels & (rng.random(clusters) < kind.missed)[ids]
        return np.where(missed, -1e6, scores), labels, {"clusters": ids}

    return Setup(sample, caught=1 - kind.missed)


def main() -> None:
    pairs = itertools.product(KINDS, SIZES)
    setups = {(x, f"{n} of {size}"): clustered(KINDS[x], n, size) for x, (n, size) in pairs}
    kinds = (
        "The normal quantiles of scores in a cluster are correlated; where they are opposite, "
        "clusters with high positives have low negatives. Of the items 0.3 are positive, or of the "
        "clusters 0.4."
    )
    report("clustered_bands", "clusters", kinds, ("correlation", "clusters"), setups)


if __name__ == "__main__":
    main()
