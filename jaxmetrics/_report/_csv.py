"""CSV files: their rows as text, and checks of their quotes."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.compute
import pyarrow.csv

from jaxmetrics._report._settings import InputError
from jaxmetrics._report._sources import LONGEST_MARK, ending_by, ending_of

_BLOCK = 1 << 22  # bytes at a time; more would take memory and save no time
_SAVE = 'save it in UTF-8, in Excel as "CSV UTF-8"'
_SAMPLE = 1 << 20  # bytes whose rows are counted

# Texts of missing cells in columns of numbers and labels: pyarrow's, and three more. In other
# columns only the empty text is one: "NA" may be a country, and "None" an answer.
MISSING = (*pyarrow.csv.ConvertOptions().null_values, "<NA>", "None", "NAN")

_ENDS = re.compile(r"\r\n|\r|\n")
# A first line that Excel writes: it names the separator, and is no header.
_DECLARED = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([ -~\t])"?[\r\n]', re.IGNORECASE)
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)


class _Lines(io.RawIOBase):
    """A file that counts its lines while it is read, and looks for quotes."""

    def __init__(self, source: BinaryIO) -> None:
        self.source, self.n_lines, self.has_quotes, self.tail = source, 0, False, b""
        self.wanted = True  # False once nobody needs more of it
        self.released = threading.Event()  # set once Arrow has let go of it

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.source.read(size) if self.wanted else b""
        self.n_lines += data.count(b"\n")
        self.has_quotes = self.has_quotes or b'"' in data
        self.tail = (self.tail + data)[-_SAMPLE:] if data else self.tail
        return data

    def are_rows(self, n_rows: int, n_before: int) -> bool:
        """Whether each line surely was one row, so that no quote can have swallowed any.

        `n_before` lines, such as the header, come before the rows.
        """
        ended = self.tail.endswith(b"\n")
        last = self.tail.rstrip(b"\r\n").rpartition(b"\n")[2]
        return self.n_lines + (not ended) == n_rows + n_before and last.count(b'"') % 2 == 0


class _Lent:
    """Lines as Arrow has them: all that keeps this object is Arrow."""

    closed = False

    def __init__(self, lines: _Lines) -> None:
        self.read = lines.read  # no method of its own, which the traceback of an error would keep
        weakref.finalize(self, lines.released.set)

    def close(self) -> None:
        """Leave the file open, which others close."""


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The unpacked file, and the file itself, whose position tells how much is read."""
    with path.open("rb") as raw:
        unpack = _UNPACK.get(path.suffix.lower())
        if unpack is None:
            yield raw, raw
        else:
            with unpack(raw) as unpacked:
                yield unpacked, raw


def _unpacked_zst(raw: BinaryIO) -> Any:
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, "r"), "zstd")


_UNPACK: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".zst": _unpacked_zst,
}


def separator_of(path: Path, separator: str | None) -> str:
    """The separator that was asked for, that of Excel's first line, or that of the format."""
    default = "\t" if (ending_of(path) or "").startswith(".tsv") else ","
    return separator or _declared(path) or default


def _declared(path: Path) -> str | None:
    """The separator of a first line such as `sep=;`, if there is one."""
    with _opened(path) as (source, _):
        found = _DECLARED.match(source.read(16))
    return None if found is None else found[1].decode()


def _reader(lines: _Lines, names: Sequence[str], separator: str, n_skipped: int) -> Any:
    return pyarrow.csv.open_csv(
        # A name would keep the lent lines, as the traceback of an error has this frame. The stream
        # copies blocks: threads of Arrow then free them without Python, at any time.
        pyarrow.BufferedInputStream(pyarrow.PythonFile(_Lent(lines), "r"), _BLOCK),
        # Threads would parse ahead, and their errors would not say in which row.
        read_options=pyarrow.csv.ReadOptions(
            block_size=_BLOCK, use_threads=False, skip_rows=n_skipped
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pyarrow.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def names_of(path: Path, separator: str | None = None) -> list[str]:
    """The names of the columns."""
    with _opened(path) as (source, _):
        begin = source.read(LONGEST_MARK)
    is_utf16 = begin[:2] in (b"\xff\xfe", b"\xfe\xff")
    if (ending := ending_by(begin)) is not None:
        otherwise = ", or save a spreadsheet as CSV" if ending == ".npz" else ""
        raise InputError(f"{path.name} is no text: name it with the ending {ending}{otherwise}")
    with _rows(path, separator) as rows:
        names: list[str] = next((row for row in rows if row), [])
    if is_utf16 or any("\0" in name for name in names):  # UTF-16 may lack a byte order mark
        raise InputError(f"{path.name} is encoded in UTF-16: {_SAVE}")
    if not names:
        raise InputError(f"{path.name} is empty: write columns of labels and scores")
    if any("\udc80" <= letter <= "\udcff" for name in names for letter in name):
        raise _not_utf8(path, "its header")
    return names


def _not_utf8(path: Path, where: str) -> InputError:
    return InputError(f"{path.name} is not encoded in UTF-8, in {where}: {_SAVE}")


@contextmanager
def _rows(path: Path, separator: str | None, **options: Any) -> Iterator[Any]:
    """The rows by Python's reader, which is slow and knows the number of each line."""
    with (
        _opened(path) as (source, _),
        io.TextIOWrapper(source, "utf-8-sig", "surrogateescape", newline="") as file,
    ):
        rows = csv.reader(file, delimiter=separator_of(path, separator), **options)
        if _declared(path) is not None:
            next(rows)
        yield rows


def n_rows_of(path: Path) -> float:
    """About how many rows there are, by the lines of the first million bytes."""
    with _opened(path) as (source, raw):
        n_lines = source.read(_SAMPLE).count(b"\n")
        return n_lines * path.stat().st_size / max(raw.tell(), 1)


def batches_of(
    path: Path, names: list[str], separator: str | None = None
) -> Iterator[tuple[Any, float]]:
    """Batches of the named columns as text, each with the share of the file that is read."""
    size, n_rows = path.stat().st_size, 0
    between, n_skipped = separator_of(path, separator), int(_declared(path) is not None)
    with _opened(path) as (source, raw):
        lines = _Lines(source)
        try:
            for batch in _reader(lines, names, between, n_skipped):
                n_rows += len(batch)
                yield batch.to_pandas(), min(raw.tell() / size, 1.0)
        except pyarrow.ArrowInvalid as error:
            if "Empty CSV file" in str(error):  # a header without an end of line
                return
            if "invalid UTF8" in str(error):
                row = re.search(r"Row #\d+", str(error))
                raise _not_utf8(path, row.group().lower() if row else "a row") from None
            if lines.has_quotes:
                _check_quotes(path, names, separator)  # a quote may be the cause
            raise
        finally:
            # A thread of Arrow reads ahead. If it still did so while Python ends, as after an
            # error, the process would abort. No block of lines takes a minute.
            lines.wanted = False
            lines.released.wait(60)
        if lines.has_quotes and not lines.are_rows(n_rows, n_skipped + 1):
            _check_quotes(path, names, separator)


def trimmed(column: Any) -> Any:
    """The column of texts without the blanks around them; blanks alone are missing."""
    texts = pyarrow.array(column, pyarrow.string(), from_pandas=True)
    same = pyarrow.compute.equal(texts, pyarrow.compute.utf8_trim_whitespace(texts))
    if pyarrow.compute.all(same).as_py() is not False:
        return column
    found = column.str.strip()
    return found.mask(found == "")


def without_missing(column: Any) -> Any:
    """The column of texts, in which those in MISSING are missing, also with blanks around them."""
    texts = pyarrow.array(column, pyarrow.string(), from_pandas=True)
    trimmed = pyarrow.compute.ascii_trim_whitespace(texts)
    absent = pyarrow.compute.is_in(trimmed, pyarrow.array(MISSING))
    found = absent.to_numpy(zero_copy_only=False)
    return column.mask(found) if found.any() else column


def _check_quotes(path: Path, names: Sequence[str], separator: str | None) -> None:
    """Refuse a quote that is never closed, or that closes in another row."""
    between = separator_of(path, separator)
    with _rows(path, separator, strict=True) as rows:
        header = next(row for row in rows if row)
        columns = [header.index(name) for name in names]
        while True:
            first = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:  # characters after a closing quote, or the end of the file
                if rows.line_num > first or "end of data" in str(error):
                    raise InputError(
                        f"{path.name} cannot be read: a quote in line {first:,} is not closed, or "
                        "closes within another cell: close it, or write each quote of a text twice"
                    ) from None
            else:
                if rows.line_num > first and _holds_rows(row, columns, between):
                    raise InputError(
                        f"{path.name} cannot be read: a quote in line {first:,} closes in line "
                        f"{rows.line_num:,}, with whole rows in between: close it in its line, or "
                        "write each quote of a text twice"
                    )


def _holds_rows(row: list[str], columns: Sequence[int], separator: str) -> bool:
    """Whether the lines of a cell, with the cells around it, are whole rows like this one."""
    if len(row) <= max(columns):
        return False
    kinds = [_is_number(row[c]) for c in columns]
    for position, cell in enumerate(row):
        if "\n" not in cell and "\r" not in cell:
            continue
        cells = (csv.reader([line], delimiter=separator) for line in _ENDS.split(cell))
        first, *others = (next(line, [""]) for line in cells)
        lines = [[*row[:position], *first], *others]
        lines[-1] = [*lines[-1], *row[position + 1 :]]
        whole = all(len(line) == len(row) for line in lines)
        if whole and all([_is_number(line[c]) for c in columns] == kinds for line in lines):
            return True
    return False


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
