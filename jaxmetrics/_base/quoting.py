"""How errors quote a value, which may be long."""

from __future__ import annotations

import reprlib
from typing import Any

_LONGEST = 80
_SHORT = reprlib.Repr()  # never writes a long value whole, only to cut it
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST


def brief(value: Any) -> str:
    """A value as errors quote it: at most 80 characters, on one line."""
    return cut(_SHORT.repr(value))


def cut(text: str) -> str:
    """At most 80 characters, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:40]} ... {text[-35:]}"
