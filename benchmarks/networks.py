"""What a network gains from a partial-AUC loss: `python -m benchmarks.networks --data FOLDER`.

Each split trains a network with cross-entropy, and goes on from it by every recipe. All are held to
as many further steps of cross-entropy, and all choose the best of the start and ten checkpoints by
partial AUC on validation data. The first table passes each by the gate of `finetune`: the model is
taken if it beats cross-entropy on the validation data by more than the standard error of the
difference. The second has no gate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.model_selection import train_test_split

import jaxmetrics as jm
from benchmarks.tables import Row, Table, machine, show
from benchmarks.training import (
    CHECKPOINTS,
    OPTIMIZERS,
    Data,
    in_folder,
    initial,
    interval,
    scores_of,
    split,
)

cross_entropy, partial_auc_loss = jm.training.cross_entropy, jm.losses.partial_auc_loss
POSITIVES = 200  # of HR, where they are few
ROWS = 20_000  # of celeba, whose network of 256 units takes hours with all
DECAY = 0.98  # of the mean of the weights, which is of about the last fifty steps
MIXED = (0.25, 0.75)  # shares of cross-entropy in the loss
BETWEEN = (0.25, 0.5, 0.75)  # ways from the model of cross-entropy to that of the loss
SMOOTHING = 0.1
LARGER = 0.4  # validation share, in data of up to SMALL rows
SMALL = 15_000


class Cell(NamedTuple):
    data: str
    units: int
    max_fpr: float


CELLS = [
    *(Cell("HR", 16, beta) for beta in (0.05, 0.01)),
    *(Cell("HR, few positives", units, 0.01) for units in (16, 64)),
    *(Cell("mammography", 16, beta) for beta in (0.05, 0.01)),
    *(Cell("w8a", 16, beta) for beta in (0.001, 0.01)),
    *(Cell("celeba", units, 0.01) for units in (32, 256)),
]


def data_sets(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    for name, x, y in in_folder(folder):
        if name == "celeba":
            x, _, y, _ = train_test_split(x, y, train_size=ROWS, stratify=y, random_state=0)
        yield name, x, y
        if name == "HR":
            chosen = np.random.default_rng(0).permutation(np.flatnonzero(y))[:POSITIVES]
            kept = np.concatenate([np.flatnonzero(~y), chosen])
            yield "HR, few positives", x[kept], y[kept]


# Losses. Their numbers are the weights of the first three items, as they are then inputs of a
# program, which is compiled once for all recipes and limits.


class Numbers(NamedTuple):
    max_fpr: float
    band: float = 0.5
    share: float = 0.0  # of cross-entropy

    def with_data(self, data: Data) -> tuple[jax.Array, jax.Array, dict[str, Any]]:
        weights = np.ones(len(data[1]), np.float32)
        weights[: len(self)] = self
        return *data, {"weights": jnp.asarray(weights)}


def mixed(scores: Any, labels: Any, *, weights: Any) -> Any:
    """A share of cross-entropy, and the rest of the loss."""
    max_fpr, band, share = weights[: len(Numbers._fields)]
    own = partial_auc_loss(scores, labels, max_fpr=max_fpr, band=band)
    return (1 - share) * own + share * cross_entropy(scores, labels)


def convex(scores: Any, labels: Any, *, weights: Any) -> Any:
    """The squared hinge of pairs with the negatives of the window, and no others."""
    options = {"surrogate": "squared_hinge", "band": 0}
    return partial_auc_loss(scores, labels, max_fpr=weights[0], **options)


def smoothed(scores: Any, labels: Any, *, weights: Any) -> Any:
    """The logistic loss of pairs, of which a share has its labels changed.

    log(1 + exp(z)) - log(1 + exp(-z)) = z: this share adds the mean of the gaps. The bounded
    default has no such version, as smoothing multiplies its gradient by a constant.
    """
    options = {"surrogate": "logistic", "band": 0}
    own = partial_auc_loss(scores, labels, max_fpr=weights[0], **options)
    below = jnp.sort(jnp.where(labels, -jnp.inf, scores))[::-1]
    window = jnp.arange(len(scores)) < weights[0] * jnp.sum(~labels)
    gap = jnp.mean(scores, where=labels) - jnp.mean(below, where=window)
    return own + SMOOTHING * gap


# Recipes: each gives the models to choose from.


def hidden(params: Any, x: jax.Array) -> jax.Array:
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x


def last(params: Any, features: jax.Array) -> jax.Array:
    return (features @ params[0] + params[1])[:, 0]


@partial(jax.jit, static_argnames="length")
def averaged_steps(carry: Any, train: Any, length: int) -> Any:
    """Parameters, moments, and the mean of the latest parameters, after some steps."""
    x, labels, options = train

    def step(carry: Any, _: Any) -> Any:
        params, moments, mean = carry
        gradient = jax.grad(lambda p: mixed(scores_of(p, x), labels, **options))(params)
        updates, moments = OPTIMIZERS[0.01].update(gradient, moments, params)
        params = optax.apply_updates(params, updates)
        return (params, moments, optax.incremental_update(params, mean, 1 - DECAY)), None

    return jax.lax.scan(step, carry, None, length)[0]


def averaged(begin: Any, train: Any, steps: int) -> list[Any]:
    """The mean of the latest weights at each checkpoint, and the start."""
    carry = begin, OPTIMIZERS[0.01].init(begin), begin
    means = [begin]
    for _ in range(CHECKPOINTS):
        carry = averaged_steps(carry, train, steps // CHECKPOINTS)
        means.append(carry[2])
    return means


def one_split(x: Any, y: Any, cell: Cell, seed: int, steps: int) -> dict[str, tuple[float, float]]:
    """Test partial AUC of the recipes, with the gate and without it."""
    metric = partial(jm.partial_auc, max_fpr=cell.max_fpr, scale="range")
    plain = Numbers(cell.max_fpr)

    def value(params: Any, data: Data) -> float:
        return float(metric(scores_of(params, data[0]), data[1]))

    def fit(apply: Any, begin: Any, rate: float, train: Any, held: Data, **given: Any) -> Any:
        options = {"metric": metric, "checkpoints": CHECKPOINTS, "steps": steps} | given
        return jm.training.fit(apply, begin, OPTIMIZERS[rate], train, held, **options).params

    def of_entropy(train: Data, held: Data) -> tuple[Any, Any]:
        """The start, and the model of further cross-entropy from there."""
        begin = initial(jax.random.key(seed), (x.shape[1], cell.units, 1))
        begin = fit(scores_of, begin, 0.02, train, held, steps=2 * steps)
        return begin, fit(scores_of, begin, 0.01, train, held)

    def whole(begin: Any, train: Data, held: Data, loss: Any, numbers: Numbers = plain) -> Any:
        return fit(scores_of, begin, 0.01, numbers.with_data(train), held, loss=loss)

    def top(begin: Any, train: Data, held: Data, loss: Any) -> Any:
        """The last layer on features that are frozen."""
        first, second = ((hidden(begin, part[0]), part[1]) for part in (train, held))
        params = fit(last, begin[-1], 0.01, plain.with_data(first), second, loss=loss)
        return [*begin[:-1], params]

    def results(models: list[Any], reference: Any, held: Data) -> tuple[float, float]:
        """The test value of the best model on validation data, with the gate and without it."""
        best = max(models, key=lambda params: value(params, held))
        pair = jnp.stack([scores_of(params, held[0]) for params in (best, reference)])
        compared = jm.compare(metric, pair, held[1])
        better = compared.difference[0, 1] > compared.standard_error[0, 1]
        return value(best if better else reference, test), value(best, test)

    train, held, test = split(x, y, seed)
    begin, reference = of_entropy(train, held)
    data = begin, train, held
    new = whole(*data, mixed)
    models = {
        "whole network": [new],
        "last layer, convex": [top(*data, convex)],
        "last layer, bounded": [top(*data, mixed)],
        "weights averaged": averaged(begin, plain.with_data(train), steps),
        "softer window": [whole(*data, mixed, plain._replace(band=2.0))],
        "labels smoothed": [whole(*data, smoothed)],
        "mixed with cross-entropy": [
            whole(*data, mixed, plain._replace(share=share)) for share in MIXED
        ],
        "between the two models": [
            jax.tree.map(lambda a, b, way=way: (1 - way) * a + way * b, reference, new)
            for way in BETWEEN
        ],
        "cross-entropy, weights averaged": averaged(
            begin, plain._replace(share=1.0).with_data(train), steps
        ),
    }
    values = {name: results(candidates, reference, held) for name, candidates in models.items()}
    if len(y) <= SMALL:
        train, held, _ = split(x, y, seed, LARGER)
        begin, other = of_entropy(train, held)
        model = whole(begin, train, held, mixed)
        values["validation 0.4"] = results([model], other, held)
        values["validation 0.4, cross-entropy"] = (value(other, test),) * 2
    return values | {"cross-entropy": (value(reference, test),) * 2}


def row(cell: Cell, found: list[dict[str, tuple[float, float]]], gate: int) -> Row:
    """Differences from cross-entropy of all recipes, with the gate (0) or without it (1)."""
    values = {name: np.array([f[name][gate] for f in found]) for name in found[0]}
    base = values.pop("cross-entropy")
    head = {
        "data, units": f"{cell.data}, {cell.units}",
        "max_fpr": f"{cell.max_fpr}",
        "splits": f"{len(found)}",
        "cross-entropy": f"{base.mean():.3f}",
    }
    return head | {name: interval(v - base) for name, v in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="as of benchmarks.training")
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--steps", type=int, default=300, help="steps after the start")
    given = parser.parse_args()
    print(machine() + "\n", flush=True)
    tables: tuple[list[Row], list[Row]] = [], []
    for name, x, y in data_sets(given.data):
        if given.only is not None and name not in given.only:
            continue
        for cell in (cell for cell in CELLS if cell.data == name):
            begun = time.perf_counter()
            seeds = range(given.first, given.first + given.splits)
            found = [one_split(x, y, cell, seed, given.steps) for seed in seeds]
            for gate, rows in enumerate(tables):
                rows.append(row(cell, found, gate))
                print(rows[-1], flush=True)
            print(f"{cell}: {time.perf_counter() - begun:.0f} s", flush=True)
    title = (
        "Test partial AUC over max_fpr: cross-entropy, and the difference of each recipe from it"
    )
    for rest, rows in zip((", with the gate.", ", without the gate."), tables, strict=True):
        show(Table(title + rest, rows))


if __name__ == "__main__":
    main()
