"""The site: its code runs, it has all public names, and it builds without a warning."""

import contextlib
import importlib
import io
import pkgutil
import sys
import warnings
from pathlib import Path

import documents
import pytest
from fast import marked

import jaxmetrics

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and documents.blocks(p))
OPTIONAL = ("torch", "torchmetrics")  # which the test extra does not bring
# The dearest, all of whose functions other tests run.
LONG = ("meshes.md", "formulas.md", "training.md", "recipes.md", "error_bars.md", "moving/rax.md")


def of_docs(page):
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize(
    "page", [marked(x, fast=of_docs(x) not in LONG) for x in PAGES], ids=of_docs
)
def test_code(page):
    try:
        documents.run(page)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"needs {error.name}")


def test_examples_are_shown():
    text = (DOCS / "examples.md").read_text(encoding="utf-8")
    files = [f for f in (DOCS.parent / "examples").iterdir() if f.suffix in (".py", ".png")]
    assert [f.name for f in files if f" ../examples/{f.name}\n" not in text] == []


def built(folder, *options):
    """Builds the site without a warning."""
    for name in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(name, reason="the extra docs is not installed")
    from sphinx.cmd.build import build_main  # in this process, which has imported most of it

    errors = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(action="error"),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # as in a process of its own
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        patch.setattr(sys, "path", [*sys.path])  # to which the configuration adds
        status = build_main(["-q", "-W", "--keep-going", *options, str(DOCS), str(folder)])
    assert (status, errors.getvalue()) == (0, "")
    assert (folder / "index.html").stat().st_size > 5000


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site without what costs most and says least of the pages:

    the navigation of its theme, and a page of the source of each module.
    """
    folder = tmp_path_factory.mktemp("site")
    extensions = ",".join(
        (
            *("myst_parser", "sphinx-mathjax-offline", "sphinx.ext.autodoc"),
            *("sphinx.ext.autosummary", "sphinx.ext.mathjax", "sphinx.ext.napoleon"),
            "sphinx_design",
        )
    )
    built(
        folder, *("-D", "html_theme=basic", "-D", "smartquotes=0"), "-D", f"extensions={extensions}"
    )
    return folder


@pytest.mark.slow
def test_builds_with_its_theme(tmp_path):
    built(tmp_path)


def test_builds_without_warnings(site):
    assert "jaxmetrics.roc_auc" in (site / "genindex.html").read_text(encoding="utf-8")


def test_cheat_sheet_is_one_page_of_everything(site):
    sheet = (site / "cheat_sheet.pdf").read_bytes()
    assert sheet.startswith(b"%PDF")
    assert sheet.count(b"/Type /Page\n") == 1
    text = (DOCS / "cheat_sheet.md").read_text(encoding="utf-8")
    names = [x for x in jaxmetrics.__all__ if not isinstance(getattr(jaxmetrics, x), type)]
    assert [x for x in names if f"(#jaxmetrics.{x})" not in text] == []


def _public_modules():
    """The modules without an underscore in their path that say what is public."""
    found = pkgutil.walk_packages(jaxmetrics.__path__, "jaxmetrics.")
    names = [m.name for m in found if "._" not in m.name]
    modules = [jaxmetrics, *map(importlib.import_module, names)]
    return [m for m in modules if hasattr(m, "__all__")]


def test_each_public_name_is_there_once(site):
    """Under one of its names, as what `jaxmetrics.inference` has is also in `jaxmetrics`."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    documented = {
        name
        for kind in ("function", "class", "data", "module")
        for name in inventory.get(f"py:{kind}", {})
    }
    names = {}
    for module in _public_modules():
        for name in module.__all__:
            names.setdefault(id(getattr(module, name)), []).append(f"{module.__name__}.{name}")
    assert len(names) > 120
    counts = {tuple(group): len(documented.intersection(group)) for group in names.values()}
    assert {group: count for group, count in counts.items() if count != 1} == {}
