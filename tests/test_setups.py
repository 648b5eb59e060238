"""The study of many set-ups: its moments are the library's, and the rules hold in a part of it."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxmetrics as jm
from benchmarks import curve_moments, setups
from benchmarks.curve_moments import Runs
from benchmarks.populations import populations
from jaxmetrics._base import checks
from jaxmetrics.inference._influence.variance import moments_of
from jaxmetrics.inference._intervals import precision, recall, rules

LIMIT = 0.1
METRICS = {
    "auc": (jm.roc_auc, curve_moments.of_auc),
    "average precision": (jm.average_precision, curve_moments.of_average_precision),
    "partial area": (
        partial(jm.partial_auc, max_fpr=LIMIT, scale="range"),
        partial(curve_moments.of_partial_auc, limit=LIMIT),
    ),
    "recall": (
        partial(jm.recall_at_fpr, max_fpr=LIMIT),
        partial(curve_moments.of_recall, limit=LIMIT, level=0.95),
    ),
}


@pytest.fixture(scope="module")
def by_name():
    """The populations, which take seconds to make."""
    return {x.name: x for x in populations()}


def runs_of(scores, labels):
    """The counts of one data set, by its distinct scores."""
    _, run = np.unique(-scores, return_inverse=True)
    return Runs(*(np.bincount(run, x)[None].astype(int) for x in (labels, ~labels)))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_moments_are_the_librarys(name, ties):
    rng, n_positive = np.random.default_rng(0), 23
    scores = rng.normal(size=(4, 110)).astype("float32")
    scores[:, :n_positive] += 1
    if ties:
        scores = np.round(2 * scores) / 2
    labels = np.arange(110) < n_positive
    metric, of_metric = METRICS[name]
    for row in scores:
        expected = moments_of(metric, checks.check_items(row, labels), 0.95)
        found = jax.tree.map(lambda x: x[0], of_metric(runs_of(row, labels)))
        if name == "recall":  # its rule needs no variances
            found, expected = ((x[0].estimate, x[0].sizes, x[1]) for x in (found, expected))
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_truth_is_that_of_large_samples():
    rng, n = np.random.default_rng(1), 200_000
    for population in populations()[::8]:
        truth = population.truth((0.1,), 0.5)
        data = Runs(*population.draw(rng, 1, n, n))
        found = {
            "roc_auc": curve_moments.of_auc(data)[0].estimate,
            "partial_auc 0.1": curve_moments.of_partial_auc(data, 0.1)[0].estimate,
            "average_precision": curve_moments.of_average_precision(data)[0].estimate,
        }
        for name, value in found.items():
            np.testing.assert_allclose(value, truth[name], atol=6e-3, err_msg=population.name)


def runs_of_rows(scores, labels):
    """As `runs_of`, of many data sets at once, whose last runs may be empty."""
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    run = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1)
    counts = np.zeros((2, *scores.shape), int)
    np.add.at(counts, (np.where(labels[order], 0, 1), np.arange(len(scores))[:, None], run), 1)
    return Runs(*counts)


@pytest.mark.parametrize("name", ["five levels", "binormal 0.8"])
def test_counts_are_those_of_drawn_scores(name, by_name):
    """Of scores that tie within and between the classes, and of scores that do not."""
    rng, k, sizes = np.random.default_rng(2), 2000, (7, 9)
    population = by_name[name]
    data = Runs(*population.draw(rng, k, *sizes))
    np.testing.assert_array_equal(data.sizes, np.broadcast_to([[9], [7]], (2, k)))
    classes = zip((population.positives, population.negatives), sizes, strict=True)
    drawn = [law.draw(rng, (k, n)) for law, n in classes]
    rows = np.concatenate(drawn, axis=1)
    of_rows = runs_of_rows(rows, np.arange(16) < 7)
    one = runs_of(rows[0], np.arange(16) < 7)
    for x, y in ((of_rows.positives, one.positives), (of_rows.negatives, one.negatives)):
        np.testing.assert_array_equal(x[0, : y.size], y[0])
        assert not x[0, y.size :].any()
    for metric in (curve_moments.of_auc, curve_moments.of_average_precision):
        expected = np.array(jax.tree.leaves(metric(of_rows)[0])[:3]).T
        found = np.array(jax.tree.leaves(metric(data)[0])[:3])
        error = 5 * expected.std(axis=0) / np.sqrt(k)
        np.testing.assert_allclose(found.mean(axis=1), expected.mean(axis=0), atol=error.max())
        np.testing.assert_allclose(found.std(axis=1), expected.std(axis=0), rtol=0.1)


# Tuned and held-out ones; all metrics, and limits of the FPR with enough negatives within.
CELLS = (
    ("binormal 0.9", (20, 500)),
    ("8 % low", (50, 1000)),
    ("logistic, shift 2.5", (50, 1000)),
    ("gamma 2, scale 4", (20, 500)),
)


def _coverages():
    by_name = {x.name: x for x in populations()}
    found = []
    for i, (name, sizes) in enumerate(CELLS):
        found += setups.study(by_name[name], *sizes, 1000, (7, i))
    return [x for x in found if x.level == 0.95 and x.setup.inside >= 5]


@pytest.fixture(scope="module")
def coverages():
    return _coverages()


@pytest.mark.slow
def test_the_rules_hold_in_a_part_of_the_study(coverages):
    for metric in ("roc_auc", "partial_auc", "average_precision", "recall_at_fpr"):
        found = [x for x in coverages if x.setup.metric == metric]
        auto = np.array([x.coverage for x in found if x.method == "auto"])
        assert auto.min() > 0.92, metric
        assert np.median(auto) < 0.985, metric
        # The data are hard enough for others to fail.
        assert min(x.coverage for x in found) < 0.92, metric


UNSEEN, FEW = (rules, "_UNSEEN"), [(precision, "_FEW"), (precision, "_FEW_ABOVE")]
MANY = (rules, "MANY_FAILURES")


@pytest.mark.parametrize(
    ("metric", "population", "sizes", "constants"),
    [
        pytest.param("roc_auc", "binormal 0.99", (20, 500), [MANY], marks=pytest.mark.slow),
        *(
            pytest.param("average_precision", *case, marks=pytest.mark.slow)
            for case in (
                ("binormal 0.8", (10, 2000), [UNSEEN, *FEW]),
                ("logistic, shift 6", (200, 200), [UNSEEN, (precision, "_FEWEST"), MANY]),
            )
        ),
        ("recall_at_fpr", "binormal 0.99", (20, 500), [(recall, "_FEWEST")]),
    ],
)
def test_a_rule_that_is_not_widened_fails(
    metric, population, sizes, constants, monkeypatch, by_name
):
    chosen = by_name[population]

    def worst():
        found = setups.study(chosen, *sizes, 400, 3)
        found = [x for x in found if x.setup.metric == metric and x.method == "auto"]
        return min(x.coverage for x in found if x.level == 0.95 and x.setup.inside >= 5)

    whole = worst()
    for module, name in constants:
        monkeypatch.setattr(module, name, (-2, -1))
    assert worst() < whole - 0.02


@pytest.mark.slow
def test_the_tables_are_printed(tmp_path):
    output = tmp_path / "setups.md"
    command = [sys.executable, "-m", "benchmarks.setups", "--quick", "--output", str(output)]
    root = Path(__file__).parents[1]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert printed == output.read_text()
    assert "## recall_at_fpr" in printed
