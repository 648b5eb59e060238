"""What callers pass: arrays of other libraries, ids, masks, and what is no metric."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from small_items import KEY, LABELS, SCORES

import jaxmetrics as jm

AUC = 4 / 6


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        jnp.asarray,
        pd.Series,
        lambda x: pd.Series(x, dtype="Float64"),
        lambda x: pd.Series(x, dtype="float64[pyarrow]"),
        pl.Series,
        lambda x: pl.DataFrame({"x": x})["x"],
        lambda x: [np.float32(v) for v in x],
        lambda x: [jnp.float32(v) for v in x],
    ],
)
def test_containers(wrap):
    scores, labels = wrap(SCORES), wrap([float(y) for y in LABELS])
    np.testing.assert_allclose(jm.roc_auc(scores, labels), AUC, rtol=1e-6)
    np.testing.assert_allclose(jm.roc_auc(scores, labels, weights=wrap([2.0] * 5)), AUC, rtol=1e-6)


@pytest.mark.parametrize("boolean", [pd.Series, pl.Series, lambda x: pd.Series(x, dtype="boolean")])
def test_boolean_columns(boolean):
    labels, everything = boolean([y == 1 for y in LABELS]), boolean([True] * 5)
    np.testing.assert_allclose(jm.roc_auc(SCORES, labels, where=everything), AUC, rtol=1e-6)


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
def test_pytorch_tensors():
    import torch

    scores, labels = torch.tensor(SCORES), torch.tensor(LABELS)
    np.testing.assert_allclose(jm.roc_auc(scores, labels), AUC, rtol=1e-6)
    np.testing.assert_allclose(jm.roc_auc(scores, labels == 1), AUC, rtol=1e-6)
    columns = torch.tensor(np.stack([SCORES, SCORES], 1))
    np.testing.assert_allclose(jm.roc_auc(columns[:, 1], labels), AUC, rtol=1e-6)
    with pytest.raises(TypeError, match=r"write scores\.contiguous\(\)"):  # which NumPy lacks
        jm.roc_auc(columns.to(torch.bfloat16)[:, 1], labels)
    close = torch.tensor([0.5, 0.5 + 1e-12], dtype=torch.float64)
    assert jm.roc_auc(close, [0, 1]) == 1  # float64 is not rounded into a tie
    with pytest.raises(Exception, match="detach"):
        jm.roc_auc(scores.requires_grad_(), labels)


class Tensor:
    """One of the CPU's memory, as PyTorch's, that need not be contiguous."""

    def __init__(self, values):
        self.values = np.repeat(values, 2)[::2]
        self.dtype = "a dtype of another library"

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrap", [Tensor, pa.array, lambda x: pa.array(x).dictionary_encode()])
def test_tensors_and_columns_of_arrow(wrap):
    labels = np.array(LABELS) == 1
    everything = wrap(np.ones(5, bool))
    np.testing.assert_allclose(
        jm.roc_auc(wrap(SCORES), wrap(labels), where=everything), AUC, rtol=1e-6
    )


def test_columns_of_arrow_with_nulls():
    scores, where = pa.array([*SCORES[:4], None]), np.arange(5) < 4
    expected = jm.roc_auc(SCORES, LABELS, where=where)
    assert np.isnan(jm.roc_auc(scores, LABELS))
    assert jm.roc_auc(scores, pa.array([*LABELS[:4], None]), where=where) == expected


def test_tensors_that_cannot_be_read_are_named():
    class Refusing(Tensor):
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("use tensor.detach()")

    with pytest.raises(TypeError, match=r"scores is not contiguous: write scores\.contiguous\(\)"):
        jm.roc_auc(Refusing(SCORES), LABELS)
    refusing = Refusing(SCORES)
    refusing.values = np.array(SCORES, object)
    with pytest.raises(TypeError, match=r"scores cannot be read.*use tensor\.detach\(\)"):
        jm.roc_auc(refusing, LABELS)


def test_sparse_arrays_are_refused():
    with pytest.raises(TypeError, match=r"dense array: write scores\.toarray\(\)"):
        jm.roc_auc(sparse.csr_array([SCORES]), [LABELS])


@pytest.mark.parametrize(
    ("name", "values", "way"),
    [
        ("labels", LABELS, r"numpy\.asarray\(labels, float\)"),
        ("where", [True, None, True, True, True], r"\[x == 1 for x in where\]"),
    ],
)
def test_numbers_in_arrays_of_objects(name, values, way):
    given = {"labels": LABELS, name: np.array(values, object)}
    with pytest.raises(TypeError, match=f"dtype object.*write {way}"):
        jm.roc_auc(SCORES, **given)
    array = np.asarray(values, float) if name == "labels" else [x == 1 for x in values]
    jm.roc_auc(SCORES, **{**given, name: array})


@pytest.mark.parametrize("mean", [jm.mean_interval, lambda x, **y: jm.compare_means([x, x], **y)])
@pytest.mark.parametrize("where", [[True, None, True, True, True], ["yes"] * 5])
def test_a_mask_of_means_is_checked_first(mean, where):
    with pytest.raises(TypeError, match="where must hold numbers"):
        mean(np.array(SCORES, np.float64), where=where)


@pytest.mark.filterwarnings("ignore:the labelled sample", "ignore:there are only")
@pytest.mark.parametrize("wrap", [Tensor, pl.Series])
def test_labels_of_a_sample_in_other_libraries(wrap):
    items, rng = np.arange(24), np.random.default_rng(0)
    labels, known, scores = items % 3 == 0, items % 4 > 0, rng.normal(size=24)
    arrays = {"labelled": known, "proxy": np.where(labels, 0.9, 0.1)}
    found, expected = (
        jm.prediction_powered_interval(jm.roc_auc, scores, x, **arrays)
        for x in (wrap(labels), labels)
    )
    assert found.low == expected.low
    if wrap is pl.Series:
        some = pl.Series([bool(y) if k else None for y, k in zip(labels, known, strict=True)])
        found = jm.prediction_powered_interval(jm.roc_auc, scores, some, **arrays)
        assert found.low == expected.low


@pytest.mark.filterwarnings("ignore:group")
@pytest.mark.parametrize("models", [False, True])
def test_groups_are_compared_with_labels_of_one_row(models):
    items = np.arange(24)
    scores, labels, groups = np.sin(items**2.0), items % 3 == 0, items % 2
    scores = np.stack([scores, -scores]) if models else scores
    found = jm.compare_samples(jm.roc_auc, scores, labels[None], groups)
    expected = jm.compare_samples(jm.roc_auc, scores, labels, groups)
    np.testing.assert_array_equal(found.difference, expected.difference)


def test_close_float64_scores_are_not_ties_without_x64():
    scores = 0.5 + 1e-15 * np.arange(8)
    labels = np.arange(8) % 2
    assert len(np.unique(scores.astype("float32"))) == 1
    with jax.enable_x64(True):
        expected = float(jm.roc_auc(scores, labels))
    assert expected != 0.5
    assert jm.roc_auc(scores, labels) == np.float32(expected)
    assert jm.roc_auc(scores.tolist(), labels) == np.float32(expected)
    assert jm.roc_auc(pd.Series(scores), labels) == np.float32(expected)
    assert jm.one_vs_rest(jm.roc_auc, None)(np.stack([-scores, scores], 1), labels)[1] == expected
    assert jax.jit(lambda y: jm.roc_auc(scores, y))(labels) == np.float32(expected)


def test_masked_items_may_hold_anything():
    where = np.array([True, True, True, True, False])
    scores, labels = [*SCORES[:4], np.nan], [*LABELS[:4], -100]
    value = jm.roc_auc(scores, labels, weights=[1, 1, 1, 1, -5.0], where=where)
    assert value == 0.75
    value = jm.roc_auc(jnp.array(scores), jnp.array(labels), where=jnp.array(where))
    assert value == 0.75


def test_under_jit_nothing_raises_on_data():
    bad = jax.jit(lambda labels, limit: jm.partial_auc(jnp.array(SCORES), labels, max_fpr=limit))
    assert np.isfinite(bad(jnp.array(LABELS), 0.5))
    assert np.isnan(bad(jnp.array([0, 1, 2, 1, 0]), 0.5))
    assert np.isnan(bad(jnp.array(LABELS), 7.0))


@pytest.mark.parametrize("metric", [jm.roc_auc, jm.losses.approx_ndcg_loss])
def test_a_single_column_is_refused_under_jit_too(metric):
    column = np.array(SCORES)[:, None], np.array(LABELS)[:, None]
    for call in (metric, jax.jit(metric)):
        with pytest.raises(ValueError, match=r"write scores\[:, 0\] and labels\[:, 0\]"):
            call(*column)


def test_items_without_a_class_are_left_out():
    with pytest.raises(ValueError, match=r"got -1.*where=labels >= 0"):
        jm.one_vs_rest(jm.roc_auc)(np.eye(3), [0, 1, -1])


def test_roc_auc_sampled_checks_its_count():
    with pytest.raises(ValueError, match="n_pairs must be at least 1"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=0)
    with pytest.raises(TypeError, match="n_pairs must be an int"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=10.0)


@pytest.mark.parametrize("key", [None, 0])
def test_roc_auc_sampled_checks_its_key(key):
    with pytest.raises(TypeError, match=r"write (key=)?jax.random.key\(0\)"):
        jm.roc_auc_sampled(key, SCORES, LABELS, n_pairs=3)


def test_pairs_that_memory_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="n_pairs = 1,000,000,000,000 needs 40,000 GB"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=10**12)


@pytest.mark.parametrize("metric", ["roc_auc", 3])
@pytest.mark.parametrize(
    "call",
    [
        jm.one_vs_rest,
        jm.one_vs_one,
        jm.multilabel,
        lambda m: jm.bootstrap(m, SCORES, LABELS, key=KEY),
        lambda m: jm.confidence_interval(m, SCORES, LABELS),
        lambda m: jm.compare(m, [SCORES, SCORES], LABELS),
        lambda m: jm.permutation_test(m, [SCORES, SCORES], LABELS, key=KEY),
        lambda m: jm.influence(m, SCORES, LABELS),
        lambda m: jm.standard_error(m, SCORES, LABELS),
        lambda m: jm.covariance(m, [SCORES, SCORES], LABELS),
        lambda m: jm.streaming.exact(m, [(SCORES, LABELS)]),
    ],
)
def test_a_metric_is_a_function(call, metric):
    with pytest.raises(TypeError, match=r"metric must be a function.*write jaxmetrics.roc_auc"):
        call(metric)
    with pytest.raises(TypeError, match="takes a function of a ScoreTable, got 3"):
        jm.table_metric(3)


def test_ids_whose_span_their_dtype_cannot_hold(rng):
    numbers = np.tile(np.arange(-100, 101), 2)
    items = rng.normal(size=402), rng.random(402) < 0.5
    expected = jm.standard_error(jm.roc_auc, *items, clusters=numbers)
    for ids in (numbers.astype(np.int8), (numbers + 100).astype(np.uint64) + np.uint64(2**63)):
        assert jm.standard_error(jm.roc_auc, *items, clusters=ids) == expected


@pytest.mark.parametrize(
    ("clusters", "error", "words"),
    [
        ([None, 1, 2, 3, 4], ValueError, "must not be None or NaN"),
        (np.array(["a", None, "b", "b", "a"], object), ValueError, "must not be None or NaN"),
        ([0.0, np.nan, 1, 2, 3], ValueError, "must not be None or NaN"),
        ([1, "1", 2, 2, 3], TypeError, r"one type, got int, str: write .*map\(str"),
        (np.array([1, "a", 2, 2, 3], object), TypeError, "one type, got int, str"),
    ],
)
def test_clusters_have_ids_of_one_type(clusters, error, words):
    with pytest.raises(error, match=words):
        jm.bootstrap(jm.roc_auc, SCORES, LABELS, key=KEY, n_resamples=5, clusters=clusters)


def test_items_that_are_left_out_are_not_named():
    where = np.arange(5) > 0
    with pytest.raises(ValueError, match="got 5"):
        jm.roc_auc(SCORES, [9, 5, 1, 0, 0], where=where)
    with pytest.raises(ValueError, match=r"got 0\.7"):
        jm.accuracy([0.5, 0.7, 1, 0, 0], LABELS, where=where)
    with pytest.raises(ValueError, match="got 5"):
        jm.one_vs_rest(jm.roc_auc)(np.ones((5, 3)), [9, 5, 1, 0, 2], where=where)


def test_drop_intermediate_takes_one_curve():
    curves = jm.roc_curve([SCORES, SCORES], LABELS)
    with pytest.raises(ValueError, match="takes one curve"):
        jm.drop_intermediate(curves)
    for other in (5, tuple(jm.roc_curve(SCORES, LABELS))):
        with pytest.raises(TypeError, match="what roc_curve, precision_recall_curve"):
            jm.drop_intermediate(other)
    with pytest.raises(TypeError, match="call it outside of jit"):
        jax.eval_shape(lambda x: jm.drop_intermediate(jm.roc_curve(x, LABELS)), np.float32(SCORES))
    undefined = jm.drop_intermediate(jm.roc_curve(SCORES, [0] * 5))
    assert np.isnan(undefined.tpr).all()


@pytest.mark.parametrize("ids", [list("abaab"), pd.Series(list("abaab"), dtype="category")])
def test_texts_as_ids_of_lists(ids):
    ways = (
        r"write numpy.unique\(segments, return_inverse=True\)\[1\], or pandas.factorize\(segments\)"
    )
    with pytest.raises(TypeError, match=ways):
        jm.ndcg(SCORES, LABELS, segments=ids)
    values = jm.ndcg(SCORES, LABELS, segments=np.unique(ids, return_inverse=True)[1])
    codes, _ = pd.factorize(np.asarray(ids))  # "a" is the first text, and the first in order
    np.testing.assert_array_equal(jm.ndcg(SCORES, LABELS, segments=codes), values)


def test_tables_and_states_are_no_scores():
    """They are tuples, whose parts would be models."""
    table = jm.score_table(SCORES, LABELS)
    state = jm.streaming.init(jm.streaming.float16_bins())
    for scores in (table, state, jm.roc_curve(SCORES, LABELS)):
        for call in (
            lambda x: jm.confidence_interval(jm.roc_auc, x, LABELS),
            lambda x: jm.operating_point(x, LABELS, max_fpr=0.5),
            lambda x: jm.losses.pairwise_auc_loss(x, LABELS),
        ):
            with pytest.raises(
                TypeError, match=f"scores must be an array, got a {type(scores).__name__}"
            ):
                call(scores)
