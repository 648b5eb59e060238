"""Generated files: what is read in memory, what is read in batches, and what pandas reads."""

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
from command import evaluated

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _columns, _csv, _files, _metrics, _settings, _stream

BINS = jm.streaming.float16_bins()
SETTINGS, TELL = _report.Settings(), _settings.untold

# Reasons to refuse what pandas fills, cuts or takes for one cell.
STRICTER = (
    r"Expected \d+ columns|a quote in line|UTF-16|between its columns|double precision rounds"
)


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


ROWS = [f"{i % 2},{i / 10},t{i}" for i in range(100)]


def file_of(folder, rows, header="y,a,text", name="x.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes("".join(f"{line}\n" for line in (header, *rows)).encode(encoding))
    return path


def refusal(path, label="y", positive=None, scores=("a",)):
    """The sentence that refuses a file in memory, which is that in batches."""
    options = {"label": label, "scores": scores, "positive": positive}
    sentences = []
    for work, *more in ((_report.problem_of_file,), (_report.evaluate_stream, SETTINGS, TELL)):
        with pytest.raises(_report.InputError) as caught:
            work(path, *more, **options)
        sentences.append(caught.value.message)
    assert sentences[0] == sentences[1]
    return sentences[0]


def with_text(row, text):
    return [*ROWS[:row], f"{row % 2},{row / 10},{text}", *ROWS[row + 1 :]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (with_text(50, '"open'), "a quote in line 52 is not closed"),
        (with_text(99, '"open'), "a quote in line 101 is not closed"),
        ([*with_text(20, '"x')[:50], '0,5,"y', *ROWS[51:]], "a quote in line 22 is not closed, or"),
        ([*with_text(20, '"x')[:50], '0,5,y"', *ROWS[51:]], "in line 22 closes in line 52"),
        (with_text(50, "x,y"), "Row #52: Expected 3 columns, got 4"),
        ([*ROWS, "1,2"], "Row #102: Expected 3 columns, got 2"),
    ],
)
def test_no_row_is_lost_to_a_quote(tmp_path, rows, words):
    assert words in refusal(file_of(tmp_path, rows))


def test_a_quote_may_not_hold_the_end_of_a_row(tmp_path):
    path = file_of(tmp_path, ['"x,1,2', 'y",0,1', "z,1,0", "z,0,3"], "text,y,a")
    assert "a quote in line 2 closes in line 3" in refusal(path)


def test_texts_may_hold_newlines(tmp_path):
    """Wherever a block ends; also where a line of the text looks like cells."""
    texts = ['"dear\nsir"', '"I, you\nand, they"', '"1,2\n3"', '"""quoted""\nline"', '"a\r\nb"']
    path = file_of(tmp_path, [f"{i % 2},{i / 10},{texts[i % 5]}" for i in range(100)])
    for block in (100, 137, 1 << 22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv, "_BLOCK", block)
            problem = _report.problem_of_file(path, label="y", scores=["a"])
        np.testing.assert_array_equal(problem.scores[0], np.arange(100) / 10)


@pytest.mark.parametrize(
    ("header", "rows", "options", "words"),
    [
        ("y,a,t", ["yes,1,x", ",2,x", "no,3,x"], {"positive": "yes"}, "label 'y' is missing"),
        ("y,a,t", ["yes,1,x", "NA,2,x", "no,3,x"], {"positive": "yes"}, "in 1 of 3 rows"),
        ("y,a", ["1,2", " ,1", "0,1", "NAN,1"], {}, "label 'y' is missing (NaN) in 2 of 4 rows"),
        ("y,a", ["1,2", "1, ", "0,NAN"], {}, "score 'a' is missing (NaN) in 2 of 3 rows"),
        ("y,a", ["1,2", "1,NA", "0,DK"], {}, "'a' must hold numbers but has 'DK': convert or drop"),
        ("y,a", ["yes,2", "NA,1", "no,1", "so,1"], {}, "distinct values, 'no', 'so', 'yes': pass"),
        ("y,a,a", ["1,1,2", "0,2,1"], {}, "has 2 columns 'a'"),
        ("y,a,y", ["1,1,2", "0,2,1"], {}, "has 2 columns 'y'"),
        ("y;a", ["1;1", "0;2"], {}, "has semicolons between its columns"),
        ("y\ta", ["1\t1", "0\t2"], {}, "has tabs between its columns"),
        ("y a", ["1 1", "0 2"], {}, "has spaces between its columns: write --separator ' ' if"),
        ("e\u0301,e\u0301,y", ["1,1,1"], {"scores": ["\u00e9"]}, "has 2 columns 'é'"),
        ("y,a", [], {}, "has columns but no rows"),
        ("y,a", ["1,True", "0,0.5"], {}, "must hold numbers but has 'True'"),
        ("y,a", ["1," + "x" * 999, "0,0.5"], {}, "xxx...xxx"),
        ("y,a", ["1,0x10", "0,0.5"], {}, "'0x10'"),
        ("y,a", ["1,2", "1.0,0.5"], {}, "only one class, 1"),
        ("y,a", ["yes ,2", "no,1"], {"positive": "yes"}, "--positive, 'no' or 'yes '"),
        ("y,a", ["1,2", "0,1"], {"positive": "True"}, "0 or 1, and write 0 and 1 also in files"),
        ("y,a", ["1,2", "0,1", "True,1"], {"positive": "1"}, "in several ways, 0, 1, True: write"),
        ("y,a", ["yes ,2", "no,1"], {}, "has the values 'no' and 'yes ': say which"),
        ("y,a", ["yes ,2", "no,1", "so,1"], {}, "distinct values, 'no', 'so', 'yes ': pass"),
        ("y,a", ["yes ,2"], {"positive": "yes"}, "only one class, 'yes ': pass"),
    ],
)
def test_both_readers_refuse(tmp_path, header, rows, options, words):
    sentence = refusal(file_of(tmp_path, rows, header), **options)
    assert words in sentence
    assert len(sentence) < 300


def test_only_an_empty_cell_of_texts_is_missing(tmp_path):
    """NA is also a country; among numbers, labels and scores it is missing."""
    texts = ["NA", "null", "nan", "None", "n/a", "", '""', "DE"]
    ages = ["1", "2", "NA", "1", "3", "nan", "", "3"]
    cells = enumerate(zip(texts, ages, strict=True))
    rows = [f"{i % 2},{i / 10},{text},{age}" for i, (text, age) in cells]
    path = file_of(tmp_path, rows, "y,a,country,age")
    for block in (40, 1 << 22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv, "_BLOCK", block)
            problem = _report.problem_of_file(
                path, label="y", scores=["a"], slices=["country", "age"]
            )
        country, age = problem.slices
        assert country.values == ("DE", "NA", "None", "n/a", "nan", "null", "missing")
        assert np.bincount(country.codes).tolist() == [1, 1, 1, 1, 1, 1, 2]
        assert age.values == ("1", "2", "3", "missing")
        assert np.bincount(age.codes).tolist() == [2, 1, 2, 3]


def test_ids_may_be_called_na(tmp_path):
    """A query or a cluster of that name is one; among ids that are numbers it is missing."""
    options = {"label": "y", "scores": ["a"], "group": "q", "gain": "linear"}
    path = file_of(tmp_path, ["1,.1,NA", "0,.2,NA", "1,.3,None", "0,.4,x"], "y,a,q")
    assert _report.queries_of_file(path, **options).segments.tolist() == [0, 0, 1, 2]
    for cell in ("", "NA"):
        path = file_of(tmp_path, ["1,.1,1", f"0,.2,{cell}", "1,.3,2"], "y,a,q")
        with pytest.raises(_report.InputError, match="group 'q' is missing"):
            _report.queries_of_file(path, **options)


IDS = {  # texts of two ids in turn, and whether they are two
    "of 20 digits": ("12345678901234567890", "12345678901234567900", True),
    "versions": ("1.10", "1.1", True),
    "with zeros": ("007", "7", True),
    "beside missing cells": ("7.0", "7", False),
}


@pytest.mark.parametrize("name", IDS)
def test_texts_that_are_one_number_are_other_ids(tmp_path, name):
    *ids, differ = IDS[name]
    rows = [f"{i % 2},{i / 10},{ids[i // 2 % 2]}{'' if i < 80 else '1'}" for i in range(100)]
    path = file_of(tmp_path, rows, "y,a,id")
    problem = _report.problem_of_file(path, label="y", scores=["a"], slices=["id"], cluster="id")
    n = 4 if differ else 3
    assert len(problem.slices[0].values) == n
    assert len(np.unique(problem.clusters)) == n
    assert set(ids) <= {*problem.slices[0].values} or not differ


def test_many_numbers_of_several_forms_are_numbers(tmp_path):
    rows = [f"{i % 2},{i / 10},{i / 2:.{1 + i % 3}f}" for i in range(100)]
    rows += [f"{i % 2},{i / 10},{i / 2:.4f}" for i in range(100)]
    path = file_of(tmp_path, rows, "y,a,age")
    (column,) = _report.problem_of_file(path, label="y", scores=["a"], slices=["age"]).slices
    assert len(column.values) == 5


def test_few_numbers_of_many_forms_and_months_of_two_are_numbers(tmp_path):
    sizes = [f"{i % 15}.5{'0' * (i // 15 % 3)}" for i in range(90)]
    months = [f"{'0' * (i % 2)}{1 + i // 12}" for i in range(90)]
    rows = [f"{i % 2},{i / 10},{sizes[i]},{months[i]}" for i in range(90)]
    path = file_of(tmp_path, rows, "y,a,size,month")
    given = {"label": "y", "scores": ["a"], "slices": ["size", "month"]}
    size, month = _report.problem_of_file(path, **given).slices
    assert len(size.values) == 15
    assert month.values == tuple("12345678")


def test_whole_numbers_of_parquet_stay_so_beside_missing_ones(tmp_path):
    ids = pd.array(1765432109876543210 + np.arange(100) // 2, "Int64")
    ids[7] = pd.NA
    frame = pd.DataFrame({"y": np.arange(100) % 2, "a": np.arange(100.0), "id": ids})
    frame["store"] = pd.array(np.where(frame["id"].isna(), None, np.arange(100) % 3), "Int64")
    frame.to_parquet(tmp_path / "x.parquet")
    given = tmp_path / "x.parquet", "--label", "y", "--score", "a", "--slice", "store"
    found = evaluated(*given, "--cluster", "id", "--drop-missing")
    assert found["n_clusters"] == 50
    assert [*found["slices"]["store"]] == ["0", "1", "2"]
    assert [*evaluated(*given)["slices"]["store"]] == ["0", "1", "2", "missing"]


def test_separators_of_thousands_are_no_decimal_commas(tmp_path):
    for cell, words in (('"67,900"', "separators of thousands"), ('"67,9"', "has a decimal comma")):
        assert words in refusal(file_of(tmp_path, with_text(3, f"x\n1,{cell},x")))


def test_an_error_quotes_little_of_a_row(tmp_path):
    """Whole, if it is short."""
    rows = ["1,.3,x", "0,.2,x", "1,2," + "secret " * 40 + ",9"]
    sentence = refusal(file_of(tmp_path, rows))
    (quote,) = re.findall(r"Row #4: Expected 3 columns, got 4: (.*)", sentence)
    assert len(quote) <= 80
    assert quote.startswith("1,2,secret secret")
    assert refusal(file_of(tmp_path, ["1,.3,x", "0,.2,x,y"])).endswith("got 4: 0,.2,x,y")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_accents_may_be_characters_of_their_own(tmp_path, name):
    """As macOS writes them; where a file has both forms, each is what it says."""
    one, two = "sc\u00f6re", "sco\u0308re"
    frame = pd.DataFrame({"y": [1, 0], two: [0.1, 0.2]})
    for both in (False, True):
        frame = frame.assign(**{one: [0.3, 0.4]}) if both else frame
        frame.to_csv(tmp_path / name, index=False) if name == "x.csv" else frame.to_parquet(
            tmp_path / name
        )
        problem = _report.problem_of_file(tmp_path / name, label="y", scores=[one])
        np.testing.assert_array_equal(problem.scores[0], [0.3, 0.4] if both else [0.1, 0.2])
        assert problem.names == (one,)


def test_a_header_without_an_end_of_line_has_no_rows(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("y,a,t")
    assert "has columns but no rows" in refusal(path)


@pytest.mark.parametrize(
    ("text", "encoding", "words"),
    [
        ("y,a\n1,2\n0,3\n", "utf-16-le", "is encoded in UTF-16: save it in UTF-8"),
        ("y\ta\n1\t2\n0\t3\n", "utf-16-be", "is encoded in UTF-16: save it in UTF-8"),
        ("y,a,é\n1,2,x\n", "latin-1", "is not encoded in UTF-8, in its header: save it in UTF-8"),
        ("y,a\n1,2\né,3\n", "latin-1", "is not encoded in UTF-8, in row #3: save it in UTF-8"),
    ],
)
def test_other_encodings_are_named(tmp_path, text, encoding, words):
    path = tmp_path / "scores.csv"
    path.write_bytes(text.encode(encoding))
    assert words in refusal(path)


def test_files_that_are_none(tmp_path):
    assert "has no file that can be read" in refusal(tmp_path)
    path = file_of(tmp_path, ROWS, encoding="utf-16")
    assert "is encoded in UTF-16: save it in UTF-8" in refusal(path)


def test_flags_and_numbers_of_different_batches_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_BLOCK", 90)  # ten lines, of which one is the header
    path = file_of(tmp_path, [f"{i % 2},{str(i > 50)[:4]:>4},x" for i in range(100)])
    assert "has 'Fals'" in refusal(path)
    path = file_of(tmp_path, [f"{i % 2},{'True' if i < 50 else 'TRUE'},x" for i in range(100)])
    assert _report.problem_of_file(path, label="y", scores=["a"]).scores.min() == 1
    path = file_of(tmp_path, [f"{i % 2},{'True' if i < 49 else '0.25'},x" for i in range(100)])
    assert "but also has true and false" in refusal(path)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npz"])
def test_texts_for_missing_cells_are_missing(tmp_path, name):
    frame = pd.DataFrame({"y": ["0", "1", "None"] * 20, "a": [str(i) for i in range(60)]})
    frame.loc[58, "a"] = "nan"
    write = {"x.csv": frame.to_csv, "x.parquet": frame.to_parquet}
    arrays = {key: column.to_numpy(str) for key, column in frame.items()}
    write.get(name, lambda path: np.savez(path, **arrays))(tmp_path / name)
    source = _report.source_of(tmp_path / name, drops_missing=True)
    assert len(_report.problem_of_file(source, label="y", scores=["a"]).labels) == 39


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


def test_bytes_that_are_no_text_are_ids(tmp_path):
    """As of 16 raw bytes."""
    ids = [bytes([0xFE, *15 * [i % 7]]) for i in range(70)]
    columns = {"y": np.arange(70) % 2, "s": np.arange(70) % 11, "id": pyarrow.array(ids)}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "ids.parquet")
    column = pd.read_parquet(tmp_path / "ids.parquet")["id"]
    found = _columns.ids_of("cluster", "id", column, "")
    assert found.tolist() == [i % 7 for i in range(70)]
