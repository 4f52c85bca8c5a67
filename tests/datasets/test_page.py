"""The page of the datasets says what the registry says."""

import re
from pathlib import Path

from marginmf.cli.output import format_size
from marginmf.datasets import dataset_info, dataset_names


def test_the_page_lists_every_entry_as_it_is() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text()
    rows = re.findall(r"^\| `.*$", page, re.MULTILINE)
    expected = []
    for name in [*dataset_names("ratings"), *dataset_names("labels")]:
        info = dataset_info(name)
        source = "download" if info.can_be_downloaded else "by hand"
        source += f", {format_size(info.size)}" if info.size is not None else ""
        expected.append(f"| `{name}` | {info.title} | {info.facts.words()} | {source} |")
    assert rows == expected
