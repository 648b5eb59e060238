"""The page that --output writes: its parts, names and numbers, and the csv and JSON beside it."""

import html
import json
import re

import pandas as pd
import pytest
from reports import FIGURES, NAMES, N, page_of_many


def test_every_figure_is_a_file_in_two_formats(output):
    expected = {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}
    expected |= {"report.html", "metrics.json", "metrics.csv"}
    assert {path.name for path in output.iterdir()} == expected
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (output / f"{name}.svg").read_text()


def test_the_page_needs_nothing_else(page):
    """Nothing is loaded, not even from beside it."""
    assert page.count("<svg") == len(FIGURES)
    assert not re.search(r"<(script|link|img|iframe|object)\b", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert not re.search(r"url\((?!#)|@import", page)


def test_the_page_begins_with_the_answer(page):
    assert 0 < page.index("=b &lt;i&gt; has the highest value, ") < page.index("<table")


def test_details_are_folded(page):
    """Before them: the answer, one table, and two figures. In them: all else, each at an anchor."""
    first, *details = re.split("<details>", page)
    assert "<details" not in first
    assert (first.count("<table"), first.count("<svg")) == (1, 2)
    assert re.findall('figure id="(.*?)"', first) == ["figure-intervals", "figure-roc"]
    anchors = [re.search('<div id="(.*?)"', x)[1] for x in details]
    assert anchors == ["more", "pairs", "points", "slices", "figures", "data", "made"]
    assert re.findall('<a href="#(.*?)"', first) == ["values", *anchors]
    of_figures = re.findall('figure id="figure-(.*?)"', details[4])
    assert ["intervals", "roc", *of_figures] == [*FIGURES]


def test_of_many_models_the_page_begins_with_the_best(drawings):
    """And has all of them below, as it has the findings and notes that are too many."""
    page = page_of_many(drawings)
    first, more = page.split("<details>", 1)
    assert first.count('<th scope="row">') == 8
    assert "Of 20 models, these have the highest AUC" in first
    assert more.index('id="more"') < more.index('id="all"') < more.index('id="pairs"')
    table = more[more.index("<h3>All models</h3>") : more.index('id="pairs"')]
    assert table.count('<th scope="row">') == 20
    assert re.findall('figure id="figure-(.*?)"', first) == ["roc"]
    assert (first.count("Note: "), more.count("Note: ")) == (3, 5)


def test_names_are_taken_literally(page):
    assert "b <i>" not in page
    assert page.count("b &lt;i&gt;") > 10


def test_figures_have_names_and_ids_of_their_own(page, output):
    figures = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert len(figures) == len(FIGURES)
    assert figures[1].startswith("ROC curves. The right panel")
    assert re.findall(r"<title>(.*?)</title>", page)[1:3] == [
        "Values with their intervals",
        "ROC curves",
    ]
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 50
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', page)) <= {*ids}
    assert "<title>ROC curves</title>" in (output / "roc.svg").read_text(encoding="utf-8")


def test_spreadsheets_see_no_formula_in_a_name(output):
    models = pd.read_csv(output / "metrics.csv")["model"]
    assert {*models} == {"a", "'=b <i>"}
    assert list(json.loads((output / "metrics.json").read_text())["models"]) == [*NAMES]


def test_the_page_has_every_number_of_the_tables(page, output):
    """In the row of its model and the column of its metric."""
    report = json.loads((output / "metrics.json").read_text())
    table = page[page.index('id="values"') : page.index('id="pairs"')]
    rows = re.findall(r"<tr><th scope=.row.>(.*?)</th>(.*?)</tr>", table, re.DOTALL)
    for (name, model), (heading, row) in zip(report["models"].items(), rows, strict=True):
        assert heading == html.escape(name)
        cells = re.findall(r"<td>(?:<strong>)?([.\d]+)\*?(?:</strong>)?<small>", row)
        recalls = [model["recall_at_fpr"][limit] for limit in ("0.01", "0.05", "0.1")]
        found = [model["roc_auc"], model["partial_auc"], *recalls, model["average_precision"]]
        for cell, estimate in zip(cells, found, strict=True):
            digits = len(cell.partition(".")[2])
            assert float(cell) == pytest.approx(estimate["value"], abs=0.51 * 10**-digits)
    assert "A false positive costs 1, a false negative 7 (" in page
    assert page.count("jaxmetrics evaluate data.csv --score") == 1
    assert f"jax {report['versions']['jax']}" in page


def test_the_numbers_of_slices_are_in_the_csv(output):
    report = json.loads((output / "metrics.json").read_text())
    frame = pd.read_csv(output / "metrics.csv")
    rows = frame[(frame["slice"] == "country = north") & frame["minus"].isna()]
    assert len(rows) == 4
    for _, row in rows.iterrows():
        found = report["slices"]["country"]["north"]["models"][row["model"].lstrip("'")][
            row["metric"]
        ]
        assert row["value"] == pytest.approx(found["value"])
        assert row["simultaneous_low"] == pytest.approx(found["simultaneous_low"])


def test_every_row_of_the_csv_has_its_counts(data, output):
    frame = pd.read_csv(output / "metrics.csv")
    country = data["country"].replace("", "missing")
    of_slice = {f"country = {x}": country == x for x in country.unique()}
    assert len(frame) == len(frame.dropna(subset=["n_items", "n_positive"])) > 30
    assert len(of_slice) == frame["slice"].nunique()
    for _, row in frame.iterrows():
        labels = data["y"][of_slice.get(row["slice"], slice(None))]
        assert (row["n_items"], row["n_positive"]) == (len(labels), labels.sum())


def test_the_scale_of_a_partial_auc_is_named(output):
    """It is not the default of jm.partial_auc."""
    report = json.loads((output / "metrics.json").read_text())
    of_slice = report["slices"]["country"]["north"]["models"]["a"]
    for found in (report["models"]["a"], report["comparison"], of_slice):
        assert found["partial_auc"]["scale"] == "mcclish"
        assert "scale" not in found["roc_auc"]
    frame = pd.read_csv(output / "metrics.csv")
    partial_areas = frame["metric"] == "partial_auc"
    assert (frame["scale"][partial_areas] == "mcclish").all()
    assert frame["scale"][~partial_areas].isna().all()


def test_facts_of_the_data(data, output, page):
    report = json.loads((output / "metrics.json").read_text())
    for name in NAMES:
        counts = data[name].value_counts()
        assert report["n_tied"][name] == counts[counts > 1].sum()
    assert report["n_duplicates"] == data[["y", *NAMES]].duplicated().sum() > 0
    assert f"<dt>Rows</dt><dd>{N}</dd>" in page
