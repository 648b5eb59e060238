"""The coverage study draws what it says, and finds the intervals that a user would."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from benchmarks import coverage
from benchmarks.coverage_rows import GOAL_ROWS, OTHER_ROWS, Row, binormal, levels


def test_true_values():
    for auc, b in [(0.7, 1), (0.97, 1), (0.95, 0.5), (0.95, 2)]:
        truth = binormal(20, 20, auc, b).truth()
        a = stats.norm.ppf(auc) * np.sqrt(1 + b**2)
        fpr = np.linspace(0, 0.1, 1_000_001)
        roc = stats.norm.cdf(a + b * stats.norm.ppf(fpr))
        expected = [auc, np.trapezoid(roc, fpr) / 0.1, roc[-1]]
        np.testing.assert_allclose(list(truth.values()), expected, atol=1e-6)
    binary = Row("", 50, 100, levels(0.7, 0.3), levels(0.2, 0.8)).truth()
    np.testing.assert_allclose(list(binary.values()), [0.75, 0.175, 0], atol=1e-12)


def test_tally():
    low, high = [0.1, 0.2, 0.6, np.nan], [0.3, 0.5, 0.9, np.nan]
    tally = coverage.Tally().with_limits(low, high, 0.4)
    assert tally[:4] == (4, 1, 1, 1)
    assert tally.coverage == 0.25
    assert tally.mean_width == pytest.approx(0.8 / 4)


@pytest.mark.slow
@pytest.mark.parametrize("row", [*GOAL_ROWS[:1], *OTHER_ROWS], ids=lambda row: row.name)
def test_true_values_are_those_of_large_samples(row):
    # Of 200,000 a class; of tied levels no FPR is at the limit, so that recall does not jump.
    large = row._replace(n_positive=200_000, n_negative=200_000)
    scores, labels = large.draw(jax.random.key(3), 1)
    found = [metric(scores[0], labels) for metric in coverage.METRICS.values()]
    np.testing.assert_allclose(found, list(row.truth().values()), atol=6e-3)


@pytest.mark.slow
def test_limits_are_those_of_confidence_interval():
    scores, labels = binormal(110, 120, 0.85).draw(jax.random.key(0), 3)
    key = jax.random.key(1)
    for name, metric in coverage.METRICS.items():
        found = coverage.closed_limits(name, scores, labels)
        found |= coverage.resampled_limits(name, scores, labels, key, 200)
        assert set(found) == set(coverage.METHODS[name])
        for method, limits in found.items():
            interval = jm.confidence_interval(
                metric, scores, labels, method=method, key=key, n_resamples=200
            )
            expected = jnp.stack([interval.low, interval.high])
            np.testing.assert_array_equal(jnp.stack(limits), expected)


@pytest.mark.slow
def test_every_table_is_printed(tmp_path):
    output = tmp_path / "coverage.md"
    command = [sys.executable, "-m", "benchmarks.coverage", "--quick", "--output", str(output)]
    root = Path(__file__).parents[1]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert printed == output.read_text()
    for name in coverage.METRICS:
        assert f"## {name}" in printed
    for words in ("20 simulated data sets", "Goal for auto", "By the size of the smaller class"):
        assert words in printed
