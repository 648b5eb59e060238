"""Ids in 8 or 16 bits where there are more of them than such words can number: as in 64 bits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics import extreme
from jaxmetrics.losses import cvar_partial_auc, kl_partial_auc

N = 600
rng = np.random.default_rng(5)
SCORES, LABELS, WHERE = rng.normal(size=N), rng.random(N) < 0.4, rng.random(N) < 0.8
LISTS = {
    "ndcg": jm.ndcg,
    "ndcg of a function": partial(jm.ndcg, gain=jnp.square),
    "ordered_pair_accuracy": jm.ordered_pair_accuracy,
    "segment_roc_auc": jm.segment_roc_auc,
    "approx_ndcg_loss": jm.losses.approx_ndcg_loss,
}
LIMIT = {"max_fpr": 0.5}
KINDS = [(np.int8, 128), (np.uint8, 256)]


@pytest.mark.parametrize(("kind", "n_lists"), KINDS)
@pytest.mark.parametrize("metric", LISTS.values(), ids=LISTS)
def test_lists(metric, kind, n_lists):
    ids = np.arange(N) % 100
    whole = partial(metric, SCORES, LABELS, num_segments=n_lists)
    for where in (None, WHERE):
        want = whole(segments=ids, where=where)
        np.testing.assert_array_equal(whole(segments=ids.astype(kind), where=where), want)


@pytest.mark.parametrize(("kind", "n_lists"), KINDS)
@pytest.mark.parametrize("name", ["ndcg", "segment_roc_auc"])
def test_lists_in_a_program(name, kind, n_lists):
    def values(ids):
        return LISTS[name](SCORES, LABELS, segments=ids, num_segments=n_lists, where=WHERE)

    ids = np.arange(N) % n_lists
    got = jax.jit(values)(ids.astype(kind))
    np.testing.assert_allclose(got, values(ids), rtol=1e-6)


@pytest.mark.parametrize(("kind", "n_groups"), KINDS)
def test_groups_of_labels(kind, n_groups):
    predicted = np.stack([rng.permutation(100)[:5] for _ in range(40)])
    relevant = np.stack([rng.permutation(100)[:30] for _ in range(40)])
    groups = np.arange(100) % 4
    for metric in (extreme.precision_at_k, extreme.positive_coverage_at_k):
        of = partial(metric, predicted, relevant, k=3, num_groups=n_groups)
        np.testing.assert_array_equal(of(groups=groups.astype(kind)), of(groups=groups))


@pytest.mark.parametrize(("kind", "n_slots"), [*KINDS, (np.uint8, 1000)])
@pytest.mark.parametrize(("loss", "options"), [(kl_partial_auc, {}), (cvar_partial_auc, LIMIT)])
def test_slots_of_a_loss(loss, options, kind, n_slots):
    index = np.array([44, 1, 2, 50])
    batch = np.array([0.5, 0.2, 0.9, 0.4]), np.array([1, 0, 0, 1])
    for slots in (index.astype(kind), jnp.asarray(index.astype(kind))):
        state = loss.init(n_slots)
        got, want = (loss.apply(state, *batch, x, **options) for x in (slots, index))
        jax.tree.map(np.testing.assert_array_equal, got, want)
