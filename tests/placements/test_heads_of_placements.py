"""The head of the items suffices, or all are looked through."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics._base import host
from jaxmetrics._roc import host_placements, selection

WITH_HEAD = {
    "area": jm.partial_auc,
    "corner": partial(jm.partial_auc, min_fpr=0.03, min_tpr=0.2, scale="mcclish"),
    "recall": partial(jm.recall_at_fpr, method="linear"),
}
HEADS = {"few": (1, 99, 70), "fitting": (4, 16, 71), "whole": (99, 16, 72)}


@pytest.fixture(params=HEADS)
def n_of_heads(request, monkeypatch):
    """Short rows have a head: it always fits, or sometimes, or never. A number of items for each.

    A compiled program is kept for its shape. The sample is all items, or often too small.
    """
    part, sample, n = HEADS[request.param]
    monkeypatch.setattr(host, "LONG", 0)
    monkeypatch.setattr(host_placements, "_FEW_ITEMS", 0)
    for way in (host_placements, selection):
        monkeypatch.setattr(way, "_SAMPLE", sample)
        monkeypatch.setattr(way, "_MARGIN", 0)
    monkeypatch.setattr(selection, "_PART", part)
    return n


def _with_head(rng, n, dtype):
    values = rng.choice([3, 9, 100, 10**6])
    scores = rng.integers(0, values, n) * 100 / values
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], n, p=[0.3, 0.3, 0.2, 0.19, 0.01])
    if dtype not in ("int8", "bool"):
        scores = np.where(rng.random(n) < 0.2, odd, scores)
    labels = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.1, 0.5, 0.3, 0.1])
    return scores.astype(jnp.dtype(dtype)), labels, rng.random(n) < rng.choice([0.2, 0.9])


@pytest.mark.parametrize(
    ("name", "n_of_heads", "kind"),
    [
        marked(name, head, kind, fast=i == j == kind or (i, j, kind) == (0, 1, 3))
        for i, name in enumerate(WITH_HEAD)
        for j, head in enumerate(HEADS)
        for kind in range(4)
    ],
    indirect=["n_of_heads"],
)
def test_heads(name, n_of_heads, kind):
    """Only the items above the end of a window are sorted, or all where these are too many."""
    metric = WITH_HEAD[name]
    rng = np.random.default_rng(5)
    few, several = np.float32([0.1, 0.6]), np.float32([[0.05, 0.3]])
    compiled = jax.jit(lambda *x: metric(*x[:2], where=x[2], max_fpr=x[3]))
    kinds = (
        ("float32", few, False),
        ("float32", several, True),
        ("float16", few, True),
        ("int8", few, False),
    )
    dtype, limits, masked = kinds[kind]
    for limit in [*limits] * 4:
        scores, labels, where = _with_head(rng, n_of_heads, dtype)
        given = scores, labels, where if masked else None, limit
        on_host = metric(*given[:2], where=given[2], max_fpr=limit)
        np.testing.assert_array_equal(on_host, compiled(*given), err_msg=f"{given}")


@pytest.mark.parametrize(
    ("name", "n_of_heads"),
    [
        marked(name, head, fast=i == j == 0)
        for i, name in enumerate(WITH_HEAD)
        for j, head in enumerate(HEADS)
    ],
    indirect=["n_of_heads"],
)
def test_heads_of_doubles(name, n_of_heads, x64):
    metric = partial(WITH_HEAD[name], max_fpr=0.1)
    rng = np.random.default_rng(6)
    compiled = jax.jit(metric)
    for _ in range(5):
        scores, labels, _ = _with_head(rng, n_of_heads, "float64")
        scores = 1 + scores * 1e-12
        host = metric(scores, labels)
        np.testing.assert_allclose(host, compiled(scores, labels), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "n_of_heads", [marked(x, fast=x == "fitting") for x in HEADS], indirect=True
)
def test_heads_of_amounts(n_of_heads):
    rng = np.random.default_rng(7)
    recall = partial(jm.recall_at_fpr, max_fpr=0.1, method="linear")
    amounts = rng.choice([0.0, 1, 7], (2, n_of_heads)).astype(np.float32)
    for _ in range(5):
        scores, labels, where = _with_head(rng, n_of_heads, "float32")
        found = jax.jit(recall)(scores, labels, where=where, amounts=amounts)
        np.testing.assert_array_equal(recall(scores, labels, where=where, amounts=amounts), found)


@pytest.mark.parametrize(
    ("name", "n_of_heads"),
    [
        marked(name, head, fast=(name, head) in (("corner", "few"), ("step", "fitting")))
        for name in (*WITH_HEAD, "step")
        for head in HEADS
    ],
    indirect=["n_of_heads"],
)
def test_heads_of_weights(name, n_of_heads, x64):
    """A limit that whole weights meet, one that none meets, and one beyond most of the weight."""
    metric = WITH_HEAD.get(name, jm.recall_at_fpr)
    rng = np.random.default_rng(9)
    compiled = jax.jit(lambda *x: metric(*x[:2], weights=x[2], max_fpr=x[3]))
    for limit in (*[0.1, 0.25, 0.033] * 4, 0.8):
        scores, labels, _ = _with_head(rng, n_of_heads, "float32")
        weights = rng.choice([0.0, 1, 2, 7], n_of_heads) * rng.choice([1.0, 0.1, 1e-120])
        wanted = compiled(scores, labels, weights, limit)
        found = metric(scores, labels, weights=weights, max_fpr=limit)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "n_of_heads"),
    [marked(name, "fitting", fast=name == "recall") for name in WITH_HEAD]
    + [marked("area", "few", fast=False), marked("recall", "whole", fast=False)],
    indirect=["n_of_heads"],
)
def test_heads_of_batches(name, n_of_heads):
    """Also where `vmap` makes the batch, each row takes its own branch."""
    metric = WITH_HEAD[name]
    rng = np.random.default_rng(8)
    rows = [_with_head(rng, n_of_heads, "float32") for _ in range(6)]
    scores, labels, where = (np.stack(x) for x in zip(*rows, strict=True))
    one, row = jax.jit(partial(metric, max_fpr=0.1)), partial(metric, max_fpr=0.1)  # by NumPy
    wanted = np.array([row(s, y, where=m) for s, y, m in zip(scores, labels, where, strict=True)])
    mapped = jax.jit(jax.vmap(lambda s, y, m: metric(s, y, where=m, max_fpr=0.1)))
    mapped = mapped.lower(scores, labels, where)
    np.testing.assert_array_equal(mapped.compile()(scores, labels, where), wanted)
    assert "stablehlo.case" in mapped.as_text()
    shaped = one(scores.reshape(2, 3, -1), labels[:3], where=where[:1])
    crossed = [
        [row(s, y, where=where[0]) for s, y in zip(x, labels, strict=False)]
        for x in scores.reshape(2, 3, -1)
    ]
    np.testing.assert_array_equal(shaped, np.array(crossed))
    assert one(scores[:0], labels[0]).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("n_of_heads", ["fitting"], indirect=True)
def test_derivatives_of_heads(n_of_heads):
    """In the limit: forward, backward, twice and batched, as those of a table."""
    rng = np.random.default_rng(10)
    scores, labels, where = _with_head(rng, n_of_heads, "float32")
    scores = np.nan_to_num(scores)
    table = jm.score_table(scores, labels, where=where)
    limits = jnp.array([0.1, 0.2, 0.7])

    def of_items(max_fpr):
        return jm.partial_auc(jnp.asarray(scores), labels, where=where, max_fpr=max_fpr)

    def of_table(max_fpr):
        return jm.partial_auc(table, max_fpr=max_fpr)

    for derivative in (jax.grad, jax.hessian):
        found, wanted = (jax.jit(jax.vmap(derivative(f)))(limits) for f in (of_items, of_table))
        assert np.isfinite(wanted).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    slopes = jax.jit(jax.grad(lambda s: jm.partial_auc(s, labels, max_fpr=0.1)))(scores)
    np.testing.assert_array_equal(slopes, np.zeros_like(scores))
