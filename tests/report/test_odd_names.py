"""Names that are long, odd or in other scripts, in tables, headings and figures."""

import re
import warnings
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from reports import FIGURES, ODD, evaluation_of, page_of, printed_of

from jaxmetrics._report import _findings, _fonts
from jaxmetrics._report import _page as pages


def test_control_characters_reach_no_terminal_and_no_page():
    evaluation = evaluation_of(ODD, -1, 1)
    for text in (printed_of(evaluation), page_of(evaluation)):
        assert r"esc\x1b[31m\x07" in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)


def test_findings_and_headings_shorten_names():
    evaluation = evaluation_of(ODD, -1, 1, estimate=np.arange(7.0))
    assert len(_findings.findings_of(evaluation)[0].answer) < 300
    page = page_of(evaluation)
    assert page.count("L" * 150 + "R" * 150) == 1
    assert "L" * 30 + "…" + "R" * 29 in page


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_odd_names(drawings, name, tmp_path):
    """Nothing is outside of the figure, no text over another, and Matplotlib has no warning."""
    drawing = next(x for x in drawings if x.name == name)
    with pages.page_colours(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = drawing.draw()
        figure.savefig(tmp_path / "x.svg", metadata={"Title": drawing.title})
        figure.draw_without_rendering()
        texts = figure.findobj(Text)
    ElementTree.parse(tmp_path / "x.svg")
    drawn, whole = figure.get_tightbbox(), figure.bbox_inches
    assert min(drawn.x0, drawn.y0) > -0.02
    assert drawn.x1 < whole.x1 + 0.02
    assert drawn.y1 < whole.y1 + 0.02
    for ax in figure.axes:
        labels = [x.get_window_extent() for x in ax.get_yticklabels()]
        assert all(b.y1 <= a.y0 or a.y1 <= b.y0 for a, b in pairwise(labels))
    assert not any(text.get_parse_math() for text in texts)
    shown = " ".join(text.get_text() for text in texts)
    assert ("13 other models" if name in ("roc", "precision_recall") else "") in shown
    assert ("Not shown: 13 models" if name in ("scores", "cost", "slices") else "") in shown
    if name != "intervals":
        assert "Of 20 models, the 7 with the highest AUC are" in drawing.about


def test_names_that_no_font_has_are_numbered(drawings):
    texts = [text.get_text() for text in drawings[0].draw().findobj(Text)]
    assert {"model no. 3", "model no. 4: rocket", "$x_1$", "_a <b>", r"esc\x1b[31m\x07"} <= {*texts}
    assert "model no. 3 is 中文模型; model no. 4: rocket is 🚀 rocket." in drawings[0].about
    assert "value no. 3 is 中文模型" in drawings[-1].about
    assert drawings[-1].title == r"By country\x1b"


def test_fonts_that_systems_have_serve_what_matplotlibs_own_lacks(monkeypatch):
    monkeypatch.setattr(_fonts, "FALLBACKS", ("No such font", "STIXGeneral"))
    with pages.page_colours(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _fonts.families()[-1] == "STIXGeneral"
        names, about = _fonts.drawn_names("model no.", ["a ᶊ", "中"])
        figure = Figure()
        figure.text(0, 0, names[0])
        figure.draw_without_rendering()
    assert names == ["a ᶊ", "model no. 2"]
    assert about.endswith(": model no. 2 is 中.")
