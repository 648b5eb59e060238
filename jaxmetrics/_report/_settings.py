"""What the user chose, and how to refuse it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

# Told what is being done, and the share of it that is.
Tell = Callable[..., None]

WITH_GROUP = {
    "positive": "--positive does not go with --group, where labels are grades: leave it out and "
    "write labels as numbers, 0 for what is not relevant",
    "max_fpr": "--max-fpr does not go with --group, where no false positives are counted: leave it "
    "out and write --k 10 for metrics of the first 10",
    "amount": "--amount does not go with --group: leave it out, or pass its column as --label, so "
    "that amounts are the grades",
    "weight": "--weight does not go with --group, where every query counts the same: leave it out",
    "cluster": "--cluster does not go with --group, by which whole queries are resampled: leave it "
    "out",
    "slice": "--slice does not go with --group: evaluate a file of each part",
    "fp_cost": "--fp-cost does not go with --group, where no false positives are counted: leave it "
    "out",
    "fn_cost": "--fn-cost does not go with --group, where no negatives are counted: leave it out",
}
WITH_STREAM = {
    "amount": "--amount does not go with --stream, whose bins hold counts: leave one out",
    "weight": "--weight does not go with --stream, as intervals need single weights: leave one out",
    "cluster": "--cluster does not go with --stream, which keeps no ids: leave one out",
    "group": "--group does not go with --stream, as a query needs all its items: leave one out",
    "slice": "--slice does not go with --stream, whose bins are of all items: leave one out",
}
WITHOUT_GROUP = {
    name: f"--{name} is for rankings: also write --group and the column of query ids, or leave "
    f"--{name} out"
    for name in ("k", "gain")
}


class InputError(click.ClickException):
    """What the user gave cannot be evaluated; the message is one sentence that says what to do."""

    exit_code = 2


class Settings(NamedTuple):
    """What the user chose."""

    max_fpr: float = 0.01
    n_resamples: int = 2000
    confidence_level: float = 0.95
    seed: int = 0
    k: tuple[int, ...] = (10,)  # of rankings, as is the gain
    gain: str = "linear"
    fp_cost: float = 1.0
    fn_cost: float = 1.0
    command: str = ""  # that made the report


def check_settings(settings: Settings) -> None:
    """Refuse what is not a fraction, a count or a seed."""
    max_fpr, n_resamples, level, seed, k = settings[:5]
    if not 0 < max_fpr <= 1:
        raise InputError(
            f"--max-fpr must be above 0 and at most 1, got {max_fpr:g}: "
            "write fractions, 0.01 for 1 per cent"
        )
    if not 0 < level < 1:
        raise InputError(
            f"--confidence-level must be above 0 and below 1, got {level:g}: "
            f"write {level / 100 if 1 < level < 100 else 0.95:g} for "
            f"{level if 1 < level < 100 else 95:g} per cent"
        )
    if n_resamples < 1:
        raise InputError(
            f"--n-resamples must be at least 1, got {n_resamples}: "
            "write 2000, or fewer to save time"
        )
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must be from 0 to {2**32 - 1}, got {seed}: write 0 or 1")
    for name, cost in (("fp", settings.fp_cost), ("fn", settings.fn_cost)):
        if not 0 <= cost < math.inf:
            raise InputError(
                f"--{name}-cost must be finite and not negative, got {cost:g}: write what one "
                "costs, as in 100"
            )
    if min(k) < 1:
        raise InputError(f"--k must be at least 1, got {min(k)}: write 10 for the first 10")


def refuse_options(group: str | None, **given: object) -> None:
    """Refuse options that have no meaning with --group, or none without."""
    reasons = WITHOUT_GROUP if group is None else WITH_GROUP
    for name, value in given.items():
        if value not in (None, ()) and name in reasons:
            raise InputError(reasons[name])


def refuse_with_stream(**given: object) -> None:
    """Refuse options that have no meaning where a file is read in batches."""
    for name, value in given.items():
        if value is not None:
            raise InputError(WITH_STREAM[name])


def make_directory(directory: Path) -> None:
    """Create it, before any long work, or say why not."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory} ({error.strerror}): pass another folder as --output"
        ) from None
