"""Numbers that 64 bits do not hold, or hold in another order, and columns whose names meet."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from read_files import file_of, refusal

from jaxmetrics import _report


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("0,0.5,x",),  # of a batch with fractions
        ("0,1e300,x",),
    ],
)
@pytest.mark.parametrize(
    "texts",
    [
        ("9007199254740993", "9007199254740992"),
        ("18446744073709551615", "18446744073709551614"),  # beyond 63 bits
        ("9007199254740993.0", "9007199254740992.0"),
        (" -9007199254740993", "-9007199254740992"),
    ],
)
def test_whole_numbers_that_would_tie_are_refused(tmp_path, texts, more):
    rows = [f"{i % 2},{texts[i % 2]},x" for i in range(20)]
    assert "which double precision rounds: write ranks" in refusal(
        file_of(tmp_path, [*rows, *more])
    )


def test_large_numbers_that_double_precision_holds_are_taken(tmp_path):
    texts = "9007199254740994", "36893488147419103232.0", "1e300", "0.12345678901234567890", "inf"
    path = file_of(tmp_path, [f"{i % 2},{texts[i % 5]},x" for i in range(20)])
    found = _report.problem_of_file(path, label="y", scores=["a"]).scores
    assert found[0, :5].tolist() == [2.0**53 + 2, 2.0**65, 1e300, 0.12345678901234568, np.inf]


def parquet_of(tmp_path, columns):
    labels = [i % 2 for i in range(len(next(iter(columns.values()))))]
    pyarrow.parquet.write_table(pyarrow.table({"y": labels, **columns}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_decimals_that_would_tie_are_refused(tmp_path):
    path = parquet_of(tmp_path, {"a": [Decimal(10**22 + i % 2) for i in range(20)]})
    with pytest.raises(_report.InputError, match="has 10000000000000000000001, which double"):
        _report.problem_of_file(path, label="y", scores=["a"])


def test_a_name_with_a_dot_beside_a_field_of_that_name(tmp_path):
    path = parquet_of(tmp_path, {"a.b": [0.1 * i for i in range(10)], "a": [{"b": 1.0}] * 10})
    found = _report.problem_of_file(path, label="y", scores=["a.b"])
    assert found.scores[0, 3] == pytest.approx(0.3)


def test_numbers_of_another_byte_order(tmp_path):
    swapped = {"y": np.arange(60) % 2, "a": np.arange(60.0), "c": np.arange(60) // 3}
    np.savez(
        tmp_path / "x.npz", **{k: v.astype(v.dtype.newbyteorder()) for k, v in swapped.items()}
    )
    found = _report.problem_of_file(tmp_path / "x.npz", label="y", scores=["a"], cluster="c")
    assert found.labels.sum() == 30
    assert found.scores[0].tolist() == swapped["a"].tolist()


def test_flags_with_missing_cells_are_no_numbers(tmp_path):
    (tmp_path / "f").mkdir()
    (tmp_path / "f/a.csv").write_text("y,a\n0,.2\n1,.9\n")
    flags = pd.DataFrame({"y": [1, 0], "a": [True, None]})
    flags.to_parquet(tmp_path / "f/b.parquet")
    source = _report.source_of(tmp_path / "f", drops_missing=True)
    with pytest.raises(_report.InputError, match="also has true and false"):
        _report.problem_of_file(source, label="y", scores=["a"])


def test_a_partition_without_a_value_is_missing(tmp_path):
    for folder in ("c=DK", "c=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / folder).mkdir()
        file_of(tmp_path / folder, ["1,.9,x", "0,.3,x"])
    (column,) = _report.problem_of_file(tmp_path, label="y", scores=["a"], slices=["c"]).slices
    assert column.values == ("DK", "missing")
    assert np.bincount(column.codes).tolist() == [2, 2]


def test_slices_of_infinite_numbers(tmp_path):
    ends = ["inf"] * 40 + ["-inf"] * 40 + [str(i) for i in range(80)]
    path = file_of(tmp_path, [f"{i % 2},{i},{end}" for i, end in enumerate(ends)], "y,a,c")
    (column,) = _report.problem_of_file(path, label="y", scores=["a"], slices=["c"]).slices
    assert column.values == ("-inf", "0 to 23", "24 to 55", "56 to inf")
    assert np.bincount(column.codes).tolist() == [40, 24, 32, 64]


def test_an_amount_too_large_to_add_is_refused(tmp_path):
    path = file_of(tmp_path, ["1,.9,1e300", "0,.3,1"], "y,a,c")
    with pytest.raises(_report.InputError, match=r"must be at most 1e\+288 but has 1e\+300"):
        _report.problem_of_file(path, label="y", scores=["a"], amount="c")


def test_na_among_ids_that_are_numbers_is_to_be_written_empty(tmp_path):
    path = file_of(tmp_path, ["1,.5,NA", "0,.25,7", "1,.3,8"], "y,a,c")
    source = _report.source_of(path, drops_missing=True)
    with pytest.raises(_report.InputError, match="as --drop-missing does where cells are empty"):
        _report.problem_of_file(source, label="y", scores=["a"], cluster="c")
