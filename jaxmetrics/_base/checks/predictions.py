"""Hard predictions: class indices from 0, which also index the counts."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.arrays import all_valid, first_invalid
from jaxmetrics._base.checks.items import check_axis, weighted_arrays
from jaxmetrics._base.checks.values import check_count, check_index, number
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.host import all_concrete, is_concrete, of_all_processes
from jaxmetrics._base.quoting import brief
from jaxmetrics._base.types import ArrayLike, HostOrDeviceArray

_FEW_CLASSES = 1024  # so many classes are accepted even with fewer items


@double_precision()  # keeps a 64-bit array of another library in 64 bits
def check_predictions(
    predictions: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[
    HostOrDeviceArray, HostOrDeviceArray, HostOrDeviceArray | None, HostOrDeviceArray | None
]:
    """Predictions and labels as whole numbers of fitting shapes, their weights and mask."""
    ids = {"predictions": predictions, "labels": labels}
    arrays = weighted_arrays(ids, {"weights": weights, "where": where})
    mask = arrays.get("where")
    check_axis("predictions", *(arrays[name] for name in ids))
    decided, truth = (_whole(name, arrays[name], mask) for name in ids)
    return decided, truth, arrays.get("weights"), mask


def _whole(
    name: str, array: HostOrDeviceArray, mask: HostOrDeviceArray | None
) -> HostOrDeviceArray:
    """The array itself if its dtype is not floating; concrete whole floats become int32."""
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    hint = f"write {name}.argmax(-1) or {name} > threshold if they are scores"
    if not all_concrete(array, mask):
        raise TypeError(
            f"{name} must be class indices, got {array.dtype}: {hint}, else {name}.astype(int)"
        )
    array, mask = of_all_processes((array, mask))
    host = np.asarray(array, np.float64)
    whole = (host == np.round(host)) & (np.abs(host) < 2**31)
    if not all_valid(whole, None if mask is None else np.asarray(mask)):
        raise ValueError(
            f"{name} must be class indices, got {first_invalid(host, whole, mask)}: {hint}"
        )
    return np.where(whole, host, 0).astype(np.int32)


def check_class_range(
    ids: dict[str, HostOrDeviceArray],
    mask: HostOrDeviceArray | None,
    n_classes: int | None,
    hint: str = "",
) -> int | None:
    """The highest class index of a valid item, at least 1; None if it is traced.

    Refuses indices that are negative or not below `n_classes`.
    """
    highest: int | None = 1
    for name, array in ids.items():
        if array.dtype == bool or not array.size:
            continue
        if not all_concrete(array, mask):
            highest = None
            continue
        with jax.ensure_compile_time_eval():
            on_host = isinstance(array, np.ndarray) and not isinstance(mask, jax.Array)
            valid = array if mask is None else (np if on_host else jnp).where(mask, array, 0)
            low, high = int(valid.min()), int(valid.max())
        if low < 0:
            raise ValueError(
                f"{name} must be class indices from 0, got {low}: leave out items without a class "
                f"with where={name} >= 0"
            )
        if high >= 2**63:
            raise ValueError(f"{name} must be below 2^63, got {high}: number the classes from 0")
        if n_classes is not None and high >= n_classes:
            raise ValueError(f"{name} must be below {n_classes}, got {high}: {hint}")
        highest = None if highest is None else max(highest, high)
    return highest


def check_n_classes(
    ids: dict[str, HostOrDeviceArray],
    mask: HostOrDeviceArray | None,
    n_classes: int | None,
    classes: tuple[int, ...] | None = None,
) -> int:
    """The number of classes: as given, or else as found in the data, at least 2."""
    if n_classes is None:
        highest = check_class_range(ids, mask, None)
        if highest is None:
            raise TypeError(
                "the number of classes must be known when a program is traced: write n_classes=10"
            )
        count = max(highest, *classes or (0,)) + 1
        n_items = max(array.size for array in ids.values())
        if count > max(n_items, _FEW_CLASSES):
            raise ValueError(
                f"the highest class index is {count - 1}, with {n_items} items: number the classes "
                "with numpy.unique(ids, return_inverse=True)[1], or write n_classes= if there are "
                f"{count} classes"
            )
        return count
    check_count("n_classes", n_classes)
    if classes and max(classes) >= n_classes:
        raise ValueError(f"classes must be below n_classes={n_classes}, got {max(classes)}")
    check_class_range(ids, mask, n_classes, "n_classes= is the number of all classes")
    return int(n_classes)


def check_positive_class(
    ids: dict[str, HostOrDeviceArray],
    mask: HostOrDeviceArray | None,
    n_classes: int | None,
    positive_class: int,
) -> int | None:
    """Exclusive upper bound of the class indices if one class is positive; None without a bound.

    Without `n_classes`, and with `positive_class` 0 or 1, only classes 0 and 1 are allowed.
    Otherwise a problem of several classes would silently take class 1 as the positive one.
    """
    if isinstance(positive_class, bool) or not isinstance(positive_class, (int, np.integer)):
        raise TypeError(f"positive_class must be an int, got {brief(positive_class)}")
    if n_classes is not None:
        check_count("n_classes", n_classes)
        check_index("positive_class", positive_class, n_classes)
    elif not 0 <= positive_class < 2**63:
        raise ValueError(f"positive_class must be a class index, got {brief(positive_class)}")
    limit = n_classes if n_classes is not None or positive_class > 1 else 2
    hint = (
        "for several classes write average='macro', 'micro', 'weighted' or None, or n_classes= "
        f"for class {positive_class} against the rest"
    )
    check_class_range(ids, mask, limit, hint)
    return limit


def check_class_filter(classes: Any) -> tuple[int, ...] | None:
    """Distinct class indices in the order given; None for all classes."""
    if classes is None:
        return None
    if not is_concrete(classes):
        raise TypeError("classes must be known when a program is traced: pass a tuple of ints")
    chosen = np.asarray(classes)
    if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
        raise TypeError(f"classes must be a sequence of class indices, got {brief(classes)}")
    if chosen.min() < 0 or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"classes must be distinct and not negative, got {brief(classes)}")
    return tuple(chosen.tolist())


def check_zero_division(zero_division: float) -> HostOrDeviceArray:
    """A number in [0, 1], or NaN, as an array."""
    if isinstance(zero_division, (float, np.floating)) and math.isnan(zero_division):
        return np.asarray(math.nan)
    if isinstance(zero_division, (str, bool)):
        given = brief(zero_division)
        raise TypeError(f"zero_division must be NaN or a number in [0, 1], got {given}")
    return number(0, 1, several=False)("zero_division", zero_division)


def check_beta(beta: float) -> HostOrDeviceArray:
    """A finite number that is not negative, as an array."""
    return number(0, math.inf, open_high=True, several=False)("beta", beta)
