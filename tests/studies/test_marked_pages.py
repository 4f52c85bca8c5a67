"""Tables between marks on the pages of the documentation."""

import re

from studies.harness import Store
from studies.harness.machine import ROOT
from studies.harness.markdown import fill_page
from studies.peers import label_ensemble, performance_page
from studies.thesis import readme_tables


def test_tables_are_put_between_their_marks() -> None:
    rest = "\ntext\n<!-- begin b -->\nkept\n<!-- end b -->"
    page = f"<!-- begin a -->\nold\n<!-- end a -->{rest}"
    new = fill_page(page, {"a": r"a \1 cell", "c": "nowhere"})
    assert new == f"<!-- begin a -->\n\na \\1 cell\n\n<!-- end a -->{rest}"


def test_filling_again_changes_nothing() -> None:
    once = fill_page("<!-- begin a --><!-- end a -->", {"a": "table"})
    assert fill_page(once, {"a": "table"}) == once


def test_every_mark_on_the_page_is_closed() -> None:
    page = (ROOT / performance_page.PAGE).read_text()
    begun = re.findall(r"<!-- begin (.*?) -->", page)
    assert begun == re.findall(r"<!-- end (.*?) -->", page)
    assert len(begun) == len(set(begun)) > 5


def test_pages_have_the_figures_of_the_label_ensemble_that_were_measured() -> None:
    pages = [(ROOT / page).read_text() for page in label_ensemble.PAGES]
    found = label_ensemble.tables(Store(ROOT / readme_tables.RESULTS))
    for name in found:
        assert "".join(pages).count(f"<!-- begin {name} -->") == 1
    for page in pages:
        assert fill_page(page, found) == page


def test_the_readme_has_the_figures_that_were_measured() -> None:
    page = (ROOT / readme_tables.PAGE).read_text()
    found = readme_tables.tables(Store(ROOT / readme_tables.RESULTS))
    for name in found:
        assert f"<!-- begin {name} -->" in page
    assert fill_page(page, found) == page
