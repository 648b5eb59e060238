"""Losses of many items, of which only those that count are sorted."""

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.losses import _evaluated, _head

HEADS = {
    "sigmoid": jm.losses.partial_auc_loss,
    "squared_hinge": partial(jm.losses.partial_auc_loss, surrogate="squared_hinge"),
    "recall": jm.losses.recall_at_fpr_loss,
}


@pytest.mark.parametrize(
    ("name", "positive", "wide"),
    [
        ("recall", 0.05, True),
        pytest.param("recall", 0.05, False, marks=pytest.mark.slow),
        pytest.param("squared_hinge", 0.05, False, marks=pytest.mark.slow),
        pytest.param("sigmoid", 0.05, False, marks=pytest.mark.slow),
        pytest.param("sigmoid", 0.05, True, marks=pytest.mark.slow),
        pytest.param("sigmoid", 0.5, False, marks=pytest.mark.slow),
        pytest.param("squared_hinge", 0.05, True, marks=pytest.mark.slow),
    ],
)
def test_the_head_alone_gives_the_same(name, positive, wide, rng, monkeypatch):
    """Of many items with weights, a mask and ties: values, slopes, and slopes of slopes."""
    loss = HEADS[name]
    n = 9000
    labels = rng.random(n) < positive
    scores = (rng.normal(size=n) + labels).round(3).astype("float64" if wide else "float32")
    # Sums of whole numbers are exact in float32, too, so that the edge of the set is the same.
    weights, where = rng.random(n) + 0.1 if wide else rng.integers(1, 4, n), rng.random(n) < 0.9
    along = rng.normal(size=n).astype(scores.dtype)

    def found(scores, band, max_fpr):
        def of(scores, max_fpr):
            options = {"weights": weights, "where": where, "band": band, "max_fpr": max_fpr}
            return loss(scores, labels, **options)

        slopes_of = jax.value_and_grad(of, argnums=(0, 1))
        return jax.jvp(slopes_of, (scores, max_fpr), (along, 0.0))

    with jax.enable_x64(wide):
        runs = {}
        for least in (0, 1 << 20):
            monkeypatch.setattr(_head, "one_by_one", lambda n, least=least: n >= least)
            _evaluated._loss_of_rows.clear_cache()
            program = jax.jit(lambda *given: found(*given))  # a function that has no program yet
            runs[least] = [program(scores, band, 0.05) for band in (0.0, 0.01, 0.1, 0.5)]
        _evaluated._loss_of_rows.clear_cache()
    if not wide:  # whose second slopes have errors of 1e-5 by either way
        runs = {least: [slopes for slopes, _ in each] for least, each in runs.items()}
    # In float32 sums of n terms round in another order; sqrt(n) times the spacing at 1 is 1.1e-5.
    relative = 1e-12 if wide else 1e-5
    for head, whole in zip(*(jax.tree.leaves(x) for x in runs.values()), strict=True):
        assert_allclose(head, whole, rtol=0, atol=relative * np.abs(whole).max())


def test_a_row_alone_has_the_loss_of_a_batch(rng):
    """A batch under vmap sorts all items."""
    labels = rng.random(9000) < 0.05
    scores = (rng.normal(size=9000) + labels).astype("float32")
    loss = partial(HEADS["squared_hinge"], max_fpr=0.05)
    (expected,) = jax.vmap(loss, (0, None))(scores[None], labels)
    assert_allclose(loss(scores, labels), expected, rtol=1e-5)


def test_the_head_is_used_where_it_suffices(rng, monkeypatch):
    """And not for a batch under vmap, whose conditions would take both branches, nor with too many
    positives."""
    used = []

    def noted(row, kept, capacity):
        jax.debug.callback(lambda: used.append(capacity))
        return in_order(row, kept, capacity)

    in_order = _head._in_order
    monkeypatch.setattr(_head, "_in_order", noted)
    _evaluated._loss_of_rows.clear_cache()
    n = 9000
    scores = rng.normal(size=n).astype("float32")

    @jax.jit
    def recall(scores, labels, max_fpr, band):
        return jm.losses.recall_at_fpr_loss(scores, labels, max_fpr=max_fpr, band=band)

    def capacities(loss, labels, scores, max_fpr=0.05, band=0.5):
        used.clear()
        jax.block_until_ready(loss(scores, labels, max_fpr, band))
        jax.effects_barrier()
        return set(used)

    few, many = rng.random(n) < 0.05, rng.random(n) < 0.5
    assert capacities(recall, few, scores) == {n // 2}
    assert capacities(recall, few, scores, band=0.0) == {n // 8}
    assert capacities(recall, few, scores, max_fpr=0.9) == {None}
    batch = np.stack([scores, -scores])
    of_batch = jax.vmap(recall, in_axes=(0, None, None, None))
    assert capacities(of_batch, few, batch) == {None}
    assert capacities(recall, many, scores) == {n // 2}
    _evaluated._loss_of_rows.clear_cache()
