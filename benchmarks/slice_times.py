"""Slices beside as many standard errors of the whole as there are models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import jaxmetrics as jm
from benchmarks.tables import Row
from benchmarks.timing import milliseconds, time_in_turn

_RECALL = partial(jm.recall_at_fpr, max_fpr=0.01)
WORK: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "roc_auc": (jm.roc_auc, {}),
    "partial_auc": (partial(jm.partial_auc, max_fpr=0.1), {}),
    "average_precision": (jm.average_precision, {}),
    "recall_at_fpr": (_RECALL, {}),
    "recall_at_fpr, one threshold": (_RECALL, {"threshold": "global"}),
}


def rows(n: int, n_slices: int, runs: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    labels = rng.random(n) < 0.05
    noise = 0.8 * rng.normal(size=n) + 0.6 * rng.normal(size=(2, n))
    scores = (noise + 1.5 * labels).astype(np.float32)
    ids = rng.integers(0, n_slices, n)
    for name, (metric, options) in WORK.items():
        times = time_in_turn(
            {
                "errors": lambda m=metric: [jm.standard_error(m, x, labels) for x in scores],
                "slices": lambda m=metric, o=options: jm.slices(m, scores, labels, ids, **o),
            },
            runs,
        )
        yield {
            "metric": name,
            "items": f"{n:,}",
            "slices": f"{n_slices:,}",
            "two `standard_error`, ms": milliseconds(times["errors"]),
            "`slices` of two models, ms": milliseconds(times["slices"]),
            "ratio": times["errors"].ratio(times["slices"]),
        }
