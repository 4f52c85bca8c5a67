import subprocess
import sys
from pathlib import Path

import pytest

from marginmf.datasets import RatingsTable, dataset_info, dataset_names, npz


@pytest.mark.parametrize("name", dataset_names())
def test_every_entry_says_its_terms_and_its_citation(name: str) -> None:
    info = dataset_info(name)
    assert info.name == name
    assert info.terms.endswith(".")
    assert "MovieLens" in info.citation


def test_text_ids_survive_the_npz_form(tmp_path: Path) -> None:
    table = RatingsTable("t", ["ann", "bob"], [7, 8], [1, 2.5], titles={7: "Ä", 8: "B"})
    npz.write_npz(table, tmp_path / "t.npz")
    again = npz.read_npz(tmp_path / "t.npz", "t")
    assert again.pairs.tolist() == [["ann", 7], ["bob", 8]]
    assert (again.titles, again.timestamps, again.ratings.tolist()) == (
        {7: "Ä", 8: "B"},
        None,
        [1, 2.5],
    )


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, marginmf.datasets; "
        "print([m for m in ('numba', 'rich', 'sklearn', 'scipy', 'pandas') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
