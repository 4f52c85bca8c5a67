"""How commands become commands of a typer application, with an example in their help."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def command_group(words: str, commands: Mapping[Callable[..., None], str]) -> typer.Typer:
    """Return an application of its own; without a command, it shows its help."""
    app = typer.Typer(help=words, invoke_without_command=True, **SETTINGS)

    @app.callback(help=words)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help(), nl=False)

    add_commands(app, commands)
    return app


def add_commands(app: typer.Typer, commands: Mapping[Callable[..., None], str]) -> None:
    """Add commands, each with the example at the end of its help."""
    for command, example in commands.items():
        # Typer would keep the line ends of a docstring, wherever the terminal's own are.
        paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        name = command_name(command)
        app.command(name, help=text, epilog=f"Example: {example}")(command)


def command_name(command: Callable[..., None]) -> str:
    """Return what a command is called by: its function, which may not be called ``list``."""
    return command.__name__.removesuffix("_").replace("_", "-")
