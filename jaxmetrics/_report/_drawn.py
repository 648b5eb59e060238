"""Figures drawn once: as SVG for the page, and ready for other files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from jaxmetrics._report._evaluation import Drawing, Drawn
from jaxmetrics._report._page import page_colours
from jaxmetrics.plots._style import StyleName

# In all files: what a later report that lacks them removes.
MARK = "A report of jaxmetrics evaluate or demo"


def drawn(drawing: Drawing, style: StyleName) -> Drawn:
    """The figure, of which the layout is settled, and its SVG."""
    svg = io.StringIO()
    with page_colours(style):
        figure = drawing.draw()
        # Now, and once: a figure with an engine is drawn twice in each file that is saved.
        layout: Any = figure.get_layout_engine()
        layout.execute(figure)
        figure.set_layout_engine(None)
        about = {"Date": None, "Title": drawing.title, "Creator": MARK}
        figure.savefig(svg, format="svg", metadata=about)
    return Drawn(figure, svg.getvalue())


def save_figure(drawing: Drawing, found: Drawn, style: StyleName, directory: Path) -> None:
    """Write the figure's SVG and PNG, and its PDF for print."""
    (directory / f"{drawing.name}.svg").write_text(found.svg, encoding="utf-8")
    with page_colours(style):
        png = directory / f"{drawing.name}.png"
        found.figure.savefig(png, dpi=150, metadata={"Software": MARK})
        if style == "print":
            about = {"CreationDate": None, "Title": drawing.title, "Creator": MARK}
            found.figure.savefig(directory / f"{drawing.name}.pdf", metadata=about)
