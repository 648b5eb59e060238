"""What the command line reports: a file or demonstration data in, tables and files out.

Needs the packages of the `report` extra.
"""

from __future__ import annotations

import difflib
import json
import math
import platform
import shlex
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
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

# With more models the bands of a plot hide each other.
MOST_BANDS = 7

COLUMNS = [
    *("metric", "max_fpr", "model", "minus", "value", "low", "high", "standard_error", "method"),
    *("p_value", "simultaneous_low", "simultaneous_high", "simultaneous_p_value"),
]

# Told what is being done, and the share of it that is.
Tell = Callable[..., None]


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
    cluster: str | None = None
    clusters: npt.NDArray[np.int64] | None = None  # [n]


class Settings(NamedTuple):
    """What the user chose."""

    max_fpr: float
    n_resamples: int = 2000
    confidence_level: float = 0.95
    seed: int = 0


class Measure(NamedTuple):
    """A metric of every model, and the models compared by it where they are."""

    name: str
    max_fpr: float | None
    interval: jm.Interval  # [models]
    comparison: jm.Comparison | None = None  # [models, models]


class Evaluation(NamedTuple):
    """All that is reported of a problem."""

    measures: tuple[Measure, ...]
    band: jm.RocBand | None  # [models, points]
    warnings: tuple[str, ...]


def check_settings(settings: Settings) -> None:
    """Refuse what is not a fraction, a count or a seed."""
    max_fpr, n_resamples, level, seed = settings
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
    cluster: str | None = None,
) -> Problem:
    """The columns of a file, checked, so that every metric of them is defined."""
    twice = [name for name, count in Counter([label, *scores]).items() if count > 1]
    if twice:
        raise InputError(
            f"column {twice[0]!r} is given twice: pass each --score once, and none as --label"
        )
    extra = [name for name in (weight, amount, cluster) if name is not None]
    frame = read_columns(path, [label, *scores, *extra])
    labels = _labels(label, frame[label], positive)
    weights = amounts = clusters = None
    if weight is not None:
        weights = _nonnegative("weight", weight, frame[weight])
        for name, members in (("positives", labels), ("negatives", ~labels)):
            if not weights[members].any():
                raise InputError(f"the weights {weight!r} of the {name} are all 0: AUC needs both")
    if amount is not None:
        # Only the positives' amounts count, so only theirs must be sound.
        amounts = np.zeros(len(labels))
        amounts[labels] = _nonnegative("positives' amount", amount, frame[amount][labels])
    if cluster is not None:
        clusters = _clusters(cluster, frame[cluster])
    rows = np.stack([_numbers("score", name, frame[name]) for name in scores])
    return Problem(
        str(path), label, tuple(scores), rows, labels, weights, amounts, cluster, clusters
    )


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


def _clusters(name: str, column: Any) -> npt.NDArray[np.int64]:
    """Ids of any type as whole numbers from 0."""
    _refuse_missing("cluster", name, column)
    if not pandas.api.types.is_numeric_dtype(column):
        column = column.astype(str)
    ids, distinct = pandas.factorize(column)
    if len(distinct) < 2:
        raise InputError(
            f"cluster {name!r} is {distinct[0]!s} in all rows: pass a column with an id for each "
            "group of items that belong together, or leave --cluster out"
        )
    return np.asarray(ids, np.int64)


def _refuse_missing(role: str, name: str, column: Any) -> None:
    missing = int(column.isna().sum())
    if missing:
        raise InputError(
            f"{role} {name!r} is missing (NaN) in {missing} of {len(column)} rows: "
            "drop these rows or fill them"
        )


# The demonstration.


def digits_problem(seed: int, tell: Tell) -> Problem:
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
        tell(f"Training {name}")
        scores.append(classifier.fit(train, train_labels).predict_proba(test)[:, 1])
    return Problem(
        "scikit-learn's digits", "is it an 8?", tuple(classifiers), np.stack(scores), labels
    )


# The evaluation.


def evaluate(
    problem: Problem, settings: Settings, tell: Tell, *, with_band: bool = False
) -> Evaluation:
    """Every metric of every model with intervals, and the models compared."""
    max_fpr, n_resamples, level, seed = settings
    limits = sorted({*FPR_LIMITS, max_fpr})
    recalls = partial(jm.recall_at_fpr, max_fpr=limits)
    compared: dict[str, Callable[..., Any]] = {
        "roc_auc": jm.roc_auc,
        "partial_auc": partial(jm.partial_auc, max_fpr=max_fpr, scale="mcclish"),
        "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=max_fpr),
    }
    interval = jm.confidence_interval
    work: dict[str, Callable[..., Any]] = {
        "AUC": partial(interval, compared["roc_auc"]),
        "partial AUC": partial(interval, compared["partial_auc"]),
        "recall": partial(interval, recalls),
        "average precision": partial(interval, jm.average_precision),
    }
    if problem.amounts is not None:
        work["recall by amount"] = partial(interval, recalls, amounts=problem.amounts)
    if len(problem.names) > 1:
        for name, metric in compared.items():
            work[f"comparison by {name}"] = partial(jm.compare, metric)
    if with_band and len(problem.names) <= MOST_BANDS:
        work["bands"] = partial(jm.roc_band, fpr=_grid(max_fpr))

    found = {}
    with jax.enable_x64(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, (name, call) in enumerate(work.items()):
            what, done = f"Evaluating: {name.replace('_', ' ')}", i / len(work)
            tell(what, done)
            found[name] = call(
                problem.scores,
                problem.labels,
                confidence_level=level,
                key=jax.random.key(seed),
                n_resamples=n_resamples,
                clusters=problem.clusters,
                weights=problem.weights,
                progress=lambda n, what=what, done=done: tell(
                    what, done + n / n_resamples / len(work)
                ),
            )
    notes = [_note(str(warning.message)) for warning in caught if warning.category is UserWarning]
    if with_band and "bands" not in work:
        notes.append(f"roc.png has no bands, as those of more than {MOST_BANDS} hide each other")

    def of_limits(name: str, interval: jm.Interval) -> list[Measure]:
        columns = [jax.tree.map(lambda x, j=j: x[:, j], interval) for j in range(len(limits))]
        pairs = zip(limits, columns, strict=True)
        return [Measure(name, x, column, comparison(name, x)) for x, column in pairs]

    def comparison(name: str, limit: float | None) -> jm.Comparison | None:
        return found.get(f"comparison by {name}") if limit in (None, max_fpr) else None

    found = jax.tree.map(np.asarray, found)
    measures = [
        Measure("roc_auc", None, found["AUC"], comparison("roc_auc", None)),
        Measure("partial_auc", max_fpr, found["partial AUC"], comparison("partial_auc", max_fpr)),
        *of_limits("recall_at_fpr", found["recall"]),
        Measure("average_precision", None, found["average precision"]),
    ]
    if problem.amounts is not None:
        measures += of_limits("amount_recall_at_fpr", found["recall by amount"])
    return Evaluation(tuple(measures), found.get("bands"), tuple(dict.fromkeys(notes)))


def _grid(max_fpr: float) -> FloatArray:
    """False positive rates of a plot: of the whole curve, and closer within the window."""
    grid = np.concatenate([np.linspace(0, end, 101) for end in (1, max_fpr)])
    return np.unique([max_fpr / 1000, *grid[grid > 0]])


def _note(message: str) -> str:
    # Resamples lack a class only where clusters are drawn, which are of either class or both, so
    # that the library's advice to draw each class by itself is of no use here.
    return message.partition(": stratify=")[0]


# The report.


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


def tables_of(problem: Problem, settings: Settings, evaluation: Evaluation) -> list[Table]:
    """The evaluation as tables for a terminal: values, values by amount, and differences."""
    names, measures = problem.names, evaluation.measures
    n, positives = len(problem.labels), int(problem.labels.sum())
    title = f"{Path(problem.source).name}, {problem.label}: "
    title += f"{n:,} items, {positives:,} positive ({_percent(positives / n)})"
    level = f"{100 * settings.confidence_level:g} %"
    about = f"In brackets, {level} confidence intervals"
    if problem.clusters is not None:
        about += f" for {len(np.unique(problem.clusters)):,} clusters ({problem.cluster})"
    about += "; partial AUC on McClish's scale, .5 for chance"
    if len(names) > 1:
        about += "; * best of its column"
    counted = [x for x in measures if not x.name.startswith("amount")]
    tables = [_table(title, about, names, counted, _value_cells)]
    if by_amount := [x for x in measures if x.name.startswith("amount")]:
        tables.append(_table("By amount", "", names, by_amount, _value_cells))
    if compared := [x for x in measures if x.comparison is not None]:
        about = (
            f"{level} intervals and p-values hold for all pairs of models of a column at once; "
            f"the best is, with {level} confidence, among those marked +"
        )
        tables.append(_table("Difference from the best", about, names, compared, _difference_cells))
    return tables


def _table(
    title: str,
    caption: str,
    names: Sequence[str],
    measures: Sequence[Measure],
    cells: Callable[[Measure], list[Text]],
) -> Table:
    """A row a model and a column a metric."""
    table = Table(
        title=Text(title),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        caption=Text(caption) if caption else None,
        caption_justify="left",
    )
    table.add_column("Model", overflow="fold")
    for measure in measures:
        table.add_column(_heading(measure), justify="right", no_wrap=True)
    for name, *row in zip(names, *map(cells, measures), strict=True):
        table.add_row(Text(name), *row)
    return table


def _value_cells(measure: Measure) -> list[Text]:
    """Values, the best of several marked, above their intervals."""
    interval: Any = measure.interval
    digits = _digits(interval.high - interval.low)
    best = (interval.estimate == np.max(interval.estimate)) & (len(interval.estimate) > 1)
    rows = zip(interval.estimate, interval.low, interval.high, best, strict=True)
    return [
        _cell(_fixed(value, digits), low, high, digits, "*" if mark else " ")
        for value, low, high, mark in rows
    ]


def _difference_cells(measure: Measure) -> list[Text]:
    """Differences from the best, above their intervals; a p-value beside each."""
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return [Text("-  ") for _ in found.estimate]
    best = int(np.argmax(found.estimate))
    lows, highs = found.simultaneous_low[:, best], found.simultaneous_high[:, best]
    digits = _digits(highs - lows)
    cells = []
    for i, marked in enumerate(found.best_set):
        difference = _fixed(found.difference[i, best], digits)
        what = f"{difference}, {_p_value(found.simultaneous_p_value[i, best])}"
        mark = " +" if marked else "  "
        if i == best:
            cells.append(Text(f"best{mark}", "bold green"))
        else:
            cells.append(_cell(what, lows[i], highs[i], digits, mark))
    return cells


def _cell(value: str, low: float, high: float, digits: int, mark: str) -> Text:
    first = Text(f"{value}{mark}", "bold green" if mark.strip() else "")
    if value == "-":
        return first
    return Text.assemble(first, f"\n[{_fixed(low, digits)}, {_fixed(high, digits)}]")


def _digits(widths: FloatArray) -> int:
    """So many that the narrowest interval has two digits that differ, from 3 to 6."""
    widths = widths[widths > 1e-6]  # neither NaN nor 0 but for rounding
    return int(np.clip(1 - np.floor(np.log10(widths.min(initial=1))), 3, 6))


def _fixed(value: float, digits: int) -> str:
    """Without the zero before the point; a dash where undefined."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}".replace("0.", ".", 1)


def _p_value(p: float) -> str:
    if math.isnan(p):
        return "p = -"
    return "p < .001" if p < 0.001 else f"p = {_fixed(p, 3)}"


def _heading(measure: Measure) -> str:
    if measure.max_fpr is None:
        return {"roc_auc": "AUC", "average_precision": "Average\nprecision"}[measure.name]
    what = "Partial\nAUC to" if measure.name == "partial_auc" else "Recall\nat"
    return f"{what}\n{_percent(measure.max_fpr)} FPR"


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
