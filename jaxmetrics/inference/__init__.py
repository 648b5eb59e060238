"""Influence values, standard errors, resampling, confidence intervals, comparison of models."""

from jaxmetrics.inference._bands import RocBand, roc_band
from jaxmetrics.inference._bootstrap.bootstrap import BootstrapResult, bootstrap, bootstrap_mean
from jaxmetrics.inference._comparison import Comparison, compare
from jaxmetrics.inference._confidence import confidence_interval
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._operating_point import OperatingPoint, operating_point
from jaxmetrics.inference._permutation import PermutationTest, permutation_test
from jaxmetrics.inference._sample_size import SampleSize, power, sample_size
from jaxmetrics.inference._standard_errors import covariance, influence, standard_error

__all__ = [
    "BootstrapResult",
    "Comparison",
    "Interval",
    "OperatingPoint",
    "PermutationTest",
    "RocBand",
    "SampleSize",
    "bootstrap",
    "bootstrap_mean",
    "compare",
    "confidence_interval",
    "covariance",
    "influence",
    "operating_point",
    "permutation_test",
    "power",
    "roc_band",
    "sample_size",
    "standard_error",
]
