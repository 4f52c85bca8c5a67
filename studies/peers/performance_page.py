"""Write the figures of the last runs into docs/performance.md.

Tables stand between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what was not measured stays
as it is.  Run ``roofline``, ``scaling``, ``scaling --large`` and ``cold-start`` before.
"""

import json
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.harness.commands import OUT
from studies.harness.markdown import fill_page
from studies.peers import cold_start, roofline, scaling

PAGE = Path("docs/performance.md")
PICTURE = Path("docs/images/scaling.svg")
#: The files that runs leave behind, and the functions that make tables of each.
SOURCES: dict[str, Callable[[dict[str, Any]], dict[str, str]]] = {
    "roofline": roofline.parts,
    "scaling": scaling.parts,
    "scaling-large": scaling.parts,
    "cold-start": cold_start.parts,
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=OUT, help="folder with the JSON of the runs")


def main(args: Namespace) -> None:
    tables = {}
    for name, parts in SOURCES.items():
        file = args.out / f"{name}.json"
        if file.is_file():
            results = json.loads(file.read_text())
            machine = results["machine"]
            tables[f"{name}: machine"] = (
                f"Measured on {machine['date'][:10]} on {machine['cores']} cores, "
                f"{machine['processor']}, Python {machine['python']}; the load of the machine was "
                f"{machine['load'][0]:.1f} at the end."
            )
            tables |= {f"{name}: {part}": text for part, text in parts(results).items()}
    PAGE.write_text(fill_page(PAGE.read_text(), tables))
    if (args.out / "scaling.svg").is_file():
        shutil.copyfile(args.out / "scaling.svg", PICTURE)
