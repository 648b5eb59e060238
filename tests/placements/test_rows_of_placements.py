"""Long rows, batches, and models that share labels."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import marked
from sources_of_placements import (
    DTYPES,
    LIMITED,
    OF_PLACEMENTS,
    ONE_OF_EACH_KIND,
    N,
    drawn_scores,
    items_of,
    long_rows,
)

import jaxmetrics as jm
from jaxmetrics._base import compaction, merging
from jaxmetrics._roc import host_batches, record

OF_LONG_ROWS = {
    "parts": partial(jm.precision_at_recall, min_recall=0.5, return_threshold=True),
    "limits": partial(jm.threshold_at_fpr, max_fpr=np.float32([0.1, 0.5])),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        marked(name, way, fast=way in ("eager", kind))
        for name, kind in (("parts", "jit"), ("limits", "vmap"))
        for way in ("eager", "jit", "vmap")
    ],
)
def test_rows_in_turn(name, way, monkeypatch):
    """Long rows of a batch are taken one by one: of tables too, of results with several parts."""
    scores, labels, weights, where = long_rows(monkeypatch)
    of = partial(lambda f, s, y, w, m: f(s, y, weights=w, where=m), OF_LONG_ROWS[name])
    items = (*np.broadcast_arrays(scores, labels), weights, where)
    whole = [np.broadcast_to(x, scores.shape).reshape(6, -1) for x in items]
    each = [of(*row) for row in zip(*whole, strict=True)]
    each = jax.tree.map(lambda *x: np.stack(x).reshape(2, 3, *x[0].shape), *each)
    given = scores, labels, weights.astype(np.float32), where
    ways = {"eager": of, "jit": jax.jit(of), "vmap": jax.jit(jax.vmap(of, (0, None, 0, 0)))}
    jax.tree.map(np.testing.assert_array_equal, ways[way](*given), each)


@pytest.mark.parametrize("name", [marked(x, fast=x == "limits") for x in OF_LONG_ROWS])
def test_long_rows_that_share_scores(name, monkeypatch):
    """One order of the scores for all."""
    scores, labels, weights, where = long_rows(monkeypatch)
    of = partial(lambda f, s, y, w, m: f(s, y, weights=w, where=m), OF_LONG_ROWS[name])
    tied = scores[0, 0], labels, weights[0], where[0]
    jax.tree.map(np.testing.assert_array_equal, jax.jit(of)(*tied), of(*tied))


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        marked(name, empty, fast=(name, empty) in (("parts", (0, 3)), ("limits", (2, 0))))
        for name in OF_LONG_ROWS
        for empty in ((0, 3), (2, 0))
    ],
)
def test_no_long_rows(name, empty, monkeypatch):
    scores, labels, _, _ = long_rows(monkeypatch)
    x = scores[: empty[0], : empty[1]]
    assert jax.tree.leaves(OF_LONG_ROWS[name](x, labels[0]))[0].shape[:2] == empty


@pytest.mark.parametrize("n", [marked(n, fast=n in (1, 33)) for n in (1, 31, 32, 33, 300)])
def test_first_indices(n):
    rng = np.random.default_rng(10)
    first = jax.jit(compaction.first_indices, static_argnums=1)
    for share in (0.0, 0.03, 0.5, 1.0):
        mask = rng.random(n) < share
        for capacity in (1, 7, n):
            index, some = map(np.asarray, first(mask, capacity))
            wanted = np.flatnonzero(mask)[:capacity]
            np.testing.assert_array_equal(index[some], wanted)
            assert np.all((index >= 0) & (index < n))


@pytest.mark.parametrize("n_values", [0, 1, 5, 400])
@pytest.mark.parametrize("n_at", [0, 1, 7, 300])
def test_merging(n_values, n_at, parts):
    rng = np.random.default_rng(2)
    for spread in (3, 1000):
        values, at = (np.sort(rng.integers(0, spread, n)) for n in (n_values, n_at))
        below, not_above = merging.below_and_not_above(values, at)
        np.testing.assert_array_equal(below, np.searchsorted(values, at, "left"))
        np.testing.assert_array_equal(not_above, np.searchsorted(values, at, "right"))


def test_inputs_are_not_reordered(parts):
    """The classes are sorted in place, in copies."""
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=N).astype(np.float32), rng.random(N) < 0.5
    kept = scores.copy()
    for entry in OF_PLACEMENTS:
        entry.metric(scores, labels)
        entry.metric(scores, np.ones(N, bool))
        entry.metric(scores, np.zeros(N, bool))
    np.testing.assert_array_equal(scores, kept)


def test_batches_are_rows(parts, monkeypatch):
    """Leading axes broadcast."""
    monkeypatch.setattr(record, "_SHORT", 0)
    monkeypatch.setattr(record, "_SHORT_UNSORTED", 0)
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(3, 1, N)).astype(np.float32)
    labels, where = rng.random((2, N)) < 0.5, rng.random((1, 1, N)) < 0.8
    for entry in OF_PLACEMENTS:
        batch = entry.metric(scores, labels, where=where)
        rows = [[entry.metric(s[0], y, where=where[0, 0]) for y in labels] for s in scores]
        np.testing.assert_array_equal(batch, np.array(rows))


@ONE_OF_EACH_KIND
def test_batches_may_be_empty(entry, parts, monkeypatch):
    monkeypatch.setattr(record, "_SHORT", 0)
    monkeypatch.setattr(record, "_SHORT_UNSORTED", 0)
    scores, labels = np.zeros((3, 1, N), np.float32), np.arange(2 * N).reshape(2, N) % 3 == 0
    some = entry.metric(scores, labels)
    assert entry.metric(scores[:0], labels).shape == (0, *some.shape[1:])


@pytest.fixture(params=["at once", "in blocks"])
def shared(request, monkeypatch):
    """A metric of rows that share labels, which are not taken one by one."""
    monkeypatch.setattr(host_batches, "_SHORTEST", 0)
    if request.param == "in blocks":
        for name, size in (("_AT_ONCE", 2 * N), ("_PART", 5), ("_MANY", 0), ("FEW_THRESHOLDS", 2)):
            monkeypatch.setattr(host_batches, name, size)

    def value(metric, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(record, "evaluate_on_host", None)
            patch.setattr(record, "evaluate_by_selection", None)
            patch.setattr(record, "evaluate", None)
            return metric(*args, **options)

    return value


@pytest.mark.parametrize(
    ("shared", "entry", "dtype"),
    [  # float32 in one way, and one of the others in the other way
        pytest.param(
            way,
            entry,
            dtype,
            id=f"{way}-{entry.name}-{dtype}",
            marks=() if j == ((i // 2 % 4 + 1) if (i + k) % 2 else 0) else pytest.mark.slow,
        )
        for k, way in enumerate(("at once", "in blocks"))
        for i, entry in enumerate(OF_PLACEMENTS)
        for j, dtype in enumerate(DTYPES)
    ],
    indirect=["shared"],
)
def test_models_that_share_labels_are_rows(entry, dtype, shared):
    """Ties, -0.0, infinities, NaN in some rows, one class, masks that leave no item."""
    rng = np.random.default_rng(6)
    for turn in range(8):
        scores = np.stack([drawn_scores(rng, dtype) for _ in range(6)]).reshape(3, 2, N)
        labels, options = items_of(rng, ("where",) if turn % 2 else ())
        if turn == 7:
            options["where"] = np.zeros(N, bool)
        batch = shared(entry.metric, scores, labels, **options)
        rows = [[entry.metric(x, labels, **options) for x in pair] for pair in scores]
        np.testing.assert_array_equal(batch, np.array(rows), err_msg=f"{scores} {labels}")


@pytest.mark.parametrize("turn", range(len(LIMITED)))
def test_limits_of_models_that_share_labels(turn, shared, x64):
    metric, name = LIMITED[turn]
    rng = np.random.default_rng(7)
    labels = rng.random(400) < 0.4
    scores = np.round(rng.normal(size=(3, 400)) + labels, 1)
    scores[2, 7] = np.nan
    for limit in (np.array(0.3), np.array([]), np.array([0.2, 0.5]), np.linspace(0.01, 1, 40)):
        batch = shared(metric, scores, labels, **{name: limit})
        rows = [metric(x, labels, **{name: limit}) for x in scores]
        rows = jax.tree.map(lambda *x: np.stack(x), *rows)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-14), batch, rows)


def test_models_with_ties_at_the_end_of_the_window(shared):
    """Negatives that tie with the last one of the window count whole."""
    scores = np.array([[3.0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 2, 3, 0], np.arange(15.0) % 4])
    labels = np.arange(15) >= 12
    for max_fpr in (0.1, 0.2, 0.3):
        found = shared(jm.partial_auc, scores, labels, max_fpr=max_fpr)
        expected = [jm.partial_auc(jm.score_table(x, labels), max_fpr=max_fpr) for x in scores]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_window_that_holds_the_only_negative(shared):
    """Which is above all positives of the first model, and below those of the second."""
    scores, labels = np.array([[3.0, 1, 2], [1, 3, 2]]), np.array([0, 1, 1])
    found = shared(jm.partial_auc, scores, labels, max_fpr=0.1)
    np.testing.assert_allclose(found, [0, 0.1], rtol=1e-6)


@pytest.mark.parametrize("given", ["weights", "amounts", "labels"])
def test_models_whose_items_count_unlike(given, rng):
    """Weights, amounts and labels of each model are not for the way of rows that share labels."""
    scores, labels = rng.random((2, 256)), np.arange(256) % 2
    options = {} if given == "labels" else {given: rng.random(256)}
    labels = np.stack([labels, 1 - labels]) if given == "labels" else labels
    found = jm.recall_at_fpr(scores, labels, max_fpr=0.2, **options)
    rows = zip(scores, np.broadcast_to(labels, scores.shape), strict=True)
    expected = [jm.recall_at_fpr(*row, max_fpr=0.2, **options) for row in rows]
    np.testing.assert_array_equal(found, expected)
