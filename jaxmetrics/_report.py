"""What the command line reports: a file or demonstration data in, a table and files out.

Needs the packages of the `report` extra.
"""

from __future__ import annotations

import difflib
import json
import math
import platform
import shlex
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import click
import jax
import numpy as np
import numpy.typing as npt
import pandas
import pyarrow.parquet
from rich import box
from rich.table import Table
from rich.text import Text

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._types import FloatArray

FPR_LIMITS = (0.01, 0.05)


class InputError(click.ClickException):
    """What the user gave cannot be evaluated; the message is one sentence that says what to do."""

    exit_code = 2


class Problem(NamedTuple):
    """The scores of several models for the same labelled items."""

    source: str
    label: str
    names: tuple[str, ...]
    scores: FloatArray  # [models, n]
    labels: npt.NDArray[np.bool_]  # [n]
    weights: FloatArray | None = None  # [n]
    amounts: FloatArray | None = None  # [n]


def check_max_fpr(max_fpr: float) -> None:
    """Refuse what is not a fraction."""
    if not 0 < max_fpr <= 1:
        raise InputError(
            f"--max-fpr must be above 0 and at most 1, got {max_fpr:g}: "
            "write fractions, 0.01 for 1 per cent"
        )


# Reading. A format is how to find the names of its columns, and how to read some of them.


def _csv(path: Path, names: list[str]) -> Any:
    # Of pandas' parsers, this one reads floats exactly and refuses rows that do not fit the header.
    return pandas.read_csv(path, usecols=names, engine="pyarrow")


def _parquet(path: Path, names: list[str]) -> Any:
    return pyarrow.parquet.read_table(path, columns=names).to_pandas(ignore_metadata=True)


def _npz(path: Path, names: list[str]) -> Any:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in names}
    if len({array.shape for array in arrays.values()}) > 1 or arrays[names[0]].ndim != 1:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise ValueError(f"arrays must be one-dimensional and of one length, got {shapes}")
    return pandas.DataFrame(arrays)


def _npz_names(path: Path) -> list[str]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not what numpy.savez writes")
    with np.load(path) as archive:
        return list(archive.files)


FORMATS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, list[str]], Any]]] = {
    ".csv": (lambda path: list(pandas.read_csv(path, nrows=0)), _csv),
    ".csv.gz": (lambda path: list(pandas.read_csv(path, nrows=0)), _csv),
    ".parquet": (lambda path: list(pyarrow.parquet.read_schema(path).names), _parquet),
    ".npz": (_npz_names, _npz),
}


def read_columns(path: Path, names: Sequence[str]) -> Any:
    """The named columns of a file as a pandas DataFrame with at least one row."""
    if not path.is_file():
        raise InputError(f"there is no file {path}: check the path")
    formats = [parts for ending, parts in FORMATS.items() if path.name.lower().endswith(ending)]
    if not formats:
        raise InputError(
            f"{path.name} is of no known format: convert it to one of {', '.join(FORMATS)}"
        )
    list_names, read = formats[0]
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: it needs columns of labels and scores")
    present = _parsed(path, list_names)
    for name in names:
        if name not in present:
            close = difflib.get_close_matches(name, present, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(
                f"{path.name} has no column {name!r}{hint}: its columns are {_listed(present, 20)}"
            )
    frame = _parsed(path, lambda path: read(path, list(dict.fromkeys(names))))
    if frame.empty:
        raise InputError(f"{path.name} has columns but no rows: it needs one row an item")
    return frame


def _parsed(path: Path, parse: Callable[[Path], Any]) -> Any:
    try:
        return parse(path)
    except pandas.errors.EmptyDataError:
        raise InputError(f"{path.name} is empty: it needs columns of labels and scores") from None
    except Exception as error:  # parsers differ in what they raise on a damaged file
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(f"{path.name} cannot be read: {reason}") from None


def _listed(values: Sequence[Any], most: int) -> str:
    shown = ", ".join(str(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def problem_of_file(
    path: Path,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None = None,
    weight: str | None = None,
    amount: str | None = None,
) -> Problem:
    """The columns of a file, checked, so that every metric of them is defined."""
    twice = [name for name, count in Counter([label, *scores]).items() if count > 1]
    if twice:
        raise InputError(
            f"column {twice[0]!r} is given twice: pass each --score once, and none as --label"
        )
    extra = [name for name in (weight, amount) if name is not None]
    frame = read_columns(path, [label, *scores, *extra])
    labels = _labels(label, frame[label], positive)
    weights = amounts = None
    if weight is not None:
        weights = _nonnegative("weight", weight, frame[weight])
        for name, members in (("positives", labels), ("negatives", ~labels)):
            if not weights[members].any():
                raise InputError(f"the weights {weight!r} of the {name} are all 0: AUC needs both")
    if amount is not None:
        # Only the positives' amounts count, so only theirs must be sound.
        amounts = np.zeros(len(labels))
        amounts[labels] = _nonnegative("positives' amount", amount, frame[amount][labels])
    rows = np.stack([_numbers("score", name, frame[name]) for name in scores])
    return Problem(str(path), label, tuple(scores), rows, labels, weights, amounts)


def _labels(name: str, column: Any, positive: str | None) -> npt.NDArray[np.bool_]:
    _refuse_missing("label", name, column)
    if not pandas.api.types.is_numeric_dtype(column):
        column = column.astype(str)
    values = sorted(column.unique().tolist())
    if len(values) > 2:
        raise InputError(
            f"label {name!r} must be binary but has {len(values)} distinct values, "
            f"{_listed(values, 5)}: pass a column that has two"
        )
    if len(values) == 1:
        raise InputError(
            f"label {name!r} has only one class, {values[0]}: both positives and negatives are "
            "needed"
        )
    if positive is None:
        if set(values) == {0, 1}:
            return np.asarray(column == 1, bool)
        raise InputError(
            f"label {name!r} has the values {values[0]} and {values[1]}: say which is positive, "
            f"as in --positive {shlex.quote(str(values[1]))}"
        )
    number = pandas.to_numeric(positive, errors="coerce")  # "1" is also 1.0 and True
    chosen = [value for value in values if str(value) == positive or value == number]
    if not chosen:
        raise InputError(
            f"label {name!r} has no value {positive!r}: pass one of its two as --positive, "
            f"{values[0]} or {values[1]}"
        )
    return np.asarray(column == chosen[0], bool)


def _numbers(role: str, name: str, column: Any) -> FloatArray:
    """A column of numbers as float64."""
    _refuse_missing(role, name, column)
    numbers = pandas.to_numeric(column, errors="coerce")
    odd = column[numbers.isna() | np.iscomplexobj(numbers)]
    if len(odd):
        raise InputError(
            f"{role} {name!r} must hold numbers but has {odd.iloc[0]!r}: convert or drop "
            f"{len(odd)} of {len(column)} rows"
        )
    return np.asarray(numbers, np.float64)


def _nonnegative(role: str, name: str, column: Any) -> FloatArray:
    numbers = _numbers(role, name, column)
    odd = numbers[~((numbers >= 0) & (numbers < np.inf))]
    if len(odd):
        raise InputError(
            f"{role} {name!r} must be finite and not negative but has {odd[0]:g}: correct or drop "
            f"{len(odd)} of {len(numbers)} rows"
        )
    return numbers


def _refuse_missing(role: str, name: str, column: Any) -> None:
    missing = int(column.isna().sum())
    if missing:
        raise InputError(
            f"{role} {name!r} is missing (NaN) in {missing} of {len(column)} rows: "
            "drop these rows or fill them"
        )


# The demonstration.


def digits_problem(seed: int, progress: Callable[[str], None]) -> Problem:
    """Three classifiers of different kinds on scikit-learn's digits: is it an 8?"""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifiers = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(random_state=seed),
        "nearest neighbours": KNeighborsClassifier(15),
    }
    features, digits = load_digits(return_X_y=True)
    train, test, train_labels, labels = train_test_split(
        features, digits == 8, test_size=0.5, stratify=digits == 8, random_state=seed
    )
    scores = []
    for name, classifier in classifiers.items():
        progress(f"Training {name} ...")
        scores.append(classifier.fit(train, train_labels).predict_proba(test)[:, 1])
    return Problem(
        "scikit-learn's digits", "is it an 8?", tuple(classifiers), np.stack(scores), labels
    )


# The report.


def report(problem: Problem, max_fpr: float) -> dict[str, Any]:
    """Every metric of every model, as one object that JSON can hold: null where undefined."""
    names, scores, labels = problem.names, problem.scores, problem.labels
    limits = sorted({*FPR_LIMITS, max_fpr})
    with jax.enable_x64(True):  # results in double precision
        table = jm.score_table(scores, labels, weights=problem.weights)
        values = {
            "roc_auc": jm.roc_auc(table),
            "partial_auc": jm.partial_auc(table, max_fpr=max_fpr, scale="mcclish"),
            "recall_at_fpr": jm.recall_at_fpr(table, max_fpr=limits),
            "average_precision": jm.average_precision(table),
        }
        if problem.amounts is not None:
            values["amount_recall_at_fpr"] = jm.recall_at_fpr(
                scores, labels, weights=problem.weights, amounts=problem.amounts, max_fpr=limits
            )

    def plain(value: Any) -> Any:
        if value.ndim:
            return {str(limit): plain(x) for limit, x in zip(limits, value, strict=True)}
        return None if math.isnan(value) else float(value)

    return {
        "file": problem.source,
        "label": problem.label,
        "n_items": len(labels),
        "n_positive": int(labels.sum()),
        "max_fpr": max_fpr,
        "models": {
            name: {key: plain(np.asarray(value)[i]) for key, value in values.items()}
            for i, name in enumerate(names)
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("jaxmetrics", "jax", "numpy", "scikit-learn")},
        },
    }


def frame_of(report: dict[str, Any]) -> Any:
    """The models' metrics as a pandas DataFrame, one row a model."""
    rows = {name: _flat(metrics) for name, metrics in report["models"].items()}
    return pandas.DataFrame.from_dict(rows, "index", float).rename_axis("model")


def _flat(metrics: dict[str, Any]) -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for key, value in metrics.items():
        several = value if isinstance(value, dict) else {"": value}
        flat.update({f"{key}_{limit}".rstrip("_"): x for limit, x in several.items()})
    return flat


def table_of(report: dict[str, Any]) -> Table:
    """The report as a table for a terminal, the best of each column marked."""
    n, positives = report["n_items"], report["n_positive"]
    counts = f"{n:,} items, {positives:,} positive ({_percent(positives / n)})"
    frame = frame_of(report)
    best = frame.eq(frame.max()) & (len(frame) > 1)
    note = "partial AUC on McClish's scale, 0.5 for chance"
    table = Table(
        title=Text(f"{Path(report['file']).name}, {report['label']}: {counts}"),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        caption=f"{note}; * best of its column" if len(frame) > 1 else note,
    )
    table.add_column("Model", overflow="fold")
    for column in frame:
        table.add_column(_heading(column, report["max_fpr"]), justify="right", no_wrap=True)
    for (name, row), marks in zip(frame.iterrows(), best.to_numpy(), strict=True):
        cells = [_cell(value, mark) for value, mark in zip(row, marks, strict=True)]
        table.add_row(Text(name), *cells)
    return table


def _cell(value: float, best: bool) -> Text:
    text = "-" if math.isnan(value) else f"{value:.4f}"
    return Text(f"{text}*", "bold green") if best else Text(f"{text} ")


def _heading(column: str, max_fpr: float) -> str:
    kind, _, limit = column.rpartition("_at_fpr_")
    if kind:
        what = {"recall": "Recall\nat", "amount_recall": "Amount\nrecall at"}[kind]
        return f"{what}\n{_percent(float(limit))} FPR"
    return {
        "roc_auc": "AUC",
        "partial_auc": f"Partial\nAUC to\n{_percent(max_fpr)} FPR",
        "average_precision": "Average\nprecision",
    }[column]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def json_of(report: dict[str, Any]) -> str:
    """The report as JSON text."""
    return json.dumps(report, indent=2, allow_nan=False)


def make_directory(directory: Path) -> None:
    """Create it, before any long work, or say why not."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory} ({error.strerror}): pass another folder as --output"
        ) from None


def save(problem: Problem, report: dict[str, Any], directory: Path) -> None:
    """Write roc.png, metrics.json and metrics.csv."""
    figure = plots.roc_with_window(
        problem.scores,
        problem.labels,
        names=problem.names,
        max_fpr=report["max_fpr"],
        weights=problem.weights,
    )
    figure.savefig(directory / "roc.png", dpi=150)
    (directory / "metrics.json").write_text(json_of(report) + "\n", encoding="utf-8")
    frame_of(report).to_csv(directory / "metrics.csv")
