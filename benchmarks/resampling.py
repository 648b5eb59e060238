"""Error bars: the bootstrap, standard errors and covariances, against loops and NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import jaxmetrics as jm
from benchmarks.exact import Row
from benchmarks.processes import fresh, peak_so_far
from benchmarks.rivals import sklearn_calls
from benchmarks.rivals.intervals import auc_of_samples
from benchmarks.timing import Timing, milliseconds, time_in_turn


class Work(NamedTuple):
    """A bootstrap of one model or several."""

    name: str
    metric: Callable[..., Any]
    n: int
    positive: float
    n_resamples: int = 2000
    models: int = 1
    rival: str = "roc_auc"
    max_fpr: float = 0.01
    given: str = ""

    def __str__(self) -> str:
        models = f", {self.models} models" if self.models > 1 else ""
        given = f", {self.given}" if self.given else ""
        return (
            f"{self.n_resamples:,} of {self.name}, n = {self.n:,}, "
            f"{100 * self.positive:g} % positive{models}{given}"
        )


@lru_cache(maxsize=8)
def options_of(given: str, n: int) -> dict[str, Any]:
    """What `given` names, as arguments of `bootstrap`."""
    rng = np.random.default_rng(2)
    if given == "Bayesian":
        return {"resampling": "bayesian"}
    if given == "clusters of 10":
        return {"clusters": np.arange(n) // 10}
    if given == "4 distinct weights":
        return {"weights": rng.integers(1, 5, n).astype(float)}
    return {given: rng.lognormal(size=n)} if given else {}


def _youden(table: jm.ScoreTable) -> jax.Array:
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
    return jnp.max(tpr - fpr)


AVERAGE_PRECISION = "average_precision", jm.average_precision
PARTIAL, RECALL = partial(jm.partial_auc, max_fpr=0.01), partial(jm.recall_at_fpr, max_fpr=0.01)
YOUDEN = jm.table_metric(_youden)
YOUDEN_OF_CURVE = jm.table_metric(_youden, of_roc_curve=True)


def works(scale: int) -> dict[str, Work]:
    """The bootstraps of the table, with sizes divided by `scale`."""
    million, many, few = 1_000_000 // scale, 100_000 // scale, 10_000 // scale
    wide = partial(jm.partial_auc, max_fpr=0.05)
    return {
        "partial": Work("partial_auc(.01)", PARTIAL, million, 0.01, rival="partial_auc"),
        "recall": Work("recall_at_fpr(.01)", RECALL, million, 0.01, rival="recall_at_fpr"),
        "auc": Work("roc_auc", jm.roc_auc, million, 0.01),
        "balanced": Work("roc_auc", jm.roc_auc, million, 0.5),
        "precision": Work(*AVERAGE_PRECISION, many, 0.05, rival="average_precision"),
        "long_precision": Work(*AVERAGE_PRECISION, million, 0.01, rival="average_precision"),
        "plain": Work("roc_auc", jm.roc_auc, many, 0.05),
        "bayesian": Work("roc_auc", jm.roc_auc, many, 0.05, given="Bayesian"),
        "weights": Work("roc_auc", jm.roc_auc, many, 0.05, given="weights"),
        "few_weights": Work("roc_auc", jm.roc_auc, many, 0.05, given="4 distinct weights"),
        "clusters": Work("roc_auc", jm.roc_auc, many, 0.05, given="clusters of 10"),
        "amounts": Work(
            "recall_at_fpr(.01)", RECALL, many, 0.05, rival="recall_at_fpr", given="amounts"
        ),
        "partial_weights": Work(
            "partial_auc(.01)", PARTIAL, many, 0.05, rival="partial_auc", given="weights"
        ),
        "partial_few": Work(
            "partial_auc(.01)", PARTIAL, many, 0.05, rival="partial_auc", given="4 distinct weights"
        ),
        "small": Work("roc_auc", jm.roc_auc, few, 0.1, n_resamples=10_000),
        "paired": Work("partial_auc(.05)", wide, many, 0.1, 2000, 20, "partial_auc", 0.05),
        "own": Work("a user's metric", YOUDEN, many, 0.1, rival="own"),
        "curve": Work("the same, of_roc_curve=True", YOUDEN_OF_CURVE, many, 0.1, rival="own"),
    }


def data(work: Work, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores in float32, classes 1 apart; `[models, n]` for several models."""
    rng = np.random.default_rng(seed)
    labels = rng.random(work.n) < work.positive
    labels[:2] = True, False
    shared = rng.standard_normal(work.n, np.float32)
    own = rng.standard_normal((work.models, work.n), np.float32)
    scores = np.float32(0.7) * (shared + own) + labels
    return (scores if work.models > 1 else scores[0]), labels


def ours(work: Work, scores: Any, labels: Any, seed: int = 0) -> jax.Array:
    """All replicates of ours."""
    key, options = jax.random.key(seed), options_of(work.given, work.n)
    result = jm.bootstrap(
        work.metric, scores, labels, key=key, n_resamples=work.n_resamples, **options
    )
    return jax.block_until_ready(result.replicates)


def loop(work: Work, scores: np.ndarray, labels: np.ndarray, runs: int) -> Timing:
    """Seconds of a loop over all resamples, extrapolated from each of `runs` timed resamples."""
    rng = np.random.default_rng(1)
    classes = [np.flatnonzero(labels), np.flatnonzero(~labels)]
    options = options_of(work.given, work.n)
    weights = options.get("weights")
    if "amounts" in options:
        weights = np.where(labels, options["amounts"], 1.0)
    first = scores if scores.ndim == 1 else scores[0]
    seconds = []
    for number in range(runs + 1):
        start = time.perf_counter()
        if work.given == "Bayesian":
            drawn, weights = slice(None), rng.exponential(size=work.n)
        elif work.given == "clusters of 10":
            starts = 10 * rng.integers(0, work.n // 10, work.n // 10)
            drawn = (starts[:, None] + np.arange(10)).ravel()
        else:
            drawn = np.concatenate([rng.choice(members, len(members)) for members in classes])
        resample = first[drawn], labels[drawn]
        if work.rival == "own":
            float(work.metric(*resample))
        else:
            given = None if weights is None else weights[drawn]
            sklearn_calls(*resample, work.max_fpr, given)[work.rival]()
        taken = time.perf_counter() - start
        if number:  # the first one compiles and loads
            seconds.append(taken * work.n_resamples * work.models)
    return Timing(seconds)


def scipy_bootstrap(scores: np.ndarray, labels: np.ndarray, n_resamples: int) -> float:
    """Seconds of scipy.stats.bootstrap with the Mann-Whitney AUC, vectorised in batches."""
    start = time.perf_counter()
    scipy.stats.bootstrap(
        (scores[labels], scores[~labels]),
        auc_of_samples,
        n_resamples=n_resamples,
        batch=100,
        vectorized=True,
        method="percentile",
        rng=0,
    )
    return time.perf_counter() - start


def warm(scale: int, runs: int, names: Sequence[str] = ()) -> Iterator[Row]:
    """Bootstraps of data on the device, after compilation; of these names, or of all."""
    for name, work in works(scale).items():
        if names and name not in names:
            continue
        scores, labels = data(work)
        on_device = jnp.asarray(scores), jnp.asarray(labels)
        times = time_in_turn({"ours": partial(ours, work, *on_device)}, runs)["ours"]
        rival = loop(work, scores, labels, max(runs, 10) if scale == 1 else runs)
        ratio = [seconds / times.median for seconds in rival.seconds]
        row = {
            "work": str(work),
            "ours, ms": milliseconds(times),
            "a loop": f"{rival.median:.3g} s",
            "ratio": f"{np.median(ratio):,.0f}x ({min(ratio):,.0f} to {max(ratio):,.0f})",
        }
        if name == "small":
            some = work.n_resamples // 20
            seconds = scipy_bootstrap(scores, labels, some) * work.n_resamples / some
            row["scipy.stats.bootstrap"] = f"{seconds / times.median:,.0f}x"
        yield row


def seconds_of_call(name: str, scale: int, number: int) -> float:
    """Seconds of the first bootstrap, number 0, or of a second one on other and fewer items."""
    jax.block_until_ready(jnp.zeros(3) + 1)
    work = works(scale)[name]
    for seed in range(number + 1):
        scores, labels = map(jnp.asarray, data(work._replace(n=work.n - 7 * seed), seed))
        start = time.perf_counter()
        ours(work, scores, labels, seed)
        seconds = time.perf_counter() - start
    return seconds


def bytes_in_all(name: str, scale: int) -> float:
    """Peak bytes of the process, with its libraries."""
    work = works(scale)[name]
    ours(work, *map(jnp.asarray, data(work)))
    return peak_so_far()


def first_calls(scale: int, runs: int) -> Iterator[Row]:
    """In a process of its own: the first bootstrap, one of other data, and peak memory."""
    for name in ("partial", "recall", "auc", "balanced"):
        work = works(scale)[name]
        first = sorted(fresh(seconds_of_call, name, scale, 0) for _ in range(runs))
        rival = loop(work, *data(work), max(runs, 10) if scale == 1 else runs).median
        middle = first[len(first) // 2]
        yield {
            "work": str(work),
            "first call": f"{middle:.2f} s ({first[0]:.2f} to {first[-1]:.2f})",
            "ratio to a loop": f"{rival / middle:,.0f}x",
            "then other data, 7 items fewer": f"{fresh(seconds_of_call, name, scale, 1):.2f} s",
            "peak memory of the process": f"{fresh(bytes_in_all, name, scale) / 2**30:.2f} GiB",
        }
    for name in ("small", "paired", "own", "curve"):
        memory = f"{fresh(bytes_in_all, name, scale) / 2**30:.2f} GiB"
        yield {"work": str(works(scale)[name]), "peak memory of the process": memory}


def closed_forms(scale: int, runs: int) -> Iterator[Row]:
    """Standard errors and covariances from one gradient."""
    work = Work("", jm.roc_auc, 1_000_000 // scale, 0.1)
    on_device = tuple(jnp.asarray(x) for x in data(work))
    times = time_in_turn(
        {
            "alone": partial(jm.roc_auc, *on_device),
            "interval": lambda: jm.confidence_interval(jm.roc_auc, *on_device).high,
            "error": partial(jm.standard_error, jm.roc_auc, *on_device),
        },
        runs,
    )
    for name, what in (("error", "standard_error"), ("interval", "confidence_interval")):
        yield {
            "work": f"{what} of roc_auc, n = {work.n:,}",
            "ours, ms": milliseconds(times[name]),
            "over roc_auc alone": times["alone"].ratio(times[name]),
        }
    models = Work("", jm.roc_auc, 100_000 // scale, 0.1, models=50)
    scores, labels = data(models)
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    times = time_in_turn(
        {
            "ours": partial(jm.covariance, jm.roc_auc, *on_device),
            "DeLong": partial(fast_delong, scores, labels),
        },
        max(runs // 2, 1),
    )
    yield {
        "work": f"covariance of roc_auc, 50 models x {models.n:,}",
        "ours, ms": milliseconds(times["ours"]),
        "fast DeLong in NumPy": times["ours"].ratio(times["DeLong"]),
    }


def fast_delong(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """DeLong's covariance by Sun and Xu's algorithm, with one argsort per row of scores."""
    positives, negatives = scores[:, labels], scores[:, ~labels]
    n1, n0 = positives.shape[1], negatives.shape[1]
    ranks = _mid_ranks(np.concatenate([positives, negatives], axis=1))
    v10 = (ranks[:, :n1] - _mid_ranks(positives)) / n0
    v01 = 1 - (ranks[:, n1:] - _mid_ranks(negatives)) / n1
    return np.cov(v10) / n1 + np.cov(v01) / n0


def _mid_ranks(rows: np.ndarray) -> np.ndarray:
    ranks = np.empty(rows.shape)
    for row, result in zip(rows, ranks, strict=True):
        order = np.argsort(row)
        in_order = row[order]
        begins = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
        lengths = np.diff(begins, append=len(row))
        result[order] = np.repeat(begins + (lengths + 1) / 2, lengths)
    return ranks
