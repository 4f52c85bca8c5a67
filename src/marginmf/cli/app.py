"""The typer application that all commands belong to."""

from typing import Annotated

import typer

import marginmf
from marginmf.cli import (
    compare,
    demo,
    doctor,
    evaluate,
    fit,
    info,
    predict,
    recommend,
    similar,
    tune,
)
from marginmf.cli.commands import SETTINGS, add_commands
from marginmf.cli.datasets.app import app as datasets_app
from marginmf.cli.errors import SentenceGroup
from marginmf.cli.labels.app import app as labels_app

app = typer.Typer(
    name="marginmf",
    cls=SentenceGroup,
    invoke_without_command=True,
    **SETTINGS,
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


#: Every command, and the example at the end of its help.
COMMANDS = {
    demo.demo: demo.EXAMPLE,
    fit.fit: fit.EXAMPLE,
    predict.predict: predict.EXAMPLE,
    recommend.recommend: recommend.EXAMPLE,
    similar.similar: similar.EXAMPLE,
    evaluate.evaluate: evaluate.EXAMPLE,
    compare.compare: compare.EXAMPLE,
    tune.tune: tune.EXAMPLE,
    info.info: info.EXAMPLE,
    doctor.doctor: doctor.EXAMPLE,
}
add_commands(app, COMMANDS)
app.add_typer(labels_app, name="labels")
app.add_typer(datasets_app, name="datasets")
