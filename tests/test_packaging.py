"""What is installed: its metadata, and the files of a release."""

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
        "from jaxmetrics import *; print(roc_auc([0.1, 0.2], [0, 1]), jaxmetrics.plots.__name__)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("1.0 jaxmetrics.plots\n", "")
