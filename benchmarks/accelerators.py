"""Programs compiled for an H200 and a TPU v5e that are not there, and what is counted in them.

`python -m benchmarks.accelerators` needs the extra `accelerators`, whose plug-ins hold both
compilers. Nothing runs. Seconds are of the processor, for the compiler alone. Bytes are those of
the operands and results of each kernel: a loop counts as often as it runs, or once where the
compiler does not know how often. A sort counts as one reading and one writing, though it takes
several passes. What a TPU works on in the memory of its core counts as well, and apart.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TARGETS = ("H200", "v5e")
_WIDE = 1024  # entries of a window; a scan has at most 256
_SLOWER = 20  # seconds by the clock for one of the processor, after which a program counts as stuck
_H200 = Path(__file__).with_name("h200.txtpb")
_BYTES = {"pred": 1, "bf16": 2, "token": 0, "opaque": 0}
# What is a name for memory that another kernel has written, or for none.
_FREE = {
    "get-tuple-element",
    "bitcast",
    "tuple",
    "parameter",
    "constant",
    "copy-done",
    "after-all",
    "async-done",
    "slice-done",
}
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)")
_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$")


class Counted(NamedTuple):
    """What a compiled program does; bytes of all items together.

    Attributes:
      kernels: launches, those of a loop as often as it runs.
      loops: `while` instructions.
      moved: bytes that the kernels read and write.
      wide: those of them in words of 64 bits.
      near: those of them in the memory of a TPU's core.
      atomics: scatters of 64-bit floats, each of which is an atomic addition for each item.
      windows: sums over windows of so many entries at each entry that their number is a square.
    """

    kernels: int = 0
    loops: int = 0
    moved: int = 0
    wide: int = 0
    near: int = 0
    atomics: int = 0
    windows: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accelerators", description=__doc__)
    parser.add_argument("names", nargs="*", help="of functions; all if there is none")
    parser.add_argument("--items", type=int, default=100_000, help="a multiple of 100")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds of processor of a compilation"
    )
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--compile", choices=TARGETS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compile:
        _compile_all(given.compile, given.names, given.items, given.limit)
        return
    rows: dict[str, dict[str, str]] = {}
    for target in given.targets:
        for found in compiled(target, given.names, given.items, given.limit):
            print(json.dumps({"target": target, **found}), file=sys.stderr, flush=True)
            row = rows.setdefault(found["name"], {"function": found["name"]})
            row |= _cells(target, found)
    _show(list(rows.values()))


def compiled(target: str, names: list[str], n: int, limit: float) -> Iterator[dict[str, Any]]:
    """What is counted of each program, compiled in a process that is ended at its limit."""
    left: list[str] | None = names or None
    while left is None or left:
        command = [sys.executable, "-m", "benchmarks.accelerators", "--compile", target]
        process = subprocess.Popen(
            [*command, "--items", str(n), "--limit", str(limit), *(left or [])],
            env=_environment(target),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        lines = _lines(process, _SLOWER * limit)
        first = next(lines, None)
        if first is None:
            raise RuntimeError(f"no process for {target} starts: run {' '.join(command)}")
        left = json.loads(first)
        for line in lines:
            yield json.loads(line)
            left.pop(0)
        process.kill()
        process.wait()
        if left:  # the first of them was not done
            late = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
            failed = f"no program after {limit:.0f} s" if late else f"ended by {process.returncode}"
            yield {"name": left.pop(0), "failed": failed}


def _lines(process: subprocess.Popen[str], limit: float) -> Iterator[str]:
    """The lines that a process prints, until one takes longer than the limit."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(limit) and (line := process.stdout.readline()):
            yield line


def _environment(target: str) -> dict[str, str]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    if target == "v5e":
        return environment | {
            "TPU_SKIP_MDS_QUERY": "1",
            "TPU_ACCELERATOR_TYPE": "v5litepod-4",
            "TPU_WORKER_HOSTNAMES": "localhost",
            "TPU_WORKER_ID": "0",
        }
    from nvidia import cuda_nvcc

    folder = next(iter(cuda_nvcc.__path__))
    flags = f"--xla_gpu_autotune_level=0 --xla_gpu_cuda_data_dir={folder}"
    return environment | {"XLA_FLAGS": flags}


def _compile_all(target: str, names: list[str], n: int, limit: float) -> None:
    """Print the names, and what is counted of each program, as lines of JSON.

    The process is ended where a program takes longer than the limit.
    """
    import jax

    sharding, platform = _described_device(target)
    jax.default_backend = lambda: platform  # the library asks it which way to take
    from benchmarks.programs import programs

    found = programs(n)
    names = names or list(found)
    print(json.dumps(names), flush=True)
    for name in names:
        program = found[name]
        end, (_, most) = (
            int(time.process_time() + limit) + 1,
            resource.getrlimit(resource.RLIMIT_CPU),
        )
        resource.setrlimit(resource.RLIMIT_CPU, (end, most))
        arguments = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), program.arguments
        )
        try:
            begin = time.process_time()
            lowered = jax.jit(program.function, out_shardings=sharding).trace(*arguments).lower()
            traced = time.process_time() - begin
            compiled = lowered.compile()
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"[:300]
            print(json.dumps({"name": name, "failed": failed}), flush=True)
            continue
        memory = compiled.memory_analysis()
        seconds = time.process_time() - begin - traced
        result = {
            "name": name,
            "items": program.n_items,
            "seconds": seconds,
            **counted(compiled.as_text())._asdict(),
            "temporary": memory.temp_size_in_bytes,
            "least": memory.argument_size_in_bytes + memory.output_size_in_bytes,
        }
        print(json.dumps(result), flush=True)


def _described_device(target: str) -> tuple[Any, str]:
    """A sharding of one device that is only described, and its platform."""
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    if target == "v5e":
        topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2x1")
    else:
        topology = topologies.get_topology_desc(
            platform="cuda",
            topology_name="1x1x1",
            topology="1x1x1",
            target_config=_H200.read_text(),
        )
    return SingleDeviceSharding(topology.devices[0]), "tpu" if target == "v5e" else "gpu"


def counted(text: str) -> Counted:
    """What a compiled program does, from its text."""
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    entry = ""
    for line in text.splitlines():
        if found := _COMPUTATION.match(line):
            lines = computations.setdefault(found[1], [])
            entry = found[1] if line.startswith("ENTRY") else entry
        else:
            lines.append(line)

    def of(name: str) -> Counted:
        sizes: dict[str, tuple[int, int, int]] = {}
        total = Counted()
        for line in computations[name]:
            if not (found := _INSTRUCTION.match(line)):
                continue
            result, shape, kind, operands, rest = found.groups()
            sizes[result] = _size(shape)
            if kind == "while":
                body = re.search(r"body=%?([\w.-]+)", rest)
                trips = re.search(r'known_trip_count":\{"n":"(\d+)"', rest)
                times = int(trips[1]) if trips else 1
                assert body is not None
                total = _sum(total, Counted(loops=1))
                inner = of(body[1])
                total = _sum(
                    total, Counted(*(x * times for x in inner))._replace(loops=inner.loops)
                )
            elif kind in ("call", "conditional"):
                called = re.findall(r"(?:to_apply|branch_computations|calls)=\{?([^,}]+)", rest)
                called = re.findall(r"%([\w.-]+)", " ".join(called)) or called
                branches = [of(x) for x in called if x in computations]
                if branches:
                    total = _sum(total, max(branches, key=lambda x: x.moved))
            elif kind not in _FREE:
                read = [sizes.get(x, (0, 0, 0)) for x in re.findall(r"%([\w.-]+)", operands)]
                moved, wide, near = (sum(x) for x in zip(sizes[result], *read, strict=True))
                total = _sum(total, Counted(kernels=1, moved=moved, wide=wide, near=near))
        return total

    atomics = len(re.findall(r" = f64\S* scatter\(", text))
    sizes = re.findall(r" reduce-window\(.*?window=\{size=([\dx]+)", text)
    windows = sum(math.prod(map(int, x.split("x"))) > _WIDE for x in sizes)
    return of(entry)._replace(atomics=atomics, windows=windows)


def _sum(a: Counted, b: Counted) -> Counted:
    return Counted(*map(sum, zip(a, b, strict=True)))


def _size(shape: str) -> tuple[int, int, int]:
    """Bytes of a shape, those of words of 64 bits, and those in the memory of a TPU's core."""
    total = wide = near = 0
    for kind, dims, layout in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\](\{[^}]*\})?", shape):
        bits = re.search(r"\d+", kind)
        width = _BYTES.get(kind, int(bits[0]) // 8 if bits else 0)
        size = width * math.prod(int(x) for x in dims.split(",") if x)
        total += size
        wide += size if width >= 8 else 0
        near += size if "S(1)" in layout else 0
    return total, wide, near


def _cells(target: str, found: dict[str, Any]) -> dict[str, str]:
    if "failed" in found:
        return {f"{target}: compiled in": found["failed"].split("\n")[0][:80]}
    n = found["items"]
    cells = {
        f"{target}: compiled in": f"{found['seconds']:.1f} s",
        f"{target}: kernels": f"{found['kernels']:,}",
        f"{target}: loops": str(found["loops"]),
        f"{target}: bytes an item": f"{found['moved'] / n:.0f}",
        # A TPU has no words of 64 bits: its compiler splits them.
        **(
            {f"{target}: beyond the core": f"{(found['moved'] - found['near']) / n:.0f}"}
            if target == "v5e"
            else {f"{target}: of 64 bits": f"{found['wide'] / n:.0f}"}
        ),
        f"{target}: temporaries": f"{found['temporary'] / n:.0f}",
        **({f"{target}: wide windows": str(found["windows"])} if found["windows"] else {}),
    }
    return {"least bytes an item": f"{found['least'] / n:.0f}", **cells}


def _show(rows: list[dict[str, str]]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for line in (
        columns,
        ["---"] * len(columns),
        *([row.get(x, "") for x in columns] for row in rows),
    ):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
