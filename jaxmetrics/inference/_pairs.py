"""The errors of the differences of all pairs of models, and how well they are known.

Written over the array library: NumPy's, or JAX's inside `double_precision()`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import in_native_floats, library_program
from jaxmetrics._base.types import Array
from jaxmetrics.inference._influence.covariance import Covariance
from jaxmetrics.inference._influence.differences import lost_models, of_differences, root_of
from jaxmetrics.inference._intervals.areas import PRIOR
from jaxmetrics.inference._intervals.clustered import OfClusters, degrees_of_clusters
from jaxmetrics.inference._intervals.distributions import special
from jaxmetrics.inference._intervals.means import Within, draws_of_clusters
from jaxmetrics.inference._intervals.ranges import Range
from jaxmetrics.inference._intervals.recall import around_limit
from jaxmetrics.inference._intervals.rules import lacking
from jaxmetrics.inference._margins import Margins

_MORE = 4.0  # the most by which few failures raise the factor a of `pairs_of` above 1
_FEWEST = (0.25, 0.375)  # soft failures: a is raised fully up to the first, and not from the last
_OF_LIMITS = 1e-8  # the rounding of an error that rests on where a limit of a rate lies
_MANY = 100.0  # degrees of freedom from which on the lower tail needs no correction
_NARROWEST = 0.6  # negatives; a window that holds fewer is taken to be so wide that it holds these
_ONE_OF_EACH = 2.0  # differences that are added: one of either sign


class Pairs(NamedTuple):
    """The errors of the differences of all pairs `[models, models]` of models, samples or a value.

    Attributes:
      standard_error: of the difference.
      error: the same, raised for disagreements that may not have been drawn; limits and tests use
        it.
      df: the degrees of freedom of `error`.
      shares: `[parts, models, models]`, the shares in the variance of parts that are independent of
        each other, such as that of the negatives and that of the positives.
      sizes: `[parts]`, the number of observations that each part is estimated from.
      below: the distance of the lower limit from the difference; None if it follows from `error`.
      curvature: c of the margins y + c y^3, with y the quantile times `error`; None if they are y.
    """

    standard_error: Array
    error: Array
    df: Array
    shares: Array
    sizes: tuple[Array, ...]
    below: Margins | None = None
    curvature: Any = None

    def with_pairs(self, chosen: Array, value: float) -> Pairs:
        """The Pairs with a number, or NaN, in place of those that are `chosen`."""

        def put(x: Array, places: Array) -> Array:
            return numerics.namespace(x, places).where(places, value, x)

        pairwise = self.standard_error, self.error, self.df, self.shares
        error, raised, df, shares = (put(x, chosen) for x in pairwise)
        below = self.below
        if below is not None:
            below = below._replace(sizes=put(below.sizes, chosen[..., None]))
        return Pairs(error, raised, df, shares, self.sizes, below, self.curvature)

    def margins(self, quantile: Array) -> tuple[Array, Array]:
        """How far the limits are below and above the difference, at a quantile of t."""
        if self.below is None:
            both = quantile * self.error
            if self.curvature is not None:
                both = both + self.curvature * both**3
            return both, both
        library = numerics.namespace(quantile, self.error)
        found = self.below.at(library.broadcast_to(quantile, self.error.shape))
        return found, found.T

    def quantile(self, distance: Array, otherwise: Array | float) -> Array:
        """The quantile of t at which the lower limit is `distance` below the difference.

        For a negative distance, minus the quantile at which the upper limit is as far above it.
        `otherwise` where the error is 0.
        """
        library = numerics.namespace(distance, self.error)
        if self.below is None:
            if self.curvature is not None:  # the root of y + c y^3 = distance
                unit = library.sqrt(3 * self.curvature)
                distance = 2 / unit * library.sinh(library.arcsinh(1.5 * unit * distance) / 3)
            return numerics.divide(distance, self.error, otherwise)
        above = self.below._replace(sizes=self.below.sizes.swapaxes(0, 1))
        size = library.abs(distance)
        found = library.where(distance > 0, self.below.reaches(size), -above.reaches(size))
        return library.where(self.error == 0, otherwise, found)

    def drawn_parts(self, normal: Array) -> Array:
        """Draws `[parts, draws]` of the estimated variance of each part over the true variance.

        These are chi-squared over the degrees of freedom, from `normal` numbers `[parts, draws]` by
        the approximation of E. B. Wilson and M. M. Hilferty 1931. Its lower tail is too low for few
        observations: there the first two terms of the incomplete gamma function replace it. The
        standard deviations are right to 2 % from 2 observations on.
        """
        return in_native_floats(_drawn_parts, normal, *self.sizes)


def _drawn_parts(normal: Array, *sizes: Array) -> Array:  # of float32 on TPUs
    library = numerics.namespace(normal)
    k = library.stack([library.maximum(x - 1, 0.5) for x in sizes])[:, None]
    unit = 2 / (9 * k)
    # The size of a given value is infinite and its unit 0, where `sqrt` has no slope.
    root = library.maximum(1 - unit + normal * numerics.root(unit), 0.0)
    half, functions = library.minimum(k, _MANY) / 2, special(library)
    log_mass = library.log(functions.ndtr(normal)) + functions.gammaln(half + 1)
    x = library.exp(log_mass / half)
    in_tail = x * library.exp(library.minimum(x / (half + 1), 1.0)) / half
    return library.maximum(root * root * root, in_tail)


@library_program()
def pairs_of(estimate: Array, covariance: Covariance, bounds: Range | None) -> Pairs:
    """The Pairs of models; `bounds` is the Range of the metric, if known.

    The variance of a difference is V_0 + V_1, of the negatives and the positives, with
    V_c = (s_c^2 + a max(L_c - s_c^2, 0) / n_c) / n_c. Here s_c^2 is the variance of the difference
    of the influence values. L_c, of `_largest_variances`, is a variance that disagreements which
    were not drawn may have. a is 1, and up to 5 where hardly a failure of a model has been seen.
    n_c is the number of items; with clusters, in the term of L_c and below, the smallest number of
    the models' draws, as of `draws_of_clusters`.

    Where only the negatives up to a false positive rate decide, these may be so few that hardly one
    has influence. So V_0 is larger by 2 max(W - s_0^2, 0) / (m + 2) / n_0, and has m + 4 degrees of
    freedom, with m = n_0 max_fpr. W is L_0 with the variances of power laws, as in
    `areas.partial_auc`. A recall has M + 4 degrees of freedom, with the number M of negatives
    between the ends of the chord whose slope it uses. For other metrics V_0 has
    2 (n_0 - 1) / (kurtosis - 1) degrees of freedom, with the kurtosis of the negatives' influence:
    (n_0 - 1) / 10 for average precision. With clusters it has no more than these have.
    """
    library = numerics.namespace(estimate, covariance.total)
    lost = lost_models(estimate, covariance.total)
    estimate, covariance = library.where(lost, 0.0, estimate), _without(covariance, lost)
    n0, n1, n = map(only_number, covariance.sizes)
    mixed = only_number(covariance.mixed)
    of_classes = covariance.of_classes
    if of_classes is None:
        of_classes = library.stack([library.zeros_like(covariance.total), covariance.total])
    between = covariance.between or (covariance.total, of_classes)
    total, classes = of_differences(between[0]), list(of_differences(between[1]))
    error = root_of(total, between[0], estimate)
    k0 = n0
    if bounds is not None:
        share, unit = bounds.share_of(estimate)[:, None], (bounds.high - bounds.low) ** 2

        def allowed(*sizes: Array) -> list[Array]:
            """What disagreements that were not drawn may add to the variance of each class."""
            weight = 1 + _MORE * _unseen(share, library.minimum(*sizes))
            found = []
            for v, of_class, n_c in zip(classes, of_classes, sizes, strict=True):
                unseen = largest_variance(share, n_c)
                largest = unit * _largest_variances(unseen, of_class / unit, n_c)
                lacking = library.maximum(largest - n_c * v, 0)
                found.append(weight * numerics.divide(lacking, n_c**2, 0.0))
            return found

        drawn = n0, n1
        if covariance.draws is not None:
            drawn = tuple(map(library.min, covariance.draws))
        added = allowed(*drawn)
        if bounds.max_fpr is not None:
            lacking_in_window, df = _of_window(bounds, share, of_classes[0], drawn[0])
            added[0] += lacking_in_window
            k0 = library.minimum(n0, df + 1)
        else:
            k0 = library.minimum(n0, 1 + 2 * (drawn[0] - 1) / (bounds.kurtosis - 1))
        classes = [v + x for v, x in zip(classes, added, strict=True)]
        total = total + added[0] + added[1]
    df = degrees_of_clusters(OfClusters(classes[0], classes[1], total, (k0, n1, n), mixed))
    of_negatives = library.clip(numerics.divide(classes[0], classes[0] + classes[1], 0.5), 0, 1)
    apart = (1 - mixed) * library.stack([of_negatives, 1 - of_negatives])
    shares = library.concatenate([apart, library.full_like(apart[:1], mixed)])
    # Two models without any variance, such as perfect ones, may be different in the population.
    # Other models whose difference has no variance are equal.
    largest = library.max(library.where(library.isnan(estimate), 0.0, library.abs(estimate)))
    constant = library.diagonal(covariance.total) <= (_OF_LIMITS * largest) ** 2
    different = constant[:, None] & constant[None, :] & ~library.eye(len(constant), dtype=bool)
    raised = library.where((error == 0) & ~different, 0.0, numerics.root(total))
    # Average precision has a value without positives, or negatives, but no error.
    error, raised = (
        library.where(library.minimum(n0, n1) > 0, x, library.nan) for x in (error, raised)
    )
    curvature = None if bounds is None else bounds.curvature
    pairs = Pairs(error, raised, df, shares, (k0, n1, n), curvature=curvature)
    return pairs.with_pairs(lost[:, None] | lost, np.nan)


def _without(covariance: Covariance, lost: Array) -> Covariance:
    """The Covariance in which lost models have no variance, and decide no number of draws."""
    library = numerics.namespace(covariance.total, lost)
    draws = covariance.draws
    if draws is not None:
        own = lost[: len(draws[0])]  # a given value has none
        known = [library.where(own, 0.0, x) for x in draws]
        n0, n1 = (library.where(own, library.max(x), x) for x in known)
        draws = n0, n1
    total, of_classes, between = jax.tree.map(
        lambda x: library.where(lost[:, None] | lost, 0.0, x),
        (covariance.total, covariance.of_classes, covariance.between),
    )
    return covariance._replace(total=total, of_classes=of_classes, draws=draws, between=between)


def only_number(size: Any) -> Array:
    """The first number of an array, such as a size shaped to broadcast."""
    library = numerics.namespace(size)
    return library.ravel(library.asarray(size, np.float64))[0]


def _of_window(bounds: Range, share: Array, of_class: Array, n: Array) -> tuple[Array, Array]:
    """What to add to the negatives' variances where few of them decide, and their df."""
    library, unit = numerics.namespace(share, of_class, n), (bounds.high - bounds.low) ** 2
    # Nothing is seen below the first negative, and the power law is not taken to be steeper there.
    limit = library.maximum(bounds.max_fpr, _NARROWEST / n)
    m, of_class = n * limit, of_class / unit
    unseen = bounds.variance_of_window(share, limit)
    largest = _largest_variances(unseen, of_class * n / m, m)
    lacking = library.maximum(largest - n * of_differences(of_class), 0)
    low, high = around_limit(limit, n)
    known = library.where(bounds.of_height, n * (high - low), m)
    return unit * PRIOR * lacking / (m + PRIOR) / n, known + PRIOR + 2


class Means(NamedTuple):
    """What a comparison of means needs of units, which are items or clusters.

    Attributes:
      estimate: `[models]`, the means.
      covariance: `[models, models]`, of the means.
      between: `between_models` of it.
      n: the effective number of units.
      kept, df: those of `kept_and_df`.
      apart: `[models, models]`, the share of the units in which two models differ.
      is_share: whether all values are in [0, 1].
    """

    estimate: Array
    covariance: Array
    between: Array
    n: Array
    kept: Array
    df: Array
    apart: Array
    is_share: Array


@library_program()
def pairs_of_means(units: Means, items: Means, within: Within | None) -> Pairs:
    """The Pairs of means of units, which are the items, or clusters with `within` of their items.

    Where all values are from 0 to 1, the variances allow for disagreements that were not drawn, by
    the number of independent items that the differences amount to.
    """
    estimate, covariance, between, n, kept, df, apart, _ = units
    library, is_share = numerics.namespace(estimate, covariance, n), items.is_share
    lost = lost_models(estimate, covariance)
    pair = lost[:, None] | lost
    estimate = library.where(lost, 0.0, estimate)
    covariance, between = (library.where(pair, 0.0, x) for x in (covariance, between))
    units = units._replace(estimate=estimate, covariance=covariance)
    variance = of_differences(between)
    error = root_of(variance, between, estimate)
    if within is not None:
        draws = _draws_of_pairs(units, items, within, library.where(error > 0, variance, 0.0))
        n = library.where(is_share, draws, n)
        apart = library.where(is_share, items.apart, apart)
    share = library.clip(estimate, 0, 1)[:, None]
    largest = _largest_variances(largest_variance(share, n), covariance, n)
    unseen = library.maximum(largest - n * variance, 0) / n**2
    more = (1 + _MORE * _unseen(share, n)) * unseen
    raised = variance + library.where(is_share, more, 0.0)
    raised = library.maximum(raised, _of_sparse(estimate, kept * variance, n, is_share, apart))
    others = ~library.eye(len(estimate), dtype=bool)
    others = others & (is_share | (error > 0))  # else it would be the error of rounding
    raised = library.where(others, library.maximum(raised, 0.0), 0.0)
    one = library.ones_like(variance)
    degrees = one * library.maximum(df, 1.0)
    pairs = Pairs(error, numerics.root(raised), degrees, one[None], (df + 1,))
    return pairs.with_pairs(pair, np.nan)


def _draws_of_pairs(units: Means, items: Means, within: Within, variance: Array) -> Array:
    """The number of independent items that the differences of two models amount to.

    Of N items in n clusters it is N V_0 / V, from n to N, with the variance V_0 that the difference
    would have if the items were independent. It is not below the draws of each model, which count
    where the models do not differ in the sample and V is 0.
    """
    library = numerics.namespace(variance)
    independent = items.n * of_differences(items.between)
    found = library.clip(numerics.divide(independent, variance, 0.0), units.n, items.n)
    own = library.diagonal(units.covariance)
    fewest = draws_of_clusters(units.estimate, own, units.n, units.df, within)
    return library.maximum(found, library.minimum(fewest[:, None], fewest[None, :]))


def _of_sparse(estimate: Array, biased: Array, n: Array, is_share: Array, apart: Array) -> Array:
    """The variances with one difference more of either sign, where most differences are 0.

    Few differences other than 0 may all have one sign, and then too small a variance. So a
    difference of either sign is added, with the share of the zeros as its weight. Its square is the
    mean square of the differences that are not 0. One of 1 is among them where all values are from
    0 to 1, `is_share`. D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data", JEBS 37, 2012, take 1 for it.

    `biased` are the variances of the sample before the division by `kept`.
    """
    squared = (estimate[:, None] - estimate[None, :]) ** 2
    square = n * biased + squared
    added = _ONE_OF_EACH * (1 - apart)
    total = n + added
    mean = numerics.divide(n * square + is_share, n * apart + is_share, 0.0)
    square = (n * square + added * mean) / total
    return numerics.divide(square - (n / total) ** 2 * squared, total, np.nan)


def largest_variance(share: Array, n: Array) -> Array:
    """The variance p (1 - p), p = (n A + 1/2) / (n + 1), that an observation not drawn may have."""
    p = (n * share + 0.5) / (n + 1)
    return p * (1 - p)


def _unseen(share: Array, n: Array) -> Array:
    """From 0 to 1 as the soft failures n (1 - A), or successes n A, of either model get few.

    `share` is `[models, 1]`; `n` is a number, or `[models, models]` with a number for each pair.
    """
    library = numerics.namespace(share, n)
    few = lacking(n * library.minimum(share, 1 - share), _FEWEST)
    return library.maximum(few, few.T)


def _largest_variances(unseen: Array, of_class: Array, n: Array) -> Array:
    """uA + uB - 2 r sqrt(uA uB), with u = `unseen`, which an observation not drawn may have.

    r is the correlation of the two models' influence values with one more observation, in which the
    influence values of each model have the variance u and are independent of the other's. `unseen`
    is `[models, 1]`; where `n` is `[models, models]` both have a number for each pair.
    """
    library = numerics.namespace(unseen, of_class, n)
    own = library.maximum(library.diagonal(of_class), 0)[:, None]
    variances = n * own + numerics.divide(unseen, n, np.nan)
    deviations = library.sqrt(variances)
    together = deviations * deviations.T
    r = library.clip(numerics.divide(n * of_class, together, 0.0), 0, 1)
    return unseen + unseen.T - 2 * r * numerics.root(unseen * unseen.T)
