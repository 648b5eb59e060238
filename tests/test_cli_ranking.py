"""`jaxmetrics evaluate --group`: values against scikit-learn and loops, intervals against the
library, the files, every refusal."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from sklearn.metrics import ndcg_score, roc_auc_score

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _evaluation

NAMES = ("a", "b")
N_QUERIES, N_EMPTY, N_EQUAL = 60, 4, 1
FEW = ("--n-resamples", "200")
ALL = ("--group", "q", "--label", "grade", "--score", "a", "--score", "b", *FEW)
PLACES = ("--k", "10", "--k", "3", "--max-grade", "4")  # no item has the grade 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    sizes = rng.integers(2, 25, N_QUERIES)
    query = np.repeat(np.arange(N_QUERIES), sizes)
    match = rng.normal(size=len(query))
    grade = np.digitize(match + rng.normal(0, 0.3, len(query)), [0.3, 1.0, 1.6])
    for q in range(N_QUERIES):  # something relevant, but for the first
        grade[np.flatnonzero(query == q)[:2]] = (0 if q < N_EMPTY else 1), 0
    grade[query < N_EMPTY] = 0
    grade[query == N_EMPTY] = 1  # no pairs of different grade
    frame = pd.DataFrame(
        {
            "q": query,
            "grade": grade,
            "a": match + rng.normal(0, 1.5, len(query)),
            "b": match + rng.normal(0, 0.7, len(query)),
        }
    )
    return frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranking")
    names = [f"words of query {q}" for q in data["q"]]
    data = data.assign(name=names, day=pd.Timestamp("2024-01-01") + pd.to_timedelta(data["q"], "D"))
    data.to_csv(folder / "data.csv", index=False)
    data.to_parquet(folder / "data.parquet")
    np.savez(
        folder / "data.npz", **{name: data[name].to_numpy() for name in ("q", "grade", *NAMES)}
    )
    return folder


@pytest.fixture(scope="module")
def written(folder):
    """The printed result and the folder of one command that writes files."""
    output = folder / "some" / "report"
    return run("evaluate", folder / "data.csv", *ALL, *PLACES, "--output", output), output


@pytest.fixture(scope="module")
def report(written):
    return json.loads((written[1] / "metrics.json").read_text())


def of_queries(data, function):
    """The mean over queries in which it is not None, and how many these are."""
    values = [function(part) for _, part in data.groupby("q")]
    values = [value for value in values if value is not None]
    return np.mean(values), len(values)


def loops(grade, scores, k, max_grade):
    """The metrics of a query by their definitions; scores without ties."""
    grade = grade[np.argsort(-scores)]
    hit, rank = grade > 0, np.arange(1, len(grade) + 1)
    precision = np.cumsum(hit) / rank
    stop = (2.0**grade - 1) / 2**max_grade
    reached = np.cumprod(np.concatenate([[1], 1 - stop[:-1]]))
    return {
        "precision_at_k": hit[:k].sum() / k,
        "recall_at_k": hit[:k].sum() / hit.sum() if hit.any() else None,
        "average_precision_at_k": (
            (precision * hit)[:k].sum() / min(k, hit.sum()) if hit.any() else None
        ),
        "reciprocal_rank": 1 / rank[hit][0] if hit.any() else 0.0,
        "expected_reciprocal_rank": (reached * stop / rank).sum(),
    }


def pairs(grade, scores):
    """The share of ordered pairs, by a loop."""
    right = [
        np.sign(scores[i] - scores[j]) / 2 + 0.5
        for i in range(len(grade))
        for j in range(len(grade))
        if grade[i] > grade[j]
    ]
    return np.mean(right) if right else None


@pytest.mark.parametrize("gain", ["linear", pytest.param("exponential", marks=pytest.mark.slow)])
def test_ndcg_is_the_mean_of_scikit_learns(data, folder, report, tmp_path, gain):
    if gain == "exponential":
        options = (*PLACES, "--gain", gain, "--output", tmp_path)
        report = evaluated(folder / "data.csv", *ALL, *options)
    assert report["gain"] == gain
    assert report["k"] == [3, 10]
    for name in NAMES:
        assert list(report["models"][name]["ndcg_at_k"]) == ["3", "10"]
        for k, found in report["models"][name]["ndcg_at_k"].items():

            def ndcg(part, name=name, k=int(k)):
                grade = part["grade"].to_numpy()
                grade = 2**grade - 1 if gain == "exponential" else grade
                return ndcg_score([grade], [part[name]], k=k) if grade.any() else None

            value, count = of_queries(data, ndcg)
            assert found["value"] == pytest.approx(value, abs=1e-12)
            assert found["n_queries"] == count == N_QUERIES - N_EMPTY


def test_the_other_metrics_are_what_loops_find(data, report):
    assert report["highest_grade"] == 3
    assert report["max_grade"] == 4
    for name in NAMES:
        metrics = report["models"][name]
        others = loops(np.ones(1), np.ones(1), 1, 1)
        assert list(metrics) == ["ndcg_at_k", *others, "ordered_pair_accuracy"]
        for key in metrics:
            if key == "ndcg_at_k":
                continue

            def metric(part, name=name, key=key):
                grade, scores = part["grade"].to_numpy(), part[name].to_numpy()
                if key == "ordered_pair_accuracy":
                    return pairs(grade, scores)
                return loops(grade, scores, 10, 4)[key]

            value, count = of_queries(data, metric)
            found = metrics[key]["10"] if key.endswith("_at_k") else metrics[key]
            close = 1e-12
            assert found["value"] == pytest.approx(value, abs=close), key
            assert found["n_queries"] == count, key
        assert metrics["reciprocal_rank"]["n_queries"] == N_QUERIES
        assert metrics["ordered_pair_accuracy"]["n_queries"] == N_QUERIES - N_EMPTY - N_EQUAL


@pytest.fixture(scope="module")
def resampled(data):
    """What the library has of nDCG at 10."""
    with jax.enable_x64(True):
        scores, grades = data[list(NAMES)].to_numpy().T, data["grade"].to_numpy()
        # Queries by their first row, as the order decides which are drawn.
        segments = pd.factorize(data["q"])[0]
        k = tuple(range(1, 21))  # as in the report, so that what JAX compiles is shared
        values = np.asarray(jm.ndcg(scores, grades, segments=segments, k=k, empty=np.nan))
        result = jm.bootstrap_mean(
            np.moveaxis(values, 2, 1),
            key=jax.random.key(0),
            n_resamples=200,
            where=~np.isnan(values[0, :, 0]),
        )
        return jax.tree.map(lambda x: x[..., k.index(10)], result)


def test_intervals_are_of_bootstrap_mean(report, resampled):
    with jax.enable_x64(True):
        interval = resampled.interval()
    for i, name in enumerate(NAMES):
        found = report["models"][name]["ndcg_at_k"]["10"]
        assert found["method"] == "mean"
        for key in ("low", "high", "standard_error"):
            assert found[key] == pytest.approx(float(getattr(interval, key)[i]), abs=1e-9)
        assert found["low"] < found["value"] < found["high"]


def test_models_are_compared_over_queries(report, resampled):
    comparison = report["comparison"]
    assert list(comparison) == list(report["models"]["a"])
    found = comparison["ndcg_at_k"]["10"]
    assert found["best_set"] == ["b"]
    (difference,) = found["differences"]
    assert (difference["model"], difference["minus"]) == ("a", "b")
    replicates = np.asarray(resampled.replicates)
    error = np.std(replicates[:, 0] - replicates[:, 1], ddof=1)
    # A standard deviation of 200 resamples has an error of 5 %.
    assert difference["standard_error"] == pytest.approx(error, rel=0.15)
    assert difference["standard_error"] < np.hypot(*np.std(replicates, axis=0, ddof=1))
    value = float(resampled.estimate[0] - resampled.estimate[1])
    assert difference["value"] == pytest.approx(value, abs=1e-9)
    margin = value - difference["low"]
    # Student's t, and a disagreement that was not drawn.
    assert 1.96 < margin / difference["standard_error"] < 2.2
    assert difference["p_value"] < 0.01


def test_output_writes_the_files(written, report):
    result, output = written
    assert result.exit_code == 0
    assert "metrics.csv and figures (ranking) to" in " ".join(result.stdout.split())
    names = {"report.html", "ranking.png", "ranking.svg", "metrics.json", "metrics.csv"}
    assert {path.name for path in output.iterdir()} == names
    assert (output / "ranking.png").read_bytes().startswith(b"\x89PNG")
    page = (output / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert " queries (" in page[: page.index("<style>")]
    assert page.index("has the highest value") < page.index("<table")
    frame = pd.read_csv(output / "metrics.csv", dtype={"k": "Int64"})
    assert "max_fpr" not in frame
    for name in NAMES:
        for k in (3, 10):
            chosen = (frame["metric"] == "ndcg_at_k") & (frame["k"] == k)
            (row,) = frame[chosen & (frame["model"] == name) & frame["minus"].isna()].to_dict(
                "records"
            )
            for key, value in report["models"][name]["ndcg_at_k"][str(k)].items():
                assert row[key] == (value if key == "method" else pytest.approx(value))
    assert frame[frame["metric"] == "reciprocal_rank"]["k"].isna().all()
    for name in ("n_items", "n_relevant"):
        assert (frame[name] == report[name]).all()
    assert frame["n_queries"].notna().all()
    assert "ndcg_at_k,3," in (output / "metrics.csv").read_text()


def test_the_table_shows_values_and_how_many_queries_count(written, report):
    printed = written[0].stdout
    values, differences = printed.split("Difference from the best")
    assert f"{N_QUERIES} queries (q)" in values
    counts = next(line for line in values.splitlines() if line.startswith(" queries"))
    assert counts.split()[1:] == ["56", "56", "60", "56", "56", "60", "60", "55"]
    row = next(line for line in values.splitlines() if line.startswith(" b "))
    found = report["models"]["b"]["ndcg_at_k"]["3"]["value"]
    assert float(row.split()[1].rstrip("*")) == pytest.approx(found, abs=5e-4)
    assert "best +" in differences
    assert "Note: no relevant items in 4 of 60 queries" in printed


@pytest.mark.parametrize(
    ("name", "group"), [("data.npz", "q"), ("data.parquet", "name"), ("data.parquet", "day")]
)
def test_ids_may_be_of_any_type_in_any_format(folder, report, tmp_path, name, group):
    others = ALL[ALL.index("--group") + 2 :]
    found = evaluated(folder / name, *others, *PLACES, "--group", group, "--output", tmp_path)
    assert found.pop("file") == str(folder / name)
    assert found.pop("group") == group
    assert found == {key: value for key, value in report.items() if key not in ("file", "group")}


def test_clusters_of_queries_are_units(folder, data, report, tmp_path):
    """As users are: intervals and comparisons are those of the library with clusters."""
    data = data.assign(user=[f"u{q % 25}" for q in data["q"]])
    data.to_csv(tmp_path / "users.csv", index=False)
    found = evaluated(tmp_path / "users.csv", *ALL, *PLACES, "--cluster", "user")
    assert (found["cluster"], found["n_clusters"]) == ("user", 25)
    assert (report["cluster"], report["n_clusters"]) == (None, None)
    values = jm.ndcg(data[list(NAMES)], data["grade"], segments=data["q"], k=3, empty=np.nan)
    given = {"clusters": np.arange(N_QUERIES) % 25, "where": np.isfinite(values).all(axis=0)}
    interval, pair = jm.mean_interval(values, **given), jm.compare_means(values, **given)
    for i, name in enumerate(NAMES):
        at_3 = found["models"][name]["ndcg_at_k"]["3"]
        by_query = report["models"][name]["ndcg_at_k"]["3"]
        assert at_3["value"] == pytest.approx(by_query["value"], abs=1e-12)
        assert at_3["low"] == pytest.approx(float(interval.low[i]), abs=1e-6)
    (difference,) = found["comparison"]["ndcg_at_k"]["3"]["differences"]
    assert difference["p_value"] == pytest.approx(float(pair.p_value[0, 1]), rel=1e-4)
    printed = run("evaluate", tmp_path / "users.csv", *ALL, "--cluster", "user").stdout
    assert "which take 25 clusters (user) as units" in " ".join(printed.split())


def test_binary_labels_and_ten_places_by_default(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("q,y,a\n1,1,3\n1,0,2\n2,0,1\n2,1,0\n")
    arguments = (file, "--group", "q", "--label", "y", "--score", "a", *FEW)
    report = evaluated(*arguments, "--max-grade", 1)
    assert report["k"] == [10]
    assert report["gain"] == "linear"
    assert report["comparison"] is None
    assert any("only 2 queries" in note for note in report["warnings"])
    metrics = report["models"]["a"]
    assert metrics["ordered_pair_accuracy"]["value"] == roc_auc_score([0, 1], [0, 1]) / 2
    assert metrics["expected_reciprocal_rank"]["value"] == pytest.approx((1 + 1 / 2) / 2 / 2)


def test_notes_name_all_models_and_are_told_once(tmp_path):
    rows = [f"q{i},{grade},{a},{b}" for i in range(6) for grade, a, b in ((1, 1, 1), (0, 1, 1))]
    (tmp_path / "d.csv").write_text("\n".join(["q,y,a,b", *rows]))
    options = ("--label", "y", "--score", "a", "--score", "b", "--group", "q")
    notes = evaluated(tmp_path / "d.csv", *options)["warnings"]
    assert sum("rests on 6 queries" in note and "add queries" in note for note in notes) == 1
    assert any(note.startswith("a and b have equal scores") for note in notes)


def test_ties_of_other_grades_are_noted(folder, data, report, tmp_path):
    """A constant in a file sorted by grade would have the best average precision."""
    assert not any("equal scores" in note for note in report["warnings"])
    frame = data.sort_values(["q", "grade"], ascending=[True, False]).assign(a=0.0)
    frame.to_csv(tmp_path / "sorted.csv", index=False)
    notes = evaluated(tmp_path / "sorted.csv", *ALL)["warnings"]
    mixed = frame.groupby("q")["grade"].nunique().gt(1).sum()
    (note,) = (x for x in notes if "equal scores" in x)
    assert f"a has equal scores for items of different grades in {mixed} of {N_QUERIES}" in note


def test_what_no_query_has_is_null_and_a_dash(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("q,y,a\n1,1,3\n1,1,2\n2,1,1\n2,1,0\n")  # no pairs of different grade
    arguments = (file, "--group", "q", "--label", "y", "--score", "a", *FEW)
    found = evaluated(*arguments)["models"]["a"]["ordered_pair_accuracy"]
    assert found["value"] is found["low"] is None
    assert found["n_queries"] == 0
    result = run("evaluate", *arguments)
    assert result.exit_code == 0
    assert " - " in result.stdout
    assert "nan" not in result.stdout


def test_without_the_highest_grade_of_the_scale_there_is_no_expected_reciprocal_rank(tmp_path):
    """The highest grade of the file would make values of two files differ."""
    file = tmp_path / "x.csv"
    file.write_text("q,y,a\n1,900,3\n1,0,2\n2,30,1\n2,0,0\n")
    report = evaluated(file, "--group", "q", "--label", "y", "--score", "a", *FEW)
    assert "expected_reciprocal_rank" not in report["models"]["a"]
    assert report["max_grade"] is None
    assert report["highest_grade"] == 900


@pytest.mark.slow
def test_many_models_are_drawn_without_bands(folder, monkeypatch):
    monkeypatch.setattr(_evaluation, "MOST_BANDS", 1)
    file, settings = (
        folder / "data.csv",
        _report.Settings(n_resamples=200, k=(*range(1, 21),)),
    )
    queries = _report.queries_of_file(file, group="q", label="grade", scores=NAMES, gain="linear")
    evaluation = _report.evaluate_queries(queries, settings, lambda *_: None, with_figures=True)
    (ax,) = evaluation.drawings[0].draw().axes
    assert len(ax.get_lines()) == 2
    assert not ax.collections
    assert any("ranking.png has no bands" in note for note in evaluation.warnings)


GOOD = ("--group", "q", "--label", "y", "--score", "a")
ROWS = "q,y,a\n1,1,2\n1,0,3\n2,1,3\n"


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (ROWS, (*GOOD, "--positive", "1"), ["--positive cannot be used", "0 for irrelevant items"]),
        (ROWS, (*GOOD, "--max-fpr", "0.01"), ["--max-fpr cannot be used", "--k 10"]),
        (ROWS, (*GOOD, "--criterion", "youden"), ["--criterion cannot be used", "no thresholds"]),
        (ROWS, (*GOOD, "--prevalence", "0.1"), ["--prevalence cannot be used", "no thresholds"]),
        (ROWS, (*GOOD, "--fp-cost", "2"), ["--fp-cost cannot be used", "no thresholds"]),
        (ROWS, (*GOOD, "--amount", "m"), ["--amount cannot be used", "as --label"]),
        (
            "q,y,a,u\n1,1,2,5\n1,0,3,6\n2,1,3,6\n",
            (*GOOD, "--cluster", "u"),
            ["'u' has several values in 1 of 2 queries of 'q'", "as --group"],
        ),
        (ROWS, (*GOOD, "--cluster", "q"), ["'q' is given twice", "--group"]),
        (ROWS, (*GOOD, "--weight", "w"), ["--weight cannot be used", "leave it out"]),
        (ROWS, (*GOOD[2:], "--k", "5"), ["--k is for rankings", "--group"]),
        (ROWS, (*GOOD[2:], "--gain", "linear"), ["--gain is for rankings", "--group"]),
        (ROWS, (*GOOD[2:], "--max-grade", "4"), ["--max-grade is for rankings", "--group"]),
        (ROWS, (*GOOD, "--max-grade", "0"), ["--max-grade must be from 1 to 50", "as in 4"]),
        ("q,y,a\n1,3,2\n2,0,3\n", (*GOOD, "--max-grade", "2"), ["grade 3, above --max-grade 2"]),
        (ROWS, (*GOOD, "--k", "0"), ["--k must be at least 1", "write 10"]),
        (ROWS, (*GOOD, "--score", "q"), ["'q' is given twice", "--group"]),
        ("y,a\n1,2\n", GOOD, ["no column 'q'"]),
        ("q,y,a\n1,1,2\n,0,3\n2,1,3\n", GOOD, ["group 'q' is missing", "1 of 3 rows"]),
        ("q,y,a\n1,1,2\n1,,3\n2,1,3\n", GOOD, ["label 'y' is missing (empty", "1 of 3 rows"]),
        ("q,y,a\n1,1,2\n1,-2,3\n2,1,3\n", GOOD, ["label 'y'", "not negative", "-2"]),
        ("q,y,a\n1,1,2\n1,good,3\n2,1,3\n", GOOD, ["label 'y' must hold numbers", "'good'"]),
        ("q,y,a\n1,1,2\n1,0,\n2,1,3\n", GOOD, ["score 'a' is missing"]),
        ("q,y,a\n7,1,2\n7,0,3\n", GOOD, ["group 'q' is 7 in all rows", "two queries"]),
        ("q,y,a\n1,0,2\n2,0,3\n", GOOD, ["label 'y' is 0 in all rows", "above 0"]),
        ("q,y,a\n1,90,2\n2,0,3\n", (*GOOD, "--gain", "exponential"), ["90", "--gain linear"]),
    ],
)
def test_every_refusal_is_a_sentence_and_exit_code_2(tmp_path, content, arguments, words):
    file = tmp_path / "x.csv"
    file.write_text(content)
    result = run("evaluate", file, *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")
    for word in words:
        assert word in result.stderr


def test_the_help_has_an_example():
    shown = run("evaluate", "--help").stdout
    assert "--group query_id --label grade" in shown.split("Examples:")[1]
