"""Metrics of graded relevance: cumulated gain, and models of how a user reads a list."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.numerics import divide, largest_weight, namespace
from jaxmetrics._base.sorting import take
from jaxmetrics._base.types import Array
from jaxmetrics._ranking.lists import Lists, Places, Ranking, falling_keys, in_falling_order
from jaxmetrics._ranking.metric import list_metric

Gain = str | Callable[[Array], Array]
Discount = Callable[[Array], Array] | None

GAINS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda label: label,
    # 2^label - 1 is exact for whole grades, but loses the digits of low ones.
    "exponential": lambda label: namespace(label).where(
        label < 1,
        namespace(label).expm1(label * math.log(2)),
        namespace(label).exp2(label) - 1,
    ),
}


@list_metric()
def dcg(
    lists: Lists,
    *,
    k: Places = None,
    gain: Gain = "linear",
    discount: Discount = None,
    ties: str = "average",
) -> tuple[Array, Array]:
    """Discounted cumulated gain: the sum of the first k documents' gains, discounted by rank.

    DCG@k = sum over ranks r <= k of gain(label at rank r) / log2(r + 1).

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; grades of relevance.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.
      gain: "linear", the label; "exponential", 2^label - 1; or a function of the array of labels.
      discount: a factor of the gains, as a function of the array of ranks from 1; None:
        1 / log2(r + 1).
      ties: "average", the exact mean over all orders of tied documents; "index", the document of
        the lower index first.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`, in the unit of the gains; 0 for a
      list without documents.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN,
        infinite, or under exponential gain negative or above 1,023, or a segment is not in 0 to
        num_segments - 1.

    NaN where a valid score or traced label is NaN, or a traced label is negative or above 1,023
    under exponential gain; for all lists of a row if a traced id of a valid item is out of range.
    Infinite where the sum exceeds the range of the result's dtype, as gains of 3e38 in float32.
    Time O(n log n), memory O(n). Each new function object given as `gain` or `discount` compiles
    the metric again.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.dcg([.9, .8, .7], [3, 0, 1]):.1f}")
      3.5

    References: K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
    ACM TOIS 20, 2002; F. McSherry and M. Najork, "Computing information retrieval performance
    measures efficiently in the presence of tied scores", ECIR 2008.
    """
    gains = _gains(lists.labels, gain)
    ranking = lists.ranking(k)
    refused = lists.library.zeros(gains.shape, bool)
    if gain == "exponential":
        refused = (gains < 0) | (gains == np.inf)
    return _dcg(lists, ranking, at_places(lists, ranking, gains, ties), discount, k), (
        lists.total(refused.astype(np.int32)) > 0
    )


@list_metric(ideal=True, graded=True)
def ndcg(
    lists: Lists,
    *,
    k: Places = None,
    gain: Gain = "linear",
    discount: Discount = None,
    ties: str = "average",
    empty: float = 0.0,
) -> tuple[Array, Array]:
    """Normalised discounted cumulated gain: DCG divided by the DCG of the best order.

    nDCG@k = DCG@k / max over orders of DCG@k, with the DCG of `jaxmetrics.dcg`.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; grades of relevance, not negative.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.
      gain: "linear", the label; "exponential", 2^label - 1; or a function of the array of labels.
      discount: a factor of the gains, as a function of the array of ranks from 1, that does not
        rise and is not negative; None: 1 / log2(r + 1).
      ties: "average", the exact mean over all orders of tied documents, which is scikit-learn's
        default; "index", the document of the lower index first.
      empty: the value of a list without relevant documents: 0, as in scikit-learn; 1, as in
        LightGBM; nan, to leave the list out of a mean by `where=~isnan(values)`, as trec_eval does.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is
        negative, NaN, or above 1,023 under exponential gain, the highest label of a list is beyond
        the range of weights, the discount rises or is negative at a rank up to the number of items,
        or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN, or a gain is negative or above 1e288; for all
    lists of a row if a traced id of a valid item is out of range. Time O(n log n), memory O(n).
    Each new function object given as `gain` or `discount` compiles the metric again.

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [.9, .8, .7, .3, .2]
      >>> print(f"{jm.ndcg(scores, [3, 0, 1, 0, 2], k=3):.4f}")
      0.7350
      >>> print(jm.ndcg(scores, [1, 0, 0, 0, 1], segments=[0, 0, 0, 1, 1]))
      [1.         0.63092977]

    Reference: K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
    ACM TOIS 20, 2002.
    """
    # In this unit, sums of gains such as 2^1023 do not overflow.
    unit = 2.0**-128 if gain == "exponential" else 1.0
    gains = unit * _gains(lists.labels, gain)
    ranking = lists.ranking(k)
    _refuse_rise(discount, len(ranking.rank) if k is None else min(len(ranking.rank), np.max(k)))
    if callable(gain):  # a function may give a lower label the higher gain
        keys = falling_keys(gains, lists.valid, lists.segment)[: len(ranking.item)]
        falling = in_falling_order(gains, keys, lists.valid, lists.segment)
    else:
        falling = unit * _gains(lists.falling_labels(ranking), gain)
    found = _dcg(lists, ranking, at_places(lists, ranking, gains, ties), discount, k)
    best = _dcg(lists, ranking, falling, discount, k)
    refused = (gains < 0) | (gains > largest_weight(gains.dtype))
    return divide(found, best, empty), lists.total(refused.astype(np.int32)) > 0


@list_metric(graded=True)
def expected_reciprocal_rank(
    lists: Lists, *, k: Places = None, max_grade: float
) -> tuple[Array, Array]:
    """Expected reciprocal rank of the document at which a user who reads down the list stops.

    ERR@k = sum over ranks r <= k of (1 / r) R_r prod_(i < r) (1 - R_i), where the document at rank
    i satisfies the user, who then stops, with probability R_i = (2^label - 1) / 2^max_grade.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`. Of
        tied documents, the one of the lower index comes first.
      labels: of a shape that broadcasts with the scores; grades of relevance, from 0 to max_grade.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.
      max_grade: the highest grade of the scale, such as 4; below 1,023. With the highest grade
        that occurs, the value of a list would depend on the other lists.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; at least 0, below 1; 0 without
      relevant documents.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is not in 0
        to max_grade, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN, or a traced label is not in 0 to
    max_grade. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.expected_reciprocal_rank([.9, .8], [0, 1], max_grade=1))
      0.25

    Reference: O. Chapelle, D. Metzler, Y. Zhang and P. Grinspan, "Expected reciprocal rank for
    graded relevance", CIKM 2009.
    """
    ranking, library = lists.ranking(k), lists.library
    grade = lists.labels.astype(np.float64)
    refused = (grade < 0) | (grade > max_grade)
    stops = (library.exp2(grade) - 1) / 2**max_grade
    stops = library.where(ranking.valid, take(stops, ranking.item), 0)
    goes_on = library.where(ranking.rank == 0, 1, library.roll(1 - stops, 1))
    reached = lists.running_product(ranking, goes_on)
    value = lists.total_at(ranking, reached * stops / (ranking.rank + 1), k)
    return value, lists.total(refused.astype(np.int32)) > 0


@list_metric()
def rank_biased_precision(
    lists: Lists, *, k: Places = None, persistence: float = 0.8, ties: str = "average"
) -> tuple[Array, bool]:
    """Rank-biased precision: expected relevant documents per document that a user reads.

    RBP@k = (1 - p) sum over ranks r <= k of [label at rank r > 0] p^(r - 1), where p is the
    probability that the user goes on from one document to the next.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.
      persistence: p, in (0, 1); the higher it is, the more the lower ranks count.
      ties: "average", the mean over all orders of tied documents; "index", the document of the
        lower index first.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; at least 0, below 1; 0 without
      relevant documents.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; persistence is not in (0, 1), a
        label is NaN or infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.rank_biased_precision([.9, .8, .7], [1, 0, 1], persistence=0.5))
      0.625

    Reference: A. Moffat and J. Zobel, "Rank-biased precision for measurement of retrieval
    effectiveness", ACM TOIS 27, 2008.
    """
    ranking = lists.ranking(k)
    worth = at_places(lists, ranking, relevant(lists), ties)
    chances = lists.of_rank(ranking, lambda rank: (1 - persistence) * persistence ** (rank - 1))
    return lists.total_at(ranking, worth * chances, k), False


def relevant(lists: Lists) -> Array:
    """`[n]`, 1 for relevant documents and 0 for others."""
    return (lists.labels > 0).astype(np.float64)


def at_places(lists: Lists, ranking: Ranking, values: Array, ties: str) -> Array:
    """`values` `[n]` at the places of a ranking; with ties="average", the mean over each tie."""
    if ties == "average":
        return lists.mean_of_ties(ranking, values)
    return take(values, ranking.item)


def _gains(labels: Array, gain: Gain) -> Array:
    grades: Array = labels.astype(np.float64)
    return _of_user("gain", gain, grades) if callable(gain) else GAINS[gain](grades)


def _dcg(lists: Lists, ranking: Ranking, gains: Array, discount: Discount, k: Places) -> Array:
    """DCG of gains `[places]`, in the order of the ranking."""
    return lists.total_at(ranking, gains * lists.of_rank(ranking, _factors(discount)), k)


def _factors(discount: Discount) -> Callable[[Array], Array]:
    return _by_logarithm if discount is None else partial(_of_user, "discount", discount)


def _by_logarithm(rank: Array) -> Array:
    return 1 / namespace(rank).log2(rank + 1)


def _of_user(name: str, function: Callable[[Array], Any], values: Array) -> Array:
    """A user's function of the array of all labels, or ranks; it may return one number for all."""
    try:
        given = function(values)
        found = jnp.asarray(given, np.float64)
    except Exception as error:
        raise TypeError(_words(name, f"failed with {type(error).__name__}")) from error
    if not (np.isscalar(given) or found.shape == values.shape):
        did = f"returned {list(found.shape)} for x of {list(values.shape)}"
        raise TypeError(_words(name, did))
    return jnp.broadcast_to(found, values.shape)


def _words(name: str, did: str) -> str:
    return (
        f"{name} must be a function of an array x, got one that {did}: write "
        "jax.numpy.where(x > 1, x, 0) for a condition, jax.numpy.log2 for that of numpy or math, "
        "and jax.numpy.array(table)[x.astype(int)] for a table"
    )


def _refuse_rise(discount: Discount, n_ranks: int) -> None:
    """Refuse a discount that rises or is negative: then falling gains are not the best order.

    This runs while a program is traced, once, where ranks are known.
    """
    if discount is None:
        return
    with jax.ensure_compile_time_eval():
        worth = _factors(discount)(jnp.arange(1.0, n_ranks + 1))
    if not is_concrete(worth):
        raise TypeError("discount depends on a traced value: use numbers that are known")
    factors = np.asarray(worth)
    most = np.append(np.inf, factors[:-1] * (1 + 1e-6))  # float32 may rise by rounding
    refused = (factors > most) | (factors < 0)
    if refused.any():
        at = int(refused.argmax())
        before = f" after {factors[at - 1]:g}" if at else ""
        raise ValueError(
            f"discount of nDCG must not rise or be negative at ranks 1 to {n_ranks}, got "
            f"{factors[at]:g}{before} at rank {at + 1}: write lambda rank: 1 / rank, or "
            "jax.numpy.maximum(0, ...) of a discount that ends, or take dcg"
        )
