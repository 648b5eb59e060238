"""What each library can do, by trial: an ability counts if its value equals the reference's.

The reference is scikit-learn in float64 on few items, with ties. An entry without a trial is "no":
the last table prints the signatures, which have no argument for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn.metrics

from benchmarks import abilities_jax, abilities_lists, abilities_others
from benchmarks.tables import Row, Table

Trial = Callable[[], Any]


class Items(NamedTuple):
    """Scores `[2, n]` of two models, and the other inputs of a metric."""

    scores: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    mask: np.ndarray


def items(n: int = 4000) -> Items:
    """Scores rounded to three decimals: most tie, and there are more levels than thresholds."""
    rng = np.random.default_rng(0)
    labels = rng.random(n) < 0.3
    logits = rng.standard_normal((2, n)) + labels
    scores = (1 / (1 + np.exp(-logits))).round(3).astype(np.float32)
    return Items(scores, labels, rng.integers(1, 4, n).astype(np.float32), rng.random(n) < 0.8)


def expected(given: Items) -> dict[str, Any]:
    """The reference of each trial; a trial without one returns whether it succeeded."""
    scores, labels = given.scores.astype(np.float64), given.labels
    auc = partial(sklearn.metrics.roc_auc_score, labels, scores[0])
    kept = scores[0][given.mask], labels[given.mask]
    fpr, tpr, _ = sklearn.metrics.roc_curve(labels, scores[0], drop_intermediate=False)
    return {
        "models in one call": [auc(), sklearn.metrics.roc_auc_score(labels, scores[1])],
        "exact, with ties": auc(),
        "weights": auc(sample_weight=given.weights),
        "mask": sklearn.metrics.roc_auc_score(kept[1], kept[0]),
        "partial AUC": auc(max_fpr=0.1),
        "recall at an FPR": tpr[np.searchsorted(fpr, 0.1, side="right") - 1],
        "in jax.jit": auc(),
    }


COLUMNS = (
    "models in one call",
    "exact, with ties",
    "weights",
    "mask",
    "partial AUC",
    "recall at an FPR",
    "interval of an AUC",
    "two models compared",
    "in jax.jit",
    "loss with a gradient",
    "state of fixed size",
    "its certain bounds",
)
ESTIMATE = 0.02  # largest error of an estimate from 200 thresholds


def answer(trial: Trial | None, truth: Any, slack: float) -> str:
    """yes, no, "about" for an estimate, or the error that the call raises."""
    if trial is None:
        return "no"
    try:
        value = trial()
    except Exception as error:  # any error is the library's answer
        return f"no: {type(error).__name__}"
    if truth is None:
        return "yes" if value else "no"
    if np.shape(value) != np.shape(truth):
        return "no"
    off = float(np.max(np.abs(np.asarray(value, np.float64) - truth)))
    return "yes" if off < 1e-6 else f"about ({off:.0e} off)" if off < slack else "no"


def tables() -> Iterator[Table]:
    given = items()
    truths = expected(given)
    libraries = {**abilities_jax.LIBRARIES, **abilities_others.LIBRARIES}
    yield Table(
        "What each library can do with AUCs, tried on 4,000 items. A mask is an argument of its"
        " own, not a weight of 0. About: an estimate, with its error.",
        _rows({name: make(given) for name, make in libraries.items()}, COLUMNS, truths, ESTIMATE),
    )
    lists = abilities_lists.lists()
    made = {name: make(lists) for name, make in abilities_lists.LIBRARIES.items()}
    truths = abilities_lists.expected(lists)
    yield Table(
        "What each library can do with nDCG of ranked lists, tried on 20 lists.",
        _rows(made, abilities_lists.COLUMNS, truths, 0),
    )
    yield Table("Signatures.", _signatures())


def _rows(
    made: dict[str, dict[str, Trial] | None],
    columns: tuple[str, ...],
    truths: dict[str, Any],
    slack: float,
) -> Iterator[Row]:
    for name, trials in made.items():
        if trials is not None:
            row = {"library": name}
            for column in columns:
                row[column] = answer(trials.get(column), truths.get(column), slack)
            yield row


def _signatures() -> Iterator[Row]:
    for looked_at in (abilities_jax.looked_at, abilities_others.looked_at):
        for name, function in looked_at().items():
            names = ", ".join(inspect.signature(function).parameters)
            yield {"function": f"`{name}`", "arguments": f"`{names}`"}
