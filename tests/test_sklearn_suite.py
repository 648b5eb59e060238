"""The tests that ship inside the installed scikit-learn, run against jaxmetrics.sklearn."""

from types import CodeType, FunctionType

import pytest
from fast import marked
from scikit_tests import OURS, function_of, suite

import jaxmetrics.sklearn as ours

_SUITES = ("test_classification", "test_ranking")
# Tests of ours that are not passed, each with the reason.
_REASONS: dict[str, str] = {}
# Slow, as a program for each size is long and others compare the same function.
_SLOW = ("test_matthews_corrcoef_against_jurman", "test_matthews_corrcoef_against_numpy_corrcoef")
_SLOW_VALUES = {
    "test_label_ranking_avp": (
        "check_lrap_without_tie_and_increasing_score",
        "check_lrap_only_ties",
    ),
    "test_matthews_corrcoef_overflow": ("100",),
}


def _with_slow_values(marks, slow):
    """The marks of a test, whose parameters of these names are marked slow."""
    return [
        pytest.mark.parametrize(
            mark.args[0],
            [marked(x, fast=str(getattr(x, "__name__", x)) not in slow) for x in mark.args[1]],
        ).mark
        for mark in marks
    ]


def _calls_ours(function, seen):
    """Whether a test calls one of our functions, itself or by a helper or by its parameters."""
    seen.add(function)
    known = function.__globals__
    used = [known[name] for name in _names(function.__code__) if name in known]
    for mark in getattr(function, "pytestmark", ()):
        used += _leaves(mark.args) if mark.name == "parametrize" else ()
    helpers = [value for value in map(function_of, used) if isinstance(value, FunctionType)]
    return any(helper in OURS for helper in helpers) or any(
        _calls_ours(helper, seen)
        for helper in helpers
        if helper.__module__ == function.__module__ and helper not in seen
    )


def _names(code):
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for part in inner for name in _names(part))}


def _leaves(values):
    if isinstance(values, (list, tuple)):
        return [leaf for value in values for leaf in _leaves(value)]
    return [values]


@pytest.fixture(name="global_random_seed")
def _global_random_seed():
    return 42


_modules = [suite(file) for file in _SUITES]
for _module in _modules:
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name not in _REASONS and _calls_ours(_test, set()):
            assert _name not in globals()
            if _name in _SLOW_VALUES:
                _test.pytestmark = _with_slow_values(_test.pytestmark, _SLOW_VALUES[_name])
            globals()[_name] = pytest.mark.slow(_test) if _name in _SLOW else _test


def test_the_suites_were_run_against_our_functions():
    for name in ours.__all__:
        found = [vars(module)[name] for module in _modules if name in vars(module)]
        assert found
        assert all(function is getattr(ours, name) for function in found)
    assert sum(name.startswith("test_") for name in globals()) > 100
    assert all(any(name in vars(module) for module in _modules) for name in _REASONS)
