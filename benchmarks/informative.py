"""`python -m benchmarks.informative`: intervals where weights go with the scores.

What is sampled less often for its scores weighs more. Classes of which a share is missed have true
values that are known by hand; none of the other laws was looked at when the rule was chosen.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

import jaxmetrics as jm
from benchmarks.coverage import table
from benchmarks.operating_points import COSTS, Law, truths
from benchmarks.populations import Continuous

Values = np.ndarray[Any, Any]

LIMIT = 0.2  # of the FPR, and the FPR of the threshold
SIZES = (100, 1000)  # of each class
LARGEST_CLUSTER = 20
SEVERAL = 200  # data sets in one call
GOAL = 0.92
BANDS = {"none": 1e-3, "below 5": 5.0, "5 to 30": 30.0, "more": np.inf}  # heavy items
ROUNDING = 1e-6  # of results in single precision
METRICS: dict[str, Any] = {
    "AUC": jm.roc_auc,
    "partial AUC": partial(jm.partial_auc, max_fpr=LIMIT, scale="range"),
    "recall": partial(jm.recall_at_fpr, max_fpr=LIMIT),
    "by amount": partial(jm.recall_at_fpr, max_fpr=LIMIT),
    "AP": jm.average_precision,
}
RATES = ("recall", "fpr", "precision", "npv", "cost")
MEANS = ("mean", "of clusters")
MISSED = "A share is missed"
LOW = "Low scores are sampled less often"
HIGH = "High negatives are sampled less often"
INDEPENDENT = "Weights do not go with the scores"
HEADINGS = (*METRICS, *(f"{x} at t" for x in RATES), *MEANS)


class Apart(NamedTuple):
    """Scores from 1 to 2 with probability `share`, else from -1 to 0: around those from 0 to 1."""

    share: float

    def upper(self, x: Values) -> Values:
        low = self.share + (1 - self.share) * np.clip(-x, 0, 1)
        return np.where(x < 1, low, self.share * np.clip(2 - x, 0, 1))

    def upper_inverse(self, share: Values) -> Values:
        low = -(share - self.share) / (1 - self.share)
        return np.where(share < self.share, 2 - share / self.share, low)


class Sampled(NamedTuple):
    """A class whose items below and above `cut` are sampled as often as 1 / their weight.

    `sigma`: all weights are multiplied by lognormal numbers that are independent of the scores.
    """

    law: Any
    cut: float = 0.5
    below: float = 1.0
    above: float = 1.0
    sigma: float = 0.0

    def _sampled(self) -> tuple[float, float]:
        share = float(self.law.upper(np.float64(self.cut)))
        return (1 - share) / self.below, share / self.above

    @property
    def mean_weight(self) -> float:
        return 1 / sum(self._sampled())

    @property
    def heavy(self) -> float:
        """The share of the sampled items that have the larger of two weights."""
        of_weight = dict(zip((self.below, self.above), self._sampled(), strict=True))
        return of_weight[max(of_weight)] * self.mean_weight if len(of_weight) > 1 else 0.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Values, Values]:
        """Scores and weights."""
        is_above = rng.random(shape) < self._sampled()[1] * self.mean_weight
        u, share = rng.random(shape), self.law.upper(np.float64(self.cut))
        scores = self.law.upper_inverse(np.where(is_above, u * share, share + u * (1 - share)))
        weights = np.where(is_above, self.above, self.below)
        return scores, weights * rng.lognormal(sigma=self.sigma, size=shape)


class Setup(NamedTuple):
    """Classes, and those whose rates at `threshold` are asked for."""

    name: str
    positives: Sampled
    negatives: Sampled
    threshold: float
    negatives_at: Sampled


def setups() -> Iterator[tuple[str, list[Setup]]]:
    """By kind."""
    shares = (0.02, 7.0), (0.05, 4.0), (0.1, 3.0), (0.2, 2.0), (0.1, 1 / 3)
    found = []
    for a, k in shares:
        hit = (1 - a) / (1 - a + k * a)
        positives = Sampled(Apart(hit), below=k)
        at = Sampled(Apart(1 - hit), above=k)
        between = Sampled(Continuous(stats.uniform()))
        found.append(Setup(f"{100 * a:.0f} % weigh {k:.2g}", positives, between, 0.5, at))
    yield MISSED, found

    laws = {
        "gamma of 2, scale 4": (stats.gamma(2, 0, 4), stats.gamma(2)),
        "Student's t of 3, shift 2": (stats.t(3, 2), stats.t(3)),
        "exponential, scale 8": (stats.expon(0, 8), stats.expon()),
    }
    found = []
    for name, law in laws.items():
        for k in (8.0, 20.0):
            cut = law[1].ppf(0.7)
            classes = [Sampled(Continuous(x), cut, below=k) for x in law]
            found.append(_continuous(f"{name}, low ones weigh {k:g}", *classes))
    yield LOW, found

    positive, negative = (Continuous(stats.norm(x)) for x in (stats.norm.ppf(0.9) * 2**0.5, 0))
    found = []
    for a, k in (*shares[:4], (0.03, 10.0), (0.01, 30.0)):
        share = k * a / (1 - a + k * a)
        high = Sampled(negative, stats.norm.isf(share), above=k)
        found.append(_continuous(f"{100 * a:.0f} % weigh {k:g}", Sampled(positive), high))
    yield HIGH, found

    found = []
    for sigma in (0.0, 0.5, 1.0):
        classes = [Sampled(x, sigma=sigma) for x in (positive, negative)]
        name = f"lognormal, sigma {sigma:g}" if sigma else "all are equal"
        found.append(_continuous(name, *classes))
    yield INDEPENDENT, found


def _continuous(name: str, positives: Sampled, negatives: Sampled) -> Setup:
    threshold = float(negatives.law.upper_inverse(np.float64(LIMIT)))
    return Setup(name, positives, negatives, threshold, negatives)


def truth_of(setup: Setup) -> dict[str, float]:
    """The values of the population, by heading; areas from a fine grid of recalls."""
    positives, negatives = setup.positives, setup.negatives
    grid = (np.arange(400_000) + 0.5) / 400_000
    fpr = negatives.law.upper(positives.law.upper_inverse(grid))
    ratio = positives.mean_weight / negatives.mean_weight
    area = float(np.mean(1 - fpr))
    recall = float(positives.law.upper(negatives.law.upper_inverse(np.float64(LIMIT))))
    values = {
        "AUC": area,
        "partial AUC": float(np.mean(np.maximum(1 - fpr / LIMIT, 0))),
        "recall": recall,
        "by amount": recall,
        "AP": float(np.mean(ratio * grid / (ratio * grid + fpr))),
    }
    share = positives.mean_weight / (positives.mean_weight + setup.negatives_at.mean_weight)
    law = Law(setup.name, positives.law, setup.negatives_at.law)
    rates = truths(law, np.float64(setup.threshold), share)
    values |= {f"{x} at t": float(rates[x]) for x in RATES}
    return values | dict.fromkeys(MEANS, area)


def intervals(setup: Setup, rng: np.random.Generator, simulations: int, n: int) -> dict[str, Any]:
    """The limits of each heading, of n items of each class."""
    shape = simulations, n
    found, weight = setup.positives.draw(rng, shape)
    others = setup.negatives.draw(rng, shape)
    scores, weights = (np.concatenate(x, 1) for x in zip((found, weight), others, strict=True))
    labels = np.arange(2 * n) < n
    limits = {}
    for name, metric in METRICS.items():
        given = {"weights": weights}
        if name == "by amount":
            given = {"amounts": weights, "weights": np.where(labels, 1.0, weights)}
        limits[name] = jm.confidence_interval(metric, scores, labels, **given)
    if setup.negatives_at is not setup.negatives:
        others = setup.negatives_at.draw(rng, shape)
        scores, weights = (np.concatenate(x, 1) for x in zip((found, weight), others, strict=True))
    point = jm.operating_point(scores, labels, threshold=setup.threshold, weights=weights, **COSTS)
    limits |= {f"{x} at t": getattr(point, x) for x in RATES}
    values = 1 - setup.negatives.law.upper(found)
    limits["mean"] = jm.mean_interval(values, weights=weight)
    limits["of clusters"] = of_clusters(values, weight / min(setup.positives[2:4]))
    return limits


def of_clusters(values: Values, sizes: Values) -> Any:
    """Each value is that of all items of a cluster, of which there are so many."""
    n, most = values.shape[1], int(min(LARGEST_CLUSTER, np.ceil(sizes.max())))
    item = np.tile(np.arange(most), n)
    return jm.mean_interval(
        values.repeat(most, axis=1),
        clusters=np.arange(n).repeat(most),
        where=item < sizes.repeat(most, axis=1),
    )


class Cell(NamedTuple):
    """The coverage of a set-up with n items of each class, by heading."""

    kind: str
    name: str
    n: int
    heavy: tuple[float, float]  # positives and negatives, as expected
    coverage: dict[str, float]


def cells(simulations: int) -> Iterator[Cell]:
    n_calls = -(-simulations // SEVERAL)
    for kind, of_kind in setups():
        for n in SIZES:
            for setup in of_kind:
                truth, inside = truth_of(setup), dict.fromkeys(HEADINGS, 0)
                rng = np.random.default_rng([n, *setup.name.encode()])
                for _ in range(n_calls):
                    for name, found in intervals(setup, rng, SEVERAL, n).items():
                        value = truth[name]
                        low, high = np.asarray(found.low), np.asarray(found.high)
                        within = (low <= value + ROUNDING) & (value - ROUNDING <= high)
                        inside[name] += int(within.sum())
                coverage = {x: y / (n_calls * SEVERAL) for x, y in inside.items()}
                heavy = n * setup.positives.heavy, n * setup.negatives.heavy
                yield Cell(kind, setup.name, n, heavy, coverage)


def shown(coverage: float) -> str:
    return f"**{coverage:.3f}**" if coverage < GOAL else f"{coverage:.3f}"


WORDS = f"""
How often 95 % intervals hold the true value, of weights that tell of the scores. Below {GOAL} is
bold. `heavy`: how many positives and negatives of the larger of two weights a sample has on
average. AUC, partial AUC, recall at an FPR of {LIMIT:g} by weights and by amounts, and average
precision (AP) are closed forms of `confidence_interval`; by amounts, negatives have their weights
and positives amounts in place of them, with the same limits here. `at t`: what a threshold does, by
`operating_point`. The mean is that of the share of the negatives that are below a positive, whose
true value is the AUC: by `mean_interval` with weights, and of clusters of so many equal values as
the weight, {LARGEST_CLUSTER} at most. First the lowest and the median, by the number of heavy items
in the class that has fewer of them, if any.
"""
WHY = """
- **Below 0.92**: fewer than about five heavy items decide. Of two expected, 13 % of the samples
  have none, and of 0.7 half: no missed positive is then in the sample, whose value is too high, and
  nothing in it tells so. With seven or ten, areas and the mean may still have 0.91. What does not
  rest on the heavy items, as the mean of positives does not on high negatives, holds.
- **High negatives** that are lacking or few make the FPR too low and the partial area too high; a
  recall at an FPR, whose limits allow for other thresholds, suffers less.
- **Above 0.985**: rates at a threshold are never of more draws than Kish's size. Where the heavy
  items are all on one side of the threshold, as low negatives are, they vary less than that: with
  1,000 of a class their limits are up to twice as wide as they need be. NPV and cost follow.
"""
OF_KIND = {
    MISSED: """Of each sample a share, the first number, is missed and weighs the second; others
weigh 1. The values are known by hand. The positives are above all negatives or below; at t, the
negatives of the same share are above. The rule was found on such classes.""",
    LOW: """Items of either class below the 70 % quantile of the negatives weigh 8 or 20. True
values are by numerical integration. These laws had no part in the rule.""",
    HIGH: """Normal scores, AUC 0.9. Of the sampled negatives a share, the first number, is above
all others and weighs the second. In the last four of each size these alone decide the threshold of
the FPR.""",
    INDEPENDENT: """Controls: normal scores, AUC 0.9, weights of both classes.""",
}


def fewest_heavy(cell: Cell) -> str:
    """Of the class that has fewer, if it has any."""
    fewest = min((x for x in cell.heavy if x), default=0.0)
    return next(x for x, most in BANDS.items() if fewest <= most - ROUNDING)


def summary(found: list[Cell]) -> Iterator[str]:
    """The lowest and the median coverage by the number of heavy items."""
    rows = []
    for band in BANDS:
        of = [x for x in found if fewest_heavy(x) == band]
        spans = ([x.coverage[y] for x in of] for y in HEADINGS)
        listed = (f"{shown(min(x))}, {shown(float(np.median(x)))}" for x in spans)
        rows.append([band, str(len(of)), *listed])
    yield from table(["heavy", "set-ups", *HEADINGS], rows)


def report(simulations: int) -> Iterator[str]:
    start = time.process_time()
    found = list(cells(simulations))
    minutes = (time.process_time() - start) / 60
    yield "# Intervals where weights go with the scores\n"
    yield f"`python -m benchmarks.informative --simulations {simulations}`: so many data sets of a"
    yield f"set-up; the standard error of 0.95 is {np.sqrt(0.0475 / simulations):.3f}."
    versions = ", ".join(f"{x} {version(x)}" for x in ("jax", "numpy", "scipy"))
    yield f"{minutes:.0f} min of a processor. {versions}, Python {platform.python_version()}."
    yield WORDS
    yield from summary(found)
    yield WHY.rstrip()
    for kind, words in OF_KIND.items():
        yield f"\n## {kind}\n\n{words}\n"
        rows = [
            [x.name, f"{x.n:,}", "{:.0f}, {:.0f}".format(*x.heavy)]
            + [shown(x.coverage[y]) for y in HEADINGS]
            for x in found
            if x.kind == kind
        ]
        yield from table(["set-up", "of a class", "heavy", *HEADINGS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.informative", description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000, help=f"in steps of {SEVERAL}")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    # Programs run for seconds and are compiled for minutes.
    jax.config.update("jax_disable_most_optimizations", True)
    text = "\n".join(report(given.simulations)) + "\n"
    print(text, end="")
    if given.output:
        given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
