"""Warnings that point to the line of the user's code that they concern."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1]) + os.sep
# Some of the library's functions are called through wrappers that `contextlib` makes.
_INSIDE = PACKAGE, contextlib.__file__


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside the library, whatever number of its functions is between."""
    # From Python 3.12 on `skip_file_prefixes` does the same.
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
