"""The metrics against scikit-learn on random small inputs, 10,000 of each or as many as are given.

An input has 0 to 6 items, with ties, weights that may be 0, and dtypes from bool to float64. It is
padded to 6 items by masked ones that hold NaN or infinity; scikit-learn gets the valid items of
positive weight alone, in float64.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import sklearn.metrics as sk

import jaxmetrics as jm

MOST = 6
LENGTHS = [0, 1, 1, 2, 2, 3, 3, 4, 5, MOST]
SCORE_TYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
LABEL_TYPES = ["bool", "int8", "uint8", "int64", "float32", "float64"]
CLASSES = [0, 1, 2]


class Inputs(NamedTuple):
    """Arrays `[cases, MOST]`: scores or predicted classes, labels, weights or None, the mask."""

    first: Any
    labels: Any
    weights: Any
    where: Any


class Comparison(NamedTuple):
    """A metric, its reference of one case, which has an item at least, and that of no item."""

    metric: Callable[..., Any]
    reference: Callable[..., Any]
    of_nothing: Any
    kind: str = "binary"


def _of_two(reference: Callable[..., Any]) -> Callable[..., Any]:
    """NaN where a class is absent."""
    return lambda s, y, w: reference(s, y, w) if len(np.unique(y)) == 2 else np.nan


def _step_recall(s: Any, y: Any, w: Any) -> Any:
    fpr, tpr, _ = sk.roc_curve(y, s, sample_weight=w, drop_intermediate=False)
    return tpr[fpr <= 0.5 + 1e-12].max()


def _correlation(p: Any, y: Any, w: Any) -> Any:
    defined = min(len(np.unique(p)), len(np.unique(y))) > 1
    return sk.matthews_corrcoef(y, p, sample_weight=w) if defined else np.nan


def _by_class(function: Callable[..., Any], average: str | None) -> Callable[..., Any]:
    def reference(p: Any, y: Any, w: Any) -> Any:
        each = {"labels": CLASSES, "sample_weight": w, "zero_division": np.nan}
        values = function(y, p, average=None, **each)
        if average == "macro":  # scikit-learn leaves out what is undefined
            return np.mean(values)
        shares = [w[y == c].sum() for c in CLASSES]
        counted = np.array(shares) > 0
        return np.dot(values[counted], np.array(shares)[counted]) / sum(shares)

    return reference


def _gain(function: Callable[..., Any], s: Any, y: Any, w: Any) -> Any:
    if len(y) == 1:  # scikit-learn refuses a single document
        return float(y[0]) if function is sk.dcg_score else float(y[0] > 0)
    return function([y], [s], k=2)


COMPARISONS = {
    "roc_auc": Comparison(
        jm.roc_auc, _of_two(lambda s, y, w: sk.roc_auc_score(y, s, sample_weight=w)), np.nan
    ),
    "partial_auc": Comparison(
        partial(jm.partial_auc, max_fpr=0.3, scale="mcclish"),
        _of_two(lambda s, y, w: sk.roc_auc_score(y, s, sample_weight=w, max_fpr=0.3)),
        np.nan,
    ),
    "average_precision": Comparison(
        jm.average_precision,
        lambda s, y, w: sk.average_precision_score(y, s, sample_weight=w) if y.any() else 0.0,
        np.nan,
    ),
    "recall_at_fpr": Comparison(
        partial(jm.recall_at_fpr, max_fpr=0.5), _of_two(_step_recall), np.nan
    ),
    "confusion_matrix": Comparison(
        partial(jm.confusion_matrix, n_classes=3),
        lambda p, y, w: sk.confusion_matrix(y, p, labels=CLASSES, sample_weight=w),
        np.zeros((3, 3)),
        "classes",
    ),
    "accuracy": Comparison(
        jm.accuracy,
        lambda p, y, w: sk.accuracy_score(y, p, sample_weight=w),
        np.nan,
        "classes",
    ),
    "balanced_accuracy": Comparison(
        partial(jm.balanced_accuracy, n_classes=3),
        lambda p, y, w: sk.balanced_accuracy_score(y, p, sample_weight=w),
        np.nan,
        "classes",
    ),
    "matthews_corrcoef": Comparison(
        partial(jm.matthews_corrcoef, n_classes=3), _correlation, np.nan, "classes"
    ),
    "dcg": Comparison(partial(jm.dcg, k=2), partial(_gain, sk.dcg_score), 0.0, "grades"),
    "ndcg": Comparison(partial(jm.ndcg, k=2), partial(_gain, sk.ndcg_score), 0.0, "grades"),
}
COMPARISONS |= {
    f"{metric.__name__} {average}": Comparison(
        partial(metric, average=average, n_classes=3),
        _by_class(reference, average),
        np.nan,
        "classes",
    )
    for metric, reference in (
        (jm.recall, sk.recall_score),
        (jm.precision, sk.precision_score),
        (jm.f_beta, partial(sk.fbeta_score, beta=1)),
    )
    for average in ("macro", "weighted")
}


def random_inputs(rng: np.random.Generator, n: int, kind: str, types: tuple[str, str]) -> Inputs:
    """Small random inputs, padded; with weights in two of three draws."""
    shape, (first_type, label_type) = (n, MOST), types
    where = np.arange(MOST) < rng.choice(LENGTHS, n)[:, None]
    where = rng.permuted(where, axis=1)
    labels = rng.integers(0, 2 if kind == "binary" or label_type == "bool" else 3, shape)
    if kind == "classes":
        first = rng.integers(0, 2 if first_type == "bool" else 3, shape)
    elif first_type.startswith("float"):
        first = rng.choice([-1e4, -1.0, -0.0, 0.0, 0.1, 0.25, 0.3, 1.0], shape)
    else:
        first = rng.integers(0, 2 if first_type == "bool" else 4, shape)
    first, labels = first.astype(first_type), labels.astype(label_type)
    if kind != "classes" and first_type.startswith("float"):
        first = np.where(where, first, rng.choice([np.nan, np.inf], shape)).astype(first_type)
    if label_type.startswith("float") and kind == "binary":
        labels = np.where(where, labels, np.nan).astype(label_type)
    weights = None
    if kind != "grades" and rng.random() < 2 / 3:
        weights = rng.choice([0.0, 0.0, 1e-3, 0.25, 0.3, 1.0, 3.0], shape)
        weights = np.where(where, weights, np.nan)
    return Inputs(first, labels, weights, where)


def disagreements(comparison: Comparison, inputs: Inputs) -> list[str]:
    """The cases whose values differ, in words."""
    options = {} if inputs.weights is None else {"weights": inputs.weights}
    with jax.enable_x64(True):
        found = np.asarray(
            comparison.metric(inputs.first, inputs.labels, where=inputs.where, **options)
        )
    wrong = []
    for case, value in enumerate(found):
        expected = _expected(comparison, Inputs(*(x if x is None else x[case] for x in inputs)))
        if not np.allclose(value, expected, rtol=1e-12, atol=1e-12, equal_nan=True):
            given = [None if x is None else x[case].tolist() for x in inputs]
            wrong.append(f"{value} for {expected}, of {given}")
    return wrong


def _expected(comparison: Comparison, case: Inputs) -> Any:
    kept = case.where if case.weights is None else case.where & (case.weights > 0)
    if not kept.any():
        return comparison.of_nothing
    first, labels = (x[kept].astype(np.float64) for x in case[:2])
    weights = np.ones(len(first)) if case.weights is None else case.weights[kept]
    if comparison.kind == "classes":
        first, labels = first.astype(int), labels.astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return comparison.reference(first, labels, weights)


def compare(name: str, n: int, seed: int, n_types: int) -> list[str]:
    """The disagreements of a metric in n cases, of so many pairs of dtypes."""
    rng = np.random.default_rng([seed, *name.encode()])
    comparison, found = COMPARISONS[name], []
    for turn in range(n_types):
        at = int(rng.integers(0, 48)) if n_types == 1 else turn
        types = SCORE_TYPES[at % len(SCORE_TYPES)], LABEL_TYPES[at % len(LABEL_TYPES)]
        inputs = random_inputs(rng, -(-n // n_types), comparison.kind, types)
        found += disagreements(comparison, inputs)
    return found


def main(n: int, seed: int = 17) -> None:
    """Compare each metric on n inputs, and print how many differ."""
    total = 0
    for name in COMPARISONS:
        wrong = compare(name, n, seed, n_types=24)
        total += len(wrong)
        print(f"{name:24} {n} inputs, {len(wrong)} differ", *wrong[:3], sep="\n  ", flush=True)
    sys.exit(total > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
