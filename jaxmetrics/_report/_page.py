"""The evaluation as one page of HTML that contains its figures and loads nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.words import (
    decimals_of_metric,
    fixed,
    number,
    p_value,
    percent_text,
    threshold_in_words,
    visible,
)
from jaxmetrics._report._cells import (
    Cell,
    SliceTable,
    about_differences,
    about_limits,
    about_points,
    counts_in,
    slice_tables,
    value_cells,
    values_in,
)
from jaxmetrics._report._evaluation import Drawing, Evaluation, Measure, Slices
from jaxmetrics._report._findings import LONGEST_IN_TEXT, Finding, findings_of
from jaxmetrics._report._fonts import families
from jaxmetrics._report._settings import Settings
from jaxmetrics._report._trends import trend_tables
from jaxmetrics.plots._names import short_names
from jaxmetrics.plots._style import MOST_MODELS, StyleName

# Almost black and almost white: in a figure they stand for the page's colours of text and paper.
_INK, _PAPER = "#010203", "#fdfefd"
_BLACK, _WHITE = "#000000", "#ffffff"
# Ids that every figure repeats. Nothing refers to them, and a page must not repeat ids.
_IDS = r' id="(figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|legend)_\d+"'
# The most findings, notes, models and figures before the details, to fit three screens; and the
# names of those figures.
_MOST_FINDINGS, _MOST_NOTES, _MOST_ROWS, _MOST_DRAWN = 5, 3, 8, 2
_FIRST = ("intervals", "roc", "ranking")


class _Table(NamedTuple):
    """Rows of cells under headings."""

    title: str
    corner: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    about: str = ""


class _Section(NamedTuple):
    """A part of the details, which is closed on a screen and open on paper."""

    name: str  # of its anchor
    title: str
    about: str = ""
    findings: Sequence[Finding] = ()
    warnings: Sequence[str] = ()
    tables: Sequence[_Table] = ()
    drawings: Sequence[tuple[Drawing, str]] = ()
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()


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
    template = environment.from_string(
        files("jaxmetrics._report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    )
    findings, warnings = findings_of(evaluation), evaluation.warnings
    drawings = [
        (drawing, _themed(drawing, svg))
        for drawing, svg in zip(evaluation.drawings, figures, strict=True)
    ]
    n = len(evaluation.names)
    most = _MOST_DRAWN if n <= MOST_MODELS else 1
    shown = [x for x in drawings if x[0].name in _FIRST][-most:]
    sections = (
        _Section(
            "more",
            "More findings and notes",
            findings=findings[_MOST_FINDINGS:],
            warnings=warnings[_MOST_NOTES:],
        ),
        _Section("all", "All values", tables=_all_values(evaluation)),
        *_sections_of(evaluation),
        _Section("figures", "More figures", drawings=[x for x in drawings if x not in shown]),
        _Section("data", "Data", facts=list(_facts_in_words(evaluation.facts))),
        _made(settings, versions),
    )
    in_print = settings.style == "print"
    return template.render(
        title=evaluation.title,
        findings=findings[:_MOST_FINDINGS],
        warnings=warnings[:_MOST_NOTES],
        values=_values(evaluation),
        drawings=shown,
        sections=[x for x in sections if any(x[2:])],
        formats="" if not has_files else "PNG, SVG and PDF" if in_print else "PNG and SVG",
        has_dark=not in_print,
    )


def _sections_of(evaluation: Evaluation) -> Iterator[_Section]:
    """The sections of comparisons in pairs, of thresholds and of slices."""
    names = short_names(evaluation.names, LONGEST_IN_TEXT)
    level = percent_text(evaluation.measures[0].interval.confidence_level)
    if pairs := [_table_of_pairs(x, names) for x in evaluation.measures if x.has_intervals.any()]:
        about = (
            "Intervals and p-values are simultaneous for all pairs of a table. Models marked + are "
            f"not significantly worse than the best at the {level} confidence level, by one-sided "
            "tests (Hsu's): these may leave out a model whose two-sided interval still holds 0."
        )
        yield _Section("pairs", "Models compared in pairs", about, tables=pairs)
    if evaluation.points:
        points = [
            _table_of_models(x.title, "", evaluation.names, list(x.measures))
            for x in evaluation.points
        ]
        yield _Section("points", "Thresholds", f"{about_points(evaluation.points)}.", tables=points)
    slices = [
        _table_of_slices(found)
        for part in evaluation.slices
        for tables in (trend_tables, slice_tables, _of_slices)
        for found in tables(part, names)
    ]
    yield _Section("slices", "Slices", tables=slices)


def _made(settings: Settings, versions: dict[str, str]) -> _Section:
    facts = [
        ("Confidence level", percent_text(settings.confidence_level)),
        ("Resamples", f"{settings.n_resamples:,}, seed {settings.seed}"),
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
        ("Date", datetime.now(UTC).date().isoformat()),
    ]
    return _Section("made", "How this report was made", command=settings.command, facts=facts)


def _values(evaluation: Evaluation) -> _Table:
    """The values of all models, or of the best ones by the first metric, with short names."""
    names = short_names(evaluation.names)
    counted = [x for x in evaluation.measures if not x.by_amount]
    several = "; * marks the best of a column" if len(names) > 1 else ""
    about = (
        f"In brackets, {percent_text(counted[0].interval.confidence_level)} confidence "
        f"intervals{evaluation.about}{several}{about_limits(evaluation.measures)}."
    )
    table = _table_of_models("Values", about, names, counted)
    if len(names) <= _MOST_ROWS:
        return table
    ranks = np.argsort(-np.nan_to_num(counted[0].interval.estimate, nan=-np.inf), kind="stable")
    kept = {*ranks[:_MOST_ROWS].tolist(), *range(len(names), len(table.rows))}
    rows = tuple(row for i, row in enumerate(table.rows) if i in kept)
    about += f" Of {len(names)} models, these have the highest {counted[0].title}."
    return table._replace(rows=rows, about=about)


def _all_values(evaluation: Evaluation) -> list[_Table]:
    """The tables of values that the first table leaves out."""
    counted = [x for x in evaluation.measures if not x.by_amount]
    found = []
    short = short_names(evaluation.names)
    if len(short) > _MOST_ROWS or short != [visible(x) for x in evaluation.names]:
        found.append(_table_of_models("All models", "", evaluation.names, counted))
    if by_amount := [x for x in evaluation.measures if x.by_amount]:
        found.append(_table_of_models("Values by amount", "", evaluation.names, by_amount))
    return found


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
    digits = decimals_of_metric(found.simultaneous_high - found.simultaneous_low)
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
    about = []
    if any(x.best for _, row in rows for x in row):
        about.append("Bold: the interval excludes 0.")
    if unknown := about_differences([measure]):
        about.append(f"{unknown.capitalize()}.")
    if n > 2 and best_set is not None and not np.isnan(found.chi2_p_value):
        about.append(f"Test that all models are equal: {p_value(float(found.chi2_p_value))}.")
    return _Table(measure.called, "Row minus column", tuple(names), rows, " ".join(about))


def _of_slices(slices: Slices, names: Sequence[str]) -> Iterator[SliceTable]:
    """The values of each metric in slices, in a table each, as several models may be wide."""
    for measure in slices.defined:
        interval: Any = measure.interval
        digits = decimals_of_metric((interval.high - interval.low).ravel())
        values = [(name, values_in(measure, i, digits)) for i, name in enumerate(names)]
        dash = ". A slice that lacks a class has a dash" * bool(np.isnan(interval.estimate).any())
        yield SliceTable(
            f"{measure.title}, by {slices.column}",
            slices.column,
            slices.values,
            [*counts_in(slices), *values],
            f"Intervals hold for all rows of a column at once, with {slices.level} confidence"
            f"{about_limits([measure])}{dash}",
        )


def _table_of_slices(found: SliceTable) -> _Table:
    headings, cells = zip(*found.columns, strict=True)
    rows = tuple(zip(found.rows, zip(*cells, strict=True), strict=True))
    return _Table(found.title, found.corner, headings, rows, f"{found.about}.")


def _facts_in_words(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts of the data, each with its name."""
    n = facts["n_items"]

    def of_all(count: int) -> str:
        return f"{count:,} ({percent_text(count / n)})"

    yield "File", facts["file"]
    yield "Label", facts["label"]
    yield "Rows", f"{n:,}"
    for name, called in (("n_positive", "Positive"), ("n_relevant", "Relevant")):
        if name in facts:
            yield called, of_all(facts[name])
    if facts.get("positive_by_weight") is not None:
        yield "Positive, by weight", percent_text(facts["positive_by_weight"])
    if "n_queries" in facts:
        yield "Queries", f"{facts['n_queries']:,}, by {facts['group']}"
    if facts.get("cluster") is not None:
        yield "Clusters", f"{facts['n_clusters']:,}, by {facts['cluster']}"
    for name, count in facts.get("n_tied", {}).items():
        yield f"Tied scores, {name}", of_all(count)
    if facts.get("prevalence") is not None:
        yield "Prevalence in use (--prevalence)", percent_text(facts["prevalence"])
    for name, best in facts.get("least_cost", {}).items():
        threshold = best["threshold"]
        at = "flagging nothing" if threshold == np.inf else threshold_in_words(threshold)
        yield f"Threshold of least cost, {name}", f"{at}, which costs {number(best['cost'])}"
    if "n_duplicates" in facts:
        of = "query, label" if "n_queries" in facts else "label"
        yield f"Duplicate rows of {of} and scores", of_all(facts["n_duplicates"])
    yield "Missing or NaN labels and scores", "none among these rows"
    if facts.get("n_infinite"):
        yield "Infinite scores", f"{facts['n_infinite']:,}"
    if facts.get("streamed"):
        yield "Read", "in batches, into 65,536 bins of scores"


def _without_controls(value: object) -> object:
    """A value of the template: control characters in texts, but line breaks, become visible."""
    return visible(value, keep="\n") if type(value) is str else value


def _themed(drawing: Drawing, svg: str) -> str:
    """The figure in the colours of the page, with a name, and with ids of its own."""
    svg = re.sub(_IDS, "", svg[svg.index("<svg") :])
    svg = re.sub(r' id="|href="#|url\(#', rf"\g<0>{drawing.name}-", svg)
    label = html.escape(visible(f"{drawing.title}. {drawing.about}"))
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    for drawn in (_INK, _BLACK):
        svg = svg.replace(drawn, "currentColor")
    for drawn in (_PAPER, _WHITE):
        svg = svg.replace(drawn, "var(--paper)")
    return svg


@contextmanager
def page_colours(style: StyleName = "colour") -> Iterator[None]:
    """Within it, Matplotlib draws with the colours that stand for those of text and paper.

    In the style for print these are black and white, and PDF files embed their fonts. Numbers have
    the minus sign of the tables. Text between two dollar signs is not a formula.
    """
    from matplotlib import rc_context

    fixed: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "jaxmetrics",
        "pdf.fonttype": 42,
        "axes.unicode_minus": False,
        "text.parse_math": False,
        "font.family": families(),
    }
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    paper = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    black, white = (_BLACK, _WHITE) if style == "print" else (_INK, _PAPER)
    colours: dict[Any, str] = {**dict.fromkeys(ink, black), **dict.fromkeys(paper, white)}
    with rc_context({**colours, **fixed}):
        yield
