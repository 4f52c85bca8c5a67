from studies.harness import Store
from studies.harness.machine import ROOT
from studies.harness.markdown import fill_page
from studies.thesis.readme_tables import PAGE, RESULTS, tables


def test_the_readme_has_the_figures_that_were_measured() -> None:
    page = (ROOT / PAGE).read_text()
    found = tables(Store(ROOT / RESULTS))
    for name in found:
        assert f"<!-- begin {name} -->" in page
    assert fill_page(page, found) == page
