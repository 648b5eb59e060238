"""Timing of rivals in turn, so that a machine whose speed drifts is fair to each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Timing(NamedTuple):
    """Seconds of each run, in order; runs of two timings with one index are neighbours in time."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio(self, other: Timing) -> str:
        """How many times longer `other` takes: median, and range over neighbouring runs."""
        ratios = [b / a for a, b in zip(self.seconds, other.seconds, strict=True)]
        return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def time_in_turn(rivals: dict[str, Callable[[], Any]], runs: int) -> dict[str, Timing]:
    """`runs` rounds of all, each call right after one that is not timed, and waited for."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(runs):
        for name, call in rivals.items():
            jax.block_until_ready(call())  # not timed: the last one may have left work behind
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(times) for name, times in seconds.items()}


def milliseconds(timing: Timing) -> str:
    """The median and the range, in milliseconds."""
    low, middle, high = (1e3 * x for x in (min(timing.seconds), timing.median, max(timing.seconds)))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"
