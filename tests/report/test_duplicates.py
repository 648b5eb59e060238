"""The note of rows that were copied."""

import numpy as np
import pandas as pd
import pytest
from command import evaluated

from jaxmetrics._report import Problem, Settings, evaluate_problem
from jaxmetrics._report._duplicates import n_duplicates_of, notes_of_duplicates
from jaxmetrics._report._settings import untold

N = 2000


def _problem(scores, labels, rows=slice(None)):
    scores = np.atleast_2d(scores)[:, rows]
    return Problem("f", "y", tuple("ab"[: len(scores)]), scores, labels[rows])


def _items(rng, share):
    labels = rng.random(N) < share
    return rng.normal(size=N) + 2 * labels, labels


def _notes(problem):
    return notes_of_duplicates(problem, n_duplicates_of(problem))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_files_that_overlap_are_noted(rng):
    scores, labels = _items(rng, 0.3)
    rows = np.concatenate([np.arange(1200), np.arange(800, N)])
    chances = 1 / (1 + np.exp(-scores))
    for given in (scores, np.round(chances, 6), np.float32(chances), [scores, scores.round(1)]):
        (note,) = _notes(_problem(np.float64(given), labels, rows))
        assert note.startswith(("400 of 2,400 rows repeat", "401 of 2,400 rows repeat"))
        assert note.endswith("drop their copies")
        assert not _notes(_problem(np.float64(given), labels))
    twice = np.tile(np.arange(N), 2)
    assert _notes(_problem(scores, labels, twice))[0].startswith("2,000 of 4,000")


@pytest.mark.parametrize("share", [0.3, 0.01])
def test_scores_that_tie_by_chance_are_not_noted(rng, share):
    scores, labels = _items(rng, share)
    rounded = [scores.round(digits) for digits in range(6)]
    leaves = rng.normal(size=50)[np.clip(5 * scores, 0, 49).astype(int)]
    floats = [scores.astype(np.float16), 1 / (1 + np.exp(-3 * scores).astype(np.float16))]
    flat = [np.clip(scores, -1, 1.5), np.where(rng.random(N) < 0.4, 0, scores), labels * 1.0]
    for given in (*rounded, leaves, *floats, *flat):
        assert not _notes(_problem(np.float64(given), labels))


def test_the_note_is_among_the_warnings(rng):
    scores, labels = _items(rng, 0.3)
    problem = _problem(scores[:200], labels[:200], np.tile(np.arange(200), 2))
    found = evaluate_problem(problem, Settings(n_resamples=20), untold)
    assert found.facts["n_duplicates"] == 200
    assert found.warnings[0].startswith("200 of 400 rows repeat the label and scores of an earlier")


def test_documents_of_rankings(tmp_path):
    """As a join repeats them; the same document of another query is none."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 3, 300), "a": rng.normal(size=300)})
    frame = pd.concat([frame.assign(q=0), frame.assign(q=1)])
    given = ("--label", "y", "--score", "a", "--group", "q")
    frame.to_csv(tmp_path / "all.csv", index=False)
    report = evaluated(tmp_path / "all.csv", *given)
    assert report["n_duplicates"] == 0
    assert not any("repeat the" in note for note in report["warnings"])
    pd.concat([frame, frame.iloc[:100]]).to_csv(tmp_path / "joined.csv", index=False)
    report = evaluated(tmp_path / "joined.csv", *given)
    assert report["n_duplicates"] == 100
    words = "100 of 700 rows repeat the query, label and scores of an earlier row"
    assert any(note.startswith(words) for note in report["warnings"])
