"""The command line: values against naive computation, formats against each other, every error."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn import metrics as sk

import jaxmetrics
from jaxmetrics import cli

N = 400
LIMITS = (0.01, 0.02, 0.05)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    y = rng.random(N) < 0.2
    return pd.DataFrame(
        {
            "y": y.astype(int),
            "answer": np.where(y, "yes", "no"),
            "a": rng.normal(size=N) + y,
            "b": np.round(rng.normal(size=N) + 2 * y, 1),  # with ties
            "amount": np.round(rng.gamma(2, 50, N), 2),
            "w": rng.integers(0, 4, N) / 2,
            "unused": "text",
        }
    )


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data.to_csv(folder / "data.csv", index=False)
    data.to_csv(folder / "data.csv.gz", index=False)
    data.to_parquet(folder / "data.parquet")
    np.savez(folder / "data.npz", **{k: data[k].to_numpy() for k in data if data[k].dtype != "str"})
    return folder


def run(*arguments):
    """The result of a command; an exception that is not an exit is raised."""
    return CliRunner().invoke(
        cli.commands(), [str(x) for x in arguments], prog_name="jaxmetrics", catch_exceptions=False
    )


def evaluated(file, *arguments):
    result = run("evaluate", file, "--json", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def naive_recall(y, scores, limit, weights, amounts):
    best = 0.0
    for threshold in np.unique(scores):
        flagged = scores >= threshold
        if weights[flagged & ~y].sum() / weights[~y].sum() <= limit:
            best = max(best, (weights * amounts)[flagged & y].sum() / (weights * amounts)[y].sum())
    return best


@pytest.mark.parametrize("weighted", [False, True])
def test_values_equal_scikit_learn_and_naive_loops(data, folder, weighted):
    options = ["--weight", "w"] if weighted else []
    report = evaluated(
        folder / "data.csv",
        *("--label", "y", "--score", "a", "--score", "b", "--max-fpr", 0.02),
        *("--amount", "amount", *options),
    )
    assert report["label"] == "y"
    assert report["n_items"] == N
    assert report["n_positive"] == data["y"].sum()
    assert report["max_fpr"] == 0.02
    assert report["versions"]["jaxmetrics"] == jaxmetrics.__version__
    y, amounts = data["y"].to_numpy() == 1, data["amount"].to_numpy()
    weights = data["w"].to_numpy() if weighted else np.ones(N)
    assert list(report["models"]) == ["a", "b"]
    for name, values in report["models"].items():
        scores = data[name].to_numpy()
        items = {"y_true": y, "y_score": scores, "sample_weight": weights}
        expected = {
            "roc_auc": sk.roc_auc_score(**items),
            "partial_auc": sk.roc_auc_score(**items, max_fpr=0.02),
            "average_precision": sk.average_precision_score(**items),
        }
        for key, value in expected.items():
            assert values[key] == pytest.approx(value, abs=1e-12), key
        ones = np.ones(N)
        for key, unit in (("recall_at_fpr", ones), ("amount_recall_at_fpr", amounts)):
            naive = {str(x): naive_recall(y, scores, x, weights, unit) for x in LIMITS}
            assert values[key] == pytest.approx(naive, abs=1e-12), key


@pytest.mark.parametrize("name", ["data.csv.gz", "data.parquet", "data.npz"])
def test_formats_agree_to_the_last_bit(folder, name):
    arguments = ("--label", "y", "--score", "a", "--score", "b", "--amount", "amount")
    expected = evaluated(folder / "data.csv", *arguments)
    report = evaluated(folder / name, *arguments)
    assert report.pop("file") == str(folder / name)
    del expected["file"]
    assert report == expected


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_positive_says_which_value_is_positive(data, folder, positive):
    report = evaluated(
        folder / "data.csv", "--label", "answer", "--score", "a", "--positive", positive
    )
    assert report["n_positive"] == (data["answer"] == positive).sum()
    auc = sk.roc_auc_score(data["answer"] == positive, data["a"])
    assert report["models"]["a"]["roc_auc"] == pytest.approx(auc)


@pytest.mark.parametrize(
    ("values", "options", "n_positive"),
    [
        ("true false true", (), 2),
        ("1.0 0.0 0.0", (), 1),
        ("1 0 0", ("--positive", "0"), 2),
        ("1 2 2", ("--positive", "2"), 2),
        ("-1.0 1.0 1.0", ("--positive", "-1"), 1),
    ],
)
def test_labels_in_their_several_forms(tmp_path, values, options, n_positive):
    file = tmp_path / "x.csv"
    file.write_text("\n".join(["y,a", *(f"{v},{i}" for i, v in enumerate(values.split()))]))
    assert evaluated(file, "--label", "y", "--score", "a", *options)["n_positive"] == n_positive


def test_only_the_amounts_of_positives_matter(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,a,m\n1,3,30\n0,2,\n1,1,10\n")
    report = evaluated(file, "--label", "y", "--score", "a", "--amount", "m")
    assert report["models"]["a"]["amount_recall_at_fpr"] == {"0.01": 0.75, "0.05": 0.75}


def test_what_is_undefined_is_null_and_a_dash(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,a,m\n1,3,0\n0,2,1\n")
    report = evaluated(file, "--label", "y", "--score", "a", "--amount", "m")
    assert report["models"]["a"]["amount_recall_at_fpr"] == {"0.01": None, "0.05": None}
    result = run("evaluate", file, "--label", "y", "--score", "a", "--amount", "m")
    assert result.exit_code == 0
    assert " - " in result.stdout


def test_the_table_shows_every_value_and_marks_the_best(folder):
    arguments = ("--label", "y", "--score", "a", "--score", "b", "--amount", "amount")
    report = evaluated(folder / "data.csv", *arguments)
    result = run("evaluate", folder / "data.csv", *arguments)
    assert result.exit_code == 0
    assert f"{N} items, {report['n_positive']} positive" in result.stdout
    rows = [
        line.split() for line in result.stdout.splitlines() if line.split()[:1] in (["a"], ["b"])
    ]
    for (_, *cells), values in zip(rows, report["models"].values(), strict=True):
        assert [float(cell.rstrip("*")) for cell in cells] == pytest.approx(
            [
                values["roc_auc"],
                values["partial_auc"],
                *values["recall_at_fpr"].values(),
                values["average_precision"],
                *values["amount_recall_at_fpr"].values(),
            ],
            abs=5e-5,
        )
    assert rows[1][1].endswith("*")
    assert not rows[0][1].endswith("*")


def test_one_model_is_not_marked_and_its_name_is_taken_literally(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,[bold]a[/x]\n1,3\n0,2\n")
    result = run("evaluate", file, "--label", "y", "--score", "[bold]a[/x]")
    assert result.exit_code == 0
    assert "[bold]a[/x]" in result.stdout
    assert "*" not in result.stdout


def test_output_writes_the_files(folder, tmp_path):
    output = tmp_path / "some" / "folder"
    arguments = ("--label", "y", "--score", "a", "--score", "b", "--weight", "w")
    result = run("evaluate", folder / "data.csv", *arguments, "--output", output)
    assert result.exit_code == 0
    assert str(output) in result.stdout
    assert (output / "roc.png").read_bytes().startswith(b"\x89PNG")
    report = evaluated(folder / "data.csv", *arguments)
    assert json.loads((output / "metrics.json").read_text()) == report
    frame = pd.read_csv(output / "metrics.csv", index_col="model")
    assert list(frame.index) == ["a", "b"]
    assert frame.loc["b", "roc_auc"] == pytest.approx(report["models"]["b"]["roc_auc"])
    assert frame.loc["a", "recall_at_fpr_0.05"] == report["models"]["a"]["recall_at_fpr"]["0.05"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "report"
    return run("demo", "--output", output, "--json"), output


def test_demo_compares_three_classifiers(demo):
    result, output = demo
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert str(output) in result.stderr
    assert len(report["models"]) == 3
    assert report["n_items"] == 899
    assert report["n_positive"] == 87
    for values in report["models"].values():
        assert 0.9 < values["roc_auc"] <= 1
        assert 0.7 < values["partial_auc"] < values["roc_auc"]
        assert 0.5 < values["recall_at_fpr"]["0.01"] <= values["recall_at_fpr"]["0.05"] <= 1
        assert 0.7 < values["average_precision"] < 1
    assert {path.name for path in output.iterdir()} == {"roc.png", "metrics.json", "metrics.csv"}
    assert json.loads((output / "metrics.json").read_text()) == report


GOOD = ("--label", "y", "--score", "a")


@pytest.mark.parametrize(
    ("name", "content", "arguments", "words"),
    [
        ("absent.csv", None, GOOD, ["no file", "absent.csv"]),
        ("x.xlsx", "y,a", GOOD, ["no known format", ".parquet"]),
        ("x.csv", "", GOOD, ["empty"]),
        ("x.csv", "\n\n", GOOD, ["empty"]),
        ("x.npz", "", GOOD, ["empty"]),
        ("x.csv", "y,a\n", GOOD, ["no rows"]),
        ("x.csv", "y,a\n1,2\n0,1,5\n", GOOD, ["cannot be read", "Expected 2 columns"]),
        ("x.csv", b"\x80\xff\n\x00", GOOD, ["cannot be read"]),
        ("x.csv.gz", "not gzip", GOOD, ["cannot be read"]),
        ("x.parquet", "not parquet", GOOD, ["cannot be read"]),
        ("x.npz", "not an archive", GOOD, ["cannot be read", "savez"]),
        ("x.npz", {"y": [0, 1], "a": [1.0]}, GOOD, ["y [2], a [1]", "one length"]),
        ("x.npz", {"y": [[0, 1]], "a": [[1, 2]]}, GOOD, ["y [1, 2]", "one-dimensional"]),
        ("x.npz", {"y": [0, 1], "a": [1j, 2]}, GOOD, ["score 'a'", "numbers"]),
        ("x.csv", "y,a\nis not,2\nis,3\n", GOOD, ["--positive 'is not'"]),
        ("x.csv", "y,score\n1,2\n", ("--label", "y", "--score", "scor"), ["'scor'", "'score'"]),
        ("x.csv", "y,a\n1,2\n", ("--label", "label", "--score", "a"), ["'label'", "are y, a"]),
        ("x.csv", "y,a\n1,2\n", (*GOOD, "--amount", "m"), ["no column 'm'"]),
        ("x.csv", "y,a\n1,2\n2,3\n3,4\n", GOOD, ["binary", "3 distinct values", "1, 2, 3"]),
        ("x.csv", "y,a\nyes,2\nno,3\n", GOOD, ["no and yes", "--positive yes"]),
        (
            "x.csv",
            "y,a\nyes,2\nno,3\n",
            (*GOOD, "--positive", "si"),
            ["no value 'si'", "no or yes"],
        ),
        ("x.csv", "y,a\n1,2\n1,3\n", GOOD, ["only one class"]),
        ("x.csv", "y,a\n1,2\n,3\n0,1\n", GOOD, ["label 'y'", "missing", "1 of 3 rows"]),
        ("x.csv", "y,a\n1,2\n0,\n0,NaN\n", GOOD, ["score 'a'", "NaN", "2 of 3 rows", "drop"]),
        ("x.csv", "y,a\n1,2\n0,high\n", GOOD, ["score 'a'", "numbers", "'high'"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,-1\n", (*GOOD, "--weight", "w"), ["weight 'w'", "negative"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,inf\n", (*GOOD, "--weight", "w"), ["weight 'w'", "finite"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,0\n", (*GOOD, "--weight", "w"), ["negatives are all 0"]),
        ("x.csv", "y,a,m\n1,2,-1\n0,1,1\n", (*GOOD, "--amount", "m"), ["amount 'm'", "negative"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "5"), ["got 5", "0.01 for 1 per cent"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "0"), ["above 0", "fractions"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "nan"), ["got nan"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--score", "a"), ["'a'", "twice"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--score", "y"), ["'y'", "twice"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--output", __file__), ["cannot write", "--output"]),
        ("x.csv", "y,a\n1,2\n0,1\n", ("--label", "y"), ["--score"]),
    ],
)
def test_every_error_is_a_sentence_and_exit_code_2(tmp_path, name, content, arguments, words):
    file = tmp_path / name
    if isinstance(content, dict):
        np.savez(file, **content)
    elif content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("evaluate", file, *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    for word in words:
        assert word in last
    if "--score" in arguments:  # what click itself refuses comes with the usage
        assert result.stderr.count("\n") == 1


def test_demo_checks_before_it_trains(tmp_path):
    result = run("demo", "--max-fpr", "5", "--output", tmp_path / "report")
    assert result.exit_code == 2
    assert "0.01 for 1 per cent" in result.stderr
    assert not (tmp_path / "report").exists()


def test_version_and_help():
    assert jaxmetrics.__version__ in run("--version").stdout
    for command in ("demo", "evaluate"):
        assert f"jaxmetrics {command} " in run(command, "--help").stdout.split("Example")[1]


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_the_extra_one_sentence():
    result = python(
        "import sys; sys.modules['click'] = None; import jaxmetrics.cli; jaxmetrics.cli.main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "pip install 'jaxmetrics[report]'" in result.stderr


def test_importing_the_library_does_not_import_the_extra():
    result = python(
        "import sys, jaxmetrics, jaxmetrics.cli, jaxmetrics.plots; "
        "print([x for x in jaxmetrics.cli.EXTRA if x in sys.modules])"
    )
    assert result.stdout == "[]\n", result.stderr
