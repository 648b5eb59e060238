"""What one card takes: `python -m benchmarks.device`, under eight minutes, without a network.

It prints one table, of each call beside the bare sort of as many keys and, where torchmetrics is
installed, beside its call on the same card, and then runs fast tests on the device. All programs
are compiled at once, in threads. `--part 100` divides the sizes, to check on a CPU that every row
runs; words choose the rows whose names have one of them.
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
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm

# Tests of values that need no rival: what scikit-learn and others would be asked is left out there.
_FILES = "test_by_hand", "test_sorting", "ranking/test_ranking", "test_transforms"
TESTS = tuple(f"tests/{name}.py" for name in _FILES)
_TESTS_TAKE = 150  # seconds at most
_BUDGET = 300  # seconds for the table; rows that would begin later are named, not timed
_BANDWIDTH = {"H200": 4.8e12, "H100": 3.35e12, "A100": 2.0e12, "v5 lite": 8.2e11}  # bytes a second
_RUNS, _LONG = 25, 1.0  # of a call, and seconds after which no further run begins
_WARM = 0.05  # seconds of calls that are not timed: clocks of an idle card are low


class Row(NamedTuple):
    """A call, what makes its arguments on the device, and the number of items.

    The arguments of one row are gone before those of the next are made.
    """

    name: str
    function: Callable[..., Any]
    make: Callable[[], tuple[Any, ...]]
    n_items: int
    rival: Callable[..., Callable[[], Any] | None] | None = None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("--part", type=int, default=1, help="divide the sizes by this")
    parser.add_argument("--no-tests", action="store_true", help="print the table alone")
    parser.add_argument("words", nargs="*", help="of the names of the rows; all if there is none")
    given = parser.parse_args()
    begin = time.perf_counter()
    device = jax.devices()[0]
    print(f"\n{device.device_kind}, jax {jax.__version__}, Python {sys.version.split()[0]}\n")
    columns = ("call", "ms: median (range)", "MB beyond", "of the bandwidth", "over sort", "rival")
    for line in (columns, ("---",) * len(columns)):
        print(f"| {' | '.join(line)} |")
    chosen = [x for x in rows(given.part) if any(w in x.name for w in given.words or [""])]
    if not chosen:
        parser.error(f"no row has one of {given.words} in its name")
    for cells in table(chosen):
        print(f"| {' | '.join(cells)} |", flush=True)
    if not given.no_tests:
        print("\n" + _tests(), flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s in all", flush=True)


def _tests() -> str:
    """The last lines of pytest on the device; files whose imports are missing are left out."""
    root = Path(__file__).parents[1]
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--dist=load"]
    options += ["-nauto", "--maxprocesses=14"]
    command = [sys.executable, "-m", "pytest", *options, *TESTS]
    # This process has three quarters of the card's memory.
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=_TESTS_TAKE
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode().splitlines()[-8:]
        return "\n".join([*said, f"tests: not done after {_TESTS_TAKE} s"])
    return "\n".join([*done.stdout.splitlines()[-8:], *done.stderr.splitlines()[-4:]])


def table(chosen: list[Row]) -> Iterator[tuple[str, ...]]:
    """The cells of each row; sorts are timed beside the rows of their size, in turn."""
    sizes = dict.fromkeys(row.n_items for row in chosen)
    with ThreadPoolExecutor() as workers:
        programs = [workers.submit(_compiled, x.function, x.make) for x in chosen]
        sorts = {n: workers.submit(_compiled, jax.lax.sort, partial(_keys, n)) for n in sizes}
        wait([*programs, *sorts.values()])  # nothing else runs beside what is timed
        end = time.perf_counter() + _BUDGET
        of_sorts: dict[int, float] = {}
        for row, program in zip(chosen, programs, strict=True):
            if time.perf_counter() > end:
                yield row.name, "no time left", "", "", "", ""
                continue
            try:
                yield _cells(row, program.result(), of_sorts, sorts[row.n_items].result())
            except jax.errors.JaxRuntimeError as error:
                yield row.name, str(error).split("\n")[0][:80], "", "", "", ""


def _cells(row: Row, program: Any, of_sorts: dict[int, float], sort: Any) -> tuple[str, ...]:
    n = row.n_items
    if n not in of_sorts:
        of_sorts[n] = statistics.median(_seconds(partial(sort, *_keys(n))))
    arguments = row.make()
    seconds = _seconds(partial(program, *arguments))
    median = statistics.median(seconds)
    call = None if row.rival is None else row.rival(*arguments)
    return (
        row.name,
        f"{1e3 * median:.3f} ({1e3 * min(seconds):.3f} to {1e3 * max(seconds):.3f})",
        f"{program.memory_analysis().temp_size_in_bytes / 1e6:.0f}",
        _share(sum(x.nbytes for x in jax.tree.leaves(arguments)) / median),
        f"{median / of_sorts[n]:.2f}x",
        "" if call is None else f"{statistics.median(_seconds(call)) / median:.1f}x",
    )


def rows(part: int) -> Iterator[Row]:
    """The rows, from few items to many."""
    for power in (6, 7, 8):
        n = 10**power // part
        for name, metric in _METRICS.items():
            yield _of_scores(name, metric, n)
    for models, n in ((8, 1_000_000), (100, 100_000)):
        yield _of_models(models, n // part, jm.roc_auc)
    n = 1_000_000 // part
    mapped = jax.vmap(jm.roc_auc, in_axes=(0, None))
    yield _of_models(8, n, mapped, " by vmap")
    for name, function in _ERROR_BARS.items():
        yield _of_scores(name, function, n)
    yield _of_models(2, n, partial(jm.compare, jm.roc_auc), name="compare")
    for share in (0.01, 0.5):
        yield _resamples(n, share)
    yield _of_lists(10_000 // part, 100)
    for name, loss in _LOSSES.items():
        yield _of_scores(f"gradient of {name}", jax.grad(loss), n)
    yield _of_stream(n)


_METRICS: dict[str, Callable[..., Any]] = {
    "roc_auc": jm.roc_auc,
    "partial_auc": partial(jm.partial_auc, max_fpr=0.01),
    "recall_at_fpr": partial(jm.recall_at_fpr, max_fpr=0.01),
}
_ERROR_BARS: dict[str, Callable[..., Any]] = {
    "standard_error": partial(jm.standard_error, jm.roc_auc),
    "confidence_interval": partial(jm.confidence_interval, jm.roc_auc),
    "operating_point": partial(jm.operating_point, max_fpr=0.01),
    "roc_band": jm.roc_band,
    "sample_size": partial(jm.sample_size, jm.roc_auc, width=0.1),
}
_LOSSES: dict[str, Callable[..., Any]] = {
    "pairwise_auc_loss": jm.losses.pairwise_auc_loss,
    "partial_auc_loss": partial(jm.losses.partial_auc_loss, max_fpr=0.05),
}


@partial(jax.jit, static_argnums=(0, 1))
def _data(shape: tuple[int, ...], share: float = 0.1) -> tuple[Any, Any]:
    """Scores and labels, made on the device: those of 1e8 items are slow to send."""
    chance, noise = jax.random.split(jax.random.key(0))
    labels = jax.random.bernoulli(chance, share, shape[-1:])
    return jax.random.normal(noise, shape) + labels, labels


def _keys(n: int) -> tuple[Any]:
    return (jax.random.bits(jax.random.key(1), (n,), jnp.uint32),)


def _of_scores(name: str, function: Callable[..., Any], n: int) -> Row:
    rival = _torch_auc if name == "roc_auc" else None
    return Row(f"{name}, {n:,}", function, partial(_data, (n,)), n, rival)


def _of_models(
    models: int, n: int, function: Callable[..., Any], way: str = "", name: str = "roc_auc"
) -> Row:
    make = partial(_data, (models, n))
    return Row(f"{name}, {models} models of {n:,}{way}", function, make, models * n)


def _resamples(n: int, share: float) -> Row:
    def error(scores: Any, labels: Any) -> Any:
        key = jax.random.key(0)
        found = jm.bootstrap(jm.roc_auc, scores, labels, key=key, n_resamples=2000)
        return found.standard_error

    name = f"2,000 resamples of {n:,}, {share:.0%} positive"
    return Row(name, error, partial(_data, (n,), share), n)


def _of_lists(n: int, documents: int) -> Row:
    def make() -> tuple[Any, ...]:
        grades = jax.random.randint(jax.random.key(2), (n, documents), 0, 5)
        return _data(grades.shape)[0], grades

    name = f"ndcg(k=10), {n:,} lists of {documents}"
    return Row(name, partial(jm.ndcg, k=10), make, n * documents)


def _of_stream(n: int) -> Row:
    bins = jm.streaming.float16_bins()

    def make() -> tuple[Any, ...]:
        return jm.streaming.init(bins), *_data((n,))

    return Row(f"streaming.update, {n:,}", partial(jm.streaming.update, bins=bins), make, n)


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


def _compiled(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> Any:
    return jax.jit(function).trace(*jax.eval_shape(make)).lower().compile()


def _seconds(call: Callable[[], Any]) -> list[float]:
    """Of each run after the first ones; of fewer runs if they take long."""
    begin = time.perf_counter()
    jax.block_until_ready(call())
    while time.perf_counter() < begin + _WARM:
        jax.block_until_ready(call())
    seconds: list[float] = []
    while len(seconds) < _RUNS and sum(seconds) < _LONG:
        begin = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - begin)
    return seconds


def _share(rate: float) -> str:
    """The rate at which the input was read once, as a share of the bandwidth if it is known."""
    kind = jax.devices()[0].device_kind
    most = next((x for name, x in _BANDWIDTH.items() if name in kind), None)
    return f"{rate / 1e9:.0f} GB/s" if most is None else f"{rate / most:.1%}"


if __name__ == "__main__":
    main()
