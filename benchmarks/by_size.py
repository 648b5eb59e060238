"""Time, error and memory of ours and every rival, from a thousand items to ten million."""

from __future__ import annotations

import ctypes
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks import by_size_figure
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.studies import STUDIES, Study
from benchmarks.tables import Row, Table, progress
from benchmarks.timing import Timing, milliseconds, time_in_turn

PANELS = ("roc_auc", "partial_auc", "interval", "ndcg")
MEMORY_AT = 1_000_000


class Settings(NamedTuple):
    """Sizes, most rounds, and most seconds: `limit` of a call, `budget` of all rounds of a cell."""

    sizes: list[int]
    runs: int
    limit: float
    budget: float
    of_memory: tuple[str, ...] = ("roc_auc", "interval", "ndcg")


class Point(NamedTuple):
    """A library's times at a size, and ours in the same rounds; or the `reason` for none."""

    n: int
    theirs: Timing | None = None
    ours: Timing | None = None
    error: float = float("nan")
    reason: str = ""

    @property
    def ratio(self) -> float:
        """The median ratio to our time, NaN if not timed."""
        if self.theirs is None or self.ours is None:
            return float("nan")
        pairs = zip(self.theirs.seconds, self.ours.seconds, strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)


Points = dict[str, list[Point]]


def tables(settings: Settings, figure: str | None = None) -> Iterator[Table]:
    """A table per study, one of the rivals that are faster, and one of memory."""
    measured: dict[str, Points] = {}
    for name, study in STUDIES.items():
        measured[name] = _measure(study, settings)
        yield Table(
            f"{study.name}: median (range) in ms, and the ratio to our time in the same rounds;"
            " **bold** where a rival is faster.",
            _rows(study, measured[name]),
        )
    yield Table("Faster than ours, in the tables by size.", _faster(measured))
    n = min(MEMORY_AT, settings.sizes[-1])
    yield Table(
        f"Peak memory of a call on the host, in bytes per item beyond the input, n = {n:,}."
        " Blank: the library has no such metric, or it was not run.",
        _memory(measured, settings.of_memory, n),
    )
    if figure:
        by_size_figure.draw({STUDIES[name].name: _lines(measured[name]) for name in PANELS}, figure)


def _measure(study: Study, settings: Settings) -> Points:
    points: Points = {library: [] for library in study.libraries()}
    for n in settings.sizes:
        data = study.data(n)
        progress(f"{study.name}, n = {n:,}")
        truth = study.reference(*data)
        ours, _ = study.call("ours", data)
        for library, before in points.items():
            progress(f"{study.name}, n = {n:,}, {library}")
            expected = _expected(n, before)
            reason = _reason(study.largest.get(library, n), n, expected, settings, before)
            if reason:
                before.append(Point(n, reason=reason))
                continue
            call, value = study.call(library, data)
            rounds = _rounds(expected, settings)
            times = _in_turn(ours, call, rounds, library == "ours")
            before.append(Point(n, *times, study.error(value, truth)))
    return points


def _expected(n: int, before: list[Point]) -> float:
    """The least seconds to expect of a call: those of the size before, in proportion to n."""
    if not before or before[-1].theirs is None:
        return 0.0
    return before[-1].theirs.median * n / before[-1].n


def _reason(largest: int, n: int, expected: float, settings: Settings, before: list[Point]) -> str:
    """The reason why a size is left out; empty if it is not."""
    if n > largest:
        return "not run: memory"
    if before and before[-1].reason:
        return before[-1].reason
    return f"not run: over {settings.limit:g} s" if expected > settings.limit else ""


def _rounds(expected: float, settings: Settings) -> int:
    """The rounds, of two calls each, that fit into the budget; at least one."""
    fitting = int(settings.budget / (2 * expected)) if expected else settings.runs
    return min(settings.runs, max(1, fitting))


def _in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, same: bool
) -> tuple[Timing, Timing]:
    times = time_in_turn({"ours": ours} if same else {"ours": ours, "theirs": theirs}, rounds)
    return times["ours" if same else "theirs"], times["ours"]


def _rows(study: Study, points: Points) -> Iterator[Row]:
    column = "relative error" if study.relative else "error"
    for library, row in points.items():
        timed = [point for point in row if point.theirs]
        error = f"{timed[-1].error:.1e} at {timed[-1].n:,}" if timed else ""
        cells = {f"n = {point.n:,}": _cell(point, library) for point in row}
        yield {"library": study.label(library), **cells, f"{column}, largest n": error}


def _cell(point: Point, library: str) -> str:
    if point.theirs is None:
        return point.reason
    text = milliseconds(point.theirs)
    if len(point.theirs.seconds) == 1:
        text = f"{text.split()[0]} (one run)"
    if library == "ours":
        return text
    ratio = f"{point.ratio:.3g}x"
    return f"{text}, **{ratio}**" if point.ratio < 1 else f"{text}, {ratio}"


def _faster(measured: dict[str, Points]) -> Iterator[Row]:
    found = False
    for name, points in measured.items():
        for library, row in points.items():
            for point in row:
                if point.ratio < 1 and not library.startswith("ours") and point.ours:
                    found = True
                    in_jit = [p for p in points.get("ours, in jit", []) if p.n == point.n]
                    yield {
                        "rival": STUDIES[name].label(library),
                        "work": f"{STUDIES[name].name}, n = {point.n:,}",
                        "its time, ms": milliseconds(point.theirs) if point.theirs else "",
                        "ours, ms": milliseconds(point.ours),
                        "ratio": f"{point.ratio:.2f}x",
                        "ours in jit, ms": milliseconds(in_jit[0].theirs) if in_jit else "",
                    }
    if not found:
        yield {"rival": "none"}


def _memory(measured: dict[str, Points], names: tuple[str, ...], n: int) -> Iterator[Row]:
    libraries = dict.fromkeys(library for name in names for library in measured[name])
    for library in libraries:
        row = {"library": library}
        for name in names:
            timed = {point.n for point in measured[name].get(library, []) if point.theirs}
            progress(f"memory of {STUDIES[name].name}, {library}")
            amount = f"{fresh(bytes_an_item, name, library, n):.0f}" if n in timed else ""
            row[STUDIES[name].name] = amount
        yield row


def bytes_an_item(name: str, library: str, n: int) -> float:
    """Peak bytes of a second call, without what the first one loads, compiles or keeps."""
    study = STUDIES[name]
    call, _ = study.call(library, study.data(n))
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # memory freed before is else reused, and not counted
    return bytes_at_peak(call) / n


def _lines(points: Points) -> dict[str, list[tuple[int, float]]]:
    """Sizes and median seconds by library."""
    return {
        library: [(point.n, point.theirs.median) for point in row if point.theirs]
        for library, row in points.items()
    }
