"""The evaluation as JSON, and the files that are written."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._report._evaluation import Evaluation, Measure
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings

COLUMNS = [
    *("metric", "max_fpr", "model", "minus", "value", "low", "high", "standard_error", "method"),
    *("p_value", "simultaneous_low", "simultaneous_high", "simultaneous_p_value"),
]


def report(problem: Problem, settings: Settings, evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as one object that JSON can hold: null where undefined."""
    models: dict[str, Any] = {name: {} for name in problem.names}
    comparison: dict[str, Any] = {}
    for measure in evaluation.measures:
        for i, name in enumerate(problem.names):
            _put(models[name], measure, _estimate(measure.interval, i))
        if measure.comparison is not None:
            _put(comparison, measure, _comparison(measure.comparison, problem.names))
    clusters = problem.clusters
    return {
        "file": problem.source,
        "label": problem.label,
        "n_items": len(problem.labels),
        "n_positive": int(problem.labels.sum()),
        "cluster": problem.cluster,
        "n_clusters": None if clusters is None else len(np.unique(clusters)),
        **settings._asdict(),
        "models": models,
        "comparison": comparison or None,
        "warnings": list(evaluation.warnings),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("jaxmetrics", "jax", "numpy", "scikit-learn")},
        },
    }


def _put(tree: dict[str, Any], measure: Measure, value: Any) -> None:
    """Under the metric's name; a recall also under its limit, as there are several."""
    if measure.name.endswith("recall_at_fpr"):
        tree.setdefault(measure.name, {})[str(measure.max_fpr)] = value
    else:
        tree[measure.name] = value


def _estimate(interval: jm.Interval, i: int) -> dict[str, Any]:
    return {
        "value": _number(interval.estimate[i]),
        "low": _number(interval.low[i]),
        "high": _number(interval.high[i]),
        "standard_error": _number(interval.standard_error[i]),
        "method": interval.method,
    }


def _comparison(comparison: jm.Comparison, names: Sequence[str]) -> dict[str, Any]:
    chosen = ("low", "high", "standard_error", "p_value")
    simultaneous = ("simultaneous_low", "simultaneous_high", "simultaneous_p_value")
    differences = [
        {
            "model": names[i],
            "minus": names[j],
            "value": _number(comparison.difference[i, j]),
            **{key: _number(getattr(comparison, key)[i, j]) for key in (*chosen, *simultaneous)},
            "method": "wald",
        }
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    return {
        "best_set": [name for name, best in zip(names, comparison.best_set, strict=True) if best],
        "equality": {
            "chi2": _number(comparison.chi2),
            "df": _number(comparison.chi2_df),
            "p_value": _number(comparison.chi2_p_value),
        },
        "differences": differences,
    }


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def frame_of(problem: Problem, evaluation: Evaluation) -> Any:
    """A pandas DataFrame of a row an estimate; then a row a difference of one model `minus` one."""
    values, differences = [], []
    for measure in evaluation.measures:
        metric = {"metric": measure.name, "max_fpr": measure.max_fpr}
        for i, name in enumerate(problem.names):
            values.append({**metric, "model": name, **_estimate(measure.interval, i)})
        if measure.comparison is not None:
            found = _comparison(measure.comparison, problem.names)["differences"]
            differences += [{**metric, **difference} for difference in found]
    return pandas.DataFrame([*values, *differences], columns=COLUMNS)


def json_of(report: dict[str, Any]) -> str:
    """The report as JSON text."""
    return json.dumps(report, indent=2, allow_nan=False)


def save(problem: Problem, settings: Settings, evaluation: Evaluation, directory: Path) -> None:
    """Write roc.png, metrics.json and metrics.csv."""
    whole, window = evaluation.measures[:2]
    figure = plots.roc_with_window(
        problem.scores,
        problem.labels,
        names=problem.names,
        max_fpr=settings.max_fpr,
        weights=problem.weights,
        band=evaluation.band,
        intervals=(whole.interval, window.interval),
    )
    figure.savefig(directory / "roc.png", dpi=150)
    text = json_of(report(problem, settings, evaluation))
    (directory / "metrics.json").write_text(text + "\n", encoding="utf-8")
    frame_of(problem, evaluation).to_csv(directory / "metrics.csv", index=False)
