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
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._intervals.distributions import normal_cdf, t_quantile
from jaxmetrics.inference._intervals.ranges import Range
from jaxmetrics.inference._intervals.rules import degrees, on_logit, spread_of
from jaxmetrics.inference._pairs import pairs_of

FEWEST = 2.0  # items of a class
_MOST = 1e12  # positives
_BITS = 60  # halvings of the range of log positives
_ROUNDING = 1e-9  # tolerance at the ends of the range of a metric


class Pilot(NamedTuple):
    """What a pilot shows about one observation.

    Attributes:
      estimate: `[..., models]`, the metric.
      of_classes: `[..., 2, models, models]`, the covariance of the influence values of the
        negatives and of the positives; for one model alone its variances `[..., 2]`.
      thirds: `[..., 2]`, by class, the third central moment of the influence values, or of their
        differences between two models; for two samples `[2, models]`.
      bounds: the Range of the metric; None if it is not known.
    """

    estimate: Array
    of_classes: Array
    thirds: Array
    bounds: Range | None


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


class Sizes(NamedTuple):
    """The numbers of negatives and of positives."""

    negatives: Array
    positives: Array


def of_pair(pilot: Pilot, sizes: Sizes) -> Errors:
    """The Errors of the difference of two models on the same items, those of `compare`."""
    if numerics.namespace(*sizes) is np:
        found = [_of_pair(pilot, Sizes(*each)) for each in zip(*map(np.ravel, sizes), strict=True)]
        shape = np.shape(sizes.positives)
        columns: Any = (np.reshape(x, shape) for x in zip(*found, strict=True))
        return Errors(*columns)
    each = jnp.vectorize(lambda *x: _of_pair(pilot, Sizes(*x)), signature="(),()->(),(),(),()")
    return Errors(*each(*sizes))


@library_program()
def _of_pair(pilot: Pilot, sizes: Sizes) -> Errors:
    library = numerics.namespace(pilot.of_classes, *sizes)
    n = library.stack(sizes)
    of_classes = pilot.of_classes / n[:, None, None]
    total = library.sum(of_classes, axis=0)
    planned = Covariance(total, of_classes, (*sizes, sizes[0] + sizes[1]), np.float64(0))
    pairs = pairs_of(pilot.estimate, planned, pilot.bounds, None)
    error = pairs.error[0, 1]
    lean = library.sum(pilot.thirds / n**2) / (2 * error)
    return Errors(pairs.standard_error[0, 1], error, pairs.df[0, 1], lean)


def of_samples(pilot: Pilot, sizes: Sizes) -> Errors:
    """The Errors of the difference of two models, each on its own sample of these sizes."""
    parts = [(c, m) for c in (0, 1) for m in (0, 1)]
    return _apart([(pilot.of_classes[c, m, m], pilot.thirds[c, m], sizes[c]) for c, m in parts])


def of_one(pilot: Pilot, sizes: Sizes) -> Errors:
    """The Errors of one model."""
    return _apart([(pilot.of_classes[..., c], pilot.thirds[..., c], sizes[c]) for c in (0, 1)])


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


def _apart(parts: list[tuple[Array, Array, Array]]) -> Errors:
    """The Errors of a sum of independent parts (variance, third moment, size), with Welch's df."""
    variance: Any = sum(v / n for v, _, n in parts)
    spread: Any = sum(spread_of(v / n, 1.0, n) for v, _, n in parts)
    third: Any = sum(x / n**2 for _, x, n in parts)
    error = numerics.namespace(variance).sqrt(variance)
    lean = numerics.divide(third, 2 * error, 0.0)
    return Errors(error, error, degrees(variance, spread, 1.0), lean)


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
    width: Array = (limits[1] - limits[0]) * (high - low)
    return width


def smallest(enough: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """The smallest number of positives that is enough, infinite if there is none; by bisection.

    A compiled program tries fifteen numbers in each step instead of one, as each step needs a
    quantile, which is many launches on a GPU.
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
    reached: Array = library.where(most, found, library.inf)
    return reached


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
