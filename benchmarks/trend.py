"""`python -m benchmarks.trend`: the size of tests of a trend over slices, and its coverage.

Weights and errors were chosen on the tuned populations; the others are held out. A trend mixes a
rising share of negatives' scores among the positives, so that the AUC falls along a line.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from benchmarks import curve_moments
from benchmarks.curve_moments import Runs
from benchmarks.populations import Mixture, Population, populations
from benchmarks.slices import METRICS, drawn
from benchmarks.tables import Row, Table, show
from jaxmetrics.inference._intervals import areas
from jaxmetrics.inference._trend_line import fit_line

N_SLICES = (6, 12, 24)
POSITIVES = (10, 20, 50, 200)
LAYOUTS = ("equal", "growing fourfold", "falling prevalence")
MIXED = 0.3  # the share that the last slice has, of a trend
ROWS = 2_000_000  # runs in memory at a time


class Slopes(NamedTuple):
    """Slopes, their errors and degrees of freedom, `[data_sets]`, and p-values of any change."""

    slope: Any
    error: Any
    df: Any
    any_change: Any = np.nan


class Sample(NamedTuple):
    """AUCs, the widths of their intervals, and the variances of negatives and positives
    `[slices, data_sets]`, and the sizes."""

    auc: Any
    width: Any
    parts: tuple[Any, Any]
    sizes: tuple[Any, Any]
    times: Any


def sizes_of(layout: str, n_slices: int, positives: int) -> tuple[Any, Any]:
    """Negatives and positives of each slice."""
    growth = np.geomspace(1, 4, n_slices) if layout == LAYOUTS[1] else np.ones(n_slices)
    ratio = np.geomspace(2, 20, n_slices) if layout == LAYOUTS[2] else np.full(n_slices, 5)
    n1 = np.round(positives * growth).astype(int)
    return np.round(n1 * ratio).astype(int), n1


def sampled(
    population: Population, layout: str, n_slices: int, positives: int, trend: bool, n: int
) -> Sample:
    rng = np.random.default_rng((n_slices, positives, LAYOUTS.index(layout)))
    sizes = sizes_of(layout, n_slices, positives)
    shares = np.linspace(0, MIXED, n_slices) if trend else np.zeros(n_slices)
    auc, width, parts = [], [], []
    for n0, n1, share in zip(*sizes, shares, strict=True):
        mixed = Mixture(share, population.positives, population.negatives)
        own = population._replace(positives=mixed) if share else population
        step = max(ROWS // (2 * n1 + 1), 1)
        found = [
            curve_moments.of_auc(Runs(*own.draw(rng, min(step, n - i), n1, n0)))[0]
            for i in range(0, n, step)
        ]
        auc.append(np.concatenate([x.estimate for x in found]))
        limits = (areas.auc(x, np.float64(0.95)) for x in found)
        width.append(np.concatenate([high - low for low, high in limits]))
        of_classes = (np.concatenate([x.variances[k] for x in found]) for k in (0, 1))
        parts.append([v / size for v, size in zip(of_classes, (n0, n1), strict=True)])
    v0, v1 = (np.stack([x[k] for x in parts]) for k in (0, 1))
    n0, n1 = (x.astype(float) for x in sizes)
    return Sample(np.stack(auc), np.stack(width), (v0, v1), (n0, n1), np.arange(n_slices) * 1.0)


# ---- the ways


def library(x: Sample) -> Slopes:
    used = np.ones(len(x.times), bool)
    error = np.sqrt(x.parts[0] + x.parts[1])
    found = fit_line(x.auc, error, x.width, x.sizes, x.times, used, np.float64(0.95))
    return Slopes(*(found[x] for x in ("slope", "standard_error", "df", "f_p_value")))


def _least_squares(values: Any, weights: Any, times: Any, df: Any) -> Slopes:
    """By weights that are taken for inverse variances."""
    t = times[:, None] - (weights * times[:, None]).sum(axis=0) / weights.sum(axis=0)
    squares = (weights * t**2).sum(axis=0)
    mean = (weights * values).sum(axis=0) / weights.sum(axis=0)
    q = (weights * (values - mean) ** 2).sum(axis=0)
    p = stats.chi2.sf(q, len(times) - 1)
    return Slopes((weights * t * values).sum(axis=0) / squares, squares**-0.5, df, p)


def inverse_variance(x: Sample) -> Slopes:
    """By DeLong's variances; a slice without one has the least of the others."""
    v = x.parts[0] + x.parts[1]
    v = np.where(v > 0, v, np.min(np.where(v > 0, v, np.inf), axis=0))
    return _least_squares(x.auc, 1 / v, x.times, np.inf)


def logit(x: Sample) -> Slopes:
    """The same on the logit scale."""
    least = 0.5 / np.sqrt(x.sizes[0] * x.sizes[1])[:, None]
    a = np.clip(x.auc, least, 1 - least)
    v = (x.parts[0] + x.parts[1]) / (a * (1 - a)) ** 2
    v = np.where(v > 0, v, np.median(v, axis=0))
    return _least_squares(special.logit(a), 1 / v, x.times, np.inf)


def pooled(x: Sample) -> Slopes:
    """By variances of the counts: those of the influence values of each class, pooled."""
    n = [size[:, None] for size in x.sizes]
    of_class = [
        ((size - 1) * part * size).sum(axis=0) / (size - 1).sum()
        for size, part in zip(n, x.parts, strict=True)
    ]
    v = of_class[0] / n[0] + of_class[1] / n[1]
    return _least_squares(x.auc, 1 / v, x.times, (n[1] - 1).sum())


def residuals(x: Sample) -> Slopes:
    """By the library's weights, and the deviations of the slices from the line."""
    h = (x.sizes[0] * x.sizes[1] / (x.sizes[0] + x.sizes[1]))[:, None]
    found = _least_squares(x.auc, h + 0 * x.auc, x.times, len(x.times) - 2)
    t = x.times[:, None] - (h * x.times[:, None]).sum(axis=0) / h.sum(axis=0)
    mean = (h * x.auc).sum(axis=0) / h.sum(axis=0)
    left = (h * (x.auc - mean - found.slope * t) ** 2).sum(axis=0) / found.df
    return found._replace(error=found.error * np.sqrt(left), any_change=np.nan)


METHODS = {
    "trend": library,
    "pooled variances": pooled,
    "residuals": residuals,
    "inverse variances": inverse_variance,
    "inverse variances, logit": logit,
}


# ---- the tables


class Result(NamedTuple):
    """Shares of the data sets of a set-up."""

    held_out: bool
    positives: int
    method: str
    size: float
    any_change: float
    coverage: float
    width: float


def results_of(population: Population, setup: tuple[str, int, int], n: int) -> Iterator[Result]:
    _, n_slices, positives = setup
    auc = population.truth((), 0.5)["roc_auc"]
    slope = -MIXED * (auc - 0.5) / (n_slices - 1)
    none, some = (sampled(population, *setup, trend, n) for trend in (False, True))
    widths = {}
    for name, method in METHODS.items():
        with np.errstate(all="ignore"):
            found, moved = method(none), method(some)
            p = 2 * stats.t.sf(abs(found.slope / found.error), found.df)
            margin = stats.t.ppf(0.975, moved.df) * moved.error
        widths[name] = np.nanmean(margin)
        on_logit = name.endswith("logit")
        yield Result(
            population.held_out,
            positives,
            name,
            float(np.mean(p < 0.05)),
            np.nan if name == "residuals" else float(np.mean(found.any_change < 0.05)),
            np.nan if on_logit else float(np.mean(abs(moved.slope - slope) <= margin)),
            np.nan if on_logit else float(widths[name] / widths["trend"]),
        )


def rows_of_populations(n: int, quick: bool) -> Iterator[Row]:
    chosen = populations()[::9] if quick else populations()
    setups = [(x, s, n1) for x in LAYOUTS for s in N_SLICES for n1 in POSITIVES]
    setups = setups[::7] if quick else setups
    found = [y for x in chosen for setup in setups for y in results_of(x, setup, n)]
    for held_out in (False, True):
        for positives in POSITIVES:
            for method in METHODS:
                of = [
                    x
                    for x in found
                    if (x.held_out, x.positives, x.method) == (held_out, positives, method)
                ]
                if of:
                    yield {
                        "populations": "held out" if held_out else "tuned",
                        "positives a slice": f"{positives}",
                        "method": method,
                        **_summary(of),
                    }


def _summary(some: list[Result]) -> Row:
    size, change, coverage, width = (
        np.array([getattr(x, key) for x in some])
        for key in ("size", "any_change", "coverage", "width")
    )

    def two(values: Any, extreme: Any) -> str:
        return "" if np.isnan(values).all() else f"{values.mean():.3f}, {extreme(values):.3f}"

    return {
        "size: mean, highest": two(size, np.max),
        "any change": two(change, np.max),
        "coverage: mean, lowest": two(coverage, np.min),
        "width": "" if np.isnan(width).all() else f"{np.median(width):.2f}",
    }


def rows_of_metrics(n: int) -> Iterator[Row]:
    """The public functions: the trend of a model, and of the gap of two."""
    for name, metric in METRICS.items():
        for auc in (0.75, 0.95):
            for positives in (20, 100):
                rng = np.random.default_rng(0)
                errors = np.zeros(4)
                for _ in range(n):
                    found = jm.trend(jm.slices(metric, *drawn(rng, auc, 12, positives)))
                    assert found.models is not None
                    p = found.p_value[0], found.f_p_value[0]
                    gap = found.models.p_value[0, 1], found.models.f_p_value[0, 1]
                    errors += [x < 0.05 for x in (*p, *gap)]
                yield {
                    "metric": name,
                    "AUC": f"{auc:.2f}",
                    "positives a slice": f"{positives}",
                    **{
                        key: f"{x / n:.3f}"
                        for key, x in zip(
                            ("trend", "any change", "trend of the gap", "any change of the gap"),
                            errors,
                            strict=True,
                        )
                    },
                }


FAILING = (  # whether held out; shares of the positives that fail by slice; positives, negatives
    (False, (0.002, 0.02), 25, 55),
    (False, (0, 0.005, 0.01, 0.015, 0.02, 0.025), 25, 55),
    (False, (0.01, 0.05), 20, 200),
    (False, (0.001, 0.03), 50, 200),
    (False, (0.1, 0.15), 25, 55),
    (True, (0.004, 0.03, 0), 30, 100),
    (True, (0.06, 0), 20, 60),
    (True, (0.01, 0.01, 0.03, 0.05), 40, 80),
    (True, (0.002, 0.01), 100, 300),
    (True, (0.02, 0.1), 25, 50),
)


def rows_near_one(n: int) -> Iterator[Row]:
    """Slices of which many have no failure. Where held out, those that fail have scores of
    negatives, of heavy tails; else they are below all negatives."""
    for held_out, shares, positives, negatives in FAILING:
        rng, times = np.random.default_rng(0), np.arange(len(shares))
        labels = np.tile(np.arange(positives + negatives) < positives, len(shares))
        month = times.repeat(positives + negatives)
        true = -np.polyfit(times, shares, 1)[0] / (2 if held_out else 1)
        held, by_errors = 0, 0
        for _ in range(n):
            fails = rng.random(len(labels)) < np.array(shares)[month]
            scores = rng.standard_t(3, len(labels)) if held_out else rng.normal(size=len(labels))
            scores += np.where(fails, 0 if held_out else -1000, 1000) * labels
            found = jm.slices(jm.roc_auc, scores, labels, month)
            slope = jm.trend(found)
            held += slope.low <= true <= slope.high
            without = dataclasses.replace(found, low=found.estimate, high=found.estimate)
            slope = jm.trend(without)
            by_errors += slope.low <= true <= slope.high
        yield {
            "populations": "held out" if held_out else "tuned",
            "failing positives, by slice": ", ".join(map(str, shares)),
            "positives, negatives": f"{positives}, {negatives}",
            "coverage by standard errors": f"{by_errors / n:.3f}",
            "coverage of `trend`": f"{held / n:.3f}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trend", description=__doc__)
    parser.add_argument("--samples", type=int, default=500, help="data sets per set-up")
    parser.add_argument("--quick", action="store_true", help="few set-ups, to check that it runs")
    options = parser.parse_args()
    n = 40 if options.quick else options.samples
    jax.config.update("jax_platforms", "cpu")
    warnings.simplefilter("ignore")
    title = f"Trends of AUC over {N_SLICES} slices, {LAYOUTS}; {n} data sets a set-up."
    show(Table(title, rows_of_populations(n, options.quick)))
    title = f"Size at 0.05 over 12 slices, {n} samples a row."
    show(Table(title, rows_of_metrics(n)))
    title = f"Limits of the slope of AUCs near 1, {n} samples a row."
    show(Table(title, rows_near_one(n)))


if __name__ == "__main__":
    main()
