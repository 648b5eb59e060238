"""The evaluation as JSON, and the files of the report."""

from __future__ import annotations

import json
import math
import platform
import re
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import pandas

import jaxmetrics as jm
from jaxmetrics._base.words import NARROWEST
from jaxmetrics._report._drawn import MARK, drawn, save_figure
from jaxmetrics._report._evaluation import Evaluation, Measure, Slices
from jaxmetrics._report._folder import replaced_files
from jaxmetrics._report._page import page_of
from jaxmetrics._report._settings import Settings, Tell
from jaxmetrics._report._trends import trend_records, trend_rows

# The names of a report's figures; these files also hold MARK.
_FIGURE = re.compile(
    r"(intervals|roc|precision_recall|scores|cost|slices(_\d+)?|ranking)\.(svg|png|pdf)"
)

# The counts that each row of the CSV has, if the facts have them. n_queries is not among them: it
# differs between measures, and is one of `Evaluation.columns`.
_COUNTS = ("n_items", "n_positive", "n_relevant")
COLUMNS = [
    *("slice", "model", "minus", "value", "low", "high", "standard_error", "method"),
    *("certain_low", "certain_high"),
    *("p_value", "simultaneous_low", "simultaneous_high", "simultaneous_p_value"),
    "any_change_p_value",
]


def report(settings: Settings, evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as one object for JSON, with None for what is undefined."""
    models: dict[str, Any] = {name: {} for name in evaluation.names}
    comparison: dict[str, Any] = {}
    for measure in evaluation.measures:
        for i, name in enumerate(evaluation.names):
            _put(models[name], measure, _estimate(measure, i))
        if measure.comparison is not None:
            _put(comparison, measure, _comparison_record(measure, evaluation.names))
    return {
        **evaluation.facts,
        "n_resamples": settings.n_resamples,
        "confidence_level": settings.confidence_level,
        "seed": settings.seed,
        "models": models,
        "comparison": comparison or None,
        "operating_points": {
            x.rule: {
                name: {measure.name: _estimate(measure, i) for measure in x.measures}
                for i, name in enumerate(evaluation.names)
            }
            for x in evaluation.points
        }
        or None,
        "slices": {part.column: _slices(part, evaluation.names) for part in evaluation.slices}
        or None,
        "trends": {
            part.column: found
            for part in evaluation.slices
            if (found := trend_records(part, evaluation.names))
        }
        or None,
        "warnings": list(evaluation.warnings),
        "versions": versions(),
    }


def _put(tree: dict[str, Any], measure: Measure, value: Any) -> None:
    """Put a value under the metric's name, and under its limit if there may be several."""
    if measure.name.endswith(("recall_at_fpr", "_at_k")):
        limit = measure.max_fpr if measure.k is None else measure.k
        tree.setdefault(measure.name, {})[str(limit)] = value
    else:
        tree[measure.name] = value


def _estimate(measure: Measure, i: int) -> dict[str, Any]:
    interval = measure.interval
    estimate = {
        "value": _number(interval.estimate[i]),
        "low": _number(interval.low[i]),
        "high": _number(interval.high[i]),
        "standard_error": _number(interval.standard_error[i]),
        "method": interval.method,
    }
    if measure.bounds is not None:
        low, high = measure.bounds
        estimate |= {"certain_low": _number(low[i]), "certain_high": _number(high[i])}
    estimate |= _scale_of(measure)
    return estimate if measure.n_queries is None else {**estimate, "n_queries": measure.n_queries}


def _slices(slices: Slices, names: Sequence[str]) -> dict[str, Any]:
    return {
        value: {
            "n_items": slices.n_items[i],
            "n_positive": slices.n_positive[i],
            "models": {
                name: {x.name: _of_slice(x, i, j) for x in slices.measures}
                for j, name in enumerate(names)
            },
            "differences": {
                x.name: _differences_of_slice(found, i, names)
                for x, found in zip(slices.measures, slices.compared, strict=False)
            }
            if len(names) > 1 and slices.compared
            else None,
        }
        for i, value in enumerate(slices.values)
    }


def _differences_of_slice(found: jm.Slices, i: int, names: Sequence[str]) -> list[dict[str, Any]]:
    of_slice = jax.tree.map(lambda x: x[i], found.models)
    return _differences(of_slice, of_slice.high - of_slice.low > NARROWEST, names)


def _of_slice(measure: Measure, i: int, j: int) -> dict[str, Any]:
    interval = measure.interval
    return {
        "value": _number(interval.estimate[i, j]),
        "simultaneous_low": _number(interval.low[i, j]),
        "simultaneous_high": _number(interval.high[i, j]),
        "method": interval.method,
        **_scale_of(measure),
    }


def _scale_of(measure: Measure) -> dict[str, str]:
    return {} if measure.scale is None else {"scale": measure.scale}


def _comparison_record(measure: Measure, names: Sequence[str]) -> dict[str, Any]:
    """Differences, and what can be said of them: without an interval nothing can be."""
    comparison: Any = measure.comparison
    known, best_set, size = measure.has_intervals, measure.best_set, measure.enough
    return {
        "best_set": None
        if best_set is None
        else [name for name, best in zip(names, best_set, strict=True) if best],
        "equality": {
            "chi2": None if best_set is None else _number(comparison.chi2),
            "df": _number(comparison.chi2_df),
            "p_value": None if best_set is None else _number(comparison.chi2_p_value),
        },
        "differences": _differences(comparison, known, names),
        "n_positives_enough": None if size is None else _number(size.n_positives),
        "n_clusters_enough": None
        if size is None or size.n_clusters is None
        else _number(size.n_clusters),
        **_scale_of(measure),
    }


def _differences(found: Any, known: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The difference of each pair of models, of arrays `[models, models]`."""
    alone = ("low", "high", "standard_error", "p_value")
    simultaneous = ("simultaneous_low", "simultaneous_high", "simultaneous_p_value")
    return [
        {
            "model": names[i],
            "minus": names[j],
            "value": _number(found.difference[i, j]),
            **{
                key: _number(getattr(found, key)[i, j]) if known[i, j] else None
                for key in (*alone, *simultaneous)
            },
            "method": "wald",
        }
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]


def _number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def frame_of(evaluation: Evaluation) -> Any:
    """A DataFrame with a row for each estimate and difference, also of each slice."""
    values, differences, of_slices = [], [], []
    counts = {name: evaluation.facts[name] for name in _COUNTS if name in evaluation.facts}
    of_points = [measure for x in evaluation.points for measure in x.measures]
    for measure in (*evaluation.measures, *of_points):
        columns = {key: getattr(measure, key) for key in evaluation.columns}
        metric = {"metric": measure.name, **columns, **counts}
        for i, name in enumerate(evaluation.names):
            values.append({**metric, "model": name, **_estimate(measure, i)})
        if measure.comparison is not None:
            found = _comparison_record(measure, evaluation.names)["differences"]
            differences += [{**metric, **difference} for difference in found]
    for part in evaluation.slices:
        for k, measure in enumerate(part.measures):
            metric = {"metric": measure.name, "max_fpr": measure.max_fpr, "scale": measure.scale}
            by_slice = [
                {
                    **metric,
                    "slice": f"{part.column} = {value}",
                    "n_items": n,
                    "n_positive": positive,
                }
                for value, n, positive in zip(
                    part.values, part.n_items, part.n_positive, strict=True
                )
            ]
            of_slices += [
                {**row, "model": name, **_of_slice(measure, i, j)}
                for i, row in enumerate(by_slice)
                for j, name in enumerate(evaluation.names)
            ]
            of_slices += [
                {**row, **difference}
                for found in part.compared[k : k + 1]
                for i, row in enumerate(by_slice)
                for difference in _differences_of_slice(found, i, evaluation.names)
            ]
        of_slices += trend_rows(part, evaluation.names)
    rows = [*values, *differences, *of_slices]
    frame = pandas.DataFrame(rows, columns=["metric", *evaluation.columns, *counts, *COLUMNS])
    for column in ("slice", "model", "minus"):
        frame[column] = frame[column].map(_no_formula, na_action="ignore")
    # This type keeps whole numbers whole where some are missing.
    return frame.astype({"k": "Int64"} if "k" in frame else {})


def _no_formula(name: str) -> str:
    """The name, after an apostrophe if spreadsheets would take it for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def json_of(report: dict[str, Any]) -> str:
    """The report as JSON; infinite numbers, which JSON does not have, are texts."""

    def told(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: told(value) for key, value in x.items()}
        if isinstance(x, list):
            return [told(value) for value in x]
        return str(x) if isinstance(x, float) and math.isinf(x) else x

    return json.dumps(told(report), indent=2, allow_nan=False)


def save(settings: Settings, evaluation: Evaluation, directory: Path, tell: Tell) -> None:
    """Write the report, the numbers and the figures: all of them, or nothing."""
    with replaced_files(directory, _is_figure_of_ours) as folder:
        _write(settings, evaluation, folder, tell)


def _is_figure_of_ours(file: Path) -> bool:
    """Whether a report wrote the file, by its name and by the mark that its figures have."""
    if _FIGURE.fullmatch(file.name) is None or not file.is_file() or file.is_symlink():
        return False
    return MARK.encode() in file.read_bytes()  # of all: a PDF has it at its end


def _write(settings: Settings, evaluation: Evaluation, directory: Path, tell: Tell) -> None:
    texts = {
        "report.html": page_with_figures(settings, evaluation, tell, directory),
        "metrics.json": json_of(report(settings, evaluation)) + "\n",
        "metrics.csv": frame_of(evaluation).to_csv(index=False),
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")


def page_with_figures(
    settings: Settings, evaluation: Evaluation, tell: Tell, directory: Path | None = None
) -> str:
    """The page with its figures, which are also files if there is a directory for them."""
    figures = []
    with warnings.catch_warnings():  # users of the command need not see Matplotlib's
        warnings.simplefilter("ignore", UserWarning)
        for i, drawing in enumerate(evaluation.drawings):
            tell(f"Drawing: {drawing.title}", i / len(evaluation.drawings))
            found = evaluation.drawn.get(drawing.name) or drawn(
                drawing, settings.style, with_files=directory is not None
            )
            if directory is not None:
                save_figure(drawing.name, found, directory)
            figures.append(found.svg)
    return page_of(settings, evaluation, figures, versions(), has_files=directory is not None)


def versions() -> dict[str, str]:
    """The versions of the packages that computed the numbers."""
    return {
        "python": platform.python_version(),
        "jaxmetrics": jm.__version__,
        **{name: version(name) for name in ("jax", "numpy", "scikit-learn")},
    }
