"""Files as people have them: packed, with other separators, several, in folders, from a pipe."""

import bz2
import gzip
import io

import command
import numpy as np
import pandas as pd
import pyarrow
import pytest
from click.testing import CliRunner

from jaxmetrics import _report, cli

N = 200


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    labels = rng.random(N) < 0.3
    scores = np.round(rng.normal(size=N) + labels, 4)
    return pd.DataFrame({"y": labels.astype(int), "a": scores, "country": ["DK", "DE"] * (N // 2)})


def zstandard(path, mode):
    return pyarrow.CompressedOutputStream(str(path), "zstd")


def read(given, **options):
    source = _report.source_of(given, **options)
    return _report.problem_of_file(source, label="y", scores=["a"])


def refusal(given, **options):
    with pytest.raises(_report.InputError) as error:
        read(given, **options)
    return error.value.message


@pytest.mark.parametrize("packing", ["gz", "bz2", "zst"])
def test_packed(tmp_path, table, packing):
    path = tmp_path / f"x.csv.{packing}"
    opened = {"gz": gzip.open, "bz2": bz2.open, "zst": zstandard}[packing]
    with opened(path, "wb") as file:
        file.write(table.to_csv(index=False).encode())
    found = read(path)
    np.testing.assert_array_equal(found.scores[0], table.a)
    np.testing.assert_array_equal(found.labels, table.y == 1)


@pytest.mark.parametrize(
    ("name", "written", "asked"),
    [("x.tsv", "\t", None), ("x.csv", "\t", "tab"), ("x.csv", ";", ";"), ("x.tsv", "|", "|")],
)
def test_separators(tmp_path, table, name, written, asked):
    table.to_csv(tmp_path / name, sep=written, index=False)
    np.testing.assert_array_equal(read(tmp_path / name, separator=asked).scores[0], table.a)


def test_a_separator_that_is_needed_is_named(tmp_path, table):
    table.to_csv(tmp_path / "x.csv", sep=";", index=False)
    assert refusal(tmp_path / "x.csv").endswith("write --separator ';', if all files have them")
    table.to_csv(tmp_path / "x.csv", sep="\t", index=False)
    assert "write --separator tab" in refusal(tmp_path / "x.csv")
    table.to_csv(tmp_path / "x.csv", index=False)
    assert "has commas between its columns: write --separator ','" in refusal(
        tmp_path / "x.csv", separator=";"
    )
    table.to_csv(tmp_path / "x.csv", sep=";", decimal=",", index=False)
    said = refusal(tmp_path / "x.csv", separator=";")
    assert "has a decimal comma" in said
    assert said.endswith(
        'pandas.read_csv(file, sep=";", decimal=",").to_csv("new.csv", index=False)'
    )
    assert "must be one character" in refusal(tmp_path / "x.csv", separator=";;")


def test_files_of_models_are_to_be_merged(tmp_path, table):
    table[["a"]].to_csv(tmp_path / "a.csv", index_label="id")
    table[["y"]].to_csv(tmp_path / "y.csv", index_label="id")
    both = [tmp_path / "y.csv", tmp_path / "a.csv"]
    said = refusal(both)
    assert said.startswith("y.csv has no column 'a': its columns are id, y; several files are the")
    assert said.endswith('pandas.merge(a, b, on="id", validate="1:1")')
    assert refusal(both[0]).endswith("its columns are id, y")


def test_quoted_cells_with_another_separator(tmp_path, table):
    texts = table.assign(country='say "a; b"\nc')
    texts.to_csv(tmp_path / "x.csv", sep=";", index=False)
    np.testing.assert_array_equal(read(tmp_path / "x.csv", separator=";").scores[0], table.a)


def test_several_files(tmp_path, table, monkeypatch):
    """In the order that is given; a pattern and a folder in order of their names."""
    table[:50].to_csv(tmp_path / "2.csv", index=False)
    table[50:].to_parquet(tmp_path / "1.parquet")
    found = read([tmp_path / "2.csv", tmp_path / "1.parquet"])
    np.testing.assert_array_equal(found.scores[0], table.a)
    assert found.source == "2 files (2.csv, 1.parquet)"
    other_order = pd.concat([table[50:], table[:50]]).a
    np.testing.assert_array_equal(read(tmp_path / "[12].*").scores[0], other_order)
    (tmp_path / "_SUCCESS.csv").write_text("not data")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.csv").write_text("not data")
    np.testing.assert_array_equal(read(tmp_path).scores[0], other_order)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(read("2*.csv").scores[0][:3], table.a[:3])


def test_folders_are_columns(tmp_path, table):
    """As partitioned datasets have them: of the folder, its parts, or files that a shell found.

    Where a file has the column, as some writers repeat it, that is taken.
    """
    folder, parts = tmp_path / "y=7", []
    for country, rows in table.groupby("country"):
        parts.append(folder / f"country={country}%20x")
        parts[-1].mkdir(parents=True)
        rows.drop(columns="country").to_parquet(parts[-1] / "part-0.parquet")
    for given in ([folder], parts, [x / "part-0.parquet" for x in parts]):
        found = command.evaluated(*given, "--label", "y", "--score", "a", "--slice", "country")
        assert found["n_items"] == N
        sizes = {name: x["n_items"] for name, x in found["slices"]["country"].items()}
        assert sizes == {"DE x": N // 2, "DK x": N // 2}
    table.to_parquet(parts[0] / "part-0.parquet")
    found = command.evaluated(parts[0], "--label", "y", "--score", "a", "--slice", "country")
    assert sorted(found["slices"]["country"]) == ["DE", "DK"]


def test_blanks_around_texts_are_dropped(tmp_path, table):
    """As numbers have them; a text of blanks is a missing one."""
    options = ("--label", "y", "--positive", "yes", "--score", "a", "--slice", "country")
    texts = table.assign(y=np.where(table.y == 1, "yes", "no"))
    texts.to_csv(tmp_path / "plain.csv", index=False)
    plain = command.evaluated(tmp_path / "plain.csv", *options)
    odd = np.arange(N) % 3 == 0
    for name in ("y", "country"):
        texts[name] = texts[name].where(~odd, "  " + texts[name] + " ")
    texts.to_csv(tmp_path / "odd.csv", index=False)
    texts.to_parquet(tmp_path / "odd.parquet")
    for file in ("odd.csv", "odd.parquet"):
        found = command.evaluated(tmp_path / file, *options)
        assert found["models"] == plain["models"]
        assert found["slices"] == plain["slices"]


def test_streams_of_several_files(tmp_path, table, area_alone):
    table[:50].to_csv(tmp_path / "1.csv", index=False)
    table[50:].to_csv(tmp_path / "2.tsv", sep="\t", index=False)
    table.to_csv(tmp_path / "all.csv", index=False)
    options = ("--label", "y", "--score", "a", "--stream", "--n-resamples", 20)
    parts = command.evaluated(tmp_path / "1.csv", tmp_path / "2.tsv", *options)
    whole = command.evaluated(tmp_path / "all.csv", *options)
    assert parts["models"] == whole["models"]
    assert not _report.is_too_large([tmp_path / "1.csv", tmp_path / "2.tsv"])


def test_standard_input(tmp_path, table):
    stream = io.BytesIO()
    table.to_parquet(stream)
    arguments = ["evaluate", "-", "--label", "y", "--score", "a"]
    # A header may begin as the names of formats do: PK is a common name of a key.
    keyed = table.assign(PK=table.index)[["PK", *table]]
    for data in (*(x.to_csv(index=False).encode() for x in (table, keyed)), stream.getvalue()):
        ran = CliRunner().invoke(cli.commands(), arguments, input=data)
        assert ran.exit_code == 0, ran.output
        assert f"standard input, y: {N} items" in ran.output
    ran = CliRunner().invoke(cli.commands(), arguments, input=b"")
    assert "standard input is empty" in ran.output
    assert ran.exit_code == 2


def test_missing_cells_are_dropped_and_counted(tmp_path, table, area_alone):
    holes = table.astype({"y": object})
    holes.loc[[1, 7], "a"] = np.nan
    holes.loc[[7, 9], "y"] = ""
    holes.loc[11, "country"] = None  # of a slice, where a missing cell is a value
    path = tmp_path / "x.csv"
    holes.to_csv(path, index=False)
    assert "--drop-missing" in refusal(path)
    found = read(path, drops_missing=True)
    np.testing.assert_array_equal(found.scores[0], table.a.drop([1, 7, 9]))
    assert found.notes == ("3 of 200 rows have missing cells and are left out: 'y' 2, 'a' 2",)
    options = ("--label", "y", "--score", "a", "--drop-missing", "--n-resamples", 20)
    for more in ((), ("--slice", "country"), ("--stream",)):
        result = command.run("evaluate", path, *options, *more)
        assert result.exit_code == 0, result.output
        assert "3 of 200 rows have missing cells" in " ".join(result.output.split())
    clustered = _report.problem_of_file(
        _report.source_of(path, drops_missing=True), label="y", scores=["a"], cluster="country"
    )
    assert len(clustered.labels) == N - 4
    holes.assign(a=np.nan).to_csv(path, index=False)
    assert "none is left" in refusal(path, drops_missing=True)
    holes.assign(y=np.where(table.y == 1, 1, None)).to_csv(path, index=False)
    words = refusal(path, drops_missing=True)
    assert "only one class, 1, in the rows that --drop-missing keeps" in words
    assert f"and are left out: 'y' {(table.y != 1).sum()}" in words


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npz"])
def test_missing_cells_of_each_format(tmp_path, table, name):
    """Of amounts, those of negatives do not count, and may all be missing."""
    holes = table.drop(columns="country").astype({"y": float})
    holes["paid"] = np.where(holes.y == 1, 10.0, np.nan)
    first, second = np.flatnonzero(holes.y == 1)[:2]
    holes["nothing"] = np.nan
    holes.loc[first, "paid"], holes.loc[second, "a"] = np.nan, np.nan
    path = tmp_path / name
    if path.suffix == ".csv":
        holes.to_csv(path, index=False)
    elif path.suffix == ".npz":
        np.savez(path, **{x: holes[x].to_numpy() for x in holes})
    else:
        holes.to_parquet(path)
    source = _report.source_of(path, drops_missing=True)
    found = _report.problem_of_file(source, label="y", scores=["a"], amount="paid")
    np.testing.assert_array_equal(found.scores[0], table.a.drop(second))
    paid = holes.paid.where(holes.y == 1, 0).fillna(0).drop(second)
    np.testing.assert_array_equal(found.amounts, paid)  # 0 leaves out of recall by amount alone
    n = int(holes.y.sum()) - 1
    assert found.notes == (
        "1 of 200 rows have missing cells and are left out: 'a' 1",
        f"1 of {n} positives have no amount in column 'paid': recall by amount leaves them out, "
        "and all other metrics count them",
    )
    with pytest.raises(_report.InputError, match="leave these out of recall by amount, as --drop"):
        _report.problem_of_file(path, label="y", scores=["a"], amount="nothing")
    with pytest.raises(_report.InputError, match="no positive has an amount above 0"):
        _report.problem_of_file(source, label="y", scores=["a"], amount="nothing")


def test_missing_cells_of_rankings(tmp_path, table):
    holes = table.assign(query=np.arange(N) // 5)
    holes.loc[3, "a"] = np.nan
    holes.to_csv(tmp_path / "x.csv", index=False)
    source = _report.source_of(tmp_path / "x.csv", drops_missing=True)
    found = _report.queries_of_file(source, group="query", label="y", scores=["a"], gain="linear")
    assert found.scores.shape == (1, N - 1)
    assert found.notes == ("1 of 200 rows have missing cells and are left out: 'a' 1",)


def test_what_is_not_there_is_refused(tmp_path):
    assert refusal(tmp_path / "x.csv").endswith("x.csv: check the path")
    assert refusal("new").endswith(
        "no file new: check the path, or write --score new if it is a column"
    )
    assert refusal(tmp_path / "*.csv").startswith("no file matches")
    (tmp_path / "folder").mkdir()
    assert "has no file that can be read" in refusal(tmp_path / "folder")
