"""`python -m benchmarks.powered`: coverage and width of `prediction_powered_interval`.

A share of the items is labelled, at random or by chances that rise with the score. The truth is the
metric of the population.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy import special

import jaxmetrics as jm
from benchmarks.coverage import table

Values = np.ndarray[Any, Any]
Sampled = tuple[Values, Values | None]  # which items are labelled, and the chances

METRICS: dict[str, Callable[..., Any]] = {
    "AUC": jm.roc_auc,
    "partial AUC, FPR 0.2": partial(jm.partial_auc, max_fpr=0.2),
    "recall at FPR 0.1": partial(jm.recall_at_fpr, max_fpr=0.1),
    "average precision": jm.average_precision,
}
SHIFT = 1.5  # of the positives' normal scores
POPULATION = 2_000_000
BATCH = 50
# Items, share of positives, share labelled.
SETTINGS = ((4_000, 0.3, 0.05), (20_000, 0.1, 0.05), (20_000, 0.3, 0.05))
FEW = tuple((n, 0.1, 0.05) for n in (2_000, 4_000, 8_000, 12_000))
FACTOR = 10.0  # of the highest chance of being labelled to the lowest


def _annotator(rng: np.random.Generator, labels: Values, share: float) -> Values:
    """The label, but for one item in 16 that of another item."""
    return np.where(rng.random(labels.size) < 15 / 16, labels, rng.random(labels.size) < share)


def _few_errors(rng: np.random.Generator, labels: Values, share: float) -> Values:
    """The label, of which 3 % are wrong."""
    return labels ^ (rng.random(labels.size) < 0.03)


def _probability(rng: np.random.Generator, labels: Values, share: float) -> Values:
    """The calibrated probability from another normal feature, 3.6 apart."""
    feature = rng.normal(size=labels.size) + 3.6 * labels
    return np.asarray(special.expit(special.logit(share) + 3.6 * feature - 3.6**2 / 2))


def _useless(rng: np.random.Generator, labels: Values, share: float) -> Values:
    return rng.random(labels.size) < share


PROXIES = {
    "annotator": _annotator,
    "few errors": _few_errors,
    "probability": _probability,
    "useless": _useless,
}


def _at_random(rng: np.random.Generator, scores: Values, share: float) -> Sampled:
    return rng.permutation(scores.size) < share * scores.size, None


def _rising(rng: np.random.Generator, scores: Values, share: float) -> Sampled:
    """Known chances that rise with the score, the highest `FACTOR` times the lowest."""
    chances = _chances(scores.argsort().argsort() / scores.size, share)
    return rng.random(scores.size) < chances, chances


def _strata(rng: np.random.Generator, scores: Values, share: float) -> Sampled:
    """Such chances for each fifth of the scores, estimated by the share labelled."""
    stratum = 5 * scores.argsort().argsort() // scores.size
    labelled = rng.random(scores.size) < _chances(stratum / 4, share)
    found = np.bincount(stratum, labelled) / np.bincount(stratum)
    return labelled, found[stratum]


def _chances(rank: Values, share: float) -> Values:
    found = FACTOR**rank
    return np.asarray(share * found / found.mean())


SAMPLINGS = {"at random": _at_random, "known chances": _rising, "strata": _strata}


def draw(rng: np.random.Generator, n: int, share: float) -> tuple[Values, Values]:
    labels = rng.random(n) < share
    return (rng.normal(size=n) + SHIFT * labels).astype(np.float32), labels


def correlation(metric: Callable[..., Any], name: str, share: float) -> float:
    """That of an item's influence and its expectation from the proxy, in a large sample."""
    rng = np.random.default_rng(1)
    scores, labels = draw(rng, 20_000, share)
    proxy = PROXIES[name](rng, labels, share)
    phi = np.asarray(jm.influence(metric, scores, labels)) / np.where(
        labels, labels.mean(), 1 - labels.mean()
    )
    order = np.argsort(scores)
    of_class = [
        np.interp(scores, scores[order][labels[order] == x], phi[order][labels[order] == x])
        for x in (False, True)
    ]
    expected = (1 - proxy) * of_class[0] + proxy * of_class[1]
    return float(np.corrcoef(phi, expected)[0, 1])


Case = tuple[str, str, str, tuple[int, float, float]]  # metric, proxy, sampling, setting
CASES: list[Case] = [
    (metric, proxy, sampling, setting)
    for sampling in SAMPLINGS
    for metric in METRICS
    for proxy in PROXIES
    for setting in SETTINGS[: 3 if sampling == "at random" else 2]
    if proxy in {"annotator", "useless"} or (sampling == "at random" and proxy == "probability")
]
FEW_CASES: list[Case] = [
    ("AUC", proxy, "at random", setting) for proxy in PROXIES for setting in FEW
]


@cache
def program_of(metric: str, *, sampled: bool) -> Callable[..., Any]:
    """Of many data sets: the intervals with a proxy, of the labels alone, and without a proxy."""
    function = METRICS[metric]

    def of_one(scores: Any, labels: Any, proxy: Any, known: Any, chances: Any) -> Any:
        chances = chances if sampled else None
        found = jm.prediction_powered_interval(
            function, scores, labels, proxy, labelled=known, sampling_probability=chances
        )
        weights = None if chances is None else 1 / chances
        alone = jm.confidence_interval(function, scores, labels, weights=weights, where=known)
        return [(x.low, x.high) for x in (found, found.labelled, alone)]

    program: Callable[..., Any] = jax.jit(jax.vmap(of_one))
    return program


def row_of(
    metric: str,
    proxy: str,
    sampling: str,
    setting: tuple[int, float, float],
    simulations: int,
) -> list[str]:
    n, share, labelled = setting
    function = METRICS[metric]
    rng = np.random.default_rng([n, int(100 * share), *f"{metric}{proxy}".encode()])
    truth = float(function(*draw(np.random.default_rng(0), POPULATION, share)))
    found, positives = [], 0
    for _ in range(simulations // BATCH):
        data = []
        for _ in range(BATCH):
            scores, labels = draw(rng, n, share)
            known, chances = SAMPLINGS[sampling](rng, scores, labelled)
            guess = PROXIES[proxy](rng, labels, share).astype(np.float32)
            data.append((scores, labels, guess, known, known if chances is None else chances))
            positives += int(labels[known].sum())
        program = program_of(metric, sampled=chances is not None)
        found.append(np.array(program(*map(np.stack, zip(*data, strict=True))), float))
    low, high = np.concatenate(found, axis=-1).swapaxes(0, 1)
    covered = ((low <= truth) & (truth <= high)).mean(axis=-1)
    width = np.nanmean(high - low, axis=-1)
    return [
        metric,
        proxy,
        sampling,
        f"{correlation(function, proxy, share):.2f}",
        f"{n:,}",
        f"{positives / simulations:.0f}",
        *(f"{x:.3f}" for x in covered),
        *(f"{width[0] / x:.2f}" for x in width[1:]),
    ]


HEAD = [
    "metric",
    "proxy",
    "labelled",
    "correlation",
    "items",
    "labelled positives",
    "coverage",
    "of the labelled alone",
    "of `confidence_interval`",
    "width to the labelled alone",
    "to `confidence_interval`",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--few", action="store_true", help="10 to 60 labelled positives")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    rows = []
    for case in FEW_CASES if options.few else CASES:
        rows.append(row_of(*case, options.simulations))
        print(*rows[-1], sep=" | ", flush=True)
    error = (0.95 * 0.05 / options.simulations) ** 0.5
    minutes = (time.perf_counter() - start) / 60
    text = f"""# Coverage of prediction_powered_interval

`python -m benchmarks.powered --simulations {options.simulations}`: 95 % intervals, 5 % of the items
labelled, normal scores {SHIFT:g} apart. The proxy is the label with errors, or a calibrated
probability, or has nothing to do with the label. Items are labelled at random; or with known
chances that rise with the score, the highest {FACTOR:g} times the lowest; or with such chances by
fifths of the scores, which are estimated by the shares labelled. The correlation is that of an
item's influence and what the proxy expects. "Labelled alone" is the field `labelled`, without a
proxy; `confidence_interval` is that of the labelled items, weighted by the inverse chances. The
standard error of 0.95 is {error:.3f}. {minutes:.0f} min.

"""
    text += "\n".join(table(HEAD, rows)) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
