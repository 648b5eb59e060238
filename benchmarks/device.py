"""What one card takes: `python -m benchmarks.device`, under eight minutes, without a network.

It first runs fast tests on the device, then prints one table: each call beside the bare sort of as
many keys and, where torchmetrics is installed, beside its call on the same card. `--part 100`
divides the sizes, to check on a CPU that every row runs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm

# Tests of values that need no rival: what scikit-learn and others would be asked is left out there.
TESTS = ("by_hand", "placements", "sorting", "transforms", "losses", "ranking")
_TESTS_TAKE = 150  # seconds at most
_BUDGET = 300  # seconds for the table; rows that would begin later are named, not timed
_BANDWIDTH = {"H200": 4.8e12, "H100": 3.35e12, "A100": 2.0e12, "v5 lite": 8.2e11}  # bytes a second
_RUNS = 7


class Row(NamedTuple):
    """A call on arrays that lie on the device, the number of items, and what lies beside it."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    n_items: int
    rival: Callable[[], Any] | None = None


class Times(NamedTuple):
    """Seconds of each run, and bytes that the compiled program holds at its peak."""

    seconds: list[float]
    peak: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("--part", type=int, default=1, help="divide the sizes by this")
    parser.add_argument("--no-tests", action="store_true", help="print the table alone")
    given = parser.parse_args()
    begin = time.perf_counter()
    if not given.no_tests:
        print(_tests(), flush=True)
    device = jax.devices()[0]
    print(f"\n{device.device_kind}, jax {jax.__version__}, Python {sys.version.split()[0]}\n")
    columns = ("call", "ms: median (range)", "MB beyond", "of the bandwidth", "over sort", "rival")
    for line in (columns, ("---",) * len(columns)):
        print(f"| {' | '.join(line)} |")
    end = time.perf_counter() + _BUDGET
    for cells in table(given.part, end):
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s in all", flush=True)


def _tests() -> str:
    """The last lines of pytest on the device; files whose imports are missing are left out."""
    root = Path(__file__).parents[1]
    files = [f"tests/test_{name}.py" for name in TESTS]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    # Both hold memory of the card at once.
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=_TESTS_TAKE
        )
    except subprocess.TimeoutExpired:
        return f"tests: not done after {_TESTS_TAKE} s"
    return "\n".join(done.stdout.splitlines()[-8:])


def table(part: int, end: float) -> Iterator[tuple[str, ...]]:
    """The cells of each row; sorts are timed beside the rows of their size, in turn."""
    sorts: dict[int, Times] = {}
    for make in rows(part):
        row = make()
        if time.perf_counter() > end:
            yield row.name, "no time left", "", "", "", ""
            continue
        if row.n_items not in sorts:
            sorts[row.n_items] = _timed(jax.lax.sort, (_keys(row.n_items),))
        try:
            times = _timed(row.function, row.arguments)
        except jax.errors.JaxRuntimeError as error:
            yield row.name, str(error).split("\n")[0][:80], "", "", "", ""
            continue
        median = statistics.median(times.seconds)
        low, middle, high = (1e3 * f(times.seconds) for f in (min, statistics.median, max))
        least = sum(x.nbytes for x in jax.tree.leaves(row.arguments))
        rival = "" if row.rival is None else f"{_median(row.rival) / median:.1f}x"
        yield (
            row.name,
            f"{middle:.3f} ({low:.3f} to {high:.3f})",
            f"{times.peak / 1e6:.0f}",
            _share(least / median),
            f"{median / statistics.median(sorts[row.n_items].seconds):.2f}x",
            rival,
        )


def rows(part: int) -> Iterator[Callable[[], Row]]:
    """Makers of the rows: the arrays of one row are gone before those of the next are made."""
    for power in (6, 7, 8):
        n = 10**power // part
        for name, metric in _METRICS.items():
            yield partial(_of_scores, name, metric, n)
    for models, n in ((8, 1_000_000), (100, 100_000)):
        yield partial(_of_models, models, n // part)
    n = 1_000_000 // part
    yield partial(_of_scores, "standard_error", partial(jm.standard_error, jm.roc_auc), n)
    yield partial(_of_scores, "confidence_interval", partial(jm.confidence_interval, jm.roc_auc), n)
    for share in (0.01, 0.5):
        yield partial(_resamples, n, share)
    yield partial(_of_lists, 10_000 // part, 100)
    for name, loss in _LOSSES.items():
        yield partial(_of_scores, f"gradient of {name}", jax.grad(loss), n)
    yield partial(_of_stream, n)


_METRICS: dict[str, Callable[..., Any]] = {
    "roc_auc": jm.roc_auc,
    "partial_auc": partial(jm.partial_auc, max_fpr=0.01),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=0.01),
}
_LOSSES: dict[str, Callable[..., Any]] = {
    "pairwise_auc_loss": jm.losses.pairwise_auc_loss,
    "partial_auc_loss": partial(jm.losses.partial_auc_loss, max_fpr=0.05),
}


def _data(shape: tuple[int, ...], share: float = 0.1) -> tuple[Any, Any]:
    """Scores and labels, made on the device: those of 1e8 items are slow to send."""
    chance, noise = jax.random.split(jax.random.key(0))
    labels = jax.random.bernoulli(chance, share, shape[-1:])
    return jax.block_until_ready((jax.random.normal(noise, shape) + labels, labels))


def _keys(n: int) -> Any:
    return jax.random.bits(jax.random.key(1), (n,), jnp.uint32)


def _of_scores(name: str, function: Callable[..., Any], n: int) -> Row:
    data = _data((n,))
    rival = _torch_auc(*data) if name == "roc_auc" else None
    return Row(f"{name}, {n:,}", function, data, n, rival)


def _of_models(models: int, n: int) -> Row:
    data = _data((models, n))
    return Row(f"roc_auc, {models} models of {n:,}", jm.roc_auc, data, models * n)


def _resamples(n: int, share: float) -> Row:
    def error(scores: Any, labels: Any) -> Any:
        key = jax.random.key(0)
        found = jm.bootstrap(jm.roc_auc, scores, labels, key=key, n_resamples=2000)
        return found.standard_error

    return Row(f"2,000 resamples of {n:,}, {share:.0%} positive", error, _data((n,), share), n)


def _of_lists(n: int, documents: int) -> Row:
    scores = _data((n, documents))[0]
    grades = jax.random.randint(jax.random.key(2), scores.shape, 0, 5)
    name = f"ndcg(k=10), {n:,} lists of {documents}"
    return Row(name, partial(jm.ndcg, k=10), (scores, grades), n * documents)


def _of_stream(n: int) -> Row:
    bins = jm.streaming.float16_bins()
    state = jm.streaming.init(bins)
    function = partial(jm.streaming.update, bins=bins)
    return Row(f"streaming.update, {n:,}", function, (state, *_data((n,))), n)


def _torch_auc(scores: Any, labels: Any) -> Callable[[], Any] | None:
    """torchmetrics on the same device, if it is installed and knows it."""
    if not (importlib.util.find_spec("torchmetrics") and importlib.util.find_spec("torch")):
        return None
    import torch
    from torchmetrics.functional.classification import binary_auroc

    on_card = jax.devices()[0].platform == "gpu"
    if on_card and not torch.cuda.is_available():
        return None
    place = "cuda" if on_card else "cpu"
    given = [torch.from_numpy(np.array(x)).to(place) for x in (jax.nn.sigmoid(scores), labels)]
    target = given[1].long()

    def call() -> Any:
        return binary_auroc(given[0], target, validate_args=False).item()

    return call


def _timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Times:
    compiled = jax.jit(function).trace(*arguments).lower().compile()
    jax.block_until_ready(compiled(*arguments))
    seconds = []
    for _ in range(_RUNS):
        begin = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        seconds.append(time.perf_counter() - begin)
    return Times(seconds, compiled.memory_analysis().temp_size_in_bytes)


def _median(call: Callable[[], Any]) -> float:
    call()
    seconds = []
    for _ in range(_RUNS):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def _share(rate: float) -> str:
    """The rate at which the input was read once, as a share of the bandwidth if it is known."""
    kind = jax.devices()[0].device_kind
    most = next((x for name, x in _BANDWIDTH.items() if name in kind), None)
    return f"{rate / 1e9:.0f} GB/s" if most is None else f"{rate / most:.1%}"


if __name__ == "__main__":
    main()
