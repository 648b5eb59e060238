"""The page in a browser: its width, links, folded details and print."""

import json
import re
import shutil
import subprocess

import pytest
from reports import FIGURES, page_of_many

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
MEASURE = """<script>addEventListener("load", () => setTimeout(() => {
  const wide = [...document.querySelectorAll("body *")].filter(
    x => !x.closest(".scroll, svg") && x.getBoundingClientRect().right > innerWidth + 1);
  const figures = [...document.querySelectorAll("figure > svg")].map(x => x.clientWidth);
  document.title = JSON.stringify({wide: wide.length, figures,
    open: [...document.querySelectorAll("details")].map(x => x.open),
    details: document.querySelector("details").getBoundingClientRect().top + scrollY,
    scroll: document.documentElement.scrollWidth - innerWidth,
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.body).backgroundColor});
}, 100))</script>"""
needs_browser = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")


def _browsed(page, folder, *flags, anchor=""):
    """What the browser says of a page, and the page."""
    copy = folder / "report.html"
    copy.write_text(page, encoding="utf-8")
    common = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}")
    arguments = [BROWSER, *common, *flags, copy.as_uri() + anchor]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def _measured(page, folder, *flags, anchor=""):
    page = page.replace("</body>", MEASURE + "</body>")
    flags = ("--dump-dom", "--virtual-time-budget=1000", *flags)
    text = _browsed(page, folder, *flags, anchor=anchor)
    return json.loads(re.search(r"<title>(.*?)</title>", text)[1])


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_in_a_browser_nothing_is_wider_than_the_screen(page, tmp_path, width, scheme):
    """On a wide and on a narrow one; in the dark, ink is lighter than paper."""
    flags = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    page = page.replace("<details>", "<details open>")
    found = _measured(page, tmp_path, flags, f"--window-size={width},900")
    assert found["wide"] == 0
    assert found["scroll"] <= 0
    assert len(found["figures"]) == len(FIGURES)
    assert min(found["figures"]) > min(width, 500) * 0.6
    ink, paper = (sum(map(int, re.findall(r"\d+", found[x])[:3])) for x in ("ink", "paper"))
    assert (ink > paper) == (scheme == "dark")


@needs_browser
@pytest.mark.parametrize("kind", ["two models", "many models"])
def test_the_details_begin_within_three_screens(page, drawings, tmp_path, kind):
    if kind == "many models":
        page = page_of_many(drawings)
    found = _measured(page, tmp_path, "--window-size=1280,800")
    assert not any(found["open"])
    assert 800 < found["details"] <= 3 * 800


@needs_browser
@pytest.mark.parametrize(("anchor", "place"), [("#points", 2), ("#figure-cost", 4)])
def test_a_link_opens_the_details_around_its_anchor(page, tmp_path, anchor, place):
    found = _measured(page, tmp_path, "--window-size=1280,800", anchor=anchor)
    assert [i for i, is_open in enumerate(found["open"]) if is_open] == [place]


@needs_browser
def test_details_are_open_on_paper(page, tmp_path):
    def n_pages(page):
        _browsed(page, tmp_path, f"--print-to-pdf={tmp_path / 'report.pdf'}")
        return len(re.findall(rb"/Type /Page\b", (tmp_path / "report.pdf").read_bytes()))

    closed = re.sub("::details-content {.*?}", "", page)
    opened = page.replace("<details>", "<details open>")
    assert n_pages(closed) < n_pages(page) == n_pages(opened)
