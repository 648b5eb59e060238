"""Texts from files, which may be long, as messages and titles quote them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from jaxmetrics.plots._names import visible

MOST = 80  # characters of a value


def shortened(value: Any, most: int = MOST) -> str:
    """A value as printable text, with its middle left out if it is long."""
    return visible(_cut(str(value), most))


def quoted(value: Any) -> str:
    """A value in quotes, with its middle left out if it is long."""
    return repr(_cut(str(value), MOST))


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}...{text[len(text) + 3 - most + most // 2 :]}"


def listed(values: Sequence[Any], most: int) -> str:
    """The first values, and how many more there are."""
    shown = ", ".join(shortened(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def name_of(source: str) -> str:
    """The name of what was evaluated, for a title: that of a file is without its folders."""
    return "standard input" if source == "-" else PurePath(source).name or source
