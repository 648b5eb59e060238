"""The interval of a mean of values, such as the nDCG of each query: no resampling, no key."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import all_concrete, of_all_processes
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.effective import Shares, equal_shares, shares_of
from jaxmetrics.inference._intervals.informative import excess
from jaxmetrics.inference._intervals.interval import Interval, interval_of
from jaxmetrics.inference._intervals.rules import Limits, hull, inside, lacking, wilson

# Where the values in [0, 1], or their distances from 1, add up to at most `FEW`, the limit on that
# side is Wilson's; from `ENOUGH` on it follows from the sample's own variance and skewness.
FEW, ENOUGH = 2.0, 4.0

# Fewer values than this, of any range, show too little of their skewness.
FEWEST_VALUES = 20

# Values this near to each other, relative to the largest, differ by rounding only.
_ROUNDING = 1e-12

# From here on the cube of a value may overflow. One of weight 0 is then replaced.
_FURTHEST = 1e100

# The number of pseudo-clusters, which have the largest variance that the values allow.
_CLUSTERS_MORE = 2.0

# From half a degree of freedom on the quantile of Student's t is exact.
_FEWEST_DF = 0.5


class Sample(NamedTuple):
    """What the interval of a mean needs of the values; `[...]` each.

    With p the shares w / sum w, d = x - mean and n = 1 / sum p^2, the effective size of Kish:
    standard_error^2 = sum p^2 d^2 / k, where k is `kept` of `kept_and_df`, and, as the mean has
    the third moment sum p^3 d^3,
    skewness = sqrt(n) sum p^3 d^3 / (sum p^2 d^2)^1.5 sqrt(n (n - 1)) / (n - 2).

    `draws` is for values in [0, 1]: their mean varies as that of this many Bernoulli draws. Without
    clusters it is `fewest_draws`.
    """

    mean: Array
    standard_error: Array
    skewness: Array  # of the values, adjusted as that of Fisher and Pearson is
    n: Array
    df: Array  # of the standard error; of clusters of shares at most 2 df / (kurtosis - 1)
    is_share: Array  # whether all values are in [0, 1]
    draws: Array


class Within(NamedTuple):
    """What the means of clusters do not show of their items: `[...]` each.

    Attributes:
      variance: the mean square of the distances of items from the means of their clusters.
      n_items: the effective number of items.
      is_share: whether all values are in [0, 1].
    """

    variance: Array
    n_items: Array
    is_share: Array


@library_program("dtype")
def moments_of_sample(
    values: Array,
    weights: Array | None,
    where: Array | None,
    dtype: Any,
    within: Within | None = None,
) -> Sample:
    """The moments of values `[..., n]` along the last axis, in a dtype; NaN where a value is NaN.

    With clusters, the values are the means of the clusters, and `within` describes their items.
    """
    values, counted, shares = in_shares(values, weights, where)
    library, n, df = numerics.namespace(values), shares.n, shares.df
    mean = mean_of(shares, values)

    largest = library.max(library.where(counted, library.abs(values), 0.0), axis=-1, initial=0)
    distances = library.where(counted, values - mean[..., None], 0.0)
    furthest = library.max(library.abs(distances), axis=-1, initial=0)
    furthest = library.where(furthest > _ROUNDING * largest, furthest, 0.0 * mean)
    parts = shares.of_items * numerics.divide(distances, furthest[..., None], 0.0)
    squares = parts**2
    second = library.sum(squares, axis=-1)
    third = library.sum(squares * parts, axis=-1)  # NumPy's cubes take fifty times as long
    error = furthest * numerics.root(numerics.divide(second, shares.kept, 0.0))
    error = library.where(shares.kept > 0, error, np.nan)
    variance = numerics.without_nan(error**2)
    # With n equal weights the skewness is at most sqrt(n). With unequal ones it is clipped to that.
    adjusted = numerics.divide(
        n * library.sqrt(library.maximum(n - 1, 0)), library.maximum(n - 2, 0), 0.0
    )
    skewness = adjusted * numerics.divide(third, second**1.5, 0.0)
    skewness = library.clip(skewness, -library.sqrt(n), library.sqrt(n))
    is_share = are_shares(values, counted) if within is None else within.is_share
    n, df = library.broadcast_to(n, mean.shape), library.broadcast_to(df, mean.shape)
    if within is None:
        draws = fewest_draws(mean, variance, n)
    else:
        draws = draws_of_clusters(mean, variance, n, df, within)
        # Where a few of the clusters decide, their variance is hardly known.
        kurtosis = n * numerics.divide(library.sum(squares**2, axis=-1), second**2, 0.0)
        by_few = 2 * df / library.maximum(kurtosis - 1, 2.0)
        by_few = library.maximum(by_few, library.minimum(df, 1.0))
        df = library.where(is_share, by_few, df)
    found = mean, error, skewness, n, df, is_share, draws
    return Sample(*(_of_dtype(x, dtype) for x in found))


def are_shares(values: Array, counted: Array) -> Array:
    """Whether all values that count on the last axis are in [0, 1], to the rounding of a sum."""
    library = numerics.namespace(values)
    return library.all(~counted | (values >= 0) & (values <= 1 + _ROUNDING), axis=-1)


def weighted(values: Array, weights: Array | None, where: Array | None) -> tuple[Array, Array]:
    """The weights, 0 for items left out, and the values, 0 for those; in float64.

    An item of weight 0 keeps its value, on which the slope in its weight depends, unless the value
    is not finite or so large that its cube would not be. Over the array library.
    """
    library = numerics.namespace(values)
    valid = library.ones(values.shape[-1:], bool) if where is None else where
    weights = library.where(valid, 1.0 if weights is None else weights, 0.0).astype(np.float64)
    values = values.astype(np.float64)
    kept = (weights > 0) | (valid & (library.abs(values) < _FURTHEST))
    return weights, library.where(kept, values, 0.0)


def in_shares(
    values: Array, weights: Array | None, where: Array | None
) -> tuple[Array, Array, Shares]:
    """The values as of `weighted`; whether they count; and their shares, in float64.

    Over the array library.
    """
    library = numerics.namespace(values)
    if weights is not None:
        weights, values = weighted(values, weights, where)
        return values, weights > 0, shares_of(weights)
    counted, n = library.ones(1, bool), library.asarray(values.shape[-1])
    if where is not None:
        counted, n = where, library.sum(where, axis=-1)
    values = library.where(counted, values, 0.0).astype(np.float64)
    return values, counted, equal_shares(counted, n)


def mean_of(shares: Shares, values: Array) -> Array:
    """The mean of values along the last axis; NaN without any."""
    some = values.shape[-1] > 0
    mean: Array = numerics.namespace(values).sum(shares.of_items * values, axis=-1)
    return mean if some else mean + np.nan


def draws_of_clusters(mean: Array, variance: Array, n: Array, df: Array, within: Within) -> Array:
    """How many Bernoulli draws n clusters amount to: n / r, from `fewest_draws` to their items.

    The mean m of Bernoulli draws has the variance m (1 - m) / draws. A cluster has the variance
    r m (1 - m), with r = (f n V / (m (1 - m)) + 2 (1 - W / (m (1 - m)))) / (f + 2). V is the
    variance of the mean, with f degrees of freedom. The variance W within clusters leaves at most
    m (1 - m) - W between them; two pseudo-clusters have this largest variance.
    """
    library = numerics.namespace(mean, variance)
    some = (mean > _ROUNDING) & (mean < 1 - _ROUNDING)
    of_draw = library.where(some, mean * (1 - mean), 0.0)
    seen = numerics.divide(n * variance, of_draw, 1.0)
    most = 1 - numerics.divide(within.variance, of_draw, 0.0)
    spread = (df * seen + _CLUSTERS_MORE * most) / (df + _CLUSTERS_MORE)
    fewest, most_draws = fewest_draws(mean, variance, n), library.maximum(within.n_items, n)
    return library.clip(numerics.divide(n, spread, np.inf), fewest, most_draws)


def fewest_draws(mean: Array, variance: Array, n: Array) -> Array:
    """n; or fewer, if the mean varies more than that of n Bernoulli draws could."""
    return n / excess(variance, n, mean * (1 - mean))


@library_program()
def limits_of_mean(sample: Sample, level: Array) -> Limits:
    """Hall's limits for the t statistic of a skewed sample, kept to what a share can have.

    mean - SE g(t), mean - SE g(-t), with g(x) = (3 / a) (cbrt(1 + a (x - a / 6)) - 1), where
    a = skewness / sqrt(n) and t has the degrees of freedom of SE.

    - Values of any range: the hull of these limits and of mean -+ t SE, since values that are
      mostly 0, as differences of models often are, have a skewness by chance.
    - Values in [0, 1]: no distribution on [0, 1] with the same mean has a larger variance than
      Bernoulli draws, so the limits lie within Wilson's for n draws, or for `fewest_draws` where
      weights depend on the values. For clusters, Wilson's limits are for `draws` (z / t)^2 draws,
      at least `fewest_draws`, because `draws` is estimated from n clusters only. Where the values
      add up to less than `ENOUGH` the sample may lack the high ones, and nothing in it shows their
      size: the upper limit moves to Wilson's, and the lower one to Hall's, which is not higher.
      Values near 1 have the mirrored limits. Values that are all equal have Wilson's.

    NaN for a mean of one value. In the dtype of the sample. Found by simulation: see
    benchmarks/means.md. P. Hall, "On the removal of skewness by transformation", JRSS B 54, 1992.
    """
    dtype, in_float64 = sample.mean.dtype, (_of_dtype(x, np.float64) for x in sample)
    mean, error, skewness, n, df, is_share, draws = in_float64
    library = numerics.namespace(mean, level)
    level = library.asarray(level, np.float64)
    known, error = ~library.isnan(error), numerics.without_nan(error)
    t = distributions.t_quantile((1 + level) / 2, library.maximum(df, _FEWEST_DF))
    bend = numerics.divide(skewness, library.sqrt(n), 0.0)

    def transformed(x: Array) -> Array:
        y = x - bend / 6
        root = library.cbrt(1 + bend * y)
        return 3 * y / (root**2 + root + 1)  # the formula above, also where a is 0

    hall = mean - error * transformed(t), mean - error * transformed(-t)
    low, high = hull(hall, (mean - t * error, mean + t * error))

    share = library.clip(mean, 0, 1)
    z = distributions.normal_quantile((1 + level) / 2)
    fewest = fewest_draws(mean, error**2, n)
    outer = wilson(share, library.maximum(draws * (z / t) ** 2, fewest), level)
    own = library.clip(hall[0], 0, share), library.clip(hall[1], share, 1)
    within = inside(own, outer)
    constant = error == 0

    def weight(sum_of_values: Array) -> Array:
        return library.where(constant, 1.0, lacking(sum_of_values, (FEW, ENOUGH)))

    ones, zeros = weight(draws * share), weight(draws * (1 - share))
    share_low = within[0] - library.maximum(
        zeros * (within[0] - outer[0]), ones * (within[0] - own[0])
    )
    share_high = within[1] + library.maximum(
        ones * (outer[1] - within[1]), zeros * (own[1] - within[1])
    )
    low = library.where(known, library.where(is_share, share_low, low), np.nan)
    high = library.where(known, library.where(is_share, share_high, high), np.nan)
    return low.astype(dtype), high.astype(dtype)


def interval_of_mean(sample: Sample, confidence_level: float) -> Interval:
    """The Interval of method "mean"; it does not warn."""
    limits = limits_of_mean(sample, np.float64(confidence_level))
    return interval_of((sample.mean, *limits, sample.standard_error), "mean", confidence_level)


def _of_dtype(x: Array, dtype: Any) -> Array:
    return x if x.dtype == bool else x.astype(dtype)


def sums_of_rare(sample: Sample) -> HostArray:
    """`draws` times the smaller of mean and 1 - mean; inf if values are not in [0, 1] or NaN."""
    mean, error, _, _, _, is_share, draws = map(np.asarray, of_all_processes(sample))
    rare = draws * np.maximum(np.minimum(mean, 1 - mean), 0)  # rounding takes some beyond 1
    return np.where(is_share & ~np.isnan(error), rare, np.inf)


def warn_of_few_values(sample: Sample) -> None:
    """Warn where values are NaN or too few, and say what is lacking."""
    if not all_concrete(*sample):
        return
    mean, error, _, n, _, is_share, _ = (np.asarray(x).ravel() for x in of_all_processes(sample))
    if np.any((n == 0) & np.isnan(mean)):
        warn("a mean without a valid value is NaN")
    if np.any((n > 0) & ~np.isfinite(mean)):
        warn(
            "a mean has no interval, as a value is NaN or infinite: leave such items out by "
            "where=isfinite(values)"
        )
    few = ~np.isnan(error) & ~is_share & (n < FEWEST_VALUES)
    if few.any():
        warn(
            f"a mean rests on {n[few].min():.3g} values: in simulations with fewer than "
            f"{FEWEST_VALUES}, 95 % intervals cover 83 to 99 %, the least of skewed values: add "
            "values",
        )
    sums = sums_of_rare(sample).ravel()
    if np.any(sums < FEW):
        i = np.argmin(sums)
        what = "1 - value adds" if mean[i] > 0.5 else "the values add"
        warn(
            f"{what} up to {sums[i]:.2g} over {n[i]:.3g} queries: below {FEW:g} the sample cannot "
            "show how large its rare values are, so the interval is as wide as that of a share of "
            f"yes and no: add queries until this sum is {ENOUGH:g}",
        )
