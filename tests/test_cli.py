"""The command line: values against naive computation, intervals against the library, formats
against each other, every error."""

import copy
import io
import json
import os
import re
import subprocess
import sys
import time

import jax
import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from rich.console import Console
from sklearn import metrics as sk

import jaxmetrics as jm
from jaxmetrics import _report, cli
from jaxmetrics._base.checks.options import CRITERIA
from jaxmetrics._base.words import decimals_of_metric, fixed
from jaxmetrics._report import _evaluation
from jaxmetrics.plots._style import STYLE_NAMES

# As many items, models, limits and resamples as the demonstration has here, so that the tests
# share what JAX compiles.
N = 899
NAMES = ("a", "b", "c")
LIMITS = (0.01, 0.02, 0.05)
FEW = ("--n-resamples", "40")
SCORES = ("--score", "a", "--score", "b", "--score", "c", "--max-fpr", "0.02", *FEW)
ALL = ("--label", "y", *SCORES, "--amount", "amount")
CLUSTERED = (*ALL, "--weight", "w")


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
            "c": np.round(rng.normal(size=N), 3) + 1.9 * y,
            "few": (np.arange(N) % 150 == 0).astype(int),
            "nothing": 0,
            "amount": np.round(rng.gamma(2, 50, N), 2),
            "w": rng.integers(0, 4, N) / 2,
            "user": rng.integers(0, 150, N),
            "unused": "text",
        }
    )


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = data.copy()
    data["name"] = [f"user {i}" for i in data["user"]]
    data["half"] = data["user"] / 2
    data["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(data["user"], "D")
    data.to_csv(folder / "data.csv", index=False)
    data.to_csv(folder / "data.csv.gz", index=False)
    data.to_parquet(folder / "data.parquet")
    np.savez(
        folder / "data.npz", **{k: data[k].to_numpy() for k in data if data[k].dtype.kind in "if"}
    )
    return folder


def naive_recall(y, scores, limit, weights, amounts):
    best = 0.0
    for threshold in np.unique(scores):
        flagged = scores >= threshold
        if weights[flagged & ~y].sum() / weights[~y].sum() <= limit:
            best = max(best, (weights * amounts)[flagged & y].sum() / (weights * amounts)[y].sum())
    return best


def values_of(metrics):
    """The estimates without their intervals."""
    if "value" in metrics:
        return metrics["value"]
    return {key: values_of(value) for key, value in metrics.items()}


def estimates(metrics):
    """Every estimate with its interval."""
    if "value" in metrics:
        return [metrics]
    return [estimate for value in metrics.values() for estimate in estimates(value)]


@pytest.fixture(scope="module")
def report(folder):
    return evaluated(folder / "data.csv", *ALL, "--seed", 3)


@pytest.fixture(scope="module")
def clustered(folder):
    return evaluated(folder / "data.csv", *CLUSTERED, "--cluster", "user")


@pytest.mark.parametrize("weighted", [False, True])
def test_values_equal_scikit_learn_and_naive_loops(data, report, clustered, weighted):
    report = clustered if weighted else report
    assert report["label"] == "y"
    assert report["n_items"] == N
    assert report["n_positive"] == data["y"].sum()
    assert report["max_fpr"] == 0.02
    assert report["versions"]["jaxmetrics"] == jm.__version__
    y, amounts = data["y"].to_numpy() == 1, data["amount"].to_numpy()
    weights = data["w"].to_numpy() if weighted else np.ones(N)
    assert tuple(report["models"]) == NAMES
    for name, metrics in report["models"].items():
        values, scores = values_of(metrics), data[name].to_numpy()
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


def test_every_estimate_has_an_interval(report):
    assert report["confidence_level"] == 0.95
    assert report["n_resamples"] == 40
    assert report["seed"] == 3
    assert report["cluster"] is report["n_clusters"] is None
    for metrics in report["models"].values():
        found = estimates(metrics)
        assert len(found) == 3 + 2 * len(LIMITS)
        for estimate in found:
            scaled = ["scale"] if estimate is metrics["partial_auc"] else []
            wanted = ["value", "low", "high", "standard_error", "method", *scaled]
            assert list(estimate) == wanted
            assert 0 <= estimate["low"] <= estimate["value"] <= estimate["high"] <= 1
            assert estimate["low"] < estimate["high"]
            assert estimate["standard_error"] >= 0
            assert estimate["method"] in ("closed form", "logit", "wilson")


def test_intervals_and_comparisons_are_the_librarys(data, report, clustered):
    scores, labels = data[list(NAMES)].to_numpy().T, data["y"].to_numpy()
    weights, clusters = data["w"].to_numpy(), data["user"].to_numpy()
    for found, options in ((report, {}), (clustered, {"weights": weights, "clusters": clusters})):
        options["key"] = jax.random.key(found["seed"])
        with jax.enable_x64(True):
            auc = jm.confidence_interval(jm.roc_auc, scores, labels, **options)
            pairs = jm.compare(jm.roc_auc, scores, labels, **options)
        for i, metrics in enumerate(found["models"].values()):
            for key in ("low", "high", "standard_error"):
                expected = float(getattr(auc, key)[i])
                assert metrics["roc_auc"][key] == pytest.approx(expected, abs=1e-12)
        comparison = found["comparison"]["roc_auc"]
        named = [(x["model"], x["minus"]) for x in comparison["differences"]]
        assert named == [("a", "b"), ("a", "c"), ("b", "c")]
        for difference, (i, j) in zip(
            comparison["differences"], [(0, 1), (0, 2), (1, 2)], strict=True
        ):
            assert difference["value"] == pytest.approx(float(pairs.difference[i, j]), abs=1e-12)
            for key in ("low", "high", "p_value", "simultaneous_low", "simultaneous_p_value"):
                assert difference[key] == pytest.approx(float(getattr(pairs, key)[i, j]), abs=1e-9)
        expected = [name for name, best in zip(NAMES, pairs.best_set, strict=True) if best]
        assert comparison["best_set"] == expected
        assert "a" not in expected
        assert comparison["equality"]["p_value"] == pytest.approx(float(pairs.chi2_p_value))


def test_the_comparison_is_by_auc_partial_auc_and_recall(report):
    comparison = report["comparison"]
    areas = ["roc_auc", "partial_auc"]
    assert list(comparison) == [*areas, "recall_at_fpr", "amount_recall_at_fpr"]
    assert list(comparison["recall_at_fpr"]) == ["0.02"]
    a, b = (values_of(report["models"][name])["recall_at_fpr"]["0.02"] for name in "ab")
    difference = comparison["recall_at_fpr"]["0.02"]["differences"][0]
    assert difference["value"] == pytest.approx(a - b, abs=1e-12)


def test_the_same_seed_gives_the_same_and_another_does_not(folder, report):
    again = evaluated(folder / "data.csv", *ALL, "--seed", 3)
    assert again == report
    other = evaluated(folder / "data.csv", *ALL)
    assert other.pop("seed") == 0
    for name in ("roc_auc", "recall_at_fpr"):  # which need no resamples
        found = [estimates(x["models"]["a"][name]) for x in (report, other)]
        assert found[0] == found[1]
    assert [values_of(x["models"]["a"]) for x in (report, other)] == [
        values_of(report["models"]["a"])
    ] * 2


def test_a_lower_level_gives_narrower_intervals(folder, report):
    lower = evaluated(folder / "data.csv", *ALL, "--seed", 3, "--confidence-level", 0.5)
    assert lower["confidence_level"] == 0.5
    pairs = zip(estimates(lower["models"]["a"]), estimates(report["models"]["a"]), strict=True)
    for narrow, wide in pairs:
        assert narrow["value"] == wide["value"]
        assert wide["low"] <= narrow["low"] <= narrow["high"] <= wide["high"]
        assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


@pytest.mark.parametrize("ids", ["name", "half", "day"])
def test_clusters_may_have_ids_of_any_type(folder, clustered, data, ids):
    report = evaluated(folder / "data.parquet", *CLUSTERED, "--cluster", ids)
    assert report["cluster"] == ids
    assert report["n_clusters"] == clustered["n_clusters"] == data["user"].nunique()
    assert report["models"] == clustered["models"]
    assert report["comparison"] == clustered["comparison"]


@pytest.mark.parametrize("name", ["data.csv.gz", "data.parquet", "data.npz"])
def test_formats_agree_to_the_last_bit(folder, report, name):
    found = evaluated(folder / name, *ALL, "--seed", 3)
    assert found.pop("file") == str(folder / name)
    assert found == {key: value for key, value in report.items() if key != "file"}


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_positive_says_which_value_is_positive(data, folder, positive):
    problem = _report.problem_of_file(
        folder / "data.csv", label="answer", scores=["a"], positive=positive
    )
    np.testing.assert_array_equal(problem.labels, data["answer"] == positive)


@pytest.mark.parametrize(
    ("values", "positive", "n_positive"),
    [
        ("true false true", None, 2),
        ("1.0 0.0 0.0", None, 1),
        ("1 0 0", "0", 2),
        ("1 2 2", "2", 2),
        ("-1.0 1.0 1.0", "-1", 1),
    ],
)
def test_labels_in_their_several_forms(tmp_path, values, positive, n_positive):
    file = tmp_path / "x.csv"
    file.write_text("\n".join(["y,a", *(f"{v},{i}" for i, v in enumerate(values.split()))]))
    problem = _report.problem_of_file(file, label="y", scores=["a"], positive=positive)
    assert problem.labels.sum() == n_positive


def test_only_the_amounts_of_positives_matter(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,a,m\n1,3,30\n0,2,\n1,1,10\n")
    problem = _report.problem_of_file(file, label="y", scores=["a"], amount="m")
    assert problem.amounts.tolist() == [30, 0, 10]


def test_what_is_undefined_is_null_and_a_dash(folder):
    arguments = (folder / "data.csv", *ALL[:-1], "nothing")
    for recall in evaluated(*arguments)["models"]["a"]["amount_recall_at_fpr"].values():
        assert recall["value"] is recall["low"] is recall["high"] is None
    result = run("evaluate", *arguments)
    assert result.exit_code == 0
    assert " - " in result.stdout
    assert "nan" not in result.stdout


@pytest.fixture(scope="module")
def perfect(data, folder):
    """The arguments for a file of perfect models and few positives."""
    scores = data[list(NAMES)] + 20 * data[["few"]].to_numpy()
    data.assign(**scores).to_csv(folder / "perfect.csv", index=False)
    return folder / "perfect.csv", "--label", "few", *SCORES


def test_notes_of_the_library_are_lines_under_the_tables(perfect, recwarn):
    notes = evaluated(*perfect)["warnings"]
    assert notes == list(dict.fromkeys(notes))
    assert any("only 6 positives" in note for note in notes)
    result = run("evaluate", *perfect)
    assert result.stderr == ""
    printed = [line for line in result.stdout.splitlines() if line.startswith("Note: ")]
    assert printed == [f"Note: {note}." for note in notes]
    assert not [warning for warning in recwarn if warning.category is UserWarning]


def test_clusters_that_are_few_in_a_class_are_noted(data, folder):
    # Two of as many clusters as before hold all positives.
    n = data["user"].nunique()
    users = np.where(data["y"], np.arange(N) % 2, 2 + np.arange(N) % (n - 2))
    data.assign(user=users).to_csv(folder / "few.csv", index=False)
    notes = evaluated(folder / "few.csv", *CLUSTERED, "--cluster", "user")["warnings"]
    assert any("only 2 clusters with positives" in note for note in notes)
    assert not any("resamples" in note for note in notes)  # there are none


def rows_of(table):
    """The lines of each model of a printed table: of values, and of intervals."""
    lines = table.splitlines()
    return {
        name: (lines[i].split()[1:], re.findall(r"\[(\S+), (\S+)\]", lines[i + 1]))
        for name in NAMES
        for i, line in enumerate(lines)
        if line.split()[:1] == [name]
    }


def test_the_tables_show_every_value_with_its_interval(folder, report):
    result = run("evaluate", folder / "data.csv", *ALL, "--seed", 3)
    assert result.exit_code == 0
    assert f"{N} items, {report['n_positive']} positive" in result.stdout
    assert "95 % confidence intervals" in result.stdout
    values, rest = result.stdout.split("By amount")
    amounts, differences = rest.split("Difference from the best")
    best = max(NAMES, key=lambda name: report["models"][name]["roc_auc"]["value"])
    for name, metrics in copy.deepcopy(report["models"]).items():
        by_amount = estimates(metrics.pop("amount_recall_at_fpr"))
        for table, expected in ((values, estimates(metrics)), (amounts, by_amount)):
            cells, limits = rows_of(table)[name]
            found = [float(cell.rstrip("*")) for cell in cells]
            assert found == pytest.approx([x["value"] for x in expected], abs=5e-4)
            for pair, x in zip(limits, expected, strict=True):
                assert [*map(float, pair)] == pytest.approx([x["low"], x["high"]], abs=5e-4)
    assert rows_of(values)[best][0][0].endswith("*")
    assert not rows_of(values)["a"][0][0].endswith("*")
    (difference,) = [
        x
        for x in report["comparison"]["roc_auc"]["differences"]
        if (x["model"], x["minus"]) == ("a", best)
    ]
    cells, limits = rows_of(differences)["a"]
    assert float(cells[0].rstrip(",")) == pytest.approx(difference["value"], abs=5e-4)
    assert cells[1:4] == ["p", "<", "0.001"]
    simultaneous = [difference["simultaneous_low"], difference["simultaneous_high"]]
    assert [*map(float, limits[0])] == pytest.approx(simultaneous, abs=5e-4)
    assert rows_of(differences)[best][0][:2] == ["best", "+"]


def test_one_model_is_not_marked_or_compared_and_its_name_is_taken_literally(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("y,[bold]a[/x]\n1,3\n0,2\n1,1\n")
    arguments = (file, "--label", "y", "--score", "[bold]a[/x]", "--max-fpr", 0.02, *FEW)
    result = run("evaluate", *arguments)
    assert result.exit_code == 0
    assert "[bold]a[/x]" in result.stdout
    assert "*" not in result.stdout
    assert "Difference" not in result.stdout
    assert evaluated(*arguments)["comparison"] is None


def test_perfect_models_have_intervals_and_cannot_be_told_apart(perfect):
    report = evaluated(*perfect)
    for estimate in estimates(report["models"]["a"]):
        assert estimate["value"] == pytest.approx(1, abs=1e-12)
        assert estimate["high"] == pytest.approx(1, abs=1e-12)
        assert 0.3 < estimate["low"] < 1
    comparison = report["comparison"]["roc_auc"]
    assert comparison["best_set"] == list(report["models"])
    difference = comparison["differences"][0]
    assert difference["simultaneous_p_value"] == 1
    assert difference["simultaneous_low"] < 0 < difference["simultaneous_high"]
    values = run("evaluate", *perfect).stdout.split("Difference")[0]
    assert rows_of(values)["a"][0][0] == "1.000*"  # as none is significantly better


def check_csv(frame, report):
    """That the table holds what the report does, a row an estimate or a difference."""
    where = {"roc_auc": None, "recall_at_fpr": "0.05"}
    for metric, limit in where.items():
        rows = frame[(frame["metric"] == metric) & frame["minus"].isna()]
        rows = rows if limit is None else rows[rows["max_fpr"] == float(limit)]
        assert list(rows["model"]) == list(report["models"])
        for _, row in rows.iterrows():
            expected = report["models"][row["model"]][metric]
            expected = expected if limit is None else expected[limit]
            for key, value in expected.items():
                assert row[key] == (value if key == "method" else pytest.approx(value))
    differences = frame[(frame["metric"] == "roc_auc") & frame["minus"].notna()]
    expected = report["comparison"]["roc_auc"]["differences"]
    for (_, row), difference in zip(differences.iterrows(), expected, strict=True):
        for key, value in difference.items():
            assert row[key] == (value if isinstance(value, str) else pytest.approx(value))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "some" / "folder"
    return run("demo", "--output", output, "--json", "--max-fpr", 0.02, *FEW), output


def test_demo_compares_three_classifiers(demo):
    result, output = demo
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert str(output) in result.stderr
    assert result.stderr.count("\n") == 1
    assert len(report["models"]) == 3
    assert report["n_items"] == 899
    assert report["n_positive"] == 87
    (warning,) = report["warnings"]  # neighbours are few, so that their shares tie
    assert re.search("limit of the FPR, 0.02, is within a tie of 7 negatives", warning)
    for values in map(values_of, report["models"].values()):
        assert 0.9 < values["roc_auc"] <= 1
        assert 0.7 < values["partial_auc"] < values["roc_auc"]
        assert 0.5 < values["recall_at_fpr"]["0.01"] <= values["recall_at_fpr"]["0.05"] <= 1
        assert 0.7 < values["average_precision"] < 1
    comparison = report["comparison"]["roc_auc"]
    assert len(comparison["differences"]) == 3
    assert comparison["best_set"] == ["random forest", "nearest neighbours"]


def test_output_writes_the_files(demo):
    result, output = demo
    report = json.loads(result.stdout)
    names = {path.name for path in output.iterdir()}
    assert {"report.html", "roc.png", "roc.svg", "metrics.json", "metrics.csv"} < names
    assert (output / "roc.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((output / "metrics.json").read_text()) == report
    check_csv(pd.read_csv(output / "metrics.csv"), report)


@pytest.mark.slow
def test_many_models_are_drawn_without_bands(folder, monkeypatch):
    problem = _report.problem_of_file(folder / "data.csv", label="y", scores=NAMES)
    monkeypatch.setattr(_evaluation, "MOST_BANDS", 2)
    settings = _report.Settings(0.02, n_resamples=40)
    evaluation = _report.evaluate_problem(problem, settings, lambda *_: None, with_figures=True)
    (roc,) = (x.draw() for x in evaluation.drawings if x.name == "roc")
    assert [len(ax.collections) for ax in roc.axes] == [0, 0]
    assert any("no bands" in note for note in evaluation.warnings)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.97722, 4, "0.9772"), (1.0, 3, "1.000"), (-0.0211, 3, "-0.021"), (-1e-9, 3, "0.000")],
)
def test_numbers_are_printed_with_the_zero_before_the_point(value, digits, text):
    assert fixed(value, digits) == text


def test_narrow_intervals_have_more_digits():
    for width, digits in ((0.3, 3), (0.004, 4), (0.0002, 5), (1e-12, 3), (np.nan, 3)):
        assert decimals_of_metric(np.array([width, 0.5])) == digits


def test_what_is_too_wide_for_a_terminal_is_several_tables():
    values = np.array([0.25, 0.5])
    interval = jm.Interval(values, values - 0.125, values + 0.125, values, "wald", 0.95)
    measures = [_evaluation.Measure("m", f"metric {i}", interval) for i in range(8)]
    evaluation = _evaluation.Evaluation(
        ("a", "b" * 60), {}, (), "the title", "", tuple(measures), (), ()
    )
    for width, n_tables in ((200, 1), (80, 3)):
        console = Console(width=width, file=io.StringIO())
        tables = _report.tables_of(evaluation, console)
        assert [table.title is not None for table in tables] == [True] + [False] * (n_tables - 1)
        assert tables[-1].caption is not None
        for table in tables:
            console.print(table)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        printed = " ".join(lines)
        assert [printed.count(f"metric {i}") for i in range(8)] == [1] * 8
        assert printed.count("[0.375, 0.625]") == 8


def test_progress_is_for_terminals_and_work_that_takes_long(monkeypatch, capsys):
    monkeypatch.setattr(cli, "PATIENCE", 0.1)
    for terminal, seconds, shown in ((True, 0.5, True), (True, 0, False), (False, 0.5, False)):
        monkeypatch.setenv("TTY_COMPATIBLE", str(int(terminal)))
        with cli._progress() as tell:
            tell("Working [/x]", 0.25)
            time.sleep(seconds)
        assert ("Working [/x]" in capsys.readouterr().err) == shown


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
        ("x.csv", b"\x80\xff\n\x00", GOOD, ["save it in UTF-8"]),
        ("x.csv.gz", "not gzip", GOOD, ["cannot be read"]),
        ("x.parquet", "not parquet", GOOD, ["cannot be read"]),
        ("x.npz", "not an archive", GOOD, ["cannot be read", "savez"]),
        ("x.npz", {"y": [0, 1], "a": [1.0]}, GOOD, ["y [2], a [1]", "one length"]),
        ("x.npz", {"y": [[0, 1]], "a": [[1, 2]]}, GOOD, ["y [1, 2]", "one-dimensional"]),
        ("x.npz", {"y": [0, 1], "a": [1j, 2]}, GOOD, ["score 'a'", "numbers"]),
        ("x.npz", {"y": [0, 1], "a": [None, 2]}, GOOD, ["column 'a'", "objects", ".astype(float)"]),
        ("x.csv", "y,a\nis not,2\nis,3\n", GOOD, ["--positive 'is not'"]),
        ("x.csv", "y,score\n1,2\n", ("--label", "y", "--score", "scor"), ["'scor'", "'score'"]),
        ("x.csv", "y,a\n1,2\n", ("--label", "label", "--score", "a"), ["'label'", "are y, a"]),
        ("x.csv", "y,a\n1,2\n", (*GOOD, "--amount", "m"), ["no column 'm'"]),
        (
            "x.csv",
            "y,a\n1,2\n2,3\n3,4\n",
            GOOD,
            ["binary", "more than 2 distinct values", "1, 2, 3"],
        ),
        ("x.csv", "y,a\nyes,2\nno,3\n", GOOD, ["'no' and 'yes'", "--positive yes"]),
        (
            "x.csv",
            "y,a\nyes,2\nno,3\n",
            (*GOOD, "--positive", "si"),
            ["no value 'si'", "'no' or 'yes'"],
        ),
        ("x.csv", "y,a\n1,2\n1,3\n", GOOD, ["only one class"]),
        ("x.csv", "y,a\n1,2\n,3\n0,1\n", GOOD, ["label 'y'", "missing", "1 of 3 rows"]),
        ("x.csv", "y,a\n1,2\n0,\n0,NaN\n", GOOD, ["score 'a'", "NaN", "2 of 3 rows", "drop"]),
        ("x.csv", "y,a\n1,2\n0,high\n", GOOD, ["score 'a'", "numbers", "'high'"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,-1\n", (*GOOD, "--weight", "w"), ["weight 'w'", "negative"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,inf\n", (*GOOD, "--weight", "w"), ["weight 'w'", "finite"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,0\n", (*GOOD, "--weight", "w"), ["negatives are all 0"]),
        ("x.csv", "y,a,m\n1,2,-1\n0,1,1\n", (*GOOD, "--amount", "m"), ["amount 'm'", "negative"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "5"), ["got 5", "0.01 for 1 %"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "0"), ["above 0", "fractions"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "nan"), ["got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "1"), ["--prevalence", "got 1", "fractions"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "0"), ["--prevalence", "got 0", "above 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "nan"), ["--prevalence", "got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--min-precision", "90"), ["--min-precision", "got 90", "0.9"]),
        ("x.csv", "y,a\n", (*GOOD, "--min-recall", "0"), ["--min-recall", "got 0", "above 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--threshold", "inf"), ["--threshold must be finite"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "95"), ["got 95", "write 0.95 for 95"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "0"), ["got 0", "write 0.95"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "nan"), ["got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--n-resamples", "0"), ["at least 1", "got 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--seed", "-1"), ["from 0 to", "got -1"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--cluster", "c"), ["no column 'c'"]),
        (
            "x.csv",
            "y,a,c\n1,2,p\n0,1,\n",
            (*GOOD, "--cluster", "c"),
            ["cluster 'c'", "missing", "1 of 2 rows"],
        ),
        ("x.csv", "y,a,c\n1,2,p\n0,1,p\n", (*GOOD, "--cluster", "c"), ["'p' in all rows", "group"]),
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
    assert "0.01 for 1 %" in result.stderr
    assert not (tmp_path / "report").exists()


def test_bad_styles_are_refused_before_any_work(tmp_path):
    for command in (("demo",), ("evaluate", "no file", "--label", "y", "--score", "a")):
        result = run(*command, "--style", "grey", "--output", tmp_path / "report")
        assert result.exit_code == 2
        last = result.stderr.splitlines()[-1]
        assert last == "Error: Invalid value for '--style': 'grey' is not one of 'colour', 'print'."
        assert not (tmp_path / "report").exists()


def test_a_criterion_that_is_not_known_is_refused():
    result = run("evaluate", "no file", *GOOD, "--criterion", "gini")
    assert result.exit_code == 2
    assert "Invalid value for '--criterion': 'gini' is not 'youden'." in result.stderr


def test_the_help_has_the_defaults_and_choices_of_the_settings():
    settings = _report.Settings()
    assert (settings.max_fpr, settings.k, settings.gain) == (cli.MAX_FPR, (cli.K,), cli.GAINS[0])
    assert (settings.fp_cost, settings.fn_cost) == (1, 1)
    assert (cli.STYLES, cli.CRITERIA) == (STYLE_NAMES, CRITERIA)


def test_version_and_help():
    assert jm.__version__ in run("--version").stdout
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
    assert "pip install 'jaxmetrics-exact[report]'" in result.stderr


@pytest.mark.parametrize("chosen", [None, pytest.param("elsewhere", marks=pytest.mark.slow)])
def test_a_process_imports_no_extra_and_keeps_programs_in_the_users_cache_folder(tmp_path, chosen):
    """Importing the library imports none; and unless JAX is told of another folder."""
    code = (
        "import sys, jaxmetrics, jaxmetrics.cli, jaxmetrics.plots; "
        "print([x for x in jaxmetrics.cli.EXTRA if x in sys.modules]); "
        "import jax, jaxmetrics._report; jaxmetrics._report.keep_programs(); "
        "print(jax.config.jax_compilation_cache_dir)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    if chosen is not None:
        environment["JAX_COMPILATION_CACHE_DIR"] = chosen
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    expected = tmp_path / "jaxmetrics" if chosen is None else chosen
    assert result.stdout.splitlines() == ["[]", str(expected)]


def test_what_is_asked_for_is_printed(tmp_path):
    """The metrics of one model in slices, thresholds at a cost, and a doubt of the direction."""
    rng = np.random.default_rng(6)
    labels = rng.random(600) < 0.4
    columns = {"y": labels, "a": labels - rng.normal(size=600), "site": rng.choice([*"pqr"], 600)}
    pd.DataFrame(columns).assign(a=-columns["a"]).to_csv(tmp_path / "x.csv", index=False)
    given = ("--label", "y", "--score", "a", *FEW, "--slice", "site", "--fn-cost", "5")
    result = run("evaluate", tmp_path / "x.csv", *given)
    assert "By site" in result.stdout
    assert "Threshold: Least cost" in result.stdout
    assert "the AUC of a is below 0.5" in result.stdout
    rules = {"min_precision": 0.3, "min_recall": 0.9, "threshold": 0.5}
    written = [x for k, v in rules.items() for x in (f"--{k.replace('_', '-')}", v)]
    found = evaluated(tmp_path / "x.csv", *given[:6], *written)["operating_points"]
    for name, value in rules.items():
        options = {"key": jax.random.key(0), "n_resamples": 40, "fp_cost": 1, "fn_cost": 1}
        with jax.enable_x64(True):  # and of one model, as in the report, whose programs it shares
            point = jm.operating_point(-columns["a"][None], labels, **options, **{name: value})
        for part in ("threshold", "recall", "fpr", "precision"):
            expected = float(getattr(point, part).estimate[0])
            assert found[name]["a"][part]["value"] == pytest.approx(expected, rel=1e-6), (
                name,
                part,
            )
    twice = run("evaluate", tmp_path / "x.csv", tmp_path / "x.csv", *given)
    assert "is given twice, and its rows would count twice" in twice.stderr


def test_an_option_that_counts_once_is_not_given_twice():
    result = run("evaluate", "no file", *GOOD, "--max-fpr", "0.01", "--max-fpr=0.05")
    assert result.exit_code == 2
    assert "--max-fpr is given 2 times: write it once" in result.stderr
