"""The cheat sheet as a PDF of its own, to print."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import matplotlib
from fpdf import FPDF
from markdown_it import MarkdownIt

_FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
_SIZE = 7.0  # of letters, in points
_LINE = 3.3  # from one line to the next, in mm
logging.getLogger("fontTools").setLevel(logging.WARNING)  # which tells of each table of a font


def write(source: str, file: Path) -> None:
    """Markdown of headings, paragraphs, code and tables of two columns, on sheets of A4."""
    sheet = FPDF(format="A4")
    for family, name in (("sans", "DejaVuSans"), ("mono", "DejaVuSansMono")):
        sheet.add_font(family, "", _FONTS / f"{name}.ttf")
        sheet.add_font(family, "B", _FONTS / f"{name}-Bold.ttf")
    sheet.set_margin(10)
    sheet.set_auto_page_break(True, margin=10)
    sheet.add_page()
    sheet.set_fill_color(242)
    tokens = MarkdownIt().enable("table").parse(source)
    cells: list[str] = []
    for opened, token in zip(["", *(x.type for x in tokens)], tokens, strict=False):
        if opened == "heading_open":
            sheet.set_font("sans", "B", 2 * _SIZE)
            _paragraph(sheet, token.content, 2 * _LINE)
        elif opened == "paragraph_open":
            sheet.set_font("sans", size=_SIZE)
            _paragraph(sheet, token.content)
        elif token.type == "fence":
            sheet.set_font("mono", size=0.9 * _SIZE)
            _paragraph(sheet, token.content.rstrip(), 0.9 * _LINE, fill=True)
        elif opened in ("th_open", "td_open"):
            cells.append(_plain(token.content))
    sheet.set_font("sans", size=_SIZE)
    with sheet.table(
        col_widths=(1, 5), line_height=_LINE, borders_layout="HORIZONTAL_LINES", text_align="LEFT"
    ) as table:
        for pair in zip(cells[::2], cells[1::2], strict=True):
            table.row(pair)
    sheet.output(str(file))


def _paragraph(sheet: FPDF, text: str, line: float = _LINE, *, fill: bool = False) -> None:
    text = text if fill else _plain(text).replace("\n", " ")
    sheet.multi_cell(0, line, text, align="LEFT", fill=fill, new_x="LMARGIN", new_y="NEXT")
    sheet.ln(_LINE / 2)


def _plain(text: str) -> str:
    """Without the marks of links and code."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
