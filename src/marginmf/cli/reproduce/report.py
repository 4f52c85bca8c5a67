"""``marginmf reproduce report``: a page of what was measured."""

import typer

from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions
from marginmf.cli.reproduce.options import ScaleOptions, named, scale_of

EXAMPLE = "marginmf reproduce report"
STYLES = {
    "reproduced": "green",
    "within noise": "blue",
    "not reproduced": "red",
    "not shown": "red",
    "in part": "yellow",
}


@command(EXAMPLE)
def report(place: ScaleOptions, talk: ConsoleOptions) -> None:
    """Write what was measured as a page, report.html, and as report.md with its figures.

    Shows the full version, unless only the quick one has been run. Ends with exit code 1 if
    something could not be shown.
    """
    from rich.text import Text

    from marginmf.cli.output import new_table, to_json
    from marginmf.experiments.report import write_report

    store = place.filled()
    scale = scale_of(store, place.quick)
    written = write_report(named(None), store, scale, place.out)
    if talk.as_json:
        sections = {
            one.name: {
                "outcome": one.outcome,
                "why": one.why,
                "cells": len(one.cells),
                "done": one.done,
                "seconds": one.seconds,
            }
            for one in written.sections
        }
        files = {"page": written.page, "markdown": written.markdown}
        typer.echo(to_json({**files, "scale": scale, "exhibits": sections}))
    table = new_table("name", "verdict", "cells", "why")
    for one in written.sections:
        verdict = Text(one.outcome, STYLES.get(one.outcome, ""))
        table.add_row(Text(one.name), verdict, one.count, Text(one.why.replace("`", "")))
    talk.out.print(table)
    for file in (written.page, written.markdown):
        talk.out.print(str(file), soft_wrap=True, markup=False)
    if any(one.failure for one in written.sections):
        raise typer.Exit(1)
