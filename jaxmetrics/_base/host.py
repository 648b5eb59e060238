"""What NumPy and threads do on the CPU, and when they may: one policy for all packages."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base.primitives import is_concrete as is_concrete
from jaxmetrics._base.primitives import is_top_level, to_default_device
from jaxmetrics._base.types import Array, HostArray

R = TypeVar("R")
T = TypeVar("T")

_here = threading.local()

_ALIGNMENT = 64  # bytes, of the arrays that JAX takes as they are
LONG = 1 << 13  # items of a row from which on computing takes longer than the calls themselves


@functools.cache
def memory_size() -> float:
    """The bytes of this machine's memory."""
    if not hasattr(os, "sysconf"):  # on Windows
        return math.inf
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def all_concrete(*arrays: Any) -> bool:
    """Whether the values of all arrays are known now."""
    return all(is_concrete(array) for array in arrays)


@jax.jit
def _number(x: Any) -> Array:
    return jnp.asarray(x)


def is_compiling() -> bool:
    """Whether a program is being traced, even if none of its inputs is at hand."""
    return not is_top_level() and not is_concrete(_number(np.float32(0)))


def to_program(tree: T) -> T:
    """The pytree as a program takes it: copies of NumPy's arrays, which JAX reads later on.

    The caller may write over them as soon as the call returns. While another program is traced, the
    values of long concrete arrays are hidden from XLA, which evaluates sums of constants as it
    compiles: it takes seconds where the program takes a millisecond.
    """
    at_once = is_top_level()

    def of(x: Any) -> Any:
        if at_once:
            return _copied(x) if isinstance(x, np.ndarray) else x
        known = isinstance(x, (np.ndarray, jax.Array)) and is_concrete(x)
        return lax.optimization_barrier(x) if known and x.size >= LONG else x

    return jax.tree.map(of, tree)


def _copied(array: Any) -> Any:
    """A copy. A long one begins where JAX takes it as it is, and does not copy it once more."""
    if array.size < LONG:
        return array.copy()
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    found = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def to_jax(values: Any, like: Any) -> Array:
    """NumPy's values as a JAX array, in a dtype of JAX; the two may share memory.

    The array is on the device that `like` is committed to, if it is committed to one.
    """
    found: Array = to_default_device(np.asarray(values))
    if isinstance(like, jax.Array) and like.committed and like.devices() != found.devices():
        found = jax.device_put(found, *like.devices())
    return found


def as_jax(values: Any) -> Array:
    """NumPy's values as `to_jax` makes them, without the copy that jnp.asarray may compile."""
    return values if isinstance(values, jax.Array) else to_jax(values, None)


def on_cpu() -> bool:
    """Whether programs run on the CPU, where they are planned for its caches and threads."""
    return jax.default_backend() == "cpu"


def on_tpu() -> bool:
    """Whether programs run on a TPU, which emulates 64-bit words by pairs of 32-bit ones."""
    return jax.default_backend() == "tpu"


def on_gpu() -> bool:
    """Whether programs run on a GPU, for which each step of a loop is several launches."""
    return not (on_cpu() or on_tpu())


def one_by_one(n: int) -> bool:
    """Whether a program takes rows of n items in turn: their arrays then stay in the CPU's caches.

    An accelerator is fast where it has all rows at once.
    """
    return n >= LONG and on_cpu()


def near(array: Any) -> Any:
    """A NumPy view of an array that lies in the CPU's memory; any other array as it is."""
    if isinstance(array, jax.Array) and is_concrete(array):
        device, *others = array.devices()
        if device.platform == "cpu" and not others:
            return np.asarray(array)
    return array


def is_divided(array: Any) -> bool:
    """Whether an array with known values lies on several devices, perhaps of several processes."""
    return isinstance(array, jax.Array) and is_concrete(array) and len(array.devices()) > 1


def of_all_processes(tree: T) -> T:
    """The pytree, with arrays of which other processes hold parts as NumPy's, whole.

    All processes must call this, as they must any program of such arrays.
    """

    return jax.tree.map(_of_all_processes, tree)


def _of_all_processes(array: Any) -> Any:
    if not isinstance(array, jax.Array) or not is_concrete(array) or array.is_fully_addressable:
        return array
    from jax.experimental.multihost_utils import process_allgather  # rarely needed

    return np.asarray(array) if array.is_fully_replicated else process_allgather(array, tiled=True)


def as_numpy(array: Any) -> HostArray:
    """NumPy's view of an array with known values, of which other processes may hold parts."""
    return np.asarray(_of_all_processes(array))


def at_hand(*arrays: Any) -> tuple[Any, ...]:
    """The arrays, as NumPy views where they lie in the memory of the CPU that computes."""
    if is_compiling() or not on_cpu():
        return arrays  # NumPy's would become constants of the program, or be sent to a device
    return tuple(map(near, arrays))


def near_tree(tree: Any) -> Any:
    """A pytree of a few numbers, with concrete arrays of any one device as NumPy's, in float64.

    The rules that read them are loops of small steps. On a GPU each step would be a launch.
    """
    leaves, structure = jax.tree.flatten(tree)
    if not is_compiling():
        arrays = ((i, x) for i, x in enumerate(leaves) if isinstance(x, jax.Array))
        known = [i for i, x in arrays if is_concrete(x) and not is_divided(x)]
        # Together, so that the copies from a device do not wait for each other.
        for i, x in zip(known, jax.device_get([leaves[i] for i in known]), strict=True):
            leaves[i] = x
    numbers = (isinstance(x, np.ndarray) and x.dtype != bool for x in leaves)
    leaves = [x.astype(np.float64) if y else x for x, y in zip(leaves, numbers, strict=True)]
    return jax.tree.unflatten(structure, leaves)


def on_host(*arrays: Any) -> tuple[Any, ...] | None:
    """The arrays as NumPy views if all are at hand, so that NumPy sorts; None otherwise."""
    if is_compiling() or not on_cpu():
        return None
    views = tuple(map(near, arrays))
    return views if all(x is None or isinstance(x, np.ndarray) for x in views) else None


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13, which also heeds PYTHON_CPU_COUNT
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads(at_most: int | None = None) -> ThreadPoolExecutor:
    """A pool to run programs: one thread per processor, or one thread where a device computes."""
    workers = processors() if on_cpu() else 1
    return ThreadPoolExecutor(workers if at_most is None else max(min(workers, at_most), 1))


def in_threads(work: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
    """`work` of each argument, in order, with one thread per processor; for NumPy's work.

    Where the arguments occupy all processors, nested calls start no more threads, which would wait
    for each other.
    """
    listed, n_threads = [list(x) for x in arguments], processors()
    if len(listed[0]) < 2 or getattr(_here, "is_one_of_all", False):
        return list(map(work, *listed))

    def begin() -> None:
        _here.is_one_of_all = len(listed[0]) >= n_threads

    with ThreadPoolExecutor(n_threads, initializer=begin) as workers:
        return list(workers.map(work, *listed))
