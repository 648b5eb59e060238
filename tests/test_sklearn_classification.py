"""jaxmetrics.sklearn of hard predictions: what scikit-learn's own tests leave open."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from scikit_tests import same

import jaxmetrics.sklearn as ours

AVERAGED = {
    "recall_score": {},
    "precision_score": {},
    "f1_score": {},
    "fbeta_score": {"beta": 0.5},
}
OF_ALL_CLASSES = (
    "confusion_matrix",
    "accuracy_score",
    "balanced_accuracy_score",
    "matthews_corrcoef",
)
NAMES = np.array(["ant", "bee", "cat", "dog", "eel"])


def problem(rng, n=70):
    """Classes of which the last is never predicted, and the first does not occur."""
    truth = rng.integers(1, 5, n)
    said = np.where(rng.random(n) < 0.6, truth, rng.integers(0, 4, n))
    return truth, np.minimum(said, 3), rng.random(n) + 0.1


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
def test_averages(name, average, rng):
    truth, said, weights = problem(rng)
    call = partial(same, name, average=average, **AVERAGED[name])
    for zero_division in ("warn", 0, 1, np.nan):
        call(truth, said, zero_division=zero_division)
    call(truth, said, sample_weight=weights)
    call(truth, said, labels=[4, 7, 1])
    call(truth, said, labels=[1, 4, 1, 7, 7], sample_weight=weights)
    call(NAMES[truth], NAMES[said], labels=["eel", "bee"], sample_weight=weights)
    call(truth.astype(float), said.tolist(), sample_weight=weights.round() + 1)


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "samples", None])
def test_averages_of_labels(name, average, rng):
    truth, said = rng.random((2, 21, 4)) < 0.3
    truth[:, 2] = said[:, 1] = False
    weights = rng.random(21)
    call = partial(same, name, average=average, **AVERAGED[name])
    for zero_division in ("warn", 1, np.nan):
        call(truth.astype(int), said.astype(int), zero_division=zero_division)
    call(truth.astype(int), said.astype(int), sample_weight=weights, zero_division=0)
    for labels in ([3, 0], [3, 0, 3], []):
        for given in ({"zero_division": 0}, {}, {"sample_weight": weights}):
            call(truth.astype(int), said.astype(int), labels=labels, **given)
    call(scipy.sparse.csr_matrix(truth.astype(int)), scipy.sparse.csr_matrix(said.astype(int)))


@pytest.mark.parametrize("name", AVERAGED)
def test_two_classes(name, rng):
    truth, said = rng.integers(0, 2, (2, 30))
    for positive in (0, 1):
        same(name, truth, said, pos_label=positive, **AVERAGED[name])
    same(name, NAMES[truth], NAMES[said], pos_label="ant", **AVERAGED[name])
    same(name, truth * 0, said * 0, **AVERAGED[name])
    same(name, truth, said, average="macro", pos_label=0, **AVERAGED[name])


@pytest.mark.parametrize("name", OF_ALL_CLASSES)
def test_all_classes(name, rng):
    truth, said, weights = problem(rng)
    for given in ({}, {"sample_weight": weights}, {"sample_weight": weights.round() + 1}):
        same(name, truth, said, **given)
        same(name, NAMES[truth], NAMES[said], **given)
    if name == "confusion_matrix":
        for normalize in ("true", "pred", "all", None):
            for labels in ([4, 9, 1, 0], [4, 1, 4, 9, 9, 1], [1, 1]):
                same(name, truth, said, normalize=normalize, labels=labels)
    if name == "accuracy_score":
        same(name, truth, said, normalize=False)
        same(name, truth, said, normalize=False, sample_weight=weights)
    if name == "balanced_accuracy_score":
        same(name, truth, said, adjusted=True)


@pytest.mark.parametrize("name", OF_ALL_CLASSES)
def test_one_class(name):
    same(name, [1, 1], [1, 1])
    same(name, ["a", "a"], ["a", "a"], sample_weight=[2.0, 0.5])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_many_integers(dtype, rng):
    """They are told apart by a table, and not by a sort."""
    truth, said, weights = problem(rng, 2**16 + 3)
    truth, said = (np.where(y == 2, 90, y).astype(dtype) for y in (truth, said))
    truth, said = (y - (dtype != "uint8") * np.dtype(dtype).type(7) for y in (truth, said))
    for name in ("confusion_matrix", "matthews_corrcoef"):
        same(name, truth, said, sample_weight=weights)
    same("recall_score", truth.astype(truth.dtype.newbyteorder()), said, average=None)
    same("recall_score", truth > 1, said > 1)
    same("recall_score", (truth > 1).astype(int), (said > 1).astype(int))
    with pytest.raises(ValueError, match="multiclass but average='binary'"):
        ours.recall_score(truth, said)
    ends = np.iinfo(dtype).min, np.iinfo(dtype).max
    if dtype != "int64":
        same(
            "confusion_matrix", *(np.where(y > y.min(), *ends).astype(dtype) for y in (truth, said))
        )


@pytest.mark.parametrize("n", [70, 2**16 + 3])
def test_numbers_with_and_without_a_sign(n, rng):
    """Which NumPy would join in float64, where all of these are alike."""
    truth, said, _ = problem(rng, n)
    counts = ours.confusion_matrix(truth, said)
    without = said.astype(np.uint64)
    for alike in ((truth + 2**60, without + 2**60), (2 * truth + 2**53, 2.0 * said + 2**53)):
        np.testing.assert_array_equal(ours.confusion_matrix(*alike), counts)
    same("recall_score", truth, without, average=None)
    for apart in ((truth - 9, without + np.uint64(2**63)), (truth + 2**53 + 1, said + 2.0**53)):
        assert ours.confusion_matrix(*apart).trace() < counts.trace()


def test_whole_weights_of_which_64_bits_do_not_hold_the_sum(rng):
    truth, said, _ = problem(rng)
    for weights in (np.full(70, 2**60), np.full(70, 2**63, np.uint64)):
        same("accuracy_score", truth, said, sample_weight=weights)
        for name, options in AVERAGED.items():
            same(name, truth, said, average="macro", sample_weight=weights, **options)


def test_by_name():
    truth, said = ["b", "a", "b", "c"], ["b", "a", "c", "c"]
    by_class = ours.recall_score(truth, said, average=None, as_dict=True)
    assert by_class == {"a": 1.0, "b": 0.5, "c": 1.0}
    assert list(by_class) == ["a", "b", "c"]
    chosen = ours.f1_score(truth, said, average=None, labels=["c", "a"], as_dict=True)
    assert list(chosen) == ["c", "a"]
    assert chosen["c"] == pytest.approx(2 / 3)
    indicators = np.array([[1, 0], [1, 1]])
    value = ours.precision_score(indicators, indicators, average=None, as_dict=True)
    assert value == {0: 1.0, 1: 1.0}
    assert all(type(name) is int for name in value)
    with pytest.raises(ValueError, match="write average=None"):
        ours.recall_score(truth, said, average="macro", as_dict=True)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("mix of multiclass and multilabel", lambda: ours.f1_score([0, 1, 2], np.eye(3))),
        ("continuous is not supported", lambda: ours.accuracy_score([0.1, 0.2], [0.3, 0.1])),
        ("inconsistent numbers", lambda: ours.accuracy_score([0, 1], [0])),
        ("multioutput format is not", lambda: ours.roc_auc_score([[0, 2], [1, 0]], np.eye(2))),
        ("continuous format is not", lambda: ours.roc_auc_score([0.1, 0.7], [0.3, 0.1])),
        ("not a valid label", lambda: ours.recall_score([0, 1], [0, 1], pos_label=2)),
        ("outside of multilabel", lambda: ours.recall_score([0], [1], average="samples")),
        ("n labels", lambda: ours.f1_score(np.eye(3), np.eye(3), average=None, labels=[3])),
        ("Mix of label input types", lambda: ours.accuracy_score(["a", "b"], [0, 1])),
        ("average has to be", lambda: ours.recall_score([0], [1], average="mean")),
        ("zero_division", lambda: ours.recall_score([0], [1], zero_division=2)),
        ("beta must be", lambda: ours.fbeta_score([0], [1], beta=-1)),
        ("normalize must be", lambda: ours.confusion_matrix([0], [1], normalize="rows")),
        ("is not supported", lambda: ours.confusion_matrix(np.eye(3), np.eye(3))),
        ("1D array or scalar", lambda: ours.accuracy_score([0], [1], sample_weight=[[1.0]])),
        ("NaN", lambda: ours.accuracy_score([0], [1], sample_weight=[np.nan])),
    ],
)
def test_errors(words, call):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", [*OF_ALL_CLASSES, "f1_score", "roc_auc_score", "ndcg_score"])
def test_no_negative_weights(name):
    rows = [0, 1, 1] if name != "ndcg_score" else [[0, 1, 1]] * 3
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1: write 0"):
        getattr(ours, name)(rows, rows, sample_weight=[1, -1, 1])


def test_more_classes_than_are_padded_to(rng):
    truth, said = rng.integers(0, 20, (2, 90))
    for name in ("confusion_matrix", "matthews_corrcoef"):
        same(name, truth, said)
    same("recall_score", truth, said, average="macro", zero_division=0)


def test_many_fractions_are_no_classes():
    fractions = np.linspace(0, 1, 2**16 + 3)
    with pytest.raises(ValueError, match="continuous is not supported"):
        ours.accuracy_score(fractions, fractions)
