"""How programs are compiled for a report, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import platformdirs

from jaxmetrics._report._problem import Problem
from jaxmetrics._report._queries import Queries

_FEW = 10_000  # items


@contextmanager
def compiled_for(problem: Problem | Queries) -> Iterator[None]:
    """For few items compile without most optimisations, which take longer than they save."""
    option = "jax_disable_most_optimizations"
    before = jax.config.values[option]
    jax.config.update(option, before or problem.scores.shape[-1] < _FEW)
    try:
        yield
    finally:
        jax.config.update(option, before)


def keep_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, so the next call is faster.

    A folder that the user has set for JAX has precedence. Because the cache has a maximum size, JAX
    locks the folder (by filelock) and looks at all of its files, some hundred, at each write.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    folder = platformdirs.user_cache_path("jaxmetrics")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # the home folder is read-only
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", 2**25)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
