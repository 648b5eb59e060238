"""The power of a planned study, and how large it must be, from the variances of a pilot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import all_concrete
from jaxmetrics._base.types import Array
from jaxmetrics._base.words import percent_text
from jaxmetrics.inference._influence.clusters import Alone
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._intervals.clustered import (
    OfClusters,
    degrees_of_clusters,
    draws_of_clusters,
)
from jaxmetrics.inference._intervals.distributions import normal_cdf, t_quantile
from jaxmetrics.inference._intervals.ranges import Range
from jaxmetrics.inference._intervals.rules import degrees, on_logit
from jaxmetrics.inference._pairs import pairs_of

FEWEST = 2.0  # items of a class, or clusters
_MOST = 1e12  # positives, or clusters
_BITS = 60  # halvings of the range of their logarithm
_ROUNDING = 1e-9  # tolerance at the ends of the range of a metric


class Pilot(NamedTuple):
    """What a pilot shows.

    Attributes:
      estimate: `[models]`, the metric; `[...]` of one model alone.
      variances: the Covariance of a pair of models. Of samples, `[models]`, or of one model,
        `[...]`, the variances by class or cluster.
      thirds: the third central moment of the estimate, `[models]` or `[...]`, or of the difference
        of a pair: the parts of the negatives and of the positives. With clusters, in which these
        depend on each other, the first has all of it.
      bounds: the Range of the metric; None if it is not known.
      alone: of a pair in clusters, what these are compared with to count draws; else None.
    """

    estimate: Array
    variances: Covariance | OfClusters
    thirds: tuple[Array, Array]
    bounds: Range | None
    alone: Alone | None = None


class Times(NamedTuple):
    """How many times those of the pilot a study has; with clusters both are one number."""

    negatives: Array
    positives: Array


class Errors(NamedTuple):
    """The errors of an estimate in a study of a given size.

    Attributes:
      standard_error: its standard deviation.
      error: the standard error that the test or the interval uses, on average.
      df: the degrees of freedom of `error`.
      lean: the covariance of the estimate and `error`, which skewed influence values cause.
    """

    standard_error: Array
    error: Array
    df: Array
    lean: Any = 0.0


class Effect(NamedTuple):
    """The true difference, and the margin of non-inferiority, None for a test of equality."""

    difference: Any
    margin: Any


def of_pair(pilot: Pilot, times: Times) -> Errors:
    """The Errors of the difference of two models on the same items, those of `compare`."""
    if numerics.namespace(*times) is np:
        found = [_of_pair(pilot, Times(*each)) for each in zip(*map(np.ravel, times), strict=True)]
        shape = np.shape(times.positives)
        columns: Any = (np.reshape(x, shape) for x in zip(*found, strict=True))
        return Errors(*columns)
    each = jnp.vectorize(lambda *x: _of_pair(pilot, Times(*x)), signature="(),()->(),(),(),()")
    return Errors(*each(*times))


@library_program()
def _of_pair(pilot: Pilot, times: Times) -> Errors:
    known, library = pilot.variances, numerics.namespace(*times)
    assert isinstance(known, Covariance)
    assert known.of_classes is not None
    negatives, positives = known.of_classes
    found = _in_study(
        OfClusters(negatives, positives, known.total, known.sizes, known.mixed), times
    )
    of_classes = library.stack([found.negatives, found.positives])
    draws = _draws(pilot, found, times)
    planned = Covariance(found.total, of_classes, found.sizes, found.mixed, draws)
    pairs = pairs_of(pilot.estimate, planned, pilot.bounds)
    error, df = pairs.error[0, 1], pairs.df[0, 1]
    return Errors(pairs.standard_error[0, 1], error, df, _lean(pilot.thirds, times, error))


def _draws(pilot: Pilot, study: OfClusters, times: Times) -> tuple[Array, Array] | None:
    """`Covariance.draws` of the study, which has fewer for a cluster where it has few clusters."""
    bounds, alone = pilot.bounds, pilot.alone
    if alone is None or bounds is None:
        return None
    share, unit = bounds.share_of(pilot.estimate), (bounds.high - bounds.low) ** 2
    negatives, positives, total = (numerics.namespace(x).diagonal(x) for x in study[:3])
    own = OfClusters(negatives, positives, total, study.sizes, study.mixed)

    def of_class(c: int) -> Array:
        (of_items, n, clusters), k = (x[..., c] for x in alone), times[c]
        known, of_items = own[c] / unit, of_items / unit / k
        return draws_of_clusters(share, own.ratio, known, of_items, n * k, clusters * k)

    return of_class(0), of_class(1)


def of_samples(pilot: Pilot, times: Times) -> Errors:
    """The Errors of the difference of two models, each on its own sample of this size."""
    both = pilot._replace(bounds=None)  # which have no axis of models
    first, second = (of_one(jax.tree.map(lambda x, m=m: x[m], both), times) for m in (0, 1))
    v, w = first.error**2, second.error**2
    df = degrees(v + w, v**2 / first.df + w**2 / second.df, 1.0)
    error = numerics.namespace(v).sqrt(v + w)
    lean = numerics.divide(first.error * first.lean - second.error * second.lean, error, 0.0)
    return Errors(error, error, df, lean)


def of_one(pilot: Pilot, times: Times) -> Errors:
    """The Errors of one model."""
    assert isinstance(pilot.variances, OfClusters)
    found = _in_study(pilot.variances, times)
    error = numerics.namespace(found.total).sqrt(found.total)
    return Errors(error, error, degrees_of_clusters(found), _lean(pilot.thirds, times, error))


def _in_study(pilot: OfClusters, times: Times) -> OfClusters:
    """The variances in a study that is so many times as large as the pilot."""
    k0, k1 = times
    both = numerics.namespace(k0, k1).sqrt(k0 * k1)  # matters with clusters, where k0 is k1
    negatives, positives = pilot.negatives / k0, pilot.positives / k1
    together = (pilot.total - pilot.negatives - pilot.positives) / both
    sizes = tuple(n * k for n, k in zip(pilot.sizes, (k0, k1, both), strict=True))
    return OfClusters(negatives, positives, negatives + positives + together, sizes, pilot.mixed)


def _lean(thirds: tuple[Array, Array], times: Times, error: Array) -> Array:
    third: Any = sum(x / k**2 for x, k in zip(thirds, times, strict=True))
    return numerics.divide(third, 2 * error, 0.0)


def against_value(pilot: Pilot, errors: Errors, effect: Effect) -> tuple[Errors, Effect]:
    """The Errors and the Effect on the logit scale, for a test of one model against a value.

    The interval that decides this test is on that scale. NaN for a value that is outside of the
    range of the metric.
    """
    if pilot.bounds is None:
        return errors, effect
    low, high, *_ = pilot.bounds
    library = numerics.namespace(errors.error, *jax.tree.leaves(effect))
    unit = high - low

    def share(x: Any) -> Any:
        return library.clip((x - low) / unit, 1e-9, 1 - 1e-9)

    def logit(x: Any) -> Any:
        return library.log(x / (1 - x))

    a = share(pilot.estimate)
    slope = 1 / (a * (1 - a) * unit)
    known, error, df, lean = errors
    lean = slope**2 * lean - error * known**2 * (1 - 2 * a) * slope**3
    of_logit = Errors(known * slope, error * slope, df, lean)

    one_sided, value = effect.margin is not None, pilot.estimate - effect.difference
    outside = (value < low - _ROUNDING * unit) | (value > high + _ROUNDING * unit)
    moved = logit(a) - logit(share(value - (effect.margin if one_sided else 0.0)))
    return of_logit, Effect(library.where(outside, library.nan, moved), 0.0 if one_sided else None)


def power_of(errors: Errors, effect: Effect, level: Any) -> Array:
    """The probability that a test finds a difference, or, with a margin, non-inferiority.

    Student's t is d / (E S), with S^2 chi-squared over its degrees of freedom. By W. L. Jenkins and
    B. L. Welch, d - t E S is about normal, where S has the mean 1 - 1 / (4 df) and the variance
    1 / (2 df). Where influence values are skewed, d and E S are correlated.
    """
    error, e, df, lean = errors
    difference, margin = effect
    library = numerics.namespace(error, e, df)
    one_sided = margin is not None
    t = t_quantile(level if one_sided else (1 + level) / 2, df)
    mean = t * e * (1 - 1 / (4 * df))
    variance = error**2 + (t * e) ** 2 / (2 * df)

    def above(effect: Any, sign: int) -> Any:
        of_both = library.maximum(variance - sign * 2 * t * lean, variance / 4)
        return normal_cdf((effect - mean) / library.sqrt(of_both))

    power: Array = above(difference + margin if one_sided else difference, 1)
    return power if one_sided else power + above(-difference, -1)


def width_of(errors: Errors, pilot: Pilot, level: Any) -> Array:
    """The width of the interval of a model, by the logit scale if the range is known."""
    _, error, df, _ = errors
    if pilot.bounds is None:
        return 2 * t_quantile((1 + level) / 2, df) * error
    low, high, *_ = pilot.bounds
    library = numerics.namespace(error, df)
    share = library.clip((pilot.estimate - low) / (high - low), 1e-9, 1 - 1e-9)
    limits = on_logit(share, (error / (high - low)) ** 2, df, level)
    return (limits[1] - limits[0]) * (high - low)


def smallest(enough: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """The smallest number of positives, or clusters, that is enough; infinite if there is none.

    By bisection. A compiled program tries fifteen numbers in each step instead of one, as each step
    needs a quantile, which is many launches on a GPU.
    """
    ends: Any = np.full(shape, np.log(FEWEST)), np.full(shape, np.log(_MOST))
    least, most = (enough(np.exp(x)) for x in ends)
    library = numerics.namespace(least)
    bits = 1 if library is np else 4
    parts = 1 << bits

    def narrowed(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        step = (high - low) / parts
        between = np.arange(1, parts).reshape(-1, *(1,) * len(shape))
        last = library.sum(~enough(library.exp(low + step * between)), axis=0)
        return low + step * last, library.where(last < parts - 1, low + step * (last + 1), high)

    if library is np:
        for number in range(_BITS):
            ends = narrowed(number, ends)
    else:
        ends = varying.fori_loop(0, _BITS // bits, narrowed, jax.tree.map(jnp.asarray, ends))
    found = library.where(least, FEWEST, library.exp(ends[1]))
    return library.where(most, found, library.inf)


def aim_in_words(level: float, power: Any, paired: bool, **asked: Any) -> tuple[str, ...]:
    """The aim of the study in words; empty for several aims, or traced ones."""
    told = {name: x for name, x in asked.items() if x is not None}
    if not all_concrete(power, *told.values()) or any(
        np.size(x) > 1 for x in (power, *told.values())
    ):
        return ()
    goal = " and ".join(f"a {name} of {float(x):g}" for name, x in told.items())
    if "width" in told:
        return (f"for {percent_text(level)} intervals with {goal}",)
    samples = "" if paired else ", in each of two samples"
    return (f"for a power of {float(power):g} at {goal}{samples}",)
