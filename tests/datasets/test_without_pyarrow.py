"""Without pyarrow, text and JSON lines work as ever, and the rest says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from marginmf.datasets import iterate_pairs, read_pairs, read_ratings, write_columns

ROWS = {"user": ["a", "b"], "item": [1, 2], "rating": [3.0, 4.5]}
NEEDED = "needs pyarrow, which is not installed: pip install 'marginmf\\[io\\]'"


@pytest.fixture
def no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("no_pyarrow")
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "csv.gz"])
def test_text_is_read_and_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.{kind}"
    write_columns(path, ROWS)
    table = read_ratings(path)
    assert table.users.tolist() == ROWS["user"]
    assert table.ratings.tolist() == ROWS["rating"]
    assert read_pairs(path).tolist() == [["a", 1], ["b", 2]]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_the_rest_says_what_to_install(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"ratings.{kind}"
    write_columns(path, ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read in (read_ratings, read_pairs, lambda name: next(iterate_pairs(name))):
        with pytest.raises(ImportError, match=rf"Reading .*ratings\.{kind}, .* {NEEDED}"):
            read(path)
    before = path.read_bytes()
    with pytest.raises(ImportError, match=f"Writing (Parquet|Arrow) {NEEDED}"):
        write_columns(path, ROWS)
    assert path.read_bytes() == before


def test_it_is_not_imported_before_it_is_needed() -> None:
    code = "import marginmf.datasets, sys; print('pyarrow' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
