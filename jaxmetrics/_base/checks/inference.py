"""Arguments of inference besides the items: levels, keys, models, grids and clusters."""

from __future__ import annotations

import datetime
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.arrays import refuse_masked
from jaxmetrics._base.host import as_numpy, is_concrete
from jaxmetrics._base.quoting import brief, cut
from jaxmetrics._base.types import ArrayLike, HostArray, Items
from jaxmetrics._base.warned import warn

_LEAST_USUAL = 0.5  # a lower level is probably meant as alpha, the probability of an error


def check_level(confidence_level: float) -> float:
    """The confidence level as a float; refuses anything but a constant in (0, 1)."""
    if isinstance(confidence_level, bool) or not isinstance(
        confidence_level, (int, float, np.floating)
    ):
        given = brief(confidence_level)
        raise TypeError(f"confidence_level must be a number in (0, 1), got {given}")
    if not 0 < confidence_level < 1:
        percent = 1 < confidence_level < 100
        hint = f": write {confidence_level / 100:g} for {confidence_level:g} %" if percent else ""
        given = cut(str(confidence_level))
        raise ValueError(f"confidence_level must be in (0, 1), got {given}{hint}")
    if confidence_level < _LEAST_USUAL:
        meant = f"write {1 - confidence_level:g} if that was the probability of an error"
        warn(f"confidence_level={confidence_level:g} is low: {meant}")
    return float(confidence_level)


def check_key(key: Any) -> None:
    """Refuse anything but one JAX random key."""
    if key is None:
        raise TypeError("key is missing, and resampling needs one: write key=jax.random.key(0)")
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = isinstance(key, (jax.Array, np.ndarray)) and key.dtype == np.uint32 and key.ndim == 1
    if not (raw or (typed and not key.ndim)):
        given = brief(key)
        raise TypeError(f"key must be one JAX random key, got {given}: write jax.random.key(0)")


def check_rows(items: Items) -> None:
    """Refuse a batch without rows."""
    shapes = {k: list(x.shape) for k, x in items._asdict().items() if x is not None}
    if any(0 in shape[:-1] for shape in shapes.values()):
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"a batch must have at least one row, got {described}")


def check_models(items: Items) -> int:
    """The number of models; refuses anything but scores `[models, n]` with shared labels."""
    shape = items.scores.shape
    if len(shape) != 2 or shape[0] < 2:
        raise ValueError(
            f"scores must be [models, n] of two models or more, got {list(shape)}: write "
            "numpy.stack([scores_a, scores_b])"
        )
    _check_shared(items)
    return int(shape[0])


def check_one_or_models(items: Items) -> bool:
    """Whether scores are `[n]`; refuses all but these and `[models, n]` with shared labels."""
    shape = items.scores.shape
    if len(shape) > 2 or 0 in shape[:-1]:
        raise ValueError(f"scores must be [n] or [models, n], got {list(shape)}")
    _check_shared(items)
    return len(shape) == 1


def _check_shared(items: Items) -> None:
    """Refuse labels and weights that differ between models."""
    n = items.scores.shape[-1]
    for name, array in items._asdict().items():
        if name != "scores" and array is not None and array.size != n:
            raise ValueError(
                f"{name} must be [n], the same for all models, got {list(array.shape)}"
            )


def check_grid(name: str, value: ArrayLike) -> HostArray:
    """Strictly increasing rates `[points]` in [0, 1], as float64."""
    try:
        grid = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers in [0, 1], got {brief(value)}") from None
    if grid.ndim != 1 or not grid.size or not (np.all(grid >= 0) and np.all(grid <= 1)):
        raise ValueError(
            f"{name} must be [points] in [0, 1], got {brief(value)}: write 0.01 for 1 %"
        )
    if np.any(np.diff(grid) <= 0):
        raise ValueError(f"{name} must increase, got {brief(value)}: write numpy.unique({name})")
    return grid


def check_clusters(clusters: ArrayLike | None, items: Items) -> tuple[HostArray, int] | None:
    """The cluster of each item as an index from 0, and the number of clusters, or None."""
    if clusters is None:
        return None
    hint = "give items without a cluster ids of their own"
    distinct, index = check_ids("clusters", clusters, items, hint)
    return index, max(len(distinct), 1)


def check_ids(name: str, given: Any, items: Items, hint: str) -> tuple[HostArray, HostArray]:
    """The distinct ids in order, and for each item the index of its id among them.

    `hint` is what to write where an id is missing. Those of masked items may be missing.
    """
    n = items.scores.shape[-1]
    if not is_concrete(given):
        raise TypeError(f"{name} must be known when a program is traced: pass a NumPy array")
    refuse_masked(name, given)
    ids = as_numpy(given)
    if ids.shape != (n,):
        raise ValueError(
            f"{name} must be [n], one entry for each of the {n} items, got {list(ids.shape)}"
        )
    try:
        missing = _is_missing(ids)
        if missing.any():
            if (missing & ~_masked(items)).any():
                raise ValueError(f"{name} must not be None or NaN: {hint}")
            some = ids[~missing]
            ids = np.where(missing, some[0], ids) if len(some) else np.zeros(n, int)
        if ids.dtype.kind in "iu" and n and ids.max() - float(ids.min()) < 2 * n:
            return _counted(ids)
        if ids.dtype.kind == "U" and isinstance(given, (list, tuple)):
            ids = np.asarray(given, object)  # so that 1 and '1' stay apart
        if ids.dtype.kind in "OUS":
            return _named(ids)
        distinct, index = np.unique(ids, return_inverse=True)
    except TypeError:  # no order
        kinds = ", ".join(sorted({type(x).__name__ for x in ids})[:4])
        raise TypeError(
            f"{name} must be of one type, got {kinds}: write {name} = list(map(str, {name}))"
        ) from None
    return distinct, index.astype(np.int32)


def _named(ids: HostArray) -> tuple[HostArray, HostArray]:
    """`np.unique` of texts or objects, of which only the distinct ones are sorted."""
    values = ids.tolist()
    some = {x: i for i, x in enumerate(dict.fromkeys(values))}
    known = np.empty(len(some), ids.dtype)
    known[:] = list(some)
    distinct, rank = np.unique(known, return_inverse=True)
    found = np.fromiter(map(some.__getitem__, values), np.int32, len(values))
    return distinct, rank.astype(np.int32).take(found)


def _counted(ids: HostArray) -> tuple[HostArray, HostArray]:
    """The distinct whole numbers, and for each entry its index among them, without a sort."""
    low = ids.min()
    at = ids.astype(np.int64) - low.astype(np.int64)  # a difference may not fit in their dtype
    occurs = np.bincount(at) > 0
    index = (occurs.cumsum() - 1).astype(np.int32)
    return np.flatnonzero(occurs).astype(ids.dtype) + low, index.take(at)


def check_slices(name: str, given: Any, items: Items) -> tuple[tuple[Any, ...], HostArray]:
    """The names of the slices that occur, in order, and for each item the index of its slice.

    If two columns are given, a tuple or list of two arrays, the names are pairs.
    """
    hint = "name the missing value, or leave its items out with where="
    crossed = isinstance(given, (list, tuple)) and len(given) == 2 and np.ndim(given[0]) == 1
    if not crossed:
        distinct, index = check_ids(name, given, items, hint)
        return tuple(_as_names(distinct)), index
    (first, i), (second, j) = (
        check_ids(f"{name}[{k}]", x, items, hint) for k, x in enumerate(given)
    )
    codes, index = np.unique(i.astype(np.int64) * max(len(second), 1) + j, return_inverse=True)
    names = zip(
        _as_names(first[codes // max(len(second), 1)]),
        _as_names(second[codes % max(len(second), 1)]),
        strict=True,
    )
    return tuple(names), index.astype(np.int32)


def _as_names(distinct: HostArray) -> list[Any]:
    """The ids as Python objects.

    NumPy would turn times in nanoseconds into whole numbers: here they are datetimes if
    microseconds hold them exactly, and texts otherwise. NumPy would turn months and years into
    their first days: here they are texts.
    """
    if distinct.dtype.kind != "M":
        return list(distinct.tolist())
    coarse = distinct.astype("datetime64[us]")
    named: list[Any] = distinct.tolist()
    if np.datetime_data(distinct.dtype)[0] in ("Y", "M") or (coarse != distinct).any():
        named = np.datetime_as_string(distinct).tolist()
    elif not all(isinstance(x, datetime.date) for x in named):
        named = coarse.tolist()
    return named


def _masked(items: Items) -> HostArray:
    """`[n]`, which items are known to be left out of all rows."""
    n, where = items.scores.shape[-1], items.where
    if where is None or not is_concrete(where):
        return np.zeros(n, bool)
    valid = as_numpy(where).reshape(-1, where.shape[-1]).any(axis=0)
    return np.broadcast_to(~valid, n)


def _is_missing(ids: HostArray) -> HostArray:
    """Which ids are None, NaN or NaT."""
    missing: HostArray = np.asarray(ids != ids)
    if ids.dtype == object:
        missing |= np.asarray(ids == None)  # noqa: E711, each entry
    return missing
