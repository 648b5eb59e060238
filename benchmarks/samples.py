"""`python -m benchmarks.samples`: coverage and size of `compare_samples`, of two and three groups.

Scores are quantile functions of uniform numbers, so that a grid of these gives the true values.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import optimize, special, stats

import jaxmetrics as jm
from benchmarks.coverage import ROUNDING, table

Values = np.ndarray[Any, Any]
Law = Callable[[Values, float, bool], Values]
Sizes = tuple[tuple[int, int], ...]  # positives and negatives of each group

LEVEL = 0.95
LOWEST = 0.93  # cells that cover less are listed
GRID = 100_000  # positives of the population that gives the true values
BATCH = 500
METRICS: dict[str, Callable[..., Any]] = {
    "AUC": jm.roc_auc,
    "partial AUC, FPR 0.2": partial(jm.partial_auc, max_fpr=0.2),
    "average precision": jm.average_precision,
    "recall at FPR 0.1": partial(jm.recall_at_fpr, max_fpr=0.1),
}
LAYOUTS: tuple[Sizes, ...] = (
    ((10, 40), (10, 40)),
    ((10, 40), (100, 400)),
    ((30, 120), (30, 120)),
    ((100, 100), (500, 500)),
    ((30, 120),) * 3,
    ((10, 40), (50, 50), (200, 400)),
)
# The AUC of the first group and that of the others.
AUCS = ((0.6, 0.6), (0.85, 0.85), (0.99, 0.99), (0.6, 0.85), (0.9, 0.99))


def binormal(u: Values, effect: float, positive: bool) -> Values:
    """Normal, with half the deviation among positives."""
    z = special.ndtri(u)
    return effect + z / 2 if positive else z


def skewed(u: Values, effect: float, positive: bool) -> Values:
    """Weibull scores of shape 0.7, which the positives have on a larger scale."""
    return (-np.log1p(-u)) ** (1 / 0.7) * np.exp(effect * positive)


def ordinal(u: Values, effect: float, positive: bool) -> Values:
    """Six grades of a logistic score."""
    return np.clip(np.floor(special.logit(u) + effect * positive), -1, 4)


def heavy_tails(u: Values, effect: float, positive: bool) -> Values:
    """Student's t with two degrees of freedom."""
    return (2 * u - 1) / np.sqrt(2 * u * (1 - u)) + effect * positive


LAWS: dict[str, Law] = {
    "binormal": binormal,
    "skewed": skewed,
    "ordinal": ordinal,
    "heavy tails": heavy_tails,
}


def grid(n: int) -> Values:
    return (np.arange(n) + 0.5) / n


@cache
def effect_of(law: str, auc: float) -> float:
    """What separates the classes so that the AUC is this, on average over a grid."""
    u, n = grid(2000), 2000

    def excess(effect: float) -> float:
        classes = [LAWS[law](u, effect, x) for x in (True, False)]
        ranks = stats.rankdata(np.concatenate(classes))[:n]
        return float((ranks.sum() - n * (n + 1) / 2) / n**2 - auc)

    return float(optimize.brentq(excess, -1, 40, xtol=1e-6))


@cache
def truth_of(metric: str, law: str, auc: float, negatives_each: float) -> float:
    sizes = GRID, int(GRID * negatives_each)
    effect = effect_of(law, auc)
    classes = [LAWS[law](grid(n), effect, x) for n, x in zip(sizes, (True, False), strict=True)]
    labels = np.arange(sum(sizes)) < sizes[0]
    return float(METRICS[metric](np.concatenate(classes), labels))


class Cell(NamedTuple):
    """Shares of the simulations.

    Attributes:
      covered: of the pairwise limits, those of the pair that covers least.
      by_z: likewise of the differences -+ 1.96 standard errors.
      together: all simultaneous limits hold.
      rejected: any simultaneous p-value is below 0.05; NaN unless all groups are equal.
      rejected_by_z: likewise of p-values of z, by Bonferroni.
    """

    metric: str
    law: str
    aucs: tuple[float, float]
    sizes: Sizes
    covered: float
    by_z: float
    together: float
    rejected: float
    rejected_by_z: float


def program_of(metric: str, sizes: Sizes) -> Callable[[Values], Any]:
    labels = np.concatenate([np.arange(p + n) < p for p, n in sizes])
    groups = np.arange(len(sizes)).repeat([p + n for p, n in sizes])

    def compared(scores: Any) -> jm.Comparison:
        return jm.compare_samples(METRICS[metric], scores, labels, groups, confidence_level=LEVEL)

    program: Callable[[Values], Any] = jax.jit(jax.vmap(compared))
    return program


def draw(rng: np.random.Generator, law: str, aucs: list[float], sizes: Sizes, k: int) -> Values:
    parts = []
    for auc, (p, n) in zip(aucs, sizes, strict=True):
        effect = effect_of(law, auc)
        parts += [LAWS[law](rng.random((k, m)), effect, x) for m, x in ((p, True), (n, False))]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def cell_of(
    program: Callable[[Values], Any],
    metric: str,
    law: str,
    aucs: tuple[float, float],
    sizes: Sizes,
    simulations: int,
) -> Cell:
    rng = np.random.default_rng([*f"{metric}{law}".encode(), int(1e4 * sum(aucs)), *sum(sizes, ())])
    of_groups = [aucs[0], *[aucs[1]] * (len(sizes) - 1)]
    truths = np.array(
        [truth_of(metric, law, x, n / p) for x, (p, n) in zip(of_groups, sizes, strict=True)]
    )
    first, second = np.triu_indices(len(sizes), 1)
    truth = truths[first] - truths[second]
    found = []
    for _ in range(simulations // BATCH):
        result = program(draw(rng, law, of_groups, sizes, BATCH))
        found.append([np.asarray(x, float)[:, first, second] for x in of_pairs(result)])
    low, high, all_low, all_high, p_value, difference, error = (
        np.concatenate(x) for x in zip(*found, strict=True)
    )
    z = abs(difference - truth) / np.where(error > 0, error, 1e-9)
    within_z = z <= special.ndtri((1 + LEVEL) / 2)
    beyond_all = z > special.ndtri(1 - (1 - LEVEL) / 2 / len(truth))
    null = np.allclose(truth, 0, atol=1e-3)  # not so where precision has another prevalence
    return Cell(
        metric,
        law,
        aucs,
        sizes,
        float(inside(low, truth, high).mean(axis=0).min()),
        float(within_z.mean(axis=0).min()),
        float(inside(all_low, truth, all_high).all(axis=-1).mean()),
        float((p_value.min(axis=-1) < 1 - LEVEL).mean()) if null else np.nan,
        float(beyond_all.any(axis=-1).mean()) if null else np.nan,
    )


def inside(low: Values, truth: Values, high: Values) -> Values:
    return (low - ROUNDING <= truth) & (truth <= high + ROUNDING)


def of_pairs(found: jm.Comparison) -> tuple[Any, ...]:
    return (
        *(found.low, found.high, found.simultaneous_low, found.simultaneous_high),
        *(found.simultaneous_p_value, found.difference, found.standard_error),
    )


def is_dear(sizes: Sizes) -> bool:
    """Whether a simulation takes milliseconds: limits of three groups are themselves simulated."""
    return len(sizes) > 2 or sum(map(sum, sizes)) > 1000


def cells(simulations: int) -> Iterator[Cell]:
    for metric in METRICS:
        for sizes in LAYOUTS:
            program = program_of(metric, sizes)
            size = simulations // 4 if is_dear(sizes) else simulations
            for law in LAWS:
                for aucs in AUCS:
                    yield cell_of(program, metric, law, aucs, sizes, size)


def name_of(sizes: Sizes) -> str:
    return "; ".join(f"{p}, {n}" for p, n in sizes)


def rows_by_size(found: list[Cell]) -> Iterator[list[str]]:
    for metric in METRICS:
        for sizes in LAYOUTS:
            some = [x for x in found if (x.metric, x.sizes) == (metric, sizes)]
            yield [
                metric,
                name_of(sizes),
                *(f"{np.min(x):.3f}, {np.median(x):.3f}" for x in _coverage(some)),
                _range(x.together for x in some) if len(sizes) > 2 else "",
                _range(x.rejected for x in some),
                _range(x.rejected_by_z for x in some),
            ]


def rows_by_law(found: list[Cell]) -> Iterator[list[str]]:
    for law in LAWS:
        for few in (True, False):
            some = [x for x in found if x.law == law and (x.sizes[0][0] == 10) == few]
            shares = ([v < LOWEST for v in x] for x in _coverage(some))
            yield [
                law,
                "10 in a group" if few else "30 and more",
                f"{len(some)}",
                *(f"{100 * np.mean(x):.0f} %" for x in shares),
                _range(x.rejected for x in some),
                _range(x.rejected_by_z for x in some),
            ]


def rows_of_low(found: list[Cell]) -> Iterator[list[str]]:
    for x in sorted(found, key=lambda x: x.covered):
        if x.covered < LOWEST:
            aucs = ", ".join(f"{a:.2f}" for a in x.aucs)
            yield [x.metric, x.law, aucs, name_of(x.sizes), f"{x.covered:.3f}", f"{x.by_z:.3f}"]


def _coverage(some: list[Cell]) -> tuple[list[float], list[float]]:
    return [x.covered for x in some], [x.by_z for x in some]


def _range(values: Iterator[float]) -> str:
    known = [x for x in values if not np.isnan(x)]
    return f"{min(known):.3f} to {max(known):.3f}" if known else ""


def report(found: list[Cell], simulations: int, minutes: float) -> str:
    error = np.sqrt(LEVEL * (1 - LEVEL) / simulations)
    size = ["rejections at 0.05", "z, Bonferroni"]
    by_size = table(
        ["metric", "positives, negatives", "limits", "z", "simultaneous limits", *size],
        list(rows_by_size(found)),
    )
    by_law = table(
        ["scores", "positives", "cells", f"limits below {LOWEST}", f"z below {LOWEST}", *size],
        list(rows_by_law(found)),
    )
    low = table(
        ["metric", "scores", "AUC, first and others", "positives, negatives", "limits", "z"],
        list(rows_of_low(found)),
    )
    lines = [
        f"""# Coverage of compare_samples

`python -m benchmarks.samples --simulations {simulations}`: 95 % limits of differences between two
and three groups in {len(found)} cells. Cells have {simulations:,} samples, and a standard
error of {error:.3f}; those of three groups or more than 1,000 items have a quarter of these, and
{2 * error:.3f}. {minutes:.0f} min on a CPU. These tables showed that the lower limit
of an average precision must allow for high negatives that were not drawn; nothing else was chosen
by them. Normal scores have half the deviation among positives, skewed ones are Weibull with shape
0.7, ordinal ones have six grades, and heavy tails are those of Student's t with two degrees of
freedom. The AUC of the first group and that of the others is
{"; ".join(f"{a:g}, {b:g}" for a, b in AUCS)}. z is the
difference -+ 1.96 standard errors, which for the AUC is unpaired DeLong. Of three groups, coverage
is that of the pair that is covered least, and simultaneous limits count if all three hold.
Rejections are of equal groups, by the least adjusted p-value of all pairs.

## By size

Over four laws and five pairs of AUCs: the lowest coverage and the median, and ranges of
simultaneous coverage and of rejections.
""",
        *by_size,
        "\n## By law\n\nThe share of cells in which limits cover too little.\n",
        *by_law,
        f"\n## Cells in which limits cover less than {LOWEST}\n",
        *low,
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    jax.config.update("jax_platforms", "cpu")
    start = time.perf_counter()
    found = []
    for cell in cells(options.simulations):
        found.append(cell)
        print(*cell, f"{time.perf_counter() - start:.0f} s", sep=" | ", flush=True)
    text = report(found, options.simulations, (time.perf_counter() - start) / 60)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
