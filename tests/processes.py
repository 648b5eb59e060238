"""Processes of tests; those that tests start compile as they do and have devices of their own."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path


def has_many_programs():
    """Whether this process must let go of compiled programs.

    Each takes several maps, of which Linux gives a process 65,530, and then the compiler crashes.
    To count them takes a millisecond for a thousand.
    """
    maps = Path("/proc/self/maps")
    return maps.exists() and maps.read_bytes().count(b"\n") > 40_000


def environment(devices, **variables):
    """That of the tests, with another number of devices of the processor."""
    count = "xla_force_host_platform_device_count="
    flags = re.sub(rf"{count}\d+", f"{count}{devices}", os.environ["XLA_FLAGS"])
    return {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, **variables}


def printed(worker, processes, *more, timeout=600):
    """What each of these processes printed last, as JSON; they have eight devices in all.

    A process gets its number, the number of processes, a port, and what more is given.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, Path(__file__).with_name(worker)]
    started = [
        subprocess.Popen(
            [*command, str(i), str(processes), str(port), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # XLA needs more threads than there are devices: each waits in a collective for others.
            env=environment(8 // processes, NPROC="32"),
        )
        for i in range(processes)
    ]
    found = []
    for process in started:
        output, errors = process.communicate(timeout=timeout)
        assert process.returncode == 0, errors
        found.append(json.loads(output.splitlines()[-1]))
    return found
