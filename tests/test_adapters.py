"""Metrics of streams inside the training loops of other libraries, by their own packages."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm

S = jm.streaming
RECALL = partial(jm.recall_at_fpr, max_fpr=0.1)


@pytest.fixture
def batches(rng):
    labels = rng.random((5, 64)) < 0.3
    scores = rng.normal(size=(5, 64)).astype(np.float32) + labels
    return scores, labels


def whole(metric, scores, labels, **given):
    bins = S.float16_bins()
    state = S.init(bins, weighted="weights" in given)
    given = {name: np.ravel(x) for name, x in given.items()}
    state = S.update(state, np.ravel(scores), np.ravel(labels), bins=bins, **given)
    return metric(S.table(state, bins=bins))


def test_nnx(batches):
    """Alone, as one of several, under nnx.jit, and reset."""
    nnx = pytest.importorskip("flax.nnx")
    scores, labels = batches
    metrics = nnx.MultiMetric(
        auc=S.nnx_metric(jm.roc_auc),
        recall=S.nnx_metric(RECALL, bins=S.uniform_bins(1000, -5.0, 6.0)),
        loss=nnx.metrics.Average("loss"),
    )

    @nnx.jit
    def step(metrics, scores, labels):
        metrics.update(scores=scores, labels=labels, loss=scores.mean())

    for batch in zip(scores, labels, strict=True):
        step(metrics, *batch)
    found = metrics.compute()
    assert_allclose(found["auc"], whole(jm.roc_auc, scores, labels), rtol=1e-6)
    assert_allclose(found["recall"], RECALL(scores.ravel(), labels.ravel()), atol=0.02)
    assert_allclose(found["loss"], scores.mean(), rtol=1e-5)
    metrics.reset()
    assert np.isnan(metrics.compute()["auc"])
    weighted = S.nnx_metric(jm.roc_auc, weighted=True)
    weights = np.ones_like(scores[0]) / 2
    weighted.update(scores=scores[0], labels=labels[0], weights=weights)
    assert_allclose(weighted.compute(), whole(jm.roc_auc, scores[0], labels[0], weights=weights))
    graph, state = nnx.split(weighted)
    assert len(jax.tree.leaves(state)) == 1
    assert_allclose(nnx.merge(graph, state).compute(), weighted.compute())


def test_clu(batches):
    """Batch by batch, over an axis of devices, masked, and as one of a collection."""
    clu = pytest.importorskip("clu.metrics")
    scores, labels = batches
    kind = S.clu_metric(jm.roc_auc)
    metric = kind.empty()
    of_batch = jax.jit(kind.from_model_output)
    for batch in zip(scores, labels, strict=True):
        metric = metric.merge(of_batch(*batch))
    expected = whole(jm.roc_auc, scores, labels)
    assert_allclose(metric.compute(), expected)
    stacked = jax.vmap(kind.from_model_output)(scores, labels)
    assert_array_equal(stacked.reduce().digits, metric.digits)
    half = np.arange(64) < 32
    masked = kind.from_model_output(scores[0], labels[0], mask=jnp.asarray(half, jnp.float32))
    assert_allclose(masked.compute(), whole(jm.roc_auc, scores[0, :32], labels[0, :32]))
    yes_or_no = kind.from_model_output(scores[0], labels[0], mask=half)
    assert_array_equal(yes_or_no.digits, masked.digits)
    with pytest.raises(ValueError, match=r"mask must be 0 and 1, got 0\.5: other numbers"):
        kind.from_model_output(scores[0], labels[0], mask=jnp.where(half, 1, 0.5))
    weights = np.linspace(0, 1, 64, dtype=np.float32)
    weighted = S.clu_metric(jm.roc_auc, weighted=True)
    found = weighted.from_model_output(scores[0], labels[0], sample_weights=weights)
    assert_allclose(found.compute(), whole(jm.roc_auc, scores[0], labels[0], weights=weights))

    together = clu.Collection.create(auc=kind, recall=S.clu_metric(RECALL))
    total = together.single_from_model_output(predictions=scores[0], labels=labels[0])
    for batch in zip(scores[1:], labels[1:], strict=True):
        more = together.single_from_model_output(predictions=batch[0], labels=batch[1])
        total = total.merge(more)
    assert_allclose(total.compute()["auc"], expected)


def test_metrax_is_served_alike(batches):
    """The same loop for a metric of metrax and for one of ours."""
    metrax = pytest.importorskip("metrax")
    scores, labels = batches
    probabilities = 1 / (1 + np.exp(-scores))
    for kind in (metrax.AUCROC, S.clu_metric(jm.roc_auc)):
        metric = kind.empty()
        for batch in zip(probabilities, labels, strict=True):
            metric = metric.merge(kind.from_model_output(predictions=batch[0], labels=batch[1]))
        assert_allclose(metric.compute(), jm.roc_auc(scores.ravel(), labels.ravel()), atol=0.01)
