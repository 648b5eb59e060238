"""Columns of CSV, Parquet and NPZ files.

A format is a function that lists the columns and one that reads some of them.
"""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow.parquet

from jaxmetrics._report._settings import InputError


def _csv(path: Path, names: list[str]) -> Any:
    # Of pandas' parsers, this one reads floats exactly and refuses rows that do not fit the header.
    return pandas.read_csv(path, usecols=names, engine="pyarrow")


def _parquet(path: Path, names: list[str]) -> Any:
    return pyarrow.parquet.read_table(path, columns=names).to_pandas(ignore_metadata=True)


def _npz(path: Path, names: list[str]) -> Any:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in names}
    if len({array.shape for array in arrays.values()}) > 1 or arrays[names[0]].ndim != 1:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise ValueError(f"arrays must be one-dimensional and of one length, got {shapes}")
    return pandas.DataFrame(arrays)


def _npz_names(path: Path) -> list[str]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a file that numpy.savez wrote")
    with np.load(path) as archive:
        return list(archive.files)


FORMATS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, list[str]], Any]]] = {
    ".csv": (lambda path: list(pandas.read_csv(path, nrows=0)), _csv),
    ".csv.gz": (lambda path: list(pandas.read_csv(path, nrows=0)), _csv),
    ".parquet": (lambda path: list(pyarrow.parquet.read_schema(path).names), _parquet),
    ".npz": (_npz_names, _npz),
}


def read_columns(path: Path, names: Sequence[str]) -> Any:
    """The named columns of a file as a pandas DataFrame with at least one row."""
    read = check_has_columns(path, names)
    frame = _parsed(path, lambda path: read(path, list(dict.fromkeys(names))))
    if frame.empty:
        raise InputError(f"{path.name} has columns but no rows: write one row for each item")
    return frame


def check_has_columns(path: Path, names: Sequence[str]) -> Callable[[Path, list[str]], Any]:
    """The function that reads columns of a file, once it is known to have them."""
    if not path.is_file():
        raise InputError(f"there is no file {path}: check the path")
    formats = [parts for ending, parts in FORMATS.items() if path.name.lower().endswith(ending)]
    if not formats:
        raise InputError(
            f"{path.name} has no known format: convert it to one of {', '.join(FORMATS)}"
        )
    list_names, read = formats[0]
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: write columns of labels and scores")
    present = _parsed(path, list_names)
    for name in names:
        if name not in present:
            close = difflib.get_close_matches(name, present, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(
                f"{path.name} has no column {name!r}{hint}: its columns are {listed(present, 20)}"
            )
    return read


def _parsed(path: Path, parse: Callable[[Path], Any]) -> Any:
    try:
        return parse(path)
    except pandas.errors.EmptyDataError:
        raise InputError(f"{path.name} is empty: write columns of labels and scores") from None
    except Exception as error:  # parsers differ in what they raise on a damaged file
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(f"{path.name} cannot be read: {reason}") from None


def listed(values: Sequence[Any], most: int) -> str:
    """The first values, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")
