"""Metrics of graded relevance: cumulated gain, and models of how a user reads a list."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from jaxmetrics._base.numerics import divide
from jaxmetrics._base.sorting import scores_of_keys, take
from jaxmetrics._base.types import Array
from jaxmetrics._ranking.lists import Lists, Places, Ranking, falling_keys, running
from jaxmetrics._ranking.metric import list_metric

Gain = str | Callable[[Array], Array]
Discount = Callable[[Array], Array] | None

GAINS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda label: label,
    "exponential": lambda label: jnp.exp2(label) - 1,
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
    """Discounted cumulated gain: what the first k documents are worth, the first ones most.

    DCG@k = sum over ranks r <= k of gain(label at rank r) / log2(r + 1).

    Args:
      scores: `[..., n_docs]`, a list a row, higher is better; or `[..., n]` with `segments`.
      labels: the same shape, or one that broadcasts; grades of relevance.
      where: the same, bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the list of each item, from 0, in any order.
      num_segments: how many lists there are; needed where `segments` are traced.
      k: how many ranks count, one int or several; a last axis is added for several. None: all.
      gain: "linear", the label; "exponential", 2^label - 1; or a function of the labels.
      discount: a function of the ranks from 1, that multiplies gains; None: 1 / log2(r + 1).
      ties: "average", the mean over all orders of documents that tie, exactly; "index", the
        document of the lower index first.

    Returns:
      `[...]`, or `[..., num_segments]`; 0 for a list without documents.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a segment is not
        in 0 to num_segments - 1, or a label is negative under exponential gain.

    NaN where a valid score or label is NaN. Under `jit` items of a segment that does not exist are
    left out, and a negative label under exponential gain makes NaN. Time O(n log n), memory O(n).
    A function given as `gain` or `discount` is compiled anew for each new function object.

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
    refused = gains < 0 if gain == "exponential" else jnp.zeros_like(lists.valid)
    return _dcg(lists, ranking, at_places(lists, ranking, gains, ties), discount, k), (
        lists.total(refused.astype(jnp.int32)) > 0
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
    """Normalised discounted cumulated gain: DCG over that of the best order there is.

    nDCG@k = DCG@k / max over orders of DCG@k, with DCG of `jaxmetrics.dcg`.

    Args:
      scores: `[..., n_docs]`, a list a row, higher is better; or `[..., n]` with `segments`.
      labels: the same shape, or one that broadcasts; grades of relevance, not negative.
      where: the same, bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the list of each item, from 0, in any order.
      num_segments: how many lists there are; needed where `segments` are traced.
      k: how many ranks count, one int or several; a last axis is added for several. None: all.
      gain: "linear", the label; "exponential", 2^label - 1; or a function of the labels.
      discount: a function of the ranks from 1, that multiplies gains; None: 1 / log2(r + 1).
      ties: "average", the mean over all orders of documents that tie, exactly, as scikit-learn's
        default is; "index", the document of the lower index first.
      empty: the value of a list without relevant documents: 0 as in scikit-learn; 1 in LightGBM;
        nan to leave it out of a mean by `where=~isnan(values)`, as trec_eval does.

    Returns:
      `[...]`, or `[..., num_segments]`; from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a segment is not
        in 0 to num_segments - 1, or a label is negative.

    NaN where a valid score or label is NaN. Under `jit` items of a segment that does not exist are
    left out, and a gain that is negative makes NaN. Time O(n log n), memory O(n). A function given
    as `gain` or `discount` is compiled anew for each new function object.

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
    gains = _gains(lists.labels, gain)
    ranking = lists.ranking(k)
    if callable(gain):  # which may not rise with the label
        keys = falling_keys(gains, lists.valid, lists.segment)[: len(ranking.item)]
        falling = scores_of_keys(keys, gains)
    else:
        falling = _gains(lists.falling_labels(ranking), gain)
    found = _dcg(lists, ranking, at_places(lists, ranking, gains, ties), discount, k)
    best = _dcg(lists, ranking, falling, discount, k)
    return divide(found, best, empty), lists.total((gains < 0).astype(jnp.int32)) > 0


@list_metric(graded=True)
def expected_reciprocal_rank(
    lists: Lists, *, k: Places = None, max_grade: float
) -> tuple[Array, Array]:
    """Expected reciprocal rank: of the document that ends the search of a user who reads down.

    ERR@k = sum over ranks r <= k of 1 / r R_r prod_(i < r) (1 - R_i), where the document at rank i
    satisfies the user with chance R_i = (2^label - 1) / 2^max_grade.

    Args:
      scores: `[..., n_docs]`, a list a row, higher is better; or `[..., n]` with `segments`. Of
        documents that tie, that of the lower index comes first.
      labels: the same shape, or one that broadcasts; grades of relevance, from 0 to max_grade.
      where: the same, bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the list of each item, from 0, in any order.
      num_segments: how many lists there are; needed where `segments` are traced.
      k: how many ranks count, one int or several; a last axis is added for several. None: all.
      max_grade: the highest grade of the scale, such as 4; not only of those that occur, by which
        the value of a list would depend on other lists.

    Returns:
      `[...]`, or `[..., num_segments]`; from 0, also without relevant documents, to below 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a segment is not
        in 0 to num_segments - 1, or a label is not in 0 to max_grade.

    NaN where a valid score or label is NaN, and under `jit` where a label is not in 0 to max_grade.
    Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.expected_reciprocal_rank([.9, .8], [0, 1], max_grade=1))
      0.25

    Reference: O. Chapelle, D. Metzler, Y. Zhang and P. Grinspan, "Expected reciprocal rank for
    graded relevance", CIKM 2009.
    """
    ranking = lists.ranking(k)
    grade = lists.labels.astype(jnp.float64)
    refused = (grade < 0) | (grade > max_grade)
    stops = (jnp.exp2(grade) - 1) / 2**max_grade
    stops = jnp.where(ranking.valid, take(stops, ranking.item), 0)
    top = ranking.rank == 0
    goes_on = jnp.where(top, 1, jnp.roll(1 - stops, 1))
    reached = running(goes_on, top, jnp.multiply)
    value = lists.total_at(ranking, reached * stops / (ranking.rank + 1), k)
    return value, lists.total(refused.astype(jnp.int32)) > 0


@list_metric()
def rank_biased_precision(
    lists: Lists, *, k: Places = None, persistence: float = 0.8, ties: str = "average"
) -> tuple[Array, bool]:
    """Rank-biased precision: relevant documents per document read, by a user who may stop.

    RBP@k = (1 - p) sum over ranks r <= k of [label at rank r > 0] p^(r - 1), where p is the chance
    to go on from one document to the next.

    Args:
      scores: `[..., n_docs]`, a list a row, higher is better; or `[..., n]` with `segments`.
      labels: the same shape, or one that broadcasts; relevant where above 0.
      where: the same, bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the list of each item, from 0, in any order.
      num_segments: how many lists there are; needed where `segments` are traced.
      k: how many ranks count, one int or several; a last axis is added for several. None: all.
      persistence: p, in (0, 1).
      ties: "average", the mean over all orders of documents that tie; "index", the document of the
        lower index first.

    Returns:
      `[...]`, or `[..., num_segments]`; from 0, also without relevant documents, to below 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, or a segment is
        not in 0 to num_segments - 1.

    NaN where a valid score or label is NaN. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.rank_biased_precision([.9, .8, .7], [1, 0, 1], persistence=0.5))
      0.625

    Reference: A. Moffat and J. Zobel, "Rank-biased precision for measurement of retrieval
    effectiveness", ACM TOIS 27, 2008.
    """
    ranking = lists.ranking(k)
    worth = at_places(lists, ranking, relevant(lists), ties)
    chances = (1 - persistence) * persistence ** ranking.rank.astype(jnp.float64)
    return lists.total_at(ranking, worth * chances, k), False


def relevant(lists: Lists) -> Array:
    """`[n]`, 1 for relevant documents and 0 for others."""
    return (lists.labels > 0).astype(jnp.float64)


def at_places(lists: Lists, ranking: Ranking, values: Array, ties: str) -> Array:
    """`values` `[n]` by item at the places of a ranking."""
    if ties == "average":
        return lists.mean_of_ties(ranking, values)
    return take(values, ranking.item)


def _gains(labels: Array, gain: Gain) -> Array:
    function = gain if callable(gain) else GAINS[gain]
    return function(labels.astype(jnp.float64)).astype(jnp.float64)


def _dcg(lists: Lists, ranking: Ranking, gains: Array, discount: Discount, k: Places) -> Array:
    """Of gains `[places]`."""
    rank = (ranking.rank + 1).astype(jnp.float64)
    worth = 1 / jnp.log2(rank + 1) if discount is None else discount(rank)
    return lists.total_at(ranking, gains * worth, k)
