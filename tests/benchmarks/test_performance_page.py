import re

from benchmarks.performance_page import PAGE, filled
from benchmarks.processes import ROOT


def test_tables_are_put_between_their_marks() -> None:
    rest = "\ntext\n<!-- begin b -->\nkept\n<!-- end b -->"
    page = f"<!-- begin a -->\nold\n<!-- end a -->{rest}"
    new = filled(page, {"a": r"a \1 cell", "c": "nowhere"})
    assert new == f"<!-- begin a -->\n\na \\1 cell\n\n<!-- end a -->{rest}"


def test_filling_again_changes_nothing() -> None:
    once = filled("<!-- begin a --><!-- end a -->", {"a": "table"})
    assert filled(once, {"a": "table"}) == once


def test_every_mark_on_the_page_is_closed() -> None:
    page = (ROOT / PAGE).read_text()
    begun = re.findall(r"<!-- begin (.*?) -->", page)
    assert begun == re.findall(r"<!-- end (.*?) -->", page)
    assert len(begun) == len(set(begun)) > 5
