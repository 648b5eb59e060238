"""`python -m benchmarks.clustered_bands`: how often bands of items in clusters hold the true curve.

The families are those of `benchmarks.bands` that had no part in the choice of the method. The
normal quantiles of the scores in a cluster are correlated, as by an effect of the cluster.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from benchmarks.bands import Family
from benchmarks.weighted_bands import Sample, Sampler, report

SIZES = ((15, 4), (40, 4), (40, 20), (150, 4))  # clusters, and items in each at the mean
# The correlation, and what the effect of a cluster on its negatives is multiplied by; None if all
# items of a cluster are of one class.
KINDS: dict[str, tuple[float, float | None]] = {
    "none, both classes": (0.0, 1.0),
    "0.5, one class each": (0.5, None),
    "0.5, both classes": (0.5, 1.0),
    "0.5, both classes, opposite": (0.5, -1.0),
}
_POOL = 1 << 20  # draws of a class, whose order statistics are its quantiles


@functools.cache
def quantiles(draw: Callable[..., Any]) -> Any:
    """The sorted draws of a class."""
    return np.sort(draw(_POOL, random_state=np.random.default_rng(0)))


def clustered(kind: str, clusters: int, size: int) -> Sampler:
    """Samples of so many clusters."""
    correlation, factor = KINDS[kind]

    def sample(family: Family, rng: Any) -> Sample:
        ids = np.repeat(np.arange(clusters), np.maximum(rng.poisson(size, clusters), 1))
        labels = rng.random(len(ids)) < 0.3
        if factor is None:
            labels = (rng.permutation(clusters) < 0.4 * clusters)[ids]
        effect = rng.normal(size=clusters)[ids] * correlation**0.5
        effect = np.where(labels, effect, effect * (1.0 if factor is None else factor))
        place = special.ndtr(effect + (1 - correlation) ** 0.5 * rng.normal(size=len(ids)))
        index = (place * _POOL).astype(int)
        scores = np.where(
            labels, quantiles(family.positives)[index], quantiles(family.negatives)[index]
        )
        return scores, labels, {"clusters": ids}

    return sample


def main() -> None:
    pairs = itertools.product(KINDS, SIZES)
    samplers = {(kind, f"{n} of {size}"): clustered(kind, n, size) for kind, (n, size) in pairs}
    kinds = (
        "The normal quantiles of scores in a cluster are correlated; where they are opposite, "
        "clusters with high positives have low negatives. Of the items 0.3 are positive, or of the "
        "clusters 0.4."
    )
    report("clustered_bands", "clusters", kinds, ("correlation", "clusters"), samplers)


if __name__ == "__main__":
    main()
