"""How the package is laid out: the order of its rooms, no cycles, files of one subject."""

import ast
import graphlib
from functools import cache
from pathlib import Path

import pytest

import jaxmetrics

ROOT = Path(jaxmetrics.__file__).parent
MOST_LINES = 400

# A module imports from its own room and from those above it. Its room is the longest of these
# names that its own begins with.
ROOMS = (
    "jaxmetrics._base",
    "jaxmetrics._base.checks",
    "jaxmetrics._roc",
    "jaxmetrics._ranking",
    "jaxmetrics._predictions",
    "jaxmetrics.extreme",
    "jaxmetrics.losses",
    "jaxmetrics.inference._intervals",
    "jaxmetrics.inference._influence",
    "jaxmetrics.inference._bootstrap",
    "jaxmetrics.inference",
    "jaxmetrics.training",
    "jaxmetrics.streaming",
    "jaxmetrics._reporting",
    "jaxmetrics",
    "jaxmetrics.sklearn",
    "jaxmetrics.plots",
    "jaxmetrics._report",
    "jaxmetrics.cli",
)

# JAX's internals change without notice, so that these files alone are to know of them.
INTERNALS = ("jax._src", "jax.interpreters", "jax.extend", "jax.core")
OF_INTERNALS = ("jaxmetrics._base.primitives",)


def _name(path):
    *packages, last = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(packages if last == "__init__" else [*packages, last])


FILES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache  # not when tests are collected, which each process does
def trees():
    return {name: ast.parse(path.read_text("utf-8")) for name, path in FILES.items()}


def _imports(tree):
    """What a module imports, wherever in it that is: of `from a import b`, a.b if that is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"write the whole name in place of dots: line {node.lineno}"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in FILES or _is_of(module, INTERNALS) else node.module


def _is_of(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def edges():
    return {
        name: {found for found in _imports(tree) if _is_of(found, ["jaxmetrics"])} - {name}
        for name, tree in trees().items()
    }


def _room(name):
    return max((room for room in ROOMS if _is_of(name, [room])), key=len)


def test_each_module_has_a_room():
    """Each room has modules; only the package and its public names are in none of the others."""
    assert {_room(name) for name in FILES} == set(ROOMS)
    assert [name for name in FILES if _room(name) == "jaxmetrics"] == [
        "jaxmetrics",
        "jaxmetrics._public",
    ]


def test_imports_are_of_modules():
    """What is imported is a file that was read, so that no edge is overlooked."""
    assert {found for imports in edges().values() for found in imports} <= set(FILES)


def test_modules_import_only_from_rooms_before_them():
    upwards = [
        f"{name} imports {found}"
        for name, imports in edges().items()
        for found in sorted(imports)
        if ROOMS.index(_room(found)) > ROOMS.index(_room(name))
    ]
    assert upwards == []


def test_modules_do_not_import_each_other_in_a_circle():
    try:
        graphlib.TopologicalSorter(edges()).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_files_are_short():
    """Those of the package, of the tests and of the benchmarks."""
    folders = ROOT, ROOT.parent / "tests", ROOT.parent / "benchmarks"
    lines = {
        str(path): len(path.read_text("utf-8").splitlines())
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert len(lines) > len(FILES)
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def _internals(tree):
    """JAX's internals that a module imports or names in full."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    inner = {node.value for node in attributes}
    found = {*_imports(tree), *(ast.unparse(node) for node in attributes if node not in inner)}
    return {name for name in found if _is_of(name, INTERNALS)}


def test_internals_of_jax_are_known_to_few():
    users = {name: found for name, tree in trees().items() if (found := _internals(tree))}
    assert {name: found for name, found in users.items() if name not in OF_INTERNALS} == {}
    assert users.keys() == set(OF_INTERNALS)  # so that the search is seen to find them


def test_threads_and_backends_have_one_policy():
    words = {"ThreadPoolExecutor", "cpu_count", "default_backend"}
    users = {
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if getattr(node, "attr", getattr(node, "id", "")) in words
    }
    assert users == {"jaxmetrics._base.host"}
