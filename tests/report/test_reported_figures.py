"""The figures of a report: the numbers that they draw, and in print."""

import re

import numpy as np
from reports import FIGURES, NAMES, evaluation_of

import jaxmetrics as jm
from jaxmetrics import _report
from jaxmetrics._report import _cells, _figures
from jaxmetrics._report import _page as pages
from jaxmetrics._report._evaluation import Measure


def test_limits_of_precision_by_hand():
    """From the FPR at which a limit of the TPR crosses the recall, or the point beyond."""
    fpr, low, high = np.array([[0.1, 0.5, 1.0], [0.2, 0.5, 1.0], [0.6, 0.9, 1.0]])
    band = jm.RocBand(fpr, low[None], low[None], high[None], low[None], high[None], 0.95)
    found = [x[0] for x in _figures.precision_limits(band, np.array([0.5]))]
    at = [list(np.round(_figures.RECALLS, 9)).index(x) for x in (0.3, 0.5, 0.7)]
    np.testing.assert_allclose(found[0][at], [0.3 / 0.8, 0.5 / 1.5, 0.7 / 1.7])
    np.testing.assert_allclose(found[1][at], [1, 1, 0.7 / 0.8])


def test_limits_of_precision_are_around_scikit_learns(data):
    from sklearn.metrics import precision_recall_curve

    scores, labels = data["a"].to_numpy(), data["y"].to_numpy()
    precision, recall, _ = precision_recall_curve(labels, scores)
    band = jm.roc_band(scores[None], labels, fpr=_figures.fpr_grid(0.1))
    low, high = (x[0] for x in _figures.precision_limits(band, labels.mean(keepdims=True)))
    at = [np.flatnonzero(recall >= limit - 1e-9)[-1] for limit in _figures.RECALLS]
    assert (low <= precision[at] + 1e-6).all()
    assert (precision[at] <= high + 1e-6).all()
    assert np.mean(high - low) < 0.4


def test_limits_of_precision_of_rare_positives_are_near_on_both_sides_of_the_window(rng):
    """Where the next FPR of a band is twice as high, so was the ratio of the limits."""
    labels = rng.random(20_000) < 0.02
    scores = rng.normal(size=20_000) + 2 * labels
    band = jm.roc_band(scores[None], labels, fpr=_figures.fpr_grid(0.01))
    low, high = (x[0] for x in _figures.precision_limits(band, labels.mean(keepdims=True)))
    assert (high / low)[_figures.RECALLS > 0.3].max() < 2.2


def test_figures_write_the_numbers_of_the_tables(in_memory):
    """With the same digits, zeros and minus signs."""
    evaluation = in_memory._evaluation
    by_name = {x.name: x for x in evaluation.measures}
    drawn = {x.name: x for x in evaluation.drawings}
    with pages.page_colours():
        whole, window = drawn["roc"].draw().axes
        (recall,) = drawn["precision_recall"].draw().axes
        figure = drawn["intervals"].draw()
        figure.axes[0].set_xlim(-1, 1)
        assert "-0.5" in {x.get_text() for x in figure.axes[0].get_xticklabels()}
    pairs = ((whole, "roc_auc"), (window, "partial_auc"), (recall, "average_precision"))
    for ax, name in pairs:
        cells = _cells.value_cells(by_name[name])
        legend = [x.get_text() for x in ax.get_legend().get_texts()]
        for text, cell in zip(legend, cells, strict=False):
            assert text.endswith(f" {cell.value} [{', '.join(cell.interval)}]")
        assert "95 % pointwise band" in legend


def test_figures_in_print(data, drawings, tmp_path):
    """Grey, with files in PDF that have their fonts within, which a later report removes."""
    settings = _report.Settings(style="print", fn_cost=7)
    evaluation = evaluation_of("xy", -1, 1)._replace(drawings=drawings[:0])
    labels = data["y"].to_numpy()
    table = jm.score_table(data[list(NAMES)].to_numpy().T, labels)
    one = np.full(2, 0.5)
    interval = jm.Interval(one, one - 0.1, one + 0.1, one, "wald", 0.95)
    measures = [Measure(x, x, interval) for x in ("roc_auc", "partial_auc", "average_precision")]
    found = _figures.drawings_of(table, NAMES, settings, measures)
    evaluation = evaluation._replace(drawings=found)
    _report.save(settings, evaluation, tmp_path, lambda *x: None)
    names = [x.name for x in found]
    assert names == [x for x in FIGURES if x != "slices"]
    for name in names:
        pdf = (tmp_path / f"{name}.pdf").read_bytes()
        assert b"/FontFile2" in pdf
        assert b"/Type3" not in pdf
        colours = set(re.findall("#([0-9a-f]{6})", (tmp_path / f"{name}.svg").read_text()))
        assert {x for x in colours if not x[:2] == x[2:4] == x[4:]} == set(), name
    page = (tmp_path / "report.html").read_text()
    assert "prefers-color-scheme" not in page
    assert "PNG, SVG and PDF files" in page
    fewer = evaluation._replace(drawings=found[:1])
    _report.save(settings._replace(style="colour"), fewer, tmp_path, lambda *x: None)
    assert not list(tmp_path.glob("*.pdf"))
