"""jaxmetrics.sklearn beside scikit-learn, and in the place of its functions in its own tests."""

import importlib
import sys
import warnings

import numpy as np
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


def same(name, *inputs, **options):
    """Ours and scikit-learn's value and warnings are the same."""
    results = []
    for library in (ours, sklearn.metrics):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = getattr(library, name)(*inputs, **options)
        results.append((value, {(str(w.message), w.category) for w in caught}))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-13, atol=1e-15)
    assert type(results[0][0]) is type(results[1][0])
    assert results[0][1] == results[1][1]
