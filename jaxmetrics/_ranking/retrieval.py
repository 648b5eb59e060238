"""Metrics of binary relevance: a document with a label above 0 is relevant."""

from __future__ import annotations

import numpy as np

from jaxmetrics._base.numerics import divide
from jaxmetrics._base.sorting import take
from jaxmetrics._base.types import Array
from jaxmetrics._ranking.gain import at_places, relevant
from jaxmetrics._ranking.lists import Lists, Places
from jaxmetrics._ranking.metric import list_metric


@list_metric(denominators=("k", "retrieved"))
def precision_at_k(
    lists: Lists, *, k: Places, denominator: str = "k", ties: str = "average"
) -> tuple[Array, bool]:
    """Precision at k: the share of the first k documents that are relevant.

    P@k = (number of relevant documents at ranks up to k) / k.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis.
      denominator: "k", as in trec_eval, even where a list has fewer documents; "retrieved",
        min(k, number of documents).
      ties: "average", the mean over all orders of tied documents; "index", the document of the
        lower index first.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN or
        infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN, and with denominator="retrieved" where a list
    has no documents. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.precision_at_k([.9, .8, .7], [1, 0, 1], k=(1, 2)))
      [1.  0.5]

    Reference: C. D. Manning, P. Raghavan and H. Schütze, "Introduction to Information Retrieval",
    2008, chapter 8.
    """
    ranking = lists.ranking(k)
    found = lists.total_at(ranking, at_places(lists, ranking, relevant(lists), ties), k)
    below = _each(k, lists)
    if denominator == "retrieved":
        below = lists.library.minimum(below, lists.total(lists.valid.astype(np.float64)))
    return divide(found, below, np.nan), False


@list_metric(denominators=("relevant", "capped"))
def recall_at_k(
    lists: Lists,
    *,
    k: Places,
    denominator: str = "relevant",
    ties: str = "average",
    empty: float = np.nan,
) -> tuple[Array, bool]:
    """Recall at k: the share of the relevant documents that are among the first k.

    R@k = (number of relevant documents at ranks up to k) / (number of relevant documents).

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis.
      denominator: "relevant", R, the number of relevant documents; "capped", min(k, R), with which
        the best order always has 1.
      ties: "average", the mean over all orders of tied documents; "index", the document of the
        lower index first.
      empty: the value of a list without relevant documents.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN or
        infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN, and without relevant documents unless
    `empty` is another number. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.recall_at_k([.9, .8, .7], [1, 0, 1], k=(1, 3)))
      [0.5 1. ]

    Reference: C. D. Manning, P. Raghavan and H. Schütze, "Introduction to Information Retrieval",
    2008, chapter 8.
    """
    ranking = lists.ranking(k)
    found = lists.total_at(ranking, at_places(lists, ranking, relevant(lists), ties), k)
    below = all_relevant = lists.total(relevant(lists))
    if denominator == "capped":
        below = lists.library.minimum(below, _each(k, lists))
    # By rounding, the means of ties may add up to a little more than the number of relevant items.
    return divide(lists.library.minimum(found, all_relevant), below, empty), False


@list_metric(denominators=("capped", "relevant", "hits"))
def average_precision_at_k(
    lists: Lists, *, k: Places = None, denominator: str = "capped", empty: float = 0.0
) -> tuple[Array, bool]:
    """Average precision at k: the mean of the precisions at the ranks of relevant documents.

    AP@k = (sum over relevant documents at ranks r <= k of P@r) / min(k, R), where R is the number
    of relevant documents.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`. Of
        tied documents, the one of the lower index comes first.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.
      denominator: "capped", min(k, R), with which the best order has 1; "relevant", R, as in
        trec_eval's map_cut; "hits", the number of relevant documents among the first k.
      empty: the value of a list without relevant documents.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN or
        infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN. In contrast, `jaxmetrics.average_precision`
    takes tied documents as one threshold. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.average_precision_at_k([.9, .8, .7, .6], [1, 0, 1, 1], k=3):.4f}")
      0.5556

    Reference: C. Buckley and E. M. Voorhees, "Evaluating evaluation measure stability", SIGIR 2000.
    """
    ranking = lists.ranking(k)
    relevance = lists.library.where(ranking.valid, take(relevant(lists), ranking.item), 0)
    hits = lists.running_count(ranking, relevance)
    found = lists.total_at(ranking, relevance * hits / (ranking.rank + 1), k)
    n_relevant = lists.total(relevant(lists))
    below = n_relevant
    if denominator == "hits":
        below = lists.total_at(ranking, relevance, k)
    elif denominator == "capped" and k is not None:
        below = lists.library.minimum(below, _each(k, lists))
    return lists.library.where(n_relevant > 0, divide(found, below, 0.0), empty), False


@list_metric(ordered=False)
def reciprocal_rank(lists: Lists, *, k: Places = None) -> tuple[Array, bool]:
    """Reciprocal rank: 1 / rank of the first relevant document.

    RR@k = 1 / min(r: label at rank r > 0), or 0 if there is none up to k.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`. Of
        tied documents, the one of the lower index comes first.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis; None: all ranks.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1. The mean over lists
      is known as MRR.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN or
        infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN. Time and memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.reciprocal_rank([.9, .8, .7], [0, 1, 1]))
      0.5

    Reference: E. M. Voorhees, "The TREC-8 question answering track report", TREC 1999.
    """
    rank, found = _first_relevant(lists, k)
    return lists.library.where(found, 1 / (rank + 1), 0.0), False


@list_metric(ordered=False)
def hit_rate_at_k(lists: Lists, *, k: Places) -> tuple[Array, bool]:
    """Hit rate at k: 1 if a document among the first k is relevant, else 0.

    HR@k = [a label at a rank up to k is above 0]. It is also known as success at k.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`. Of
        tied documents, the one of the lower index comes first.
      labels: of a shape that broadcasts with the scores; relevant where above 0.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.
      k: how many ranks count: one int, or several, which add a last axis.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; 0 or 1. The mean over lists is
      the rate.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; k is below 1, a label is NaN or
        infinite, or a segment is not in 0 to num_segments - 1.

    NaN where a valid score or traced label is NaN. Time and memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.hit_rate_at_k([.9, .8, .7], [0, 1, 1], k=(1, 2)))
      [0. 1.]

    Reference: M. Deshpande and G. Karypis, "Item-based top-N recommendation algorithms", ACM TOIS
    22, 2004.
    """
    return _first_relevant(lists, k)[1].astype(np.float64), False


def _first_relevant(lists: Lists, k: Places) -> tuple[Array, Array]:
    """The rank from 0 of the first relevant document, and whether there is one up to k."""
    relevance = relevant(lists)
    rank = lists.rank_of_first(relevance > 0).astype(np.float64)
    found = lists.total(relevance) > 0
    return rank, found if k is None else found & (rank < _each(k, lists))


def _each(k: Places, lists: Lists) -> Array:
    """`k`, one or several, in a shape that broadcasts with a value of each list."""
    each: Array = lists.library.asarray(k, np.float64)
    return each[:, None] if each.ndim and lists.several else each
