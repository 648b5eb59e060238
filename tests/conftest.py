import gc
import os
from pathlib import Path

import pytest

# Before JAX starts: several devices, also where there is only a processor.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
# What is compiled serves the commands that tests start and the next run. Each worker has a folder,
# as JAX locks none that may grow, and looks at all that is in one that may not each time it writes.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(
    Path(__file__).parents[1] / ".jax_cache" / os.environ.get("PYTEST_XDIST_WORKER", "main")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import numpy as np
from hypothesis import settings

gc.set_threshold(200_000, 20, 100)  # JAX traces into many objects that live; a tenth of the time

collect_ignore = ["axis_worker.py", "stream_worker.py"]  # which are started as processes

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


def pytest_runtest_teardown(item):
    """Lets go of compiled programs before there are more than Linux maps into one process.

    Each takes several maps; where 65,530 are used up the compiler crashes.
    """
    del item
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 40_000:
        jax.clear_caches()
