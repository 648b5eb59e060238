"""Columns of CSV, Parquet and NPZ files, in batches of rows.

Whether a file is held in memory or not, it is read by the same functions.
"""

from __future__ import annotations

import difflib
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import pyarrow.parquet

from jaxmetrics._report import _csv
from jaxmetrics._report._settings import InputError
from jaxmetrics._report._texts import listed, quoted, shortened

ROWS = 1 << 18  # of a Parquet file at a time

# What a parser says, and the row that it quotes.
_ROW = re.compile(r"(.*Expected \d+ columns, got \d+: |.*)(.*)")

# A DataFrame of some rows, and the share of the file that is read.
Read = tuple[Any, float]


class Format(NamedTuple):
    """How the files of a format are read."""

    names: Callable[[Path], list[str]]  # of the columns
    batches: Callable[[Path, list[str], Collection[str]], Iterator[Read]]  # as batches_of
    n_rows: Callable[[Path], float]  # about


def _parquet(path: Path, names: list[str], _texts: Collection[str]) -> Iterator[Read]:
    # Read-ahead would hold all columns of a row group in memory.
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        done, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=ROWS, columns=names):
            done += len(batch)
            # The metadata of pandas would make an index of a column.
            yield batch.to_pandas(ignore_metadata=True), done / total


def _npz(path: Path, names: list[str], _texts: Collection[str]) -> Iterator[Read]:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in names}
    if len({array.shape for array in arrays.values()}) > 1 or arrays[names[0]].ndim != 1:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise ValueError(f"arrays must be one-dimensional and of one length, got {shapes}")
    yield pandas.DataFrame(arrays), 1.0


def _npz_names(path: Path) -> list[str]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a file that numpy.savez wrote")
    with np.load(path) as archive:
        return list(archive.files)


_CSV = Format(_csv.names_of, _csv.batches_of, _csv.n_rows_of)
FORMATS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".parquet": Format(
        lambda path: list(pyarrow.parquet.read_schema(path).names),
        _parquet,
        lambda path: float(pyarrow.parquet.read_metadata(path).num_rows),
    ),
    ".npz": Format(_npz_names, _npz, lambda path: 0.0),
}


def batches_of(path: Path, names: Sequence[str], texts: Collection[str] = ()) -> Iterator[Read]:
    """The named columns in batches; the index counts the rows of the file from 0.

    All columns of a CSV file are text, because a type guessed from the first rows may not fit
    those that follow. In `texts`, only its empty cells are missing; in the others "NA" is, too.
    """
    batches = check_has_columns(path, names).batches(path, list(dict.fromkeys(names)), texts)
    n_rows = 0
    while True:
        where = f"cannot be read further, after row {n_rows:,}" if n_rows else "cannot be read"
        frame, share = _parsed(path, lambda _: next(batches, (None, 1.0)), where)
        if frame is None:
            break
        if len(frame):
            frame.index = pandas.RangeIndex(n_rows, n_rows + len(frame))
            n_rows += len(frame)
            yield frame, share
    if not n_rows:
        raise InputError(f"{path.name} has columns but no rows: write one row for each item")


def check_has_columns(path: Path, names: Sequence[str]) -> Format:
    """The format of a file, once the file is known to have each column once."""
    if str(path) == "-":
        raise InputError("standard input cannot be read: save it, and pass the name of the file")
    if path.is_dir():
        raise InputError(f"{path} is a folder: pass one file, as in {path / 'scores.csv'}")
    if not path.is_file():
        raise InputError(f"there is no file {path}: check the path")
    found = format_of(path)
    if found is None:
        raise InputError(
            f"{path.name} has no known format: convert it to one of {', '.join(FORMATS)}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: write columns of labels and scores")
    present = _parsed(path, found.names)
    for name in names:
        if name not in present:
            _refuse_absent(path, name, present)
        if present.count(name) > 1:
            raise InputError(
                f"{path.name} has {present.count(name)} columns {quoted(name)}: give each "
                "column a name of its own"
            )
    return found


def format_of(path: Path) -> Format | None:
    """The format that a file's name says."""
    for ending, found in FORMATS.items():
        if path.name.lower().endswith(ending):
            return found
    return None


def _refuse_absent(path: Path, name: str, present: list[str]) -> None:
    for character, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(present) == 1 and character in present[0]:
            raise InputError(
                f"{path.name} has {called} between its columns: write commas, and a point in "
                "numbers"
            )
    close = difflib.get_close_matches(name, present, 1)
    hint = f" (did you mean {quoted(close[0])}?)" if close else ""
    raise InputError(
        f"{path.name} has no column {quoted(name)}{hint}: its columns are {listed(present, 20)}"
    )


def _parsed(path: Path, parse: Callable[[Path], Any], where: str = "cannot be read") -> Any:
    try:
        return parse(path)
    except InputError:
        raise
    except Exception as error:  # parsers differ in what they raise on a damaged file
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        if "Empty CSV file" in reason:
            raise InputError(f"{path.name} is empty: write columns of labels and scores") from None
        said, row = _ROW.fullmatch(reason).groups()  # type: ignore[union-attr]  # matches all
        raise InputError(f"{path.name} {where}: {shortened(said, 120)}{shortened(row)}") from None
