"""The public surface: names, order of arguments, docstrings, and what importing costs."""

import inspect
import subprocess
import sys

import pytest

import jaxmetrics as jm

FUNCTIONS = [name for name in jm.__all__ if not name[0].isupper()]
METRICS = [name for name in FUNCTIONS if hasattr(getattr(jm, name), "table_function")]
# One name for one thing, and one order, everywhere.
ORDER = [
    "key",
    "scores",
    "labels",
    "n_pairs",
    "weights",
    "where",
    "amounts",
    "max_fpr",
    "min_fpr",
    "min_tpr",
    "min_recall",
    "min_precision",
    "min_specificity",
    "min_sensitivity",
    "fp_cost",
    "fn_cost",
    "scale",
    "method",
    "quantile_method",
    "return_threshold",
]


def test_all_is_what_there_is():
    public = {
        name
        for name, value in vars(jm).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(jm.__all__)
    assert sorted(set(jm.__all__)) == sorted(jm.__all__)


@pytest.mark.parametrize("name", [*METRICS, "score_table", "roc_auc_sampled"])
def test_arguments(name):
    parameters = inspect.signature(getattr(jm, name)).parameters
    assert list(parameters) == [p for p in ORDER if p in parameters]
    for parameter in parameters.values():
        positional = parameter.name in ("key", "scores", "labels")
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == positional
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings(name):
    text = inspect.getdoc(getattr(jm, name))
    first, blank, *_ = text.splitlines()
    assert first.endswith((".", ":"))
    assert not blank
    for part in ("Args:", "Returns:", "Raises:", "Example:", ">>> ", "Reference", "NaN"):
        assert part in text, f"{name} has no {part}"
    assert "O(" in text or "cost" in text.lower()
    documented = [p for p in inspect.signature(getattr(jm, name)).parameters if f"{p}:" not in text]
    assert not documented


def _run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_import_needs_no_extra():
    extras = (
        "click",
        "matplotlib",
        "pandas",
        "polars",
        "pyarrow",
        "rich",
        "scipy.stats",
        "sklearn",
    )
    loaded = _run(f"import jaxmetrics, sys; print(*(m for m in {extras} if m in sys.modules))")
    assert loaded == []


def test_import_runs_nothing_on_a_device():
    code = "import jaxmetrics; from jax._src import xla_bridge; print(len(xla_bridge._backends))"
    assert _run(code) == ["0"]
