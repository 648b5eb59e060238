"""Metrics of hard predictions: invariances, transformations, gradients, and counts of any size."""

import logging
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from predicted import COUNTING, EVERY_COUNT, METRICS, C, close, problem

import jaxmetrics as jm

EVERY_METRIC = pytest.mark.parametrize(
    "metric", [marked(x, fast=name in COUNTING) for name, x in METRICS.items()], ids=METRICS
)


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


def test_nothing_is_compiled_for_any_length(rng, caplog):
    predictions, labels, weights = problem(rng)
    values = []
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        for n in (60, 59, 58):
            for metric in METRICS.values():
                values.append(metric(predictions[:n], labels[:n], n_classes=C))
                metric(predictions[:n], labels[:n], weights=weights[:n], n_classes=C)
    compiled = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]
    assert compiled == []
    assert all(isinstance(x, jax.Array) for x in values)


@EVERY_METRIC
def test_programs_count_as_the_host(metric, rng):
    predictions, labels, weights = problem(rng)
    predictions = np.stack([predictions, labels, rng.permutation(predictions)])
    where = rng.random(predictions.shape) < 0.7
    for given in (
        {},
        {"where": where},
        {"weights": weights},
        {"weights": (8 * weights).astype(int)},
    ):
        call = partial(metric, n_classes=C, **given)
        found, expected = call(predictions, labels), jax.jit(call)(predictions, labels)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


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


def test_a_matrix_that_memory_cannot_hold_is_refused():
    """Its size is that of all pairs of classes."""
    with pytest.raises(ValueError, match="n_classes = 10,000,000 needs 800,000 GB"):
        jm.confusion_matrix([0, 1], [0, 1], n_classes=10**7)


def test_more_classes_than_items():
    assert jm.confusion_matrix([5], [9]).shape == (10, 10)
    with pytest.raises(ValueError, match="index is 3000, with 1 items"):
        jm.recall([3000], [0], average="macro")
