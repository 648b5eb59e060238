"""What is reported of a threshold, with limits: recall, FPR, precision, NPV, flagged, cost.

All are shares; costs are in units of the cost of the dearer error. Written over the array library:
NumPy's, or JAX's within `double_precision()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics._roc.operating import Point
from jaxmetrics.inference._intervals.distributions import normal_quantile, t_quantile
from jaxmetrics.inference._intervals.rules import Limits, around, draws_of_share, jeffreys

QuantileOf: TypeAlias = Literal["negatives", "positives"]

_TINY = 1e-300  # which has a logarithm


class Terms(NamedTuple):
    """What the caller gives beside the sample; None if it is not given."""

    prevalence: Any = None
    fp_cost: Any = None
    fn_cost: Any = None

    @property
    def dearer(self) -> Array:
        """The cost of the dearer error, which is the unit of costs."""
        return numerics.namespace(*self[1:]).maximum(*self[1:])


class Clustered(NamedTuple):
    """What clusters show of a share at a threshold.

    Attributes:
      fewest: the number of draws if all items of a cluster are alike: (sum w)^2 / sum w^2 of the
        weights of the clusters.
      df: the degrees of freedom of the variance between clusters.
    """

    fewest: Array
    df: Array


class Sizes(NamedTuple):
    """The number of draws for each share at a threshold, and the variance of the recall by amount.

    They are effective sizes (sum w)^2 / sum w^2 of the items that a share is of, or fewer where
    weights depend on what the share counts.

    Attributes:
      positives, negatives, all: for the share of these items that is flagged.
      flagged, others: for the share of positives among the flagged items, and of negatives among
        the other ones.
      alarms, missed: for the shares of false positives and of missed positives among all items.
      amounts: for the recall by amount, with weights times amounts; None without amounts.
      spread: the variance of the recall by amount at a fixed threshold; None without amounts.
      clusters: the Clustered of each share, by name; None without clusters.
    """

    positives: Array
    negatives: Array
    all: Array
    flagged: Array
    others: Array
    alarms: Array
    missed: Array
    amounts: Array | None = None
    spread: Array | None = None
    clusters: dict[str, Clustered] | None = None


class OfChoice(NamedTuple):
    """Moments over resamples of d, the value of a share in the resample less that in the data.

    Both values are at the threshold that is chosen in the resample.

    Attributes:
      optimism: the mean of d: how much too good a share looks on the data that chose the threshold.
      variance: the variance of d.
      of_draw: the mean of p (1 - p), the variance of one draw, with p the value in the data.
    """

    optimism: Array
    variance: Array
    of_draw: Array


class Share(NamedTuple):
    """A share, its limits and its variance."""

    value: Array
    low: Array
    high: Array
    variance: Array

    def times(self, factor: Any) -> Share:
        value, low, high, variance = self
        return Share(value * factor, low * factor, high * factor, variance * factor**2)

    def within_1(self) -> Share:
        library = numerics.namespace(*self)
        low, high = library.maximum(self.low, 0.0), library.minimum(self.high, 1.0)
        return self._replace(low=low, high=high)

    @property
    def rest(self) -> Share:
        return Share(1 - self.value, 1 - self.high, 1 - self.low, self.variance)


def shares_of_point(point: Point, terms: Terms, *, amounts: bool = False) -> dict[str, Array]:
    """The shares by name; NaN where they are 0 / 0."""
    nan = numerics.namespace(*point).nan
    recall = numerics.divide(point.tp, point.positives, nan)
    fpr = numerics.divide(point.fp, point.negatives, nan)
    total = point.positives + point.negatives
    prevalence = terms.prevalence
    if prevalence is None:
        precision = numerics.divide(point.tp, point.tp + point.fp, nan)
        flagged = numerics.divide(point.tp + point.fp, total, nan)
        cleared, missed = point.negatives - point.fp, point.positives - point.tp
        errors = _errors(point)
    else:
        caught, alarms = prevalence * recall, (1 - prevalence) * fpr
        precision = numerics.divide(caught, caught + alarms, nan)
        flagged = caught + alarms
        cleared, missed = (1 - prevalence) * (1 - fpr), prevalence * (1 - recall)
        errors = alarms, missed
    npv = numerics.divide(cleared, cleared + missed, nan)
    found = {"recall": recall, "fpr": fpr, "precision": precision, "npv": npv, "flagged": flagged}
    if terms.fp_cost is not None:
        cost = terms.fp_cost * errors[0] + terms.fn_cost * errors[1]
        found["cost"] = numerics.divide(cost, terms.dearer + 0 * cost, 0.0)
    if amounts:
        found["recall_by_amount"] = numerics.divide(point.caught, point.amount, nan)
    return found


def _errors(point: Point) -> tuple[Array, Array]:
    """The shares of false positives and of missed positives among all items."""
    total, nan = point.positives + point.negatives, numerics.namespace(*point).nan
    alarms, missed = (
        numerics.divide(x, total, nan) for x in (point.fp, point.positives - point.tp)
    )
    return alarms, missed


def limits_of_shares(
    shares: Sequence[Array], draws: Sequence[Array], level: Any
) -> list[tuple[Array, Array]]:
    """Jeffreys's limits of shares, each of its number of draws; one call of a long program."""
    library = numerics.namespace(*shares, *draws)
    each = library.broadcast_arrays(*shares, *draws)
    share, n = (library.stack(x) for x in (each[: len(shares)], each[len(shares) :]))
    return list(zip(*jeffreys(n * share, n, level), strict=True))


def proportion(value: Array, n: Array, limits: Limits) -> Share:
    """A share of `n` draws with these limits."""
    variance = numerics.divide(value * (1 - value), n, numerics.namespace(value, n).nan)
    return Share(value, *around(value, limits), variance)


def total_of(a: Share, b: Share, correlation: Any) -> Share:
    """The sum of two shares, with limits from those of each, by Zou and Donner.

    A limit is sqrt(d^2 + e^2 + 2 r d e) away from the sum, with d and e the distances of the two
    limits from their shares, and r the correlation of the shares.
    """
    library = numerics.namespace(*a, *b)

    def distance(d: Array, e: Array) -> Array:
        return numerics.root(d**2 + e**2 + 2 * correlation * d * e)

    value = a.value + b.value
    low = value - distance(a.value - a.low, b.value - b.low)
    high = value + distance(a.high - a.value, b.high - b.value)
    covariance = correlation * numerics.root(a.variance * b.variance)
    variance = library.maximum(a.variance + b.variance + 2 * covariance, 0.0)
    return Share(value, low, high, variance)


def limits_at_threshold(
    point: Point, sizes: Sizes, terms: Terms, level: Any, of: QuantileOf | None
) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Values, limits and standard errors at a threshold, by name, from Jeffreys's limits.

    At the prevalence of the sample, precision and share flagged are shares of items drawn, and the
    two errors of a cost are shares that exclude each other. At a given prevalence all follow from
    recall and FPR, which do not depend on each other.

    `of`: the class that the threshold was chosen as a quantile of, if it was; see `_counted`.
    """
    library = numerics.namespace(*point)
    estimates = shares_of_point(point, terms, amounts=sizes.amounts is not None)
    point, flagged, n_flagged = _counted(point, sizes, of)
    values = shares_of_point(point, terms, amounts=sizes.amounts is not None)
    of_flagged = shares_of_point(flagged, terms)
    values["precision"] = of_flagged["precision"]
    prevalence, correlation = terms.prevalence, library.zeros_like(values["recall"])
    draws = {"recall": sizes.positives, "fpr": sizes.negatives}
    if prevalence is None:
        values["alarms"], values["missed"] = _errors(point)
        draws |= {"precision": n_flagged, "npv": sizes.others}
        draws |= {"flagged": sizes.all, "alarms": sizes.alarms, "missed": sizes.missed}
    else:
        values["caught"], values["alarmed"] = of_flagged["recall"], of_flagged["fpr"]
        draws |= {"caught": sizes.positives, "alarmed": sizes.negatives}
    if sizes.amounts is not None:
        assert sizes.spread is not None
        share = values["recall_by_amount"]
        draws["recall_by_amount"] = draws_of_share(share, sizes.spread, sizes.amounts)
    limits = limits_of_shares([values[x] for x in draws], [*draws.values()], level)
    found = {
        name: proportion(values[name], n, x)
        for (name, n), x in zip(draws.items(), limits, strict=True)
    }
    recall, fpr = found["recall"], found["fpr"]
    if prevalence is None:
        errors = [found.pop("alarms"), found.pop("missed")]
        odds = [numerics.divide(x.value, 1 - x.value, 0.0) for x in errors]
        correlation = -numerics.root(odds[0] * odds[1])
    else:
        caught, alarms = recall.times(prevalence), fpr.times(1 - prevalence)
        n1, n0 = sizes.positives, sizes.negatives
        rates = (found.pop("caught"), n1), (found.pop("alarmed"), n0)
        found["precision"] = _precision(*rates, values["precision"], prevalence)
        found["npv"] = _npv((recall, n1), (fpr, n0), values["npv"], prevalence)
        found["flagged"] = total_of(caught, alarms, correlation).within_1()
        errors = [alarms, recall.rest.times(prevalence)]
    if terms.fp_cost is not None:
        of_dearer = (numerics.divide(x, terms.dearer, 0.0) for x in (terms.fp_cost, terms.fn_cost))
        parts = [error.times(x) for error, x in zip(errors, of_dearer, strict=True)]
        found["cost"] = total_of(parts[0], parts[1], correlation).within_1()
    return {
        name: (estimates[name], *around(estimates[name], x[1:3]), numerics.root(x.variance))
        for name, x in found.items()
    }


def _counted(point: Point, sizes: Sizes, of: QuantileOf | None) -> tuple[Point, Point, Array]:
    """The point that limits are of; that of precision; and how many flagged items the latter has.

    A quantile of a class is the score of a positive, which therefore counts half. From the highest
    score down, items are flagged up to a certain number of one class, so that the number of the
    other has a negative binomial distribution. If it is of positives, the last of them tells
    nothing of the precision. If it is of negatives, the next one ends the run, and the threshold is
    that of the last positive before: it counts as none, and the negative as half.

    The weight of an item is taken as that of its class over its effective number.
    """
    if of is None:
        return point, point, sizes.flagged
    library = numerics.namespace(*point)
    half, half_negative = (
        numerics.divide(weight, 2 * n, 0.0)
        for weight, n in ((point.positives, sizes.positives), (point.negatives, sizes.negatives))
    )
    less = library.minimum(half, point.tp / 2)
    found = flagged = point._replace(tp=point.tp - less)
    if of == "negatives":
        fp = library.minimum(point.fp + half_negative, point.negatives)
        flagged = point._replace(tp=point.tp - 2 * less, fp=fp)
    part = numerics.divide(flagged.tp + flagged.fp, point.tp + point.fp, 1.0)
    # The half of a negative may be far more than flagged items that have hardly any weight.
    return found, flagged, library.minimum(part * sizes.flagged, _LARGEST)


def _npv(
    recall: tuple[Share, Array], fpr: tuple[Share, Array], value: Array, prevalence: Any
) -> Share:
    """NPV is a precision, too: that of not flagging, with the classes exchanged."""
    cleared, missed = ((x.rest, n) for x, n in (fpr, recall))
    return _precision(cleared, missed, value, 1 - prevalence)


def _precision(
    recall: tuple[Share, Array], fpr: tuple[Share, Array], value: Array, prevalence: Any
) -> Share:
    """Precision at a given prevalence, from the limits of log recall - log FPR.

    Recall and FPR come with their numbers of items. Half an item is added to both counts of each,
    flagged and not, because the logarithm of 0 is infinite.
    """
    library = numerics.namespace(*recall[0], *fpr[0])
    logs = []
    for share, n in (recall, fpr):
        middle = (n * share.value + 0.5) / (n + 1)
        low, high = around(middle, (share.low, share.high))
        of = [library.log(library.maximum(x, _TINY)) for x in (middle, low, high)]
        logs.append(Share(of[0], of[1], of[2], (1 - middle) / (middle * n)))
    minus = Share(-logs[1].value, -logs[1].high, -logs[1].low, logs[1].variance)
    found = total_of(logs[0], minus, library.zeros_like(value))
    odds = (1 - prevalence) / prevalence
    low, high = (1 / (1 + odds * library.exp(-x)) for x in found[1:3])
    inner = numerics.without_nan(value)
    variance = (inner * (1 - inner)) ** 2 * found.variance
    variance = library.where(library.isnan(value), value, variance)
    return Share(value, low, high, variance)


def limits_of_choice(
    point: Point,
    sizes: Sizes,
    terms: Terms,
    level: Any,
    of: QuantileOf | None,
    chosen: dict[str, OfChoice],
) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Values, limits and standard errors at a chosen threshold, by name, from resamples.

    The limits are Jeffreys's around the value less its optimism. The number of draws is the one
    that has the variance in `chosen`, after that is made unbiased: by m / (m - 1), with m the size
    of the smaller class or the clusters of the share. `of` is as in `limits_at_threshold`.

    The variance between clusters is itself uncertain. So n draws count as n (z / t)^2, with t the
    quantile for the clusters' degrees of freedom, but not as fewer than the clusters, as each is at
    least one draw. See E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with
    small expected number of positive counts estimated from survey data", Survey Methodology 24,
    1998.
    """
    library = numerics.namespace(*point)
    smaller = library.minimum(sizes.positives, sizes.negatives)
    estimates = shares_of_point(point, terms, amounts=sizes.amounts is not None)
    point, flagged, n_flagged = _counted(point, sizes, of)
    values = shares_of_point(point, terms, amounts=sizes.amounts is not None)
    values["precision"] = shares_of_point(flagged, terms)["precision"]
    most: dict[str, Any] = {
        "recall": sizes.positives,
        "fpr": sizes.negatives,
        "precision": n_flagged,
        "npv": sizes.others,
        "recall_by_amount": sizes.amounts,
    }
    centres, variances, numbers = {}, {}, {}
    for name, value in values.items():
        n = most.get(name, _LARGEST + 0 * value)
        fewest, df = library.minimum(n, sizes.all), None
        drawn = smaller
        if sizes.clusters is not None:
            fewest, df = sizes.clusters[name]
            drawn = fewest
        unbiased = numerics.divide(drawn, library.maximum(drawn - 1, 0), 1.0)
        optimism, variance = chosen[name].optimism, unbiased * chosen[name].variance
        centre = library.clip(value - optimism, 0.0, 1.0)
        n = library.minimum(numerics.divide(chosen[name].of_draw, variance, library.inf), n)
        if df is not None:
            known = (normal_quantile((1 + level) / 2) / t_quantile((1 + level) / 2, df)) ** 2
            n = library.maximum(known * n, library.minimum(n, fewest))
        n = library.where(variance > 0, n, fewest)
        centres[name], variances[name], numbers[name] = centre, variance, n
    limits = limits_of_shares([*centres.values()], [*numbers.values()], level)
    shares = {
        name: Share(centre, *x, variances[name])
        for (name, centre), x in zip(centres.items(), limits, strict=True)
    }
    if terms.prevalence is not None:
        recall, fpr = ((shares[x], numbers[x]) for x in ("recall", "fpr"))
        for name, of_rates in (("precision", _precision), ("npv", _npv)):
            share = of_rates(recall, fpr, values[name], terms.prevalence)
            shares[name] = share._replace(variance=shares[name].variance)
    return {
        name: (value, *around(value, shares[name][1:3]), numerics.root(shares[name].variance))
        for name, value in estimates.items()
    }


_LARGEST = 1e9  # cap of numbers of draws that are ratios of variances or of weights


def normal_error(limits: Limits, level: Any) -> Array:
    """The standard error of a normally distributed estimate with these limits."""
    low, high = limits
    return (high - low) / (2 * normal_quantile((1 + level) / 2))
