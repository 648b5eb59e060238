"""Resamples of the head of the items alone, and where that does not suffice."""

from functools import partial

import numpy as np
import pytest
from fast import marked
from resamples import FEW, KEY, N, replicates

import jaxmetrics as jm
from jaxmetrics.inference._bootstrap import run as _run
from jaxmetrics.inference._bootstrap import units as _units


def test_a_head_that_is_too_short_is_made_whole(monkeypatch):
    """It is noticed if any resample needs more, and all are done again."""
    n = 2 * N  # a size that no other test has, since programs are kept
    rng = np.random.default_rng(8)
    labels = rng.random(n) < 0.3
    scores = np.round(10 * (rng.normal(size=n) + labels))
    found = []
    collect = _run._collect

    def watched(*arguments):
        result = collect(*arguments)
        found.append(result[1])
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    monkeypatch.setattr(_units, "SPARE", 0.0)
    got = replicates(partial(jm.partial_auc, max_fpr=[0.1, 0.05]), scores, labels)
    # Up to 1 there is no head.
    whole = replicates(partial(jm.partial_auc, max_fpr=[0.1, 1.0]), scores, labels)
    assert found == [False, True, True]
    np.testing.assert_array_equal(got[:, 0], whole[:, 0])


def test_a_head_that_is_long_enough_is_used(data, monkeypatch):
    found = []
    collect = _run._collect
    monkeypatch.setattr(
        _run,
        "_collect",
        lambda prepared, *rest: found.append(prepared) or collect(prepared, *rest),
    )
    given = partial(jm.partial_auc, max_fpr=0.1), data.scores[0], data.labels
    result, error = jm.bootstrap(*given, key=KEY, n_resamples=FEW), jm.standard_error(*given)
    assert abs(np.mean(result.replicates) - result.estimate) < 4 * error / np.sqrt(FEW)
    assert abs(result.standard_error / error - 1) < 4 / np.sqrt(2 * FEW)
    (prepared,) = found
    units = prepared.sampler.units
    assert units.drawn[0] < units.total[0] == (~data.labels).sum()


@pytest.mark.parametrize("by_amount", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_of_many_items_only_the_heads_of_models_are_drawn(monkeypatch, by_amount):
    """Which does not change the distribution; a head that is too short is drawn again."""
    found = []
    collect = _run._collect

    def watched(prepared, *rest):
        result = collect(prepared, *rest)
        found.append((int(prepared.sampler.units.drawn[0]), result[1]))
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    rng = np.random.default_rng(11)
    labels, where = rng.random(4000) < 0.2, rng.random(4000) < 0.9
    scores = np.round(20 * (rng.normal(size=(2, 4000)) + rng.normal(size=4000) + labels))
    scores[:, ~where] = np.nan
    amounts = np.exp(rng.normal(size=4000)) if by_amount else None
    draw = partial(
        replicates,
        partial(jm.recall_at_fpr, max_fpr=0.05),
        scores,
        labels,
        n_resamples=3000,
        where=where,
        amounts=amounts,
    )
    whole = draw()
    monkeypatch.setattr(_run, "FEW_NEGATIVES", 0)
    head = draw()
    n_negatives = (where & ~labels).sum()
    assert found[0] == (n_negatives, True)
    assert found[1][0] < n_negatives / 4
    assert found[1][1]
    np.testing.assert_allclose(head.mean(0), whole.mean(0), atol=5e-3 * whole.mean())
    found_covariance, expected = np.cov(head.T), np.cov(whole.T)
    variances = np.diagonal(expected)
    error = np.sqrt((np.outer(variances, variances) + expected**2) / len(whole))
    assert np.all(np.abs(found_covariance - expected) < 4 * np.sqrt(2) * error)
    monkeypatch.setattr(_units, "SPARE", 0.0)
    np.testing.assert_array_equal(draw(n_resamples=FEW), whole[:FEW])
    assert [sufficient for _, sufficient in found[2:]] == [False, True]


@pytest.mark.parametrize(
    "options",
    [
        marked({}, fast=False),
        marked({"weights": ()}, fast=False),
        {"weights": (), "amounts": ()},
        marked({"weights": (2,)}, fast=False),
        marked({"resampling": "bayesian", "weights": ()}, fast=False),
        {"weights": "few"},
    ],
    ids=["models", "weights", "weights and amounts", "weights of models", "bayesian", "few"],
)
def test_where_all_items_are_drawn_only_the_head_is_scanned(monkeypatch, options):
    """With the same result, also where it is too short."""
    found, few = [], options.get("weights") == "few"
    collect = _run._collect

    def watched(prepared, *rest):
        result = collect(prepared, *rest)
        head, used = np.max(prepared.cells.head), np.max(prepared.cells.used)
        found.append((head < (used / 2 if few else 1000), few or used == 4000, result[1]))
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    rng = np.random.default_rng(12)
    labels = rng.random(4000) < 0.1
    scores = np.round(20 * (rng.normal(size=(2, 4000)) + labels))
    # Arrays of the shape and the number of items; weights of a mean of 2, some 0.
    drawn = {
        name: np.maximum(rng.gamma(1, 3, (*shape, 4000)) - 1, 0)
        for name, shape in options.items()
        if name != "resampling" and not few
    }
    if few:
        drawn = {"weights": rng.integers(1, 3, 4000)}
    draw = partial(
        replicates,
        partial(jm.recall_at_fpr if "amounts" in options else jm.partial_auc, max_fpr=[0.02, 0.04]),
        scores if options.get("weights", (2,)) == (2,) else scores[0],
        labels,
        **{**options, **drawn},
    )
    got = draw()
    monkeypatch.setattr(_run, "weight_of_head", lambda *_: np.full(1, np.inf))
    whole = draw()
    assert found == [(True, "weights" in drawn, True), (False, True, True)]
    np.testing.assert_allclose(got, whole, rtol=1e-12)
    monkeypatch.undo()
    monkeypatch.setattr(_run, "_collect", watched)
    monkeypatch.setattr(_units, "SPARE", -0.1)
    np.testing.assert_array_equal(draw(), whole)
    assert [sufficient for *_, sufficient in found[2:]] == [False, True]
