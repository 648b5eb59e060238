"""Arrays that the caller writes over as soon as a call returns, as loops over files do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics.losses import approx_ndcg_loss, kl_partial_auc, pairwise_auc_loss

BINS = jm.streaming.uniform_bins(64)
CALLS = {
    "a stream": lambda s, y: jm.streaming.update(jm.streaming.init(BINS), s, y, bins=BINS).digits,
    "means": lambda s, y: (
        jm.streaming.means.update(jm.streaming.means.init(), s, where=jnp.asarray(y)).digits
    ),
    "a loss": lambda s, y: pairwise_auc_loss(s, y, surrogate="square"),
    "a loss of lists": approx_ndcg_loss,
    "a loss of batches": lambda s, y: kl_partial_auc.apply(
        kl_partial_auc.init(9), s[:999], y[:999], np.arange(999) % 9
    )[1],
    "cross entropy": jm.training.cross_entropy,
    "a list": jm.ordered_pair_accuracy,
    "predictions": lambda s, y: jm.recall(y, y ^ (np.arange(len(y)) % 2 == 0)),
}


def aligned(array):
    """A copy which begins where JAX takes the memory as it is."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    found = memory[begin : begin + array.nbytes].view(array.dtype)
    found[:] = array
    return found


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_buffer_may_be_written_over(call, rng):
    scores, labels = rng.random(50_000, np.float32), rng.random(50_000) < 0.2
    wanted = np.asarray(call(scores, labels))
    for _ in range(5):
        buffers = aligned(scores), aligned(labels)
        found = call(*buffers)
        for x in buffers:
            x[:] = 0
        np.testing.assert_array_equal(found, wanted)


def test_scores_of_a_checkpoint_may_be_donated():
    scores, labels = jnp.arange(40.0), np.arange(40) % 3 == 0
    state = jm.training.early_stopping(None, jm.roc_auc, scores, labels)
    jax.jit(lambda x: x + 1, donate_argnums=0)(scores)
    assert scores.is_deleted()
    assert jm.training.early_stopping(state, jm.roc_auc, jnp.ones(40), labels).last == 1
