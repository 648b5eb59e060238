"""The tests that ship inside the installed scikit-learn, run against jaxmetrics.sklearn."""

import importlib
import sys

import pytest
import sklearn.metrics

import jaxmetrics.sklearn as ours

# Of what the suite tests, functions that are not replaced; their tests say nothing of ours.
_OTHER_FUNCTIONS = (
    "confusion_matrix_at_thresholds",
    "metric_at_thresholds",
    "sort_inputs",
)
# Tests of ours that are not passed, each with the reason.
_REASONS: dict[str, str] = {}


def _suite():
    """scikit-learn's module of tests, imported with our functions in place of its own."""
    name = "sklearn.metrics.tests.test_ranking"
    with pytest.MonkeyPatch.context() as patch:
        for function in ours.__all__:
            patch.setattr(sklearn.metrics, function, getattr(ours, function))
        patch.delitem(sys.modules, name, raising=False)
        module = importlib.import_module(name)
    sys.modules.pop(name, None)
    return module


_module = _suite()


@pytest.fixture(name="global_random_seed")
def _global_random_seed():
    return 42


def _is_ours(name):
    curves = "test_confusion_matrix_at_thresholds_"  # parametrised over the curves too
    return name.startswith(curves) or not any(other in name for other in _OTHER_FUNCTIONS)


for _name, _test in vars(_module).items():
    if _name.startswith("test_") and _is_ours(_name) and _name not in _REASONS:
        globals()[_name] = _test


def test_the_suite_was_run_against_our_functions():
    for function in ours.__all__:
        assert getattr(_module, function) is getattr(ours, function)
    assert sum(name.startswith("test_") for name in globals()) > 30
