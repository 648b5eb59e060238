"""The fonts of figures, and names with characters that these fonts lack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from jaxmetrics.plots._names import short_names, visible

# Font families of common systems for characters that Matplotlib's own font lacks. Matplotlib cannot
# draw fonts of coloured emoji, only outlines.
FALLBACKS = (
    "DejaVu Sans",
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC"),
    *("Microsoft YaHei", "PingFang SC", "Hiragino Sans GB", "WenQuanYi Zen Hei", "SimHei"),
    *("WenQuanYi Micro Hei", "Droid Sans Fallback", "Yu Gothic", "Hiragino Sans", "IPAGothic"),
    *("Malgun Gothic", "Apple SD Gothic Neo", "Nanum Gothic", "Noto Sans Devanagari", "Nirmala UI"),
    *("Noto Sans Thai", "Leelawadee UI", "Arial Unicode MS", "Noto Emoji", "Segoe UI Emoji"),
    *("Segoe UI Symbol", "Symbola", "Noto Sans Symbols 2", "Unifont"),
)


def families() -> list[str]:
    """The installed font families among the user's and `FALLBACKS`."""
    from matplotlib import rcParams

    return [name for name in (*rcParams["font.family"], *FALLBACKS) if name in _installed()]


def drawn_names(kind: str, names: Sequence[str]) -> tuple[list[str], str]:
    """Short names that the fonts can draw, and a sentence on those that they cannot.

    A name that they cannot draw is replaced by its number and those of its characters that they
    can.
    """
    names = [visible(name) for name in names]
    if all(map(str.isascii, names)):
        return short_names(names), ""  # reading what characters the fonts have takes a second
    known = frozenset().union(*map(_characters, families()))
    drawn = [
        name if known.issuperset(map(ord, name)) else _numbered(f"{kind} {i}", name, known)
        for i, name in enumerate(names, 1)
    ]
    stands = [f"{x} is {name}" for x, name in zip(drawn, names, strict=True) if x != name]
    about = f" No font here has all characters of some names: {'; '.join(stands)}."
    return short_names(drawn), about if stands else ""


def _numbered(number: str, name: str, known: frozenset[int]) -> str:
    rest = re.sub(r"\s+", " ", "".join(c for c in name if ord(c) in known)).strip()
    return f"{number}: {rest}" if re.search(r"\w", rest) else number


@cache
def _installed() -> frozenset[str]:
    from matplotlib.font_manager import font_family_aliases, fontManager

    return frozenset(font.name for font in fontManager.ttflist) | font_family_aliases


@cache
def _characters(family: str) -> frozenset[int]:
    """The characters of the font that Matplotlib finds for a family."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=[family]))).get_charmap())
