import contextlib
import functools
import gc
import itertools
import os
from importlib.metadata import version
from pathlib import Path

import pytest

# Before JAX starts: several devices, also where there is only a processor. Most of the time is
# compilation, which takes a third of it where XLA optimises nothing.
# From 0.11 on one flag is lacking, and a process ends where XLA is given one that it does not know.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0 "
    "--xla_cpu_parallel_codegen_split_count=1 "
    # Else collectives of loops that do not depend on each other may meet, and the process ends.
    "--xla_cpu_enable_concurrency_optimized_scheduler=false"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""),
)
# What is compiled serves the commands that tests start and the next run. Each worker has a folder,
# as JAX locks none that may grow, and looks at all that is in one that may not each time it writes.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(
    Path(__file__).parents[1] / ".jax_cache" / os.environ.get("PYTEST_XDIST_WORKER", "main")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import numpy as np
from hypothesis import settings
from processes import has_many_programs
from xdist.scheduler import LoadFileScheduling

gc.disable()  # JAX traces into many objects that live; a tenth of the time, of little garbage

collect_ignore = [
    "axis_worker.py",
    "mesh_worker.py",
    "rare_worker.py",
    "sharded_worker.py",
    "stream_worker.py",
    "types_of_a_user.py",
    "unlike_worker.py",
]  # which are started as processes, and read by mypy
collect_ignore_glob = ["*conftest.py"]  # modules of one name, which have no examples

settings.register_profile("jaxmetrics", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("jaxmetrics")


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.fixture
def x64():
    """The test runs in JAX's x64 mode."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def area_alone(monkeypatch):
    """A stream's report has one metric: what is of the file is seen by that, too."""
    from jaxmetrics._report import _stream

    every = _stream.classification_metrics
    monkeypatch.setattr(_stream, "classification_metrics", lambda limits: every(limits)[:1])


def pytest_sessionstart():
    """A worker has what the others compiled in the last run, when they may have had its files."""
    folder = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    for program in folder.parent.glob("*/*-cache"):
        with contextlib.suppress(OSError):  # it is there
            (folder / program.name).hardlink_to(program)


def pytest_collection_finish():
    """The garbage collector need not go through what is imported, which stays."""
    gc.freeze()


def _group(path):
    """The folder of a test, or its file: such tests share a process, its programs and fixtures."""
    return path.parent if path.parent.parent == Path(__file__).parent else path


def pytest_xdist_make_scheduler(config, log):
    class OfGroups(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return str(_group(config.rootpath / nodeid.split("::")[0]))

    return OfGroups(config, log)


_tests = itertools.count()


@functools.cache
def _patches(group):
    """Whether tests patch what programs are traced from: none may then serve other tests."""
    files = group.glob("*.py") if group.is_dir() else [group]
    return any("patch" in file.read_text(encoding="utf-8").lower() for file in files)


def pytest_runtest_teardown(item, nextitem):
    """Lets go of compiled programs before and after tests that patch, and where there are many."""
    groups = {_group(x.path) for x in (item, nextitem) if x is not None}
    patched = len(groups) > 1 and any(map(_patches, groups))
    if patched or (next(_tests) % 16 == 0 and has_many_programs()):
        jax.clear_caches()
        gc.collect()
