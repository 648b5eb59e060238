"""The evaluation as one page of HTML that contains its figures and loads nothing."""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._report._cells import (
    Cell,
    about_differences,
    about_limits,
    decimals_of,
    fixed,
    limits_of,
    p_value,
    slice_tables,
    value_cells,
)
from jaxmetrics._report._evaluation import (
    Drawing,
    Evaluation,
    Measure,
    Slices,
    percent,
)
from jaxmetrics._report._findings import LONGEST_IN_TEXT, findings_of
from jaxmetrics._report._fonts import families
from jaxmetrics._report._settings import Settings
from jaxmetrics._report._trends import trend_tables
from jaxmetrics.plots._names import short_names, visible
from jaxmetrics.plots._style import percent_text

# Almost black and white: they stand for the colours of the page in a figure.
_INK, _PAPER = "#010203", "#fdfefd"
_BLACK_AND_WHITE = (("#000000", "currentColor"), ("#ffffff", "var(--paper)"))
# Ids that every figure repeats, which a page must not, and which nothing refers to.
_IDS = r' id="(figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|legend)_\d+"'


class _Table(NamedTuple):
    """Rows of cells under headings."""

    title: str
    corner: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    about: str = ""


def page_of(
    settings: Settings,
    evaluation: Evaluation,
    figures: Sequence[str],
    versions: dict[str, str],
    *,
    has_files: bool = True,
) -> str:
    """The report of an evaluation, with its figures as SVG in `page_colours`."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_without_controls,
    )
    names = short_names(evaluation.names, LONGEST_IN_TEXT)
    template = environment.from_string(
        files("jaxmetrics._report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    )
    return template.render(
        title=evaluation.title,
        findings=findings_of(evaluation),
        tables=list(_tables_of_values(evaluation)),
        pairs=[_table_of_pairs(x, names) for x in evaluation.measures if x.comparison],
        drawings=[
            (drawing, _themed(drawing, svg))
            for drawing, svg in zip(evaluation.drawings, figures, strict=True)
        ],
        points=[
            _table_of_models(x.title, "", evaluation.names, list(x.measures))
            for x in evaluation.points
        ],
        slices=[
            table
            for part in evaluation.slices
            for table in (*_differences_in(part, names), *_of_slices(part, names))
        ],
        facts=list(_facts_in_words(evaluation.facts)),
        warnings=evaluation.warnings,
        settings=settings,
        level=percent_text(settings.confidence_level),
        versions=versions,
        has_files=has_files,
        date=datetime.now(UTC).date().isoformat(),
    )


def _tables_of_values(evaluation: Evaluation) -> Iterator[_Table]:
    """Values, and values by amount."""
    names = evaluation.names
    by_amount = [x for x in evaluation.measures if x.by_amount]
    counted = [x for x in evaluation.measures if not x.by_amount]
    several = "; * marks the best of a column" if len(names) > 1 else ""
    about = (
        f"In brackets, {percent_text(counted[0].interval.confidence_level)} confidence "
        f"intervals{evaluation.about}{several}{about_limits(evaluation.measures)}."
    )
    yield _table_of_models("Values", about, names, counted)
    if by_amount:
        yield _table_of_models("Values by amount", "", names, by_amount)


def _table_of_models(
    title: str, about: str, names: Sequence[str], measures: list[Measure]
) -> _Table:
    columns = [value_cells(x) for x in measures]
    rows = tuple(zip(names, zip(*columns, strict=True), strict=True))
    if any(x.n_queries is not None for x in measures):
        counts = tuple(Cell("" if x.n_queries is None else f"{x.n_queries:,}") for x in measures)
        rows = (*rows, ("queries", counts))
    headings = tuple(x.heading for x in measures)
    return _Table(title, "Model", headings, rows, about)


def _table_of_pairs(measure: Measure, names: Sequence[str]) -> _Table:
    """Row minus column, for all pairs; `+` marks the best set."""
    found: Any = measure.comparison
    digits = decimals_of(found.simultaneous_high - found.simultaneous_low)
    known, best_set = measure.has_intervals, measure.best_set

    def cell(i: int, j: int) -> Cell:
        if i == j or np.isnan(found.difference[i, j]):
            return Cell("")
        if not known[i, j]:
            return Cell(fixed(found.difference[i, j], digits))
        p = found.simultaneous_p_value[i, j]
        limits = (found.simultaneous_low[i, j], found.simultaneous_high[i, j])
        low, high = (fixed(x, digits) for x in limits)
        clear = limits[0] > 0 or limits[1] < 0
        return Cell(f"{fixed(found.difference[i, j], digits)}, {p_value(p)}", (low, high), clear)

    n = len(names)
    rows = tuple(
        (
            f"{name} +" if best_set is not None and best_set[i] else name,
            tuple(cell(i, j) for j in range(n)),
        )
        for i, name in enumerate(names)
    )
    about = "Bold: the interval excludes 0."
    if unknown := about_differences([measure]):
        about += f" {unknown.capitalize()}."
    if n > 2 and best_set is not None and not np.isnan(found.chi2_p_value):
        about += f" Test that all models are equal: {p_value(float(found.chi2_p_value))}."
    return _Table(
        measure.called,
        "Row minus column",
        tuple(names),
        rows,
        about,
    )


def _differences_in(slices: Slices, names: Sequence[str]) -> Iterator[_Table]:
    for found in (*trend_tables(slices, names), *slice_tables(slices, names)):
        headings, cells = zip(*found.columns, strict=True)
        rows = tuple(zip(found.rows, zip(*cells, strict=True), strict=True))
        yield _Table(found.title, found.corner, headings, rows, f"{found.about}.")


def _of_slices(slices: Slices, names: Sequence[str]) -> Iterator[_Table]:
    for measure in slices.measures:
        interval: Any = measure.interval
        digits = decimals_of((interval.high - interval.low).ravel())

        def cell(i: int, j: int, interval: Any = interval, digits: int = digits) -> Cell:
            value, low, high = (x[i, j] for x in (interval.estimate, interval.low, interval.high))
            return Cell(fixed(value, digits), limits_of(low, high, digits))

        rows = tuple(
            (
                value,
                (
                    Cell(f"{slices.n_items[i]:,}"),
                    Cell(f"{slices.n_positive[i]:,}"),
                    *(cell(i, j) for j in range(len(names))),
                ),
            )
            for i, value in enumerate(slices.values)
        )
        level = percent_text(1 - (1 - interval.confidence_level) * len(slices.values))
        lacking = about_limits([measure])
        yield _Table(
            f"{measure.title}, by {slices.column}",
            slices.column,
            ("items", "positive", *names),
            rows,
            f"Intervals hold for all rows of a column at once, with {level} confidence. A slice "
            f"that lacks a class has a dash{lacking}.",
        )


def _facts_in_words(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts of the data, each with its name."""
    n = facts["n_items"]

    def of_all(count: int) -> str:
        return f"{count:,} ({percent(count / n)})"

    yield "File", facts["file"]
    yield "Label", facts["label"]
    yield "Rows", f"{n:,}"
    for name, called in (("n_positive", "Positive"), ("n_relevant", "Relevant")):
        if name in facts:
            yield called, of_all(facts[name])
    if "n_queries" in facts:
        yield "Queries", f"{facts['n_queries']:,}, by {facts['group']}"
    if facts.get("cluster") is not None:
        yield "Clusters", f"{facts['n_clusters']:,}, by {facts['cluster']}"
    for name, count in facts.get("n_tied", {}).items():
        yield f"Tied scores, {name}", of_all(count)
    for name, best in facts.get("least_cost", {}).items():
        at = "flagging nothing" if best["threshold"] is None else f"{best['threshold']:.6g}"
        yield f"Threshold of least cost, {name}", f"{at}, which costs {best['cost']:,.6g}"
    if "n_duplicates" in facts:
        yield "Duplicate rows of label and scores", of_all(facts["n_duplicates"])
    yield "Missing or NaN labels and scores", "none: the command refuses them"
    if facts.get("n_infinite"):
        yield "Infinite scores", f"{facts['n_infinite']:,}"
    if facts.get("streamed"):
        yield "Read", "in batches, into 65,536 bins of scores"


def _without_controls(value: object) -> object:
    """What the template shows: text, in which line breaks are meant, or a figure."""
    return visible(value, keep="\n") if type(value) is str else value


def _themed(drawing: Drawing, svg: str) -> str:
    """The figure in the colours of the page, with a name, and with ids of its own."""
    svg = re.sub(_IDS, "", svg[svg.index("<svg") :])
    svg = re.sub(r' id="|href="#|url\(#', rf"\g<0>{drawing.name}-", svg)
    label = html.escape(visible(f"{drawing.title}. {drawing.about}"))
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    for drawn, shown in ((_INK, "currentColor"), (_PAPER, "var(--paper)"), *_BLACK_AND_WHITE):
        svg = svg.replace(drawn, shown)
    return svg


@contextmanager
def page_colours() -> Iterator[None]:
    """Matplotlib draws with the colours that stand for ink and paper, and text as it is.

    Text between two dollars is no formula. Matplotlib's warnings are not for users of the command.
    """
    from matplotlib import rc_context

    fixed: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "jaxmetrics",
        "text.parse_math": False,
        "font.family": families(),
    }
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    paper = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    colours: dict[Any, str] = {**dict.fromkeys(ink, _INK), **dict.fromkeys(paper, _PAPER)}
    with rc_context({**colours, **fixed}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
