"""Figures drawn once: as SVG for the page, and in the forms of other files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from jaxmetrics._report._evaluation import Drawing, Drawn
from jaxmetrics._report._page import page_colours
from jaxmetrics.plots._style import StyleName

# In all files: what a later report that lacks them removes.
MARK = "A report of jaxmetrics evaluate or demo"


def drawn(drawing: Drawing, style: StyleName, *, with_files: bool) -> Drawn:
    """The figure, of which the layout is settled, as SVG, as PNG, and for print as PDF."""
    svg, others = io.StringIO(), {}
    with page_colours(style):
        figure = drawing.draw()
        # Now, and once: a figure with an engine is drawn twice in each file that is saved.
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
