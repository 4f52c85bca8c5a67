"""``marginmf reproduce list``: which tables and figures there are, and what has been run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions
from marginmf.cli.reproduce.options import Names, PlaceOptions, named

if TYPE_CHECKING:
    from marginmf.experiments import Exhibit, Store
    from marginmf.experiments.exhibit import Scale

EXAMPLE = "marginmf reproduce list"
SCALES: "tuple[Scale, Scale]" = ("quick", "full")


@command(EXAMPLE, name="list")
def list_(
    names: Names = None,
    *,
    place: PlaceOptions,
    cells: Annotated[
        bool, typer.Option("--cells", help="List single measurements, with their keys.")
    ] = False,
    talk: ConsoleOptions,
) -> None:
    """List the tables and figures, how many cells each needs, and how many have been run."""
    from marginmf.cli.output import to_json

    store, exhibits = place.opened(), named(names)
    rows = [_cells(one, store) if cells else _exhibit(one, store) for one in exhibits]
    if talk.as_json:
        typer.echo(to_json({"folder": place.out, "exhibits": rows}))
    elif cells:
        _print_cells(rows, talk)
    else:
        _print_exhibits(rows, talk)


def _exhibit(exhibit: "Exhibit", store: "Store") -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    for scale in SCALES:
        wanted = exhibit.cells(scale)
        counts[scale] = {"cells": len(wanted), "done": sum(cell in store for cell in wanted)}
    return {
        "name": exhibit.name,
        "chapter": exhibit.chapter,
        "kind": exhibit.kind,
        "title": exhibit.title,
        **counts,
    }


def _cells(exhibit: "Exhibit", store: "Store") -> dict[str, Any]:
    wanted = {cell.key: cell for scale in SCALES for cell in exhibit.cells(scale)}
    found = [
        {
            "key": key,
            "measure": cell.measure,
            "settings": dict(cell.settings),
            "done": cell in store,
            "seconds": store.seconds(cell),
        }
        for key, cell in wanted.items()
    ]
    return {"name": exhibit.name, "cells": found}


def _print_exhibits(rows: Any, talk: ConsoleOptions) -> None:
    from rich.text import Text

    from marginmf.cli.output import new_table

    table = new_table("name", "chapter", "kind", "title", "quick", "full", numbers=2)
    for row in rows:
        counts = (_share(row[scale]) for scale in SCALES)
        words = (row["name"], str(row["chapter"]), row["kind"], row["title"])
        table.add_row(*map(Text, words), *counts)
    talk.out.print(table)
    talk.out.print("Cells that have been run, of those that each scale needs.", style="dim")


def _print_cells(rows: Any, talk: ConsoleOptions) -> None:
    from rich.text import Text

    from marginmf.cli.output import new_table
    from marginmf.experiments.report.coverage import said

    table = new_table("key", "exhibit", "seconds", "cell")
    table.columns[0].no_wrap = True
    for row in rows:
        for cell in row["cells"]:
            seconds = f"{cell['seconds']:.2f}" if cell["done"] else "not run"
            words = f"{cell['measure']}: {said(cell['settings'])}"
            table.add_row(cell["key"], Text(row["name"]), seconds, Text(words))
    talk.out.print(table)


def _share(counts: dict[str, int]) -> str:
    return f"{counts['done']:,} of {counts['cells']:,}"
