"""The page in a real browser, opened from the disk."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, browsing, chromium
from matplotlib.image import imread

from marginmf.experiments.report import Report

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(Path(tmp_path_factory.mktemp("profile"))) as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 820, 390])
def test_the_page_is_drawn_and_stays_inside_its_window(
    browser: Browser, report: Report, width: int, scheme: str
) -> None:
    browser.open(report.page, width, scheme=scheme)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("innerWidth") == width
    pixels = imread(BytesIO(browser.screenshot()), format="png")
    assert pixels.shape[1] == width
    assert pixels[..., :3].std() > 0.05, "the picture is blank"
    # The ground of the page, beside the words: light or dark as the reader wants it.
    assert (np.median(pixels[..., :3]) > 0.5) == (scheme == "light")


def test_nothing_is_fetched_and_nothing_complains(browser: Browser, report: Report) -> None:
    browser.open(report.page, 1280)
    requests = [one["request"]["url"] for one in browser.seen("Network.requestWillBeSent")]
    assert [url for url in requests if not url.startswith("data:")] == [report.page.as_uri()]
    assert browser.seen("Log.entryAdded") == []
    assert browser.seen("Runtime.exceptionThrown") == []
    assert browser.seen("Runtime.consoleAPICalled") == []


@pytest.mark.parametrize(("table", "n_names"), [("#nmae table", 1), ("#ranks table.two", 2)])
def test_a_wide_table_scrolls_under_the_names_of_its_rows(
    browser: Browser, report: Report, table: str, n_names: int
) -> None:
    browser.open(report.page, 390)
    box = f"document.querySelector('{table}').parentElement"
    assert browser.value(f"{box}.scrollWidth > {box}.clientWidth")
    row = f"[...{box}.querySelector('tbody tr').children]"
    places = f"{row}.map(one => one.getBoundingClientRect().left)"
    before = browser.value(places)
    browser.value(f"{box}.scrollLeft = 300")
    after = browser.value(places)
    assert after[:n_names] == pytest.approx(before[:n_names], abs=2)
    assert after[n_names] == pytest.approx(before[n_names] - 300, abs=2)


def test_pictures_stay_on_white_in_the_dark(browser: Browser, report: Report) -> None:
    browser.open(report.page, 1280, scheme="dark")
    colour = "getComputedStyle(document.querySelector('{}')).backgroundColor"
    assert browser.value(colour.format(".card")) == "rgb(255, 255, 255)"
    assert browser.value(colour.format("body")) != "rgb(255, 255, 255)"


def test_words_keep_a_readable_length(browser: Browser, report: Report) -> None:
    browser.open(report.page, 1920)
    widths = "[...document.querySelectorAll('article > p:not(.again)')].map(p => p.clientWidth)"
    assert max(browser.value(widths)) < 800
