"""Markdown tables on standard output; what is being measured on standard error."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from typing import NamedTuple

import jax
from rich.console import Console

from benchmarks.rivals.packages import versions

Row = dict[str, str]
_status = Console(stderr=True).status("")


class Table(NamedTuple):
    """A title and rows; a generator of rows measures as it runs."""

    title: str
    rows: Iterable[Row]


def progress(text: str) -> None:
    """Show the next measurement beside a spinner, which `show` removes."""
    _status.update(text)
    _status.start()


def machine() -> str:
    """The machine and the versions of the libraries."""
    device = jax.devices()[0]
    python = f"Python {platform.python_version()}"
    return ", ".join([device.device_kind, f"{os.cpu_count()} cores", python, *versions()])


def show(table: Table) -> None:
    """Print rows as a Markdown table; a column that a row lacks is blank."""
    progress(table.title)
    rows = []
    for row in table.rows:
        rows.append(row)
        progress(f"{table.title} Done: {next(iter(row.values()))}")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    _status.stop()
    print(table.title + "\n")
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print(f"| {' | '.join(cells)} |")
    print(flush=True)
