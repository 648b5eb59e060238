"""Influence values, standard errors, resampling, confidence intervals, comparison of models."""

from jaxmetrics.inference._bands import RocBand, roc_band
from jaxmetrics.inference._bootstrap.bootstrap import BootstrapResult, bootstrap, bootstrap_mean
from jaxmetrics.inference._comparison import Comparison, compare
from jaxmetrics.inference._confidence import confidence_interval
from jaxmetrics.inference._folds import FoldInterval, fold_interval
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._permutation import PermutationTest, permutation_test
from jaxmetrics.inference._slice_tests import SliceDifferences
from jaxmetrics.inference._slices import Slices, slices
from jaxmetrics.inference._standard_errors import covariance, influence, standard_error

__all__ = [
    "BootstrapResult",
    "Comparison",
    "FoldInterval",
    "Interval",
    "PermutationTest",
    "RocBand",
    "SliceDifferences",
    "Slices",
    "bootstrap",
    "bootstrap_mean",
    "compare",
    "confidence_interval",
    "covariance",
    "fold_interval",
    "influence",
    "permutation_test",
    "roc_band",
    "slices",
    "standard_error",
]
