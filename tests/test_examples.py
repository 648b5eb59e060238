"""Every example runs, says what it should and draws its figure; the course names them all."""

import re
import runpy
import sys
from pathlib import Path

import nbformat
import pytest
from fast import marked
from nbclient import NotebookClient

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
NOTEBOOK = EXAMPLES[0].parent / "reading_results.ipynb"
SAYS = {
    "coarse_bins": ["exact AUC of 1,000,000 items: 0.7551", "0.5610, bounds 0.1373"],
    "error_bars": [
        "recall at 5 % FPR (closed form)",
        "not significantly worse than the best: logistic",
    ],
    "evaluation_in_a_loop": ["  12  0.98"],
    "first_principles": ["0.35               3                2", "cheapest:"],
    "learning_to_rank": ["mean of 277 queries", "0.0393, significantly better", "not significant"],
    "label_deciles": ["naive Bayes, nearest documents"],
    "mini_batches": ["squared hinge, with a state      0.2"],
    "partial_auc_training": ["taken on validation data: loss", "partial-AUC loss  0.2"],
    "partial_auc": ["0.5588", "0.5882", "0.7000  0.7000"],
    "recall_at_fpr": ["212 malignant", "at 1% FPR: 0.717", "median_unbiased"],
    "recall_averages": ["weighted                     0.8820  0.8820", "Grignolino 0.8732"],
    "twenty_models": ["discriminant, shrinkage 0    0.976", "0.939  0.858 to 0.980", "in the set"],
    "two_processes": ["process 1: 200,000 items", "all: 400,000 items, AUC 0.7695"],
}


# All of whose functions other tests run.
LONG = (
    *("coarse_bins", "mini_batches", "label_deciles", "evaluation_in_a_loop"),
    *("partial_auc_training", "learning_to_rank", "two_processes", "error_bars"),
)


@pytest.mark.parametrize(
    "path", [marked(x, fast=x.stem not in LONG) for x in EXAMPLES], ids=lambda path: path.stem
)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path / "figure.png")])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for words in [*SAYS[path.stem], "drew figure.png"]:
        assert words in printed
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_notebook():
    """It runs from its first cell to its last, is kept without outputs, and shows tables."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    NotebookClient(notebook, timeout=300).execute()
    printed = {cell.id: cell.outputs[-1] for cell in cells if cell.outputs}
    assert printed["interval"].text.startswith("AUC 0.")
    assert "95 % interval" in printed["interval"].text
    for name in ("compare", "slices"):
        page, text = (printed[name].data[f"text/{kind}"] for kind in ("html", "plain"))
        assert page.startswith("<table>")
        assert all(f">{model}</th>" in page for model in ("old", "new"))
        assert text.startswith(("Comparison(", "Slices("))
    assert "p_value" in printed["to_frame"].data["text/html"]
    assert len(printed["plot"].data["image/png"]) > 10_000


def test_course():
    """Each script is short, says how to run it, and is in the course with its figure."""
    course = (EXAMPLES[0].parent / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\[(\w+)\.py\]\((\w+)\.py\)", course)
    assert sorted(named) == [(path.stem, path.stem) for path in EXAMPLES]
    assert sorted(re.findall(r"!\[.+\]\((\w+)\.png\)", course)) == [path.stem for path in EXAMPLES]
    for path in EXAMPLES:
        script = path.read_text(encoding="utf-8")
        assert script.count("\n") < 80
        assert f"python examples/{path.name} [figure.png" in script
        assert path.with_suffix(".png").exists()
