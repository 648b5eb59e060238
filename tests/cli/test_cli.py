"""The command line: values against naive computation, intervals against the library."""

import jax
import numpy as np
import pytest
from command import evaluated, run
from evaluations import ALL, NAMES, N, estimates, values_of
from sklearn import metrics as sk

import jaxmetrics as jm
from jaxmetrics import _report

LIMITS = (0.01, 0.02, 0.05)
CLUSTERED = (*ALL, "--weight", "w")


def naive_recall(y, scores, limit, weights, amounts):
    best = 0.0
    for threshold in np.unique(scores):
        flagged = scores >= threshold
        if weights[flagged & ~y].sum() / weights[~y].sum() <= limit:
            best = max(best, (weights * amounts)[flagged & y].sum() / (weights * amounts)[y].sum())
    return best


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
    by_weight = report["positive_by_weight"]
    assert by_weight == (pytest.approx(weights[y].sum() / weights.sum()) if weighted else None)
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


def test_amounts_that_are_all_0_are_refused(folder, data):
    """Recall by amount would be a column of dashes, and an empty panel."""
    result = run("evaluate", folder / "data.csv", *ALL[:-1], "nothing")
    words = "no positive has an amount above 0: pass other amounts, or leave --amount out"
    assert result.stderr.splitlines()[-1] == f"Error: {words}"
    with pytest.raises(ValueError, match="or leave amounts out"):
        jm.report(data["a"], data["y"], amounts=data["nothing"])


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
