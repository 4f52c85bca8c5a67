"""How a function becomes a command: groups of options, an example in its help, errors in one line.

A command takes a group as one parameter, and typer shows the group's fields as options::

    @command("marginmf fit ratings.csv --out m.marginmf")
    def fit(data: DataOptions, model: ModelOptions) -> None: ...
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, get_args

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo

Function = Callable[..., None]
SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
BAD_INPUT, INTERRUPTED = 2, 130
#: What the library raises when the input, the machine or an extra is at fault.  Anything else is
#: a fault of the library, and its traceback is wanted.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError, MemoryError)


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
    return lambda run: Command(expand_groups(run), name or run.__name__, example)


def command_group(text: str, commands: Iterable[Command]) -> typer.Typer:
    """Return an application of its own; without a command, it shows its help."""
    app = typer.Typer(help=text, invoke_without_command=True, **SETTINGS)
    app.callback(help=text)(show_help)
    for one in commands:
        one.add_to(app)
    return app


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands if none of them was asked for."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


def expand_groups(function: Function) -> Function:
    """Let typer see the fields of a function's option groups as options of its own."""
    parameters = inspect.signature(function).parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in parameters if is_dataclass(one.annotation)
    }
    shown: list[inspect.Parameter] = []
    for one in parameters:
        if one.name not in groups:
            shown.append(one.replace(kind=one.KEYWORD_ONLY))
            continue
        for field in fields(groups[one.name]):
            default = one.empty if field.default is MISSING else field.default
            option = inspect.Parameter(field.name, one.KEYWORD_ONLY, default=default)
            shown.append(option.replace(annotation=field.type))

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


class CommandGroup(TyperGroup):
    """Commands whose expected errors become one line on standard error and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the program; arguments that it does not understand are one line too."""
        try:
            code = super().main(*args, standalone_mode=False, **extra)  # type: ignore[misc]
        except Exception as error:
            # Typer has changed where its errors of usage come from, but not what they can do.
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            message = _one_line(error.format_message())
            end = "" if message.endswith("?") else "."
            context = getattr(error, "ctx", None)
            path = context.command_path if context else "marginmf"
            print_error(f"{message.rstrip('.')}{end} See {path} --help.")
            sys.exit(BAD_INPUT)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                print_error("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:  # the reader of our output has gone: typer ends quietly
                raise
            except EXPECTED as error:
                print_error(describe_error(error))
                raise typer.Exit(BAD_INPUT) from None


def print_error(text: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"marginmf: {text}", err=True)


def describe_error(error: BaseException) -> str:
    r"""Return an error's message in one line.

    >>> describe_error(ValueError("No ratings:\n  add some."))
    'No ratings: add some.'
    >>> describe_error(PermissionError(13, "Permission denied", "a.csv"))
    'a.csv: Permission denied.'
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {_one_line(error)}".strip()
    return _one_line(error) or type(error).__name__


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _print_warning(message: Warning | str, *rest: Any) -> None:
    print_error(_one_line(message))
