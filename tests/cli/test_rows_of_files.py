"""Rows with quotes and newlines, encodings, and files that both readers refuse."""

import gzip
import re
import time

import numpy as np
import pandas as pd
import pytest
from read_files import ROWS, file_of, refusal, with_text

from jaxmetrics import _report
from jaxmetrics._report import _csv


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (with_text(50, '"open'), "a quote in line 52 is not closed"),
        (with_text(99, '"open'), "a quote in line 101 is not closed"),
        ([*with_text(20, '"x')[:50], '0,5,"y', *ROWS[51:]], "a quote in line 22 is not closed, or"),
        ([*with_text(20, '"x')[:50], '0,5,y"', *ROWS[51:]], "in line 22 closes in line 52"),
        (with_text(50, "x,y"), "row 52 of the file (0,5.0,x,y) has 4 cells, and the header 3"),
        ([*ROWS, "1,2"], "row 102 of the file (1,2) has 2 cells, and the header 3"),
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
        ("y,a", ["1,2", " ,1", "0,1", "NAN,1"], {}, "like) in 2 of 4 rows"),
        ("y,a", ["1,12%", "0,3%"], {}, "convert, such as 12% as 0.12, or drop 2 of 2"),
        ('{"y":1,"a":2}', ['{"y":0,"a":3}'], {}, "has lines of JSON: convert it"),
        ("y,a", ["NA,2", "B,1"], {"positive": "NA"}, "if it is the name of a class"),
        ("y,a", ["1,2", "1, ", "0,NAN"], {}, "like) in 2 of 3 rows"),
        ("y,a", ["1,2", "1,NA", "0,DK"], {}, "'a' must hold numbers but has 'DK': convert or drop"),
        ("y,a", ["1,DE", "1,NA", "0,DK"], {}, "must hold numbers but has 'DE': pass a column of"),
        (
            "y,a",
            ["0,2", "1,1", "2,1"],
            {},
            "0, 1, 2: pass a column that has two, or also write --gr",
        ),
        (
            "y,a",
            ["cat,2", "dog,1", "cow,1"],
            {"positive": "cat"},
            "'dog': pass a column that has two, such as 1 in the rows of one class",
        ),
        (
            "y,a,b",
            ["1,2,1"],
            {"scores": ["a,b"]},
            "no column 'a,b': write the option once for each",
        ),
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
        ("y,a", ["yes ,2", "no,1"], {"positive": "y"}, "--positive, 'no' or 'yes'"),
        ("y,a", ["1,2", "0,1"], {"positive": "True"}, "0 or 1, and write 0 and 1 also in files"),
        ("y,a", ["1,2", "0,1", "True,1"], {"positive": "1"}, "in several ways, 0, 1, True: write"),
        ("y,a", ["yes ,2", "no,1"], {}, "has the values 'no' and 'yes': say which"),
        ("y,a", ["yes ,2", "no,1", "so,1"], {}, "distinct values, 'no', 'so', 'yes': pass"),
        ("y,a", ["yes ,2"], {"positive": "yes"}, "only one class, 'yes': pass"),
        ("y,a", ["1,2", "y,a", "0,1"], {}, "label 'y' has its own name among its values"),
        ("y,a", ["y,2", "1,a", "y,1"], {"positive": "y"}, "score 'a' has its own name among its"),
    ],
)
def test_both_readers_refuse(tmp_path, header, rows, options, words):
    sentence = refusal(file_of(tmp_path, rows, header), **options)
    assert words in sentence
    assert len(sentence) < 300


def test_an_error_quotes_little_of_a_row(tmp_path):
    """Whole, if it is short."""
    rows = ["1,.3,x", "0,.2,x", "1,2," + "secret " * 40 + ",9"]
    sentence = refusal(file_of(tmp_path, rows))
    (quote,) = re.findall(r"row 4 of the file \((.*)\) has 4 cells", sentence)
    assert len(quote) <= 80
    assert quote.startswith("1,2,secret secret")
    assert refusal(file_of(tmp_path, ["1,.3,x", "0,.2,x,y"])).endswith(
        "row 3 of the file (0,.2,x,y) has 4 cells, and the header 3: write a cell for each column, "
        "and quotes around texts that hold the separator"
    )


def test_after_an_error_arrow_has_let_go_of_the_file(tmp_path, monkeypatch):
    """One of its threads that still needs Python as the process ends would abort it."""
    opened = []

    class Lines(_csv._Lines):
        def __init__(self, source):
            super().__init__(source)
            opened.append(self)

    monkeypatch.setattr(_csv, "_Lines", Lines)
    numbers = np.random.default_rng(0).random(20_000)
    packed = gzip.compress("\n".join(["y,a", *(f"0,{x}" for x in numbers)]).encode())
    cut = tmp_path / "x.csv.gz"
    cut.write_bytes(packed[:-1000])
    before = time.monotonic()
    for path in (cut, file_of(tmp_path, [*ROWS, "1"]), file_of(tmp_path, [], name="y.csv")):
        opened.clear()
        refusal(path)
        assert opened
        assert all(x.released.is_set() for x in opened)
    assert time.monotonic() - before < 30  # it need not be waited for


@pytest.mark.parametrize("first", ["sep=;\r", '\ufeff"sep=;"'])
def test_the_separator_of_a_first_line_of_excel(tmp_path, first):
    rows = [f'{i % 2};{i / 10};"a;\nb"' for i in range(100)]
    path = file_of(tmp_path, ["y;a;text", *rows], header=first)
    problem = _report.problem_of_file(path, label="y", scores=["a"])
    np.testing.assert_array_equal(problem.scores[0], np.arange(100) / 10)
    assert "its columns are y, a, text" in refusal(path, label="no")
    bare = [row.replace("\n", "") for row in rows]
    assert "row 103 of the file (1;2)" in refusal(file_of(tmp_path, ["y;a;t", *bare, "1;2"], first))
    path = file_of(tmp_path, ["y;a;t", *bare, '1;2;"open'], first)
    assert "a quote in line 103 is not closed" in refusal(path)


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
