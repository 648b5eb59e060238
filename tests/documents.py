"""The code of Markdown documents, which their tests run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def blocks(path: Path) -> list[str]:
    """The blocks of Python, each after as many blank lines as the document has lines above it."""
    text = path.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return ["\n" * text.count("\n", 0, block.start(1)) + block[1] for block in found]


def run(path: Path) -> dict[str, Any]:
    """The names that the blocks leave, in one namespace, in order; errors say the line."""
    namespace: dict[str, Any] = {}
    for block in blocks(path):
        exec(compile(block, path, "exec"), namespace)
    return namespace
