"""`python -m benchmarks.bands`: how often bands of the ROC curve hold the whole true curve.

By NumPy, with no program of JAX's: the band is the library's function of placements, and the
bootstrap's band, for comparison, is written out here. The families under "held out" had no part in
the choice of the constants of `shrinkage`; those under "used" had. Among the latter are curves with
narrow steps, which need the longest limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from jaxmetrics._roc.host_placements import OneClass, placements_of
from jaxmetrics.inference._bands_by_boxes import band
from jaxmetrics.inference._intervals.boxes import between_boxes, shrinkage, simultaneous
from jaxmetrics.inference._intervals.local_level import local_level

LEVELS = (0.9, 0.95, 0.99)
SIZES = ((10, 10), (50, 50), (200, 200), (20, 200), (50, 1000), (1000, 50), (30, 3000))
GRID = np.arange(101) / 100  # the default points, at which the bootstrap's band is meant to hold
FPR = np.unique(np.concatenate([GRID, np.geomspace(1e-4, 0.0099, 10)]))
AT_GRID = np.isin(FPR, GRID)
DENSE = np.unique(np.concatenate([np.linspace(0, 1, 301), FPR]))
RESAMPLES = 300
ROUNDING = 1e-9
Z = special.ndtri(0.025)
CONSTANTS = "## The factor of the normal quantiles"


class Family(NamedTuple):
    """Laws of the scores of both classes: how they are drawn, and the ROC curve."""

    name: str
    positives: Callable[..., Any]
    negatives: Callable[..., Any]
    curve: Callable[[Any], Any]


class Mixture(NamedTuple):
    """Laws with their shares; the quantiles of the negatives alone are needed."""

    parts: tuple[tuple[float, Any], ...]

    def sf(self, x: Any) -> Any:
        return sum(share * law.sf(x) for share, law in self.parts)

    def rvs(self, size: int, random_state: Any) -> Any:
        shares = [share for share, _ in self.parts]
        which = random_state.choice(len(shares), size, p=shares)
        drawn = [law.rvs(size, random_state=random_state) for _, law in self.parts]
        return np.choose(which, drawn)


def continuous(name: str, positives: Any, negatives: Any) -> Family:
    def curve(fpr: Any) -> Any:
        return np.where(fpr >= 1, 1.0, positives.sf(negatives.isf(fpr)))

    return Family(name, positives.rvs, negatives.rvs, curve)


def levels(name: str, positives: Any, negatives: Any) -> Family:
    """A few levels, within which scores tie, from the highest; straight lines join the points."""

    def draw(shares: Any) -> Callable[..., Any]:
        def rvs(size: int, random_state: Any) -> Any:
            return -random_state.choice(len(shares), size, p=shares).astype(float)

        return rvs

    points = [np.concatenate([[0.0], np.cumsum(x)]) for x in (negatives, positives)]
    return Family(name, draw(positives), draw(negatives), lambda fpr: np.interp(fpr, *points))


def normal(auc: float, deviation: float = 1.0) -> Any:
    """Normal scores of positives with this AUC, if those of negatives are standard normal."""
    return stats.norm(stats.norm.ppf(auc) * (1 + deviation**2) ** 0.5, deviation)


STANDARD = stats.norm()
HELD_OUT = (
    continuous("binormal, AUC 0.9, b = 0.5", normal(0.9, 2.0), STANDARD),
    continuous("binormal, AUC 0.95, b = 2", normal(0.95, 0.5), STANDARD),
    continuous("Student, 3 df, shift 2", stats.t(3, 2.0), stats.t(3)),
    continuous("exponential, scale 5", stats.expon(scale=5), stats.expon()),
    continuous("gamma 2, scale 4", stats.gamma(2, scale=4), stats.gamma(2)),
    continuous(
        "5 % low outliers", Mixture(((0.95, normal(0.98)), (0.05, stats.norm(-2, 0.5)))), STANDARD
    ),
    levels("five levels", (0.45, 0.25, 0.15, 0.1, 0.05), (0.02, 0.08, 0.2, 0.3, 0.4)),
)
USED = (
    continuous("chance", STANDARD, STANDARD),
    continuous("binormal, AUC 0.8", normal(0.8), STANDARD),
    continuous("binormal, AUC 0.99", normal(0.99), STANDARD),
    continuous("logistic, shift 2.5", stats.logistic(2.5), stats.logistic()),
    continuous(
        "half of the positives apart", Mixture(((0.5, stats.norm(4)), (0.5, STANDARD))), STANDARD
    ),
    continuous(
        "five steps",
        Mixture(tuple((0.2, stats.norm(i + 0.5, 0.02)) for i in range(5))),
        stats.uniform(0, 5),
    ),
)


def boxes(positives: Any, negatives: Any, level: float, *, exact: bool = False) -> Any:
    """The simultaneous limits of the library."""
    placed = placements_of(OneClass(positives.copy()), OneClass(negatives.copy()))
    return simultaneous(placed, FPR, level, exact=exact)


def bootstrap(positives: Any, negatives: Any, level: float, rng: Any) -> Any:
    """The band by `method="bootstrap"`, with fewer resamples."""
    thresholds = np.unique(np.concatenate([positives, negatives]))[::-1]

    def points(scores: Any) -> tuple[Any, Any]:
        """The counts at or above each threshold, of the sample and of all resamples."""
        at = np.searchsorted(-thresholds, -scores)
        n = len(scores)
        drawn = (
            at[rng.integers(0, n, (RESAMPLES, n))] + len(thresholds) * np.arange(RESAMPLES)[:, None]
        )
        counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * len(thresholds))
        counts = np.concatenate(
            [np.bincount(at, minlength=len(thresholds))[None], counts.reshape(RESAMPLES, -1)]
        )
        return np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0))) / n

    # Rises by 1e-12 a point, so that a step has its upper end at its FPR.
    nudge = np.arange(len(thresholds) + 1) * 1e-12
    fpr = GRID + len(thresholds) * 1e-12
    curves = [
        np.interp(fpr, x + nudge, y)
        for x, y in zip(points(negatives), points(positives), strict=True)
    ]
    tpr, replicates = curves[0], np.array(curves[1:])
    variance = replicates.var(axis=0, ddof=1)
    with np.errstate(all="ignore"):
        z = np.where((variance > 0) & (GRID > 0), abs(replicates - tpr) / variance**0.5, 0)
        n = np.where(variance > 0, tpr * (1 - tpr) / variance, np.inf)
    n = np.minimum(np.where(n == 0, np.inf, n), len(positives))
    critical = max(np.quantile(z.max(axis=1), level), stats.norm.ppf((1 + level) / 2))
    middle, margin = (
        n * tpr + critical**2 / 2,
        critical * np.sqrt(n * tpr * (1 - tpr) + critical**2 / 4),
    )
    low, high = ((middle + sign * margin) / (n + critical**2) for sign in (-1, 1))
    low = np.where(GRID == 0, 0.0, np.where(GRID == 1, 1.0, low))
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def measured(family: Family, sizes: tuple[int, int], draws: int, few: int) -> dict[str, Any]:
    """For each method, coverage of the curve and mean width at the default points."""
    rng = np.random.default_rng([*sizes, *family.name.encode()])
    truth = family.curve(FPR)
    held: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for i in range(draws):
        positives = family.positives(sizes[0], random_state=rng)
        negatives = family.negatives(sizes[1], random_state=rng)
        found = {f"auto {level:g}": boxes(positives, negatives, level) for level in LEVELS}
        found["exact 0.95"] = boxes(positives, negatives, 0.95, exact=True)
        if i < few:
            found["bootstrap 0.95"] = bootstrap(positives, negatives, 0.95, rng)
        for name, (low, high) in found.items():
            true = truth if len(low) == len(FPR) else truth[AT_GRID]
            inside = (low <= true + ROUNDING) & (true <= high + ROUNDING)
            held.setdefault(name, []).append(bool(inside.all()))
            shown = slice(None) if len(low) == len(GRID) else AT_GRID
            widths.setdefault(name, []).append(float(np.mean((high - low)[shown])))
    return {name: (np.mean(held[name]), np.mean(widths[name])) for name in held}


def needed(family: Family, sizes: tuple[int, int], draws: int) -> Any:
    """By how much the normal quantiles may be shortened, so that curves are held at each level.

    The quantile over data sets of the least factor whose boxes hold the curve at `DENSE`.
    """
    rng = np.random.default_rng([*sizes, *family.name.encode()])
    truth, found = family.curve(DENSE), []
    z = [special.ndtri(local_level(np.float64(n), 0.95) / 2) for n in sizes[::-1]]
    for _ in range(draws):
        drawn = zip((family.positives, family.negatives), sizes, strict=True)
        classes = [OneClass(draw(n, random_state=rng)) for draw, n in drawn]
        placed = placements_of(*classes)
        least, most = 0.0, 1.3
        while most - least > 0.01:
            factor = (least + most) / 2
            tails = special.ndtr(factor * z[0]), special.ndtr(factor * z[1])
            low, high = between_boxes(placed, DENSE, tails)
            if ((low <= truth + ROUNDING) & (truth <= high + ROUNDING)).all():
                most = factor
            else:
                least = factor
        found.append(most)
    return np.quantile(found, 0.95)


def table_of_constants(draws: int) -> str:
    """What is needed beside what `shrinkage` gives: a row for each size, a column a family."""
    lines = [
        f"| positives, negatives | shrinkage | {' | '.join(x.name for x in USED)} |",
        f"|{' --- |' * (2 + len(USED))}",
    ]
    for sizes in SIZES[:-1]:
        cells = [shrinkage(*map(np.float64, sizes)), *(needed(x, sizes, draws) for x in USED)]
        lines.append(f"| {sizes[0]}, {sizes[1]} | {' | '.join(f'{x:.2f}' for x in cells)} |")
    return "\n".join(lines)


def extremes(rows: list[list[float]]) -> list[str]:
    """The worst and the median of each column."""
    lines = []
    for what, of in (("least", np.min), ("median", np.median)):
        cells = [f"{x:.3f}" for x in of(rows, axis=0)]
        lines.append(f"| | {what} | {' | '.join(cells)} |")
    return lines


def table(families: tuple[Family, ...], draws: int, few: int) -> str:
    """A row for each family and size, and the worst and the median of each column."""
    names = ["bootstrap 0.95", "auto 0.95", "exact 0.95", "auto 0.9", "auto 0.99"]
    shown = names[:3]
    lines = [
        f"| positives, negatives | scores | {' | '.join(names)} | {' | '.join(shown)} |",
        f"|{' --- |' * (2 + len(names) + len(shown))}",
    ]
    rows = []
    for family in families:
        for sizes in SIZES:
            found = measured(family, sizes, draws, few)
            rows.append([*(found[x][0] for x in names), *(found[x][1] for x in shown)])
            cells = [f"{x:.3f}" for x in rows[-1]]
            lines.append(f"| {sizes[0]}, {sizes[1]} | {family.name} | {' | '.join(cells)} |")
    return "\n".join([*lines, *extremes(rows)])


POINTS = np.array([0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.95])


def table_of_points(families: tuple[Family, ...], draws: int) -> str:
    """Coverage and mean width of pointwise limits at each of `POINTS`, and the width by boxes."""
    names = [f"{x:g}" for x in POINTS]
    lines = [
        f"| positives, negatives | scores | {' | '.join(names)} | width | by boxes |",
        f"|{' --- |' * (4 + len(names))}",
    ]
    rows = []
    for family in families:
        truth = family.curve(POINTS)
        for sizes in SIZES:
            rng = np.random.default_rng([*sizes, *family.name.encode()])
            found = []
            for _ in range(draws):
                drawn = zip((family.positives, family.negatives), sizes, strict=True)
                classes = [OneClass(draw(n, random_state=rng)) for draw, n in drawn]
                placed = placements_of(*classes)
                tails = np.full(2, special.ndtr(shrinkage(*map(np.float64, sizes)) * Z))
                with np.errstate(all="ignore"):
                    found.append(
                        (
                            band(placed, fpr=POINTS, level=0.95, exact=False)[1:3],
                            between_boxes(placed, POINTS, tails),
                        )
                    )
            (low, high), wide = np.moveaxis(np.array(found), 0, 2)
            held = ((low <= truth + ROUNDING) & (truth <= high + ROUNDING)).mean(axis=0)
            rows.append([*held, np.mean(high - low), np.mean(wide[1] - wide[0])])
            cells = [f"{x:.3f}" for x in rows[-1]]
            lines.append(f"| {sizes[0]}, {sizes[1]} | {family.name} | {' | '.join(cells)} |")
    return "\n".join([*lines, *extremes(rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--bootstraps", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("bands.md"))
    parser.add_argument("--constants", action="store_true", help="print what shrinkage must be")
    options = parser.parse_args()
    if options.constants:
        print(table_of_constants(options.draws))
        return
    start = time.perf_counter()
    sections = [
        f"## {name}\n\nCoverage by method and level, then mean width.\n\n"
        f"{table(families, options.draws, options.bootstraps)}"
        for name, families in (("Held out", HELD_OUT), ("Used to find the constants", USED))
    ]
    points = "\n\n".join(
        f"{name}.\n\n{table_of_points(families, options.draws)}"
        for name, families in (("Held out", HELD_OUT), ("Used to find the constants", USED))
    )
    sections.append(
        "## Pointwise limits of 95 %\n\nThey are those of a recall. Coverage at each FPR, mean "
        "width over these FPRs, and that of boxes with 95 % for each side. No rule was found on "
        f"these families.\n\n{points}"
    )
    minutes = (time.perf_counter() - start) / 60
    text = f"""# Coverage of ROC bands

`python -m benchmarks.bands`: how often the simultaneous band of 95 %, or of the level named, holds
the true curve at {len(FPR)} points from 0 to 1, in {options.draws} simulated data sets a row. The
bootstrap, which was the default, is judged at the 101 points that it is meant for, in
{options.bootstraps} data sets with {RESAMPLES} resamples. Widths are means over these points.
The standard error of a coverage of 0.95 is {(0.95 * 0.05 / options.draws) ** 0.5:.3f}, and of the
bootstrap's {(0.95 * 0.05 / options.bootstraps) ** 0.5:.3f}. {minutes:.0f} min.

"auto" has shorter boxes, by `shrinkage`; "exact" has each class at a chance of sqrt(0.95), so that
it holds the curve whatever the scores are.

"""
    before = options.output.read_text("utf-8") if options.output.exists() else ""
    _, found, rest = before.partition(CONSTANTS)  # which another run prints
    text += "\n\n".join(sections) + "\n" + (f"\n{found}{rest}" if found else "")
    options.output.write_text(text, encoding="utf-8")
    print(options.output.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
