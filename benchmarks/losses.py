"""Losses, value and gradient: time against a sum over all pairs, memory, and a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxmetrics as jm
from benchmarks.exact import Row
from benchmarks.processes import bytes_at_peak, fresh
from benchmarks.timing import milliseconds, time_in_turn


def data(n: int, positive: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels; positives score higher on average."""
    rng = np.random.default_rng(0)
    labels = rng.random(n) < positive
    return rng.standard_normal(n, np.float32) + labels, labels


def naive_squared_hinge(scores: Any, labels: Any) -> Any:
    """The loss over all pairs of items, with a mask, as labels are not known at compile time."""
    pairs = labels[:, None] & ~labels
    losses = jnp.maximum(1 - (scores[:, None] - scores), 0) ** 2
    return jnp.sum(jnp.where(pairs, losses, 0)) / jnp.sum(pairs)


def squared_hinge_of_parts(positives: Any, negatives: Any) -> Any:
    """The loss of positives and negatives that were separated beforehand."""
    return jnp.mean(jnp.maximum(1 - (positives[:, None] - negatives), 0) ** 2)


def squared_hinge(n: int, runs: int) -> Iterator[Row]:
    """The squared hinge, a tenth of the items positive, against JAX and PyTorch."""
    scores, labels = data(n, 0.1)
    on_device = jnp.asarray(scores), jnp.asarray(labels)
    parts = jnp.asarray(scores[labels]), jnp.asarray(scores[~labels])
    calls: dict[str, Callable[[], Any]] = {
        "ours": partial(jax.jit(jax.value_and_grad(jm.losses.pairwise_auc_loss)), *on_device),
        "JAX": partial(jax.jit(jax.value_and_grad(naive_squared_hinge)), *on_device),
        "JAX, parted": partial(
            jax.jit(jax.value_and_grad(squared_hinge_of_parts, argnums=(0, 1))), *parts
        ),
    }
    if find_spec("torch"):
        import torch

        leaf, mask = torch.from_numpy(scores).requires_grad_(), torch.from_numpy(labels)

        def pairs() -> Any:
            leaf.grad = None
            difference = leaf[mask][:, None] - leaf[~mask]
            loss = torch.relu(1 - difference).square().mean()
            loss.backward()
            return loss.item()

        calls["PyTorch"] = pairs
    values = [float(call()[0] if name != "PyTorch" else call()) for name, call in calls.items()]
    np.testing.assert_allclose(values, values[0], rtol=1e-4)
    times = time_in_turn(calls, runs)
    yield {
        "work": f"squared hinge, n = {n:,}",
        "ours, ms": milliseconds(times["ours"]),
        **{f"over {x}": times["ours"].ratio(times[x]) for x in calls if x != "ours"},
    }


def bounded(n: int, runs: int) -> Iterator[Row]:
    """The sigmoid at max_fpr 0.05, 3 % positive, against all pairs and the top pairs alone."""
    scores, labels = data(n, 0.03)
    positives, negatives = jnp.asarray(scores[labels]), jnp.asarray(scores[~labels])

    def all_pairs(positives: Any, negatives: Any) -> Any:
        rank = jnp.argsort(jnp.argsort(-negatives)) / len(negatives)
        weights = jax.nn.sigmoid((0.05 - rank) / (0.5 * 0.05 * 0.95))
        difference = (negatives - positives[:, None]) / (0.2 * jnp.std(negatives))
        return jnp.mean(jax.nn.sigmoid(difference) @ weights) / jnp.sum(weights)

    def top_pairs(positives: Any, negatives: Any) -> Any:
        top = jax.lax.top_k(negatives, len(negatives) // 20)[0]
        difference = (top - positives[:, None]) / (0.2 * jnp.std(negatives))
        return jnp.mean(jax.nn.sigmoid(difference))

    def ours(scores: Any, labels: Any) -> Any:
        return jm.losses.partial_auc_loss(scores, labels, max_fpr=0.05)

    def compiled(loss: Callable[..., Any]) -> Callable[[], Any]:
        slope = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
        return partial(slope, positives, negatives)

    calls = {
        "ours": partial(
            jax.jit(jax.value_and_grad(ours)), jnp.asarray(scores), jnp.asarray(labels)
        ),
        "all pairs": compiled(all_pairs),
        "top pairs": compiled(top_pairs),
    }
    np.testing.assert_allclose(calls["ours"]()[0], calls["all pairs"]()[0], rtol=1e-3)
    times = time_in_turn(calls, runs)
    yield {
        "work": f"sigmoid, max_fpr = .05, n = {n:,}",
        "ours, ms": milliseconds(times["ours"]),
        **{f"over {x}": times["ours"].ratio(times[x]) for x in ("all pairs", "top pairs")},
    }


def training_step(batch: int, runs: int) -> Iterator[Row]:
    """A training step of a network with two layers of 256 units on 64 features, by loss."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((batch, 64), np.float32))
    labels = jnp.asarray(rng.random(batch) < 0.1)
    params = [
        jnp.asarray(rng.standard_normal(shape, np.float32) / shape[0] ** 0.5)
        for shape in ((64, 256), (256, 256), (256, 1))
    ]
    optimiser = optax.adam(1e-3)

    def scores_of(params: Any) -> Any:
        hidden = x
        for layer in params[:-1]:
            hidden = jax.nn.relu(hidden @ layer)
        return (hidden @ params[-1])[:, 0]

    def step_of(loss: Callable[[Any], Any]) -> Callable[[], Any]:
        @jax.jit
        def step(params: Any, state: Any) -> Any:
            gradient = jax.grad(lambda p: loss(scores_of(p)))(params)
            updates, state = optimiser.update(gradient, state)
            return optax.apply_updates(params, updates), state

        return partial(step, params, optimiser.init(params))

    target = labels.astype(jnp.float32)
    times = time_in_turn(
        {
            "cross-entropy": step_of(
                lambda scores: optax.sigmoid_binary_cross_entropy(scores, target).mean()
            ),
            "ours": step_of(
                lambda scores: jm.losses.partial_auc_loss(scores, labels, max_fpr=0.05)
            ),
        },
        runs,
    )
    yield {
        "work": f"training step, batch of {batch:,}, two layers of 256",
        "ours, ms": milliseconds(times["ours"]),
        "over the step with cross-entropy": times["cross-entropy"].ratio(times["ours"]),
    }


def peak_bytes(name: str, n: int, positive: float) -> float:
    loss = {
        "squared hinge": jm.losses.pairwise_auc_loss,
        "sigmoid": partial(jm.losses.partial_auc_loss, max_fpr=0.05),
    }[name]
    scores, labels = (jax.block_until_ready(jnp.asarray(x)) for x in data(n, positive))
    return bytes_at_peak(lambda: jax.jit(jax.value_and_grad(loss))(scores, labels))


def peak_memory(scale: int) -> Iterator[Row]:
    """Peak memory in MB beyond the input, with compilation; on the host, on Linux."""
    for name, n, positive in (("squared hinge", 1_000_000, 0.1), ("sigmoid", 100_000, 0.03)):
        megabytes = fresh(peak_bytes, name, n // scale, positive) / 2**20
        yield {
            "work": f"{name}, peak memory, n = {n // scale:,}",
            "ours": f"{megabytes:.0f} MB beyond the input",
        }
