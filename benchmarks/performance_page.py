"""Write the figures of the last runs into docs/performance.md.

Tables stand between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what was not measured stays
as it is.  Run ``roofline``, ``scaling``, ``scaling --large`` and ``cold-start``
before.
"""

import json
import re
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import cold_start, roofline, scaling_report
from benchmarks.options import OUT

PAGE = Path("docs/performance.md")
PICTURE = Path("docs/images/scaling.svg")
#: The files that runs leave behind, and who makes tables of each.
SOURCES: dict[str, Callable[[dict[str, Any]], dict[str, str]]] = {
    "roofline": roofline.parts,
    "scaling": scaling_report.parts,
    "scaling-large": scaling_report.parts,
    "cold-start": cold_start.parts,
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--out", type=Path, default=OUT, help="folder with the JSON of the runs")


def main(args: Namespace) -> None:
    """Replace every table for which there are figures, and the picture."""
    tables = {}
    for name, parts in SOURCES.items():
        file = args.out / f"{name}.json"
        if file.is_file():
            results = json.loads(file.read_text())
            tables[f"{name}: machine"] = _machine(results["machine"])
            tables |= {f"{name}: {part}": text for part, text in parts(results).items()}
    PAGE.write_text(filled(PAGE.read_text(), tables))
    if (args.out / "scaling.svg").is_file():
        shutil.copyfile(args.out / "scaling.svg", PICTURE)


def filled(page: str, tables: dict[str, str]) -> str:
    """Return the page with its marked places filled.

    >>> filled("a <!-- begin x -->old<!-- end x --> b", {"x": "new"})
    'a <!-- begin x -->\\n\\nnew\\n\\n<!-- end x --> b'
    """
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        new = f"{begin}\n\n{table}\n\n{end}"
        page = re.sub(pattern, lambda _, new=new: new, page, flags=re.DOTALL)  # type: ignore[misc]
    return page


def _machine(machine: dict[str, Any]) -> str:
    day, load = machine["date"][:10], machine["load"][0]
    return (
        f"Measured on {day} on {machine['cores']} cores, {machine['processor']}, "
        f"Python {machine['python']}; the load of the machine was {load:.1f} at the end."
    )
