"""`python -m benchmarks.values`: the size of the test of a model against a value, its true one.

The populations are those of the coverage study of which no rule was made.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxmetrics as jm
from benchmarks.coverage import table
from benchmarks.populations import Population, populations

LEVEL, HIGH = 0.05, 0.08
SIZES = ((10, 40), (20, 20), (20, 200), (50, 200), (200, 1000))  # positives and negatives
METRICS: dict[str, Any] = {
    "AUC": jm.roc_auc,
    "partial AUC, FPR 0.2": partial(jm.partial_auc, max_fpr=0.2, scale="range"),
    "recall at FPR 0.1": partial(jm.recall_at_fpr, max_fpr=0.1),
}
TRUTHS = {
    "AUC": "roc_auc",
    "partial AUC, FPR 0.2": "partial_auc 0.2",
    "recall at FPR 0.1": "recall_at_fpr 0.1",
}
TOGETHER = 20  # data sets of one call, as if they were models


class Cell(NamedTuple):
    """Shares of the data sets in which the true value is refused at `LEVEL`."""

    population: str
    metric: str
    positives: int
    negatives: int
    found: float
    by_z: float


def cells_of(population: Population, metric: str, simulations: int) -> Iterator[Cell]:
    truth = population.truth((0.1, 0.2), 0.5)[TRUTHS[metric]]
    for n1, n0 in SIZES:
        rng = np.random.default_rng([n1, n0, *population.name.encode()])
        labels = np.arange(n1 + n0) < n1
        refused, by_z = [], []
        for _ in range(0, simulations, TOGETHER):
            drawn = (
                law.draw(rng, (TOGETHER, n))
                for law, n in ((population.positives, n1), (population.negatives, n0))
            )
            scores = np.concatenate([*drawn], axis=1)
            found = jm.compare_to_value(METRICS[metric], scores, labels, value=truth)
            refused.append(np.asarray(found.p_value) < LEVEL)
            z = np.abs(np.asarray(found.difference)) / np.asarray(found.standard_error)
            by_z.append(z > 1.96)
        yield Cell(population.name, metric, n1, n0, float(np.mean(refused)), float(np.mean(by_z)))


def rows_by_size(cells: list[Cell]) -> Iterator[list[str]]:
    for metric in METRICS:
        for n1, n0 in SIZES:
            mine = [c for c in cells if c[1:4] == (metric, n1, n0)]
            shares = [np.array([getattr(c, x) for c in mine]) for x in ("found", "by_z")]
            spans = [f"{np.median(x):.3f} (to {x.max():.3f})" for x in shares]
            yield [metric, str(n1), str(n0), *spans, *(f"{(x > HIGH).mean():.0%}" for x in shares)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000, help="of each set-up")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start, k = time.perf_counter(), options.simulations
    held_out = [x for x in populations() if x.held_out]
    cells = [cell for x in held_out for name in METRICS for cell in cells_of(x, name, k)]
    minutes = (time.perf_counter() - start) / 60
    head = ["metric", "positives", "negatives", "test", "z", f"test above {HIGH:g}", "z above"]
    highest = sorted(cells, key=lambda c: -c.found)[:10]
    listed = [
        [c.population, c.metric, f"{c.positives}, {c.negatives}", f"{c.found:.3f}", f"{c.by_z:.3f}"]
        for c in highest
    ]
    lines = [
        "# Tests against a value",
        "",
        f"`python -m benchmarks.values --simulations {k}`: the share of {k:,} data sets in which",
        f"the test of `compare_to_value` refuses the true value at {LEVEL:g}, in {len(held_out)}",
        "populations of which no rule was made; its standard error is",
        f"{(LEVEL * (1 - LEVEL) / k) ** 0.5:.3f}. z is the difference over its standard error,",
        f"which for the AUC is DeLong's. {minutes:.0f} min on a CPU.",
        "",
        "The median over the populations, and the highest; then the share of populations in which",
        f"it is above {HIGH:g}.",
        "",
        *table(head, list(rows_by_size(cells))),
        "",
        "The ten highest of all set-ups:",
        "",
        *table(["population", "metric", "sizes", "test", "z"], listed),
    ]
    text = "\n".join(lines) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
