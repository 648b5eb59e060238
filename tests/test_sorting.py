"""Integer keys order as the scores do, and sort with their payload, in every branch."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxmetrics as jm
from jaxmetrics._base import sorting
from jaxmetrics._base.host import in_threads, processors

pytestmark = pytest.mark.usefixtures("x64")

SPECIAL = [
    -np.inf,
    -1e30,
    -2.5,
    -1e-40,
    -0.0,
    0.0,
    1e-45,
    1e-40,
    1.5,
    np.float32(1.5) + 2e-7,
    np.inf,
]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", ["float16", jnp.bfloat16, "float32", "float64"])
def test_keys_of_floats(dtype):
    scores = jnp.asarray(np.array(SPECIAL), dtype)
    host = np.asarray(scores).astype(np.float64)
    keys = np.asarray(sorting.descending_keys(scores))
    for i, a in enumerate(host):
        for j, b in enumerate(host):
            assert (keys[i] < keys[j], keys[i] == keys[j]) == (a > b, a == b), (a, b)
    back = np.asarray(sorting.scores_of_keys(jnp.asarray(keys), scores))
    normal = (np.abs(host) > 1e-30) | (host == 0)  # the CPU may flush subnormal float32
    np.testing.assert_array_equal(back[normal], host[normal])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_keys_of_integers(dtype):
    limits = np.iinfo(dtype)
    host = np.array([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype)
    keys = np.asarray(sorting.descending_keys(jnp.asarray(host)))
    assert (np.argsort(keys, kind="stable") == np.argsort(-host.astype(object))).all()
    back = np.asarray(sorting.scores_of_keys(jnp.asarray(keys), jnp.asarray(host)))
    np.testing.assert_array_equal(back, host.astype(np.float64))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("shape", [(1,), (257,), (3, 64), (2, 3, 5)])
def test_every_sort_carries_its_payload(bits, shape, rng):
    dtype = f"uint{bits}"
    keys = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    keys[..., ::3] = keys[..., :1]
    payload = np.broadcast_to(np.arange(shape[-1], dtype="uint32"), shape)
    branches = [sorting.sort_by_key, sorting._sort_pairs]
    branches.append(sorting._sort_packed if bits == 32 else sorting._sort_in_halves)
    for sort in branches:
        ordered, carried = map(np.asarray, sort(jnp.asarray(keys), jnp.asarray(payload)))
        np.testing.assert_array_equal(ordered, np.sort(keys, axis=-1))
        np.testing.assert_array_equal(np.take_along_axis(keys, carried.astype(int), -1), ordered)
        assert (np.sort(carried, axis=-1) == payload).all()


@pytest.mark.parametrize("many", [4, 1 << 17])
@pytest.mark.parametrize("shape", [(0,), (1,), (257,), (1, 64), (3, 64), (2, 3, 5), (2, 0)])
def test_rows_are_sorted_on_the_host(many, shape, rng, monkeypatch):
    """Each by itself, and in threads if they are long or many."""
    monkeypatch.setattr(sorting, "MANY", many)
    monkeypatch.setattr(sorting, "processors", lambda: 3)
    keys = rng.integers(0, 50, shape, "uint32")
    np.testing.assert_array_equal(sorting.sort(keys), np.sort(keys, axis=-1))
    payload = np.broadcast_to(np.arange(shape[-1], dtype="uint32"), shape)
    ordered, carried = sorting.sort_by_key_and_payload(keys, payload)
    np.testing.assert_array_equal(ordered, np.sort(keys, axis=-1))
    np.testing.assert_array_equal(carried, np.argsort(keys, axis=-1, kind="stable"))


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=30))
def test_float64_ranks_exactly(values):
    scores = np.resize(values, 30)  # with ties, and all of one shape
    table = jm.score_table(scores, np.arange(len(scores)) % 2)
    distinct = np.unique(scores)[::-1]
    rows = np.asarray(table.positives + table.negatives) > 0
    assert rows.sum() == len(distinct)
    np.testing.assert_array_equal(np.asarray(table.thresholds)[rows], distinct)


def test_subnormal_scores_are_not_ties():
    scores = np.arange(4, dtype="int32").view("float32")[[1, 2, 3, 0]]
    with jax.enable_x64(False):
        assert jm.roc_auc(scores, [0, 1, 1, 0]) == 1
        assert jm.roc_auc(-scores, [0, 1, 1, 0]) == 0


def test_negative_zero_ties_with_zero():
    assert jm.roc_auc(np.array([0.0, -0.0]), [0, 1]) == 0.5
    assert jm.roc_auc(np.array([0.0, -0.0], "float32"), [0, 1]) == 0.5


def test_large_integers_are_not_rounded():
    scores = np.array([2**53, 2**53 + 1])
    assert jm.roc_auc(scores, [0, 1]) == 1
    with jax.enable_x64(False):
        assert jm.roc_auc(scores, [0, 1]) == 1
        assert jm.roc_auc(np.array([2**24, 2**24 + 1], "int32"), [0, 1]) == 1


def test_a_batch_that_shares_its_scores():
    """An array of NumPy's that repeats a row has no memory of its own to be sorted in."""
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=100_000).astype("float32"), rng.random((3, 100_000)) < 0.5
    shared = np.broadcast_to(scores, (3, 100_000))
    expected = [jm.roc_auc(scores, row) for row in labels]
    np.testing.assert_array_equal(jm.roc_auc(shared, labels), expected)
    keys, _ = sorting.sort_by_key(
        *np.broadcast_arrays(sorting.descending_keys(shared), np.uint32(1))
    )
    assert (np.diff(keys.astype(np.int64), axis=-1) >= 0).all()


def test_threads_of_all_processors_start_no_others():
    def threads_of(_):
        return set(in_threads(lambda _: threading.get_ident(), range(4 * processors())))

    assert all(len(x) == 1 for x in in_threads(threads_of, range(2 * processors())))
    assert in_threads(lambda x: in_threads(abs, [x, -x]), [-1, 2]) == [[1, 1], [2, 2]]
