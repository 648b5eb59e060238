"""`python -m benchmarks.clustered_comparisons`: two models on items in clusters.

How often `compare` finds equal models different, and unequal ones on as many clusters as
`sample_size` asks for. Of the laws of `benchmarks.clustered_intervals`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import jaxmetrics as jm
from benchmarks.clustered_intervals import LAWS, METRICS, Law, Values, as_scored, items_of
from benchmarks.tables import Row, Table, machine, show

POWER = 0.8
PILOT = 20_000  # clusters, at least
WORSE = 0.6  # times as far as in the first model are positives from negatives in the second
PLANNED = ("AUC", "partial AUC, 0.2", "average precision", "recall at 0.2")
FEWEST, MOST = 10, 1000  # clusters of a planned study that is simulated


def pair(law: Law, rng: Any, clusters: int, part: float = 1.0) -> tuple[Values, Values, Values]:
    """Scores `[2, n]` of two models, labels and clusters.

    Half of the variance of effects and of items is common to the models. The shift of positives in
    the second is `part` of that in the first.
    """
    ids, labels = items_of(law, rng, clusters)
    sign = np.where(labels | (not law.opposite), 1, -1)

    def noise() -> Values:
        return sign * law.effect(rng, clusters)[ids] + law.own * rng.normal(size=len(ids))

    common, each = noise(), np.stack([noise(), noise()])
    missed = ~labels & (rng.random((2, clusters)) < law.missed)[:, ids]
    shift = law.shift * np.array([[1.0], [part]])
    scores = (common + each) / np.sqrt(2) + shift * (labels | missed)
    return as_scored(law, scores), labels, ids


def rows_of_equal_models(simulations: int) -> Iterator[Row]:
    highest = dict.fromkeys(METRICS, 0.0)
    for name, law in LAWS.items():
        rng = np.random.default_rng([*name.encode()])
        found: dict[str, list[bool]] = {x: [] for x in METRICS}
        for _ in range(simulations):
            scores, labels, ids = pair(law, rng, law.clusters)
            for x, metric in METRICS.items():
                found[x].append(_differ(metric, scores, labels, ids))
        shares = {x: float(np.mean(y)) for x, y in found.items()}
        highest = {x: max(highest[x], y) for x, y in shares.items()}
        yield {"law": name} | {x: f"{y:.3f}" for x, y in shares.items()}
    yield {"law": "highest"} | {x: f"**{y:.3f}**" for x, y in highest.items()}


def rows_of_planned_studies(simulations: int) -> Iterator[Row]:
    for name, law in LAWS.items():
        seed = [*name.encode()]
        times = -(-PILOT // law.clusters)
        pilot = pair(law, np.random.default_rng([*seed, 1]), times * law.clusters, WORSE)
        row = {"law": name}
        for x in PLANNED:
            metric = METRICS[x]
            scores, labels, ids = pilot
            first, second = np.asarray(metric(scores, labels))
            needed = jm.sample_size(
                metric, scores, labels, difference=first - second, power=POWER, clusters=ids
            )
            clusters = int(needed.n_clusters) if np.isfinite(needed.n_clusters) else 0
            row[x] = f"{clusters:,}: "
            if not FEWEST <= clusters <= MOST:
                row[x] += "-"
                continue
            rng = np.random.default_rng([*seed, 2])
            drawn = (pair(law, rng, clusters, WORSE) for _ in range(simulations))
            row[x] += f"{np.mean([_differ(metric, *data) for data in drawn]):.3f}"
        yield row


def _differ(metric: Any, scores: Values, labels: Values, ids: Values) -> bool:
    return bool(jm.compare(metric, scores, labels, clusters=ids).p_value[0, 1] < 0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=500)
    simulations, start = parser.parse_args().simulations, time.perf_counter()
    warnings.simplefilter("ignore")
    print("# Comparisons of items in clusters\n")
    title = (
        f"`python -m benchmarks.clustered_comparisons --simulations {simulations}`: how often "
        "`compare` finds two equal models different at 5 %; the standard error is "
        f"{(0.05 * 0.95 / simulations) ** 0.5:.3f}. The laws are those of "
        "[intervals](clustered_intervals.md): how many independent items clusters count as was "
        "chosen on five of them, the rest of the rules of comparisons on other laws. Half of the "
        "variance of the effects, and of the items, is common to the "
        f"two models. {machine()}."
    )
    show(Table(title, rows_of_equal_models(simulations)))
    title = (
        f"The clusters that `sample_size` asks for, for a power of {POWER}, and the power of "
        "`compare` on so many. The positives of the second model are "
        f"{WORSE} times as far from the negatives; the pilot has {PILOT:,} clusters or more. "
        f"Studies of {FEWEST} to {MOST:,} clusters are simulated."
    )
    show(Table(title, rows_of_planned_studies(simulations)))
    print(f"{(time.perf_counter() - start) / 60:.0f} min.")


if __name__ == "__main__":
    main()
