"""Scores, labels, weights, masks and amounts of items."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.arrays import (
    all_valid,
    as_array,
    as_arrays,
    check_alignment,
    check_sizes,
    first_invalid,
    items_last,
    unwrapped,
)
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.host import all_concrete, as_numpy, is_concrete, near, of_all_processes
from jaxmetrics._base.numerics import default_float, is_inexact, largest_weight, namespace
from jaxmetrics._base.types import ArrayLike, HostOrDeviceArray, Items


def check_items(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    *,
    along: dict[str, ArrayLike | None] | None = None,
    rows_are_problems: bool = False,
    dtype: Any = None,
) -> Items:
    """The inputs of a metric, as checked arrays whose shapes fit.

    Args:
      along: other arrays of the items by name, whose pandas indexes must be the same.
      rows_are_problems: rows of one or two items are meant, and not columns.
      dtype: the dtype that weights and amounts are rounded to, if it is not their own.
    """
    per_item = {"weights": weights, "where": where, "amounts": amounts}
    needed = {"scores": scores, "labels": labels}
    given = needed | per_item
    alone = all(x is None or isinstance(x, np.ndarray) for x in given.values())
    # An array of another library that has 64 bits keeps them.
    with contextlib.nullcontext() if alone else double_precision():
        items = Items(**weighted_arrays(needed, per_item))
        if along:
            check_alignment(given | along)
        if not rows_are_problems:
            check_axis("scores", items.scores, items.labels)
        _check_labels(items)
        if items.weights is not None and dtype is not None:
            check_scale("weights", items.weights, items.where, dtype)
        if items.amounts is not None:  # amounts of negatives do not count, and may be anything
            _check_weights("amounts", items.amounts, items.where, items.labels, dtype)
        return items


def check_values(
    values: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
    along: dict[str, ArrayLike | None] | None = None,
    *,
    together: bool = False,
) -> Items:
    """Values `[..., items]` to take means of, as the scores of items without a class.

    The rows are compared if they are `together`: then one may be far smaller than another.
    """
    array = items_last("values", values)
    check_sizes({"values": array.shape})
    check_range(array, None if where is None else items_last("where", where), together=together)
    labels = np.zeros(array.shape[-1:] or (1,), bool)
    check_alignment({"values": values, "weights": weights, "where": where, **(along or {})})
    return check_items(array, labels, weights, where)


def weighted_arrays(
    needed: dict[str, ArrayLike], others: dict[str, ArrayLike | None]
) -> dict[str, HostOrDeviceArray]:
    """`as_arrays`, which also checks the values of weights."""
    arrays = as_arrays(needed, others)
    if "weights" in arrays:
        _check_weights("weights", arrays["weights"], arrays.get("where"))
        arrays["weights"] = _summable(arrays["weights"])
    return arrays


def _summable(weights: HostOrDeviceArray) -> HostOrDeviceArray:
    """Integers whose sums a float64 might not hold, which NumPy adds up, become floats."""
    array = unwrapped(weights)
    most = float(array.max(initial=0)) * array.size if array is not weights else 0
    return array if most >= 2**53 else weights


def check_axis(
    name: str, values: HostOrDeviceArray, labels: HostOrDeviceArray, *, graded: bool = False
) -> None:
    """Refuse a single column, or a column for each class, whose rows would be a batch of problems.

    If labels are graded, only a single column is refused.
    """
    shape = labels.shape
    if graded and shape[1:] != (1,):
        return
    columns = len(shape) == 2 and values.shape == shape and 0 < shape[1] < shape[0]
    if not columns or (name == "scores" and shape[1] > 2):
        return
    if shape[1] > 1 and not all_concrete(values, labels):
        return
    both, first = f"{name} and labels {list(shape)}", name == "scores"
    way = f"{name}[:, 0] and labels[:, 0]"
    if shape[1] > 1:
        if not _is_one_hot(labels) or not (first or _is_one_hot(values)):
            return
        both += " with a single 1 in each row"
        way = f"{name}.argmax(-1) and labels.argmax(-1)"
    if shape[1] > 1 and first:
        way = "one_vs_rest(metric)(scores, labels.argmax(-1)) or multilabel(metric)(scores, labels)"
    each = f"; if each row is a problem of its own, jax.jit(jax.vmap(metric))({name}, labels)"
    raise ValueError(
        f"{both} look like columns, but the last axis is the items: write {way}"
        f"{'' if graded else each}"
    )


def _is_one_hot(labels: HostOrDeviceArray) -> bool:
    host = as_numpy(labels)
    ones = np.sum(host == 1, axis=1) == 1
    return bool(ones.all()) and np.count_nonzero(host) == len(host)


def _check_labels(items: Items) -> None:
    scores, labels, _, mask, _ = items
    if labels.dtype == bool or not all_concrete(labels, mask):
        return
    labels, mask = near(labels), near(mask)
    with jax.ensure_compile_time_eval():  # checks concrete labels under a trace, too
        valid = (labels == 0) | (labels == 1)
        if not all_valid(valid, mask):
            odd = first_invalid(labels, valid, mask)
            swapped = all_concrete(scores) and all_valid((scores == 0) | (scores == 1), None)
            way = "write labels == positive_class (for -1 and 1, labels > 0)"
            if odd != odd:
                way = "leave these items out by where=~numpy.isnan(labels)"
            elif odd == -1 and ((labels == 0) if mask is None else (labels == 0) & mask).any():
                way = "leave items without a label out by where=labels >= 0"
            elif swapped and jnp.issubdtype(labels.dtype, jnp.floating):
                way = "scores hold 0 and 1 only, and may be swapped with them: scores come first"
            raise ValueError(f"labels must be bool or 0 and 1, got {odd}: {way}")


def _check_weights(
    name: str,
    weights: HostOrDeviceArray,
    mask: HostOrDeviceArray | None,
    labels: HostOrDeviceArray | None = None,
    dtype: Any = None,
) -> None:
    if not all_concrete(weights, mask, labels):
        return
    weights, mask, labels = near(weights), near(mask), near(labels)
    with jax.ensure_compile_time_eval():
        valid = (weights >= 0) & (weights < math.inf)  # False for NaN
        if labels is not None:
            valid = valid | (labels != 1)
        if not all_valid(valid, mask):
            raise ValueError(
                f"{name} must be finite and not negative: write 0, or exclude the items with where="
            )
    if labels is not None:
        mask = (labels == 1) if mask is None else mask & (labels == 1)
    check_scale(name, weights, mask, weights.dtype if dtype is None else dtype)


def check_scale(
    name: str, weights: HostOrDeviceArray, mask: HostOrDeviceArray | None, dtype: Any
) -> None:
    """Refuse rows of weights that are all too large, or too small, to be added and multiplied."""
    if not (is_inexact(weights) and all_concrete(weights, mask)):
        return
    largest = largest_weight(dtype)
    with jax.ensure_compile_time_eval():
        weights, mask = near(weights), near(mask)
        if mask is not None:
            library = namespace(weights)
            weights = library.where(as_numpy(mask) if library is np else mask, weights, 0)
        highest = np.asarray(of_all_processes(weights.max(axis=-1, initial=0)), np.float64)
        wrong = highest[(highest > largest) | (highest > 0) & (highest < 1 / largest)]
        if wrong.size:
            raise ValueError(
                f"the highest of {name} must be from {1 / largest:g} to {largest:g}, got "
                f"{wrong[0]:g}: only their ratios count, write {name} / numpy.max({name})"
            )


def check_range(values: HostOrDeviceArray, mask: ArrayLike | None, *, together: bool) -> None:
    """Refuse rows whose largest finite value has no place in JAX's default float.

    If rows are `together`, their largest value is that of all, and its square must have a place in
    64 bits as well.
    """
    dtype = default_float()
    fits = values.dtype != np.float64 or (dtype == np.float64 and not together)
    if fits or not all_concrete(values, mask):
        return
    values, mask = of_all_processes((values, mask))
    host = np.abs(np.asarray(values))
    counted = np.isfinite(host) if mask is None else np.isfinite(host) & np.asarray(mask)
    host = np.where(counted, host, 0)
    highest = np.atleast_1d(host.max(axis=None if together else -1, initial=0))
    least, most = np.finfo(dtype).tiny, np.finfo(dtype).max
    if dtype == np.float64:
        least, most = 1 / largest_weight(dtype) ** 0.5, largest_weight(dtype) ** 0.5
    wrong = highest[(highest > most) | ((highest > 0) & (highest < least))]
    if wrong.size:
        way = "divide" if wrong[0] > most else "multiply"
        x64 = "" if dtype == np.float64 else ", or turn x64 mode on"
        raise ValueError(
            f"the largest of values must be from {least:.2g} to {most:.2g} in size, got "
            f"{wrong[0]:g}: {way} them{x64}"
        )


def check_per_item(
    weights: ArrayLike | None, where: ArrayLike | None, n: int
) -> tuple[HostOrDeviceArray | None, HostOrDeviceArray | None]:
    """The weights and the mask of n items, which several columns of scores share."""
    checked: list[HostOrDeviceArray | None] = []
    for name, value in (("weights", weights), ("where", where)):
        array = None if value is None else as_array(name, value)
        if array is not None and array.shape[-1:] != (n,):
            raise ValueError(
                f"{name} must be [..., n], one entry for each of the {n} items, got "
                f"{list(array.shape)}"
            )
        checked.append(array)
    array, mask = checked
    if array is not None:
        _check_weights("weights", array, mask)
        array = _summable(array)
    return array, mask


def check_columns(
    scores: tuple[int, ...], labels: tuple[int, ...], *, labels_have_columns: bool
) -> None:
    """Refuse scores that are not `[..., n, columns]`, and labels that do not fit them."""
    check_sizes({"scores": scores, "labels": labels})
    wanted = "[..., n, labels], and labels the same" if labels_have_columns else "[..., n, classes]"
    axes = 2 if labels_have_columns else 1
    fits = len(scores) >= 2 and len(labels) >= axes and scores[-2:][:axes] == labels[-axes:]
    if fits:
        return
    way = ""
    if not labels_have_columns and len(labels) >= 2 and labels[-2:] == scores[-2:]:
        way = ": write labels.argmax(-1)"
    elif len(scores) >= 2 and scores[-1:] == labels[-1:] and not labels_have_columns:
        way = ": write scores.swapaxes(-1, -2)"
    raise ValueError(
        f"scores must be {wanted}{'' if labels_have_columns else ', and labels [..., n]'}; "
        f"got scores {list(scores)}, labels {list(labels)}{way}"
    )


def check_classes(
    labels: HostOrDeviceArray, n_classes: int, mask: HostOrDeviceArray | None
) -> None:
    """Refuse labels that are not indices of the columns of scores."""
    if labels.dtype == bool or not is_concrete(labels) or not is_concrete(mask):
        return

    labels, mask = of_all_processes((labels, mask))
    host = np.asarray(labels)
    valid = np.isin(host, np.arange(n_classes))
    if not np.all(valid if mask is None else valid | ~np.asarray(mask)):
        odd = first_invalid(labels, valid, mask)
        way = "write np.searchsorted(classes, labels)"
        counted = host if mask is None else host[np.broadcast_to(np.asarray(mask), host.shape)]
        if (counted < n_classes).all() or odd != odd:
            way = "leave items without a class out by where=labels >= 0"
        raise ValueError(
            f"labels must be class indices from 0 to {n_classes - 1}, the columns of scores; "
            f"got {odd}: {way}"
        )
