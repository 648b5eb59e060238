"""The report of arrays: the problem that the command reads from a file is made from them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from jaxmetrics._base import checks
from jaxmetrics._base.frames import is_frame, names_in
from jaxmetrics._report._classification import evaluate_problem
from jaxmetrics._report._columns import ids_of, refuse_rounded
from jaxmetrics._report._evaluation import Evaluation
from jaxmetrics._report._folder import check_folder
from jaxmetrics._report._output import frame_of, page_with_figures, save
from jaxmetrics._report._problem import Problem, refuse_no_amounts
from jaxmetrics._report._settings import InputError, Settings, check_settings, untold
from jaxmetrics._report._slices import Column, column_of

_HEIGHT = 600  # pixels of the page within a notebook


class Report:
    """The page of an evaluation; a notebook shows it, and `to_frame` has its numbers.

    Attributes:
      page: the page, as the text of an HTML file that loads nothing.
    """

    def __init__(self, evaluation: Evaluation, page: str) -> None:
        self._evaluation, self.page = evaluation, page

    def __repr__(self) -> str:
        return f"Report({self._evaluation.title})"

    def _repr_html_(self) -> str:
        """The page in an iframe, which keeps the notebook's style out."""
        page = html.escape(self.page)
        return f'<iframe srcdoc="{page}" width="100%" height="{_HEIGHT}" frameborder="0"></iframe>'

    def to_frame(self) -> Any:
        """The rows of metrics.csv as a pandas DataFrame."""
        return frame_of(self._evaluation)


def report_of_arrays(
    scores: Any,
    labels: Any,
    settings: Settings,
    *,
    names: Sequence[str] | None,
    weights: Any,
    amounts: Any,
    clusters: Any,
    slices: Any,
    output: str | Path | None,
) -> Report:
    """The report of arrays, written to a folder if there is one."""
    folder = None if output is None else Path(output)
    try:
        check_settings(settings)
        problem = _problem_of(scores, labels, names, weights, amounts, clusters, slices)
        if folder is not None:
            check_folder(folder)
    except InputError as error:  # its message names options as on a command line
        message = re.sub(", as --drop-missing does[a-z ]*", "", error.message)
        message = message.replace("--amount", "amounts")
        message = re.sub(r"--([a-z-]+)", lambda x: x[1].replace("-", "_"), message)
        raise ValueError(message) from None
    evaluation = evaluate_problem(
        problem, settings, untold, with_figures=True, with_files=folder is not None
    )
    if folder is None:
        return Report(evaluation, page_with_figures(settings, evaluation, untold))
    save(settings, evaluation, folder, untold)
    return Report(evaluation, (folder / "report.html").read_text(encoding="utf-8"))


def _problem_of(
    scores: Any,
    labels: Any,
    names: Sequence[str] | None,
    weights: Any,
    amounts: Any,
    clusters: Any,
    slices: Any,
) -> Problem:
    given: dict[str, Any] = {"clusters": clusters, **_columns(slices)}
    try:
        items = checks.check_items(scores, labels, weights, None, amounts, along=given)
    except (TypeError, ValueError) as error:  # a report has no mask
        way = "leave these items out of all arguments"
        message = re.sub(r"(?:exclude|leave) [a-z ]*(?:with|by) where=.*", way, str(error))
        way = " and leave items without a value out of all arguments"
        raise type(error)(re.sub(",? with where=.*", way, message)) from None
    rows = np.atleast_2d(np.asarray(items.scores, np.float64))
    for row, own in zip(rows, np.atleast_2d(np.asarray(items.scores)), strict=True):
        refuse_rounded("a row of scores", own, row)
    n = rows.shape[-1]
    if rows.ndim > 2 or items.labels.shape != (n,):
        raise ValueError(
            f"scores must be [n] or [models, n], and labels [n], got {list(items.scores.shape)} "
            f"and {list(items.labels.shape)}"
        )
    chosen = names or names_in(scores) or [f"model {i}" for i in range(len(rows))]
    if isinstance(chosen, str) or len(chosen) != len(rows) or len({*chosen}) < len(rows):
        raise ValueError(
            f"names must have a name of its own for each of {len(rows)} models, got "
            f"{checks.brief(names or list(chosen))}"
        )
    flags = np.asarray(items.labels) != 0
    if flags.all() or not flags.any():
        raise ValueError("labels have only one class: pass positives and negatives")
    missing = np.isnan(rows)
    if missing.any():
        first = int(missing.any(axis=1).argmax())
        raise ValueError(
            f"scores of {checks.brief(chosen[first])} are NaN in {missing[first].sum():,} of {n:,} "
            f"items: fill them, or leave the {missing.any(axis=0).sum():,} items where any score "
            "is NaN out of scores, labels and all else"
        )
    for name, values in given.items():
        if values is not None and np.shape(values) != (n,):
            raise ValueError(f"{name} must be [n] with {n} items, got {list(np.shape(values))}")
    ids = None
    if clusters is not None:
        advice = "pass an id for each group of items that belong together, or leave clusters out"
        ids = ids_of("cluster", "clusters", pandas.Series(np.asarray(clusters)), advice)
    columns: tuple[Column, ...] = tuple(
        column_of(name, pandas.Series(np.asarray(x))) for name, x in _columns(slices).items()
    )
    numbers = (None if x is None else np.asarray(x, np.float64) for x in (items.weights, amounts))
    weight, amount = numbers
    if amount is not None:
        amount = np.where(flags, amount, 0)  # amounts of negatives do not count
        refuse_no_amounts(amount)
    of_cluster = None if ids is None else "clusters"
    label = str(getattr(labels, "name", None) or "labels")
    return Problem(
        "Scores in memory",
        label,
        tuple(map(str, chosen)),
        rows,
        flags,
        weight,
        amount,
        of_cluster,
        ids,
        columns,
    )


def _columns(slices: Any) -> dict[str, Any]:
    """The columns of slices by name, from an array, a column, a dict or a frame."""
    if slices is None:
        return {}
    if isinstance(slices, dict):
        return {str(name): x for name, x in slices.items()}
    if is_frame(slices):
        return {str(name): slices[name] for name in slices.columns}
    if np.isscalar(slices):
        raise TypeError(
            f"slices must hold a value for each item, got {checks.brief(slices)}: write "
            "slices=frame['country'], or a dict of such columns"
        )
    return {str(getattr(slices, "name", None) or "slice"): slices}
