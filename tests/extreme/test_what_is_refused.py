"""Label sets that are refused, and what their errors say to write."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import jaxmetrics as jm
from jaxmetrics.extreme import _inputs

PREDICTED, RELEVANT = np.array([[1, -1]]), np.array([[1]])
precision = partial(jm.extreme.precision_at_k, k=1)
scored = partial(jm.extreme.propensity_scored_precision_at_k, k=1)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("library", [np, jnp])
def test_unsigned_ids_cannot_hold_minus_1(kind, library):
    """-1 became a label, or, of 64 bits, a label became -1."""
    with jax.enable_x64(True):
        ids = library.asarray(PREDICTED.astype(kind))
        with pytest.raises(ValueError, match="unsigned ids cannot hold -1: pad signed ids"):
            precision(ids, RELEVANT)
        with pytest.raises(ValueError, match="relevant is uint"):
            precision(PREDICTED, ids)
        assert precision(ids[:, :1], RELEVANT) == 1


def test_unsigned_ids_of_64_bits_are_quoted_as_given():
    with pytest.raises(ValueError, match=r"below 2\^63, got 9223372036854775813"):
        precision(np.array([[3, 2**63 + 5]], np.uint64), RELEVANT)


@pytest.mark.parametrize(
    ("predicted", "way"),
    [
        (np.ma.array(PREDICTED, mask=PREDICTED < 0), r"write predicted.filled\(-1\)"),
        ([[1, None]], "write -1 in place of None"),
        ([["a"]], "number the labels from 0"),
        (sparse.csr_matrix(PREDICTED), r"zip_longest.*for the k best of scores numpy.argsort"),
    ],
)
def test_hints_of_label_ids(predicted, way):
    with pytest.raises(TypeError, match=way):
        precision(predicted, RELEVANT)


def test_lists_of_a_sparse_matrix_as_the_error_writes_them():
    import itertools

    relevant = sparse.csr_matrix([[0, 1, 1], [0, 0, 0]])
    lists = np.array([*itertools.zip_longest(*relevant.tolil().rows, fillvalue=-1)]).T
    assert lists.tolist() == [[1, 2], [-1, -1]]


def test_proportions_of_lists_that_differ_in_length():
    with pytest.raises(ValueError, match="pad lists with -1"):
        jm.extreme.prediction_proportions_at_k([[1], [1, 2]], k=1, groups=[0, 0, 1, 1])


def test_the_number_of_labels_is_that_of_what_is_given():
    with pytest.raises(ValueError, match=r"below len\(propensities\) = 3, got 5"):
        scored([[5]], RELEVANT, propensities=[1, 0.5, 0.5])
    with pytest.raises(ValueError, match=r"n_labels and len\(groups\) must be the same, got 100"):
        jm.extreme.k_for_recall(
            PREDICTED, RELEVANT, min_recall=1, groups=[0, 0, 1, 1], n_labels=100
        )
    with pytest.raises(ValueError, match=r"len\(propensities\) and len\(groups\) must be"):
        scored(PREDICTED, RELEVANT, propensities=[1, 0.5], groups=[0, 0, 1])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"groups": [0.0, 1.0]}, TypeError, "groups must be whole numbers from 0, got float"),
        ({"groups": [[0, 1]]}, ValueError, r"groups must be \[n_labels\].*got \[1, 2\]"),
        ({"groups": []}, (TypeError, ValueError), "groups must be"),
        ({"groups": pd.Series([7, 5], index=[1, 0])}, ValueError, "its index is not 0 to 1"),
        ({"n_labels": 0}, ValueError, "n_labels must be at least 1"),
        ({}, TypeError, "n_labels is missing without groups"),
    ],
)
def test_labels_and_groups_that_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        jm.extreme.k_for_recall(PREDICTED, RELEVANT, min_recall=1, **options)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ([2, -2], "label ids from 0, or -1 for no label, got -2"),
        ([2, 9], r"below n_labels = 9, got 9"),
        ([2, 2], "label 2 twice in list 1"),
        ([-1, 2], "got -1 in list 1 at place 0"),
    ],
)
def test_faults_of_one_part_of_long_lists(odd, words, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK", 2)
    lists = np.array([[0, 1], odd, [3, 4]])
    with pytest.raises(ValueError, match=words):
        jm.extreme.k_for_recall(lists, [[1]] * 3, min_recall=1, n_labels=9)


def test_the_highest_label_of_16_bits_may_not_be_twice_in_a_list():
    with pytest.raises(ValueError, match="label 65535 twice in list 0"):
        precision([[65535, 65535, -1]], RELEVANT)


def test_axes_that_broadcast_and_that_do_not():
    alike = np.zeros((2, 3, 1), int)
    assert precision(alike, alike).tolist() == [1, 1]
    models = np.zeros((2, 1, 1), int), np.zeros((3, 1, 1), int)
    with pytest.raises(ValueError, match=r"must broadcast, got predicted \[2, 1, 1\], relevant"):
        precision(*models)


@pytest.mark.parametrize("counts", [[[1, 2]], 3])
def test_counts_that_are_no_list(counts):
    with pytest.raises(ValueError, match=r"label_counts must be \[n_labels\]"):
        jm.extreme.label_deciles(counts)


@pytest.mark.parametrize("propensities", [[[0.5, 1]], 0.5, np.zeros(0)])
def test_propensities_that_are_no_list(propensities):
    with pytest.raises(ValueError, match=r"propensities must be \[n_labels\]"):
        scored(PREDICTED, RELEVANT, propensities=propensities)


@pytest.mark.parametrize("reduce", ["mean", None])
def test_traced_propensities_that_are_no_probabilities(reduce):
    """Of a relevant label, whether it is a hit or not. The least one allowed has a value."""
    relevant = np.array([[0, 1]])

    @jax.jit
    def value(first, second):
        given = {"propensities": jnp.stack([first, second]), "reduce": reduce}
        return jax.tree.leaves(scored(PREDICTED, relevant, **given))[0]

    least = float(np.finfo(np.float32).tiny)
    assert value(1.0, 1.0) == value(1.0, least) == 1
    assert np.isnan(value(1.5, 1.0))
    assert np.isnan(value(1.0, 1.5))
    assert np.isnan(value(-1.0, 1.0))


def test_traced_ids_are_not_checked():
    """One that may have been -1 is a label that does not occur."""
    ids = jnp.asarray([[2**32 - 1]], jnp.uint32)
    assert jax.jit(lambda x: precision(x, RELEVANT))(ids) == 0


@pytest.mark.parametrize("least", [5e-309, 1e-39, np.float32(1e-39)])
def test_propensities_whose_inverse_is_infinite(least):
    with pytest.raises(ValueError, match=r"at least 1.2e-38, got"):
        scored(PREDICTED, RELEVANT, propensities=np.array([1, least]))
    parts = scored(PREDICTED, RELEVANT, propensities=[1, 1.2e-38], reduce=None)
    assert np.isfinite(parts.weights).all()
    assert np.isnan(
        jax.jit(lambda p: scored(PREDICTED, RELEVANT, propensities=p))(jnp.array([1, least]))
    )
