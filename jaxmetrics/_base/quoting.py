"""How errors quote a value, which may be long, and a state that a checkpoint has restored."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
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


def restoring(state: Any, fields: tuple[str, ...], name: str) -> str:
    """How to build the state `name` where `state` is its fields from a checkpoint; else ""."""
    if isinstance(state, Mapping):  # such as an archive that numpy.load returns
        return f"{name}(**restored), as checkpoints may restore a state as a dict of its fields"
    if type(state) in (tuple, list) and len(state) == len(fields):
        return f"{name}(*restored), as checkpoints may restore a state as a list of its fields"
    return ""
