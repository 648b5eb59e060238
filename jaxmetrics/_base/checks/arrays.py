"""Arrays of real numbers from whatever a caller passes, and checks that their shapes fit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from numbers import Number
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.double import double_precision
from jaxmetrics._base.frames import is_frame, names_in
from jaxmetrics._base.host import is_concrete, is_divided, near, of_all_processes
from jaxmetrics._base.quoting import brief, cut
from jaxmetrics._base.types import ArrayLike, HostArray, HostOrDeviceArray

_ARRAYS = (np.ndarray, jax.Array)
_UNREADABLE = "cannot be read as one array of numbers"
_LABEL_IDS = ("predicted", "relevant")  # of jaxmetrics.extreme, padded with -1


def all_valid(valid: Any, mask: Any) -> bool:
    return bool((valid if mask is None else valid | ~mask).all())


def first_invalid(values: Any, valid: Any, mask: Any) -> Any:
    """The first invalid value among those that the mask keeps."""
    values, valid, mask = of_all_processes((values, valid, mask))
    bad = ~np.asarray(valid) if mask is None else ~np.asarray(valid) & np.asarray(mask)
    return np.broadcast_to(np.asarray(values), bad.shape)[bad][0]


def as_array(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """`value` as an array of real numbers, without a copy where its owner allows that.

    A NumPy array stays one: in JAX, float64 would be rounded to float32 while x64 mode is off.
    """
    if value is None:
        raise TypeError(f"{name} is missing: pass an array with one entry per item")
    if type(value) is np.ndarray:
        array: HostOrDeviceArray = _native(value)
    elif isinstance(value, jax.Array):
        array = value
    elif isinstance(value, tuple) and type(value).__module__.startswith("jaxmetrics."):
        raise TypeError(
            f"{name} must be an array, got a {type(value).__name__}: pass the scores and labels of "
            "the items; metrics take a ScoreTable alone, and jaxmetrics.streaming takes a State"
        )
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        array = _of_tensor(name, value)
    elif isinstance(value, (list, tuple)) and _holds_jax(value):
        array = jnp.asarray(value)
    else:
        refuse_masked(name, value)
        array = _host_array(name, value)
    _refuse_other_dtypes(name, value, array)
    if array.dtype.itemsize == 1 and array.dtype.kind not in "biu":
        array = array.astype(np.float32)  # of 8 bits: JAX promotes none to another float
    if name == "where" and array.dtype != bool:
        missing = hasattr(value, "fillna") and np.isnan(array).any()
        way = "where.fillna(False).astype(bool)" if missing else "where=mask != 0"
        raise TypeError(f"where must be bool, got {array.dtype}: write {way}")
    return own(array)


def _of_tensor(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """NumPy's view of a tensor in the CPU's memory; JAX's of others, and of dtypes NumPy lacks.

    JAX refuses tensors that are not contiguous, such as a column, and bits, and columns with nulls.
    """
    reason = None
    if hasattr(value, "__array__"):
        try:
            return _host_array(name, value)
        except (TypeError, RuntimeError, ValueError) as error:
            reason = error
    try:
        with double_precision():  # keeps a float64 tensor in float64
            return jnp.from_dlpack(value)
    except Exception as error:  # each library has its own types of error
        if "compact" in str(error):
            raise TypeError(f"{name} is not contiguous: write {name}.contiguous()") from None
        said = str(reason or error).removeprefix(f"{name} {_UNREADABLE}: ")[:200]
        raise TypeError(f"{name} {_UNREADABLE}: {said}") from None


def wide_ids(ids: HostOrDeviceArray) -> HostOrDeviceArray:
    """Whole numbers in 32 bits or more: 8 or 16 may not hold the number of ids, which are compared
    with it."""
    return ids.astype(np.int32) if ids.dtype.itemsize < 4 else ids


def empty_as_ids(array: HostOrDeviceArray) -> HostOrDeviceArray:
    """Ids; those of an empty list, of which NumPy makes float64, as int32."""
    return array.astype(np.int32) if not array.size and array.dtype == np.float64 else array


def _stacked(name: str, value: dict[Any, ArrayLike]) -> HostOrDeviceArray:
    """The rows `[models, n]` of a dict of models."""
    if not value:
        raise ValueError(f"{name} is an empty dict: pass an array for each model")
    rows = {key: as_array(f"{name}[{key!r}]", row) for key, row in value.items()}
    if len({row.shape for row in rows.values()}) > 1:
        shapes = ", ".join(f"{brief(key)} {list(row.shape)}" for key, row in rows.items())
        raise ValueError(f"arrays of the dict {name} must have one shape, got {cut(shapes)}")
    if all(isinstance(row, np.ndarray) for row in rows.values()):
        return np.stack([*rows.values()])
    return jnp.stack([*rows.values()])


def _holds_jax(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a value is JAX's: one of each type is asked, as each question takes a microsecond."""
    of_each_type = dict(zip(map(type, values), values, strict=True))
    return any(isinstance(value, jax.Array) for value in of_each_type.values())


def items_last(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """`as_array`, which also takes a dict of models, or a frame, whose rows are items."""
    if type(value) is np.ndarray or isinstance(value, jax.Array):
        return as_array(name, value)
    if isinstance(value, dict):
        return _stacked(name, value)
    array = as_array(name, value)
    return np.ascontiguousarray(array.T) if is_frame(value) else array


def _refuse_other_dtypes(name: str, value: ArrayLike, array: HostOrDeviceArray) -> None:
    """Refuse an array of anything but real numbers."""
    if getattr(array.dtype, "kind", "V") in "biuf":  # the usual case; JAX's own have none, or V
        return
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(
            f"{name} must be real, got {array.dtype}: write {name}.real or abs({name}), "
            "whichever orders the items"
        )
    if isinstance(array, np.ndarray) and array.dtype.kind in "mM":
        raise TypeError(
            f"{name} must hold numbers, got dtype {array.dtype}: for durations write {name} / "
            f"numpy.timedelta64(1, 's'), for times subtract the first one before"
        )
    if not jnp.issubdtype(array.dtype, jnp.number):
        if is_frame(value):
            numeric = [x for x in value.columns if _is_numeric(value[x])]
            odd = next((x for x in value.columns if x not in numeric), None)
            if odd is not None and numeric:
                raise TypeError(
                    f"{name} must hold numbers, but its column {odd!r} does not: leave it out, as "
                    f"in {name}[{cut(str(numeric))}]"
                )
        if isinstance(value, dict):
            raise TypeError(
                f"{name} must be an array, got a dict of {len(value)}: write "
                f"numpy.stack(list({name}.values()))"
            )
        dense = next((x for x in ("toarray", "todense") if hasattr(value, x)), None)
        if dense:
            raise TypeError(f"{name} must be a dense array: write {name}.{dense}()")
        raise TypeError(
            f"{name} must hold numbers, got dtype {array.dtype}{_example(array)}: "
            f"{_of_some(name, array) or _as_numbers(name, array)}"
        )


def _has_texts(array: HostArray) -> bool:
    """Whether an array of objects holds texts, which pandas converts if they look like numbers."""
    return any(isinstance(x, str) for x in array.flat)


def _is_numeric(column: Any) -> bool:
    if _has_texts(np.asarray(column, object)):
        return False
    try:
        np.asarray(column, np.float64)
    except (TypeError, ValueError):
        return _host_array("", column).dtype.kind in "biuf"  # of pandas' nullable columns
    return True


def own(array: HostOrDeviceArray) -> HostOrDeviceArray:
    """A NumPy array as another object with the same memory.

    While a program has a NumPy array as a constant, JAX keeps the array that it made of that
    object, in 32 or 64 bits. It also passes it to programs in the other x64 mode, which fail.
    """
    return array.view() if isinstance(array, np.ndarray) else array


def _host_array(name: str, value: ArrayLike) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        reason = str(error)[:200]
        if "inhomogeneous" in reason:  # NumPy's word
            reason = "its rows have different lengths"
            if name not in _LABEL_IDS:
                reason += ": pass the same items in each, or pad and mask them"
        raise type(error)(f"{name} {_UNREADABLE}: {reason}") from None
    if array.dtype == object and hasattr(value, "to_numpy") and not _has_texts(array):
        with contextlib.suppress(ValueError, TypeError):  # pandas' nullable columns
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    return _native(array)


def refuse_masked(name: str, value: ArrayLike) -> None:
    """Refuse NumPy's masked arrays, alone or in a list, whose mask would be lost."""
    for part_name, part in _parts(name, value):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            whole = name if part is value else f"numpy.ma.stack({name})"
            way = f"{whole}.data with where=~numpy.ma.getmaskarray({whole})"
            if name in ("where", *_LABEL_IDS):
                way = f"{whole}.filled({-1 if name in _LABEL_IDS else False})"
            raise TypeError(f"{part_name} is a masked array, whose mask would be lost: write {way}")


def _native(array: HostArray) -> HostArray:
    """The array in a dtype that JAX has: the machine's byte order, and at most double precision."""
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _example(array: HostOrDeviceArray) -> str:
    if not isinstance(array, np.ndarray) or not array.size:
        return ""
    return f" (such as {brief(array.flat[0])})"


def _of_some(name: str, array: HostOrDeviceArray) -> str:
    """What to write if entries are None, or NaN among texts; empty if none is."""
    entries = array.ravel() if isinstance(array, np.ndarray) and array.dtype == object else ()
    none = any(x is None for x in entries)
    nan = any(isinstance(x, float) and x != x for x in entries)
    if not (none or nan) or name in ("where", "segments", "groups", "index"):
        return ""
    if name in _LABEL_IDS:
        return "write -1 in place of None at the end of a list"
    way = f"numpy.array({name}, float)"
    if name in ("labels", "predictions"):
        way = f"numpy.array({name}) == 1, or the positive class in place of 1,"
    known = " and ".join(none * ["x is not None"] + nan * ["x == x"])
    return f"write {way} with where=[{known} for x in {name}]"


def _as_numbers(name: str, array: HostOrDeviceArray) -> str:
    """What to write for texts and other objects."""
    if name == "where":
        return "write [x == 1 for x in where]"
    if name in _LABEL_IDS:
        return f"number the labels from 0, as by numpy.searchsorted(labels, {name}) of sorted ones"
    entries = array.ravel() if isinstance(array, np.ndarray) else ()
    numbers = array.size and all(isinstance(x, (Number, np.bool_)) for x in entries)
    if name in ("labels", "predictions") and not numbers:
        return (
            f"for two classes write {name} == 'yes', where 'yes' is the positive class; for "
            f"several numpy.searchsorted(classes, {name})"
        )
    if name in ("segments", "groups", "index"):
        return (
            f"write numpy.unique({name}, return_inverse=True)[1], or pandas.factorize({name})[0], "
            "which numbers many texts in a fraction of the time"
        )
    return f"write numpy.asarray({name}, float); in texts, decimals follow a point and no comma"


def unwrapped(array: HostOrDeviceArray) -> HostOrDeviceArray:
    """64-bit integers as floats, for programs that compute in JAX's default float.

    While x64 mode is off, such a program would be given them modulo 2^32.
    """
    wide = array.dtype.itemsize == 8 and jnp.issubdtype(array.dtype, jnp.integer)
    if not (wide and is_concrete(array)):
        return array
    if isinstance(array, jax.Array) and is_divided(array):
        with double_precision():  # where they are, as other processes may hold some
            return array.astype(np.float64)
    return np.asarray(array, np.float64)


def as_arrays(
    needed: dict[str, ArrayLike], others: dict[str, ArrayLike | None]
) -> dict[str, HostOrDeviceArray]:
    """The arrays by name, with shapes that fit, without the entries of `others` that are None."""
    given = needed | {name: value for name, value in others.items() if value is not None}
    arrays = {name: items_last(name, value) for name, value in given.items()}
    check_shapes({name: array.shape for name, array in arrays.items()})
    check_alignment(given)
    return arrays


def check_alignment(given: dict[str, Any], *, by_rows: bool = False) -> None:
    """Refuse pandas columns whose indexes differ, and names of models in another order.

    Items, and models, are paired by position.

    Args:
      given: what the caller passed, by the name of the argument.
      by_rows: the entries of lists are rows, and not columns whose indexes must agree.
    """
    first, like = "", None
    if all(isinstance(x, _ARRAYS) for x in given.values()):
        return
    _check_names(given)
    parts = given.items() if by_rows else (x for pair in given.items() for x in _parts(*pair))
    for name, value in parts:
        axes = getattr(value, "axes", None)
        if not isinstance(axes, list) or not hasattr(axes[0], "equals"):
            continue
        index = axes[0]
        if like is None:
            first, like = name, index
        elif like is not index and len(like) == len(index) and not like.equals(index):
            raise ValueError(
                f"{first} and {name} have different indexes, and items are paired by position: "
                f"write {name}.reindex({first}.index), or {name}.to_numpy() if they are in order"
            )


def _check_names(given: dict[str, Any]) -> None:
    """Refuse dicts and frames that have a name in common at different places."""
    named = {name: found for name, x in given.items() if (found := names_in(x)) is not None}
    first, like = next(iter(named.items()), ("", ()))
    for name, names in named.items():
        moved = [x for x, y in zip(like, names, strict=False) if x != y and x in names]
        if moved and len(names) == len(like):
            isdict = isinstance(given[name], dict)
            ordered = f"{{x: {name}[x] for x in {first}}}" if isdict else f"{name}[list({first})]"
            raise ValueError(
                f"{first} and {name} have {brief(moved[0])} at different places, and they are "
                f"paired by position: write {ordered}"
            )


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The entries of a list, tuple or dict, such as columns, by name; anything else as it is."""
    some = isinstance(value, (list, tuple)) and len(value) > 0
    if some and not isinstance(value[0], (int, float, str)):
        for i, part in enumerate(value):
            yield from _parts(f"{name}[{i}]", part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(f"{name}[{key!r}]", part)
    else:
        yield name, value


def extremes(values: Any, mask: Any) -> tuple[Any, Any]:
    """The lowest and highest of 0 and the valid values, which are concrete; NaN if one is NaN."""
    values, mask = near(values), near(mask)
    if mask is not None:
        host = isinstance(values, np.ndarray) and isinstance(mask, np.ndarray)
        values = (np if host else jnp).where(mask, values, 0)
    return values.min(initial=0), values.max(initial=0)


def check_sizes(shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse sizes that `jax.export` leaves open."""
    for name, shape in shapes.items():
        if not all(isinstance(n, int) for n in shape):
            way = "pad with -1" if name in _LABEL_IDS else "leave the padding out by where="
            raise TypeError(
                f"{name} has a size that is not known, {cut(str(list(shape)))}: export functions "
                f"of fixed sizes, and {way}"
            )


def check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    check_sizes(shapes)
    if len(set(shapes.values())) == 1 and all(shapes.values()):
        return  # the usual case
    for name, shape in shapes.items():
        if not shape:
            raise ValueError(f"{name} is a single number: pass an array [..., n] of n items")
    if len({shape[-1] for shape in shapes.values()}) > 1:
        hint = ""
        (first, scores), (_, labels), *_ = shapes.items()
        if first == "scores" and len(scores) > 1 and scores[-2] == labels[-1]:
            hint = (
                "; for one column of probabilities write scores[:, 1], for columns of models "
                "scores.T, for columns of classes one_vs_rest or multilabel"
            )
            if scores[-1] == 1:
                hint = "; of a single column write scores[:, 0]"
        raise ValueError(f"the last axis is the items and must agree, got {_listed(shapes)}{hint}")
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(
            f"the leading axes are the batch and must broadcast, got {_listed(shapes)}: an "
            "array that lacks a batch axis takes one of length 1, as in labels[None, :]"
        ) from None


def _listed(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {cut(str(list(x)))}" for name, x in shapes.items())
