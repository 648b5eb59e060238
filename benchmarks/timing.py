"""Timing of rivals in turn, which is fair to each if the machine's speed drifts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Timing(NamedTuple):
    """Seconds of each round; two timings of one round are neighbours in time."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio(self, other: Timing) -> str:
        """The ratio of `other`'s time to this one within rounds: median (range)."""
        ratios = [b / a for a, b in zip(self.seconds, other.seconds, strict=True)]
        return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def time_in_turn(rivals: dict[str, Callable[[], Any]], runs: int) -> dict[str, Timing]:
    """`runs` rounds of all calls; each call follows one of its own that is not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(runs):
        for name, call in rivals.items():
            jax.block_until_ready(call())  # not timed: the one before may leave work
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(times) for name, times in seconds.items()}


def milliseconds(timing: Timing) -> str:
    """Median (range) in milliseconds."""
    low, middle, high = (1e3 * x for x in (min(timing.seconds), timing.median, max(timing.seconds)))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"
