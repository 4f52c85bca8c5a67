"""The typer application of the commands that measure the thesis's tables and figures again."""

import typer

from marginmf.cli.commands import SETTINGS, add_commands
from marginmf.cli.reproduce import check, listing, report, running

app = typer.Typer(
    help="Measure the tables and figures of the thesis again: list, run, report and check.",
    invoke_without_command=True,
    **SETTINGS,
)


@app.callback()
def reproduce(context: typer.Context) -> None:
    """Measure the tables and figures of the thesis again: list, run, report and check."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


#: Every command, and the example at the end of its help.
COMMANDS = {
    listing.list_: listing.EXAMPLE,
    running.run: running.EXAMPLE,
    report.report: report.EXAMPLE,
    check.check: check.EXAMPLE,
}
add_commands(app, COMMANDS)
