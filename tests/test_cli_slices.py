"""--slice of the command, and slices of `jm.report`: models compared within slices."""

import io
import warnings

import numpy as np
import pytest
from rich.console import Console

import jaxmetrics as jm
from jaxmetrics._base.warned import FewItems, texts_of, warn
from jaxmetrics._report import Problem, Settings, evaluate_problem, report, tables_of
from jaxmetrics._report._settings import untold
from jaxmetrics._report._slices import Column

N = 300


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    labels = rng.random(N) < 0.4
    old = rng.normal(size=N) + labels
    codes = np.arange(N) % 3
    new = rng.normal(size=N) + labels * np.array([3, 1, -1])[codes]
    scores = np.stack([old, new])
    column = Column("country", ("better", "same", "worse"), codes)
    return Problem("f", "y", ("old", "new"), scores, labels, slices=(column,))


def _differences(problem):
    evaluation = evaluate_problem(problem, Settings(max_fpr=0.1, n_resamples=20), untold)
    found = report(Settings(), evaluation)["slices"]["country"]
    return evaluation, {name: x["differences"] for name, x in found.items()}


def test_differences_are_those_of_slices_with_their_weights(problem):
    weights = np.linspace(0.5, 2, N)
    _, found = _differences(problem._replace(weights=weights))
    codes = problem.slices[0].codes
    exact = jm.slices(jm.roc_auc, problem.scores, problem.labels, codes, weights=weights)
    for i, name in enumerate(problem.slices[0].values):
        (pair,) = found[name]["roc_auc"]
        for field in ("low", "simultaneous_low", "simultaneous_high", "simultaneous_p_value"):
            expected = float(getattr(exact.models, field)[i, 0, 1])
            assert pair[field] == pytest.approx(expected, rel=1e-3, abs=1e-9), field
    assert found["better"]["roc_auc"][0]["simultaneous_high"] < 0
    assert found["worse"]["roc_auc"][0]["simultaneous_low"] > 0


def test_differences_in_slices_are_those_of_clusters(problem):
    clusters = np.arange(N, dtype=np.int64) // 2
    evaluation, found = _differences(problem._replace(cluster="id", clusters=clusters))
    given = problem.scores, problem.labels, problem.slices[0].codes
    exact = jm.slices(jm.roc_auc, *given, clusters=clusters)
    assert exact.correlation is not None
    for i, name in enumerate(problem.slices[0].values):
        low = float(exact.models.low[i, 0, 1])
        assert found[name]["roc_auc"][0]["low"] == pytest.approx(low, rel=1e-3)
    (note,) = (x for x in evaluation.warnings if x.startswith("country better: there are only"))
    assert "clusters with positives" in note
    assert note.endswith("likewise, each with its own number, same and worse")


def test_notes_of_the_same_few_items_are_one():
    few = "only 2 negatives are within max_fpr=0.01: in simulations with fewer than 3"
    simulated = "95 % intervals cover 83 to 100 %", "0 to 4 % of equal models differ at 5 %"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for found in 2 * simulated:
            warn(FewItems(few, found, "add negatives", "negatives"))
            warn("another: one")
        warn("of a library", FutureWarning)
    told = "0 to 4 % of equal models differ at 5 %; 95 % intervals cover 83 to 100 %"
    assert texts_of(caught) == ["another: one", f"{few}, {told}: add negatives"]


def test_one_model_has_no_differences(problem):
    evaluation, found = _differences(problem._replace(names=("old",), scores=problem.scores[:1]))
    assert set(found.values()) == {None}
    assert not any("not compared" in x for x in evaluation.warnings)


def test_trends_of_clusters_that_recur(problem):
    """In the figures, which have the models in order of their areas, too."""
    clusters, months = np.arange(N, dtype=np.int64) // 4, np.arange(N) % 6
    names = tuple(f"2026-0{x}" for x in range(1, 7))
    column = Column("month", names, months, np.arange(6.0), "month")
    given = problem._replace(cluster="id", clusters=clusters, slices=(column,))
    evaluation = evaluate_problem(
        given, Settings(max_fpr=0.1, n_resamples=20), untold, with_figures=True
    )
    (found,) = evaluation.slices
    exact = jm.slices(jm.roc_auc, problem.scores, problem.labels, months, clusters=clusters)
    wanted = jm.trend(exact)
    np.testing.assert_allclose(found.trends[0].low, wanted.low, rtol=1e-4)  # not all slices at once
    np.testing.assert_allclose(found.trends[0].models.high, wanted.models.high, rtol=1e-4)
    assert "clusters with positives" in found.too_few


def test_what_holds_nothing_is_no_table_and_no_panel(problem):
    """A sentence says why: of slices of one class, and of metrics by which nothing is tested."""
    labels = problem.labels
    one_class = Column("kind", ("negative", "positive"), labels.astype(np.intp))
    small = Column("shop", tuple(f"s{i}" for i in range(15)), np.arange(N) % 15)
    names = tuple(f"2026-{i:02d}" for i in range(1, 13))
    month = Column("month", names, np.arange(N) % 12, np.arange(12.0), "month")
    given = problem._replace(slices=(one_class, small, month))
    found = evaluate_problem(given, Settings(n_resamples=20), untold, with_figures=True)
    figures = {x.name: x for x in found.drawings}
    assert [x for x in figures if x.startswith("slices")] == ["slices_1", "slices_2"]
    assert "trend" not in figures["slices_2"].about
    console = Console(file=io.StringIO(), width=200)
    for table in tables_of(found, console):
        console.print(table)
    printed = console.file.getvalue()
    headings = [x.strip() for x in printed.splitlines() if "y shop" in x or "month" in x]
    assert headings[0] == "By shop"  # not "new minus old", which would be untested
    assert not any("Trend" in x or "kind" in x for x in printed.splitlines())
    notes = " ".join(found.warnings)
    assert "slices by kind have no metrics, because each has items of one class alone" in notes
    by = "by AUC and Partial AUC to 1 % FPR within slices by shop: each slice has fewer than 20"
    assert f"models are not compared {by}" in notes
    assert "no trend of AUC and Partial AUC to 1 % FPR over month: fewer than two months" in notes
    assert len(report(Settings(), found)["slices"]) == 3
