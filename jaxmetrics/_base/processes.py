"""Arrays that all processes of a mesh must have alike, as JAX does not look at each one's own."""

from __future__ import annotations

import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array


def refuse_different(tree: Any, mesh: Mesh, refusal: str) -> None:
    """Refuse a pytree whose arrays are not the same in all processes of a mesh.

    All of them find that out, so that none is left waiting for another. Arrays that lie on several
    processes are not looked at. Cost: a checksum of the others, and one number that is sent.
    """
    spread = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
    if spread.is_fully_addressable:
        return
    own = np.array([_checksum(tree)], np.uint32)
    of_devices = jax.make_array_from_callback((mesh.size,), spread, lambda place: own)
    if not np.asarray(_are_equal(of_devices)):
        raise ValueError(refusal)


@jax.jit
def _are_equal(values: Array) -> Array:
    return jnp.min(values) == jnp.max(values)


def _checksum(tree: Any) -> int:
    found = 0
    for x in jax.tree.leaves(tree):
        if isinstance(x, jax.Array):
            if not is_concrete(x) or not x.is_fully_addressable:
                continue
            if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
                x = jax.random.key_data(x)
        array = np.asarray(x)
        found = zlib.crc32(f"{array.dtype}{array.shape}".encode(), found)
        found = zlib.crc32(array.tobytes(), found)
    return found
