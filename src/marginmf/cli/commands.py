"""How a function becomes a command: groups of options, and an example at the end of its help.

A command takes a group as one parameter, and typer shows the group's fields as options::

    @command("marginmf fit ratings.csv --out m.marginmf")
    def fit(data: DataOptions, model: ModelOptions) -> None: ...
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, get_args

import typer
from typer.models import ArgumentInfo

Function = Callable[..., None]
SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


@dataclass(frozen=True)
class Command:
    """A function that typer can call, its name on the command line, and an example."""

    function: Function
    name: str
    example: str

    def add_to(self, app: typer.Typer) -> None:
        """Make it a command of an application."""
        # Typer would keep the line ends of the docstring, whatever the width of the terminal.
        paragraphs = inspect.cleandoc(self.function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        app.command(self.name, help=text, epilog=f"Example: {self.example}")(self.function)


def command(example: str, name: str | None = None) -> Callable[[Function], Command]:
    """Make a command of a function whose name, unless another is given, is the command's."""

    def decorate(function: Function) -> Command:
        return Command(expand_groups(function), name or function.__name__, example)

    return decorate


def command_group(text: str, commands: Iterable[Command]) -> typer.Typer:
    """Return an application of its own; without a command, it shows its help."""
    app = typer.Typer(help=text, invoke_without_command=True, **SETTINGS)

    @app.callback(help=text)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help(), nl=False)

    for one in commands:
        one.add_to(app)
    return app


def expand_groups(function: Function) -> Function:
    """Let typer see the fields of a function's option groups as options of its own."""
    parameters = inspect.signature(function).parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in parameters if is_dataclass(one.annotation)
    }
    shown: list[inspect.Parameter] = []
    for one in parameters:
        if one.name in groups:
            shown += [_as_parameter(field) for field in fields(groups[one.name])]
        else:
            shown.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def as_arguments(group: Any) -> list[str]:
    """Return the options of a group that are not the defaults, as they are written."""
    words: list[str] = []
    for field in fields(group):
        value, option = getattr(group, field.name), get_args(field.type)[1]
        if isinstance(option, ArgumentInfo) or value == field.default:
            continue
        written = (option.default, f"--{field.name.replace('_', '-')}")  # where typer keeps it
        name = next(one for one in written if isinstance(one, str))
        for one in value if isinstance(value, list) else [value]:
            words += [name] if one is True else [name, str(one)]
    return words


def _as_parameter(field: Field[Any]) -> inspect.Parameter:
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.default is MISSING else field.default,
        annotation=field.type,
    )
