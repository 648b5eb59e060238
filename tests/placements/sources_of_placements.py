"""The sources of placements and the items that their tests share."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics._base import host, merging, sorting
from jaxmetrics._roc import host_class, host_placements
from jaxmetrics._roc.record import record_of
from tests.registry import FIRST, METRICS

OF_PLACEMENTS = [x for x in METRICS if record_of(x.metric).of_placements is not None]
N = 13
DTYPES = ("float32", "float16", "bfloat16", "int8", "bool")


def cut(monkeypatch):
    """Short rows are cut into parts, and merged, as long ones are."""
    monkeypatch.setattr(sorting, "MANY", 2)
    monkeypatch.setattr(sorting, "processors", lambda: 3)
    for name, size in (("_SMALL", 0), ("_BLOCK", 3), ("_SPARSE", 4)):
        monkeypatch.setattr(merging, name, size)
    monkeypatch.setattr(host_placements, "_FEW_ITEMS", 0)
    monkeypatch.setattr(host_placements, "_PART", 3)
    monkeypatch.setattr(host_class, "_BLOCK", 1)


def drawn_scores(rng, dtype):
    scores = rng.integers(-2, 3, N) if rng.random() < 0.5 else rng.normal(size=N) * 3
    scores = scores.astype(np.float64)
    if dtype not in ("int8", "bool"):
        odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], N, p=[0.3, 0.3, 0.19, 0.19, 0.02])
        scores = np.where(rng.random(N) < 0.2, odd, scores)
    return scores.astype(jnp.dtype(dtype))


def items_of(rng, given):
    labels = rng.random(N) < rng.choice([0.0, 0.15, 0.5, 0.85, 1.0], p=[0.1, 0.3, 0.3, 0.2, 0.1])
    weights = rng.choice([0.0, 0.25, 1.0, 3.0], N) * rng.choice([2.0**-90, 1, 2.0**90])
    some = {"weights": weights, "where": rng.random(N) < 0.8, "amounts": rng.choice([0.0, 1, 7], N)}
    return labels, {name: some[name] for name in given}


LIMITED = [  # metrics, and the option that is their limit
    (partial(jm.recall_at_fpr, method="step"), "max_fpr"),
    (partial(jm.recall_at_fpr, method="linear"), "max_fpr"),
    (partial(jm.recall_at_fpr, method="quantile"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="step"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="linear"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="quantile"), "max_fpr"),
    (jm.sensitivity_at_specificity, "min_specificity"),
    (partial(jm.sensitivity_at_specificity, return_threshold=True), "min_specificity"),
    (jm.partial_auc, "max_fpr"),
]
ONE_OF_EACH_KIND = pytest.mark.parametrize(
    "entry", [marked(x, fast=x.name in FIRST) for x in OF_PLACEMENTS], ids=lambda x: x.name
)


def long_rows(monkeypatch):
    monkeypatch.setattr(host, "LONG", 0)
    rng = np.random.default_rng(11)
    shape, n = (2, 3), 17
    scores = rng.integers(0, 9, (*shape, n)).astype(np.float32)
    labels, where = rng.random((3, n)) < 0.5, rng.random((2, 1, n)) < 0.8
    return scores, labels, rng.integers(1, 9, (*shape, n)) / 4, where
