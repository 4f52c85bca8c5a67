"""The typer application that the commands for datasets belong to."""

import typer

from marginmf.cli.commands import SETTINGS, add_commands
from marginmf.cli.datasets import getting, listing, showing

HELP = "Datasets known by name: list them, get them, and see what is known of them."
app = typer.Typer(help=HELP, invoke_without_command=True, **SETTINGS)


@app.callback()
def datasets(context: typer.Context) -> None:
    """Datasets known by name: list them, get them, and see what is known of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


#: Every command, and the example at the end of its help.
COMMANDS = {
    listing.list_: listing.EXAMPLE,
    getting.get: getting.EXAMPLE,
    showing.info: showing.INFO_EXAMPLE,
    showing.path: showing.PATH_EXAMPLE,
}
add_commands(app, COMMANDS)
