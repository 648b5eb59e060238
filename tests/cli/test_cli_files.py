"""Generated files: what is read in memory, in batches and by pandas is the same."""

import json
import re
from collections import Counter

import file_cases
import jax
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from read_files import ROWS, SETTINGS, TELL, file_of, refusal

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _csv, _files, _metrics, _stream

BINS = jm.streaming.float16_bins()
# Reasons to refuse what pandas fills, cuts or takes for one cell.
STRICTER = r"and the header \d+|a quote in line|UTF-16|between its columns|double precision rounds"


def in_memory(case, path):
    problem = _report.problem_of_file(path, label="y", scores=case.scores, positive=case.positive)
    return problem.labels, problem.scores


def in_batches(case, path, patch):
    """The state of the stream, and the numbers of items and of positives."""
    found = []
    patch.setattr(_stream, "_evaluation", lambda *arguments: found.append(arguments))
    _report.evaluate_stream(
        path,
        SETTINGS,
        TELL,
        label="y",
        scores=case.scores,
        positive=case.positive,
    )
    state, facts = found[0][0], found[0][4]
    return state, (facts["n_items"], facts["n_positive"])


def outcome(work, *arguments):
    """What is read, or the sentence that refuses it."""
    try:
        return work(*arguments), None
    except _report.InputError as error:
        return None, error.message
    except (ValueError, KeyError) as error:  # of pandas
        return None, repr(error)


def state_of(labels, scores):
    state = jm.streaming.init(BINS, (len(scores),))
    return _stream._updated(state, _stream._rounded_down(scores), labels, BINS)


def compared(seed, folder):
    """How the readers deal with the file of a seed."""
    case = file_cases.case(seed)
    path = folder / case.name
    path.write_bytes(case.content)
    memory, refused = outcome(in_memory, case, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stream, "_ROWS", 32)
        patch.setattr(_stream, "_bins_for", lambda *batch: (BINS, []))
        stream, refused_too = outcome(in_batches, case, path, patch)
        patch.setattr(_csv, "_BLOCK", 700)
        patch.setattr(_files, "ROWS", 7)
        short, refused_short = outcome(in_batches, case, path, patch)
        assert refused == refused_too
        assert (memory is None) == (stream is None) == (short is None), (refused, refused_short)
        expected, reason = outcome(file_cases.by_pandas, case, path)
        path.unlink()
        if memory is None:
            assert len(refused) < 400
            if expected is None:
                return "refused by all"
            assert re.search(STRICTER, refused), (refused, expected)
            return "refused, but read by pandas"
        assert expected is not None, reason
        np.testing.assert_array_equal(memory[0], expected[0])
        np.testing.assert_allclose(memory[1], expected[1], rtol=1e-15)
        state = state_of(*memory)
        for found, (n_items, n_positive) in (stream, short):
            assert (n_items, n_positive) == (len(memory[0]), memory[0].sum())
            jax.tree.map(np.testing.assert_array_equal, found, state)
    return "read by all, and equal"


def test_files_are_read_alike_in_memory_in_batches_and_by_pandas(tmp_path):
    outcomes = Counter(compared(seed, tmp_path) for seed in range(40))
    assert outcomes["read by all, and equal"] >= 10
    assert outcomes["refused by all"] >= 5


def test_parquet_of_pandas(tmp_path):
    """With its index on any column; a duration is no number, true and false are."""
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "a": [0.1, 0.2, 0.3, 0.4]})
    frame["flag"], frame["time"] = frame["a"] > 0.2, pd.to_timedelta(frame["a"], "D")
    path = tmp_path / "x.parquet"
    for index in ("a", "y"):
        frame.set_index(index).to_parquet(path)
        assert outcome(read_twice, path, ("a",)) == ("alike", None)
    assert outcome(read_twice, path, ("flag",)) == ("alike", None)
    assert "has dates or durations" in refusal(path, scores=("time",))
    table = pyarrow.table([[0, 1], [1.0, 2.0], [1.0, 2.0]], names=["y", "a", "a"])
    pyarrow.parquet.write_table(table, path)
    assert "has 2 columns 'a'" in refusal(path)


def read_twice(path, scores):
    case = file_cases.Case(path.name, b"", scores, None, False, None)
    memory = in_memory(case, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stream, "_ROWS", 32)
        patch.setattr(_stream, "_bins_for", lambda *batch: (BINS, []))
        state, _ = in_batches(case, path, patch)
    jax.tree.map(np.testing.assert_array_equal, state, state_of(*memory))
    return "alike"


def test_progress_is_told_from_the_start_in_memory_too(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_BLOCK", 300)
    path, told = file_of(tmp_path, ROWS), []
    options = {"label": "y", "scores": ["a"]}
    _report.problem_of_file(path, lambda *what: told.append(what), **options)
    _report.queries_of_file(
        path, lambda *what: told.append(what), group="text", gain="linear", **options
    )
    texts = [text for text, _ in told]  # the share is of what is read ahead, which varies
    assert texts[: len(told) // 2] == texts[len(told) // 2 :]
    assert told[0] == ("Reading x.csv", 0.0)
    assert told[-1] == ("Reading x.csv: 100 rows", 1.0)
    assert len(told) > 6


def test_thresholds_of_bins_flag_what_they_count(monkeypatch):
    """Also scores that are less than a float32 from the ends of bins."""
    monkeypatch.setattr(_stream, "_ROWS", 32)
    numbers = np.arange(40, 51, dtype=np.float16) / 64 + np.float16(2**-11)
    ends = (numbers + np.nextafter(numbers, np.float16(1)).astype(float)) / 2
    scores = np.concatenate([ends, np.nextafter(ends, 0)])[None]
    table = jm.streaming.table(state_of(scores[0] > 0.7, scores), bins=BINS)
    here = (table.positives + table.negatives)[0]
    thresholds, counts = table.thresholds[0][here > 0], np.cumsum(here[here > 0])
    assert counts.tolist() == [(scores >= threshold).sum() for threshold in thresholds]
    assert len(counts) > 11


def test_a_reported_threshold_costs_what_is_reported():
    """Read from JSON, of scores that float32 cannot tell apart."""
    scores, labels = 0.5 + np.arange(32)[None] * 1e-12, np.arange(32) % 3 > np.arange(32) % 2
    settings = _report.Settings(fn_cost=3.0)
    with jax.enable_x64(True):
        found = _metrics.least_cost(jm.score_table(scores, labels), ("a",), settings)
    best = json.loads(_report.json_of(found))["a"]
    flagged = scores[0] >= best["threshold"]
    assert best["cost"] == (flagged & ~labels).sum() + 3 * (labels & ~flagged).sum()
    settings = _report.Settings(fp_cost=99.0)
    with jax.enable_x64(True):  # best is to flag nothing
        found = _metrics.least_cost(jm.score_table(-scores, labels), ("a",), settings)
    assert json.loads(_report.json_of(found))["a"]["threshold"] == "inf"


@pytest.mark.slow
def test_a_thousand_files(tmp_path):
    print(Counter(compared(seed, tmp_path) for seed in range(1000)))
