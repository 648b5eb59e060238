"""Measurements that need a process of their own: first calls and peak memory."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax


def fresh(measure: Callable[..., Any], *arguments: Any) -> Any:
    """`measure(*arguments)` in a new process; `measure` is a top-level function of a module.

    Numbers, or lists of them.
    """
    name = measure.__name__
    code = (
        f"import json, sys; from {measure.__module__} import {name}; "
        f"print(json.dumps({name}(*json.loads(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def bytes_at_peak(work: Callable[[], Any]) -> int:
    """Peak bytes of `work` beyond those in use before; on the host, on Linux."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # resets VmHWM, the peak
    before = _resident("VmRSS")
    jax.block_until_ready(work())
    return _resident("VmHWM") - before


def peak_so_far() -> int:
    """Peak bytes of this process."""
    return _resident("VmHWM")


def _resident(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024
