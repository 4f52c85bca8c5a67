"""The typer application that all commands belong to."""

import inspect
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
for command, example in COMMANDS.items():
    # Typer would keep the line ends of a docstring, wherever the terminal's own are.
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(help=text, epilog=f"Example: {example}")(command)
