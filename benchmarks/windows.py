"""`python -m benchmarks.windows`: comparisons of equal models by few negatives in the window.

None of the pairs of models was looked at when the rule was chosen, which was of normal scores.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxmetrics as jm
from benchmarks.coverage import table
from benchmarks.model_pairs import Pair, binormal, mixed, skewed, student

LEVEL, Z = 0.05, 1.96
PAIRS = {
    "exponential": skewed((3.0, 3.0)),
    "exponential, near perfect": skewed((30.0, 30.0)),
    "Student's t of 3": student((1.5, 1.5), 0.8, 3.0),
    "deviation of the positives 2": binormal((0.9, 0.9), 0.5, (2, 2)),
}
CORRELATIONS = (-0.3, 0.0, 0.5)
HEAVY = {
    **{f"mixtures, r = {r:g}": mixed(r) for r in CORRELATIONS},
    **{f"Student's t of 2.5, r = {r:g}": student((1.5, 1.5), r, 2.5) for r in CORRELATIONS},
}
METRICS = {
    "partial AUC": partial(jm.partial_auc, scale="mcclish"),
    "recall": jm.recall_at_fpr,
    "recall, linear": partial(jm.recall_at_fpr, method="linear"),
}
# Limits of the FPR, positives and negatives.
SIZES = [(0.01, n1, n0) for n0 in (30, 90, 120, 300, 1000) for n1 in (30, 200, 1000)]
SIZES += [(0.1, n1, n0) for n0 in (12, 30, 100) for n1 in (30, 200)]
# Three negatives within the limit are warned of, and four are not.
SIZES_OF_HEAVY = [(0.1, n1, n0) for n0 in (40, 100, 200) for n1 in (20, 60, 200)]
STUDIES: dict[str, tuple[dict[str, Pair], list[tuple[float, int, int]]]] = {
    "four pairs": (PAIRS, SIZES),
    "mixtures and heavy tails": (HEAVY, SIZES_OF_HEAVY),
}


class Cell(NamedTuple):
    """Shares of the data sets in which equal models differ at `LEVEL`."""

    study: str
    metric: str
    inside: float  # negatives
    found: float
    by_z: float


def cells(study: str, simulations: int) -> Iterator[Cell]:
    pairs, sizes = STUDIES[study]
    for name, pair in pairs.items():
        for limit, n1, n0 in sizes:
            labels = np.arange(n1 + n0) < n1
            rng = np.random.default_rng([n1, n0, *name.encode()])
            drawn = pair.draw(rng, (simulations, n1, n0))
            for metric, function in METRICS.items():
                of_limit = partial(function, max_fpr=limit)
                yield Cell(study, metric, round(limit * n0, 2), *rates(of_limit, drawn, labels))


def rates(metric: Any, drawn: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Rejections by `compare`, and by the difference over its standard error."""
    found = [jm.compare(metric, scores, labels, reference=0) for scores in drawn]
    p, d, error = (
        np.array([np.asarray(getattr(x, name))[1] for x in found])
        for name in ("p_value", "difference", "standard_error")
    )
    return float(np.mean(p < LEVEL)), float(np.mean(np.abs(d) > Z * error))


def report(simulations: int) -> Iterator[str]:
    yield "# Equal models, by few negatives in the window\n"
    yield f"`python -m benchmarks.windows --simulations {simulations}`: so many data sets"
    yield f"of a set-up, of {len(PAIRS)} pairs of equal models with 30, 200 and 1,000 positives,"
    yield f"and of {len(HEAVY)} of mixtures and heavy tails with 20, 60 and 200."
    yield "The share in which they differ at 5 %, from the lowest to the highest; the standard"
    yield f"error of 0.05 is {np.sqrt(0.0475 / simulations):.3f}. z: the difference over its"
    versions = ", ".join(f"{x} {version(x)}" for x in ("jax", "numpy", "scipy"))
    yield f"standard error. {versions}, Python {platform.python_version()}.\n"
    found = [x for study in STUDIES for x in cells(study, simulations)]
    rows = []
    for study, metric in product(STUDIES, METRICS):
        of_both = [x for x in found if (x.study, x.metric) == (study, metric)]
        for inside in sorted({x.inside for x in of_both}):
            mine = [x for x in of_both if x.inside == inside]
            spans = (
                f"{min(x):.3f} to {max(x):.3f}"
                for x in ([c.found for c in mine], [c.by_z for c in mine])
            )
            rows.append([study, metric, f"{inside:g}", str(len(mine)), *spans])
    head = ["scores", "metric", "negatives in the window", "set-ups", "compare", "z"]
    yield from table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__)
    parser.add_argument("--simulations", type=int, default=400, help="of each set-up")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    text = "\n".join(report(given.simulations)) + "\n"
    print(text, end="")
    if given.output:
        given.output.write_text(text)


if __name__ == "__main__":
    main()
