"""Lists of documents, as rows or as segments, and the options of their metrics."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.arrays import (
    as_array,
    as_arrays,
    check_shapes,
    empty_as_ids,
    extremes,
    wide_ids,
)
from jaxmetrics._base.checks.items import check_scale
from jaxmetrics._base.checks.values import (
    check_count,
    check_cutoffs,
    check_fits,
    constant,
    one_of,
)
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.frames import is_frame
from jaxmetrics._base.host import all_concrete, of_all_processes
from jaxmetrics._base.quoting import brief
from jaxmetrics._base.types import ArrayLike, HostArray, HostOrDeviceArray, Items
from jaxmetrics._base.warned import warn

HIGHEST_GRADE = 1023  # 2^1024 overflows
_MOST_OCCUR = 0.9  # of the ids from 0 to the highest; if fewer occur, a warning says so


@double_precision()  # keeps a 64-bit array of another library in 64 bits
def check_lists(
    scores: ArrayLike,
    labels: ArrayLike,
    segments: ArrayLike | None,
    num_segments: int | None,
    where: ArrayLike | None,
) -> tuple[Items, HostOrDeviceArray | None, int | None]:
    """Scores and graded labels of fitting shapes, the list of each item, and how many lists."""
    others = {"where": where, "segments": segments}
    if segments is None and is_frame(scores):
        raise TypeError(
            "the rows of a frame are items, which need segments= to say of which list each is: "
            "write scores.to_numpy() if each row is a list"
        )
    arrays = as_arrays({"scores": scores, "labels": labels}, others)
    segment = arrays.pop("segments", None)
    items = Items(**arrays)
    _check_finite(items.labels, items.where)
    if segment is not None:
        return items, *_check_segments(segment, num_segments, items.where)
    if num_segments is not None:
        raise TypeError(
            "num_segments goes with segments=: pass the index of each item's list as segments=, "
            "or leave num_segments out if each row is a list"
        )
    return items, None, None


def check_segments(
    segments: ArrayLike, num_segments: int | None, items: Items
) -> tuple[HostOrDeviceArray, int]:
    """The segment of each item, and the number of segments."""
    segment = as_array("segments", segments)
    given = {"scores": items.scores, "labels": items.labels, "segments": segment}
    check_shapes({name: array.shape for name, array in given.items()})
    return _check_segments(segment, num_segments, items.where)


def _check_segments(
    segment: HostOrDeviceArray, num_segments: int | None, mask: HostOrDeviceArray | None
) -> tuple[HostOrDeviceArray, int]:
    """The segments, and how many there are; refuses ids out of range.

    Without `num_segments`, ids that are not all below the number of items, such as ids of users,
    become places among the distinct ids.
    """
    segment = empty_as_ids(segment)
    if not jnp.issubdtype(segment.dtype, jnp.integer):
        raise TypeError(
            f"segments must be whole numbers from 0, got {segment.dtype}: write "
            "numpy.unique(ids, return_inverse=True)[1]"
        )
    segment = wide_ids(segment)
    if num_segments is not None:
        check_count("num_segments", num_segments)
        instead = "number the lists with numpy.unique(ids, return_inverse=True)[1]"
        if num_segments >= 2**31:  # segments are 32-bit integers
            raise ValueError(f"num_segments must be below 2^31, got {num_segments}: {instead}")
        check_fits("num_segments", num_segments, num_segments, instead)
    if not all_concrete(segment, mask):
        if num_segments is None:
            raise TypeError(
                "num_segments must be given where segments are traced: write num_segments=..., "
                "the number of lists, which is the length of the result"
            )
        return segment, int(num_segments)
    segment, mask = of_all_processes((segment, mask))
    ids = np.asarray(segment)
    valid = ids
    if mask is not None:  # the mask may have more rows than the ids
        whole, kept = np.broadcast_arrays(ids, np.asarray(mask))
        valid = whole[kept]
    low, high = (int(valid.min()), int(valid.max())) if valid.size else (0, 0)
    if low < 0 or (num_segments is not None and high >= num_segments):
        wanted = "0 up" if num_segments is None else f"0 to num_segments - 1 = {num_segments - 1}"
        hint = f"write num_segments={high + 1}, or " if 0 <= low <= high < ids.size + 2 else ""
        raise ValueError(
            f"segments must be from {wanted}, got {low if low < 0 else high}: {hint}number the "
            "lists with numpy.unique(ids, return_inverse=True)[1], or leave items out with where="
        )
    if num_segments is not None:
        return segment, int(num_segments)
    if high < max(ids.shape[-1], 1):
        _warn_of_empty(valid, high + 1)
        return segment, high + 1
    distinct = np.unique(valid)
    place = np.searchsorted(distinct, ids)
    return np.minimum(place, len(distinct) - 1).astype(np.int32), len(distinct)


def _warn_of_empty(ids: HostArray, num_segments: int) -> None:
    """Warn where many ids do not occur, as after a filter: their lists would count in a mean."""
    occurs = np.zeros(num_segments, bool)
    occurs[ids] = True
    some = np.count_nonzero(occurs)
    if ids.size and some < _MOST_OCCUR * num_segments:
        warn(
            f"segments has {some:,} of the ids 0 to {num_segments - 1:,}, and all others are lists "
            "without items, which a mean would count: number the lists with "
            "numpy.unique(segments, return_inverse=True)[1], or, if they are to be empty, write "
            f"num_segments={num_segments}"
        )


def _check_finite(labels: HostOrDeviceArray, mask: HostOrDeviceArray | None) -> None:
    if not jnp.issubdtype(labels.dtype, jnp.floating) or not all_concrete(labels, mask):
        return
    with jax.ensure_compile_time_eval():
        low, high = extremes(labels, mask)
        if not -math.inf < low <= high < math.inf:
            raise ValueError(
                "labels must be finite, got NaN or infinity: leave items out with where="
            )


def check_grades(
    labels: HostOrDeviceArray,
    mask: HostOrDeviceArray | None,
    options: dict[str, Any],
    dtype: Any = None,
) -> None:
    """Refuse grades that are negative, above `max_grade`, or too high or too low for the gain.

    `dtype` is the dtype that they are rounded to, if it is not their own.
    """
    if labels.dtype == bool or not all_concrete(labels, mask):
        return
    with jax.ensure_compile_time_eval():
        low, high = extremes(labels, mask)
        if low < 0:
            raise ValueError(
                "labels must not be negative, because their gain would be: write "
                "numpy.maximum(labels, 0), or leave out unjudged items with where="
            )
        if options.get("gain") == "exponential" and high > HIGHEST_GRADE:
            raise ValueError(
                f"labels must be at most {HIGHEST_GRADE} under exponential gain, as 2^label "
                f"overflows, got {high:g}: write gain='linear', or pass grades such as 0 to 4"
            )
        if options.get("gain") == "exponential":  # gains are scaled, and lower ones would vanish
            check_scale("labels", labels, mask, np.float32)
        if options.get("gain") == "linear":
            check_scale("labels", labels, mask, labels.dtype if dtype is None else dtype)
        max_grade = options.get("max_grade")
        if max_grade is not None and high > max_grade:
            raise ValueError(
                f"labels must be at most max_grade = {max_grade:g}: pass the highest grade of the "
                "scale as max_grade"
            )


def _cutoffs(name: str, value: Any) -> int | tuple[int, ...] | None:
    if value is None:
        return None
    cutoffs, one = check_cutoffs(name, value)
    return cutoffs[0] if one else cutoffs


def _word_or_function(words: tuple[str, ...]) -> Any:
    def check(name: str, value: Any) -> Any:
        return value if callable(value) else one_of(words)(name, value)

    return check


def _function_or_none(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        given = brief(value)
        raise TypeError(f"{name} must be a function of the rank from 1, or None, got {given}")
    return value


_LIST_OPTIONS: dict[str, Any] = {
    "k": _cutoffs,
    "gain": _word_or_function(("linear", "exponential")),
    "discount": _function_or_none,
    "ties": one_of(("average", "index")),
    "denominator": lambda name, value: value,  # the metric itself checks it
    "empty": constant(-math.inf, math.inf, nan=True),
    "max_grade": constant(0, HIGHEST_GRADE),  # 1 / 2^1023 vanishes
    "persistence": constant(0, 1),
}


def check_list_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a metric of lists, each checked by its name; all are constants."""
    return {name: _LIST_OPTIONS[name](name, value) for name, value in options.items()}
