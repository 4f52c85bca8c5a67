"""The typer application that all commands belong to."""

from typing import Annotated

import typer

import marginmf
from marginmf.cli.demo import demo
from marginmf.cli.errors import SentenceGroup

app = typer.Typer(
    name="marginmf",
    cls=SentenceGroup,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)
    ] = False,
) -> None:
    """Max-margin matrix factorisation of discrete matrices: star ratings and label sets."""
    if version:
        typer.echo(f"marginmf {marginmf.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


app.command()(demo)
