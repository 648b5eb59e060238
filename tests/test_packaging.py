"""What is installed: its metadata, the files of a release, and types that a user's checker sees."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import jaxmetrics

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME = PROJECT["project"]["name"]

USER = """
from collections.abc import Iterator
from functools import partial
from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

import jaxmetrics as jm
from jaxmetrics import losses, plots, streaming

key = jax.random.key(0)
scores, labels = np.ones((3, 100)), np.arange(100) % 2
ids = np.arange(100) // 10

# Metrics, of scores and of a table.
assert_type(jm.roc_auc(scores, labels), jax.Array)
assert_type(jm.roc_auc(scores, labels, weights=labels, where=[True] * 100), jax.Array)
assert_type(jm.partial_auc(scores, labels, max_fpr=0.1, scale="mcclish"), jax.Array)
assert_type(jm.recall_at_fpr(scores, labels, max_fpr=[0.1, 0.2], amounts=labels), jax.Array)
table = jm.score_table(scores, labels)
assert_type(table, jm.ScoreTable)
assert_type(jm.roc_auc(table), jax.Array)
assert_type(jm.partial_auc(table, max_fpr=0.1), jax.Array)
assert_type(jm.min_cost_threshold(table, fp_cost=2), jax.Array)
assert_type(jm.roc_curve(table), jm.RocCurve)
assert_type(jm.cost_curve(scores, labels, fn_cost=2).cost, jax.Array)
assert_type(jm.recall(labels, labels, average=None), jax.Array)
assert_type(jm.ndcg(scores, labels, segments=ids, k=5), jax.Array)
assert_type(jm.extreme.ndcg_at_k(labels, labels, k=3), jax.Array)

# A partial is a metric.
recall = partial(jm.recall_at_fpr, max_fpr=0.1)
assert_type(recall(scores, labels), jax.Array)
interval = jm.confidence_interval(recall, scores, labels, key=key, confidence_level=0.9)
assert_type(interval, jm.Interval)
assert_type(interval.low, jax.Array)
assert_type(jm.standard_error(jm.roc_auc, scores, labels), jax.Array)
assert_type(jm.covariance(jm.roc_auc, scores, labels), jax.Array)
assert_type(jm.influence(jm.roc_auc, scores, labels), jax.Array)
result = jm.compare(jm.roc_auc, scores, labels)
assert_type(result.simultaneous_low, jax.Array)
assert_type(result.best_set, jax.Array)
assert_type(jm.bootstrap(jm.roc_auc, scores, labels, key=key).interval(), jm.Interval)
assert_type(jm.roc_band(scores, labels).low, jax.Array)


@jm.table_metric
def youden(table: jm.ScoreTable, *, power: float = 1.0) -> jax.Array:
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    return jnp.max(tpr) ** power


@jm.table_metric(of_roc_curve=True)
def twice(table: jm.ScoreTable) -> tuple[jax.Array, jax.Array]:
    return jm.roc_auc(table), jm.partial_auc(table, max_fpr=0.1)


assert_type(youden(scores, labels, power=2.0), jax.Array)
assert_type(youden(table), jax.Array)
assert_type(twice(scores, labels, where=labels), tuple[jax.Array, jax.Array])
jm.bootstrap(youden, scores, labels, key=key)

# Streams.
bins = streaming.float16_bins()
state = streaming.update(streaming.init(bins), scores[0], labels, bins=bins)
assert_type(streaming.table(streaming.merge(state, state), bins=bins), jm.ScoreTable)
low, high = streaming.bounds(jm.roc_auc, state, bins=bins)
assert_type(low, jax.Array)
assert_type(streaming.interval(jm.roc_auc, state, bins=bins), jm.Interval)
assert_type(streaming.means.result(streaming.means.init()).mean, jax.Array)


def batches() -> Iterator[tuple[list[float], list[int]]]:
    yield [0.1, 0.9], [0, 1]


assert_type(streaming.exact(jm.roc_auc, batches, memory_items=100), jax.Array)


# Losses.
def loss(weights: jax.Array) -> jax.Array:
    return losses.partial_auc_loss(weights, labels, max_fpr=0.1, surrogate="hinge")


slots = losses.kl_partial_auc.init(100)
value, slots = losses.kl_partial_auc.apply(slots, scores[0], labels, ids, kl_weight=0.5)
assert_type(value, jax.Array)

assert_type(plots.roc(scores, labels, names=["a", "b", "c"]), Axes)
assert_type(jm.precision_at_recall(table, min_recall=0.5), jax.Array)
chosen = jm.precision_at_recall(table, min_recall=0.5, return_threshold=True)
assert_type(chosen.threshold, jax.Array)
"""

# Each line by itself is an error: a keyword or an argument that there is not, or is missing.
WRONG = """
jm.partial_auc(scores, labels, max_fp=0.1)
jm.ndcg(scores, labels, kk=5)
jm.partial_auc(table, max_fp=0.1)
jm.roc_auc(scores)
jm.recall_at_fpr(table)
youden(table, pow=2.0)
youden(table, power="two")
jm.recall(labels, labels, avrage=None)
jm.confidence_interval(jm.roc_auc, scores, labels, level=0.9)
jm.bootstrap(jm.roc_auc, scores, labels)
jm.compare(jm.roc_auc, scores, labels).best
streaming.update(state, scores, labels)
streaming.bounds(jm.roc_auc, state, bins=100)
losses.partial_auc_loss(scores, labels, max_fpr=0.1, surogate="hinge")
plots.roc(scores, labels, name=["a"])
"""


def test_types_of_a_user(tmp_path):
    """A program passes mypy's strict mode against the installed package; its mistakes do not."""
    program, fine = tmp_path / "user.py", USER.count("\n")
    program.write_text(USER + WRONG, encoding="utf-8")
    options = ["--strict", "--no-incremental", "--hide-error-context", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", "--config-file", "", *options, program.name]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = re.findall(r"^user\.py:(\d+): error: (.*)", ran.stdout, re.MULTILINE)
    unexpected = [error for error in errors if int(error[0]) <= fine]
    assert not unexpected, unexpected
    mistakes = set(range(fine + 2, fine + 1 + WRONG.count("\n")))
    assert {int(line) for line, _ in errors} == mistakes, ran.stdout + ran.stderr


def test_metadata():
    installed = metadata(NAME)
    assert installed["Version"] == jaxmetrics.__version__
    assert installed["License-Expression"] == "Apache-2.0"
    assert installed["Requires-Python"] == PROJECT["project"]["requires-python"]
    # As registries compare names, it is not that of another package, jax-metrics.
    assert re.sub(r"[-_.]", "", NAME.lower()) != "jaxmetrics"


def test_needs_little():
    """Without extras: JAX, NumPy and optax. An extra that names another finds it here."""
    needed = [line for line in requires(NAME) if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in needed} == {"jax", "numpy", "optax"}
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(metadata(NAME).get_all("Provides-Extra")) == set(extras)
    own = [line for lines in extras.values() for line in lines if line.startswith("jaxmetrics")]
    assert set(own) <= {f"{NAME}[{extra}]" for extra in extras}


def test_files_of_a_release(tmp_path):
    """The wheel is the package alone, and the source release has what its own tests need."""
    wheels = pytest.importorskip("hatchling.builders.wheel", reason="hatchling builds the release")
    sources = pytest.importorskip("hatchling.builders.sdist")
    paths = (path.relative_to(ROOT) for path in (ROOT / "jaxmetrics").rglob("*") if path.is_file())
    package = {
        path.as_posix()
        for path in paths
        if not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    }
    (wheel,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        licenses = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert inside == package
    assert "jaxmetrics/py.typed" in inside
    assert len(licenses) == 1

    (source,) = sources.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(source) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames()}
    for folder in ("tests", "benchmarks", "examples"):
        files = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.*")}
        assert files <= inside, files - inside
    assert package | {"README.md", "LICENSE", "pyproject.toml"} <= inside
    assert not any(
        part.startswith(".") for name in inside - {".gitignore"} for part in name.split("/")
    )


def test_names_are_imported_when_the_first_is_asked_for():
    """So that the command says its help at once, and a name that is none is an error as ever."""
    code = (
        "import sys, jaxmetrics, jaxmetrics.cli; "
        "from click.testing import CliRunner; "
        "ran = CliRunner().invoke(jaxmetrics.cli.commands(), ['evaluate', '--help']); "
        "assert ran.exit_code == 0 and 'jax' not in sys.modules; "
        "assert not hasattr(jaxmetrics, 'roc_auk') and 'roc_auc' in dir(jaxmetrics); "
        "from jaxmetrics import *; print(roc_auc([0.1, 0.2], [0, 1]), jaxmetrics.losses.__name__)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("1.0 jaxmetrics.losses\n", "")
