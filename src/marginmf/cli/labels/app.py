"""The typer application that the commands for label sets belong to."""

import typer

from marginmf.cli.commands import SETTINGS, add_commands
from marginmf.cli.labels import compare, evaluate, fit, predict

app = typer.Typer(
    help="Learn label sets: fit, predict, evaluate and compare.",
    invoke_without_command=True,
    **SETTINGS,
)


@app.callback()
def labels(context: typer.Context) -> None:
    """Learn label sets: fit, predict, evaluate and compare."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


#: Every command, and the example at the end of its help.
COMMANDS = {
    fit.fit: fit.EXAMPLE,
    predict.predict: predict.EXAMPLE,
    evaluate.evaluate: evaluate.EXAMPLE,
    compare.compare: compare.EXAMPLE,
}
add_commands(app, COMMANDS)
