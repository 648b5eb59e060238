"""Every example runs, and says what it should."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "coarse_bins": ["exact AUC of 1,000,000 items: 0.7551", "0.5610, surely 0.1373", "drew"],
    "error_bars": ["recall at 5 % FPR (wilson)", "cannot be told from the best: logistic", "drew"],
    "evaluation_in_a_loop": ["   5  0.97"],
    "first_principles": ["0.35               3                2", "cheapest:", "drew"],
    "learning_to_rank": ["mean of 277 queries", "0.0433, better", "not told apart", "drew"],
    "label_deciles": ["naive Bayes, nearest documents", "drew"],
    "mini_batches": ["   30  "],
    "partial_auc_training": ["cross-entropy     ", "partial-AUC loss  ", "drew"],
    "partial_auc": ["0.5588", "0.5882", "0.7000  0.7000"],
    "two_processes": ["process 0: 500,000 items", "all: 1,000,000 items, AUC 0.85"],
    "recall_averages": ["weighted                   0.8820  0.8820", "Grignolino 0.8732"],
    "recall_at_fpr": ["212 malignant", "of the area", "median_unbiased"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path / "figure.png")])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for words in SAYS[path.stem]:
        assert words in printed
    assert "drew" not in printed or (tmp_path / "figure.png").stat().st_size > 10_000
