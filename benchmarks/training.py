"""The gain of a partial-AUC loss over cross-entropy: `python -m benchmarks.training`.

Each split trains a model with binary cross-entropy, then continues from it with each loss for the
same number of steps. For every loss, the study keeps the best of the start and ten checkpoints by
partial AUC on validation data. "Gated" is the procedure that the README recommends: it takes the
model of the partial-AUC loss only if that beats cross-entropy on the validation data by more than
the standard error of the difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.model_selection import StratifiedShuffleSplit

import jaxmetrics as jm
from benchmarks.tables import Row, Table, machine, show

MODELS: dict[str, tuple[int, ...]] = {"linear": (), "16 units": (16,)}
BETAS = (0.05, 0.01)
CHECKPOINTS = 10
TEST, VALIDATION = 0.25, 0.2  # of all rows, and of the rest
OURS = "partial-AUC loss"
GATED = "gated"


Data = tuple[jax.Array, jax.Array]  # features `[n, d]` and labels `[n]`


# Data sets.


def installed() -> Iterator[tuple[str, Any, Any]]:
    """The data sets that scikit-learn includes."""
    cancer, digits = load_breast_cancer(), load_digits()
    yield "breast cancer", cancer.data, cancer.target == 0
    yield "digits, is it an 8?", digits.data, digits.target == 8


def in_folder(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Five data sets, from their files."""
    import pandas as pd

    table = pd.read_csv(folder / "HR.csv")
    yield "HR", table.drop(columns="left").to_numpy(), table["left"].to_numpy() == 1
    for number, name in ((23, "mammography"), (5, "campaign")):
        yield name, *_adbench(folder / f"adb_{number}_{name}.npz")
    x, y = load_svmlight_file(str(folder / "w8a"))
    yield "w8a", x.toarray(), y > 0
    yield "celeba", *_adbench(folder / "adb_8_celeba.npz")


def _adbench(file: Path) -> tuple[Any, Any]:
    with np.load(file) as arrays:
        return arrays["X"], arrays["y"] == 1


def split(x: Any, y: Any, seed: int, validation: float = VALIDATION) -> tuple[Data, Data, Data]:
    """Training, validation and test data; training data standardise the features."""
    outer = StratifiedShuffleSplit(1, test_size=TEST, random_state=seed)
    inner = StratifiedShuffleSplit(1, test_size=validation, random_state=seed)
    rest, test = next(outer.split(x, y))
    train, held = (rest[part] for part in next(inner.split(x[rest], y[rest])))
    mean, spread = x[train].mean(0), x[train].std(0)
    scaled = ((x - mean) / np.where(spread > 0, spread, 1)).astype(np.float32)
    first, second, third = (
        (jnp.asarray(scaled[part]), jnp.asarray(y[part])) for part in (train, held, test)
    )
    return first, second, third


# Models.


def initial(key: jax.Array, widths: tuple[int, ...]) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(key, len(widths))
    return [
        (jax.random.normal(k, (a, b)) * np.sqrt(2 / a), jnp.zeros(b))
        for k, a, b in zip(keys, widths[:-1], widths[1:], strict=False)
    ]


def scores_of(params: Any, x: jax.Array) -> jax.Array:
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return (x @ weight + bias)[:, 0]


# Losses of scores and labels.


def weighted_cross_entropy(scores: Any, labels: Any) -> Any:
    share = labels.mean()
    weights = jnp.where(labels, 1 / share, 1 / (1 - share))
    return jm.training.cross_entropy(scores, labels, weights=weights)


def focal(scores: Any, labels: Any) -> Any:
    return optax.losses.sigmoid_focal_loss(scores, labels.astype(scores.dtype)).mean()


def chances(params: Any, x: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(scores_of(params, x))


class Tried(NamedTuple):
    """A loss, the model's output that it takes, and the batches."""

    loss: Callable[..., Any]
    apply: Callable[..., Any] = scores_of
    batch: tuple[int, int] | None = None


def sopa_s(kl_weight: float) -> Tried:
    """SOPA-s as published: probabilities, squared hinge, batches of both classes, a state."""
    apply = jm.losses.kl_partial_auc.apply
    return Tried(partial(apply, kl_weight=kl_weight, step_size=0.9), chances, (64, 512))


# One object for each loss and optimiser, so that each program is compiled once for all splits.
SOPA_S = [sopa_s(1.0), sopa_s(0.1)]  # the better one on validation data counts
PLAIN = {"weighted": [Tried(weighted_cross_entropy)], "focal": [Tried(focal)], "SOPA-s": SOPA_S}
OPTIMIZERS = {rate: optax.adam(rate) for rate in (0.02, 0.01)}
METRICS = {beta: partial(jm.partial_auc, max_fpr=beta, scale="range") for beta in BETAS}
RECALLS = {beta: partial(jm.recall_at_fpr, max_fpr=beta) for beta in BETAS}
PAIRWISE = {beta: partial(jm.losses.partial_auc_loss, max_fpr=beta) for beta in BETAS}


def one_split(x: Any, y: Any, hidden: tuple[int, ...], seed: int, steps: int) -> dict[Any, Any]:
    """Test partial AUC and recall, `[2]`, by loss and max_fpr."""
    train, validation, test = split(x, y, seed)
    key = jax.random.key(seed)
    start = initial(key, (x.shape[1], *hidden, 1))
    found = {}
    for beta in BETAS:
        options = {"metric": METRICS[beta], "checkpoints": CHECKPOINTS, "key": key}
        data = OPTIMIZERS[0.02], train, validation
        begin = jm.training.fit(scores_of, start, *data, steps=2 * steps, **options).params
        data = OPTIMIZERS[0.01], train, validation
        gated = jm.training.finetune(
            scores_of, begin, *data, loss=PAIRWISE[beta], steps=steps, **options
        )
        chosen = {"cross-entropy": gated.cross_entropy.params}
        for name, tries in PLAIN.items():
            runs = [
                jm.training.fit(
                    t.apply, begin, *data, loss=t.loss, batch=t.batch, steps=steps, **options
                )
                for t in tries
            ]
            chosen[name] = max(runs, key=lambda run: run.values.max()).params
        chosen |= {OURS: gated.loss.params, GATED: gated.params}
        for name, params in chosen.items():
            scores = scores_of(params, test[0])
            values = [metric[beta](scores, test[1]) for metric in (METRICS, RECALLS)]
            found[name, beta] = np.array(values)
    return found


def interval(differences: Any) -> str:
    """The mean and a 95 % interval by Nadeau and Bengio's variance, as splits overlap."""
    mean, n = differences.mean(), len(differences)
    error = differences.std(ddof=1) * np.sqrt(1 / n + TEST / (1 - TEST))
    reach = stats.t.ppf(0.975, n - 1) * error
    return f"{mean:+.3f} ({mean - reach:+.3f} to {mean + reach:+.3f})"


def study(name: str, x: Any, y: Any, splits: int, steps: int) -> Iterator[tuple[Row, Row]]:
    """A row of partial AUC and one of recall, for each model and max_fpr."""
    for model, hidden in MODELS.items():
        begun = time.perf_counter()
        found = [one_split(x, y, hidden, seed, steps) for seed in range(splits)]
        for beta in BETAS:
            rows: list[Row] = []
            for metric in (0, 1):
                values = {
                    loss: np.array([f[loss, beta][metric] for f in found])
                    for loss in ("cross-entropy", *PLAIN, OURS, GATED)
                }
                base = values.pop("cross-entropy")
                row = {"data, model": f"{name}, {model}", "max_fpr": f"{beta}"}
                row["cross-entropy"] = f"{base.mean():.3f}"
                rows.append(row | {key: interval(v - base) for key, v in values.items()})
            yield rows[0], rows[1]
        print(f"{name}, {model}: {time.perf_counter() - begun:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with HR.csv, w8a and the adb files")
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300, help="steps after the start")
    options = parser.parse_args()
    print(machine() + "\n")
    sets = in_folder(options.data) if options.data else installed()
    rows = [
        pair
        for name, x, y in sets
        if options.only is None or name in options.only
        for pair in study(name, x, y, options.splits, options.steps)
    ]
    print()
    titles = ("Test partial AUC over max_fpr", "Test recall at max_fpr")
    for title, table in zip(titles, zip(*rows, strict=True), strict=True):
        words = f"{title}: cross-entropy, and the difference of each loss from it."
        show(Table(words, table))


if __name__ == "__main__":
    main()
