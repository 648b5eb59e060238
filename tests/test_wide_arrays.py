"""NumPy's 64-bit arrays while x64 mode is off: JAX takes whole numbers modulo 2^32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics import losses, streaming

SCORES = np.array([1, 2, 2**32 + 3, 4])
LABELS = np.array([0, 1, 0, 1])
BINS = streaming.uniform_bins(8, low=0.0, high=8.0)
KL = losses.kl_partial_auc


def streamed(scores):
    state = streaming.update(streaming.init(BINS), scores, LABELS, bins=BINS)
    return jm.roc_auc(streaming.table(state, bins=BINS))


TAKERS = {
    "stream": streamed,
    "means": lambda x: streaming.means.result(streaming.means.update(streaming.means.init(), x)),
    "pairwise": lambda x: losses.pairwise_auc_loss(x, LABELS),
    "weights": lambda x: losses.average_precision_loss([0.1, 0.5, 0.2, 0.4], LABELS, weights=x),
    "mini-batch": lambda x: KL.apply(KL.init(4), x, LABELS, np.arange(4))[0],
    "ndcg scores": lambda x: losses.approx_ndcg_loss(x, LABELS),
    "ndcg labels": lambda x: losses.approx_ndcg_loss([0.1, 0.5, 0.2, 0.4], x),
}


@pytest.mark.parametrize("name", TAKERS)
def test_the_same_as_floats(name):
    found, expected = (TAKERS[name](x) for x in (SCORES, SCORES.astype(float)))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_counts_of_large_weights(dtype):
    weights = np.full(4, 2**62, dtype)
    predictions = np.array([0, 1, 1, 1])
    for metric in (jm.balanced_accuracy, jm.matthews_corrcoef, jm.recall):
        assert metric(predictions, LABELS, weights=weights) == metric(predictions, LABELS)
    matrix = jm.confusion_matrix(predictions, LABELS, weights=weights)
    np.testing.assert_array_equal(matrix, 2.0**62 * np.array([[1, 1], [0, 2]]))


def test_a_traced_segment_out_of_range_makes_the_losses_of_its_row_nan():
    loss = jax.jit(
        lambda ids: losses.approx_ndcg_loss(
            [0.1, 0.5, 0.2, 0.4],
            LABELS,
            segments=ids,
            num_segments=2,
            where=np.array([True, True, True, False]),
        )
    )
    assert np.all(np.isfinite(loss(jnp.array([0, 0, 1, 7]))))
    for astray in (2, -1):
        assert np.all(np.isnan(loss(jnp.array([0, 0, astray, 0]))))


@pytest.mark.parametrize("metric", [jm.roc_auc, jm.ndcg])
def test_vmap_outside_of_jit_says_what_to_write(metric):
    scores, labels = np.random.default_rng(0).random((2, 4)), np.array([LABELS, LABELS])
    with pytest.raises(TypeError, match=r"vmap and jvp outside of jit.*jax\.jit\(jax\.vmap"):
        jax.vmap(metric)(scores, labels)
    expected = metric(scores, labels)
    for found in (jax.jit(jax.vmap(metric)), jax.vmap(metric)):
        np.testing.assert_allclose(found(jnp.asarray(scores), jnp.asarray(labels)), expected, 1e-6)


def test_jvp_outside_of_jit_says_what_to_write():
    weights = np.ones(4)
    with pytest.raises(TypeError, match=r"vmap and jvp outside of jit.*jax\.numpy\.asarray"):
        jax.jvp(lambda w: jm.roc_auc(weights, LABELS, weights=w), (weights,), (weights,))
