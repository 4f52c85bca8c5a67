from benchmarks.performance_page import filled
from benchmarks.processes import ROOT
from benchmarks.thesis_tables import PAGE, RESULTS, tables
from marginmf.experiments import Store


def test_the_readme_has_the_figures_that_were_measured() -> None:
    page = (ROOT / PAGE).read_text()
    found = tables(Store(ROOT / RESULTS))
    for name in found:
        assert f"<!-- begin {name} -->" in page
    assert filled(page, found) == page
