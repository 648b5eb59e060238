"""`python -m benchmarks.operating_points`: coverage of the intervals of `operating_point`.

The truth of a rate is that of the threshold that was reported, in the population: the share of each
class that it flags there. So the optimism of a threshold that was chosen on the sample counts. The
truth of a threshold is the one that the rule chooses in the population.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import optimize, stats

import jaxmetrics as jm
from benchmarks.coverage import table
from benchmarks.populations import Continuous, Mixture

Values = np.ndarray[Any, Any]
Sizes = tuple[int, int]  # positives, negatives

NAMES = ("recall", "fpr", "precision", "npv", "flagged", "cost", "recall_by_amount", "threshold")
RESAMPLES = 300
ROUNDING = 1e-6  # of results in single precision


class Law(NamedTuple):
    """Scores of both classes, whose upper tails are known."""

    name: str
    positives: Any
    negatives: Any


def _normal(mean: float = 0.0) -> Continuous:
    return Continuous(stats.norm(mean))


def _binormal(auc: float) -> Continuous:
    return _normal(stats.norm.ppf(auc) * 2**0.5)


LAWS = (
    Law("binormal, AUC 0.75", _binormal(0.75), _normal()),
    Law("binormal, AUC 0.9", _binormal(0.9), _normal()),
    Law("binormal, AUC 0.98", _binormal(0.98), _normal()),
    Law("Student, 3 df, shift 2", Continuous(stats.t(3, 2)), Continuous(stats.t(3))),
    Law("8 % low", Mixture(0.08, _binormal(0.97), _normal(-1.0)), _normal()),
)
# These had no part in the choice of the rules for precision.
HELD_OUT = (
    Law("Laplace, shift 1", Continuous(stats.laplace(1)), Continuous(stats.laplace())),
    Law("normal, mean 0.5 and deviation 2", Continuous(stats.norm(0.5, 2)), _normal()),
    Law("gamma of 2, shift 0.7", Continuous(stats.gamma(2, 0.7)), Continuous(stats.gamma(2))),
    Law("Student, 4 df, shift 0.5", Continuous(stats.t(4, 0.5)), Continuous(stats.t(4))),
    Law("10 % at 4", Mixture(0.1, _normal(), _normal(4.0)), _normal()),
)
COSTS = {"fp_cost": 1.0, "fn_cost": 5.0}
RULES: dict[str, dict[str, Any]] = {
    "threshold=1": {"threshold": 1.0},
    "max_fpr=0.05": {"max_fpr": 0.05},
    "max_fpr=0.01": {"max_fpr": 0.01},
    "min_recall=0.8": {"min_recall": 0.8},
    "min_precision=0.6": {"min_precision": 0.6},
    "youden": {"criterion": "youden"},
    "costs 1 and 5": {},
}
FEW = {"max_fpr=0.01": RULES["max_fpr=0.01"], "min_recall=0.05": {"min_recall": 0.05}}
SIZES = ((20, 80), (50, 200), (200, 800))
RARE = ((20, 180), (30, 970))
SEVERAL = 100  # data sets in one call
# Effects of clusters, as quantile functions; the scores of their items vary by a normal number.
EFFECTS = {
    "normal": stats.norm.ppf,
    "Student's t of 2": stats.t(2).ppf,
    "1 in 20 lower by 4": lambda u: np.where(u < 0.05, -4.0, 0.0),
}
RATES = ((0.8, 0.1), (0.98, 0.02))  # recall and FPR
OF_CLUSTER = 5  # items, of equal clusters or on average
CLUSTERS = (20, 50, 200)


def rates_at(law: Law, t: Values) -> tuple[Values, Values]:
    """The recall and the FPR of thresholds in the population."""
    recall, fpr = law.positives.upper(t), law.negatives.upper(t)
    return np.where(np.isinf(t), t < 0, recall), np.where(np.isinf(t), t < 0, fpr)


def truths(law: Law, t: Values, share: float) -> dict[str, Values]:
    """What thresholds do in the population, by name. Amounts do not depend on scores."""
    recall, fpr = rates_at(law, t)
    flagged = share * recall + (1 - share) * fpr
    with np.errstate(invalid="ignore"):
        precision = share * recall / flagged
        npv = (1 - share) * (1 - fpr) / (1 - flagged)
    cost = COSTS["fp_cost"] * (1 - share) * fpr + COSTS["fn_cost"] * share * (1 - recall)
    found = recall, fpr, precision, npv, flagged, cost, recall
    return dict(zip(NAMES, found, strict=False))


def best_threshold(law: Law, rule: dict[str, Any], share: float) -> float:
    """The threshold that the rule chooses in the population."""
    if "threshold" in rule:
        return float(rule["threshold"])
    grid = np.linspace(-8, 12, 400_001)
    found = truths(law, grid, share)
    recall, fpr, precision, _, _, cost, _ = found.values()
    if "max_fpr" in rule:
        return float(grid[np.argmax(fpr <= rule["max_fpr"])])
    if "min_recall" in rule:
        return float(grid[recall >= rule["min_recall"]][-1])
    if "min_precision" in rule:
        enough = np.nan_to_num(precision) >= rule["min_precision"]
        if enough[0]:
            return -np.inf
        return float(grid[np.argmax(enough)]) if enough.any() else np.inf
    return float(grid[np.argmax(recall - fpr) if rule else np.argmin(cost)])


def coverage_of(
    name: str, law: Law, sizes: Sizes, simulations: int, known: bool
) -> dict[str, float]:
    """The coverage by name, where defined, of a rule, a law and class sizes.

    `known`: the share of positives is given, and the class sizes are fixed.
    """
    n1, n0 = sizes
    n, share = n1 + n0, n1 / (n1 + n0)
    rng = np.random.default_rng([n1, n0, known, *name.encode(), *law.name.encode()])
    inside: dict[str, list[Values]] = {x: [] for x in NAMES}
    rule = (RULES | FEW)[name]
    best = best_threshold(law, rule, share)
    for number in range(-(-simulations // SEVERAL)):
        labels = np.arange(n) < n1
        if not known:
            labels = rng.random((SEVERAL, n)) < share
        shape = (SEVERAL, n)
        scores = np.where(labels, law.positives.draw(rng, shape), law.negatives.draw(rng, shape))
        point = jm.operating_point(
            scores.astype(np.float32),
            labels,
            **rule,
            **COSTS,
            prevalence=share if known else None,
            amounts=rng.lognormal(size=n if known else shape),
            key=jax.random.key(number),
            n_resamples=RESAMPLES,
        )
        at = np.asarray(point.threshold.estimate, float)
        truth = {**truths(law, at, share), "threshold": best}
        for x in NAMES:
            found = getattr(point, x)
            low, high = (np.asarray(y, float) for y in (found.low, found.high))
            defined = ~np.isnan(np.asarray(found.estimate) + truth[x])
            slack = ROUNDING * (1 + np.abs(truth[x]))
            within = (low <= truth[x] + slack) & (truth[x] - slack <= high)
            inside[x].append(within[defined])
    return {x: float(np.concatenate(y).mean()) for x, y in inside.items()}


def rows(
    rules: Iterable[str],
    laws: Iterable[Law],
    several: Iterable[Sizes],
    simulations: int,
    known: bool,
) -> Iterator[list[str]]:
    """By rule and class sizes, the lowest and the median coverage over laws."""
    for name, sizes in itertools.product(rules, several):
        cells = [coverage_of(name, law, sizes, simulations, known) for law in laws]
        shares = [[x[y] for x in cells] for y in NAMES]
        listed = [f"{min(x):.3f}, {np.median(x):.3f}" for x in shares]
        yield [name, "{}, {}".format(*sizes), *listed]


def mean_at(rate: float, effect: Any) -> float:
    """The mean of scores of which this share is above 0."""
    effects = effect((np.arange(100_000) + 0.5) / 100_000)
    return optimize.brentq(lambda x: stats.norm.cdf(x + effects).mean() - rate, -50, 50)


def of_clusters(name: str, unequal: bool, n_clusters: int, simulations: int) -> Iterator[str]:
    """The coverage of recall and FPR of a threshold, of each of `RATES`."""
    effect, shape = EFFECTS[name], (SEVERAL, OF_CLUSTER * n_clusters)
    for rates in RATES:
        rng = np.random.default_rng([unequal, n_clusters, *name.encode()])
        means = [mean_at(x, effect) for x in rates]
        inside = np.zeros(2)
        n_calls = -(-simulations // SEVERAL)
        for number in range(n_calls):
            shares = rng.lognormal(size=n_clusters) if unequal else np.ones(n_clusters)
            more = shape[1] - n_clusters
            drawn = rng.multinomial(more, shares / shares.sum()) if unequal else OF_CLUSTER - 1
            ids = np.arange(n_clusters).repeat(1 + drawn)
            labels = rng.random(shape) < 0.3
            effects = effect(rng.random((SEVERAL, n_clusters)))[:, ids]
            point = jm.operating_point(
                np.where(labels, *means) + effects + rng.standard_normal(shape),
                labels,
                threshold=0.0,
                clusters=ids,
                key=jax.random.key(number),
                n_resamples=RESAMPLES,
            )
            found = point.recall, point.fpr
            inside += [
                np.mean((x.low <= rate) & (rate <= x.high))
                for x, rate in zip(found, rates, strict=True)
            ]
        yield from (f"{x:.3f}" for x in inside / n_calls)


def rows_of_clusters(simulations: int) -> Iterator[list[str]]:
    for name in EFFECTS:
        for unequal in (False, True):
            for n_clusters in CLUSTERS:
                found = of_clusters(name, unequal, n_clusters, simulations)
                yield [name, "unequal" if unequal else "equal", str(n_clusters), *found]


def words_of_clusters(simulations: int) -> Iterator[str]:
    yield "## Clusters\n"
    yield f"{simulations} data sets; the standard error of 0.95 is {_error(simulations):.3f}."
    yield f"Coverage of the rates of a given threshold, of clusters of {OF_CLUSTER} items, or of as"
    yield "many on average, in lognormal shares. Three in ten are positive. The score of an item is"
    yield "the effect of its cluster and a standard normal number.\n"


def _error(simulations: int) -> float:
    return float((0.95 * 0.05 / simulations) ** 0.5)


def text_of(found: Iterator[list[str]]) -> str:
    return "\n".join(table(["rule", "positives, negatives", *NAMES], list(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--unknown", type=int, default=300, help="with an unknown prevalence")
    parser.add_argument("--few", type=int, default=2000, help="where few items are flagged")
    parser.add_argument("--clusters", type=int, default=300, help="of rates of clusters")
    parser.add_argument("--rules", nargs="*", default=list(RULES))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    for name in set(RULES) - set(options.rules):
        del RULES[name]
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    parts = []
    usual = RULES, LAWS, SIZES
    of_sample = "The share of positives is that of the sample, which varies"
    for title, known, simulations, grid in (
        ("The share of positives is given", True, options.simulations, usual),
        (of_sample, False, options.unknown, usual),
        ("Few flagged items, of other laws", False, options.few, (FEW, HELD_OUT, RARE)),
    ):
        if simulations:
            error = f"the standard error of 0.95 is {_error(simulations):.3f}"
            words = f"{simulations} data sets a law; {error}."
            found = text_of(rows(*grid, simulations, known))
            parts.append(f"## {title}\n\n{words}\n\n{found}")
    if options.clusters:
        head = [f"{x} {y:g}" for rates in RATES for x, y in zip(NAMES, rates, strict=False)]
        found = table(["effect", "sizes", "clusters", *head], [*rows_of_clusters(options.clusters)])
        parts.append("\n".join([*words_of_clusters(options.clusters), *found]))
    minutes = (time.perf_counter() - start) / 60
    text = f"""# Coverage of the intervals of operating_point

`python -m benchmarks.operating_points`: the lowest and the median coverage of 95 % intervals over
{len(LAWS)} laws of scores ({"; ".join(x.name for x in LAWS)}), with costs of
{COSTS["fp_cost"]:g} and {COSTS["fn_cost"]:g}, lognormal amounts and {RESAMPLES} resamples. Rates
and costs are those of the reported threshold in the population. {minutes:.0f} min.

"""
    text += "\n\n".join(parts) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
