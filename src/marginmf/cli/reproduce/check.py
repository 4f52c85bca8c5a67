"""``marginmf reproduce check``: run one measurement again and compare."""

from typing import Annotated, Any

import typer

from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions
from marginmf.cli.reproduce.options import PlaceOptions

EXAMPLE = "marginmf reproduce check 3624"


@command(EXAMPLE)
def check(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A cell's key, or so much of it that is unique.")
    ],
    *,
    place: PlaceOptions,
    talk: ConsoleOptions,
) -> None:
    """Run one cell again, and show what was stored and what is found now side by side.

    Ends with exit code 1 if they differ; times may.
    """
    from rich.text import Text

    from marginmf.cli.output import new_table, to_json
    from marginmf.experiments.checking import compared, stored_cell
    from marginmf.experiments.report.coverage import said
    from marginmf.experiments.running import find

    store = place.filled()
    cell = stored_cell(store, key)
    words = f"{cell.key}: {cell.measure}, {said(cell.settings)}"
    with talk.notes.status(Text(words)):
        finding = find(cell)
    if finding.values is None:
        raise ValueError(f"The cell {cell.key} could not be run: {finding.failure}")
    values = compared(store.values(cell) or {}, finding.values)
    agree = all(one.agrees for one in values)
    if talk.as_json:
        facts = {"key": cell.key, "measure": cell.measure, "settings": cell.settings}
        rows = {
            one.name: {"stored": one.stored, "found": one.found, "agrees": one.agrees}
            for one in values
        }
        typer.echo(to_json({**facts, "agree": agree, "values": rows}))
    table = new_table("value", "stored", "now", "")
    for one in values:
        judged = "a time" if one.is_time else "agrees" if one.agrees else "differs"
        style = "" if one.agrees else "bold red"
        table.add_row(one.name, _short(one.stored), _short(one.found), Text(judged, style))
    talk.out.print(words, soft_wrap=True, markup=False)
    talk.out.print(table)
    talk.out.print("They agree." if agree else "They differ.")
    if not agree:
        raise typer.Exit(1)


def _short(value: Any) -> str:
    """Write a value in a few letters.

    >>> _short(0.123456789), _short([1, 2, 3]), _short(None)
    ('0.12345679', '3 values, the first 1', 'none')
    """
    if isinstance(value, list) and value:
        return f"{len(value):,} values, the first {_short(value[0])}"
    if isinstance(value, float):
        return f"{value:.8g}"
    return "none" if value is None or value in ([], {}) else str(value)
