"""The typer application that all commands belong to."""

from typing import Annotated

import typer
from typer import Option

import marginmf
from marginmf.cli.commands import SETTINGS, CommandGroup, command_group, show_help
from marginmf.cli.demo import demo
from marginmf.cli.doctor import doctor
from marginmf.cli.evaluate import compare, compare_labels, evaluate, evaluate_labels
from marginmf.cli.fit import fit, fit_labels, tune
from marginmf.cli.info import (
    get_datasets,
    info,
    info_labels,
    list_datasets,
    show_dataset,
    show_path,
)
from marginmf.cli.lists import explain, recommend, similar
from marginmf.cli.new_ratings import fold_in, update
from marginmf.cli.predict import predict, predict_labels
from marginmf.cli.tune_labels import tune_labels

COMMANDS = (
    *(demo, fit, predict, recommend, similar, explain, fold_in, update),
    *(evaluate, compare, tune, info, doctor),
)
#: Groups of commands: a line of help and the commands.
GROUPS = {
    "labels": (
        "Learn label sets: fit, predict, evaluate, compare, tune and info.",
        (fit_labels, predict_labels, evaluate_labels, compare_labels, tune_labels, info_labels),
    ),
    "datasets": (
        "Datasets known by name: list them, get them, and see what is known of them.",
        (list_datasets, get_datasets, show_dataset, show_path),
    ),
}

app = typer.Typer(name="marginmf", cls=CommandGroup, invoke_without_command=True, **SETTINGS)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Max-margin matrix factorisation of discrete matrices: star ratings and label sets."""
    if version:
        typer.echo(f"marginmf {marginmf.__version__}")
        raise typer.Exit
    show_help(context)


for command in COMMANDS:
    command.add_to(app)
for name, (text, commands) in GROUPS.items():
    app.add_typer(command_group(text, commands), name=name)
