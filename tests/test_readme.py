"""The code of the README runs."""

from pathlib import Path

import documents

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks():
    namespace = documents.run(README)
    assert len(documents.blocks(README)) == 7
    assert namespace["curve"].tpr.shape == (20, 10_001)
    assert namespace["flat"].shape == (2, 500)
    assert namespace["interval"].low.shape == (20,)
    assert namespace["gradient"].shape == (8,)
    assert namespace["replicates"].shape == (200, 20)


def test_commands():
    for command in (
        "python -m pip install -e '.[report]' && jaxmetrics demo",
        "python -m pip install -e '.[test]' && python -m pytest",
    ):
        assert f"\n{command}\n" in README.read_text(encoding="utf-8")
