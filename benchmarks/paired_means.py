"""`python -m benchmarks.paired_means`: coverage of paired means, and of means of few clusters.

A pair of models has values from 0 to 1 for the same items, with an effect of the item, or of its
cluster. Rules were chosen on `TUNED`; none on `HELD_OUT` and `OF_LARGE`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from benchmarks.tables import Row, Table, machine, show

ITEMS, CLUSTERS = (20, 50, 100), (5, 10, 20)
LARGEST = 20  # items of a cluster
LARGE, FEW_CLUSTERS = (20, 100, 500), (5, 10, 20, 28, 50)
FLIPS = 999
ROUNDING = 1e-9


class Pair(NamedTuple):
    """Draws values `[2, items]` from effects `[items]`, quantiles of the uniform law; the means."""

    values: Callable[[np.random.Generator, Any], Any]
    means: tuple[float, float]


def hits(first: float, second: float, shared: float) -> Pair:
    """Right and wrong answers, of which a share is one answer of both models.

    The effect is the difficulty, which moves both rates alike, between none and twice the mean.
    """

    def values(rng: np.random.Generator, effect: Any) -> Any:
        u = rng.random((2, len(effect)))
        u[1] = np.where(rng.random(len(effect)) < shared, u[0], u[1])
        return (u < 2 * effect * np.array([[first], [second]])).astype(float)

    return Pair(values, (first, second))


def gains(first: tuple[float, float], second: tuple[float, float], shared: float) -> Pair:
    """Values such as nDCG, each a quantile of a Beta law; half their variance is of the effect."""

    def values(rng: np.random.Generator, effect: Any) -> Any:
        common, *own = rng.standard_normal((3, len(effect)))
        rest = np.sqrt(shared) * common + np.sqrt(1 - shared) * np.stack(own)
        u = special.ndtr(np.sqrt(0.5) * (special.ndtri(effect) + rest))
        return np.stack(
            [special.betaincinv(*law, x) for law, x in zip((first, second), u, strict=True)]
        )

    return Pair(values, (first[0] / sum(first), second[0] / sum(second)))


def tied(pair: Pair, share: float) -> Pair:
    """In a share of the items the second model has the value of the first."""

    def values(rng: np.random.Generator, effect: Any) -> Any:
        drawn = pair.values(rng, effect)
        drawn[1] = np.where(rng.random(len(effect)) < share, drawn[0], drawn[1])
        return drawn

    first, second = pair.means
    return Pair(values, (first, share * first + (1 - share) * second))


def of_clusters(rng: np.random.Generator, effect: Any, sizes: tuple[int, ...] = ()) -> Any:
    """Standard normal numbers `[*sizes, items]`, one for each cluster, which has one effect."""
    _, ids = np.unique(effect, return_inverse=True)
    return rng.standard_normal((*sizes, ids.max() + 1))[..., ids]


def alike(quantiles: Any, means: tuple[float, float], shares: tuple[float, float, float]) -> Pair:
    """Values are `quantiles` of normal scores of the two models.

    `shares` of their variance are the cluster's, the cluster's for one model, and the item's; the
    rest is of the item for one model.
    """

    def values(rng: np.random.Generator, effect: Any) -> Any:
        of_item, *own = rng.standard_normal((3, len(effect)))
        parts = special.ndtri(effect), of_clusters(rng, effect, (2,)), of_item, np.stack(own)
        roots = np.sqrt([*shares, 1 - sum(shares)])
        return quantiles(special.ndtr(sum(r * x for r, x in zip(roots, parts, strict=True))))

    return Pair(values, means)


def powers(first: float, second: float, shares: tuple[float, float, float]) -> Pair:
    """Values of Beta(first, 1) and Beta(second, 1), whose quantiles are quick."""
    roots = 1 / np.array([[first], [second]])
    return alike(lambda u: u**roots, (first / (1 + first), second / (1 + second)), shares)


def answers(first: float, second: float, shares: tuple[float, float, float]) -> Pair:
    """Right and wrong answers."""
    rates = np.array([[first], [second]])
    return alike(lambda u: (u < rates).astype(float), (first, second), shares)


def rare(rate: float, gained: float, lost: float, spread: float = 0.0) -> Pair:
    """Right answers of a rate; the second model gains and loses so many of all items.

    The share of the items of a cluster in which the models differ is lognormal, with the standard
    deviation `spread` of its logarithm.
    """

    def values(rng: np.random.Generator, effect: Any) -> Any:
        first = rng.random(len(effect)) < rate
        moves = np.exp(spread * of_clusters(rng, effect) - spread**2 / 2)
        share = np.where(first, lost / rate, gained / (1 - rate)) * moves
        return np.stack([first, first ^ (rng.random(len(effect)) < share)]).astype(float)

    return Pair(values, (rate, rate + gained - lost))


TUNED = {
    "hits, 0.1 and 0.1, half in common": hits(0.1, 0.1, 0.5),
    "hits, 0.1 and 0.2, half in common": hits(0.1, 0.2, 0.5),
    "hits, 0.4 and 0.5, apart": hits(0.4, 0.5, 0.0),
    "hits, 0.5 and 0.5, 0.8 in common": hits(0.5, 0.5, 0.8),
    "gains, Beta(4, 2) and the same": gains((4, 2), (4, 2), 0.6),
    "gains, Beta(0.5, 2) and Beta(0.7, 2)": gains((0.5, 2), (0.7, 2), 0.6),
    "gains, Beta(5, 0.5) and Beta(4, 0.6)": gains((5, 0.5), (4, 0.6), 0.3),
    "hits, 0.5 and 0.1, 0.8 tied": tied(hits(0.5, 0.1, 0.0), 0.8),
    "gains, Beta(2, 2) and Beta(2, 4), 0.8 tied": tied(gains((2, 2), (2, 4), 0.0), 0.8),
}
HELD_OUT = {
    "hits, 0.15 and 0.15, 0.7 in common": hits(0.15, 0.15, 0.7),
    "hits, 0.2 and 0.3, 0.3 in common": hits(0.2, 0.3, 0.3),
    "hits, 0.45 and 0.35, half in common": hits(0.45, 0.35, 0.5),
    "gains, Beta(2, 2) and the same": gains((2, 2), (2, 2), 0.5),
    "gains, Beta(1, 4) and Beta(1, 3)": gains((1, 4), (1, 3), 0.8),
    "gains, Beta(8, 1) and Beta(6, 1)": gains((8, 1), (6, 1), 0.4),
    "gains, Beta(0.3, 0.3) and Beta(0.4, 0.3)": gains((0.3, 0.3), (0.4, 0.3), 0.7),
    "hits, 0.4 and 0.1, 0.75 tied": tied(hits(0.4, 0.1, 0.0), 0.75),
    "gains, Beta(4, 2) and Beta(1, 2), 0.85 tied": tied(gains((4, 2), (1, 2), 0.0), 0.85),
}
OF_LARGE = {
    "gains, Beta(3, 1) twice, clusters alike": powers(3, 3, (0.4, 0.0, 0.4)),
    "gains, Beta(0.8, 1) and Beta(0.9, 1), nearly alike": powers(0.8, 0.9, (0.05, 0.01, 0.5)),
    "gains, Beta(0.5, 1) twice, clusters apart": powers(0.5, 0.5, (0.1, 0.15, 0.3)),
    "hits, 0.5 and 0.52": answers(0.5, 0.52, (0.2, 0.01, 0.4)),
    "hits, 0.9 twice": answers(0.9, 0.9, (0.1, 0.03, 0.5)),
    "hits, 0.99 and 0.98": answers(0.99, 0.98, (0.1, 0.0, 0.4)),
    "1 in 100 differs, either way": rare(0.8, 0.005, 0.005, 0.5),
    "1 in 100 differs, mostly gains": rare(0.6, 0.008, 0.002),
    "1 in 1,000 differs, either way": rare(0.6, 0.0005, 0.0005),
    "1 in 1,000 differs, all gains": rare(0.8, 0.001, 0.0),
    "1 in 100 differs, all gains, in few clusters": rare(0.5, 0.01, 0.0, 1.0),
}
PAIRS = TUNED | HELD_OUT | OF_LARGE


class Found(NamedTuple):
    """An interval, and the p-value of no difference."""

    low: float
    high: float
    p: float = np.nan


def _by_t(unit: Any, weights: Any, quantile: float) -> Found:
    """Mean of units -+ quantile x error, of a weighted mean as a ratio."""
    n, share = len(unit), weights / weights.sum()
    mean = share @ unit
    error = np.sqrt(n / (n - 1) * ((share * (unit - mean)) ** 2).sum())
    return Found(mean - quantile * error, mean + quantile * error)


def rivals(values: Any, ids: Any | None, rng: np.random.Generator) -> dict[str, Found]:
    """Student's t and the normal law of units, the normal law of items, and flips of signs."""
    items = values.shape[-1]
    if ids is None:
        unit, weights = values, np.ones(items)
    else:
        weights = np.bincount(ids).astype(float)
        unit = np.bincount(ids, values) / weights
    n, z = len(unit), special.ndtri(0.975)
    signs = rng.choice([-1.0, 1.0], (FLIPS, n))
    moved = abs(signs @ (weights * unit)) >= abs(weights @ unit) - ROUNDING
    return {
        "t": _by_t(unit, weights, stats.t.ppf(0.975, n - 1)),
        "normal": _by_t(unit, weights, z),
        "items as units": _by_t(values, np.ones(items), z),
        "flips": Found(np.nan, np.nan, (1 + moved.sum()) / (1 + FLIPS)),
    }


def intervals_of(
    values: Any, ids: Any | None, rng: np.random.Generator
) -> Iterator[tuple[str, str, Found]]:
    """What is estimated, by which method, and its interval."""
    one = jm.mean_interval(values[0], clusters=ids)
    yield "mean", "ours", Found(float(one.low), float(one.high))
    pair = jm.compare_means(values, reference=1, clusters=ids)
    yield "difference", "ours", Found(*(float(x[0]) for x in (pair.low, pair.high, pair.p_value)))
    for what, of in (("mean", values[0]), ("difference", values[0] - values[1])):
        for method, found in rivals(of, ids, rng).items():
            yield what, method, found


def row_of(name: str, n_units: int, clustered: bool, n: int) -> Iterator[tuple[str, Row]]:
    pair, rng = PAIRS[name], np.random.default_rng([n_units, clustered, *name.encode()])
    truth = {"mean": pair.means[0], "difference": pair.means[0] - pair.means[1]}
    held: dict[tuple[str, str], list[tuple[bool, float, bool]]] = {}
    for _ in range(n):
        effect, ids = 1 - rng.random(n_units), None
        if clustered:
            ids = np.repeat(np.arange(n_units), rng.integers(1, LARGEST + 1, n_units))
            effect = effect[ids]
        for what, method, x in intervals_of(pair.values(rng, effect), ids, rng):
            inside = x.low - ROUNDING <= truth[what] <= x.high + ROUNDING
            held.setdefault((what, method), []).append((inside, x.high - x.low, x.p < 0.05))
    found = {key: np.mean(x, axis=0) for key, x in held.items()}
    for what in truth:
        row = {"values": name, "clusters" if clustered else "items": str(n_units)}
        width = found[what, "ours"][1]
        for method in ("ours", "t", "normal", *(["items as units"] if clustered else [])):
            inside, other, _ = found[what, method]
            row[method] = f"{inside:.3f}" + (f" ({other / width:.2f})" if method != "ours" else "")
        if what == "difference" and not truth[what]:
            row |= {f"size, {x}": f"{found[what, x][2]:.3f}" for x in ("ours", "flips")}
        yield what, row


def row_of_large(name: str, items: int, equal: bool, n: int) -> Row:
    """Coverage by the number of clusters of so many items, or of 1 to twice as many."""
    pair = PAIRS[name]
    row, truth = {"values": name, "items of a cluster": str(items)}, pair.means[0] - pair.means[1]
    for n_clusters in FEW_CLUSTERS:
        rng, found = np.random.default_rng([n_clusters, items, equal, *name.encode()]), []
        for _ in range(n):
            sizes = items if equal else rng.integers(1, 2 * items, n_clusters)
            ids = np.repeat(np.arange(n_clusters), sizes)
            values = pair.values(rng, (1 - rng.random(n_clusters))[ids])
            ours = jm.compare_means(values, reference=1, clusters=ids)
            low, high = float(ours.low[0]), float(ours.high[0])
            inside = low - ROUNDING <= truth <= high + ROUNDING
            by_t = rivals(values[0] - values[1], ids, rng)["t"]
            found.append((inside, high - low, by_t.high - by_t.low))
        held, width, of_t = np.mean(found, axis=0)
        row[f"{n_clusters} clusters"] = f"{held:.3f} ({width / of_t:.2f})"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired_means", description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, help="of each row")
    parser.add_argument("--large", type=int, default=500, help="of each number of large clusters")
    n, n_large = vars(parser.parse_args()).values()
    warnings.simplefilter("ignore")
    print("# Coverage of paired means, and of means of few clusters\n")
    print(
        f"`python -m benchmarks.paired_means`: {n:,} samples a row, 95 % intervals. In brackets, "
        "the mean width over ours. `size` is the share of samples of equal models with p < 0.05; "
        f"flips turn the signs of the differences at random, {FLIPS} times. {machine()}\n"
    )
    for group, families in (("held out", HELD_OUT), ("tuned", TUNED)):
        for clustered, units in ((False, ITEMS), (True, CLUSTERS)):
            rows = [x for name in families for u in units for x in row_of(name, u, clustered, n)]
            of = f"clusters of 1 to {LARGEST} items" if clustered else "items"
            for what, title in (("mean", "Means"), ("difference", "Differences of two models")):
                found = [row for kind, row in rows if kind == what]
                show(Table(f"{title}, {of}, families {group}.", found))
    for equal, sizes in ((True, LARGE), (False, LARGE[1:2])):
        large = [row_of_large(name, m, equal, n_large) for name in OF_LARGE for m in sizes]
        of = "one size" if equal else "1 to twice as many items"
        title = f"Differences of two models, large clusters of {of}: {n_large:,} samples a cell"
        show(Table(f"{title}, coverage and in brackets the mean width over that of t.", large))


if __name__ == "__main__":
    main()
