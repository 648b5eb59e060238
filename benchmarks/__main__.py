"""`python -m benchmarks` prints every table; `--quick` uses small data, to see that it works."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

import jax

from benchmarks import exact, hard_predictions, label_sets, losses, ranking, resampling, streaming


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data and few runs")
    parser.add_argument("--runs", type=int, help="timed rounds of each row")
    options = parser.parse_args()
    scale = 1000 if options.quick else 1
    runs = options.runs or (2 if options.quick else 11)
    print(machine() + "\n")
    show(
        "Ratios are rivals' times over ours, in one run: median (range).",
        [
            *exact.one_model(1_000_000 // scale, runs),
            *exact.many_models(100, 10_000 // min(scale, 100), runs),
            *exact.small_and_eager(runs),
        ],
    )
    show(
        "Error bars. A loop over resamples is timed for a few and its time multiplied.",
        [*resampling.warm(scale, min(runs, 5)), *resampling.closed_forms(scale, runs)],
    )
    show(
        "Error bars, in a process of its own.",
        resampling.first_calls(scale, min(runs, 3)),
    )
    show(
        "Ranked lists. Ratios are rivals' times over those of ours by itself, in one run.",
        [
            *ranking.rows(10_000 // scale, 100, min(runs, 5)),
            *ranking.segments(1_000_000 // scale, 10_000 // scale, min(runs, 3)),
        ],
    )
    show(
        "Hard predictions.",
        hard_predictions.many_classes(10_000_000 // scale, 1000 // min(scale, 100), min(runs, 5)),
    )
    show(
        "Label sets by decile. A loop over lists and sets of Python is timed for a few instances.",
        [
            *label_sets.by_decile(100_000 // scale, min(runs, 5)),
            *label_sets.peak_memory(100_000 // scale),
        ],
    )
    show(
        "Losses, value and gradient in jit, against all pairs written out.",
        [
            *losses.squared_hinge(10_000 // min(scale, 100), min(runs, 5)),
            *losses.bounded(100_000 // min(scale, 100), min(runs, 3)),
            *losses.training_step(4096 // min(scale, 8), runs),
            *losses.peak_memory(scale),
        ],
    )
    show(
        "Streams. Rivals have 200 thresholds.",
        [
            *streaming.updates(min(runs, 5)),
            *streaming.widths(),
            *streaming.stream(1_000_000_000 // scale),
        ],
    )
    show(
        "In a process of its own, and against scikit-learn in float64.",
        [
            *exact.first_calls(1_000_000 // scale, min(runs, 5)),
            *exact.peak_memory(10_000_000 // scale),
            *exact.error(10_000_000 // scale),
        ],
    )


def machine() -> str:
    """What the figures were measured on."""
    packages = []
    for name in ("jax", "numpy", "scipy", "scikit-learn", "torch", "torchmetrics", "google-metrax"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    device = jax.devices()[0]
    return (
        f"{device.device_kind}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(packages)
    )


def show(title: str, rows: Iterable[exact.Row]) -> None:
    """Rows as a Markdown table; a cell that a row does not have is left blank."""
    rows = list(rows)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    table.insert(1, ["-" * width for width in widths])
    print(title + "\n")
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print(f"| {' | '.join(cells)} |")
    print(flush=True)


if __name__ == "__main__":
    main()
