"""scikit-learn's modules of tests, with the functions of jaxmetrics.sklearn in place of its own."""

import importlib
import sys

import pytest
import sklearn.metrics

import jaxmetrics.sklearn as ours

OURS = {getattr(ours, name) for name in ours.__all__}


def suite(file):
    """One of scikit-learn's modules of tests, imported with our functions in place of its own."""
    name = f"sklearn.metrics.tests.{file}"
    with pytest.MonkeyPatch.context() as patch:
        for function in ours.__all__:
            patch.setattr(sklearn.metrics, function, getattr(ours, function))
        patch.delitem(sys.modules, name, raising=False)
        module = importlib.import_module(name)
    sys.modules.pop(name, None)
    return module


def function_of(value):
    """The function within a partial or a scorer."""
    return getattr(value, "func", getattr(value, "_score_func", value))
