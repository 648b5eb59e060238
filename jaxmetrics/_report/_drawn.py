"""Figures drawn once: as SVG for the page, and in other formats for files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from jaxmetrics._report._evaluation import Drawing, Drawn
from jaxmetrics._report._page import page_colours
from jaxmetrics.plots._style import StyleName

# In the metadata of each figure's files: a later report removes those that it does not replace.
MARK = "A report of jaxmetrics evaluate or demo"


def drawn(drawing: Drawing, style: StyleName, *, with_files: bool) -> Drawn:
    """The figure as SVG; with files also as PNG, and in the style for print as PDF."""
    svg, others = io.StringIO(), {}
    with page_colours(style):
        figure = drawing.draw()
        # The layout is computed here, once: with an engine, each savefig would draw twice.
        layout: Any = figure.get_layout_engine()
        layout.execute(figure)
        figure.set_layout_engine(None)
        about = {"Title": drawing.title, "Creator": MARK}
        figure.savefig(svg, format="svg", metadata={"Date": None, **about})
        forms: dict[str, Any] = {"png": {"dpi": 150, "metadata": {"Software": MARK}}}
        if style == "print":
            forms["pdf"] = {"metadata": {"CreationDate": None, **about}}
        for form, options in forms.items() if with_files else ():
            others[form] = io.BytesIO()
            figure.savefig(others[form], format=form, **options)
    return Drawn(svg.getvalue(), {form: x.getvalue() for form, x in others.items()})


def save_figure(name: str, found: Drawn, directory: Path) -> None:
    """Write the files of a figure."""
    (directory / f"{name}.svg").write_text(found.svg, encoding="utf-8")
    for form, content in found.others.items():
        (directory / f"{name}.{form}").write_bytes(content)
