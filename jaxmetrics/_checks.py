"""Every check of what a caller passes, in one place, before any work.

Shapes, dtypes and options are checked always. Values are checked when they are concrete; under a
transformation they are unknown, and what is undefined comes out as NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._numerics import double_precision
from jaxmetrics._types import ArrayLike, HostArray, HostOrDeviceArray, Items

QUANTILE_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def is_concrete(array: Any) -> bool:
    """Whether the values are known now, rather than traced."""
    return not isinstance(array, jax.core.Tracer)


def as_array(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """`value` as a real array; without a copy where its owner allows it.

    NumPy keeps its own dtype, so that float64 survives although JAX's x64 mode is off.
    """
    if value is None:
        raise TypeError(f"{name} is missing: pass an array with one entry an item")
    if isinstance(value, jax.Array):
        array: HostOrDeviceArray = value
    elif isinstance(value, np.ndarray):
        array = _native(np.asarray(value))
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        with double_precision():  # a float64 tensor stays one
            array = jnp.from_dlpack(value)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, jax.Array) for v in value):
        array = jnp.asarray(value)
    else:
        array = _host_array(name, value)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(
            f"{name} must be real, got {array.dtype}: write {name}.real or abs({name}), "
            "whichever orders the items"
        )
    if array.dtype != bool and not jnp.issubdtype(array.dtype, jnp.number):
        raise TypeError(
            f"{name} must hold numbers, got dtype {array.dtype}{_example(array)}: convert first, "
            "for labels by comparing with the positive class, as in labels == 'yes', for several "
            f"classes by numpy.searchsorted(classes, {name})"
        )
    return array


def _host_array(name: str, value: ArrayLike) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
        if array.dtype == object and hasattr(value, "to_numpy"):  # pandas' nullable columns
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name} cannot be read as one array of numbers: {error}") from None
    return _native(array)


def _native(array: HostArray) -> HostArray:
    """Of a dtype that JAX has: in the machine's byte order, and of double precision at most."""
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _example(array: HostOrDeviceArray) -> str:
    return f" (such as {array.flat[0]!r})" if array.size and isinstance(array, np.ndarray) else ""


def check_items(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
) -> Items:
    """The inputs of a metric as arrays that fit together, or an error that says what to write."""
    with double_precision():  # a 64-bit array of another library stays one
        return _check_items(scores, labels, weights, where, amounts)


def _check_items(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
    amounts: ArrayLike | None,
) -> Items:
    given = {"scores": as_array("scores", scores), "labels": as_array("labels", labels)}
    for name, value in (("weights", weights), ("where", where), ("amounts", amounts)):
        if value is not None:
            given[name] = as_array(name, value)
    mask = given.get("where")
    if mask is not None and mask.dtype != bool:
        raise TypeError(f"where must be bool, got {mask.dtype}: write where=mask != 0")
    _check_shapes({name: array.shape for name, array in given.items()})
    _check_labels(given["labels"], mask)
    if "weights" in given:
        _check_weights("weights", given["weights"], mask)
    if "amounts" in given:  # of the positives, as only theirs count
        _check_weights("amounts", given["amounts"], mask, given["labels"])
    return Items(**given)


def _check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if not shape:
            raise ValueError(f"{name} is a single number: pass an array with an axis of items")
    described = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    if len({shape[-1] for shape in shapes.values()}) > 1:
        hint = ""
        (first, scores), (_, labels), *_ = shapes.items()
        if first == "scores" and len(scores) > 1 and scores[-2] == labels[-1]:
            hint = (
                "; for one column of probabilities write scores[:, 1], for one model a column "
                "scores.T, for classes one_vs_rest or multilabel"
            )
        raise ValueError(f"the last axis is the items and must agree, got {described}{hint}")
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(
            f"the leading axes are the batch and must broadcast, got {described}: insert axes of "
            "length 1, as in labels[None, :], where a batch axis is shared"
        ) from None


def _check_labels(labels: HostOrDeviceArray, mask: HostOrDeviceArray | None) -> None:
    if labels.dtype == bool or not _all_concrete(labels, mask):
        return
    with jax.ensure_compile_time_eval():  # under a trace what is known is computed all the same
        valid = (labels == 0) | (labels == 1)
        if not _all(valid, mask):
            odd = np.asarray(labels)[~np.asarray(valid)]
            raise ValueError(
                f"labels must be bool or 0 and 1, got {odd.flat[0]}: write labels == "
                "positive_class (for -1 and 1, labels > 0)"
            )


def _check_weights(
    name: str,
    weights: HostOrDeviceArray,
    mask: HostOrDeviceArray | None,
    labels: HostOrDeviceArray | None = None,
) -> None:
    if not _all_concrete(weights, mask, labels):
        return
    with jax.ensure_compile_time_eval():
        valid = (weights >= 0) & (weights < math.inf)  # False for NaN
        if labels is not None:
            valid = valid | (labels != 1)
        if not _all(valid, mask):
            raise ValueError(
                f"{name} must be finite and not negative: write 0, or exclude the items with where="
            )


def _all_concrete(*arrays: Any) -> bool:
    return all(is_concrete(array) for array in arrays)


def _all(valid: Any, mask: Any) -> bool:
    return bool((valid if mask is None else valid | ~mask).all())


def check_per_item(
    weights: ArrayLike | None, where: ArrayLike | None, n: int
) -> tuple[HostOrDeviceArray | None, HostOrDeviceArray | None]:
    """Weights and a mask of n items, which are to be shared by several columns of scores."""
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
    if mask is not None and mask.dtype != bool:
        raise TypeError(f"where must be bool, got {mask.dtype}: write where=mask != 0")
    if array is not None:
        _check_weights("weights", array, mask)
    return array, mask


# Options. One name means one thing wherever it appears, so a name is all that a check needs.


def _number(
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    several: bool = True,
) -> Any:
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"

    def check(name: str, value: Any) -> HostOrDeviceArray:
        wanted = f"a number in {interval}{' or several' if several else ''}"
        try:
            if isinstance(value, jax.Array):  # its precision says how exactly it is meant
                floating = jnp.issubdtype(value.dtype, jnp.floating)
                array: HostOrDeviceArray = value if floating else value.astype(float)
            else:
                array = np.asarray(value)
                array = array.astype(np.float64) if array.dtype.kind in "iu" else array
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be {wanted}, got {value!r}") from None
        numeric = jnp.issubdtype(array.dtype, jnp.floating)
        if not numeric or (array.ndim and not several):
            raise TypeError(f"{name} must be {wanted}, got {value!r}")
        host = np.asarray(array) if is_concrete(array) else array
        above = host > low if open_low else host >= low
        below = host < high if open_high else host <= high
        if not is_concrete(array):
            return jnp.where(above & below, array, jnp.nan)  # what is not allowed is undefined
        if not np.all(above & below):
            percent = high == 1.0 and bool(np.any(host > 1))
            hint = ": write fractions, 0.01 for 1 per cent" if percent else ""
            raise ValueError(f"{name} must be in {interval}, got {value}{hint}")
        return array

    return check


def _one_of(options: Iterable[str]) -> Any:
    allowed = tuple(options)

    def check(name: str, value: Any) -> str:
        if value not in allowed:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            )
        return str(value)

    return check


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


_OPTIONS: dict[str, Any] = {
    "max_fpr": _number(0, 1, open_low=True),
    "min_fpr": _number(0, 1, open_high=True),
    "min_tpr": _number(0, 1, open_high=True),
    "min_recall": _number(0, 1),
    "min_precision": _number(0, 1),
    "min_specificity": _number(0, 1),
    "min_sensitivity": _number(0, 1),
    "fp_cost": _number(0, math.inf, open_high=True, several=False),
    "fn_cost": _number(0, math.inf, open_high=True, several=False),
    "scale": _one_of(("raw", "range", "mcclish")),
    "method": _one_of(("step", "linear", "quantile")),
    "quantile_method": _one_of(QUANTILE_METHODS),
    "return_threshold": _flag,
}


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a metric of the library, each by its name; numbers come back as arrays."""
    checked = {name: _OPTIONS[name](name, value) for name, value in options.items()}
    limits = {k: v.shape for k, v in checked.items() if hasattr(v, "shape")}
    try:
        np.broadcast_shapes(*limits.values())
    except ValueError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in limits.items())
        raise ValueError(f"limits must be single numbers or go together, got {listed}") from None
    window = [checked.get("min_fpr"), checked.get("max_fpr")]
    if all(end is not None and is_concrete(end) for end in window) and not np.all(
        np.asarray(window[0]) < np.asarray(window[1])
    ):
        raise ValueError(
            f"min_fpr must be below max_fpr, got {options['min_fpr']} and {options['max_fpr']}"
        )
    return checked


_LOSS_OPTIONS: dict[str, Any] = {
    "max_fpr": _number(0, 1, open_low=True, several=False),
    "min_tpr": _number(0, 1, open_high=True, several=False),
    "margin": _number(0, math.inf, open_low=True, open_high=True, several=False),
    "temperature": _number(0, math.inf, open_low=True, open_high=True, several=False),
    "band": _number(0, math.inf, open_high=True, several=False),
    "kl_weight": _number(0, math.inf, open_low=True, open_high=True, several=False),
    "step_size": _number(0, 1, open_low=True, several=False),
}


def check_loss_options(options: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a loss, each by its name, as arrays; they may be traced."""
    return {name: _LOSS_OPTIONS[name](name, value) for name, value in options.items()}


def check_slots(index: ArrayLike, items: Items, n_slots: int) -> HostOrDeviceArray:
    """The slot of each item of a batch, which those of its positives must exist."""
    array = as_array("index", index)
    for name, given in items._asdict().items():
        if given is not None and given.ndim > 1:
            raise ValueError(
                f"a batch is [n], got {name} {list(given.shape)}: for several models vmap the call"
            )
    if array.dtype == bool or not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"index must hold whole numbers, the slot of each item, got {array.dtype}")
    if array.shape != items.scores.shape:
        raise ValueError(
            f"index must be {list(items.scores.shape)}, one slot an item, got {list(array.shape)}"
        )
    if _all_concrete(array, items.labels, items.where):
        with jax.ensure_compile_time_eval():
            valid = (array >= 0) & (array < n_slots) | (items.labels == 0)
            if not _all(valid, items.where):
                counted = ~np.asarray(valid) & (True if items.where is None else items.where)
                raise ValueError(
                    f"index must be from 0 to n_slots - 1 = {n_slots - 1}, got "
                    f"{np.asarray(array)[counted][0]}: write init(n_slots) with a slot for each "
                    "positive"
                )
    return array


def check_average(average: str | None, allowed: tuple[str | None, ...]) -> None:
    """Refuse an average that the kind of problem does not define."""
    if average not in allowed:
        raise ValueError(f"average must be one of {', '.join(map(repr, allowed))}, got {average!r}")


def check_count(name: str, value: int) -> None:
    """Refuse anything but a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def check_flag(name: str, value: bool) -> None:
    """Refuse anything but True and False."""
    _flag(name, value)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse anything but one of the words."""
    _one_of(allowed)(name, value)


def check_level(confidence_level: float) -> float:
    """A confidence level, which is a constant, above 0 and below 1."""
    if isinstance(confidence_level, bool) or not isinstance(confidence_level, (int, float)):
        raise TypeError(f"confidence_level must be a number in (0, 1), got {confidence_level!r}")
    if not 0 < confidence_level < 1:
        percent = 1 < confidence_level < 100
        hint = f": write {confidence_level / 100:g} for {confidence_level:g} %" if percent else ""
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level}{hint}")
    return float(confidence_level)


def check_key(key: Any) -> None:
    """Refuse what is not one random key of JAX's."""
    if key is None:
        raise TypeError("key is missing, and resampling needs one: write key=jax.random.key(0)")
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = isinstance(key, (jax.Array, np.ndarray)) and key.dtype == np.uint32 and key.ndim == 1
    if not (raw or (typed and not key.ndim)):
        raise TypeError(f"key must be one JAX random key, got {key!r}: write jax.random.key(0)")


def check_columns(
    scores: tuple[int, ...], labels: tuple[int, ...], *, labels_have_columns: bool
) -> None:
    """Refuse scores that are not `[..., n, columns]`, or labels that do not go with them."""
    wanted = "[..., n, labels], the same of labels" if labels_have_columns else "[..., n, classes]"
    axes = 2 if labels_have_columns else 1
    fits = len(scores) >= 2 and len(labels) >= axes and scores[-2:][:axes] == labels[-axes:]
    if not fits:
        raise ValueError(
            f"scores must be {wanted}{'' if labels_have_columns else ', and labels [..., n]'}; "
            f"got scores {list(scores)}, labels {list(labels)}"
        )


def check_classes(
    labels: HostOrDeviceArray, n_classes: int, mask: HostOrDeviceArray | None
) -> None:
    """Refuse labels that are not class indices, one for each column of scores."""
    if labels.dtype == bool or not is_concrete(labels) or not is_concrete(mask):
        return

    host = np.asarray(labels)
    valid = np.isin(host, np.arange(n_classes))
    if not np.all(valid if mask is None else valid | ~np.asarray(mask)):
        raise ValueError(
            f"labels must be class indices from 0 to {n_classes - 1}, one a column of scores; "
            f"got {host[~valid].flat[0]}: write np.searchsorted(classes, labels)"
        )


def check_models(items: Items) -> int:
    """How many models there are; refuses what is not `[models, n]` with shared labels."""
    shape = items.scores.shape
    if len(shape) != 2 or shape[0] < 2:
        raise ValueError(
            f"scores must be [models, n] of two models or more, got {list(shape)}: write "
            "numpy.stack([scores_a, scores_b])"
        )
    for name, array in items._asdict().items():
        if name != "scores" and array is not None and array.size != shape[1]:
            raise ValueError(
                f"{name} must be [n], the same for all models, got {list(array.shape)}"
            )
    return int(shape[0])


def check_grid(name: str, value: ArrayLike) -> HostArray:
    """Rates `[points]` that rise, in (0, 1], in float64."""
    try:
        grid = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers in (0, 1], got {value!r}") from None
    if grid.ndim != 1 or not grid.size or not (np.all(grid > 0) and np.all(grid <= 1)):
        raise ValueError(f"{name} must be [points] in (0, 1], got {value}: 0.01 is 1 per cent")
    if np.any(np.diff(grid) <= 0):
        raise ValueError(f"{name} must rise from point to point: write numpy.unique({name})")
    return grid


def check_index(name: str, value: int, n: int) -> None:
    """Refuse anything but a whole number from 0 to n - 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if not 0 <= value < n:
        raise ValueError(f"{name} must be from 0 to {n - 1}, got {value}")


def check_clusters(clusters: ArrayLike, items: Items) -> tuple[HostArray, int]:
    """The cluster of each item as an index from 0, and how many clusters there are."""
    if not is_concrete(clusters):
        raise TypeError("clusters must be known when a program is traced: pass a NumPy array")
    ids = np.asarray(clusters)
    n = items.scores.shape[-1]
    if ids.shape != (n,):
        raise ValueError(
            f"clusters must be [n], one entry for each of the {n} items, got {list(ids.shape)}"
        )
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError("clusters must not be NaN: give an item of its own cluster its own id")
    distinct, index = np.unique(ids, return_inverse=True)
    return index.astype(np.int32), max(len(distinct), 1)


# Lists of documents.


def check_lists(
    scores: ArrayLike,
    labels: ArrayLike,
    segments: ArrayLike | None,
    num_segments: int | None,
    where: ArrayLike | None,
) -> tuple[Items, HostOrDeviceArray | None, int | None]:
    """Scores and graded labels that fit together, the list of each item and how many there are."""
    with double_precision():
        given = {"scores": as_array("scores", scores), "labels": as_array("labels", labels)}
        mask = None if where is None else as_array("where", where)
        if mask is not None and mask.dtype != bool:
            raise TypeError(f"where must be bool, got {mask.dtype}: write where=mask != 0")
        others = {"where": mask, "segments": segments}
        arrays = {k: as_array(k, v) for k, v in others.items() if v is not None}
        _check_shapes({name: array.shape for name, array in (given | arrays).items()})
        _check_finite("labels", given["labels"], mask)
        items = Items(**given, where=mask)
        if segments is None:
            if num_segments is not None:
                raise TypeError(
                    "num_segments goes with segments=: pass the list of each item as segments, "
                    "or leave num_segments out where each row is a list"
                )
            return items, None, None
        segment = arrays["segments"]
        return items, segment, _check_segments(segment, num_segments, mask)


def check_segments(
    segments: ArrayLike, num_segments: int | None, items: Items
) -> tuple[HostOrDeviceArray, int]:
    """The segment of each item, and how many segments there are."""
    segment = as_array("segments", segments)
    given = {"scores": items.scores, "labels": items.labels, "segments": segment}
    _check_shapes({name: array.shape for name, array in given.items()})
    return segment, _check_segments(segment, num_segments, items.where)


def _check_finite(name: str, values: HostOrDeviceArray, mask: HostOrDeviceArray | None) -> None:
    if not jnp.issubdtype(values.dtype, jnp.floating) or not _all_concrete(values, mask):
        return
    with jax.ensure_compile_time_eval():
        if not _all((values > -math.inf) & (values < math.inf), mask):
            raise ValueError(
                f"{name} must be finite, got NaN or infinity: leave items out with where="
            )


def _check_segments(
    segment: HostOrDeviceArray, num_segments: int | None, mask: HostOrDeviceArray | None
) -> int:
    """How many segments there are; refuses ids that are none of them."""
    if segment.dtype == bool or not jnp.issubdtype(segment.dtype, jnp.integer):
        raise TypeError(
            f"segments must be whole numbers from 0, got {segment.dtype}: write "
            "numpy.unique(ids, return_inverse=True)[1]"
        )
    if num_segments is not None:
        check_count("num_segments", num_segments)
    if not _all_concrete(segment, mask):
        if num_segments is None:
            raise TypeError(
                "num_segments must be given where segments are traced: write num_segments=..., "
                "the number of lists, which is the length of the result"
            )
        return int(num_segments)
    ids = np.asarray(segment)
    ids = ids if mask is None else ids[np.broadcast_to(np.asarray(mask), ids.shape)]
    low, high = (int(ids.min()), int(ids.max())) if ids.size else (0, 0)
    count = int(high + 1 if num_segments is None else num_segments)
    if low < 0 or high >= count:
        raise ValueError(
            f"segments must be from 0 to num_segments - 1 = {count - 1}, got "
            f"{low if low < 0 else high}: write num_segments={high + 1}, or number the lists with "
            "numpy.unique(ids, return_inverse=True)[1]"
        )
    return count


def check_grades(
    labels: HostOrDeviceArray, mask: HostOrDeviceArray | None, max_grade: float | None
) -> None:
    """Refuse grades that are negative, or above the highest that there can be."""
    if labels.dtype == bool or not _all_concrete(labels, mask):
        return
    highest = math.inf if max_grade is None else max_grade
    with jax.ensure_compile_time_eval():
        if not _all(labels >= 0, mask):
            raise ValueError(
                "labels must not be negative, as their gain would be: write "
                "numpy.maximum(labels, 0), or leave items that were not judged out with where="
            )
        if not _all(labels <= highest, mask):
            raise ValueError(
                f"labels must be at most max_grade = {highest:g}: pass the highest grade of the "
                "scale as max_grade"
            )


def _places(name: str, value: Any) -> int | tuple[int, ...] | None:
    if value is None:
        return None
    alone = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not alone and not (
        isinstance(value, (list, tuple, range, np.ndarray)) and np.ndim(value) == 1 and len(value)
    ):
        raise TypeError(f"{name} must be an int or several, known when tracing, got {value!r}")
    for place in [value] if alone else value:
        check_count(name, place)
    return int(value) if alone else tuple(int(place) for place in value)


def _word_or_function(words: tuple[str, ...]) -> Any:
    def check(name: str, value: Any) -> Any:
        return value if callable(value) else _one_of(words)(name, value)

    return check


def _function_or_none(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of the rank from 1, or None, got {value!r}")
    return value


def _constant(low: float, high: float, *, open_ends: bool = True, nan: bool = False) -> Any:
    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise TypeError(f"{name} must be a number, known when tracing, got {value!r}")
        inside = low < value < high if open_ends else low <= value <= high
        if not (inside or (nan and math.isnan(value))):
            raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}")
        return float(value)

    return check


_LIST_OPTIONS: dict[str, Any] = {
    "k": _places,
    "gain": _word_or_function(("linear", "exponential")),
    "discount": _function_or_none,
    "ties": _one_of(("average", "index")),
    "denominator": lambda name, value: value,  # each metric has its own
    "empty": _constant(-math.inf, math.inf, nan=True),
    "max_grade": _constant(0, math.inf),
    "persistence": _constant(0, 1),
}


def check_list_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a metric of lists, each by its name; all are constants."""
    return {name: _LIST_OPTIONS[name](name, value) for name, value in options.items()}


# Hard predictions. Classes are indices from 0, so that each has its place among the counts.


def check_predictions(
    predictions: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[
    HostOrDeviceArray, HostOrDeviceArray, HostOrDeviceArray | None, HostOrDeviceArray | None
]:
    """Whole numbers that fit together, with their weights and mask."""
    with double_precision():  # a 64-bit array of another library stays one
        given = {
            "predictions": as_array("predictions", predictions),
            "labels": as_array("labels", labels),
        }
        for name, value in (("weights", weights), ("where", where)):
            if value is not None:
                given[name] = as_array(name, value)
        mask = given.get("where")
        if mask is not None and mask.dtype != bool:
            raise TypeError(f"where must be bool, got {mask.dtype}: write where=mask != 0")
        _check_shapes({name: array.shape for name, array in given.items()})
        if "weights" in given:
            _check_weights("weights", given["weights"], mask)
        decided, truth = (_whole(name, given[name], mask) for name in ("predictions", "labels"))
        return decided, truth, given.get("weights"), mask


def _whole(
    name: str, array: HostOrDeviceArray, mask: HostOrDeviceArray | None
) -> HostOrDeviceArray:
    """As it is if of whole numbers by its type; floats become so where they are seen to be."""
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    hint = f"write {name}.argmax(-1) or {name} > threshold if they are scores"
    if not _all_concrete(array, mask):
        raise TypeError(
            f"{name} must be class indices, got {array.dtype}: {hint}, else {name}.astype(int)"
        )
    host = np.asarray(array, np.float64)
    whole = (host == np.round(host)) & (np.abs(host) < 2**31)
    if not _all(whole, None if mask is None else np.asarray(mask)):
        raise ValueError(f"{name} must be class indices, got {host[~whole].flat[0]}: {hint}")
    return np.where(whole, host, 0).astype(np.int32)


def check_class_range(
    ids: dict[str, HostOrDeviceArray],
    mask: HostOrDeviceArray | None,
    n_classes: int | None,
    hint: str = "",
) -> int | None:
    """The highest index of a valid item, None if traced; refuses those not in range(n_classes)."""
    highest: int | None = 1
    for name, array in ids.items():
        if array.dtype == bool or not array.size:
            continue
        if not _all_concrete(array, mask):
            highest = None
            continue
        with jax.ensure_compile_time_eval():
            on_host = isinstance(array, np.ndarray) and not isinstance(mask, jax.Array)
            valid = array if mask is None else (np if on_host else jnp).where(mask, array, 0)
            low, high = int(valid.min()), int(valid.max())
        if low < 0:
            raise ValueError(
                f"{name} must be class indices from 0, got {low}: leave items without a class out "
                f"with where={name} >= 0"
            )
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
    """How many classes there are: as given, or as found, but two at least."""
    if n_classes is None:
        highest = check_class_range(ids, mask, None)
        if highest is None:
            raise TypeError(
                "the number of classes must be known when a program is traced: write n_classes=10"
            )
        return max(highest, *classes or (0,)) + 1
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
    """Below what the indices of two classes, or of one against the rest, must be; None if any.

    Of several classes one must be chosen, or their number be told, lest class 1 be taken of them
    by default.
    """
    if isinstance(positive_class, bool) or not isinstance(positive_class, (int, np.integer)):
        raise TypeError(f"positive_class must be an int, got {positive_class!r}")
    if n_classes is not None:
        check_count("n_classes", n_classes)
        check_index("positive_class", positive_class, n_classes)
    elif positive_class < 0:
        raise ValueError(f"positive_class must be a class index, got {positive_class}")
    limit = n_classes if n_classes is not None or positive_class > 1 else 2
    hint = (
        "for several classes write average='macro', 'micro', 'weighted' or None, or n_classes= "
        f"for class {positive_class} against the rest"
    )
    check_class_range(ids, mask, limit, hint)
    return limit


def check_class_filter(classes: Any) -> tuple[int, ...] | None:
    """Distinct class indices in the order that is asked for; None for all."""
    if classes is None:
        return None
    if not is_concrete(classes):
        raise TypeError("classes must be known when a program is traced: pass a tuple of ints")
    chosen = np.asarray(classes)
    if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
        raise TypeError(f"classes must be a sequence of class indices, got {classes!r}")
    if chosen.min() < 0 or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"classes must be distinct and not negative, got {classes!r}")
    return tuple(chosen.tolist())


def check_zero_division(zero_division: float) -> HostOrDeviceArray:
    """A number in [0, 1], or NaN, as an array."""
    if isinstance(zero_division, (float, np.floating)) and math.isnan(zero_division):
        return np.asarray(math.nan)
    if isinstance(zero_division, (str, bool)):
        raise TypeError(f"zero_division must be NaN or a number in [0, 1], got {zero_division!r}")
    number: HostOrDeviceArray = _number(0, 1, several=False)("zero_division", zero_division)
    return number


def check_beta(beta: float) -> HostOrDeviceArray:
    """A number that is not negative, as an array."""
    number: HostOrDeviceArray = _number(0, math.inf, open_high=True, several=False)("beta", beta)
    return number
