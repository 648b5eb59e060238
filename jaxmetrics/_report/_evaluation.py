"""The parts of an evaluation, and the work that computes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np
import numpy.typing as npt

import jaxmetrics as jm
from jaxmetrics._base.host import threads
from jaxmetrics._base.warned import texts_of
from jaxmetrics._base.words import NARROWEST, percent_text
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics.inference._influence.sizes import FEWEST_INSIDE
from jaxmetrics.plots._names import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Found = TypeVar("Found")

# Bands of more models would hide each other.
MOST_BANDS = 7
# Bands of more items take minutes.
MOST_BANDED = 1_000_000
# The fewest positives, and negatives, of a slice in which models are compared.
FEWEST = 20


class Measure(NamedTuple):
    """A metric of every model, and the comparison of the models by it, if there is one."""

    name: str
    heading: str
    interval: jm.Interval  # [models]
    comparison: jm.Comparison | None = None  # [models, models]
    max_fpr: float | None = None
    k: int | None = None
    n_queries: int | None = None  # in the mean
    bounds: jm.streaming.Bounds | None = None  # [models], of the exact value
    scale: str | None = None  # of a partial area
    ranked: bool = True  # whether the highest value is the best
    enough: jm.SampleSize | None = None  # to find the difference of the best two models
    rule: str | None = None  # the rule that chooses the threshold
    prevalence: float | None = None  # None for that of the data

    @property
    def by_amount(self) -> bool:
        """Whether positives count by their amounts."""
        return self.name.startswith("amount")

    @property
    def title(self) -> str:
        """The heading in one line."""
        return " ".join(self.heading.split())

    @property
    def called(self) -> str:
        """The title, and how positives count."""
        return self.title + " by amount" * self.by_amount

    @property
    def has_intervals(self) -> npt.NDArray[np.bool_]:
        """Which differences `[models, models]` have an interval.

        An interval is NaN with too few items, and a single point if no resample has a difference.
        """
        return np.zeros((0, 0), bool) if self.comparison is None else has_width(self.comparison)

    @property
    def best_set(self) -> npt.NDArray[np.bool_] | None:
        """Which models are not significantly worse than the best; None if nothing can be said."""
        if self.comparison is None or not self.has_intervals.any():
            return None
        return np.asarray(self.comparison.best_set) & self.has_intervals.any(axis=1)

    @property
    def has_a_best(self) -> bool:
        """Whether a model can be called the best: not where all are equal, as far as is known."""
        estimate: Any = self.interval.estimate
        return (
            self.ranked
            and len(estimate) > 1
            and bool(self.has_intervals.any() or (estimate != estimate[0]).any())
        )

    @property
    def lacks_intervals(self) -> bool:
        """Whether a difference of two models has no interval."""
        known = self.has_intervals
        return not (known | np.eye(len(known), dtype=bool)).all()


def has_width(found: Any) -> npt.NDArray[np.bool_]:
    """Which differences have a simultaneous interval that is not a point."""
    return np.asarray(found.simultaneous_high - found.simultaneous_low > NARROWEST)


class Slices(NamedTuple):
    """Metrics of the items that share a value of a column, for each value."""

    column: str
    values: tuple[str, ...]
    n_items: tuple[int, ...]
    n_positive: tuple[int, ...]
    measures: tuple[Measure, ...]  # their intervals are [slices, models]
    compared: tuple[jm.Slices, ...] = ()  # by each measure, with the models of each slice
    trends: tuple[jm.Trend, ...] = ()  # by each measure, of slices with times
    unit: str = ""  # of the times
    clustered: bool = False

    @property
    def defined(self) -> list[Measure]:
        """The measures that have a value in some slice; none where each has one class."""
        return [x for x in self.measures if np.isfinite(x.interval.estimate).any()]

    @property
    def tested(self) -> list[tuple[Measure, jm.Slices]]:
        """The measures by which a later model is compared with the first one in some slice."""
        pairs = zip(self.measures, self.compared, strict=False)
        return [(x, found) for x, found in pairs if has_width(found.models)[:, 1:, 0].any()]

    @property
    def trending(self) -> list[tuple[Measure, jm.Slices, jm.Trend]]:
        """The measures of which some model has a trend."""
        found = zip(self.measures, self.compared, self.trends, strict=False)
        return [x for x in found if np.isfinite(x[2].slope).any()]

    @property
    def level(self) -> str:
        """The level of the intervals of a model in all slices at once; that of each is higher."""
        level = self.measures[0].interval.confidence_level
        return percent_text(1 - (1 - level) * len(self.values))

    @property
    def too_few(self) -> str:
        """Why slices are not tested."""
        units = "clusters with " * self.clustered + "positives or negatives"
        return f"fewer than {FEWEST} {units}, or {FEWEST_INSIDE} within the limit"


class Points(NamedTuple):
    """What the threshold of each model does that one rule chooses."""

    rule: str  # in JSON
    title: str
    measures: tuple[Measure, ...]


class Drawing(NamedTuple):
    """A figure of the report."""

    name: str  # of its files
    title: str
    about: str
    draw: Callable[[], Figure]


class Drawn(NamedTuple):
    """A figure that is drawn: its SVG, and other files by their suffix."""

    svg: str
    others: Mapping[str, bytes]


class Evaluation(NamedTuple):
    """All that the report says of a problem."""

    names: tuple[str, ...]
    facts: dict[str, Any]  # of the problem, for JSON
    columns: tuple[str, ...]  # of the CSV, to distinguish measures of one name
    title: str
    about: str  # continues the sentence on intervals
    measures: tuple[Measure, ...]
    warnings: tuple[str, ...]
    drawings: tuple[Drawing, ...]
    slices: tuple[Slices, ...] = ()
    points: tuple[Points, ...] = ()
    drawn: Mapping[str, Drawn] = {}  # by name, those of the drawings that are drawn already


def carry_out(
    work: Mapping[str, Callable[..., Found]], settings: Settings, tell: Tell
) -> tuple[dict[str, Found], list[str]]:
    """The result of each piece of work, in double precision, and the warnings.

    Each piece calls `progress` with the number of resamples that are ready. Two pieces run at a
    time, because most of the time is compilation, which uses one processor.
    """
    shares = dict.fromkeys(work, 0.0)

    def run(name: str) -> Found:
        what = f"Evaluating: {visible(name.replace('_', ' '))}"

        def progress(n: int) -> None:
            shares[name] = n / settings.n_resamples
            tell(what, sum(shares.values()) / len(work))

        progress(0)
        with jax.enable_x64(True):
            result = work[name](progress=progress)
        progress(settings.n_resamples)
        return result

    with warnings.catch_warnings(record=True) as caught, threads(2) as workers:
        warnings.simplefilter("always")
        found = dict(zip(work, workers.map(run, work), strict=True))
    return found, [*map(visible, texts_of(caught))]


def notes_of_direction(measures: Sequence[Measure], names: Sequence[str]) -> list[str]:
    """Notes of models whose AUC is significantly below chance: low scores may mean positive."""
    below = [
        name
        for x in measures
        if x.name == "roc_auc"
        for name, high in zip(names, np.asarray(x.interval.high), strict=True)
        if high < 0.5
    ]
    return [
        f"the AUC of {visible(x)} is below 0.5: if its low scores mean positive, negate the column"
        for x in below
    ]


def has_bands(names: Sequence[str], n_items: int = 0) -> bool:
    """Whether to draw bands: whether readers could see them, and distinguish them."""
    return len(names) <= MOST_BANDS and n_items <= MOST_BANDED


def note_of_bands(figure: str, names: Sequence[str]) -> str:
    """Why a figure has no bands."""
    why = "models hide each other" if len(names) > MOST_BANDS else "items are as thin as lines"
    most = MOST_BANDS if len(names) > MOST_BANDS else MOST_BANDED
    return f"{figure} has no bands, because those of more than {most:,} {why}"
