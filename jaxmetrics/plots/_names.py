"""Names as a figure, a page or a terminal can show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from unicodedata import east_asian_width

from jaxmetrics._base.words import visible as visible

LONGEST = 36  # columns of a name in a figure


def width_of(text: str) -> int:
    """The columns of a text: Chinese characters and emoji take two."""
    return sum(_widths(text))


def short_names(names: Sequence[str], most: int = LONGEST) -> list[str]:
    """Long names without their middle; those that would then be equal begin with their number."""
    short = [_shortened(visible(name), most) for name in names]
    counts = Counter(short)
    return [
        text if counts[text] == 1 or text == name else f"{i}: {_shortened(visible(name), most - 4)}"
        for i, (name, text) in enumerate(zip(names, short, strict=True), 1)
    ]


def _shortened(text: str, most: int) -> str:
    if width_of(text) <= most:
        return text
    room = most - 1  # beside the ellipsis
    head = text[: _fitting(text, room - room // 2)]
    return f"{head}…{text[len(text) - _fitting(reversed(text), room // 2) :]}"


def _fitting(text: Iterable[str], most: int) -> int:
    """How many leading characters fit `most` columns."""
    return sum(total <= most for total in accumulate(_widths(text)))


def _widths(text: Iterable[str]) -> Iterable[int]:
    return (1 + (east_asian_width(c) in "WF") for c in text)
