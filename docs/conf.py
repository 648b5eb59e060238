"""The site: `python -m sphinx -W docs docs/_build` writes it to docs/_build/index.html."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import jaxmetrics

sys.path.insert(0, str(Path(__file__).parent))
import cheat_sheet_pdf

project = "jaxmetrics"
author = "The jaxmetrics developers"
project_copyright = "the jaxmetrics developers, Apache-2.0"
version = release = jaxmetrics.__version__

extensions = [
    "myst_parser",
    "sphinx-mathjax-offline",  # formulas are drawn without a network
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
autosummary_generate = False
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "jaxmetrics"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# What docstrings have in backquotes is code, and a link where it is a public name.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = False
napoleon_use_ivar = True


EXAMPLES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
}


def with_examples(
    app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]
) -> None:
    """Below what a function is, the examples that use it."""
    module, _, rest = name.partition(".")
    if module != "jaxmetrics" or what not in ("function", "class", "data"):
        return
    alone = rf"|(?<![\w.]){rest}" if "." in rest else ""  # from jaxmetrics import plots
    used = re.compile(rf"(?:jm\.{rest}{alone})\b(?!\.)")
    found = [stem for stem, text in EXAMPLES.items() if rest and used.search(text)]
    if found:
        links = ", ".join(f":ref:`{stem}.py <example-{stem}>`" for stem in found)
        lines += ["", f".. seealso:: {links}", ""]


def with_summary(app: Sphinx, page: str, source: list[str]) -> None:
    """A page of the reference begins with a table of what it describes."""
    if not page.startswith("api/"):
        return
    names, module = [], ""
    for kind, name in re.findall(r"^\.\. (\w+):: ([\w.]+)$", source[0], re.MULTILINE):
        if kind in ("currentmodule", "automodule"):
            module = name
        if kind == "automodule":
            names += [f"{module}.{x}" for x in importlib.import_module(module).__all__]
        elif kind in ("autofunction", "autoclass", "autodata"):
            names.append(name if name.startswith("jaxmetrics.") else f"{module}.{name}")
    if names:
        table = "".join(f"   ~{name}\n" for name in names)
        head, rest = source[0].split("\n\n", 1)
        summary = f"```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{table}```"
        source[0] = f"{head}\n\n{summary}\n\n{rest}"


def as_markup(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are written to be read as they are; what reStructuredText would misread:

    bars, which are of absolute values, and indented lines under a line of text, which are a list.
    """
    result: list[str] = []
    listed = False
    for before, line in pairwise(["", *lines]):
        indented = line.startswith(" ")
        if indented and not before.startswith(" "):
            listed = bool(before) and not re.fullmatch(r"\w+:", before)
            result += [""] * listed
        elif listed and line and not indented:
            listed = False
            result += [""] * bool(before)
        starts = listed and indented and not line.startswith(" " * 3)
        result.append(("| " if starts else "") + line.replace("|", r"\|"))
    lines[:] = result


class CommandHelp(SphinxDirective):
    """What a command of `jaxmetrics` prints with --help."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from click.testing import CliRunner

        from jaxmetrics.cli import commands

        asked = [*self.arguments, "--help"]
        text = CliRunner().invoke(commands(), asked, prog_name="jaxmetrics").output
        return [nodes.literal_block(text, text, language="text")]


def with_pdf(app: Sphinx, page: str, source: list[str]) -> None:
    """The cheat sheet begins with a link to it as a PDF, which is written beside it."""
    if page == "cheat_sheet" and app.builder.format == "html":
        cheat_sheet_pdf.write(source[0], Path(app.outdir) / f"{page}.pdf")
        head, rest = source[0].split("\n\n", 1)
        link = f'<p><a href="{page}.pdf">This page as a PDF</a></p>'
        source[0] = f"{head}\n\n{link}\n\n{rest}"


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", as_markup, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", with_examples, priority=900)  # after it
    app.connect("source-read", with_summary)
    app.connect("source-read", with_pdf)
    app.add_directive("command-help", CommandHelp)
