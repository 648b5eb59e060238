"""Warnings that point to the line of the user's code that they concern."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1]) + os.sep
# Some of the library's functions are called through wrappers that `contextlib` makes.
_INSIDE = PACKAGE, contextlib.__file__


class FewItems(UserWarning):
    """Few items, in parts by which a report joins the warnings of several metrics, or slices.

    Attributes:
      few: how many there are, and below how many simulations were.
      found: what these found.
      advice: what to do; may be empty.
      what: the kind of items.
    """

    def __init__(self, few: str, found: str, advice: str, what: str) -> None:
        super().__init__(few, found, advice, what)
        self.few, self.found, self.advice, self.what = few, found, advice, what

    def __str__(self) -> str:
        return f"{self.few}, {self.found}{': ' if self.advice else ''}{self.advice}"


def texts_of(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """The texts of the library's own warnings, each once; those of the same few items are one."""
    texts, found = set(), dict[tuple[str, str, str], set[str]]()
    for x in caught:
        # Ours name a line outside the package. Those that name a line of ours come from libraries
        # that it calls, such as Matplotlib: users need not see them.
        if x.filename.startswith(PACKAGE):
            continue
        message = x.message
        if isinstance(message, FewItems):
            parts = message.few, message.advice, message.what
            found.setdefault(parts, set()).add(message.found)
        elif x.category is UserWarning:
            texts.add(str(message))
    for (few, advice, what), each in found.items():
        texts.add(str(FewItems(few, "; ".join(sorted(each)), advice, what)))
    return sorted(texts)  # threads warn in any order


def warn(message: Warning | str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside the library, whatever number of its functions is between."""
    # From Python 3.12 on `skip_file_prefixes` does the same.
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
