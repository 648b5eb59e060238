"""The user's settings, and their checks."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import NamedTuple

import click

from jaxmetrics._base.checks.options import CRITERIA, MOST_COST
from jaxmetrics._report._texts import shortened
from jaxmetrics.plots._style import STYLE_NAMES, StyleName

# Called with the work in progress and, if known, the share that is done.
Tell = Callable[..., None]

# More resamples take hours, and no digit that a report shows depends on them.
MOST_RESAMPLES = 1_000_000

# Settings that choose a threshold by a number, and the titles of these thresholds.
CHOSEN = {
    "min_precision": "Precision of at least {}",
    "min_recall": "Recall of at least {}",
    "threshold": "Score ≥ {}",
}


def _flag(name: str) -> str:
    """The option that gives a setting."""
    return f"--{name.replace('_', '-')}"


WITH_GROUP = {
    "positive": "--positive cannot be used with --group, where labels are grades: leave it out and "
    "write labels as numbers, 0 for irrelevant items",
    "max_fpr": "--max-fpr cannot be used with --group, which has no false positive rate: leave it "
    "out and write --k 10 for metrics of the first 10",
    "amount": "--amount cannot be used with --group: leave it out, or pass its column as --label "
    "to use amounts as grades",
    "weight": "--weight cannot be used with --group, where queries count equally: leave it out",
    "slice": "--slice cannot be used with --group: evaluate a file of each slice",
    **{
        name: f"{_flag(name)} cannot be used with --group, which has no thresholds: leave it out"
        for name in ("criterion", "fp_cost", "fn_cost", "prevalence", *CHOSEN)
    },
}
WITH_STREAM = {
    "amount": "--amount cannot be used with --stream, whose bins hold counts: leave one out",
    "weight": "--weight cannot be used with --stream, whose intervals need counts: leave one out",
    "cluster": "--cluster cannot be used with --stream, which keeps no ids: leave one out",
    "group": "--group cannot be used with --stream, because a query needs all its items: leave one "
    "out",
    "slice": "--slice cannot be used with --stream, whose bins hold all items: leave one out",
    **{
        name: f"{_flag(name)} cannot be used with --stream, which evaluates no threshold: leave "
        "one out"
        for name in ("criterion", *CHOSEN)
    },
    "prevalence": "--prevalence cannot be used with --stream, whose report has no precision of a "
    "threshold: leave one out",
}
WITHOUT_GROUP = {
    name: f"{_flag(name)} is for rankings: also write --group and the column of query ids, or "
    f"leave {_flag(name)} out"
    for name in ("k", "gain", "max_grade")
}


def untold(what: str, done: float | None = None) -> None:
    """Show no progress."""


class InputError(click.ClickException):
    """The input cannot be evaluated; the message is one sentence that says what to do."""

    exit_code = 2


class Settings(NamedTuple):
    """The user's settings."""

    max_fpr: float = 0.01
    n_resamples: int = 2000
    confidence_level: float = 0.95
    seed: int = 0
    k: tuple[int, ...] = (10,)  # for rankings; so is the gain
    gain: str = "linear"
    fp_cost: float | None = None
    fn_cost: float | None = None
    command: str = ""  # the command that made the report
    max_grade: float | None = None  # of the scale, for rankings
    style: StyleName = "colour"  # of the figures
    criterion: str | None = None  # that chooses one more threshold
    prevalence: float | None = None  # where thresholds are used; None for that of the data
    threshold: float | None = None  # one more threshold; the next two choose others
    min_precision: float | None = None
    min_recall: float | None = None

    @property
    def costs(self) -> tuple[float, float] | None:
        """Those of a false positive and a false negative, 1 for one that is not given, or None.

        Without either there is no least cost: it would be that of costs which nobody chose.
        """
        if self.fp_cost is None and self.fn_cost is None:
            return None
        fp_cost, fn_cost = (1.0 if x is None else x for x in (self.fp_cost, self.fn_cost))
        return fp_cost, fn_cost


# Fractions above 0, with examples; all but a prevalence may be 1.
_FRACTIONS = {"max_fpr": 0.01, "prevalence": 0.01, "min_precision": 0.9, "min_recall": 0.9}
# Of numbers that may be left out.
_EXAMPLES = {"fp_cost": 1, "fn_cost": 100, "threshold": 0.5, **_FRACTIONS}
_NUMBERS = ("n_resamples", "confidence_level", "seed", *_EXAMPLES)


def check_settings(settings: Settings) -> None:
    """Refuse settings that are out of range."""
    for name in _NUMBERS:
        value, default = getattr(settings, name), Settings._field_defaults[name]
        example = _EXAMPLES.get(name, default)
        if not isinstance(value, numbers.Real) and value is not default:
            raise InputError(
                f"{_flag(name)} must be a number, got {shortened(repr(value))}: write {example:g}"
            )
    for name, example in _FRACTIONS.items():
        value, end = getattr(settings, name), "below" if name == "prevalence" else "at most"
        if value is not None and not (0 < value < 1 or (value == 1 and end == "at most")):
            raise InputError(
                f"{_flag(name)} must be above 0 and {end} 1, got {value:g}: write fractions, "
                f"{example:g} for {100 * example:g} %"
            )
    n_resamples, level = settings.n_resamples, settings.confidence_level
    seed, k = settings.seed, settings.k
    if not 0 < level < 1:
        raise InputError(
            f"--confidence-level must be above 0 and below 1, got {level:g}: "
            f"write {level / 100 if 1 < level < 100 else 0.95:g} for "
            f"{level if 1 < level < 100 else 95:g} %"
        )
    if level < 0.5:
        raise InputError(
            f"--confidence-level must be at least 0.5, got {level:g}: write {1 - level:g} if that "
            "was the probability of an error"
        )
    if n_resamples < 1:
        raise InputError(
            f"--n-resamples must be at least 1, got {n_resamples}: "
            "write 2000, or fewer to save time"
        )
    if n_resamples > MOST_RESAMPLES:
        raise InputError(
            f"--n-resamples must be at most {MOST_RESAMPLES:,}, got {shortened(n_resamples)}, "
            f"which take {shortened(n_resamples >> 27)} GiB a metric and model: write 2000"
        )
    if not 0 <= seed < 2**32:
        raise InputError(
            f"--seed must be from 0 to {2**32 - 1}, got {shortened(seed)}: write 0 or 1"
        )
    # With a prevalence, an error in the data may stand for as many as there are items: a billion.
    most = MOST_COST if settings.prevalence is None else 1e20
    for name, cost in (("fp", settings.fp_cost), ("fn", settings.fn_cost)):
        if cost is not None and not 0 <= cost <= most:
            raise InputError(
                f"--{name}-cost must be from 0 to {most:g}, got {cost:g}: write the cost "
                "of one, as in 100"
            )
    if settings.criterion not in (None, *CRITERIA):
        raise InputError(
            f"--criterion must be {' or '.join(CRITERIA)}, got {shortened(settings.criterion)}: "
            "leave it out for the other thresholds alone"
        )
    if settings.threshold is not None and not math.isfinite(settings.threshold):
        raise InputError(f"--threshold must be finite, got {settings.threshold:g}: write a score")
    if settings.style not in STYLE_NAMES:
        raise InputError(
            f"--style must be {' or '.join(STYLE_NAMES)}, got {shortened(settings.style)}: write "
            "print for figures of a journal"
        )
    if min(k) < 1:
        raise InputError(f"--k must be at least 1, got {min(k)}: write 10 for the first 10")
    if max(k) >= 2**31:
        raise InputError(f"--k must be below 2^31, got {shortened(max(k))}: write 10")


def refuse_options(group: str | None, **given: object) -> None:
    """Refuse options that have no meaning with --group, or without it."""
    reasons = WITHOUT_GROUP if group is None else WITH_GROUP
    for name, value in given.items():
        if value not in (None, ()) and name in reasons:
            raise InputError(reasons[name])


def refuse_with_stream(**given: object) -> None:
    """Refuse options that have no meaning where a file is read in batches."""
    for name, value in given.items():
        if value is not None:
            raise InputError(WITH_STREAM[name])
