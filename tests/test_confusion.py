"""Metrics of hard predictions: by hand, against scikit-learn, and what must hold of them."""

import logging
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as theirs
from fast import marked

import jaxmetrics as jm

C = 5
# ours and scikit-learn's, of averages over classes
AVERAGED = {
    "recall": (jm.recall, theirs.recall_score),
    "precision": (jm.precision, theirs.precision_score),
    "f_beta": (partial(jm.f_beta, beta=0.5), partial(theirs.fbeta_score, beta=0.5)),
}
METRICS = {
    **{name: partial(ours, average="macro") for name, (ours, _) in AVERAGED.items()},
    "specificity": partial(jm.specificity, average="macro"),
    "binary": partial(jm.recall, positive_class=2),
    "balanced_accuracy": jm.balanced_accuracy,
    "matthews_corrcoef": jm.matthews_corrcoef,
    "confusion_matrix": jm.confusion_matrix,
    "accuracy": lambda predictions, labels, n_classes=None, **o: jm.accuracy(
        predictions, labels, **o
    ),
}
# One for each way to count; the rest are other formulas of the same counts.
COUNTING = ("recall", "binary", "matthews_corrcoef", "confusion_matrix", "accuracy")
EVERY_METRIC = pytest.mark.parametrize(
    "metric", [marked(x, fast=name in COUNTING) for name, x in METRICS.items()], ids=METRICS
)
EVERY_COUNT = pytest.mark.parametrize("metric", [METRICS[n] for n in COUNTING], ids=COUNTING)
AVERAGES = ("micro", "macro", "weighted", None)
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
PREDICTIONS = np.array([0, 0, 1, 1, 2, 2, 2, 2, 0])


def close(a, b, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def problem(rng, n=60, n_classes=C, batch=()):
    """Predictions and labels, in which every class occurs, and weights."""
    labels = rng.integers(0, n_classes, (*batch, n))
    labels[..., :n_classes] = np.arange(n_classes)
    predictions = np.where(
        rng.random((*batch, n)) < 0.6, labels, rng.integers(0, n_classes, (*batch, n))
    )
    predictions[..., :n_classes] = np.arange(n_classes)
    return predictions, labels, rng.random((*batch, n)) + 0.1


def test_confusion_matrix_by_hand():
    matrix = jm.confusion_matrix(PREDICTIONS, LABELS)
    assert matrix.dtype == jnp.int32
    assert matrix.tolist() == [[2, 1, 0], [0, 1, 1], [1, 0, 3]]
    weighted = jm.confusion_matrix(PREDICTIONS, LABELS, weights=np.arange(9.0))
    assert weighted.tolist() == [[1, 2, 0], [0, 3, 4], [8, 0, 18]]


def test_averages_by_hand():
    by_class = partial(jm.recall, PREDICTIONS, LABELS)
    close(by_class(average=None), [2 / 3, 1 / 2, 3 / 4])
    close(by_class(average="macro"), (2 / 3 + 1 / 2 + 3 / 4) / 3)
    close(by_class(average="micro"), 6 / 9)
    close(by_class(average="weighted"), 6 / 9)
    close(by_class(average=None, classes=[2, 0]), [3 / 4, 2 / 3])
    close(by_class(average="macro", classes=[2, 0]), (3 / 4 + 2 / 3) / 2)
    close(by_class(average="micro", classes=[2, 0]), 5 / 7)
    close(jm.precision(PREDICTIONS, LABELS, average=None), [2 / 3, 1 / 2, 3 / 4])
    close(jm.specificity(PREDICTIONS, LABELS, average=None), [5 / 6, 6 / 7, 4 / 5])
    close(jm.f_beta(PREDICTIONS, LABELS, beta=2, average=None, classes=[0]), [10 / 15])
    close(jm.accuracy(PREDICTIONS, LABELS), 6 / 9)
    close(jm.balanced_accuracy(PREDICTIONS, LABELS), (2 / 3 + 1 / 2 + 3 / 4) / 3)


def test_binary_by_hand():
    predictions, labels = [1, 1, 0, 1, 0, 0], [1, 0, 0, 1, 1, 0]
    close(jm.recall(predictions, labels), 2 / 3)
    close(jm.recall(predictions, labels, positive_class=0), 2 / 3)
    close(jm.precision(predictions, labels), 2 / 3)
    close(jm.specificity(predictions, labels), 2 / 3)
    close(jm.f_beta(predictions, labels), 2 / 3)
    close(jm.matthews_corrcoef(predictions, labels), 1 / 3)
    close(jm.recall(np.array(predictions, bool), np.array(labels, bool)), 2 / 3)
    close(jm.recall(PREDICTIONS, LABELS, positive_class=2), 3 / 4)
    close(jm.recall(PREDICTIONS, LABELS, n_classes=3), 1 / 2)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "weighted", "averages", "positives"),
    [
        ("recall", True, AVERAGES, (0, 1)),
        ("precision", True, AVERAGES[:2], (0,)),
        ("f_beta", True, AVERAGES[2:], (1,)),
        # The averages are those of any rate.
        marked("recall", False, AVERAGES, (0, 1), fast=False),
        marked("precision", True, AVERAGES[2:], (1,), fast=False),
        marked("f_beta", True, AVERAGES[:2], (0,), fast=False),
    ],
)
def test_averages_against_sklearn(name, weighted, averages, positives, rng):
    ours, reference = AVERAGED[name]
    predictions, labels, weights = problem(rng)
    keep = rng.random(len(labels)) < 0.8
    keep[:C] = True
    given = {"weights": weights} if weighted else {}
    expected_given = {"sample_weight": weights[keep]} if weighted else {}
    for average in averages:
        for classes in ([3, 1],) if weighted else (None, [3, 1]):
            value = ours(predictions, labels, where=keep, average=average, classes=classes, **given)
            expected = reference(
                labels[keep], predictions[keep], labels=classes, average=average, **expected_given
            )
            close(value, expected, rtol=1e-14)
    two = (predictions > 1).astype(int), (labels > 1).astype(int)
    for positive in positives:
        value = ours(*two, where=keep, positive_class=positive, **given)
        expected = reference(two[1][keep], two[0][keep], pos_label=positive, **expected_given)
        close(value, expected, rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_metrics_of_all_classes_against_sklearn(rng):
    predictions, labels, weights = problem(rng)
    given, theirs_given = {"weights": weights}, {"sample_weight": weights}
    for name, reference in (
        ("accuracy", theirs.accuracy_score),
        ("balanced_accuracy", theirs.balanced_accuracy_score),
        ("matthews_corrcoef", theirs.matthews_corrcoef),
        ("confusion_matrix", theirs.confusion_matrix),
    ):
        ours = getattr(jm, name)
        close(ours(predictions, labels), reference(labels, predictions), rtol=1e-14)
        value = ours(predictions, labels, **given)
        close(value, reference(labels, predictions, **theirs_given), rtol=1e-14)


@pytest.mark.parametrize("number", [0.0, 1.0])
def test_zero_division_against_sklearn(number):
    # Class 2 is never predicted, 3 does not occur, 4 neither.
    labels, predictions = np.array([0, 1, 2, 0]), np.array([0, 1, 3, 1])
    for ours, reference in AVERAGED.values():
        for average in (None, "macro", "micro", "weighted"):
            value = ours(predictions, labels, n_classes=5, average=average, zero_division=number)
            expected = reference(
                labels, predictions, labels=range(5), average=average, zero_division=number
            )
            close(value, expected)


def test_undefined():
    labels, predictions = np.array([0, 1, 2, 0]), np.array([0, 1, 3, 1])
    recalls = jm.recall(predictions, labels, n_classes=5, average=None)
    assert np.isnan(recalls).tolist() == [False, False, False, True, True]
    precisions = jm.precision(predictions, labels, n_classes=5, average=None)
    assert np.isnan(precisions).tolist() == [False, False, True, False, True]
    f = jm.f_beta(predictions, labels, n_classes=5, average=None)
    assert np.isnan(f).tolist() == [False, False, False, False, True]
    for metric in (jm.recall, jm.precision, jm.f_beta):
        assert np.isnan(metric(predictions, labels, n_classes=5, average="macro"))
    close(jm.recall(predictions, labels, n_classes=5, average="weighted"), 2 / 4)
    assert np.isnan(jm.precision(predictions, labels, n_classes=5, average="weighted"))
    close(jm.balanced_accuracy(predictions, labels, n_classes=5), (1 / 2 + 1 + 0) / 3)
    assert np.isnan(jm.matthews_corrcoef(predictions, np.zeros(4, int)))
    assert jm.matthews_corrcoef(predictions, np.zeros(4, int), zero_division=0) == 0
    assert np.isnan(jm.recall([1, 1], [0, 0]))
    assert jm.recall([1, 1], [0, 0], zero_division=1) == 1


@EVERY_COUNT
def test_nothing_is_undefined(metric):
    no_item = metric(np.zeros((2, 0), int), np.zeros(0, int), n_classes=C)
    none, ones = np.zeros(9, bool), np.ones(9)
    masked = metric(LABELS, LABELS, where=none, weights=ones, n_classes=C)
    weightless = metric(LABELS, LABELS, where=~none, weights=0 * ones, n_classes=C)
    for value in (no_item, masked, weightless):
        value = np.asarray(value)
        assert np.isnan(value).all() or not value.any()
        assert np.isnan(value).all() or metric is jm.confusion_matrix
    assert len(no_item) == 2


@EVERY_COUNT
def test_order_weights_and_where(metric, rng):
    predictions, labels, weights = problem(rng)
    expected = metric(predictions, labels, weights=weights, n_classes=C)
    order = rng.permutation(len(labels))
    close(metric(predictions[order], labels[order], weights=weights[order], n_classes=C), expected)
    # As many items as are kept below, so that both are one program.
    copies = np.append(np.ones(C, int), rng.multinomial(40, np.full(55, 1 / 55)))
    repeated = np.repeat(predictions, copies), np.repeat(labels, copies)
    close(metric(predictions, labels, weights=copies, n_classes=C), metric(*repeated, n_classes=C))
    keep = np.append(np.ones(C, bool), rng.permutation(55) < 40)
    expected = metric(predictions[keep], labels[keep], n_classes=C)
    for garbage in (-1, 10**12):
        spoiled = np.where(keep, predictions, garbage), np.where(keep, labels, -7)
        close(metric(*spoiled, where=keep, n_classes=C), expected)
        no_weights = np.where(keep, 2.5, np.nan)
        value = metric(*spoiled, weights=no_weights, where=keep, n_classes=C)
        close(value, expected * 2.5 if metric is jm.confusion_matrix else expected)


def test_relabelling(rng, x64):
    predictions, labels, _ = problem(rng)
    new = rng.permutation(C)
    for metric in METRICS.values():
        expected, value = metric(predictions, labels), metric(new[predictions], new[labels])
        if metric is jm.confusion_matrix:
            close(value[np.ix_(new, new)], expected)
        elif metric is not METRICS["binary"]:
            close(value, expected)
    by_class = jm.recall(new[predictions], new[labels], average=None)
    close(by_class[new], jm.recall(predictions, labels, average=None))


@EVERY_COUNT
def test_batch_and_transforms(metric, rng):
    predictions, _, _ = problem(rng, batch=(3, 1))
    _, labels, weights = problem(rng, batch=(2,))
    value = np.asarray(metric(predictions, labels, weights=weights, n_classes=C))
    assert value.shape[:2] == (3, 2)
    compiled = jax.jit(lambda p, y, w: metric(p, y, weights=w, n_classes=C))
    for i in range(3):
        for j in range(2):
            close(value[i, j], compiled(predictions[i, 0], labels[j], weights[j]))
    of_rows = jax.vmap(lambda p: metric(p, labels[0], weights=weights[0], n_classes=C))
    close(of_rows(jnp.asarray(predictions[:, 0])), value[:, 0])


@EVERY_COUNT
def test_traced_indices_out_of_range_are_undefined(metric, rng):
    predictions, labels, weights = problem(rng)
    compiled = jax.jit(lambda p, y, w: metric(p, y, weights=w, n_classes=C))
    for index in (-1, C, 2**31 - 1):
        if metric is METRICS["accuracy"] and index > 0:
            continue
        spoiled = np.where(np.arange(len(labels)) == 7, index, predictions)
        assert np.isnan(compiled(spoiled, labels, weights)).all()
        assert np.isnan(compiled(labels, spoiled, weights)).all()
    assert np.isnan(compiled(predictions, labels, -weights)).all()


def test_a_traced_index_out_of_range_makes_every_count_undefined(rng):
    predictions, labels, _ = problem(rng)
    spoiled = np.where(np.arange(len(labels)) == 7, -1, predictions)
    counts = jax.jit(partial(jm.confusion_matrix, n_classes=C))(spoiled, labels)
    assert (counts == -1).all()


@pytest.mark.usefixtures("x64")
@EVERY_METRIC
def test_gradient_by_weights(metric, rng):
    predictions, labels, weights = problem(rng, n=20)
    keep = np.arange(20) != 9
    spoiled = np.where(keep, predictions, -1)

    def value(w):
        return jnp.sum(metric(spoiled, labels, weights=w, where=keep, n_classes=C) ** 2)

    compiled = jax.jit(jax.value_and_grad(value))
    gradient = np.asarray(compiled(weights)[1])
    assert gradient[9] == 0
    for i in (0, 13):
        step = 1e-5 * (np.arange(20) == i)
        difference = (compiled(weights + step)[0] - compiled(weights - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-6, atol=1e-9)


def test_gradients_where_undefined_are_finite():
    metrics = (jm.recall, jm.precision, jm.f_beta, jm.specificity, jm.matthews_corrcoef)
    values = jax.jacobian(lambda w: [metric([0, 0], [0, 0], weights=w) for metric in metrics])
    for gradient in jax.jit(values)(jnp.ones(2)):
        assert np.isfinite(gradient).all()


def test_what_is_zero_is_exactly_so(rng):
    """A difference of sums of weights might leave a rest, and a class be defined by it."""
    weights = rng.random(1001)
    ones = np.ones(1001, int)
    wrong = np.arange(1001) % 3
    for options in ({}, {"average": None, "classes": [1]}):
        value = jm.specificity(wrong, ones, weights=weights, n_classes=3, **options)
        assert np.isnan(value).all()
    assert np.isnan(jm.matthews_corrcoef(wrong, ones, weights=weights))
    assert jm.recall(ones, ones, weights=weights) == 1


def test_counts_beyond_single_precision():
    n = 2**24 + 3
    labels = np.ones(n, np.int8)
    predictions = (np.arange(n) > 0).astype(np.int8)
    assert jm.confusion_matrix(predictions, labels)[1, 1] == n - 1
    with jax.enable_x64(True):
        assert jm.recall(predictions, labels, average=None)[1] == (n - 1) / n


def test_dtypes(rng):
    predictions, labels, _ = problem(rng)
    expected = jm.recall(predictions, labels, average="macro", n_classes=300)
    for dtype in ("uint8", "int16", "uint64", "float32", jnp.bfloat16):
        value = jm.recall(
            predictions.astype(dtype), labels, average="macro", n_classes=300, zero_division=0
        )
        close(value, np.nanmean(jm.recall(predictions, labels, average=None)) * C / 300)
    assert np.isnan(expected)
    assert expected.dtype == jnp.float32
    lists = jm.recall(predictions.tolist(), labels.tolist(), average="macro")
    close(lists, jm.recall(jnp.asarray(predictions), jnp.asarray(labels), average="macro"))
    assert jm.accuracy(predictions, labels, where=labels.astype(float) > 1).dtype == jnp.float32


def test_one_compilation_a_shape(rng, caplog):
    predictions, labels, _ = problem(rng)
    call = partial(jm.f_beta, n_classes=C, average="macro")
    values = [call(predictions, labels)]
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        for beta, zero_division in ((0.5, 0), (2, 1.0), (3.0, np.float64("nan"))):
            values.append(call(predictions, labels, beta=beta, zero_division=zero_division))
        values.append(call(*problem(rng)[:2]))
    compiled = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]
    assert compiled == []
    assert len(set(map(float, values))) == 5


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "from 0, got -1", lambda: jm.recall([0, -1], [0, 1], average="macro")),
        (ValueError, "below 3, got 3", lambda: jm.confusion_matrix([0, 3], [0, 1], n_classes=3)),
        (ValueError, "average='macro'", lambda: jm.recall(PREDICTIONS, LABELS)),
        (ValueError, "average must be", lambda: jm.recall([0], [1], average="samples")),
        (ValueError, "positive_class=", lambda: jm.recall([0], [1], classes=[1])),
        (
            ValueError,
            "classes=[0]",
            lambda: jm.recall([0], [1], average="macro", positive_class=0),
        ),
        (ValueError, "distinct", lambda: jm.recall([0], [1], average=None, classes=[1, 1])),
        (
            ValueError,
            "classes must be below",
            lambda: jm.recall([0], [1], average=None, classes=[4], n_classes=3),
        ),
        (TypeError, "sequence", lambda: jm.recall([0], [1], average=None, classes=1)),
        (TypeError, "positive_class must be", lambda: jm.recall([0], [1], positive_class="a")),
        (TypeError, "searchsorted", lambda: jm.recall(["a"], ["b"])),
        (ValueError, "argmax", lambda: jm.recall([0.3], [1])),
        (TypeError, "zero_division", lambda: jm.recall([0], [1], zero_division="warn")),
        (ValueError, "zero_division", lambda: jm.recall([0], [1], zero_division=2)),
        (ValueError, "beta", lambda: jm.f_beta([0], [1], beta=-1)),
        (ValueError, "last axis", lambda: jm.accuracy([0, 1], [1])),
        (ValueError, "weights must be", lambda: jm.accuracy([0, 1], [1, 0], weights=[1, -1])),
        (TypeError, "where must be bool", lambda: jm.accuracy([0], [1], where=[1])),
        (TypeError, "labels is missing", lambda: jm.accuracy([0], None)),
        (
            TypeError,
            "n_classes=10",
            lambda: jax.jit(jm.confusion_matrix)(PREDICTIONS, LABELS),
        ),
        (
            TypeError,
            "class indices, got float32",
            lambda: jax.jit(jm.accuracy)(jnp.ones(2), jnp.ones(2)),
        ),
    ],
)
def test_errors(error, words, call):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def test_binary_needs_no_number_of_classes():
    compiled = jax.jit(jm.recall)
    close(compiled(jnp.array([1, 0, 1]), jnp.array([1, 1, 0])), 1 / 2)
    assert np.isnan(compiled(jnp.array([1, 0, 2]), jnp.array([1, 1, 0])))
    assert jm.recall([0, 1, 1], [1, 1, 0], where=[True, True, True]) == 0.5


@pytest.mark.parametrize("constant", [np.zeros(6, int), np.full(6, 2)], ids=["first", "last"])
def test_a_correlation_with_a_constant_is_undefined(rng, constant):
    """Sums of weights cancel up to rounding, which made 18 to 40 % of these cases defined."""
    weights, labels = rng.random((400, 6)), rng.integers(0, 3, (400, 6))
    weights[::2, 3:] = 0
    given = {"weights": weights, "n_classes": 3}
    for pair in ((constant, labels), (labels, constant)):
        assert np.isnan(jm.matthews_corrcoef(*pair, **given)).all()
        assert (jm.matthews_corrcoef(*pair, **given, zero_division=0) == 0).all()


def test_weights_of_any_size(rng, x64):
    predictions, labels, weights = problem(rng)
    for scale in (2.0**900, 2.0**-900):
        for metric in (jm.matthews_corrcoef, jm.balanced_accuracy, jm.accuracy):
            expected = metric(predictions, labels, weights=weights)
            assert metric(predictions, labels, weights=weights * scale) == expected


@pytest.mark.parametrize("name", ["confusion_matrix", "balanced_accuracy", "matthews_corrcoef"])
def test_raw_ids_as_classes(name):
    """These asked for an array of all ids that there could be, which ended the process."""
    with pytest.raises(ValueError, match=r"index is 1000000000, with 2 items: number the classes"):
        getattr(jm, name)([0, 10**9], [0, 1])
    with pytest.raises(ValueError, match=r"n_classes = 1,000,000,000,000 needs .* GB for the res"):
        getattr(jm, name)([0, 1], [0, 1], n_classes=10**12)


def test_more_classes_than_items():
    assert jm.confusion_matrix([5], [9]).shape == (10, 10)
    with pytest.raises(ValueError, match="index is 3000, with 1 items"):
        jm.recall([3000], [0], average="macro")
