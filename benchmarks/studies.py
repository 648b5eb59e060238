"""The studies by size: data, our calls and the rivals', and a reference in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from benchmarks import exact
from benchmarks.resampling import fast_delong
from benchmarks.rivals import areas, intervals, lists, streams
from benchmarks.rivals.streams import Stream

N_DOCS = 100
Make = Callable[..., Any]  # from data to a call or a Stream; None: the library has no such metric


class Study(NamedTuple):
    """A study by size; `makes` has ours, then the rivals', by name."""

    name: str
    data: Callable[[int], tuple[Any, ...]]
    reference: Callable[..., float]
    makes: dict[str, Make]
    notes: dict[str, str]
    largest: dict[str, int]
    relative: bool = False

    def libraries(self) -> list[str]:
        """The libraries that are installed and have such a metric."""
        few = self.data(200)
        return [name for name, make in self.makes.items() if make(*few) is not None]

    def label(self, library: str) -> str:
        note = self.notes.get(library)
        return f"{library} ({note})" if note else library

    def call(self, library: str, data: tuple[Any, ...]) -> tuple[Callable[[], Any], float]:
        """The call to time, and its value, from a first call that also compiles."""
        made = self.makes[library](*data)
        if isinstance(made, Stream):
            jax.block_until_ready(made.update())
            return made.update, made.roc_auc()
        return made, float(made())

    def error(self, value: float, truth: float) -> float:
        return abs(value - truth) / (abs(truth) if self.relative else 1)


def _area(name: str) -> Study:
    metric = {**exact.METRICS, "average_precision": jm.average_precision}[name]

    def ours(scores: np.ndarray, labels: np.ndarray, jit: bool = False) -> Callable[[], Any]:
        return partial(jax.jit(metric) if jit else metric, jnp.asarray(scores), jnp.asarray(labels))

    def reference(scores: np.ndarray, labels: np.ndarray) -> float:
        return float(areas.sklearn_calls(scores.astype(np.float64), labels)[name]())

    rivals = {library: partial(_of, make, name) for library, make in areas.RIVALS.items()}
    return Study(
        name,
        lambda n: exact.data((n,)),
        reference,
        {"ours": ours, "ours, in jit": partial(ours, jit=True), **rivals},
        dict.fromkeys(areas.ESTIMATES, "an estimate of 200 thresholds"),
        areas.LARGEST,
    )


def _of(make: Callable[..., dict[str, Any]], name: str, *data: Any) -> Any:
    return make(*data).get(name)


def _interval() -> Study:
    """Intervals; compared by their standard error, as methods differ in their limits."""

    def ours(scores: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
        given = jnp.asarray(scores), jnp.asarray(labels)
        return lambda: _error_of(jm.confidence_interval(jm.roc_auc, *given))

    def bootstrap(scores: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
        interval = partial(
            jm.confidence_interval,
            jm.roc_auc,
            jnp.asarray(scores),
            jnp.asarray(labels),
            method="percentile",
            key=jax.random.key(0),
        )

        def call() -> jax.Array:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about few positives
                return _error_of(interval())

        return call

    def reference(scores: np.ndarray, labels: np.ndarray) -> float:
        return float(np.sqrt(fast_delong(scores[None].astype(np.float64), labels)))

    return Study(
        "interval of roc_auc",
        lambda n: exact.data((n,)),
        reference,
        {"ours": ours, "ours, bootstrap (2,000)": bootstrap, **intervals.RIVALS},
        {},
        {},
        relative=True,
    )


def _error_of(interval: jm.Interval) -> jax.Array:
    jax.block_until_ready((interval.low, interval.high))
    return interval.standard_error


METRICS_OF_LISTS = {"ndcg": partial(jm.ndcg, k=lists.K), "mrr": jm.reciprocal_rank}


def _rows(name: str) -> Study:
    metric = METRICS_OF_LISTS[name]

    def ours(scores: np.ndarray, grades: np.ndarray, **options: Any) -> Callable[[], Any]:
        jit = options.pop("jit", False)

        def mean(scores: jax.Array, grades: jax.Array) -> jax.Array:
            return jnp.mean(metric(scores, grades, **options))

        given = jnp.asarray(scores), jnp.asarray(grades)
        return partial(jax.jit(mean) if jit else mean, *given)

    def reference(scores: np.ndarray, grades: np.ndarray) -> float:
        ids = np.repeat(np.arange(len(scores)), scores.shape[-1])
        return reference_of_lists(name, scores.ravel(), grades.ravel(), ids)

    variants = {"ours": ours, "ours, in jit": partial(ours, jit=True)}
    if name == "ndcg":
        variants["ours, ties by index"] = partial(ours, ties="index")
    rivals = {library: partial(_of, make, name) for library, make in lists.ROWS.items()}
    return Study(
        f"{'ndcg(k=10)' if name == 'ndcg' else 'reciprocal_rank'}, rows of {N_DOCS}",
        partial(_data_of_rows, name),
        reference,
        {**variants, **rivals},
        {"torcheval": "one relevant document a list"} if name == "mrr" else {},
        lists.LARGEST_ROWS,
    )


def _data_of_rows(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and grades from 0 to 4 or one relevant document per list."""
    rng = np.random.default_rng(0)
    shape = n // N_DOCS, N_DOCS
    scores = rng.standard_normal(shape, np.float32)
    if name == "ndcg":
        return scores, rng.integers(0, 5, shape).astype(np.float32)
    relevant = rng.integers(0, N_DOCS, shape[0])[:, None]
    return scores, (np.arange(N_DOCS) == relevant).astype(np.float32)


def _segments() -> Study:
    """Ragged lists, whose items are in any order."""

    def ours(*data: np.ndarray, jit: bool = False) -> Callable[[], Any]:
        n_lists = int(data[-1].max()) + 1

        def mean(scores: jax.Array, grades: jax.Array, ids: jax.Array) -> jax.Array:
            values = jm.ndcg(scores, grades, k=lists.K, segments=ids, num_segments=n_lists)
            return jnp.mean(values)

        return partial(jax.jit(mean) if jit else mean, *map(jnp.asarray, data))

    def data(n: int) -> tuple[np.ndarray, ...]:
        scores, grades = (x.ravel() for x in _data_of_rows("ndcg", n))
        ids = np.random.default_rng(1).integers(0, n // N_DOCS, n)
        return scores, grades, np.unique(ids, return_inverse=True)[1]

    rivals = {library: partial(_of, make, "ndcg") for library, make in lists.SEGMENTS.items()}
    return Study(
        f"ndcg(k=10), segments of {N_DOCS} on average",
        data,
        partial(reference_of_lists, "ndcg"),
        {"ours": ours, "ours, in jit": partial(ours, jit=True), **rivals},
        {},
        lists.LARGEST_SEGMENTS,
    )


def reference_of_lists(name: str, scores: np.ndarray, grades: np.ndarray, ids: np.ndarray) -> float:
    """The mean over lists, in float64."""
    grades = grades.astype(np.float64)

    def by_place(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The order of items by list and ascending key, and the place of each in its list."""
        order = np.lexsort((keys, ids))
        starts = np.concatenate([[0], np.cumsum(np.bincount(ids))])
        return order, np.arange(len(ids)) - starts[ids[order]]

    def dcg(keys: np.ndarray) -> np.ndarray:
        order, place = by_place(keys)
        gains = np.where(place < lists.K, grades[order] / np.log2(place + 2), 0)
        return np.bincount(ids[order], gains)

    if name == "ndcg":
        return float(np.mean(dcg(-scores) / dcg(-grades)))
    order, place = by_place(-scores)
    return float(np.mean(1 / (1 + place[grades[order] > 0])))


def _stream() -> Study:
    """A batch added to a binned state; the error is that of the state's AUC."""

    def ours(scores: np.ndarray, labels: np.ndarray) -> Stream:
        bins = jm.streaming.float16_bins()
        state = [jm.streaming.init(bins)]
        given = jnp.asarray(scores), jnp.asarray(labels)

        def update() -> Any:
            state[0] = jm.streaming.update(state[0], *given, bins=bins)
            return state[0]

        return Stream(update, lambda: float(jm.roc_auc(jm.streaming.table(state[0], bins=bins))))

    return Study(
        "update of a binned state",
        lambda n: exact.data((n,)),
        _area("roc_auc").reference,
        {"ours": ours, **streams.RIVALS},
        {"ours": "65,536 bins", **dict.fromkeys(streams.RIVALS, "200 thresholds")},
        areas.LARGEST,
    )


STUDIES = {
    **{name: _area(name) for name in (*exact.METRICS, "average_precision")},
    "interval": _interval(),
    "ndcg": _rows("ndcg"),
    "segments": _segments(),
    "mrr": _rows("mrr"),
    "stream": _stream(),
}
