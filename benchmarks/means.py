"""`python -m benchmarks.means`: how often intervals of a mean over queries hold the true mean.

Values are simulated by NumPy, and the interval "mean" is computed by the library from their
moments. Families of `TUNED` were looked at when its rule was chosen, those of `HELD_OUT` were not.
All simulations of a cell share their resamples: values of a sample are exchangeable, so replicates
of two simulations are nearly independent.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special

from benchmarks.tables import Row, Table, show
from jaxmetrics.inference._intervals.means import Sample, limits_of_mean, moments_of_sample

Draw = Callable[[np.random.Generator, tuple[int, int]], Any]
Limits = Mapping[str, tuple[Any, Any]]

SIZES = (5, 10, 20, 50, 100, 200, 1000)
LEVELS = (0.90, 0.95, 0.99)
METHODS = ("mean", "percentile", "t", "normal", "bca")
RESAMPLED = ("percentile", "bca")
FEWER = 4  # so many times fewer simulations for methods that resample, and of 1,000 queries
ROUNDING = 1e-9


class Family(NamedTuple):
    """Independent values of queries, and their true mean."""

    draw: Draw
    mean: float
    kind: str = "share"  # share, rare (hits below 0.1), any, difference


# ---- families


def beta(a: float, b: float) -> Family:
    return Family(lambda rng, shape: rng.beta(a, b, shape), a / (a + b))


def atoms(zero: float, one: float, a: float, b: float) -> Family:
    """0 and 1 with these probabilities, else Beta(a, b)."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        u, x = rng.random(shape), rng.beta(a, b, shape)
        return np.where(u < zero, 0.0, np.where(u > 1 - one, 1.0, x))

    return Family(draw, one + (1 - zero - one) * a / (a + b))


def reciprocal_ranks(p: float, missing: float = 0.0) -> Family:
    """Of geometric ranks, some of which are missing."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return np.where(rng.random(shape) < missing, 0.0, 1 / rng.geometric(p, shape))

    return Family(draw, (1 - missing) * -p * np.log(p) / (1 - p))


def uniform_ranks(n: int) -> Family:
    mean = float(np.mean(1 / np.arange(1, n + 1)))
    return Family(lambda rng, shape: 1 / rng.integers(1, n + 1, shape), mean)


def precision(k: int, a: float, b: float) -> Family:
    """Precision at k, with probabilities of queries from a Beta."""
    return Family(lambda rng, shape: rng.binomial(k, rng.beta(a, b, shape)) / k, a / (a + b))


def hits(p: float) -> Family:
    kind = "share" if 0.1 <= p <= 0.9 else "rare"
    return Family(lambda rng, shape: (rng.random(shape) < p).astype(float), p, kind)


def lognormal(sigma: float) -> Family:
    mean = float(np.exp(sigma**2 / 2))
    return Family(lambda rng, shape: rng.lognormal(0, sigma, shape), mean, "any")


def gamma(a: float) -> Family:
    return Family(lambda rng, shape: rng.gamma(a, size=shape), a, "any")


def difference(one: Family, other: Family) -> Family:
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return one.draw(rng, shape) - other.draw(rng, shape)

    return Family(draw, one.mean - other.mean, "difference")


def wins(p: float, q: float) -> Family:
    """1, -1 and else 0: of two models the one hits, and the other does not."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        u = rng.random(shape)
        return (u < p).astype(float) - (u > 1 - q)

    return Family(draw, p - q, "difference")


def mostly_zero(zero: float, mean: float, sigma: float) -> Family:
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return np.where(rng.random(shape) < zero, 0.0, rng.normal(mean, sigma, shape))

    return Family(draw, (1 - zero) * mean, "difference")


TUNED = {
    **{f"Beta({a:g}, {b:g})": beta(a, b) for a, b in [(2, 1), (5, 1), (8, 0.5)]},
    **{f"Beta({a:g}, {b:g})": beta(a, b) for a, b in [(0.5, 0.5), (0.5, 2), (0.3, 3)]},
    "1 with 0.8, else uniform": atoms(0, 0.8, 1, 1),
    "0 and 1 with 0.3, else uniform": atoms(0.3, 0.3, 1, 1),
    "0 with 0.7, else Beta(2, 2)": atoms(0.7, 0, 2, 2),
    "0 with 0.9, else Beta(2, 2)": atoms(0.9, 0, 2, 2),
    "1 with 0.5, 0 with 0.02, else Beta(8, 2)": atoms(0.02, 0.5, 8, 2),
    **{f"reciprocal ranks, geometric {p:g}": reciprocal_ranks(p) for p in (0.5, 0.1)},
    "reciprocal ranks, uniform to 100": uniform_ranks(100),
    **{f"hits, {p:g}": hits(p) for p in (0.02, 0.05, 0.1, 0.3, 0.5)},
    **{f"lognormal, sigma {s:g}": lognormal(s) for s in (0.5, 1)},
    "exponential": gamma(1),
    "normal": Family(lambda rng, shape: rng.standard_normal(shape), 0.0, "any"),
    "Beta(2, 1) - uniform": difference(beta(2, 1), beta(1, 1)),
    "reciprocal ranks, 0.5 - 0.2": difference(reciprocal_ranks(0.5), reciprocal_ranks(0.2)),
    **{f"wins, {p:g} and {q:g}": wins(p, q) for p, q in [(0.05, 0.05), (0.15, 0.05)]},
    "0 with 0.7, else normal": mostly_zero(0.7, 0, 1),
}
HELD_OUT = {
    **{f"Beta({a:g}, {b:g})": beta(a, b) for a, b in [(3, 0.5), (0.2, 1), (1, 1)]},
    "0 with 0.5, 1 with 0.1, else Beta(2, 5)": atoms(0.5, 0.1, 2, 5),
    "1 with 0.7, 0 with 0.05, else Beta(3, 1)": atoms(0.05, 0.7, 3, 1),
    "reciprocal ranks, geometric 0.25": reciprocal_ranks(0.25),
    "reciprocal ranks, geometric 0.05, 0.4 missing": reciprocal_ranks(0.05, 0.4),
    "precision at 10, Beta(1, 4)": precision(10, 1, 4),
    **{f"hits, {p:g}": hits(p) for p in (0.03, 0.13, 0.2, 0.9)},
    "lognormal, sigma 1.5": lognormal(1.5),
    "gamma, 0.5": gamma(0.5),
    "Student t, 3 df": Family(lambda rng, shape: rng.standard_t(3, shape), 0.0, "any"),
    "Beta(5, 1) - uniform": difference(beta(5, 1), beta(1, 1)),
    "wins, 0.1 and 0.02": wins(0.1, 0.02),
    "0 with 0.9, else normal, mean 0.3": mostly_zero(0.9, 0.3, 1),
}


# ---- limits


def limits_of_moments(values: Any, level: float, sample: Sample) -> Limits:
    """Limits that need no resamples."""
    n = values.shape[1]
    mean, error = np.asarray(sample.mean), np.asarray(sample.standard_error)
    t, z = special.stdtrit(n - 1, (1 + level) / 2), special.ndtri((1 + level) / 2)
    found = {
        "t": (mean - t * error, mean + t * error),
        "normal": (mean - z * error, mean + z * error),
    }
    low, high = (np.asarray(x) for x in limits_of_mean(sample, level))
    return {"mean": (low, high), **found}


def resampled_limits(
    values: Any, levels: tuple[float, ...], n_resamples: int, rng: np.random.Generator
) -> dict[float, Limits]:
    """Percentile and BCa limits by level, from the same resamples."""
    n = values.shape[1]
    counts = rng.multinomial(n, np.full(n, 1 / n), n_resamples)
    replicates = np.sort(values @ counts.T / n, axis=1)
    mean = values.mean(axis=1, keepdims=True)
    d = values - mean
    with np.errstate(invalid="ignore", divide="ignore"):
        a = np.nan_to_num((d**3).sum(axis=1) / (d**2).sum(axis=1) ** 1.5 / 6)
    near = np.abs(replicates - mean) < ROUNDING
    below = (((replicates < mean) & ~near) + near / 2).mean(axis=1)
    bias = special.ndtri(np.clip(below, 0.5 / n_resamples, 1 - 0.5 / n_resamples))

    def at(share: Any) -> Any:
        place = np.broadcast_to(share * (n_resamples - 1), len(values))
        lower = np.minimum(place.astype(int), n_resamples - 2)
        rows = np.arange(len(values))
        x, y = replicates[rows, lower], replicates[rows, lower + 1]
        return x + (place - lower) * (y - x)

    found = {}
    for level in levels:
        shares = (1 - level) / 2, (1 + level) / 2
        z = [bias + special.ndtri(share) for share in shares]
        found[level] = {
            "percentile": tuple(at(share) for share in shares),
            "bca": tuple(at(special.ndtr(bias + x / (1 - a * x))) for x in z),
        }
    return found


class Cell(NamedTuple):
    """A method in a family with a number of queries, at a level."""

    group: str
    family: str
    kind: str
    n: int
    level: float
    method: str
    above: float  # share of intervals above the true mean
    below: float
    width: float  # mean over that of Student's t

    @property
    def coverage(self) -> float:
        return 1 - self.above - self.below


def cells_of(
    group: str, name: str, n: int, simulations: int, n_resamples: int, seed: int
) -> Iterator[Cell]:
    family = (TUNED if group == "tuned" else HELD_OUT)[name]
    rng = np.random.default_rng([seed, n, *name.encode()])
    simulations = simulations // FEWER if n >= 1000 else simulations
    values = family.draw(rng, (simulations, n))
    sample = moments_of_sample(values, None, None, np.dtype(np.float64))
    few = values[: max(simulations // FEWER, 1)]
    resampled = resampled_limits(few, LEVELS, n_resamples, rng)
    for level in LEVELS:
        limits = {**limits_of_moments(values, level, sample), **resampled[level]}
        for method, (low, high) in limits.items():
            of_t = [x[: len(low)] for x in limits["t"]]
            yield Cell(
                group,
                name,
                family.kind,
                n,
                level,
                method,
                float(np.mean(low > family.mean + ROUNDING)),
                float(np.mean(high < family.mean - ROUNDING)),
                float(np.mean(high - low) / np.mean(of_t[1] - of_t[0])),
            )


# ---- tables


def by_size(cells: list[Cell], group: str, level: float) -> Iterator[Row]:
    """The lowest and the median coverage over families of a kind, by method."""
    names = {
        "share": "values from 0 to 1, hit rates from 0.1",
        "rare": "hit rates below 0.1",
        "any": "values of any range",
        "difference": "differences",
    }
    for kind, words in names.items():
        for n in SIZES:
            row = {"families": words, "queries": str(n)}
            for method in METHODS:
                found = [
                    c.coverage
                    for c in cells
                    if (c.group, c.level, c.kind, c.n, c.method) == (group, level, kind, n, method)
                ]
                row[method] = f"{min(found):.3f}, {np.median(found):.3f}"
            yield row


def by_family(cells: list[Cell], group: str, level: float, n: int) -> Iterator[Row]:
    """Coverage, misses by side and width of each family."""
    chosen = [c for c in cells if (c.group, c.level, c.n) == (group, level, n)]
    for name in dict.fromkeys(c.family for c in chosen):
        found = {c.method: c for c in chosen if c.family == name}
        yield {
            "values": name,
            **{
                method: f"{found[method].coverage:.3f} ({100 * found[method].above:.1f}, "
                f"{100 * found[method].below:.1f}; {found[method].width:.2f})"
                for method in METHODS
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.means", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulations", type=int, default=4000, help="of each cell")
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with jax.enable_x64(True):
        cells = [
            cell
            for group, families in {"tuned": TUNED, "held out": HELD_OUT}.items()
            for name in families
            for n in SIZES
            for cell in cells_of(group, name, n, given.simulations, given.resamples, given.seed)
        ]
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpy", "scipy"))
    made_by = f"{libraries}, Python {platform.python_version()}"
    print("# Coverage of intervals of a mean over queries\n")
    print(
        f"`python -m benchmarks.means --seed {given.seed} --simulations {given.simulations}`: "
        f"{given.simulations:,} simulations of a cell, a quarter of them for percentile and bca, "
        f"with {given.resamples:,} resamples, as of 1,000 queries. {made_by}.\n"
    )
    for level in LEVELS:
        for group in ("held out", "tuned"):
            print(f"## {100 * level:.0f} % intervals, families {group}\n")
            show(
                Table(
                    "Lowest and median coverage over the families.",
                    list(by_size(cells, group, level)),
                )
            )
            if level != 0.95:
                continue
            for n in (10, 20, 50, 200):
                title = (
                    f"{n} queries: coverage (intervals above and below the true mean, in %; width "
                    "over that of t)."
                )
                show(Table(title, list(by_family(cells, group, level, n))))


if __name__ == "__main__":
    main()
