"""What the tests of reports share."""

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _output
from jaxmetrics._report import _page as pages
from jaxmetrics._report._evaluation import Evaluation, Measure

N = 300
NAMES = ("a", "=b <i>")
COMMAND = "jaxmetrics evaluate data.csv --score '=b <i>'"
FIGURES = ("intervals", "roc", "precision_recall", "scores", "cost", "slices")


def evaluation_of(names, low, high, estimate=0.0, p=np.nan, chi2=np.nan):
    """Models that have the same value, with these limits of their differences."""
    n = len(names)
    pair = np.zeros((n, n))
    value = np.full(n, estimate)
    interval = jm.Interval(value, value - 0.1, value + 0.1, value, "wald", 0.95)
    comparison = jm.Comparison(
        *(value, pair, pair, pair, pair, pair + p, pair + low, pair + high, pair + p),
        *(np.full(n, True), chi2, 1, chi2, 0.95),
    )
    measure = Measure("roc_auc", "AUC", interval, comparison)
    return Evaluation(
        tuple(names), {"n_items": 9, "file": "f", "label": "y"}, (), "t", "", (measure,), (), ()
    )


def printed_of(evaluation):
    console = Console(file=io.StringIO(), width=100)
    for table in _report.tables_of(evaluation, console):
        console.print(table)
    return console.file.getvalue()


def page_of(evaluation):
    return pages.page_of(_report.Settings(), evaluation, [], {})


ODD = ("esc\x1b[31m\x07", "L" * 150 + "R" * 150, "中文模型", "🚀 rocket", "$x_1$", "_a <b>", "c&d")


def page_of_many(drawings):
    """The page of twenty models with long names, all else being as much as it can be."""
    names = [f"{i} " + "long name " * 15 for i in range(20)]
    value = np.linspace(0.5, 0.9, 20)
    evaluation = evaluation_of(names, 0.1, 0.2, estimate=value, p=0.01)
    (measure,) = evaluation.measures
    worse = replace(measure.comparison, best_set=np.arange(20) == 19)
    measures = [measure._replace(heading=x, comparison=worse) for x in ("AUC", *"bcdefg")]
    notes = tuple(f"{i}: " + "many words " * 20 for i in range(8))
    chosen = tuple(x for x in drawings if x.name in ("intervals", "roc"))
    evaluation = evaluation._replace(measures=tuple(measures), warnings=notes, drawings=chosen)
    return _output.page_with_figures(_report.Settings(), evaluation, lambda *x: None)
