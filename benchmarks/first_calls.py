"""First calls, which include compilation, and later ones; each row in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from benchmarks.processes import fresh
from benchmarks.tables import Row, progress

_N = 1000
_PARTIAL = partial(jm.partial_auc, max_fpr=0.05)
_RECALL = partial(jm.recall_at_fpr, max_fpr=0.05)


def _data(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = rng.random(n) < 0.2
    return (rng.normal(size=(2, n)) + labels).astype(np.float32), labels


def _of_scores(work: Callable[..., Any], **options: Any) -> Callable[[], Any]:
    return lambda: work(*_data(_N), **options)


def _inferred(work: Callable[..., Any], metric: Any, **options: Any) -> Callable[[], Any]:
    return lambda: work(metric, *_data(_N), **options)


def _ndcg() -> Any:
    rng = np.random.default_rng(0)
    return jm.ndcg(rng.normal(size=(2, 50, 20)), rng.integers(0, 5, (50, 20)))


def _gradient() -> Any:
    scores, labels = _data(_N)
    return jax.grad(partial(jm.losses.partial_auc_loss, labels=labels, max_fpr=0.05))(scores[0])


def _stream() -> Any:
    (scores, _), labels = _data(_N)
    bins = jm.streaming.float16_bins()
    state = jm.streaming.update(jm.streaming.init(bins), scores, labels, bins=bins)
    return jm.streaming.interval(jm.roc_auc, state, bins=bins)


def _keyed(work: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: work(jm.roc_auc, *_data(_N), key=jax.random.key(0))


WORK: dict[str, Callable[[], Any]] = {
    "roc_auc": _of_scores(jm.roc_auc),
    "partial_auc": _of_scores(_PARTIAL),
    "recall_at_fpr": _of_scores(_RECALL),
    "average_precision": _of_scores(jm.average_precision),
    "roc_curve": _of_scores(jm.roc_curve),
    "ndcg of 2 x 50 lists": _ndcg,
    "interval of roc_auc": _inferred(jm.confidence_interval, jm.roc_auc),
    "interval of partial_auc": _inferred(jm.confidence_interval, _PARTIAL),
    "interval of average_precision": _inferred(jm.confidence_interval, jm.average_precision),
    "interval of recall_at_fpr": _inferred(jm.confidence_interval, _RECALL),
    "compare, roc_auc": _inferred(jm.compare, jm.roc_auc),
    "compare, partial_auc": _inferred(jm.compare, _PARTIAL),
    "compare, recall_at_fpr": _inferred(jm.compare, _RECALL),
    "roc_band": _of_scores(jm.roc_band),
    "bootstrap of roc_auc, 2,000": _keyed(jm.bootstrap),
    "permutation_test of roc_auc": _keyed(jm.permutation_test),
    "gradient of partial_auc_loss": _gradient,
    "streaming update and interval": _stream,
}


def seconds_of(name: str) -> list[float]:
    """Seconds of the first call, and the median of seven later ones."""
    warnings.simplefilter("ignore")
    seconds = []
    for _ in range(8):
        start = time.perf_counter()
        jax.block_until_ready(jax.tree.leaves(WORK[name]()))
        seconds.append(time.perf_counter() - start)
    return [seconds[0], float(np.median(seconds[1:]))]


def rows(names: Iterable[str], runs: int) -> Iterator[Row]:
    """The median of `runs` processes, two models of 1,000 items each."""
    for name in names:
        progress(name)
        first, later = np.median([fresh(seconds_of, name) for _ in range(runs)], axis=0)
        yield {"two models of 1,000 items": name, "first, s": f"{first:.2f}"} | {
            "then, ms": f"{later * 1e3:.2g}"
        }


def commands(sizes: Iterable[int]) -> Iterator[Row]:
    """Wall time of imports, and of the command without and with its cache of programs."""
    command = ["from jaxmetrics.cli import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        calls = {
            "import jax": ["import jax"],
            "import jaxmetrics and a metric": ["from jaxmetrics import roc_auc"],
            "--help": [*command, "--help"],
            "demo": [*command, "demo", "--output", f"{folder}/demo"],
        }
        for n in sizes:
            path = Path(folder) / f"{n}.csv"
            scores, labels = _data(n)
            table = np.column_stack([labels, *scores])
            np.savetxt(
                path, table, "%.6g", delimiter=",", header="label,score_old,score_new", comments=""
            )
            call = [*command, "evaluate", str(path), "--label", "label"]
            call += ["--score", "score_old", "--score", "score_new"]
            calls[f"evaluate, {n:,} rows"] = call
            calls[f"evaluate, {n:,} rows, --output"] = [*call, "--output", f"{folder}/{n}"]
        for number, (name, call) in enumerate(calls.items()):
            progress(name)
            cold, warm = (_seconds(call, Path(folder) / f"cache{number}") for _ in range(2))
            yield {"command": name, "cold, s": f"{cold:.1f}", "with its cache, s": f"{warm:.1f}"}


def _seconds(call: list[str], cache: Path) -> float:
    command = [sys.executable, "-c", *call]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start
