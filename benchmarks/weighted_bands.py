"""`python -m benchmarks.weighted_bands`: how often bands of items with weights hold the true curve.

The families are those of `benchmarks.bands` that had no part in the choice of the method. Where
weights go with the scores, items were sampled the more seldom the heavier they are, so that the
weighted sample is of the family.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import special

import jaxmetrics as jm
from benchmarks.bands import GRID, HELD_OUT, ROUNDING, Family

SIZES = ((30, 120), (50, 50), (200, 200), (20, 1000))
POINTS = np.array([1, 2, 5, 10, 30])  # of GRID
Sample: TypeAlias = tuple[Any, Any, dict[str, Any]]  # scores, labels, options of `roc_band`
Sampler: TypeAlias = Callable[[Family, Any], Sample]
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


def weighted(kind: str, sizes: tuple[int, int]) -> Sampler:
    """Samples of so many positives and negatives."""

    def sample(family: Family, rng: Any) -> Sample:
        classes = zip((family.positives, family.negatives), sizes, strict=True)
        drawn = (KINDS[kind](draw, n, rng) for draw, n in classes)
        scores, weights = (np.concatenate(x) for x in zip(*drawn, strict=True))
        return scores, np.arange(sum(sizes)) < sizes[0], {"weights": weights}

    return sample


def measured(family: Family, sample: Sampler, seed: str, draws: int) -> list[float]:
    """Coverage of the curve and of its limits at `POINTS`, and the mean width of both bands."""
    rng = np.random.default_rng([*family.name.encode(), *seed.encode()])
    truth, found = family.curve(GRID), []
    for _ in range(draws):
        scores, labels, options = sample(family, rng)
        with warnings.catch_warnings(action="ignore"):  # of few items
            band = jm.roc_band(scores, labels, **options)
        limits = (band.simultaneous_low, band.simultaneous_high), (band.low, band.high)
        found.append(np.array(limits, float))
    (low, high), (each_low, each_high) = np.moveaxis(np.array(found), 0, 2)
    rounding = ROUNDING + 1e-6  # limits are in single precision
    whole = ((low <= truth + rounding) & (truth <= high + rounding)).all(axis=1).mean()
    each = ((each_low <= truth + rounding) & (truth <= each_high + rounding)).mean(axis=0)
    return [whole, *each[POINTS], np.mean(high - low), np.mean(each_high - each_low)]


def table(heads: tuple[str, str], samplers: dict[Any, Sampler], draws: int) -> str:
    """For each sampler, the mean over families and the least."""
    names = ["whole curve", *(f"at {GRID[i]:g}" for i in POINTS)]
    lines = [
        f"| {' | '.join(heads)} | {' | '.join(names)} | width | of points |",
        f"|{' --- |' * (4 + len(names))}",
    ]
    for setup, sampler in samplers.items():
        rows = [measured(x, sampler, " ".join(setup), draws) for x in HELD_OUT]
        coverage, widths = np.split(np.array(rows), [len(names)], axis=1)
        both = zip(coverage.mean(0), coverage.min(0), strict=True)
        cells = [*setup, *(f"{x:.3f}, {y:.2f}" for x, y in both)]
        lines.append(f"| {' | '.join(cells)} | {' | '.join(f'{x:.2f}' for x in widths.mean(0))} |")
    return "\n".join(lines)


def report(
    name: str, what: str, about: str, heads: tuple[str, str], samplers: dict[Any, Sampler]
) -> None:
    """Simulate, print the page of a study, and write it to the file of the benchmark's name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name(f"{name}.md"))
    options = parser.parse_args()
    start = time.perf_counter()
    rows = table(heads, samplers, options.draws)
    minutes = (time.perf_counter() - start) / 60
    n = options.draws
    errors = [(0.95 * 0.05 / x) ** 0.5 for x in (n * len(HELD_OUT), n)]
    text = f"""# Coverage of ROC bands of items with {what}

`python -m benchmarks.{name}`: how often the simultaneous band of 95 % holds the true curve
at 101 points, and the limits of one point its height there: the mean over the {len(HELD_OUT)}
families that had no part in the choice of [bands](bands.md), and the least of them. {n} data sets
of each: the standard error of a coverage of 0.95 is {errors[0]:.3f}, and {errors[1]:.3f} in one
family. {minutes:.0f} min.
{about}

{rows}
"""
    options.output.write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    pairs = itertools.product(KINDS, SIZES)
    samplers = {(kind, f"{n[0]}, {n[1]}"): weighted(kind, n) for kind, n in pairs}
    kinds = "Weights that rise or fall with the score are from 0.2 to 5."
    report("weighted_bands", "weights", kinds, ("weights", "positives, negatives"), samplers)


if __name__ == "__main__":
    main()
