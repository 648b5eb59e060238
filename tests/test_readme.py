"""The code of the README runs."""

import re
from pathlib import Path

import documents

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks():
    namespace = documents.run(README)
    assert len(documents.blocks(README)) == 1
    assert namespace["interval"].low.shape == (20,)
    assert namespace["gradient"].shape == (8,)


def test_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 180


def test_links():
    targets = re.findall(r"\]\(([\w./]+)\)", README.read_text(encoding="utf-8"))
    assert len(targets) > 15
    assert [x for x in targets if not (README.parent / x).exists()] == []


def test_commands():
    for command in (
        "python -m pip install -e '.[report]' && jaxmetrics demo",
        "python -m pip install -e '.[test]' && python -m pytest",
    ):
        assert f"\n{command}\n" in README.read_text(encoding="utf-8")
