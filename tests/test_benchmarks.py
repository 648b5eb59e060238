"""The benchmarks work, on small data."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_row_is_printed():
    command = [sys.executable, "-m", "benchmarks", "--quick", "--runs", "1"]
    root = Path(__file__).parents[1]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for words in (
        "roc_auc, n = 1,000",
        "100 models",
        "2,000 of partial_auc",
        "covariance",
        "ties=average",
        "ten metrics",
        "segments",
        "macro",
        "k_for_recall by decile",
        "squared hinge",
        "training step",
        "first call",
        "peak memory",
        "error",
        "interval of roc_auc",
        "update of a binned state",
        "Faster than ours",
        "its certain bounds",
        "Signatures",
    ):
        assert words in printed
