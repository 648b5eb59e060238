"""`python -m benchmarks.power`: whether planned studies have the power, and intervals the width.

Data sets of the planned size are drawn from binormal laws; the pilot is large. They are
tested as `compare` does. NumPy simulates; the library plans, and finds the errors of `compare`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from benchmarks.comparisons import covariances, limits_of, quantile
from benchmarks.coverage import table
from benchmarks.model_pairs import binormal, placements

Values = np.ndarray[Any, Any]

PILOT = 100_000  # items of each class
POWER = 0.8
AT_ONCE = 4_000_000  # scores
# AUC of the first model, correlation of the two, positives, negatives for each.
PAIRS = (
    (0.7, 0.0, 200, 4),
    (0.7, 0.5, 100, 4),
    (0.7, 0.8, 50, 4),
    (0.7, 0.95, 20, 4),
    (0.7, 0.95, 200, 1),
    (0.7, 0.0, 2000, 1),
    (0.8, 0.0, 200, 4),
    (0.8, 0.5, 100, 4),
    (0.8, 0.8, 50, 4),
    (0.8, 0.95, 20, 4),
    (0.8, 0.8, 2000, 1),
    (0.9, 0.0, 200, 4),
    (0.9, 0.5, 200, 1),
    (0.9, 0.8, 50, 4),
    (0.9, 0.95, 20, 4),
    (0.9, 0.95, 500, 1),
    (0.95, 0.0, 500, 4),
    (0.95, 0.5, 200, 4),
    (0.95, 0.8, 200, 4),
    (0.95, 0.95, 50, 4),
    (0.98, 0.0, 2000, 1),
    (0.98, 0.8, 500, 4),
    (0.98, 0.95, 200, 4),
)
ONE = ((0.7, 50, 4), (0.8, 200, 1), (0.9, 50, 4), (0.9, 200, 4), (0.95, 100, 4), (0.98, 500, 1))


def pilot_of(aucs: tuple[float, float], r: float) -> tuple[Values, Values]:
    scores = binormal(aucs, r).draw(np.random.default_rng(0), (1, PILOT, PILOT))[0]
    return scores, np.arange(2 * PILOT) < PILOT


def difference_of(auc: float, r: float, n1: int, n0: int) -> tuple[float, Values, Values]:
    """The difference that has the power at this size, and the pilot of models that far apart."""
    difference, planned = 0.02, np.nan
    for _ in range(6):
        scores, labels = pilot_of((auc + difference, auc), r)
        grid = np.linspace(0.1, 3, 60) * difference
        sizes = {"n_positives": n1, "n_negatives": n0}
        planned = jm.power(jm.roc_auc, scores, labels, difference=grid, **sizes)
        difference = float(np.interp(POWER, np.asarray(planned), grid))
        difference = min(difference, 0.999 - auc)
    return difference, *pilot_of((auc + difference, auc), r)


def batches(simulations: int, n: int) -> Iterator[int]:
    """The size of each batch."""
    size = max(min(AT_ONCE // n, simulations), 1)
    for first in range(0, simulations, size):
        yield min(size, simulations - first)


def rejected(estimate: Values, error: Values, df: Values) -> Values:
    """Whether a two-sided test at 5 % finds the first model better."""
    found: Values = estimate > quantile(0.95, df) * error
    return found


def rows_of_pairs(simulations: int) -> Iterator[list[str]]:
    for auc, r, n1, ratio in PAIRS:
        n0 = ratio * n1
        difference, scores, labels = difference_of(auc, r, n1, n0)
        planned = jm.power(
            jm.roc_auc, scores, labels, difference=difference, n_positives=n1, n_negatives=n0
        )
        rng = np.random.default_rng([n1, n0, int(100 * auc), int(100 * r)])
        law = binormal((auc + difference, auc), r)
        shares: dict[str, list[Values]] = {"compare": [], "DeLong": []}
        for size in batches(simulations, 2 * (n1 + n0)):
            found, methods = limits_of(law.draw(rng, (size, n1, n0)), n1)
            for method in ("compare", "DeLong"):
                shares[method].append(rejected(found, *methods[method]))
        simulated = [np.concatenate(shares[x]).mean() for x in ("compare", "DeLong")]
        sizes = [f"{auc:g}", f"{r:g}", str(n1), str(n0)]
        yield [*sizes, f"{difference:.4f}", *(f"{float(x):.3f}" for x in (planned, *simulated))]


def rows_of_margins(simulations: int) -> Iterator[list[str]]:
    """Non-inferiority of equal models, with the margin that has the power."""
    for auc, r, n1, ratio in PAIRS[1::3]:
        n0 = ratio * n1
        scores, labels = pilot_of((auc, auc), r)
        grid = np.geomspace(1e-4, 0.5, 200)
        sizes = {"n_positives": n1, "n_negatives": n0}
        planned = np.asarray(jm.power(jm.roc_auc, scores, labels, margin=grid, **sizes))
        margin = float(np.interp(POWER, planned, grid))
        power = jm.power(jm.roc_auc, scores, labels, margin=margin, **sizes)
        rng = np.random.default_rng([1, n1, n0, int(100 * auc), int(100 * r)])
        found = []
        for size in batches(simulations, 2 * (n1 + n0)):
            estimate, methods = limits_of(binormal((auc, auc), r).draw(rng, (size, n1, n0)), n1)
            error, df = methods["compare"]
            found.append(estimate - quantile(0.9, df) * error > -margin)
        cells = [f"{auc:g}", f"{r:g}", str(n1), str(n0), f"{margin:.4f}"]
        yield [*cells, f"{float(power):.3f}", f"{np.concatenate(found).mean():.3f}"]


def rows_of_samples(simulations: int, by_default: int) -> Iterator[list[str]]:
    """Two samples, each with its model, by Welch's t of DeLong's variances, and by the default."""
    for auc, n1, ratio in (*ONE, (0.98, 100, 20)):
        n0 = ratio * n1
        scores, labels = pilot_of((auc, auc), 0.0)
        sizes = {"n_positives": n1, "n_negatives": n0}
        grid = np.linspace(0.001, 0.999 - auc, 300)
        given = {"paired": False, **sizes}
        planned = np.asarray(jm.power(jm.roc_auc, scores, labels, difference=-grid, **given))
        low = auc - float(np.interp(POWER, planned, grid))
        scores, labels = pilot_of((auc, low), 0.0)
        power = jm.power(jm.roc_auc, scores, labels, difference=auc - low, **given)
        rng = np.random.default_rng([2, n1, n0, int(100 * auc)])
        items = np.tile(np.arange(n1 + n0) < n1, 2), np.repeat([0, 1], n1 + n0)
        found, differ = [], []
        for size in batches(simulations, 2 * (n1 + n0)):
            drawn = binormal((auc, low), 0.0).draw(rng, (size, n1, n0))
            for both in drawn[: by_default - len(differ)]:
                p_value = jm.compare_samples(jm.roc_auc, both.ravel(), *items).p_value[0, 1]
                differ.append(float(p_value) < 0.05)
            by_class = placements(drawn, n1)
            parts = np.stack([covariances(x[:, [m]])[:, 0, 0] for x in by_class for m in (0, 1)])
            counts = np.array([n0, n0, n1, n1])[:, None]
            variance = parts.sum(axis=0)
            df = variance**2 / (parts**2 / (counts - 1)).sum(axis=0)
            values = by_class[1].mean(axis=-1)
            found.append(rejected(values[:, 0] - values[:, 1], np.sqrt(variance), df))
        cells = [f"{auc:g}", str(n1), str(n0), f"{auc - low:.4f}", f"{float(power):.3f}"]
        yield [*cells, f"{np.concatenate(found).mean():.3f}", f"{np.mean(differ):.3f}"]


def rows_of_values(simulations: int) -> Iterator[list[str]]:
    """One model against a value below its AUC, and against one above it."""
    for auc, n1, ratio in ONE:
        n0 = ratio * n1
        scores, labels = pilot_of((auc, auc), 0.0)
        sizes = {"n_positives": n1, "n_negatives": n0}
        rng = np.random.default_rng([4, n1, n0, int(100 * auc)])
        study = np.arange(n1 + n0) < n1
        drawn = stats.norm.ppf(auc) * 2**0.5 * study
        data = rng.standard_normal((simulations, n1 + n0)) + drawn
        for furthest in (auc - 0.5, auc - 0.9999):
            grid = np.linspace(0.001 * np.sign(furthest), furthest, 1000)
            planned = np.asarray(jm.power(jm.roc_auc, scores[0], labels, difference=grid, **sizes))
            at = int(np.argmax(planned >= POWER))
            value = auc - float(grid[at])
            found = [jm.compare_to_value(jm.roc_auc, x, study, value=value).p_value for x in data]
            share = np.mean(np.array(found) < 0.05)
            cells = [f"{auc:g}", str(n1), str(n0), f"{value:.4f}"]
            yield [*cells, f"{planned[at]:.3f}", f"{share:.3f}"]


def rows_of_widths(simulations: int) -> Iterator[list[str]]:
    """Mean widths of intervals in studies that were planned for a width."""
    for auc, n1, ratio in ONE:
        scores, labels = pilot_of((auc, auc), 0.0)
        # The width that n1 positives have by the normal formula.
        error = jm.standard_error(jm.roc_auc, scores[0], labels) * (PILOT / n1) ** 0.5
        width = 2 * special.ndtri(0.975) * float(error)
        needed = jm.sample_size(jm.roc_auc, scores[0], labels, width=width, ratio=ratio)
        m1, m0 = int(needed.n_positives), int(needed.n_negatives)
        rng = np.random.default_rng([3, n1, ratio, int(100 * auc)])
        drawn = stats.norm.ppf(auc) * 2**0.5 * (np.arange(m1 + m0) < m1)
        data = rng.standard_normal((simulations, m1 + m0)) + drawn
        found = jm.confidence_interval(jm.roc_auc, data, np.arange(m1 + m0) < m1)
        mean = float(np.mean(np.asarray(found.high - found.low)))
        yield [f"{auc:g}", f"{width:.4f}", str(m1), str(m0), f"{mean:.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start, k, few = time.perf_counter(), options.simulations, min(options.simulations, 1000)
    size = ["positives", "negatives"]
    sections = (
        (
            "Two models on the same items",
            ["AUC", "correlation", *size, "difference", "planned", "`compare`", "DeLong's z"],
            rows_of_pairs(k),
        ),
        (
            "Non-inferiority of an equal model, one-sided at 5 %",
            ["AUC", "correlation", *size, "margin", "planned", "simulated"],
            rows_of_margins(k),
        ),
        (
            "Two samples",
            ["AUC", *size, "difference", "planned", '`method="delong"`', "`compare_samples`"],
            rows_of_samples(k, few),
        ),
        (
            "One model against a value",
            ["AUC", *size, "value", "planned", "simulated"],
            rows_of_values(few),
        ),
        (
            "Width of an interval",
            ["AUC", "width asked for", *size, "mean width"],
            rows_of_widths(few),
        ),
    )
    parts = ["\n".join([f"## {x}", "", *table(head, list(rows))]) for x, head, rows in sections]
    minutes = (time.perf_counter() - start) / 60
    error, of_one = ((POWER * (1 - POWER) / x) ** 0.5 for x in (k, few))
    text = f"""# Power of planned studies

`python -m benchmarks.power`: the share of {k} data sets in which the better model is found to be
significantly better, at 5 %, beside the power that `power` says, from a pilot of {2 * PILOT} items.
Differences are those that have a power of {POWER:g}, whose standard error is {error:.3f}, and
{of_one:.3f} of one model and of `compare_samples`, of which there are {few}. Its limits near 1 are
wider than the t that is planned, which is that of `compare_samples` by method="delong". Widths are
those of the default intervals; they are planned on the logit scale. {minutes:.0f} min.

"""
    text += "\n\n".join(parts) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
