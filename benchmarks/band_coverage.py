"""How often bands of items that are not alike, or not independent, hold the true curve.

The families are those of `benchmarks.bands` that had no part in the choice of the method.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import jaxmetrics as jm
from benchmarks.bands import GRID, HELD_OUT, ROUNDING, Family

POINTS = np.array([1, 2, 5, 10, 30])  # of GRID
Sample: TypeAlias = tuple[Any, Any, dict[str, Any]]  # scores, labels, options of `roc_band`


class Setup(NamedTuple):
    """How items are sampled.

    Attributes:
      sample: draws items of a family.
      caught: the share of the positives that are of the family; the others are below all items.
    """

    sample: Callable[[Family, Any], Sample]
    caught: float = 1.0


def measured(family: Family, setup: Setup, seed: str, draws: int) -> list[float]:
    """Coverage of the curve and of its limits at `POINTS`, and the mean width of both bands."""
    rng = np.random.default_rng([*family.name.encode(), *seed.encode()])
    truth = np.where(GRID < 1, setup.caught, 1.0) * family.curve(GRID)
    found = []
    for _ in range(draws):
        scores, labels, options = setup.sample(family, rng)
        with warnings.catch_warnings(action="ignore"):  # of few items
            band = jm.roc_band(scores, labels, **options)
        limits = (band.simultaneous_low, band.simultaneous_high), (band.low, band.high)
        found.append(np.array(limits, float))
    (low, high), (each_low, each_high) = np.moveaxis(np.array(found), 0, 2)
    rounding = ROUNDING + 1e-6  # limits are in single precision
    whole = ((low <= truth + rounding) & (truth <= high + rounding)).all(axis=1).mean()
    each = ((each_low <= truth + rounding) & (truth <= each_high + rounding)).mean(axis=0)
    return [whole, *each[POINTS], np.mean(high - low), np.mean(each_high - each_low)]


def table(heads: tuple[str, str], setups: dict[Any, Setup], draws: int) -> str:
    """For each set-up, the mean over families and the least."""
    names = ["whole curve", *(f"at {GRID[i]:g}" for i in POINTS)]
    lines = [
        f"| {' | '.join(heads)} | {' | '.join(names)} | width | of points |",
        f"|{' --- |' * (4 + len(names))}",
    ]
    for name, setup in setups.items():
        rows = [measured(x, setup, " ".join(name), draws) for x in HELD_OUT]
        coverage, widths = np.split(np.array(rows), [len(names)], axis=1)
        both = zip(coverage.mean(0), coverage.min(0), strict=True)
        cells = [*name, *(f"{x:.3f}, {y:.2f}" for x, y in both)]
        lines.append(f"| {' | '.join(cells)} | {' | '.join(f'{x:.2f}' for x in widths.mean(0))} |")
    return "\n".join(lines)


def report(
    name: str, what: str, about: str, heads: tuple[str, str], setups: dict[Any, Setup]
) -> None:
    """Simulate, print the page of a study, and write it to the file of the benchmark's name."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name(f"{name}.md"))
    options = parser.parse_args()
    start = time.perf_counter()
    rows = table(heads, setups, options.draws)
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
