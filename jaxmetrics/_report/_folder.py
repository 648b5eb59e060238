"""The folder of a report: whether it can be written, and how all its files are replaced at once."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxmetrics._report._settings import InputError


def check_folder(directory: Path) -> None:
    """Refuse a folder that cannot be written, before any long work, and leave nothing there."""
    with _made(directory), tempfile.TemporaryFile(dir=directory) as file:
        file.write(b" ")
        file.flush()


@contextmanager
def replaced_files(
    directory: Path, is_ours: Callable[[Path], bool] = lambda file: False
) -> Iterator[Path]:
    """A temporary folder whose files replace those of `directory` when all are written.

    Other files of `directory` are removed if they are ours. If a file cannot be written, or the
    process is told to stop, `directory` stays as it was.
    """
    with _made(directory) as made, _handled(_stop, signal.SIGTERM):
        with tempfile.TemporaryDirectory(prefix=".jaxmetrics-", dir=directory) as name:
            yield Path(name)
            files = sorted(Path(name).iterdir())
            for file in files:
                if (directory / file.name).is_dir():
                    raise IsADirectoryError(f"{file.name} is a folder")
            with _signals_held():
                for file in files:
                    file.replace(directory / file.name)
                written = {file.name for file in files}
                for other in list(directory.iterdir()):
                    if other.name not in written and is_ours(other):
                        other.unlink()
        made.clear()


@contextmanager
def _made(directory: Path) -> Iterator[list[Path]]:
    """Makes the folder and its missing parents; removes those left in the list that are empty."""
    made = [path for path in (directory, *directory.parents) if not os.path.exists(path)]
    try:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            yield made
        finally:
            for path in made:
                if path.exists() and not any(path.iterdir()):
                    path.rmdir()
    except OSError as error:
        raise InputError(
            f"cannot write to {directory} ({error.strerror or error}): pass another folder as "
            "--output"
        ) from None


def _stop(number: int, frame: Any) -> None:
    """End by an exception, so that the folder is cleaned up before the process ends."""
    raise SystemExit(128 + number)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals to stop wait until the end of the block."""
    late: list[int] = []
    with _handled(lambda number, frame: late.append(number), signal.SIGTERM, signal.SIGINT):
        yield
    for number in late:
        signal.raise_signal(number)


@contextmanager
def _handled(handler: Callable[[int, Any], None], *numbers: int) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
