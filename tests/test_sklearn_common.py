"""What scikit-learn holds all its metrics to, its `test_common`, of those of jaxmetrics.sklearn."""

from types import FunctionType

import pytest
from scikit_tests import OURS, function_of, suite

pytestmark = pytest.mark.slow

_module = suite("test_common")


def _of_another(case):
    """Whether a case names a metric that is not ours, or is one."""
    values = getattr(case, "values", case)
    values = values if isinstance(values, tuple) else (values,)
    named = [_module.ALL_METRICS.get(x, x) if isinstance(x, str) else x for x in values]
    functions = [f for f in map(function_of, named) if isinstance(f, FunctionType)]
    return any(f not in OURS and f.__module__ != _module.__name__ for f in functions)


def _of_ours(test):
    """The test, without the cases of other metrics."""
    test.pytestmark = [
        pytest.mark.parametrize(mark.args[0], [x for x in mark.args[1] if not _of_another(x)]).mark
        if mark.name == "parametrize"
        else mark
        for mark in getattr(test, "pytestmark", ())
    ]
    return test


@pytest.fixture(name="global_random_seed")
def _global_random_seed():
    return 42


globals().update(
    {name: _of_ours(test) for name, test in vars(_module).items() if name.startswith("test_")}
)


def test_the_suite_was_run_against_our_functions():
    tested = {function_of(metric) for metric in _module.ALL_METRICS.values()}
    assert {function.__name__ for function in OURS - tested} == {"auc", "precision_recall_curve"}
