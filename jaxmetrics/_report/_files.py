"""Columns of CSV, Parquet and NPZ files, one or several, in batches of rows.

Whether a file is held in memory or not, it is read by the same functions.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import pyarrow.parquet

from jaxmetrics._report import _csv
from jaxmetrics._report._columns import WHOLE, is_text
from jaxmetrics._report._csv import trimmed, without_missing
from jaxmetrics._report._settings import InputError
from jaxmetrics._report._sources import ENDINGS, FORMATS, File, Source, ending_of
from jaxmetrics._report._texts import listed, quoted, shortened

TAB = "\t"
ROWS = 1 << 18  # of a Parquet file at a time

_HOW_TO_MERGE = (
    "; several files are the rows of one table, so each needs all columns: merge files of the same "
    'items by an id first, as by pandas.merge(a, b, on="id", validate="1:1")'
)
# What parsers say of a row, which is quoted; and of packed files, with what to do.
_RAGGED = re.compile(r".*Row #(\d+): Expected (\d+) columns, got (\d+): (.*)")
_ADVICE = {
    "Not a gzipped file": "leave .gz out of its name if it is not packed, or pack it with gzip",
    "Invalid data stream": "leave .bz2 out of its name if it is not packed, or pack it with bzip2",
    "Unknown frame descriptor": "leave .zst out of its name if it is not packed, or pack it with "
    "zstd",
    "ended before the end-of-stream marker": "the file lacks its end: copy or pack it again",
    "Truncated compressed stream": "the file lacks its end: copy or pack it again",
}

# A DataFrame of some rows, and the share of the file that is read.
Read = tuple[Any, float]


class Format(NamedTuple):
    """How the files of a format are read."""

    names: Callable[[Path, str | None], list[str]]  # names of the columns, by path and separator
    batches: Callable[[Path, list[str], str | None], Iterator[Read]]
    n_rows: Callable[[Path], float]  # roughly


def _parquet(path: Path, names: list[str], _separator: str | None) -> Iterator[Read]:
    # Read-ahead would hold all columns of a row group in memory.
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        done, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=ROWS, columns=names):
            done += len(batch)
            lacking = any(x.null_count for x in batch.columns)
            kinds = WHOLE.get if lacking else None
            # The metadata of pandas would make an index of a column.
            # A column `a.b` is also the name of the field `b` of a column `a`.
            columns = batch.select(names)
            yield columns.to_pandas(ignore_metadata=True, types_mapper=kinds), done / total


def _npz(path: Path, names: list[str], _separator: str | None) -> Iterator[Read]:
    with np.load(path) as archive:
        arrays = {name: _array(archive, name) for name in names}
    native = {name: array.dtype.newbyteorder("=") for name, array in arrays.items()}
    arrays = {name: array.astype(native[name], copy=False) for name, array in arrays.items()}
    if len({array.shape for array in arrays.values()}) > 1 or arrays[names[0]].ndim != 1:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise ValueError(f"arrays must be one-dimensional and of one length, got {shapes}")
    yield pandas.DataFrame(arrays), 1.0


def _array(archive: Any, name: str) -> Any:
    try:
        return archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError(
            f"column {quoted(name)} holds Python objects: save its .astype(str), or of numbers "
            "its .astype(float)"
        ) from None


def _npz_names(path: Path, _separator: str | None) -> list[str]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a file that numpy.savez wrote")
    with np.load(path) as archive:
        return list(archive.files)


_CSV = Format(_csv.names_of, _csv.batches_of, _csv.n_rows_of)
_OF_ENDINGS = {
    **dict.fromkeys(ENDINGS, _CSV),
    ".parquet": Format(
        lambda path, _: list(pyarrow.parquet.read_schema(path).names),
        _parquet,
        lambda path: float(pyarrow.parquet.read_metadata(path).num_rows),
    ),
    ".npz": Format(_npz_names, _npz, lambda path: 0.0),
}


def batches_of(source: Source, names: Sequence[str], texts: Collection[str] = ()) -> Iterator[Read]:
    """The named columns in batches; the index counts the rows of all files from 0.

    All columns of a CSV file are text, because a type guessed from the first rows may not fit
    those that follow. Blanks around texts are dropped, as around numbers. In the columns `texts`
    only empty cells are missing; in other columns of text "NA" and its like are missing, too.
    """
    names = list(dict.fromkeys(names))
    checked = check_has_columns(source, names)
    sizes = [file.path.stat().st_size for file in source.files]
    n_rows = 0
    for i, (file, (found, own, of_folders)) in enumerate(zip(source.files, checked, strict=True)):
        batches, of_file = found.batches(file.path, list(own), source.separator), 0
        while True:
            where = (
                f"cannot be read further, after row {of_file:,}" if of_file else "cannot be read"
            )
            frame, share = _parsed(file.path, partial(next, batches, (None, 1.0)), where)
            if frame is None:
                break
            if len(frame):
                frame.index = pandas.RangeIndex(n_rows, n_rows + len(frame))
                n_rows, of_file = n_rows + len(frame), of_file + len(frame)
                frame.columns = [own[written] for written in frame.columns]
                for name, value in of_folders.items():
                    frame[name] = value
                for name in filter(lambda x: is_text(frame[x]), frame.columns):
                    column = trimmed(frame[name])
                    frame[name] = column if name in texts else without_missing(column)
                yield frame, (sum(sizes[:i]) + share * sizes[i]) / max(sum(sizes), 1)
    if not n_rows:
        raise InputError(f"{source.name} has columns but no rows: write one row for each item")


def refuse_none_left(source: Source, n_left: int) -> None:
    """Refuse a source all of whose rows were dropped."""
    if not n_left:
        raise InputError(
            f"each row of {source.name} has a missing cell, so that none is left: leave "
            "--drop-missing out to see in which column"
        )


class _Columns(NamedTuple):
    """The format of a file; by its own form the names of its columns; and those of its folders."""

    format: Format
    own: dict[str, str]
    of_folders: dict[str, str | None]


def check_has_columns(source: Source, names: Sequence[str]) -> list[_Columns]:
    """The columns of each file with these names; refuses a file that does not have each once."""
    several = len(source.files) > 1
    return [_check_file(file, names, source.separator, several) for file in source.files]


def _check_file(file: File, names: Sequence[str], separator: str | None, several: bool) -> _Columns:
    path, found = file.path, format_of(file.path)
    if found is None:
        raise InputError(
            f"{path.name} has no known format: convert it to one of {', '.join(FORMATS)}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: write columns of labels and scores")
    present = _parsed(path, partial(found.names, path, separator))
    columns = _Columns(found, {}, {})
    for name in names:
        alike, in_folders = (
            [x for x in some if x == name] or [x for x in some if _nfc(x) == _nfc(name)]
            for some in (present, file.columns)
        )
        if not alike and in_folders:
            columns.of_folders[name] = file.columns[in_folders[0]]
            continue
        if not alike:
            _refuse_absent(path, name, [*present, *file.columns], several)
        if len(alike) > 1:
            raise InputError(
                f"{path.name} has {len(alike)} columns {quoted(name)}: give each column a name of "
                "its own"
            )
        columns.own[alike[0]] = name
    return columns


def _nfc(name: str) -> str:
    """The name with composed letters, which macOS may write as two characters."""
    return unicodedata.normalize("NFC", name)


def n_rows_of(path: Path) -> float:
    """About how many rows a file has, by its metadata or its first million bytes; 0 if unknown."""
    found = format_of(path)
    return 0.0 if found is None else found.n_rows(path)


def format_of(path: Path) -> Format | None:
    """The format by the ending of a file's name; None if it is not known."""
    ending = ending_of(path)
    return None if ending is None else _OF_ENDINGS[ending]


def _refuse_absent(path: Path, name: str, present: list[str], several: bool) -> None:
    for character, called in ((";", "semicolons"), (TAB, "tabs"), ("|", "bars")):
        parts = [x.strip('" ') for x in ",".join(present).split(character)]
        if len(parts) > 1 and (len(present) == 1 or name in parts):
            raise InputError(
                f"{path.name} has {called} between its columns: write --separator "
                f"{'tab' if character == TAB else repr(character)}, if all files have them"
            )
    for character, called in ((",", "commas"), (" ", "spaces")):
        if len(present) == 1 and name in [x.strip('" ') for x in present[0].split(character)]:
            raise InputError(
                f"{path.name} has {called} between its columns: write --separator "
                f"{character!r} if all files have them, or convert those that have others"
            )
    if present and present[0].startswith(("{", "[")):
        raise InputError(
            f"{path.name} has lines of JSON: convert it, as by "
            'pandas.read_json(file, lines=True).to_parquet("data.parquet")'
        )
    if "," in name and set(parts := name.split(",")) <= set(present):
        raise InputError(
            f"{path.name} has no column {quoted(name)}: write the option once for each column, as "
            f"in {' '.join(f'--score {shortened(x)}' for x in parts[:2])}"
        )
    close = difflib.get_close_matches(name, present, 1)
    hint = f" (did you mean {quoted(close[0])}?)" if close else ""
    raise InputError(
        f"{path.name} has no column {quoted(name)}{hint}: its columns are {listed(present, 20)}"
        f"{_HOW_TO_MERGE if several else ''}"
    )


def _parsed(path: Path, parse: Callable[[], Any], where: str = "cannot be read") -> Any:
    try:
        return parse()
    except InputError:
        raise
    except Exception as error:  # parsers differ in what they raise on a damaged file
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(f"{path.name} {where}: {_with_advice(reason)}") from None


def _with_advice(reason: str) -> str:
    """What a parser says, and what to do about it if that is known."""
    if ragged := _RAGGED.fullmatch(reason):
        row, expected, n, text = ragged.groups()
        return (
            f"row {int(row):,} of the file ({shortened(text)}) has {n} cell{'s' * (n != '1')}, and "
            f"the header {expected}: write a cell for each column, and quotes around texts that "
            "hold the separator"
        )
    advice = next((f": {x}" for said, x in _ADVICE.items() if said in reason), "")
    return f"{shortened(reason, 120)}{advice}"
