"""`python -m benchmarks.comparisons`: limits of differences, few clusters, recall by amount.

Differences of the AUC of two models are simulated by NumPy. The library finds their errors from the
covariance of the placements, for all simulations in one program. Pairs of models in `TUNED` were
looked at when the rule was chosen; those in `HELD_OUT` were not.
"""

from __future__ import annotations

import argparse
import inspect
import platform
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from benchmarks.clusters import rows_of_clusters, rows_of_equal_models
from benchmarks.coverage import table
from benchmarks.model_pairs import HELD_OUT, TUNED, Pair, Scores, placements
from jaxmetrics._base.double import double_precision
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._intervals.ranges import range_of
from jaxmetrics.inference._pairs import pairs_of

SIZES = ((10, 10), (10, 50), (10, 200), (20, 20), (20, 100), (50, 50), (50, 200), (100, 400))
SIZES = (*SIZES, (200, 1000))
LOWEST = {0.90: 0.86, 0.95: 0.92, 0.99: 0.975}  # coverage that a level must have
ROUNDING = 1e-9

# ---- limits of differences


def covariances(values: Scores) -> Scores:
    """The covariance of the mean over items, `[..., models, models]`."""
    n = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    found: Scores = centred @ np.swapaxes(centred, -1, -2) / (n * (n - 1))
    return found


@jax.jit
def errors_of_pairs(estimate: Any, of_classes: Any, sizes: Any) -> tuple[Any, Any]:
    """The library's error and degrees of freedom of each difference of two models."""

    def of_one(estimate: Any, of_classes: Any) -> tuple[Any, Any]:
        found = Covariance(of_classes.sum(axis=0), of_classes, sizes, 0.0)
        # As a part of this program, and no program of its own.
        pairs = inspect.unwrap(pairs_of)(estimate, found, range_of(jm.roc_auc))
        return pairs.error[0, 1], pairs.df[0, 1]

    found: tuple[Any, Any] = jax.vmap(of_one)(estimate, of_classes)
    return found


def limits_of(scores: Scores, n_positive: int) -> tuple[Scores, dict[str, tuple[Scores, Scores]]]:
    """The differences, and by method their errors and degrees of freedom."""
    by_class = placements(scores, n_positive)
    estimate = by_class[1].mean(axis=-1)
    of_classes = np.stack([covariances(x) for x in by_class], axis=1)
    n0, n1 = (float(x.shape[-1]) for x in by_class)
    with double_precision():
        ours = errors_of_pairs(estimate, of_classes, (n0, n1, n0 + n1))
    parts = of_classes[..., 0, 0] + of_classes[..., 1, 1] - 2 * of_classes[..., 0, 1]
    parts = np.maximum(parts, 0)
    variance = parts.sum(axis=1)
    spread = (parts**2 / np.array([n0 - 1, n1 - 1])).sum(axis=1)
    df = np.maximum(variance**2 / np.where(spread > 0, spread, 1), 1)
    error = np.sqrt(variance)
    infinite = np.full_like(df, np.inf)
    methods = {"compare": ours, "Welch's t": (error, df), "DeLong": (error, infinite)}
    found = {name: (np.asarray(x[0]), np.asarray(x[1])) for name, x in methods.items()}
    return estimate[:, 0] - estimate[:, 1], found


def quantile(level: float, df: Scores) -> Scores:
    return np.where(
        np.isinf(df), special.ndtri((1 + level) / 2), special.stdtrit(df, (1 + level) / 2)
    )


class Cell(NamedTuple):
    """A method in a set-up at a level; shares of the intervals above and below the truth."""

    pair: str
    equal: bool
    positives: int
    negatives: int
    level: float
    method: str
    above: float
    below: float
    width: float  # mean over that of DeLong's

    @property
    def coverage(self) -> float:
        return 1 - self.above - self.below


def cells_of(
    name: str, pair: Pair, sizes: tuple[tuple[int, int], ...], simulations: int
) -> Iterator[Cell]:
    truth = pair.truth()
    for n1, n0 in sizes:
        rng = np.random.default_rng([n1, n0, *name.encode()])
        difference, methods = limits_of(pair.draw(rng, (simulations, n1, n0)), n1)
        for level in LOWEST:
            margins = {key: quantile(level, df) * error for key, (error, df) in methods.items()}
            for method, margin in margins.items():
                above = np.mean(difference - margin > truth + ROUNDING)
                below = np.mean(difference + margin < truth - ROUNDING)
                width = margin.mean() / margins["DeLong"].mean()
                shares = float(above), float(below), float(width)
                yield Cell(name, pair.equal, n1, n0, level, method, *shares)


# ---- recall by amount


def rows_of_amounts(simulations: int, counts: tuple[int, ...]) -> Iterator[list[str]]:
    """Amounts exp(sigma z), with z of correlation r with the score of the positive."""
    limit, shift = 0.05, 2.0
    for r in (0.0, 0.5):
        for sigma in (0.5, 1.0, 2.0):
            # Weighting by exp(sigma z) moves the scores of the positives by sigma r.
            truth = stats.norm.sf(stats.norm.isf(limit) - shift - sigma * r)
            for n1 in counts:
                n = 21 * n1
                rng = np.random.default_rng([n1, int(10 * sigma), int(10 * r)])
                scores = rng.standard_normal((simulations, n))
                z = rng.standard_normal((simulations, n))
                amounts = np.exp(sigma * (r * scores + np.sqrt(1 - r * r) * z))
                amounts[:, n1:] = 1
                scores[:, :n1] += shift
                interval = jm.confidence_interval(
                    partial(jm.recall_at_fpr, max_fpr=limit),
                    scores,
                    np.arange(n) < n1,
                    amounts=amounts,
                )
                low, high = np.asarray(interval.low), np.asarray(interval.high)
                above, below = np.mean(low > truth), np.mean(high < truth)
                given = amounts[:, :n1]
                size = np.median(given.sum(axis=1) ** 2 / (given**2).sum(axis=1))
                yield [
                    f"{sigma:g}",
                    "rising with the score" if r else "independent",
                    str(n1),
                    f"{size:.1f}",
                    f"{truth:.3f}",
                    f"{1 - above - below:.3f} ({100 * above:.1f}, {100 * below:.1f})",
                    f"{np.mean(high - low):.3f}",
                ]


# ---- tables

Report = Iterator[str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparisons", description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, help="of each set-up")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="20 simulations, to try the program")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    simulations = 20 if given.quick else given.simulations
    text = "\n".join(report(simulations)) + "\n"
    print(text, end="")
    if given.output:
        given.output.write_text(text)


def report(simulations: int) -> Report:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpy", "scipy"))
    yield "# Comparisons, clusters and recall by amount\n"
    command = f"python -m benchmarks.comparisons --simulations {simulations}"
    yield f"`{command}`: {simulations:,} simulations"
    error = np.sqrt(0.0475 / simulations)
    yield "of a set-up, except where fewer are named; the standard error of a coverage of 0.95 is"
    yield f"{error:.4f}. {libraries}, Python {platform.python_version()}.\n"
    yield from _differences(simulations)
    yield "## Few clusters\n"
    yield "95 % intervals of the AUC of one model, with clusters of ten items. Before: one sum of"
    yield "influence a cluster, K - 1 degrees of freedom. Coverage (above, below the truth, %).\n"
    head = ["clusters", "K", "with positives", "before", "now", "width, now over before"]
    yield from table(head, list(rows_of_clusters(simulations)))
    fewer = min(simulations, 300)
    yield f"\nFive equal models by `compare`, {fewer} simulations:"
    yield "rejections at 5 % of one pair, and of any of the ten. z: the same errors, with normal"
    yield "quantiles and Tukey's quantile.\n"
    head = ["clusters", "K", "pair: z", "pair: compare", "any: z", "any: compare"]
    yield from table(head, list(rows_of_equal_models(fewer, (5, 6, 10, 20))))
    fewer = min(simulations, 500)
    yield "\n## Recall by amount\n"
    yield f"`recall_at_fpr` at 0.05, 20 negatives a positive, lognormal amounts, {fewer}"
    yield "simulations: coverage of 95 % intervals (above, below the truth, in %). The size is the"
    yield "median of (sum a)^2 / sum a^2.\n"
    head = ["sigma", "amounts", "positives", "size", "recall", "coverage", "mean width"]
    yield from table(head, list(rows_of_amounts(fewer, (20, 50, 200))))


def _differences(simulations: int) -> Report:
    groups = {"held out": HELD_OUT, "tuned on": TUNED}
    found = {
        group: [cell for x in pairs.items() for cell in cells_of(*x, SIZES, simulations)]
        for group, pairs in groups.items()
    }
    yield "## Differences of the AUC of two models\n"
    yield f"{len(HELD_OUT)} pairs of models that were not looked at when the rule was chosen, and"
    yield f"{len(TUNED)} that were, with {len(SIZES)} sizes from 10 and 10 to 200 and 1,000."
    yield "Above, below: the mean share of intervals above and below the true difference, in %.\n"
    for group, cells in found.items():
        for level, lowest in LOWEST.items():
            yield f"### {100 * level:.0f} % limits, pairs {group}\n"
            head = ["positives", "set-ups", "method", f"below {lowest:g}", "worst", "median"]
            rows = _rows_by_size([cell for cell in cells if cell.level == level], lowest)
            yield from table([*head, "above, below", "median width / DeLong"], list(rows))
            yield ""
    yield "### Equal models: rejections at 5 %\n"
    every = [cell for cells in found.values() for cell in cells if cell.level == 0.95]
    rows = _rows_of_sizes([cell for cell in every if cell.equal])
    yield from table(["positives", "set-ups", "compare", "Welch's t", "DeLong"], list(rows))
    yield "\n### Set-ups in which 95 % limits of `compare` cover less than 0.92\n"
    low = [c for c in every if c.method == "compare" and c.coverage < LOWEST[0.95]]
    rows = [
        [c.pair, f"{c.positives}, {c.negatives}", f"{c.coverage:.3f}", f"{100 * c.above:.1f}"]
        for c in sorted(low, key=lambda c: c.coverage)
    ]
    yield from table(["pair", "positives, negatives", "coverage", "above, %"], rows)
    yield ""


def _rows_by_size(cells: list[Cell], lowest: float) -> Iterator[list[str]]:
    sizes = sorted({cell.positives for cell in cells})
    several = {str(n): [n] for n in sizes} | {"20 and more": [n for n in sizes if n >= 20]}
    for words, chosen in (several | {"all": sizes}).items():
        for method in dict.fromkeys(cell.method for cell in cells):
            of_size = [c for c in cells if c.method == method and c.positives in chosen]
            coverages = np.array([cell.coverage for cell in of_size])
            above, below = (100 * np.mean([getattr(c, x) for c in of_size]) for x in _SIDES)
            yield [
                words,
                str(len(of_size)),
                method,
                f"{100 * np.mean(coverages < lowest):.1f} %",
                f"{coverages.min():.3f}",
                f"{np.median(coverages):.3f}",
                f"{above:.1f}, {below:.1f}",
                f"{np.median([cell.width for cell in of_size]):.2f}",
            ]


_SIDES = ("above", "below")


def _rows_of_sizes(cells: list[Cell]) -> Iterator[list[str]]:
    for n in sorted({cell.positives for cell in cells}):
        found: dict[str, list[float]] = {}
        for cell in cells:
            if cell.positives == n:
                found.setdefault(cell.method, []).append(1 - cell.coverage)
        spans = [f"{min(x):.3f} to {max(x):.3f}" for x in found.values()]
        yield [str(n), str(len(found["compare"])), *spans]


if __name__ == "__main__":
    main()
