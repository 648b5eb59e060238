"""What a user passes as FILE: one file or several with the same columns."""

from __future__ import annotations

import atexit
import glob
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from jaxmetrics._report._settings import InputError
from jaxmetrics._report._texts import name_of, shortened

ENDINGS = tuple(
    f"{kind}{packed}" for kind in (".csv", ".tsv") for packed in ("", ".gz", ".bz2", ".zst")
)
FORMATS = (*ENDINGS, ".parquet", ".npz")

# The bytes with which files begin that are no text, and the endings that their names should have.
_MARKS = {
    rb"\x1f\x8b": ".csv.gz",
    rb"BZh[1-9]1AY&SY": ".csv.bz2",
    rb"\x28\xb5\x2f\xfd": ".csv.zst",
    rb"PAR1\x15": ".parquet",
    rb"PK(\x03\x04|\x05\x06)": ".npz",
}
LONGEST_MARK = 10


@dataclass(frozen=True)
class File:
    """A file, and the columns that its folders name, as in country=DK/part-0.parquet.

    Where the file has a column of the same name, that is taken: some writers repeat it there.
    """

    path: Path
    columns: Mapping[str, str | None]


@dataclass(frozen=True)
class Source:
    """The files, in order.

    Attributes:
      given: what the user wrote; shortened if there are several paths.
      name: its form in titles and messages, without folders.
      files: at least one.
      separator: the character between columns of CSV files; None for that of the format.
      drops_missing: whether rows with a missing cell are left out.
    """

    given: str
    name: str
    files: tuple[File, ...]
    separator: str | None = None
    drops_missing: bool = False


def source_of(
    given: Path | str | Source | Iterable[Path | str],
    *,
    separator: str | None = None,
    drops_missing: bool = False,
) -> Source:
    """The files of paths, of folders, of patterns such as "2026-*.csv", and of "-".

    A folder stands for all files below it that can be read, in order of their paths.
    """
    if isinstance(given, Source):
        return given
    texts = [str(given)] if isinstance(given, (Path, str)) else [str(x) for x in given]
    files = tuple(file for text in texts for file in _files_of(text))
    _refuse_twice(files)
    given = texts[0]
    if len(texts) > 1:
        given = f"{len(files)} files ({shortened(', '.join(x.path.name for x in files))})"
    return Source(given, name_of(given), files, _as_character(separator), drops_missing)


def _refuse_twice(files: Iterable[File]) -> None:
    seen = set()
    for file in files:
        path = file.path.resolve()
        if path in seen:
            raise InputError(f"{file.path} is given twice, and its rows would count twice")
        seen.add(path)


def ending_of(path: Path) -> str | None:
    """The ending of a name that tells how to read the file."""
    return next((x for x in FORMATS if path.name.lower().endswith(x)), None)


def ending_by(beginning: bytes) -> str | None:
    """The ending that suits a file which begins with these bytes; None for a text."""
    return next((x for mark, x in _MARKS.items() if re.match(mark, beginning)), None)


def _files_of(text: str) -> list[File]:
    path = Path(text)
    if text == "-":
        return [File(_standard_input(), {})]
    if path.is_dir():
        inside = (x for x in sorted(path.rglob("*")) if x.is_file())
        found = [x for x in inside if _is_data(x.relative_to(path))]
        if not found:
            raise InputError(
                f"the folder {text} has no file that can be read: pass one of {', '.join(FORMATS)}"
            )
        return [File(x, _columns_of(x)) for x in found]
    if not path.exists() and glob.has_magic(text):
        matches = sorted(x for x in glob.glob(text, recursive=True) if Path(x).is_file())
        if not matches:
            raise InputError(f"no file matches {text}: check the pattern")
        return [File(Path(x), _columns_of(Path(x))) for x in matches]
    if not path.is_file():
        score = f", or write --score {path} if it is a column" if ending_of(path) is None else ""
        raise InputError(f"there is no file {path}: check the path{score}")
    return [File(path, _columns_of(path))]


def _is_data(path: Path) -> bool:
    """Whether a file of a folder is data, and not hidden, as _SUCCESS and .crc files are."""
    return ending_of(path) is not None and not any(x.startswith((".", "_")) for x in path.parts)


def _columns_of(path: Path) -> dict[str, str | None]:
    """The columns that the names of folders give; Hive has a name for a missing value."""
    named = (unquote(x).partition("=") for x in path.parts[:-1] if "=" in x)
    return {name: None if value == _MISSING else value for name, _, value in named}


_MISSING = "__HIVE_DEFAULT_PARTITION__"


def _standard_input() -> Path:
    """A temporary file with the contents of standard input, as files are read more than once."""
    stream = sys.stdin.buffer
    beginning = stream.read(LONGEST_MARK)
    if not beginning:
        raise InputError("standard input is empty: write columns of labels and scores to it")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, f"standard input{ending_by(beginning) or '.csv'}")  # as errors name it
    with path.open("wb") as file:
        file.write(beginning)
        shutil.copyfileobj(stream, file)
    return path


def _as_character(separator: str | None) -> str | None:
    found = {"tab": "\t", r"\t": "\t"}.get(separator or "", separator)
    if found is not None and (len(found) != 1 or found in '"\r\n.'):
        raise InputError(
            f"--separator must be one character, got {separator!r}: write ';', '|' or tab"
        )
    return found
