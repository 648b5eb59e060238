"""The cases of `mesh_cases` on eight devices, of one process or of two, compared with one device.

    python tests/mesh_worker.py PROCESS PROCESSES PORT NAME:FORM,...

Prints as JSON what went wrong, by name and form; None where nothing did.
"""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from devices import placed as on_mesh
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from mesh_cases import ARRAYS, CASES, Case
from processes import has_many_programs

process, processes, port = map(int, sys.argv[1:4])
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)

LAYOUTS: dict[str, dict[str, Any]] = {
    "items": {"n": ("m", "d")},
    "models": {"m": "m"},
    "both": {"m": "m", "n": "d"},
    "replicated": {},
}
SIZES = {"m": 2, "d": 4}


def mesh_of(kind: str) -> Any:
    axis_type = AxisType[kind]
    return jax.make_mesh(tuple(SIZES.values()), tuple(SIZES), axis_types=(axis_type,) * 2)


def specs_of(case: Case, layout: str) -> tuple[P, ...]:
    return tuple(P(*(LAYOUTS[layout].get(x) for x in ARRAYS[name][1])) for name in case.names)


def placed(case: Case, mode: str, kind: str, layout: str) -> tuple[Any, Any]:
    """What a call of arrays on the mesh returns, and one of the same arrays on one device."""
    mesh = mesh_of(kind)
    specs = specs_of(case, layout)
    arrays = [on_mesh(x, spec, mesh) for x, spec in zip(case.arrays(), specs, strict=True)]
    expected = case.function(*case.arrays())
    if mode == "context" or (mode == "eager" and case.differentiated):
        with jax.set_mesh(mesh):
            return case.function(*arrays), expected
    function = jax.jit(case.function) if mode == "jit" else case.function
    return function(*arrays), expected


def part(array: Any, letters: str, layout: str, device: dict[str, int]) -> Any:
    """What a device of a mesh has of an array."""
    for axis, letter in enumerate(letters):
        names = LAYOUTS[layout].get(letter, ())
        for name in names if isinstance(names, tuple) else (names,):
            array = np.split(array, SIZES[name], axis)[device[name]]
    return array


def divided(case: Case, check: str, layout: str) -> tuple[Any, Any]:
    """What each device computes in `jax.shard_map`, and what of the same part outside of it."""

    def on_each(*arrays: Any) -> Any:
        return jax.tree.map(lambda x: jnp.asarray(x)[None], case.function(*arrays))

    program = jax.shard_map(
        on_each,
        mesh=mesh_of("Auto"),
        in_specs=specs_of(case, layout),
        out_specs=P(tuple(SIZES)),
        check_vma=check == "checked",
    )
    alone = [
        case.function(*(part(*ARRAYS[x], layout, {"m": i, "d": j}) for x in case.names))
        for i in range(SIZES["m"])
        for j in range(SIZES["d"])
    ]
    found = jax.jit(program)(*case.arrays())
    return found, jax.tree.map(lambda *x: np.stack([np.asarray(value) for value in x]), *alone)


def what_is_wrong(compare: Callable[..., tuple[Any, Any]], *arguments: Any) -> str | None:
    try:
        found, expected = compare(*arguments)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            if isinstance(x, jax.Array) and not x.is_fully_addressable:
                x = process_allgather(x, tiled=True)
            x, y = (np.asarray(value, np.float64) for value in (x, y))
            np.testing.assert_allclose(x, y, 2e-6, 1e-6)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:1000]
    return None


def main(cases: str) -> None:
    warnings.simplefilter("ignore")
    results: dict[str, dict[str, str | None]] = {}
    for name, form in (case.split(":") for case in cases.split(",")):
        if has_many_programs():
            jax.clear_caches()
        mode, *rest = form.split()
        if not CASES[name].traced and mode in ("jit", "shard_map"):
            continue
        compare = divided if mode == "shard_map" else placed
        how = rest if mode == "shard_map" else (mode, *rest)
        results.setdefault(name, {})[form] = what_is_wrong(compare, CASES[name], *how)
    print(json.dumps(results))
    if processes > 1:
        jax.distributed.shutdown()


if __name__ == "__main__":
    main(*sys.argv[4:])
