"""The page: HTML that is well formed, accessible, and needs nothing from anywhere."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from marginmf.experiments.blocks import Details, Entry, Figure, Table, Text, Verdict
from marginmf.experiments.report import Report
from marginmf.experiments.report.html_blocks import html_of
from marginmf.experiments.report.pictures import drawn

EMPTY = {"meta", "link", "br"}


class Page(HTMLParser):
    """Every element with its attributes; an error where one is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    return Page(report.page.read_text())


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    links = [found["href"] for found in page.all("a") + page.all("use")]
    assert links
    assert all(link[1:] in ids for link in links)
    styles = " ".join(str(value) for _, found in page.elements for value in found.values())
    assert all(name in ids for name in re.findall(r"url\(#([^)]+)\)", styles))


def test_nothing_is_fetched_and_nothing_runs(page: Page) -> None:
    assert not {"script", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.elements}
    found = [attributes for _, attributes in page.elements]
    sources = [one[name] for one in found for name in ("src", "href") if name in one]
    assert all(source.startswith(("#", "data:")) for source in sources)
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
    assert "@import" not in files("marginmf.experiments.report").joinpath("style.css").read_text()


def test_everything_is_escaped(page: Page) -> None:
    assert "Names are <i>escaped</i>: a|b & c_d *e* [f](g) <script>alert(1)</script>" in page.text
    assert "the data <b>are</b> not there | today" in page.text
    assert not {"i", "b"} & {tag for tag, _ in page.elements}


def test_headings_go_down_one_step_at_a_time(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(second - first <= 1 for first, second in pairwise(levels))


def test_pictures_and_boxes_that_scroll_have_names(page: Page) -> None:
    pictures = page.all("svg")
    assert pictures[0]["aria-label"] == "Four curves fall."
    assert all(found["role"] == "img" for found in pictures)
    boxes = [found for found in page.all("div") if found.get("class") == "scroll"]
    assert all(found["aria-label"] and found["tabindex"] == "0" for found in boxes)
    assert page.all("html")[0]["lang"] == "en"


def test_the_overview_leads_to_every_section(page: Page, report: Report) -> None:
    links = [found["href"] for found in page.all("a")]
    for section in report.sections:
        assert links.count(f"#{section.name}") == 2  # from the overview and from the contents
        assert f"marginmf reproduce run {section.name}" in page.text or not section.cells
    for heading in ("Chapter 3: Hierarchical matrix factorisation", "Chapter 6:"):
        assert heading in page.text


@pytest.mark.parametrize(
    ("block", "written"),
    [
        (Text("a `b<c>` d"), "<p>a <code>b&lt;c&gt;</code> d</p>"),
        (Verdict("within noise", "`so`"), '<span class="pill within-noise">within noise</span>'),
        (Details("more", [Text("x")]), "<details><summary>more</summary>\n<p>x</p>\n</details>"),
        (Table(("a", "b"), [("x", "1")]), '<th scope="row"><div class="words">x</div></th>'),
        (Table(("a", "b"), [("x", Entry("1", best=True))]), "<strong>1</strong></td>"),
        (Table(("a", "b"), [("x", Entry("1", mark="*"))]), '<td class="number">1<sup>*</sup></td>'),
        (Table(("a", "b"), [("x", Entry("1", faint=True))]), '<td class="number faint">1</td>'),
        (Table(("a", "b"), [("x", "y")], words=2), '<td><div class="words">y</div></td>'),
        (Table(tuple("abcd"), [("x", "y", "1", "2")], words=2), 'style="--letters: 1"'),
        (
            Table(("a", "b"), [("x", "y"), ("x", "z")], words=2),
            '<tr><th scope="row" class="faint"><div class="words">x</div></th>',
        ),
        (Table(("a",), [], "c", notes=("n",)), '<p class="note">n</p>'),
        (Table(("a",), [], 'c "d"'), 'aria-label="c &quot;d&quot;"'),
        (Figure(lambda: 1 / 0, "c"), "could not be drawn. ZeroDivisionError: division by zero</p>"),
    ],
)
def test_every_kind_of_block(block, written: str) -> None:
    found = html_of(drawn([block], "name"))
    Page(found)
    assert written in found


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_their_ground(scheme: int) -> None:
    style = files("marginmf.experiments.report").joinpath("style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[scheme]))
    grounds = ("paper", "raised", "stripe")
    pairs = [(ink, ground) for ink in ("ink", "soft", "link") for ground in grounds]
    pairs += [(name, f"{name}-paper") for name in ("good", "near", "bad", "part", "none")]
    for ink, ground in pairs:
        light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
