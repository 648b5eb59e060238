"""Means of a value for each item, such as the nDCG of queries: intervals and paired comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.frames import names_in
from jaxmetrics._base.host import all_concrete, as_numpy, at_hand, near_tree
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, HostOrDeviceArray, Items
from jaxmetrics._base.warned import warn
from jaxmetrics.inference._compared import Comparison, check_margin, comparison_of
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.covariance import products_between
from jaxmetrics.inference._intervals.effective import kish
from jaxmetrics.inference._intervals.interval import Interval
from jaxmetrics.inference._intervals.means import (
    FEWEST_VALUES,
    Sample,
    Within,
    are_shares,
    in_shares,
    interval_of_mean,
    mean_of,
    moments_of_sample,
    warn_of_few_values,
    weighted,
)
from jaxmetrics.inference._pairs import Means, pairs_of_means

_MANY_MODELS = 20  # up to so many are common, however few the items


@on_any_mesh
def mean_interval(
    values: ArrayLike,
    *,
    confidence_level: float = 0.95,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Interval:
    """The interval of the mean of a value for each item: nDCG of queries, right and wrong answers.

    The mean sum_i w_i v_i / sum_i w_i, with Hall's limits for the t statistic of a skewed sample.
    Values that are all from 0 to 1 are shares: their limits lie within Wilson's, and reach them
    where hardly a value is high, or hardly one is low. With clusters, the mean of a cluster is one
    value, with the weight of all its items. Wilson's limits are then those for as many draws of yes
    and no as the clusters are worth, by the variances between and within clusters.

    Args:
      values: `[..., items]`, a value for each item, with a row for each model.
      confidence_level: in (0, 1).
      clusters: `[items]`, integers or strings, not traced. Items of one cluster (questions on one
        passage, samples of one question) may depend on each other.
      weights: `[..., items]`, not negative; an item of weight k counts k times in the mean, but is
        one observation.
      where: `[..., items]` bool, False for items to leave out, such as ~isnan(values).

    Returns:
      An Interval of arrays `[...]`, in the unit of the values.

    Raises:
      TypeError, ValueError: as the conventions list under Errors.

    NaN where a valid value is NaN, and where no item is valid; limits of one value are NaN. Warns
    where values are too few to show their skewness, or rare ones too few to show their size. A
    sample with a few heavy items shows less of the skewness than its effective size suggests: with
    100 and 200 lognormal values, a tenth of which have 20 times the weight, intervals cover 0.89
    and 0.91. Time and memory O(items) for each row.

    Example:
      >>> import jaxmetrics as jm
      >>> found = jm.mean_interval([.5, .9, .4, 1., .3, .8, .5, .6])
      >>> print(f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})")
      0.625 (0.371 to 0.861)

    Reference: P. Hall, "On the removal of skewness by transformation", JRSS B 54, 1992.
    """
    level = checks.check_level(confidence_level)
    items = checks.check_values(values, weights, where, along={"clusters": clusters})
    ids = checks.check_clusters(clusters, items)
    sample = sample_of_values(items, ids)
    warn_of_few_values(sample)
    return interval_of_mean(sample, level)._captioned_as("mean")


def sample_of_values(items: Items, clusters: Clusters | None) -> Sample:
    """The moments of checked values, or of the means of their clusters."""
    *given, within = _units(items, clusters)
    units: Any = at_hand(*given)
    return near_tree(moments_of_sample(*units, numerics.default_float(), within))


@on_any_mesh
def compare_means(
    values: ArrayLike,
    *,
    reference: int | str | None = None,
    margin: float | None = None,
    confidence_level: float = 0.95,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Comparison:
    """Paired differences of the means of models over the same items: rankers over queries, say.

    The limits of the difference d of two means are d -+ t E, with E^2 = V + a max(L - n V, 0) / n^2
    for values that are all from 0 to 1, and else E^2 = V. V is the variance of d from the n paired
    differences. L is the variance that disagreements which were not drawn may have, and a is 1, and
    up to 5, as in `compare`. t has n - 1 degrees of freedom, or fewer with unequal weights or
    clusters.

    Where a share q of the differences D is 0, E^2 is at least the variance of d with q differences
    more of either sign, ((n s^2 + 2 q v) / N - (n d / N)^2) / N with N = n + 2 q. Here
    s^2 = d^2 + n sum p^2 (D - d)^2, with p the share of each in the weights; where these are equal,
    s^2 is the mean square of the differences. v is the mean square of those that are not 0, with
    one of 1 added to them for values from 0 to 1: (n s^2 + 1) / (n (1 - q) + 1).

    Simultaneous limits, the best set and chi2 are those of `compare`.

    With clusters, V is that of their means, with the weight of all their items. For values from 0
    to 1, q is then the share of items, and n is m V_0 / V where L and q count: the number of
    independent items whose differences vary as much. V_0 is the variance of d if all m items were
    independent. This n is kept from the number of clusters to m, and not below the draws of
    `mean_interval`.

    Args:
      values: `[models, items]`, a value for each item and model; two models or more.
      reference: the index or the name of one model, to compare the others with it alone; None
        compares all pairs.
      margin: a difference that is too small to matter, above 0, in the unit of the values.
      confidence_level: in (0, 1), of the limits and of the best set.
      clusters: `[items]`, integers or strings, not traced. Items of one cluster (questions on one
        passage, samples of one question) may depend on each other.
      weights: `[items]`, not negative; an item of weight k counts k times in the means, but is one
        observation.
      where: `[items]` bool, False for items to leave out, such as
        isfinite(values).all(axis=0).

    Returns:
      A Comparison in the unit of the values; pairwise `[models, models]`, row minus column, or
      `[models]` with a reference.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a value that counts is NaN or
        infinite, or there are fewer than two models.

    NaN where fewer than two items are valid; p-values of a difference that is the same in all
    items, and within `jit`, with three models or more, of one whose error is below a millionth of
    the models' own. Warns of both, and where there are fewer than 20 items or clusters. Limits are
    as far on both sides. Where differences are skewed, as of costs, or of gains in few of the
    items, 95 % limits covered 0.79 to 0.92 with 20 to 150 items in simulations; those of
    `mean_interval(a - b)`, which removes the skewness, 0.87 to 0.98. Shares of 5 to 50 clusters of
    20 to 500 items were covered 0.91 or more, but 0.84 to 0.92 where differences of one sign gather
    in few of them; by `mean_interval(a - b, clusters=...)` 0.92 and more. Time O(models^2 items),
    memory O(models items).

    Example:
      >>> import jaxmetrics as jm
      >>> a = [.5, .9, .4, 1., .3, .8, .5, .6, .9, .7, .9, 1.]
      >>> b = [.1, .5, .4, .2, .2, .8, .1, .0, .6, .7, .3, .5]
      >>> result = jm.compare_means([a, b])
      >>> print(f"{result.difference[0, 1]:.3f} -+ {result.standard_error[0, 1]:.3f}")
      0.342 -+ 0.077

    References: J. C. Hsu, "Multiple Comparisons: Theory and Methods", 1996; D. G. Bonett and R. M.
    Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on
    paired data", Journal of Educational and Behavioral Statistics 37, 2012; M. D. Smucker, J. Allan
    and B. Carterette, "A comparison of statistical significance tests for information
    retrieval evaluation", CIKM 2007.
    """
    level, margin = checks.check_level(confidence_level), check_margin(margin)
    along = {"clusters": clusters}
    items = checks.check_values(values, weights, where, along=along, together=True)
    ids = checks.check_clusters(clusters, items)
    n_models = checks.check_models(items)
    if n_models > max(items.scores.shape[-1], _MANY_MODELS):
        warn(
            f"values is [models, items], and has {n_models} models of {items.scores.shape[-1]} "
            "items: if its rows are items, write values.T"
        )
    checks.check_fits("the number of models", n_models, 64 * n_models**2, "compare fewer at a time")
    reference = checks.check_reference(reference, names_in(values), n_models)
    _refuse_undefined(items)
    *given, within = _units(items, ids)
    units = of_items = _moments_of(*given)
    if ids is not None:
        of_items = _moments_of(items.scores, items.weights, items.where)
    pairs = pairs_of_means(units, of_items, within)
    if numerics.namespace(units.estimate) is np:
        _warn_of_few_units(float(units.n), "items" if ids is None else "clusters")
        _warn_of_no_variance(units.estimate, pairs.error)
    found = comparison_of(units.estimate, units.between, pairs, level, reference, margin)
    return found._captioned_as("mean")


class _Units(NamedTuple):
    """Items, or clusters by their means: values, weights and validity `[..., units]`."""

    values: HostOrDeviceArray
    weights: HostOrDeviceArray | None
    where: HostOrDeviceArray | None
    within: Within | None = None


def _units(items: Items, clusters: Clusters | None) -> _Units:
    if clusters is None:
        return _Units(items.scores, items.weights, items.where)
    ids, n_clusters = clusters
    given = at_hand(items.scores, items.weights, items.where)
    return _means_of_clusters(*given, ids, n_clusters)


@library_program("n_clusters")
def _means_of_clusters(
    values: Array, weights: Array | None, where: Array | None, ids: Array, n_clusters: int
) -> _Units:
    library = numerics.namespace(values)
    weights, values = weighted(values, weights, where)

    def of_clusters(x: Array) -> Array:
        return numerics.sums_at(ids, x, n_clusters)

    total = of_clusters(weights)
    means = numerics.divide(of_clusters(weights * values), total, 0.0)
    n_items, shares = kish(weights)
    within = library.sum(shares * (values - means[..., ids]) ** 2, axis=-1)
    is_share = are_shares(values, weights > 0)
    return _Units(means, total, total > 0, Within(within, n_items, is_share))


def _moments_of(*given: HostOrDeviceArray | None) -> Means:
    """`_moments` of values, weights and validity."""
    there: Any = at_hand(*given)
    return near_tree(_moments(*there))


@library_program()
def _moments(values: Array, weights: Array | None, where: Array | None) -> Means:
    library = numerics.namespace(values)
    per_item = (None if x is None else library.ravel(x) for x in (weights, where))
    values, counted, shares = in_shares(values, *per_item)
    of_items, n, kept, df = shares
    means = mean_of(shares, values)
    errors = of_items * (values - means[:, None])
    own = errors @ errors.T
    products = own, products_between(own, errors)
    covariance, between = (numerics.divide(x, kept, np.nan) for x in products)
    apart = library.stack([library.sum(of_items * (values != x), axis=-1) for x in values])
    is_share = library.all(are_shares(values, counted))
    return Means(means, covariance, between, n, kept, df, apart, is_share)


def _refuse_undefined(items: Items) -> None:
    given: Any = at_hand(items.scores, items.weights, items.where)
    if not (all_concrete(*given) and given[0].size):
        return
    with jax.ensure_compile_time_eval():  # so that known values are checked inside of a trace, too
        some, place = _first_undefined(*given)
    if some:
        model, item = divmod(int(place), given[0].shape[-1])
        raise ValueError(
            f"values must be finite, got {as_numpy(given[0])[model, item]:g} for item {item} of "
            f"model {model}: write where=isfinite(values).all(axis=0) to leave such items out of "
            "all models"
        )


@library_program()
def _first_undefined(
    values: Array, weights: Array | None, where: Array | None
) -> tuple[Array, Array]:
    """Whether a value that counts is not finite, and the index of the first in the flat array."""
    library = numerics.namespace(values)
    lost: Any = ~library.isfinite(values)
    for x in (weights, where):
        lost = lost if x is None else lost & (x.ravel() > 0)
    return lost.any(), lost.argmax()


def _warn_of_few_units(n: float, what: str) -> None:
    if 0 < n < FEWEST_VALUES:
        warn(
            f"a comparison rests on {n:.3g} {what}: with fewer than {FEWEST_VALUES} limits cover "
            f"less than they say where values are skewed: add {what}",
        )


def _warn_of_no_variance(means: Any, error: Any) -> None:
    apart = np.argwhere((means[:, None] > means) & (error == 0))
    if len(apart):
        i, j = apart[0]
        warn(
            f"models {min(i, j)} and {max(i, j)} differ by the same amount in all items: their "
            "difference has no variance, so that its limits have no width and its p-value is NaN"
        )
