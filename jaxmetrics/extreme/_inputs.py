"""The inputs of the metrics of label sets, checked before any work.

Label ids count from 0; -1 stands for no label. Concrete ids and groups are checked. Traced ones
cannot be: an id out of range then belongs to no group and never hits, a list ends at its first -1,
and an id that is twice in a list counts at its first place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks import (
    as_array,
    check_alignment,
    check_count,
    check_fits,
    check_sizes,
    empty_as_ids,
    wide_ids,
)
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.host import as_numpy, in_threads, is_concrete, near
from jaxmetrics._base.types import ArrayLike, HostArray, HostOrDeviceArray

NO_LABEL_16 = (1 << 16) - 1  # -1 in 16 bits; NumPy sorts 16-bit ids in a third of the time
LEAST_PROPENSITY = np.finfo(np.float32).tiny  # below it, 1 / p may be beyond float32
_CHUNK = 1 << 19  # ids that one thread checks at a time, within its cache


class LabelSets(NamedTuple):
    """Predicted and relevant labels of instances, checked.

    Attributes:
      predicted: `[..., n, K]` ids.
      relevant: `[..., n, L]` ids.
      groups: `[n_labels]`, or None for one group of all labels.
      num_groups: how many groups there are.
      n_labels: the exclusive upper bound of the ids if there are no groups; None if not known.
      checked: whether the ids were concrete and passed the checks; traced ids are not checked.
    """

    predicted: HostOrDeviceArray
    relevant: HostOrDeviceArray
    groups: HostOrDeviceArray | None
    num_groups: int
    n_labels: int | None
    checked: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """`(..., n)`."""
        return np.broadcast_shapes(self.predicted.shape[:-1], self.relevant.shape[:-1])


def check_label_sets(
    predicted: ArrayLike,
    relevant: ArrayLike,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    n_labels: int | None = None,
    source: str = "n_labels",
) -> LabelSets:
    """The ids and groups, checked to fit together; `source` is what gives the number of labels."""
    given = {"predicted": predicted, "relevant": relevant}
    ids = {name: label_ids(name, value) for name, value in given.items()}
    check_alignment(given, by_rows=True)
    described = ", ".join(f"{name} {list(array.shape)}" for name, array in ids.items())
    ranked, truth = ids["predicted"], ids["relevant"]
    if min(ranked.ndim, truth.ndim) < 2 or ranked.shape[-2] != truth.shape[-2]:
        raise ValueError(
            "predicted must be [..., n, K] and relevant [..., n, L], the same n, got "
            f"{described}: write one list for each instance, padded with -1 to one length"
        )
    try:
        np.broadcast_shapes(ranked.shape[:-2], truth.shape[:-2])
    except ValueError:
        raise ValueError(
            "the leading axes of predicted [..., n, K] and relevant [..., n, L] must broadcast, "
            f"got {described}"
        ) from None
    if n_labels is not None:
        check_count("n_labels", n_labels)
    of_label, count = check_groups(groups, num_groups)
    limit = n_labels
    if of_label is not None:
        if n_labels not in (None, len(of_label)):
            raise ValueError(
                f"{source} and len(groups) must be the same, got {n_labels} and {len(of_label)}: "
                "both have an entry for each label, also for those that do not occur"
            )
        limit, source = len(of_label), "len(groups)"
    for name, array in ids.items():
        _check_ids(name, array, limit, source)
    checked = all(is_concrete(x) for x in (ranked, truth, of_label))
    return LabelSets(ranked, truth, of_label, count, n_labels, checked)


@double_precision()  # keeps 64-bit ids in 64 bits
def label_ids(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """The ids as int32, or as int64 if they are given in 64 bits or as uint32."""
    if hasattr(value, "tolil"):
        raise TypeError(
            f"{name} must be lists of label ids, got a sparse matrix: for the columns of its "
            f"entries write numpy.array([*itertools.zip_longest(*{name}.tolil().rows, "
            f"fillvalue=-1)]).T, for the k best of scores numpy.argsort(-{name}.toarray())[:, :k]"
        )
    try:
        array = as_array(name, value)
    except ValueError as error:
        raise ValueError(f"{error}; pad lists with -1 to one length") from None
    check_sizes({name: array.shape})
    array = empty_as_ids(array)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(
            f"{name} must hold label ids, which are whole numbers, got {array.dtype}: write "
            f"{name}.astype(int) for ids, numpy.argsort(-scores) for scores, or the indices of the "
            "ones for a matrix of 0 and 1"
        )
    if jnp.issubdtype(array.dtype, jnp.unsignedinteger):
        _check_unsigned(name, array)
    if array.dtype == np.uint32 or array.dtype.itemsize == 8:
        return array.astype(np.int64, copy=False)
    return wide_ids(array)


def _check_unsigned(name: str, ids: HostOrDeviceArray) -> None:
    """Refuse an id that may have been -1, or that int64 does not hold."""
    if not is_concrete(ids) or not ids.size:
        return
    with jax.ensure_compile_time_eval():
        high, most = int(near(ids).max()), np.iinfo(ids.dtype).max
    if high == most:
        raise ValueError(
            f"{name} is {ids.dtype} and holds {high}, which is what -1 becomes: unsigned ids "
            "cannot hold -1: pad signed ids"
            + (f", or write {name}.astype(int) if {high} is a label" if high < 2**63 else "")
        )
    if high >= 2**63:
        raise ValueError(
            f"{name} must hold label ids below 2^63, got {high}: number the labels with "
            "numpy.unique(ids, return_inverse=True)[1]"
        )


def check_groups(
    groups: ArrayLike | None, num_groups: int | None
) -> tuple[HostOrDeviceArray | None, int]:
    """The group of each label, and the number of groups."""
    if num_groups is not None:
        check_count("num_groups", num_groups)
    if groups is None:
        if num_groups is not None:
            raise TypeError(
                "num_groups goes with groups=: pass the group of each label, or omit num_groups"
            )
        return None, 1
    array = _of_labels("groups", groups)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(
            f"groups must be whole numbers from 0, got {array.dtype}: write groups.astype(int)"
        )
    array = wide_ids(array)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"groups must be [n_labels], with a group for each label, got {list(array.shape)}"
        )
    if not is_concrete(array):
        if num_groups is None:
            raise TypeError(
                "num_groups must be given where groups are traced: write num_groups=10 for deciles"
            )
        return array, int(num_groups)
    host = as_numpy(array)
    low, high = int(host.min()), int(host.max())
    count = high + 1 if num_groups is None else int(num_groups)
    if low < 0 or high >= count:
        raise ValueError(
            f"groups must be from 0 to num_groups - 1 = {count - 1}, got "
            f"{low if low < 0 else high}: write num_groups={high + 1}, or number the groups with "
            "numpy.unique(groups, return_inverse=True)[1]"
        )
    instead = "number the groups with numpy.unique(groups, return_inverse=True)[1]"
    check_fits("num_groups", count, 4 * count, instead)
    return array, count


def _of_labels(name: str, value: ArrayLike) -> HostOrDeviceArray:
    """An array with an entry for each label; refuses a pandas column whose index is not 0, 1, ....

    `Series.value_counts()` is such a column: its index has the labels in order of falling count.
    """
    index: Any = getattr(value, "index", None)
    dtype = getattr(index, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        ids = np.asarray(index)
        if not np.array_equal(ids, np.arange(len(ids))):
            raise ValueError(
                f"{name} must have an entry for each label from 0, and its index is not 0 to "
                f"{len(ids) - 1}: write {name}.reindex(range(n_labels)), or {name}.to_numpy() if "
                "entry i is that of label i"
            )
    return as_array(name, value)


def _check_ids(name: str, ids: HostOrDeviceArray, limit: int | None, source: str) -> None:
    """Refuse ids that are out of range, twice in a list, or behind the end of a list."""
    if not is_concrete(ids) or not ids.size:
        return
    ids = near(ids)
    rows = ids.reshape(-1, ids.shape[-1])
    with jax.ensure_compile_time_eval():
        # Sorted ids show every fault but ids behind a list's end. A chunk fits a thread's cache.
        turns = 1 if isinstance(rows, jax.Array) else max(1, min(len(rows), rows.size // _CHUNK))
        parts = np.array_split(rows, turns) if turns > 1 else [rows]
        found = in_threads(_extremes_and_repeats, parts)
        lows, highs, repeats, gaps = zip(*found, strict=True)
    low, high = min(lows), max(highs)
    if low < -1:
        raise ValueError(f"{name} must hold label ids from 0, or -1 for no label, got {low}")
    if limit is not None and high >= limit:
        raise ValueError(
            f"{name} must hold label ids below {source} = {limit}, got {high}: give groups, "
            "propensities and n_labels of all labels, also of those that do not occur"
        )
    if any(repeats):
        twice = _repeated(as_numpy(rows))
        raise ValueError(
            f"{name} must have each label at most once in a list, got {twice}: keep its first "
            "place, and pad the list with -1"
        )
    if name == "predicted" and any(gaps):
        rows = as_numpy(rows)
        at = np.argwhere((rows[:, :-1] < 0) & (rows[:, 1:] >= 0))[0]
        raise ValueError(
            f"predicted may have -1 only after the end of a list, got -1 in list {at[0]} at place "
            f"{at[1]} with ids behind it: move these ids forward"
        )


def _extremes_and_repeats(rows: Any) -> tuple[int, int, bool, bool]:
    """The lowest and highest id, whether a row has an id twice, and whether an id follows a -1."""
    library = np if isinstance(rows, np.ndarray) else jnp
    low, high = int(rows.min()), int(rows.max())
    narrow = library is np and low >= -1 and high < NO_LABEL_16
    if narrow:
        ordered = rows.astype(np.uint16)
        ordered.sort(axis=-1)  # in place: this takes most of the check
    else:
        ordered = library.sort(rows, axis=-1)
    alike, gap = ordered[:, 1:] == ordered[:, :-1], False
    if low < 0:
        alike = alike & (ordered[:, 1:] != NO_LABEL_16 if narrow else ordered[:, 1:] >= 0)
        gap = bool(((rows[:, :-1] < 0) & (rows[:, 1:] >= 0)).any())
    return low, high, bool(alike.any()), gap


def _repeated(rows: HostArray) -> str:
    ordered = np.sort(rows, axis=-1)
    row, column = np.argwhere((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))[0]
    return f"label {ordered[row, column]} twice in list {row}"


def check_label_counts(label_counts: ArrayLike) -> HostOrDeviceArray:
    """The counts `[n_labels]`, checked."""
    with double_precision():
        counts = _of_labels("label_counts", label_counts)
    if not jnp.issubdtype(counts.dtype, jnp.integer):
        raise TypeError(
            f"label_counts must be whole numbers, got {counts.dtype}: write "
            "numpy.bincount(relevant[relevant >= 0], minlength=n_labels)"
        )
    if counts.ndim != 1:
        raise ValueError(
            f"label_counts must be [n_labels], a count for each label, got {list(counts.shape)}"
        )
    if not is_concrete(counts):
        return counts
    host = as_numpy(counts)
    if host.min(initial=0) < 0:
        raise ValueError(f"label_counts must not be negative, got {host.min()}")
    if (total := host.sum(dtype=np.float64)) >= 2**63:
        raise ValueError(f"label_counts must add up to less than 2^63, got {total:.3g}")
    return counts


def check_propensities(propensities: ArrayLike) -> HostOrDeviceArray:
    """The propensities `[n_labels]`, checked to be from LEAST_PROPENSITY to 1."""
    with double_precision():
        array = _of_labels("propensities", propensities)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"propensities must be [n_labels], one for each label, got {list(array.shape)}"
        )
    if is_concrete(array):
        host = as_numpy(array)
        valid = (host >= LEAST_PROPENSITY) & (host <= 1)
        if not valid.all():
            raise ValueError(
                f"propensities must be in (0, 1] and at least {LEAST_PROPENSITY:.2g}, got "
                f"{host[~valid][0]}"
            )
    return array
