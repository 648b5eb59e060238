"""`jm.report` of arrays and frames in memory."""

import html
import sys

import numpy as np
import pandas as pd
import pytest
from reports import FIGURES, NAMES, N

import jaxmetrics as jm
from jaxmetrics._report import InputError
from jaxmetrics._report._columns import numbers_of


def test_report_of_a_frame_has_the_numbers_of_the_command(in_memory, output):
    frame = in_memory.to_frame()
    pd.testing.assert_frame_equal(
        frame.reset_index(drop=True),
        pd.read_csv(output / "metrics.csv", keep_default_na=True),
        check_dtype=False,
        rtol=1e-12,
    )


def test_report_in_a_notebook_is_the_page(in_memory):
    assert html.escape(in_memory.page) in in_memory._repr_html_()
    assert in_memory.page.count("<svg") == len(FIGURES)
    assert "The folder of this page" in in_memory.page
    assert "300 items" in repr(in_memory)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_fpr": 2}, "^max_fpr must be above 0"),
        ({"confidence_level": 95}, "^confidence_level must be .* write 0.95"),
        ({"n_resamples": 0}, "^n_resamples must be at least 1"),
        ({"fn_cost": -1}, "^fn_cost must be from 0"),
        ({"criterion": "Youden"}, "^criterion must be youden, got Youden: leave it out"),
        ({"prevalence": 1.0}, "^prevalence must be above 0 and below 1, got 1: write fractions"),
        ({"style": "grey"}, "^style must be colour or print, got grey"),
        ({"names": ["a"]}, "each of 2 models"),
        ({"names": ["a", "a"]}, "each of 2 models"),
        ({"labels": np.ones(N)}, "only one class"),
        ({"scores": np.full((2, N), np.nan)}, "scores of 'model 0' are NaN in 300 of 300 items"),
        ({"slices": "country"}, "slices must hold a value for each item, got 'country'"),
        ({"max_fpr": "1%"}, "^max_fpr must be a number, got '1%'"),
        ({"prevalence": "1%"}, "^prevalence must be a number, got '1%': write 0.01"),
        ({"threshold": "x"}, "^threshold must be a number, got 'x': write 0.5"),
        ({"scores": np.zeros((2, 2, N))}, r"\[models, n\]"),
        ({"clusters": np.zeros(N)}, "is 0 in all rows|is 0.0 in all rows"),
        ({"slices": np.arange(N).astype(str)}, "300 distinct values"),
        ({"slices": {"a": [1, 2]}}, "a must be .n. with 300 items"),
        ({"labels": N // 3 * ["a", "b", None]}, r"== 1, or .* 1 and leave items without a value"),
        ({"weights": N // 2 * ["1", None]}, "float. and leave items without a value out of all ar"),
        ({"clusters": N // 2 * ["a", None]}, "rows read: drop these rows, or fill them$"),
        ({"weights": -np.ones(N)}, "weights .* or leave these items out of all arguments$"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_report_refuses_what_it_cannot_evaluate(data, changed, message):
    given = {"scores": data[list(NAMES)], "labels": data.y, **changed}
    with pytest.raises((TypeError, ValueError), match=message):
        jm.report(**given)


def test_report_without_the_extra(data, monkeypatch):
    for name in [x for x in sys.modules if x.startswith("jaxmetrics._report.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "jaxmetrics._report")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'jaxmetrics-exact\[report"):
        jm.report(data[list(NAMES)], data.y)


def test_whole_numbers_that_double_precision_rounds_are_refused():
    scores = 2**53 + np.arange(8)
    with pytest.raises(
        ValueError, match="has 9007199254740993, which double precision rounds: write"
    ):
        jm.report(scores, np.arange(8) % 2)
    for kind, large in (("uint64", 2**64 - 2**11), ("int64", -(2**63)), ("uint64", 2**63)):
        exact = np.array([large], kind)
        assert numbers_of("score", "x", pd.Series(exact)) == float(large)
        with pytest.raises(InputError, match=f"has {large + 1}, which"):
            numbers_of("score", "x", pd.Series(exact + exact.dtype.type(1)))
    column = pd.Series(scores)
    with pytest.raises(InputError, match="score 'x' has 9007199254740993, which"):
        numbers_of("score", "x", column)
    assert numbers_of("weight", "x", column).dtype == np.float64
    even = 2**53 + 2 * np.arange(8)
    assert numbers_of("score", "x", pd.Series(even)).tolist() == even.astype(float).tolist()
