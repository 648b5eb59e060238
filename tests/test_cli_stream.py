"""The command on a file that is read in batches: values, bounds, intervals, and what it refuses."""

import gzip
from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from fast import marked

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _csv, _stream

N = 3000
ALL = ("--label", "y", "--score", "a", "--score", "b", "--n-resamples", "16", "--stream")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    y = rng.random(N) < 0.2
    scores = {name: rng.normal(size=N) + k * y for name, k in (("a", 1), ("b", 2))}
    return pd.DataFrame({"y": y.astype(int), "answer": np.where(y, "yes", "no"), **scores})


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    data.to_csv(folder / "data.csv", index=False)
    data.to_csv(folder / "data.csv.gz", index=False)
    data.to_parquet(folder / "data.parquet", row_group_size=700)
    np.savez(folder / "data.npz", **{k: data[k].to_numpy() for k in ("y", "a", "b")})
    return folder


@pytest.fixture(scope="module")
def report(folder):
    with pytest.MonkeyPatch.context() as patch:  # several batches, and several steps of each
        patch.setattr(_csv, "_BLOCK", 30_000)
        patch.setattr(_stream, "_ROWS", 256)
        return evaluated(folder / "data.csv", *ALL)


def areas_of(report):
    return {name: {"roc_auc": x["roc_auc"]} for name, x in report["models"].items()}


@pytest.mark.slow
@pytest.mark.usefixtures("area_alone")
@pytest.mark.parametrize(("n", "told"), [(256, False), (300, True)])
def test_a_note_of_sorted_rows_that_others_follow(n, told, monkeypatch, tmp_path, rng):
    """The first rows are then of one end alone, unless float16 tells the scores apart."""
    monkeypatch.setattr(_stream, "_ROWS", 256)
    near = np.sort(rng.random(n)) / 1e3 + 0.5
    frame = pd.DataFrame({"y": rng.random(n) < 0.5, "a": near, "b": np.arange(n) / 64})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = "--label", "y", "--stream", "--n-resamples", 20
    notes = evaluated(tmp_path / "rows.csv", "--score", "a", *options)["warnings"]
    assert any("scores a fall or rise" in x for x in notes) == told
    apart = evaluated(tmp_path / "rows.csv", "--score", "b", *options)["warnings"]
    assert not any("fall or rise" in x for x in apart)


def test_bounds_hold_the_exact_value_and_intervals_its_interval(data, report):
    assert (report["n_items"], report["n_positive"]) == (N, data["y"].sum())
    assert report["streamed"]
    metrics = {
        "roc_auc": jm.roc_auc,
        "partial_auc": partial(jm.partial_auc, max_fpr=0.01, scale="mcclish"),
        "average_precision": jm.average_precision,
    }
    for name in ("a", "b"):
        found = report["models"][name]
        estimates = {k: (v, metrics[k]) for k, v in found.items() if k in metrics}
        for limit, value in found["recall_at_fpr"].items():
            estimates[limit] = value, partial(jm.recall_at_fpr, max_fpr=float(limit))
        assert len(estimates) == 5
        for value, metric in estimates.values():
            with jax.enable_x64(True):
                exact = float(metric(data[name].to_numpy(np.float32), data["y"]))
            assert value["certain_low"] <= exact <= value["certain_high"]
            assert value["low"] < value["certain_low"] <= value["value"] <= value["certain_high"]
            assert value["certain_high"] < value["high"]
        interval = jm.confidence_interval(jm.roc_auc, data[name], data["y"])
        assert found["roc_auc"]["low"] == pytest.approx(float(interval.low), abs=1e-3)
        assert found["roc_auc"]["method"] == "closed form"


def test_few_positives_have_the_notes_and_the_limits_of_those_in_memory(
    data, tmp_path, monkeypatch
):
    every = _stream.classification_metrics
    precision = [x for x in every(0.01) if x.name == "average_precision"]
    monkeypatch.setattr(_stream, "classification_metrics", lambda limit: precision)
    monkeypatch.setattr(_stream, "_ROWS", 256)
    y = np.arange(N) < 6
    data.assign(y=y, a=data["a"] + y).to_csv(tmp_path / "few.csv", index=False)
    batches, whole = (
        evaluated(tmp_path / "few.csv", *ALL[:-1], way) for way in ("--stream", "--no-stream")
    )
    both = set(batches["warnings"]) & set(whole["warnings"])
    about = ("n AP = ", "there are only 6 positives: in simulations with fewer than 10")
    assert all(any(note.startswith(x) for note in both) for x in about)
    found, exact = (x["models"]["a"]["average_precision"] for x in (batches, whole))
    assert found["low"] < exact["low"] + 1e-4
    assert exact["high"] < found["high"] + 1e-4


def test_packed_files_agree(folder, report, area_alone):
    assert evaluated(folder / "data.csv.gz", *ALL)["models"] == areas_of(report)


def test_parquet_agrees_and_labels_may_be_words(folder, report, area_alone):
    options = ("--label", "answer", "--positive", "yes", *ALL[2:])
    assert evaluated(folder / "data.parquet", *options)["models"] == areas_of(report)


@pytest.mark.parametrize(
    "change",
    [
        *(marked(x, fast=False) for x in (lambda x: x + 1e4, lambda x: x * 1e9)),
        lambda x: 1 - 1e-3 / (1 + np.exp(x)),
    ],
    ids=["far from 0", "beyond float16", "near 1"],
)
def test_scores_of_any_size(change, tmp_path, area_alone):
    """Float16 would make ties of them."""
    rng = np.random.default_rng(4)
    labels = rng.random(2000) < 0.3
    scores = rng.normal(size=2000) + labels
    pd.DataFrame({"y": labels, "a": change(scores)}).to_csv(tmp_path / "x.csv", index=False)
    found = evaluated(tmp_path / "x.csv", "--label", "y", "--score", "a", "--stream")
    low, high = (found["models"]["a"]["roc_auc"][f"certain_{x}"] for x in ("low", "high"))
    assert low <= jm.roc_auc(change(scores), labels) <= high
    assert high - low < 1e-3


def test_scores_that_float32_loses_are_named(tmp_path, area_alone):
    pd.DataFrame({"y": [0, 1] * 9, "a": np.arange(18) * 1e300}).to_csv(
        tmp_path / "x.csv", index=False
    )
    result = run("evaluate", tmp_path / "x.csv", "--label", "y", "--score", "a", "--stream")
    assert "scores a are beyond the range or the precision of float32" in result.stdout
    assert "models are not compared" in result.stdout
    assert "many scores a share a bin, so that the bounds of AUC (0" in result.stdout
    whole = run("evaluate", tmp_path / "x.csv", "--label", "y", "--score", "a", "--no-stream")
    assert "float32" not in whole.stdout


def test_large_files_are_streamed_by_themselves(folder, monkeypatch, area_alone):
    """And their table has the bounds."""
    assert not _report.is_too_large(folder / "data.csv")
    monkeypatch.setattr(_stream, "memory_size", lambda: 10_000)
    assert _report.is_too_large(folder / "data.csv")
    assert not _report.is_too_large(folder / "data.npz")
    printed = run("evaluate", folder / "data.csv", *ALL[:-1]).stdout
    printed = " ".join(printed.split())
    assert "read in batches" in printed
    assert "guaranteed bounds of the exact value" in printed


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.parquet"])
def test_many_rows_are_streamed_by_themselves(folder, monkeypatch, name):
    """By their number, which is about known before a file is read."""
    for most, large in ((0.9 * N, True), (1.1 * N, False)):
        monkeypatch.setattr(_stream, "MOST_ROWS", most)
        assert _report.is_too_large(folder / name) == large
    (folder / "broken.parquet").write_bytes(b"PAR1")
    assert not _report.is_too_large(folder / "broken.parquet")


def test_interrupted_it_says_how_far_it_came(folder, monkeypatch):
    monkeypatch.setattr(_csv, "_BLOCK", 30_000)
    batches = []

    def stopped(state, *others):
        batches.append(others)
        if len(batches) == 3:
            raise KeyboardInterrupt
        return state

    monkeypatch.setattr(_stream, "_updated", stopped)
    result = run("evaluate", folder / "data.csv", *ALL)
    assert result.exit_code == 130
    assert "interrupted after" in result.output
    assert "rows of data.csv" in result.output


def test_output_writes_the_report(folder, tmp_path):
    """Whose curves are those of the bins."""
    result = run("evaluate", folder / "data.csv", *ALL, "--fp-cost", 2, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "the file was read in batches, so models are not compared" in page
    assert "in batches, into 65,536 bins of scores" in page
    assert page.count("<svg") == len(list(tmp_path.glob("*.svg"))) == 5


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (None, (*ALL, "--cluster", "a"), "--cluster cannot be used with --stream"),
        (None, ("--label", "y", "--score", "a", "--positive", "2", "--stream"), "no value '2'"),
        (None, (*ALL, "--slice", "a"), "--slice cannot be used with --stream"),
        (None, (*ALL, "--criterion", "youden"), "--criterion cannot be used with --stream"),
        (None, (*ALL, "--prevalence", "0.1"), "--prevalence cannot be used with --stream"),
        (None, (*ALL, "--min-recall", "0.1"), "--min-recall cannot be used with --stream"),
        (None, ("--label", "answer", *ALL[2:]), "say which is positive"),
        (None, ("--label", "a", *ALL[4:]), "must be binary"),
        (None, ("--label", "y", "--score", "c", "--stream"), "has no column 'c'"),
        (lambda d: d.assign(y=0), ALL, "has only one class, 0:"),
        (lambda d: d.assign(a=d["a"].where(d.index != 2999)), ALL, "score 'a' is missing"),
        (lambda d: d.assign(y=d["y"].where(d.index != 2999)), ALL, "label 'y' is missing"),
    ],
)
def test_what_is_refused(data, folder, tmp_path, change, options, words):
    file = folder / "data.csv"
    if change is not None:
        file = tmp_path / "changed.csv"
        change(data).to_csv(file, index=False)
    result = run("evaluate", file, *options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_a_truncated_file(folder, tmp_path):
    """Nothing is reported of a part; it says how many rows there were."""
    text = (folder / "data.csv").read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(text)[:-2000])
    (tmp_path / "odd.csv").write_bytes(text + b"1,2,3,4,5,6\n")
    for name in ("cut.csv.gz", "odd.csv"):
        result = run("evaluate", tmp_path / name, *ALL)
        assert result.exit_code == 2
        assert "cannot be read" in result.output
    assert "row 3,002 of the file (1,2,3,4,5,6) has 6 cells, and the header 4" in result.output


def test_an_error_says_how_many_rows_are_read(folder, monkeypatch, tmp_path):
    """Not how much of the file, of which blocks are read ahead."""
    monkeypatch.setattr(_csv, "_BLOCK", 30_000)
    text = (folder / "data.csv").read_bytes()
    (tmp_path / "odd.csv").write_bytes(text + b"1,2,3,4,5,6\n")
    words = run("evaluate", tmp_path / "odd.csv", *ALL).output.split("after row ")[1]
    assert 2000 < int(words.partition(":")[0].replace(",", "")) <= N


def test_scores_may_begin_with_whole_numbers(tmp_path, monkeypatch, area_alone):
    """In the first block of a CSV file, from which types would be guessed."""
    monkeypatch.setattr(_csv, "_BLOCK", 200)
    n = 200
    scores = np.where(np.arange(n) < 100, 1, 0.5)
    frame = pd.DataFrame({"y": np.arange(n) % 2, "a": scores, "b": scores})
    frame.astype({"a": object}).to_csv(tmp_path / "sorted.csv", index=False)
    report = evaluated(tmp_path / "sorted.csv", *ALL)
    assert report["models"]["a"]["roc_auc"]["value"] == 0.5


@pytest.mark.parametrize(("positive", "n"), [("True", 60), ("False", 140)])
def test_labels_may_be_true_and_false(tmp_path, positive, n, area_alone):
    scores = np.arange(200) / 200
    frame = pd.DataFrame({"y": np.arange(200) % 10 < 3, "a": scores, "b": scores})
    frame.to_parquet(tmp_path / "flags.parquet")
    report = evaluated(tmp_path / "flags.parquet", "--positive", positive, *ALL)
    assert report["n_positive"] == n


def test_arrays_are_not_read_in_batches(folder):
    result = run("evaluate", folder / "data.npz", *ALL)
    assert result.exit_code == 2
    assert "cannot be read in batches: leave --stream out" in " ".join(result.output.split())
