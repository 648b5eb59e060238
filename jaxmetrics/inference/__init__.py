"""Influence values, standard errors, resampling, confidence intervals, comparison of models."""

from jaxmetrics.inference._against_value import compare_to_value
from jaxmetrics.inference._bands import RocBand, roc_band
from jaxmetrics.inference._bootstrap.bootstrap import bootstrap, bootstrap_mean
from jaxmetrics.inference._bootstrap.result import BootstrapResult
from jaxmetrics.inference._compared import Comparison
from jaxmetrics.inference._comparison import compare
from jaxmetrics.inference._confidence import confidence_interval
from jaxmetrics.inference._folds import FoldInterval, fold_interval
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._means import compare_means, mean_interval
from jaxmetrics.inference._operating_point import OperatingPoint, operating_point
from jaxmetrics.inference._permutation import PermutationTest, permutation_test
from jaxmetrics.inference._powered import PoweredInterval, prediction_powered_interval
from jaxmetrics.inference._sample_size import SampleSize, power, sample_size
from jaxmetrics.inference._samples import compare_samples
from jaxmetrics.inference._slice_tests import SliceDifferences
from jaxmetrics.inference._slices import Slices, slices
from jaxmetrics.inference._standard_errors import covariance, influence, standard_error
from jaxmetrics.inference._trend import Trend, trend

__all__ = [
    "BootstrapResult",
    "Comparison",
    "FoldInterval",
    "Interval",
    "OperatingPoint",
    "PermutationTest",
    "PoweredInterval",
    "RocBand",
    "SampleSize",
    "SliceDifferences",
    "Slices",
    "Trend",
    "bootstrap",
    "bootstrap_mean",
    "compare",
    "compare_means",
    "compare_samples",
    "compare_to_value",
    "confidence_interval",
    "covariance",
    "fold_interval",
    "influence",
    "mean_interval",
    "operating_point",
    "permutation_test",
    "power",
    "prediction_powered_interval",
    "roc_band",
    "sample_size",
    "slices",
    "standard_error",
    "trend",
]
