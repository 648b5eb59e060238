"""Training and validation data: pairs of features and labels, and batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxmetrics._base import checks
from jaxmetrics._base.host import as_numpy, is_divided
from jaxmetrics._base.meshes import on_all
from jaxmetrics._base.numerics import default_float
from jaxmetrics._base.processes import refuse_different
from jaxmetrics._base.quoting import brief
from jaxmetrics._base.types import Array

Batch = int | tuple[int, int] | None
OF_LOSSES = ("weights", "where")
OF_METRICS = (*OF_LOSSES, "amounts")


class Data(NamedTuple):
    """Features, a pytree of `[n, ...]`; labels `[n]` bool; `[n]` options of a loss or a metric."""

    features: Any
    labels: Array
    options: dict[str, Any]


def checked(
    name: str,
    given: Any,
    apply: Callable[..., Any],
    params: Any,
    allowed: tuple[str, ...],
    **along: Any,
) -> Data:
    """The data as JAX arrays; refuses data without one score of the model for each label.

    The model is traced, not run: a batch of the items may be all that it has room for. `along` has
    other arguments that go with the items.
    """
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise TypeError(
            f"{name} must be (features, labels) or (features, labels, options), such as "
            f"(x, y, {{'weights': w}}), got {brief(given)}"
        )
    features, labels, options = given if len(given) == 3 else (*given, {})
    if not isinstance(options, dict) or not set(options) <= set(allowed):
        raise TypeError(
            f"the third of {name} must be a dict with keys among {', '.join(allowed)}, "
            f"got {brief(options)}"
        )
    checks.check_alignment({"features": features, "labels": labels, **options, **along})
    features = jax.tree_util.tree_map_with_path(
        lambda path, leaf: _feature(f"{name}[0]{jax.tree_util.keystr(path)}", leaf), features
    )
    scores = jax.eval_shape(apply, *beside(features, (params, features)))
    shape, wanted = getattr(scores, "shape", None), np.shape(labels)
    if shape is None or len(shape) != 1 or shape != wanted:
        raise ValueError(
            f"apply(params, features) must be scores [n] with labels [n] in {name}; got scores "
            f"{shape or checks.brief(scores)} and labels {wanted}"
        )
    like = np.full(shape, 2, scores.dtype)  # scores of 0 and 1 would be taken for labels
    items = checks.check_items(like, labels, **options, dtype=default_float())
    rows = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(features)}
    if rows != {wanted}:
        raise ValueError(
            f"features in {name} must have a row for each of {wanted[0]} labels; got "
            f"{', '.join(str(x[0]) if x else 'none' for x in sorted(rows))}"
        )
    return Data(
        features,
        jnp.asarray(items.labels).astype(bool),
        {
            key: jnp.asarray(checks.unwrapped(getattr(items, key)))
            for key, value in options.items()
            if value is not None
        },
    )


def _feature(place: str, leaf: Any) -> Array:
    """An array of features; refuses what holds no numbers, and the numbers of a list of lists."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    if not array.ndim:
        raise TypeError(
            f"features must be arrays [n, ...], got {brief(leaf)} at {place}: of lists write "
            "numpy.asarray(features)"
        )
    if isinstance(array, np.ndarray) and array.dtype.kind in "OSUTMm":
        return jnp.asarray(checks.as_array(place, leaf))  # it refuses all but pandas' numbers
    return jnp.asarray(array)


def check_params(params: Any) -> Any:
    """Parameters as JAX arrays; refuses leaves that have no gradient."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if not jnp.issubdtype(getattr(leaf, "dtype", type(leaf)), jnp.inexact):
            raise TypeError(
                f"params must hold arrays of floats alone, got {brief(leaf)} at "
                f"params{jax.tree_util.keystr(path)}: split the model into parameters and the "
                "rest, and let apply put them together"
            )
    return jax.tree.map(jnp.asarray, params)


def rows_of(data: Data, batch: Batch, key: Any) -> tuple[Array, ...]:
    """The rows to draw batches from: all valid ones, or those of positives and of negatives."""
    labels = as_numpy(data.labels)
    counts = np.ones(labels.shape, bool)
    for name in ("where", "weights"):  # items of weight 0 have no loss
        counts &= as_numpy(data.options.get(name, counts)) > 0
    if not counts.any():
        raise ValueError("train has no items, or where= or weights leave out all of train")
    if batch is None:
        return ()
    if key is None:
        raise TypeError("key is missing, and batches need one: write key=jax.random.key(0)")
    checks.check_key(key)
    pair = isinstance(batch, tuple) and len(batch) == 2
    if isinstance(batch, (tuple, list)) and not pair:
        raise TypeError(f"batch must be an int or a tuple of two, as (64, 64), got {batch}")
    sizes: Any = batch if pair else (batch,)
    for size in sizes:
        checks.check_count("batch", size)
    groups = (counts & labels, counts & ~labels) if pair else (counts,)
    if not all(group.any() for group in groups):
        raise ValueError("batches need items of each class, and train has only one")
    return tuple(jnp.asarray(np.flatnonzero(group)) for group in groups)


def drawn(key: Array, groups: tuple[Array, ...], batch: Batch) -> Array:
    """The rows of one batch; with a pair of sizes, positives are drawn without replacement."""
    if not isinstance(batch, tuple):
        return jax.random.choice(key, groups[0], (batch or 0,))
    first, second = jax.random.split(key)
    positives = jax.random.permutation(first, groups[0])[: batch[0]]
    return jnp.concatenate([positives, jax.random.choice(second, groups[1], (batch[1],))])


def of_both(batch: Batch, groups: tuple[Array, ...]) -> int | None:
    """The size of a batch that `drawn` returns, of both classes together."""
    if not isinstance(batch, tuple):
        return batch
    return min(batch[0], len(groups[0])) + batch[1]


def taken(data: Data, rows: Array) -> Data:
    """Some rows of the data; on a mesh with `Explicit` axes, every device gets all of these."""

    def of_array(x: Array) -> Array:
        whole, laid = None, jax.typeof(x).sharding
        if laid.mesh.explicit_axes:
            whole = NamedSharding(laid.mesh, PartitionSpec(None, *laid.spec[1:]))
        return x.at[rows].get(out_sharding=whole)

    return jax.tree.map(of_array, data)


def check_processes(given: Any) -> None:
    """Refuse arrays that differ between processes, where others lie on a mesh of several.

    Each process chooses the checkpoint, and would choose another one, or stop alone.
    """
    divided = [
        x
        for x in jax.tree.leaves(given)
        if is_divided(x) and isinstance(x.sharding, NamedSharding) and not x.is_fully_addressable
    ]
    for x in divided[:1]:
        refuse_different(
            given,
            x.sharding.mesh,
            "params, key or data differ between processes: make params from one key in all of "
            "them, and put data on the mesh by jax.make_array_from_process_local_data, or give "
            "each process all of them",
        )


def beside(data: Any, tree: Any) -> Any:
    """The arrays of a pytree, copied to the mesh of the data if it has `Explicit` axes.

    In an array that is not on the mesh, JAX would not add up the gradients of the devices.
    """

    def is_explicit(x: Any) -> bool:
        return bool(jax.typeof(x).sharding.mesh.explicit_axes)

    laid = next((x for x in jax.tree.leaves(data) if is_explicit(x)), None)
    if laid is None:
        return tree
    return jax.tree.map(lambda x: x if is_explicit(x) else on_all(x, laid.sharding.mesh), tree)
