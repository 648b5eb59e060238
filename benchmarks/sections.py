"""The sections of the benchmarks: what each measures, and at what size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks import (
    abilities,
    by_size,
    exact,
    first_calls,
    hard_predictions,
    label_sets,
    limits,
    losses,
    ranking,
    resampling,
    slice_times,
    streaming,
)
from benchmarks.tables import Table


class Options(NamedTuple):
    """Sizes are divided by `scale`; a row has at most `runs` timed rounds."""

    quick: bool = False
    runs: int = 11
    figure: str | None = None

    @property
    def scale(self) -> int:
        return 1000 if self.quick else 1


def _sizes(options: Options) -> Iterator[Table]:
    runs = min(options.runs, 7)
    settings = by_size.Settings([10**power for power in range(3, 8)], runs, limit=20, budget=10)
    if options.quick:
        settings = by_size.Settings([1000, 10_000], runs, limit=1, budget=1, of_memory=("roc_auc",))
    yield from by_size.tables(settings, options.figure)


def _limits(options: Options) -> Iterator[Table]:
    sizes = [10**power for power in range(3, 5 if options.quick else 8)]
    batches = [(8, 1000)] if options.quick else [(8, 100_000), (100, 10_000), (1000, 1000)]
    yield from limits.tables(sizes, batches, options.runs)


def _exact(options: Options) -> Iterator[Table]:
    scale, runs = options.scale, options.runs
    rows = (
        *exact.one_model(1_000_000 // scale, runs),
        *exact.many_models(100, 10_000 // min(scale, 100), runs),
        *exact.small_and_eager(runs),
    )
    yield Table("Ratios are the rival's time over ours within a round: median (range).", rows)


def _bootstrap(options: Options) -> Iterator[Table]:
    scale, runs = options.scale, options.runs
    yield Table(
        "Error bars. The loop is timed on a few resamples, and its time multiplied.",
        [*resampling.warm(scale, min(runs, 5)), *resampling.closed_forms(scale, runs)],
    )
    yield Table("Error bars, in a process of its own.", resampling.first_calls(scale, min(runs, 3)))


def _lists(options: Options) -> Iterator[Table]:
    scale, runs = options.scale, options.runs
    yield Table(
        "Ranked lists. Ratios are the rival's time over that of our eager call, within a round.",
        [
            *ranking.rows(10_000 // scale, 100, min(runs, 5)),
            *ranking.segments(1_000_000 // scale, 10_000 // scale, min(runs, 3)),
        ],
    )


def _predictions(options: Options) -> Iterator[Table]:
    n, classes = 10_000_000 // options.scale, 1000 // min(options.scale, 100)
    yield Table(
        "Hard predictions.", hard_predictions.many_classes(n, classes, min(options.runs, 5))
    )


def _label_sets(options: Options) -> Iterator[Table]:
    n = 100_000 // options.scale
    yield Table(
        "Label sets by decile. The loop over Python's lists and sets is timed on a few instances.",
        [*label_sets.by_decile(n, min(options.runs, 5)), *label_sets.peak_memory(n)],
    )


def _losses(options: Options) -> Iterator[Table]:
    scale, runs = options.scale, options.runs
    yield Table(
        "Losses, value and gradient in jit, against sums over all pairs.",
        [
            *losses.squared_hinge(10_000 // min(scale, 100), min(runs, 5)),
            *losses.bounded(100_000 // min(scale, 100), min(runs, 3)),
            *losses.training_step(4096 // min(scale, 8), runs),
            *losses.peak_memory(scale),
        ],
    )


def _streams(options: Options) -> Iterator[Table]:
    yield Table(
        "Streams. Rivals have 200 thresholds.",
        [
            *streaming.updates(min(options.runs, 5)),
            *streaming.widths(),
            *streaming.stream(1_000_000_000 // options.scale),
        ],
    )


def _slices(options: Options) -> Iterator[Table]:
    scale = options.scale
    yield Table(
        "Every slice of two models. The ratio is that of slices to two standard errors.",
        slice_times.rows(1_000_000 // scale, 1000 // min(scale, 100), options.runs),
    )


def _processes(options: Options) -> Iterator[Table]:
    scale = options.scale
    yield Table(
        "First calls and peak memory, each in its own process; errors against scikit-learn.",
        [
            *exact.first_calls(1_000_000 // scale, min(options.runs, 5)),
            *exact.peak_memory(10_000_000 // scale),
            *exact.error(10_000_000 // scale),
        ],
    )


def _first_calls(options: Options) -> Iterator[Table]:
    names = ["roc_auc"] if options.quick else first_calls.WORK
    sizes = [1000] if options.quick else [1000, 1_000_000]
    yield Table(
        "First calls, each in its own process.", first_calls.rows(names, options.runs // 4 or 1)
    )
    yield Table("The command.", first_calls.commands(sizes))


def _abilities(options: Options) -> Iterator[Table]:
    yield from abilities.tables()


SECTIONS: dict[str, Callable[[Options], Iterator[Table]]] = {
    "limits": _limits,
    "sizes": _sizes,
    "abilities": _abilities,
    "exact": _exact,
    "bootstrap": _bootstrap,
    "lists": _lists,
    "predictions": _predictions,
    "label-sets": _label_sets,
    "losses": _losses,
    "streams": _streams,
    "slices": _slices,
    "processes": _processes,
    "first-calls": _first_calls,
}
