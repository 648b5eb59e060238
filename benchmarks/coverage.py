"""`python -m benchmarks.coverage`: how often 95 % intervals hold the true value.

Data sets are simulated in batches on the device, and their intervals are computed as a user would
compute them. One call of `confidence_interval` per batch gives each closed form. The bootstrap
methods share one set of replicates per data set. All data sets of a batch get the same resamples.
Their replicates are still nearly independent: items of a class are exchangeable, and the counts of
a resample therefore meet the scores of each data set in another order.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmetrics as jm
from benchmarks.coverage_rows import GOAL_ROWS, MAX_FPR, OTHER_ROWS, SIZE_ROWS, Row
from jaxmetrics._base import checks
from jaxmetrics.inference import _confidence
from jaxmetrics.inference._influence.variance import acceleration

LEVEL = 0.95
GOAL = (0.93, 0.975)
BATCH = 500
ROUNDING = 1e-6  # limits are in float32, and a share such as 0.7 can be both limit and truth

METRICS = {
    "roc_auc": jm.roc_auc,
    "partial_auc": partial(jm.partial_auc, max_fpr=MAX_FPR, scale="range"),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=MAX_FPR),
}
SMOOTH = ("auto", "logit", "wald", "percentile", "basic", "bca")
METHODS = {
    "roc_auc": SMOOTH,
    "partial_auc": SMOOTH,
    "recall_at_fpr": ("auto", "wald", "wilson", "percentile", "basic"),
}
CLOSED = {"roc_auc": SMOOTH[:3], "partial_auc": SMOOTH[:3], "recall_at_fpr": ("auto", "wald")}
WIDTH_OF = {"roc_auc": "logit", "partial_auc": "logit", "recall_at_fpr": "wilson"}


# ---- simulation


class Tally(NamedTuple):
    """Counts of intervals, of those that hold the true value or lie below or above it; and width.

    An interval with NaN limits does not hold the value, and adds no width.
    """

    count: int = 0
    held: int = 0
    below: int = 0
    above: int = 0
    width: float = 0.0

    def with_limits(self, low: Any, high: Any, truth: float) -> Tally:
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        held = (low <= truth + ROUNDING) & (high >= truth - ROUNDING)
        return Tally(
            self.count + len(low),
            self.held + int(np.sum(held)),
            self.below + int(np.sum(high < truth - ROUNDING)),
            self.above + int(np.sum(low > truth + ROUNDING)),
            self.width + float(np.nansum(high - low)),
        )

    @property
    def coverage(self) -> float:
        return self.held / self.count

    @property
    def mean_width(self) -> float:
        return self.width / self.count


class Amount(NamedTuple):
    """The size of the study: data sets per row, and resamples of each."""

    simulations: int
    resamples: int

    @property
    def batch(self) -> int:
        return min(BATCH, self.simulations)

    @property
    def batches(self) -> int:
        return -(-self.simulations // self.batch)


Limits = dict[str, tuple[Any, Any]]
Tallies = dict[str, dict[str, Tally]]


def closed_limits(name: str, scores: jax.Array, labels: np.ndarray) -> Limits:
    """The limits `[batch]` by each closed form."""
    found = {
        method: jm.confidence_interval(METRICS[name], scores, labels, method=method)
        for method in CLOSED[name]
    }
    return {method: (interval.low, interval.high) for method, interval in found.items()}


def resampled_limits(
    name: str, scores: jax.Array, labels: np.ndarray, key: jax.Array, n_resamples: int
) -> Limits:
    """The limits `[batch]` by each bootstrap method.

    They equal those of `jm.confidence_interval` with this key, but all methods share a bootstrap.
    """
    metric = METRICS[name]
    items = checks.check_items(scores, labels)
    result = jm.bootstrap(metric, scores, labels, key=key, n_resamples=n_resamples)
    found = {}
    for method in METHODS[name]:
        if method in CLOSED[name]:
            continue
        if method == "wilson":
            interval = _confidence._by_wilson(metric, result, items, None, LEVEL)
        else:
            skew = acceleration(metric, items) if method == "bca" else 0.0
            interval = result.interval(method=method, acceleration=skew)
        found[method] = interval.low, interval.high
    return found


def study(
    row: Row, key: jax.Array, amount: Amount, progress: Callable[[], Any] = lambda: None
) -> Tallies:
    """A tally for each metric and method; the number of data sets is rounded up to batches."""
    truth = row.truth()
    tallies: Tallies = {name: {m: Tally() for m in METHODS[name]} for name in METRICS}
    for batch in range(amount.batches):
        of_scores, of_resamples = jax.random.split(jax.random.fold_in(key, batch))
        scores, labels = row.draw(of_scores, amount.batch)
        for name, tally in tallies.items():
            found = closed_limits(name, scores, labels)
            found |= resampled_limits(name, scores, labels, of_resamples, amount.resamples)
            for method, (low, high) in found.items():
                tally[method] = tally[method].with_limits(low, high, truth[name])
        progress()
    return tallies


# ---- the tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--simulations", type=int, default=10_000, help="data sets per row")
    parser.add_argument("--resamples", type=int, default=1_000, help="resamples per data set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a Markdown file to write")
    parser.add_argument("--quick", action="store_true", help="a small study, to check that it runs")
    options = parser.parse_args()
    amount = Amount(options.simulations, options.resamples)
    groups = {"goal": GOAL_ROWS, "other": OTHER_ROWS, "sizes": SIZE_ROWS}
    if options.quick:
        amount = Amount(20, 50)
        groups = {name: rows[:2] for name, rows in groups.items()}
    # A fifth is enough for rows that only show below which size a method fails.
    amounts = dict.fromkeys(groups, amount)
    amounts["sizes"] = amount._replace(simulations=-(-amount.simulations // 5))

    start = time.perf_counter()
    found: dict[str, list[Result]] = {}
    total = sum(amounts[name].batches * len(rows) for name, rows in groups.items())
    with progress_bar(total) as progress, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(there are )?only .* (positives|negatives)")
        for number, (name, rows) in enumerate(groups.items()):
            key = jax.random.fold_in(jax.random.key(options.seed), number)
            found[name] = []
            for i, row in enumerate(rows):
                tallies = study(row, jax.random.fold_in(key, i), amounts[name], progress)
                found[name].append(Result(row, tallies))
                jax.clear_caches()  # a process has no room for the programs of all sizes
    minutes = (time.perf_counter() - start) / 60
    report = "\n".join(_report(found, amounts, options.seed, minutes))
    print(report)
    if options.output:
        options.output.write_text(report + "\n")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[], Any]]:
    """A function to call `total` times, which moves a progress bar if rich is installed."""
    if not find_spec("rich"):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("batches of data sets", total=total)
        yield lambda: bar.advance(task)


class Result(NamedTuple):
    row: Row
    tallies: Tallies

    @property
    def cells(self) -> list[str]:
        """The first columns of a table."""
        return [f"{self.row.n_positive}, {self.row.n_negative}", self.row.name]


def _report(
    found: dict[str, list[Result]], amounts: dict[str, Amount], seed: int, minutes: float
) -> Iterator[str]:
    amount = amounts["goal"]
    yield "# Coverage of 95 % intervals\n"
    yield (
        f"`python -m benchmarks.coverage --seed {seed}`: {_count(amount)} per row, with "
        f"{amount.resamples:,} resamples each for percentile, basic, bca and wilson. "
        f"max_fpr is {MAX_FPR:g}. True values come from quadrature of the "
        "population's ROC curve, and from sums where scores tie; the recall is then that at the "
        f"largest FPR within the limit. {versions()}; {minutes:.0f} min."
    )
    for name in METRICS:
        yield f"\n## {name}\n"
        yield from _coverage_table(name, found["goal"], found["other"])
        if "auto" in METHODS[name]:
            yield "\n" + _goal_line(name, found["goal"])
        yield f"\nIntervals below and above the true value, in %; width over {WIDTH_OF[name]}'s.\n"
        yield from _misses_table(name, [*found["goal"], *found["other"]])
    yield "\n## By the size of the smaller class\n"
    yield (
        "Binormal scores, b = 1, AUC 0.8 and 0.95, classes of n, n, of n, 10 n and of 10 n, n: "
        f"the lowest and the highest coverage of the six. {_count(amounts['sizes'])} per row."
    )
    for name in METRICS:
        yield f"\n{name}\n"
        yield from _sizes_table(name, found["sizes"])


def _count(amount: Amount) -> str:
    count = amount.batches * amount.batch
    error = (LEVEL * (1 - LEVEL) / count) ** 0.5
    return f"{count:,} simulated data sets (standard error of a coverage {_share(error, 4)})"


def versions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpy", "scipy"))
    return (
        f"jaxmetrics {jm.__version__}, {packages}, Python {platform.python_version()}, "
        f"{jax.default_backend()}"
    )


def _coverage_table(name: str, goal: list[Result], other: list[Result]) -> Iterator[str]:
    methods = METHODS[name]
    head = ["positives, negatives", "scores", "true", *methods]
    rows = [
        [*result.cells, _share(result.row.truth()[name])]
        + [_coverage(result.tallies[name][method]) for method in methods]
        for result in (*goal, *other)
    ]
    yield "Coverage; bold where it is not in 0.93 to 0.975. The goal is for the first nine rows.\n"
    yield from table(head, rows)


def _goal_line(name: str, goal: list[Result]) -> str:
    coverages = [result.tallies[name]["auto"].coverage for result in goal]
    outside = [
        ", ".join(result.cells)
        for result, coverage in zip(goal, coverages, strict=True)
        if not GOAL[0] <= coverage <= GOAL[1]
    ]
    reached = f"not reached at {'; '.join(outside)}" if outside else "reached"
    span = " to ".join(_share(f(coverages)) for f in (min, max))
    return f"Goal for auto, 0.93 to 0.975 in each of the nine rows: {reached} ({span})."


def _misses_table(name: str, results: list[Result]) -> Iterator[str]:
    methods = METHODS[name]
    rows = []
    for result in results:
        tallies = result.tallies[name]
        standard = tallies[WIDTH_OF[name]].mean_width
        cells = [
            f"{100 * t.below / t.count:.1f}, {100 * t.above / t.count:.1f}; "
            f"{t.mean_width / standard:.2f}"
            for t in (tallies[method] for method in methods)
        ]
        rows.append([*result.cells, *cells])
    yield from table(["positives, negatives", "scores", *methods], rows)


def _sizes_table(name: str, results: list[Result]) -> Iterator[str]:
    sizes = sorted({min(r.row.n_positive, r.row.n_negative) for r in results})
    rows = []
    for size in sizes:
        of_size = [r for r in results if min(r.row.n_positive, r.row.n_negative) == size]
        spans = []
        for method in METHODS[name]:
            coverages = [r.tallies[name][method].coverage for r in of_size]
            spans.append(f"{_share(min(coverages))} to {_share(max(coverages))}")
        rows.append([str(size), *spans])
    yield from table(["n", *METHODS[name]], rows)


def _coverage(tally: Tally) -> str:
    text = _share(tally.coverage)
    return text if GOAL[0] <= tally.coverage <= GOAL[1] else f"**{text}**"


def _share(value: float, digits: int = 3) -> str:
    """A share as text."""
    return f"{value:.{digits}f}"


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(line)} |"


if __name__ == "__main__":
    main()
