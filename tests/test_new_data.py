"""New data of the same shapes compile nothing, as a program for each would stay in memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring
from mesh_cases import ARRAYS, CASES, FEW, PARTIAL, Case, N
from mesh_cases import case as case_of

import jaxmetrics as jm

_FLOATS = ("scores", "row", "columns", "weights")
_BESIDE = {
    "compare-weights": case_of(
        partial(jm.compare, jm.average_precision), "scores", "labels", weights="weights"
    ),
    "slices": case_of(
        partial(jm.slices, jm.average_precision), "scores", "labels", "classes", weights="weights"
    ),
    "slices-clusters": case_of(
        partial(jm.slices, PARTIAL), "scores", "labels", "classes", clusters="segments"
    ),
}
_compiled: list[str] = []
_traced: list[str] = []


def _note(event: str, duration: float, **about: object) -> None:
    if event.endswith("backend_compile_duration"):
        _compiled.append(event)
    elif event.endswith("jaxpr_trace_duration"):
        _traced.append(event)


monitoring.register_event_duration_secs_listener(_note)


def _new_data(case: Case, seed: int) -> list[np.ndarray]:
    """The arrays of a case with other numbers, and with their items in another order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    found = []
    for name in case.names:
        array, axes = ARRAYS[name]
        if name in _FLOATS:
            array = array * rng.lognormal(size=array.shape).astype(array.dtype)
        if "n" in axes and name != "segments":
            array = np.take(array, order, axis=axes.index("n"))
        found.append(array)
    return found


@pytest.mark.parametrize("case", (CASES | _BESIDE).values(), ids=CASES | _BESIDE)
def test_new_data_compile_nothing(case: Case) -> None:
    for seed in range(3):
        jax.block_until_ready(case.function(*_new_data(case, seed)))
    _compiled.clear()
    for seed in range(3, 9):
        jax.block_until_ready(case.function(*_new_data(case, seed)))
    assert not _compiled


def _of_lists(metric: Callable[..., Any], rows: int = 1, **options: Any) -> Callable[..., Any]:
    def of(ids: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> Any:
        given = np.squeeze(np.stack(rows * [scores]))
        return metric(given, labels, segments=np.sort(ids), **options)

    return of


@pytest.mark.parametrize(
    "function",
    [
        partial(jm.confidence_interval, jm.average_precision),
        partial(jm.compare, PARTIAL),
        partial(jm.influence, jm.roc_auc),
        partial(jm.compare_to_value, jm.roc_auc, value=0.5),
    ],
    ids=["interval", "comparison", "influence", "value"],
)
def test_another_number_of_items_traces_nothing(function: Callable[..., Any]) -> None:
    """Which would take most of the time of small data of many sizes."""
    for n in (40, 44, 48, 52):
        scores = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
        jax.block_until_ready(function(scores, np.arange(n) % 4 == 0))
        if n == 44:
            _traced.clear()
    assert not _traced


OF_ARRAYS_OF_JAX: dict[str, Callable[..., Any]] = {
    "interval": lambda x, y, ids, w, some: jm.confidence_interval(
        jm.roc_auc, x, y, weights=w, where=some
    ),
    "comparison": lambda x, y, ids, w, some: jm.compare(
        PARTIAL, x, y, weights=w, where=some, margin=0.1
    ),
    "slices": lambda x, y, ids, w, some: jm.slices(jm.average_precision, x, y, ids, weights=w),
    "samples": lambda x, y, ids, w, some: jm.compare_samples(
        jm.average_precision, x[0], y, ids, weights=w, where=some
    ),
    "proxy": lambda x, y, ids, w, some: jm.prediction_powered_interval(
        jm.roc_auc, x, y, w, labelled=some
    ),
}


def _of_classes(average: Callable[..., Any]) -> Callable[..., Any]:
    def of(x: jax.Array, y: jax.Array, ids: jax.Array, w: jax.Array, some: jax.Array) -> Any:
        columns = jax.device_put(np.tile(x, (2, 1)).T)  # which compiles nothing
        return average(columns, ids, weights=w, where=some)

    return of


OF_ARRAYS_OF_JAX |= {
    "one against the rest": _of_classes(jm.one_vs_rest(jm.roc_auc)),
    "pairs of classes": _of_classes(jm.one_vs_one(jm.roc_auc, "weighted")),
    "resamples": lambda x, y, ids, w, some: jm.bootstrap(jm.roc_auc, x, y, **FEW).interval(
        method="bca"
    ),
    "resamples of one model": lambda x, y, ids, w, some: jm.bootstrap(
        jm.roc_auc, x[0], y, where=some, **FEW
    ),
    "swaps": lambda x, y, ids, w, some: jm.permutation_test(jm.roc_auc, x, y, **FEW),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_ARRAYS_OF_JAX)
def test_arrays_of_jax_of_another_number_of_items_compile_nothing(name: str) -> None:
    """Checks and warnings read them by NumPy, as the functions do."""
    for n in (211, 223):
        rng = np.random.default_rng(n)
        given = rng.normal(size=(2, n)), np.arange(n) % 3 == 0, np.arange(n) % 4
        arrays = [jnp.asarray(x) for x in (*given, rng.random(n), np.arange(n) < n - 9)]
        jax.block_until_ready(arrays[0][0])
        _compiled.clear()
        jax.block_until_ready(OF_ARRAYS_OF_JAX[name](*arrays))
    assert not _compiled


def test_other_edges_of_bins_compile_nothing() -> None:
    state = None
    for seed in range(4):
        scores = np.random.default_rng(seed).normal(size=50)
        bins = jm.streaming.quantile_bins(scores, 8)
        if seed == 2:
            _compiled.clear()
        state = jm.streaming.init(bins)
        state = jm.streaming.update(state, scores, scores > 0, bins=bins)
        jax.block_until_ready(state.digits)
    assert not _compiled


NUMBERS: dict[str, Callable[..., Any]] = {
    "bootstrap of clusters": lambda ids, *items: jm.bootstrap(
        jm.roc_auc, *items, clusters=ids, **FEW
    ),
    "operating point of clusters": lambda ids, *items: jm.operating_point(
        *items, max_fpr=0.2, clusters=ids, **FEW
    ),
    "slices": lambda ids, scores, labels: jm.slices(
        jm.roc_auc, np.stack([scores, -scores]), labels, ids, min_items=2
    ),
    "folds": lambda ids, *items: jm.fold_interval(jm.roc_auc, *items, ids),
    "lists of two models": _of_lists(jm.ndcg, rows=2),
    "pairs of lists": _of_lists(jm.ordered_pair_accuracy),
    "lists of many models": _of_lists(jm.ndcg, rows=40, k=(1, 5)),
    "areas of lists": _of_lists(jm.segment_roc_auc),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NUMBERS)
def test_another_number_of_clusters_slices_or_lists_compiles_nothing(name: str) -> None:
    for n in (17, 31, 18, 19, 23, 24, 30):  # up to the next power of two
        ids, labels = np.arange(120) % n, np.arange(120) // n % 2 == 0
        scores = np.random.default_rng(n).normal(size=120)
        if n == 18:
            _compiled.clear()
        jax.block_until_ready(NUMBERS[name](ids, scores, labels))
    assert not _compiled


OF_MODELS: dict[str, Callable[..., Any]] = {
    "comparison": lambda scores, labels: jm.compare(jm.roc_auc, scores, labels),
    "to a value": lambda scores, labels: jm.compare_to_value(jm.roc_auc, scores, labels, value=0.5),
    "trend": lambda scores, labels: jm.trend(
        jm.slices(jm.roc_auc, scores, labels, np.arange(60) % len(scores), min_items=2)
    ),
    "band": lambda scores, labels: jm.roc_band(
        scores[0], labels, fpr=np.linspace(0, 1, len(scores))
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_MODELS)
def test_another_number_of_models_or_points_compiles_nothing(name: str) -> None:
    for n in (3, 5, 6):
        scores = np.random.default_rng(n).normal(size=(n, 60))
        if n == 5:
            _compiled.clear()
        jax.block_until_ready(OF_MODELS[name](scores, np.arange(60) % 3 == 0))
    assert not _compiled
