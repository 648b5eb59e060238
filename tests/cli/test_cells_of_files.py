"""Cells that are missing, ids, flags or numbers of several forms."""

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from command import evaluated
from read_files import file_of, refusal, with_text

from jaxmetrics import _report
from jaxmetrics._report import _columns, _csv


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
    for cell, words in (('"67,900"', "separators of thousands"), ('"67,9"', "as by pandas")):
        assert words in refusal(file_of(tmp_path, with_text(3, f"x\n1,{cell},x")))


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


def test_bytes_that_are_no_text_are_ids(tmp_path):
    """As of 16 raw bytes."""
    ids = [bytes([0xFE, *15 * [i % 7]]) for i in range(70)]
    columns = {"y": np.arange(70) % 2, "s": np.arange(70) % 11, "id": pyarrow.array(ids)}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "ids.parquet")
    column = pd.read_parquet(tmp_path / "ids.parquet")["id"]
    found = _columns.ids_of("cluster", "id", column, "")
    assert found.tolist() == [i % 7 for i in range(70)]
