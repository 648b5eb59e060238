"""`python -m benchmarks.weighted_bands`: how often bands of items with weights hold the true curve.

Where weights go with the scores, items were sampled the more seldom the heavier they are, so that
the weighted sample is of the family.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from benchmarks.band_coverage import Sample, Setup, report
from benchmarks.bands import Family

SIZES = ((30, 120), (50, 50), (200, 200), (20, 1000))
_POOL = 30  # items for each one that is sampled


def going_with(slope: float) -> Callable[..., Any]:
    """Weights from 0.2 to 5 that depend on the score alone, and scores sampled by 1 / weight."""

    def sample(draw: Callable[..., Any], n: int, rng: Any) -> tuple[Any, Any]:
        pool = np.sort(draw(_POOL * n, random_state=rng))
        place = special.ndtri((np.arange(len(pool)) + 0.5) / len(pool))
        weights = np.clip(np.exp(slope * place), 0.2, 5)
        at = rng.choice(len(pool), n, p=(1 / weights) / (1 / weights).sum())
        return pool[at], weights[at]

    return sample


def apart(weights: Callable[..., Any]) -> Callable[..., Any]:
    """Weights that do not depend on the scores."""
    return lambda draw, n, rng: (draw(n, random_state=rng), weights(rng, n))


KINDS = {
    "1 to 3": apart(lambda rng, n: rng.uniform(1, 3, n)),
    "exponential": apart(lambda rng, n: rng.exponential(size=n)),
    "rising with the score": going_with(0.7),
    "falling with the score": going_with(-0.7),
}


def weighted(kind: str, sizes: tuple[int, int]) -> Setup:
    """Samples of so many positives and negatives."""

    def sample(family: Family, rng: Any) -> Sample:
        classes = zip((family.positives, family.negatives), sizes, strict=True)
        drawn = (KINDS[kind](draw, n, rng) for draw, n in classes)
        scores, weights = (np.concatenate(x) for x in zip(*drawn, strict=True))
        return scores, np.arange(sum(sizes)) < sizes[0], {"weights": weights}

    return Setup(sample)


def main() -> None:
    pairs = itertools.product(KINDS, SIZES)
    setups = {(kind, f"{n[0]}, {n[1]}"): weighted(kind, n) for kind, n in pairs}
    kinds = "Weights that rise or fall with the score are from 0.2 to 5."
    report("weighted_bands", "weights", kinds, ("weights", "positives, negatives"), setups)


if __name__ == "__main__":
    main()
